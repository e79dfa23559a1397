"""Procedures as values of a running trace: closures, memo tables and makers. Each is equal to itself alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from venture_lite.procedures.record import Maker, MakerState
from venture_lite.program.code import Code
from venture_lite.trace.keys import KeyIndex


@dataclass(frozen=True, slots=True)
class Closure:
    """A lambda and the row in which it was made: two readings of one closure are equal."""

    code: Code
    # row of `code.parent`
    row: int

    def __repr__(self) -> str:
        return f"<procedure {self.code.name}>"


class Memo:
    """A memoized procedure: from the key of its arguments to the row that holds the value."""

    __slots__ = ("entries", "node", "procedure", "unused")

    def __init__(self, procedure: Closure, key_at: Callable[[int], Hashable], node: int) -> None:
        self.procedure = procedure
        # the node of the `mem` that made it
        self.node = node
        # key -> row of the procedure's Code, whose arguments are the key
        self.entries = KeyIndex(key_at)
        # rows that had no user left at some time and stayed (`constants.py`), those of longest ago first; they may have
        # users again
        self.unused: dict[int, None] = {}

    def __repr__(self) -> str:
        return "<memoized procedure>"


@dataclass(slots=True, eq=False, repr=False)
class Exchangeable:
    """What a maker returns: an exchangeable procedure with the statistics of its applications. Mutable."""

    record: Maker
    state: MakerState
    # the maker's own node
    node: int

    def put_state(self, state: MakerState) -> None:
        self.state = state

    def restore(self, token: Any) -> None:
        self.state.restore(token)

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        self.state.set_arguments(arguments)

    def __repr__(self) -> str:
        return f"<procedure from {self.record.name}>"
