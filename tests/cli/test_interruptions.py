"""Runs that end before their end: whatever ends them, the draws that were made are written, each inference's apart.

Most of it is tried on the parent alone, with processes that only the test knows to be none; what belongs to the system
(signals, processes that die) on real ones.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Container, Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venture_lite.draws.draws import Draws, DrawsBuilder
from venture_lite.errors import Source
from venture_lite.inference.signals import Stop
from venture_lite.shell import workers
from venture_lite.shell.chain_process import ChainFailed, Message, Piece, Sender, Stopped
from venture_lite.shell.cli import main
from venture_lite.shell.report import RunReport

posix = pytest.mark.skipif(os.name != "posix", reason="signals are sent as on Unix")


def write(folder: Path, text: str) -> str:
    path = folder / "program.vnt"
    path.write_text(text)
    return str(path)


# ------------------------------------------------------------------------------------------------------ one process


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_with_its_draws_written_and_its_status(tmp_path: Path, number: int) -> None:
    """The program sends the signal itself, in its third pass: nothing here depends on time."""
    program = write(tmp_path, "for i in 1...3: [infer (repeat 20 (do (mh default one 1) (collect i x)))]")
    source = f"[assume x (normal 0 1)] [load {str(program)!r}]".replace("'", '"')
    status = run_with_signal(tmp_path, source, number, after=45)
    assert status == 128 + number
    with np.load(tmp_path / "x.npz") as first, np.load(tmp_path / "x-3.npz") as third:
        assert first["i"].tolist() == [[1] * 20]
        assert third["i"].tolist() == [[3] * 5]
        assert third["x"].shape == (1, 5)


def run_with_signal(folder: Path, text: str, number: int, after: int) -> int:
    """`venture run` in this process, which sends itself a signal after so many draws; the exit status."""
    path = folder / "main.vnt"
    path.write_text(text)
    # whoever started the tests may have had it ignored, as nohup does
    before = signal.getsignal(number)
    if number != signal.SIGINT:
        signal.signal(number, signal.SIG_DFL)
    try:
        with heeding_ctrl_c(), raised_at_draws(number, {after}):
            return main(["run", str(path), "--seed", "1", "--out", str(folder / "x.npz")])
    finally:
        signal.signal(number, before)


@contextlib.contextmanager
def raised_at_draws(number: int, at: Container[int]) -> Iterator[list[int]]:
    """This process sends itself a signal when it has made so many draws; the draws that were made, by number."""
    made: list[int] = []
    add = DrawsBuilder.add_together

    def counted(builder: DrawsBuilder, draws: Sequence[tuple[str, Any]]) -> None:
        add(builder, draws)
        made.append(len(made) + 1)
        if made[-1] in at:
            signal.raise_signal(number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DrawsBuilder, "add_together", counted)
        yield made


@contextlib.contextmanager
def heeding_ctrl_c() -> Iterator[None]:
    """A shell that starts the tests in the background has them ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@posix
@pytest.mark.parametrize("ignored", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_was_ignored_at_the_start_stays_so(tmp_path: Path, ignored: int) -> None:
    before = signal.signal(ignored, signal.SIG_IGN)
    try:
        program = "[assume x (normal 0 1)] [infer (repeat 20 (do (mh default one 1) (collect x)))]"
        path = write(tmp_path, program)
        # what is raised is then the signal that is ignored; the run goes on to its end
        with raised_at_draws(ignored, range(21)) as made:
            assert main(["run", path, "--seed", "1", "--out", str(tmp_path / "x.npz")]) == 0
        assert len(made) == 20
    finally:
        signal.signal(ignored, before)


@posix
def test_the_end_of_a_terminal_reaches_a_run_that_ignores_ctrl_c(tmp_path: Path) -> None:
    program = "[assume x (normal 0 1)] [infer (repeat 100 (do (mh default one 1) (collect x)))]"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys.modules[__name__], "heeding_ctrl_c", contextlib.nullcontext)
            assert run_with_signal(tmp_path, program, signal.SIGHUP, after=30) == 128 + signal.SIGHUP
    finally:
        signal.signal(signal.SIGINT, before)
    with np.load(tmp_path / "x.npz") as file:
        assert file["x"].shape == (1, 30)


