"""`flymc`: Firefly Monte Carlo (Maclaurin and Adams 2014), exact transitions that look at the bright rows.

A transition resamples the brightness given the block (`firefly.py`), then moves the block given the brightness: by a
walk, a Langevin step or a slice. Blocks are those whose rows read them through linear predictors
(`blocks/linear_block.py`).
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from typing import Any, Protocol

import numpy as np

from venture_lite.blocks.linear_block import LinearBlock, NotBelieved
from venture_lite.blocks.precondition import MOVED
from venture_lite.blocks.sections import Sections
from venture_lite.blocks.slices import shrink
from venture_lite.engines.adaptation import LEAST_BURN, Tuner, geometric_mean, tuned
from venture_lite.engines.firefly.firefly import Firefly, FireflyPoint, FireflySettings
from venture_lite.engines.mh import scaled
from venture_lite.engines.walk import Drift
from venture_lite.errors import ArgumentError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part
from venture_lite.interpreter.kernel import COLUMNS, BlockKernel, Course, Interpreted, Metropolis, Move
from venture_lite.interpreter.selection import Selection
from venture_lite.program.forms import scope_name
from venture_lite.values import show


class BrightDensity(Protocol):
    """A density with a present value, in which a slice moves: Firefly's given the brightness, or one over all rows."""

    rng: np.random.Generator

    # the present value (D,)
    @property
    def theta(self) -> np.ndarray: ...

    # points have a `log_density`; what else they carry comes back with `move`, which is False and changes nothing where
    # the trace says that the point has density zero after all
    def here(self) -> Any: ...

    def at(self, theta: np.ndarray) -> Any: ...

    def move(self, point: Any) -> bool: ...

    def poll(self) -> None: ...


class GaussianStep:
    """A Gaussian step. Accepting 0.234 is best (Roberts, Gelman and Gilks 1997)."""

    words = "steps"
    # the acceptance rate to which 'adapt tunes; None where there is no step to tune
    target: float | None = 0.234

    def __call__(self, firefly: Firefly, step: float) -> tuple[bool, float]:
        noise = _scaled(firefly, firefly.rng.standard_normal(len(firefly.theta)))
        u = firefly.rng.random()
        here, there = firefly.here(), firefly.at(firefly.theta + step * noise)
        return _decided(firefly, u, there, there.log_density - here.log_density)


class Langevin:
    """A Gaussian step of sd h about a drift of h^2 / 2 times the gradient, Metropolis-adjusted. Accepting 0.57 is best
    (Roberts and Rosenthal 1998).

    With M = L L' and noise z the step is h L (z + h/2 L' gradient); the noise that leads back is minus (z + h/2 L' (sum
    of the gradients at both ends)).
    """

    words = "Langevin steps"
    target: float | None = 0.57

    def __call__(self, firefly: Firefly, step: float) -> tuple[bool, float]:
        noise = firefly.rng.standard_normal(len(firefly.theta))
        u = firefly.rng.random()
        here = firefly.here(steep=True)
        assert here.gradient is not None
        uphill = 0.5 * step * _pulled(firefly, here.gradient)
        there = firefly.at(firefly.theta + step * _scaled(firefly, noise + uphill), steep=True)
        assert there.gradient is not None
        change = there.log_density - here.log_density
        # where a bright row would be dark there is no gradient either
        if math.isfinite(change):
            back = noise + uphill + 0.5 * step * _pulled(firefly, there.gradient)
            change += 0.5 * float(noise @ noise - back @ back)
        return _decided(firefly, u, there, change)


class SliceMove:
    """A slice along a uniformly drawn direction, stepping out and shrinking (Neal 2003, figures 3 and 5).

    A point that the trace rejects has density zero and lies outside the slice: the interval shrinks to it. Stepping out
    does not ask the trace. That is right, since it would make the same intervals from every point of the slice.
    """

    words = "slices"
    target: float | None = None

    def __call__(self, density: BrightDensity, step: float) -> tuple[bool, float]:
        rng = density.rng
        direction = rng.standard_normal(len(density.theta))
        direction /= np.linalg.norm(direction)
        start, level = density.theta, density.here().log_density - rng.standard_exponential()

        def at(distance: float) -> Any:
            """The point at a distance, if it lies in the slice."""
            density.poll()
            there = density.at(start + distance * direction)
            return there if there.log_density > level else None

        left = -step * rng.random()
        right = left + step
        while at(left) is not None:
            left -= step
        while at(right) is not None:
            right += step
        moved = shrink(
            rng, left, right, 0.0, lambda distance: (there := at(distance)) is not None and density.move(there)
        )
        return moved, 1.0


