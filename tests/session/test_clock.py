"""Time that is over ends a run wherever it is: within a trajectory, an enumeration and a search, too."""

from __future__ import annotations

import time
import warnings

import pytest

from venture_lite import Venture, VentureWarning
from venture_lite.audit.invariants import check
from venture_lite.errors import Source
from venture_lite.language.parse import parse_expression
from venture_lite.program.supplied import Parameters
from venture_lite.session import chain_runs, queries
from venture_lite.session.chains import Given

PROGRAM = """[assume m (normal 0 1)] [assume s (gamma 2 2)] [assume z (mem (lambda (i) (tag 'z i (flip 0.3))))]
    for i in 1...16: [observe (normal (+ m (z i)) s) (* 0.1 i)]"""
LONG = {
    "draws": "(repeat 100000 (do (mh default one 1) (collect m)))",
    "a path of a fixed length": "(hmc (choices m s) all 1e-6 10000000 1)",
    "paths that turn back nowhere": "(repeat 1000 (nuts (choices m s) all 'step 1e-7 1))",
    "an enumeration": "(gibbs z all 1)",
    "particles": "(smc 20 'tempered 'runs 1000 (mh default one 5))",
    "a search": "(pathfinder (choices m s) all 'paths 100000)",
    "a fit": "(vi (choices m s) all 100000)",
}


class Clock:
    """Each look takes a millisecond."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.mark.parametrize("name", LONG)
def test_what_takes_long_ends_when_the_time_is_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    v = Venture(seed=1)
    v.execute(PROGRAM)
    monkeypatch.setattr(time, "monotonic", Clock())
    expression, given = parse_expression(Source("<clock>", LONG[name])), Given(Parameters({}))
    with queries.chain_runs(v._runner.chains, expression, given, v._runner.directory, until=0.15) as runs:
        draws = runs.more()
    assert len(draws.get("m", ())) == 0 or 0 < draws["m"].shape[1] < 1000
    check(v.traces[0])
    # what comes later goes on
    monkeypatch.undo()
    assert v.infer("(repeat 5 (do (mh default one 1) (collect m)))")["m"].shape[1] == 5


@pytest.mark.parametrize(("seconds", "told"), [(2.0, "too short for a warm-up"), (20.0, "s are over after")])
def test_auto_gives_what_it_has(seconds: float, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    v = Venture(seed=1, chains=2)
    v.execute("[assume m (normal 0 1)] [observe (normal m 1) 2]")
    monkeypatch.setattr(chain_runs, "HAS_FORK", False)
    monkeypatch.setattr(time, "monotonic", Clock())
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always", VentureWarning)
        draws = v.auto(draws=10_000, warmup=400, seconds=seconds)
    assert any(told in str(each.message) for each in met), [str(each.message) for each in met]
    (length,) = set(draws.lengths().values())
    # what the warm-up leaves is marked
    assert (draws.adapting[0].get("m") == length) == (seconds < 10)
    assert " then 0: 0 s" not in str(draws.summary())
    for trace in v.traces:
        check(trace)
