"""Gradients of the makers' joint densities against central differences, for every maker of the registry."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.procedures.differences import agree, derivative, is_sharp
from tests.procedures.examples import MAKERS
from tests.procedures.test_makers import made
from venture_lite.procedures.exchangeable.joint_gradients import normal_statistics, wishart_statistics
from venture_lite.procedures.record import Maker, MakerState
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.values import freeze

RECORDS = {record.name: record for record in PROCEDURES.values() if isinstance(record, Maker)}
OF_BLOCKS = ("make_gp", "make_lazy_hmm")
"""Their arguments are functions, or probabilities that sum to 1: what these are made of is moved in tests of blocks."""
CALLS = [(name, args) for name, example in MAKERS.items() for args in example.arguments]
MOVED = [(name, args) for name, args in CALLS if name not in OF_BLOCKS]


@pytest.mark.parametrize("name", RECORDS)
def test_a_maker_has_a_gradient_by_its_continuous_arguments(name: str) -> None:
    record = RECORDS[name]
    assert record.gradient is not None
    assert record.gradient.exists == tuple(
        name == "make_gp" or not argument.domain.discrete for argument in record.arguments
    )


def directions(rng: np.random.Generator, x: Any) -> Any:
    if isinstance(x, (int, float)):
        return max(abs(x), 1.0) if x <= 0.0 else x
    array = np.asarray(x, dtype=np.float64)
    if array.ndim == 2:
        lower, way = np.linalg.cholesky(array), rng.normal(size=array.shape)
        return lower @ (way + way.T) @ lower.T
    return rng.normal(size=array.shape) * (array if (array > 0.0).all() else 1.0)


def shifted(x: Any, way: Any, step: float) -> Any:
    return x + step * way if isinstance(x, (int, float)) else freeze(np.asarray(x, dtype=np.float64) + step * way)


@pytest.mark.parametrize(("name", "args"), MOVED)
def test_the_gradient_by_the_arguments_agrees_with_central_differences(name: str, args: tuple[Any, ...]) -> None:
    gradient, rng, sharp = RECORDS[name].gradient, np.random.default_rng(1), 0
    assert gradient is not None
    for count in (0, 1, len(MAKERS[name].values)):
        state = made(name, args, MAKERS[name].values[:count])
        found = gradient.evaluate(state)
        for position, exists in enumerate(gradient.exists):
            if not exists:
                assert found[position] is None
                continue
            if name == "make_crp" and position == 1 and args[1] < 1e-6:
                # a discount below 0 is none: the derivative at 0 is one-sided
                continue
            way = directions(rng, args[position])

            def along(step: float, position: int = position, way: Any = way, count: int = count) -> float:
                moved = shifted(args[position], way, step)
                given = (*args[:position], moved, *args[position + 1 :])
                return made(name, given, MAKERS[name].values[:count]).log_joint()

            expected = derivative(along)
            total = float(np.sum(np.multiply(found[position], way)))
            assert agree(total, expected), (count, position, found, expected)
            sharp += count > 1 and is_sharp(expected)
    assert sharp or name == "make_crp"


def test_the_derivative_at_discount_0_is_one_sided() -> None:
    gradient, values = RECORDS["make_crp"].gradient, MAKERS["make_crp"].values
    assert gradient is not None
    near, far = [(made("make_crp", (1.5, h), values).log_joint(), h) for h in (1e-4, 2e-4)]
    at = made("make_crp", (1.5, 0.0), values)
    # 2 D(h) - D(2h) takes out the error that is linear in h
    one_sided = 2.0 * (near[0] - at.log_joint()) / near[1] - (far[0] - at.log_joint()) / far[1]
    assert math.isclose(gradient.evaluate(at)[1], one_sided, rel_tol=1e-6)


def _normal_application(state: MakerState, value: Any) -> float:
    mean, kappa, nu, _ = map(float, state.arguments)
    away, squares = normal_statistics(state)
    center = mean + state.count / (kappa + state.count) * away
    return float(-(nu + state.count) / squares * (value - center))


def _wishart_application(state: MakerState, value: Any) -> np.ndarray:
    m0, k0, v0, _ = state.arguments
    away, spread = wishart_statistics(state)
    center = np.asarray(m0, dtype=np.float64) + state.count / (k0 + state.count) * away
    return np.asarray(-(v0 + state.count) * np.linalg.solve(spread, np.asarray(value, dtype=np.float64) - center))


APPLICATIONS = {
    "make_normal_inv_chi_sq": _normal_application,
    "make_collapsed_multivariate_normal": _wishart_application,
}
"""(state, value) -> the derivative of log_joint by the value of one incorporated application. No engine moves by them;
joint densities are held to them."""


@pytest.mark.parametrize(("name", "args"), [c for c in CALLS if c[0] in APPLICATIONS])
def test_the_gradient_by_an_application_agrees_with_central_differences(name: str, args: tuple[Any, ...]) -> None:
    of_application, rng, values = APPLICATIONS[name], np.random.default_rng(2), MAKERS[name].values
    for count in (1, len(values)):
        state = made(name, args, values[:count])
        for i, value in enumerate(values[:count]):
            way = rng.normal(size=np.shape(value))

            def along(step: float, i: int = i, way: Any = way, count: int = count) -> float:
                others = [x for j, x in enumerate(values[:count]) if j != i]
                return made(name, args, [*others, shifted(values[i], way, step)]).log_joint()

            found = of_application(state, value)
            assert np.shape(found) == np.shape(value)
            assert agree(float(np.sum(found * way)), derivative(along))
