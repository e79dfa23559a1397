"""Labels of exchangeable procedures drawn by columns: what each class gives is computed once for many data.

While nothing but labels moves, the families that a class leads to stay as they are. So the log densities of a whole
chunk of data under one class are a column, and a draw of a label reads one number of each class; of collapsed
components the statistics are asked. Candidates, fresh draws and decisions are those of the interpreter, in the same
order. Rows move one label at a time, so that the trace is settled after each draw; what opens or closes a class, and
what has no columns, is left to the plans of single choices.

A label has columns if what depends on it are rows of its own, which call memoized procedures with it and let choices
absorb what these give. No row then depends on two labels, and a column stays right when another label moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from venture_lite.errors import VentureError
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import AtLimit, Group, Weight, density_of
from venture_lite.kernels.follow import RowShape
from venture_lite.kernels.followers import Finder, Mover, Weigher, restore
from venture_lite.kernels.preview import Added, Drawable, Drawn, PreviewFamily, Unplanned
from venture_lite.kernels.reassign import FollowedRow, Reassignments, plans_of
from venture_lite.procedures.checks import completed
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.exchangeable.crp import CrpState
from venture_lite.procedures.record import Maker, Random
from venture_lite.program.code import Code, Constant, GlobalRef, Kind, Ref, SlotRef, named
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.keys import memo_key
from venture_lite.trace.nodes import node_at
from venture_lite.trace.runtime import Exchangeable, Memo
from venture_lite.trace.table import ROW_MASK, Column, NotColumnar
from venture_lite.trace.trace import Trace
from venture_lite.values import Symbol

CHUNK = 1024
"""Rows of labels whose columns are made together."""
WAIT = 4
"""Draws in a row before columns are made: where other kernels move between them, columns would serve one draw each."""
MOST_CLASSES = 2000
"""Of one maker; the columns of a chunk take 32 kB a class."""


LABEL: Final = Symbol("label")
"""Stands for the label in a key."""


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
    # choices of a distribution that the text names
    groups: tuple[Group, ...]
    # applications of what calls give: the column of their values, and the call's slot
    made: tuple[tuple[Column, int], ...]

    @cached_property
    def memos(self) -> dict[int, Memo]:
        """What each call calls."""
        return {slot: memo for slot, memo, _ in self.calls}


@dataclass(frozen=True, slots=True)
class ReadLabel:
    """A label with the rows that read it."""

    # who calls its family, as of when these were found
    users: list[int]
    readers: tuple[tuple[LabelReader, int], ...]
    # how many choices absorb, and whether some are applications of what calls give
    terms: int
    is_applied: bool


Layout = list[tuple[LabelReader, np.ndarray, np.ndarray]]
"""For each way to read labels which of a chunk are read so (n,), and in which rows (n,)."""


@dataclass(frozen=True, slots=True)
class LabelDraw:
    """A label that was drawn, out of the classes that there are and a fresh one."""

    label: ReadLabel
    old: Any
    value: Any
    # for the families of a fresh class, if that was drawn
    drawn: Drawn | None
    # where the old value is among the classes; what each has of the prior, and of the log density
    own: int
    masses: list[float]
    terms: list[float]

    def weights(self) -> list[Weight]:
        """Of the candidates, the old value first."""
        found = [
            Weight(0, math.log(mass) + term) if term > -math.inf else Weight(1)
            for mass, term in zip(self.masses, self.terms, strict=True)
        ]
        return [found[self.own], *found[: self.own], *found[self.own + 1 :]]


class FreshClass:
    """What a class that does not exist yet would be, where the body of each call that reads its label is one choice or
    maker, whose arguments do not depend on the label. Mutable: it has the values that were drawn last."""

    def __init__(self, plans: Reassignments, readers: list[LabelReader], draws: Drawable) -> None:
        self._trace = plans.model.trace
        self._rng = self._trace.rng
        # (memoized procedure, what it is called with besides the label, slot) of each choice, its distribution with
        # arguments
        self._choices: list[tuple[Memo, Any, int, Random, tuple[Any, ...]]] = []
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
        if any(not isinstance(arg, Constant) and _slot_of(arg) not in reader.start for arg in arguments):
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
        watch = BodyWatch(plans, draws)
        self._results[memo] = watch.of(memo, key)
        if watch.distribution is not None:
            self._choices.append((memo, key, slot, *watch.distribution))

    def is_missing(self, fresh: int) -> bool:
        """Whether none of the families of a label exists."""
        if self.missing != fresh:
            if any(memo_key(_with(key, fresh)) in memo.entries for memo, key in self._keys.items()):
                return False
            self.missing = fresh
        return True

    def weighed(self, label: ReadLabel, fresh: int) -> tuple[float, Drawn]:
        """Draw the choices; the log density of what reads a label, and what was drawn. Raises NotByColumns."""
        drawn: Drawn = {}
        for memo, key, slot, record, arguments in self._choices:
            value = self._results[memo] = record.simulate(self._rng, *arguments)
            drawn[(memo, memo_key(_with(key, fresh))), slot] = value
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

    def __init__(self, plans: Reassignments, draws: Drawable) -> None:
        self._plans, self._draws = plans, draws
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
        return self._plans.previews.maker(record, 1, values)


class SiteColumns:
    """The labels of one site: draws of one maker, each the value of a memoized family. Mutable."""

    def __init__(self, model: Model, code: Code, slot: int) -> None:
        """Raises NotByColumns where the labels of the site have none."""
        self._model, self._trace, self._plans = model, model.trace, plans_of(model)
        item = code.slots[slot]
        if code.kind != "lambda" or code.result_slot != slot or item.kind is not Kind.CALL or item.arguments:
            raise NotByColumns
        if not isinstance(item.operator, GlobalRef):
            raise NotByColumns
        self._code, self._slot = code, slot
        self._values = model.trace.column(code.first_site + slot)
        # by row of the label's family; None for one that is read otherwise
        self._labels: dict[int, ReadLabel | None] = {}
        self._readers: dict[tuple[int, tuple[int, ...]], LabelReader] = {}
        self._layouts: dict[int, Layout] = {}
        self._mover = Mover(model)
        self._own_shape: RowShape | None = None
        # (Code, row) -> the row of a label that is read there; and those of labels that are read in one row
        self._owner: dict[tuple[Code, int], int] = {}
        self._shared: set[int] = set()
        # whether a move of the label that was asked about last leaves columns right
        self._is_private = False
        self._begin()

    def _begin(self) -> None:
        """Nothing is known of classes."""
        # label of a class -> for each way to read it what the calls lead to: rows of families, and results
        self._classes: dict[Any, dict[LabelReader, tuple[list[int], dict[int, Any]]]] = {}
        # (chunk, label of a class) -> the log density of each label's rows
        self._columns: dict[tuple[int, Any], list[float]] = {}
        # the chunk at hand with its columns in the order of the classes
        self._at_hand: tuple[int, list[list[float]]] | None = None
        self._maker: Exchangeable | None = None
        self._prior: FreshClass | None = None
        self._version = -1
        self._wait = WAIT

    # -------------------------------------------------------------------------------------------- one draw

    def draw(self, node: int, draws: Drawable) -> LabelDraw:
        """A label from its conditional distribution; nothing moves yet. Raises NotByColumns, with a generator that
        may have moved."""
        journal, row = self._trace.journal, node & ROW_MASK
        if journal.version != self._version:
            self._begin()
            self._version = journal.version
        label = self._label(row, draws)
        if label is None or self._wait:
            self._wait = max(0, self._wait - 1)
            raise NotByColumns
        state, old = self._found_maker(node).state, self._values.view[row]
        assert isinstance(state, CrpState)
        if state.counts[old] == 1 or len(state.tables) > MOST_CLASSES:
            raise NotByColumns
        own, fresh = state.tables.index(old), state.fresh()
        terms = self._terms(label, row, state.tables, draws)
        if not all(term < math.inf for term in terms) or terms[own] == -math.inf:
            # the interpreter finds the call that an error belongs to, and knows what to do in an impossible state
            raise NotByColumns
        new, drawn = self._fresh(label, fresh, draws)
        terms.append(new)
        best = max(terms)
        masses = state.masses_without(own)
        shares = [mass * math.exp(term - best) for mass, term in zip(masses, terms, strict=True)]
        chosen = _drawn(shares, own, self._trace.rng.random())
        value = fresh if chosen == len(state.tables) else state.tables[chosen]
        return LabelDraw(label, old, value, drawn if value == fresh else None, own, masses, terms)

    def move(self, node: int, drawn: LabelDraw, draws: Drawable) -> None:
        """Give a label the value that was drawn for it."""
        if drawn.drawn is None:
            self._redirect(node & ROW_MASK, drawn)
            self._version = self._trace.journal.version
        else:
            self._plans.plan(node, draws).apply(drawn.value, drawn.drawn)
            self.moved()

    def moved(self) -> None:
        """The label that was asked about last was given another value; classes may have come or gone."""
        if not self._is_private:
            # other labels' rows may depend on it
            self._version = -1
            return
        self._version = self._trace.journal.version
        if self._maker is not None:
            self._at_hand = None
            if self._prior is not None:
                self._prior.missing = None
            tables = self._maker.state.statistics()
            self._classes = {table: known for table, known in self._classes.items() if table in tables}
            self._columns = {key: column for key, column in self._columns.items() if key[1] in tables}

    def _redirect(self, row: int, drawn: LabelDraw) -> None:
        """Lead the rows of a label to another class that exists."""
        statistics, maker, mover = self._trace.statistics, self._maker, self._mover
        assert maker is not None
        assert self._own_shape is not None
        with self._model.transaction() as change:
            statistics.unincorporate(maker, drawn.old, ())
            for operator, value in self._applied(drawn.label, drawn.old) if drawn.label.is_applied else ():
                statistics.unincorporate(operator, value, ())
            statistics.incorporate(maker, drawn.value, ())
            self._own_shape.move(mover, row, drawn.value)
            for reader, its_row in drawn.label.readers:
                reader.shape.move(mover, its_row, drawn.value)
            change.keep()

    def _found_maker(self, node: int) -> Exchangeable:
        """Raises NotByColumns where it is none of labels."""
        if self._maker is None:
            operator, _ = self._trace.application(node)
            if not isinstance(operator, Exchangeable) or not isinstance(operator.state, CrpState):
                raise NotByColumns
            self._maker = operator
        return self._maker

    def _terms(self, label: ReadLabel, row: int, tables: list[int], draws: Drawable) -> list[float]:
        """The log density of what reads a label under each class."""
        chunk = row // CHUNK
        if self._at_hand is None or self._at_hand[0] != chunk:
            layout = self._layouts.get(chunk)
            if layout is None:
                layout = self._laid_out(chunk, draws)
                self._label(row, draws)
                self._layouts[chunk] = layout
            self._at_hand = chunk, [self._column(chunk, table, layout) for table in tables]
        at = row % CHUNK
        terms = [column[at] for column in self._at_hand[1]]
        if label.is_applied:
            for place, term in enumerate(self._applications(label, self._values.view[row], tables)):
                terms[place] += term
        return terms

    def _applications(self, label: ReadLabel, old: Any, tables: list[int]) -> list[float]:
        """The log density of what is applied in a label's rows under each class, the rest of its draws given."""
        out: Added = []
        for operator, value in self._applied(label, old):
            out.append((operator, operator.state.remove(value)))
        try:
            return [predicted(self._applied(label, table)) for table in tables]
        finally:
            restore(out)

    def _applied(self, label: ReadLabel, table: Any) -> list[tuple[Exchangeable, Any]]:
        """(procedure, value) of the applications in a label's rows, if it had a class."""
        known = self._class(table)
        return [
            (known[reader][1][call], values.view[row]) for reader, row in label.readers for values, call in reader.made
        ]

    def _fresh(self, label: ReadLabel, fresh: int, draws: Drawable) -> tuple[float, Drawn]:
        """The log density of what reads a label under a class that does not exist yet, and what is drawn for that."""
        if self._prior is None:
            self._prior = FreshClass(self._plans, list(self._readers.values()), draws)
        if self._prior.is_simple and self._prior.is_missing(fresh):
            return self._prior.weighed(label, fresh)
        finder = Finder(self._plans, draws)
        finder.begin()
        weigher = Weigher(self._model, finder)
        weight = weigher.begin()
        try:
            for reader, row in label.readers:
                reader.shape.weigh(weigher, row, fresh)
            weigher.end()
        except (Unplanned, VentureError):
            raise NotByColumns from None
        finally:
            weigher.take_back()
        if finder.preview is None:
            # its families exist
            raise NotByColumns
        return (-math.inf if weight.impossible else weight.total), finder.preview.drawn

    # ----------------------------------------------------------------------------------------- who reads a label

    def _label(self, row: int, draws: Drawable) -> ReadLabel | None:
        """Who reads a label; None where it is read otherwise than columns can tell, or nobody knows."""
        known = self._labels.get(row)
        if known is not None and known.users == self._trace.users.nodes(self._code, row):
            self._is_private = True
            return known
        self._is_private = False
        found = self._labels[row] = self._read(row, draws)
        if found is not None or known is not None:
            # the columns of its chunk were made without it
            chunk = row // CHUNK
            self._layouts.pop(chunk, None)
            self._columns = {key: column for key, column in self._columns.items() if key[0] != chunk}
            self._at_hand = None
        return found

    def _read(self, row: int, draws: Drawable) -> ReadLabel | None:
        try:
            plan = self._plans.plan(node_at(self._code.first_site + self._slot, row), draws)
        except (Unplanned, VentureError):
            return None
        owners = {self._owner.setdefault((part.code, part.row), row) for part in plan.parts} - {row}
        # labels that a row reads together have no columns; others' columns do not depend on them
        self._is_private = True
        if owners:
            for other in owners | {row}:
                self._shared.add(other)
                self._labels[other] = None
        if row in self._shared:
            return None
        own, *others = plan.parts
        if own.shape.terms or own.shape.calls or any(part.source != 0 or part.shape.goes_on for part in others):
            return None
        self._own_shape = own.shape
        try:
            readers = tuple([(self._reader(part), part.row) for part in others])
        except NotByColumns:
            return None
        terms = sum(reader.shape.terms for reader, _ in readers)
        is_applied = any(reader.made for reader, _ in readers)
        return ReadLabel(self._trace.users.nodes(self._code, row), readers, terms, is_applied)

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
                if any(not isinstance(arg, Constant) and _slot_of(arg) not in known for arg in item.arguments):
                    raise NotByColumns
                calls.append((slot, _memo(trace, item.operator), item.arguments))
            elif sources & set(start):
                raise NotByColumns
            elif slot in shape.made:
                call = _slot_of(item.operator)
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
        return LabelReader(code, shape, start, tuple(calls), tuple(groups), tuple(made))

    # --------------------------------------------------------------------------------------------- columns

    def _laid_out(self, chunk: int, draws: Drawable) -> Layout:
        """Who reads the labels of a chunk."""
        first, places = chunk * CHUNK, dict[LabelReader, tuple[list[int], list[int]]]()
        live, count = self._trace.tables[self._code.index].live, self._trace.tables[self._code.index].count
        for row in range(first, min(first + CHUNK, count)):
            label = self._label(row, draws) if live[row] else None
            for reader, its_row in () if label is None else label.readers:
                at, rows = places.setdefault(reader, ([], []))
                at.append(row - first)
                rows.append(its_row)
        return [(reader, np.array(at), np.array(rows)) for reader, (at, rows) in places.items()]

    def _column(self, chunk: int, table: Any, layout: Layout) -> list[float]:
        """Raises NotByColumns."""
        found = self._columns.get((chunk, table))
        if found is None:
            total = np.zeros(CHUNK)
            for reader, at, rows in layout:
                families = self._class(table)[reader][0]
                for group in reader.groups:
                    group.families[:] = families
                    total[at] += self._group_terms(group, rows)
            found = self._columns[chunk, table] = total.tolist()
        return found

    def _group_terms(self, group: Group, rows: np.ndarray) -> Any:
        try:
            return group.terms_by_columns(rows)
        except AtLimit:
            return -math.inf
        except (NotColumnar, RowByRow, TypeError, VentureError):
            raise NotByColumns from None

    def _class(self, table: Any) -> dict[LabelReader, tuple[list[int], dict[int, Any]]]:
        """What the calls of each reader lead to in a class. Raises NotByColumns where its families do not exist."""
        known = self._classes.setdefault(table, {})
        for reader in self._readers.values():
            if reader not in known:
                known[reader] = self._led_to(reader, table)
        return known

    def _led_to(self, reader: LabelReader, table: Any) -> tuple[list[int], dict[int, Any]]:
        trace, families = self._trace, list[int]()
        results: dict[int, Any] = dict.fromkeys(reader.start, table)
        for slot, memo, arguments in reader.calls:
            key = [arg.value if isinstance(arg, Constant) else results[_slot_of(arg)] for arg in arguments]
            row = memo.entries.get(memo_key(tuple(key)))
            if row is None:
                raise NotByColumns
            families.append(row)
            results[slot] = trace.result(memo.procedure.code, row)
        if any(not isinstance(results[call], Exchangeable) for _, call in reader.made):
            raise NotByColumns
        return families, results


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


