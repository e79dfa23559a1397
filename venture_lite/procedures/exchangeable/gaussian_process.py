"""Gaussian processes: functions whose values, at any points, are jointly normal.

The function is integrated out: an application `(f x)` is drawn given all other applications, through a Cholesky factor
of their covariance that grows by a row with each of them. Where the covariance has white noise, each application is a
row. Where it has none, all applications at one point are one row: they have one value, and those after the first are
certain (log density 0).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import transforms
from venture_lite.procedures.domains import REAL, SCORES, either
from venture_lite.procedures.exchangeable.growing_cholesky import GrowingCholesky
from venture_lite.procedures.functions.covariances import COVARIANCE, MEAN, Covariance, Mean, mean_of
from venture_lite.procedures.record import Argument, JointGradient, Maker
from venture_lite.values import show

LEAST_NOISE = 1e-10
"""Least own variance of an application, relative to what it shares: points close together would else give a singular
matrix. Rounding perturbs the factor of n points by about n 1e-16, so this serves up to some 10^5 of them."""

HALF_LOG_TURN = 0.5 * math.log(2.0 * math.pi)

InputPoint = tuple[float, ...]
InputToken = tuple[Any, ...]

WHITENED, RESIDUAL, CERTAIN, POINT = 0, 1, 2, 3
"""Columns of the numbers of a row: (L^-1 residuals), value - mean, 1 where its variance is 0, and from POINT on its
coordinates."""


class Prediction(NamedTuple):
    mean: float
    # 0 where the value is certain
    sd: float
    # the new row of the factor, left of its diagonal
    weights: np.ndarray
    # the row that has the point already, or -1
    row: int


class Conditioned:
    """The applications under one mean and covariance: rows with values, and the factor of their covariance.

    Mutable. A change returns a token of plain data, since a copy of the process may be the one that takes it back.
    """

    __slots__ = ("_latest", "_numbers", "conflicts", "covariance", "factor", "mean", "serial", "stale", "values")

    def __init__(
        self, serial: int, mean: Any, covariance: Covariance, applications: Iterable[tuple[InputPoint, float]]
    ) -> None:
        # tells it from all others of one process
        self.serial = serial
        self.mean = mean_of(mean)
        self.covariance = covariance
        # of each row the values at its point, of which the first is the row's
        self.values: list[list[float]] = []
        # applications whose value is not that of their row: each is impossible
        self.conflicts = 0
        self.factor = GrowingCholesky()
        # whether the factor is still to be computed, all at once
        self.stale = True
        self._latest: tuple[InputPoint, Prediction] | None = None
        self._numbers = np.empty((0, POINT))
        self._take(applications)

    def _take(self, applications: Iterable[tuple[InputPoint, float]]) -> None:
        points: list[InputPoint] = []
        rows: dict[InputPoint, int] = {}
        noisy = self.covariance.noisy
        for point, value in applications:
            row = len(points) if noisy else rows.setdefault(point, len(points))
            if row == len(points):
                points.append(point)
                self.values.append([])
            self.values[row].append(value)
        self.conflicts = sum(map(_conflicts, self.values))
        if points:
            self._numbers = np.zeros((len(points), POINT + len(points[0])))
            self._numbers[:, POINT:] = points

    def under(self, serial: int, mean: Any, covariance: Covariance) -> Conditioned:
        """The same applications, in the same order, under another mean and covariance."""
        if covariance.noisy != self.covariance.noisy:
            return Conditioned(serial, mean, covariance, self.applications())
        found = Conditioned(serial, mean, covariance, ())
        found.values, found.conflicts = list(map(list, self.values)), self.conflicts
        found._numbers = self._numbers[: len(self.values)].copy()
        return found

    def numbers(self) -> np.ndarray:
        """(rows, POINT + dims): what is known of each row, up to date."""
        if self.stale:
            self._factor_anew()
        return self._numbers[: len(self.values)]

    def applications(self) -> Iterator[tuple[InputPoint, float]]:
        for point, values in zip(self._numbers[: len(self.values), POINT:].tolist(), self.values, strict=True):
            yield from ((tuple(point), value) for value in values)

    def _factor_anew(self) -> None:
        """All rows at once, O(n^3)."""
        self.stale = False
        numbers = self._numbers[: len(self.values)]
        if not len(numbers):
            return
        points = numbers[:, POINT:]
        first = np.array([values[0] for values in self.values])
        with np.errstate(all="ignore"):
            matrix = self.covariance.gram(points, points)
            shared, own = self.covariance.variances(points)
            numbers[:, RESIDUAL] = first - self.mean.at(points)
        least = np.maximum(own, LEAST_NOISE * shared)
        certain = shared + least == 0.0
        numbers[:, CERTAIN] = certain
        matrix[np.diag_indices(len(matrix))] = shared + least + certain
        if not (np.isfinite(matrix).all() and np.isfinite(numbers).all()):
            raise ArgumentError("make_gp: the mean or the covariance is beyond the floats at one of the points")
        try:
            self.factor.factor(matrix)
        except np.linalg.LinAlgError:
            self._factor_by_rows(matrix, least + certain)
        numbers[:, WHITENED] = self.factor.solve(numbers[:, RESIDUAL])

    def _factor_by_rows(self, matrix: np.ndarray, least: np.ndarray) -> None:
        """Where rounding has made the matrix indefinite: no conditional variance is below an application's own."""
        self.factor = GrowingCholesky()
        for row, (entries, floor) in enumerate(zip(matrix, least.tolist(), strict=True)):
            weights = self.factor.solve(entries[:row])
            self.factor.extend(weights, math.sqrt(max(entries[row] - weights @ weights, floor)))

    def predict(self, point: InputPoint) -> Prediction:
        """The value of one further application, O(n^2)."""
        if self._latest is None or self._latest[0] != point:
            self._latest = (point, self._predict(point))
        return self._latest[1]

    def _predict(self, point: InputPoint) -> Prediction:
        numbers, place = self.numbers(), np.array([point])
        weights = np.empty(0)
        if len(numbers):
            if len(point) != (size := numbers.shape[1] - POINT):
                raise ArgumentError(f"make_gp: {_shown(point)} has {len(point)} coordinates, other points have {size}")
            if not self.covariance.noisy and len(rows := self._rows_at(point)):
                return Prediction(self.values[rows[0]][0], 0.0, weights, int(rows[0]))
        with np.errstate(all="ignore"):
            if len(numbers):
                weights = self.factor.solve(self.covariance.gram(numbers[:, POINT:], place)[:, 0])
            shared, own = (float(variance[0]) for variance in self.covariance.variances(place))
            mean = float(self.mean.at(place)[0] + weights @ numbers[:, WHITENED])
        least = max(own, LEAST_NOISE * shared)
        variance = max(shared + least - float(weights @ weights), least)
        if not (math.isfinite(mean) and math.isfinite(variance)):
            raise ArgumentError(f"make_gp: the mean or the covariance at {_shown(point)} is beyond the floats")
        return Prediction(mean, math.sqrt(variance), weights, -1)

    def _rows_at(self, point: InputPoint) -> np.ndarray:
        return np.flatnonzero((self.numbers()[:, POINT:] == point).all(axis=1))

    def log_joint(self) -> float:
        numbers = self.numbers()
        if not len(numbers):
            return 0.0
        certain, whitened = numbers[:, CERTAIN], numbers[:, WHITENED]
        if self.conflicts or (certain * whitened).any():
            return -math.inf
        log_determinant = 2.0 * float(np.log(self.factor.diagonal()).sum())
        free = len(numbers) - float(certain.sum())
        return -0.5 * (float(whitened @ whitened) + log_determinant) - free * HALF_LOG_TURN

    def slopes(self) -> tuple[Any, Any]:
        """The derivatives of `log_joint` by the mean and by the covariance, as `Mean.slopes` and `Covariance.slopes`
        give them: alpha and (alpha alpha^T - K^-1) / 2, with alpha = K^-1 residuals (Rasmussen and Williams 2006,
        equation 5.9)."""
        numbers = self.numbers()
        if not len(numbers):
            return None, None
        points, weights = numbers[:, POINT:], self.factor.solve_transposed(numbers[:, WHITENED])
        by_entry = 0.5 * (np.outer(weights, weights) - self.factor.inverse())
        shared, own = self.covariance.variances(points)
        by_own, rows = by_entry.diagonal().copy(), np.arange(len(points))
        floored = own < LEAST_NOISE * shared
        by_entry[rows, rows] += np.where(floored, LEAST_NOISE * by_own, 0.0)
        by_own[floored] = 0.0
        return self.mean.slopes(points, weights), self.covariance.slopes(points, by_entry, by_own)

    # ------------------------------------------------------------------------------------------------------ changes

    def add(self, point: InputPoint, value: float) -> InputToken:
        mean, sd, weights, row = self.predict(point)
        self._latest = None
        if row >= 0:
            self.conflicts += value != mean
            self.values[row].append(value)
            return ("repeat", row)
        size = len(self.values)
        self._make_room(size, len(point))
        pivot = sd or 1.0
        residual = value - float(self.mean.at(np.array([point]))[0])
        self._numbers[size] = ((value - mean) / pivot, residual, sd == 0.0, *point)
        self.factor.extend(weights, pivot)
        self.values.append([value])
        return ("row",)

    def _make_room(self, size: int, dims: int) -> None:
        if not size:
            self._numbers = np.empty((16, POINT + dims))
        elif size == len(self._numbers):
            self._numbers = np.concatenate((self._numbers, np.empty_like(self._numbers)))

    def remove(self, point: InputPoint, value: float) -> InputToken:
        row = next(row for row in self._rows_at(point).tolist() if value in self.values[row])
        self._latest = None
        values = self.values[row]
        place = values.index(value)
        if len(values) == 1:
            return self._delete(row)
        kept = (self.conflicts, self.numbers()[:, : RESIDUAL + 1].copy())
        self.conflicts -= _conflicts(values)
        del values[place]
        self.conflicts += _conflicts(values)
        numbers = self.numbers()
        if values[0] != value:
            numbers[row, RESIDUAL] += values[0] - value
            numbers[:, WHITENED] = self.factor.solve(numbers[:, RESIDUAL])
        return ("repeated", row, place, value, *kept)

    def _delete(self, row: int) -> InputToken:
        numbers = self.numbers()
        before = numbers.copy()
        tail = self.factor.delete(row)
        (value,) = self.values.pop(row)
        numbers[row:-1] = before[row + 1 :]
        left = self.numbers()
        left[:, WHITENED] = self.factor.solve(left[:, RESIDUAL])
        return ("deleted", row, value, tail, before)

    def restore(self, token: InputToken) -> None:
        """Undo the latest change."""
        self._latest = None
        match token:
            case ("row",):
                self.values.pop()
                self.factor.shorten()
            case ("repeat", row):
                self.conflicts -= self.values[row].pop() != self.values[row][0]
            case ("repeated", row, place, value, conflicts, columns):
                self.values[row].insert(place, value)
                self.conflicts = conflicts
                self.numbers()[:, : RESIDUAL + 1] = columns
            case ("deleted", row, value, tail, numbers):
                self.factor.put_back(row, tail)
                self.values.insert(row, [value])
                self.numbers()[:] = numbers


