"""A process that makes pictures: it imports what they need while the program runs, which takes as long as a picture.

Where it cannot be, or is gone, pictures are made where they are asked for.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

from venture_lite.errors import VentureError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from venture_lite.draws.draws import Draws


class Painter:
    """Makes pictures one after the other. To be ended."""

    def __init__(self) -> None:
        """Begins to get ready, where there is a processor to spare."""
        self._connection: Connection | None = None
        # what it is at work on
        self._begun: Draws | None = None
        if not hasattr(os, "fork") or sys.platform == "darwin" or len(os.sched_getaffinity(0)) < 2:
            return
        import multiprocessing

        context = multiprocessing.get_context("fork")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_paint, args=(other, self._connection), name="pictures", daemon=True)
        self._process.start()
        other.close()

    def begin(self, draws: Draws) -> None:
        """Make the picture of draws while something else is done here: it will be asked for next."""
        if self._connection is not None and self._begun is None:
            with contextlib.suppress(OSError):
                self._connection.send(draws)
                self._begun = draws

    def png(self, draws: Draws) -> bytes:
        """The draws' picture. Raises VentureError where matplotlib is not installed."""
        try:
            if self._connection is not None:
                if self._begun is None or not self._begun.holds(draws):
                    self._take()
                    self.begin(draws)
                made = self._take()
                if isinstance(made, bytes):
                    return made
        except (EOFError, OSError):
            # it was ended; then the picture is made here
            self.end()
        from venture_lite.draws import pictures

        return pictures.png(draws)

    def _take(self) -> bytes | None:
        """What was begun, if it is made: errors are met again where the picture is made here."""
        if self._connection is None or self._begun is None:
            return None
        self._begun = None
        return self._connection.recv()  # type: ignore[no-any-return]

    def end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
            self._connection = None


def _paint(connection: Connection, other: Connection) -> None:
    # a terminal's Ctrl-C is for the program
    os.setpgrp()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    other.close()
    with contextlib.suppress(ImportError):
        from venture_lite.draws import pictures

        pictures.get_ready()
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            connection.send(_made(connection.recv()))


def _made(draws: Draws) -> bytes | None:
    """None where no picture can be made, which its parent will find out and tell."""
    from venture_lite.draws import pictures

    try:
        return pictures.png(draws)
    except VentureError:
        return None
