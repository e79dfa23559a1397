"""`mh`: Metropolis-Hastings on a block, by resimulation from the prior, by a Gaussian random walk, or by a procedure of
the user's (`own_proposal.py`).

Resimulation proposes a choice from its own distribution, so that its density cancels. `'drift SIGMA` walks in the
unconstrained coordinate of each choice, with the Jacobian of its transform.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError, KernelError
from venture_lite.forms import scope_name
from venture_lite.inference.distributions import name_of, reads_arguments, refuse_discrete, transform_of
from venture_lite.inference.inspection import inspected_first
from venture_lite.inference.own_proposal import OwnProposal, refuse_labels
from venture_lite.inference.program import Action, InferenceProgram, Kernel
from venture_lite.inference.proposal import Density
from venture_lite.inference.reading import is_symbol, parts_of
from venture_lite.inference.replay import Procedure
from venture_lite.inference.transitions import Transitions
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import REAL
from venture_lite.syntax import Form, Quote
from venture_lite.trace.directives import Model
from venture_lite.trace.regenerate import Proposal
from venture_lite.trace.trace import Trace
from venture_lite.values import freeze


class Resimulation:
    """A proposal from the choice's own distribution, given its parents' new values."""

    counts = False

    def __init__(self, model: Model) -> None:
        self.machine = model.machine

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """Nothing depends on the old state."""

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        return self.machine.simulate(node, operator, arguments), 0.0


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

    def _walk(self, start: np.ndarray) -> np.ndarray:
        step = np.asarray(self.normal(start.shape))
        step *= self.sigma
        step += start
        return step

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        transform = transform_of(operator)
        if transform is None:
            raise KernelError(f"drift cannot move {name_of(operator)}: it has no continuous value")
        if transform is REAL:
            # the free coordinate is the value itself
            if isinstance(old, np.ndarray):
                return freeze(self._walk(old)), 0.0
            return old + self.sigma * self.normal(), 0.0
        before = self._bounds.get(node, arguments)
        free = transform.to_free(old, before)
        if isinstance(free, np.ndarray):
            value = freeze(np.asarray(transform.from_free(self._walk(free), arguments)))
        else:
            value = transform.from_free(free + self.sigma * self.normal(), arguments)
        return value, transform.log_jacobian(value, arguments) - transform.log_jacobian(old, before)


class Moves:
    """Transitions of one action by one kind of proposal."""

    def __init__(self, model: Model, block_count: Callable[[], int] | None, proposal: Proposal) -> None:
        self.transitions = Transitions(model, block_count)
        self.proposal = proposal

    @property
    def rows(self) -> int:
        return self.transitions.rows

    def step(self, nodes: list[int], key: Any) -> bool:
        return self.transitions.step(nodes, self.proposal)


def _compile_mh(program: InferenceProgram, form: Form) -> Kernel:
    usage = " or ".join(MH.usage)
    parts = parts_of(form, 3, usage)
    scope, selector = scope_name(parts[0]), program.selector(parts[1])
    block_count = program.block_counter(scope, selector)
    model, count = program.model, program.count(parts[-1], "T")
    engine: Moves | OwnProposal
    refuse: Callable[[Model, list[int]], None] | None = None
    if len(parts) == 3:
        engine = Moves(model, block_count, Resimulation(model))
    elif len(parts) == 5 and is_symbol(parts[2], "drift"):
        sigma = program.positive(parts[3], "the drift's SIGMA")
        engine = Moves(model, block_count, Drift(model.trace.rng, sigma))
        refuse = refuse_discrete("'drift", "gibbs, or mh without 'drift")
    elif len(parts) == 4 and not isinstance(parts[2], Quote) and not is_symbol(parts[2], "drift"):
        density = Density(Procedure(program, program.procedure(parts[2], "PROPOSAL")))
        engine = OwnProposal(density, scope, block_count, program.warn)
        refuse = refuse_labels
    else:
        raise ArgumentError(f"mh is written {usage}", form.span)
    run = program.kernel(form, scope, selector, count, engine.step, engine)
    return run if refuse is None else inspected_first(program, scope, selector, form, run, refuse)


MH = Action(
    "mh", ("(mh SCOPE BLOCK T)", "(mh SCOPE BLOCK 'drift SIGMA T)", "(mh SCOPE BLOCK PROPOSAL T)"),
    "T Metropolis-Hastings transitions: proposals from the prior; with 'drift a Gaussian random walk of standard "
    "deviation SIGMA; or by PROPOSAL, a procedure from the block's values to new ones whose random choices give its "
    "density.", _compile_mh,
)  # fmt: skip
