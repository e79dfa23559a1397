"""`mh`: Metropolis-Hastings on a block, by resimulation from the prior or by a Gaussian random walk.

Resimulation proposes a choice from its own distribution, so that its density cancels. `'drift SIGMA` walks in the
unconstrained coordinate of each choice, with the Jacobian of its transform.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from venture_lite.code import Kind
from venture_lite.errors import ArgumentError, KernelError
from venture_lite.forms import scope_name
from venture_lite.inference.inspection import inspected_first
from venture_lite.inference.program import Action, InferenceProgram, Kernel
from venture_lite.inference.reading import is_symbol, parts_of
from venture_lite.inference.transitions import Transitions
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import REAL, Transform
from venture_lite.syntax import Form
from venture_lite.trace.directives import Model
from venture_lite.trace.runtime import Exchangeable
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


def transform_of(operator: Random | Exchangeable) -> Transform | None:
    return operator.transform if isinstance(operator, Random) else operator.record.transform


def reads_arguments(transform: Transform | None) -> bool:
    return transform is not None and transform.reads_arguments


def name_of(operator: Random | Exchangeable) -> str:
    return operator.name if isinstance(operator, Random) else f"a draw of {operator.record.name}"


def refuse_discrete(model: Model, nodes: list[int]) -> None:
    """Raises KernelError, before anything moves, where drift meets a discrete choice."""
    for node in nodes:
        code, slot, row = model.trace.decode(node)
        item = code.slots[slot]
        operator = item.record if item.kind is Kind.RANDOM else model.trace.application(node >> 32, row)[0]
        assert isinstance(operator, (Random, Exchangeable))
        if transform_of(operator) is None:
            raise KernelError(
                f"'drift moves continuous choices; {name_of(operator)} is discrete",
                item.span,
                "gibbs, or mh without 'drift",
                model.trace.call_chain(code, slot, row),
            )


def _compile_mh(program: InferenceProgram, form: Form) -> Kernel:
    usage = " or ".join(MH.usage)
    parts = parts_of(form, 3, usage)
    scope, selector = scope_name(parts[0]), program.selector(parts[1])
    model = program.model
    transitions = Transitions(model, program.block_counter(scope, selector))
    if len(parts) == 3:
        proposal: Any = Resimulation(model)
    elif len(parts) == 5 and is_symbol(parts[2], "drift"):
        sigma = program.value(parts[3])
        if not isinstance(sigma, (int, float)) or not 0 < sigma < float("inf"):
            raise ArgumentError(f"the drift's SIGMA must be a positive number, got {sigma}", parts[3].span)
        proposal = Drift(model.trace.rng, float(sigma))
    else:
        raise ArgumentError(f"mh is written {usage}", form.span)
    count = program.count(parts[-1], "T")

    def step(nodes: list[int], key: Any) -> bool:
        return transitions.step(nodes, proposal)

    run = program.kernel(form, scope, selector, count, step, transitions)
    if isinstance(proposal, Drift):
        return inspected_first(program, scope, selector, form, run, refuse_discrete)
    return run


MH = Action(
    "mh", ("(mh SCOPE BLOCK T)", "(mh SCOPE BLOCK 'drift SIGMA T)"),
    "T Metropolis-Hastings transitions: proposals from the prior, or with 'drift a Gaussian random walk of standard "
    "deviation SIGMA.", _compile_mh,
)  # fmt: skip
