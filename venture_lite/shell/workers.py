"""Runs a whole program: in this process, or in several, one for each chain.

Every worker runs the program as chain k of K of one seed, so the draws are those of `Venture(seed, chains=K)`. The
parent hears all workers at once and joins their values directive by directive; what they print, warn of and tell of
their progress goes to the parent too, so that one process alone writes to the terminal.

However a run ends, what was drawn until then is told. A chain that ends before the others, killed or stopped from
outside, does not hold them up. All chains of a program run the same directives, so the n-th report of each is of the
same one: draws of different inferences are never joined.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.draws.draws import Draws, DrawsBuilder, joined_column
from venture_lite.engines.compiled.supply import GONE, Exchange, supply_of
from venture_lite.errors import Source, VentureError
from venture_lite.inference.progress import Silent, Tracker
from venture_lite.inference.signals import Stop, blocked
from venture_lite.program.supplied import Parameters
from venture_lite.shell.chain_process import ChainFailed, Heard, Listener, Message, Piece, Stopped, work
from venture_lite.shell.data import Options
from venture_lite.shell.report import RunReport, portable, warnings_to

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from venture_lite.session import Venture

# how long a worker may take to undo its transition and hand over its draws
INTERRUPT_SECONDS = 10.0
# how often the workers are looked at while they say nothing
LOOK_SECONDS = 1.0
INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Job:
    """A program, and what each chain needs to run it."""

    source: Source
    options: Options
    seed: int
    chains: int
    # what stops a program that would never end
    nested_calls: int
    memory_mb: float | None
    watched: bool = False
    # how transitions are made, one of `interpreter.model.WAYS`
    kernels: str = "compiled"
    # a file of proposers, which are not trained
    proposers: Path | None = None
    # a folder in which the first chain leaves what it trained for the others
    exchange: Path | None = None
    # whether one session has all chains, which `auto` looks at together
    together: bool = False
    # where the chains of that session run, if not here
    executor: Executor | None = None


class ProgramFailed(Exception):
    """A chain ended with an error of the user's, or its process was ended; the text is the whole message."""


def run(job: Job, listener: Listener, stop: Stop) -> None:
    """Run the job, and tell the listener each directive's value in the program's order.

    Raises:
        VentureError, ProgramFailed: an error of the user's, here or in one of the chains; a process that was killed.
        KeyboardInterrupt: Ctrl-C, or another signal that `stop` heard. In all these cases the listener has been told
            the draws that were made until then.
    """
    if job.chains > 1 and not job.together:
        _run_chains(job, listener, stop)
        return
    with stop.held():
        # here, since a signal breaks off what is imported later
        import venture_lite.session  # noqa: F401
    try:
        run_chain(job, 0, listener, reporting=stop.held)
    except BaseException as error:
        report = RunReport.unfinished(error)
        if report is not None:
            why = INTERRUPTED if isinstance(error, KeyboardInterrupt) else "ended with an error"
            with stop.instead(lambda: None), _warning_of_failure(listener):
                listener.report(_evened(report, why))
        raise


def _evened(report: RunReport, why: str) -> RunReport:
    """Partial draws: those of which the chains have equally many, and the rest."""
    if not isinstance(report.value, Draws):
        return replace(report, partial=why)
    even, rest = report.value.evened()
    return replace(report, value=even, rest=rest if rest else None, partial=why)


def run_chain(
    job: Job,
    chain: int,
    listener: Listener,
    look_at: Callable[[Callable[[], DrawsBuilder | None]], None] | None = None,
    reporting: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
) -> None:
    """One chain of the job, in this process; `look_at` is told where the draws under way are found, and each report is
    made in a context."""

    def told(result: Any) -> None:
        with reporting():
            listener.report(RunReport.of(result, job.chains if job.together else 1))

    def drawn(draws: Draws) -> None:
        listener.drawn(portable(draws))

    with session(job, chain, listener) as (model, parameters):
        if look_at is not None:
            look_at(model.collecting)
        model.run_source(job.source, parameters, told, on_part=told, on_draws=drawn)
        for remark in parameters.unread():
            listener.warn(remark)
        for option, names in job.options.given:
            if parameters.used.isdisjoint(names):
                listener.warn(f"the program uses nothing of {option}")


