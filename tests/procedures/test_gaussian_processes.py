"""Gaussian processes, alone: against dense formulas.

Each statistical test is seeded and rejects a correct sampler with probability 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.procedures.processes import COVARIANCES, LINE, NOISY, PROCESSES, SMOOTH, Application, made, probe, state_of
from tests.procedures.test_random import FALSE_ALARM
from venture_lite.errors import ArgumentError
from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.exchangeable.gaussian_process import LEAST_NOISE, GaussianProcessState
from venture_lite.procedures.exchangeable.growing_cholesky import GrowingCholesky
from venture_lite.procedures.functions.covariances import Covariance, mean_of
from venture_lite.procedures.record import Maker
from venture_lite.procedures.registry import PROCEDURES


def dense(mean: Any, covariance: Covariance, applications: Sequence[Application]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the applications by their definition."""
    points = np.array([np.atleast_1d(x) for _, x in applications], dtype=float)
    shared, own = covariance.variances(points)
    matrix = covariance.gram(points, points)
    matrix[np.diag_indices(len(points))] = shared + np.maximum(own, LEAST_NOISE * shared)
    return mean_of(mean).at(points), matrix


@pytest.mark.parametrize("args", [args for p in PROCESSES[:3] for args in p.arguments if args[1].noisy])
def test_the_joint_density_is_that_of_the_multivariate_normal(args: tuple[Any, ...]) -> None:
    process = next(p for p in PROCESSES if any(a is args for a in p.arguments))
    mean, covariance = args
    expected = stats.multivariate_normal(*dense(mean, covariance, process.applications))
    state = state_of(process, args, process.applications)
    values = [value for value, _ in process.applications]
    assert math.isclose(state.log_joint(), expected.logpdf(values), rel_tol=1e-10)


@pytest.mark.parametrize("covariance", COVARIANCES, ids=repr)
def test_predictions_are_those_of_the_multivariate_normal(covariance: Covariance) -> None:
    rng = np.random.default_rng(5)
    places, values = rng.uniform(-2, 2, 9), rng.normal(size=9)
    noisy = made("gp_sum", covariance, made("gp_noise", 0.5))
    state = GaussianProcessState(LINE, noisy)
    for place, value in zip(places[:-1].tolist(), values.tolist(), strict=False):
        state.add(value, place)
    mean, matrix = dense(LINE, noisy, list(zip(values, places, strict=True)))
    gain = np.linalg.solve(matrix[:-1, :-1], matrix[:-1, -1])
    center = mean[-1] + gain @ (values[:-1] - mean[:-1])
    spread = math.sqrt(matrix[-1, -1] - gain @ matrix[:-1, -1])
    for value in (-1.0, 0.5, 7.0):
        expected = stats.norm.logpdf(value, center, spread)
        assert math.isclose(state.log_predictive(value, float(places[-1])), expected, rel_tol=1e-8, abs_tol=1e-8)


@pytest.mark.parametrize("covariance", [*COVARIANCES, made("gp_noise", 0.5), NOISY], ids=repr)
def test_a_covariance_is_symmetric_positive_semidefinite_and_fits_its_variances(covariance: Covariance) -> None:
    points = np.random.default_rng(6).uniform(-3, 3, (40, 1))
    gram = covariance.gram(points, points)
    assert (gram == gram.T).all()
    assert np.linalg.eigvalsh(gram).min() > -1e-12 * max(1.0, gram.max())
    shared, _ = covariance.variances(points)
    assert np.allclose(shared, gram.diagonal(), 1e-14)
    assert np.array_equal(covariance.gram(points[:3], points[7:]), gram[:3, 7:])


def test_a_product_with_noise_is_noise_but_for_the_product_of_what_is_shared() -> None:
    points = np.array([[0.0], [2.0]])
    noise = made("gp_noise", 0.5)
    product = made(
        "gp_product", made("gp_sum", made("gp_constant", 2), noise), made("gp_sum", made("gp_linear", 1), noise)
    )
    shared, own = product.variances(points)
    assert shared.tolist() == [0.0, 4 * 4.0]
    # (4 + 1/4) (x^2 + 1/4) less what is shared
    assert own.tolist() == [4.25 * 0.25, 4.25 * 4.25 - 16]
    assert product.noisy
    assert product.gram(points, points)[0, 1] == 0.0


