"""How a continuous value is moved in unconstrained coordinates.

A transform maps an open support onto all of R or R^n. A move in the free coordinate carries the Jacobian
`log |d value / d free|`. Everything works on numbers and, coordinate by coordinate, on vectors. Rounding never puts a
value on the boundary of its support: it stays at the nearest float inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from venture_lite.procedures.distributions.factors import cholesky_of
from venture_lite.values import freeze

SMALLEST = math.ulp(0.0)
"""The smallest positive float."""
LARGEST = float(np.finfo(np.float64).max)
BELOW_ONE = math.nextafter(1.0, 0.0)
TURN = 2.0 * math.pi
LARGEST_ROOT = 1e150
"""Largest entry of a factor: its square, and the sum of many of them, are floats."""
MOST_LOG_ROOT = math.log(LARGEST_ROOT)


class Transform(Protocol):
    """`arguments` are those of the distribution, for supports that depend on them."""

    @property
    def reads_arguments(self) -> bool:
        """Whether the support depends on the arguments: a move that changes them needs the old and the new ones."""

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


class FixedSupport:
    """What transforms share that do not read the arguments."""

    __slots__ = ()

    reads_arguments: ClassVar[bool] = False

    def argument_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> tuple[Any, ...]:
        return (None,) * len(arguments)


def _array(value: Any) -> Any:
    """Lists as arrays; numbers and arrays as they are."""
    return np.array(value, dtype=np.float64) if isinstance(value, tuple) else value


def _is_one(value: Any) -> bool:
    return not isinstance(value, np.ndarray)


@dataclass(frozen=True, slots=True)
class Identity(FixedSupport):
    def to_free(self, value: Any, arguments: tuple[Any, ...]) -> Any:
        return _array(value)

    def from_free(self, free: Any, arguments: tuple[Any, ...]) -> Any:
        return float(free) if _is_one(free) else freeze(np.array(free, dtype=np.float64))

    def log_jacobian(self, value: Any, arguments: tuple[Any, ...]) -> float:
        return 0.0

    def free_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> Any:
        return gradient


@dataclass(frozen=True, slots=True)
class Logarithm(FixedSupport):
    def to_free(self, value: Any, arguments: tuple[Any, ...]) -> Any:
        value = _array(value)
        return math.log(value) if _is_one(value) else np.log(value)

    def from_free(self, free: Any, arguments: tuple[Any, ...]) -> Any:
        if _is_one(free):
            return max(math.exp(free), SMALLEST) if free < 709.7 else LARGEST
        return freeze(np.clip(np.exp(np.minimum(free, 709.7)), SMALLEST, LARGEST))

    def log_jacobian(self, value: Any, arguments: tuple[Any, ...]) -> float:
        value = _array(value)
        return math.log(value) if _is_one(value) else float(np.log(value).sum())

    def free_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> Any:
        return gradient * _array(value) + 1.0


@dataclass(frozen=True, slots=True)
class Interval:
    """Logit of the relative position between two bounds, which are arguments 0 and 1 of the distribution unless
    fixed."""

    fixed: tuple[float, float] | None = None

    @property
    def reads_arguments(self) -> bool:
        return self.fixed is None

    def _bounds(self, arguments: tuple[Any, ...]) -> tuple[float, float]:
        return self.fixed or (float(arguments[0]), float(arguments[1]))

    def to_free(self, value: Any, arguments: tuple[Any, ...]) -> Any:
        low, high = self._bounds(arguments)
        value = _array(value)
        if _is_one(value):
            return math.log(value - low) - math.log(high - value)
        return np.log(value - low) - np.log(high - value)

    def from_free(self, free: Any, arguments: tuple[Any, ...]) -> Any:
        low, high = self._bounds(arguments)
        width = high - low
        first, last = math.nextafter(low, high), math.nextafter(high, low)
        if _is_one(free):
            tail = math.exp(-abs(free))
            part = width * tail / (1.0 + tail)
            return min(max(low + part if free < 0 else high - part, first), last)
        tail = np.exp(-np.abs(free))
        part = width * tail / (1.0 + tail)
        return freeze(np.clip(np.where(free < 0, low + part, high - part), first, last))

    def log_jacobian(self, value: Any, arguments: tuple[Any, ...]) -> float:
        # d value / d free = (value - low) (high - value) / (high - low)
        low, high = self._bounds(arguments)
        value = _array(value)
        if _is_one(value):
            return math.log(value - low) + math.log(high - value) - math.log(high - low)
        return float((np.log(value - low) + np.log(high - value) - math.log(high - low)).sum())

    def free_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> Any:
        low, high = self._bounds(arguments)
        below, above = _array(value) - low, high - _array(value)
        return (gradient * below * above + above - below) / (high - low)

    def argument_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> tuple[Any, ...]:
        # value = low + (high - low) s and the Jacobian is (high - low) s (1 - s), where s depends on the coordinate
        low, high = self._bounds(arguments)
        below, above, width = _array(value) - low, high - _array(value), high - low
        by_low = float(np.sum(gradient * above - 1.0)) / width
        by_high = float(np.sum(gradient * below + 1.0)) / width
        return (by_low, by_high, *(None,) * (len(arguments) - 2))


@dataclass(frozen=True, slots=True)
class Above:
    """Logarithm of the distance from a lower bound, which is an argument of the distribution."""

    # which argument
    position: int
    reads_arguments: ClassVar[bool] = True

    def to_free(self, value: Any, arguments: tuple[Any, ...]) -> Any:
        return POSITIVE.to_free(_array(value) - arguments[self.position], ())

    def from_free(self, free: Any, arguments: tuple[Any, ...]) -> Any:
        low = float(arguments[self.position])
        value = low + POSITIVE.from_free(free, ())
        first = math.nextafter(low, math.inf)
        return min(max(value, first), LARGEST) if _is_one(value) else freeze(np.clip(value, first, LARGEST))

    def log_jacobian(self, value: Any, arguments: tuple[Any, ...]) -> float:
        return POSITIVE.log_jacobian(_array(value) - arguments[self.position], ())

    def free_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> Any:
        return POSITIVE.free_gradient(_array(value) - arguments[self.position], (), gradient)

    def argument_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> tuple[Any, ...]:
        return tuple(float(np.sum(gradient)) if i == self.position else None for i in range(len(arguments)))


@dataclass(frozen=True, slots=True)
class Circle(FixedSupport):
    """Angles from -pi to pi, unrolled onto the line: the free coordinate is the angle, and all that differ by whole
    turns are one. A symmetric move of the angle stays symmetric when it is rolled up again, and crosses the seam at pi
    like any other place, where the logit of a position between two bounds would never get across."""

    def to_free(self, value: Any, arguments: tuple[Any, ...]) -> Any:
        return _array(value)

    def from_free(self, free: Any, arguments: tuple[Any, ...]) -> Any:
        if _is_one(free):
            return math.remainder(min(max(free, -LARGEST), LARGEST), TURN)
        left = np.fmod(np.clip(free, -LARGEST, LARGEST), TURN)
        return freeze(left - TURN * np.round(left / TURN))

    def log_jacobian(self, value: Any, arguments: tuple[Any, ...]) -> float:
        return 0.0

    def free_gradient(self, value: Any, arguments: tuple[Any, ...], gradient: Any) -> Any:
        return gradient


@dataclass(frozen=True, slots=True)
class CholeskyFactor(FixedSupport):
    """A symmetric positive definite matrix as the lower triangle of its Cholesky factor, row by row, with the logarithm
    on the diagonal. d matrix / d factor is 2^D prod L_ii^(D - i + 1) for i = 1 ... D (Muirhead 1982, Aspects of
    Multivariate Statistical Theory, theorem 2.1.9), and d L_ii / d log L_ii is L_ii."""

    def to_free(self, value: Any, arguments: tuple[Any, ...]) -> Any:
        lower = _lower(value).copy()
        np.fill_diagonal(lower, np.log(lower.diagonal()))
        return lower[np.tril_indices(len(lower))]

    def from_free(self, free: Any, arguments: tuple[Any, ...]) -> Any:
        size = math.isqrt(2 * len(free))
        lower = np.zeros((size, size))
        lower[np.tril_indices(size)] = free
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
        return by_lower[np.tril_indices(size)]


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
class StickBreaking(FixedSupport):
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


REAL: Transform = Identity()
POSITIVE: Transform = Logarithm()
UNIT: Transform = Interval((0.0, 1.0))
INTERVAL: Transform = Interval()
SIMPLEX: Transform = StickBreaking()
ABOVE_SCALE: Transform = Above(1)
"""For distributions of (shape, scale) whose values lie above their scale."""
CIRCLE: Transform = Circle()
POSITIVE_DEFINITE: Transform = CholeskyFactor()
