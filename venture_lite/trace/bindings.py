"""Which rows the names of `assume` stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from venture_lite.program.code import Code, Global
from venture_lite.trace.journal import Journal
from venture_lite.trace.table import NONE

Key = TypeVar("Key")
Made = TypeVar("Made")


class Derived(dict[Key, Made]):
    """What was derived from the text and the bindings, each thing made when it is first asked for by its key."""

    def __init__(self, make: Callable[[Key], Made]) -> None:
        self._make = make

    def __missing__(self, key: Key) -> Made:
        made = self[key] = self._make(key)
        return made


class Bindings:
    """Binds globals to the rows of their directives, and back, through the journal."""

    def __init__(self, journal: Journal, derived: list[Any]) -> None:
        self.journal = journal
        # dictionaries of what was derived from the text and the bindings
        self._derived = derived
        # (Code index, row) -> the name that stands for its result
        self.by_row: dict[tuple[int, int], Global] = {}

    def bind(self, target: Global, code: Code, row: int) -> None:
        """Let a name stand for the result of a directive's row."""
        self._bind(target, code, row)
        self.journal.note(self._unbind, target)

    def unbind(self, target: Global) -> None:
        assert target.code is not None
        self.journal.note(self._bind, target, target.code, target.row)
        self._unbind(target)

    def forget(self, target: Global) -> None:
        """A name whose Code is taken out for good."""
        assert target.code is not None
        del self.by_row[target.code.index, target.row]

    def _bind(self, target: Global, code: Code, row: int) -> None:
        target.code, target.row = code, row
        self.by_row[code.index, row] = target
        self._forget_derived(target)

    def _forget_derived(self, target: Global) -> None:
        """Text that read the name before it stood here is to look again."""
        if target.awaited:
            for table in self._derived:
                table.clear()

    def _unbind(self, target: Global) -> None:
        assert target.code is not None
        del self.by_row[target.code.index, target.row]
        target.code, target.row = None, NONE
        self._forget_derived(target)
