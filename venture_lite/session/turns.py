"""Chains that are more than the processors take turns by the clock.

Left to the system, four processes on two processors change places every few milliseconds, each time with caches to fill
again, and take up to a quarter more time of the processors than two at once. So each runs for a quarter of a second,
long beside the caches and short beside what the last chain then runs alone, and lets the next ones run. Nobody hands
the turns out: every process reads from the same clock and from a table of who is at work whether it is its turn, and
asks where it asks whether to stop. What a process does within a transition nobody stops: longer ones overlap, as
without turns. So does everything in the first quarter of a second, that a Ctrl-C which comes soon finds draws of all.
"""

from __future__ import annotations

import mmap
import os
import time

SECONDS = 0.25
"""How long a turn takes."""
LOOK_SECONDS = 0.05
"""How often the table is read: chains come to their end within a turn."""


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ChainTurns:
    """Whose turn it is among the chains of one run. Mutable; processes that are forked share the table."""

    def __init__(self, chains: int) -> None:
        self._room = processors()
        # by index, whether a chain is at work
        self._at_work = mmap.mmap(-1, max(chains, 1))
        # when this process looks again
        self._look_at = time.monotonic() + SECONDS

    def begin(self, index: int) -> None:
        self._at_work[index] = True

    def end(self, index: int) -> None:
        """The chain works no more, or is lost."""
        self._at_work[index] = False

    def seconds_until(self, index: int) -> float:
        """How long it is until a chain's turn, if no other comes to its end before; 0 while it is."""
        now = time.monotonic()
        if now < self._look_at:
            return 0.0
        at_work = [each for each, works in enumerate(self._at_work[:]) if works]
        turn = int(now / SECONDS)
        rest = (turn + 1) * SECONDS - now
        if index in at_work and (at_work.index(index) - turn * self._room) % len(at_work) >= self._room:
            return rest
        self._look_at = now + min(rest, LOOK_SECONDS)
        return 0.0
