"""Comparison: `=` on values of any kind, order on numbers and on strings, and `not`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures.columns import Flags, RowByRow, keep_exact, kinds_of, numeric, single_numbers
from venture_lite.procedures.domains import ANY, BOOLEAN_LIKE
from venture_lite.procedures.functions.arithmetic import PLAIN
from venture_lite.procedures.record import Argument, Columns, Deterministic
from venture_lite.values import equal, show

Test = Callable[[Any, Any], bool]


def equals(left: Any, right: Any, *rest: Any) -> bool:
    if left.__class__ in PLAIN and right.__class__ in PLAIN and not rest:
        return bool(left == right)
    return equal(left, right) and all(equal(left, other) for other in rest)


def differs(left: Any, right: Any) -> bool:
    return not equal(left, right)


def negate(value: Any) -> bool:
    if value is True or value is False:
        return not value
    return bool(BOOLEAN_LIKE.checked("not", "x", value) == 0)


def _ordered(name: str, test: Test) -> Callable[..., bool]:
    """A comparison that holds between all neighbours of its arguments."""

    def compare(left: Any, right: Any, *rest: Any) -> bool:
        if left.__class__ in PLAIN and right.__class__ in PLAIN and not rest:
            return test(left, right)
        chain = (left, right, *rest)
        if not (all(isinstance(x, (int, float)) for x in chain) or all(isinstance(x, str) for x in chain)):
            shown = " ".join(map(show, chain))
            raise ArgumentError(f"{name} compares numbers with numbers and strings with strings, got {shown}")
        return all(map(test, chain, chain[1:]))

    return compare


def _columns(test: Callable[[Any, Any], Any]) -> Columns:
    def columns(lifted: Flags, *arguments: Any) -> np.ndarray:
        if len(arguments) != 2:
            raise RowByRow
        numbers = single_numbers(lifted, arguments)
        keep_exact(kinds_of(numbers), numbers)
        return np.asarray(test(*numbers))

    return columns


def _negate_columns(lifted: Flags, value: Any) -> np.ndarray:
    if not BOOLEAN_LIKE.contains_all(value):
        raise RowByRow
    return np.asarray(numeric(value, True) == 0)


_PAIR = (Argument("x", ANY), Argument("y", ANY))


def _order(name: str, test: Test, words: str) -> Deterministic:
    summary = f"Whether each argument is {words} the next; numbers or strings."
    return Deterministic(name, _PAIR, summary, _ordered(name, test), _columns(test), rest=ANY)


EQUALS = Deterministic(
    "=", _PAIR,
    "Whether all arguments are equal: numbers and booleans by value, lists and vectors by element, others by identity.",
    equals, _columns(operator.eq), rest=ANY, total=True,
)  # fmt: skip
DIFFERS = Deterministic(
    "!=", _PAIR, "Whether two values differ; the opposite of =.", differs, _columns(operator.ne), total=True
)
NOT = Deterministic(
    "not", (Argument("x", BOOLEAN_LIKE),), "True of false or 0, false of true or 1.", negate, _negate_columns
)

RECORDS = (
    EQUALS,
    _order("<", operator.lt, "less than"),
    _order("<=", operator.le, "at most"),
    _order(">", operator.gt, "greater than"),
    _order(">=", operator.ge, "at least"),
    DIFFERS,
    NOT,
)
