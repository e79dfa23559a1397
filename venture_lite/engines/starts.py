"""`initialize`, `optimize` and `pathfinder`: where chains begin.

None of them leaves the posterior as it is, so that each moves once, before anything is collected. `initialize` knows
nothing of the density but where it is zero; `optimize` and `pathfinder` follow its gradient in free coordinates.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from venture_lite.blocks.curvature import ROUNDING
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.distributions import name_of, transform_of
from venture_lite.blocks.gradients import Densities
from venture_lite.blocks.mode_search import climb, search
from venture_lite.blocks.pathfinder import REACH, PathEnd, PathNormal, pathfinder
from venture_lite.draws.draws import KernelStatistics
from venture_lite.draws.presentation import listed
from venture_lite.engines.adaptation import FirstScales
from venture_lite.errors import ArgumentError, Span, VentureError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part, located
from venture_lite.interpreter.ancestry import name_of_choice
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.evidence import never_possible
from venture_lite.interpreter.failures import failure_details
from venture_lite.interpreter.handler import Handler
from venture_lite.interpreter.impossible import first_outside
from venture_lite.interpreter.kernel import Interpreted, Metropolis, Move, Resimulation
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.selection import Selection, Selector
from venture_lite.interpreter.weights import log_density
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import Elementwise
from venture_lite.trace.trace import Trace
from venture_lite.values import freeze, from_python, show

TRIES = 100
"""Random starts that are made until one has a positive density."""
STARTS = 5
"""Of a search for the mode: where the block stands, and random ones."""
HOPELESS = 30.0
"""Nats, or as many as there are coordinates where these are more, by which the evidence of a path's normal is below
that of another where next to nothing of the posterior is. Ends of one mode differ by less."""
MOST_CURVED_PATH = 100
"""Coordinates up to which a path is followed to the mode by its curvature."""
MOST_CURVED = 500
"""Coordinates of a block up to which second derivatives say whether a search has ended at a maximum."""
SLOPE = 1e-3
"""Largest slope, in free coordinates, of a block of more coordinates at what is called a maximum."""
ALIKE = 1e-3
"""Log densities within this of each other are those of one mode."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What came of an action."""

    # where the choices stand now
    note: str
    # whether that is what was looked for
    is_found: bool = True
    # what else there is to say, by name
    details: Mapping[str, float] = field(default_factory=dict)
    # evaluations of rows
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Start(Part):
    """Moves choices once, to where a chain begins."""

    words: str
    span: Span = field(repr=False, compare=False)
    program: InferenceProgram = field(repr=False, compare=False)
    # moves them
    begin: Callable[[], Begun] = field(repr=False, compare=False)

    @property
    def heading(self) -> str:
        return f"{self.action}: {self.words}"

    def run(self) -> None:
        began, failures = time.perf_counter(), Counter[str]()
        try:
            with self.program.failures.added_to(failures):
                begun = self.begin()
        except VentureError as error:
            raise located(error, self.span) from error
        if not begun.is_found:
            self.program.warn(f"{self.span.place()}: {self.action}: the block {begun.note}")
        seconds = time.perf_counter() - began
        details = {**begun.details, **failure_details(failures)}
        statistics = KernelStatistics(self.span.text, 0, 0, begun.rows, seconds, details=details, note=begun.note)
        self.program.notes[self.span] = [statistics]


# ------------------------------------------------------------------------------------------------ random and given


class RandomStart(Handler):
    """Continuous choices stand anywhere within REACH of 0 in their free coordinates, whatever their distributions are;
    all others, and draws of exchangeable procedures, come from theirs. A proposal for choices that stand, and the
    handler of those that come."""

    counts = True

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """Nothing depends on the old state."""

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        return self.choose(node, operator, arguments), 0.0

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        if isinstance(operator, Random) and operator.start is not None:
            return operator.start(self.trace.rng, *arguments)
        value = simulate_anew(self.trace, node, operator, arguments)
        transform = transform_of(operator)
        if transform is None or not isinstance(operator, Random):
            return value
        is_elementwise = isinstance(transform, Elementwise)
        shape = np.shape(value if is_elementwise else transform.to_free(value, arguments))
        start = transform.from_free(self.trace.rng.uniform(-REACH, REACH, shape or None), arguments)
        return freeze(np.asarray(start)) if shape else start


