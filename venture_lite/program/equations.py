"""Differential equations as they are written: `(ode (lambda (t y) (vector ...)) Y0 T0 TS)`.

The right-hand side is text. What of it reads neither t nor y, a parameter, a call of a memoized procedure, is an
argument like any other, evaluated where the form stands; the rest is read into a function of recorded numbers, which
the record prints (`procedures/equations.py`). So the form is a call of one record, and nothing else of the system has
to know it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from venture_lite.errors import ArgumentError, nearest
from venture_lite.language.syntax import Expression, Form, Literal, Name, Quote, walked
from venture_lite.procedures.checks import check_count
from venture_lite.procedures.equations import TOLERANCE, ode
from venture_lite.procedures.pullbacks import LOG10_E, ElementwisePullback
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.procedures.straight_line import Node, recorded
from venture_lite.program.forms import SUGAR, if_parts, lambda_parts, let_parts, unsugared
from venture_lite.program.lift import shape
from venture_lite.values import Symbol, show

Lookup = Callable[[str], Any]
"""As `compounds.Lookup`."""

Reader = Callable[[Mapping[str, Any], Sequence[Any]], Any]
"""`(what names mean, what is free) -> a recorded number, or nested tuples of them`."""

USAGE = "(ode (lambda (t y) VECTOR) Y0 T0 TS ['stiff] ['rtol R] ['atol A])"

_where = recorded("where")


def as_equations(form: Form, lookup: Lookup) -> tuple[Deterministic, tuple[Expression, ...]]:
    """The record that the form stands for, with its arguments.

    Raises ArgumentError, at its place, for a form that is written otherwise.
    """
    if len(form.items) < 5:
        raise _written(form)
    _, side, *positional = form.items
    match side:
        case Form(items=(Name(name="lambda"), *_)):
            _, names, body = lambda_parts(side)
        case _:
            raise ArgumentError("ode: F is written out, (lambda (t y) VECTOR)", side.span, USAGE)
    if len(names) != 2:
        raise ArgumentError("ode: F is of the time and the state, (lambda (t y) VECTOR)", side.span)
    is_stiff, options = _options(form, positional[3:])
    reading = _Reading(lookup)
    read = reading.body(body, frozenset(names), side)

    def right_hand_side(t: Any, y: Any, free: Sequence[Any]) -> Any:
        return read({names[0]: t, names[1]: y}, free)

    tolerances = [options.get(word) or Quote(TOLERANCE, form.span) for word in ("rtol", "atol")]
    called = tuple([_called(item) for item in reading.free])
    return ode(right_hand_side, is_stiff, called), (*positional[:3], *tolerances, *reading.free)


def _called(item: Expression) -> str:
    """A free expression as a message names it."""
    return " ".join(item.span.text.split())


def _written(form: Form) -> ArgumentError:
    return ArgumentError(
        f"ode is written {USAGE}", form.span, "(ode (lambda (t y) (vector (* -0.5 (lookup y 0)))) ...)"
    )


def _options(form: Form, items: Sequence[Expression]) -> tuple[bool, dict[str, Expression]]:
    """Whether the solver is the one for stiff equations, and what follows the other words."""
    found: dict[str, Expression] = {}
    is_stiff, rest = False, list(items)
    while rest:
        match rest.pop(0):
            case Quote(value=Symbol(name="stiff")) if not is_stiff:
                is_stiff = True
            case Quote(value=Symbol(name="rtol" | "atol" as word)) if rest and word not in found:
                found[word] = rest.pop(0)
            case Quote(value=Symbol(name=word)) as item if word not in ("rtol", "atol", "stiff"):
                hint = nearest(word, ("rtol", "atol", "stiff")) or USAGE
                raise ArgumentError("ode knows no such option", item.span, hint)
            case _:
                raise _written(form)
    return is_stiff, found


class _Reading:
    """Reads the text of a right-hand side; gathers what of it is free."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self.free: list[Expression] = []
        self._known: dict[Any, int] = {}

    def body(self, items: Sequence[Expression], bound: frozenset[str], around: Form) -> Reader:
        if len(items) != 1:
            raise ArgumentError("ode: F is one expression", around.span, "let names what is used twice")
        return self.read(items[0], bound)

    def read(self, item: Expression, bound: frozenset[str]) -> Reader:
        """An expression in which the names that are `bound` stand for what depends on t and y, or is named inside."""
        match item:
            case Literal(value=value) | Quote(value=value) if isinstance(value, (int, float)):
                return lambda names, free: value
            case Name(name=name) if name in bound:
                return lambda names, free: names[name]
        if not any(isinstance(part, Name) and part.name in bound for part in walked(item)):
            return self._argument(item)
        match item:
            case Form(items=(Name(name=head), *_)) if head not in bound:
                return self._form(item, head, bound)
        raise ArgumentError("ode: a procedure that depends on t or y cannot be called in F", item.span)

    def _argument(self, item: Expression) -> Reader:
        """What is free of t and y, evaluated where the form stands."""
        for part in walked(item):
            match part:
                case Form(items=(Name(name=head), *_)) if isinstance(self._lookup(head), (Random, Maker)):
                    raise ArgumentError(
                        f"ode: {head} would be drawn inside F", part.span, "a name for it, outside of ode"
                    )
        place = self._known.setdefault(shape(item), len(self.free))
        if place == len(self.free):
            self.free.append(item)
        return lambda names, free: free[place]

    def _form(self, item: Form, head: str, bound: frozenset[str]) -> Reader:
        record = self._lookup(head)
        if isinstance(record, Deterministic):
            return self._call(item, record, bound)
        match head:
            case "let":
                return self._let(item, bound)
            case "if":
                parts = [self.read(part, bound) for part in if_parts(item)]
                return lambda names, free: _chosen(*[part(names, free) for part in parts])
            case "begin":
                return self.body(item.items[1:], bound, item)
            case name if name in SUGAR:
                return self.read(unsugared(item), bound)
        hint = "arithmetic, elementary functions, comparisons, if, let, vector, lookup, sum, dot"
        raise ArgumentError(f"ode: {head} cannot be applied to what depends on t or y", item.span, hint)

    def _let(self, item: Form, bound: frozenset[str]) -> Reader:
        pairs, body = let_parts(item)
        steps = []
        for name, value in pairs:
            steps.append((name.name, self.read(value, bound)))
            bound |= {name.name}
        inner = self.body(body, bound, item)

        def reader(names: Mapping[str, Any], free: Sequence[Any]) -> Any:
            names = dict(names)
            for name, step in steps:
                names[name] = step(names, free)
            return inner(names, free)

        return reader

    def _call(self, item: Form, record: Deterministic, bound: frozenset[str]) -> Reader:
        check_count(record, len(item.items) - 1, item.span)
        rule = _RULES.get(record.name)
        if rule is None and isinstance(record.pullback, ElementwisePullback) and record.pullback.value is not None:
            rule = functools.partial(_elementwise, record.name, record.pullback.value)
        if rule is None:
            raise ArgumentError(
                f"ode: {record.name} cannot be applied to what depends on t or y", item.span,
                f"arithmetic, if, let, {', '.join(sorted(_RULES))}",
            )  # fmt: skip
        arguments, meant = [self.read(part, bound) for part in item.items[1:]], rule

        def reader(names: Mapping[str, Any], free: Sequence[Any]) -> Any:
            try:
                return meant(*[argument(names, free) for argument in arguments])
            except ArgumentError as error:
                raise error.at(error.span or item.span) from None

        return reader


