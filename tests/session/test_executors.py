"""Chains that an executor runs: the draws and the states of chains that run here, whatever comes between."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.generator.directives import random_program
from tests.generator.session import TRANSITIONS, check, infer, load
from tests.session.test_chain_runs import DATA, MIXTURE, MOVES, Count, everything
from venture_lite import Venture
from venture_lite.audit.snapshot import snapshot
from venture_lite.errors import ArgumentError, Source, VentureError, VentureWarning
from venture_lite.inference import progress
from venture_lite.inference.progress import Silent, Snapshot
from venture_lite.language.parse import parse_expression
from venture_lite.program.supplied import Parameters
from venture_lite.session import queries
from venture_lite.session.chain_processes import HAS_FORK, ChainLost
from venture_lite.session.chains import Chains, Given
from venture_lite.session.executors import contact, crew, member
from venture_lite.session.executors.parcel import Packer, Work, unpack

forks = pytest.mark.skipif(not HAS_FORK, reason="the test's own executor forks")


class Forking(Executor):
    """A process for each task, and a task that comes to nothing where its process is killed: as a cluster does, it goes
    on with the others."""

    def __init__(self) -> None:
        self.processes: list[Any] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        process = multiprocessing.get_context("fork").Process(target=fn, args=args, kwargs=kwargs, daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        self.processes.append(process)
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        threading.Thread(target=lambda: (process.join(), future.set_result(None)), daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for process in self.processes:
            process.kill()
            process.join()


@pytest.fixture
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture
def forking() -> Iterator[Forking]:
    with Forking() as executor:
        yield executor


def mixture(executor: Executor | None, chains: int = 3, **given: Any) -> Venture:
    v = Venture(seed=4, chains=chains, executor=executor, **given)
    v.execute(MIXTURE, y=DATA)
    return v


# --------------------------------------------------------------------------------------------------------- the same


@pytest.mark.thorough
@pytest.mark.parametrize("kernels", ["compiled", "interpreted"])
def test_draws_and_states_are_those_of_chains_that_run_here(threads: Executor, kernels: str) -> None:
    apart = mixture(threads, kernels=kernels)
    assert everything(apart) == everything(mixture(None, kernels=kernels))
    check(apart)


@pytest.mark.thorough
def test_processes_that_share_nothing_draw_the_same(tmp_path: Path) -> None:
    """Seen to fail where a parcel leaves out the generator's state, the blocks of tagged scopes, or the entries of memo
    tables."""
    shift = 1.5

    def session(executor: Executor | None) -> Venture:
        v = Venture(seed=4, chains=2, executor=executor)
        # a closure, and a function that no module has
        v.register("moved", function=lambda x: x + shift)
        v.execute(MIXTURE.replace("(mean (z i))", "(moved (mean (z i)))"), y=DATA)
        return v

    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        v = session(executor)
        assert everything(v) == everything(session(None))
        v.execute("[assume more (normal 0 1)] [observe (normal more 1) 2]")
        assert v.infer("(repeat 3 (do (mh default one 5) (collect more)))")["more"].shape == (2, 3)
    check(v)


@pytest.mark.thorough
def test_auto_is_as_it_is_here(threads: Executor) -> None:
    def drawn(executor: Executor | None) -> Any:
        v = Venture(seed=1, executor=executor)
        v.execute("[assume mu (normal 0 1)] for i in 1...3: [observe (normal mu 1) {y[i]}]", y=[1.0, 2.0, 0.5])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VentureWarning)
            draws = v.auto(draws=50, chains=2, warmup=30, target_ess=1, collect=["mu"])
        return draws["mu"].tolist(), draws.program, v.report("mu")

    assert drawn(threads) == drawn(None)


def test_each_thread_keeps_its_own_output(threads: Executor, capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout
    v = Venture(seed=1, chains=3, executor=threads)
    v.execute("[assume x (normal 0 1)] [assume y (normal x 1)]")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        v.infer("(repeat 2 (do (mh y all 1) (mh x all 0) (print x) (collect y)))")
    lines = capsys.readouterr().out.splitlines()
    assert [lines[i] == lines[i + 1] for i in (0, 2, 4)] == [True] * 3
    assert len(set(lines)) == 3
    assert len([warning for warning in caught if "moved by no kernel" in str(warning.message)]) == 1
    assert sys.stdout is before


def test_what_every_chain_warns_of_is_said_once(threads: Executor) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture(threads).infer("(mh nothing one 1)")
    assert len([warning for warning in caught if "nothing is empty" in str(warning.message)]) == 1


def test_progress_is_told_of_every_chain(threads: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(progress, "REFRESH_SECONDS", 0.01)
    shown: list[tuple[int, Snapshot | None]] = []

    def show(chain: int, found: Snapshot | None) -> None:
        shown.append((chain, found))

    v = Venture(seed=1, chains=3, executor=threads, progress=progress.Tracker(lambda found: None, show_chain=show))
    v.execute("[assume x (normal 0 1)] [observe (normal x 1) 1]")
    v.infer("(repeat 400 (do (mh default one 10) (collect x)))")
    assert {chain for chain, found in shown if found is not None and found.total == 400} == {0, 1, 2}
    assert list(dict(shown).values()) == [None] * 3


# --------------------------------------------------------------------------------------------------------- parcels


def packed_again(v: Venture, text: str) -> list[tuple[Chains, Any]]:
    """Each chain of a session, made anew of its parcel."""
    chains, work = v._runner.chains, Work.of(parse_expression(Source("", text)), None, Given(Parameters({})))
    packer, made = Packer(chains, v._runner.directory, work), []
    for index, seed in enumerate(chains.seeds):
        parcel = packer.pack(index)
        other = Chains([seed], chains.count, index, chains.limits, Silent(), chains.kernels)
        arrays = {digest: packer.parts[digest] for digest in parcel.arrays}
        program = packer.parts[parcel.program]
        assert isinstance(program, bytes)
        made.append((other, unpack(program, parcel.chain, arrays, other)))  # type: ignore[arg-type]
    return made


def assert_is_made_anew(seed: int) -> None:
    text = f"(repeat 2 (do {' '.join(np.random.default_rng(seed).choice(TRANSITIONS, size=4))}))"
    v = load(random_program(seed), seed, chains=2)
    for _ in range(2):
        made = packed_again(v, text)
        assert [snapshot(other.models[0]) for other, _ in made] == [snapshot(model) for model in v.traces]
        for other, (directory, work) in made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                queries.infer(other, work.expression, Given(Parameters({})), directory)
        infer(v, text)
        assert [snapshot(other.models[0]) for other, _ in made] == [snapshot(model) for model in v.traces]
        states = [model.trace.rng.bit_generator.state for model in v.traces]
        assert [other.models[0].trace.rng.bit_generator.state for other, _ in made] == states


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2))
def test_random_programs_are_made_anew_as_they_stand(seed: int) -> None:
    assert_is_made_anew(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2000, 2060, 10))
def test_sixty_random_programs_are_made_anew_as_they_stand(first: int) -> None:
    for seed in range(first, first + 10):
        assert_is_made_anew(seed)


def with_procedures(v: Venture) -> None:
    scale = 1.5
    v.register(
        "tilt",
        simulate=lambda rng, m: float(rng.normal(m, scale)),
        log_density=lambda x, m: -0.5 * ((x - m) / scale) ** 2 - float(np.log(scale)),
        domain="real",
    )
    v.register("make_count", make=Count, arguments={"total": "positive"})


FORMS = {
    "queries": (
        """[assume p (beta 1 1)]
        [assume literal (mem (lambda (u) (enumerate (lambda () (let ((w (categorical (list p (- 1 p)) (list 1 2))))
            (begin (condition (or (= u w) (flip 0.3))) w))))))]
        [assume s (mem (lambda (i) (draw (literal i))))] [observe (s 1) 1] [predict (s 2)]""",
        "(do (mh default one 5) (gibbs (choices s) one 2) (collect p (s 2)))",
    ),
    "choices by name": (
        """[assume m (mem (lambda (g) (normal 0 1)))] [assume sd (gamma 1 1)]
        for i in 1...8: [observe (normal (m (- i (* 3 (floor (/ i 3))))) sd) {y[i]}]""",
        "(do (nuts (choices m sd 'smooth) all 'adapt 20 2) (mh (choices m) one 4) (collect (m 1) sd))",
    ),
    "factors": (
        """[assume b (flat)] [assume s (flat 0)] [assume t (truncated (normal 0 1) 0 none)]
        [factor (- 0 s)] [condition (> (+ b 3) 0)] for i in 1...8: [observe (normal b (+ s t)) {y[i]}]""",
        "(do (mh default each 'drift 0.3 2) (slice default one 1 10 2) (collect b s t))",
    ),
    "components": (
        """[assume w (dirichlet (vector 1 1))] [assume m (mem (lambda (k) (normal 0 2)))]
        for i in 1...8: [observe (finite_mixture w (normal (vector (m 0) (m 1)) 1)) {y[i]}]
        [assume d (make_dp 1 (lambda () (normal 0 1)))] [predict (d)] [predict (d)]""",
        "(do (mh default one 9) (collect w (m 1)))",
    ),
    "registered": (
        """[assume m (tilt 0)] [assume coin (make_count (gamma 1 1))] [assume toss (mem (lambda (i) (coin)))]
        for i in 1...8: [observe (normal (if (toss i) m 2) 1) {y[i]}]""",
        "(do (mh default one 9) (collect m (toss 1)))",
    ),
    "data that go": (
        """[assume label (make_crp 1)] [assume z (mem (lambda (i) (tag 'z i (label))))]
        [assume component (mem (lambda (k) (make_normal_inv_chi_sq 0 1 1 1)))]
        for i in 1...8: [observe ((component (z i))) {y[i]}]""",
        "(do (anneal z 'linear 1 (gibbs z one 3)) (split_merge z 2) (collect (z 1)))",
    ),
    "states in order": (
        """[assume row (mem (lambda (s) (dirichlet (vector 1 1))))]
        [assume x (mem (lambda (t) (tag 'x t (if (= t 0) 0 (categorical (row (x (- t 1))))))))]
        [assume mu (mem (lambda (s) (normal 0 5)))] for t in 1...8: [observe (normal (mu (x t)) 1) {y[t]}]""",
        "(do (pgibbs x ordered 5 1) (mh default one 10) (collect (mu 0)))",
    ),
}


LONGER = ("components", "data that go", "states in order")


@pytest.mark.thorough
@pytest.mark.parametrize("form", [pytest.param(form, marks=[pytest.mark.slow] * (form in LONGER)) for form in FORMS])
def test_every_form_goes_as_it_stands(threads: Executor, form: str) -> None:
    """Seen to fail where memo tables go without their entries."""
    text, moves = FORMS[form]

    def drawn(executor: Executor | None) -> Any:
        v = Venture(seed=3, chains=2, executor=executor)
        with_procedures(v)
        v.execute(text, y=DATA)
        return everything(v, f"(repeat 3 {moves})")

    assert drawn(threads) == drawn(None)


def assert_comes_back(seed: int, executor: Executor) -> None:
    text = f"(repeat 3 (do {' '.join(np.random.default_rng(seed).choice(TRANSITIONS, size=4))}))"
    states = []
    for runs_here in (True, False):
        v = load(random_program(seed), seed, chains=2)
        v._runner.chains.executor = None if runs_here else crew.InExecutor(executor)
        for _ in range(2):
            infer(v, text)
            check(v)
            states.append([(snapshot(model), model.trace.rng.bit_generator.state) for model in v.traces])
            # what comes later is numbered alike
            v.execute("[predict (normal 0 1)]")
    assert states[:2] == states[2:], f"program {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(3000, 3040, 20))
def test_forty_random_programs_come_back_as_they_were_left(first: int, threads: Executor) -> None:
    for seed in range(first, first + 20):
        assert_comes_back(seed, threads)


def test_program_and_data_go_once_to_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    plain = crew.Crew._say

    def say(self: Any, to: Any, message: Any) -> None:
        if isinstance(message, crew.Parts):
            sent.append(len(message.found))
        plain(self, to, message)

    monkeypatch.setattr(crew.Crew, "_say", say)
    monkeypatch.setattr(member, "_KEPT", member._Kept())
    rng = np.random.default_rng(1)
    with ThreadPoolExecutor(1) as executor:
        v = Venture(seed=1, chains=3, executor=executor)
        v.execute("[assume mu (normal 0 1)] for i in 1...1000: [observe (normal mu 1) {y[i]}]", y=rng.normal(size=1000))
        v.infer("(mh default one 1)")
        # the program and the data; later inferences have another program, and the same data
        assert sent == [2]
        v.infer("(mh default one 2)")
    assert sent == [2, 1]


def test_no_two_calls_are_equal(threads: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster takes equal calls for one: seen to fail where tasks have no number."""
    given: list[Any] = []
    plain = threads.submit
    monkeypatch.setattr(threads, "submit", lambda *call: (given.append(call), plain(*call))[1])
    mixture(threads).infer("(mh default one 1)")
    assert len(set(given)) == len(given) == 3


# ------------------------------------------------------------------------------------------------------------ losses


def dying(executor: Executor | None, folder: Path, times: int, number: int = signal.SIGKILL) -> Venture:
    """A session of which the fortieth draw of chain 1 ends its process, so many times; or sends it another signal."""

    def through(x: float) -> float:
        if folder.exists() and multiprocessing.parent_process() is not None and x == marked:
            ended = len(list(folder.iterdir()))
            if ended < times:
                (folder / str(ended)).touch()
                time.sleep(0.1)
                os.kill(os.getpid(), number)
        return x

    v = Venture(seed=1, chains=3)
    v.execute("[assume x (normal 0 1)] [observe (normal x 1) 1]")
    marked = float(v.infer(DRAWS.replace("(through x)", "x"))["x"][1, 39])
    v = Venture(seed=1, chains=3, executor=executor)
    v.register("through", function=through)
    v.execute("[assume x (normal 0 1)] [observe (normal x 1) 1]")
    return v


def quietly(v: Venture) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VentureWarning)
        v.infer(DRAWS)


DRAWS = "(repeat 60 (do (mh default all 'drift 0.5 4) (collect (through x))))"


@pytest.mark.thorough
@forks
def test_a_chain_whose_worker_is_killed_begins_anew_elsewhere(tmp_path: Path, forking: Forking) -> None:
    """Seen to fail where a parcel leaves out the generator's state."""
    here = dying(None, tmp_path / "none", 0)
    expected = here.infer(DRAWS)
    v = dying(forking, tmp_path, 1)
    with pytest.warns(VentureWarning, match=r"chain 1: process \d+ on .* is gone; the chain begins anew elsewhere"):
        draws = v.infer(DRAWS)
    assert draws["(through x)"].tolist() == expected["(through x)"].tolist()
    assert [snapshot(model) for model in v.traces] == [snapshot(model) for model in here.traces]


@pytest.mark.thorough
@forks
def test_a_chain_whose_worker_falls_silent_begins_anew_elsewhere(
    tmp_path: Path, forking: Forking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member, "SECONDS_BETWEEN_WORDS", 0.05)
    monkeypatch.setattr(crew, "SILENT_SECONDS", 1.0)
    monkeypatch.setattr(crew, "LOOK_SECONDS", 0.1)
    expected = dying(None, tmp_path / "none", 0).infer(DRAWS)
    v = dying(forking, tmp_path, 1, signal.SIGSTOP)
    with pytest.warns(VentureWarning, match=r"chain 1: .* has said nothing for 1 s; the chain begins anew elsewhere"):
        draws = v.infer(DRAWS)
    assert draws["(through x)"].tolist() == expected["(through x)"].tolist()


@pytest.mark.thorough
@forks
def test_chains_that_wait_for_more_are_run_again_where_their_workers_go(forking: Forking) -> None:
    """Seen to fail where a chain that begins anew is asked for its latest runs alone."""

    def drawn(executor: Executor | None, between: Callable[[], None]) -> Any:
        v = mixture(executor, chains=2)
        program, given = parse_expression(Source("", MOVES)), Given(Parameters({}))
        with queries.chain_runs(v._runner.chains, program, given, v._runner.directory) as runs:
            runs.more(2)
            between()
            draws = runs.more(3)
            between()
        return draws["(z 1)"].tolist(), [snapshot(model) for model in v.traces]

    def kill() -> None:
        for process in forking.processes:
            process.kill()
            process.join()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VentureWarning)
        assert drawn(forking, kill) == drawn(None, lambda: None)


@pytest.mark.thorough
@forks
def test_a_chain_that_ends_every_worker_is_given_up_with_its_draws(
    tmp_path: Path, forking: Forking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member, "SECONDS_BETWEEN_WORDS", 0.02)
    v = dying(forking, tmp_path, 9)
    before = [snapshot(model) for model in v.traces]
    with pytest.raises(ChainLost, match=r"chain 1: process \d+ on .* is gone, as were 2 before it") as caught:
        quietly(v)
    drawn = caught.value.draws.by_chain("(through x)")  # type: ignore[attr-defined]
    assert [len(values) for values in drawn] == [60, 39, 60]
    assert snapshot(v.traces[1]) == before[1]
    check(v)


@pytest.mark.thorough
@forks
def test_a_pool_that_is_broken_says_so_and_keeps_the_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "SECONDS_BETWEEN_WORDS", 0.02)
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as executor:
        v = dying(executor, tmp_path, 9)
        with pytest.raises(ChainLost, match="BrokenProcessPool") as caught:
            quietly(v)
        # chain 0 was done, chain 2 had not begun
        drawn = caught.value.draws.by_chain("(through x)")  # type: ignore[attr-defined]
        assert [len(values) for values in drawn] == [60, 39, 0]
        with pytest.raises(VentureError, match="the executor takes no tasks: BrokenProcessPool") as again:
            v.infer(DRAWS)
        assert "make another one" in str(again.value)


@pytest.mark.thorough
def test_an_executor_that_is_shut_down_is_an_error_and_nothing_is_lost() -> None:
    executor = ThreadPoolExecutor(2)
    v = mixture(executor)
    v.infer("(mh default one 1)")
    before = [snapshot(model) for model in v.traces]
    executor.shutdown()
    with pytest.raises(VentureError, match="the executor takes no tasks: RuntimeError: cannot schedule") as caught:
        v.infer("(repeat 5 (do (mh default one 1) (collect (z 1))))")
    assert "make another one" in str(caught.value)
    assert [snapshot(model) for model in v.traces] == before


@pytest.mark.thorough
def test_an_error_in_one_chain_ends_the_others_with_their_draws(threads: Executor) -> None:
    v = Venture(seed=1, chains=2, executor=threads)
    calls = [0]

    def through(x: float) -> float:
        calls[0] += 1
        if calls[0] == 10:
            raise ValueError("ten is too many")
        return x

    # by value, so that each chain counts for itself
    v.register("through", function=through)
    v.execute("[assume x (normal 0 1)] [observe (normal x 1) 1]")
    with pytest.raises(VentureError, match="ten is too many") as caught:
        v.infer("(repeat 20000 (do (mh default all 1) (collect (through x))))")
    assert caught.value.span is not None
    assert caught.value.span.text == "(through x)"
    # whichever chain came to it first
    assert max(map(len, caught.value.draws.by_chain("(through x)"))) == 9  # type: ignore[attr-defined]
    check(v)
    assert v.infer("(repeat 5 (do (mh default all 1) (collect x)))")["x"].shape == (2, 5)


@pytest.mark.thorough
def test_an_interruption_reaches_the_chains_and_keeps_their_draws(threads: Executor) -> None:
    v = mixture(threads)
    timer = threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        v.infer("(repeat 1000000 (do (mh default one 5) (collect (z 1))))")
    timer.join()
    # two at work, and one that had not begun
    lengths = [len(values) for values in caught.value.draws.by_chain("(z 1)")]  # type: ignore[attr-defined]
    assert sorted(length > 0 for length in lengths) == [False, True, True]
    check(v)


@pytest.mark.thorough
def test_that_nothing_begins_is_said_and_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    class Idle(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            return Future()

    monkeypatch.setattr(crew, "WAITING_SECONDS", 0.0)
    monkeypatch.setattr(crew, "LOOK_SECONDS", 0.05)
    v = mixture(Idle())
    timer = threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(VentureWarning, match="the executor has begun nothing for"), pytest.raises(KeyboardInterrupt):
        v.infer("(mh default one 1)")
    timer.join()
    check(v)


# ---------------------------------------------------------------------------------------------------- what does not go


def test_what_cannot_be_sent_runs_here_and_it_is_said(threads: Executor) -> None:
    lock = threading.Lock()

    def through(x: float) -> float:
        with lock:
            return x

    v = Venture(seed=1, chains=2, executor=threads)
    v.register("through", function=through)
    v.execute("[assume x (normal 0 1)] [observe (normal (through x) 1) 1]")
    with pytest.warns(VentureWarning, match=r"the chains run here, for what .* cannot be sent: cannot pickle '_thread"):
        draws = v.infer("(repeat 3 (do (mh default all 1) (collect x)))")
    assert draws["x"].shape == (2, 3)


def test_inferences_in_loops_run_here_and_it_is_said(threads: Executor) -> None:
    def drawn(executor: Executor | None) -> Any:
        v = Venture(seed=1, chains=2, executor=executor)
        text = "[assume x (normal 0 1)] for t in 1...2: [infer (repeat 2 (do (mh default all 1) (collect x)))]"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = v.execute(text)[-1][-1][-1]["x"].tolist()
        return found, [str(warning.message) for warning in caught]

    found, said = drawn(threads)
    assert (found, []) == drawn(None)
    assert set(said) == {"the chains run here: an inference inside of a loop goes to no executor"}


def test_what_is_no_action_has_its_value(threads: Executor) -> None:
    assert Venture(seed=1, chains=2, executor=threads).infer("(+ 1 2)") == [3, 3]


@pytest.mark.thorough
def test_other_versions_are_refused(threads: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "versions", lambda: {**crew.versions(), "numpy": "1.0"})
    monkeypatch.setattr(crew, "LOOK_SECONDS", 0.05)
    with pytest.raises(VentureError, match=r"process \d+ on .* has numpy 1\.0, and here is"):
        mixture(threads).infer("(mh default one 1)")


@pytest.mark.thorough
def test_a_session_that_cannot_be_called_is_an_error_with_the_address(
    threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(hosts: tuple[str, ...]) -> contact.Listening:
        listening = contact.Listening(hosts)
        # nobody listens there
        listening.contact = contact.Contact(hosts, 9, listening.contact.key)
        return listening

    monkeypatch.setattr(crew, "Listening", elsewhere)
    monkeypatch.setattr(crew, "LOOK_SECONDS", 0.05)
    with pytest.raises(VentureError, match=r"cannot call this session \(127\.0\.0\.1:9: .*refused"):
        mixture(threads).infer("(mh default one 1)")


def test_a_caller_without_the_secret_is_not_heard() -> None:
    listening = contact.Listening((contact.LOCAL,))
    try:
        there = listening.contact
        with pytest.raises(contact.Unreachable, match="digest"):
            contact.reach(contact.Contact(there.hosts, there.port, b"another"))
        assert not listening.bell.poll(0.05)
    finally:
        listening.close()


@pytest.mark.thorough
def test_a_module_that_the_worker_lacks_is_named(forking: Forking, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(*_: Any) -> Any:
        raise ModuleNotFoundError("No module named 'mine'")

    monkeypatch.setattr(member, "unpack", lacks)
    with pytest.raises(VentureError, match="cannot make the chain: ModuleNotFoundError: No module named 'mine'") as met:
        mixture(forking).infer("(mh default one 1)")
    assert "is to be installed there too" in str(met.value)


def test_what_is_no_executor_is_refused() -> None:
    with pytest.raises(ArgumentError, match="executor must have a method submit, got 4"):
        Venture(executor=4)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------ a cluster


@pytest.mark.slow
def test_a_cluster_of_which_a_worker_is_killed_draws_the_same(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'venture-lite[dask]'")
    here = dying(None, tmp_path / "none", 0)
    expected = here.infer(DRAWS)
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        v = dying(client.get_executor(), tmp_path, 1)
        with pytest.warns(VentureWarning, match="the chain begins anew elsewhere"):
            draws = v.infer(DRAWS)
    assert len(list(tmp_path.iterdir())) == 1
    assert draws["(through x)"].tolist() == expected["(through x)"].tolist()
    assert [snapshot(model) for model in v.traces] == [snapshot(model) for model in here.traces]