class Initializer:
    """One `initialize` action: the values that it gives, each with its place, and random starts."""

    def __init__(self, model: Model, given: dict[int, tuple[Any, Span]]) -> None:
        self.model, self.given = model, given
        self._why = "the density is zero"

    def begin(self) -> Begun:
        """Set what is given, and all else to a random start.

        Raises ArgumentError for a given value whose density is zero at all of them.
        """
        model = self.model
        with model.transaction() as change:
            for node, (value, span) in self.given.items():
                operator, arguments, _ = model.trace.choice(node)
                if never_possible(operator, arguments, value):
                    raise ArgumentError(f"{show(value)} is impossible for {name_of(operator)}", span)
                model.put_value(node, value)
            tries = next((tries for tries in range(1, TRIES + 1) if self._try()), 0)
            if not tries:
                self._refuse_impossible()
                model.note_impossible(None)
            change.keep()
        if not tries:
            return Begun(f"stays where it was: {self._why} at each of {TRIES} random starts", False)
        note = "stands at a random start" + (" but for what is given" if self.given else "")
        note += f", the first of {tries} with a positive density" if tries > 1 else ""
        return Begun(note, details={"tries": float(tries)})

    def _try(self) -> bool:
        """A random start of what is not given; it stands if its density is positive."""
        model = self.model
        model.poll()
        others = [node for node in model.trace.default.everything() if node not in self.given]
        start, scaffold = RandomStart(model.trace), Builder(model.trace).build(others)
        with model.transaction() as change:
            try:
                model.regenerator.detach(scaffold, counts=True)
                with model.machine.handled_by(start):
                    weight = model.regenerator.regenerate(scaffold, start)
            except VentureError as error:
                self._why = error.message
                return False
            is_possible = not weight.impossible and math.isfinite(weight.total) and self._impossible() is None
            if is_possible:
                change.keep()
        return is_possible

    def _impossible(self) -> int | None:
        """The first given choice whose density is zero; one that went has none."""
        trace = self.model.trace
        there = (node for node in self.given if trace.default.has(node))
        return next((node for node in there if log_density(trace, node) == -math.inf), None)

    def _refuse_impossible(self) -> None:
        if (node := self._impossible()) is not None:
            value, span = self.given[node]
            raise ArgumentError(f"{show(value)} has probability zero here", span)


def _compile_initialize(program: InferenceProgram, given: ActionForm) -> Part:
    names = given.all("EXPR")
    values = [(from_python(program.constant(item)), item.span) for item in given.all("VALUE")]

    def begin() -> Begun:
        found: dict[int, tuple[Any, Span]] = {}
        for name, value in zip(names, values, strict=True):
            node = program.choice(name)
            if node in found:
                raise ArgumentError(f"{name.span.text} is given twice", name.span)
            found[node] = value
        return Initializer(program.model, found).begin()

    words = "a random start" + (f", {listed([name.span.text for name in names], 4)} at given values" if names else "")
    return Start(given.action, words, given.span, program, begin)


