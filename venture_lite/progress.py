"""A quiet line that says how far a long inference is.

Inference tells a `Progress` where it is; `TerminalLine` shows it on a terminal's standard error, `Silent` nowhere. The
line appears only once a second of inference has passed, changes at most five times a second, and is erased at the
end, so a short run and a redirected one show nothing.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

PATIENCE_SECONDS = 1.0
REFRESH_SECONDS = 0.2


class Progress(Protocol):
    """What an inference program reports to. Tasks nest: each `begin` has its `end`, also after an error."""

    def begin(self, label: str, total: int | None) -> None:
        """A task starts; `total` is its number of steps where that is known."""

    def advance(self, done: int) -> None:
        """`done` steps of the innermost task are behind; called often, so it must cost little."""

    def end(self) -> None:
        """The innermost task is over."""


class Silent:
    """Progress that nobody watches: the default of the Python interface."""

    __slots__ = ()

    def begin(self, label: str, total: int | None) -> None:
        pass

    def advance(self, done: int) -> None:
        pass

    def end(self) -> None:
        pass


class _Task:
    """A task under way; `done` changes."""

    __slots__ = ("done", "label", "started", "total")

    def __init__(self, label: str, total: int | None, started: float) -> None:
        self.label = label
        self.total = total
        self.started = started
        self.done = 0


class TerminalLine:
    """One line of a terminal, rewritten in place.

    `begin` and `end` change the stack of tasks; the outermost task whose total is known is shown.
    """

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._tasks: list[_Task] = []
        self._next_update = 0.0
        self._width_shown = 0

    def begin(self, label: str, total: int | None) -> None:
        now = self._clock()
        if not self._tasks:
            self._next_update = now + PATIENCE_SECONDS
        self._tasks.append(_Task(label, total, now))

    def advance(self, done: int) -> None:
        self._tasks[-1].done = done
        if (now := self._clock()) >= self._next_update:
            self._next_update = now + REFRESH_SECONDS
            self._show(now)

    def end(self) -> None:
        self._tasks.pop()
        if not self._tasks:
            self._write("")
            self._width_shown = 0

    def _show(self, now: float) -> None:
        task = next((task for task in self._tasks if task.total), self._tasks[0])
        line = describe(task.label, task.done, task.total, now - task.started)
        self._write(line[: shutil.get_terminal_size().columns - 1])

    def _write(self, line: str) -> None:
        """Replace what is shown; a terminal that went away must not end the inference."""
        if not line and not self._width_shown:
            return
        blank = " " * max(0, self._width_shown - len(line))
        self._width_shown = len(line)
        try:
            self._stream.write(f"\r{line}{blank}" + ("" if line else "\r"))
            self._stream.flush()
        except (OSError, ValueError):
            return


def describe(label: str, done: int, total: int | None, seconds: float) -> str:
    """`label  1,200 of 10,000 (12%)  0:14, about 1:43 left`."""
    if not total:
        return f"{label}  {done:,}  {_clock_text(seconds)}"
    text = f"{label}  {done:,} of {total:,} ({100 * done // total}%)  {_clock_text(seconds)}"
    if 0 < done < total:
        text += f", about {_clock_text(seconds * (total - done) / done)} left"
    return text


def _clock_text(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def for_terminal(stream: TextIO | None = None, forced: bool = False) -> Progress:
    """A line on the stream (standard error) if a person sees it there, else silence."""
    stream = sys.stderr if stream is None else stream
    return TerminalLine(stream) if forced or stream.isatty() else Silent()
