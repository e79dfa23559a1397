"""Reverse accumulation through single procedures: elementwise arithmetic and functions.

A pullback takes the cotangent of a call's value, the derivatives of some total with respect to it, to the cotangents of
its arguments; `record.py` says with which shapes. The derivative of an elementwise function is written once, over the
numeric namespace, as a function of its value and its arguments.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.procedures.columns import Flags, RowByRow, aligned
from venture_lite.procedures.derivatives import SLOPES
from venture_lite.procedures.numeric import divide, exp, log, on_columns, where
from venture_lite.procedures.straight_line import Node, recordable, recorded

Cotangents = tuple[Any, ...]

TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
ONE_OVER_SQRT_TWO_PI = 1.0 / math.sqrt(2.0 * math.pi)
LOG10_E = math.log10(math.e)


def LOCALLY_CONSTANT(lifted: Flags, wanted: Flags, cotangent: Any, result: Any, *arguments: Any) -> Cotangents:
    """The pullback of a value that depends on the types and sizes of the arguments, not on the numbers in them."""
    return (None,) * len(arguments)


def gathered(contribution: Any, lifted: Flags, position: int, argument: Any) -> Any:
    """A contribution that has the shape of the whole result, summed over what shares the argument: the rows where it is
    uniform, the entries where it is one number among arrays."""
    if not getattr(contribution, "ndim", 0):
        return contribution
    up = lifted[position]
    first = int(any(lifted))
    axes = () if np.ndim(argument) > up else tuple(range(first, contribution.ndim))
    if first and not up:
        axes = (0, *axes)
    if not axes:
        return contribution
    total = contribution.sum(axis=axes)
    return float(total) if isinstance(total, float) else total


def accumulated(left: Any, right: Any) -> Any:
    """The sum of two cotangents of one value; None stands for zero, tuples are lists' cotangents."""
    if left is None or right is None:
        return right if left is None else left
    if isinstance(left, tuple) or isinstance(right, tuple):
        return tuple(accumulated(one, other) for one, other in zip(left, right, strict=True))
    return left + right


@dataclass(frozen=True, slots=True, eq=False)
class ElementwisePullback:
    """The pullback of an elementwise function, which can be recorded as well."""

    # (position, cotangent, result, arguments) -> what is due to one argument, of the result's shape
    contribution: Callable[[int, Any, Any, Sequence[Any]], Any]
    # (*nodes of a recording) -> the call's value; None where it cannot be recorded
    value: Callable[..., Any] | None = None

    def __call__(self, lifted: Flags, wanted: Flags, cotangent: Any, result: Any, *arguments: Any) -> Cotangents:
        if not hasattr(cotangent, "dtype"):
            return self.of_numbers(wanted, cotangent, result, *arguments)
        inputs = aligned(lifted, arguments)
        with np.errstate(all="ignore"):
            return tuple(
                gathered(self.contribution(i, cotangent, result, inputs), lifted, i, argument) if wanted[i] else None
                for i, argument in enumerate(arguments)
            )

    def of_numbers(self, wanted: Flags, cotangent: Any, result: Any, *arguments: Any) -> Cotangents:
        """The same where all are single numbers, or nodes of a recording."""
        contribution = self.contribution
        return tuple([contribution(i, cotangent, result, arguments) if want else None for i, want in enumerate(wanted)])


def is_recorded(values: Sequence[Any]) -> bool:
    """True if one of the values is a node of a recording: the others, a cotangent too, may be plain numbers."""
    return any(each.__class__ is Node for each in values)


def elementwise(*slopes: Callable[..., Any], name: str = "") -> ElementwisePullback:
    """From the derivative with respect to each argument, a function of (value, *arguments); with the name of the
    function in the numeric namespace, if it has one."""
    columns = [on_columns(slope) for slope in slopes]

    def contribution(position: int, cotangent: Any, result: Any, arguments: Sequence[Any]) -> Any:
        if hasattr(cotangent, "dtype"):
            slope = columns[position]
        elif is_recorded((cotangent, result, *arguments)):
            slope = recordable(slopes[position])
        else:
            slope = slopes[position]
        return cotangent * slope(result, *arguments)

    return ElementwisePullback(contribution, recorded(name) if name else None)


def _of_product(position: int, cotangent: Any, result: Any, factors: Sequence[Any]) -> Any:
    # not the result divided by the factor, which may be 0
    for i, factor in enumerate(factors):
        if i != position:
            cotangent = cotangent * factor
    return cotangent


def _of_difference(position: int, cotangent: Any, result: Any, terms: Sequence[Any]) -> Any:
    return cotangent if position == 0 and len(terms) > 1 else -cotangent


