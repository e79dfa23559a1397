"""`mh`: Metropolis-Hastings on a block, by resimulation from the prior, by a Gaussian random walk, or by a procedure of
the user's (`proposal.py`).

Resimulation proposes a choice from its own distribution, so that its density cancels. `'drift SIGMA` walks in the
unconstrained coordinate of each choice, with the Jacobian of its transform.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.blocks.distributions import name_of, reads_arguments, refuse_discrete, transform_of
from venture_lite.blocks.inspection import inspected_first
from venture_lite.engines.single_mh import SingleMH
from venture_lite.engines.transitions import Transitions, from_within
from venture_lite.errors import KernelError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram, Kernel
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.regenerate import Proposal
from venture_lite.language.syntax import Expression
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import REAL
from venture_lite.trace.trace import Trace
from venture_lite.values import freeze

if TYPE_CHECKING:
    from venture_lite.blocks.precondition import Preconditioner
    from venture_lite.engines.proposal import OwnProposal


class Resimulation:
    """A proposal from the choice's own distribution, given its parents' new values."""

    counts = False

    def __init__(self, model: Model) -> None:
        self.machine = model.machine

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """Nothing depends on the old state."""

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        return self.machine.simulate_anew(node, operator, arguments), 0.0


class Drift:
    """A Gaussian step of standard deviation `sigma` in the unconstrained coordinate, or in each coordinate of a
    vector."""

    counts = True

    def __init__(self, rng: np.random.Generator, sigma: float) -> None:
        self.normal = rng.standard_normal
        self.sigma = sigma
        # old arguments of the choices whose support depends on them
        self._bounds: dict[int, tuple[Any, ...]] = {}

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        self._bounds.clear()
        for node in principals:
            code, slot, row = trace.decode(node)
            record = code.slots[slot].record
            if isinstance(record, Random) and not reads_arguments(record.transform):
                continue
            operator, arguments = trace.application(node >> 32, row)
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


class PreconditionedDrift(Drift):
    """A Gaussian random walk of the whole block, `sigma` times a preconditioner's factor times standard normals."""

    def __init__(self, rng: np.random.Generator, sigma: float, preconditioner: Preconditioner) -> None:
        super().__init__(rng, sigma)
        self.preconditioner = preconditioner
        # node -> its part of this transition's step
        self._steps: dict[int, np.ndarray] = {}

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        nodes = list(principals)
        root = self.preconditioner.root(nodes)
        super().prepare(trace, nodes)
        step = self.sigma * (root @ self.normal(len(root)))
        density = self.preconditioner.densities.of(nodes)
        self._steps = {node: step[density.coordinates_of(node)] for node in nodes}

    def step_of_number(self, node: int) -> float:
        return float(self._steps[node][0])

    def step_of_array(self, node: int, shape: tuple[int, ...]) -> np.ndarray:
        return self._steps[node].reshape(shape)


class Moves:
    """Transitions of one action by one kind of proposal."""

    def __init__(self, model: Model, block_count: Callable[[], int] | None, proposal: Proposal) -> None:
        self.transitions = Transitions(model, block_count)
        self.proposal = proposal
        self._preconditioner = proposal.preconditioner if isinstance(proposal, PreconditionedDrift) else None

    @property
    def rows(self) -> int:
        spent = 0 if self._preconditioner is None else self._preconditioner.densities.rows
        return self.transitions.rows + spent

    def details(self) -> dict[str, float]:
        """By name, for the statistics of the kernel."""
        return {} if self._preconditioner is None else self._preconditioner.details()

    def step(self, nodes: list[int], key: Any) -> bool:
        if self._preconditioner is not None:
            self._preconditioner.settle(nodes)
        return self.transitions.step(nodes, self.proposal)


def preconditioned(program: InferenceProgram, sigma: float) -> PreconditionedDrift:
    """The walk of `'drift SIGMA 'precondition`."""
    # imported here, as below: only who asks for a way of proposing pays for it
    from venture_lite.blocks.gradients import Densities
    from venture_lite.blocks.precondition import Preconditioner

    densities = Densities(program.model, "'precondition", program.warn)
    return PreconditionedDrift(program.model.trace.rng, sigma, Preconditioner(densities, program.draws))


def own_proposal(
    program: InferenceProgram, scope: Any, proposal: Expression, block_count: Callable[[], int] | None
) -> tuple[OwnProposal, Callable[[Model, list[int]], None]]:
    """The engine of `(mh SCOPE BLOCK PROPOSAL T)`, and what refuses a block that it cannot move."""
    from venture_lite.engines.proposal import OwnProposal, ProposalDensity, refuse_labels
    from venture_lite.inference.replay import ReplayedProcedure

    density = ProposalDensity(ReplayedProcedure(program, program.procedure(proposal, "PROPOSAL")))
    return OwnProposal(density, scope, block_count, program.warn), refuse_labels


def _compile_mh(program: InferenceProgram, given: ActionForm) -> Kernel:
    scope, selector = given.scope, given.selector
    block_count = program.block_counter(scope, selector)
    model, count = program.model, given.count("T")
    engine: Moves | OwnProposal
    refuse: Callable[[Model, list[int]], None] | None = None
    begin: Callable[[list[int]], None] | None = None
    by_block = False
    if "precondition" in given:
        walk = preconditioned(program, given.positive("SIGMA", "the drift's SIGMA"))
        engine = Moves(model, block_count, walk)
        refuse, by_block, begin = walk.preconditioner.refuse, True, walk.preconditioner.begin
    elif "drift" in given:
        sigma = given.positive("SIGMA", "the drift's SIGMA")
        engine = Moves(model, block_count, Drift(model.trace.rng, sigma))
        refuse = refuse_discrete("'drift", "gibbs, or mh without 'drift")
    elif "PROPOSAL" in given:
        engine, refuse = own_proposal(program, scope, given["PROPOSAL"], block_count)
    else:
        engine = Moves(model, block_count, Resimulation(model))
        transitions = engine.transitions
        transitions.single = SingleMH(model, scope, block_count is not None, transitions.decide)
    is_walk = isinstance(engine, Moves) and isinstance(engine.proposal, Drift)
    step = from_within(model, engine.step, Resimulation(model)) if is_walk else engine.step
    run = program.kernel(given.form, scope, selector, count, step, engine)
    if refuse is None:
        return run
    return inspected_first(program, scope, selector, given.form, run, refuse, by_block, begin)


MH = Action(
    "mh", ("(mh SCOPE BLOCK T)", "(mh SCOPE BLOCK 'drift SIGMA ['precondition] T)", "(mh SCOPE BLOCK PROPOSAL T)"),
    "T Metropolis-Hastings transitions: proposals from the prior; with 'drift a Gaussian random walk of standard "
    "deviation SIGMA, with 'precondition in the coordinates of the block's curvature; or by PROPOSAL, a procedure from "
    "the block's values to new ones whose random choices give its density.", _compile_mh,
)  # fmt: skip