def test_covariances_are_what_their_formulas_say() -> None:
    left, right = np.array([[0.3]]), np.array([[1.1]])
    d = 0.8
    for covariance, expected in [
        (made("gp_squared_exponential", 2, 0.5), 4 * math.exp(-(d**2) / 0.5)),
        (made("gp_matern", 2, 0.5, 0.5), 4 * math.exp(-d / 0.5)),
        (made("gp_matern", 2, 0.5, 1.5), 4 * (1 + 3**0.5 * d / 0.5) * math.exp(-(3**0.5) * d / 0.5)),
        (
            made("gp_matern", 2, 0.5, 2.5),
            4 * (1 + 5**0.5 * d / 0.5 + 5 * d**2 / (3 * 0.25)) * math.exp(-(5**0.5) * d / 0.5),
        ),
        (made("gp_rational_quadratic", 2, 0.5, 3), 4 * (1 + d**2 / (2 * 3 * 0.25)) ** -3),
        (made("gp_periodic", 2, 0.5, 3), 4 * math.exp(-2 * math.sin(math.pi * d / 3) ** 2 / 0.25)),
        (made("gp_linear", 2, 1), 4 * (0.3 - 1) * (1.1 - 1)),
        (made("gp_constant", 2), 4.0),
        (made("gp_noise", 2), 0.0),
    ]:
        assert math.isclose(covariance.gram(left, right)[0, 0], expected, rel_tol=1e-12, abs_tol=1e-15), covariance


def test_each_coordinate_has_its_length() -> None:
    points = np.array([[0.0, 0.0], [1.0, 4.0]])
    one = made("gp_squared_exponential", 1, (0.5, 2)).gram(points, points)
    assert math.isclose(one[0, 1], math.exp(-0.5 * (4 + 4)))
    with pytest.raises(ArgumentError, match="length has 3 entries, but the points have 2"):
        made("gp_matern", 1, (1, 1, 1), 0.5).gram(points, points)


def test_means_are_numbers_lines_sums_and_products() -> None:
    points = np.array([[0.0], [2.0]])
    mean = made("gp_sum", made("gp_product", LINE, LINE), 3)
    assert mean_of(mean).at(points).tolist() == [4.0, 7.0]
    assert mean_of(2).at(points).tolist() == [2.0, 2.0]
    assert mean_of(made("gp_linear_mean", (1, 2))).at(np.array([[3.0, 4.0]])).tolist() == [11.0]


def test_a_covariance_is_a_value_equal_by_content_and_printed_as_it_is_written() -> None:
    one = made("gp_sum", made("gp_squared_exponential", 1, np.array([2.0, 3.0])), made("gp_noise", 0.5))
    other = made("gp_sum", made("gp_squared_exponential", 1.0, (2, 3)), made("gp_noise", 0.5))
    assert one == other
    assert hash(one) == hash(other)
    assert one != NOISY
    assert repr(one) == "(gp_sum (gp_squared_exponential 1 (vector 2 3)) (gp_noise 0.5))"


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        (
            "make_gp",
            (0, abs),
            "make_gp: covariance must be a covariance made by gp_squared_exponential.*a lambda cannot",
        ),
        ("make_gp", (abs, SMOOTH), "make_gp: mean must be a number or a mean made by gp_linear_mean"),
        ("gp_sum", (SMOOTH, LINE), "gp_sum takes covariances alone, or means and numbers alone, got"),
        ("gp_sum", (abs,), "gp_sum: part must be a covariance, or a mean"),
        ("gp_matern", (1, 1, 2), "gp_matern: order must be 0.5, 1.5 or 2.5, got 2"),
        ("gp_noise", (0,), "gp_noise: sd must be a positive number, got 0"),
        ("gp_periodic", (1, 1), "gp_periodic takes 3 arguments"),
    ],
)
def test_messages(name: str, args: tuple[Any, ...], message: str) -> None:
    record = PROCEDURES[name]
    with pytest.raises(ArgumentError, match=message):
        record.make(*check_arguments(record, args)) if isinstance(record, Maker) else made(name, *args)


def test_points_of_two_sizes_are_refused() -> None:
    state = GaussianProcessState(0, SMOOTH)
    state.add(1.0, 2.0)
    with pytest.raises(ArgumentError, match=r"make_gp: \(1 2\) has 2 coordinates, other points have 1"):
        state.log_predictive(1.0, (1, 2))
    state.remove(1.0, 2.0)
    assert math.isfinite(state.log_predictive(1.0, (1, 2)))


