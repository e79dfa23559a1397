"""The tokens of a line, for colours, matching brackets and completion.

The parser cuts whole texts that are right; a prompt looks at every key at a text that is not finished. The tokens are
those of `grammar/venture.lark` (the tests compare them), cut line by line: no token spans lines, and a line that did
not change is not cut again. Imports nothing heavy: colours are there with the first key.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

CLOSER = {"(": ")", "[": "]", "{": "}"}
OPENER = {closer: opener for opener, closer in CLOSER.items()}
CONSTANTS = frozenset({"true", "false", "True", "False"})
CACHED_LINES = 4096

_BOUNDARY = r"\s()\[\]{}'\"`;#:,"
_EXPRESSION = re.compile(
    rf"""
      (?P<comment> [;#].* )
    | (?P<string> "(?:[^"\\]|\\.)*"? )
    | (?P<number> [+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![^{_BOUNDARY}]) )
    | (?P<opener> [(\[{{] )
    | (?P<closer> [)\]}}] )
    | (?P<quote> ' )
    | (?P<sign> [:,] )
    | (?P<name> [^{_BOUNDARY}]+ )
    """,
    re.VERBOSE,
)
# inside braces, and in the bounds of a loop
_INDEX = re.compile(
    r"""
      (?P<comment> [;#].* )
    | (?P<number> [0-9]+ )
    | (?P<name> [^\W\d]\w* )
    | (?P<opener> [(\[{] )
    | (?P<closer> [)\]}] )
    | (?P<sign> \.\.\.? | … | [-+*:,] )
    """,
    re.VERBOSE,
)
_LABELS = re.compile(r"\s*:")


class State(NamedTuple):
    """What a line inherits from the lines above it."""

    # how many braces are open
    braces: int = 0
    # inside the head of a loop: "name" and "in" are still to come, or "bounds"
    head: str = ""


@dataclass(frozen=True, slots=True)
class LexerToken:
    """One token; `kind` is comment, string, number, opener, closer, quote, sign, keyword, constant, head, label,
    parameter or name."""

    kind: str
    text: str
    # place in the line, or in the text
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@functools.lru_cache(maxsize=CACHED_LINES)
def tokens_of_line(line: str, state: State) -> tuple[tuple[LexerToken, ...], State]:
    """The tokens of a line, blanks left out, and what the next line inherits."""
    found: list[LexerToken] = []
    position = 0
    while position < len(line):
        index = state.braces > 0 or state.head == "bounds"
        match = (_INDEX if index else _EXPRESSION).match(line, position)
        if match is None:
            position += 1
            continue
        kind, text = match.lastgroup or "", match[0]
        position = match.end()
        kind, state = _in_place(kind, text, found, state, line, position)
        found.append(LexerToken(kind, text, match.start()))
    return tuple(found), state


def _in_place(kind: str, text: str, before: list[LexerToken], state: State, line: str, end: int) -> tuple[str, State]:
    """A token's kind where it stands, and the state after it."""
    braces, head = state
    if text == "{":
        return kind, State(braces + 1, head)
    if text == "}":
        return kind, State(max(0, braces - 1), head)
    if text == ":" and not braces:
        return kind, State(0, "")
    if kind != "name":
        return kind, state
    if braces or head == "bounds":
        return "parameter", state
    if head == "name":
        return "name", State(0, "in")
    if head == "in" and text.lower() == "in":
        return "keyword", State(0, "bounds")
    last = before[-1] if before else None
    if text.lower() == "for" and line[end : end + 1].isspace() and (last is None or last.kind in ("closer", "sign")):
        return "keyword", State(0, "name")
    if text in CONSTANTS:
        return "constant", state
    if last is not None and last.kind == "opener" and last.end == end - len(text):
        return "head", state
    if _LABELS.match(line, end):
        return "label", state
    return kind, state


def tokens(text: str) -> Iterator[LexerToken]:
    """The tokens of a whole text."""
    state, start = State(), 0
    for line in text.split("\n"):
        found, state = tokens_of_line(line, state)
        for token in found:
            yield LexerToken(token.kind, token.text, token.start + start)
        start += len(line) + 1


def pairs(text: str) -> dict[int, int | None]:
    """Every bracket of a text, those in strings and comments left out, by its place: where its other half is."""
    found: dict[int, int | None] = {}
    waiting: list[LexerToken] = []
    for token in tokens(text):
        if token.kind == "opener":
            found[token.start] = None
            waiting.append(token)
        elif token.kind == "closer":
            found[token.start] = None
            if waiting and CLOSER[(opener := waiting.pop()).text] == token.text:
                found[opener.start], found[token.start] = token.start, opener.start
    return found


@dataclass(frozen=True, slots=True)
class Call:
    """An open bracket, and what stands in it up to a place."""

    opener: LexerToken
    # its first part, if that is a name
    head: str | None
    # how many parts stand in it, the head among them
    parts: int


def open_calls(text: str) -> list[Call]:
    """The brackets that are open at the end of a text, outermost first."""
    stack: list[tuple[LexerToken, list[LexerToken]]] = []
    for token in tokens(text):
        if token.kind == "closer":
            del stack[-1:]
        elif token.kind == "opener":
            if stack:
                stack[-1][1].append(token)
            stack.append((token, []))
        elif stack and token.kind not in ("comment", "quote"):
            stack[-1][1].append(token)
    heads = ("head", "name", "label", "keyword")
    return [
        Call(opener, parts[0].text if parts and parts[0].kind in heads else None, len(parts)) for opener, parts in stack
    ]


def indentation(text: str) -> int:
    """How far the line after an unfinished text is indented."""
    last = text[text.rfind("\n") + 1 :]
    margin = len(last) - len(last.lstrip())
    calls = open_calls(text)
    if calls:
        opener = calls[-1].opener.start
        return opener - (text.rfind("\n", 0, opener) + 1) + 2
    return margin + 2 if last.rstrip().endswith(":") else margin
