"""Kernels that look at some of the rows, in the program of `auto`: tried on a copy, and taken where they gain.

Seen to fail with a trial that passes over a kernel that gains, and with `subsampled_mh` unmarked.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.draws.draws import Draws
from venture_lite.errors import KernelError, VentureError
from venture_lite.session.auto import trials
from venture_lite.session.auto.composing import Composer
from venture_lite.session.auto.trials import tried

RNG = np.random.default_rng(4)
X = RNG.normal(size=(60, 2))
Y = (RNG.random(60) < 1 / (1 + np.exp(-X @ [1.0, -0.5]))).tolist()
LOGISTIC = """[assume w (multivariate_normal (zeros 2) (eye 2))]
for n in 1...60: [observe (bernoulli (logistic (dot w {X[n]}))) {Y[n]}]"""
ROBUST = """[assume w (normal 0 1)] [assume s (gamma 2 2)]
for n in 1...60: [observe (normal (* w {X[n, 1]}) s) {Y[n]}]"""


def session(program: str = LOGISTIC, **options: Any) -> Venture:
    v = Venture(seed=2, **options)
    v.execute(program, X=X, Y=Y)
    return v


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.session.auto.composing.MANY_ROWS", 50)
    monkeypatch.setattr("venture_lite.session.auto.running.PATHS", 0)
    monkeypatch.setattr(trials, "SECONDS", 0.02)


@pytest.fixture
def speeds(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Effective draws a second, by kernel."""
    found: dict[str, float] = {}

    def speed(copy: Any, program: str, start: str | None, is_limit: bool = False) -> float:
        return next(each for name, each in found.items() if f"({name} " in program)

    monkeypatch.setattr(trials, "_speed", speed)
    return found


def run(v: Venture, **options: Any) -> Draws:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return v.auto(draws=30, warmup=30, target_ess=1, chains=2, **options)


def test_one_linear_predictor_of_many_rows_is_seen() -> None:
    assert Composer(session().traces[0], 100).has_row_kernels()
    assert not Composer(session(ROBUST).traces[0], 100).has_row_kernels()


@pytest.mark.parametrize(("fly", "kernel"), [pytest.param(10.0, "nuts", marks=pytest.mark.slow), (100.0, "flymc")])
@pytest.mark.thorough
def test_what_gains_is_taken_and_the_text_gives_the_same_draws(
    fly: float, kernel: str, speeds: dict[str, float]
) -> None:
    speeds.update(nuts=20.0, flymc=fly)
    draws = run(session())
    assert draws.program is not None
    assert f"({kernel} (choices w 'smooth) all" in draws.program
    assert draws.preface is not None
    assert f"tried on a copy, in effective draws a second: paths at most 20, flymc {fly:.3g}" in draws.preface
    assert not draws.approximate
    again = session(chains=2).infer(draws.program).without_adaptation()
    np.testing.assert_array_equal(draws["w"], again["w"])


@pytest.mark.slow
def test_approximate_kernels_are_taken_only_where_asked_for_and_marked(speeds: dict[str, float]) -> None:
    speeds.update(nuts=1.0, flymc=3.0, subsampled_mh=100.0)
    assert "(flymc " in (run(session()).program or "")
    draws = run(session(), approximate=True)
    assert "(subsampled_mh (choices w 'smooth) all 500 0.01 'drift 1.7 'precondition 'proxy 10)" in (
        draws.program or ""
    )
    assert draws.approximate
    again = session(chains=2).infer(draws.program or "")
    np.testing.assert_array_equal(draws["w"], again["w"])


@pytest.mark.thorough
def test_a_model_without_such_a_kernel_is_told_of() -> None:
    draws = run(session(ROBUST), approximate=True)
    assert "no kernel is approximate: none is known for this model" in (draws.preface or "")
    assert not draws.approximate


@pytest.mark.thorough
def test_a_trial_makes_draws() -> None:
    """As it is, with a budget of a moment: whatever it takes is one of the two, and both moved."""
    draws = run(session())
    assert "tried on a copy" in (draws.preface or "")
    assert np.ptp(draws["w"]) > 0.0


def test_a_kernel_that_cannot_move_the_block_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def speed(copy: Any, program: str, start: str | None, is_limit: bool = False) -> float:
        if not is_limit:
            raise KernelError("no bound applies")
        return 1.0

    monkeypatch.setattr(trials, "_speed", speed)
    found = tried(lambda *_: None, "", "", {"flymc": ""})  # type: ignore[arg-type, return-value]
    assert found.chosen is None


def test_what_is_asked_for_is_a_truth_value() -> None:
    with pytest.raises(VentureError, match="approximate is True or False, got 'yes'"):
        session().auto(approximate="yes")  # type: ignore[arg-type]
