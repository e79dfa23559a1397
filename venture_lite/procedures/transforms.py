"""How a continuous value is moved in unconstrained coordinates.

A transform maps an open support onto all of R or R^n. A move in the free coordinate carries the Jacobian
`log |d value / d free|`. Rounding never puts a
value on the boundary of its support: it stays at the nearest float inside.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from venture_lite.procedures.distributions.factors import cholesky_of
from venture_lite.procedures.numeric import (
    BELOW_ONE,
    LOG_TWO,
    SMALLEST,
    absolute,
    apart_from_ends,
    clip,
    exp,
    log,
    maximum,
    nextafter,
    on_columns,
    remainder,
    where,
)
from venture_lite.procedures.triangles import lower_triangle
from venture_lite.values import freeze

LARGEST = float(np.finfo(np.float64).max)
TURN = 2.0 * math.pi
LARGEST_ROOT = 1e150
"""Largest entry of a factor: its square, and the sum of many of them, are floats."""
MOST_LOG_ROOT = math.log(LARGEST_ROOT)
SMALLEST_LEFT = 1e-150
"""Smallest diagonal entry of a correlation matrix's factor: its square is a float."""


class Transform(Protocol):
    """`arguments` are those of the distribution, for supports that depend on them."""

    @property
    def reads_arguments(self) -> bool:
        """Whether the support depends on the arguments: a move that changes them needs the old and the new ones."""
        return False

    def to_free(self, value: Any, arguments: tuple[Any, ...]) -> Any:
        """The free coordinates of a value inside the support."""

    def from_free(self, free: Any, arguments: tuple[Any, ...]) -> Any:
        """The value, strictly inside the support."""

    def log_jacobian(self, value: Any, arguments: tuple[Any, ...]) -> float:
        """log |d value / d free| at the value, summed over coordinates."""

    def free_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> Any:
        """From the derivatives of a log density by the value to those, by the free coordinates, of the log density and
        the log Jacobian together."""

    def argument_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> tuple[Any, ...]:
        """The same by each argument while the free coordinates stay: what moves the support moves the value."""
        return (None,) * len(arguments)


@dataclass(frozen=True, slots=True, eq=False)
class Elementwise:
    """A transform of numbers, and coordinate by coordinate of vectors.

    Its functions are written over the numeric namespace, so that one definition serves numbers, columns of them and
    recordings; they take the arguments of the distribution one by one. `columns` has the first three over arrays.
    """

    # (value, *arguments) -> its free coordinate, and (free, *arguments) -> the value
    free_of: Callable[..., Any]
    value_of: Callable[..., Any]
    # (value, *arguments) -> log |d value / d free|
    log_slope: Callable[..., Any]
    # (value, gradient, *arguments) -> as `free_gradient`, and as `argument_gradient` for the first arguments; over
    # arrays, too, since both are arithmetic alone
    by_free: Callable[..., Any]
    by_arguments: Callable[..., tuple[Any, ...]] | None
    columns: tuple[Callable[..., Any], ...]
    reads_arguments: bool

    def to_free(self, value: Any, arguments: tuple[Any, ...]) -> Any:
        value = _array(value)
        if isinstance(value, np.ndarray):
            return self.columns[0](value, *map(_array, arguments))
        return self.free_of(value, *arguments)

    def from_free(self, free: Any, arguments: tuple[Any, ...]) -> Any:
        if not isinstance(free, np.ndarray):
            return float(self.value_of(free, *arguments))
        with np.errstate(all="ignore"):
            return freeze(np.array(self.columns[1](free, *map(_array, arguments)), dtype=np.float64))

    def log_jacobian(self, value: Any, arguments: tuple[Any, ...]) -> float:
        value = _array(value)
        if isinstance(value, np.ndarray):
            slopes = self.columns[2](value, *map(_array, arguments))
            return float(np.sum(slopes)) if np.ndim(slopes) else float(slopes) * value.size
        return float(self.log_slope(value, *arguments))

    def free_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> Any:
        return self.by_free(_array(value), gradient, *map(_array, arguments))

    def argument_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> tuple[Any, ...]:
        taken = tuple(map(_array, arguments))
        given = () if self.by_arguments is None else self.by_arguments(_array(value), gradient, *taken)
        parts = [
            part if part is None or np.ndim(argument) else float(np.sum(part))
            for part, argument in zip(given, taken, strict=False)
        ]
        return (*parts, *(None,) * (len(arguments) - len(parts)))


