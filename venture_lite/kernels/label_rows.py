"""Who reads the labels of one site, and what a class gives to them.

They are rows of their own, which call memoized procedures with the label and let choices absorb what these give.
A label that is read so has columns: what its rows absorb in a class depends on the class and the row alone. Rows that
read two labels have none, and whatever reads a label as a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from venture_lite.errors import VentureError
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import AtLimit, Group, density_of
from venture_lite.kernels.follow import RowShape
from venture_lite.kernels.followers import restore
from venture_lite.kernels.preview import Added, Drawable, Drawn, PreviewFamily, Unplanned
from venture_lite.kernels.reassign import FollowedRow, Reassignments, plans_of
from venture_lite.procedures.checks import completed
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.record import Maker, Random
from venture_lite.program.code import Code, Constant, GlobalRef, Kind, Ref, SlotRef, named
from venture_lite.trace.borrowed import BorrowedColumn, called_body
from venture_lite.trace.keys import memo_key
from venture_lite.trace.nodes import node_at
from venture_lite.trace.runtime import Exchangeable, Memo
from venture_lite.trace.table import Column, NotColumnar, column_of
from venture_lite.trace.trace import Trace
from venture_lite.values import Symbol


class NotByColumns(Exception):
    """The draw is left to the plans of single choices."""


@dataclass(frozen=True, eq=False)
class LabelReader:
    """A row that reads a label: what it calls with it, and what absorbs."""

    code: Code
    shape: RowShape
    # slots that have the label
    start: tuple[int, ...]
    # slots of the calls of memoized procedures, each with these and what they are called with: earlier slots of these,
    # and constants
    calls: tuple[tuple[int, Memo, tuple[Ref, ...]], ...]
    # choices of a distribution that the text names, and the calls whose families they read
    groups: tuple[Group, ...]
    borrowed: tuple[int, ...]
    # applications of what calls give: the column of their values, and the call's slot
    made: tuple[tuple[Column, int], ...]

    @cached_property
    def memos(self) -> dict[int, Memo]:
        """What each call calls."""
        return {slot: memo for slot, memo, _ in self.calls}

    @cached_property
    def given_groups(self) -> tuple[Group, ...]:
        """The same choices, for rows each of which is given what its calls would give."""
        return tuple([Group(group.trace, group.site, self.borrowed, are_given=True) for group in self.groups])


@dataclass(frozen=True, slots=True)
class ReadLabel:
    """A label with the rows that read it."""

    # who calls its family, as of when these were found
    users: list[int]
    readers: tuple[tuple[LabelReader, int], ...]
    # the ways in which they read it, each once
    kinds: tuple[LabelReader, ...]
    # how many choices absorb, and whether some are applications of what calls give
    terms: int
    is_applied: bool


Layout = list[tuple[LabelReader, np.ndarray, np.ndarray]]
"""For each way to read labels which of some are read so (n,), and in which rows (n,)."""

LABEL: Final = Symbol("label")
"""Stands for the label in a key."""


class LabelRows:
    """The labels of one site, each the value of a memoized family, and the rows that read them. Mutable."""

    def __init__(self, model: Model, code: Code, slot: int, forget: Callable[[int], object]) -> None:
        """`forget` is told of the row of a label that is read otherwise than before.

        Raises NotByColumns where the labels of the site have no columns.
        """
        self._trace, self._plans, self._forget = model.trace, plans_of(model), forget
        item = code.slots[slot]
        if code.kind != "lambda" or code.result_slot != slot or item.kind is not Kind.CALL or item.arguments:
            raise NotByColumns
        if not isinstance(item.operator, GlobalRef):
            raise NotByColumns
        self._code, self._slot = code, slot
        # by row of the label's family; None for one that is read otherwise
        self._labels: dict[int, ReadLabel | None] = {}
        self._readers: dict[tuple[int, tuple[int, ...]], LabelReader] = {}
        # (Code, row) -> the row of a label that is read there; and those of labels that are read in one row
        self._owner: dict[tuple[Code, int], int] = {}
        self._shared: set[int] = set()
        # how a label's own row follows it
        self.own_shape: RowShape | None = None
        # whether a move of the label that was asked about last leaves columns right
        self.is_private = False

    @property
    def readers(self) -> tuple[LabelReader, ...]:
        return tuple(self._readers.values())

    def of(self, row: int, draws: Drawable) -> ReadLabel | None:
        """Who reads a label; None where it is read otherwise than columns can tell, or nobody knows."""
        known = self._labels.get(row)
        if known is not None and known.users == self._trace.users.nodes(self._code, row):
            self.is_private = True
            return known
        self.is_private = False
        found = self._labels[row] = self._read(row, draws)
        if found is not None or known is not None:
            self._forget(row)
        return found

    def drop(self, row: int) -> None:
        """No label has the row: one that gets it may be read as the one before, and is another all the same."""
        self._labels.pop(row, None)

    def known(self, row: int) -> ReadLabel:
        """Who reads a label that has columns, as of the last look."""
        found = self._labels[row]
        assert found is not None
        return found

    def _read(self, row: int, draws: Drawable) -> ReadLabel | None:
        try:
            plan = self._plans.plan(node_at(self._code.first_site + self._slot, row), draws)
        except (Unplanned, VentureError):
            return None
        owners = {self._owner.setdefault((part.code, part.row), row) for part in plan.parts} - {row}
        # labels that a row reads together have no columns; others' columns do not depend on them
        self.is_private = True
        if owners:
            for other in owners | {row}:
                self._shared.add(other)
                self._labels[other] = None
        if row in self._shared:
            return None
        own, *others = plan.parts
        if own.shape.terms or own.shape.calls or any(part.source != 0 or self._goes_on(part) for part in others):
            return None
        self.own_shape = own.shape
        try:
            readers = tuple([(self._reader(part), part.row) for part in others])
        except NotByColumns:
            return None
        terms = sum(reader.shape.terms for reader, _ in readers)
        is_applied = any(reader.made for reader, _ in readers)
        kinds = tuple(dict.fromkeys([reader for reader, _ in readers]))
        return ReadLabel(self._trace.users.nodes(self._code, row), readers, kinds, terms, is_applied)

    def _goes_on(self, part: FollowedRow) -> bool:
        """Whether the result of a row may be read: it is no name, or text reads that."""
        if not part.shape.goes_on or part.code.kind != "directive":
            return part.shape.goes_on
        bound = self._trace.bindings.by_row.get((part.code.index, part.row))
        return bound is not None and any(self._has_rows(code) for code, _, _ in bound.readers)

    def _has_rows(self, code: Code) -> bool:
        """Whether text is part of a directive that stands; what `collect` evaluates is not, and has rows meanwhile."""
        while code.parent is not None:
            code = code.parent
        tables = self._trace.tables
        table = tables[code.index] if 0 <= code.index < len(tables) else None
        return table is not None and table.count > table.dead

    def _reader(self, part: FollowedRow) -> LabelReader:
        """Raises NotByColumns where a row is read otherwise than by calls with the label and what absorbs."""
        start = tuple(slot for slot in part.start if isinstance(slot, int))
        key = id(part.shape), start
        found = self._readers.get(key)
        if found is None:
            if start != part.start:
                raise NotByColumns
            found = self._readers[key] = self._made_reader(part.code, part.shape, start)
        return found

    def _made_reader(self, code: Code, shape: RowShape, start: tuple[int, ...]) -> LabelReader:
        trace, calls = self._trace, list[tuple[int, Memo, tuple[Ref, ...]]]()
        absorbing, made = list[int](), list[tuple[Column, int]]()
        for slot, reads in self._plans.reach(code, start).slots:
            item, sources = code.slots[slot], {source for source, _ in reads}
            if slot in shape.calls:
                known = {*start, *(call for call, *_ in calls)}
                is_known = all(isinstance(arg, Constant) or slot_of(arg) in known for arg in item.arguments)
                if not is_known or called_body(code, slot) is None:
                    # another procedure may be called in another state
                    raise NotByColumns
                calls.append((slot, _memo(trace, item.operator), item.arguments))
            elif sources & set(start):
                raise NotByColumns
            elif slot in shape.made:
                call = slot_of(item.operator)
                if item.arguments or call not in shape.calls:
                    raise NotByColumns
                made.append((trace.column(code.first_site + slot), call))
            elif item.kind is Kind.RANDOM:
                absorbing.append(slot)
            else:
                raise NotByColumns
        borrowed = [slot for slot, *_ in calls if isinstance(trace.column(code.first_site + slot), BorrowedColumn)]
        if absorbing and len(borrowed) < len(calls):
            raise NotByColumns
        groups = [Group(trace, code.first_site + slot, tuple(borrowed)) for slot in absorbing]
        return LabelReader(code, shape, start, tuple(calls), tuple(groups), tuple(borrowed), tuple(made))

    # --------------------------------------------------------------------------------------------- columns

    def led_to(self, reader: LabelReader, table: Any) -> tuple[list[int], dict[int, Any]]:
        """The rows of the families that calls lead to in a class, and what slots give. Raises NotByColumns where there
        are none."""
        trace, families = self._trace, list[int]()
        results: dict[int, Any] = dict.fromkeys(reader.start, table)
        for slot, memo, arguments in reader.calls:
            key = [arg.value if isinstance(arg, Constant) else results[slot_of(arg)] for arg in arguments]
            row = memo.entries.get(memo_key(tuple(key)))
            if row is None:
                raise NotByColumns
            families.append(row)
            results[slot] = trace.result(memo.procedure.code, row)
        if any(not isinstance(results[call], Exchangeable) for _, call in reader.made):
            raise NotByColumns
        return families, results


class FreshClass:
    """What a class that does not exist yet would be, where the body of each call that reads its label is one choice or
    maker, whose arguments do not depend on the label. Mutable: it has the values that were drawn last."""

    def __init__(self, plans: Reassignments, readers: Sequence[LabelReader], draws: Drawable) -> None:
        self._trace = plans.model.trace
        self._rng = self._trace.rng
        # (memoized procedure, what it is called with besides the label, slot) of each choice, its distribution with
        # arguments
        self.choices: list[tuple[Memo, Any, int, Random, tuple[Any, ...]]] = []
        # what each memoized procedure gives
        self._results: dict[Memo, Any] = {}
        self._keys: dict[Memo, tuple[Any, ...]] = {}
        # the label whose families were last found not to exist
        self.missing: int | None = None
        self._total = 0.0
        try:
            for reader in readers:
                for _, memo, arguments in reader.calls:
                    self._add(plans, reader, memo, arguments, draws)
            self.is_simple = True
        except (Unplanned, VentureError):
            self.is_simple = False

    def _add(
        self, plans: Reassignments, reader: LabelReader, memo: Memo, arguments: tuple[Ref, ...], draws: Drawable
    ) -> None:
        """Raises Unplanned."""
        if any(not isinstance(arg, Constant) and slot_of(arg) not in reader.start for arg in arguments):
            raise Unplanned
        key = tuple([arg.value if isinstance(arg, Constant) else LABEL for arg in arguments])
        if self._keys.setdefault(memo, key) != key:
            raise Unplanned
        if memo in self._results:
            return
        body = memo.procedure.code
        if len(body.steps) != 1 or body.result != SlotRef(0, body.steps[0]):
            raise Unplanned
        (slot,) = body.steps
        item = body.slots[slot]
        if item.kind not in (Kind.RANDOM, Kind.MAKER) or not all(
            isinstance(r, (Constant, GlobalRef)) for r in item.refs
        ):
            raise Unplanned
        watch = BodyWatch(plans, draws, len(self._results))
        self._results[memo] = watch.of(memo, key)
        if watch.distribution is not None:
            self.choices.append((memo, key, slot, *watch.distribution))

    def is_missing(self, fresh: int) -> bool:
        """Whether none of the families of a label exists."""
        if self.missing != fresh:
            if any(memo_key(with_label(key, fresh)) in memo.entries for memo, key in self._keys.items()):
                return False
            self.missing = fresh
        return True

    def weighed(self, label: ReadLabel, fresh: int) -> tuple[float, Drawn]:
        """Draw the choices; the log density of what reads a label, and what was drawn. Raises NotByColumns."""
        drawn: Drawn = {}
        for memo, key, slot, record, arguments in self.choices:
            value = self._results[memo] = record.simulate(self._rng, *arguments)
            drawn[(memo, memo_key(with_label(key, fresh))), slot] = value
        self._total = 0.0
        applied = label.is_applied and [
            (self._results[reader.memos[call]], values.view[row])
            for reader, row in label.readers
            for values, call in reader.made
        ]
        try:
            for reader, row in label.readers:
                if reader.groups:
                    reader.shape.weigh(self, row, fresh)
            if applied:
                self._total += predicted(applied)
        except VentureError:
            raise NotByColumns from None
        return self._total, drawn

    def given(self, reader: LabelReader, call: int) -> Any:
        """What a call gives that makes no choice."""
        return self._results[reader.memos[call]]

    def drawn_for(self, count: int) -> tuple[list[list[Any]], list[float]]:
        """What the choices (C, count) would be for so many labels, and a uniform number for each label: in the order in
        which labels are drawn one by one."""
        rng, random = self._rng, self._rng.random
        values: list[list[Any]] = [[] for _ in self.choices]
        draws, uniform = list[Any](), list[float]()
        for its_values, (*_, record, arguments) in zip(values, self.choices, strict=True):
            draws.append((its_values.append, record.simulate, arguments))
        for _ in range(count):
            for enter, simulate, arguments in draws:
                enter(simulate(rng, *arguments))
            uniform.append(random())
        return values, uniform

    def drawn_of(self, values: list[list[Any]], position: int, fresh: int) -> Drawn:
        """Of what was drawn for several labels that of one, for a fresh class."""
        return {
            ((memo, memo_key(with_label(key, fresh))), slot): its_values[position]
            for (memo, key, slot, *_), its_values in zip(self.choices, values, strict=True)
        }

    def terms(self, parts: Layout, values: list[list[Any]], count: int) -> np.ndarray:
        """The log density (count,) of what reads each of some labels, in a class of its own. Raises NotByColumns."""
        arrays = {choice[0]: column_of(its_values) for choice, its_values in zip(self.choices, values, strict=True)}
        if any(array.dtype == object for array in arrays.values()):
            raise NotByColumns
        total = np.zeros(count)
        for reader, owners, rows in parts:
            try:
                given = [arrays[reader.memos[slot]][owners] for slot in reader.borrowed]
            except KeyError:
                # it is no choice
                raise NotByColumns from None
            for group in reader.given_groups:
                group.families[: len(given)] = given
                np.add.at(total, owners, group_terms(group, rows))
        return total

    # what a reader's function calls

    def call(self, site: int, row: int, operator: Any, *values: Any) -> Any:
        return self._results[operator]

    def absorb(self, node: int, operator: Any, value: Any, observed: bool, *arguments: Any) -> None:
        arguments = completed(operator, arguments)
        if self._trace.valid[operator](*arguments):
            term = operator.log_density(value, *arguments)
            if term < math.inf:
                self._total += term
                return
        # what is impossible, and what is an error
        self._total += density_of(self._trace, node, operator, arguments, value)

    def made(self, *_: Any) -> None:
        """Applications are weighed together."""


class BodyWatch:
    """What the one step of a memoized procedure's body is, as its generated function evaluates it."""

    def __init__(self, plans: Reassignments, draws: Drawable, number: int) -> None:
        """`number` tells the families of one class apart: each has a maker of its own, however alike they are."""
        self._plans, self._draws, self._number = plans, draws, number
        # of a choice: its distribution and the arguments
        self.distribution: tuple[Random, tuple[Any, ...]] | None = None

    def of(self, memo: Memo, key: tuple[Any, ...]) -> Any:
        """The maker's procedure, or None for a choice. Raises Unplanned, or what evaluation raises."""
        closure = memo.procedure
        self._memo = memo
        return self._plans.previews.functions.found(closure.code.index)(self, (memo, key), closure.row, *key)

    def draw(self, family: PreviewFamily, slot: int, record: Random, *values: Any) -> None:
        self._draws.refuse(self._memo.procedure.code, slot)
        values = completed(record, values)
        if not self._plans.model.trace.valid[record](*values):
            raise Unplanned
        self.distribution = record, values

    def make(self, record: Maker, *values: Any) -> Exchangeable:
        return self._plans.previews.maker(record, self._number, values)


