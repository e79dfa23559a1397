"""Errors met while a state is made: whether the state has probability zero, so that nobody will ever be in it.

A choice keeps its value where its support shrinks: its density is then zero and the proposal lost, but what reads the
choice is evaluated all the same, and may be an error (`(lookup xs k)` where `k` is beyond the new end of `xs`). Such an
error says nothing against the program. So what can be made of the state is made, what can be weighed is weighed, and if
any choice that stands in it has density zero the error is an `ImpossibleState`, which rejects a transition.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from venture_lite.errors import ImpossibleState, KernelError, Undrawable, VentureError
from venture_lite.interpreter.scaffold import is_distribution
from venture_lite.interpreter.sources import application_nodes
from venture_lite.interpreter.weights import log_density
from venture_lite.procedures.distributions.improper import FACTOR, WEIGHED
from venture_lite.procedures.record import Random
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.table import ROW_MASK
from venture_lite.values import show

if TYPE_CHECKING:
    from venture_lite.interpreter.model import Model
    from venture_lite.interpreter.scaffold import UserGroup
    from venture_lite.trace.trace import Trace


REJECTING = (ImpossibleState, Undrawable)
"""Errors that reject the transition that met them."""

HINT = "an observation before what depends on its choice, or [force ...] values that are possible together before it"


def impossible_choices(trace: Trace, besides: Collection[int] = ()) -> list[int]:
    """Live choices whose density is zero, some that are not asked for left out."""
    wanted = (node for node in trace.choices() if node not in besides and is_distribution(trace, node))
    return [node for node in wanted if log_density(trace, node) == -math.inf]


def is_impossible(model: Model) -> bool:
    """Whether the state has probability zero; once it has not it never will, and is not looked at again."""
    if model.maybe_impossible and not _has_impossible(model.trace):
        model.maybe_impossible = False
    return model.maybe_impossible


def _has_impossible(trace: Trace) -> bool:
    return any(is_distribution(trace, node) and log_density(trace, node) == -math.inf for node in trace.choices())


def first_outside(model: Model, nodes: Sequence[int]) -> int | None:
    """The first of some choices that is outside its own support, where a start of probability zero may leave it: no
    step in free coordinates begins there, so that such a choice is first drawn anew from its distribution."""
    if not model.maybe_impossible:
        return None
    return next((node for node in nodes if log_density(model.trace, node) == -math.inf), None)


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands in a state that is made: principals with their new values, and what absorbs."""

    trace: Trace
    single: Collection[int]
    # sites all of whose rows absorb, and the users of families
    sites: Collection[int]
    users: Collection[UserGroup] = ()

    def __iter__(self) -> Iterator[int]:
        yield from self.single
        for site in self.sites:
            yield from self.trace.nodes_of(site)
        for group in self.users:
            yield from (group.site << 32 | row for row in group.rows.array().tolist())

    def judged(self, error: VentureError, waiting: Collection[int]) -> VentureError:
        """The error, or what it is where some choice has density zero; `waiting` nodes do not have their new values."""
        if isinstance(error, (*REJECTING, KernelError)):
            return error
        users = [group for group in self.users if not self._is_waited_for(group, waiting)]
        for node in Standing(self.trace, self.single, self.sites, users):
            if self._is_ready(node, waiting) and self._is_impossible(node):
                why = f"the state has probability zero: {told(self.trace, node)}"
                return ImpossibleState(f"{error.message} ({why})", error.span, HINT, error.chain)
        return error

    def _is_waited_for(self, group: UserGroup, waiting: Collection[int]) -> bool:
        """Whether what its rows borrow from families has no new value yet."""
        waits = set(waiting)
        table = self.trace.tables[self.trace.program.site_code[group.site].index]
        borrowed = [column for column in table.columns if isinstance(column, BorrowedColumn)] if waits else []
        families = [(column.site, np.unique(column.edges.gather(group.rows.array()))) for column in borrowed]
        return any(site << 32 | row & ROW_MASK in waits for site, rows in families for row in rows.tolist())

    def _is_ready(self, node: int, waiting: Collection[int]) -> bool:
        """Whether a choice and all that it reads have their new values."""
        if not waiting:
            return True
        return node not in waiting and not any(read in waiting for read in application_nodes(self.trace, node))

    def _is_impossible(self, node: int) -> bool:
        try:
            return log_density(self.trace, node) == -math.inf
        except VentureError:
            return False


def told(trace: Trace, node: int) -> str:
    """Which choice has density zero."""
    code, slot, _ = trace.decode(node)
    span = code.slots[slot].span
    where = f"{span.place()}: {span.text}" if span is not None else code.name
    match code.slots[slot].record:
        case Random() as record if record in WEIGHED:
            return f"{where} {'is -inf' if record is FACTOR else 'does not hold'}"
    return f"{where} cannot be {show(trace.value(node))}"


def explain_start(model: Model, error: VentureError) -> None:
    """Say of an error met while loading if the state was one of probability zero before, and since when."""
    if (
        isinstance(error, ImpossibleState)
        or not model.maybe_impossible
        or not (found := impossible_choices(model.trace))
    ):
        return
    since = model.impossible_since
    when = f" since the observation at {since.place()}: {since.text}" if since is not None else ""
    error.message += f" (the state has probability zero{when}: {told(model.trace, found[0])})"
    error.hint = error.hint or HINT


def rejects(model: Model, error: VentureError, touched: Iterable[int]) -> bool:
    """Whether an error met on the way to a proposed state rejects it; asked when that was taken back. A choice of
    density zero that the transition does not touch stands in the proposed state as well."""
    if isinstance(error, (*REJECTING, KernelError)):
        return not isinstance(error, KernelError)
    return model.maybe_impossible and bool(impossible_choices(model.trace, set(touched)))
