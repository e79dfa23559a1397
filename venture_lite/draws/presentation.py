"""Values as a person wants to read them: numbers rounded, columns aligned, what is long cut with its size.

`values.show` puts a value inside a sentence; here it stands on lines of its own. Nothing is recursed into beyond a few
levels, and little more of a value is formatted than is shown: a list of a million items costs what a short one does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from venture_lite.values import Symbol

WIDTH = 100
# significant digits of a number on its own, and of one among others
DIGITS = 6
DIGITS_OF_MANY = 4
# lists and vectors that do not fit are cut to so many items at their start and at their end, or fewer
HEAD = 8
TAIL = 3
DEEPEST = 5
LONGEST_STRING = 1000
# a float with a whole value is exact as an integer up to here
LARGEST_WHOLE = 1e15


def present(value: Any, width: int = WIDTH) -> str:
    """A value of the language, or what Python received for it; several lines for a matrix."""
    match value:
        case np.ndarray() if value.ndim == 2 and value.size:
            return _matrix(value, width)
        case np.ndarray() if value.ndim > 2:
            return np.array2string(value, precision=DIGITS_OF_MANY, threshold=50, edgeitems=2, max_line_width=width)
    return _line(value, width, 0)


def number(value: float, digits: int = DIGITS) -> str:
    """Rounded to so many significant digits; whole numbers are exact and have no point."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(value)
    if math.isfinite(value) and value == round(value) and abs(value) < LARGEST_WHOLE:
        return f"{value + 0.0:.0f}" if value else "0"
    return "nan" if math.isnan(value) else f"{value:.{digits}g}"


def duration(seconds: float) -> str:
    """`0.25 s`, `1,250 s`."""
    return f"{seconds:,.0f} s" if seconds >= 9.95 else f"{number(seconds, 2)} s"


def counted(count: int, noun: str, nouns: str | None = None) -> str:
    """`1 draw`, `1,000 draws`."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def listed(texts: Sequence[str], shown: int) -> str:
    """The first of some texts, and how many more there are."""
    return ", ".join(texts[:shown]) + (f" and {len(texts) - shown} more" if len(texts) > shown else "")


def cut(text: str, width: int) -> str:
    """The text, or as much of its start as fits, with an ellipsis."""
    return text if len(text) <= width else text[: max(0, width - 3)] + "..."


def _line(value: Any, width: int, depth: int) -> str:
    match value:
        case bool() | int() | float() | np.bool_() | np.integer() | np.floating():
            return number(value)  # type: ignore[arg-type]
        case Symbol():
            return value.name
        case str():
            cut_off = f"... ({len(value):,} characters)" if len(value) > LONGEST_STRING else ""
            return value[:LONGEST_STRING] + cut_off
        case np.ndarray() if value.ndim == 1:
            if value.dtype == object:
                return _items("[]", value, "item", width, depth)
            cells = [number(item, DIGITS_OF_MANY) for item in _ends(value)]
            return _bracketed("[]", cells, len(value), "number", width)
        case np.ndarray():
            return f"({' x '.join(map(str, value.shape))} numbers)"
        case tuple() | list():
            return _items("()", value, "item", width, depth)
        case Mapping():
            return _dictionary(value, width, depth)
    return cut(str(value), LONGEST_STRING)


def _ends(items: Sequence[Any] | np.ndarray) -> list[Any]:
    """Everything of a short sequence, of a long one what could be shown of its two ends."""
    return list(items) if len(items) <= 2 * WIDTH else [*items[:WIDTH], *items[-WIDTH:]]


def _items(brackets: str, items: Sequence[Any] | np.ndarray, noun: str, width: int, depth: int) -> str:
    if depth >= DEEPEST and len(items):
        return f"{brackets[0]}...{brackets[1]}"
    cells = [_line(item, width // 2, depth + 1) for item in _ends(items)]
    return _bracketed(brackets, cells, len(items), noun, width)


def _bracketed(brackets: str, cells: list[str], count: int, noun: str, width: int) -> str:
    """The cells in one line if they fit, else some of both ends and how many there are."""
    opening, closing = brackets[0], brackets[1]
    whole = f"{opening}{' '.join(cells)}{closing}"
    if len(cells) == count and (len(whole) <= width or count <= 2):
        return whole
    for head, tail in ((HEAD, TAIL), (6, 2), (4, 1), (3, 1), (2, 1), (1, 1)):
        short = f"{opening}{' '.join([*cells[:head], '...', *cells[-tail:]])}{closing} ({counted(count, noun)})"
        if len(short) <= width and head + tail < count:
            break
    return short


def _dictionary(value: Mapping[Any, Any], width: int, depth: int) -> str:
    if depth >= DEEPEST and value:
        return "{...}"
    shown = [
        f"{_line(key, width // 2, depth + 1)}: {_line(item, width // 2, depth + 1)}"
        for key, item, _ in zip(value.keys(), value.values(), range(HEAD + TAIL), strict=False)
    ]
    if len(value) > len(shown):
        return f"{{{', '.join(shown[:HEAD])}, ...}} ({counted(len(value), 'key')})"
    return f"{{{', '.join(shown)}}}"


def _matrix(matrix: np.ndarray, width: int) -> str:
    """Columns aligned; rows and columns in the middle are left out where there are too many."""
    rows = _places(len(matrix), HEAD, TAIL)
    columns = _places(matrix.shape[1], HEAD, TAIL)
    for head in range(HEAD, 0, -1):
        cells = [[_cell(matrix, row, column) for column in columns] for row in rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        if sum(widths) + 2 * len(widths) + 2 <= width:
            break
        columns = _places(matrix.shape[1], head - 1 or 1, min(TAIL, head - 1 or 1))
    lines = ["  ".join(map(str.rjust, line, widths)) for line in cells]
    text = [f"{'[[' if place == 0 else ' ['}{line}]" for place, line in enumerate(lines)]
    size = f" ({' x '.join(map(str, matrix.shape))})" if None in (*rows, *columns) else ""
    return "\n".join(text) + "]" + size


def _cell(matrix: np.ndarray, row: int | None, column: int | None) -> str:
    return "..." if row is None or column is None else number(matrix[row, column], DIGITS_OF_MANY)


def _places(count: int, head: int, tail: int) -> list[int | None]:
    """Positions that are shown, with None where some are left out."""
    if count <= head + tail + 1:
        return list(range(count))
    return [*range(head), None, *range(count - tail, count)]


def table(header: Sequence[str], lines: Sequence[Sequence[str]], right: Callable[[int], bool] = lambda _: False) -> str:
    """Aligned columns; `right` says which are aligned at their right."""
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    align = [str.rjust if right(place) else str.ljust for place in range(len(widths))]
    rows = [
        [put(cell, width) for put, cell, width in zip(align, line, widths, strict=True)] for line in (header, *lines)
    ]
    return "\n".join("  ".join(cells).rstrip() for cells in rows)
