"""Densities where a plain formula overflows or cancels: huge and tiny parameters, far tails.

The expected values were computed from the textbook formulas with 60 digits (mpmath) at the floats given.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from mpmath import mp
from scipy import stats

from tests.procedures.far_tails import EXACT as EXACT_FORMULAS
from tests.procedures.test_random import record_of
from venture_lite.values import freeze

EXACT: list[tuple[str, Any, tuple[Any, ...], float]] = [
    ("chi_sq", 1e-300, (0.001,), 682.829179503398),
    ("chi_sq", 1001500.0, (1000000.0,), -8.736704577311258),
    ("chi_sq", 1000002000000.0, (1000000000000.0,), -16.081023348115753),
    ("chi_sq", 3.0, (1e-300,), -694.06728736744176),
    ("inv_chi_sq", 1e300, (0.001,), -698.72187629302941),
    ("inv_chi_sq", 1.001e-06, (1000000.0,), 19.207087005194918),
    ("inv_gamma", 1e305, (0.0001, 1e-10), -711.57126745224721),
    ("gamma", 1e-305, (0.0001, 1e-10), 693.00563927412066),
    ("gamma", 1e-290, (0.5, 1e300), -9999999321.3097637),
    ("gamma", 1001.5, (1001, 1), -4.374023382290405),
    ("gamma", 900.0, (1000, 1), -9.6280546481947718),
    ("gamma", 900.0, (1000.5, 1), -9.6806099060288932),
    ("poisson", 1000001000000, (1000000000000.0,), -15.234449424502197),
    ("poisson", 0, (1e-300,), -1.0e-300),
    ("poisson", 1000, (2500.0,), -588.08216763187123),
    ("neg_binomial", 12, (1000000000000.0, 0.99999999999), -2.356193214236637),
    ("neg_binomial", 1000000, (0.001, 1e-06), -21.722689943847961),
    ("neg_binomial", 3, (1e-300, 0.5), -693.95358172856165),
    ("neg_binomial", 1000000000000000, (2.5, 1e-15), -35.823459265383603),
    ("neg_binomial_mean", 3, (1e-300, 0.5), -2071.41029296276696),
    ("neg_binomial_mean", 12, (7.5, 1000000000000000.0), -3.30837824915470495),
    ("neg_binomial_mean", 0, (2.5, 1000000000000000.0), -2.49999999999999688),
    ("neg_binomial_mean", 1000000, (1000000.0, 0.001), -20.73059719912711),
    ("neg_binomial_mean", 1000000000, (1000000000.0, 1000000000000.0), -11.2810712019277535),
    ("neg_binomial_mean", 5, (3.0, 0.001), -8.52478365929221732),
    ("neg_binomial_mean", 40, (0.3, 100000000.0), -158.779544207345863),
    ("student_t", 1.5, (1000000000000.0, 0.0, 1.0), -2.0439385332047821),
    ("student_t", 1e200, (0.001, 0.0, 1.0), -468.58258469083684),
    ("cauchy", -1e300, (0, 1e-200), -1843.2128042810859),
    ("half_cauchy", 1e200, (1e-200,), -1382.0026385017169),
    ("half_cauchy", 1e-200, (1e200,), -460.96860130409859),
    ("pareto", 1.000001, (1000000.0, 1), 12.815510058046707),
    ("pareto", 1e300, (0.01, 1e-300), -709.19620864216607),
    ("weibull", 1.0000007, (1000000.0, 1), 12.501757398899148),
    ("weibull", 1e-250, (0.001, 1e200), 567.34754128844839),
    ("lognormal", 1e-300, (0, 100), 661.39287768186815),
    ("logistic_dist", 800, (0, 1), -800.0),
    ("logistic_dist", -100000.0, (3, 0.5), -200005.30685281944),
    ("von_mises", 0.001, (0, 1000000.0), 5.4888166624440671),
    ("von_mises", 3.0, (0.0, 1e-09), -1.837877067399338),
    ("von_mises", 2.5, (0.5, 1000000.0), -1416140.8477305216),
    ("von_mises", -3.1, (3.1, 10000.0), -30.892810615666747),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "value", "args", "expected"), EXACT)
def test_extreme_arguments_cost_no_digits(name: str, value: Any, args: tuple[Any, ...], expected: float) -> None:
    record = record_of(name)
    # at a shape of 1e12 the value's own last bit changes the density by 1e-10
    assert math.isclose(record.log_density(value, *args), expected, rel_tol=1e-11, abs_tol=1e-12)
    assert record.log_density_columns is not None
    column = np.array([float(value)] * 2)
    lifted = (True, *(False for _ in args))
    assert np.allclose(record.log_density_columns(lifted, column, *args), expected, 1e-11, 1e-12)


@pytest.mark.parametrize("name", ["wishart", "inv_wishart"])
@pytest.mark.parametrize("df", [2.0001, 50.0, 1e6])
def test_wisharts_of_any_degrees_of_freedom(name: str, df: float) -> None:
    rng = np.random.default_rng(1)
    scale = freeze(np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.25], [0.0, -0.25, 3.0]]))
    reference = stats.wishart if name == "wishart" else stats.invwishart
    for _ in range(20):
        value = record_of(name).simulate(rng, df, scale)
        # what is nearly singular is known to as many digits only
        tolerance = 1e-15 * np.linalg.cond(value) + 1e-13 * df
        assert math.isclose(
            record_of(name).log_density(value, df, scale), reference.logpdf(value, df, scale), abs_tol=tolerance
        )


def test_softmax_of_scores_beyond_the_range_of_exp() -> None:
    record = record_of("softmax_categorical")
    assert record.log_density(1, (1e308, 0.0, 1e308)) == -1e308
    assert math.isclose(record.log_density(0, (1e308, 0.0, 1e308)), -math.log(2))
    assert record.log_density(0, (-1e5, 0.0)) == -1e5


def test_rows_of_scores_and_rows_of_counts_are_one_call() -> None:
    rng = np.random.default_rng(2)
    scores, chosen = rng.normal(size=(100, 5)), rng.integers(5, size=100)
    softmax = record_of("softmax_categorical").log_density_columns
    assert softmax is not None
    expected = scores[np.arange(100), chosen] - np.log(np.exp(scores).sum(axis=1))
    assert np.allclose(softmax((True, True), chosen, scores), expected, 1e-12)
    masses = rng.dirichlet(np.ones(4), size=100)
    counts = np.array([rng.multinomial(9, p) for p in masses], dtype=np.float64)
    multinomial = record_of("multinomial").log_density_columns
    assert multinomial is not None
    assert np.allclose(multinomial((True, False, True), counts, 9, masses), stats.multinomial.logpmf(counts, 9, masses))


@pytest.mark.parametrize("size", [1e-3, 0.3, 1.0, 40.0, 1e4, 1e7, 1e10, 1e15])
@pytest.mark.parametrize("mu", [1e-3, 0.8, 7.5, 300.0, 1e6])
def test_a_negative_binomial_by_its_mean_is_exact_for_any_size(mu: float, size: float) -> None:
    record, spread = record_of("neg_binomial_mean"), math.sqrt(mu + mu * mu / size)
    assert record.log_density_columns is not None
    counts = sorted({0, 1, 2, 5, 40, 1000, *(max(0, round(mu + z * spread)) for z in (-2, 0, 1, 6))})
    column = record.log_density_columns((True, False, False), np.array(counts), mu, size)
    for k, together in zip(counts, column.tolist(), strict=True):
        exact = float(EXACT_FORMULAS["neg_binomial_mean"](mp.mpf(k), mp.mpf(mu), mp.mpf(size)))
        assert record.log_density(k, mu, size) == pytest.approx(exact, rel=1e-13)
        assert together == pytest.approx(exact, rel=1e-13)
