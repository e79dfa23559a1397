"""How far a long inference is: a line for each chain on a person's terminal.

Inference tells a `Progress` where it is. A `Tracker` makes a `Snapshot` of that five times a second at most, and only
once a second of inference has passed, so that a short run shows nothing; `Display` draws the snapshots of all chains on
a terminal's standard error and erases them at the end. `Silent` is for output that nobody watches.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from venture_lite.errors import escaped
from venture_lite.interpreter.tally import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Lines

PATIENCE_SECONDS = 1.0
REFRESH_SECONDS = 0.2
# `^C`, pressed four times
ROOM_FOR_KEYS = 8


Show = Callable[["Snapshot | None"], None]


class Silent:
    """Progress that nobody watches."""

    __slots__ = ()

    def begin(self, label: str, total: int | None) -> None:
        pass

    def advance(self, done: int) -> None:
        pass

    def end(self) -> None:
        pass

    def remarks(self, remark: Callable[[], str]) -> None:
        pass

    def of_chain(self, chain: int, show: Show | None = None) -> Silent:
        return self

    def show(self, snapshot: Snapshot | None) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A task under way."""

    label: str
    done: int
    total: int | None
    seconds: float
    # what else there is to say
    remark: str = ""

    def told(self) -> str:
        """`1,200 of 10,000 (12%)  85/s, about 1:43 left  3 divergences`."""
        return "  ".join(filter(None, (self._course(), self.remark)))

    def _course(self) -> str:
        rate = f"{_rate(self.done / self.seconds)}/s" if self.done and self.seconds > 0 else ""
        if not self.total:
            return "  ".join(filter(None, (f"{self.done:,}", rate, _clock_text(self.seconds))))
        text = f"{self.done:,} of {self.total:,} ({100 * self.done // self.total}%)"
        if not 0 < self.done < self.total:
            return f"{text}  {_clock_text(self.seconds)}"
        left = self.seconds * (self.total - self.done) / self.done
        return f"{text}  {rate}, about {_clock_text(left)} left"


def _rate(steps_a_second: float) -> str:
    return f"{steps_a_second:,.0f}" if steps_a_second >= 10 else f"{steps_a_second:.2g}"