def test_an_error_keeps_the_draws_before_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = write(
        tmp_path,
        "[assume x (normal 0 1)] [infer (repeat 500 (do (mh default one 1) (collect x (sqrt (- 3 (abs x))))))]",
    )
    assert main(["run", program, "--seed", "1", "--out", str(tmp_path / "x.npz")]) == 1
    said = capsys.readouterr().err
    assert "partial draws (ended with an error):" in said
    assert "sqrt" in said.splitlines()[-4]
    with np.load(tmp_path / "x.npz") as file:
        # what one collect draws is kept together or not at all
        assert file["x"].shape == file["(sqrt (- 3 (abs x)))"].shape
        assert np.all(np.abs(file["x"]) <= 3)


@posix
def test_ctrl_c_while_draws_are_written_comes_after_they_are(tmp_path: Path) -> None:
    program = write(tmp_path, "[assume x (normal 0 1)] [infer (collect x)] [infer (repeat 100000000 (collect x))]")
    save = Draws.save

    def interrupted(draws: Draws, path: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        save(draws, path)

    with pytest.MonkeyPatch.context() as patch, heeding_ctrl_c():
        patch.setattr(Draws, "save", interrupted)
        assert main(["run", program, "--seed", "1", "--out", str(tmp_path / "x.npz")]) == 130
    assert [path.name for path in tmp_path.glob("x*")] == ["x.npz"]


# ------------------------------------------------------------------------------------- the parent of several chains


class Process:
    """What stands for a chain's process."""

    pid = None

    def __init__(self, exitcode: int) -> None:
        self.exitcode = exitcode
        self.was_killed = False

    def join(self) -> None:
        pass

    def kill(self) -> None:
        self.was_killed = True


class Told:
    """Hears what a run gives."""

    def __init__(self) -> None:
        self.reports: list[RunReport] = []
        self.said: list[str] = []

    def report(self, report: RunReport) -> None:
        self.reports.append(report)

    def warn(self, text: str) -> None:
        self.said.append(text)

    printed = warn

    def progressed(self, chain: int, snapshot: Any) -> None:
        pass


class Chains(workers._Workers):
    """Chains whose messages are there from the start; those with an exit status have ended."""

    def __init__(self, messages: list[list[Message]], exits: Sequence[int | None], told: Told, stop: Stop) -> None:
        job = workers.Job(Source("p.vnt", ""), {}, 1, len(messages), 1000, None)
        super().__init__(job, told, stop)
        self._messages, self._exits = messages, exits
        self.ends: list[Connection] = []

    def _start(self) -> None:
        for chain, (messages, status) in enumerate(zip(self._messages, self._exits, strict=True)):
            receiving, sending = Pipe(duplex=False)
            for message in messages:
                sending.send(message)
            process: Any = Process(status or 0)
            self._workers.append(workers._Worker(chain, process, receiving))
            if status is None:
                self.ends.append(sending)
            else:
                sending.close()


def infer(**columns: Sequence[float]) -> RunReport:
    chain = {name: np.array(values, float) for name, values in columns.items()}
    return RunReport("infer", None, "(collect)", Draws([chain]), 1)


def piece(position: int, **columns: Sequence[float]) -> Piece:
    return Piece(position, {name: np.array(values, float) for name, values in columns.items()})


def run_chains(
    *messages: list[Message], exits: Sequence[int | None], signalled: int | None = None, seconds: float = 0.0
) -> tuple[Told, BaseException | None]:
    """What is told of chains that gave these messages; with a signal, once all are heard."""
    told, stop = Told(), Stop()
    chains = Chains(list(messages), exits, told, stop)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "INTERRUPT_SECONDS", seconds)
        patch.setattr(workers, "LOOK_SECONDS", 0.01)
        if signalled is not None:
            hear, heard = chains._hear, 0

            def then_signalled() -> None:
                nonlocal heard
                heard += 1
                # each hearing takes one message of each chain
                if heard == 2 + max(map(len, messages)):
                    stop(signalled, None)
                hear()

            patch.setattr(chains, "_hear", then_signalled)
        try:
            chains.run()
        except BaseException as error:
            return told, error
    return told, None


