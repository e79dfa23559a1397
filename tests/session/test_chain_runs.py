"""Chains in processes of their own: the draws and the states of chains that run one after the other, whatever comes
between."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.generator.directives import random_program
from tests.generator.session import TRANSITIONS, check, infer, load
from venture_lite import Venture
from venture_lite.audit.snapshot import snapshot
from venture_lite.blocks import linear_block
from venture_lite.blocks.linear import Linear, linear_predictor
from venture_lite.errors import Disagreement, Source, VentureError, VentureWarning
from venture_lite.inference import progress
from venture_lite.inference.progress import Snapshot
from venture_lite.language.parse import parse_expression
from venture_lite.program.supplied import Parameters
from venture_lite.session import chain_runs, queries
from venture_lite.session.chain_processes import HAS_FORK
from venture_lite.session.chains import Given

pytestmark = pytest.mark.skipif(not HAS_FORK, reason="chains go to other processes by fork")

MIXTURE = """
[assume label (make_crp 1)]
[assume mean (mem (lambda (k) (normal 0 10)))]
[assume z (mem (lambda (i) (tag 'z i (label))))]
for i in 1...8: [observe (normal (mean (z i)) 1) {y[i]}]
"""
MOVES = "(repeat 8 (do (mh z one 3) (mh default one 5) (collect (z 1) (mean (z 2)))))"
DATA = np.array([1.0, 1.3, -4.0, 7.0, 6.2, 1.1, -4.4, 7.1])


@pytest.fixture(params=["here", "in processes"])
def apart(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether chains run in processes of their own."""
    run_apart(monkeypatch, request.param == "in processes")
    return bool(request.param == "in processes")


@pytest.fixture
def in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    run_apart(monkeypatch, True)


def run_apart(monkeypatch: pytest.MonkeyPatch, apart: bool) -> None:
    monkeypatch.setattr(chain_runs, "PATIENCE", 0.0 if apart else 1e9)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})


def mixture(chains: int = 3, **given: Any) -> Venture:
    v = Venture(seed=4, chains=chains, **given)
    v.execute(MIXTURE, y=DATA)
    return v


def everything(v: Venture, text: str = MOVES) -> Any:
    """Draws, states and generators of two inferences, one after the other."""
    found = []
    for _ in range(2):
        draws = v.infer(text)
        made = {name: values.tolist() for name, values in draws.items()}
        rows = [(row.chain, row.kernel, row.transitions, row.accepted) for row in draws.statistics]
        states = [(snapshot(model), model.trace.rng.bit_generator.state) for model in v.traces]
        found.append((made, rows, draws.could_move, states))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("kernels", ["compiled", "interpreted"])
def test_draws_and_states_are_those_of_chains_that_run_here(monkeypatch: pytest.MonkeyPatch, kernels: str) -> None:
    run_apart(monkeypatch, False)
    here = everything(mixture(kernels=kernels))
    run_apart(monkeypatch, True)
    apart = mixture(kernels=kernels)
    assert everything(apart) == here
    check(apart)


@pytest.mark.thorough
def test_the_chains_do_run_in_other_processes(in_processes: None) -> None:
    v = mixture()
    v.register("process", function=lambda x: os.getpid())
    pids = v.infer("(repeat 3 (do (mh default one 1) (collect (process (mean 1)))))")["(process (mean 1))"]
    assert len(set(pids[:, 0].tolist())) == 3
    assert pids[0, 0] == os.getpid()


def test_a_short_program_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_runs.ChainRuns, "_fork", lambda self: pytest.fail("a short program went elsewhere"))
    mixture().infer("(mh default one 10)")


@pytest.mark.parametrize(("seconds", "leaves"), [(0.001, False), (0.005, True)])
def test_many_short_chains_stay_here(monkeypatch: pytest.MonkeyPatch, seconds: float, leaves: bool) -> None:
    """By a clock that goes on by as many seconds at each look, of which a chain takes forty."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    ticks, forks = itertools.count(), []
    monkeypatch.setattr(chain_runs, "time", SimpleNamespace(monotonic=lambda: next(ticks) * seconds))
    monkeypatch.setattr(chain_runs.ChainRuns, "_fork", lambda runs: forks.append(len(runs._waiting)))
    v = Venture(seed=1, chains=20)
    v.assume("x", "(normal 0 1)")
    v.infer("(repeat 20 (mh default one 1))")
    assert forks == ([19] if leaves else [])


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_come_back_as_they_were_left(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    assert_comes_back(monkeypatch, seed)


@pytest.mark.thorough
def test_choices_by_name_come_back_with_what_belongs_to_them(in_processes: None) -> None:
    """Choices that go afterwards leave the scope."""
    v = Venture(seed=1, chains=2)
    v.execute("gone: [assume x (normal 0 1)] [assume k (flip)] [assume y (if k (normal 0 1) (flip))]")
    v.infer("(mh (choices) one 20)")
    check(v)
    v.forget("gone")
    check(v)


@pytest.mark.thorough
def test_rows_for_which_a_rejected_proposal_made_room_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen to fail where columns come back with less room than their tables."""
    assert_comes_back(monkeypatch, 3066, "[assume more (normal 0 1)]")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1300, 30))
