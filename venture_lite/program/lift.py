"""Before the analysis: what of an expression is data, and what is its shape.

Literals, loop variables and `{parameters}` that vary over the passes of a loop become argument slots of the directive's
Code, so that expressions of one shape share one Code: ten hand-written observations are ten rows of one table. Inside a
`lambda`, whose text may be inlined elsewhere, and in the branches of an `if`, literals stay part of the shape.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from venture_lite.errors import VentureError
from venture_lite.language.syntax import UNWRITABLE, Expression, Form, Index, IndexName, Literal, Name, Parameter, Quote
from venture_lite.program.parameters import constant_index, index_names
from venture_lite.values import exact_key

ARGUMENT_PREFIX = UNWRITABLE
"""What names of lifted arguments start with."""


@dataclass(frozen=True, slots=True)
class Lifted:
    """An expression whose data stand apart."""

    expression: Expression
    # what each argument slot holds: a literal, or an index expression over loop variables and parameters
    arguments: tuple[Literal | Parameter, ...]


class Lifter:
    def __init__(self, loop_variables: tuple[str, ...], parameters: Mapping[str, Any], lift_literals: bool) -> None:
        self.loop_variables = frozenset(loop_variables)
        self.parameters = parameters
        self.lift_literals = lift_literals
        self.arguments: list[Literal | Parameter] = []
        self._known: dict[Hashable, int] = {}

    def lift(self, expression: Expression) -> Lifted:
        lifted = self._visit(expression, literals=self.lift_literals, bound=frozenset())
        return Lifted(lifted, tuple(self.arguments))

    def _argument(self, item: Literal | Parameter) -> Name:
        # the same parameter twice is one column; every literal is its own, or `(normal 0 1)` and `(normal 1 1)` would
        # differ in shape
        key = shape(item) if isinstance(item, Parameter) else len(self.arguments)
        position = self._known.setdefault(key, len(self.arguments))
        if position == len(self.arguments):
            self.arguments.append(item)
        return Name(f"{ARGUMENT_PREFIX}{position}", item.span)

    def _visit(self, item: Expression, literals: bool, bound: frozenset[str]) -> Expression:
        match item:
            case Literal() if literals:
                return self._argument(item)
            case Name(name=name) if name in self.loop_variables and name not in bound:
                return self._argument(Parameter(IndexName(name, item.span), item.span))
            case Parameter(index=index):
                if self.loop_variables & index_names(index):
                    return self._argument(item)
                return Quote(constant_index(index, self.parameters), item.span)
            case Form(items=(Name(name="lambda"), *rest)) if rest:
                names = frozenset(_parameter_names(rest[0]))
                return replace(item, items=(*item.items[:2], *self._all(rest[1:], False, bound | names)))
            case Form(items=(Name(name="if") as head, first, *rest)):
                return replace(item, items=(head, self._visit(first, literals, bound), *self._all(rest, False, bound)))
            case Form(items=(Name(name="cond" | "and" | "or" | "case") as head, *rest)):
                return replace(item, items=(head, *self._all(rest, False, bound)))
            case Form(items=(Name(name="scope_include" | "tag") as head, scope, key, expression)):
                block = self._visit(key, False, bound)
                return replace(item, items=(head, scope, block, self._visit(expression, literals, bound)))
            case Form(items=(Name(name="let" | "letrec"), Form(items=bindings), *body)):
                return self._visit_let(item, bindings, body, literals, bound)
            case Form(items=items):
                return replace(item, items=self._all(items, literals, bound))
        return item

    def _all(self, items: Iterable[Expression], literals: bool, bound: frozenset[str]) -> tuple[Expression, ...]:
        return tuple(self._visit(part, literals, bound) for part in items)

    def _visit_let(
        self,
        form: Form,
        bindings: tuple[Expression, ...],
        body: Iterable[Expression],
        literals: bool,
        bound: frozenset[str],
    ) -> Form:
        visited: list[Expression] = []
        for binding in bindings:
            match binding:
                case Form(items=(Name(name=name) as target, value)):
                    visited.append(replace(binding, items=(target, self._visit(value, literals, bound))))
                    bound = bound | {name}
                case _:
                    visited.append(binding)
        written = Form(tuple(visited), form.items[1].span)
        return replace(form, items=(form.items[0], written, *self._all(body, literals, bound)))


def _parameter_names(item: Expression) -> list[str]:
    match item:
        case Form(items=items):
            return [part.name for part in items if isinstance(part, Name)]
        case Name(name=name):
            return [name]
    return []


def shape(item: Expression | Index) -> Hashable:
    """A key that two expressions share when they differ in nothing but their places."""
    match item:
        case Name(name=name):
            return name
        case Form(items=items):
            return tuple(map(shape, items))
        case Literal(value=value):
            return ("literal", exact_key(value))
        case Quote(value=value):
            return ("quote", exact_key(value))
        case Parameter(index=index):
            return ("parameter", _index_shape(index))
    raise VentureError("not an expression")


def _index_shape(index: Index) -> Hashable:
    match index:
        case IndexName(name=name):
            return name
        case _:
            return tuple(
                _index_shape(part) if hasattr(part, "span") else exact_key(part)
                for part in (getattr(index, field) for field in index.__slots__ if field not in ("span", "positions"))
            ) + tuple(map(_index_shape, getattr(index, "positions", ())))