def columns(draws: Draws) -> dict[str, list[list[float]]]:
    return {name: draws[name].tolist() for name in draws.names}


def by_chain(draws: Draws) -> dict[str, dict[int, list[float]]]:
    return {
        name: {k: chain.tolist() for k, chain in zip(draws.numbers, draws.by_chain(name), strict=True) if len(chain)}
        for name in draws.names
    }


def test_draws_of_different_inferences_are_never_joined() -> None:
    told, ending = run_chains(
        [infer(x=[1, 2, 3]), piece(1, x=[8, 9])], [piece(0, x=[4, 5])], [infer(x=[6, 7, 8]), piece(1, x=[7])],
        exits=[None] * 3, signalled=signal.SIGINT,
    )  # fmt: skip
    assert isinstance(ending, KeyboardInterrupt)
    first, second = told.reports
    assert (first.value.numbers, columns(first.value)) == ((0, 1, 2), {"x": [[1, 2], [4, 5], [6, 7]]})
    assert first.rest is not None
    assert by_chain(first.rest) == {"x": {0: [3], 2: [8]}}
    assert (second.value.numbers, columns(second.value)) == ((0, 2), {"x": [[8], [7]]})
    assert second.rest is not None
    assert by_chain(second.rest) == {"x": {0: [9]}}
    assert {report.partial for report in told.reports} == {"interrupted"}


def test_chains_that_have_finished_count_as_much_as_others() -> None:
    told, _ = run_chains(
        [infer(x=range(3000))], [infer(x=range(3000))], [piece(0, x=range(40)), piece(0, x=range(40, 46))],
        exits=[0, 0, None], signalled=signal.SIGTERM,
    )  # fmt: skip
    (report,) = told.reports
    assert report.value.numbers == (0, 1)
    assert report.value["x"].shape == (2, 3000)
    assert by_chain(report.rest) == {"x": {2: list(range(46))}}  # type: ignore[arg-type]


def test_inferences_with_other_names_are_told_each() -> None:
    told, _ = run_chains(
        [infer(x=[1, 2]), piece(1, y=[3])], [infer(x=[4, 5]), Stopped(signal.SIGINT, infer(y=[6, 7]))],
        exits=[None, 0], signalled=signal.SIGINT,
    )  # fmt: skip
    assert [columns(report.value) for report in told.reports] == [{"x": [[1, 2], [4, 5]]}, {"y": [[3], [6]]}]
    assert [report.partial for report in told.reports] == [None, "interrupted"]


def test_a_piece_that_comes_late_is_of_no_other_inference() -> None:
    told, _ = run_chains(
        [piece(0, x=[1]), infer(x=[1, 2]), piece(0, x=[2])], [infer(x=[3, 4])],
        exits=[None, None], signalled=signal.SIGINT,
    )  # fmt: skip
    assert [columns(report.value) for report in told.reports] == [{"x": [[1, 2], [3, 4]]}]


def test_a_killed_chain_is_named_and_does_not_hold_up_the_others() -> None:
    told, ending = run_chains(
        [infer(x=[1, 2]), infer(y=[1])], [piece(0, x=[5])], [infer(x=[3, 4]), infer(y=[2])], exits=[0, -9, 0]
    )
    assert str(ending).startswith("error: chain 1: its process None was killed by SIGKILL")
    assert [columns(report.value) for report in told.reports] == [{"x": [[1, 2], [3, 4]]}, {"y": [[1], [2]]}]
    assert [report.value.numbers for report in told.reports] == [(0, 2), (0, 2)]
    assert by_chain(told.reports[0].rest) == {"x": {1: [5]}}  # type: ignore[arg-type]
    assert {report.partial for report in told.reports} == {"chain 1 was killed by SIGKILL"}


