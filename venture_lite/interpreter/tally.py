"""What the transitions of a kernel came to, and who is told of them while they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from venture_lite.draws.draws import KernelStatistics

if TYPE_CHECKING:
    from venture_lite.interpreter.kernel import Kernel


class Progress(Protocol):
    """What an inference program reports to. Tasks nest: each `begin` has its `end`, also after an error."""

    def begin(self, label: str, total: int | None) -> None:
        """A task starts; `total` is its number of steps where that is known."""

    def advance(self, done: int) -> None:
        """`done` steps of the innermost task are behind; called often, so it must cost little."""

    def end(self) -> None:
        """The innermost task is over."""


class Tally:
    """What the transitions of one kernel of a program came to, added up over its runs. Mutable."""

    __slots__ = (
        "accepted",
        "kernel",
        "longest_refusal",
        "progress",
        "refusal",
        "seconds",
        "text",
        "transitions",
        "warn",
    )

    def __init__(self, kernel: Kernel, text: str, progress: Progress, warn: Callable[[str], None]) -> None:
        self.kernel = kernel
        # as the program has it
        self.text = text
        self.progress = progress
        # says something once, with the kernel's place
        self.warn = warn
        self.transitions = 0
        self.accepted = 0
        # transitions since the last one that was accepted, and the most that there were between two
        self.refusal = 0
        self.longest_refusal = 0
        self.seconds = 0.0

    def task(self, total: int) -> Tally:
        """`with tally.task(times)`: progress is told how many there are to come, and at the end that it is over."""
        self.progress.begin(self.text, total)
        return self

    def __enter__(self) -> None:
        """The task has begun."""

    def __exit__(self, *_: object) -> None:
        self.progress.end()

    def count(self, accepted: bool) -> None:
        """One more transition."""
        self.transitions += 1
        if accepted:
            self.accepted += 1
            if self.refusal > self.longest_refusal:
                self.longest_refusal = self.refusal
            self.refusal = 0
        else:
            self.refusal += 1

    def statistics(self) -> KernelStatistics:
        return KernelStatistics(
            self.text,
            self.transitions,
            self.accepted,
            self.kernel.rows,
            self.seconds,
            details=self.kernel.details(),
            refused=max(self.longest_refusal, self.refusal),
        )
