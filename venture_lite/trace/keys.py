"""From keys to small integers: an open-addressing table that does not hold the keys themselves.

A memo table finds the row that holds the value of a call, a scope the place of a block. In both the keys stand
elsewhere already (in the arguments of the row, in the list of blocks), so an entry costs some ten bytes where a
dictionary would cost a hundred. The order of the slots is visible to nobody, so that taking an insertion back need not
restore it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from venture_lite.trace.table import memory
from venture_lite.values import key_of

EMPTY = -1
DELETED = -2


class KeyIndex:
    """Distinct keys, each with an integer of 0 or more from which `key_at` gives the key back."""

    __slots__ = ("_mask", "_slots", "_used", "key_at")

    def __init__(self, key_at: Callable[[int], Hashable], entries: Iterable[int] = ()) -> None:
        self.key_at = key_at
        # slots that are or were in use
        self._used = 0
        self._mask = 7
        self._slots = memory(np.full(8, EMPTY, np.int32))
        for entry in entries:
            self.add(key_at(entry), entry)

    def __reduce__(self) -> Any:
        # procedures among the keys are others in another process: who sends an index sends its entries
        return KeyIndex, (self.key_at,)

    def entries(self) -> list[int]:
        """Every integer, in no order."""
        return [entry for entry in self._slots if entry >= 0]

    def __contains__(self, key: Hashable) -> bool:
        return self._find(key) >= 0

    def items(self) -> list[tuple[Hashable, int]]:
        """Every key with its integer, the smallest integer first."""
        return [(self.key_at(entry), entry) for entry in sorted(self.entries())]

    def get(self, key: Hashable) -> int | None:
        """The key's integer, or None."""
        at = self._find(key)
        return self._slots[at] if at >= 0 else None

    def __getitem__(self, key: Hashable) -> int:
        return self._slots[self._place(key)]

    def add(self, key: Hashable, entry: int) -> None:
        """Enter a key that is not there."""
        if 3 * (self._used + 1) > 2 * (self._mask + 1):
            self._rebuild()
        slots, mask = self._slots, self._mask
        at = _spread(hash(key)) & mask
        while slots[at] >= 0:
            at = 5 * at + 1 & mask
        if slots[at] == EMPTY:
            self._used += 1
        slots[at] = entry

    def remove(self, key: Hashable) -> None:
        """Take out a key that is there; `key_at` must still give it back."""
        self._slots[self._place(key)] = DELETED

    def move(self, key: Hashable, entry: int) -> None:
        """Give a key that is there another integer."""
        self._slots[self._place(key)] = entry

    def _place(self, key: Hashable) -> int:
        at = self._find(key)
        if at < 0:
            raise KeyError(key)
        return at

    def _find(self, key: Hashable) -> int:
        slots, mask, key_at = self._slots, self._mask, self.key_at
        at = _spread(hash(key)) & mask
        while (entry := slots[at]) != EMPTY:
            if entry >= 0 and key_at(entry) == key:
                return at
            at = 5 * at + 1 & mask
        return -1

    def _rebuild(self) -> None:
        """Twice the room where it is needed; deleted slots are dropped."""
        entries = self.entries()
        size = self._mask + 1
        while 3 * (len(entries) + 1) > size:
            size *= 2
        self._mask = size - 1
        self._slots = memory(np.full(size, EMPTY, np.int32))
        self._used = 0
        for entry in entries:
            self.add(self.key_at(entry), entry)


def _spread(value: int) -> int:
    """Mixes high bits into the low ones: integers hash to themselves, and may all be multiples of a power of two."""
    return value ^ value >> 12 ^ value >> 25


def memo_key(values: tuple[Any, ...]) -> Hashable:
    """The key of a memoized call with these arguments."""
    return key_of(values[0]) if len(values) == 1 else tuple(map(key_of, values))
