"""The evidence by passes of particles of which none is retained.

A conditional pass has the present state among its particles, so that its product of mean weights is too large by the
factor E[Z^2] / Z^2 of an unconditional one (Andrieu, Doucet and Holenstein 2010, section 4): a nat or two with ten
particles. So these passes are made for nothing else, with a generator of their own, and take nothing from the chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import numpy as np

from venture_lite.blocks.particles import refuse_improper, unobserved
from venture_lite.engines.pgibbs.particle_columns import ColumnSweep
from venture_lite.engines.pgibbs.particle_tree import TreeSweep
from venture_lite.errors import KernelError
from venture_lite.interpreter.ancestry import name_of_choice
from venture_lite.interpreter.answers import Differs
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.schedule import Schedule
from venture_lite.interpreter.weights import log_density
from venture_lite.trace.runtime import Exchangeable


def free_passes(model: Model, blocks: Sequence[Sequence[int]], particles: int, passes: int) -> tuple[float, ...]:
    """The log of an unbiased estimate of the evidence by each of so many passes. The trace stays as it is, its
    generator included.

    Raises KernelError where the blocks do not hold all unobserved choices, or one has no prior.
    """
    schedule = Schedule(model.trace, blocks)
    refuse_improper(model)
    _refuse_others(model, schedule)
    rest = _rest(model, schedule)
    with _own_generator(model):
        if schedule.is_plain() and model.may_take("evidence"):
            with suppress(Differs):
                columns = ColumnSweep(model, schedule, particles, ancestor=False)
                return tuple(rest + columns.free_pass() for _ in range(passes))
        sweep = TreeSweep(model, schedule, particles, ancestor=False)
        return tuple(rest + sweep.free_pass() for _ in range(passes))


@contextmanager
def _own_generator(model: Model) -> Iterator[None]:
    """In the block draws come from a generator that follows from the trace's, whose numbers stay for the chain."""
    trace = model.trace
    rng, births = trace.rng, trace.default.births
    copy = np.random.Generator(type(rng.bit_generator)())
    copy.bit_generator.state = rng.bit_generator.state
    trace.rng, trace.default.births = np.random.default_rng(copy.integers(2**32, size=8)), None
    try:
        yield
    finally:
        trace.rng, trace.default.births = rng, births


def _refuse_others(model: Model, schedule: Schedule) -> None:
    """Raises KernelError where an unobserved choice is in no block, nor brought into being by one."""
    trace, scaffold = model.trace, schedule.scaffold
    covered = {*scaffold.principals, *model.regenerator.choices_that_go(scaffold)}
    others = [node for node in unobserved(model) if node not in covered]
    if others:
        code, slot, _ = trace.decode(others[0])
        what = f"'evidence asks for all unobserved choices in the blocks, and {name_of_choice(trace, others[0])} is not"
        raise KernelError(what, code.slots[slot].span, "(smc P 'tempered KERNEL ...) estimates it for any model")


def _rest(model: Model, schedule: Schedule) -> float:
    """The log density of what is observed and does not depend on the blocks."""
    trace, scaffold = model.trace, schedule.scaffold
    weighed = {*schedule.due, *model.regenerator.choices_that_go(scaffold)}
    alone = (node for node in trace.choices() if trace.is_observed(node) and node not in weighed)
    total = sum(log_density(trace, node) for node in alone if not isinstance(trace.application(node)[0], Exchangeable))
    with model.aside():
        # what is left in the statistics is observed; makers whose parameters move are weighed on the way
        model.regenerator.detach(scaffold, counts=False)
        total += sum(
            maker.state.log_joint() for node, maker in trace.statistics.makers.items() if node not in scaffold.makers
        )
    return total
