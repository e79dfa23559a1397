"""Procedures as values of a running trace: closures, memo tables and makers, with what makers' statistics hold. Each
procedure is equal to itself alone."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from venture_lite.procedures.exchangeable.counted import Counted
from venture_lite.procedures.record import Maker, MakerState
from venture_lite.program.code import Code
from venture_lite.trace.journal import Journal
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
        # rows that had no user left at some time and stayed (`interpreter/constants.py`), those of longest ago
        # first; they may have users again
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


class Statistics:
    """The exchangeable procedures of a trace: what their statistics hold, each change with its inverse in the journal.

    Mutates the states of makers and the register of the makers that are alive.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        # every exchangeable procedure alive, by the node of its maker
        self.makers: dict[int, Exchangeable] = {}
        # while many rows are loaded: the procedures whose statistics the journal can put back
        self.loading: set[Exchangeable] | None = None
        # (procedure, value, inputs) of each application that enters, while somebody keeps them
        self.entering: list[tuple[Exchangeable, Any, tuple[Any, ...]]] | None = None
        # changes since the statistics were last recomputed from the applications
        self.updates = 0

    def incorporate(self, procedure: Exchangeable, value: Any, inputs: tuple[Any, ...]) -> None:
        if self.entering is not None:
            self.entering.append((procedure, value, inputs))
        if self.loading is not None:
            # a long load is taken back as a whole or not at all: one copy of the state before it says it all
            if procedure not in self.loading:
                self.loading.add(procedure)
                self.journal.note(Exchangeable.put_state, procedure, copy.deepcopy(procedure.state))
            procedure.state.add(value, *inputs)
        else:
            self.journal.note(Exchangeable.restore, procedure, procedure.state.add(value, *inputs))
        self.updates += 1

    def unincorporate(self, procedure: Exchangeable, value: Any, inputs: tuple[Any, ...]) -> None:
        token = procedure.state.remove(value, *inputs)
        self.updates += 1
        self.journal.note(Exchangeable.restore, procedure, token)

    def change_counts(self, procedure: Exchangeable, changes: Mapping[int, int]) -> None:
        """Let a procedure whose statistics are counts have so many more or fewer draws of some values."""
        state = procedure.state
        assert isinstance(state, Counted)
        for value, change in changes.items():
            self.journal.note(Exchangeable.restore, procedure, state.change(value, change))
        self.updates += sum(map(abs, changes.values()))

    def set_arguments(self, procedure: Exchangeable, arguments: tuple[Any, ...]) -> None:
        self.journal.note(Exchangeable.set_arguments, procedure, procedure.state.arguments)
        procedure.state.set_arguments(arguments)

    def enter(self, procedure: Exchangeable) -> None:
        self.journal.set_item(self.makers, procedure.node, procedure)

    def drop(self, procedure: Exchangeable) -> None:
        self.journal.del_item(self.makers, procedure.node)
