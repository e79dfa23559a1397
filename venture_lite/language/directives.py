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


class _Keyword(NamedTuple):
    """How many parts a directive takes, the words for them, an example, and what is made of them."""

    least: int
    most: float
    takes: str
    example: str
    made: Callable[..., Directive]


_REFERENCE = "a label or a number"
DIRECTIVES = {
    "assume": _Keyword(2, 2, "a name and an expression", "[assume x (normal 0 1)]", syntax.Assume),
    "observe": _Keyword(2, 2, "an expression and a value", "[observe (normal x 1) 2.5]", syntax.Observe),
    "factor": _Keyword(1, 1, "one expression", "[factor (- (abs x))]", syntax.Factor.of),
    "condition": _Keyword(1, 1, "one predicate", "[condition (> x 0)]", syntax.Condition.of),
    "predict": _Keyword(1, 1, "one expression", "[predict (+ x 1)]", syntax.Predict),
    "infer": _Keyword(
        1, 1, "one inference expression", "[infer (mh default one 100)], or (do ...) around several", syntax.Infer
    ),
    "sample": _Keyword(1, 1, "one expression", "[sample (normal x 1)]", syntax.Sample),
    "force": _Keyword(2, 2, "an expression and a value", "[force x 0.5]", syntax.Force),
    "forget": _Keyword(
        1, math.inf, _REFERENCE + ", and for the data of a loop their positions", "[forget data 3]", syntax.Forget
    ),
    "freeze": _Keyword(1, math.inf, _REFERENCE, "[freeze slope]", syntax.Freeze),
    "report": _Keyword(1, math.inf, _REFERENCE, "[report slope]", syntax.Report),
    "define": _Keyword(2, 2, "a name and an expression", "[define steps 100]", syntax.Define),
    "list_directives": _Keyword(0, 0, "nothing", "[list_directives]", syntax.ListDirectives),
    "clear": _Keyword(0, 0, "nothing", "[clear]", syntax.Clear),
    "get_logscore": _Keyword(0, 0, "nothing", "[get_logscore]", syntax.GetLogScore),
    "load": _Keyword(1, 1, "a path in quotation marks", '[load "other.vnt"]', syntax.Load),
}
EXAMPLES = {name: parts.example for name, parts in DIRECTIVES.items() if parts.least}
"""How those that take something are written."""


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
    return syntax.Infer(expression, span=span)


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
    least, most, takes, example, made = DIRECTIVES[keyword]
    if not least <= len(parts) <= most:
        given = f"{len(parts)} part{'' if len(parts) == 1 else 's'}" if parts else "nothing"
        raise ParseError(f"{keyword} takes {takes}; here it has {given}", span, example)
    match keyword, parts:
        case "assume" | "define", (target, body):
            return made(*_binding(keyword, target, body), span=span)
        case "forget" | "freeze" | "report", _:
            return made(_reference(keyword, parts), span=span)
        case "load", (Literal(str(path)),):
            return made(path, span=span)
        case "load", (other,):
            raise ParseError("load takes a path in quotation marks", other.span, example)
    return made(*parts, span=span)


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
