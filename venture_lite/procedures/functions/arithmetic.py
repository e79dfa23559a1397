"""Arithmetic: `+ - * /` on any number of arguments as in Scheme, elementwise on vectors, and division with remainder.

Integers stay integers under `+ - *` until they leave 64 bits, where they become floats.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import pullbacks
from venture_lite.procedures.columns import Flags, RowByRow, elementwise, folded
from venture_lite.procedures.domains import NUMERIC, REAL
from venture_lite.procedures.record import Argument, Deterministic
from venture_lite.values import freeze, show

Operation = Callable[[Any, Any], Any]

PLAIN: frozenset[Any] = frozenset((int, float))
"""The classes that Python's own arithmetic treats as the language does, while the result is within `LARGEST`: not bool,
whose sums are plain but not its class, and no array."""

LARGEST = 2.0**63


def _combine(name: str, operation: Operation, left: Any, right: Any) -> Any:
    """One step of an operation on two numbers, a number and an array, or two arrays of one shape."""
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return _number(name, operation, left, right)
    for side in (left, right):
        if not NUMERIC.contains(side):
            raise ArgumentError(f"{name} takes numbers, vectors and matrices, got {show(side)}")
    shapes = {side.shape for side in (left, right) if isinstance(side, np.ndarray)}
    if len(shapes) > 1:
        raise ArgumentError(f"{name}: shapes differ: {left.shape} and {right.shape}")
    with np.errstate(all="ignore"):
        result = operation(left, right)
    if np.isnan(result).any():
        raise ArgumentError(f"{name}: the result is not a number, for {show(left)} and {show(right)}")
    return freeze(np.asarray(result, dtype=np.float64))


def _number(name: str, operation: Operation, left: Any, right: Any) -> Any:
    try:
        result = operation(left, right)
    except OverflowError:
        return math.inf if (left < 0) == (right < 0) else -math.inf
    if isinstance(result, int):
        return result if -(2**63) <= result < 2**63 else float(result)
    if result != result:
        raise ArgumentError(f"{name}: the result is not a number, for {show(left)} and {show(right)}")
    return result


def add(left: Any = 0, right: Any = 0, *rest: Any) -> Any:
    if left.__class__ in PLAIN and right.__class__ in PLAIN and not rest:
        result = left + right
        if -LARGEST < result < LARGEST:
            return result
    result = _combine("+", operator.add, left, right)
    for term in rest:
        if result.__class__ in PLAIN and term.__class__ in PLAIN:
            total = result + term
            if -LARGEST < total < LARGEST:
                result = total
                continue
        result = _combine("+", operator.add, result, term)
    return result


def multiply(left: Any = 1, right: Any = 1, *rest: Any) -> Any:
    if left.__class__ in PLAIN and right.__class__ in PLAIN and not rest:
        result = left * right
        if -LARGEST < result < LARGEST:
            return result
    result = _combine("*", operator.mul, left, right)
    for factor in rest:
        result = _combine("*", operator.mul, result, factor)
    return result


def subtract(left: Any, *rest: Any) -> Any:
    if not rest:
        return _combine("-", operator.mul, -1, left)
    result = left
    for term in rest:
        if result.__class__ in PLAIN and term.__class__ in PLAIN:
            difference = result - term
            if -LARGEST < difference < LARGEST:
                result = difference
                continue
        result = _combine("-", operator.sub, result, term)
    return result


def divide(left: Any, *rest: Any) -> Any:
    if not rest:
        return _quotient(1.0, left)
    result = left
    for divisor in rest:
        result = _quotient(result, divisor)
    return result


def _quotient(left: Any, right: Any) -> Any:
    if right.__class__ is float and right and left.__class__ is float:
        result = left / right
        if result == result:
            return result
    _refuse_zero("/", left, right)
    return _combine("/", operator.truediv, left, right)


def _refuse_zero(name: str, left: Any, right: Any) -> None:
    if (not right.all()) if isinstance(right, np.ndarray) else right == 0:
        raise ArgumentError(f"{name}: division by zero, of {show(left)} by {show(right)}")


def modulo(left: Any, right: Any) -> Any:
    _refuse_zero("mod", left, right)
    return _combine("mod", operator.mod, left, right)


def integer_divide(left: Any, right: Any) -> Any:
    _refuse_zero("int_div", left, right)
    result = _combine("int_div", operator.floordiv, left, right)
    return int(result) if isinstance(result, float) and abs(result) < 2**63 else result


def _divide_columns(left: Any, right: Any) -> Any:
    if not np.all(right):
        raise RowByRow
    return np.true_divide(left, right)


def _subtract_columns(lifted: Flags, *arguments: Any) -> np.ndarray:
    if len(arguments) == 1:
        return _fold_multiply((False, *lifted), -1, *arguments)
    return _fold_subtract(lifted, *arguments)


def _quotient_columns(lifted: Flags, *arguments: Any) -> np.ndarray:
    if len(arguments) != 2:
        raise RowByRow
    return _elementwise_divide(lifted, *arguments)


_fold_add = folded(operator.add)
_fold_multiply = folded(operator.mul)
_fold_subtract = folded(operator.sub)
_elementwise_divide = elementwise(_divide_columns)

_SUM = "The sum of its arguments; elementwise on vectors."
_PRODUCT = "The product of its arguments; elementwise on vectors."

ADD = Deterministic("+", (), _SUM, add, _fold_add, rest=NUMERIC, total=True, pullback=pullbacks.ADD)
MULTIPLY = Deterministic(
    "*", (), _PRODUCT, multiply, _fold_multiply, rest=NUMERIC, total=True, pullback=pullbacks.MULTIPLY
)
SUBTRACT = Deterministic(
    "-", (Argument("x", NUMERIC),), "The first argument less all others; of one argument, its negative.",
    subtract, _subtract_columns, rest=NUMERIC, total=True, pullback=pullbacks.SUBTRACT,
)  # fmt: skip
DIVIDE = Deterministic(
    "/", (Argument("x", NUMERIC),),
    "The first argument divided by all others, as a float; of one argument, its reciprocal. The divisor 0 is an error.",
    divide, _quotient_columns, rest=NUMERIC, pullback=pullbacks.DIVIDE,
)  # fmt: skip
MODULO = Deterministic(
    "mod", (Argument("x", REAL), Argument("divisor", REAL)),
    "The remainder of a division, with the sign of the divisor: (mod -1 3) is 2.", modulo,
)  # fmt: skip
INTEGER_DIVIDE = Deterministic(
    "int_div", (Argument("x", REAL), Argument("divisor", REAL)),
    "The quotient rounded down to an integer: (int_div -1 3) is -1.", integer_divide,
)  # fmt: skip

RECORDS = (ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, INTEGER_DIVIDE)