def _of_quotient(position: int, cotangent: Any, result: Any, numbers: Sequence[Any]) -> Any:
    if position or len(numbers) == 1:
        return -cotangent * result / numbers[position]
    for divisor in numbers[1:]:
        cotangent = cotangent / divisor
    return cotangent


def _from_left(operation: Callable[[Any, Any], Any], unit: float) -> Callable[..., Any]:
    """An operation on numbers from left to right; of a single one that on the unit and the number."""

    def value(first: Any, *rest: Any) -> Any:
        return functools.reduce(operation, rest, first) if rest else operation(unit, first)

    return value


ADD = ElementwisePullback(
    lambda position, cotangent, result, terms: cotangent, lambda *terms: functools.reduce(operator.add, terms, 0.0)
)
SUBTRACT = ElementwisePullback(_of_difference, _from_left(operator.sub, 0.0))
MULTIPLY = ElementwisePullback(_of_product, lambda *factors: functools.reduce(operator.mul, factors, 1.0))
DIVIDE = ElementwisePullback(_of_quotient, _from_left(operator.truediv, 1.0))


def _by_base(result: float, base: float, exponent: float) -> float:
    # of result / base only the limit is left where the base is 0
    at_zero = where(exponent == 1, 1.0, where(exponent > 1, 0.0, divide(1.0, 0.0)))
    away = where(base == 0, at_zero, exponent * divide(result, where(base == 0, 1.0, base)))
    return where(exponent == 0, 0.0, away)


def _by_exponent(result: float, base: float, exponent: float) -> float:
    return where(base == 0, 0.0, result * log(base))


ELEMENTARY: dict[str, tuple[Callable[..., Any], ...]] = {
    **SLOPES,
    "abs": SLOPES["absolute"],
    "tan": (lambda y, x: 1.0 + y * y,),
    "logistic": (lambda y, x: y * (1.0 - y),),
    "logit": (lambda y, x: divide(1.0, x * (1.0 - x)),),
    "erf": (lambda y, x: TWO_OVER_SQRT_PI * exp(-x * x),),
    "erfc": (lambda y, x: -TWO_OVER_SQRT_PI * exp(-x * x),),
    "log10": (lambda y, x: divide(LOG10_E, x),),
    "normal_cdf": (lambda y, x: ONE_OVER_SQRT_TWO_PI * exp(-0.5 * (x * x)),),
    "float_power": (_by_base, _by_exponent),
}
"""The derivatives of elementary functions by their arguments, functions of their value and these, as `SLOPES` has those
of the functions that densities know."""


def of_function(name: str) -> ElementwisePullback:
    """That of an elementary function."""
    known = {"abs": "absolute"}.get(name, name)
    return elementwise(*ELEMENTARY[name], name=known if known in SLOPES else "")


def extreme(lifted: Flags, wanted: Flags, cotangent: Any, result: Any, *arguments: Any) -> Cotangents:
    """Of `min` and `max`: to the argument, or the entry of the only argument, that was taken; the first of equals."""
    if len(arguments) == 1:
        entries = _entries(lifted, arguments[0])
        chosen = np.zeros(entries.shape)
        chosen.flat[int(np.argmax(entries == result))] = cotangent
        return (chosen if wanted[0] else None,)
    free: Any = True
    cotangents = []
    for i, number in enumerate(aligned(lifted, arguments)):
        taken = free & np.equal(number, result)
        free = free & ~taken
        share = np.where(taken, cotangent, 0.0)
        cotangents.append(gathered(share if share.ndim else float(share), lifted, i, arguments[i]))
    return tuple(share if want else None for share, want in zip(cotangents, wanted, strict=True))


def log_sum(lifted: Flags, wanted: Flags, cotangent: Any, result: Any, *arguments: Any) -> Cotangents:
    """Of `logsumexp`: the derivatives are the exponentials' shares of their sum."""
    with np.errstate(all="ignore"):
        if len(arguments) == 1 and lifted[0]:
            shares = np.exp(arguments[0] - result[:, None]) * cotangent[:, None]
        elif len(arguments) == 1:
            shares = np.exp(_entries(lifted, arguments[0]) - result) * cotangent
        else:
            inputs = aligned(lifted, arguments)
            return tuple(
                gathered(_number(np.exp(x - result) * cotangent), lifted, i, arguments[i]) if wanted[i] else None
                for i, x in enumerate(inputs)
            )
    return (shares if wanted[0] else None,)


def _entries(lifted: Flags, items: Any) -> np.ndarray:
    if lifted[0]:
        raise RowByRow
    return np.asarray(items, dtype=np.float64)


def _number(x: Any) -> Any:
    return x if np.ndim(x) else float(x)
