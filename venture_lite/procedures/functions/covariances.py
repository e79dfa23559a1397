"""Mean and covariance functions of Gaussian processes, as values.

A covariance is a name and its parameters, sums and products of others among them; it is immutable, equal by content
and printed as it is written. It is no lambda: its parameters are then ordinary parents in the trace, so that a change
of a length scale reaches the process, and one call of `gram` covers all pairs of points.

Two applications at one point share what the smooth parts give and differ by their white noise; the two are kept apart
(`variances`), because what is shared at one point makes equal values, and what is not does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures.array_pullbacks import single
from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.domains import POSITIVE, POSITIVE_VECTOR, REAL, VECTOR, Domain, by_rows, either, of_kind
from venture_lite.procedures.record import Argument, Deterministic
from venture_lite.values import is_number, show

Array = np.ndarray
MATERN_ORDERS = (0.5, 1.5, 2.5)


@dataclass(frozen=True, slots=True, repr=False)
class _Written:
    name: str
    # numbers, tuples of numbers with one entry for each coordinate, or other functions
    arguments: tuple[Any, ...]

    def __repr__(self) -> str:
        shown = [f"(vector {' '.join(map(show, a))})" if isinstance(a, tuple) else show(a) for a in self.arguments]
        return f"({self.name} {' '.join(shown)})"


@dataclass(frozen=True, slots=True, repr=False)
class Covariance(_Written):
    """What two applications of a process have in common, by where they are; points are rows (n, dims)."""

    def gram(self, left: Array, right: Array) -> Array:
        """Covariances (n, m) of one application at each of `left` (n, dims) with another at each of `right` (m, dims).

        Raises ArgumentError where a parameter has not as many entries as the points have coordinates.
        """
        if self.name in _COMBINED:
            return reduce(_COMBINED[self.name][0], (part.gram(left, right) for part in self.arguments))
        return _GRAMS[self.name](left, right, *self.arguments)

    def variances(self, points: Array) -> tuple[Array, Array]:
        """(n,) and (n,): the variance that applications at a point share, and that of each one's own noise."""
        if self.name in _COMBINED:
            parts: Iterator[tuple[Array, Array]] = (part.variances(points) for part in self.arguments)
            return reduce(_COMBINED[self.name][1], parts)
        none = np.zeros(len(points))
        match self.name:
            case "gp_noise":
                return none, none + _square(self.arguments[0])
            case "gp_linear":
                amplitude, center = self.arguments
                return _square(amplitude) * _square(_from(points, center)).sum(axis=1), none
        # the stationary ones
        return none + _square(self.arguments[0]), none

    def slopes(self, points: Array, by_entry: Array, by_own: Array) -> tuple[Any, ...]:
        """The derivatives by the arguments, those of a function again a tuple, from those by the entries (n, n) of the
        symmetric `gram` of the points and by the noise (n,) of each."""
        match self.name:
            case "gp_noise":
                return (2.0 * self.arguments[0] * float(by_own.sum()),)
            case "gp_sum":
                return tuple(part.slopes(points, by_entry, by_own) for part in self.arguments)
            case "gp_product":
                return tuple(self._of_factor(position, points, by_entry, by_own) for position in _places(self))
        return _SLOPES[self.name](points, by_entry, *self.arguments)

    def _of_factor(self, position: int, points: Array, by_entry: Array, by_own: Array) -> tuple[Any, ...]:
        """Those of one factor: the noise of a product is what all variances give over what the shared ones do."""
        others = [part for at, part in enumerate(self.arguments) if at != position]
        variances = [part.variances(points) for part in others]
        shared = math.prod((each for each, _ in variances), start=np.ones(len(points)))
        whole = math.prod((each + own for each, own in variances), start=np.ones(len(points)))
        by_gram = math.prod((part.gram(points, points) for part in others), start=by_entry)
        by_gram = by_gram + np.diag(by_own * (whole - shared))
        found: tuple[Any, ...] = self.arguments[position].slopes(points, by_gram, by_own * whole)
        return found

    @property
    def noisy(self) -> bool:
        """Whether applications at one point differ."""
        return self.name == "gp_noise" or (self.name in _COMBINED and any(part.noisy for part in self.arguments))


