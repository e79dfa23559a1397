"""A memoized mixture of 100,000 data, and collapsed Gibbs over its assignments."""

from __future__ import annotations

import math

import numpy as np

from tests.benchmarks.measure import Row, compare, resident_bytes, seconds
from venture_lite import Venture

MODEL = """
[assume cluster (make_crp 1)]
[assume z (mem (lambda (i) (scope_include 'z i (cluster))))]
[assume component (mem (lambda (k) (make_collapsed_multivariate_normal {m0} {k0} {v0} {S0})))]
for i in 1...N: [observe ((component (z i))) {X[i]}]
"""
COUNT = 100_000
LOAD_BAR = 5.0
BYTES_BAR = 400
SPEED_BAR = 800
ASSIGNMENTS = 500
PRIOR_MEAN_WEIGHT, PRIOR_DEGREES = 0.1, 4.0


def rows() -> list[Row]:
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=6.0, size=(10, 2))
    points = centres[rng.integers(10, size=COUNT)] + rng.normal(size=(COUNT, 2))
    prior = {"m0": np.zeros(2), "k0": PRIOR_MEAN_WEIGHT, "v0": PRIOR_DEGREES, "S0": np.eye(2)}
    Venture(seed=1).execute(MODEL, X=points, N=100, **prior)

    model = Venture(seed=1)
    before = resident_bytes()
    took = seconds(lambda: model.execute(MODEL, X=points, N=COUNT, **prior))
    each = (resident_bytes() - before) / COUNT
    by_hand = CollapsedGibbs(points, np.random.default_rng(2))
    loading = seconds(lambda: CollapsedGibbs(points, np.random.default_rng(2)))
    found = compare(
        lambda: model.infer("(gibbs z one {T})", T=ASSIGNMENTS), lambda: by_hand.run(ASSIGNMENTS), repetitions=5
    )
    speed = ASSIGNMENTS / found.ours
    return [
        Row(
            f"memoized mixture of {COUNT:,} data, loaded",
            f"{took:.2f} s",
            f"at most {LOAD_BAR:.0f} s",
            f"NumPy by hand, {loading:.2f} s",
            loading / took,
            took <= LOAD_BAR,
        ),
        Row(
            "  resident after it",
            f"{each:.0f} bytes a datum",
            f"at most {BYTES_BAR}",
            "the data's own 16 bytes",
            each / 16,
            each <= BYTES_BAR,
        ),
        Row(
            f"  collapsed gibbs, {by_hand.tables()} tables by hand",
            f"{speed:,.0f} assignments/s",
            f"at least {SPEED_BAR}/s",
            f"NumPy by hand, {ASSIGNMENTS / found.theirs:,.0f}/s",
            found.ratio,
            speed >= SPEED_BAR,
        ),
    ]


class CollapsedGibbs:
    """Neal's Algorithm 3 in two dimensions by hand; `run` moves `labels` and the tables' counts, sums and scatters.

    Tables stand in arrays with spare rows, an empty row serving as the fresh table. The predictive density of a table
    is Student's t (Murphy, "Conjugate Bayesian analysis of the Gaussian distribution", 2007, equation 258).
    """

    SPARE = 64

    def __init__(self, points: np.ndarray, rng: np.random.Generator) -> None:
        self.points = points
        self.rng = rng
        self.count = np.zeros(self.SPARE)
        self.sum = np.zeros((self.SPARE, 2))
        # second moments xx, xy, yy
        self.square = np.zeros((self.SPARE, 3))
        self.labels = np.zeros(len(points), dtype=np.int64)
        used = 0
        for datum, point in enumerate(points):
            table = self._seat(used)
            used = max(used, table + 1)
            self.labels[datum] = table
            self._move(table, point, 1.0)

    def tables(self) -> int:
        return int(np.count_nonzero(self.count))

    def run(self, assignments: int) -> None:
        for datum in self.rng.integers(len(self.points), size=assignments):
            point = self.points[datum]
            self._move(self.labels[datum], point, -1.0)
            occupied = np.flatnonzero(self.count)
            fresh = int(np.argmin(self.count > 0.0))
            candidates = np.append(occupied, fresh)
            weight = np.log(np.append(self.count[occupied], 1.0)) + self._log_predictive(candidates, point)
            chances = np.cumsum(np.exp(weight - weight.max()))
            table = candidates[np.searchsorted(chances, self.rng.random() * chances[-1])]
            self.labels[datum] = table
            self._move(table, point, 1.0)

    def _seat(self, used: int) -> int:
        """A draw from the Chinese restaurant process with concentration 1, without regard to the point."""
        chances = np.cumsum(np.append(self.count[:used], 1.0))
        return int(np.searchsorted(chances, self.rng.random() * chances[-1]))

    def _move(self, table: int, point: np.ndarray, sign: float) -> None:
        x, y = point
        self.count[table] += sign
        self.sum[table] += sign * point
        self.square[table] += (sign * x * x, sign * x * y, sign * y * y)

    def _log_predictive(self, tables: np.ndarray, point: np.ndarray) -> np.ndarray:
        count = self.count[tables]
        weight, degrees = PRIOR_MEAN_WEIGHT + count, PRIOR_DEGREES + count
        mean = self.sum[tables] / weight[:, None]
        scale = self.square[tables] - weight[:, None] * mean[:, (0, 0, 1)] * mean[:, (0, 1, 1)] + (1.0, 0.0, 1.0)
        scale *= ((weight + 1) / (weight * (degrees - 1)))[:, None]
        dx, dy = (point - mean).T
        determinant = scale[:, 0] * scale[:, 2] - scale[:, 1] ** 2
        distance = (scale[:, 2] * dx**2 - 2 * scale[:, 1] * dx * dy + scale[:, 0] * dy**2) / determinant
        # in two dimensions lgamma(nu / 2 + 1) - lgamma(nu / 2) is log(nu / 2), with nu = degrees - 1
        result: np.ndarray = (
            -math.log(2 * math.pi)
            - 0.5 * np.log(determinant)
            - 0.5 * (degrees + 1) * np.log1p(distance / (degrees - 1))
        )
        return result