def test_the_values_of_a_killed_chain_are_gaps() -> None:
    sample = RunReport("sample", None, "x", 3, 1)
    told, _ = run_chains([sample], [], [sample], exits=[0, -15, 0])
    assert told.reports[0].value == [3, None, 3]


def test_an_error_in_one_chain_keeps_what_all_have_drawn() -> None:
    told, ending = run_chains(
        [infer(x=[1, 2]), piece(1, x=[5, 6])],
        [infer(x=[3, 4]), ChainFailed("error: no", infer(x=[7]))],
        exits=[None, 0],
    )
    assert str(ending) == "error: no"
    assert [columns(report.value) for report in told.reports] == [{"x": [[1, 2], [3, 4]]}, {"x": [[5], [7]]}]
    assert [report.partial for report in told.reports] == [None, "chain 1 ended with an error"]


def test_the_others_come_as_far_as_the_chain_that_failed() -> None:
    sample = RunReport("sample", None, "x", 3, 1)
    told, ending = run_chains([sample, ChainFailed("error: no", None)], [sample, sample], exits=[0, None])
    assert [report.value for report in told.reports] == [[3, 3]]
    assert isinstance(ending, workers.ProgramFailed)


def test_a_chain_that_does_not_answer_is_ended_and_what_it_sent_is_kept() -> None:
    told, _ = run_chains(
        [piece(0, x=[1, 2])], [piece(0, x=[3, 4])], exits=[None, None], signalled=signal.SIGINT, seconds=0.05
    )
    assert columns(told.reports[0].value) == {"x": [[1, 2], [3, 4]]}
    assert [text for text in told.said if "did not answer, and was ended" in text and "chain 0" in text]


# ------------------------------------------------------------------------------------------------- a worker's side


def test_draws_are_sent_while_their_inference_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.shell.chain_process.SECONDS_BETWEEN_PIECES", 0.01)
    receiving, sending = Pipe(duplex=False)
    builder = DrawsBuilder()
    sender = Sender(sending)
    sender.look_at(lambda: builder)
    builder.add_together([("x", 1.0), ("v", [1.0, 2.0])])
    builder.add_together([("x", 2.0), ("v", [3.0, 4.0])])
    first = receiving.recv()
    builder.add_together([("x", True), ("v", [5.0, 6.0])])
    second = receiving.recv()
    assert first.position == second.position == 0
    assert [first.columns["x"].tolist(), second.columns["x"].tolist()] == [[1.0, 2.0], [True]]
    assert second.columns["v"].tolist() == [[5.0, 6.0]]
    sender.finish(None)
    with pytest.raises(EOFError):
        receiving.recv()


def test_what_one_collect_draws_is_sent_together() -> None:
    builder = DrawsBuilder()
    seen = []

    class Spy(list[Any]):
        """A column; while it is added to, the others of its collect may be shorter."""

        def append(self, value: Any) -> None:
            seen.append(builder.news({}))
            super().append(value)

    builder.add_together([("x", 1.0), ("y", 2.0)])
    builder.values["y"] = Spy(builder.values["y"])
    builder.add_together([("x", 3.0), ("y", 4.0)])
    assert seen == [None]
    assert builder.news({"x": 1}) == {"x": [3.0], "y": [2.0, 4.0]}


# ------------------------------------------------------------------------------------------------- real processes

TWO_INFERENCES = """
[assume x (normal 0 1)]
[predict 1]
[infer (repeat 30 (do (mh default one 1) (collect x)))]
[infer (repeat 100000000 (do (mh default one 1) (collect (+ x 1) x)))]
"""