def predicted(applied: list[tuple[Exchangeable, Any]]) -> float:
    """The log density of some applications, one after the other."""
    if len(applied) == 1:
        return applied[0][0].state.log_predictive(applied[0][1])
    added: Added = []
    total = 0.0
    try:
        for operator, value in applied:
            total += operator.state.log_predictive(value)
            added.append((operator, operator.state.add(value)))
    finally:
        restore(added)
    return total


def with_label(key: tuple[Any, ...], label: int) -> tuple[Any, ...]:
    """A key with a label at its place."""
    return tuple([label if part is LABEL else part for part in key])


def group_terms(group: Group, rows: np.ndarray, impossible: float = -math.inf, values: np.ndarray | None = None) -> Any:
    """The log density of each row that absorbs, or one for all; where that is -inf, `impossible`. `values` are those
    of the rows, where they are at hand. Raises NotByColumns."""
    try:
        terms = group.terms_by_columns(rows, values)
        if impossible == -math.inf or np.min(terms) > -math.inf:
            return terms
        return np.where(terms == -math.inf, impossible, terms)
    except AtLimit:
        return impossible
    except (NotColumnar, RowByRow, TypeError, VentureError):
        raise NotByColumns from None


def slot_of(ref: Ref | None) -> int:
    """The slot of the same row that a reference reads. Raises NotByColumns."""
    match ref:
        case SlotRef(depth=0, slot=slot):
            return slot
    raise NotByColumns


def _memo(trace: Trace, ref: Ref | None) -> Memo:
    """The memoized procedure that a name stands for. Raises NotByColumns."""
    if isinstance(ref, GlobalRef):
        target = named(ref.target)
        value = None if target.code is None else trace.result(target.code, target.row)
        if isinstance(value, Memo):
            return value
    raise NotByColumns
