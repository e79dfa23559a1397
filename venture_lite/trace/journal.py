"""The journal: for every change of the trace, its exact inverse.

Rejection, errors and interruptions replay it backwards to a mark, after which every table, bag and statistic is as it
was, bit for bit. Rows that a transition frees are used again only after `commit`, so that bringing one back is a change
of one flag.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from venture_lite.trace.table import STAMPS, Column, Table

Kept = tuple[int, int, int]
"""When rows were entered: the commits and marks of the journal by then, and the stamp that the column got."""


class Journal:
    __slots__ = ("entries", "freed", "is_held", "marks", "restructured", "structure", "version")

    def __init__(self) -> None:
        # number of commits that changed anything, and of those that changed rows or edges
        self.version = 0
        self.structure = 0
        # number of places so far to which changes may be taken back
        self.marks = 0
        # whether rows or edges changed since the last commit
        self.restructured = False
        # whether commits are counted and can still be taken back: inverses stay, and freed rows are not used again
        self.is_held = False
        # for each change: a function, its arguments, and their number; calling it undoes the change. One flat list,
        # so that a long load leaves no small objects behind
        self.entries: list[Any] = []
        # rows killed since the last commit
        self.freed: list[tuple[Table, int]] = []

    def mark(self) -> int:
        self.marks += 1
        return len(self.entries)

    def note(self, *entry: Any) -> None:
        """Enter `(undo, *arguments)`; undo must restore the state before the change that follows or was just made."""
        self.entries.extend(entry)
        self.entries.append(len(entry))

    def set_item(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Enter a value into a dictionary."""
        self.note(*((dict.__setitem__, table, key, table[key]) if key in table else (dict.pop, table, key)))
        table[key] = value

    def del_item(self, table: dict[Any, Any], key: Any) -> None:
        self.note(dict.__setitem__, table, key, table.pop(key))

    def undos(self, mark: int) -> Iterator[Any]:
        """The functions that undo what was entered since the mark, the latest first."""
        at = len(self.entries)
        while at > mark:
            at -= self.entries[at - 1] + 1
            yield self.entries[at]

    def put(self, column: Column, row: int, value: Any) -> None:
        """Store a value in a live row."""
        self.entries.extend((_restore, column, row, column.view[row], column.stamp, 5))
        column.put(row, value)

    def keep_cell(self, column: Column, row: int) -> None:
        """A live row of a column may be written over from here on."""
        self.entries.extend((_restore, column, row, column.view[row], column.stamp, 5))

    def put_rows(self, column: Column, rows: np.ndarray, values: np.ndarray) -> None:
        """Store values (len(rows),) of the column's own kind in live rows."""
        self.keep_rows(column, rows)
        column.array[rows] = values

    def keep_rows(self, column: Column, rows: np.ndarray) -> None:
        """Live rows of a column may be written over from here on."""
        column.own()
        self.entries.extend((_restore_rows, column, rows, column.array[rows], column.stamp, 5))
        column.stamp = next(STAMPS)

    def keep_again(self, column: Column, rows: np.ndarray, kept: Kept) -> Kept:
        """As `keep_rows`, where the same rows may have been kept before, `kept` says when: what is entered since the
        latest mark is not entered again."""
        if kept == (self.version, self.marks, column.stamp):
            column.stamp = next(STAMPS)
        else:
            self.keep_rows(column, rows)
        return self.version, self.marks, column.stamp

    def rollback(self, mark: int = 0) -> None:
        entries = self.entries
        while len(entries) > mark:
            start = len(entries) - entries[-1] - 1
            undo, arguments = entries[start], entries[start + 1 : -1]
            del entries[start:]
            undo(*arguments)
        if not entries:
            self.restructured = False

    def commit(self) -> None:
        """Make the changes final."""
        if self.entries:
            self.version += 1
        if self.restructured:
            self.structure += 1
        if not self.is_held:
            self.release()

    def release(self) -> None:
        """Forget the inverses of what was committed, and let freed rows be used again."""
        self.entries.clear()
        self.restructured = False
        if self.freed:
            for table, row in self.freed:
                if not table.live[row] and row not in table.withheld:
                    table.free.append(row)
            self.freed.clear()

    # --------------------------------------------------------------------------------------------------- rows

    def allocate(self, table: Table) -> int:
        reused = bool(table.free)
        row = table.allocate()
        self.restructured = True
        self.entries.extend((Table.unmake, table, row, reused, 4))
        return row

    def kill(self, table: Table, row: int) -> None:
        table.kill(row)
        self.restructured = True
        self.freed.append((table, row))
        self.entries.extend((Journal._revive, self, table, row, 4))

    def _revive(self, table: Table, row: int) -> None:
        table.revive(row)
        self.freed.pop()


def _restore(column: Column, row: int, value: Any, stamp: int) -> None:
    column.put(row, value)
    column.stamp = stamp


def _restore_rows(column: Column, rows: np.ndarray, values: np.ndarray, stamp: int) -> None:
    if column.array is not None and column.array.dtype == values.dtype:
        column.array[rows] = values
    else:
        # the column took on another kind since
        for row, value in zip(rows.tolist(), values.tolist(), strict=True):
            column.put(row, value)
    column.stamp = stamp
