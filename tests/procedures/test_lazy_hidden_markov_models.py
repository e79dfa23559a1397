"""Lazy hidden Markov models, alone: against the sum over all paths, and what an emission costs.

Each statistical test is seeded and rejects a correct sampler with probability 1e-6.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.procedures.processes import EMISSION, INITIAL, PROCESSES, TRANSITION, Application
from tests.procedures.test_random import FALSE_ALARM, chi_squared
from venture_lite.errors import ArgumentError
from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.exchangeable import hidden_markov
from venture_lite.procedures.exchangeable.hidden_markov import LazyHmmState
from venture_lite.procedures.registry import PROCEDURES


def by_paths(args: tuple[Any, ...], emitted: Sequence[Application]) -> float:
    """Log probability of the emissions, summed over all paths of states."""
    initial, transition, emission = (np.asarray(a, dtype=float) for a in args)
    last = max((int(t) for _, t in emitted), default=0)
    total = 0.0
    for path in itertools.product(range(len(initial)), repeat=last + 1):
        weight = initial[path[0]]
        for before, after in itertools.pairwise(path):
            weight *= transition[before, after]
        for value, t in emitted:
            weight *= emission[path[int(t)], int(value)]
        total += weight
    return math.log(total) if total > 0 else -math.inf


@pytest.mark.parametrize("args", PROCESSES[3].arguments, ids=["0", "1"])
@pytest.mark.thorough
def test_emissions_with_gaps_and_repetitions_have_the_probability_of_all_paths(args: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(11)
    for _ in range(12):
        times = rng.integers(0, 7, rng.integers(1, 6))
        emitted = [(int(rng.integers(1, 4)), int(t)) for t in times]
        state = LazyHmmState(*args)
        for value, t in emitted:
            before = by_paths(args, [*_emitted(state), (value, t)]) - by_paths(args, _emitted(state))
            if by_paths(args, _emitted(state)) > -math.inf:
                assert math.isclose(state.log_predictive(value, t), before, rel_tol=1e-9, abs_tol=1e-12)
            state.add(value, t)
            expected = by_paths(args, _emitted(state))
            assert math.isclose(state.log_joint(), expected, rel_tol=1e-9, abs_tol=1e-12)


def _emitted(state: LazyHmmState) -> list[Application]:
    return [(outcome, t) for (t, outcome), n in state.statistics().items() for _ in range(n)]


@pytest.mark.parametrize("time", [0, 4, 6, 30])
def test_drawn_emissions_follow_the_predictive_probabilities(time: int) -> None:
    rng = np.random.default_rng(12)
    state = LazyHmmState(INITIAL, TRANSITION, EMISSION)
    for value, t in [(1, 1), (3, 4), (2, 4), (1, 8)]:
        state.add(value, t)
    masses = [(k, math.exp(state.log_predictive(k, time))) for k in state.support(time)]
    assert math.isclose(math.fsum(mass for _, mass in masses), 1.0, rel_tol=1e-12)
    assert chi_squared([state.simulate(rng, time) for _ in range(4000)], masses) > FALSE_ALARM


def test_far_ahead_the_chain_forgets() -> None:
    state = LazyHmmState(INITIAL, TRANSITION, EMISSION)
    state.add(3, 2)
    values, vectors = np.linalg.eig(TRANSITION.T)
    stationary = np.real(vectors[:, np.argmax(values.real)])
    expected = np.log(stationary / stationary.sum() @ EMISSION)
    for time in (10**4, 10**18, 1e300):
        assert np.allclose([state.log_predictive(k, time) for k in range(4)], expected, 1e-10)


def test_long_sequences_and_many_emissions_at_one_time_do_not_underflow() -> None:
    rng = np.random.default_rng(13)
    state = LazyHmmState(INITIAL, TRANSITION, EMISSION)
    for t in range(2000):
        state.add(int(rng.integers(1, 4)), t)
    assert -5000 < state.log_joint() < -1000
    one = LazyHmmState((1.0, 0.0), np.eye(2), ((1e-4, 1 - 1e-4), (0.5, 0.5)))
    for _ in range(500):
        one.add(0, 3)
    # the state that explains the emissions is impossible, and the other is not
    assert math.isclose(one.log_joint(), 500 * math.log(1e-4), rel_tol=1e-12)
    assert math.isclose(one.log_predictive(0, 5), math.log(1e-4), rel_tol=1e-12)


def test_impossible_emissions_are_told_and_taken_back() -> None:
    state = LazyHmmState((1.0, 0.0), np.eye(2), np.eye(2))
    state.add(0, 0)
    assert state.log_predictive(1, 5) == -math.inf
    token = state.add(1, 5)
    assert state.log_joint() == state.log_predictive(0, 2) == -math.inf
    assert state.simulate(np.random.default_rng(1), 2) == 0
    state.restore(token)
    assert state.log_joint() == 0.0


def test_a_matrix_of_fewer_outcomes_makes_the_others_impossible() -> None:
    state = LazyHmmState(INITIAL, TRANSITION, EMISSION)
    state.add(3, 1)
    state.set_arguments((INITIAL, TRANSITION, EMISSION[:, :2] / EMISSION[:, :2].sum(axis=1, keepdims=True)))
    assert state.log_joint() == -math.inf
    assert list(state.support(1)) == [0, 1]


def test_sizes_must_match() -> None:
    for args, message in [
        (((0.5, 0.5), TRANSITION, EMISSION), "initial has 2 entries, but transition is 3 by 3"),
        ((INITIAL, TRANSITION, EMISSION[:2]), "initial has 3 entries, but emission is 2 by 4"),
        ((INITIAL, TRANSITION[:, :1] * 0 + 1, EMISSION), "initial has 3 entries, but transition is 3 by 1"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            LazyHmmState(*args)
    with pytest.raises(ArgumentError, match="transition must be a matrix of probabilities whose rows each sum to 1"):
        check_arguments(PROCEDURES["make_lazy_hmm"], (INITIAL, TRANSITION.T, EMISSION))


def messages_computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list with one entry for each message from here on."""
    made: list[int] = []
    original = hidden_markov.joined

    def counting(message: np.ndarray, log_evidence: np.ndarray) -> tuple[np.ndarray, float]:
        made.append(1)
        return original(message, log_evidence)

    monkeypatch.setattr(hidden_markov, "joined", counting)
    return made


def test_in_order_of_time_an_emission_costs_few_messages_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = messages_computed(monkeypatch)
    state = LazyHmmState(INITIAL, TRANSITION, EMISSION)
    for t in range(300):
        state.log_predictive(1, t)
        state.add(1, t)
    assert len(made) <= 300
    # a sweep that draws each of them anew
    state.log_predictive(1, 0)
    made.clear()
    for t in range(300):
        state.remove(1, t)
        state.log_predictive(1, t)
        state.add(1, t)
    assert len(made) <= 3 * 300 + 10
