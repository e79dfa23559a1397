"""Taylor terms of the likelihoods in their linear predictor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.procedures.differences import agree, derivative
from tests.procedures.likelihoods import RECORDS, SETTINGS, centers, placed, predictor_of, predictors
from venture_lite.procedures.numeric import exp
from venture_lite.procedures.registry import PROCEDURES

CASES = [(name, setting) for name, settings in SETTINGS.items() for setting in settings]
INVERSE_LINKS: dict[str | None, Any] = {None: lambda x: x, "exp": exp, "logistic": PROCEDURES["logistic"].scalar}  # type: ignore[union-attr]


def test_every_predictor_is_tried_here() -> None:
    assert set(SETTINGS) == set(RECORDS)


def ordinary(name: str, setting: tuple[Any, ...], rng: np.random.Generator) -> list[Any]:
    """Single predictors of an ordinary size."""
    found = []
    for column in predictors(name, setting, rng):
        near = np.abs(column - centers(name, setting))
        likely = column[(near.max(axis=-1) if column.ndim > 1 else near) < 12.0]
        found += list(likely[:: max(len(likely) // 25, 1)])
    return found


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_the_log_density_is_that_of_the_record(name: str, setting: tuple[Any, ...]) -> None:
    """Through the inverse link, whose rounding is the larger one: 1 - p keeps 16 digits of 1, not of itself."""
    record, predictor, rng = RECORDS[name], predictor_of(name), np.random.default_rng(1)
    for eta in ordinary(name, setting, rng):
        inverse = INVERSE_LINKS[predictor.inverse_link]
        argument = inverse(eta if predictor.is_vector else float(eta))
        found = predictor.taylor(*placed(name, setting, eta))[0]
        expected = record.log_density(*placed(name, setting, argument))
        assert math.isclose(found, expected, rel_tol=1e-8, abs_tol=1e-9), (eta, found, expected)


@pytest.mark.parametrize(("name", "setting"), CASES)
@pytest.mark.thorough
def test_the_derivatives_agree_with_central_differences(name: str, setting: tuple[Any, ...]) -> None:
    predictor, rng = predictor_of(name), np.random.default_rng(2)
    for eta in ordinary(name, setting, rng):
        way = rng.normal(size=np.shape(eta))

        def terms(step: float, eta: Any = eta, way: Any = way) -> Any:
            return predictor.taylor(*placed(name, setting, eta + step * way))

        _, first, second = terms(0.0)
        by_first = derivative(lambda step, terms=terms: float(terms(step)[0]))
        by_second = derivative(lambda step, terms=terms, way=way: float(np.sum(terms(step)[1] * way)))
        assert agree(float(np.sum(first * way)), by_first), (eta, first, by_first)
        curved = way @ second @ way if predictor.is_vector else second * way**2
        assert agree(float(curved), by_second), (eta, second, by_second)


@pytest.mark.parametrize(("name", "setting"), CASES)
@pytest.mark.thorough
def test_columns_are_their_rows(name: str, setting: tuple[Any, ...]) -> None:
    predictor = predictor_of(name)
    for column in predictors(name, setting, np.random.default_rng(3), 40):
        values = np.full(len(column), setting[0])
        together = predictor.taylor(*placed(name, (values, *setting[1:]), column))
        information = predictor.information(*placed(name, (values, *setting[1:]), column))
        for i in range(0, len(column), 17):
            given = placed(name, setting, column[i])
            alone = (*predictor.taylor(*given), predictor.information(*given))
            for whole, one in zip((*together, information), alone, strict=True):
                row = whole[i] if np.ndim(whole) > np.ndim(one) else whole
                assert np.allclose(row, one, 1e-13, 1e-300)


@pytest.mark.parametrize("name", SETTINGS)
def test_impossible_values_have_log_density_minus_infinity(name: str) -> None:
    setting = SETTINGS[name][0]
    impossible: dict[str, list[Any]] = {"normal": [math.inf], "student_t": [math.inf], "cauchy": [math.inf]}
    for value in impossible.get(name, [-1, -0.5]):
        scores = np.zeros((2, 3)) if predictor_of(name).is_vector else np.zeros(2)
        log_density = predictor_of(name).taylor(*placed(name, (value, *setting[1:]), scores))[0]
        assert np.all(np.broadcast_to(log_density, 2) == -math.inf)


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_what_is_called_quadratic_is(name: str, setting: tuple[Any, ...]) -> None:
    """And what is not is not: the second derivative changes along the predictor."""
    predictor = predictor_of(name)
    for column in predictors(name, setting, np.random.default_rng(4), 40):
        second = np.asarray(predictor.taylor(*placed(name, setting, column))[2])
        spread = np.ptp(np.broadcast_to(second, (len(column), *second.shape[1:])), axis=0).max()
        assert (spread <= 1e-12 * np.abs(second).max()) == predictor.is_quadratic


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_the_limits_hold_and_are_nearly_reached(name: str, setting: tuple[Any, ...]) -> None:
    """The largest slope and the largest third derivative, from differences of the second, on a fine grid."""
    predictor = predictor_of(name)
    if predictor.is_vector:
        return
    center = centers(name, setting)
    grid = center + np.linspace(-30.0, 30.0, 60_001)
    slope, third = predictor.limits(*placed(name, setting, grid))
    _, first, second = predictor.taylor(*placed(name, setting, grid))
    largest = np.abs(np.diff(np.broadcast_to(second, grid.shape)) / np.diff(grid)).max()
    assert np.abs(first).max() <= slope * (1.0 + 1e-12)
    assert largest <= third * (1.0 + 1e-9) + 1e-9
    if math.isfinite(slope):
        assert np.abs(first).max() > 0.99 * slope
        assert largest > 0.99 * third


@pytest.mark.thorough
def test_the_limits_of_a_vector_are_by_the_range_of_a_direction() -> None:
    predictor, rng = predictor_of("softmax_categorical"), np.random.default_rng(5)
    slope, third = predictor.limits(0, np.zeros(3))
    largest = [0.0, 0.0]
    for _ in range(3000):
        scores, way = rng.normal(size=4) * 3.0, rng.normal(size=4) ** 3
        width = np.ptp(way)
        before, after = [predictor.taylor(1, scores + h * way) for h in (-1e-4, 1e-4)]
        largest[0] = max(largest[0], abs(before[1] @ way) / width / slope)
        largest[1] = max(largest[1], abs(way @ (after[2] - before[2]) @ way) / 2e-4 / width**3 / third)
    assert 0.95 < largest[0] <= 1.0 + 1e-12
    assert 0.9 < largest[1] <= 1.0 + 1e-6


@pytest.mark.parametrize("name", SETTINGS)
def test_the_information_is_the_mean_of_minus_the_second_derivative(name: str) -> None:
    """Over all values: a sum over counts, or the integral by the midpoint rule."""
    predictor, setting = predictor_of(name), SETTINGS[name][0]
    eta: Any = np.array([0.3, -0.5, 0.1]) if predictor.is_vector else 0.3
    values, weights = all_values(name, setting, eta)
    log_density, _, second = predictor.taylor(*placed(name, (values, *setting[1:]), eta))
    information = predictor.information(*placed(name, setting, eta))
    mass = np.exp(log_density) * weights
    second = np.broadcast_to(second, (len(values), *np.shape(information)))
    assert math.isclose(mass.sum(), 1.0, rel_tol=1e-4)
    assert np.allclose(information, -np.einsum("n,n...->...", mass, second), 1e-3, 1e-6)


def all_values(name: str, setting: tuple[Any, ...], eta: Any) -> tuple[np.ndarray, np.ndarray]:
    """Values and the weights with which their densities sum to 1."""
    if RECORDS[name].transform is None:
        count = len(eta) if predictor_of(name).is_vector else 2000
        return np.arange(count), np.ones(count)
    # z = tan(u) reaches the whole line
    u = (np.arange(200_000) + 0.5) / 200_000 * math.pi - math.pi / 2
    values, weights = eta + setting[-1] * np.tan(u), setting[-1] / np.cos(u) ** 2 * math.pi / 200_000
    if name != "lognormal":
        return values, weights
    inside = np.abs(values) < 600.0
    return np.exp(values[inside]), weights[inside] * np.exp(values[inside])


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_the_first_order_is_that_of_the_taylor_terms(name: str, setting: tuple[Any, ...]) -> None:
    for column in predictors(name, setting, np.random.default_rng(9), 200):
        given = placed(name, setting, column)
        for found, expected in zip(
            predictor_of(name).first_order(*given), predictor_of(name).taylor(*given), strict=False
        ):
            assert np.allclose(found, expected, 1e-13, 1e-13)


@pytest.mark.parametrize(("name", "scores"), [("bernoulli_logit", 0.7), ("softmax_categorical", np.array([0.1, 2.0]))])
def test_the_first_order_outside_the_support_has_no_density(name: str, scores: Any) -> None:
    assert predictor_of(name).first_order(5, scores)[0] == -math.inf
