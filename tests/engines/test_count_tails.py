"""Counts beyond those that a network knows: drawn from distributions cut to their tails, and weighed so.

Frequencies of 4,000 draws are compared with the densities by a chi-square statistic: a false alarm in 10^7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.statistics import Table, assert_chain_agrees, assert_chain_misses
from venture_lite import Venture
from venture_lite.blocks.cut_draws import drawn_beyond, has_tail, log_tail
from venture_lite.engines.compiled import frame
from venture_lite.engines.compiled.compiled import proposers_of
from venture_lite.engines.compiled.frame import Position
from venture_lite.networks import fitting
from venture_lite.procedures import registry
from venture_lite.procedures.record import Random

COUNTS = [
    ("poisson", (3.0,), 7),
    ("geometric", (0.2,), 30),
    ("neg_binomial", (2.5, 0.4), 9),
    ("binomial", (40, 0.1), 8),
]


def record_of(name: str) -> Random:
    record = registry.PROCEDURES[name]
    assert isinstance(record, Random)
    return record


@pytest.mark.parametrize(("name", "arguments", "last"), COUNTS)
def test_counts_beyond_one_have_the_shares_of_the_density(name: str, arguments: tuple[Any, ...], last: int) -> None:
    record, rng = record_of(name), np.random.default_rng(1)
    assert has_tail(record)
    tail = math.exp(log_tail(record, last, arguments))
    draws = np.array([drawn_beyond(rng, record, last, arguments) for _ in range(4000)])
    assert draws.min() == last + 1
    shares = np.array([math.exp(record.log_density(last + 1 + k, *arguments)) for k in range(31)]) / tail
    several = int((shares * len(draws) >= 10.0).sum())
    expected = np.append(shares[:several], 1.0 - shares[:several].sum())
    found = np.bincount(np.minimum(draws - last - 1, several), minlength=several + 1) / len(draws)
    statistic = len(draws) * float(((found - expected) ** 2 / expected).sum())
    assert statistic < stats.chi2.isf(1e-7, several)


def test_a_tail_without_probability_has_no_count() -> None:
    assert drawn_beyond(np.random.default_rng(1), record_of("binomial"), 8, (8, 0.5)) is None


@pytest.mark.parametrize("name", ["normal", "bernoulli", "categorical"])
def test_what_is_no_count_has_no_tail(name: str) -> None:
    assert not has_tail(registry.PROCEDURES[name])


def test_a_tail_far_out_is_found() -> None:
    """Where the probability of the tail is below all floats that are not 0."""
    found = drawn_beyond(np.random.default_rng(1), record_of("geometric"), 10**6, (0.5,))
    assert found is not None
    assert 0 < found - 10**6 < 60


FAR = "[assume n (poisson {rate})] [observe (normal n 1) 7]"


def learned(kernels: str, patch: pytest.MonkeyPatch) -> Venture:
    # so that worlds show counts of the tail
    patch.setattr(frame, "SHARE", 0.85)
    patch.setattr(fitting, "LEAST_STEPS", 300)
    patch.setattr(fitting, "PASSES", 1)
    venture = Venture(seed=1, kernels=kernels)
    venture.execute(FAR, rate=3.0)
    venture.infer("(compile q default one 'worlds 1000 'hidden 4)")
    return venture


def counts(venture: Venture, draws: int) -> dict[str, np.ndarray]:
    found = venture.infer(f"(repeat {draws} (do (compiled_mh q default one 'defensive 0.5 8) (collect n)))")
    return {"n": np.asarray(found["n"], dtype=float).reshape(draws)}


def posterior() -> dict[str, Table]:
    n = np.arange(40)
    weights = stats.poisson.pmf(n, 3.0) * stats.norm.pdf(7.0, n, 1.0)
    return {"n": Table(dict(zip(n.tolist(), (weights / weights.sum()).tolist(), strict=True)))}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::venture_lite.VentureWarning")
@pytest.mark.parametrize("kernels", ["compiled", "interpreted"])
def test_a_posterior_of_counts_in_the_tail_is_found(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    venture = learned(kernels, monkeypatch)
    (kind,) = proposers_of(venture.traces[0])["q"].kinds.values()
    (position,) = kind.frame.positions
    assert position.has_tail
    share = sum(p for n, p in posterior()["n"].probabilities.items() if n > position.values[-1])
    assert 0.05 < share < 0.95
    assert_chain_agrees(lambda n: counts(venture, n), posterior(), 400, "counts in the tail")


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::venture_lite.VentureWarning")
def test_the_way_of_numbers_agrees_with_the_general_one_in_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    found = counts(learned("checked", monkeypatch), 60)["n"]
    assert found.max() > 6.0
    assert found.min() < 6.0


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::venture_lite.VentureWarning")
def test_a_tail_whose_counts_are_not_weighed_apart_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    venture = learned("compiled", monkeypatch)
    monkeypatch.setattr(Position, "log_jacobian", lambda *given: 0.0)
    assert_chain_misses(lambda n: counts(venture, n), posterior(), 1500)
