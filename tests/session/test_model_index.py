"""A switch between models, each with parameters of its own: scales are those of where they were learned."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from tests.statistics import Mean, assert_chain_agrees
from venture_lite import Venture, VentureWarning
from venture_lite.engines.adaptation import Tuner
from venture_lite.interpreter.selection import Selection, Selector

COUNTS = [5, 13, 5, 10, 12, 9, 9, 8, 12, 8, 15, 10]
POISSON_OR_NOT = """
    [assume is_poisson (flip 0.5)]
    [assume mu_p (uniform_continuous 0 60)] [assume mu_nb (uniform_continuous 0 60)] [assume alpha (expon 0.2)]
    for i in 1...12: [observe (if is_poisson (poisson mu_p) (neg_binomial alpha (/ alpha (+ alpha mu_nb)))) {y[i]}]"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_index_has_its_probability_by_auto(seed: int) -> None:
    """0.892 by quadrature, within five standard errors of 400 effective draws."""
    v = Venture(seed=seed)
    v.execute(POISSON_OR_NOT, y=COUNTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VentureWarning)
        found = v.auto(draws=1000, warmup=500).summary().rows[0]
    assert found.variable == "is_poisson"
    assert found.ess_bulk >= 400
    assert abs(found.mean - 0.892) < 5.0 * (0.892 * 0.108 / 400) ** 0.5


@pytest.mark.slow
def test_scales_of_one_model_are_not_those_of_the_other() -> None:
    """One datum of a narrow law of a or of a wide one of b: exact by the two densities of the datum. False alarms below
    1e-6."""
    v = Venture(seed=2)
    v.execute("""[assume m (flip 0.5)] [assume a (normal 0 3)] [assume b (normal 0 3)]
        [observe (if m (normal a 0.1) (student_t 4 b 2)) 2]""")

    def more(n: int) -> dict[str, np.ndarray]:
        kernel = "(do (gibbs (choices m) one 1) (nuts (choices a b) all 'adapt 300 1) (collect m))"
        return {"m": np.asarray(v.infer(f"(repeat {300 + n} {kernel})")["m"], dtype=float).reshape(300 + n)[300:]}

    grid = np.linspace(-60.0, 60.0, 200_001)
    wide = np.trapezoid(stats.norm.pdf(grid, 0.0, 3.0) * stats.t.pdf(2.0, 4, grid, 2.0), grid)
    narrow = stats.norm.pdf(2.0, 0.0, (9 + 0.01) ** 0.5)
    assert_chain_agrees(more, {"m": Mean(float(narrow / (narrow + wide)))}, 400, "a switch")


def test_a_block_that_others_weigh_is_tuned_apart() -> None:
    tuner = Tuner(0.5, 0.8, 40)
    v = Venture(seed=1)
    v.execute("[assume x (normal 0 1)]")
    at = Selection(v.traces[0], "default", Selector("all"))
    at.runs = 1
    one, other = tuner.begin([0], at, frozenset({1})), tuner.begin([0], at, frozenset({2}))
    assert one is not other
    assert tuner.begin([0], at, frozenset({1})) is one
    tuner.learn(one, 0.1)
    assert one.step.now != other.step.now
