"""Forward-mode differentiation of a density that was written once and recorded.

One pass through the operations that the density's own text recorded (`straight_line.py`) gives its derivatives with
respect to all inputs that are asked for (Wengert 1964, A simple automatic derivative evaluation program), as further
operations. They are compiled once for each set of derivatives asked for: a new record has its gradient for nothing, at
the cost of the arithmetic alone.

`where` chooses among derivatives as among values: what is undefined in the branch not taken does not reach the result,
as it would in reverse accumulation, where it is multiplied by 0.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.procedures.columns import Flags, single_numbers
from venture_lite.procedures.numeric import (
    LOG_TWO_PI,
    cos,
    divide,
    exp,
    log,
    log1p,
    log_beta_density,
    log_gamma_density,
    maximum,
    minimum,
    sin,
    where,
)
from venture_lite.procedures.record import Gradient
from venture_lite.procedures.straight_line import (
    Node,
    Recording,
    compiled,
    digamma,
    i0e_slope,
    log_betainc_by_a,
    log_betainc_by_b,
    log_betaincc_by_a,
    log_betaincc_by_b,
    log_gammainc_by_shape,
    log_gammaincc_by_shape,
    needed,
    recordable,
    recorded,
    rest_slope,
    split_slope,
)

Partials = dict[int, Any]
"""Input -> the derivative with respect to it; an input on which a value does not depend has no entry."""


def sign(x: float) -> float:
    return where(x > 0, 1.0, where(x < 0, -1.0, 0.0))


def fall_to(a: float, b: float) -> float:
    """(a^2 - c^2) / 2, c the number from a to b that is nearest to 0."""
    nearest = where(a > 0.0, a, minimum(b, 0.0))
    return 0.5 * (a - nearest) * (a + nearest)


SLOPES: dict[str, tuple[Callable[..., Any], ...]] = {
    "exp": (lambda y, x: y,),
    "expm1": (lambda y, x: y + 1.0,),
    "log": (lambda y, x: divide(1.0, x),),
    "log1p": (lambda y, x: divide(1.0, 1.0 + x),),
    "log1p_square": (lambda y, z: 2.0 * z / (1.0 + z * z),),
    "sqrt": (lambda y, x: divide(0.5, y),),
    "lgamma": (lambda y, x: digamma(x),),
    "sin": (lambda y, x: cos(x),),
    "cos": (lambda y, x: -sin(x),),
    "absolute": (lambda y, x: sign(x),),
    "i0e": (lambda y, x: where(x == 0, 0.0, y * i0e_slope(x)),),
    "turned": (lambda y, x: 1.0,),
    "divide": (lambda z, x, y: divide(1.0, y), lambda z, x, y: -divide(z, y)),
    "times": (lambda z, x, y: y, lambda z, x, y: x),
    "xlogy": (lambda z, x, y: log(y), lambda z, x, y: where(x == 0, 0.0, divide(x, y))),
    "xlog1py": (lambda z, x, y: log1p(y), lambda z, x, y: where(x == 0, 0.0, divide(x, 1.0 + y))),
    "log_ratio": (lambda z, x, y: divide(1.0, x), lambda z, x, y: divide(-1.0, y)),
    "log_split": (
        lambda z, k, m, p, q: split_slope(k, k + m, p),
        lambda z, k, m, p, q: split_slope(m, k + m, q),
        lambda z, k, m, p, q: where(k == 0, 0.0, divide(k, p)),
        lambda z, k, m, p, q: where(m == 0, 0.0, divide(m, q)),
    ),
    "stirling_rest": (lambda y, m: rest_slope(m),),
    "log_normal_mass": (
        lambda y, a, b: maximum(a, 0.0) - exp(-y - fall_to(a, b)),
        lambda y, a, b: minimum(b, 0.0) + exp(-y - fall_to(-b, -a)),
    ),
    "arctan2": (lambda z, y, x: divide(x, x * x + y * y), lambda z, y, x: -divide(y, x * x + y * y)),
    "log_ndtr": (lambda y, z: exp(-0.5 * (z * z) - 0.5 * LOG_TWO_PI - y),),
    "log_gammainc": (
        lambda y, a, x: log_gammainc_by_shape(a, x),
        lambda y, a, x: exp(log_gamma_density(a, x, log(x)) - y),
    ),
    "log_gammaincc": (
        lambda y, a, x: log_gammaincc_by_shape(a, x),
        lambda y, a, x: -exp(log_gamma_density(a, x, log(x)) - y),
    ),
    "log_betainc": (
        lambda y, a, b, x: log_betainc_by_a(a, b, x),
        lambda y, a, b, x: log_betainc_by_b(a, b, x),
        lambda y, a, b, x: exp(log_beta_density(x, a, b) - y),
    ),
    "log_betaincc": (
        lambda y, a, b, x: log_betaincc_by_a(a, b, x),
        lambda y, a, b, x: log_betaincc_by_b(a, b, x),
        lambda y, a, b, x: -exp(log_beta_density(x, a, b) - y),
    ),
    "log_beta_density": (
        lambda z, x, a, b: divide(a - 1.0, x) - divide(b - 1.0, 1.0 - x),
        lambda z, x, a, b: split_slope(a, a + b, x) + divide(b, a * (a + b)),
        lambda z, x, a, b: split_slope(b, a + b, 1.0 - x) + divide(a, b * (a + b)),
    ),
}
"""The derivatives of each smooth function of the numeric namespace by its arguments, functions of its value and these;
written over that namespace, as the densities are."""

STEPS = ("floor", "is_integral")
"""Functions that do not change but where they jump."""

CONDITIONS = ("<", "<=", ">", ">=", "==", "!=", "&", "|")

CHOICES: dict[str, Callable[..., Any]] = {
    "where": lambda condition, x, y: condition,
    "maximum": operator.ge,
    "minimum": operator.le,
}
"""Functions whose value is the one before the last of their arguments where this holds of all, else the last."""

_where = recorded("where")


def partials_of(result: Any, asked: Flags) -> Partials:
    """The derivatives of a recorded result, by those inputs that are asked for."""
    found: dict[int, Partials] = {}

    def of(x: Any) -> Partials:
        if x.__class__ is not Node:
            return {}
        if x.operation == "input":
            return {x.operands[0]: 1.0} if asked[x.operands[0]] else {}
        return found[x.place]

    for node in needed([result]):
        found[node.place] = _passed(node, list(map(of, node.operands)))
    return of(result)


def _passed(node: Node, partials: list[Partials]) -> Partials:
    """The derivatives of an operation, from those of its operands."""
    if node.operation in STEPS or node.operation in CONDITIONS:
        return {}
    if node.operation in CHOICES:
        condition, (then, otherwise) = CHOICES[node.operation](*node.operands), partials[-2:]
        return {i: _where(condition, then.get(i, 0.0), otherwise.get(i, 0.0)) for i in {**then, **otherwise}}
    total: Partials = {}
    for position, part in enumerate(partials):
        for i, partial in part.items():
            share = _share(node, position, partial)
            total[i] = total[i] + share if i in total else share
    return total


def _share(node: Node, position: int, partial: Any) -> Any:
    """What the derivative of one of its operands contributes to that of an operation."""
    match node.operation, node.operands:
        case "+", _:
            return partial
        case "-", _:
            return -partial if position else partial
        case "negative", _:
            return -partial
        case "*", factors:
            return factors[1 - position] * partial
        case "/", (_, divisor):
            # twice by the divisor, never by its square, which may be beyond the floats
            return -node * (partial / divisor) if position else partial / divisor
        case name, arguments:
            return recordable(SLOPES[name][position])(node, *arguments) * partial


@functools.cache
def slopes_of(density: Callable[..., Any], asked: Flags, columns: bool) -> Callable[..., tuple[Any, ...]]:
    """`(*inputs) -> (log density, one derivative for each input asked for)`, over columns or of single numbers."""
    return compiled(recorded_slopes(density, asked), len(asked), columns)


@functools.cache
def slopes_of_columns(density: Callable[..., Any], asked: Flags) -> Callable[..., tuple[Any, ...]]:
    """`(*inputs) -> (one derivative for each input asked for)`, over columns."""
    return compiled(recorded_slopes(density, asked)[1:], len(asked), True)


@functools.cache
def recorded_slopes(density: Callable[..., Any], asked: Flags) -> list[Any]:
    """The log density, and one derivative for each input asked for, as operations on recorded inputs."""
    recording = Recording()
    result = recordable(density)(*map(recording.input, range(len(asked))))
    partials = partials_of(result, asked)
    return [result, *(partials.get(i, 0.0) for i, ask in enumerate(asked) if ask)]


@functools.cache
def curvatures_of(density: Callable[..., Any], asked: Flags) -> Callable[..., tuple[Any, ...]] | None:
    """`(*inputs) -> (one derivative for each input asked for, the second ones of these, lower triangle row by row)`,
    over columns; None where a function on the way has no second derivative."""
    recording = Recording()
    result = recordable(density)(*map(recording.input, range(len(asked))))
    inputs = [i for i, ask in enumerate(asked) if ask]
    first = partials_of(result, asked)
    slopes = [first.get(i, 0.0) for i in inputs]
    curves = []
    try:
        for at, slope in enumerate(slopes):
            second = partials_of(slope, asked)
            curves += [second.get(i, 0.0) for i in inputs[: at + 1]]
    except KeyError:
        return None
    return compiled([*slopes, *curves], len(asked), True)


def two_derivatives(
    result: Any, count: int, columns: bool, with_value: bool = False
) -> Callable[..., tuple[Any, ...]] | None:
    """Of a recorded result of `count` inputs: `(*inputs) -> (its first and its second derivative by the first input)`,
    before these the result where it is wanted; over columns or of single numbers. None where a function on the way has
    no second derivative."""
    asked = (True, *(False,) * (count - 1))
    try:
        slope = partials_of(result, asked).get(0, 0.0)
        first = [result] if with_value else []
        return compiled([*first, slope, partials_of(slope, asked).get(0, 0.0)], count, columns)
    except KeyError:
        return None


def gradient_of(density: Callable[..., float], exists: Flags) -> Gradient:
    """The gradient of a density of single numbers that is written over the numeric namespace."""

    def asked_of(wanted: Flags) -> Flags:
        return tuple(map(operator.and_, wanted, exists))

    def evaluate(lifted: Flags, wanted: Flags, *inputs: Any) -> tuple[Any, ...]:
        asked = asked_of(wanted)
        if True in lifted:
            partials = of_columns(lifted, wanted, *inputs)[1:]
        else:
            partials = _of_numbers(slopes_of(density, asked, False), inputs, sum(asked))
        following = iter(partials)
        return tuple([next(following) if ask else None for ask in asked])

    def of_columns(lifted: Flags, wanted: Flags, *inputs: Any) -> list[Any]:
        asked = asked_of(wanted)
        return _of_columns(slopes_of(density, asked, True), lifted, asked, inputs)

    return Gradient(exists, evaluate, lambda wanted: slopes_of(density, asked_of(wanted), False), of_columns)


def _of_numbers(function: Callable[..., Any], inputs: tuple[Any, ...], count: int) -> list[float]:
    try:
        log_density, *partials = function(*inputs)
    except (TypeError, ValueError, ArithmeticError):
        # as `scalar_density`: the density is 0 where it is not defined
        log_density, partials = -math.inf, []
    return [float(partial) for partial in partials] if log_density > -math.inf else [0.0] * count


def _of_columns(function: Callable[..., Any], lifted: Flags, asked: Flags, inputs: tuple[Any, ...]) -> list[Any]:
    numbers = single_numbers(lifted, inputs)
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
    return partial if lifted else float(np.add.reduce(partial))
