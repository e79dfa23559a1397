"""Signals that stop what runs: Ctrl-C, and in a command also the wish of the system that it end.

While a directive runs, the session only notes them, and reads the note where the trace can stop
(`session/interruption.py`). A command listens through a `Stop` at all other times: it remembers which signal came
first, which becomes the exit status, and can hold signals back while draws are written.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

Handler = Callable[[int, Any], Any]

# what a system sends to end a process, or when its terminal goes away (not on Windows)
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
STOPPING = (signal.SIGINT, *ENDING)
# the signals of one who is patient: one to stop, and one more that came by another way
PATIENT_COUNT = 2


class Stop:
    """What hears the signals for a command. Mutable: it remembers the first signal.

    The first signal raises KeyboardInterrupt where it comes, unless something else was asked for by `instead` or
    `held`. The second does nothing, for it would end what the first has begun, such as the writing of draws; a person
    who insists is heard from the third on.
    """

    def __init__(self) -> None:
        # the first signal that came since `forget`, and how many have come
        self.number: int | None = None
        self.count = 0
        self._instead: Callable[[], object] | None = None

    def __call__(self, number: int, frame: Any) -> None:
        self.note(number)
        if self._instead is not None or self.count != PATIENT_COUNT:
            self.deliver()

    def note(self, number: int) -> None:
        """A signal has come, and somebody sees to it."""
        self.count += 1
        if self.number is None:
            self.number = number

    def deliver(self) -> None:
        """Do what a signal does that was noted before."""
        if self._instead is None:
            raise KeyboardInterrupt
        self._instead()

    def forget(self) -> None:
        """What the signal stopped has stopped, and the command goes on."""
        self.number, self.count = None, 0

    @property
    def is_to_end(self) -> bool:
        """Whether the command is to end, and not only what it was doing."""
        return self.number in ENDING

    @contextlib.contextmanager
    def listening(self) -> Iterator[Stop]:
        """Hear every signal that is not ignored, as one is under nohup."""
        before = {number: signal.getsignal(number) for number in STOPPING}
        heard = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]
        for number in heard:
            signal.signal(number, self)
        try:
            yield self
        finally:
            for number in heard:
                signal.signal(number, before[number])

    @contextlib.contextmanager
    def instead(self, action: Callable[[], object]) -> Iterator[None]:
        """Within the block a signal calls the action, and raises nothing."""
        before, self._instead = self._instead, action
        try:
            yield
        finally:
            self._instead = before

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Within the block nothing is interrupted; a signal that came raises KeyboardInterrupt at its end."""
        before = self.count
        with self.instead(lambda: None):
            yield
        if self.count > before:
            self.deliver()


@contextlib.contextmanager
def blocked() -> Iterator[None]:
    """Within the block the signals wait, here and in processes that start; those start with all of them waiting."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def unblock() -> None:
    """Let the signals come that waited."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)


def stopping() -> dict[int, Handler]:
    """The signals that stop a directive, with who hears them now: Ctrl-C, if it is not ignored, and a command's."""
    found = {number: signal.getsignal(number) for number in STOPPING}
    return {
        number: handler
        for number, handler in found.items()
        if callable(handler) and (number == signal.SIGINT or isinstance(handler, Stop))
    }