def elementwise(
    free_of: Callable[..., Any],
    value_of: Callable[..., Any],
    log_slope: Callable[..., Any],
    by_free: Callable[..., Any],
    by_arguments: Callable[..., tuple[Any, ...]] | None = None,
) -> Elementwise:
    """A transform that reads the arguments where it has derivatives by them."""
    columns = tuple(map(on_columns, (free_of, value_of, log_slope)))
    return Elementwise(free_of, value_of, log_slope, by_free, by_arguments, columns, by_arguments is not None)


def values_of_rows(transform: Transform, free: np.ndarray, arguments: Sequence[Any]) -> np.ndarray:
    """Values (R,) or (R, K) at the free coordinates of rows, where arguments may be columns."""
    if isinstance(transform, Elementwise):
        return np.asarray(transform.columns[1](free, *(arguments if transform.reads_arguments else ())))
    return np.stack([transform.from_free(row, ()) for row in free])


def free_of_rows(transform: Transform, values: np.ndarray, arguments: Sequence[Any]) -> np.ndarray:
    """Free coordinates (R, K) of the values of rows."""
    if isinstance(transform, Elementwise):
        found = np.asarray(transform.columns[0](values, *(arguments if transform.reads_arguments else ())))
    else:
        found = np.stack([transform.to_free(row, ()) for row in values])
    return found.reshape(len(values), -1)


def slopes_of_rows(transform: Transform, values: np.ndarray, arguments: Sequence[Any]) -> np.ndarray:
    """log |d value / d free| (R,) at the values of rows, summed over coordinates."""
    if isinstance(transform, Elementwise):
        found = np.asarray(transform.columns[2](values, *(arguments if transform.reads_arguments else ())))
        return np.asarray(np.broadcast_to(found, values.shape).reshape(len(values), -1).sum(axis=1))
    return np.array([transform.log_jacobian(row, ()) for row in values])


def _array(value: Any) -> Any:
    """Lists as arrays; numbers and arrays as they are."""
    return np.array(value, dtype=np.float64) if isinstance(value, tuple) else value


def itself(x: float, *arguments: float) -> float:
    return x


def _no_slope(value: float, *arguments: float) -> float:
    return 0.0


def _its_gradient(value: float, gradient: float, *arguments: float) -> float:
    return gradient


def log_of(value: float, *arguments: float) -> float:
    return log(value)


def exp_of(free: float, *arguments: float) -> float:
    return where(free < 709.7, maximum(exp(free), SMALLEST), LARGEST)


def by_log(value: float, gradient: float, *arguments: float) -> float:
    return gradient * value + 1.0


def log_gap(low: float, high: float) -> float:
    """log(high - low), also where the difference is beyond the floats."""
    gap = high - low
    return where(gap < math.inf, log(gap), log(0.5 * high - 0.5 * low) + LOG_TWO)


def _logit(value: float, low: float, high: float) -> float:
    """It has no place for what is nearer to 1 than all floats below it, as 8% of beta(0.05, 0.05), and would be flat
    there, where the density goes on to fall. So nothing begins there."""
    return log(value - low) - log(high - apart_from_ends(value, low, high))


def _position(free: float, low: float, high: float) -> float:
    tail = exp(-absolute(free))
    part = (high - low) * tail / (1.0 + tail)
    return clip(where(free < 0, low + part, high - part), nextafter(low, high), nextafter(high, low))


def _position_between(free: float, low: float, high: float) -> float:
    tail = exp(-absolute(free))
    share, width = tail / (1.0 + tail), high - low
    part = where(width < math.inf, width * tail / (1.0 + tail), high * share - low * share)
    return clip(where(free < 0, low + part, high - part), nextafter(low, high), nextafter(high, low))


def _log_slope_between(value: float, low: float, high: float) -> float:
    # d value / d free = (value - low) (high - value) / (high - low)
    return log(value - low) + log(high - value) - log(high - low)


def _by_logit(value: float, gradient: float, low: float, high: float) -> float:
    # halves, which are floats where distances are not, and change no digit
    below, above = 0.5 * value - 0.5 * low, 0.5 * high - 0.5 * value
    return (2.0 * gradient * below * above + above - below) / (0.5 * high - 0.5 * low)


