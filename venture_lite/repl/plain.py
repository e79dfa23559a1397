"""The prompt without a terminal: entries from a pipe, values to standard output, no escape sequences.

Where standard input is a terminal that cannot move its cursor, prompts are shown; from a pipe nothing but values.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import TextIO

from venture_lite.repl.conversation import Conversation
from venture_lite.repl.lexer import OPENER, State, tokens_of_line

FAILED = 1


def converse(conversation: Conversation, stream: TextIO | None = None) -> int:
    """Run every entry of the stream; 1 if one of them failed."""
    stream = sys.stdin if stream is None else stream
    if isinstance(stream, io.TextIOWrapper):
        # bytes that are no text become characters that the parser refuses at their place
        stream.reconfigure(errors="surrogateescape")
    prompts = stream.isatty()
    for entry in entries(stream, conversation, prompts):
        conversation.enter(entry)
        if conversation.ended:
            break
    return FAILED if conversation.failures and not prompts else 0


def entries(stream: TextIO, conversation: Conversation, prompts: bool = False) -> Iterator[str]:
    """The entries of a stream: lines, gathered until brackets balance and the body of a loop has ended."""
    lines: list[str] = []
    scan = _Scan()
    while True:
        try:
            line = _line(stream, conversation, bool(lines), prompts)
        except KeyboardInterrupt:
            if conversation.is_stopped() or not prompts:
                raise
            # at a terminal Ctrl-C clears the entry
            print()
            lines, scan = [], _Scan()
            continue
        if not line:
            break
        lines.append(line.rstrip("\r\n"))
        scan.add(lines[-1])
        if scan.may_be_complete() and conversation.is_complete(text := "\n".join(lines)):
            yield text
            lines, scan = [], _Scan()
    if lines:
        yield "\n".join(lines)


class _Scan:
    """Which brackets are open after each line: a long entry is looked at as a whole only where it may be complete."""

    def __init__(self) -> None:
        self._state = State()
        self._open: list[str] = []
        self._broken = False

    def add(self, line: str) -> None:
        found, self._state = tokens_of_line(line, self._state)
        for token in found:
            if token.kind == "opener":
                self._open.append(token.text)
            elif token.kind == "closer":
                self._broken |= not self._open or self._open.pop() != OPENER[token.text]

    def may_be_complete(self) -> bool:
        return self._broken or not self._open


def _line(stream: TextIO, conversation: Conversation, continued: bool, prompts: bool) -> str:
    if prompts:
        prompt = f"{conversation.number + 1}> "
        sys.stdout.write(".. ".rjust(len(prompt)) if continued else prompt)
        sys.stdout.flush()
    return stream.readline()