def _conflicts(values: list[float]) -> int:
    return sum(value != values[0] for value in values)


def _shown(point: InputPoint) -> str:
    return show(point if len(point) > 1 else point[0])


class GaussianProcessState:
    """What is known under the present mean and covariance, and under those before: a rejected proposal of others finds
    its factor as it was."""

    __slots__ = ("_before", "_clock", "_now", "_stamp", "arguments", "count")

    def __init__(self, mean: Any, covariance: Covariance) -> None:
        self.arguments: tuple[Any, ...] = (mean, covariance)
        self.count = 0
        self._clock = 0
        # names the applications at hand: equal stamps, equal applications in equal order
        self._stamp = 0
        self._before: tuple[int, tuple[Any, ...], Conditioned] | None = None
        self._now = self._conditioned(())

    def _conditioned(self, applications: Iterable[tuple[InputPoint, float]]) -> Conditioned:
        mean, covariance = self.arguments
        return Conditioned(self._tick(), mean, covariance, applications)

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        before, self._before = self._before, (self._stamp, self.arguments, self._now)
        self.arguments = arguments
        if before is not None and before[0] == self._stamp and before[1] is arguments:
            self._now = before[2]
        else:
            self._now = self._now.under(self._tick(), *arguments)

    def simulate(self, rng: np.random.Generator, x: Any) -> float:
        mean, sd, _, _ = self._now.predict(_point(x))
        drawn = mean + sd * rng.standard_normal() if sd else mean
        return float(min(max(drawn, -transforms.LARGEST), transforms.LARGEST))

    def log_predictive(self, value: Any, x: Any) -> float:
        if not (isinstance(value, (int, float)) and -math.inf < value < math.inf):
            return -math.inf
        mean, sd, _, _ = self._now.predict(_point(x))
        if not sd:
            return 0.0 if value == mean else -math.inf
        away = (value - mean) / sd
        return -0.5 * away * away - math.log(sd) - HALF_LOG_TURN

    def log_joint(self) -> float:
        return self._now.log_joint()

    def slopes(self) -> tuple[Any, Any]:
        """The derivatives of `log_joint` by the arguments; None where no application counts."""
        by_mean, by_covariance = self._now.slopes()
        if by_mean is not None and not isinstance(self.arguments[0], Mean):
            (by_mean,) = by_mean
        return by_mean, by_covariance

    def support(self, x: Any) -> None:
        return None

    def add(self, value: Any, x: Any) -> InputToken:
        return self._change(1, _point(x), float(value))

    def remove(self, value: Any, x: Any) -> InputToken:
        return self._change(-1, _point(x), float(value))

    def _change(self, sign: int, point: InputPoint, value: float) -> InputToken:
        change = self._now.add(point, value) if sign > 0 else self._now.remove(point, value)
        self.count += sign
        before, self._stamp = self._stamp, self._tick()
        return (before, sign, point, value, self._now.serial, change)

    def restore(self, token: InputToken) -> None:
        self._stamp, sign, point, value, serial, change = token
        self.count -= sign
        if serial == self._now.serial:
            self._now.restore(change)
            return
        # the factor that the token speaks of is gone, and the present one still to be computed
        applications = list(self._now.applications())
        if sign > 0:
            applications.remove((point, value))
        else:
            applications.append((point, value))
        self._now = self._conditioned(applications)

    def recount(self, applications: Iterable[tuple[Any, ...]]) -> None:
        drawn = [(_point(x), float(value)) for value, x in applications]
        self.count = len(drawn)
        self._stamp = self._tick()
        self._before = None
        self._now = self._conditioned(drawn)

    def statistics(self) -> dict[tuple[InputPoint, float], int]:
        """How often each value was drawn at each point."""
        return Counter(self._now.applications())


def _point(x: Any) -> InputPoint:
    """The coordinates, with 0 for -0."""
    return (float(x) + 0.0,) if isinstance(x, (int, float)) else tuple(float(entry) + 0.0 for entry in x)


PLACE = either("point", "a finite number, or a vector of at least one", REAL, SCORES)

MAKE_GP = Maker(
    "make_gp", (Argument("mean", MEAN), Argument("covariance", COVARIANCE)),
    "A random function of a number or a vector whose values are jointly normal; mean and covariance are made by the "
    "gp_ procedures, and a number is a constant mean. Without gp_noise the function has one value at a point, and "
    "drawing it again is certain; an application's noise is never taken below 1e-5 of the function's sd there.",
    GaussianProcessState, transform=transforms.REAL,
    source="multivariate normal with mean m(x_i) and covariance k(x_i, x_j) (Rasmussen and Williams 2006, Gaussian "
    "Processes for Machine Learning, algorithm 2.1)",
    applied=(Argument("x", PLACE),), gradient=JointGradient((True, True), GaussianProcessState.slopes),
)  # fmt: skip

RECORDS = (MAKE_GP,)
