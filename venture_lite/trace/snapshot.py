"""A snapshot: all that a trace stores, as plain values that compare with `==`, bit for bit.

For the tests of exact rejection. What only makes things fast is left out: capacities, stamps, interned contexts, kept
weights; so are the definitions of the standard library, which are loaded when they are first named and stay.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.code import Code, Kind
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.trace.runtime import Closure, Exchangeable, Memo
from venture_lite.trace.scopes import DefaultScope, Scope
from venture_lite.trace.table import Table
from venture_lite.values import Symbol

if TYPE_CHECKING:
    from venture_lite.trace.directives import Model
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
        return table.count > 0 and not any(index == table.code.index for index, _ in self.standard)

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
            "count": table.count,
            "free": list(table.free),
            "rows": {row: self._row(table, row) for row in live_rows(table)},
            "children": {environment: list(bag) for environment, bag in table.children.items()},
            "users": {
                row: users
                if isinstance(users, tuple)
                else (users.count, [(site, list(bag)) for site, bag in users.by_site.items()])
                for row, users in table.users.items()
            },
        }

    def _row(self, table: Table, row: int) -> dict[str, Any]:
        memo = table.memos[row] if table.memos is not None else None
        return {
            "values": {s: self._cell(c.view[row]) for s, c in enumerate(table.columns) if c is not None},
            "environment": table.environment.view[row] if table.environment is not None else None,
            "user": table.user.view[row] if table.code.kind == "lambda" else None,
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
            return (self.value(value), {self.value(key): row for key, row in value.entries.items()})
        return self.value(value)

    def _maker(self, maker: Exchangeable) -> Any:
        statistics = maker.state.statistics()
        return (
            maker.record.name,
            tuple(map(self.value, maker.state.arguments)),
            {key: self.value(value) for key, value in dict(statistics).items()},
        )

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
        return ("other", value)


def live_rows(table: Table) -> list[int]:
    return [row for row in range(table.count) if table.live[row]]


def node_of(code: Code, slot: int, row: int) -> int:
    return (code.first_site + slot) << 32 | row


def _scope(taken: _Snapshot, scope: DefaultScope | Scope) -> Any:
    if isinstance(scope, DefaultScope):
        return list(scope.bag)
    blocks = [scope.members(name) for name in scope.all_keys()]
    return list(zip(map(taken.value, scope.all_keys()), blocks, strict=True))
