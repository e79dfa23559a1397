"""From a bracketed expression to a directive: the keywords, and the parts that each of them takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from venture_lite.errors import ParseError, Span
from venture_lite.language import syntax
from venture_lite.language.suggestions import suggestion
from venture_lite.language.syntax import Directive, DirectiveReference, Expression, Form, Literal, Name, Quote
from venture_lite.values import Symbol


class _Parts(NamedTuple):
    """How many parts a directive takes, the words for them, and an example."""

    least: int
    most: float
    takes: str
    example: str


_REFERENCE = "a label or a number"
DIRECTIVES = {
    "assume": _Parts(2, 2, "a name and an expression", "[assume x (normal 0 1)]"),
    "observe": _Parts(2, 2, "an expression and a value", "[observe (normal x 1) 2.5]"),
    "predict": _Parts(1, 1, "one expression", "[predict (+ x 1)]"),
    "infer": _Parts(1, 1, "one inference expression", "[infer (mh default one 100)], or (do ...) around several"),
    "sample": _Parts(1, 1, "one expression", "[sample (normal x 1)]"),
    "force": _Parts(2, 2, "an expression and a value", "[force x 0.5]"),
    "forget": _Parts(1, math.inf, _REFERENCE + ", and for the data of a loop their positions", "[forget data 3]"),
    "freeze": _Parts(1, math.inf, _REFERENCE, "[freeze slope]"),
    "report": _Parts(1, math.inf, _REFERENCE, "[report slope]"),
    "define": _Parts(2, 2, "a name and an expression", "[define steps 100]"),
    "list_directives": _Parts(0, 0, "nothing", "[list_directives]"),
    "clear": _Parts(0, 0, "nothing", "[clear]"),
    "get_logscore": _Parts(0, 0, "nothing", "[get_logscore]"),
    "load": _Parts(1, 1, "a path in quotation marks", '[load "other.vnt"]'),
}
EXAMPLES = {name: parts.example for name, parts in DIRECTIVES.items() if parts.least}
"""How those that take something are written."""
_OF_EXPRESSION: dict[str, Callable[[Expression, Span], Directive]] = {
    "predict": syntax.Predict,
    "infer": syntax.Infer,
    "sample": syntax.Sample,
}
_OF_REFERENCE: dict[str, Callable[[DirectiveReference, Span], Directive]] = {
    "forget": syntax.Forget,
    "freeze": syntax.Freeze,
    "report": syntax.Report,
}


def directive(expression: Expression) -> Directive:
    """What an expression at top level stands for."""
    span = expression.span
    match expression:
        case Form((Name(head), *parts)) if head.lower() in DIRECTIVES:
            return _made(head.lower(), tuple(parts), span)
        case Form(items) if span.source.text.startswith("[", span.start):
            raise _no_directive(items, span)
        case Name(head) if head.lower() in DIRECTIVES:
            raise ParseError(f"{head} stands without brackets", span, DIRECTIVES[head.lower()].example)
    return syntax.Infer(expression, span)


def _no_directive(items: tuple[Expression, ...], span: Span) -> ParseError:
    known = ", ".join(DIRECTIVES)
    match items:
        case (Name(head, place), *_):
            hint = suggestion(head.lower(), DIRECTIVES)
            hint = hint or f"one of {known}; an inference expression stands in round brackets: ({head} ...)"
            return ParseError(f"there is no directive `{head}`", place, hint)
        case (first, *_):
            return ParseError("a directive starts with its keyword", first.span, f"one of {known}")
    return ParseError("this directive is empty", span, f"one of {known}")


def _made(keyword: str, parts: tuple[Expression, ...], span: Span) -> Directive:
    least, most, takes, example = DIRECTIVES[keyword]
    if not least <= len(parts) <= most:
        given = f"{len(parts)} part{'' if len(parts) == 1 else 's'}" if parts else "nothing"
        raise ParseError(f"{keyword} takes {takes}; here it has {given}", span, example)
    match keyword, parts:
        case "assume" | "define", (target, body):
            name, bound = _binding(keyword, target, body)
            return (syntax.Assume if keyword == "assume" else syntax.Define)(name, bound, span)
        case "observe" | "force", (expression, value):
            return (syntax.Observe if keyword == "observe" else syntax.Force)(expression, value, span)
        case "predict" | "infer" | "sample", (expression,):
            return _OF_EXPRESSION[keyword](expression, span)
        case "forget" | "freeze" | "report", _:
            return _OF_REFERENCE[keyword](_reference(keyword, parts), span)
        case "load", (Literal(str(path)),):
            return syntax.Load(path, span)
        case "load", (other,):
            raise ParseError("load takes a path in quotation marks", other.span, example)
        case "list_directives", _:
            return syntax.ListDirectives(span)
        case "clear", _:
            return syntax.Clear(span)
    return syntax.GetLogScore(span)


def _binding(keyword: str, target: Expression, body: Expression) -> tuple[str, Expression]:
    """The name and the value that are meant: `(f x) BODY` binds `f` to a lambda."""
    match target:
        case Name(name):
            return name, body
        case Form((Name(name), *arguments), place) if all(isinstance(argument, Name) for argument in arguments):
            whole = Span(place.source, place.start, body.span.end)
            return name, Form((Name("lambda", place), Form(tuple(arguments), place), body), whole)
    hint = f"[{keyword} x ...] or [{keyword} (f x) ...]"
    raise ParseError(f"{keyword} binds a name, or a name with the names of its arguments", target.span, hint)


def _reference(keyword: str, parts: tuple[Expression, ...]) -> DirectiveReference:
    first, *rest = parts
    span = Span(first.span.source, first.span.start, parts[-1].span.end)
    target: str | int
    match first:
        case Name(str(name)) | Quote(Symbol(name=name)) | Literal(str(name)):
            target = name
        case Literal(int(number)) if not isinstance(number, bool):
            target = number
        case _:
            raise ParseError(f"{keyword} takes {_REFERENCE}", first.span, DIRECTIVES[keyword].example)
    positions = []
    for part in rest:
        match part:
            case Literal(int(number)) if not isinstance(number, bool) and number >= 1:
                positions.append(number)
            case _:
                raise ParseError("a datum's position is a whole number from 1", part.span, f"[{keyword} data 3]")
    return DirectiveReference(target, tuple(positions), span)
