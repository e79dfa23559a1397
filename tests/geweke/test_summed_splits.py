"""Geweke's test of classes split with the labels summed out: several parameters, vectors, shared numbers.

Partitions of few labels have exact answers (`tests/engines/test_summed_labels.py`), with one parameter a class; here
classes have two, or a vector, and what cannot be enumerated is simulated. False alarms: as of
`test_joint_distribution.py`; breaks of splits are noticed in `tests/engines/test_summed_labels.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.geweke.models import Model, Rng
from tests.geweke.test_joint_distribution import assert_joint_distribution_is_kept, successive_conditional
from tests.statistics import Floats

LABELS = 4


def simulate_labels(rng: Rng, n: int, alpha: float) -> np.ndarray:
    """(n, LABELS), each the smallest that is free where it is a new one."""
    z = np.zeros((n, LABELS), dtype=int)
    for at in range(1, LABELS):
        new = rng.random(n) * (at + alpha) < alpha
        z[:, at] = np.where(new, z[:, :at].max(axis=1) + 1, z[np.arange(n), rng.integers(0, at, n)])
    return z


def functions_of(z: np.ndarray, m: np.ndarray, s: np.ndarray, y: np.ndarray) -> dict[str, Floats]:
    """Of labels, the first two numbers of the class of each, and data, (n, LABELS) each."""
    same = (z[:, 0] == z[:, 1]) * 1.0
    return {
        "s12": same,
        "s23": (z[:, 1] == z[:, 2]) * 1.0,
        "m1": m[:, 0],
        "m1_square": m[:, 0] ** 2,
        "m1_m2": m[:, 0] * m[:, 1],
        "s1": s[:, 0],
        "s1_s2": s[:, 0] * s[:, 1],
        "m1_y1": m[:, 0] * y[:, 0],
        "same_y1_y2": same * y[:, 0] * y[:, 1],
        "y3_square": np.abs(y[:, 2]),
    }


def expressions(m: str, s: str) -> dict[str, str]:
    return {
        "s12": "(= (z 1) (z 2))",
        "s23": "(= (z 2) (z 3))",
        "m1": m.replace("i", "1"),
        "m1_square": f"(pow {m.replace('i', '1')} 2)",
        "m1_m2": f"(* {m.replace('i', '1')} {m.replace('i', '2')})",
        "s1": s.replace("i", "1"),
        "s1_s2": f"(* {s.replace('i', '1')} {s.replace('i', '2')})",
        "m1_y1": f"(* {m.replace('i', '1')} (y 1))",
        "same_y1_y2": "(* (if (= (z 1) (z 2)) 1 0) (y 1) (y 2))",
        "y3_square": "(abs (y 3))",
    }


HEAD = "[assume crp (make_crp 1.5)] [assume z (mem (lambda (i) (crp)))]"
DATA = "[predict (y 1)] [predict (y 2)] [predict (y 3)] [predict (y 4)]"


def simulate_scales(rng: Rng, n: int) -> dict[str, Floats]:
    z, rows = simulate_labels(rng, n, 1.5), np.arange(n)[:, None]
    m, s = rng.normal(0, 1, (n, LABELS))[rows, z], rng.gamma(3, 1 / 4, (n, LABELS))[rows, z]
    return functions_of(z, m, s, rng.normal(m, s))


SCALES = Model(
    f"""{HEAD} [assume m (mem (lambda (k) (normal 0 1)))] [assume s (mem (lambda (k) (gamma 3 4)))]
    [assume y (mem (lambda (i) (scope_include 'data i (normal (m (z i)) (s (z i))))))] {DATA}""",
    expressions("(m (z i))", "(s (z i))"),
    simulate_scales,
)


def simulate_vectors(rng: Rng, n: int) -> dict[str, Floats]:
    z, rows = simulate_labels(rng, n, 1.5), np.arange(n)[:, None]
    at, sd = rng.normal(0, 1, (n, LABELS, 2))[rows, z], rng.gamma(4, 1 / 4, n)
    y = rng.normal(at[..., 0] + at[..., 1], sd[:, None])
    return functions_of(z, at[..., 0], np.repeat(sd[:, None], LABELS, axis=1), y)


VECTORS = Model(
    f"""{HEAD} [assume m (mem (lambda (k) (multivariate_normal (vector 0 0) (matrix (vector 1 0) (vector 0 1)))))]
    [assume sd (gamma 4 4)] [assume sum (lambda (x) (+ (lookup x 0) (lookup x 1)))]
    [assume y (mem (lambda (i) (scope_include 'data i (normal (sum (m (z i))) sd))))] {DATA}""",
    expressions("(lookup (m (z i)) 0)", "sd"),
    simulate_vectors,
)
MODELS = {
    "two parameters": (SCALES, "(slice (choices z m s) all 2 10 'weights 'splits 6 1)", 800),
    "a vector and a shared scale": (VECTORS, "(slice (choices z m sd) all 2 10 'weights 'splits 3 1)", 500),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_splits_keep_the_joint_distribution(name: str) -> None:
    model, kernel, draws = MODELS[name]
    assert_joint_distribution_is_kept(model, successive_conditional(model, kernel, draws), kernel)
