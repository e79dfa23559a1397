"""Forward-mode differentiation: a density written once is bound a third time, to pairs of a value and its derivatives.

A `Dual` carries a value and its derivative with respect to each input that it depends on; one pass through the
density's own text gives its derivatives with respect to all of them (Wengert 1964, A simple automatic derivative
evaluation program). The pass is made over the nodes of `straight_line`, once for each set of derivatives asked for, and
what it recorded is compiled: a new record has its gradient for nothing, at the cost of the arithmetic alone.

`where` chooses among derivatives as among values: what is undefined in the branch not taken does not reach the result,
as it would in reverse accumulation, where it is multiplied by 0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.columns import numeric as numeric_column
from venture_lite.procedures.numeric import cos, divide, log, log1p, rebound, sin, where
from venture_lite.procedures.record import Gradient
from venture_lite.procedures.straight_line import (
    Recording,
    compiled,
    digamma,
    i0e_slope,
    recordable,
    recorded,
    split_slope,
)

Partials = dict[int, Any]
"""Input -> the derivative with respect to it; an input on which a value does not depend has no entry."""


class Dual:
    """A value with its derivatives, each a node or a constant; immutable. A comparison compares values."""

    __slots__ = ("partials", "value")

    def __init__(self, value: Any, partials: Partials) -> None:
        self.value = value
        self.partials = partials

    def __add__(self, other: Any) -> Dual:
        if other.__class__ is not Dual:
            return Dual(self.value + other, self.partials)
        return Dual(self.value + other.value, _sum(self.partials, other.partials))

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, {i: -partial for i, partial in self.partials.items()})

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Dual:
        if other.__class__ is not Dual:
            return Dual(self.value * other, _scaled(self.partials, other))
        partials = _sum(_scaled(self.partials, other.value), _scaled(other.partials, self.value))
        return Dual(self.value * other.value, partials)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Dual:
        return _quotient(self, other)

    def __rtruediv__(self, other: Any) -> Dual:
        return _quotient(other, self)

    def __lt__(self, other: Any) -> Any:
        return self.value < _value(other)

    def __le__(self, other: Any) -> Any:
        return self.value <= _value(other)

    def __gt__(self, other: Any) -> Any:
        return self.value > _value(other)

    def __ge__(self, other: Any) -> Any:
        return self.value >= _value(other)

    def __eq__(self, other: object) -> Any:
        return self.value == _value(other)

    def __ne__(self, other: object) -> Any:
        return self.value != _value(other)

    __hash__ = None  # type: ignore[assignment]


def _value(x: Any) -> Any:
    return x.value if x.__class__ is Dual else x


def _partials(x: Any) -> Partials:
    return x.partials if x.__class__ is Dual else {}


def _scaled(partials: Partials, factor: Any) -> Partials:
    return {i: factor * partial for i, partial in partials.items()}


def _sum(left: Partials, right: Partials) -> Partials:
    if not right:
        return left
    total = dict(left)
    for i, partial in right.items():
        total[i] = total[i] + partial if i in total else partial
    return total


def _quotient(left: Any, right: Any) -> Dual:
    # the derivative divides twice by the divisor, never by its square, which may be beyond the floats
    divisor = _value(right)
    quotient = _value(left) / divisor
    return Dual(
        quotient,
        _sum(
            {i: partial / divisor for i, partial in _partials(left).items()},
            {i: -quotient * (partial / divisor) for i, partial in _partials(right).items()},
        ),
    )


def sign(x: float) -> float:
    return where(x > 0, 1.0, where(x < 0, -1.0, 0.0))


DERIVATIVES: dict[str, Callable[..., Any]] = {
    "exp": lambda y, x: y,
    "expm1": lambda y, x: y + 1.0,
    "log": lambda y, x: divide(1.0, x),
    "log1p": lambda y, x: divide(1.0, 1.0 + x),
    "sqrt": lambda y, x: divide(0.5, y),
    "lgamma": lambda y, x: digamma(x),
    "sin": lambda y, x: cos(x),
    "cos": lambda y, x: -sin(x),
    "absolute": lambda y, x: sign(x),
    "i0e": lambda y, x: where(x == 0, 0.0, y * i0e_slope(x)),
    "turned": lambda y, x: 1.0,
}
"""The derivative of each smooth function of the numeric namespace, of its value y and its argument x; written over that
namespace, as the densities are."""

SEVERAL: dict[str, tuple[Callable[..., Any], ...]] = {
    "divide": (lambda x, y: divide(1.0, y), lambda x, y: -divide(divide(x, y), y)),
    "times": (lambda x, y: y, lambda x, y: x),
    "xlogy": (lambda x, y: log(y), lambda x, y: where(x == 0, 0.0, divide(x, y))),
    "xlog1py": (lambda x, y: log1p(y), lambda x, y: where(x == 0, 0.0, divide(x, 1.0 + y))),
    "log_ratio": (lambda x, y: divide(1.0, x), lambda x, y: divide(-1.0, y)),
    "log_split": (
        lambda k, m, p, q: split_slope(k, k + m, p),
        lambda k, m, p, q: split_slope(m, k + m, q),
        lambda k, m, p, q: where(k == 0, 0.0, divide(k, p)),
        lambda k, m, p, q: where(m == 0, 0.0, divide(m, q)),
    ),
    "log_beta_density": (
        lambda x, a, b: divide(a - 1.0, x) - divide(b - 1.0, 1.0 - x),
        lambda x, a, b: split_slope(a, a + b, x) + divide(b, a * (a + b)),
        lambda x, a, b: split_slope(b, a + b, 1.0 - x) + divide(a, b * (a + b)),
    ),
}
"""The derivatives of each function of several arguments."""

STEPS = ("floor", "isfinite", "is_integral")
"""Functions that do not change but where they jump."""


def _of_one(name: str, derivative: Callable[..., Any]) -> Callable[..., Any]:
    function = recorded(name)

    def apply(x: Any) -> Any:
        if x.__class__ is not Dual:
            return function(x)
        y = function(x.value)
        return Dual(y, _scaled(x.partials, derivative(y, x.value)))

    return apply


def _of_several(name: str, derivatives: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    function = recorded(name)

    def apply(*arguments: Any) -> Any:
        values = [_value(argument) for argument in arguments]
        partials: Partials = {}
        for argument, derivative in zip(arguments, derivatives, strict=True):
            if argument.__class__ is Dual:
                partials = _sum(partials, _scaled(argument.partials, derivative(*values)))
        return Dual(function(*values), partials) if partials else function(*values)

    return apply


def _of_value(name: str) -> Callable[..., Any]:
    function = recorded(name)
    return lambda x: function(_value(x))


_where_of_nodes = recorded("where")


def _where(condition: Any, then: Any, otherwise: Any) -> Any:
    chosen = _where_of_nodes(condition, _value(then), _value(otherwise))
    left, right = _partials(then), _partials(otherwise)
    if not left and not right:
        return chosen
    return Dual(chosen, {i: _where_of_nodes(condition, left.get(i, 0.0), right.get(i, 0.0)) for i in {**left, **right}})


def _maximum(x: Any, y: Any) -> Any:
    return _where(x >= y, x, y)


def _minimum(x: Any, y: Any) -> Any:
    return _where(x <= y, x, y)


CHOICES: dict[str, Callable[..., Any]] = {"where": _where, "maximum": _maximum, "minimum": _minimum}
"""Functions whose value is one of their arguments."""


@functools.cache
def _names() -> dict[str, Any]:
    """The numeric namespace over duals."""
    names: dict[str, Any] = dict(CHOICES)
    for name, derivative in DERIVATIVES.items():
        names[name] = _of_one(name, recordable(derivative))
    for name, several in SEVERAL.items():
        names[name] = _of_several(name, tuple([recordable(each) for each in several]))
    for name in STEPS:
        names[name] = _of_value(name)
    return names


@functools.cache
def _compiled(density: Callable[..., Any], asked: tuple[bool, ...], columns: bool) -> Callable[..., tuple[Any, ...]]:
    """`(*inputs) -> (log density, one derivative for each input asked for)`."""
    recording = Recording()
    inputs = [recording.input(position) for position in range(len(asked))]
    seeds = [Dual(x, {i: 1.0}) if ask else x for i, (x, ask) in enumerate(zip(inputs, asked, strict=True))]
    result = rebound(density, _names())(*seeds)
    partials = _partials(result)
    return compiled(
        [_value(result), *(partials.get(i, 0.0) for i, ask in enumerate(asked) if ask)], len(asked), columns
    )


def gradient_of(density: Callable[..., float], exists: tuple[bool, ...]) -> Gradient:
    """The gradient of a density of single numbers that is written over the numeric namespace."""

    def asked_of(wanted: tuple[bool, ...]) -> tuple[bool, ...]:
        return tuple([want and is_there for want, is_there in zip(wanted, exists, strict=True)])

    def evaluate(lifted: tuple[bool, ...], wanted: tuple[bool, ...], *inputs: Any) -> tuple[Any, ...]:
        asked = asked_of(wanted)
        if True in lifted:
            partials = of_columns(lifted, wanted, *inputs)[1:]
        else:
            partials = _of_numbers(_compiled(density, asked, False), inputs, sum(asked))
        following = iter(partials)
        return tuple([next(following) if ask else None for ask in asked])

    def of_columns(lifted: tuple[bool, ...], wanted: tuple[bool, ...], *inputs: Any) -> list[Any]:
        asked = asked_of(wanted)
        return _of_columns(_compiled(density, asked, True), lifted, asked, inputs)

    return Gradient(exists, evaluate, lambda wanted: _compiled(density, asked_of(wanted), False), of_columns)


def _of_numbers(function: Callable[..., Any], inputs: tuple[Any, ...], count: int) -> list[float]:
    try:
        log_density, *partials = function(*inputs)
    except (TypeError, ValueError, ArithmeticError):
        # as `scalar_density`: the density is 0 where it is not defined
        log_density, partials = -math.inf, []
    return [float(partial) for partial in partials] if log_density > -math.inf else [0.0] * count


def _of_columns(
    function: Callable[..., Any], lifted: tuple[bool, ...], asked: tuple[bool, ...], inputs: tuple[Any, ...]
) -> list[Any]:
    numbers = [numeric_column(x, up) for x, up in zip(inputs, lifted, strict=True)]
    if any(isinstance(number, np.ndarray) and number.ndim != 1 for number in numbers):
        raise RowByRow
    rows = next(len(number) for number, up in zip(numbers, lifted, strict=True) if up)
    with np.errstate(all="ignore"):
        log_density, *partials = function(*numbers)
        if not float(np.sum(log_density)) > -math.inf:
            possible = log_density > -math.inf
            partials = [np.where(possible, partial, 0.0) for partial in partials]
        ups = [up for up, ask in zip(lifted, asked, strict=True) if ask]
        return [log_density, *(_gathered(partial, up, rows) for partial, up in zip(partials, ups, strict=True))]


def _gathered(partial: Any, lifted: bool, rows: int) -> Any:
    """One derivative for each row of a lifted input; of a uniform one, their sum."""
    if not np.ndim(partial):
        return np.full(rows, partial, dtype=np.float64) if lifted else float(partial) * rows
    return partial if lifted else float(partial.sum())
