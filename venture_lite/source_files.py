"""A program's text from a file or from standard input, with a message for a person where there is none."""

from __future__ import annotations

import codecs
import io
import sys
from pathlib import Path

from venture_lite.errors import Source, Span, VentureError
from venture_lite.parse import MOST_CHARACTERS

MOST_BYTES = MOST_CHARACTERS
"""A longer file is not read to its end: as text it could be within its limit only where it has few letters of ASCII."""

STANDARD_INPUT = "<stdin>"


def resolved(path: Path) -> Path:
    """The file that a path leads to; a path that can be none's as it is: who reads it says what is wrong."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return path


def read_source(path: Path, span: Span | None) -> Source:
    """A program file's text; `span` is where the program asks for it.

    Raises VentureError for a file that cannot be read, is too large, or is no text in UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except IsADirectoryError:
        raise VentureError(f"{path} is a folder, not a program", span) from None
    except (OSError, ValueError) as error:
        raise VentureError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}", span) from error
    return Source(str(path), _decoded(content, str(path), span))


def read_standard_input() -> Source:
    """What stands in standard input, to its end. Raises VentureError as `read_source` does, and where it is closed."""
    if sys.stdin is None:
        raise VentureError("cannot read a program: standard input is closed")
    binary = getattr(sys.stdin, "buffer", None)
    try:
        if binary is None:
            return Source(STANDARD_INPUT, sys.stdin.read())
        content = binary.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise VentureError(f"cannot read standard input: {getattr(error, 'strerror', None) or error}") from error
    return Source(STANDARD_INPUT, _decoded(content, STANDARD_INPUT, None))


def _decoded(content: bytes, name: str, span: Span | None) -> str:
    if len(content) > MOST_BYTES:
        hint = "give data as parameters: {X[n]} in the text, -d X=FILE on the command line"
        raise VentureError(f"{name} is larger than {MOST_BYTES // 2**20} MB, too large for a program", span, hint)
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"{name} is not a text in UTF-8: line {line} holds the byte 0x{content[error.start]:02X}"
        raise VentureError(message, span, "save it as UTF-8") from None
    return io.IncrementalNewlineDecoder(None, translate=True).decode(text, final=True)
