"""`mh`: Metropolis-Hastings on a block, by resimulation from the prior, by a Gaussian random walk, or by a procedure of
the user's (`proposal.py`).

Resimulation proposes a choice from its own distribution, so that its density cancels. `'drift SIGMA` walks in the
unconstrained coordinate of each choice, with the Jacobian of its transform.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.blocks.distributions import name_of, reads_arguments, refuse_discrete, transform_of
from venture_lite.errors import KernelError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part
from venture_lite.interpreter.kernel import BlockKernel, Course, Metropolis, Move, Resimulation
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection
from venture_lite.kernels.compiled import kernel
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import REAL, Elementwise
from venture_lite.trace.trace import Trace
from venture_lite.values import freeze, show

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
        self._steps = {node: step[density.coordinates_of(node)] for node in nodes}

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
        self._preconditioner = proposal.preconditioner
        self.refuses_blocks = self._preconditioner is not None or moves.refuses_blocks

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
            refuse_discrete("'drift", "gibbs, or mh without 'drift")(self.model, nodes)
        self._moves.refuse(nodes)

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
    # imported here, as below: only who asks for a way of proposing pays for it
    from venture_lite.blocks.gradients import Densities
    from venture_lite.blocks.precondition import Preconditioner

    densities = Densities(program.model, "'precondition", program.warn)
    return PreconditionedDrift(rng, sigma, Preconditioner(densities, program.draws))


def _compile_mh(program: InferenceProgram, given: ActionForm) -> Part:
    model = program.model
    if "drift" in given:
        walk = drift(program, given)
        moves = kernel(model, Move(walk, Metropolis(model)))
        return given.kernel(f"a walk of sd {show(walk.sigma)}{scaled(given)}", Walk(model, walk, moves))
    if "PROPOSAL" in given:
        from venture_lite.engines.proposal import OwnProposal, ProposalDensity
        from venture_lite.inference.replay import ReplayedProcedure

        density = ProposalDensity(ReplayedProcedure(program, program.procedure(given["PROPOSAL"], "PROPOSAL")))
        return given.kernel(f"proposals by {density.text}", OwnProposal(density, program.warn))
    return given.kernel("proposals from the prior", kernel(model, Move(Resimulation(model), Metropolis(model))))


def scaled(given: ActionForm) -> str:
    """What `'precondition` adds to a move."""
    return ", in the coordinates of the curvature" if "precondition" in given else ""


MH = Action(
    "mh", ("(mh SCOPE BLOCK T)", "(mh SCOPE BLOCK 'drift SIGMA ['precondition] T)", "(mh SCOPE BLOCK PROPOSAL T)"),
    "T Metropolis-Hastings transitions: proposals from the prior; with 'drift a Gaussian random walk of standard "
    "deviation SIGMA, with 'precondition in the coordinates of the block's curvature; or by PROPOSAL, a procedure from "
    "the block's values to new ones whose random choices give its density.", _compile_mh,
)  # fmt: skip