def test_without_noise_a_value_is_repeated_and_its_repetition_is_certain() -> None:
    state = GaussianProcessState(0, SMOOTH)
    rng = np.random.default_rng(7)
    state.add(0.75, 1)
    before = state.log_joint()
    assert state.simulate(rng, 1.0) == 0.75
    assert state.log_predictive(0.75, 1) == 0.0
    assert state.log_predictive(0.76, 1) == -math.inf
    state.add(0.75, 1)
    assert state.log_joint() == before
    state.add(0.5, 1.0)
    assert state.log_joint() == -math.inf
    state.remove(0.75, 1)
    state.remove(0.75, 1)
    assert math.isclose(state.log_joint(), stats.norm.logpdf(0.5, 0, 1.5), rel_tol=1e-9)


def test_where_the_variance_is_0_the_mean_is_certain() -> None:
    state = GaussianProcessState(LINE, made("gp_linear", 2.0))
    for value, x in [(2.0, 1.0), (1.0, 0.0)]:
        state.add(value, x)
    assert state.log_predictive(1.0, 0.0) == 0.0
    assert state.simulate(np.random.default_rng(1), 0.0) == 1.0
    assert math.isclose(state.log_joint(), stats.norm.logpdf(2.0, 1.5, 2.0), rel_tol=1e-8)
    state.remove(2.0, 1.0)
    assert state.log_joint() == 0.0
    state.add(1.5, 0)
    state.remove(1.0, 0)
    assert state.log_joint() == -math.inf


def test_points_that_nearly_coincide_stay_regular() -> None:
    rng = np.random.default_rng(8)
    state = GaussianProcessState(0, made("gp_squared_exponential", 1, 1))
    values = {}
    for x in (0.5 + 1e-9 * rng.normal(size=60)).tolist():
        values[x] = state.simulate(rng, x)
        state.add(values[x], x)
    assert np.ptp(list(values.values())) < 1e-3
    assert math.isfinite(state.log_joint())
    for x in list(values)[::2]:
        state.remove(values[x], x)
    other = GaussianProcessState(0, made("gp_squared_exponential", 1, 1))
    other.recount([(values[x], x) for x in list(values)[1::2]])
    assert math.isclose(state.log_joint(), other.log_joint(), rel_tol=1e-3)


@pytest.mark.thorough
def test_drawn_one_after_the_other_values_are_jointly_normal() -> None:
    rng = np.random.default_rng(9)
    places = (0.0, 0.4, 1.5)
    state = GaussianProcessState(LINE, NOISY)
    drawn = []
    for _ in range(3000):
        tokens, values = [], []
        for x in places:
            values.append(state.simulate(rng, x))
            tokens.append(state.add(values[-1], x))
        for token in reversed(tokens):
            state.restore(token)
        drawn.append(values)
    mean, matrix = dense(LINE, NOISY, [(0, x) for x in places])
    for direction in np.array([[1, 0, 0], [0, 0, 1.0], [1, -1, 0], [1, 1, 1], [1, -2, 1]]):
        spread = math.sqrt(direction @ matrix @ direction)
        assert stats.kstest(np.array(drawn) @ direction, stats.norm(direction @ mean, spread).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("position", [0, 3, 11])
def test_a_row_taken_out_of_a_factor_leaves_the_factor_of_the_rest(position: int) -> None:
    rng = np.random.default_rng(10)
    root = rng.normal(size=(12, 12))
    matrix = root @ root.T + np.eye(12)
    factor = GrowingCholesky()
    for row in range(12):
        weights = factor.solve(matrix[row, :row])
        factor.extend(weights, math.sqrt(matrix[row, row] - weights @ weights))
    right = rng.normal(size=12)
    before = factor.solve(right)
    assert np.allclose(before, np.linalg.solve(np.linalg.cholesky(matrix), right), 1e-12)
    token = factor.delete(position)
    rest = np.delete(np.delete(matrix, position, 0), position, 1)
    lower = np.linalg.cholesky(rest)
    assert np.allclose(factor.solve(right[:-1]), np.linalg.solve(lower, right[:-1]), 1e-11)
    assert np.allclose(factor.diagonal(), lower.diagonal(), 1e-12)
    factor.put_back(position, token)
    assert (factor.solve(right) == before).all()


def test_a_matrix_that_rounding_made_indefinite_is_factored_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    process, args = PROCESSES[0], PROCESSES[0].arguments[0]
    expected = probe(state_of(process, args, process.applications), process)

    def indefinite(factor: GrowingCholesky, matrix: np.ndarray) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(GrowingCholesky, "factor", indefinite)
    state = state_of(process, args)
    state.recount(process.applications)
    assert np.allclose(probe(state, process), expected, 1e-12)
