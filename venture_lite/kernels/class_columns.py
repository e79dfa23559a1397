"""What whole classes of labels absorb, by columns: the log densities of many members' rows, were the parameters of
their class these.

The labels are those of one site, all draws of one maker, none of them observed. Each class has its own families of the
same memoized procedures, whose bodies are one choice each, and nobody but members uses them. Then the families of one
class serve for weighing any: parameters are written into their cells, the rows weighed as if they led there, and the
cells put back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.interpreter.answered_columns import difference_of_weights
from venture_lite.interpreter.answers import Differs, places
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import in_order, one_of_each_kind
from venture_lite.kernels.class_terms import ClassAtHand, MemberRows, Members, Pairs
from venture_lite.kernels.label_rows import (
    FreshClass,
    LabelReader,
    LabelRows,
    NotByColumns,
    ReadLabel,
    with_label,
)
from venture_lite.kernels.preview import Drawable
from venture_lite.kernels.reassign import plans_of
from venture_lite.procedures.exchangeable.crp import CrpState
from venture_lite.procedures.record import Random
from venture_lite.trace.keys import memo_key
from venture_lite.trace.nodes import node_at, row_of, site_of
from venture_lite.trace.runtime import Exchangeable, Memo
from venture_lite.trace.table import ROW_MASK, Column

FEW = 3
"""Labels, and classes, whose terms are compared with the interpreter's."""

EVERYTHING = Drawable(False, None, {})
"""No choice of a class is in a block that is counted."""


@dataclass(frozen=True, slots=True)
class ClassParameter:
    """A choice that each class has: the memoized procedure that makes it, and its distribution."""

    memo: Memo
    # what the procedure is called with, the label at its place
    key: tuple[Any, ...]
    slot: int
    record: Random
    arguments: tuple[Any, ...]
    # where its values are
    column: Column

    def key_of(self, label: int) -> tuple[Any, ...]:
        return with_label(self.key, label)


