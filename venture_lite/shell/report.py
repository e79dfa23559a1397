"""What a directive of a program gave, shown to a person or as a line of JSON.

Of a loop that runs pass by pass, and of a file that is loaded, each directive inside has a report of its own.
"""

from __future__ import annotations

import contextlib
import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.draws.draws import Draws
from venture_lite.draws.kernel_summary import kernel_lines
from venture_lite.draws.presentation import WIDTH, cut, present, table
from venture_lite.errors import VentureWarning
from venture_lite.language import syntax
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.values import Distribution, Symbol, show, to_python

if TYPE_CHECKING:
    from venture_lite.session import DirectiveResult

# the directives that a person ran in order to see their values
SHOWN = frozenset({"predict", "sample", "report", "get_logscore", "list_directives"})
# the directives whose value is one for each chain
BY_CHAIN = frozenset({"assume", "observe", "predict", "sample", "report", "get_logscore", "infer"})


@dataclass(frozen=True, slots=True)
class RunReport:
    """One directive's value in plain Python, which can travel between processes."""

    kind: str
    label: str | None
    expression: str | None
    # `Draws`, numbers, strings, lists, arrays; a list with one of them for each chain after `merge`
    value: Any
    # line of the program, from 1
    line: int | None
    # whether `value` is a list with one value for each of several chains; None of one that ended before
    by_chain: bool = False
    # the variables of the loops around it that ran pass by pass, outermost first
    passes: tuple[tuple[str, int], ...] = ()
    # of draws that an inference made which did not come to its end: why
    partial: str | None = None
    # of draws whose chains differ in length: what `value`, which is even, leaves out
    rest: Draws | None = None

    @classmethod
    def of(cls, result: DirectiveResult, chains: int = 1) -> RunReport:
        """The report of one directive that ran in so many chains of one process.

        Of a loop that runs pass by pass, whose directives have reports of their own, there is no value; of a file the
        number of its directives.
        """
        value = result.value
        if isinstance(value, list) and isinstance(result.directive, syntax.Loop):
            value = None
        elif isinstance(result.directive, syntax.Load):
            value = len(value)
        kind, label = result.directive.kind, result.directive.label
        by_chain = chains > 1 and kind in BY_CHAIN and isinstance(value, list) and len(value) == chains
        return cls(kind, label, result.expression, portable(value), result.line, by_chain, result.passes)

    @classmethod
    def merge(cls, reports: Sequence[RunReport | None]) -> RunReport:
        """The same directive's values from several chains as one: draws are joined, other values listed.

        None stands for a chain that has ended before; one chain has not.
        """
        present = [report for report in reports if report is not None]
        # of a chain that ended without a word the draws are known, but not the directive that made them
        first = next((report for report in present if report.expression is not None), present[0])
        if len(reports) == 1:
            return first
        values = [report.value if report is not None else None for report in reports]
        if isinstance(first.value, Draws):
            given = {number: value for number, value in enumerate(values) if isinstance(value, Draws)}
            return replace(first, value=Draws.merge(list(given.values()), list(given)))
        if first.kind not in BY_CHAIN or all(value is None for value in values):
            return first
        return replace(first, value=values, by_chain=True)

    @classmethod
    def unfinished(cls, error: BaseException) -> RunReport | None:
        """The draws that an inference had collected when an error or a signal ended it."""
        result: DirectiveResult | None = getattr(error, "unfinished", None)
        report = cls.of(result) if result is not None else None
        return report if report is not None and report.has_draws else None

    @property
    def has_draws(self) -> bool:
        """Whether there are draws, or what was plotted of them."""
        return isinstance(self.value, Draws) and (bool(self.value) or self.value.plotted is not None)

    def name(self) -> str:
        """What the value is called: the label or the expression, in a loop after the pass."""
        name = self.label or self.expression or self.kind.replace("_", " ")
        return f"{', '.join(f'{variable} = {at}' for variable, at in self.passes)}: {name}" if self.passes else name


def as_text(
    report: RunReport, width: int = WIDTH, encoding: str | None = "utf-8", at_prompt: bool = False
) -> str | None:
    """What a person wants to see of a single directive, or None; plots take the signs that the encoding has.

    At a prompt an inference that collects nothing is answered too, and the seconds that kernels took are told.
    """
    if isinstance(report.value, Draws):
        body = _told(report.value, width, encoding, at_prompt)
        return f"{report.name()}\n{body}" if body and report.passes and not at_prompt else body or None
    if report.kind not in SHOWN or report.value is None:
        return None
    if report.kind == "list_directives":
        return directive_table(report.value, width)
    return named_value(report, width)