def _scaled(firefly: Firefly, noise: np.ndarray) -> np.ndarray:
    return noise if firefly.scale is None else firefly.scale.root @ noise


def _pulled(firefly: Firefly, gradient: np.ndarray) -> np.ndarray:
    """A gradient in the coordinates of the noise."""
    return gradient if firefly.scale is None else firefly.scale.root.T @ gradient


def _decided(firefly: Firefly, u: float, there: FireflyPoint, change: float) -> tuple[bool, float]:
    """Move by the change of the log density; whether it moved, and the probability of that. The trace is asked last,
    where u lets the point pass: a point that it rejects has density zero."""
    # a change that is no number is never accepted
    probability = math.exp(min(change, 0.0)) if change == change else 0.0
    passes = u < probability
    moved = passes and firefly.move(there)
    return moved, probability if moved or not passes else 0.0


FireflyMove = GaussianStep | Langevin | SliceMove
"""One transition of a block given its brightness, by a step of some size; whether it moved, and the probability."""

MOVES: dict[str, tuple[type[FireflyMove], str, str]] = {
    "drift": (GaussianStep, "SIGMA", "the drift's SIGMA"),
    "mala": (Langevin, "STEP", "STEP"),
    "slice": (SliceMove, "WIDTH", "WIDTH"),
}
"""What a kernel is named, the move, its number, and what messages call that."""


class FireflyMonteCarlo(BlockKernel):
    """Transitions of one `flymc` action. The blocks' states live with the trace, for all actions whose bounds are made
    alike."""

    starts_inside = refuses_blocks = True

    def __init__(
        self, program: InferenceProgram, settings: FireflySettings, move: FireflyMove, size: float, burn: int
    ) -> None:
        super().__init__(program.model)
        self.program = program
        self.settings = settings
        self.move = move
        self._tuner = Tuner(size, move.target or 0.0, burn, scaled=False)
        self._states: dict[tuple[int, ...], Firefly] = {}
        self._transitions = 0
        self._accepted = 0
        self._bright = 0
        # evaluations of rows by purpose, those of transitions that adapted apart
        self._queries: Counter[str] = Counter({"set-up": 0})
        # what became of set-ups, by name
        self._counts: Counter[str] = Counter()
        # choices that stood when the action began, and blocks whose new scale this action has not looked at yet
        self._stood: frozenset[int] = frozenset()
        self._new: set[tuple[int, ...]] = set()

    @property
    def rows(self) -> int:
        """Evaluations of rows, all told."""
        return self._queries.total()

    def begin(self, nodes: list[int]) -> None:
        """The action runs for the first time; these are the choices that it may move."""
        self._stood = frozenset(nodes)

    def prepare(self, nodes: list[int]) -> Firefly:
        """The state of a block; raises KernelError where there can be none."""
        block = tuple(nodes)
        found = self._states.get(block)
        if found is None:
            found = self._states[block] = self._kept_or_made(block)
        return found

    def _key(self, block: tuple[int, ...]) -> tuple[Any, ...]:
        return ("firefly", *block, *self.settings.made_from)

    def _kept_or_made(self, block: tuple[int, ...]) -> Firefly:
        warn = self.program.warn
        found, was_kept = self.model.kept.had(
            self._key(block),
            lambda: Firefly(self.model, block, self.settings, warn),
            lambda kept: kept.follows(warn),
        )
        self._counts["set-ups kept" if was_kept else "set-ups made"] += 1
        if not was_kept and found.is_scale_new:
            self._new.add(block)
        return found

    def refuse(self, nodes: list[int]) -> None:
        with contextlib.suppress(NotBelieved):
            self.prepare(nodes)

    def course(self, nodes: list[int], at: Selection) -> Course:
        """Nothing is set up, which takes time: what the bounds refuse is not known yet."""
        sections = Sections.of(self.model, nodes, fewest=0)
        LinearBlock(self.model, sections, nodes)
        return Course(COLUMNS, f"by bright rows of {sections.count:,}")

    def step(self, nodes: list[int], at: Selection) -> bool:
        """One transition; whether the block moved."""
        tuning, is_adapting = self._tuner.begin(nodes, at), self._tuner.is_adapting
        try:
            moved, probability = self._moved(nodes, tuning.step.now, is_adapting)
        except NotBelieved:
            moved = self._walked(nodes, at, tuning.step.now)
            probability = float(moved)
        self._tuner.learn(tuning, probability)
        if self._tuner.burn:
            self.program.draws.mark(self, self._tuner.left)
        if not is_adapting:
            self._transitions += 1
            self._accepted += moved
        return moved

    def _walked(self, nodes: list[int], at: Selection, sigma: float) -> bool:
        """A transition that reads no linear predictor."""
        walk = Move(Drift(self.model.trace.rng, sigma), Metropolis(self.model))
        return Interpreted(self.model, walk).step(nodes, at)

    def _moved(self, nodes: list[int], step: float, is_adapting: bool) -> tuple[bool, float]:
        firefly = self.prepare(nodes)
        try:
            with self.model.kept.changing(self._key(tuple(nodes))):
                firefly.refresh()
                self._settle(firefly, tuple(nodes))
                firefly.resample(self.settings)
                moved = self.move(firefly, step)
        finally:
            self._count(firefly, is_adapting)
        self._bright += 0 if is_adapting else firefly.brightness.bright_count
        return moved

    def _settle(self, firefly: Firefly, block: tuple[int, ...]) -> None:
        """Where this action made the scale, move the block once to where it holds."""
        if block not in self._new:
            return
        self._new.discard(block)
        if self._stood.issuperset(block) and firefly.settle():
            self._counts[MOVED] += 1
            self.program.draws.mark_earlier()

    def _count(self, firefly: Firefly, is_adapting: bool) -> None:
        for purpose, count in firefly.queries.items():
            self._queries["adaptation" if is_adapting and purpose != "set-up" else purpose] += count
        firefly.queries.clear()

    def details(self) -> dict[str, float]:
        """By name, for the statistics of the kernel; means are over the transitions that did not adapt."""
        found: dict[str, float] = {f"queries of {purpose}": count for purpose, count in self._queries.items()}
        if self._transitions:
            found |= {
                "queries a transition": (self._queries["proposals"] + self._queries["brightening"]) / self._transitions,
                "mean bright rows": self._bright / self._transitions,
                "acceptance": self._accepted / self._transitions,
            }
        if steps := self._tuner.steps():
            found["step"] = geometric_mean(steps)
        for firefly in self._states.values():
            if firefly.scale is not None:
                found[f"preconditioned by the {firefly.scale.curvature}"] = 1
        return found | dict(self._counts)


