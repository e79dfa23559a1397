"""What a session says of a program of rows, held against the evaluator: densities, derivatives, predictors, weights.

Each comparison raises Fault with the program ready to be run. A refusal (VentureError) is no fault; any other error is.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.generator.comparison import Fault
from tests.generator.evaluator import Evaluator, Label, Missing, derivative, label_of, second_derivative, values_of
from tests.generator.interpreter_functions import key_of
from tests.generator.programs import Program
from tests.generator.session import check, used
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.distributions import transform_of
from venture_lite.blocks.linear_block import LinearBlock, refuse_dependent
from venture_lite.blocks.sections import Sections
from venture_lite.engines.gibbs import Gibbs
from venture_lite.engines.walk import Drift
from venture_lite.errors import Disagreement, VentureError
from venture_lite.interpreter.candidates import present_first, support_of
from venture_lite.interpreter.kernel import Interpreted, Move, Resimulation
from venture_lite.interpreter.selection import Selection, Selector
from venture_lite.interpreter.weights import Weight
from venture_lite.kernels.compiled import Compiled, CompiledDrawing
from venture_lite.procedures.record import Random
from venture_lite.trace.runtime import Exchangeable

if TYPE_CHECKING:
    from venture_lite import Venture
    from venture_lite.interpreter.model import Model

Rng = np.random.Generator

KERNELS = (
    "(mh default one 5)",
    "(mh default each 1)",
    "(mh default all 2)",
    "(mh b all 2)",
    "(mh z each 1)",
    "(mh default all 'drift 0.3 3)",
    "(mh default one 'drift 0.5 5)",
    "(mh default each 'drift 0.4 1)",
    "(mh (choices 'smooth) all 'drift 0.2 3)",
    "(mh (choices 'smooth) all 'drift 0.5 'precondition 2)",
    "(mh (choices 'smooth) one (lambda (v) (normal v 0.7)) 3)",
    "(gibbs (choices 'finite) each 1)",
    "(gibbs (choices 'finite) one 3)",
    "(gibbs (choices 'finite) all 1)",
    "(gibbs b all 1)",
    "(gibbs z each 1)",
    "(gibbs z one 4)",
    "(gibbs default all 'forward 1)",
    "(gibbs (choices 'finite) all 'forward 1)",
    "(gibbs z all 'weights 1)",
    "(slice default all 2 10 'weights 1)",
    "(slice default all 2 10 'weights 'splits 2 1)",
    "(split_merge z 3)",
    "(slice (choices 'smooth) each 1 4 1)",
    "(slice (choices 'smooth) one 1 4 3)",
    "(nuts (choices 'smooth) all 'step 0.1 2)",
    "(hmc (choices 'smooth) all 0.1 3 2)",
    "(hmc (choices 'smooth) each 0.1 2 1)",
    "(mala (choices 'smooth) all 0.1 2)",
    "(mala (choices 'smooth) each 0.1 'precondition 1)",
    "(optimize (choices 'smooth) all)",
    "(pathfinder (choices 'smooth) all)",
    "(flymc (choices 'smooth) all auto 'untuned 0.2 'drift 0.3 3)",
    "(flymc (choices 'smooth) all auto 'map 0.2 'drift 0.3 3)",
    "(subsampled_mh (choices 'smooth) all 5 0.01 'drift 0.2 2)",
    "(subsampled_mh (choices 'smooth) all 5 0.01 'drift 0.2 'proxy 2)",
    "(pgibbs default ordered 3 1)",
    "(pgibbs default ordered 3 'ancestor 1)",
    "(smc 3 (mh default one 2))",
    "(smc 3 'tempered (mh default one 2))",
    "(rejection default one 1)",
)
"""Every engine; most programs have choices for some of them."""

MOST_COPIED = 26
"""Rows; of programs of more particles are run in every fourth, since a copy of a trace for each row takes seconds."""
TRIES = 300
"""Of rejection, before it is given up; and candidates of a block of many choices."""


def ready(program: Program, seed: int, kernels: str, engine: str = "") -> str:
    """A script that runs a program."""
    text = "\n".join(f"{step.label}: {step.text}" for step in (*program.directives, *program.operations))
    given = ", ".join(f"{name}={spelled(value)}" for name, value in used(text, program.parameters).items())
    lines = [
        "from numpy import array",
        "from venture_lite import Venture",
        f"v = Venture(seed={seed}, kernels={kernels!r})",
        f"v.execute(r'''\n{text}\n'''{', ' if given else ''}{given})",
        f"print(v.infer({engine!r}), v.log_score())" if engine else "print(v.log_score())",
    ]
    return "\n".join(lines)


def spelled(value: Any) -> str:
    return repr(value).replace("\n", "")


@dataclass(slots=True)
class Subject:
    """A program in a session, beside its evaluator. Mutable: comparisons move it."""

    program: Program
    seed: int
    kernels: str = "checked"
    name: str = ""
    # In how many directions derivatives are compared.
    directions: int = 2
    venture: Venture = field(init=False)
    evaluator: Evaluator = field(init=False)
    rng: Rng = field(init=False)
    # The engine that ran last.
    engine: str = ""
    # What moves blocks by drift, and what draws them anew, with the weights that it decided on: a form of one block is
    # used for the next one of its shape.
    _movers: dict[tuple[bool, int], tuple[Compiled, list[Weight]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises Fault."""
        self.rng = np.random.default_rng(self.seed)
        self.evaluator = Evaluator(self.program)
        with self.watched("loading"):
            self.venture = loaded(self.program, self.seed, self.kernels)

    @property
    def model(self) -> Model:
        return self.venture.traces[0]

    def fault(self, what: str) -> Fault:
        script = ready(self.program, self.seed, self.kernels, self.engine)
        return Fault(f"{self.name}: {what}\n{script}")

    @contextlib.contextmanager
    def watched(self, what: str) -> Iterator[None]:
        """Any error but a refusal is a fault, and so is a fast way that differs from the interpreter."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", Disagreement)
                yield
        except (VentureError, Fault, KeyboardInterrupt):
            raise
        except Exception as error:
            raise self.fault(f"{what}: {type(error).__name__}: {error}") from error

    def expect(self, found: float, expected: float, what: str, size: float = 0.0) -> None:
        """Alike within rounding; `size` is that of numbers of which these are differences."""
        rounding = self.evaluator.rounding()
        if found == expected or (math.isnan(found) and math.isnan(expected)):
            return
        if not abs(found - expected) <= rounding + 1e-8 * (1.0 + abs(expected) + size):
            raise self.fault(f"{what}: {found!r}, by the evaluator {expected!r}")

    # ------------------------------------------------------------------------------------------------------ densities

    def compare_score(self, what: str = "log score") -> float:
        """The log score with the log joint density, which is returned."""
        with self.watched(what):
            found = self.model.log_score().value()
        expected = self.evaluator.log_joint(values_of(self.model))
        self.expect(found, expected, what)
        return expected

    def log_joint(self, values: dict[Label, Any]) -> float:
        """NaN where the evaluator has no value."""
        try:
            return self.evaluator.log_joint(values)
        except (ArithmeticError, ValueError, AssertionError, Missing):
            return math.nan

    def along(self, density: BlockDensity, block: Sequence[int], free: np.ndarray) -> Callable[[np.ndarray], float]:
        """The log density in free coordinates, of a displacement."""
        trace, present = self.model.trace, values_of(self.model)
        parts = []
        for node in block:
            operator, arguments = trace.application(node)
            parts.append((label_of(self.model, node), transform_of(operator), arguments, density.places[node],
                          np.shape(trace.value(node))))  # fmt: skip

        def log_density(displacement: np.ndarray) -> float:
            at, values, total = free + displacement, dict(present), 0.0
            for label, transform, arguments, place, shape in parts:
                assert transform is not None
                coordinates = float(at[place][0]) if shape == () else at[place].reshape(shape)
                values[label] = value = transform.from_free(coordinates, arguments)
                total += transform.log_jacobian(value, arguments)
            return total + self.log_joint(values)

        return log_density

    def compare_derivatives(self, block: Sequence[int]) -> bool:
        """The value, gradient and second derivatives of a block's density, by passes over rows and as a function;
        whether it has them."""
        model = self.model
        mark = model.trace.journal.mark()
        try:
            with self.watched("a block's density"):
                density = BlockDensity(model, block)
                free = density.present()
                weight, gradient = density.evaluate()
                function = density.function()
                by_function = None if function is None else function.of_array(free)
                hessian = density.hessian()
            if weight.impossible or not np.isfinite(weight.total):
                return False
            log_density = self.along(density, block, free)
            here = log_density(np.zeros(len(free)))
            if not math.isfinite(here):
                return False
            self._compare_first(density, free, log_density, here, weight, gradient, by_function, function)
            if hessian is not None and (self.directions > 1 or self.rng.random() < 0.5):
                self._compare_second(hessian, log_density, here)
        except VentureError:
            return False
        finally:
            model.trace.journal.rollback(mark)
        return True

    def _compare_first(
        self, density: Any, free: Any, log_density: Any, here: float, weight: Any, gradient: Any, by_function: Any,
        function: Any,
    ) -> None:  # fmt: skip
        size, names = len(free), self._names(density)
        for _ in range(self.directions):
            way = self.rng.normal(size=size)
            expected = derivative(lambda step, way=way: log_density(step * way), here)
            for what, slopes in (("passes", gradient), ("function", None if by_function is None else by_function[1])):
                if slopes is not None and math.isfinite(expected[0]) and not agree(float(slopes @ way), expected):
                    raise self.fault(
                        f"gradient of {names} by {what}: {float(slopes @ way)!r} along {way}, by differences {expected}"
                    )
        away = 0.3 * self.rng.normal(size=size)
        change = log_density(away) - here
        if not math.isfinite(change):
            return
        with self.watched("a block's density elsewhere"):
            if function is not None and by_function is not None:
                there = function.of_array(free + away)
                if there is not None:
                    self.expect(there[0] - by_function[0], change, f"function of {names}", abs(here))
            density.put(free + away)
            there = density.evaluate()[0]
        if not there.impossible:
            self.expect(there.total - weight.total, change, f"log density of {names}", abs(here))

    def _compare_second(self, hessian: np.ndarray, log_density: Any, here: float) -> None:
        one, other = self.rng.normal(size=(2, len(hessian)))
        found, error = 0.0, 0.0
        for sign in (1.0, -1.0):
            way = one + sign * other
            value, possible = second_derivative(lambda step, way=way: log_density(step * way), here)
            found, error = found + sign * value / 4.0, error + possible / 4.0
        given = float(one @ hessian @ other)
        if math.isfinite(found) and not abs(given - found) <= error + 1e-5 * (1.0 + abs(found)):
            raise self.fault(f"second derivative: {given!r}, by differences {found!r} +- {error:.1e}")

    def _names(self, density: BlockDensity) -> str:
        return ", ".join(str(label_of(self.model, node)) for node in density.places)

    # ----------------------------------------------------------------------------------------------------- predictors

    def compare_predictor(self, block: Sequence[int]) -> bool:
        """The posterior of a block by its linear predictors at two states; whether it has them."""
        try:
            with self.watched("a linear predictor"):
                sections = Sections.of(self.model, block)
                found = LinearBlock(self.model, sections, block)
                refuse_dependent(self.model, set(sections.order), block)
                theta = found.present()
                here, gradient, hessian = found.log_density(theta), found.gradient(theta), found.hessian(theta)
        except VentureError:
            return False
        values, labels = values_of(self.model), [label_of(self.model, node) for node in block]

        def log_density(displacement: np.ndarray) -> float:
            return self.log_joint({**values, **dict(zip(labels, found.values(theta + displacement), strict=True))})

        before = log_density(np.zeros(len(theta)))
        if not math.isfinite(before):
            return False
        for _ in range(self.directions):
            away = self.rng.normal(size=len(theta))
            change = log_density(away) - before
            if math.isfinite(change):
                self.expect(found.log_density(theta + away) - here, change, f"linear predictor of {labels}",
                            abs(before))  # fmt: skip
        way = self.rng.normal(size=len(theta))
        expected = derivative(lambda step: log_density(step * way), before)
        if not agree(float(gradient @ way), expected):
            raise self.fault(f"gradient by predictors of {labels}: {float(gradient @ way)!r}, {expected}")
        curved = second_derivative(lambda step: log_density(step * way), before)
        if not abs(float(way @ hessian @ way) - curved[0]) <= curved[1] + 1e-5 * (1.0 + abs(curved[0])):
            raise self.fault(f"curvature by predictors of {labels}: {float(way @ hessian @ way)!r}, {curved}")
        return True

    # ---------------------------------------------------------------------------------------- conditionals and weights

    def compare_conditional(self, node: int) -> bool:
        """The weights by which a choice is drawn from its conditional distribution; whether it has them."""
        model, label = self.model, label_of(self.model, node)
        try:
            with self.watched("a support"):
                operator, arguments, value = model.trace.choice(node)
                support = support_of(operator, arguments)
            if support is None or len(support) > 30:
                return False
            candidates, before = present_first(operator, support, value), values_of(model)
            kernel = CompiledDrawing(model, Gibbs)
            # as where a drawing is compared with the interpreter's: it notes its weights
            with self.watched(f"gibbs of {label}"), model.answers.comparing():
                kernel.step([node], Selection(model, "default", Selector("each"), node))
        except VentureError:
            return False
        if len(kernel.weights) != len(candidates):
            return False
        old = self.log_joint(before)
        terms = dict(self.evaluator.terms)
        for weight, candidate in zip(kernel.weights, candidates, strict=True):
            found, new = weight.minus(kernel.weights[0]), self.log_joint({**before, label: candidate})
            if not found.impossible and math.isfinite(new) and math.isfinite(old):
                # what comes or goes with a candidate is drawn from its distribution
                expected = new - old - self._drawn_anew(self.evaluator.terms, terms)
                what = f"gibbs of {label}: the weight of {candidate!r} beside {value!r}"
                self.expect(found.total, expected, what, abs(old))
        return True

    def _drawn_anew(self, terms: Mapping[Label, float], other: Mapping[Label, float]) -> float:
        """The sum of the terms that the other ones lack, less that of what these lack. Draws of one maker that come or
        go are drawn given the others: all of them weigh together what these do."""
        apart = terms.keys() ^ other.keys()
        names = self._drawn_together(apart)
        return math.fsum(
            sign * term
            for sign, each in ((1.0, terms), (-1.0, other))
            for label, term in each.items()
            if label in apart or label[0] in names
        )

    def compare_transition(self, block: Sequence[int], drift: bool) -> bool:
        """The weight of a transition of Metropolis and Hastings that is always accepted; whether there was one."""
        if not block:
            return False
        model = self.model
        before = values_of(model)
        labels = [label_of(model, node) for node in block]
        old = self.log_joint(before)
        terms = dict(self.evaluator.terms)
        jacobian = self._jacobian(block) if drift else 0.0
        kernel, weights = self._mover(drift)
        what = f"{'drift' if drift else 'resimulation'} of {labels}"
        try:
            with self.watched(what):
                kernel.step(list(block), self._at(block))
        except VentureError:
            return False
        after = values_of(model)
        self.compare_score(f"log score after {what}")
        new = self.log_joint(after)
        # the first may be the interpreter's, that of the fast way the last
        if not weights or weights[-1].impossible or after.keys() != before.keys() or not math.isfinite(old):
            return False
        expected = new - old
        if drift:
            expected += self._jacobian(block) - jacobian
        else:
            # what came and went may have been drawn anew
            anew = {label for label in terms if key_of(after[label]) != key_of(before[label])}.union(labels)
            # draws of one maker weigh together what the draws that moved weigh given the others
            names = self._drawn_together(anew)
            moved = [label for label in terms if label in anew or label[0] in names]
            expected -= sum(self.evaluator.terms[label] - terms[label] for label in moved)
        self.expect(weights[-1].total, expected, f"weight of {what} from {before}", abs(old))
        return True

    def _mover(self, drift: bool) -> tuple[Compiled, list[Weight]]:
        """What moves blocks, and the weights of its next transition."""
        model, weights = self.model, list[Weight]()

        def accept(weight: Weight) -> bool:
            weights.append(weight.minus(Weight()))
            return weight.impossible <= 0

        if (drift, id(model)) not in self._movers:
            proposal = Drift(model.trace.rng, 0.3) if drift else Resimulation(model)
            self._movers[drift, id(model)] = Compiled(Interpreted(model, Move(proposal, accept))), weights
        kernel, weights = self._movers[drift, id(model)]
        weights.clear()
        return kernel, weights

    def _drawn_together(self, labels: Collection[Label]) -> set[str]:
        """The names, of those of some choices, whose choices are drawn by a maker."""
        trace = self.model.trace
        drawn = (node for node in trace.choices() if isinstance(trace.application(node)[0], Exchangeable))
        return {label_of(self.model, node)[0] for node in drawn} & {name for name, at in labels if at is not None}

    def _at(self, block: Sequence[int]) -> Selection:
        one = len(block) == 1
        return Selection(self.model, "default", Selector("each" if one else "all"), block[0] if one else "all")

    def _jacobian(self, block: Sequence[int]) -> float:
        trace, total = self.model.trace, 0.0
        for node in block:
            operator, arguments = trace.application(node)
            transform = transform_of(operator)
            total += 0.0 if transform is None else transform.log_jacobian(trace.value(node), arguments)
        return total

    # --------------------------------------------------------------------------------------------------------- kernels

    def compare_kernel(self, engine: str) -> bool:
        """The state that an engine leaves; whether it ran."""
        self.engine = engine
        model = self.model
        model.interrupt_after = TRIES if "rejection" in engine or "all 1)" in engine else None
        try:
            with warnings.catch_warnings(), self.watched(engine):
                warnings.simplefilter("ignore")
                warnings.simplefilter("error", Disagreement)
                self.venture.infer(engine)
        except (VentureError, KeyboardInterrupt):
            return False
        finally:
            for each in self.venture.traces:
                each.interrupt_after = None
            ran = self.venture.traces[0] is model
        with self.watched(f"the audit after {engine}"):
            check(self.venture)
        self.compare_score(f"log score after {engine}")
        return ran

    # ----------------------------------------------------------------------------------------------------------- blocks

    def continuous(self) -> list[int]:
        trace = self.model.trace
        return [node for node in trace.default.everything() if _is_continuous(trace.application(node)[0])]

    def discrete(self) -> list[int]:
        trace = self.model.trace
        return [node for node in trace.default.everything() if not _is_continuous(trace.application(node)[0])]

    def some(self, nodes: Sequence[int], count: int) -> list[int]:
        """As many of the nodes, the first and the last among them."""
        if len(nodes) <= count:
            return list(nodes)
        chosen = self.rng.choice(len(nodes), size=count, replace=False).tolist()
        return [nodes[i] for i in chosen]

    def pair(self, nodes: Sequence[int]) -> list[int]:
        """Two of the nodes of a site; none where no site has two."""
        sites = [[node for node in nodes if node >> 32 == site] for site in sorted({node >> 32 for node in nodes})]
        several = [found for found in sites if len(found) > 1]
        return self.some(several[int(self.rng.integers(len(several)))], 2) if several else []


def _is_continuous(operator: Any) -> bool:
    return isinstance(operator, Random) and operator.transform is not None


def agree(found: float, expected: tuple[float, float]) -> bool:
    value, error = expected
    return abs(found - value) <= 3.0 * error + 1e-6 * (1.0 + abs(value))


def loaded(program: Program, seed: int, kernels: str) -> Venture:
    """A session in which the program's directives have run, all at once."""
    from venture_lite import Venture

    venture = Venture(seed=seed, kernels=kernels)
    text = "\n".join(f"{step.label}: {step.text}" for step in program.directives)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        venture.execute(text, **used(text, program.parameters))
    return venture


