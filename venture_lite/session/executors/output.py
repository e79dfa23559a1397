"""What one thread prints, while others print where they always do."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO


class _ByThread(io.TextIOBase):
    """Standard output, but for threads whose output is kept. Mutable."""

    def __init__(self, outside: TextIO) -> None:
        self.outside = outside
        self.kept: dict[int, io.StringIO] = {}

    def _stream(self) -> TextIO:
        return self.kept.get(threading.get_ident(), self.outside)

    def write(self, text: str) -> int:
        return self._stream().write(text)

    def flush(self) -> None:
        self._stream().flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.outside, name)


_LOCK = threading.Lock()


@contextlib.contextmanager
def printed_here() -> Iterator[io.StringIO]:
    """What this thread prints in the block."""
    thread = threading.get_ident()
    with _LOCK:
        if not isinstance(sys.stdout, _ByThread):
            sys.stdout = _ByThread(sys.stdout)
        stream = sys.stdout
        printed = stream.kept[thread] = io.StringIO()
    try:
        yield printed
    finally:
        with _LOCK:
            del stream.kept[thread]
            if not stream.kept and sys.stdout is stream:
                sys.stdout = stream.outside