# ------------------------------------------------------------------------------------------- of recorded numbers


def _elementwise(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Of numbers, or item by item of vectors as long."""
    sizes = {len(each) for each in arguments if isinstance(each, tuple)}
    if not sizes:
        return function(*arguments)
    if len(sizes) > 1:
        raise ArgumentError(f"ode: {name} of vectors of {' and '.join(map(str, sorted(sizes)))} items")
    (size,) = sizes
    items = [[each[i] if isinstance(each, tuple) else each for each in arguments] for i in range(size)]
    return tuple([_elementwise(name, function, *each) for each in items])


def _numbers_only(name: str, *arguments: Any) -> None:
    if any(isinstance(each, tuple) for each in arguments):
        raise ArgumentError(f"ode: {name} takes numbers here, not vectors")


def _compared(name: str, function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def compare(left: Any, right: Any) -> Any:
        _numbers_only(name, left, right)
        return function(left, right)

    return compare


def _chosen(predicate: Any, consequent: Any, alternative: Any) -> Any:
    _numbers_only("if", predicate)
    if predicate.__class__ is not Node:
        return consequent if predicate else alternative
    if isinstance(consequent, tuple) != isinstance(alternative, tuple):
        raise ArgumentError("ode: if chooses between a number and a vector")
    return _elementwise("if", lambda one, other: _where(predicate, one, other), consequent, alternative)


def _looked_up(collection: Any, index: Any) -> Any:
    if not isinstance(collection, tuple):
        raise ArgumentError("ode: lookup takes a vector here, not a number")
    if not isinstance(index, (int, float)) or index != int(index):
        raise ArgumentError("ode: an index is written as a number in F")
    if not 0 <= index < len(collection):
        raise ArgumentError(f"ode: lookup: there is no item {show(int(index))} of {len(collection)}")
    return collection[int(index)]


def _summed(items: Any) -> Any:
    if not isinstance(items, tuple):
        raise ArgumentError("ode: sum takes a vector here, not a number")
    _numbers_only("sum", *items)
    return functools.reduce(operator.add, items, 0.0)


def _dot(left: Any, right: Any) -> Any:
    """Of two vectors, or a matrix, nested tuples, and a vector."""
    if isinstance(left, tuple) and left and isinstance(left[0], tuple):
        return tuple([_dot(row, right) for row in left])
    if not isinstance(left, tuple) or not isinstance(right, tuple):
        raise ArgumentError("ode: dot takes vectors here")
    return _summed(_elementwise("dot", operator.mul, left, right))


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(exponent, (int, float)) and exponent == int(exponent) and 1 <= exponent <= 8:
        return functools.reduce(operator.mul, [base] * int(exponent))
    found = recorded("exp")(exponent * recorded("log")(base))
    return _where(base == 0, _where(exponent == 0, 1.0, 0.0), found)


def _logistic(x: Any) -> Any:
    return 1.0 / (1.0 + recorded("exp")(-x))


def _extreme(name: str) -> Callable[..., Any]:
    function = recorded({"min": "minimum", "max": "maximum"}[name])

    def of(*numbers: Any) -> Any:
        items = numbers[0] if len(numbers) == 1 and isinstance(numbers[0], tuple) else numbers
        _numbers_only(name, *items)
        return functools.reduce(function, items)

    return of


_RULES: dict[str, Callable[..., Any]] = {
    "vector": lambda *items: items,
    "list": lambda *items: items,
    "lookup": _looked_up,
    "first": lambda items: _looked_up(items, 0),
    "second": lambda items: _looked_up(items, 1),
    "sum": _summed,
    "dot": _dot,
    "matmul": _dot,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "<": _compared("<", operator.lt),
    "<=": _compared("<=", operator.le),
    ">": _compared(">", operator.gt),
    ">=": _compared(">=", operator.ge),
    "=": _compared("=", operator.eq),
    "pow": functools.partial(_elementwise, "pow", _power),
    "logistic": functools.partial(_elementwise, "logistic", _logistic),
    "tan": functools.partial(_elementwise, "tan", lambda x: recorded("sin")(x) / recorded("cos")(x)),
    "log10": functools.partial(_elementwise, "log10", lambda x: LOG10_E * recorded("log")(x)),
}
"""Procedures that have a rule of their own for recorded numbers; those that are elementwise arithmetic need none."""
