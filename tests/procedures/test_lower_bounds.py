"""Lower bounds: below the likelihood everywhere, touching it in value and first derivative where they are set to.

Tolerance: the log density and the bound are sums of a few terms (a value, a slope times a distance, a curvature times
its square), each rounded to some units in the last place of the largest. 64 units of the sum of their sizes, 1.4e-14 of
it, are allowed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.procedures.likelihoods import RECORDS, SETTINGS, centers, placed, predictor_of, predictors
from venture_lite.procedures.predictor import Bound, Quadratic, QuadraticRows

CASES = [
    (name, setting, bound)
    for name, settings in SETTINGS.items()
    for bound in predictor_of(name).bounds
    for setting in settings
]
ROUNDING = 64 * 2.0**-52
BOUNDED = {
    "jaakkola_jordan": {"flip", "bernoulli", "bernoulli_logit", "binomial", "geometric", "neg_binomial"},
    "gaussian_tangent": {"student_t", "cauchy"},
    "boehning": {"softmax_categorical"},
}


def test_each_family_has_its_bound() -> None:
    found = {(bound.name, name) for name in RECORDS for bound in predictor_of(name).bounds}
    assert found == {(bound, name) for bound, names in BOUNDED.items() for name in names}


def log_density(name: str, setting: tuple[Any, ...], predictor: Any) -> Any:
    return predictor_of(name).taylor(*placed(name, setting, predictor))[0]


def allowed(*terms: Any) -> Any:
    return ROUNDING * (1.0 + sum(np.abs(term) for term in terms))


def terms_of(bound: Quadratic, predictor: Any) -> tuple[Any, ...]:
    away = predictor - bound.center
    if np.ndim(bound.slope) == np.ndim(bound.value):
        return bound.value, bound.slope * away, bound.curvature * away**2
    return bound.value, np.abs(away * bound.slope).sum(axis=-1), np.square(away).sum(axis=-1)


def touching_points(name: str, setting: tuple[Any, ...], column: np.ndarray, rng: np.random.Generator) -> list[Any]:
    if predictor_of(name).is_vector:
        return [np.zeros(column.shape[1]), *(rng.normal(size=(4, column.shape[1])) * 3.0)]
    at = centers(name, setting)
    return [at, at + 1.5, at - 1e-12, at + 1e-4, at - 8.0, at + 35.0]


def excess(name: str, setting: tuple[Any, ...], bound: Quadratic, column: np.ndarray) -> Any:
    """How far the bound lies above the log density, beyond rounding."""
    exact = log_density(name, setting, column)
    return bound.at(column) - exact - allowed(exact, *terms_of(bound, column))


@pytest.mark.parametrize(("name", "setting", "bound"), CASES)
def test_the_bound_lies_below_everywhere(name: str, setting: tuple[Any, ...], bound: Bound) -> None:
    rng = np.random.default_rng(1)
    for column in predictors(name, setting, rng, 2000):
        for point in touching_points(name, setting, column, rng):
            above = excess(name, setting, bound.touching(*placed(name, setting, point)), column) > 0.0
            assert not np.any(above), (point, column[above])


@pytest.mark.parametrize(("name", "setting", "bound"), CASES)
def test_the_bound_touches_with_its_slope(name: str, setting: tuple[Any, ...], bound: Bound) -> None:
    """All rows at once, each at its own point."""
    for column in predictors(name, setting, np.random.default_rng(2), 300):
        exact, slope, _ = predictor_of(name).taylor(*placed(name, setting, column))
        quadratic = bound.touching(*placed(name, setting, column))
        assert np.all(np.abs(quadratic.at(column) - exact) <= allowed(exact))
        assert np.all(np.abs(quadratic.gradient(column) - slope) <= allowed(slope))


@pytest.mark.parametrize(("name", "setting", "bound"), CASES)
def test_the_gradient_of_a_bound_is_that_of_its_values(name: str, setting: tuple[Any, ...], bound: Bound) -> None:
    """A central difference of a quadratic has no error but rounding."""
    rng = np.random.default_rng(6)
    for column in predictors(name, setting, rng, 30):
        quadratic = bound.touching(*placed(name, setting, column[0]))
        away, step = column[0] + rng.normal(size=column.shape), rng.normal(size=column.shape)
        difference = (quadratic.at(away + step) - quadratic.at(away - step)) / 2.0
        along = quadratic.gradient(away) * step
        expected = along.sum(axis=-1) if predictor_of(name).is_vector else along
        assert np.allclose(difference, expected, 1e-8, 1e-8)


@pytest.mark.parametrize(("name", "setting", "bound"), [c for c in CASES if not predictor_of(c[0]).is_vector])
def test_a_bound_in_the_square_touches_on_both_sides(name: str, setting: tuple[Any, ...], bound: Bound) -> None:
    center, away = centers(name, setting), np.array([0.25, 1.5, 6.0, 20.0])
    opposite, quadratic = center - away, bound.touching(*placed(name, setting, center + away))
    exact = log_density(name, setting, opposite)
    assert np.all(np.abs(quadratic.at(opposite) - exact) <= allowed(exact, *terms_of(quadratic, opposite)))


@pytest.mark.parametrize(("name", "setting", "bound"), CASES)
def test_a_smaller_curvature_would_not_give_a_bound(name: str, setting: tuple[Any, ...], bound: Bound) -> None:
    """The bound is as tight as one of its form can be, to a thousandth: so the test above sees a wrong curvature."""
    rng, above = np.random.default_rng(3), False
    for column in predictors(name, setting, rng, 2000):
        points = touching_points(name, setting, column, rng)
        if predictor_of(name).is_vector:
            # where two outcomes share all the probability the curvature along their difference is reached
            way = np.eye(column.shape[1])[0] - np.eye(column.shape[1])[1]
            points = [40.0 * np.abs(way) - 40.0]
            column = points[0] + np.linspace(-1.0, 1.0, 201)[:, None] * way
        for point in points:
            q = bound.touching(*placed(name, setting, point))
            tighter = Quadratic(q.center, q.value, q.slope, q.curvature * 0.999)
            above = above or bool(np.any(excess(name, setting, tighter, column) > 0.0))
    assert above


def coefficients(quadratic: Quadratic) -> tuple[Any, Any, Any]:
    """(constant, slope, curvature) of constant + slope . eta + eta . curvature eta / 2: what sums over rows."""
    origin = np.zeros_like(quadratic.center)
    return quadratic.at(origin), quadratic.gradient(origin), quadratic.curvature


@pytest.mark.parametrize(("name", "setting", "bound"), CASES)
def test_the_coefficients_collapse_into_sums(name: str, setting: tuple[Any, ...], bound: Bound) -> None:
    """The sum over rows of a bound in eta = w . x, from a constant, a vector and a matrix."""
    rng, size = np.random.default_rng(4), (3,) if predictor_of(name).is_vector else ()
    inputs, weights = rng.normal(size=(30, 4)), rng.normal(size=(*size, 4))
    quadratic = bound.touching(*placed(name, setting, inputs @ rng.normal(size=(4, *size))))
    constant, slope, curvature = coefficients(quadratic)
    linear = np.sum(weights * (slope.T @ inputs))
    if size:
        squares = np.einsum("kd,nd,kl,ne,le", weights, inputs, curvature, inputs, weights)
    else:
        squares = weights @ (inputs.T * curvature) @ inputs @ weights
    total = constant.sum() + linear + squares / 2.0
    assert np.isclose(total, quadratic.at(inputs @ weights.T).sum(), 1e-10, 1e-10)


def test_far_from_0_a_row_keeps_its_digits() -> None:
    """A location of 10^8: about its center the bound is exact, from coefficients about 0 it would be off by 1."""
    setting, point = (1e8 + 0.5, 4.0, None, 0.45), 1e8
    quadratic = predictor_of("student_t").bounds[0].touching(*placed("student_t", setting, point))
    near = point + 2.0**-20
    constant, slope, curvature = coefficients(quadratic)
    assert abs(quadratic.at(near) - log_density("student_t", setting, near)) < 1e-11
    assert abs(constant + slope * near + curvature * near**2 / 2.0 - quadratic.at(near)) > 1e-3


@pytest.mark.parametrize(("name", "setting", "bound"), CASES)
def test_some_rows_have_the_values_that_they_have_among_all(name: str, setting: tuple[Any, ...], bound: Bound) -> None:
    """Where all rows share a curvature, and where each has its own."""
    chosen, rng = np.array([5, 0, 31, 17]), np.random.default_rng(5)
    for column in predictors(name, setting, rng, 40):
        found = bound.touching(*placed(name, setting, column))
        away = column + rng.normal(size=column.shape)
        own = found.curvature * rng.uniform(0.5, 2.0, (len(column), 1, 1) if predictor_of(name).is_vector else ())
        for curvature in (found.curvature, own):
            quadratic = Quadratic(found.center, found.value, found.slope, curvature)
            values, slopes = QuadraticRows(quadratic).at(away[chosen], chosen)
            assert np.allclose(values, quadratic.at(away)[chosen], 1e-12, 1e-12)
            assert np.allclose(slopes, quadratic.gradient(away)[chosen], 1e-12, 1e-12)
