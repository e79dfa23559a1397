"""States of one trace, kept and put back: whole copies, whatever families they hold.

A copy is what a forked process would hand over (`handover.py`), less the generator: the columns that have changed since
the first state, statistics and structure. What loops read of their data never changes and is in no copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from venture_lite.program.code import Kind
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.handover import Handover
from venture_lite.trace.table import Column, Table
from venture_lite.trace.trace import Trace


class Copies(Handover):
    """Copies of the states of a trace. Mutates the trace, which is settled before and after."""

    def __init__(self, trace: Trace, procedures: Iterable[Any]) -> None:
        super().__init__(trace, procedures)
        self._columns = [column for table in trace.tables for column in _changing(table)]
        # what columns held when they had not changed
        self._first = [_copied(*column.content()) for column in self._columns]

    def keep(self) -> bytes:
        """The present state."""
        return self.dumps((self._changed(), self._structural()))

    def put(self, kept: bytes) -> None:
        """Bring the trace to a state that was kept."""
        trace = self.trace
        changed, structure = self.loads(kept)
        there = {id(column) for column, _ in changed[0]}
        for column, first in zip(self._columns, self._first, strict=True):
            if column.stamp > self._stamp and id(column) not in there:
                column.hold(*_copied(*first))
        self._put_changed(*changed)
        self._put_structure(*structure)
        # no stamp of before stands for this state
        trace.journal.version += 1
        trace.journal.structure += 1


def _changing(table: Table) -> list[Column]:
    """The columns of a table that transitions may write, or rows that come and go."""
    data = [
        column
        for column, slot in zip(table.columns, table.code.slots, strict=True)
        if table.code.kind == "directive" and slot.kind is Kind.ARGUMENT
    ]
    every = (column for column in table._all_columns() if not isinstance(column, BorrowedColumn))
    return [column for column in every if not any(column is other for other in data)]


def _copied(kind: type | None, values: Any) -> tuple[type | None, Any]:
    """The content of a column that nobody else writes."""
    if not isinstance(values, np.ndarray):
        return kind, list(values)
    copied = values.copy()
    copied.flags.writeable = values.flags.writeable
    return kind, copied
