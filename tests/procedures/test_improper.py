"""Improper densities and what directives weigh: their densities, their starts, and that nothing is drawn from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.procedures.differences import agree, derivative
from venture_lite.errors import KernelError
from venture_lite.procedures.checks import record_valid
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.distributions.improper import CONDITION, FACTOR, FLAT, FLAT_ABOVE, FLAT_BELOW
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import Elementwise

FLATS = [(FLAT, (), (0.0, -1e300)), (FLAT_ABOVE, (2.0,), (2.5, 1e9)), (FLAT_BELOW, (-1.0,), (-1.5, -1e9))]
OUTSIDE = {FLAT: (math.inf, math.nan, "t"), FLAT_ABOVE: (1.5, math.inf), FLAT_BELOW: (-0.5, -math.inf)}


@pytest.mark.parametrize(("record", "bounds", "inside"), FLATS)
def test_a_flat_density_is_1_on_its_support(record: Random, bounds: Any, inside: Any) -> None:
    assert [record.log_density(x, *bounds) for x in inside] == [0.0, 0.0]
    assert all(record.log_density(x, *bounds) == -math.inf for x in OUTSIDE[record])
    columns = record.log_density_columns
    assert columns is not None
    assert np.all(columns((True, *(False for _ in bounds)), np.array(inside), *bounds) == 0.0)


@pytest.mark.parametrize(("record", "bounds", "inside"), FLATS)
def test_starts_lie_within_2_of_the_centre_in_the_free_coordinate(record: Random, bounds: Any, inside: Any) -> None:
    """The furthest of 2,000 is beyond 1.9 but with probability 0.95^2000, below 1e-44."""
    assert record.start is not None
    assert record.transform is not None
    starts = [record.start(np.random.default_rng(seed), *bounds) for seed in range(2000)]
    free = np.array([record.transform.to_free(start, bounds) for start in starts])
    assert 1.9 < np.abs(free).max() <= 2.0 + 1e-9


@pytest.mark.parametrize(("record", "bounds", "inside"), FLATS[1:])
def test_a_density_in_the_free_coordinate_follows_the_bound(record: Random, bounds: Any, inside: Any) -> None:
    """At one free coordinate the value moves with the bound: d (value^2 + the log Jacobian) is 2 value."""
    transform, (bound,) = record.transform, bounds
    assert isinstance(transform, Elementwise)
    assert transform.by_arguments is not None
    value = inside[0]
    free = transform.to_free(value, bounds)

    def density(step: float) -> float:
        at = (bound + step,)
        there = transform.from_free(free, at)
        return float(there * there + transform.log_jacobian(there, at))

    (slope,) = transform.argument_gradient(value, bounds, 2 * value)
    assert agree(slope, derivative(density))


@pytest.mark.parametrize("record", [FLAT, FLAT_ABOVE, FLAT_BELOW, FACTOR, CONDITION])
def test_nothing_is_drawn(record: Random) -> None:
    assert record.simulate_columns is None
    with pytest.raises(KernelError):
        record.simulate(np.random.default_rng(1), *(1.0 for _ in record.arguments))


def test_a_factor_has_its_argument_for_its_log_density_and_1_for_its_slope() -> None:
    weights = np.array([0.5, -math.inf, 3.0])
    assert [FACTOR.log_density(0, weight) for weight in weights] == weights.tolist()
    columns, gradient = FACTOR.log_density_columns, FACTOR.gradient
    assert columns is not None
    assert gradient is not None
    assert np.array_equal(columns((True, True), np.zeros(3), weights), weights)
    assert gradient.exists == (False, True)
    slopes = gradient.evaluate((True, True), (False, True), np.zeros(3), weights)[1]
    assert slopes.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("record", "good", "bad"),
    [(FACTOR, (0, -1.5, -math.inf), (math.inf, math.nan, True, "t", (1.0,))), (CONDITION, (True, 0), (0.5, "t"))],
)
def test_weights_are_checked(record: Random, good: Any, bad: Any) -> None:
    valid, domain = record_valid(record), record.arguments[0].domain
    assert all(valid(x) and domain.contains(x) for x in good)
    assert not any(valid(x) for x in bad)
    assert domain.contains_all(np.array(good))
    assert not any(domain.contains_all(np.array([x, x])) for x in bad if isinstance(x, (bool, float)))


def test_a_condition_is_certain_or_impossible() -> None:
    assert [CONDITION.log_density(0, holds) for holds in (True, 1, False)] == [0.0, 0.0, -math.inf]
    columns = CONDITION.log_density_columns
    assert columns is not None
    try:
        assert columns((True, True), np.zeros(2), np.array([True, False])).tolist() == [0.0, -math.inf]
    except RowByRow:
        pytest.fail("conditions of many rows are weighed together")
