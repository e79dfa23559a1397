"""Local sections: the rows by which a block's change is weighed, for engines that look at some of them.

The border of a scaffold is where it branches (Chen et al. 2014, definitions 6 to 8): what lies before it, the block and
what is computed from it alone, is the global section; each choice that absorbs the change is a local section, one row.
Sections of one site are a *kind*: alike in shape, evaluated together over any group of rows.

A proposal is made once; after that the block can stand at its old and at its new value, as often as an engine likes,
at the cost of writing the nodes of the global section. Nothing that depends on a row is stored, so that no row that an
engine did not look at can be stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from venture_lite.errors import KernelError, Span, VentureError
from venture_lite.interpreter.impossible import REJECTING, Standing, rejects
from venture_lite.interpreter.model import FixedValue, Model
from venture_lite.interpreter.references import NUMBERS
from venture_lite.interpreter.regenerate import Proposal
from venture_lite.interpreter.shape import Binding, NoShape, Shape, shape_of
from venture_lite.interpreter.sources import computed_from, parents_of, source_value
from venture_lite.interpreter.weights import NEVER, Group, Weight, density_of, log_density
from venture_lite.procedures.distributions.improper import WEIGHED
from venture_lite.procedures.record import Random
from venture_lite.program.code import Kind
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.nodes import node_at, row_of, site_of
from venture_lite.trace.table import Column
from venture_lite.trace.trace import Trace

MOST_FACTORS = 100
"""Rows of factors of one text that are taken for those that no loop makes."""


class NoBorder(KernelError):
    """Fewer than two choices depend on a block."""


def refuse_vector(trace: Trace, node: int) -> None:
    """Raises KernelError where a choice is a vector of independent values, which would be rows each."""
    code, slot, row = trace.decode(node)
    record, value = code.slots[slot].record, trace.value(node)
    if not isinstance(record, Random) or record.item_log_densities is None or not isinstance(value, np.ndarray):
        return
    reason = f"the {len(value)} values of one {record.name} are a single choice, of which no part can be looked at"
    shown = f"for i in 1...{len(value)}: [observe ({record.name} ...) {{Y[i]}}]"
    raise KernelError(reason, hint=f"a loop: {shown}").at(*trace.place(code, slot, row))


class SectionKind:
    """The local sections of one site, or of one site as users of one family."""

    def __init__(self, group: Group, rows: np.ndarray | None, family: int = -1) -> None:
        self.group = group
        # None for all live rows of a table without dead ones
        self._rows = rows
        # row of the family that they use, or -1
        self._family = family
        table = group.trace.tables[group.code.index]
        self.count = table.count if rows is None else len(rows)

    def refuse_vectors(self) -> None:
        """Raises KernelError where a row is a vector of independent values, which would be rows each."""
        if self.count and self.group.values.kind not in NUMBERS:
            refuse_vector(self.group.trace, node_at(self.group.site, int(self.rows(np.zeros(1, int))[0])))

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """The rows of some sections, named by their positions 0 ... count - 1."""
        return positions if self._rows is None else self._rows[positions]

    def all_rows(self) -> Any:
        """As a slice or an index array."""
        return slice(0, self.count) if self._rows is None else self._rows

    def terms(self, positions: np.ndarray) -> np.ndarray:
        """Log densities (len(positions),) in the present state, -inf where impossible."""
        self.group.families[0] = self._family
        return self.group.terms(self.rows(positions))

    def weigh_all(self) -> Weight:
        self.group.families[0] = self._family
        return self.group.weigh(self.all_rows())


class Sections:
    """The local sections of one block, and the block's two states during a transition."""

    def __init__(self, model: Model, shape: Shape, binding: Binding, fewest: int) -> None:
        self.model = model
        self._stamp = model.trace.structure_stamp()
        trace, nodes = model.trace, binding.nodes
        self.block = {nodes[place]: None for place in shape.principals}
        # the block and what is computed from it, parents first
        self.order = [nodes[place] for place in shape.order]
        # sites all of whose rows are sections
        self.sites = shape.groups
        single = [nodes[place] for place in shape.absorbing]
        self._standing = Standing(trace, [*self.block, *single], shape.groups, binding.users)
        self.kinds: list[SectionKind] = []
        for site in shape.groups:
            table = trace.tables[trace.program.site_code[site].index]
            rows = table.rows()
            self.kinds.append(SectionKind(model.weights.groups[site], None if isinstance(rows, slice) else rows))
        narrow: dict[int, list[int]] = {}
        for node in single:
            narrow.setdefault(site_of(node), []).append(row_of(node))
        for site, found in narrow.items():
            code, slot, _ = trace.decode(node_at(site, 0))
            if code.slots[slot].kind is not Kind.RANDOM:
                raise KernelError("a choice whose distribution the text does not name depends on the block")
            self.kinds.append(SectionKind(model.weights.groups[site], np.array(found)))
        for users in binding.users:
            self.kinds.append(SectionKind(model.weights.users(users), users.rows.array(), users.family))
        for kind in self.kinds:
            kind.refuse_vectors()
        # factors that no loop makes count with the prior: one of them may weigh as much as all rows
        self.factors = [kind for kind in self.kinds if kind.group.record in WEIGHED and kind.count <= MOST_FACTORS]
        self.kinds = [kind for kind in self.kinds if kind not in self.factors]
        self.count = sum(kind.count for kind in self.kinds)
        if self.count < fewest:
            reason = "the scaffold has no border: fewer than two choices depend on the block"
            raise NoBorder(reason, _span(model, list(self.block)), "mh")
        self._states: list[tuple[Column, int, Any, int, Any, int]] = []

    @classmethod
    def of(cls, model: Model, block: Sequence[int], fewest: int = 2) -> Sections:
        """Raises KernelError, with the reason, where a block has no local sections; NoBorder for less than `fewest`."""
        found = shape_of(model.trace, block)
        if isinstance(found, NoShape):
            raise KernelError(found.reason, _span(model, block), "mh")
        return cls(model, *found, fewest)

    def is_valid(self) -> bool:
        return self._stamp == self.model.trace.structure_stamp()

    def rejects(self, error: VentureError) -> bool:
        """Whether an error rejects the proposal that met it, which was taken back."""
        return rejects(self.model, error, self._standing)

    def propose(self, proposal: Proposal) -> tuple[float, Weight]:
        """Put new values in place: (log ratio of the proposal, change of the block's own log density and of factors).

        What the journal holds since takes the block back.
        """
        trace = self.model.trace
        proposal.prepare(trace, self.block)
        before = [(trace.column(site_of(node)), row_of(node)) for node in self.order]
        values = [(column.view[row], column.stamp) for column, row in before]
        old, new, ratio = Weight(), Weight(), 0.0
        for node in self.block if proposal.counts else ():
            old.add(log_density(trace, node))
        for weight in self._weights(self.factors):
            old.plus(weight)
        for at, node in enumerate(self.order):
            try:
                ratio += self._renew(node, proposal, new)
            except VentureError as error:
                raise self._standing.judged(error, self._renew_others(at)) from error
        self._states = [
            (column, row, value, stamp, column.view[row], column.stamp)
            for (column, row), (value, stamp) in zip(before, values, strict=True)
        ]
        for weight in self._weights(self.factors):
            new.plus(weight)
        return ratio, new.minus(old)

    def _renew(self, node: int, proposal: Proposal, weight: Weight) -> float:
        """A new value for one node; of one that is proposed the log ratio, and its log density where it counts."""
        trace = self.model.trace
        column, row = trace.column(site_of(node)), row_of(node)
        if node not in self.block:
            source = computed_from(trace, node)
            if source is not None and not isinstance(column, BorrowedColumn):
                trace.journal.put(column, row, source_value(trace, source))
            return 0.0
        operator, arguments = trace.application(node)
        value, ratio = proposal.propose(node, operator, arguments, column.view[row])
        if proposal.counts:
            weight.add(density_of(trace, node, operator, arguments, value))
        trace.journal.put(column, row, value)
        return ratio

    def _renew_others(self, failed: int) -> set[int]:
        """Where a node cannot be renewed: renew the later ones that can be; those that do not have new values."""
        trace, waiting = self.model.trace, set(self.order[failed:])
        for node in self.order[failed + 1 :]:
            if node in self.block or not waiting.isdisjoint(parents_of(trace, node)):
                continue
            try:
                self._renew(node, FixedValue(None), Weight())
            except VentureError:
                continue
            waiting.discard(node)
        return waiting

    def stand_at_old(self) -> None:
        for column, row, value, stamp, _, _ in self._states:
            column.put(row, value)
            column.stamp = stamp

    def stand_at_new(self) -> None:
        for column, row, _, _, value, stamp in self._states:
            column.put(row, value)
            column.stamp = stamp

    def differences(self, kind: SectionKind, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log densities of some sections at the new values and at the old ones. The block is left at the new.

        Raises ImpossibleState for an error at values at which some choice that stands has density zero.
        """
        self.stand_at_old()
        try:
            old = kind.terms(positions)
            self.stand_at_new()
            return kind.terms(positions), old
        except VentureError as error:
            raise self._standing.judged(error, ()) from error

    def change_of_all(self) -> Weight:
        """The change of all sections' weight, impossible ones counted. The block is left at the new values."""
        weight = Weight()
        self.stand_at_old()
        for old in self._weights(self.kinds):
            weight.minus_also(old)
        self.stand_at_new()
        for new in self._weights(self.kinds):
            weight.plus(new)
        return weight

    def _weights(self, kinds: list[SectionKind]) -> list[Weight]:
        """Of sections, as the block stands; where one is an error in an impossible state, that such a state cannot
        be. (The present state is one where the decisions that led to it read some of the rows.)"""
        try:
            return [kind.weigh_all() for kind in kinds]
        except VentureError as error:
            judged = self._standing.judged(error, ())
            if isinstance(judged, REJECTING):
                return [Weight(NEVER)]
            raise judged from error


def _span(model: Model, block: Sequence[int]) -> Span | None:
    code, slot, _ = model.trace.decode(block[0])
    return code.slots[slot].span
