"""The numeric namespace in which a density is written once.

A density is a plain function over `exp`, `log`, `where`, ... imported from here, where they take and return single
floats. `on_columns` gives the same function over NumPy arrays. Both branches of `where` are always evaluated, so
nothing here raises: the logarithm of 0 is -inf, that of a negative number NaN, as in NumPy. A density has no `if`,
`and` or `or`; conditions are joined by `&` and `|`.
"""

from __future__ import annotations

import dis
import math
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

import numpy as np

inf = math.inf
nan = math.nan
pi = math.pi
LOG_PI = math.log(math.pi)
LOG_TWO_PI = math.log(2.0 * math.pi)


def exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return inf


def expm1(x: float) -> float:
    try:
        return math.expm1(x)
    except OverflowError:
        return inf


def log(x: float) -> float:
    try:
        return math.log(x)
    except ValueError:
        return -inf if x == 0 else nan


def log1p(x: float) -> float:
    try:
        return math.log1p(x)
    except ValueError:
        return -inf if x == -1 else nan


def sqrt(x: float) -> float:
    try:
        return math.sqrt(x)
    except ValueError:
        return nan


def lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return inf


def floor(x: float) -> float:
    try:
        return float(math.floor(x))
    except (ValueError, OverflowError):
        return x


def sin(x: float) -> float:
    try:
        return math.sin(x)
    except ValueError:
        return nan


def cos(x: float) -> float:
    try:
        return math.cos(x)
    except ValueError:
        return nan


def i0e(x: float) -> float:
    """exp(-|x|) times the modified Bessel function of order 0, which alone overflows at 714."""
    from scipy.special import i0e as bessel

    return float(bessel(x))


def divide(x: float, y: float) -> float:
    """x / y with a divisor that may be 0 (in a branch of `where` that is not taken)."""
    try:
        return x / y
    except ZeroDivisionError:
        return nan if x == 0 or x != x else math.copysign(inf, x)


def where(condition: bool, then: float, otherwise: float) -> float:
    return then if condition else otherwise


def absolute(x: float) -> float:
    return abs(x)


def maximum(x: float, y: float) -> float:
    return x if x >= y else y


def minimum(x: float, y: float) -> float:
    return x if x <= y else y


def isfinite(x: float) -> bool:
    return math.isfinite(x)


def is_integral(x: float) -> bool:
    """Whether x is a whole number; false for NaN and the infinities."""
    return x % 1 == 0


def times(x: float, y: float) -> float:
    """x y, and 0 where x is 0 whatever y is."""
    return 0.0 if x == 0 else x * y


def xlogy(x: float, y: float) -> float:
    """x log y, and 0 where x is 0 whatever y is."""
    return 0.0 if x == 0 else x * log(y)


def xlog1py(x: float, y: float) -> float:
    """x log(1 + y), and 0 where x is 0 whatever y is."""
    return 0.0 if x == 0 else x * log1p(y)


def log_ratio(x: float, y: float) -> float:
    """log(x / y) for y above 0, also where the quotient is beyond the floats."""
    quotient = x / y
    return where((quotient > 1e-300) & (quotient < inf), log(quotient), log(x) - log(y))


def log_rising(start: float, count: float) -> float:
    """log of Gamma(start + count) / Gamma(start): of start (start + 1) ... (start + count - 1) for a whole count.

    From 1e4 on the difference of two lgamma loses digits, and Stirling's series, cut after 1 / (12 x), loses none: its
    next term, 1 / (360 x^3), is below 3e-15.
    """
    large = start >= 1e4
    s = where(large, start, 1e4)
    end = s + count
    series = (1.0 / end - 1.0 / s) / 12.0
    stirling = count * log(end) + (s - 0.5) * log1p(count / s) - count + series
    return where(large, stirling, lgamma(start + count) - lgamma(start))


