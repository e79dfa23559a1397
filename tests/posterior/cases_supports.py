"""Supports that shrink under choices that stand, where what reads these is an error."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import stats

from tests.posterior.case import Case
from tests.posterior.derive import pushforward
from tests.statistics import Cdf, Expected


def places_in_a_row() -> Mapping[str, Expected]:
    # n in 1 to 4, k below n, and the root of how many there are behind the k-th observed with sd 0.8 at 1.2.
    weights = {(n, k): stats.norm.pdf(1.2, (n - k - 1) ** 0.5, 0.8) / n for n in range(1, 5) for k in range(n)}
    return {"n": pushforward(weights, lambda n, k: n), "k": pushforward(weights, lambda n, k: k)}


def root_of_a_distance() -> Mapping[str, Expected]:
    # x = u t with t uniform; the root of u (1 - t) observed with sd 0.4 at 0.3. The midpoints of 2,000 x 2,000 cells.
    middle = (np.arange(2000) + 0.5) / 2000
    u, t = middle[:, None], middle[None, :]
    weight = stats.norm.pdf(0.3, np.sqrt(u * (1 - t)), 0.4)
    points = np.array([0.1, 0.25, 0.4, 0.6, 0.8])
    of_u = np.array([weight[middle <= point].sum() for point in points]) / weight.sum()
    of_x = np.array([weight[u * t <= point].sum() for point in points]) / weight.sum()
    return {"u": Cdf(points, of_u), "x": Cdf(points, of_x)}


CASES = (
    Case(
        name="places_in_a_row",
        program="""
            [assume n (tag 'all 0 (tag 'n 0 (uniform_discrete 1 5)))]
            [assume k (tag 'all 1 (uniform_discrete 0 n))]
            [assume v (sqrt (- n (+ k 1)))]
            [observe (normal v 0.8) 1.2]""",
        query={"n": "n", "k": "k"},
        exact=places_in_a_row,
        engines=(
            "(mh default one 8)",
            "(gibbs default one 4)",
            "(gibbs default all 1)",
            "(rejection default one 3)",
            "(do (mh n 0 (lambda (n) (if (flip) (+ n 1) (if (= n 1) 1 (- n 1)))) 3) (mh default one 3))",
            "(pgibbs default ordered 4 3)",
            "(do (pgibbs n ordered 4 2) (gibbs all 1 1))",
            "(pgibbs all ordered 4 'ancestor 3)",
        ),
        derivation="Enumeration of the ten pairs.",
    ),
    Case(
        name="places_in_a_row_memoized",
        program="""
            [assume n (tag 'all 0 (tag 'n 0 (uniform_discrete 1 5)))]
            [assume k (tag 'all 1 (uniform_discrete 0 n))]
            [assume behind (mem (lambda (i) (- n (+ i 1))))]
            [assume v (sqrt (behind k))]
            [observe (normal v 0.8) 1.2]""",
        query={"n": "n", "k": "k"},
        exact=places_in_a_row,
        engines=(
            "(do (pgibbs n ordered 4 2) (gibbs all 1 1))",
            "(mh default one 8)",
            "(pgibbs all ordered 4 3)",
            "(pgibbs all ordered 4 'ancestor 3)",
            "(gibbs default one 4)",
        ),
        derivation="Enumeration of the ten pairs.",
    ),
    Case(
        name="root_of_a_distance",
        program="""
            [assume u (uniform_continuous 0 1)]
            [assume x (uniform_continuous 0 u)]
            [assume y (sqrt (- u x))]
            [observe (normal y 0.4) 0.3]""",
        query={"u": "u", "x": "x"},
        exact=root_of_a_distance,
        engines=(
            "(mh default one 8)",
            "(mh default one 'drift 1.5 12)",
            "(slice default one 2 5 4)",
            "(hmc default all 0.3 4 6)",
            "(mala default all 0.8 12)",
            "(rejection default one 3)",
            "(pgibbs default ordered 4 3)",
        ),
        derivation="Quadrature over u and x / u.",
    ),
)