@contextlib.contextmanager
def session(job: Job, chain: int, listener: Listener) -> Iterator[tuple[Venture, Parameters]]:
    """The session of a chain and the program's parameters, while the listener hears what is warned and printed."""
    from venture_lite.session import Venture

    with warnings_to(listener.warn), contextlib.redirect_stdout(_Lines(listener.printed)):
        model = Venture(
            seed=job.seed,
            chains=job.chains,
            only_chain=None if job.together and job.chains > 1 else chain,
            progress=_progress(job, chain, listener),
            nested_calls=job.nested_calls,
            memory_mb=job.memory_mb,
            kernels=job.kernels,
            executor=job.executor,
        )
        _supply(job, chain, model)
        yield model, Parameters(job.options.parameters, left_out=job.options.left_out)


def _progress(job: Job, chain: int, listener: Listener) -> Tracker | Silent:
    if not job.watched:
        return Silent()
    return Tracker(partial(listener.progressed, chain), show_chain=listener.progressed if job.together else None)


def _supply(job: Job, chain: int, model: Venture) -> None:
    """Say where `compile` has its proposers from."""
    supply = supply_of(model.traces[0])
    supply.file, supply.prints = job.proposers, chain == 0
    if job.exchange is not None:
        supply.exchange = Exchange(job.exchange, chain == 0)


@contextlib.contextmanager
def _warning_of_failure(listener: Listener) -> Iterator[None]:
    """What cannot be written is no reason for the run to end otherwise than it does."""
    try:
        yield
    except (VentureError, OSError) as error:
        listener.warn(str(error))


class _Lines(io.TextIOBase):
    """A stream that hands over whole lines."""

    def __init__(self, line: Callable[[str], None]) -> None:
        self._line = line
        self._rest = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._line(line)
        return len(text)


# ----------------------------------------------------------------------------------------------------- several chains


@dataclass(slots=True)
class _Worker:
    """A chain's process, and what it gave that waits for the other chains. Mutable."""

    chain: int
    process: BaseProcess
    messages: Connection
    # how many reports it has given, and those that were not told yet
    given: int = 0
    reports: deque[RunReport] = field(default_factory=deque)
    # the draws of an inference that goes on: those sent piece by piece, or all of them where its end was told
    pieces: dict[str, list[np.ndarray]] = field(default_factory=dict)
    adapting: dict[str, int] = field(default_factory=dict)
    unfinished: RunReport | None = None
    # the text of the error with which its program ended
    failure: str | None = None
    # what ended its process from outside, or holds it, for a person
    fate: str | None = None
    # what a person was told of that already
    told_fate: str | None = None
    is_open: bool = True
    is_held: bool = False

    def hear(self, message: Message) -> None:
        """Keep what a message says of values and draws."""
        match message:
            case RunReport():
                self.reports.append(message)
                self.given += 1
                self.pieces, self.adapting = {}, {}
            case Piece(position, columns, adapting) if position == self.given:
                for name, values in columns.items():
                    self.pieces.setdefault(name, []).append(values)
                self.adapting = dict(adapting)
            case ChainFailed(text, report):
                self.failure, self.unfinished = text, report
            case Stopped(_, report):
                self.unfinished = report

    def so_far(self) -> RunReport | None:
        """The draws of the inference that it did not end."""
        if self.unfinished is not None or not self.pieces:
            return self.unfinished
        columns = {name: joined_column(pieces) for name, pieces in self.pieces.items()}
        return RunReport("infer", None, None, Draws([columns], adapting=[self.adapting]), None)

    def named(self) -> str:
        guess = ", perhaps for want of memory" if self.fate == "was killed by SIGKILL" else ""
        return f"chain {self.chain}: its process {self.process.pid} {self.fate}{guess}"


def _run_chains(job: Job, listener: Listener, stop: Stop) -> None:
    with contextlib.ExitStack() as while_they_run:
        # where there is no place for it, each chain trains for itself
        with contextlib.suppress(OSError):
            folder = tempfile.TemporaryDirectory(prefix="venture-chains-", ignore_cleanup_errors=True)
            job = replace(job, exchange=Path(while_they_run.enter_context(folder)))
        _Workers(job, listener, stop).run()


