"""The comparisons pass on a chain that is right and fail on chains that are wrong in one place."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.posterior.case import Case
from tests.posterior.cases import CASES
from tests.posterior.derive import cdf
from tests.posterior.reference import Faults, single_site_mh
from tests.statistics import assert_chain_agrees, assert_chain_misses, autocorrelation_time

BY_NAME = {case.name: case for case in CASES}
NO_COUNTS = Faults(ignore_block_counts=True)
NO_FRESH = Faults(ignore_fresh_choices=True)


def reference_chain(
    case: Case, thin: int, scope: str, faults: Faults, seed: int
) -> Callable[[int], Mapping[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return lambda n: single_site_mh(case.program, case.query, case.parameters, n, thin, rng, scope, faults)


def slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("counts_differ", "default"),
        ("geometric", "default"),
        ("block_gains_a_choice", "s"),
        ("three_families", "default"),
        slow("structure_in_rows", "rows"),
        slow("choices_come_and_go", "s"),
        slow("two_keys", "default"),
        slow("shared_walk", "default"),
    ],
)
def test_a_correct_chain_passes(name: str, scope: str) -> None:
    case = BY_NAME[name]
    assert_chain_agrees(reference_chain(case, 8, scope, Faults(), 3), case.exact(), 600, name)


@pytest.mark.parametrize(
    ("name", "scope", "faults", "draws"),
    [
        ("counts_differ", "default", NO_COUNTS, 1500),
        ("geometric", "default", NO_COUNTS, 1000),
        ("block_gains_a_choice", "s", NO_COUNTS, 2500),
        ("three_families", "default", NO_FRESH, 1500),
        slow("tree_size", "default", NO_COUNTS, 1000),
        slow("choices_come_and_go", "s", NO_COUNTS, 2500),
        slow("conditional_members", "s", NO_COUNTS, 2500),
        slow("nested_flips", "default", NO_COUNTS, 2500),
        slow("random_sum", "default", NO_FRESH, 1000),
        slow("structure_in_rows", "rows", NO_FRESH, 1000),
        ("correlated_pair", "default", NO_FRESH, 1500),
    ],
)
def test_a_wrong_chain_fails(name: str, scope: str, faults: Faults, draws: int) -> None:
    case = BY_NAME[name]
    assert_chain_misses(reference_chain(case, 6, scope, faults, 4), case.exact(), draws)


def test_a_chain_that_is_right_is_not_missed() -> None:
    rng = np.random.default_rng(2)
    answer = {"x": cdf(stats.norm(0.0, 1.0))}
    with pytest.raises(AssertionError, match="no error is seen in 2000 draws"):
        assert_chain_misses(lambda n: {"x": rng.normal(size=n)}, answer, 2000)
    looks: list[int] = []

    def wrong(n: int) -> dict[str, np.ndarray]:
        looks.append(n)
        return {"x": rng.normal(0.5, size=n)}

    assert_chain_misses(wrong, answer, 2000)
    assert sum(looks) < 1000


def test_autocorrelation_time_of_an_autoregression() -> None:
    """tau of an AR(1) chain is (1 + rho) / (1 - rho)."""
    rng = np.random.default_rng(0)
    for rho in (0.0, 0.5, 0.9):
        x = np.zeros(100_000)
        noise = rng.normal(size=len(x))
        for i in range(1, len(x)):
            x[i] = rho * x[i - 1] + noise[i]
        assert autocorrelation_time(x) == pytest.approx((1 + rho) / (1 - rho), rel=0.15)


def test_a_chain_that_never_moves_fails() -> None:
    case = BY_NAME["geometric"]
    with pytest.raises(AssertionError, match="expected"):
        assert_chain_agrees(lambda n: {"n": np.full(n, 2.0)}, case.exact(), 1000, "stuck")


def test_a_slow_chain_goes_on_until_it_can_tell() -> None:
    """An autoregression of tau 19 has 50 effective draws in 1,000, and enough in three times as many."""
    rng = np.random.default_rng(1)
    asked: list[int] = []

    def more(n: int) -> dict[str, np.ndarray]:
        asked.append(n)
        x = rng.normal(size=n)
        for i in range(1, n):
            x[i] = 0.9 * x[i - 1] + math.sqrt(1 - 0.81) * x[i]
        return {"x": x}

    right, wrong = ({"x": cdf(stats.norm(mean, 1))} for mean in (0.0, 0.4))
    assert_chain_agrees(more, right, 1000, "slow")
    assert asked[:2] == [1000, 1000]
    assert 2200 < sum(asked) < 4000
    with pytest.raises(AssertionError, match="expected"):
        assert_chain_agrees(more, wrong, 1000, "slow and wrong")
