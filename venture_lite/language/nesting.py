"""Loops and their bodies: from the flat row of items that the parser reads to directives inside directives.

A body is what follows the colon on the same line, and the lines below that are indented deeper than the line of the
loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from venture_lite.errors import ParseError, Source, Span
from venture_lite.language.syntax import Directive, Loop


class Item(NamedTuple):
    """A directive or the head of a loop, and where its text starts (its label included) and ends."""

    # None for text that was refused: it stands in the body of a loop, and says nothing
    content: Directive | None
    start: int
    end: int


@dataclass(slots=True)
class _OpenLoop:
    """A loop that still takes directives; directives are added to `body`."""

    head: Loop
    # the column at which the head's line starts
    indent: int
    # the column of the first line of the body that is not the head's own line
    body_indent: int | None = None
    body: list[Directive] = field(default_factory=list)
    # whether text that was refused stands in the body
    doubtful: bool = False

    def closed(self) -> Loop:
        head, body = self.head, self.body
        if not body and not self.doubtful:
            hint = "directives after the colon, or on the next lines and indented deeper than `for`"
            raise ParseError("this loop has no body", head.span, hint)
        span = Span(head.span.source, head.span.start, body[-1].span.end if body else head.span.end)
        return replace(head, body=tuple(body), span=span)


def nested(source: Source, items: Iterable[Item], refused: list[ParseError] | None = None) -> tuple[Directive, ...]:
    """The directives with each loop around its body.

    Only the gap between two items is read for the indentation, so the cost does not grow with the length of a line.
    What is wrong is raised, or added to `refused` where that is given.
    """
    finished: list[Directive] = []
    loops: list[_OpenLoop] = []

    def close() -> None:
        try:
            loop = loops.pop().closed()
        except ParseError as error:
            tell(error)
        else:
            (loops[-1].body if loops else finished).append(loop)

    def tell(error: ParseError) -> None:
        if refused is None:
            raise error
        refused.append(error)

    indent = previous_end = 0
    for item in items:
        gap = source.text[previous_end : item.start].lstrip("\ufeff")
        line_break = max(gap.rfind("\n"), gap.rfind("\r"))
        if line_break >= 0 or previous_end == 0:
            indent = len(gap[line_break + 1 :].expandtabs(8))
            while loops and indent <= loops[-1].indent:
                close()
            if loops and (error := _bad_indent(loops[-1], indent, Span(source, item.start, item.end))):
                tell(error)
        previous_end = item.end
        if isinstance(item.content, Loop):
            loops.append(_OpenLoop(item.content, indent))
        elif item.content is not None:
            (loops[-1].body if loops else finished).append(item.content)
        elif loops:
            loops[-1].doubtful = True
    while loops:
        close()
    return tuple(finished)


def _bad_indent(loop: _OpenLoop, indent: int, span: Span) -> ParseError | None:
    """Refuses a line between the columns of a loop and of its body: it could be meant for either."""
    if loop.body_indent is None:
        loop.body_indent = indent
    if indent >= loop.body_indent:
        return None
    hint = f"{loop.body_indent} blanks to stay in its body, {loop.indent} to leave it"
    return ParseError(
        f"this line is indented neither as the loop over {loop.head.variable} nor as its body", span, hint
    )