def _by_bounds(value: float, gradient: float, low: float, high: float) -> tuple[float, float]:
    # value = low + (high - low) s and the Jacobian is (high - low) s (1 - s), where s depends on the coordinate
    below, above, width = 0.5 * value - 0.5 * low, 0.5 * high - 0.5 * value, 0.5 * high - 0.5 * low
    return (gradient * above - 0.5) / width, (gradient * below + 0.5) / width


def between(low: float, high: float) -> Elementwise:
    """The logit of the relative position between two bounds."""
    return elementwise(
        lambda value, *arguments: _logit(value, low, high),
        lambda free, *arguments: _position(free, low, high),
        lambda value, *arguments: _log_slope_between(value, low, high),
        lambda value, gradient, *arguments: _by_logit(value, gradient, low, high),
    )


def _by_last_bounds(value: float, gradient: float, mean: float, sd: float, low: float, high: float) -> tuple[Any, ...]:
    return None, None, *_by_bounds(value, gradient, low, high)


def _above(value: float, shape: float, scale: float) -> float:
    return log(value - scale)


def _from_above(free: float, shape: float, scale: float) -> float:
    return clip(scale + exp_of(free), nextafter(scale, math.inf), LARGEST)


def _by_distance(value: float, gradient: float, shape: float, scale: float) -> float:
    return by_log(value - scale, gradient)


def _by_scale(value: float, gradient: float, shape: float, scale: float) -> tuple[float | None, float]:
    return None, gradient


def _by_end(value: float, gradient: float, end: float) -> tuple[float]:
    # at one free coordinate the value moves with the end, and the Jacobian stays
    return (gradient,)


def _rolled_up(angle: float, *arguments: float) -> float:
    return remainder(clip(angle, -LARGEST, LARGEST), TURN)


@dataclass(frozen=True, slots=True)
class CholeskyFactor(Transform):
    """A symmetric positive definite matrix as the lower triangle of its Cholesky factor, row by row, with the logarithm
    on the diagonal. d matrix / d factor is 2^D prod L_ii^(D - i + 1) for i = 1 ... D (Muirhead 1982, Aspects of
    Multivariate Statistical Theory, theorem 2.1.9), and d L_ii / d log L_ii is L_ii."""

    def to_free(self, value: Any, arguments: tuple[Any, ...]) -> Any:
        lower = _lower(value).copy()
        np.fill_diagonal(lower, np.log(lower.diagonal()))
        return lower[lower_triangle(len(lower))]

    def from_free(self, free: Any, arguments: tuple[Any, ...]) -> Any:
        size = math.isqrt(2 * len(free))
        lower = np.zeros((size, size))
        lower[lower_triangle(size)] = free
        np.fill_diagonal(lower, np.exp(np.clip(lower.diagonal(), -MOST_LOG_ROOT, MOST_LOG_ROOT)))
        return matrix_of(lower)

    def log_jacobian(self, value: Any, arguments: tuple[Any, ...]) -> float:
        logs = np.log(_lower(value).diagonal())
        size = len(logs)
        return size * math.log(2.0) + float(logs @ np.arange(size + 1, 1, -1))

    def free_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> Any:
        # d matrix = dL L' + L dL', so that <gradient, d matrix> = <(gradient + gradient') L, dL>
        lower = _lower(value)
        by_lower = (gradient + np.transpose(gradient)) @ lower
        size = len(lower)
        np.fill_diagonal(by_lower, by_lower.diagonal() * lower.diagonal() + np.arange(size + 1, 1, -1))
        return by_lower[lower_triangle(size)]


def _partial_correlations(free: Any) -> tuple[np.ndarray, np.ndarray]:
    """The partial correlations (K, K), below the diagonal, and the roots that are left before each entry."""
    free = np.asarray(free, dtype=np.float64)
    size = (1 + math.isqrt(1 + 8 * len(free))) // 2
    coordinates = np.zeros((size, size))
    coordinates[lower_triangle(size, -1)] = np.clip(free, -MOST_LOG_ROOT, MOST_LOG_ROOT)
    # log cosh x without overflow
    lengths = np.abs(coordinates)
    falls = (lengths + np.log1p(np.exp(-2.0 * lengths)) - math.log(2.0)).cumsum(axis=1)
    left = np.exp(-np.concatenate((np.zeros((size, 1)), falls[:, :-1]), axis=1))
    return np.tanh(coordinates), np.maximum(left, SMALLEST_LEFT)