def compare(program: Program, seed: int, kernels: str, engines: int, name: str = "", whole: bool = True) -> Subject:
    """Every comparison on one program, and so many engines; not the `whole` of each, if need be. Raises Fault."""
    subject = Subject(program, seed, kernels, name, directions=2 if whole else 1)
    subject.compare_score()
    compare_parts(subject, whole)
    order, ran = subject.rng.permutation(len(KERNELS)).tolist(), 0
    rows = max(
        (len(value) for value in program.parameters.values() if isinstance(value, (list, np.ndarray))), default=0
    )
    for at in order:
        if ran == engines:
            break
        if KERNELS[at].startswith("(smc") and rows > MOST_COPIED and seed % 4:
            continue
        ran += subject.compare_kernel(KERNELS[at])
    subject.engine = ""
    if ran and whole:
        compare_parts(subject, whole)
    return subject


def compare_parts(subject: Subject, whole: bool) -> None:
    """Densities with their derivatives, linear predictors, weights of transitions, conditionals."""
    continuous, chance = subject.continuous(), subject.rng.random
    if continuous:
        if not subject.compare_derivatives(continuous) or (whole and chance() < 0.5):
            subject.compare_derivatives(subject.some(continuous, 1))
        if (whole or chance() < 0.5) and not subject.compare_predictor(continuous):
            subject.compare_predictor(subject.some(continuous, 1))
    for is_walk in (True, False) if whole else (chance() < 0.7,):
        compare_blocks(subject, is_walk, subject.continuous if is_walk or chance() < 0.5 else subject.discrete)
    for _ in range(4 if whole else 2):
        for node in subject.some(subject.discrete(), 1):
            subject.compare_conditional(node)


def compare_blocks(subject: Subject, is_walk: bool, choices: Callable[[], list[int]]) -> None:
    """Weights of transitions of all choices, of one, and of several pairs of one site."""
    if len(choices()) > 1:
        subject.compare_transition(choices(), is_walk)
    subject.compare_transition(subject.some(choices(), 1), is_walk)
    for _ in range(3):
        subject.compare_transition(subject.pair(choices()), is_walk)
