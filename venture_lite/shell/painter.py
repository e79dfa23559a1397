"""A process that makes pictures: it imports what they need while the program runs, which takes as long as a picture.

Where it cannot be, or is gone, pictures are made where they are asked for.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
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
        if not hasattr(os, "fork") or sys.platform == "darwin" or len(os.sched_getaffinity(0)) < 2:
            return
        import multiprocessing

        context = multiprocessing.get_context("fork")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_paint, args=(other, self._connection), name="pictures", daemon=True)
        self._process.start()
        other.close()

    def write(self, draws: Draws, path: Path) -> None:
        """Write the draws' figure to a file.

        Raises VentureError where matplotlib is not installed, or the file cannot be written.
        """
        try:
            if self._connection is not None:
                self._connection.send((draws, path))
                failure = self._connection.recv()
                if failure is not None:
                    raise VentureError(*failure)
                return
        except (EOFError, OSError):
            # it was ended; then the picture is made here
            self.end()
        from venture_lite.draws import pictures

        pictures.write(draws, path)

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
            draws, path = connection.recv()
            connection.send(_failure(draws, path))


def _failure(draws: Draws, path: Path) -> tuple[str, None, str | None] | None:
    """What a picture fails with, as arguments of the error; None where it is written."""
    from venture_lite.draws import pictures

    try:
        pictures.write(draws, path)
    except VentureError as error:
        return error.message, None, error.hint
    return None
