"""A program's text from a file or from standard input, with a message for a person where there is none."""

from __future__ import annotations

import codecs
import contextlib
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from venture_lite.errors import Source, Span, VentureError
from venture_lite.language.parse import MOST_CHARACTERS

MOST_BYTES = MOST_CHARACTERS
"""A longer file is not read to its end: as text it could be within its limit only where it has few letters of ASCII."""

STANDARD_INPUT = "<stdin>"


def resolved(path: Path) -> Path:
    """The file that a path leads to; a path that can be none's as it is: who reads it says what is wrong."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return path


def lies_outside(path: Path, loader: Path | None) -> bool:
    """Whether a file stands neither in the folder of the program that loads it nor below; what a person types, or a
    caller gives as a text, may load anything."""
    if loader is None or not resolved(loader).is_file():
        return False
    return not resolved(path).is_relative_to(resolved(loader).parent)


def loading(name: str, span: Span, running: Sequence[Path]) -> AbstractContextManager[Source]:
    """The text of a file that the innermost of some running files loads, by its path from there.

    Errors met in a file that a program loads from outside of its own folder say where they are, and nothing that
    stands there: whoever runs a program of somebody else's may be able to read more files than that one.

    Raises VentureError where the file is running already.
    """
    loader = running[-1] if running else None
    path = (loader.parent if loader is not None else Path()) / name
    if resolved(path) in map(resolved, running):
        raise VentureError(f"{path} loads itself", span)
    return _loading(path, loader, span)


@contextlib.contextmanager
def _loading(path: Path, loader: Path | None, span: Span) -> Iterator[Source]:
    try:
        yield read_source(path, span, loader)
    except VentureError as error:
        if error.span is None or error.span.source is span.source or not lies_outside(path, loader):
            raise
        hint = "run that file itself to see what is wrong: it lies outside of the folder of the program that loads it"
        raise VentureError(f"cannot load {path}: there is an error at {error.span.place()}", span, hint) from None


def read_source(path: Path, span: Span | None, loader: Path | None = None) -> Source:
    """A program file's text; `span` is where the program `loader` asks for it, if one does.

    Raises VentureError for a file that cannot be read, is too large, or is no text in UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except IsADirectoryError:
        raise VentureError(f"{path} is a folder, not a program", span) from None
    except (OSError, ValueError) as error:
        raise VentureError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}", span) from error
    quotable = not lies_outside(path, loader)
    return Source(str(path), _decoded(content, str(path), span, quotable), quotable)


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


def _decoded(content: bytes, name: str, span: Span | None, quotable: bool = True) -> str:
    if len(content) > MOST_BYTES:
        hint = "give data as parameters: {X[n]} in the text, -d X=FILE on the command line"
        raise VentureError(f"{name} is larger than {MOST_BYTES // 2**20} MB, too large for a program", span, hint)
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = f"the byte 0x{content[error.start]:02X}" if quotable else "another byte"
        message = f"{name} is not a text in UTF-8: line {line} holds {byte}"
        raise VentureError(message, span, "save it as UTF-8") from None
    return io.IncrementalNewlineDecoder(None, translate=True).decode(text, final=True)
