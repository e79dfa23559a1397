"""Gaussian random walks in the unconstrained coordinates of choices, with the Jacobians of their transforms: how
`'drift SIGMA` moves."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.blocks.distributions import name_of, reads_arguments, refuse_discrete, transform_of
from venture_lite.errors import KernelError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import InferenceProgram
from venture_lite.interpreter.kernel import BlockKernel, Course
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import REAL, Elementwise
from venture_lite.trace.trace import Trace
from venture_lite.values import freeze

if TYPE_CHECKING:
    from venture_lite.blocks.precondition import Preconditioner


class Drift:
    """A Gaussian step of standard deviation `sigma` in the unconstrained coordinate, or in each coordinate of a
    vector."""

    counts = True

    def __init__(self, rng: np.random.Generator, sigma: float) -> None:
        self.normal = rng.standard_normal
        self.sigma = sigma
        self.preconditioner: Preconditioner | None = None
        self.key: Hashable | None = ("drift", sigma)
        # old arguments of the choices whose support depends on them
        self._bounds: dict[int, tuple[Any, ...]] = {}

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        self._bounds.clear()
        for node in principals:
            code, slot, _ = trace.decode(node)
            record = code.slots[slot].record
            if isinstance(record, Random) and not reads_arguments(record.transform):
                continue
            operator, arguments = trace.application(node)
            if reads_arguments(transform_of(operator)):
                self._bounds[node] = arguments

    def step_of_number(self, node: int) -> float:
        """The step of a choice with one free coordinate."""
        return self.sigma * self.normal()

    def step_of_array(self, node: int, shape: tuple[int, ...]) -> np.ndarray:
        step = np.asarray(self.normal(shape))
        step *= self.sigma
        return step

    def _walk(self, node: int, start: np.ndarray) -> np.ndarray:
        step = self.step_of_array(node, start.shape)
        step += start
        return step

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        transform = transform_of(operator)
        if transform is None:
            raise KernelError(f"drift cannot move {name_of(operator)}: it has no continuous value")
        if transform is REAL:
            # the free coordinate is the value itself
            if isinstance(old, np.ndarray):
                return freeze(self._walk(node, old)), 0.0
            return old + self.step_of_number(node), 0.0
        before = self._bounds.get(node, arguments)
        free = transform.to_free(old, before)
        if isinstance(free, np.ndarray):
            value = freeze(np.asarray(transform.from_free(self._walk(node, free), arguments)))
        else:
            value = transform.from_free(free + self.step_of_number(node), arguments)
        return value, transform.log_jacobian(value, arguments) - transform.log_jacobian(old, before)

    def formula(self, over: Any, rng: Any, record: Random, old: Any, before: Any, arguments: Any) -> Any:
        transform = record.transform
        if not isinstance(transform, Elementwise):
            return None
        free_of, value_of, log_slope = map(over, (transform.free_of, transform.value_of, transform.log_slope))
        value = value_of(free_of(old, *before) + self.sigma * rng.standard_normal(), *arguments)
        return value, log_slope(value, *arguments) - log_slope(old, *before)


class PreconditionedDrift(Drift):
    """A Gaussian random walk of the whole block, `sigma` times a preconditioner's factor times standard normals."""

    def __init__(self, rng: np.random.Generator, sigma: float, preconditioner: Preconditioner) -> None:
        super().__init__(rng, sigma)
        self.preconditioner: Preconditioner = preconditioner
        # the steps depend on what the preconditioner has learned
        self.key = None
        # node -> its part of this transition's step
        self._steps: dict[int, np.ndarray] = {}

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        nodes = list(principals)
        root = self.preconditioner.root(nodes)
        super().prepare(trace, nodes)
        step = self.sigma * (root @ self.normal(len(root)))
        density = self.preconditioner.densities.of(nodes)
        self._steps = {node: step[density.places[node]] for node in nodes}

    def formula(self, *of: Any) -> None:
        """The steps of a block are drawn together."""

    def step_of_number(self, node: int) -> float:
        return float(self._steps[node][0])

    def step_of_array(self, node: int, shape: tuple[int, ...]) -> np.ndarray:
        return self._steps[node].reshape(shape)


class Walk(BlockKernel):
    """Transitions of one action by a Gaussian random walk, which `moves` makes; with a preconditioner a block is first
    moved to where its scale holds."""

    starts_inside = True

    def __init__(self, model: Model, proposal: Drift, moves: BlockKernel) -> None:
        super().__init__(model)
        self._moves = moves
        # all that it is, where nothing is done before a transition
        self.move = getattr(moves, "move", None) if proposal.preconditioner is None else None
        self._preconditioner = proposal.preconditioner
        self.refuses_blocks = self._preconditioner is not None or moves.refuses_blocks

    @property
    def is_approximate(self) -> bool:  # type: ignore[override]
        return self._moves.is_approximate

    @property
    def rows(self) -> int:
        spent = 0 if self._preconditioner is None else self._preconditioner.densities.rows
        return self._moves.rows + spent

    def details(self) -> dict[str, float]:
        found = dict(self._moves.details())
        for name, count in (self._preconditioner.details() if self._preconditioner is not None else {}).items():
            found[name] = found.get(name, 0.0) + count
        return found

    def begin(self, nodes: list[int]) -> None:
        if self._preconditioner is not None:
            self._preconditioner.begin(nodes)

    def refuse(self, nodes: list[int]) -> None:
        if self._preconditioner is not None:
            self._preconditioner.refuse(nodes)
        else:
            self.refuse_kinds(nodes)
        self._moves.refuse(nodes)

    def refuse_kinds(self, nodes: list[int]) -> None:
        """Raises KernelError for choices that have no place to walk in."""
        refuse_discrete("'drift", "gibbs, mh without 'drift, or 'adapt BURN for whole numbers")(self.model, nodes)

    def course(self, nodes: list[int], at: Selection) -> Course:
        self.refuse(nodes)
        return self._moves.course(nodes, at)

    def step(self, nodes: list[int], at: Selection) -> bool:
        if self._preconditioner is not None:
            self._preconditioner.settle(nodes)
        return self._moves.step(nodes, at)


def drift(program: InferenceProgram, given: ActionForm) -> Drift:
    """The walk of `'drift SIGMA ['precondition]`."""
    sigma, rng = given.positive("SIGMA", "the drift's SIGMA"), program.model.trace.rng
    if "precondition" not in given:
        return Drift(rng, sigma)
    # imported here: only who asks for a way of proposing pays for it
    from venture_lite.blocks.gradients import Densities
    from venture_lite.blocks.precondition import Preconditioner

    densities = Densities(program.model, "'precondition", program.warn)
    return PreconditionedDrift(rng, sigma, Preconditioner(densities, program.draws))