def log_gamma_density(shape: float, x: float, log_x: float) -> float:
    """(shape - 1) log x - x - lgamma(shape): the log density at x of a gamma of rate 1.

    `log_x` is given as well, for an x that is beyond the floats. For a large shape the three terms cancel; there the
    formula of Loader (2000, Fast and accurate computation of binomial probabilities, section 3) has no large terms: the
    deviance of x from m = shape - 1, and Stirling's series, whose next term, 1 / (1260 m^5), is below 1e-18.
    """
    large = shape > 1000.0
    m = where(large, shape - 1.0, 1000.0)
    away = (x - m) / m
    series = (1.0 - 1.0 / (30.0 * m * m)) / (12.0 * m)
    saddle = m * (log1p(away) - away) - 0.5 * (LOG_TWO_PI + log(m)) - series
    power = times(shape - 1.0, log_x)
    return where(large, saddle, power - x - lgamma(shape))


def log1p_square(z: float) -> float:
    """log(1 + z^2), also where z^2 is beyond the floats."""
    size = absolute(z)
    return where(size < 1e100, log1p(z * z), 2.0 * log(size))


def log_cauchy(distance: float, scale: float) -> float:
    """log of scale / (pi (scale^2 + distance^2)), where neither the squares nor their quotient overflow."""
    # in this order a distance that is NaN comes through
    large = maximum(scale, distance)
    small = minimum(scale, distance)
    quotient = small / large
    return log(scale) - LOG_PI - 2.0 * log(large) - log1p(quotient * quotient)


def log_beta(a: float, b: float) -> float:
    """log of the beta function."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _lgamma_of_columns(x: Any) -> Any:
    from scipy.special import gammaln

    return gammaln(x)


def _i0e_of_columns(x: Any) -> Any:
    from scipy.special import i0e as bessel

    return bessel(x)


def _is_integral_columns(x: Any) -> Any:
    return True if getattr(x, "dtype", np.dtype(float)).kind in "bi" else np.mod(x, 1) == 0


def _times_of_columns(x: Any, y: Any) -> Any:
    return np.where(x == 0, 0.0, x * y)


def _xlogy_of_columns(x: Any, y: Any) -> Any:
    return np.where(x == 0, 0.0, x * np.log(y))


def _xlog1py_of_columns(x: Any, y: Any) -> Any:
    return np.where(x == 0, 0.0, x * np.log1p(y))


COLUMNS: dict[str, Any] = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "lgamma": _lgamma_of_columns,
    "floor": np.floor,
    "sin": np.sin,
    "cos": np.cos,
    "i0e": _i0e_of_columns,
    "divide": np.divide,
    "where": np.where,
    "absolute": np.absolute,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "isfinite": np.isfinite,
    "is_integral": _is_integral_columns,
    "times": _times_of_columns,
    "xlogy": _xlogy_of_columns,
    "xlog1py": _xlog1py_of_columns,
}
"""The same names over arrays."""


def on_columns(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its numeric names, and those of the functions of this package that it calls, bound to NumPy."""
    return rebound(function, COLUMNS)


_ATTRIBUTES = {code for name, code in dis.opmap.items() if name.endswith(("_ATTR", "_METHOD", "_SUPER_ATTR"))}
"""Opcodes whose names are attributes, not globals."""


def _global_names(code: CodeType) -> Iterable[str]:
    """The global names that a function reads; `co_names` holds those of attributes as well."""
    if _ATTRIBUTES.isdisjoint(code.co_code[::2]):
        return code.co_names
    return {found.argval for found in dis.get_instructions(code) if found.opname in ("LOAD_GLOBAL", "LOAD_NAME")}


def rebound(function: Callable[..., Any], names: dict[str, Any]) -> Callable[..., Any]:
    """The function with these names, also in the functions of this package that it calls, bound anew."""
    assert isinstance(function, FunctionType)
    bound = dict(function.__globals__)
    for name in _global_names(function.__code__):
        if name in names:
            bound[name] = names[name]
        else:
            called = bound.get(name)
            if isinstance(called, FunctionType) and called.__module__.startswith("venture_lite.procedures"):
                bound[name] = rebound(called, names)
    return FunctionType(function.__code__, bound, function.__name__, function.__defaults__, function.__closure__)
