"""Elementary functions of one number, elementwise on vectors; powers, extremes and sums in logs."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import numeric, pullbacks
from venture_lite.procedures.columns import Flags, RowByRow, elementwise, extreme, single_numbers
from venture_lite.procedures.columns import numeric as numeric_column
from venture_lite.procedures.domains import NUMERIC, REAL, Domain
from venture_lite.procedures.numeric import log, log1p
from venture_lite.procedures.record import Argument, Deterministic
from venture_lite.values import freeze, show

Function = Callable[[float], Any]


def _elementwise(name: str, function: Function, array: Callable[[Any], Any], takes: str) -> Callable[[Any], Any]:
    """The scalar form: numbers by `function`, arrays by `array`; NaN is an error that names what is taken."""

    def apply(x: Any) -> Any:
        if x.__class__ is float or isinstance(x, (int, float)):
            result = function(x)
            if result == result:
                return result
        elif isinstance(x, np.ndarray) and x.dtype.kind == "f":
            with np.errstate(all="ignore"):
                result = array(x)
            if not np.isnan(result).any():
                return freeze(np.asarray(result, dtype=np.float64))
        raise ArgumentError(f"{name}: x must be {takes}, got {show(x)}")

    return apply


def logistic(x: float) -> float:
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    grown = math.exp(x)
    return grown / (1.0 + grown)


def logistic_array(x: Any) -> Any:
    shrunk = np.exp(-np.abs(x))
    return np.where(x >= 0.0, 1.0, shrunk) / (1.0 + shrunk)


def _logit(p: float) -> float:
    return log(p) - log1p(-p)


def _log10(x: float) -> float:
    return math.log10(x) if x > 0.0 else log(x)


def normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-math.sqrt(0.5) * x)


def _tan(x: float) -> float:
    return math.tan(x) if math.isfinite(x) else math.nan


def _floor(x: float) -> float:
    return math.floor(x) if abs(x) < 2**63 else x


def _floor_array(x: Any) -> Any:
    # 0 makes zeros positive, as the integer is
    return np.floor(x) + 0


def _round(x: float) -> float:
    return round(x) if abs(x) < 2**63 else x


def _round_array(x: Any) -> Any:
    return np.round(x) + 0


def _unary(
    name: str,
    function: Function,
    array: Callable[[Any], Any],
    summary: str,
    takes: str = "a number or a vector",
    total: bool = True,
) -> Deterministic:
    scalar, columns = _elementwise(name, function, array, takes), elementwise(array)
    pullback = pullbacks.of_function(name) if name in pullbacks.ELEMENTARY else None
    return Deterministic(name, (Argument("x", NUMERIC),), summary, scalar, columns, total=total, pullback=pullback)


def power(base: Any, exponent: Any) -> Any:
    if isinstance(base, (int, float)) and isinstance(exponent, (int, float)):
        try:
            return math.pow(base, exponent)
        except OverflowError:
            return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
        except ValueError:
            raise ArgumentError(f"pow: {show(base)} has no power {show(exponent)}") from None
    if not (NUMERIC.contains(base) and NUMERIC.contains(exponent)):
        raise ArgumentError(f"pow takes numbers and vectors, got {show(base)} and {show(exponent)}")
    if isinstance(base, np.ndarray) and isinstance(exponent, np.ndarray) and base.shape != exponent.shape:
        raise ArgumentError(f"pow: shapes differ: {base.shape} and {exponent.shape}")
    with np.errstate(all="ignore"):
        result = np.float_power(base, exponent)
    if not np.isfinite(result).all():
        raise ArgumentError(f"pow: {show(base)} has no power {show(exponent)}, elementwise")
    return freeze(result)


def _power_array(base: Any, exponent: Any) -> Any:
    result = np.float_power(base, exponent)
    # infinities may be powers of 0 that do not exist: the scalar form knows
    if np.isinf(result).any():
        raise RowByRow
    return result


def atan2(y: Any, x: Any) -> float:
    if not (isinstance(y, (int, float)) and isinstance(x, (int, float))):
        raise ArgumentError(f"atan2 takes two numbers, got {show(y)} and {show(x)}")
    return math.atan2(y, x)


def _atan2_columns(lifted: Flags, *arguments: Any) -> np.ndarray:
    angles: np.ndarray = np.arctan2(*single_numbers(lifted, arguments))
    if np.isnan(angles).any():
        raise RowByRow
    return angles


def _extreme(name: str, choose: Callable[..., Any], array: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The least or greatest of several numbers, elementwise among vectors, or of the entries of one list or vector."""

    def extreme(*arguments: Any) -> Any:
        values = _entries(arguments[0]) if len(arguments) == 1 else arguments
        if not values:
            raise ArgumentError(f"{name}: an empty list has none")
        if all(isinstance(value, (int, float)) for value in values):
            return choose(values)
        if not all(map(NUMERIC.contains, values)):
            raise ArgumentError(f"{name} takes numbers and vectors, got {' '.join(map(show, values))}")
        if len({value.shape for value in values if isinstance(value, np.ndarray)}) > 1:
            raise ArgumentError(f"{name}: the vectors differ in shape")
        result = values[0]
        for value in values[1:]:
            result = array(result, value)
        return freeze(np.asarray(result, dtype=np.float64))

    return extreme


