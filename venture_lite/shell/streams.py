"""Writing to the streams of a process, which may be closed, full, read by nobody, or by a terminal that obeys codes."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import TextIO

from venture_lite.errors import VentureError, escaped


def told(error: Exception) -> str:
    """What a person is told of the error that ended a program, or an entry at the prompt."""
    match error:
        case VentureError():
            return str(error) if error.span else f"error: {error}"
        case MemoryError():
            return "error: out of memory"
    return f"{traceback.format_exc()}this is a defect of venture_lite, not of the program"


def say(text: str) -> None:
    """To standard error; a closed one is no reason to fail."""
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError, ValueError):
        print(escaped(text), file=sys.stderr, flush=True)


def write_line(text: str, stream: TextIO | None) -> None:
    """To standard output, at once.

    Raises:
        BrokenPipeError: nobody reads it any more.
        VentureError: it cannot be written for another reason.
    """
    if stream is None:
        raise VentureError("cannot write to standard output: it is closed")
    try:
        print(escaped(text), file=stream, flush=True)
    except BrokenPipeError:
        abandon_output(stream)
        raise
    except (OSError, ValueError) as error:
        abandon_output(stream)
        reason = getattr(error, "strerror", None) or error
        raise VentureError(f"cannot write to standard output: {reason}") from error


def abandon_output(stream: TextIO) -> None:
    """Nothing more can be written: keep the interpreter from trying again, and complaining, when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