def _clock_text(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@dataclass(slots=True)
class _Task:
    """A task under way; `done` changes."""

    label: str
    total: int | None
    started: float
    done: int = 0


class Tracker:
    """Keeps the stack of tasks, and hands snapshots of the outermost one whose total is known to `show`; None at the
    end. Where chains are shown apart, `show_chain` takes the chain's number as well."""

    def __init__(
        self,
        show: Show,
        clock: Callable[[], float] = time.monotonic,
        show_chain: Callable[[int, Snapshot | None], None] | None = None,
    ) -> None:
        self.show = show
        self._show_chain = show_chain
        self._clock = clock
        self._remark: Callable[[], str] = lambda: ""
        self._tasks: list[_Task] = []
        self._next_update = 0.0
        self._shown = False

    def begin(self, label: str, total: int | None) -> None:
        now = self._clock()
        if not self._tasks:
            self._next_update = now + PATIENCE_SECONDS
        self._tasks.append(_Task(label, total, now))

    def advance(self, done: int) -> None:
        self._tasks[-1].done = done
        if (now := self._clock()) >= self._next_update:
            self._next_update = now + REFRESH_SECONDS
            task = next((task for task in self._tasks if task.total), self._tasks[0])
            self._shown = True
            self.show(Snapshot(task.label, task.done, task.total, now - task.started, self._remark()))

    def end(self) -> None:
        self._tasks.pop()
        if not self._tasks and self._shown:
            self._shown = False
            self.show(None)

    def remarks(self, remark: Callable[[], str]) -> None:
        self._remark = remark

    def of_chain(self, chain: int, show: Show | None = None) -> Tracker:
        if show is None:
            show = self.show if self._show_chain is None else partial(self._show_chain, chain)
        return Tracker(show, self._clock, self._show_chain)


class Display:
    """A line for each chain at the foot of a terminal, redrawn in place. Mutable; a terminal that goes away must not
    end the inference."""

    def __init__(self, stream: TextIO, chains: int = 1) -> None:
        self._stream = stream
        self._chains = chains
        self._latest: dict[int, Snapshot] = {}
        self._bars: Lines | None = None
        # the row of each chain in what is drawn
        self._rows: dict[int, Any] = {}

    def update(self, chain: int, snapshot: Snapshot | None) -> None:
        """Where a chain is; None where it is done with an inference."""
        self._chains = max(self._chains, chain + 1)
        if snapshot is None:
            self._latest.pop(chain, None)
        else:
            self._latest[chain] = snapshot
        if not self._latest:
            self.clear()
        elif snapshot is not None:
            with contextlib.suppress(OSError, ValueError):
                self._draw()

    def clear(self) -> None:
        """Erase what is drawn, so that something else can be written; the next update draws it again."""
        bars, self._bars = self._bars, None
        self._rows.clear()
        if bars is not None:
            with contextlib.suppress(OSError, ValueError):
                bars.stop()

    def _draw(self) -> None:
        bars = self._bars or self._start()
        for chain in sorted(self._latest):
            snapshot = self._latest[chain]
            if chain not in self._rows:
                self._rows[chain] = bars.add_task("", told="")
            name = escaped(" ".join(snapshot.label.split()))
            described = name if self._chains == 1 else f"chain {chain}: {name}"
            row = self._rows[chain]
            bars.update(row, description=described, completed=snapshot.done, total=snapshot.total, told=snapshot.told())
        bars.refresh()

    def _start(self) -> Lines:
        from rich.console import Console, ConsoleDimensions
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Lines
        from rich.table import Column

        class Narrower(Console):
            """Leaves room for what a terminal shows of Ctrl-C: on a full line that would begin a new one, and the line
            that is erased would be that."""

            @property  # type: ignore[misc]
            def size(self) -> ConsoleDimensions:
                width, height = super().size
                return ConsoleDimensions(max(1, width - ROOM_FOR_KEYS), height)

        console = Narrower(file=self._stream, force_terminal=True, highlight=False)

        def text(field: str, ratio: int | None = None) -> TextColumn:
            column = Column(no_wrap=True, overflow="ellipsis", ratio=ratio)
            return TextColumn(field, markup=False, table_column=column)

        columns = (
            text("{task.description}", ratio=2),
            BarColumn(bar_width=None, table_column=Column(ratio=1)),
            text("{task.fields[told]}"),
        )
        self._bars = Lines(
            *columns, console=console, auto_refresh=False, transient=True, expand=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._bars.start()
        # a process that is killed must not leave the terminal without a cursor
        console.show_cursor(True)
        return self._bars


def is_watched(stream: TextIO | None) -> bool:
    """Whether a person sees the stream on a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def for_terminal(stream: TextIO | None = None, forced: bool = False) -> Progress:
    """A line on the stream (standard error) if a person sees it there, else silence."""
    stream = sys.stderr if stream is None else stream
    if not (forced or is_watched(stream)):
        return Silent()
    display = Display(stream)
    return Tracker(partial(display.update, 0), show_chain=display.update)


class Bars:
    """A bar for each chain below a notebook's cell, which go at the end. Mutable."""

    def __init__(self) -> None:
        self._latest: dict[int, Snapshot] = {}
        self._shown: Any = None

    def update(self, chain: int, snapshot: Snapshot | None) -> None:
        """Where a chain is; None where it is done with an inference."""
        import IPython.display

        notebook: Any = IPython.display
        if snapshot is None:
            self._latest.pop(chain, None)
        else:
            self._latest[chain] = snapshot
        bars = notebook.HTML("".join(self._bar(number, self._latest[number]) for number in sorted(self._latest)))
        if self._shown is None:
            self._shown = notebook.display(bars, display_id=True)
        else:
            self._shown.update(bars)

    def _bar(self, chain: int, snapshot: Snapshot) -> str:
        name = f"chain {chain}: " if len(self._latest) > 1 else ""
        from html import escape

        text = escape(f"{name}{' '.join(snapshot.label.split())}  {snapshot.told()}")
        done = f' value="{snapshot.done}" max="{snapshot.total}"' if snapshot.total else ""
        return f"<div><progress{done}></progress> <code>{text}</code></div>"


def for_notebook() -> Progress:
    """Bars below the cell."""
    bars = Bars()
    return Tracker(partial(bars.update, 0), show_chain=bars.update)


def for_person() -> Progress:
    """Bars in a notebook, lines on a person's terminal, else silence."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return for_notebook() if hasattr(shell, "kernel") else for_terminal()
