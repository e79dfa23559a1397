"""The sequential test: how often it is wrong, and what it reads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from venture_lite.engines.subsampled.sequential_test import NotFinite, RowTerms, SequentialTest, exact
from venture_lite.trace.row_order import RowOrder, Sampler

FALSE_ALARM = 1e-6


def of(*populations: np.ndarray) -> RowTerms:
    return lambda kind, positions: populations[kind][positions]


def a_test(counts: list[int], batch: int, tolerance: float, rng: np.random.Generator) -> SequentialTest:
    samplers = [Sampler(RowOrder(np.arange(count), rng)) for count in counts]
    return SequentialTest(samplers, batch, tolerance, rng)


@pytest.mark.parametrize("tolerance", [0.01, 0.1])
@pytest.mark.thorough
def test_wrong_decisions_are_as_rare_as_the_tolerance_says(tolerance: float) -> None:
    """The truth lies a standard deviation of the first minibatch's mean above the threshold. The tests at the stages
    are correlated, so the rate is above that of one test; below three times the tolerance it stays (measured: 0.7
    times)."""
    rng = np.random.default_rng(3)
    terms = rng.standard_normal(5000)
    threshold = terms.sum() - 5000 * 0.1
    test = a_test([5000], 100, tolerance, rng)
    decisions = [test.decide(threshold, of(terms)) for _ in range(3000)]
    wrong = sum(not decision.above for decision in decisions)
    assert stats.binom.sf(wrong - 1, 3000, 3 * tolerance) > FALSE_ALARM
    assert wrong > 0
    assert all(decision.p_value < tolerance for decision in decisions)
    assert np.mean([decision.rows for decision in decisions]) < 5000


def test_stages_are_evaluated_ahead_in_few_calls() -> None:
    """At most a quarter more than is used, and nothing twice."""
    rng = np.random.default_rng(8)
    terms = rng.standard_normal(50_000)
    test = a_test([50_000], 100, 0.01, rng)
    for shift in (300.0, 600.0, 1200.0, 5000.0):
        read: list[np.ndarray] = []

        def called(kind: int, positions: np.ndarray, read: list[np.ndarray] = read) -> np.ndarray:
            read.append(positions)
            return terms[positions]

        decision = test.decide(float(terms.sum()) - shift, called)
        every = np.concatenate(read)
        assert len(set(every.tolist())) == len(every) == decision.rows + decision.ahead
        assert decision.ahead <= decision.rows / 4
        assert len(read) <= 8 + 5 * np.log(max(1, decision.rows / 800))


def test_equal_terms_are_read_to_the_end() -> None:
    terms = np.full(1000, 0.5)
    terms[-1] = -1e6
    test = a_test([1000], 10, 0.1, np.random.default_rng(1))
    for _ in range(20):
        assert not test.decide(0.0, of(terms)).above


def test_residuals_that_vanish_decide_at_once() -> None:
    rng = np.random.default_rng(9)
    samplers = [Sampler(RowOrder(np.arange(1000), rng))]
    test = SequentialTest(samplers, 10, 0.1, rng, trusts_equal=True)
    for threshold in (-1.0, 1.0):
        decision = test.decide(threshold, of(np.zeros(1000)))
        assert decision.above == (threshold < 0)
        assert decision.rows == 10


def test_the_last_row_decides_exactly() -> None:
    rng = np.random.default_rng(4)
    terms = rng.standard_normal(300)
    test = a_test([300], 50, 1e-12, rng)
    for shift in (-1e-9, 1e-9):
        decision = test.decide(float(terms.sum()) + shift, of(terms))
        assert decision.above == (shift < 0)
        assert (decision.rows, decision.p_value) == (300, 0.0)


def test_kinds_are_stratified() -> None:
    """Two kinds with means far apart: mixed together their spread would hide the small difference that decides."""
    rng = np.random.default_rng(5)
    many, few = 100 + 0.01 * rng.standard_normal(20_000), -500 + 0.01 * rng.standard_normal(4000)
    total = float(many.sum() + few.sum())
    test = a_test([20_000, 4000], 100, 0.001, rng)
    for shift in (-50.0, 50.0):
        decision = test.decide(total + shift, of(many, few))
        assert decision.above == (shift < 0)
        assert decision.rows < 2000


def test_a_small_kind_is_read_whole() -> None:
    rng = np.random.default_rng(6)
    many, few = rng.standard_normal(5000), np.array([1e5, 2e5])
    decision = a_test([5000, 2], 100, 0.01, rng).decide(2.9e5, of(many, few))
    assert decision.above
    assert decision.rows < 1000


@pytest.mark.thorough
def test_the_bernstein_rule_is_not_fooled_by_rare_terms() -> None:
    """A thousandth of the terms carries the sum: Student's t believes the minibatches without it, the inequality does
    not (Bardenet et al. 2014, section 4)."""
    rng = np.random.default_rng(7)
    terms = -0.001 + 0.0001 * rng.standard_normal(20_000)
    terms[:20] = 10.0
    normal = a_test([20_000], 100, 0.01, rng)
    wrong = sum(not normal.decide(0.0, of(terms)).above for _ in range(50))
    assert wrong > 25
    assert all(normal.decide(0.0, of(terms), largest=10.1).above for _ in range(50))


def test_infinite_terms_end_the_test() -> None:
    def terms(kind: int, positions: np.ndarray) -> np.ndarray:
        raise NotFinite

    with pytest.raises(NotFinite):
        a_test([100], 10, 0.1, np.random.default_rng(1)).decide(0.0, terms)


def test_the_exact_decision_reads_all() -> None:
    terms = np.arange(10.0)
    assert exact([10], 44.9, of(terms)).above
    assert not exact([10], 45.1, of(terms)).above
    assert math.isclose(exact([10], 0, of(terms)).rows, 10)
