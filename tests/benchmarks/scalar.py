"""A normal mean with ten observations: what a transition costs when there is nearly nothing to compute."""

from __future__ import annotations

import math
import random

import numpy as np

from tests.benchmarks.measure import Row, compare
from venture_lite import Venture

MODEL = """
[assume mu (normal 0 2)]
for n in 1...10: [observe (normal mu 1) {Y[n]}]
"""
BAR = 30_000
TRANSITIONS = 20_000


def rows() -> list[Row]:
    values = np.random.default_rng(0).normal(1.0, 1.0, size=10)
    model = Venture(seed=1)
    model.execute(MODEL, Y=values)
    found = compare(
        lambda: model.infer("(mh default one {T})", T=TRANSITIONS), lambda: by_hand(values.tolist(), TRANSITIONS)
    )
    speed = TRANSITIONS / found.ours
    return [
        Row(
            "mu ~ normal, 10 observations, (mh default one T)",
            f"{speed:,.0f}/s",
            f"at least {BAR:,}/s",
            f"plain Python by hand, {TRANSITIONS / found.theirs:,.0f}/s",
            found.ratio,
            speed >= BAR,
        )
    ]


def by_hand(values: list[float], transitions: int) -> float:
    """The same chain: propose mu from its prior, weigh it by the ten densities."""
    rng = random.Random(1)
    constant = -0.5 * math.log(2 * math.pi)

    def log_likelihood(mean: float) -> float:
        return sum(constant - 0.5 * (value - mean) ** 2 for value in values)

    mean = rng.gauss(0.0, 2.0)
    current = log_likelihood(mean)
    for _ in range(transitions):
        proposed = rng.gauss(0.0, 2.0)
        weight = log_likelihood(proposed)
        if math.log(1.0 - rng.random()) < weight - current:
            mean, current = proposed, weight
    return mean
