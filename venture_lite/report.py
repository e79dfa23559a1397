"""What a directive of a program gave, shown to a person or as a line of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.draws import Draws
from venture_lite.values import Symbol, show, to_python

if TYPE_CHECKING:
    from venture_lite.session import DirectiveResult

# the directives that a person ran in order to see their values
SHOWN = frozenset({"predict", "sample", "report", "get_logscore", "list_directives"})
LINE_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Report:
    """One directive's value in plain Python, which can travel between processes."""

    kind: str
    label: str | None
    # the directive's expression as written, if it has one
    expression: str | None
    # `Draws`, numbers, strings, lists, arrays; a list with one of them for each chain after `merge`
    value: Any
    # line of the program, from 1
    line: int | None
    # whether `value` is a list with one value for each of several chains
    by_chain: bool = False

    @classmethod
    def of(cls, result: DirectiveResult) -> Report:
        return cls(result.kind, result.label, result.expression, _portable(result.value), result.line)

    @classmethod
    def merge(cls, reports: Sequence[Report]) -> Report:
        """The same directive's values from several chains as one: draws are joined, other values listed."""
        first = reports[0]
        if len(reports) == 1:
            return first
        values = [report.value for report in reports]
        if all(isinstance(value, Draws) for value in values):
            return replace(first, value=Draws.merge(values))
        if all(value is None for value in values):
            return first
        return replace(first, value=values, by_chain=True)


def as_text(report: Report) -> str | None:
    """What a person wants to see of a directive, or None."""
    if isinstance(report.value, Draws):
        return report.value.summary().body() or None
    if report.kind not in SHOWN or report.value is None:
        return None
    name = report.label or report.expression or report.kind.replace("_", " ")
    shown = [_show(value) for value in report.value] if report.by_chain else [_show(report.value)]
    line = f"{name} = {', '.join(shown)}"
    if len(shown) == 1 or (len(line) <= LINE_WIDTH and "\n" not in line):
        return line + (" (a value for each chain)" if report.by_chain else "")
    return "\n".join([f"{name} =", *(f"  chain {chain}: {value}" for chain, value in enumerate(shown))])


def as_json(report: Report, file: Path | None) -> str | None:
    """One line of JSON for a directive that has a value; `file` is where its draws were written.

    JSON has no numbers for infinity and NaN: values are then the strings "inf", "-inf" and "nan"; diagnostics that
    are undefined are null.
    """
    if report.value is None:
        return None
    head = {"directive": report.kind, "label": report.label, "expression": report.expression}
    if isinstance(report.value, Draws):
        summary = report.value.summary()
        body: dict[str, Any] = {
            "summary": summary.as_dict(),
            "warnings": list(summary.warnings),
            "file": str(file) if file else None,
        }
    else:
        body = {"value": _json_value(report.value)}
    return json.dumps({**head, **body, "line": report.line}, allow_nan=False)


def _portable(value: Any) -> Any:
    """Plain data is kept; what lives in a trace (a procedure) becomes its text."""
    match value:
        case None | bool() | int() | float() | str() | Draws():
            return value
        case Symbol() | np.ndarray() | np.generic():
            return to_python(value)
        case tuple() | list():
            return [_portable(item) for item in value]
        case dict():
            return {str(key): _portable(item) for key, item in value.items()}
    return show(value)


def _show(value: Any) -> str:
    return value if isinstance(value, str) else show(value)


def _json_value(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case np.ndarray() | np.generic():
            return _json_value(value.tolist())
        case list() | tuple():
            return [_json_value(item) for item in value]
        case dict():
            return {str(key): _json_value(item) for key, item in value.items()}
        case None | bool() | int() | float() | str():
            return value
    return str(value)