def _roots_left(lower: np.ndarray) -> np.ndarray:
    """Of rows of length 1 the root of what is left of 1 before each entry (K, K): the length of the later entries with
    it."""
    return np.asarray(np.sqrt(np.square(lower)[:, ::-1].cumsum(axis=1)[:, ::-1]))


def _lower(value: Any) -> np.ndarray:
    factor = cholesky_of(value)
    assert factor is not None, "a choice's value lies in its support"
    return factor.lower


def matrix_of(lower: np.ndarray) -> np.ndarray:
    """lower @ lower.T for a lower triangular matrix (D, D) with a diagonal of 0 or more, kept positive definite where
    rounding would make it singular: the variance of a coordinate given those before it is raised to 1e-14 of its own,
    or to as much more as it takes."""
    lower = np.clip(lower, -LARGEST_ROOT, LARGEST_ROOT)
    rows, diagonal = np.abs(lower).max(axis=1), lower.diagonal()
    least = 1e-7
    while True:
        np.fill_diagonal(lower, np.maximum(diagonal, np.maximum(least * rows, 1.0 / LARGEST_ROOT)))
        matrix = freeze(lower @ lower.T)
        # the density of the matrix finds the factor kept
        if cholesky_of(matrix) is not None or np.isnan(matrix).any():
            return matrix
        least *= 2.0


@dataclass(frozen=True, slots=True)
class CorrelationFactor(Transform):
    """The Cholesky factor of a correlation matrix (K, K) as its canonical partial correlations z (Lewandowski,
    Kurowicka and Joe 2009, Generating random correlation matrices based on vines and extended onion method, section 2),
    row by row, on the line by the inverse hyperbolic tangent: L_ij is z_ij times the root of what the row's earlier
    squares leave of 1. The density is of the entries below the diagonal."""

    def to_free(self, value: Any, arguments: tuple[Any, ...]) -> Any:
        lower = np.asarray(value, dtype=np.float64)
        rows, columns = lower_triangle(len(lower), -1)
        return np.arcsinh(lower[rows, columns] / _roots_left(lower)[rows, columns + 1])

    def from_free(self, free: Any, arguments: tuple[Any, ...]) -> Any:
        partial, left = _partial_correlations(free)
        lower = np.tril(partial, -1) * left
        np.fill_diagonal(lower, np.maximum(left.diagonal(), SMALLEST_LEFT))
        return freeze(lower)

    def log_jacobian(self, value: Any, arguments: tuple[Any, ...]) -> float:
        # d L_ij / d free_ij is the root that is left before it times 1 - z_ij^2, the squared ratio of the root left
        # after it to that before it
        lower = np.asarray(value, dtype=np.float64)
        rows, columns = lower_triangle(len(lower), -1)
        logs = np.log(np.maximum(_roots_left(lower), SMALLEST_LEFT))
        return float((2.0 * logs[rows, columns + 1] - logs[rows, columns]).sum())

    def free_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> Any:
        lower = np.asarray(value, dtype=np.float64)
        rows, columns = lower_triangle(len(lower), -1)
        left = np.maximum(_roots_left(lower), SMALLEST_LEFT)
        before, after = left[rows, columns], left[rows, columns + 1]
        z, kept = lower[rows, columns] / before, after / before
        shares = np.tril(np.asarray(gradient) * lower)
        later = shares[:, ::-1].cumsum(axis=1)[:, ::-1] - shares
        own = np.asarray(gradient)[rows, columns] * np.square(kept) * before
        return own - z * (later[rows, columns] + (1 + rows - columns))


