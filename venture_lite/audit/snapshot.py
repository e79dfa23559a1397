"""A snapshot: all that a trace stores, as plain values that compare with `==`, bit for bit.

For the tests of exact rejection. What only makes things fast is left out: capacities, stamps, interned contexts, kept
weights, constant families without users; so are the definitions of the standard library, which are loaded when they are
first named and stay.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.inference.lambdas import InferenceLambda
from venture_lite.interpreter.constants import may_be_constant
from venture_lite.interpreter.sources import reached
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.program.code import Code, Kind
from venture_lite.trace.runtime import Closure, Exchangeable, Memo
from venture_lite.trace.scopes import DefaultScope, Scope
from venture_lite.trace.table import ROW_MASK, Table
from venture_lite.values import Dictionary, Distribution, Symbol

if TYPE_CHECKING:
    from venture_lite.interpreter.model import Model
    from venture_lite.trace.trace import Trace

EXACT = 2**53
"""Integers up to this are stored as floats without loss; an integer and the float equal to it are one value."""


def snapshot(model: Model) -> dict[str, Any]:
    """Everything stored: tables with their live rows, scopes, makers, globals."""
    return _Snapshot(model.trace).take()


class _Snapshot:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.standard = {
            (target.code.index, target.row) for target in trace.analyzer.standard.values() if target.code is not None
        }
        # (Code index, row) of what directives refer to
        self.used = rows_in_use(trace)
        # memo tables have no name of their own: each goes by the node that made it
        self.memo_nodes: dict[int, int] = {}

    def take(self) -> dict[str, Any]:
        trace = self.trace
        for table in trace.tables:
            self._name_memos(table)
        return {
            "tables": {table.code.index: self._table(table) for table in trace.tables if self._counts(table)},
            "scopes": {
                self.value(name): _scope(self, scope) for name, scope in trace.scopes.items() if scope.block_count()
            },
            "makers": {node: self._maker(maker) for node, maker in trace.statistics.makers.items()},
            "globals": {
                name: (target.code.index if target.code is not None else None, target.row)
                for name, target in trace.analyzer.globals.items()
            },
            "bound rows": {
                place: target.name for place, target in trace.bindings.by_row.items() if place not in self.standard
            },
        }

    def _counts(self, table: Table) -> bool:
        if any(index == table.code.index for index, _ in self.standard):
            return False
        return table.count > 0 if not may_be_constant(table.code) else any(True for _ in self._rows(table))

    def _rows(self, table: Table) -> Iterator[int]:
        return (row for row in live_rows(table) if (table.code.index, row) in self.used)

    def _in_use(self, node: int) -> bool:
        code, _, row = self.trace.decode(node)
        return (code.index, row) in self.used

    def _name_memos(self, table: Table) -> None:
        for slot, item in enumerate(table.code.slots):
            if item.kind is Kind.MEM:
                column = table.columns[slot]
                assert column is not None
                for row in live_rows(table):
                    self.memo_nodes.setdefault(id(column.view[row]), node_of(table.code, slot, row))

    # ------------------------------------------------------------------------------------------------- tables

    def _table(self, table: Table) -> dict[str, Any]:
        return {
            # where constant families can stand, the numbers of rows to come depend on them
            "count and free": None if may_be_constant(table.code) else (table.count, list(table.free)),
            "rows": {row: self._row(table, row) for row in self._rows(table)},
            "children": {
                environment: rows
                for environment, bag in table.children.items()
                if (rows := [row for row in bag if (table.code.index, row) in self.used])
            },
        }

    def _row(self, table: Table, row: int) -> dict[str, Any]:
        memo = table.memo_of(row)
        return {
            "values": {s: self._cell(c.view[row]) for s, c in enumerate(table.columns) if c is not None},
            "environment": table.environment.view[row] if table.environment is not None else None,
            "users": [node for node in self.trace.users.nodes(table.code, row) if self._in_use(node)],
            "edges": {slot: column.view[row] for slot, column in table.edges.items()},
            "observed": [slot for slot in range(len(table.code.slots)) if table.is_observed(slot, row)],
            "context": self._context(table.context_of(row)),
            "memo": None if memo is None else self.value(memo),
        }

    def _context(self, context: int) -> list[Any]:
        found = []
        while context:
            context, scope, key = self.trace.contexts[context]
            found.append((self.value(scope), self.value(key)))
        return found

    def _cell(self, value: Any) -> Any:
        if isinstance(value, Memo):
            rows = dict(value.entries.items())
            body = value.procedure.code.index if rows else -1
            return (self.value(value), {self.value(k): at for k, at in rows.items() if (body, at) in self.used})
        return self.value(value)

    def _maker(self, maker: Exchangeable) -> Any:
        statistics = {key: self.value(value) for key, value in dict(maker.state.statistics()).items()}
        return maker.record.name, tuple(map(self.value, maker.state.arguments)), statistics

    # ------------------------------------------------------------------------------------------------- values

    def value(self, value: Any) -> Any:
        """A value as something hashable that is equal only to itself, bit for bit."""
        match value:
            case bool() | int() | float():
                return struct.pack("<d", value) if not isinstance(value, int) or abs(value) <= EXACT else value
            case str():
                return ("string", value)
            case Symbol():
                return ("symbol", value.name)
            case tuple() | list():
                return ("list", *map(self.value, value))
            case Dictionary():
                return ("dictionary", *((self.value(key), self.value(item)) for key, item in value.items()))
            case Distribution():
                pairs = zip(value.values, value.probabilities, strict=True)
                return ("distribution", *((self.value(item), self.value(p)) for item, p in pairs))
            case np.ndarray():
                return ("array", value.shape, value.tobytes())
            case Closure():
                return ("closure", value.code.index, value.row)
            case Memo():
                return ("memo", self.memo_nodes.get(id(value)))
            case Exchangeable():
                return ("maker", value.node)
            case Random() | Deterministic() | Maker():
                return ("procedure", value.name)
            case InferenceLambda():
                return ("lambda", repr(value))
        return ("other", value)


def rows_in_use(trace: Trace) -> set[tuple[int, int]]:
    """(Code index, row) of the rows of directives and of all families that edges lead to from there."""

    def below(family: tuple[int, int]) -> list[tuple[int, int]]:
        edges = [column.view[family[1]] for column in trace.tables[family[0]].edges.values()]
        return [(edge >> 32, edge & ROW_MASK) for edge in edges if edge >= 0]

    directives = [table for table in trace.tables if table.code.kind == "directive"]
    return set(reached([(table.code.index, row) for table in directives for row in live_rows(table)], below))


def live_rows(table: Table) -> list[int]:
    return [row for row in range(table.count) if table.live[row]]


def node_of(code: Code, slot: int, row: int) -> int:
    return (code.first_site + slot) << 32 | row


def _scope(taken: _Snapshot, scope: DefaultScope | Scope) -> Any:
    if isinstance(scope, DefaultScope):
        return list(scope.bag)
    blocks = [scope.members(name) for name in scope.all_keys()]
    return list(zip(map(taken.value, scope.all_keys()), blocks, strict=True))
