"""What is made ready once and kept with a trace: modes, scales, bounds and expansions for blocks, plans for shapes.

A kept thing is found by its key, usually the block and what it was made from, and it is valid while the stamp that it
was kept with is the present one. What only centres or scales has the `edition` for a stamp, which changes with the
program and its data; what must be exact for the target looks itself, at every use, what it read. A thing in the middle
of whose change an error came is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

Owner = TypeVar("Owner")
Made = TypeVar("Made")
Ready = TypeVar("Ready", bound="SetUp")

ANYWAY = 1 << 20
"""Bytes that set-ups may take where the data take less."""
SMALL = 1 << 16
"""Bytes of a set-up that nobody gains by letting it go: a mode, a scale in 90 dimensions."""


class SetUp(Protocol):
    def bytes_used(self) -> int:
        """Memory that goes when the set-up goes: what it shares with the trace aside."""


class InCommon:
    """What the traces of one session have in common: the one thing of each kind, made where it is asked for first."""

    def __init__(self) -> None:
        self._made: dict[Callable[[], Any], Any] = {}

    def of(self, kind: Callable[[], Made]) -> Made:
        if kind not in self._made:
            self._made[kind] = kind()
        found: Made = self._made[kind]
        return found


class SetUps:
    """What is kept with one trace, what was used last at the end. Set-ups together take no more bytes than the trace's
    tables; the oldest go first. The one of many rows that was used last stays, whatever it takes."""

    def __init__(self, bytes_of_data: Callable[[], int]) -> None:
        # changes with the program and its data
        self.edition = 0
        self._bytes_of_data = bytes_of_data
        # key -> (stamp, set-up)
        self._kept: dict[Hashable, tuple[Hashable, Any]] = {}
        self._lasting: dict[Callable[[Any], Any], Any] = {}
        self._learned: dict[Callable[[Any], Any], Any] = {}

    def find(self, key: Hashable, stamp: Hashable = None) -> Any:
        """The set-up of this key, if it was kept with this stamp; else None."""
        entry = self._kept.pop(key, None)
        if entry is None:
            return None
        self._kept[key] = entry
        return entry[1] if entry[0] == stamp else None

    def keep(self, key: Hashable, made: SetUp, stamp: Hashable = None) -> None:
        self._kept.pop(key, None)
        self._kept[key] = stamp, made
        self.trim()

    def had(
        self,
        key: Hashable,
        make: Callable[[], Ready],
        is_good: Callable[[Ready], bool] = lambda made: True,
        stamp: Hashable = None,
    ) -> tuple[Ready, bool]:
        """The set-up of this key, or one that is made and kept now where there is no good one; whether it was kept."""
        found = self.find(key, stamp)
        if found is not None and is_good(found):
            return found, True
        made = make()
        self.keep(key, made, stamp)
        return made, False

    def lasting(self, kind: Callable[[Owner], Made], owner: Owner) -> Made:
        """The one thing of a kind, made from its owner where it is asked for first; it stays as long as the trace."""
        if kind not in self._lasting:
            self._lasting[kind] = kind(owner)
        found: Made = self._lasting[kind]
        return found

    @contextmanager
    def changing(self, key: Hashable) -> Iterator[None]:
        """Within the block the set-up of this key changes: an error may leave it in the middle, and drops it."""
        try:
            yield
        except BaseException:
            self._kept.pop(key, None)
            raise

    def extended(self) -> None:
        """A directive was added."""
        self.edition += 1

    def clear(self) -> None:
        """What was there has gone, or is another: choices that come may stand where others stood."""
        self.edition += 1
        self._kept.clear()

    def learned(self, kind: Callable[[Owner], Made], owner: Owner) -> Made:
        """`lasting`, but for `let_go`."""
        if kind not in self._learned:
            self._learned[kind] = kind(owner)
        found: Made = self._learned[kind]
        return found

    def let_go(self) -> None:
        """Keep no set-up, and nothing that was learned; what lasts stays."""
        self._kept.clear()
        self._learned.clear()

    def trim(self) -> None:
        """Keep within the limit: the oldest of what is kept by rows goes first, then the oldest modes and scales."""
        sizes = {key: made.bytes_used() for key, (_, made) in self._kept.items()}
        used = sum(sizes.values())
        if used <= ANYWAY or used <= (limit := max(self._bytes_of_data(), ANYWAY)):
            return
        large = [key for key, size in sizes.items() if size > SMALL]
        small = [key for key, size in sizes.items() if size <= SMALL]
        self._let_go(large, sizes, used - limit)
        self._let_go(small, sizes, sum(sizes[key] for key in small) - limit)

    def _let_go(self, keys: list[Hashable], sizes: dict[Hashable, int], excess: int) -> None:
        """Of these, the oldest that together take as many bytes; the one used last stays."""
        for key in keys[:-1]:
            if excess <= 0:
                return
            del self._kept[key]
            excess -= sizes[key]

    def bytes_used(self) -> int:
        return sum(made.bytes_used() for _, made in self._kept.values())

    def names(self) -> list[Hashable]:
        """The oldest first."""
        return list(self._kept)
