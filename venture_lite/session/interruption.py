"""Ctrl-C while a directive runs: noted at once, acted on where the trace can stop, and never lost.

A command's `Stop` (`inference/signals.py`) makes other signals one with Ctrl-C: they are noted as well.

A signal's handler runs between any two instructions of Python; raised there, an exception would leave tables half
changed. So while a directive runs the handler only takes a note, which is read between transitions and every few
thousand steps of an evaluation. What was noted too late for that is delivered when the directive is done.

The one place where nobody reads the note is a function that a user registered. A second Ctrl-C is raised inside it,
where the function changes nothing; the journal takes back what was begun.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import numpy as np

from venture_lite.inference.signals import Handler, Stop, stopping
from venture_lite.procedures.registered.results import called, changes_nothing, values_of

CALLERS = (called.__code__, values_of.__code__)
"""What calls the functions of users, the second by way of a generator; `role` is a local variable of both."""


class Interruption:
    """What is known of Ctrl-C in one session. Mutable: the handler, which runs in the main thread, takes its note."""

    def __init__(self) -> None:
        self.noted = False
        # the signal that was noted last
        self._number: int = signal.SIGINT
        # by signal, what is called where no directive runs; empty outside of `deferred`
        self._outside: dict[int, Handler] = {}

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Take notes instead of raising. Nothing can be raised between the entry and the exit but by who reads the
        note; `delivered` raises what nobody read."""
        outside = stopping() if threading.current_thread() is threading.main_thread() else {}
        if not outside or self._note in outside.values():
            # another thread gets no signals; and a registered procedure may try to use the session that calls it
            yield
            return
        self._outside = outside
        try:
            for number in outside:
                signal.signal(number, self._note)
            yield
        except KeyboardInterrupt:
            self.noted = False
            raise
        finally:
            for number, handler in outside.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def delivered(self) -> Iterator[None]:
        """At the end, hand what was noted and not read to the handler outside of the session, which most often raises
        KeyboardInterrupt; what was drawn until an error goes along as `draws`, and as `unfinished`."""
        try:
            yield
        except Exception as error:
            self._deliver(error)
            raise
        self._deliver(None)

    def _deliver(self, error: Exception | None) -> None:
        if not self.noted:
            return
        self.noted = False
        outside = self._outside[self._number]
        try:
            if isinstance(outside, Stop):
                outside.deliver()
            else:
                outside(self._number, None)
        except KeyboardInterrupt as interrupt:
            interrupt.draws = getattr(error, "draws", None)  # type: ignore[attr-defined]
            interrupt.unfinished = getattr(error, "unfinished", None)  # type: ignore[attr-defined]
            raise

    def _note(self, number: int, frame: FrameType | None) -> None:
        outside = self._outside[number]
        if isinstance(outside, Stop):
            outside.note(number)
        self._number = number
        if self.noted and _is_in_registered_function(frame):
            raise KeyboardInterrupt
        self.noted = True


def _is_in_registered_function(frame: FrameType | None) -> bool:
    """Whether the innermost call of a user's function, if there is one, can be broken off: it changes nothing."""
    inner: FrameType | None = None
    while frame is not None:
        if frame.f_code in CALLERS:
            # NumPy's settings are put back by code of its own
            own = inner is not None and inner.f_globals is not np.errstate.__init__.__globals__
            return own and changes_nothing(frame.f_locals["role"])
        inner, frame = frame, frame.f_back
    return False
