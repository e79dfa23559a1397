"""What the transitions of a kernel came to, and who is told of them while they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from venture_lite.draws.draws import KernelStatistics
from venture_lite.interpreter.failures import failure_details

if TYPE_CHECKING:
    from venture_lite.interpreter.kernel import Kernel
    from venture_lite.interpreter.regenerate import Regenerator


class Progress(Protocol):
    """What an inference program reports to. Tasks nest: each `begin` has its `end`, also after an error."""

    def begin(self, label: str, total: int | None) -> None:
        """A task starts; `total` is its number of steps where that is known."""

    def advance(self, done: int) -> None:
        """`done` steps of the innermost task are behind; called often, so it must cost little."""

    def end(self) -> None:
        """The innermost task is over."""

    def remarks(self, remark: Callable[[], str]) -> None:
        """What else there is to say of the run under way; asked where its progress is shown."""

    def of_chain(self, chain: int, show: Callable[[Any], None] | None = None) -> Progress:
        """The progress of one chain of several, shown where this one is, or by another function."""

    def show(self, snapshot: Any) -> None:
        """Show what another process told of its progress."""


@dataclass(slots=True, eq=False)
class Tally:
    """What the transitions of one kernel of a program came to, added up over its runs. Mutable."""

    kernel: Kernel
    # as the program has it
    text: str
    progress: Progress
    # says something once, with the kernel's place
    warn: Callable[[str], None]
    # of the model whose choices move
    regenerator: Regenerator
    transitions: int = 0
    # those of which the interpreter made a part, row by row; what regenerations there were before the next one
    by_rows: int = 0
    regenerations: int = 0
    accepted: int = 0
    # transitions since the last one that was accepted, and the most that there were between two
    refusal: int = 0
    longest_refusal: int = 0
    seconds: float = 0.0
    # calls of procedures that had no value, by name and reason
    failures: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def task(self, total: int) -> Iterator[None]:
        """`with tally.task(times)`: progress is told how many there are to come, and at the end that it is over."""
        self.progress.begin(self.text, total)
        self.regenerations = self.regenerator.regenerations
        try:
            yield
        finally:
            self.progress.end()

    def count(self, accepted: bool) -> None:
        """One more transition."""
        self.transitions += 1
        if self.regenerations != self.regenerator.regenerations:
            self.regenerations = self.regenerator.regenerations
            self.by_rows += 1
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
            details={**self.kernel.details(), **failure_details(self.failures)},
            refused=max(self.longest_refusal, self.refusal),
            evidence=getattr(self.kernel, "log_evidences", ()),
            is_approximate=self.transitions > 0 and getattr(self.kernel, "is_approximate", False),
        )
