"""A summary of draws as HTML, for notebooks; texts of the program's are escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from venture_lite.draws.kernel_summary import kernel_lines

if TYPE_CHECKING:
    from venture_lite.draws.summary import Summary

LINES_SHOWN = 200
"""A page with more rows than this sums up nothing; `summary().rows` holds them all."""

NUMBER = ' style="text-align: right; font-variant-numeric: tabular-nums"'
SMALL = ' style="font-size: smaller; opacity: 0.8"'
WARNING = ' style="color: #b45309"'


def summary_html(summary: Summary) -> str:
    """The table, what it is made from, what the kernels did, and what to beware of."""
    header, *lines = summary.cells()
    notes = summary.notes()
    if len(lines) > LINES_SHOWN:
        notes.append(f"{len(lines) - LINES_SHOWN} more rows not shown")
    parts = [
        f"<pre>{escape(summary.preface)}</pre>" if summary.preface else "",
        _table(header, lines[:LINES_SHOWN]) if lines else "",
        *(f"<div{SMALL}>{escape(text)}</div>" for text in (*notes, *summary.made_from())),
        *(f"<div{SMALL}>{escape(text)}</div>" for text in kernel_lines(summary.kernels)),
        *(f"<div{WARNING}>warning: {escape(warning)}</div>" for warning in summary.warnings),
    ]
    return f"<div>{''.join(parts)}</div>"


def _table(header: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    body = "".join(_line("td", line) for line in lines)
    return f"<table><thead>{_line('th', header)}</thead><tbody>{body}</tbody></table>"


def _line(tag: str, texts: Iterable[str]) -> str:
    cells = [f"<{tag}{NUMBER if position else ''}>{escape(text)}</{tag}>" for position, text in enumerate(texts)]
    return f"<tr>{''.join(cells)}</tr>"
