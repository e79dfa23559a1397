"""Procedures of inference programs: a lambda stays text, closed over what its names meant where it was written.

An inference program has no trace of its own that could hold a closure. So `define`d names, loop variables and
parameters in a lambda are replaced by their values when it is written; the names that are left are the model's, looked
up in each trace in which the text is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from venture_lite.language.syntax import Expression, Form, Name, Parameter, Quote
from venture_lite.program.forms import SPECIAL_FORMS


@dataclass(frozen=True, slots=True, eq=False)
class InferenceLambda:
    """A procedure of an inference program."""

    # nothing in it but the model's names is free
    expression: Expression

    def __repr__(self) -> str:
        return f"<procedure {self.expression.span.text}>"


def closed(
    item: Expression, names: Mapping[str, Any], parameter: Callable[[Parameter], Expression] | None = None
) -> Expression:
    """The expression with these names, where they are free in it, replaced by their values; `parameter` says what a
    parameter is replaced by."""
    match item:
        case Name(name=name, span=span) if name in names:
            value = names[name]
            return value.expression if isinstance(value, InferenceLambda) else Quote(value, span)
        case Parameter() if parameter is not None:
            return parameter(item)
        case Form(items=(Name(name="quote"), *_)):
            return item
        case Form(items=(Name(name="lambda") as head, Form(items=taken) as variables, *body)):
            inner = _without(names, taken)
            return replace(item, items=(head, variables, *(closed(part, inner, parameter) for part in body)))
        case Form(items=(Name(name="let" | "letrec"), Form(), *_)):
            return _closed_let(item, names, parameter)
        case Form(items=(Name(name="scope_include" | "tag") as head, scope, *rest)):
            return replace(item, items=(head, scope, *(closed(part, names, parameter) for part in rest)))
        case Form(items=(Name(name=name) as head, *rest)) if name in SPECIAL_FORMS:
            return replace(item, items=(head, *(closed(part, names, parameter) for part in rest)))
        case Form(items=items):
            return replace(item, items=tuple(closed(part, names, parameter) for part in items))
    return item


def _without(names: Mapping[str, Any], taken: tuple[Expression, ...]) -> dict[str, Any]:
    hidden = {part.name for part in taken if isinstance(part, Name)}
    return {name: value for name, value in names.items() if name not in hidden}


def _closed_let(form: Form, names: Mapping[str, Any], parameter: Callable[[Parameter], Expression] | None) -> Form:
    """`let` hides its names one after the other, `letrec` all of them at once."""
    head, bound, *body = form.items
    assert isinstance(bound, Form)
    if isinstance(head, Name) and head.name == "letrec":
        names = _without(names, tuple(part.items[0] for part in bound.items if isinstance(part, Form) and part.items))
    visited: list[Expression] = []
    for binding in bound.items:
        match binding:
            case Form(items=(Name() as target, value)):
                visited.append(replace(binding, items=(target, closed(value, names, parameter))))
                names = _without(names, (target,))
            case _:
                visited.append(binding)
    inner = tuple(closed(part, names, parameter) for part in body)
    return replace(form, items=(head, replace(bound, items=tuple(visited)), *inner))