def _entries(only: Any) -> tuple[Any, ...]:
    """The entries of a list or an array; another value is its own."""
    if isinstance(only, np.ndarray):
        return tuple(only.ravel().tolist())
    return only if isinstance(only, tuple) else (only,)


def logsumexp(*arguments: Any) -> float:
    """log of the sum of exponentials; the largest is taken out first, so nothing overflows."""
    values = _entries(arguments[0]) if len(arguments) == 1 else arguments
    if not values or not all(isinstance(value, (int, float)) for value in values):
        raise ArgumentError(f"logsumexp takes numbers, or one list or vector of them, got {show(values)}")
    largest = float(max(values))
    if not math.isfinite(largest):
        return largest
    return largest + math.log(math.fsum(math.exp(value - largest) for value in values))


def _logsumexp_columns(lifted: Flags, *arguments: Any) -> np.ndarray:
    if len(arguments) != 1 or not lifted[0]:
        raise RowByRow
    rows = numeric_column(arguments[0], True)
    if rows.ndim != 2 or not rows.shape[1]:
        raise RowByRow
    largest = rows.max(axis=1)
    if not np.isfinite(largest).all():
        raise RowByRow
    with np.errstate(all="ignore"):
        return largest + np.log(np.exp(rows - largest[:, None]).sum(axis=1))  # type: ignore[no-any-return]


_ANY_NUMBERS = Domain(
    "numbers",
    "a number, a list or a vector",
    lambda v: NUMERIC.contains(v) or isinstance(v, tuple),
    lambda column: True,
)
_POSITIVE = "a number that is not negative"

RECORDS = (
    _unary("exp", numeric.exp, np.exp, "e to the power x."),
    _unary("expm1", numeric.expm1, np.expm1, "exp(x) - 1, without loss of digits near 0."),
    _unary("log", numeric.log, np.log, "The natural logarithm; of 0, minus infinity.", _POSITIVE, total=False),
    _unary("log1p", numeric.log1p, np.log1p, "log(1 + x), exact near 0.", "a number of -1 or more", total=False),
    _unary("log10", _log10, np.log10, "The logarithm to the base 10; of 0, minus infinity.", _POSITIVE, total=False),
    _unary("sqrt", numeric.sqrt, np.sqrt, "The square root.", _POSITIVE, total=False),
    _unary("abs", abs, np.abs, "The absolute value."),
    _unary("floor", _floor, _floor_array, "The largest integer that is not above x."),
    _unary("round", _round, _round_array, "The nearest integer; halves go to the even one."),
    _unary("sin", numeric.sin, np.sin, "The sine, x in radians.", "a finite number", total=False),
    _unary("cos", numeric.cos, np.cos, "The cosine, x in radians.", "a finite number", total=False),
    _unary("tan", _tan, np.tan, "The tangent, x in radians.", "a finite number", total=False),
    _unary("logistic", logistic, logistic_array, "1 / (1 + exp(-x)), a number between 0 and 1."),
    _unary("logit", _logit, numeric.on_columns(_logit), "log(x / (1 - x)), the inverse of logistic.",
           "between 0 and 1", total=False),
    _unary("lgamma", numeric.lgamma, numeric.COLUMNS["lgamma"],
           "The logarithm of the absolute value of the gamma function.", total=False),
    _unary("erf", math.erf, numeric.of_scipy("erf"), "The error function."),
    _unary("erfc", math.erfc, numeric.of_scipy("erfc"), "1 - erf(x), without loss of digits where x is large."),
    _unary("normal_cdf", normal_cdf, numeric.of_scipy("ndtr"), "The probability that a standard normal is below x."),
    Deterministic("pow", (Argument("base", NUMERIC), Argument("exponent", NUMERIC)),
                  "The base to the power of the exponent, as a float.", power, elementwise(_power_array),
                  pullback=pullbacks.elementwise(*pullbacks.ELEMENTARY["float_power"])),
    Deterministic("atan2", (Argument("y", REAL), Argument("x", REAL)),
                  "The angle of the point (x, y), between -pi and pi.", atan2, _atan2_columns, total=True,
                  pullback=pullbacks.elementwise(*pullbacks.ELEMENTARY["arctan2"])),
    Deterministic("min", (Argument("x", _ANY_NUMBERS),),
                  "The least of its arguments, elementwise among vectors; or the least entry of one list.",
                  _extreme("min", min, np.minimum), extreme(operator.lt, np.minimum), rest=NUMERIC,
                  pullback=pullbacks.extreme),
    Deterministic("max", (Argument("x", _ANY_NUMBERS),),
                  "The greatest of its arguments, elementwise among vectors; or the greatest entry of one list.",
                  _extreme("max", max, np.maximum), extreme(operator.gt, np.maximum), rest=NUMERIC,
                  pullback=pullbacks.extreme),
    Deterministic("logsumexp", (Argument("x", _ANY_NUMBERS),),
                  "log of the sum of the exponentials of its arguments, or of the entries of one list or vector.",
                  logsumexp, _logsumexp_columns, rest=REAL, pullback=pullbacks.log_sum),
)  # fmt: skip