def test_three_hundred_random_programs_come_back_as_they_were_left(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    for seed in range(first, first + 30):
        assert_comes_back(monkeypatch, seed)


def assert_comes_back(monkeypatch: pytest.MonkeyPatch, seed: int, more: str = "") -> None:
    text = f"(repeat 3 (do {' '.join(np.random.default_rng(seed).choice(TRANSITIONS, size=4))}))"
    states = []
    for apart in (False, True):
        run_apart(monkeypatch, apart)
        venture = load(random_program(seed), seed, chains=2)
        venture.execute(more)
        for _ in range(2):
            infer(venture, text)
            check(venture)
            # addresses of tables aside, which a process may number otherwise
            states.append([(venture.log_score(), snapshot(model)["scopes"]) for model in venture.traces])
    assert states[:2] == states[2:], f"program {seed}"


# ------------------------------------------------------------------------------------------------------- going on


@pytest.mark.thorough
def test_a_run_goes_on_and_is_as_one_long_run(apart: bool) -> None:
    whole = mixture()
    together = whole.infer(f"(repeat 5 {MOVES})")
    v = mixture()
    chains = v._runner.chains
    with queries.chain_runs(
        chains, parse_expression(Source("", MOVES)), Given(Parameters({})), v._runner.directory
    ) as runs:
        assert runs.more(2)["(z 1)"].shape == (3, 16)
        draws = runs.more(3)
    assert {name: draws[name].tolist() for name in draws} == {name: together[name].tolist() for name in together}
    assert [snapshot(model) for model in v.traces] == [snapshot(model) for model in whole.traces]


@pytest.mark.thorough
def test_chains_may_leave_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first run the last chain does, in the second all that are here: none is forgotten."""
    run_apart(monkeypatch, False)
    here, due = chain_runs.ChainRuns._here, [2, 0]

    def leaving(self: chain_runs.ChainRuns, index: int, times: int) -> Any:
        if due and index == due[0]:
            del due[0]
            self._due = 0.0
        return here(self, index, times)

    found = []
    for step in (leaving, here):
        monkeypatch.setattr(chain_runs.ChainRuns, "_here", step)
        v = mixture(chains=4)
        program, given = parse_expression(Source("", MOVES)), Given(Parameters({}))
        with queries.chain_runs(v._runner.chains, program, given, v._runner.directory) as runs:
            for _ in range(3):
                draws = runs.more()
        assert draws.chain_count == 4
        found.append({name: values.tolist() for name, values in draws.items()})
    assert not due
    assert found[0] == found[1]


# ---------------------------------------------------------------------------------------- registered procedures


class Count:
    """An exchangeable procedure whose class other processes know by its name."""

    def __init__(self, total: float) -> None:
        self.total, self.sum, self.count = total, 0, 0

    def set_arguments(self, arguments: tuple[float]) -> None:
        (self.total,) = arguments

    def simulate(self, rng: np.random.Generator) -> bool:
        return bool(rng.random() < self._probability())

    def _probability(self) -> float:
        return (self.sum + self.total) / (self.count + 2 * self.total)

    def log_predictive(self, value: bool) -> float:
        return float(np.log(self._probability() if value else 1 - self._probability()))

    def add(self, value: bool) -> None:
        self.sum, self.count = self.sum + value, self.count + 1

    def remove(self, value: bool) -> None:
        self.sum, self.count = self.sum - value, self.count - 1

    def log_joint(self) -> float:
        made = Count(self.total)
        total = 0.0
        for value in [True] * self.sum + [False] * (self.count - self.sum):
            total += made.log_predictive(value)
            made.add(value)
        return total


def with_count(kind: type[Any]) -> Venture:
    v = Venture(seed=2, chains=2)
    v.register("make_count", make=kind, arguments={"total": "positive"})
    v.execute("""
        [assume coin (make_count (gamma 1 1))]
        [assume toss (mem (lambda (i) (coin)))]
        for i in 1...5: [observe (bernoulli (if (toss i) 0.9 0.2)) true]
    """)
    return v


TOSSES = "(repeat 10 (do (mh default one 5) (collect (toss 1))))"


@pytest.mark.thorough
def test_registered_procedures_go_along(monkeypatch: pytest.MonkeyPatch) -> None:
    run_apart(monkeypatch, False)
    here = everything(with_count(Count), TOSSES)
    run_apart(monkeypatch, True)
    assert everything(with_count(Count), TOSSES) == here


@pytest.mark.thorough
def test_what_cannot_be_sent_runs_again_here_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    run_apart(monkeypatch, False)
    here = everything(with_count(Count), TOSSES)

    class Local(Count):
        pass

    run_apart(monkeypatch, True)
    with pytest.warns(VentureWarning, match="chain 1 runs again here, for what its process has cannot be sent"):
        assert everything(with_count(Local), TOSSES) == here


# ------------------------------------------------------------------------------------------- what chains say


def test_prints_and_warnings_come_chain_by_chain(apart: bool, capsys: pytest.CaptureFixture[str]) -> None:
    v = Venture(seed=1, chains=3)
    v.execute("[assume x (normal 0 1)] [assume y (normal x 1)]")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        v.infer("(repeat 2 (do (mh y all 1) (mh x all 0) (print x) (collect y)))")
    lines = capsys.readouterr().out.splitlines()
    assert [lines[i] == lines[i + 1] for i in (0, 2, 4)] == [True] * 3
    assert len(set(lines)) == 3
    assert len([warning for warning in caught if "moved by no kernel" in str(warning.message)]) == 1


def test_a_reading_that_differs_is_told_as_what_it_is(apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from a process, and once for all chains that say the same."""

    def wrong(*given: Any) -> Linear:
        found = linear_predictor(*given)
        return replace(found, features=2.0 * found.features)

    monkeypatch.setattr(linear_block, "linear_predictor", wrong)
    v = Venture(seed=1, chains=2)
    v.execute("[assume x (normal 0 1)] for n in 1...3: [observe (normal (* n x) 1) 1]")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        v.infer("(repeat 20 (do (flymc default all auto 'map 0.1 'drift 1 1) (collect x)))")
    said = "linear predictors of x: a fast way differs from the interpreter"
    assert [warning.category for warning in caught if str(warning.message).startswith(said)] == [Disagreement]


@pytest.mark.thorough
def test_progress_is_told_of_every_chain(in_processes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(progress, "REFRESH_SECONDS", 0.01)
    shown: list[tuple[int, Snapshot | None]] = []

    def show(chain: int, snapshot: Snapshot | None) -> None:
        shown.append((chain, snapshot))

    v = Venture(seed=1, chains=3, progress=progress.Tracker(lambda snapshot: None, show_chain=show))
    v.execute("[assume x (normal 0 1)] [observe (normal x 1) 1]")
    v.infer("(repeat 400 (do (mh default one 10) (collect x)))")
    told = [(chain, snapshot) for chain, snapshot in shown if snapshot is not None]
    assert {chain for chain, _ in told} == {0, 1, 2}
    assert all(snapshot.total == 400 and "/s" in snapshot.told() for _, snapshot in told if snapshot.done)
    assert list(dict(shown).values()) == [None] * 3


# --------------------------------------------------------------------------------------------------------- errors


def failing(v: Venture, where: Callable[[], bool], fail: Callable[[], Any]) -> Venture:
    """A session with a procedure that fails where it is called in the tenth draw."""
    calls = [0]

    def identity(x: float) -> float:
        calls[0] += 1
        if calls[0] == 10 and where():
            fail()
        return x

    v.register("through", function=identity)
    v.execute("[assume x (normal 0 1)] [observe (normal x 1) 1]")
    return v


@pytest.mark.thorough
def test_an_error_in_a_process_is_raised_with_its_place_and_the_draws(in_processes: None) -> None:
    here = os.getpid()

    def fail() -> None:
        raise ValueError("ten is too many")

    v = failing(Venture(seed=1, chains=2), lambda: os.getpid() != here, fail)
    with pytest.raises(VentureError, match="ten is too many") as caught:
        v.infer("(repeat 20000 (do (mh default all 1) (collect (through x))))")
    assert caught.value.span is not None
    assert caught.value.span.text == "(through x)"
    assert len(caught.value.draws.by_chain("(through x)")[1]) == 9  # type: ignore[attr-defined]
    check(v)
    assert v.infer("(repeat 5 (do (mh default all 1) (collect x)))")["x"].shape == (2, 5)


@pytest.mark.thorough
def test_a_process_that_is_killed_leaves_the_other_chains_their_draws(in_processes: None) -> None:
    here = os.getpid()
    v = failing(
        Venture(seed=1, chains=3),
        lambda: os.getpid() != here and _is_of_chain(1),
        lambda: os.kill(os.getpid(), signal.SIGKILL),
    )
    with pytest.raises(VentureError, match=r"chain 1: its process \d+ was killed by SIGKILL") as caught:
        v.infer("(repeat 50 (do (mh default all 1) (collect (through x))))")
    lengths = [len(values) for values in caught.value.draws.by_chain("(through x)")]  # type: ignore[attr-defined]
    assert lengths == [50, 0, 50]
    check(v)


def _is_of_chain(index: int) -> bool:
    """Whether this process was forked for a chain of its session."""
    name = multiprocessing.current_process().name
    return name.endswith(f"chain {index}")


@pytest.mark.thorough
def test_ctrl_c_stops_all_chains_and_keeps_their_draws(in_processes: None) -> None:
    v = mixture()
    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as caught:
        v.infer("(repeat 1000000 (do (mh default one 5) (collect (z 1))))")
    assert time.monotonic() - started < 8
    draws = caught.value.draws  # type: ignore[attr-defined]
    assert min(len(values) for values in draws.by_chain("(z 1)")) > 0
    # each chain stands at its last whole transition, which may be one after its last draw
    check(v)
    assert len(v.sample("(z 1)")) == 3


@pytest.mark.thorough
def test_chains_leave_while_the_first_is_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start may take long, too. The draws are those of one after the other."""
    draws, notes = [], []
    fork = chain_runs.ChainRuns._fork

    def noting(self: chain_runs.ChainRuns) -> None:
        notes.append(len(self._runs[0].program.notes))
        fork(self)

    monkeypatch.setattr(chain_runs.ChainRuns, "_fork", noting)
    for patience in (0.0, 1e6):
        monkeypatch.setattr(chain_runs, "PATIENCE", patience)
        v = Venture(seed=1, chains=3)
        v.execute("[assume mu (normal 0 10)] [observe (normal mu 1) 2.9]")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draws.append(v.auto(draws=20, warmup=20, target_ess=1.0, collect=["mu"])["mu"])
    # nothing that begins a chain had ended
    assert notes[0] == 0
    np.testing.assert_array_equal(*draws)
