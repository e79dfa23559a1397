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
from venture_lite.interpreter.impossible import REJECTING
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.regenerate import Proposal
from venture_lite.interpreter.shape import NoShape
from venture_lite.interpreter.sources import parents_of
from venture_lite.interpreter.weights import NEVER, Group, Weight
from venture_lite.kernels.plan import Plan, make_plan
from venture_lite.kernels.shapes import Shapes
from venture_lite.program.code import Kind
from venture_lite.trace.nodes import node_at, row_of, site_of
from venture_lite.trace.table import Column


class NoBorder(KernelError):
    """Fewer than two choices depend on a block."""


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

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """The rows of some sections, named by their positions 0 ... count - 1."""
        return positions if self._rows is None else self._rows[positions]

    def all_rows(self) -> Any:
        """As a slice or an index array."""
        return slice(0, self.count) if self._rows is None else self._rows

    def terms(self, positions: np.ndarray) -> np.ndarray:
        """Log densities (len(positions),) in the present state, -inf where impossible."""
        self.group.family[0] = self._family
        return self.group.terms(self.rows(positions))

    def weigh_all(self) -> Weight:
        self.group.family[0] = self._family
        return self.group.weigh(self.all_rows())


class Sections:
    """The local sections of one block, and the block's two states during a transition."""

    def __init__(self, model: Model, plan: Plan, block: Sequence[int], fewest: int = 2) -> None:
        self.model = model
        self.plan = plan
        self.block = set(block)
        trace = model.trace
        self.kinds: list[SectionKind] = []
        for site in plan.sites:
            table = trace.tables[trace.program.site_code[site].index]
            rows = table.rows()
            self.kinds.append(SectionKind(model.weights.group(site), None if isinstance(rows, slice) else rows))
        narrow: dict[int, list[int]] = {}
        for node in plan.single:
            narrow.setdefault(site_of(node), []).append(row_of(node))
        for site, found in narrow.items():
            code, slot, _ = trace.decode(node_at(site, 0))
            if code.slots[slot].kind is not Kind.RANDOM:
                raise KernelError("a choice whose distribution the text does not name depends on the block")
            self.kinds.append(SectionKind(model.weights.group(site), np.array(found)))
        for users in plan.users:
            self.kinds.append(SectionKind(model.weights.users(users), users.rows.array(), users.family))
        self.count = sum(kind.count for kind in self.kinds)
        if self.count < fewest:
            reason = "the scaffold has no border: fewer than two choices depend on the block"
            raise NoBorder(reason, _span(model, block), "mh")
        self._states: list[tuple[Column, int, Any, int, Any, int]] = []

    @classmethod
    def of(cls, model: Model, block: Sequence[int], fewest: int = 2) -> Sections:
        """Raises KernelError, with the reason, where a block has no local sections; NoBorder for less than `fewest`."""
        plan = make_plan(model, block, Shapes())
        if isinstance(plan, NoShape):
            raise KernelError(plan.reason, _span(model, block), "mh")
        return cls(model, plan, block, fewest)

    def propose(self, proposal: Proposal) -> tuple[float, Weight]:
        """Put new values in place: (log ratio of the proposal, change of the block's own log density).

        What the journal holds since takes the block back.
        """
        plan, trace = self.plan, self.model.trace
        before = [(trace.column(site_of(node)), row_of(node)) for node in plan.order]
        old = [(column.view[row], column.stamp) for column, row in before]
        weight, ratio = plan.propose(proposal)
        self._states = [
            (column, row, value, stamp, column.view[row], column.stamp)
            for (column, row), (value, stamp) in zip(before, old, strict=True)
        ]
        return ratio, weight

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
            raise self.plan.judged(error) from error

    def columns_read_besides(self) -> list[Column]:
        """What the sections read, the block and what is computed from it alone aside."""
        trace, order = self.model.trace, set(self.plan.order)
        moved = {id(trace.column(site_of(node))) for node in order}
        found = [column for kind in self.kinds for column in kind.group.columns_read() if id(column) not in moved]
        # what else a value that is computed from the block is computed from
        others = {parent for node in order - self.block for parent in parents_of(trace, node)}
        return found + [trace.column(site_of(node)) for node in others - order]

    def change_of_all(self) -> Weight:
        """The change of all sections' weight, impossible ones counted. The block is left at the new values."""
        weight = Weight()
        self.stand_at_old()
        for old in self._weights():
            weight.minus_also(old)
        self.stand_at_new()
        for new in self._weights():
            weight.plus(new)
        return weight

    def _weights(self) -> list[Weight]:
        """Of all sections, as the block stands; where one is an error in an impossible state, that such a state cannot
        be. (The present state is one where the decisions that led to it read some of the rows.)"""
        try:
            return [kind.weigh_all() for kind in self.kinds]
        except VentureError as error:
            judged = self.plan.judged(error)
            if isinstance(judged, REJECTING):
                return [Weight(NEVER)]
            raise judged from error


class Inputs:
    """What sections read besides the block, as it stood when it was looked at."""

    def __init__(self, sections: Sections) -> None:
        self._columns = sections.columns_read_besides()
        self.look()

    def look(self) -> None:
        """Take what stands there now for what was read."""
        self._stamps = [column.stamp for column in self._columns]

    def are_as_they_were(self) -> bool:
        return all(column.stamp == stamp for column, stamp in zip(self._columns, self._stamps, strict=True))


def _span(model: Model, block: Sequence[int]) -> Span | None:
    code, slot, _ = model.trace.decode(block[0])
    return code.slots[slot].span
