"""What a transition knew of the state in which it left a block, for the next one to begin with."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from venture_lite.trace.journal import Journal

State = TypeVar("State")


class LastState(Generic[State]):
    """The last block left, and its state, as long as no change has been kept since. Mutable."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._block: Hashable = None
        self._version = -1
        self._state: State | None = None

    def leave(self, block: Hashable, state: State | None) -> None:
        """After a transition's changes were kept or taken back."""
        self._block, self._version = block, self._journal.version
        # inside of another's transition they may still be taken back, without a word
        self._state = None if self._journal.entries else state

    def of(self, block: Hashable) -> State | None:
        """Before a transition changes anything: the state of this block, if it is known."""
        stands = block == self._block and self._version == self._journal.version and not self._journal.entries
        return self._state if stands else None