class Run:
    """`venture run` with several chains, all of which have come as far as the first inference."""

    def __init__(self, folder: Path, text: str, chains: int) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "venture_lite", "run", write(folder, text), "--seed", "1"]
        command += ["--chains", str(chains), "--out", str(folder / "x.npz")]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_heed_ctrl_c
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("1 = ")
        # the first inference of all chains is written as soon as the last has it
        while not (folder / "x.npz").exists():
            time.sleep(0.02)
        listed = subprocess.run(
            ["ps", "-ww", "-o", "pid=", "-o", "args=", "--ppid", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=True,
        )
        self.chains = [int(line.split()[0]) for line in listed.stdout.splitlines() if "spawn_main" in line]

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Exit status and standard error."""
        try:
            _, said = self.process.communicate(timeout=60)
        finally:
            self.process.kill()
        return self.process.returncode, said

    def draws(self, name: str) -> dict[str, tuple[int, ...]]:
        with np.load(self.folder / name) as file:
            return {variable: file[variable].shape for variable in file}


def _heed_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@posix
def test_a_killed_process_costs_the_others_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, TWO_INFERENCES, 2)
    os.kill(run.chains[1], signal.SIGKILL)
    time.sleep(0.2)
    run.send(signal.SIGTERM)
    status, said = run.end()
    assert status == 128 + signal.SIGTERM
    assert f"chain 1: its process {run.chains[1]} was killed by SIGKILL" in said
    assert run.draws("x.npz") == {"x": (2, 30)}
    second = run.draws("x-2.npz")
    assert second["x"] == second["(+ x 1)"]
    assert second["x"][0] == 1
    assert "Traceback" not in said


@posix
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_passed_on_to_all_chains(tmp_path: Path, number: int) -> None:
    run = Run(tmp_path, TWO_INFERENCES, 3)
    time.sleep(0.5)
    run.send(number)
    status, said = run.end()
    assert status == 128 + number
    assert "Traceback" not in said
    assert run.draws("x.npz") == {"x": (3, 30)}
    second = run.draws("x-2.npz")
    assert second["x"] == second["(+ x 1)"]


@posix
@pytest.mark.slow
def test_a_signal_to_every_process_is_no_other(tmp_path: Path) -> None:
    run = Run(tmp_path, TWO_INFERENCES, 3)
    time.sleep(0.5)
    for process in (*run.chains, run.process.pid):
        os.kill(process, signal.SIGTERM)
    status, said = run.end()
    assert status == 128 + signal.SIGTERM
    assert "Traceback" not in said
    assert run.draws("x-2.npz")["x"][0] >= 1


@posix
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "waitid"), reason="the system does not say that a process is held")
def test_a_process_that_is_held_is_named_and_ended_after_the_others(tmp_path: Path) -> None:
    finite = TWO_INFERENCES.replace("100000000", "20000")
    run = Run(tmp_path, finite, 3)
    os.kill(run.chains[2], signal.SIGSTOP)
    status, said = run.end()
    assert status == 1
    assert f"chain 2: its process {run.chains[2]} was stopped by SIGSTOP; kill -CONT {run.chains[2]}" in said
    assert said.splitlines()[-1].endswith("was stopped by SIGSTOP, and was ended")
    assert run.draws("x-2.npz")["x"] == (2, 20000)


@posix
@pytest.mark.slow
def test_an_error_in_a_real_chain_keeps_what_the_others_have_drawn(tmp_path: Path) -> None:
    failing = TWO_INFERENCES.replace("(collect (+ x 1) x)", "(collect (sqrt (- 3.5 (abs x))) x)")
    run = Run(tmp_path, failing, 3)
    status, said = run.end()
    assert status == 1
    assert "ended with an error): " in said
    assert "sqrt: x must be" in said
    second = run.draws("x-2.npz")
    assert second["x"] == second["(sqrt (- 3.5 (abs x)))"]