class _Workers:
    """The processes of one job, heard together. Mutable."""

    def __init__(self, job: Job, listener: Listener, stop: Stop) -> None:
        self._listener = listener
        self._stop = stop
        self._workers: list[_Worker] = []
        self._job = job
        self._told = 0
        # when workers that have not answered are ended; None while nobody waits for them
        self._deadline: float | None = None
        self._next_look = 0.0
        # a signal rings it, so that the parent wakes and no message is torn
        self._heard, self._bell = multiprocessing.Pipe(duplex=False)

    def run(self) -> None:
        """See `run`."""
        with self._stop.instead(lambda: self._bell.send_bytes(b"!")):
            try:
                self._start()
                while self._open():
                    self._hear()
                    self._tell_joined()
                    # an error in one chain stops the others where they have come as far
                    if self._deadline is None and self._failed() is not None:
                        self._stop_all(INTERRUPT_SECONDS)
                    self._end_the_late()
            finally:
                for worker in self._workers:
                    self._end(worker)
            self._tell_unfinished()
        self._raise()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        if os.name == "posix":
            # Python's own process that cleans up after others: later its start would let blocked signals through
            from multiprocessing import resource_tracker

            resource_tracker.ensure_running()
        for chain in range(self._job.chains):
            receiving, sending = context.Pipe(duplex=False)
            target = partial(run_chain, self._job, chain)
            process = context.Process(target=work, args=(target, sending), daemon=True)
            # a signal that comes before the process listens waits for it
            with blocked():
                process.start()
            sending.close()
            self._workers.append(_Worker(chain, process, receiving))

    # ---------------------------------------------------------------------------------------------------- hearing

    def _hear(self) -> None:
        """Take one message of each worker that has one, and what signals there are."""
        ends = {worker.messages: worker for worker in self._workers if worker.is_open}
        ready = wait([*ends, self._heard], timeout=LOOK_SECONDS)
        if self._heard in ready:
            self._heard.recv_bytes()
            # whoever asks twice does not want to wait
            self._stop_all(0.0 if self._deadline is not None and self._stop.count > 1 else INTERRUPT_SECONDS)
        for end in ready:
            if end is not self._heard:
                self._hear_one(ends[end])  # type: ignore[index]
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + LOOK_SECONDS
            self._look()

    def _hear_one(self, worker: _Worker) -> None:
        try:
            message = worker.messages.recv()
        except (EOFError, OSError):
            # its end of the pipe closes when its program is over, or its process
            worker.is_open = False
            worker.process.join()
            if worker.chain == 0 and self._job.exchange is not None:
                # the others wait for nothing that it would have trained
                (self._job.exchange / GONE).touch()
            status = worker.process.exitcode
            if status and worker.failure is None and worker.fate is None:
                worker.fate = f"was killed by {signal_name(-status)}" if status < 0 else f"ended with status {status}"
            self._listener.progressed(worker.chain, None)
            if worker.fate is not None and self._deadline is None and self._open():
                self._warn_of(worker, "the other chains go on; Ctrl-C ends them, and keeps what they have drawn")
            return
        match message:
            case Heard(method, arguments):
                getattr(self._listener, method)(*arguments)
            case Stopped(number) if self._deadline is None:
                worker.fate = f"was ended by {signal_name(number)}"
        worker.hear(message)

    def _look(self) -> None:
        """Find out which processes are held, and end them where they alone are left."""
        for worker in self._open():
            number = _held_by(worker.process.pid)
            if number is not None and not worker.is_held:
                worker.fate = f"was stopped by {signal_name(number)}"
                self._warn_of(worker, f"kill -CONT {worker.process.pid} lets it go on, as the other chains do")
            elif number is None and worker.is_held:
                worker.fate = None
            worker.is_held = number is not None
        if self._stop.number is None and self._failed() is None:
            left = self._open()
            all_held = left and all(worker.is_held for worker in left)
            self._deadline = (self._deadline or time.monotonic() + INTERRUPT_SECONDS) if all_held else None

    def _open(self) -> list[_Worker]:
        return [worker for worker in self._workers if worker.is_open]

    def _warn_of(self, worker: _Worker, more: str = "") -> None:
        """Say once what became of a chain's process."""
        if worker.fate != worker.told_fate:
            worker.told_fate = worker.fate
            self._listener.warn("; ".join(filter(None, (worker.named(), more))))

    # --------------------------------------------------------------------------------------------------- stopping

    def _failed(self) -> _Worker | None:
        """The first chain whose error comes next in the order of the program."""
        failed = [worker for worker in self._workers if worker.failure is not None and not worker.reports]
        return min(failed, key=lambda worker: (worker.given, worker.chain), default=None)

    def _stop_all(self, seconds: float) -> None:
        """Pass Ctrl-C on to the workers, and give them some time for their answer."""
        if self._deadline is None:
            for worker in self._open():
                if worker.process.pid is not None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker.process.pid, signal.SIGINT)
        self._deadline = time.monotonic() + seconds

    def _end_the_late(self) -> None:
        """End the workers that have not answered in time; what they had sent is kept."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            for worker in self._open():
                if self._stop.count < 2 or worker.fate is not None:
                    worker.fate = f"{worker.fate or 'did not answer'}, and was ended"
                self._end(worker)

    def _end(self, worker: _Worker) -> None:
        """End a process in whatever state it is: one that is held hears nothing else."""
        worker.is_open = False
        worker.process.kill()
        worker.process.join()
        worker.messages.close()

    # ---------------------------------------------------------------------------------------------------- telling

    def _tell_joined(self) -> None:
        """Tell the values that all chains have given, but those that are over; an error comes after those before it."""
        while any(worker.reports for worker in self._workers):
            empty = [worker for worker in self._workers if not worker.reports]
            if any(worker.is_open or worker.failure is not None for worker in empty):
                return
            self._tell_next()

    def _tell_unfinished(self) -> None:
        """Tell the draws that only some chains have, or whose inference did not come to its end."""
        while any(self._at_hand(worker) is not None for worker in self._workers):
            # one file that cannot be written, or a terminal that is gone, leaves the others to be written
            with _warning_of_failure(self._listener):
                self._tell_next(draws_only=True)

    def _at_hand(self, worker: _Worker) -> RunReport | None:
        """What a chain has of the directive that is told next; None also where it did not come so far."""
        if worker.reports:
            return worker.reports[0]
        return worker.so_far() if worker.given == self._told else None

    def _tell_next(self, draws_only: bool = False) -> None:
        reports = [self._at_hand(worker) for worker in self._workers]
        told = [worker.reports.popleft() for worker in self._workers if worker.reports]
        is_whole = len(told) == len(self._workers)
        self._told += 1
        if draws_only and not any(report is not None and report.has_draws for report in reports):
            return
        merged = RunReport.merge(reports)
        if not is_whole and isinstance(merged.value, Draws):
            merged = _evened(merged, self._why_partial())
        self._listener.report(merged)

    def _why_partial(self) -> str:
        if self._stop.number is not None:
            return INTERRUPTED
        if failed := self._failed():
            return f"chain {failed.chain} ended with an error"
        return "; ".join(f"chain {worker.chain} {worker.fate}" for worker in self._workers if worker.fate)

    def _raise(self) -> None:
        """End as the chains have ended."""
        fates = [worker for worker in self._workers if worker.fate is not None]
        if self._stop.number is not None:
            for worker in fates:
                self._warn_of(worker)
            raise KeyboardInterrupt
        if failed := self._failed():
            raise ProgramFailed(failed.failure)
        if fates:
            raise ProgramFailed("\n".join(f"error: {worker.named()}" for worker in fates))


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _held_by(pid: int | None) -> int | None:
    """The signal that holds a process of ours, as SIGSTOP does, if one does; where the system can say so."""
    if pid is None or not hasattr(os, "waitid"):
        return None
    with contextlib.suppress(ChildProcessError):
        state = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
        return state.si_status if state is not None else None
    return None