@dataclass(frozen=True, slots=True, repr=False)
class Mean(_Written):
    """The expected value of an application, by where it is."""

    def at(self, points: Array) -> Array:
        """(n,) at points (n, dims)."""
        if self.name in _COMBINED:
            return reduce(_COMBINED[self.name][0], (mean_of(part).at(points) for part in self.arguments))
        if self.name == "gp_linear_mean":
            slope, intercept = self.arguments
            _check_dimensions(points, slope, "gp_linear_mean: slope")
            line: Array = intercept + (points * np.asarray(slope)).sum(axis=1)
            return line
        return np.full(len(points), self.arguments[0])

    def slopes(self, points: Array, by_value: Array) -> tuple[Any, ...]:
        """The derivatives by the arguments, those of a function again a tuple, from those by the values (n,)."""
        match self.name:
            case "gp_sum":
                return tuple(self._of_part(part, points, by_value) for part in self.arguments)
            case "gp_product":
                values = [mean_of(part).at(points) for part in self.arguments]
                others = [math.prod(values[:at] + values[at + 1 :], start=by_value) for at in _places(self)]
                return tuple(map(self._of_part, self.arguments, [points] * len(others), others))
            case "gp_linear_mean":
                by_slope = by_value @ points
                return _like(by_slope, self.arguments[0]), float(by_value.sum())
        return (float(by_value.sum()),)

    def _of_part(self, part: Any, points: Array, by_value: Array) -> Any:
        slopes = mean_of(part).slopes(points, by_value)
        return slopes if isinstance(part, Mean) else slopes[0]


def _places(of: _Written) -> range:
    return range(len(of.arguments))


def _like(by_coordinate: Array, parameter: Any) -> Any:
    """The derivatives by a parameter with an entry for each coordinate; their sum where all share one."""
    return by_coordinate if isinstance(parameter, tuple) else float(by_coordinate.sum())


def mean_of(argument: Any) -> Mean:
    """A number is a constant mean."""
    return argument if isinstance(argument, Mean) else Mean("gp_constant_mean", (float(argument),))


# ------------------------------------------------------------------------------------------------------- the functions


Number = TypeVar("Number", float, Array)


def _square(x: Number) -> Number:
    """Beyond the floats an infinity, where `**` would raise an error of its own."""
    square: Number = x * x
    return square


