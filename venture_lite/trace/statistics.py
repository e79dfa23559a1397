"""Exchangeable procedures of a trace: what their statistics hold, each change with its inverse in the journal."""

from __future__ import annotations

import copy
from typing import Any

from venture_lite.trace.journal import Journal
from venture_lite.trace.runtime import Exchangeable


class Statistics:
    """Mutates the states of makers and the register of the makers that are alive."""

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

    def set_arguments(self, procedure: Exchangeable, arguments: tuple[Any, ...]) -> None:
        self.journal.note(Exchangeable.set_arguments, procedure, procedure.state.arguments)
        procedure.state.set_arguments(arguments)

    def enter(self, procedure: Exchangeable) -> None:
        self.journal.set_item(self.makers, procedure.node, procedure)

    def drop(self, procedure: Exchangeable) -> None:
        self.journal.del_item(self.makers, procedure.node)
