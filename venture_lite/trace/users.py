"""Who uses the result of a family: one node for a plain call, any number for a memoized one.

One user stands in the table's `user` column, a few in a tuple, many in bags by call site.
"""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from typing import Any

import numpy as np

from venture_lite.program.code import Code, Program
from venture_lite.trace.bags import Bag, Users, in_column
from venture_lite.trace.journal import Journal
from venture_lite.trace.table import NONE, ROW_MASK, Table

MANY = -2
"""In `Table.user`: the row has more than one user."""

FEW = 8
"""Up to so many users stand in a tuple, beyond it in bags."""


class UserLists:
    """The users of every row of a trace. Mutates the tables, through the journal."""

    def __init__(self, tables: list[Table], program: Program, journal: Journal) -> None:
        self._tables = tables
        self._program = program
        self._journal = journal

    def add(self, code: Code, row: int, site: int, user_row: int) -> None:
        """A node uses the result of a family."""
        self._journal.restructured = True
        table = self._tables[code.index]
        first = table.user.view[row]
        if first == NONE:
            self._journal.put(table.user, row, site << 32 | user_row)
            return
        if first != MANY:
            self._journal.set_item(table.users, row, (first, site << 32 | user_row))
            self._journal.put(table.user, row, MANY)
            return
        users = table.users[row]
        if isinstance(users, tuple):
            if len(users) < FEW:
                self._journal.set_item(table.users, row, (*users, site << 32 | user_row))
                return
            self._journal.set_item(table.users, row, Users(self._locate))
            for node in users:
                table.users[row].add(node >> 32, node & ROW_MASK, self._journal)
        table.users[row].add(site, user_row, self._journal)

    def remove(self, code: Code, row: int, site: int, user_row: int) -> None:
        self._journal.restructured = True
        table = self._tables[code.index]
        if table.user.view[row] != MANY:
            self._journal.put(table.user, row, NONE)
            return
        users = table.users[row]
        if isinstance(users, tuple):
            left = tuple(node for node in users if node != site << 32 | user_row)
            self._journal.set_item(table.users, row, left)
        else:
            users.remove(site, user_row, self._journal)
            left = users
        if not left:
            self._journal.del_item(table.users, row)
            self._journal.put(table.user, row, NONE)

    def lead(self, site: int, rows: np.ndarray, families: np.ndarray) -> list[int]:
        """Let the calls of a site in some rows (n,) lead to other families, packed (n,); those that lost a user."""
        program, journal = self._program, self._journal
        edges = self._tables[program.site_code[site].index].edges[program.site_slot[site]]
        before = edges.array[rows]
        differs = before != families
        rows, before, families = rows[differs], before[differs], families[differs]
        left: list[int] = np.unique(before).tolist()
        for packed in left:
            self._leave(packed, site, rows[before == packed])
        for packed in np.unique(families).tolist():
            self._join(packed, site, rows[families == packed])
        journal.put_rows(edges, rows, families)
        return left

    def _leave(self, packed: int, site: int, rows: np.ndarray) -> None:
        """Calls of a site no longer use a family."""
        code, row = self._program.codes[packed >> 32], packed & ROW_MASK
        users = self._tables[code.index].users.get(row)
        # as many as that are gone through one by one in the time of an array
        if isinstance(users, Users) and FEW < len(rows) < len(users):
            self._journal.restructured = True
            users.remove_all(site, rows, self._journal)
            return
        for user_row in rows.tolist():
            self.remove(code, row, site, user_row)

    def _join(self, packed: int, site: int, rows: np.ndarray) -> None:
        """Calls of a site use a family."""
        code, row = self._program.codes[packed >> 32], packed & ROW_MASK
        users = self._tables[code.index].users.get(row)
        if isinstance(users, Users) and len(rows) > FEW:
            self._journal.restructured = True
            users.add_all(site, rows, self._journal)
            return
        for user_row in rows.tolist():
            self.add(code, row, site, user_row)

    def _locate(self, site: int) -> Any:
        positions = self._tables[self._program.site_code[site].index].positions[self._program.site_slot[site]]
        return partial(in_column, positions)

    def count(self, code: Code, row: int) -> int:
        first = self._tables[code.index].user.view[row]
        if first == NONE:
            return 0
        return len(self._tables[code.index].users[row]) if first == MANY else 1

    def nodes(self, code: Code, row: int, besides: Container[int] = ()) -> list[int]:
        """Packed nodes that use the row's result, but for readers of the global that it defines; without those of the
        sites `besides`, all of which must be sites of bags."""
        if code.kind == "directive":
            return []
        first = self._tables[code.index].user.view[row]
        if first == NONE:
            return []
        if first != MANY:
            return [first]
        users = self._tables[code.index].users[row]
        return list(users) if isinstance(users, tuple) else users.nodes(besides)

    def bags(self, code: Code, row: int) -> list[tuple[int, Bag]]:
        """(site, rows) of the calls that use a row's result, where they are many."""
        if code.kind == "directive" or self._tables[code.index].user.view[row] != MANY:
            return []
        users = self._tables[code.index].users[row]
        return [] if isinstance(users, tuple) else list(users.by_site.items())