def _added(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
    return left[0] + right[0], left[1] + right[1]


def _multiplied(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
    """Of (shared + own) (shared + own), what is not the product of the shared ones."""
    return left[0] * right[0], left[1] * (right[0] + right[1]) + left[0] * right[1]


def _check_dimensions(points: Array, parameter: Any, what: str) -> None:
    if isinstance(parameter, tuple) and len(parameter) != points.shape[1]:
        raise ArgumentError(f"{what} has {len(parameter)} entries, but the points have {points.shape[1]}")


def _from(points: Array, center: Any) -> Array:
    _check_dimensions(points, center, "gp_linear: center")
    away: Array = points - np.asarray(center)
    return away


def _scaled_squares(left: Array, right: Array, length: Any, of: Callable[[Array], Array] = _square) -> Array:
    """(n, m): the sum over coordinates of `of` the differences, in lengths; exactly symmetric, without cancellation."""
    _check_dimensions(left, length, "length")
    lengths = np.broadcast_to(np.asarray(length), left.shape[1:])
    total = np.zeros((len(left), len(right)))
    for coordinate, scale in enumerate(lengths.tolist()):
        difference = left[:, coordinate, None] - right[None, :, coordinate]
        total += of(difference) / _square(scale)
    return total


def _squared_exponential(left: Array, right: Array, amplitude: float, length: Any) -> Array:
    return _square(amplitude) * np.exp(-0.5 * _scaled_squares(left, right, length))


def _matern(left: Array, right: Array, amplitude: float, length: Any, order: float) -> Array:
    distance = np.sqrt(2.0 * order * _scaled_squares(left, right, length))
    falling = _square(amplitude) * np.exp(-distance)
    if order == 0.5:
        return falling
    return falling * (1.0 + distance if order == 1.5 else 1.0 + distance + distance * distance / 3.0)


def _rational_quadratic(left: Array, right: Array, amplitude: float, length: Any, mixture: float) -> Array:
    squares = _scaled_squares(left, right, length)
    return _square(amplitude) * np.exp(-mixture * np.log1p(squares / (2.0 * mixture)))


def _periodic(left: Array, right: Array, amplitude: float, length: Any, period: float) -> Array:
    def waves(difference: Array) -> Array:
        return _square(np.sin(math.pi * difference / period))

    return _square(amplitude) * np.exp(-2.0 * _scaled_squares(left, right, length, waves))


def _linear(left: Array, right: Array, amplitude: float, center: Any) -> Array:
    gram: Array = _square(amplitude) * (_from(left, center) @ _from(right, center).T)
    return gram


def _constant(left: Array, right: Array, amplitude: float) -> Array:
    return np.full((len(left), len(right)), _square(amplitude))


def _noise(left: Array, right: Array, sd: float) -> Array:
    return np.zeros((len(left), len(right)))


# ------------------------------------------------------------------------------------------------- their derivatives


def _by_amplitude(by_entry: Array, gram: Array, amplitude: float) -> float:
    return 2.0 * float((by_entry * gram).sum()) / amplitude


def _by_length(points: Array, by_square: Array, length: Any, of: Callable[[Array], Array] = _square) -> Any:
    """From the derivatives (n, n) by `_scaled_squares`, to each coordinate of which its length is a factor -2."""
    lengths = np.broadcast_to(np.asarray(length, dtype=np.float64), points.shape[1:])
    squares = [of(each[:, None] - each[None, :]) for each in points.T]
    sums = np.array([float((by_square * square).sum()) for square in squares])
    return _like(-2.0 * sums / lengths**3, length)


def _squared_exponential_slopes(points: Array, by_entry: Array, amplitude: float, length: Any) -> tuple[Any, ...]:
    gram = _squared_exponential(points, points, amplitude, length)
    return _by_amplitude(by_entry, gram, amplitude), _by_length(points, -0.5 * by_entry * gram, length)


def _matern_slopes(points: Array, by_entry: Array, amplitude: float, length: Any, order: float) -> tuple[Any, ...]:
    """With r^2 = 2 order times the squares: the rough one has a kink at 0, where points coincide at any length."""
    distance = np.sqrt(2.0 * order * _scaled_squares(points, points, length))
    falling = -order * _square(amplitude) * np.exp(-distance)
    if order == 0.5:
        falling = np.divide(falling, distance, out=np.zeros_like(distance), where=distance > 0.0)
    elif order == 2.5:
        falling = falling * (1.0 + distance) / 3.0
    gram = _matern(points, points, amplitude, length, order)
    return _by_amplitude(by_entry, gram, amplitude), _by_length(points, by_entry * falling, length), None


def _rational_quadratic_slopes(
    points: Array, by_entry: Array, amplitude: float, length: Any, mixture: float
) -> tuple[Any, ...]:
    share = _scaled_squares(points, points, length) / (2.0 * mixture)
    weighted = by_entry * _rational_quadratic(points, points, amplitude, length, mixture)
    by_mixture = float((weighted * (share / (1.0 + share) - np.log1p(share))).sum())
    by_length = _by_length(points, -0.5 * weighted / (1.0 + share), length)
    return 2.0 * float(weighted.sum()) / amplitude, by_length, by_mixture


def _periodic_slopes(points: Array, by_entry: Array, amplitude: float, length: Any, period: float) -> tuple[Any, ...]:
    def waves(difference: Array) -> Array:
        return _square(np.sin(math.pi * difference / period))

    def by_period(difference: Array) -> Array:
        slope: Array = -np.sin(2.0 * math.pi * difference / period) * (math.pi / period**2) * difference
        return slope

    weighted = by_entry * _periodic(points, points, amplitude, length, period)
    by_wave = float((weighted * _scaled_squares(points, points, length, by_period)).sum())
    by_length = _by_length(points, -2.0 * weighted, length, waves)
    return 2.0 * float(weighted.sum()) / amplitude, by_length, -2.0 * by_wave


def _linear_slopes(points: Array, by_entry: Array, amplitude: float, center: Any) -> tuple[Any, ...]:
    away = _from(points, center)
    by_center = -2.0 * _square(amplitude) * (by_entry.sum(axis=1) @ away)
    return _by_amplitude(by_entry, _linear(points, points, amplitude, center), amplitude), _like(by_center, center)


def _constant_slopes(points: Array, by_entry: Array, amplitude: float) -> tuple[Any, ...]:
    return (2.0 * amplitude * float(by_entry.sum()),)


_SLOPES: dict[str, Callable[..., tuple[Any, ...]]] = {
    "gp_squared_exponential": _squared_exponential_slopes,
    "gp_matern": _matern_slopes,
    "gp_rational_quadratic": _rational_quadratic_slopes,
    "gp_periodic": _periodic_slopes,
    "gp_linear": _linear_slopes,
    "gp_constant": _constant_slopes,
}
_GRAMS: dict[str, Callable[..., Array]] = {
    "gp_squared_exponential": _squared_exponential,
    "gp_matern": _matern,
    "gp_rational_quadratic": _rational_quadratic,
    "gp_periodic": _periodic,
    "gp_linear": _linear,
    "gp_constant": _constant,
    "gp_noise": _noise,
}
_COMBINED: dict[str, tuple[Callable[..., Array], Callable[..., tuple[Array, Array]]]] = {
    "gp_sum": (np.add, _added),
    "gp_product": (np.multiply, _multiplied),
}
"""How values, and variances with their noise, are combined."""


# -------------------------------------------------------------------------------------------------------- the records


LENGTH = either("length", "a positive number, or a vector of them for each coordinate", POSITIVE, POSITIVE_VECTOR)
COORDINATES = either("coordinates", "a finite number, or a vector of them for each coordinate", REAL, VECTOR)
ORDER = by_rows("order", "0.5, 1.5 or 2.5", lambda value: is_number(value) and value in MATERN_ORDERS)
_WHY = "a lambda cannot be one, since a change of what it reads would not reach the process"
COVARIANCE = of_kind("covariance", f"a covariance made by {', '.join((*_GRAMS, *_COMBINED))} ({_WHY})", Covariance)
MEAN = by_rows(
    "mean function",
    f"a number or a mean made by gp_linear_mean, gp_sum, gp_product ({_WHY})",
    lambda value: isinstance(value, Mean) or REAL.contains(value),
)
PART = by_rows(
    "part", f"a covariance, or a mean ({_WHY})", lambda value: isinstance(value, Covariance) or MEAN.contains(value)
)


def _plain(argument: Any) -> Any:
    """Parameters as floats and tuples of floats, so that equal functions are equal values."""
    if isinstance(argument, (np.ndarray, tuple)):
        return tuple(map(float, argument))
    return float(argument) if is_number(argument) else argument


def _pull(cotangent: Any, result: Any, *arguments: Any) -> tuple[Any, ...]:
    """The cotangent of a function is a tuple, one for each of its arguments."""
    return tuple(cotangent)[: len(arguments)]


def _function(
    of: Callable[..., Any], name: str, arguments: tuple[Argument, ...], summary: str, rest: Domain | None = None
) -> Deterministic:
    def make(*given: Any) -> Any:
        return of(name, tuple(map(_plain, check_arguments(record, given))))

    record = Deterministic(name, arguments, summary, make, rest=rest, pullback=single(_pull))
    return record


def _combined(name: str, parts: tuple[Any, ...]) -> Covariance | Mean:
    covariances = [isinstance(part, Covariance) for part in parts]
    if any(covariances) and not all(covariances):
        shown = " ".join(map(show, parts))
        raise ArgumentError(f"{name} takes covariances alone, or means and numbers alone, got {shown}")
    return Covariance(name, parts) if all(covariances) else Mean(name, parts)


_AMPLITUDE = Argument("amplitude", POSITIVE)
_SMOOTH = (_AMPLITUDE, Argument("length", LENGTH))
_PARTS = (Argument("part", PART),)

RECORDS = (
    _function(Covariance, "gp_squared_exponential", _SMOOTH,
              "Covariance amplitude^2 exp(-d^2 / (2 length^2)) at distance d: very smooth functions that vary by about "
              "amplitude over about length; a vector gives each coordinate of the points its own length."),
    _function(Covariance, "gp_matern", (*_SMOOTH, Argument("order", ORDER)),
              "Matern covariance of order 0.5 (rough), 1.5 or 2.5 (twice differentiable functions)."),
    _function(Covariance, "gp_rational_quadratic", (*_SMOOTH, Argument("mixture", POSITIVE)),
              "Covariance amplitude^2 (1 + d^2 / (2 mixture length^2))^-mixture at distance d: a mixture of squared "
              "exponentials of many lengths."),
    _function(Covariance, "gp_periodic", (*_SMOOTH, Argument("period", POSITIVE)),
              "Covariance amplitude^2 exp(-2 sin(pi d / period)^2 / length^2): functions that repeat with the period."),
    _function(Covariance, "gp_linear", (_AMPLITUDE, Argument("center", COORDINATES, 0.0)),
              "Covariance amplitude^2 (x - center)(z - center): straight lines through 0 at the center, with slopes "
              "normal(0, amplitude)."),
    _function(Covariance, "gp_constant", (_AMPLITUDE,),
              "Covariance amplitude^2 everywhere: constant functions, normal(0, amplitude)."),
    _function(Covariance, "gp_noise", (Argument("sd", POSITIVE),),
              "White noise: each application adds its own normal(0, sd)."),
    _function(Mean, "gp_linear_mean", (Argument("slope", COORDINATES), Argument("intercept", REAL, 0.0)),
              "The mean intercept + slope x; a vector of slopes for vectors x."),
    _function(_combined, "gp_sum", _PARTS, "The sum of covariances, or of means and numbers.", rest=PART),
    _function(_combined, "gp_product", _PARTS, "The product of covariances, or of means and numbers.", rest=PART),
)  # fmt: skip
