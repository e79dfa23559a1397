"""The comparisons pass on a chain that is right and fail on chains that are wrong in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tests.posterior.case import Case
from tests.posterior.cases import CASES
from tests.posterior.reference import Faults, single_site_mh
from tests.statistics import CONFIRM, assert_chain_agrees, autocorrelation_time, compare_all

BY_NAME = {case.name: case for case in CASES}
NO_COUNTS = Faults(ignore_block_counts=True)
NO_FRESH = Faults(ignore_fresh_choices=True)


def reference_chain(
    case: Case, thin: int, scope: str, faults: Faults, seed: int
) -> Callable[[int], Mapping[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return lambda n: single_site_mh(case.program, case.query, case.parameters, n, thin, rng, scope, faults)


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("counts_differ", "default"),
        ("geometric", "default"),
        ("structure_in_rows", "rows"),
        ("block_gains_a_choice", "s"),
        ("choices_come_and_go", "s"),
        ("three_families", "default"),
        ("two_keys", "default"),
        ("shared_walk", "default"),
    ],
)
def test_a_correct_chain_passes(name: str, scope: str) -> None:
    case = BY_NAME[name]
    assert_chain_agrees(reference_chain(case, 8, scope, Faults(), 3), case.exact(), 1000, name)


@pytest.mark.parametrize(
    ("name", "scope", "faults"),
    [
        ("counts_differ", "default", NO_COUNTS),
        ("geometric", "default", NO_COUNTS),
        ("tree_size", "default", NO_COUNTS),
        ("block_gains_a_choice", "s", NO_COUNTS),
        ("choices_come_and_go", "s", NO_COUNTS),
        ("conditional_members", "s", NO_COUNTS),
        ("nested_flips", "default", NO_COUNTS),
        ("three_families", "default", NO_FRESH),
        ("random_sum", "default", NO_FRESH),
        ("structure_in_rows", "rows", NO_FRESH),
        ("correlated_pair", "default", NO_FRESH),
    ],
)
def test_a_wrong_chain_fails(name: str, scope: str, faults: Faults) -> None:
    case = BY_NAME[name]
    draws = reference_chain(case, 6, scope, faults, 4)(2500)
    comparisons = compare_all(draws, case.exact())
    assert max(abs(c.z) for cs in comparisons.values() for c in cs) > CONFIRM


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
