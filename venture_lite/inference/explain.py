"""What an inference program would do, without running it: its tree, and for each kernel the blocks that it would move
as of the state at hand, what a transition touches, and the course that the kernel takes with them.

Blocks that are alike but for their rows are told once, with their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from venture_lite.draws.presentation import counted, cut
from venture_lite.errors import Span, VentureError
from venture_lite.inference.tree import KernelPart, Part
from venture_lite.interpreter.ancestry import name_of_choice
from venture_lite.interpreter.kernel import Course
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.shape import NoShape, shape_of
from venture_lite.trace.trace import Trace

MOST_BLOCKS = 1_000
"""So many blocks of a kernel are looked at, in order."""
TITLE_WIDTH = 60
"""Characters of a directive's text that are shown."""


@dataclass(frozen=True, slots=True)
class BlockKind:
    """Blocks of one kernel that are alike but for their rows."""

    count: int
    # the names of the choices of a block, each with how many there are
    names: tuple[tuple[str, int], ...]
    # what moves, what is renewed and what is weighed, each by its text, with the fewest and the most times that a block
    # has it; nothing where the structure may change
    touched: tuple[tuple[str, int, int], ...]
    course: Course

    def lines(self) -> Iterator[str]:
        names = ", ".join(f"{name} ({count:,})" if count > 1 else name for name, count in self.names)
        yield f"{counted(self.count, 'block')}: {names}"
        for text, fewest, most in self.touched:
            yield f"  {text}" + _times(fewest, most)
        how = f", {self.course.how}" if self.course.how else ""
        why = f": {self.course.reason}" if self.course.reason else ""
        yield f"  {self.course.way}{how}{why}"
        if self.course.place is not None:
            yield f"    {self.course.place.place()}: {' '.join(self.course.place.text.split())}"

    def as_dict(self) -> dict[str, Any]:
        course = self.course
        return {
            "blocks": self.count,
            "choices": dict(self.names),
            "touched": [{"text": text, "fewest": fewest, "most": most} for text, fewest, most in self.touched],
            "way": course.way,
            "how": course.how,
            "reason": course.reason,
            "place": None if course.place is None else course.place.place(),
        }


@dataclass(frozen=True, slots=True)
class ExplainedPart:
    """One part of the tree; of a kernel the blocks that it would move."""

    depth: int
    heading: str
    # None where the part is no kernel
    kinds: tuple[BlockKind, ...] | None = None
    # what there is to say where not every block was looked at, or there is none
    note: str | None = None

    def lines(self) -> Iterator[str]:
        yield self.heading
        for kind in self.kinds or ():
            yield from (f"  {line}" for line in kind.lines())
        if self.note is not None:
            yield f"  {self.note}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """An inference program as of one state; `str` is for a person, `as_dict` for a program."""

    # the directive, or the expression where no directive has it
    span: Span
    parts: tuple[ExplainedPart, ...]
    # the pass of the loops around it, if there are any
    passes: tuple[tuple[str, int], ...] = ()

    def in_pass(self, span: Span, passes: Sequence[tuple[str, int]]) -> Explanation:
        """The same as one of a directive."""
        return replace(self, span=span, passes=tuple(passes))

    def __str__(self) -> str:
        at = ", ".join(f"{name} = {value}" for name, value in self.passes)
        text = cut(" ".join(self.span.text.split()), TITLE_WIDTH)
        title = f"{self.span.place()}: {text}" + (f" ({at})" if at else "")
        return "\n".join([title, *("  " * (part.depth + 1) + line for part in self.parts for line in part.lines())])

    def as_dict(self) -> dict[str, Any]:
        line, column = self.span.source.line_and_column(self.span.start)
        parts = [
            {"depth": part.depth, "part": part.heading, "note": part.note}
            | ({} if part.kinds is None else {"kinds": [kind.as_dict() for kind in part.kinds]})
            for part in self.parts
        ]
        place = {"file": self.span.source.name, "line": line, "column": column}
        return {**place, "passes": dict(self.passes), "parts": parts}


def explain(root: Part, span: Span) -> Explanation:
    """What a compiled program would do in the state at hand, which stays as it is."""
    return Explanation(span, tuple(_explained(depth, part) for depth, part in root.walk()))


def _explained(depth: int, part: Part) -> ExplainedPart:
    if not isinstance(part, KernelPart):
        return ExplainedPart(depth, part.heading)
    selection = part.selection
    note = selection.missing()
    blocks = [] if note is not None else selection.present()
    if note is None and not blocks:
        note = f"the scope {part.scope} has no block in {part.selector.text()}, nothing is moved"
    if len(blocks) > MOST_BLOCKS:
        note = f"and {counted(len(blocks) - MOST_BLOCKS, 'block')} more, not looked at"
    found: dict[Any, list[BlockKind]] = {}
    for key, nodes in blocks[:MOST_BLOCKS]:
        selection.model.poll()
        kind = _kind(part, selection, key, nodes)
        alike = kind.names, tuple(text for text, *_ in kind.touched), kind.course
        found.setdefault(alike, []).append(kind)
    return ExplainedPart(depth, part.heading, tuple(map(_joined, found.values())), note)


def _joined(kinds: list[BlockKind]) -> BlockKind:
    """Blocks that are alike but for how often they have what they touch."""
    each = zip(*(kind.touched for kind in kinds), strict=True)
    touched = ((same[0][0], min(least for _, least, _ in same), max(most for *_, most in same)) for same in each)
    return replace(kinds[0], count=len(kinds), touched=tuple(touched))


def _times(fewest: int, most: int) -> str:
    return f", {fewest:,} to {most:,} times" if fewest < most else f", {most:,} times" if most > 1 else ""


def _kind(part: KernelPart, selection: Selection, key: Any, nodes: list[int]) -> BlockKind:
    trace = selection.model.trace
    names = Counter(name_of_choice(trace, node) for node in nodes)
    at = Selection(selection.model, selection.scope, selection.selector, key)
    try:
        course = part.kernel.course(nodes, at)
    except VentureError as error:
        course = Course("refused", None, error.message, error.span)
    return BlockKind(1, tuple(sorted(names.items())), tuple(_touched(trace, nodes)), course)


def _touched(trace: Trace, nodes: list[int]) -> list[tuple[str, int, int]]:
    found = shape_of(trace, nodes)
    if isinstance(found, NoShape):
        return []
    return [(text, count, count) for text, count in found[0].touched(trace.program)]