@dataclass(frozen=True, slots=True)
class StickBreaking(Transform):
    """A point of the simplex as n - 1 logits of the part taken from what is left, shifted so that 0 is the centre
    (Betancourt 2012; the Jacobian is the product of the parts' derivatives, Stan reference manual, simplex
    transform)."""

    def to_free(self, value: Any, arguments: tuple[Any, ...]) -> Any:
        point = np.asarray(value, dtype=np.float64)
        # summed from the far end: 1 - cumsum loses the small remainders
        left = point[::-1].cumsum()[::-1]
        return np.log(point[:-1]) - np.log(left[1:]) + np.log(np.arange(len(point) - 1, 0, -1))

    def from_free(self, free: Any, arguments: tuple[Any, ...]) -> Any:
        free = np.asarray(free, dtype=np.float64)
        logits = free - np.log(np.arange(len(free), 0, -1))
        log_taken, log_kept = -np.logaddexp(0.0, -logits), -np.logaddexp(0.0, logits)
        log_left = np.concatenate(([0.0], log_kept.cumsum()))
        point = np.exp(log_left + np.append(log_taken, 0.0))
        return freeze(np.clip(point, SMALLEST, BELOW_ONE if len(point) > 1 else 1.0))

    def log_jacobian(self, value: Any, arguments: tuple[Any, ...]) -> float:
        point = np.asarray(value, dtype=np.float64)
        left = point[::-1].cumsum()[::-1]
        return float((np.log(point[:-1]) + np.log(left[1:]) - np.log(left[:-1])).sum())

    def free_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> Any:
        # d point_k / d logit_k = point_k (1 - taken_k), and what comes later shrinks by taken_k
        point = np.asarray(value, dtype=np.float64)
        left = point[::-1].cumsum()[::-1]
        taken, kept = point[:-1] / left[:-1], left[1:] / left[:-1]
        shares = np.asarray(gradient) * point
        later = shares[::-1].cumsum()[::-1][1:]
        # the logarithm of the Jacobian is the sum of log taken_k + (1 + the number of later sticks) log kept_k
        return shares[:-1] * kept - taken * later + kept - taken * np.arange(len(point) - 1, 0, -1)


_WITHIN = """
def free_of(value, {names}): return _logit(value, {low}, {high})
def value_of(free, {names}): return _position(free, {low}, {high})
def log_slope(value, {names}): return _log_slope_between(value, {low}, {high})
def by_free(value, gradient, {names}): return _by_logit(value, gradient, {low}, {high})
def by_bounds(value, gradient, {names}): return _by_bounds(value, gradient, {low}, {high})
"""
_ABOVE = """
def free_of(value, {names}): return log(value - {low})
def value_of(free, {names}): return clip({low} + exp_of(free), nextafter({low}, math.inf), LARGEST)
def log_slope(value, {names}): return log(value - {low})
def by_free(value, gradient, {names}): return by_log(value - {low}, gradient)
def by_bounds(value, gradient, {names}): return gradient, None
"""
_BELOW = """
def free_of(value, {names}): return log({high} - value)
def value_of(free, {names}): return clip({high} - exp_of(free), -LARGEST, nextafter({high}, -math.inf))
def log_slope(value, {names}): return log({high} - value)
def by_free(value, gradient, {names}): return by_log({high} - value, -gradient)
def by_bounds(value, gradient, {names}): return None, gradient
"""


@functools.lru_cache(maxsize=None, typed=True)
def within(
    count: int, least: float | int | None, most: float | int | None, has_low: bool, has_high: bool
) -> Elementwise:
    """For distributions of `count` arguments and then low and high, those that there are, of what they leave between
    `least` and `most`, the ends of the support without them: a float, or an int, which is the position of an argument,
    or None. The names are arithmetic: gradients are of arrays too."""
    ends = [f"argument_{end}" if isinstance(end, int) else None if end is None else repr(end) for end in (least, most)]
    low = "low" if ends[0] is None else f"(low * (low > {ends[0]}) + {ends[0]} * (low <= {ends[0]}))"
    high = "high" if ends[1] is None else f"(high * (high < {ends[1]}) + {ends[1]} * (high >= {ends[1]}))"
    low_text, high_text = low if has_low else ends[0], high if has_high else ends[1]
    bounds = ["low"] * has_low + ["high"] * has_high
    names = ", ".join([*(f"argument_{i}" for i in range(count)), *bounds])
    text = _BELOW if low_text is None else _ABOVE if high_text is None else _WITHIN
    namespace = dict(globals())
    exec(text.format(names=names, low=low_text, high=high_text), namespace)
    by_bounds = namespace["by_bounds"]

    def by_arguments(value: Any, gradient: Any, *arguments: Any) -> tuple[Any, ...]:
        found: list[Any] = [None] * len(arguments)
        given = dict(zip(bounds, arguments[count:], strict=True))
        parts = zip(("low", "high"), (least, most), (1.0, -1.0), by_bounds(value, gradient, *arguments), strict=True)
        for name, end, sign, part in parts:
            if name in given:
                inner = None if end is None else arguments[end] if isinstance(end, int) else end
                holds = 1.0 if inner is None else sign * (given[name] - inner) > 0.0
                found[count + bounds.index(name)] = part * holds
            if part is not None and isinstance(end, int):
                found[end] = part * (1.0 - holds) if name in given else part
        return tuple(found)

    free_of, value_of, log_slope, by_free = (namespace[f] for f in ("free_of", "value_of", "log_slope", "by_free"))
    return elementwise(free_of, value_of, log_slope, by_free, by_arguments)


