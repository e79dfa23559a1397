"""Geweke's test of the engines of labels: several makers in a class, labels that differ in what they read, labels that
are observed, forced and forgotten.

Data of collapsed makers are observed, and each is forgotten and observed anew given the others; all else is as of
`test_joint_distribution.py`, and so are false alarms. What is broken on purpose is seen by exact answers, which tell
small errors from fewer draws (`tests/posterior/faults_labels.py`, `tests/engines/test_summed_labels.py`).
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.geweke.models import Model, Rng
from tests.geweke.test_joint_distribution import assert_joint_distribution_is_kept, successive_conditional
from tests.statistics import Floats
from venture_lite import Venture

ALPHA = 1.5
HEAD = f"[assume crp (make_crp {ALPHA})] [assume z (mem (lambda (i) (tag 'z i (crp))))]"


def simulate_labels(rng: Rng, n: int, labels: int, observed: int) -> np.ndarray:
    """(n, labels), each the smallest that is free where it is a new one; the last ones are observed, and differ."""
    z = np.tile(np.arange(labels), (n, 1))
    for at in range(observed, labels):
        new = rng.random(n) * (at + ALPHA) < ALPHA
        z[:, at] = np.where(new, z[:, :at].max(axis=1, initial=-1) + 1, z[np.arange(n), rng.integers(0, max(at, 1), n)])
    return z[:, ::-1]


# --------------------------------------------------------------------------------------------------- parameters

NOISE = 0.7


def simulate_parameters(rng: Rng, n: int) -> dict[str, Floats]:
    """Of labels 1 to 3, and label 4, which is observed: two means of each class, and data of both."""
    z, rows = simulate_labels(rng, n, 4, 1), np.arange(n)[:, None]
    m, t = (rng.normal(0, 1, (n, 4))[rows, z] for _ in range(2))
    x, y = rng.normal(m, NOISE), rng.normal(t, NOISE)
    same, kept = z[:, 0] == z[:, 1], z[:, 2] == z[:, 3]
    return {
        "s12": same * 1.0,
        "s34": kept * 1.0,
        "m1_square": m[:, 0] ** 2,
        "t2_square": t[:, 1] ** 2,
        "m1_x1": m[:, 0] * x[:, 0],
        "t2_y2": t[:, 1] * y[:, 1],
        "x1_x2": same * x[:, 0] * x[:, 1],
        "y3_y4": kept * y[:, 2] * y[:, 3],
    }


FUNCTIONS = {
    "s12": "(= (z 1) (z 2))",
    "s34": "(= (z 3) (z 4))",
    "m1_square": "(pow (m (z 1)) 2)",
    "t2_square": "(pow (t (z 2)) 2)",
    "m1_x1": "(* (m (z 1)) (x 1))",
    "t2_y2": "(* (t (z 2)) (y 2))",
    "x1_x2": "(* (= (z 1) (z 2)) (x 1) (x 2))",
    "y3_y4": "(* (= (z 3) (z 4)) (y 3) (y 4))",
}


def parameters(forced: str) -> Model:
    """A label is observed, another forced where the chain begins, and an observation forgotten."""
    data = " ".join(f"[predict (x {n})] [predict (y {n})]" for n in range(1, 5))
    return Model(
        f"""{HEAD} [observe (z 4) 3] [assume m (mem (lambda (k) (normal 0 1)))]
        [assume t (mem (lambda (k) (normal 0 1)))]
        [assume x (mem (lambda (i) (scope_include 'data i (normal (m (z i)) {NOISE}))))]
        [assume y (mem (lambda (i) (scope_include 'data (+ 100 i) (normal (t (z i)) {NOISE}))))] {data}
        gone: [observe (normal (m (z 2)) 1) 5] [forget gone] {forced}""",
        FUNCTIONS,
        simulate_parameters,
    )


def simulate_unlike(rng: Rng, n: int) -> dict[str, Floats]:
    """Labels 1 and 3 have data of the first mean, label 2 of the second, and both are asked for of no other label."""
    z, rows = simulate_labels(rng, n, 3, 0), np.arange(n)[:, None]
    m, t = (rng.normal(0, 1, (n, 3))[rows, z] for _ in range(2))
    x, y = rng.normal(m, NOISE), rng.normal(t, NOISE)
    return {
        "s12": (z[:, 0] == z[:, 1]) * 1.0,
        "s13": (z[:, 0] == z[:, 2]) * 1.0,
        "m1_square": m[:, 0] ** 2,
        "t2_square": t[:, 1] ** 2,
        "m1_x1": m[:, 0] * x[:, 0],
        "t2_y2": t[:, 1] * y[:, 1],
        "x1_x3": x[:, 0] * x[:, 2],
        "s12_x1_y2": (z[:, 0] == z[:, 1]) * np.abs(x[:, 0] - y[:, 1]),
    }


UNLIKE = Model(
    f"""{HEAD} [assume m (mem (lambda (k) (normal 0 1)))] [assume t (mem (lambda (k) (normal 0 1)))]
    [assume x (mem (lambda (i) (scope_include 'data i (normal (m (z i)) {NOISE}))))]
    [assume y (mem (lambda (i) (scope_include 'data (+ 100 i) (normal (t (z i)) {NOISE}))))]
    [predict (x 1)] [predict (y 2)] [predict (x 3)] [force (z 3) 5]""",
    {
        "s12": "(= (z 1) (z 2))",
        "s13": "(= (z 1) (z 3))",
        "m1_square": "(pow (m (z 1)) 2)",
        "t2_square": "(pow (t (z 2)) 2)",
        "m1_x1": "(* (m (z 1)) (x 1))",
        "t2_y2": "(* (t (z 2)) (y 2))",
        "x1_x3": "(* (x 1) (x 3))",
        "s12_x1_y2": "(* (= (z 1) (z 2)) (abs (- (x 1) (y 2))))",
    },
    simulate_unlike,
)
ALIKE = parameters("[force (z 1) 7]")
LONG = {
    "each": (ALIKE, "(gibbs z each 1) (slice (choices m t) each 2 2 1)", 2500),
    "one": (ALIKE, "(gibbs z one 3) (slice (choices m t) each 2 2 1)", 2500),
    "resimulation": (ALIKE, "(mh z each 2) (slice (choices m t) each 2 2 1)", 2500),
    "splits and merges": (ALIKE, "(split_merge z 2) (gibbs z each 1) (slice (choices m t) each 2 2 1)", 2000),
    "particles": (ALIKE, "(pgibbs z ordered 4 1) (slice (choices m t) each 2 2 1)", 2000),
    "weights": (ALIKE, "(gibbs z all 'weights 1) (slice (choices m t) each 2 2 1)", 2000),
    "labels summed out": (ALIKE, "(slice (choices z m t) all 2 4 'weights 1) (slice (choices m t) each 2 2 1)", 500),
    "splits with labels summed out": (ALIKE, "(slice (choices z m t) all 2 4 'weights 'splits 4 1)", 500),
    "unlike labels, each": (UNLIKE, "(gibbs z each 1) (slice (choices m t) each 2 2 1)", 2500),
    "unlike labels, weights": (UNLIKE, "(gibbs z all 'weights 1) (slice (choices m t) each 2 2 1)", 2000),
    "unlike labels summed out": (UNLIKE, "(slice (choices z m t) all 2 4 'weights 1)", 500),
    "unlike labels, splits": (UNLIKE, "(slice (choices z m t) all 2 4 'weights 'splits 8 1)", 500),
}


def test_labels_keep_the_joint_distribution() -> None:
    kernel = "(gibbs z each 1) (slice (choices m t) each 2 2 1)"
    assert_joint_distribution_is_kept(ALIKE, successive_conditional(ALIKE, kernel, 1800), kernel)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_labels_keep_the_joint_distribution_over_many_draws(name: str) -> None:
    model, kernel, draws = LONG[name]
    assert_joint_distribution_is_kept(model, successive_conditional(model, kernel, draws), kernel)


# ------------------------------------------------------------------------------------------------- collapsed makers


def simulate_makers(rng: Rng, n: int) -> dict[str, Floats]:
    """Of labels 1 to 3, and label 4, which is observed: data of two coins of each class."""
    z, rows = simulate_labels(rng, n, 4, 1), np.arange(n)[:, None]
    x, y = (rng.random((n, 4)) < rng.beta(1, 1, (n, 4))[rows, z] for _ in range(2))
    return functions_of(z, x, y)


def functions_of(z: np.ndarray, x: np.ndarray, y: np.ndarray) -> dict[str, Floats]:
    """Of labels, and data of both coins, (n, 4) each."""
    same, kept = z[:, 0] == z[:, 1], z[:, 2] == z[:, 3]
    return {
        "s12": same * 1.0,
        "s34": kept * 1.0,
        "x1_x2": same * (x[:, 0] == x[:, 1]) * 1.0,
        "x3_x4": kept * (x[:, 2] == x[:, 3]) * 1.0,
        "both": same * (x[:, 0] == x[:, 1]) * (y[:, 0] == y[:, 1]) * 1.0,
        "x3_y3": (x[:, 2] == y[:, 2]) * 1.0,
    }


def with_collapsed_makers(kernel: str, draws: int) -> dict[str, Floats]:
    """The successive-conditional simulator: of each draw all data of one label are drawn anew."""
    venture, rng = Venture(seed=21), np.random.default_rng(21)
    venture.execute(f"""{HEAD} [observe (z 4) 3] [assume cx (mem (lambda (k) (make_beta_bernoulli 1 1)))]
        [assume cy (mem (lambda (k) (make_beta_bernoulli 1 1)))]""")
    x, y = np.zeros((draws, 4), bool), np.zeros((draws, 4), bool)
    z, data = np.zeros((draws, 4), int), {"cx": x, "cy": y}
    for label in range(1, 5):
        for maker in data:
            venture.observe(f"(({maker} (z {label})))", True, label=f"{maker}{label}")
            data[maker][0, label - 1] = True
    venture.execute("[force (z 1) 7]")
    for at in range(draws):
        venture.infer(kernel)
        x[at], y[at] = x[max(at - 1, 0)], y[max(at - 1, 0)]
        label = int(rng.integers(1, 5))
        for maker, its_data in data.items():
            venture.predict(f"(z {label})", label="held")
            venture.forget(f"{maker}{label}")
            its_data[at, label - 1] = venture.sample(f"(({maker} (z {label})))")
            value = bool(its_data[at, label - 1])
            venture.observe(f"(({maker} (z {label})))", value, label=f"{maker}{label}")
            venture.forget("held")
        z[at] = [venture.sample(f"(z {n})") for n in range(1, 5)]
    return functions_of(z, x, y)


def assert_makers_are_kept(kernel: str, draws: int) -> None:
    found = with_collapsed_makers(kernel, draws)
    model = Model("", {name: name for name in found}, simulate_makers)
    assert_joint_distribution_is_kept(model, found, kernel)


COLLAPSED = (
    "(gibbs z each 1)",
    "(gibbs z one 3)",
    "(do (split_merge z 2) (gibbs z one 1))",
    "(gibbs z all 'weights 1)",
)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", COLLAPSED)
def test_labels_of_several_collapsed_makers_keep_the_joint_distribution(kernel: str) -> None:
    assert_makers_are_kept(kernel, 2500)
