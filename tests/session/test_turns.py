"""Chains that are more than the processors: who may run at which time, and that draws do not depend on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.session import chain_runs, turns
from venture_lite.session.chain_processes import HAS_FORK
from venture_lite.session.turns import SECONDS, ChainTurns


class Clock:
    """A clock that is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.25
        monkeypatch.setattr(turns.time, "monotonic", lambda: self.now)


def begun(monkeypatch: pytest.MonkeyPatch, chains: int, processors: int) -> tuple[Clock, ChainTurns]:
    monkeypatch.setattr(turns, "processors", lambda: processors)
    clock = Clock(monkeypatch)
    made = ChainTurns(chains)
    for index in range(chains):
        made.begin(index)
    return clock, made


def runs_at(clock: Clock, made: ChainTurns, now: float, chains: int) -> list[int]:
    """The chains that may run at a time, each of which looks anew."""
    clock.now, found = now, []
    for index in range(chains):
        made._look_at = 0.0
        if not made.seconds_until(index):
            found.append(index)
    return found


@pytest.mark.parametrize(("chains", "processors"), [(4, 2), (3, 2), (5, 2), (4, 3), (8, 3)])
def test_as_many_run_as_there_are_processors_each_as_long_as_the_others(
    monkeypatch: pytest.MonkeyPatch, chains: int, processors: int
) -> None:
    clock, made = begun(monkeypatch, chains, processors)
    times = [2000 + 0.5 * SECONDS + SECONDS * turn for turn in range(chains)]
    running = [runs_at(clock, made, now, chains) for now in times]
    assert all(len(each) == processors for each in running)
    assert np.bincount(np.concatenate(running)).tolist() == [processors] * chains


@pytest.mark.parametrize(("chains", "processors"), [(2, 2), (3, 8), (1, 1)])
def test_nobody_waits_where_there_is_room(monkeypatch: pytest.MonkeyPatch, chains: int, processors: int) -> None:
    clock, made = begun(monkeypatch, chains, processors)
    for turn in range(4):
        assert len(runs_at(clock, made, 2000 + SECONDS * (turn + 0.5), chains)) == chains


def test_chains_that_end_or_are_lost_leave_their_turns_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, made = begun(monkeypatch, 4, 2)
    made.end(1)
    made.end(2)
    assert all(set(runs_at(clock, made, 2000 + SECONDS * (turn + 0.5), 4)) >= {0, 3} for turn in range(4))


def test_one_that_waits_is_told_how_long_and_one_that_runs_does_not_look_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, made = begun(monkeypatch, 4, 2)
    # at first all run
    assert [made.seconds_until(index) for index in range(4)] == [0.0] * 4
    running = runs_at(clock, made, 2000 + 0.25 * SECONDS, 4)
    for index in set(range(4)).difference(running):
        made._look_at = 0.0
        assert made.seconds_until(index) == pytest.approx(0.75 * SECONDS)
    runs_at(clock, made, 2000 + 0.25 * SECONDS, 4)
    before = made._look_at = clock.now + 0.1 * SECONDS
    assert made.seconds_until(running[0]) == 0.0
    assert made._look_at == before
    # never beyond the turn's end
    made._look_at, clock.now = 0.0, 2000 + SECONDS - 1e-3
    assert made.seconds_until(running[0]) == 0.0
    assert made._look_at == pytest.approx(2000 + SECONDS)


@pytest.mark.thorough
@pytest.mark.skipif(not HAS_FORK, reason="chains go to other processes by fork")
def test_draws_are_those_without_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    for seconds, processors in ((0.01, 2), (1.0, 9)):
        monkeypatch.setattr(chain_runs, "PATIENCE", 0.0)
        monkeypatch.setattr(turns, "SECONDS", seconds)
        monkeypatch.setattr(turns, "processors", lambda processors=processors: processors)
        monkeypatch.setattr(chain_runs, "processors", lambda: 2)
        v = Venture(seed=1, chains=4)
        v.execute("[assume mu (normal 0 10)] [observe (normal mu 1) 2.9]")
        found.append(v.infer("(repeat 300 (do (mh default one 5) (collect mu)))")["mu"])
    np.testing.assert_array_equal(*found)
