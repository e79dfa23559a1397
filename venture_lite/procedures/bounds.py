"""Upper bounds of densities over arguments that may have any value: what rejection sampling needs to know.

For each family its maximisers: from a value and arguments, some of them UNKNOWN, to the arguments, the unknown ones
replaced by those under which the value is most probable; None where its density has no maximum over them. The bound is
the density there. Where no formula gives the maximiser, the density is concave in the argument, and the root of its
derivative is found by bisection to the last digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from venture_lite.procedures.record import UNKNOWN, Random
from venture_lite.procedures.straight_line import digamma
from venture_lite.values import freeze

Maximisers = Callable[..., tuple[Any, ...] | None]
"""`(value, *arguments) -> arguments`, all of them known, or None. At most one of those given is unknown: where two are,
no density here has a bound."""

LOGISTIC_MODE = 1.5434046384182085
"""The root of z tanh(z / 2) = 1: where the logistic density of a fixed distance, as a function of scale, is largest."""


def bound_at(density: Callable[..., float], maximisers: Maximisers) -> Callable[..., float]:
    """The `log_bound` of a record whose density is largest at these arguments."""

    def log_bound(value: Any, *arguments: Any) -> float:
        unknown = sum(argument is UNKNOWN for argument in arguments)
        best = maximisers(value, *arguments) if unknown < 2 else None
        return math.inf if best is None else density(value, *best)

    return log_bound


def certain(value: Any, *arguments: Any) -> float:
    """The `log_bound` of values that have probabilities."""
    return 0.0


def log_bound(record: Random, value: Any, arguments: tuple[Any, ...]) -> float:
    """An upper bound of a record's log density; inf where none is known."""
    if record.log_bound is not None:
        return record.log_bound(value, *arguments)
    return 0.0 if record.support is not None else math.inf


def location_scale(
    scale_of: Callable[[float], float] = abs, coordinate: Callable[[float], float] = float
) -> Maximisers:
    """(..., location, scale), densities of (coordinate(value) - location) / scale that are largest at the location;
    `scale_of` is the best scale for a distance. Other arguments must be known."""

    def maximisers(value: Any, *arguments: Any) -> tuple[Any, ...] | None:
        *others, location, scale = arguments
        if UNKNOWN in others:
            return None
        if location is UNKNOWN:
            location = coordinate(value)
        elif scale is UNKNOWN:
            scale = scale_of(coordinate(value) - location)
        return (*others, location, scale) if scale > 0.0 else None

    return maximisers


def scale_alone(best: Callable[[float], float] = float) -> Maximisers:
    """One argument, of which `best` gives the most probable."""

    def maximisers(value: Any, argument: Any) -> tuple[Any, ...] | None:
        found = best(value) if argument is UNKNOWN else argument
        return (found,) if 0.0 < found < math.inf else None

    return maximisers


def interval(value: Any, low: Any, high: Any) -> tuple[Any, ...] | None:
    low, high = (value if low is UNKNOWN else low), (value if high is UNKNOWN else high)
    return (low, high) if low < high else None


def beta(value: Any, a: Any, b: Any) -> tuple[Any, ...] | None:
    if not 0.0 < value < 1.0:
        return None
    if a is UNKNOWN:
        a = _root(lambda x: digamma(x) - digamma(x + b) - math.log(value))
    elif b is UNKNOWN:
        b = _root(lambda x: digamma(x) - digamma(x + a) - math.log1p(-value))
    return None if a is None or b is None else (a, b)


def gamma(value: Any, shape: Any, rate: Any) -> tuple[Any, ...] | None:
    if not value > 0.0:
        return None
    if rate is UNKNOWN:
        rate = shape / value
    elif shape is UNKNOWN:
        shape = _best_shape(math.log(rate) + math.log(value))
    return None if shape is None or not 0.0 < rate < math.inf else (shape, rate)


def inv_gamma(value: Any, shape: Any, scale: Any) -> tuple[Any, ...] | None:
    return gamma(1.0 / value, shape, scale) if value > 0.0 else None


def chi_sq(value: Any, df: Any) -> tuple[Any, ...] | None:
    best = gamma(value, UNKNOWN if df is UNKNOWN else 0.5 * df, 0.5)
    return None if best is None else (2.0 * best[0],)


def inv_chi_sq(value: Any, df: Any) -> tuple[Any, ...] | None:
    return chi_sq(1.0 / value, df) if value > 0.0 else None


def scale_second(value: Any, shape: Any, scale: Any) -> tuple[Any, ...] | None:
    """Of densities of a shape, which must be known, and a scale, of which the value is the most probable."""
    return None if shape is UNKNOWN or not value > 0.0 else (shape, value if scale is UNKNOWN else scale)


def pareto(value: Any, shape: Any, scale: Any) -> tuple[Any, ...] | None:
    if scale is UNKNOWN:
        return (shape, value) if value > 0.0 else None
    if shape is UNKNOWN:
        return (1.0 / math.log(value / scale), scale) if value > scale else None
    return (shape, scale)


def direction(value: Any, mean: Any, concentration: Any) -> tuple[Any, ...] | None:
    return None if concentration is UNKNOWN else (value if mean is UNKNOWN else mean, concentration)


def multivariate_normal(value: Any, mean: Any, cov: Any) -> tuple[Any, ...] | None:
    return None if cov is UNKNOWN else (value if mean is UNKNOWN else mean, cov)


def wishart(value: Any, df: Any, scale: Any) -> tuple[Any, ...] | None:
    return None if df is UNKNOWN else (df, freeze(value / df) if scale is UNKNOWN else scale)


def inv_wishart(value: Any, df: Any, scale: Any) -> tuple[Any, ...] | None:
    return None if df is UNKNOWN else (df, freeze(value * df) if scale is UNKNOWN else scale)


def _best_shape(log_value: float) -> float | None:
    """Of a gamma of rate 1, for a value with this logarithm."""
    return _root(lambda shape: digamma(shape) - log_value)


def _root(increasing: Callable[[float], float]) -> float | None:
    """Where an increasing function of a positive number is 0, by bisection of its logarithm."""
    low, high = -690.0, 690.0
    if not increasing(math.exp(low)) < 0.0 < increasing(math.exp(high)):
        return None
    while (middle := 0.5 * (low + high)) not in (low, high):
        if increasing(math.exp(middle)) < 0.0:
            low = middle
        else:
            high = middle
    return math.exp(middle)
