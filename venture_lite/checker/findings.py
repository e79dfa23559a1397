"""What a check finds: diagnostics with their places, and the parameters that a program needs."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from venture_lite.draws.presentation import listed
from venture_lite.errors import Span, VentureError


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong, and where."""

    # "error": the program, or the directive, would be refused; "warning": it would run, but hardly as it was meant
    severity: str
    message: str
    span: Span
    hint: str | None = None

    def __str__(self) -> str:
        prefix = "" if self.severity == "error" else f"{self.severity}: "
        return str(VentureError(prefix + self.message, self.span, self.hint))

    def as_dict(self) -> dict[str, Any]:
        """For editors: lines and columns count characters from 1, the end is the place just behind."""
        end_line, end_column = self.span.source.line_and_column(self.span.end)
        end = {"end_line": end_line, "end_column": end_column}
        return {**_place(self.span), **end, "severity": self.severity, "message": self.message, "hint": self.hint}


def _place(span: Span) -> dict[str, Any]:
    line, column = span.source.line_and_column(span.start)
    return {"file": span.source.name, "line": line, "column": column}


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check."""

    # by file in the order of loading, then by place
    diagnostics: tuple[Diagnostic, ...]
    # the names of the parameters that the program needs, each with the places where it is used
    parameters: dict[str, tuple[Span, ...]]

    @property
    def ok(self) -> bool:
        """Whether there is no error; warnings do not count."""
        return not self.count("error")

    def count(self, severity: str) -> int:
        return sum(diagnostic.severity == severity for diagnostic in self.diagnostics)

    def as_dicts(self) -> list[dict[str, Any]]:
        """For editors: one for each diagnostic, and a last one with the parameters and the totals."""
        parameters = [{"name": name, "uses": list(map(_place, spans))} for name, spans in self.parameters.items()]
        totals = {"parameters": parameters, "errors": self.count("error"), "warnings": self.count("warning")}
        return [*(diagnostic.as_dict() for diagnostic in self.diagnostics), totals]

    def __str__(self) -> str:
        lines = [str(diagnostic) for diagnostic in self.diagnostics]
        if self.parameters:
            lines.append("parameters that the program needs:")
            lines.extend(
                f"  {name} ({listed([span.place() for span in spans], 3)})" for name, spans in self.parameters.items()
            )
        totals = [_counted(self.count(severity), severity) for severity in ("error", "warning")]
        return "\n".join([*lines, ", ".join(totals)])


def _counted(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


@dataclass(slots=True)
class Findings:
    """What was found so far. Mutable."""

    # the names of the files, in the order in which they were met
    files: list[str] = field(default_factory=list)
    parameters: defaultdict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    # how often an error was found, the same one more than once too
    errors: int = 0
    _found: dict[tuple[str, int, str], Diagnostic] = field(default_factory=dict)

    def error(self, error: VentureError, span: Span) -> None:
        """An error as it would be raised; `span` is its place where it has none."""
        self.errors += 1
        self._add(Diagnostic("error", error.message, error.span or span, error.hint))

    def warn(self, message: str, span: Span, hint: str | None = None) -> None:
        self._add(Diagnostic("warning", message, span, hint))

    def _add(self, found: Diagnostic) -> None:
        """Each thing is told once at a place; of a file that is not to be quoted, that there is one."""
        if not found.span.source.quotable:
            message = f"there is {'an error' if found.severity == 'error' else 'a warning'} here"
            hint = "check that file itself: it lies outside of the folder of the program that loads it"
            found = Diagnostic(found.severity, message, found.span, hint)
        self._found.setdefault((found.span.source.name, found.span.start, found.message), found)

    @contextlib.contextmanager
    def told(self, span: Span) -> Iterator[None]:
        """An error that is raised in the block is found, and the rest of the block left out."""
        try:
            yield
        except VentureError as error:
            self.error(error, span)

    def result(self) -> Checked:
        order = {name: position for position, name in enumerate(self.files)}

        def place(found: Diagnostic) -> tuple[int, int]:
            return order.get(found.span.source.name, len(order)), found.span.start

        return Checked(
            tuple(sorted(self._found.values(), key=place)),
            {name: tuple(spans) for name, spans in sorted(self.parameters.items())},
        )
