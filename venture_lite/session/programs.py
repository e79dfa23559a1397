"""A program as text: read from files, looked over before it runs, and what each of its directives gave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from venture_lite.errors import ArgumentError, ParameterError, Source, Span, VentureError
from venture_lite.language import syntax
from venture_lite.language.parse import parse_expression, parse_program, spelling
from venture_lite.language.source_files import read_source, resolved
from venture_lite.language.syntax import Directive, Expression, Form, Name, flattened
from venture_lite.program.parameters import refuse_missing
from venture_lite.program.supplied import converted
from venture_lite.values import from_python
from venture_lite.values import written as typed


@dataclass(frozen=True, slots=True)
class DirectiveResult:
    """What one directive of a program gave."""

    directive: Directive
    value: Any
    # the variables of the loops around it that run pass by pass, outermost first
    passes: tuple[tuple[str, int], ...] = ()

    @property
    def expression(self) -> str | None:
        """The expression's text, where the directive has one."""
        expression: Expression | None = getattr(self.directive, "expression", None)
        return None if expression is None else " ".join(expression.span.text.split())

    @property
    def line(self) -> int:
        return self.directive.span.line


def expression_of(text: str) -> Expression:
    """One expression that a Python caller gave as text."""
    return parse_expression(Source("<input>", text))


def name_of(text: str) -> str:
    """A name that a Python caller gave, as the language spells it. Raises ArgumentError for what is none."""
    try:
        found = expression_of(text) if isinstance(text, str) else None
    except VentureError:
        found = None
    if not isinstance(found, syntax.Name) or found.span.text != text:
        hint = "a name has no spaces, brackets or quotes, and does not start with a digit"
        raise ArgumentError(f"{text!r} is no name of the language", hint=hint)
    return str(found.name)


def constant_of(value: Any, expression: Expression) -> syntax.Quote:
    """A value that a Python caller gave for an expression. Raises ParameterError for what is none, or is missing."""
    told = " ".join(expression.span.text.split())
    try:
        given = from_python(converted(f"the value of {told}", value))
        return syntax.Quote(refuse_missing(given, expression.span, name=told), expression.span)
    except VentureError as error:
        raise error.at(expression.span) from None
    except RecursionError:
        raise ParameterError(f"the value of {told} is nested too deeply", expression.span) from None


def written(keyword: str, *parts: str | syntax.Quote) -> Span:
    """A directive that a Python caller made, as it would stand in a program."""
    texts = [part if isinstance(part, str) else typed(part.value) for part in parts]
    source = Source("<input>", f"[{' '.join([keyword, *texts])}]")
    return Span(source, 0, len(source.text))


def label_of(label: str | None) -> str | None:
    """A label that a Python caller gave, as the language spells it."""
    return None if label is None else spelling(label)


def reference_to(label: str | int, positions: tuple[int, ...] = ()) -> syntax.DirectiveReference:
    """A directive that a Python caller named."""
    source = Source("<input>", str(label))
    label = spelling(label) if isinstance(label, str) else label
    return syntax.DirectiveReference(label, positions, Span(source, 0, len(source.text)))


# ------------------------------------------------------------------------------------------------- before it runs


def assumed_names(program: Iterable[Directive], folder: Path, seen: set[Path]) -> frozenset[str]:
    """The names that a program and the files that it loads assume; what is wrong with a file is told when it loads."""
    names: set[str] = set()
    for directive in program:
        match directive:
            case syntax.Assume(name=name):
                names.add(name)
            case syntax.Load(path=path, span=span) if resolved(folder / path) not in seen:
                seen.add(resolved(folder / path))
                try:
                    loaded = parse_program(read_source(folder / path, span))
                except VentureError:
                    continue
                names |= assumed_names(loaded, (folder / path).parent, seen)
    return frozenset(names)


def only_rows(loop: syntax.Loop) -> bool:
    """Whether a loop, with those inside it, only observes and predicts: one directive, its rows loaded together."""
    return all(isinstance(item, (syntax.Loop, syntax.Observe, syntax.Predict)) for item in flattened(loop.body))


def refused_in_loop(directive: Directive) -> VentureError | None:
    """Why no loop takes a directive, if that is so."""
    match directive:
        case syntax.Assume(span=span):
            hint = "assume a memoized procedure of the loop's variable: [assume x (mem (lambda (n) ...))]"
            return VentureError("assume cannot stand in a loop: names are never rebound", span, hint)
        case syntax.Clear(span=span) | syntax.Load(span=span):
            return VentureError(f"{directive.kind} cannot stand in a loop", span)
    return None


def is_auto(expression: Expression) -> bool:
    """Whether an inference program is `(auto DRAWS)`."""
    match expression:
        case Form(items=(Name(name="auto"), *_)):
            return True
    return False