REAL = elementwise(itself, itself, _no_slope, _its_gradient)
POSITIVE = elementwise(log_of, exp_of, log_of, by_log)
UNIT = between(0.0, 1.0)
INTERVAL = elementwise(
    lambda value, low, high: log_gap(low, value) - log_gap(value, high),
    _position_between,
    lambda value, low, high: log_gap(low, value) + log_gap(value, high) - log_gap(low, high),
    _by_logit,
    _by_bounds,
)
"""For distributions of (low, high), whose distance may be beyond the floats."""
INTERVAL_AFTER_TWO = elementwise(
    lambda value, mean, sd, low, high: _logit(value, low, high),
    lambda free, mean, sd, low, high: _position(free, low, high),
    lambda value, mean, sd, low, high: _log_slope_between(value, low, high),
    lambda value, gradient, mean, sd, low, high: _by_logit(value, gradient, low, high),
    _by_last_bounds,
)
"""For distributions of (mean, sd, low, high)."""
SIMPLEX: Transform = StickBreaking()
ABOVE_SCALE = elementwise(_above, _from_above, _above, _by_distance, _by_scale)
"""For distributions of (shape, scale) whose values lie above their scale: the logarithm of the distance from it."""
ABOVE = elementwise(
    lambda value, low: log(value - low),
    lambda free, low: clip(low + exp_of(free), nextafter(low, math.inf), LARGEST),
    lambda value, low: log(value - low),
    lambda value, gradient, low: by_log(value - low, gradient),
    _by_end,
)
"""For distributions of (low), without an upper bound."""
BELOW = elementwise(
    lambda value, high: log(high - value),
    lambda free, high: clip(high - exp_of(free), -LARGEST, nextafter(high, -math.inf)),
    lambda value, high: log(high - value),
    lambda value, gradient, high: by_log(value - high, gradient),
    _by_end,
)
"""For distributions of (high), without a lower bound."""
CIRCLE = elementwise(itself, _rolled_up, _no_slope, _its_gradient)
"""Angles from -pi to pi, unrolled onto the line: the free coordinate is the angle, and all that differ by whole turns
are one. A symmetric move of the angle stays symmetric when it is rolled up again, and crosses the seam at pi like any
other place, where the logit of a position between two bounds would never get across."""
POSITIVE_DEFINITE: Transform = CholeskyFactor()
CORRELATION_FACTOR: Transform = CorrelationFactor()


@dataclass(frozen=True, slots=True)
class Increasing(Transform):
    """An increasing vector as the free coordinate of its first entry, and the logarithms of the distances between the
    free coordinates of neighbours (Stan reference manual, ordered vector); `inner` is the transform of the entries."""

    inner: Elementwise

    def to_free(self, value: Any, arguments: tuple[Any, ...]) -> Any:
        free = np.asarray(self.inner.to_free(value, ()), dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.concatenate((free[:1], np.log(np.diff(free))))

    def from_free(self, free: Any, arguments: tuple[Any, ...]) -> Any:
        steps = np.exp(np.clip(free[1:], -MOST_LOG_ROOT, MOST_LOG_ROOT))
        return self.inner.from_free(np.concatenate((free[:1], steps)).cumsum(), ())

    def log_jacobian(self, value: Any, arguments: tuple[Any, ...]) -> float:
        return self.inner.log_jacobian(value, ()) + float(self.to_free(value, ())[1:].sum())

    def free_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> Any:
        by_entries = np.broadcast_to(self.inner.free_gradient(value, (), gradient), np.shape(value))
        later = by_entries[::-1].cumsum()[::-1]
        steps = np.exp(self.to_free(value, ())[1:])
        return np.concatenate((later[:1], steps * later[1:] + 1.0))
