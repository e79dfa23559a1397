"""All that a trace holds, as one value: what a process that knows nothing of a trace is sent of it.

Two steps, because columns are shared: a *layout* says which tables and columns there are, and the *contents* are what
stands in them. Whoever sends the contents refers to the tables and columns of the layout by their numbers
(`columns_of`). What only makes things fast is left behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from venture_lite.program.code import Code
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.handover import OF_ROWS
from venture_lite.trace.keys import KeyIndex
from venture_lite.trace.runtime import Exchangeable, Memo
from venture_lite.trace.scopes import Scope
from venture_lite.trace.table import Column, Table
from venture_lite.trace.trace import Trace

OF_PROGRAM = ("codes", "site_code", "site_slot", "version", "_vacant", "_vacant_sites")
OF_ANALYZER = ("globals", "standard", "forward", "order", "texts", "unclosed")
"""What the analysis knows of a program."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Which columns a table has."""

    # None where the table of a Code stands that was let go of
    code: Code | None
    # of each slot: whether it is stored, and of a call that reads its family's result, the family's Code
    columns: tuple[bool | Code, ...] = ()
    edges: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    has_environment: bool = False
    has_child_position: bool = False
    has_context: bool = False


def layout(trace: Trace) -> list[TableLayout]:
    """Which tables and columns there are."""
    trace.grow_with_program()
    return [_layout(trace, table) for table in trace.tables]


def _layout(trace: Trace, table: Table) -> TableLayout:
    if table is trace._vacant:
        return TableLayout(None)
    return TableLayout(
        table.code,
        tuple(_kept(trace, column) for column in table.columns),
        tuple(table.edges),
        tuple(table.positions),
        table.environment is not None,
        table.child_position is not None,
        table.context is not None,
    )


def _kept(trace: Trace, column: Column | None) -> bool | Code:
    if isinstance(column, BorrowedColumn):
        return trace.program.site_code[column.site]
    return column is not None


def lay_out(trace: Trace, layouts: list[TableLayout]) -> None:
    """Give a trace without tables these; their columns are empty."""
    for each in layouts:
        trace.tables.append(trace._vacant if each.code is None else _table(each))
    for table, each in zip(trace.tables, layouts, strict=True):
        for slot, kept in enumerate(each.columns):
            if isinstance(kept, Code):
                lender = trace.tables[kept.index].columns[kept.result_slot]
                assert lender is not None
                table.columns[slot] = BorrowedColumn(table.edges[slot], lender, kept.first_site + kept.result_slot)


def _table(wanted: TableLayout) -> Table:
    assert wanted.code is not None
    table = Table(wanted.code)
    table.columns = [Column() if kept else None for kept in wanted.columns]
    table.edges = {slot: Column(int) for slot in wanted.edges}
    table.positions = {slot: Column(int) for slot in wanted.positions}
    table.environment = Column(int) if wanted.has_environment else None
    table.child_position = Column(int) if wanted.has_child_position else None
    table.context = Column(int) if wanted.has_context else None
    return table


def columns_of(trace: Trace) -> Iterator[Column]:
    """Every column that holds values of its own, in the order of the layout."""
    for table in trace.tables:
        if table is not trace._vacant:
            yield from (column for column in table._all_columns() if not isinstance(column, BorrowedColumn))


def contents(trace: Trace) -> dict[str, Any]:
    """What stands in the tables, and beside them; nothing that the journal could take back is among it."""
    default, statistics = trace.default, trace.statistics
    tables = [table for table in trace.tables if table is not trace._vacant]
    return {
        "generator": trace.rng.bit_generator.state,
        "columns": [column.content() for column in columns_of(trace)],
        "rows": [{name: getattr(table, name) for name in OF_ROWS if name != "context"} for table in tables],
        "default": (default.bag, default.epoch, default.forced),
        "scopes": [
            (name, scope.blocks, scope.crowds, scope.names)
            for name, scope in trace.scopes.items()
            if isinstance(scope, Scope)
        ],
        "named": trace.named,
        "contexts": (trace.contexts, trace._context_ids),
        "serials": list(trace._serials),
        "bound": trace.bindings.by_row,
        "memos": [(memo, memo.entries.entries(), memo.unused) for memo in memos_of(trace)],
        "statistics": (statistics.makers, statistics.updates),
        "constants": {name: value for name, value in vars(trace.constants).items() if name != "trace"},
        "journal": (trace.journal.version, trace.journal.structure),
    }


def memos_of(trace: Trace) -> list[Memo]:
    """Every memoized procedure to which a column or a row refers."""
    found: dict[int, Memo] = {}
    for table in trace.tables:
        held = [column.view for column in table.columns if column is not None and column.kind is object]
        for values in (*held, table.memos or ()):
            if not isinstance(values, BorrowedColumn):
                found.update((id(value), value) for value in values if isinstance(value, Memo))
    return list(found.values())


def fill(trace: Trace, found: dict[str, Any]) -> None:
    """Have a trace that is laid out hold these contents."""
    for column, content in zip(columns_of(trace), found["columns"], strict=True):
        column.hold(*content)
    tables = [table for table in trace.tables if table is not trace._vacant]
    for table, of_rows in zip(tables, found["rows"], strict=True):
        for name, value in of_rows.items():
            setattr(table, name, value)
    for memo, entries, unused in found["memos"]:
        memo.entries, memo.unused = KeyIndex(memo.entries.key_at, entries), unused
    trace.rng.bit_generator.state = found["generator"]
    default = trace.default
    default.bag, default.epoch, default.forced = found["default"]
    trace.named.update(found["named"])
    trace.scopes.update((name, Scope.of(*parts)) for name, *parts in found["scopes"])
    trace.contexts, trace._context_ids = found["contexts"]
    trace._serials = {record: number for number, record in enumerate(found["serials"])}
    trace.bindings.by_row.update(found["bound"])
    makers: dict[int, Exchangeable]
    makers, trace.statistics.updates = found["statistics"]
    trace.statistics.makers.update(makers)
    vars(trace.constants).update(found["constants"])
    trace.journal.version, trace.journal.structure = found["journal"]
