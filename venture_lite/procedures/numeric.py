"""The numeric namespace in which a density is written once.

A density is a plain function over `exp`, `log`, `where`, ... imported from here, where they take and return single
floats. `on_columns` gives the same function over NumPy arrays. Both branches of `where` are always evaluated, so
nothing here raises: the logarithm of 0 is -inf, that of a negative number NaN, as in NumPy. A density has no `if`,
`and` or `or`; conditions are joined by `&` and `|`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

inf = math.inf
nan = math.nan
pi = math.pi
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


def cos(x: float) -> float:
    try:
        return math.cos(x)
    except ValueError:
        return nan


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


def xlogy(x: float, y: float) -> float:
    """x log y, and 0 where x is 0 whatever y is."""
    return 0.0 if x == 0 else x * log(y)


def xlog1py(x: float, y: float) -> float:
    """x log(1 + y), and 0 where x is 0 whatever y is."""
    return 0.0 if x == 0 else x * log1p(y)


def log1p_square(z: float) -> float:
    """log(1 + z^2), also where z^2 is beyond the floats."""
    size = absolute(z)
    return where(size < 1e100, log1p(z * z), 2.0 * log(size))


def log_beta(a: float, b: float) -> float:
    """log of the beta function."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _lgamma_of_columns(x: Any) -> Any:
    from scipy.special import gammaln

    return gammaln(x)


def _is_integral_columns(x: Any) -> Any:
    return np.mod(x, 1) == 0


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
    "cos": np.cos,
    "divide": np.divide,
    "where": np.where,
    "absolute": np.absolute,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "isfinite": np.isfinite,
    "is_integral": _is_integral_columns,
    "xlogy": _xlogy_of_columns,
    "xlog1py": _xlog1py_of_columns,
}
"""The same names over arrays."""


def on_columns(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its numeric names, and those of the functions of this package that it calls, bound to NumPy."""
    assert isinstance(function, FunctionType)
    bound = dict(function.__globals__)
    for name in function.__code__.co_names:
        if name in COLUMNS:
            bound[name] = COLUMNS[name]
        else:
            called = bound.get(name)
            if isinstance(called, FunctionType) and called.__module__.startswith("venture_lite.procedures"):
                bound[name] = on_columns(called)
    return FunctionType(function.__code__, bound, function.__name__, function.__defaults__, function.__closure__)
