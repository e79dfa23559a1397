"""What a process that was forked from another hands back of a trace: all that its transitions changed.

Both processes know the objects that stood at the fork, Codes, tables, columns and procedures, by their places in a list
that was made before it; what is sent refers to them so, and the receiver changes them in place. Of the columns only
those go that changed, so that data stay where they are. Structure goes as a whole, if any of it changed. What only
makes things fast is left behind, and made anew from what is there.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from venture_lite.program.code import Kind
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.keys import KeyIndex
from venture_lite.trace.runtime import Memo
from venture_lite.trace.scopes import Scope
from venture_lite.trace.table import STAMPS, Column, Table
from venture_lite.trace.trace import Trace

OF_ROWS = ("count", "dead", "capacity", "live", "free", "withheld", "children", "users", "observed", "context",
           "memos", "constant", "order")  # fmt: skip
"""What a table knows of its rows, columns aside."""


class Handover:
    """A trace as it is when both processes still are one. Mutates the trace in the one that receives."""

    def __init__(self, trace: Trace, procedures: Iterable[Any]) -> None:
        trace.grow_with_program()
        self.trace = trace
        self._tables = [(table, table.code) for table in trace.tables]
        self._columns = [column for table in trace.tables for column in _columns(table)]
        self._stamp, self._structure = next(STAMPS), trace.structure_stamp()
        self._named = dict(trace.named)
        slots = (slot for code in trace.program.codes for slot in code.slots)
        records = [*procedures, *(slot.record for slot in slots if slot.record is not None)]
        codes = [code for _, code in self._tables]
        parts = [trace, trace.journal, trace.users, *codes, *(table for table, _ in self._tables), *self._columns]
        self._known = [*parts, *self._named.values(), *_memos(trace), *trace.statistics.makers.values(), *records]
        self._numbers = {id(part): number for number, part in enumerate(self._known)}

    def dumps(self, message: Any) -> bytes:
        """A message to the other process. Raises an exception of any kind where it cannot be sent."""
        written = io.BytesIO()
        _Pickler(written, self._numbers).dump(message)
        return written.getvalue()

    def loads(self, sent: bytes) -> Any:
        """The other process's message."""
        return _Unpickler(io.BytesIO(sent), self._known).load()

    def packed(self) -> bytes:
        """What changed since. Raises as `dumps` does."""
        trace, default = self.trace, self.trace.default
        # a choice may leave its scopes and come back where no row or edge changes
        is_restructured = trace.structure_stamp() != self._structure or default.bag.stamp > self._stamp
        is_restructured |= trace.named != self._named
        counts = (default.epoch, trace.journal.version, trace.journal.structure)
        structure = self._structural() if is_restructured else None
        return self.dumps((trace.rng.bit_generator.state, counts, self._changed(), structure))

    def _changed(self) -> tuple[Any, ...]:
        """Values and statistics that changed since."""
        trace = self.trace
        return (
            [(column, column.content()) for column in self._columns if column.stamp > self._stamp],
            [(maker, maker.state) for maker in trace.statistics.makers.values()],
            (trace.statistics.updates, trace.default.forced),
            {name: value for name, value in vars(trace.constants).items() if name != "trace"},
        )

    def _structural(self) -> tuple[Any, ...]:
        """Rows, edges, users, scopes and memo tables; those of Codes that came since have no rows that last."""
        trace = self.trace
        kept = [table for table, code in self._tables if table.code is code]
        scopes = [(name, scope) for name, scope in trace.scopes.items() if isinstance(scope, Scope)]
        return (
            [(table, {name: getattr(table, name) for name in OF_ROWS}) for table in kept],
            [(column, column.content()) for table in kept for column in _links(table)],
            trace.default.bag,
            [(name, scope.blocks, scope.crowds, scope.names) for name, scope in scopes],
            trace.named,
            [(memo, memo.entries.entries(), memo.unused) for memo in _memos(trace)],
            trace.statistics.makers,
            (trace.contexts, trace._context_ids),
        )

    def unpack(self, sent: bytes) -> None:
        """Bring the trace to the state that the other process packed."""
        trace, default = self.trace, self.trace.default
        trace.rng.bit_generator.state, (default.epoch, version, restructured), changed, structure = self.loads(sent)
        self._put_changed(*changed)
        # no stamp of before stands for this state
        trace.journal.version, trace.journal.structure = version + 1, restructured + 1
        if structure is not None:
            self._put_structure(*structure)
        for derived in trace.derived:
            derived.clear()

    def _put_changed(self, columns: Any, makers: Any, counts: Any, constants: Any) -> None:
        trace = self.trace
        for column, held in columns:
            column.hold(*held)
        for maker, statistics in makers:
            maker.state = statistics
        trace.statistics.updates, trace.default.forced = counts
        vars(trace.constants).update(constants)

    def _put_structure(
        self, tables: Any, links: Any, bag: Any, scopes: Any, named: Any, memos: Any, makers: Any, contexts: Any
    ) -> None:
        trace = self.trace
        for table, of_rows in tables:
            for name, value in of_rows.items():
                setattr(table, name, value)
            table.shape_stamp = next(STAMPS)
        for column, held in links:
            column.hold(*held)
        for table, _ in tables:
            # room that was made for a proposal which was rejected is there, though no value is another
            for column in table._all_columns():
                column.reserve(table.capacity)
        trace.default.bag, trace.default._everything = bag, (-1, [])
        trace.scopes = {"default": trace.default, **{name: Scope.of(*parts) for name, *parts in scopes}}
        # of choices by name there are the scopes that what belongs to them is known of
        trace.named.clear()
        trace.named.update(named)
        for memo, entries, unused in memos:
            memo.entries, memo.unused = KeyIndex(memo.entries.key_at, entries), unused
        trace.statistics.makers.clear()
        trace.statistics.makers.update(makers)
        trace.contexts, trace._context_ids = contexts


def _columns(table: Table) -> Iterator[Column]:
    return (column for column in table._all_columns() if not isinstance(column, BorrowedColumn))


def _links(table: Table) -> Iterator[Column]:
    """Columns that are written without a stamp: where rows lead, and where choices stand in bags."""
    own = [table.environment, table.child_position, table.user]
    return (column for column in [*own, *table.edges.values(), *table.positions.values()] if column is not None)


def _memos(trace: Trace) -> list[Memo]:
    """Every memoized procedure that is alive."""
    found: dict[int, Memo] = {}
    for table in trace.tables:
        for slot, item in enumerate(table.code.slots):
            column = table.columns[slot] if item.kind is Kind.MEM else None
            for row in table.live_rows() if column is not None else ():
                memo = column.view[row]  # type: ignore[union-attr]
                found[id(memo)] = memo
    return list(found.values())


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


class _Pickler(pickle.Pickler):
    """Refers to what stood at the fork by its number."""

    def __init__(self, file: io.BytesIO, numbers: dict[int, int]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._numbers = numbers

    def persistent_id(self, part: Any) -> int | None:
        return self._numbers.get(id(part))

    def reducer_override(self, part: Any) -> Any:
        if isinstance(part, np.ndarray) and not part.flags.writeable:
            # values never change in place
            return _read_only, (part.copy(),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, known: list[Any]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, number: int) -> Any:
        return self._known[number]
