"""Reading on after an error: all that is wrong with a text, and the directives that are right.

A text that is refused is cut where a directive starts, and its pieces are read one by one. What a refused piece would
have bound is kept by name, so that the rest of the text is not blamed for using it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from venture_lite.errors import ParseError, Source
from venture_lite.language.directives import DIRECTIVES
from venture_lite.language.nesting import Item, nested
from venture_lite.language.parse import parse_items, refuse_too_long
from venture_lite.language.refusals import balance_of
from venture_lite.language.syntax import Directive

MOST_READ_ON = 2**20
"""A longer text is not read on after its first error: each piece costs a look at all that stands before it."""

MOST_LINES = 100
"""A directive is looked for over at most so many lines that start with a bracket."""

_KEYWORDS = "|".join(DIRECTIVES)
_LABEL = r"(?:[^\s()\[\]{}'\";#:,]+[ \t]*:[ \t]*)?"
_START = re.compile(
    rf"""
      (?P<skipped> "(?:[^"\\\n]|\\.)*" | [;#][^\r\n]* )
    | ^[ \t]* (?P<loop> {_LABEL} for [ \t] )
    | (?P<square> (?<!\S){_LABEL} \[ [ \t]* (?:{_KEYWORDS}) (?=[\s\]]) )
    | ^(?P<round> {_LABEL} [(\[] )
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
"""Where a directive starts: its keyword in square brackets, the head of a loop, or a bracket at the start of a line."""

_BOUND = re.compile(
    r"""
      \b(?:assume|define) \s+ \(?\s* (?P<name> [^\s()\[\]{}'"`;\#:,]+ )
    | ^[ \t]* (?P<label> [^\s()\[\]{}'"`;\#:,]+ )[ \t]*: (?=\s*[\[(]|\s*for\b)
    | \b(?:scope_include|tag) \s+ '? (?P<scope> [^\s()\[\]{}'`;\#:,]+ )
    | \[\s* (?P<load> load )\b
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Doubtful:
    """What text that was refused would have bound, as far as can be told."""

    names: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    # whether it would have loaded a file, which may bind anything
    anything: bool = False


@dataclass(frozen=True, slots=True)
class Recovered:
    """What could be read of a text."""

    directives: tuple[Directive, ...]
    # in the order of the text
    errors: tuple[ParseError, ...]
    doubtful: Doubtful


def parse_on(source: Source) -> Recovered:
    """The directives of a text, and every error that was met in it. Raises ParseError for a text that is too long."""
    refuse_too_long(source)
    try:
        return Recovered(nested(source, parse_items(source)), (), Doubtful())
    except ParseError as error:
        cuts = _cuts(source) if len(source.text) <= MOST_READ_ON else {0: False}
        if len(cuts) == 1:
            return Recovered((), (error,), Doubtful(anything=True))
    items: list[Item] = []
    errors: list[ParseError] = []
    refused: list[str] = []
    for start, end in _pieces(source, cuts):
        try:
            items.extend(parse_items(source, start, end))
        except ParseError as error:
            errors.append(error)
            text = source.text[start:end]
            indent = len(text) - len(text.lstrip())
            items.append(Item(None, start + indent, start + len(text.rstrip())))
            refused.append(text)
    directives = nested(source, items, errors)
    errors.sort(key=lambda error: error.span.start if error.span else 0)
    return Recovered(directives, tuple(errors), _doubtful("\n".join(refused)))


def _cuts(source: Source) -> dict[int, bool]:
    """Where the pieces of a text may start, and whether only a bracket at the start of a line says so; the first is its
    beginning."""
    found = {0: False}
    last = 0
    for match in _START.finditer(source.text):
        if match["skipped"] is None:
            start = match.start(match.lastgroup or 0)
            if start > last:
                found[start] = match["round"] is not None
                last = start
    return found


def _pieces(source: Source, cuts: dict[int, bool]) -> Iterator[tuple[int, int]]:
    """Start and end of each piece. A bracket at the start of a line goes on with the piece before it where that piece
    is balanced with it and unbalanced without: `[infer (mh ...)` with `(collect x)]` below is one directive."""
    starts = list(cuts)
    ends = [*starts[1:], len(source.text)]
    at = 0
    while at < len(starts):
        last = further = at
        if balance_of(source, starts[at], ends[at]).unfinished:
            while further + 1 < len(starts) and cuts[starts[further + 1]] and further - at < MOST_LINES:
                further += 1
                if not balance_of(source, starts[at], ends[further]).error:
                    last = further
                    break
        yield starts[at], ends[last]
        at = last + 1


def _doubtful(text: str) -> Doubtful:
    found: dict[str, set[str]] = {"name": set(), "label": set(), "scope": set(), "load": set()}
    for match in _BOUND.finditer(text):
        kind = match.lastgroup or ""
        found[kind].add(match[kind].strip('"'))
    return Doubtful(frozenset(found["name"]), frozenset(found["label"]), frozenset(found["scope"]), bool(found["load"]))
