"""Whether `auto` tells of places that its chains did not come to."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tests.session.test_auto import LEVEL, TWO_MODES, draws_of, session
from venture_lite.session.auto.composing import MOST_OF_PATHS
from venture_lite.session.auto.places import elsewhere, places_line
from venture_lite.session.auto.running import AutoRun


@pytest.mark.thorough
def test_a_mode_that_no_chain_found_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """All four chains of this seed begin in the wide one's slope at -2, and agree; the mode at 4 is as high. What is
    followed to see it is no draw, and changes none."""
    monkeypatch.setattr("venture_lite.session.auto.running.PATHS", 0)
    alone = session(TWO_MODES).auto(draws=50, warmup=100, target_ess=20)
    monkeypatch.setattr("venture_lite.session.auto.running.PATHS", 10)
    with pytest.warns(match=r"of 10 paths leads? to where no chain was: x is [34]\.\d+ there, -2"):
        draws = session(TWO_MODES).auto(draws=50, warmup=100, target_ess=20)
    np.testing.assert_array_equal(draws["x"], alone["x"])
    assert draws["x"].max() < 0.0
    assert "10 paths from random starts were compared" in draws.preface
    assert "compared" not in alone.preface


@pytest.mark.thorough
def test_paths_that_there_is_no_time_to_follow_are_no_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is over when it has been seen where the paths begin. Seen to fail where that was told as a mode."""
    monkeypatch.setattr("venture_lite.session.auto.running.PATHS", 10)
    found: list[bool] = []

    def elsewhere_and_over(*given: Any) -> Any:
        found.append(True)
        return elsewhere(*given)

    monkeypatch.setattr(AutoRun, "_left", property(lambda run: -1.0 if found else 600.0))
    monkeypatch.setattr("venture_lite.session.auto.running.elsewhere", elsewhere_and_over)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draws = session(TWO_MODES).auto(draws=50, warmup=100, target_ess=20, seconds=600)
    assert "10 paths from random starts were not followed to the end: 600 s are over" in draws.preface


@pytest.mark.thorough
def test_paths_that_come_to_where_the_chains_are_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.session.auto.running.PATHS", 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "compared" in session(LEVEL).auto(draws=100, warmup=100, target_ess=50).preface


@pytest.mark.thorough
def test_fewer_paths_are_compared_where_each_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen to fail where all are followed."""
    # of so many numbers some differ between short chains
    monkeypatch.setattr("venture_lite.session.auto.judging.APART", 100.0)
    monkeypatch.setattr("venture_lite.session.auto.running.PATHS", 4)
    monkeypatch.setattr("venture_lite.session.auto.running.FEW_PATHS", 3)
    for size, paths in ((MOST_OF_PATHS - 1, 4), (MOST_OF_PATHS, 3)):
        v = session(
            f"[assume mu (normal 0 1)] [assume z (mem (lambda (i) (normal mu 1)))]for i in 1...{size}: [predict (z i)]",
            chains=2,
        )
        draws = v.auto(draws=20, warmup=20, target_ess=1)
        assert f"{paths} paths from random starts were compared" in draws.preface


def test_what_lies_elsewhere() -> None:
    """Further out than a standard deviation beyond all draws, in each draw of its own, and not far below all of them in
    density."""
    rng = np.random.default_rng(1)
    draws = draws_of(**{"a": rng.normal(size=(4, 500)), "(log_score)": rng.normal(size=(4, 500))})
    ends = {
        "a": np.array([[0.0, 9.0], [8.0, 9.0], [30.0, -30.0], [50.0, 50.0]]),
        "(log_score)": np.array([[0.0, 0.0], [0.0, 1.0], [0.0, -2.0], [0.0, -40.0]]),
    }
    found = elsewhere(draws, draws_of(**ends))
    assert [(path, found[path].value, found[path].log_density) for path in found] == [(1, 9.0, 1.0), (2, -30.0, -2.0)]
    assert places_line(found.values(), 16).startswith("2 of 16 paths lead to where no chain was: a is 9 there,")