def _told(draws: Draws, width: int, encoding: str | None, at_prompt: bool) -> str:
    """The table, the plots, and what the kernels did."""
    summary = draws.summary()
    parts = [summary.body(width if at_prompt else None)]
    if draws.plotted is not None:
        from venture_lite.draws import plots

        parts.append(plots.text(draws.plotted, min(width, plots.WIDTH), plots.needs_plain(encoding)))
    if at_prompt or any(parts) or draws.evidence is not None:
        parts.extend(kernel_lines(summary.kernels, with_seconds=at_prompt))
    return "\n".join(part for part in parts if part)


def named_value(report: RunReport, width: int = WIDTH) -> str:
    """`NAME = VALUE`; of several chains in one line while they fit, of a matrix from a line of its own."""
    name = report.name()
    values = report.value if report.by_chain else [report.value]
    shown = [present(value, width - 2) if value is not None or not report.by_chain else "-" for value in values]
    line = f"{name} = {', '.join(shown)}"
    if "\n" not in line and (len(shown) == 1 or len(line) <= width):
        return line + (" (a value for each chain)" if report.by_chain else "")
    if not report.by_chain:
        return f"{name} =\n" + _indented(shown[0])
    blocks = [f"  chain {chain}:" + (f" {one}" if "\n" not in one else "\n" + _indented(one, "    "))
              for chain, one in enumerate(shown)]  # fmt: skip
    return "\n".join([f"{name} =", *blocks])


def _indented(text: str, margin: str = "  ") -> str:
    return "\n".join(margin + line for line in text.split("\n"))


def directive_table(directives: Sequence[Mapping[str, Any]], width: int = WIDTH) -> str:
    """What is in force, a line for each directive; a long one is cut."""
    if not directives:
        return "no directives"
    fields = [field for field in ("id", "label", "directive", "text") if any(entry[field] for entry in directives)]
    lines = [[" ".join(str(entry[field] or "").split()) for field in fields] for entry in directives]
    return "\n".join(cut(line, width) for line in table(fields, lines, right=lambda column: column == 0).split("\n"))


def as_json(report: RunReport, file: Path | None, picture: Path | None = None, rest: Path | None = None) -> str | None:
    """One line of JSON for a directive that has a value; `file` is where its draws were written, `picture` its plots,
    `rest` what the draws leave out where chains differ in length.

    JSON has no numbers for infinity and NaN: values are then the strings "inf", "-inf" and "nan"; diagnostics that
    are undefined are null.
    """
    if report.value is None:
        return None
    head: dict[str, Any] = {"directive": report.kind, "label": report.label, "expression": report.expression}
    if report.passes:
        head["passes"] = dict(report.passes)
    if isinstance(report.value, Draws):
        summary = report.value.summary()
        body: dict[str, Any] = {"summary": summary.as_dict(), "warnings": list(summary.warnings)}
        if (evidence := report.value.evidence) is not None:
            numbers = {"log": evidence.log, "error": evidence.error}
            body["evidence"] = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        body["file"] = str(file) if file else None
        if report.partial is not None:
            body |= {"partial": report.partial, "chains": list(report.value.numbers)}
        if report.rest is not None:
            body["rest"] = {"chains": report.rest.lengths(), "file": str(rest) if rest else None}
        if picture is not None:
            body["picture"] = str(picture)
    else:
        body = {"value": _json_value(report.value)}
    return json.dumps({**head, **body, "line": report.line}, allow_nan=False)


def portable(value: Any) -> Any:
    """Plain data is kept; what lives in a trace (a procedure) becomes its text."""
    match value:
        case Deterministic() | Random() | Maker():
            return f"<procedure {value.name}>"
        case None | bool() | int() | float() | str() | Distribution():
            return value
        case Draws():
            return value.converted(portable)
        case Symbol() | np.ndarray() | np.generic():
            return to_python(value)
        case tuple() | list():
            return [portable(item) for item in value]
        case dict():
            return {str(key): portable(item) for key, item in value.items()}
    return show(value)


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
        case Distribution():
            pairs = {"support": value.values, "probabilities": value.probabilities}
            return {name: [_json_value(to_python(item)) for item in items] for name, items in pairs.items()}
        case None | bool() | int() | float() | str():
            return value
    return str(value)


@contextlib.contextmanager
def warnings_to(show: Callable[[str], None]) -> Iterator[None]:
    """Send the language's warnings to `show`; others go where they went before."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", VentureWarning)
        before = warnings.showwarning

        def shown(message: Any, category: type[Warning], *rest: Any, **named: Any) -> None:
            if issubclass(category, VentureWarning):
                show(str(message))
            else:
                before(message, category, *rest, **named)

        warnings.showwarning = shown
        yield
