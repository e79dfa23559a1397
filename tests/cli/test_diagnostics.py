"""Effective sample sizes and R-hat are those of arviz-stats."""

from __future__ import annotations

import math

import numpy as np
import pytest

from venture_lite.draws import diagnostics
from venture_lite.draws.draws import Draws

array_stats = pytest.importorskip("arviz_stats.base").array_stats


def autoregression(chains: int, draws: int, correlation: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(chains, draws))
    for step in range(1, draws):
        values[:, step] += correlation * values[:, step - 1]
    return values


@pytest.mark.parametrize(("chains", "draws"), [(1, 500), (2, 33), (4, 1000), (4, 301)])
@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.9, 0.99])
@pytest.mark.parametrize("rounded", [False, True])
def test_sizes_agree_with_arviz(chains: int, draws: int, correlation: float, rounded: bool) -> None:
    values = autoregression(chains, draws, correlation)
    values = np.round(values) if rounded else values
    bulk = array_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk")
    tail = array_stats.ess(values, chain_axis=0, draw_axis=1, method="tail", prob=(0.05, 0.95))
    assert diagnostics.ess_bulk(values) == pytest.approx(float(bulk), rel=1e-9)
    assert diagnostics.ess_tail(values) == pytest.approx(float(tail), rel=1e-9)


@pytest.mark.parametrize("sd", [0.01, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("draws", [100, 2000])
def test_the_shape_of_weights_agrees_with_arviz(sd: float, draws: int) -> None:
    log_weights = sd * np.random.default_rng(1).standard_normal(draws) - 700.0
    expected = array_stats.psislw(-log_weights)[1]
    assert diagnostics.pareto_k(log_weights) == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


def test_the_shape_of_weights_without_a_tail() -> None:
    """Weights that are alike have none; where nothing is possible, or few are, it is out of bounds."""
    assert diagnostics.pareto_k(np.full(2000, -3.0)) == 0.0
    assert diagnostics.pareto_k(np.full(2000, -np.inf)) == np.inf
    assert diagnostics.pareto_k(np.array([0.0, *[-np.inf] * 1999])) == np.inf
    assert diagnostics.pareto_k(np.zeros(0)) == diagnostics.pareto_k(np.zeros(10)) == np.inf


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.99])
def test_r_hat_agrees_with_arviz(correlation: float) -> None:
    values = autoregression(3, 200, correlation)
    expected = array_stats.rhat(values, chain_axis=0, draw_axis=1)
    assert diagnostics.r_hat(values) == pytest.approx(float(expected), rel=1e-9)


def test_one_chain_is_compared_with_itself() -> None:
    steady = autoregression(1, 400, 0.0)
    assert diagnostics.r_hat(steady) < 1.02
    assert diagnostics.r_hat(steady + np.linspace(0, 5, 400)) > 1.5


def test_chains_stuck_at_different_values_have_infinite_r_hat() -> None:
    assert diagnostics.r_hat(np.repeat([[0.0], [1.0]], 50, axis=1)) == math.inf


@pytest.mark.parametrize(
    "values", [np.ones((4, 100)), np.zeros((2, 3)), np.full((2, 10), np.nan), np.array([[1.0, np.inf, 0.0, 2.0]])]
)
def test_what_does_not_exist_is_nan(values: np.ndarray) -> None:
    assert math.isnan(diagnostics.ess_bulk(values))
    assert math.isnan(diagnostics.ess_tail(values))
    assert math.isnan(diagnostics.r_hat(values))


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.9])
def test_the_sizes_of_mean_and_sd_agree_with_arviz(correlation: float) -> None:
    values = autoregression(3, 200, correlation)
    for method, size in (("mean", diagnostics.ess_mean(values)), ("sd", diagnostics.ess_sd(values))):
        assert size == pytest.approx(float(array_stats.ess(values, chain_axis=0, draw_axis=1, method=method)), rel=1e-9)


@pytest.mark.filterwarnings("error")
def test_sizes_do_not_depend_on_units() -> None:
    """Also where squares are no floats."""
    draws = np.random.default_rng(4).standard_cauchy((4, 100))
    assert diagnostics.ess_mean(draws * 1e300) == pytest.approx(diagnostics.ess_mean(draws), rel=1e-9)


@pytest.mark.parametrize("unit", [2.0**-1000, 1e-300, 1e-170, 1e-90, 1e150, 1e300, 2.0**1000])
@pytest.mark.parametrize("name", ["ess_mean", "ess_sd", "ess_bulk", "ess_tail", "r_hat"])
def test_sizes_do_not_depend_on_units_far_from_one(name: str, unit: float) -> None:
    values = autoregression(2, 200, 0.5)
    size = getattr(diagnostics, name)
    assert size(unit * values) == pytest.approx(size(values), rel=1e-9)


@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1.0, 1e160, 1e306])
def test_moments_do_not_depend_on_units(unit: float) -> None:
    values = 3.0 + autoregression(2, 200, 0.5)
    mean, sd = diagnostics.moments(unit * values)
    assert mean == pytest.approx(unit * values.mean(), rel=1e-12)
    assert sd == pytest.approx(unit * values.std(ddof=1), rel=1e-12)


@pytest.mark.filterwarnings("error")
def test_draws_that_span_more_than_the_floats_have_a_size() -> None:
    values = np.random.default_rng(1).uniform(-1.9, 1.9, (2, 200))
    far = 2.0**1023 * values
    assert diagnostics.ess_sd(far) == pytest.approx(diagnostics.ess_sd(values), rel=1e-9)
    assert diagnostics.r_hat(far) == pytest.approx(diagnostics.r_hat(values), rel=1e-9)
    row = Draws([{"x": far[0]}, {"x": far[1]}]).summary().rows[0]
    assert row.mean == pytest.approx(2.0**1023 * values.mean(), rel=1e-9)
    assert row.sd == pytest.approx(2.0**1023 * values.std(ddof=1), rel=1e-9)
    assert row.low < -1e308
    assert row.high > 1e308