class ClassColumns:
    """The labels of one site. Mutable: what it knows of their rows holds until these change."""

    def __init__(self, model: Model, node: int) -> None:
        """Of the site of one label. Raises NotByColumns where its labels have no columns."""
        self._model, self._trace = model, model.trace
        self._code, self._slot, _ = model.trace.decode(node)
        self._table = model.trace.tables[self._code.index]
        self._rows = LabelRows(model, self._code, self._slot, lambda row: None)
        self._values = model.trace.column(site_of(node))
        self._known: tuple[Any, ...] = ()
        # the rows of the labels that have a few users, with these, and those of labels that have many
        self._few: tuple[list[int], list[Any]] = [], []
        self._several: list[tuple[int, ReadLabel]] = []
        self._version = -1
        # the rows of the labels (n,), and for each reader (rows, which label each belongs to)
        self.labels = np.empty(0, np.int64)
        self._layout: list[tuple[LabelReader, np.ndarray, np.ndarray]] = []
        # how many calls each label makes of each procedure (n,)
        self._calls: dict[Memo, np.ndarray] = {}
        # all of them, of this layout
        self._everyone: Members | None = None
        self.parameters: tuple[ClassParameter, ...] = ()
        # of `parameters`, in the order in which a new class draws them
        self.drawing_order: tuple[int, ...] = ()
        self.maker: Exchangeable

    # ------------------------------------------------------------------------------------------------ looking

    def look(self, nodes: Sequence[int]) -> None:
        """See who reads the labels, and what parameters have for a prior now, where all that may move are `nodes`.

        Raises NotByColumns.
        """
        journal = self._trace.journal
        known = (self._table.shape_stamp, self._table.user.stamp, len(nodes))
        if known != self._known or not self._same_users():
            self._known = ()
            self._lay_out(nodes)
            self._known = known
        elif journal.version == self._version:
            return
        self._refresh()
        self._answer()
        self._version = journal.version

    def _answer(self) -> None:
        """Compare what a few labels of each reader absorb in a few classes with the interpreter's. Raises NotByColumns
        where the interpreter's is another."""
        few = {int(owners[at]) for _, _, owners in self._layout for at in places(len(owners), FEW)}
        positions, tables = sorted(few), self.state.tables
        classes = [tables[at] for at in places(len(tables), FEW)]

        def terms() -> np.ndarray:
            members, parameters = self.members(np.array(positions)), list(map(self.values_of, classes))
            mask = np.ones((len(classes), len(positions)), bool)
            with self.standing_for(classes[0]) as cells:
                pairs = cells.terms_where(parameters, members, mask, self.pairs(members, mask)).reshape(mask.shape)
                each = [cells.terms(values, members) for values in parameters]
                return np.array([pairs, cells.terms_of_lists(parameters, members), each])

        def difference(found: Any) -> str | None:
            its = ((self.node(at), classes, found[:, :, place].tolist()) for place, at in enumerate(positions))
            return difference_of_weights(self._model, its, counts=False)

        key = "classes", self._code.index, self._slot, *[reader.code.index for reader, _, _ in self._layout]
        try:
            self._model.answers.believed(key, "classes of labels in columns", terms, difference)
        except Differs:
            raise NotByColumns from None

    def _same_users(self) -> bool:
        """Whether the labels that have several users have the same ones."""
        rows, users = self._few
        # tuples that are the same object are found equal at once
        if list(map(self._table.users.get, rows)) != users:
            return False
        return all(self._rows.of(row, EVERYTHING) is label for row, label in self._several)

    def _lay_out(self, nodes: Sequence[int]) -> None:
        table, site = self._table, self._code.first_site + self._slot
        self._everyone = None
        found = list(table.live_rows())
        self.labels = np.array(found, np.int64)
        sites = np.array(nodes, np.int64) >> 32
        moving = set((np.array(nodes, np.int64)[sites == site] & ROW_MASK).tolist())
        if moving != set(found) or any(table.observed.get(self._slot, b"")):
            raise NotByColumns
        if any(
            isinstance(self._trace.application(node)[0], Exchangeable) for node in self._others(nodes, sites != site)
        ):
            # labels of other makers, perhaps
            raise NotByColumns
        places: dict[LabelReader, tuple[list[int], list[int]]] = {}
        self._few, self._several = ([], []), []
        for position, row in enumerate(found):
            label = self._rows.of(row, EVERYTHING)
            if label is None or label.is_applied:
                raise NotByColumns
            if isinstance(users := table.users.get(row), tuple):
                self._few[0].append(row)
                self._few[1].append(users)
            elif users is not None:
                self._several.append((row, label))
            for reader, its_row in label.readers:
                rows, owners = places.setdefault(reader, ([], []))
                rows.append(its_row)
                owners.append(position)
        self._layout = [(reader, np.array(rows), np.array(owners)) for reader, (rows, owners) in places.items()]
        self._calls = {}
        for reader, _, callers in self._layout:
            for _, memo, _ in reader.calls:
                count = self._calls.setdefault(memo, np.zeros(len(found), np.int64))
                np.add.at(count, callers, 1)
        if not all(count.all() for count in self._calls.values()):
            # classes would differ in which parameters they have
            raise NotByColumns

    def _others(self, nodes: Sequence[int], where: np.ndarray) -> list[int]:
        """Of the choices where a mask holds those that may be draws of a maker."""
        others: list[int] = np.array(nodes, np.int64)[where].tolist()
        return one_of_each_kind(self._model, others) if others else []

    def _refresh(self) -> None:
        trace = self._trace
        operator, _ = trace.application(node_at(self._code.first_site + self._slot, int(self.labels[0])))
        if not isinstance(operator, Exchangeable) or not isinstance(operator.state, CrpState):
            raise NotByColumns
        if operator.state.count != len(self.labels):
            # others draw from it too
            raise NotByColumns
        self.maker = operator
        fresh = FreshClass(plans_of(self._model), [reader for reader, _, _ in self._layout], EVERYTHING)
        if not fresh.is_simple:
            raise NotByColumns
        found = [
            ClassParameter(memo, key, slot, record, arguments, self._column(memo, slot))
            for memo, key, slot, record, arguments in fresh.choices
        ]
        label = self.state.tables[0]
        nodes = [node_at(each.memo.procedure.code.first_site + each.slot, self._family(each, label)) for each in found]
        order = [nodes.index(node) for node in in_order(self._model, nodes)]
        self.parameters = tuple(found[place] for place in order)
        self.drawing_order = tuple(order.index(place) for place in range(len(found)))

    def _column(self, memo: Memo, slot: int) -> Column:
        column = self._trace.column(memo.procedure.code.first_site + slot)
        if type(column) is not Column:
            raise NotByColumns
        return column

    @property
    def state(self) -> CrpState:
        state = self.maker.state
        assert isinstance(state, CrpState)
        return state

    def holds_all(self, nodes: Sequence[int], sites: Sequence[int]) -> bool:
        """Whether some choices, and all of some sites, absorb in the rows of the labels."""
        rows: dict[int, set[int]] = {}
        for reader, its_rows, _ in self._layout:
            for group in reader.groups:
                rows.setdefault(group.site, set()).update(its_rows.tolist())
        if any(row_of(node) not in rows.get(site_of(node), ()) for node in nodes):
            return False
        tables = [(site, self._trace.tables[self._trace.program.site_code[site].index]) for site in sites]
        return all(len(rows.get(site, ())) == table.count - table.dead for site, table in tables)

    # ------------------------------------------------------------------------------------------------ classes

    def values(self) -> np.ndarray:
        """The label of each (n,)."""
        array: Any = self._values.array
        if array is None:
            raise NotByColumns
        found: np.ndarray = array[self.labels]
        return found

    def node(self, position: int) -> int:
        """The label at a position among those of the site."""
        return node_at(self._code.first_site + self._slot, int(self.labels[position]))

    def _family(self, parameter: ClassParameter, label: int) -> int:
        row = parameter.memo.entries.get(memo_key(parameter.key_of(label)))
        if row is None:
            raise NotByColumns
        return int(row)

    def refuse_known(self, label: int) -> None:
        """Raises NotByColumns where a class that has no members has parameters: others than members hold them."""
        if any(memo_key(each.key_of(label)) in each.memo.entries for each in self.parameters):
            raise NotByColumns

    def parameter_node(self, parameter: ClassParameter, label: int) -> int:
        """The choice of a class."""
        return node_at(parameter.memo.procedure.code.first_site + parameter.slot, self._family(parameter, label))

    def parameters_of(self, label: int, members: np.ndarray) -> list[Any]:
        """The values of a class's parameters, which would go with its members: positions (m,).

        Raises NotByColumns where they would not, or are observed.
        """
        found = []
        for parameter in self.parameters:
            row, code = self._family(parameter, label), parameter.memo.procedure.code
            if self._trace.users.count(code, row) != int(self._calls[parameter.memo][members].sum()):
                raise NotByColumns
            if self._trace.is_observed(node_at(code.first_site + parameter.slot, row)):
                raise NotByColumns
            found.append(parameter.column.view[row])
        return found

    def values_of(self, label: int) -> list[Any]:
        """The values of a class's parameters."""
        return [each.column.view[self._family(each, label)] for each in self.parameters]

    @property
    def everyone(self) -> Members:
        """All labels of the site."""
        if self._everyone is None:
            self._everyone = self.members(np.arange(len(self.labels)))
        return self._everyone

    def members(self, positions: np.ndarray) -> Members:
        """Some labels, by their positions (m,), which differ."""
        found = []
        for reader, its_rows, owners in self._layout:
            if not reader.groups:
                continue
            if len(owners) == len(self.labels) and bool((owners == np.arange(len(owners))).all()):
                found.append(MemberRows(reader, its_rows[positions], None))
                continue
            place = np.full(len(self.labels), -1)
            place[positions] = np.arange(len(positions))
            at = place[owners]
            found.append(MemberRows(reader, its_rows[at >= 0], at[at >= 0]))
        return Members(len(positions), tuple(found))

    def pairs(self, members: Members, mask: np.ndarray) -> Pairs:
        """The pairs of a class and one of some members where a mask (K, m) holds."""
        classes, which = np.nonzero(mask)
        found = []
        for part in members.rows:
            if part.owners is None:
                found.append((part.reader, part.rows[which], mask.sum(axis=1), None))
                continue
            of_pair = np.full(mask.shape, -1)
            of_pair[classes, which] = np.arange(len(classes))
            its_mask = mask[:, part.owners]
            its_classes, its_rows = np.nonzero(its_mask)
            pairs = of_pair[its_classes, part.owners[its_rows]]
            found.append((part.reader, part.rows[its_rows], its_mask.sum(axis=1), pairs))
        return Pairs(len(classes), classes, which, tuple(found))

    def some(self, members: Members, mask: np.ndarray) -> Members:
        """Those of some labels where a mask (m,) holds."""
        place = np.cumsum(mask) - 1
        found = []
        for part in members.rows:
            if part.owners is None:
                found.append(MemberRows(part.reader, part.rows[mask], None))
            else:
                holds = mask[part.owners]
                found.append(MemberRows(part.reader, part.rows[holds], place[part.owners[holds]]))
        return Members(int(mask.sum()), tuple(found))

    @contextmanager
    def standing_for(self, label: int, impossible: float = -math.inf) -> Iterator[ClassAtHand]:
        """The families of a class, into whose cells parameters of any may be written meanwhile; what a row counts that
        is impossible."""
        places = [(each.column, self._family(each, label)) for each in self.parameters]
        values = [column.view[row] for column, row in places]
        families = {reader: self._rows.led_to(reader, label)[0] for reader, _, _ in self._layout}
        at_hand = ClassAtHand(places, families, [each.memo for each in self.parameters], impossible)
        try:
            yield at_hand
        finally:
            at_hand.write(values)

    # ------------------------------------------------------------------------------------------------- moving

    def give(self, label: int, values: Sequence[Any]) -> None:
        """Give the parameters of a class that exists values; its members' rows follow. Within a transaction of the
        caller's."""
        trace, is_its = self._trace, self.values() == label
        for parameter, value in zip(self.parameters, values, strict=True):
            family = self._family(parameter, label)
            trace.journal.put(parameter.column, family, value)
            for reader, rows, owners in self._layout:
                for slot, memo, _ in reader.calls:
                    if memo is parameter.memo and slot not in reader.borrowed:
                        column = trace.column(reader.code.first_site + slot)
                        for row in rows[is_its[owners]].tolist():
                            trace.journal.put(column, row, value)

    def move(self, positions: Sequence[int], label: int) -> None:
        """Lead labels, by their positions, to another class that exists, and none of them out of a class that has no
        other. Within a transaction of the caller's."""
        before, moving = self.values(), np.zeros(len(self.labels), bool)
        labels = before.copy()
        labels[positions], moving[positions] = label, True
        self._lead_together(before, labels, moving)

    def reassign(self, before: np.ndarray, labels: np.ndarray, opened: Mapping[int, Sequence[Any]]) -> None:
        """Give all labels (n,) others (n,): of classes that exist, and of those that are `opened` with parameters.

        A class that ends without members keeps one until the others have gone, and one that is opened begins with one
        label, while few rows read its parameters.
        """
        model, moving = self._model, before != labels
        gone = set(self.state.tables).difference(np.unique(labels).tolist())
        last = [int(np.flatnonzero(before == label)[-1]) for label in sorted(gone)]
        with model.transaction() as change:
            lent = self._lent(before, labels, last)
            for at, label in lent.items():
                model.put_value(self.node(at), label)
            together = moving & ~np.isin(labels, list(opened))
            together[last] = False
            self._lead_together(before, labels, together)
            for label, parameters in opened.items():
                its = np.flatnonzero(labels == label)
                self._open(label, parameters, its[~np.isin(its, last)].tolist())
            for at in last:
                label = int(labels[at])
                if label in opened and label not in self.state.counts:
                    self._open(label, opened[label], [at])
                else:
                    model.put_value(self.node(at), label)
            for at in lent:
                model.put_value(self.node(at), int(labels[at]))
            change.keep()

    def _lent(self, before: np.ndarray, labels: np.ndarray, last: Sequence[int]) -> dict[int, int]:
        """Labels that stay, by position, which are lent to classes all of whose members come as the last of others: so
        that these classes have a member meanwhile. Raises NotByColumns where there are none."""
        others = np.delete(labels, last)
        thin = [label for label in self.state.tables if label in labels[last] and label not in others]
        if not thin:
            return {}
        stays = np.flatnonzero(before == labels)
        # one of each class is left there
        _, firsts = np.unique(labels[stays], return_index=True)
        found = np.delete(stays, firsts).tolist()
        if len(found) < len(thin):
            raise NotByColumns
        return dict(zip(found, thin, strict=False))

    def _open(self, label: int, parameters: Sequence[Any], positions: list[int]) -> None:
        """Lead labels to a class that does not exist."""
        if not positions:
            return
        first, *others = positions
        generator = self._trace.rng.bit_generator
        before = generator.state
        self._model.put_value(self.node(first), label)
        # its parameters are given
        generator.state = before
        for parameter, value in zip(self.parameters, parameters, strict=True):
            self._model.put_value(self.parameter_node(parameter, label), value)
        self.move(others, label)

    def _lead_together(self, before: np.ndarray, labels: np.ndarray, moving: np.ndarray) -> None:
        """Lead the labels where a mask (n,) holds to classes that exist, site by site."""
        trace, maker = self._trace, self.maker
        positions = np.flatnonzero(moving)
        if not len(positions):
            return
        changes = Counter(labels[positions].tolist())
        changes.subtract(before[positions].tolist())
        trace.statistics.change_counts(maker, {label: change for label, change in changes.items() if change})
        self._store(self._code.first_site + self._slot, self.labels[positions], labels[positions])
        for reader, rows, owners in self._layout:
            moves = moving[owners]
            if not moves.any():
                continue
            its_rows, its_labels = rows[moves], labels[owners[moves]]
            for slot in reader.start:
                self._store(reader.code.first_site + slot, its_rows, its_labels)
            classes, which = np.unique(its_labels, return_inverse=True)
            found = [self._rows.led_to(reader, label) for label in classes.tolist()]
            for call, (slot, memo, _) in enumerate(reader.calls):
                site, packed = reader.code.first_site + slot, memo.procedure.code.index << 32
                families = np.array([packed | its_families[call] for its_families, _ in found], np.int64)
                trace.users.lead(site, its_rows, families[which])
                if slot not in reader.borrowed:
                    for row, place in zip(its_rows.tolist(), which.tolist(), strict=True):
                        trace.journal.put(trace.column(site), row, found[place][1][slot])

    def _store(self, site: int, rows: np.ndarray, labels: np.ndarray) -> None:
        if self._trace.is_borrowed(site << 32):
            return
        if not self._trace.put_rows(site, rows, labels):
            column = self._trace.column(site)
            for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
                self._trace.journal.put(column, row, label)