def _with(key: tuple[Any, ...], label: int) -> tuple[Any, ...]:
    """A key with a label at its place."""
    return tuple([label if part is LABEL else part for part in key])


def _slot_of(ref: Ref | None) -> int:
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


def _drawn(shares: list[float], own: int, u: float) -> int:
    """An index drawn in proportion to the shares: the one of the present value is looked at first."""
    target = u * math.fsum(shares) - shares[own]
    if target < 0.0:
        return own
    for index, share in enumerate(shares):
        if index != own:
            target -= share
            if target < 0.0:
                return index
    return max((index for index, share in enumerate(shares) if share > 0.0 and index != own), default=own)


class LabelColumns:
    """`gibbs` of labels that have columns, of one kernel. Mutable."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._generator = model.trace.rng.bit_generator
        self._sites: dict[int, SiteColumns | None] = {}
        # absorbing choices weighed
        self.rows = 0
        # what was drawn last
        self._drawn: LabelDraw | None = None

    def step(self, node: int, draws: Drawable) -> bool | None:
        """Whether the label changed; None where it has no columns, and nothing was done."""
        model = self._model
        site = node >> 32
        if site not in self._sites:
            self._sites[site] = self._made(node)
        columns = self._sites[site]
        self._drawn = None
        if columns is None or model.transactions or model.trace.journal.entries or model.regenerator.power != 1.0:
            return None
        before = self._generator.state
        try:
            drawn = columns.draw(node, draws)
        except NotByColumns:
            self._generator.state = before
            return None
        self._drawn = drawn
        self.rows += len(drawn.terms) * drawn.label.terms
        if drawn.value == drawn.old:
            return False
        columns.move(node, drawn, draws)
        return True

    def _made(self, node: int) -> SiteColumns | None:
        code, slot, _ = self._model.trace.decode(node)
        try:
            return SiteColumns(self._model, code, slot)
        except NotByColumns:
            return None

    def moved(self, node: int) -> None:
        """A label for which there were no columns was moved otherwise."""
        columns = self._sites.get(node >> 32)
        if columns is not None:
            columns.moved()

    @property
    def restructured(self) -> bool:
        """Whether the last step opened a class."""
        return self._drawn is not None and self._drawn.drawn is not None

    def weights(self) -> list[Weight]:
        """Of the candidates of the last step."""
        return [] if self._drawn is None else self._drawn.weights()
