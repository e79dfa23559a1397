"""Joint models of parameters and data, as programs and as independent forward simulations in NumPy.

Data are ordinary choices in scope `data`, discrete parameters are in `d`, continuous ones in `c`. Nothing depends on
the data, so resimulating them is always accepted and is an exact draw given the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tests.statistics import Floats

Rng = np.random.Generator


@dataclass(frozen=True, slots=True)
class Model:
    """A joint model, the functions of parameters and data that are compared, and their forward simulation."""

    program: str
    # Variable to expression.
    functions: Mapping[str, str]
    # From the number of draws to one array, `(draws,)`, a variable.
    simulate: Callable[[Rng, int], Mapping[str, Floats]]


BRANCH = """
    [assume z (scope_include 'd 0 (flip 0.4))]
    [assume w (if z (scope_include 'd 1 (uniform_discrete 0 3)) 1)]
    [assume mu (if z (scope_include 'c 0 (normal w 1))
                     (+ (scope_include 'c 1 (normal -1 1)) (scope_include 'c 2 (gamma 2 2))
                        (scope_include 'c 3 (uniform_continuous 0 1))))]
    [assume y (mem (lambda (i) (scope_include 'data i (normal mu (if z 1 0.5)))))]
    [predict (y 1)] [predict (y 2)]"""


def simulate_branch(rng: Rng, n: int) -> dict[str, Floats]:
    z = rng.random(n) < 0.4
    w = np.where(z, rng.integers(0, 3, n), 1)
    other = rng.normal(-1, 1, n) + rng.gamma(2, 1 / 2, n) + rng.random(n)
    mu = np.where(z, rng.normal(w, 1), other)
    sd = np.where(z, 1.0, 0.5)
    y1, y2 = rng.normal(mu, sd), rng.normal(mu, sd)
    return {
        "z": z * 1.0,
        "w": w * 1.0,
        "mu": mu,
        "mu_square": mu * mu,
        "z_mu": z * mu,
        "w_mu": w * mu,
        "y1": y1,
        "mu_y1": mu * y1,
        "y1_y2": y1 * y2,
        "z_y1": z * y1,
    }


TABLES = """
    [assume alpha (scope_include 'c 0 (gamma 2 2))] [assume crp (make_crp alpha)]
    [assume z (mem (lambda (i) (scope_include 'd i (crp))))]
    [assume mean (mem (lambda (t) (scope_include 'c t (normal 0 1))))]
    [assume y (mem (lambda (i) (scope_include 'data i (normal (mean (z i)) 0.7))))]
    [predict (y 1)] [predict (y 2)] [predict (y 3)]"""


def simulate_tables(rng: Rng, n: int) -> dict[str, Floats]:
    alpha = rng.gamma(2, 1 / 2, n)
    together = rng.random(n) < 1 / (1 + alpha)
    u = rng.random(n) * (2 + alpha)
    z = np.zeros((n, 3), dtype=int)
    z[:, 1] = np.where(together, 0, 1)
    z[:, 2] = np.where(u < 1, 0, np.where(u < 2, z[:, 1], 2))
    means = rng.normal(0, 1, (n, 3))
    at = np.take_along_axis(means, z, axis=1)
    y = rng.normal(at, 0.7)
    same = [z[:, a] == z[:, b] for a, b in ((0, 1), (0, 2), (1, 2))]
    return {
        "alpha": alpha,
        "log_alpha": np.log(alpha),
        "s12": same[0] * 1.0,
        "s13": same[1] * 1.0,
        "together": same[0] * same[1] * 1.0,
        "alpha_s12": alpha * same[0],
        "m1": at[:, 0],
        "m1_square": at[:, 0] ** 2,
        "m1_m3": at[:, 0] * at[:, 2],
        "m2_y2": at[:, 1] * y[:, 1],
        "y1_y3": y[:, 0] * y[:, 2],
        "s23_y2_y3": same[2] * y[:, 1] * y[:, 2],
    }


LEVELS = """
    [assume k (scope_include 'd 0 (binomial 3 0.4))]
    [assume loud (scope_include 'd 1 (flip (/ (+ k 1) 5)))]
    [assume s2 (scope_include 'c 0 (inv_gamma 6 (+ k 2)))]
    [assume m (scope_include 'c 1 (normal k 1))]
    [assume theta (mem (lambda (i) (scope_include 'c (+ i 1) (normal m (sqrt s2)))))]
    [assume p (scope_include 'c 4 (beta (+ k 1) 2))]
    [assume y (mem (lambda (i) (scope_include 'data i (normal (theta i) (if loud 1.5 0.7)))))]
    [assume coin (mem (lambda (i) (scope_include 'data (+ i 10) (flip p))))]
    [predict (y 1)] [predict (y 2)] [predict (coin 1)] [predict (coin 2)]"""


def simulate_levels(rng: Rng, n: int) -> dict[str, Floats]:
    k = rng.binomial(3, 0.4, n)
    loud = rng.random(n) < (k + 1) / 5
    s2 = (k + 2) / rng.gamma(6, 1, n)
    m = rng.normal(k, 1)
    theta = rng.normal(m[:, None], np.sqrt(s2)[:, None], (n, 2))
    p = rng.beta(k + 1, 2)
    y = rng.normal(theta, np.where(loud, 1.5, 0.7)[:, None])
    coin = rng.random((n, 2)) < p[:, None]
    return {
        "k": k * 1.0,
        "k_square": k * k * 1.0,
        "loud": loud * 1.0,
        "sd": np.sqrt(s2),
        "m": m,
        "k_m": k * m,
        "t1": theta[:, 0],
        "spread": (theta[:, 0] - theta[:, 1]) ** 2,
        "p": p,
        "k_p": k * p,
        "t1_y1": theta[:, 0] * y[:, 0],
        "loud_y": loud * np.abs(y[:, 0] - theta[:, 0]),
        "both": coin[:, 0] * coin[:, 1] * 1.0,
        "p_coin": p * coin[:, 0],
    }


MODELS: dict[str, Model] = {
    "branch": Model(
        BRANCH,
        {
            "z": "z",
            "w": "w",
            "mu": "mu",
            "mu_square": "(* mu mu)",
            "z_mu": "(* z mu)",
            "w_mu": "(* w mu)",
            "y1": "(y 1)",
            "mu_y1": "(* mu (y 1))",
            "y1_y2": "(* (y 1) (y 2))",
            "z_y1": "(* z (y 1))",
        },
        simulate_branch,
    ),
    "tables": Model(
        TABLES,
        {
            "alpha": "alpha",
            "log_alpha": "(log alpha)",
            "s12": "(= (z 1) (z 2))",
            "s13": "(= (z 1) (z 3))",
            "together": "(* (= (z 1) (z 2)) (= (z 1) (z 3)))",
            "alpha_s12": "(* alpha (= (z 1) (z 2)))",
            "m1": "(mean (z 1))",
            "m1_square": "(* (mean (z 1)) (mean (z 1)))",
            "m1_m3": "(* (mean (z 1)) (mean (z 3)))",
            "m2_y2": "(* (mean (z 2)) (y 2))",
            "y1_y3": "(* (y 1) (y 3))",
            "s23_y2_y3": "(* (= (z 2) (z 3)) (y 2) (y 3))",
        },
        simulate_tables,
    ),
    "levels": Model(
        LEVELS,
        {
            "k": "k",
            "k_square": "(* k k)",
            "loud": "loud",
            "sd": "(sqrt s2)",
            "m": "m",
            "k_m": "(* k m)",
            "t1": "(theta 1)",
            "spread": "(* (- (theta 1) (theta 2)) (- (theta 1) (theta 2)))",
            "p": "p",
            "k_p": "(* k p)",
            "t1_y1": "(* (theta 1) (y 1))",
            "loud_y": "(* loud (abs (- (y 1) (theta 1))))",
            "both": "(* (coin 1) (coin 2))",
            "p_coin": "(* p (coin 1))",
        },
        simulate_levels,
    ),
}