INITIALIZE = Action(
    "initialize", ("(initialize [EXPR VALUE] ...)",),
    "Sets each chain to a start of its own: every continuous choice at random in [-2, 2] of its unconstrained "
    "coordinates, discrete choices and draws of makers from their distributions, and the choices that are given at "
    "their values.",
    _compile_initialize, is_start=True,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------ along the gradient


@dataclass(frozen=True, slots=True)
class Target:
    """Where a block is to begin."""

    # free coordinates (D,); None where there is nowhere to go
    free: np.ndarray | None
    note: str
    is_found: bool = True
    # a way along which the density grows without end (D,), if one was met, and one along which it does not change
    growing: np.ndarray | None = None
    level: np.ndarray | None = None
    details: dict[str, float] = field(default_factory=dict)
    # the normal that it was drawn from
    normal: PathNormal | None = None


NOWHERE = Target(None, "stays where it was: nothing on its path has a positive density", is_found=False)

IN_FLIGHT = "stays where it was: uphill there is no mode"

Look = Callable[[Densities, BlockDensity, np.random.Generator], Target]
"""Finds where a block is to begin; the block stays where it is."""


def optimum(densities: Densities, density: BlockDensity, rng: np.random.Generator) -> Target:
    """The highest end of a few paths uphill. Up to MOST_CURVED coordinates curvature says whether it is a maximum."""
    evaluate, here = partial(densities.evaluate, density), density.present()
    starts = (here, *rng.uniform(-REACH, REACH, (STARTS - 1, density.size)))
    paths = [path for path in (climb(evaluate, start) for start in starts) if path.steps]
    if not paths:
        return NOWHERE
    end, highest, gradient = max((path.steps[-1] for path in paths), key=lambda step: step[1])
    is_maximum, level = float(np.max(np.abs(gradient), initial=0.0)) < SLOPE, None
    if 0 < density.size <= MOST_CURVED:
        peak = search(evaluate, end, partial(densities.hessian, density))
        is_maximum, level = peak.is_maximum, _level(peak.curvature)
        end, highest = (peak.at, found[0]) if (found := evaluate(peak.at)) is not None else (end, highest)
    alike = sum(path.steps[-1][1] > highest - ALIKE for path in paths)
    details = {"log density": highest, "starts that ended there": float(alike)}
    note = f"stands at {'a' if is_maximum else 'no'} maximum, log density {highest:.6g}"
    if is_maximum:
        return Target(end, f"{note}; {alike} of {STARTS} starts led there", level is None, None, level, details)
    return Target(end, note, False, end - here, None, details)


def _level(curvature: np.ndarray) -> np.ndarray | None:
    """A way along which a density does not bend (D,)."""
    if not np.isfinite(curvature).all():
        return None
    values, vectors = np.linalg.eigh(curvature)
    return vectors[:, 0] if values[0] <= ROUNDING * max(values[-1], 1.0) else None


def path_draw(paths: int, densities: Densities, density: BlockDensity, rng: np.random.Generator) -> Target:
    """A draw of the best normal along a path uphill: from where the block stands, then from random starts. The first
    is taken that does not end where it is hopeless, so that of two modes the wider is not preferred.

    Of many coordinates the normals along a path are poor, and their evidence with them: where the density grows without
    end, as that of a hierarchy does as its scale goes to 0, the best of them stands in the needle's eye, which chains
    leave in thousands of transitions. Then the block stays at its start, from where a warm-up finds the posterior.

    Ends of several blocks can be compared by their details: `elbo`, `log density`, `log density of the normal`.
    """
    hessian = partial(densities.hessian, density) if density.size <= MOST_CURVED_PATH else None
    starts = [density.present(), *rng.uniform(-REACH, REACH, (paths - 1, density.size))]
    found = [pathfinder(partial(densities.evaluate, density), start, rng, hessian) for start in starts]
    ends = [end for end in found if end is not None]
    if not ends:
        return NOWHERE
    if density.size > MOST_CURVED_PATH:
        in_flight = [end.growing for end in ends if end.is_in_flight]
        ends = [end for end in ends if not end.is_in_flight]
        if not ends:
            return Target(None, IN_FLIGHT, growing=in_flight[0], details={"paths without a mode": float(len(found))})
    least = max(end.elbo for end in ends) - max(HOPELESS, density.size)
    return _at_end_of(next(end for end in ends if end.elbo >= least), paths, sum(end.elbo >= least for end in ends))


def _at_end_of(end: PathEnd, paths: int, near: int) -> Target:
    where = "the mode" if end.step > end.steps else f"step {end.step} of {end.steps}"
    note = f"stands at a draw of the normal at {where}, log density {end.log_density:.4g}, ELBO {end.elbo:.4g}"
    if near < paths:
        note += f"; {paths - near} of {paths} paths ended far below"
    details = {"log density": end.log_density, "log density of the normal": end.log_normal, "elbo": end.elbo}
    details |= {"still growing": float(end.growing is not None), "hopeless paths": float(paths - near)}
    return Target(end.free, note, growing=end.growing, details=details, normal=end.normal)


def _begun(densities: Densities, nodes: list[int], look: Look, scales: FirstScales) -> Begun:
    """Move a block to where it is to begin; what is learned of its scales there is kept for who tunes."""
    model = densities.model
    come_inside(model, nodes)
    density, before = densities.of(nodes), densities.rows
    target = look(densities, density, model.trace.rng)
    with model.transaction() as change:
        if target.free is not None and densities.at(density, target.free) is not None:
            change.keep()
    if target.normal is not None:
        _note_scales(density, nodes, target.normal, scales)
    note = target.note
    for way, what in ((target.growing, "still grows, most"), (target.level, "does not change")):
        if way is not None:
            note += f"; the density {what} along {name_of_choice(model.trace, density.furthest(way))}"
    return Begun(note, target.is_found, target.details, densities.rows - before)


def _note_scales(density: BlockDensity, nodes: list[int], normal: PathNormal, scales: FirstScales) -> None:
    where = density.places
    variances = normal.variances()
    scales.variances.update((node, variances[taken]) for node, taken in where.items())
    if density.size <= MOST_CURVED:
        scales.joint[:] = [(where, normal.covariance())]


def come_inside(model: Model, nodes: list[int]) -> None:
    """Draw choices anew that stand outside their own support, where they have no coordinates."""
    anew = Interpreted(model, Move(Resimulation(model), Metropolis(model)))
    for _ in nodes:
        if (outside := first_outside(model, nodes)) is None:
            return
        anew.step([outside], Selection(model, "default", Selector("key"), outside))


def _compile_path(program: InferenceProgram, given: ActionForm, words: str, look: Look) -> Part:
    model = program.model
    # why points that were tried have no density: of interest where the search finds nothing
    met: list[str] = []
    densities = Densities(model, given.action, met.append)
    selection = Selection(model, given.scope, given.selector)

    def begin() -> Begun:
        if (missing := selection.missing()) is not None:
            return Begun(f"stays where it was: {missing}", is_found=False)
        for nodes in selection.samples(by_block=True):
            densities.refuse(nodes)
        blocks = selection.sweep() if selection.selector.sweeps else [selection.next_block()]
        scales = FirstScales.of(program.shared)
        begun = _together([_begun(densities, nodes, look, scales) for nodes in blocks])
        if not begun.is_found:
            for text in met:
                program.warn(text)
        return begun

    return Start(given.action, f"{selection.selector.words(given.scope)}: {words}", given.span, program, begin)


def _compile_pathfinder(program: InferenceProgram, given: ActionForm) -> Part:
    paths = given.count("K", 1) if "paths" in given else 1
    words = "a draw of the best normal on a path uphill"
    words += f", the first of {paths:,} that is not hopeless" if paths > 1 else ""
    return _compile_path(program, given, words, partial(path_draw, paths))


def _together(begun: list[Begun]) -> Begun:
    """What is said of several blocks."""
    if len(begun) == 1:
        return begun[0]
    count, rows = sum(one.is_found for one in begun), sum(one.rows for one in begun)
    first = next((one for one in begun if not one.is_found), begun[0])
    return Begun(f"{first.note} (the first of {len(begun)} blocks)", count == len(begun), rows=rows)


OPTIMIZE = Action(
    "optimize", ("(optimize SCOPE BLOCK)",),
    "Moves continuous choices to the mode of their density in unconstrained coordinates, the highest that is found "
    "from where they stand and from random starts, and says where it stopped and why.",
    lambda program, given: _compile_path(program, given, "the highest of a few paths uphill", optimum), is_start=True,
)  # fmt: skip
PATHFINDER = Action(
    "pathfinder", ("(pathfinder SCOPE BLOCK ['paths K])",),
    "Moves continuous choices to a draw of the best normal along a path uphill, in unconstrained coordinates, from "
    "where they stand: near to where most of the posterior is, for a chain to begin there. Of K paths, all but the "
    "first from random starts, it is the first that does not end where the posterior has next to nothing.",
    _compile_pathfinder, is_start=True,
)  # fmt: skip
