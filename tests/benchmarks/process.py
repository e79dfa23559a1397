"""A Gaussian process that takes in 1,000 observations one after the other, and twice as many: O(n^2) for each."""

from __future__ import annotations

import numpy as np

from tests.benchmarks.measure import Row, compare, seconds
from venture_lite import Venture

MODEL = """
[assume f (make_gp 0 (gp_sum (gp_squared_exponential 1 0.5) (gp_noise 0.3)))]
for n in 1...N: [observe (f {x[n]}) {y[n]}]
"""
POINTS = 1000
BAR = 2.0
STEEPEST = 8.0
"""Twice the points take at most so many times as long: the sum of squares to n."""


def rows() -> list[Row]:
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 20, 2 * POINTS)
    y = np.sin(x) + 0.3 * rng.standard_normal(2 * POINTS)

    def observe(count: int) -> None:
        Venture(seed=1).execute(MODEL, N=count, x=x, y=y)

    def factor() -> None:
        points = x[:POINTS]
        covariance = np.exp(-0.5 * ((points[:, None] - points) / 0.5) ** 2) + 0.3**2 * np.eye(POINTS)
        np.linalg.cholesky(covariance)

    found = compare(lambda: observe(POINTS), factor, repetitions=3)
    twice = seconds(lambda: observe(2 * POINTS))
    return [
        Row(
            f"Gaussian process, {POINTS:,} observations one by one",
            f"{found.ours:.2f} s",
            f"at most {BAR:.0f} s",
            f"one Cholesky factor in NumPy, {found.theirs:.3f} s",
            found.ratio,
            found.ours <= BAR,
        ),
        Row(
            "  twice as many",
            f"{twice:.2f} s",
            f"at most {STEEPEST:.0f} times",
            f"{found.ours:.2f} s",
            twice / found.ours,
            twice <= STEEPEST * found.ours,
        ),
    ]