def _compile_flymc(program: InferenceProgram, given: ActionForm) -> Part:
    kind, role, what = next(move for word, move in MOVES.items() if word in given)
    size = given.positive(role, what)
    burn = given.count("BURN", LEAST_BURN) if "adapt" in given else 0
    explicit = _fraction(given, "FRACTION") if "explicit" in given else None
    settings = FireflySettings(
        _bound_name(given), _is_at_mode(given), _fraction(given, "Q"), explicit, "precondition" in given
    )
    engine = FireflyMonteCarlo(program, settings, kind(), size, burn)
    return given.kernel(f"{kind.words} of {show(size)}{scaled(given)}{tuned(burn)}, by bright rows", engine)


def _bound_name(given: ActionForm) -> str | None:
    name = scope_name(given["BOUND"])
    if not isinstance(name, str):
        raise ArgumentError("BOUND must be auto or the name of a bound", given["BOUND"].span)
    return None if name == "auto" else name


def _is_at_mode(given: ActionForm) -> bool:
    word = given.word("TUNING", ("map", "untuned"))
    if word is None:
        raise ArgumentError("TUNING must be 'map or 'untuned", given["TUNING"].span)
    return word == "map"


def _fraction(given: ActionForm, role: str) -> float:
    value = given.between(role, 0, 1)
    if not value:
        raise ArgumentError(f"{role} must be above 0", given[role].span)
    return value


FLYMC = Action(
    "flymc",
    (
        "(flymc SCOPE BLOCK BOUND TUNING Q 'drift SIGMA ['precondition] ['explicit FRACTION] ['adapt BURN] T)",
        "(flymc SCOPE BLOCK BOUND TUNING Q 'mala STEP ['precondition] ['explicit FRACTION] ['adapt BURN] T)",
        "(flymc SCOPE BLOCK BOUND TUNING Q 'slice WIDTH ['explicit FRACTION] T)",
    ),
    "T transitions of Firefly Monte Carlo. BOUND is auto or a bound's name, TUNING 'map or 'untuned, Q the probability "
    "with which a dark row is proposed to brighten. 'explicit draws a FRACTION of the brightness anew instead; 'adapt "
    "tunes the step for BURN transitions.",
    _compile_flymc,
)
