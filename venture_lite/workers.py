"""Runs a whole program: in this process, or in several, one for each chain.

Every worker runs the program as chain k of K of one seed, so the draws are those of `Venture(seed, chains=K)`. The
parent hears all workers at once and joins their values directive by directive; what they print, warn of and tell of
their progress goes to the parent too, so that one process alone writes to the terminal.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Protocol

from venture_lite.draws import Draws
from venture_lite.errors import Source, VentureError
from venture_lite.progress import Silent, Snapshot, Tracker
from venture_lite.report import Report, warnings_to

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

# how long an interrupted worker may take to undo its transition and hand over its draws
INTERRUPT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Job:
    """A program, and what each chain needs to run it."""

    source: Source
    parameters: dict[str, Any]
    seed: int
    chains: int
    # what stops a program that would never end
    nested_calls: int
    memory_mb: float | None
    # whether somebody watches how far it is
    watched: bool = False


class Listener(Protocol):
    """Who hears what a program gives while it runs."""

    def report(self, report: Report) -> None:
        """A directive's value, joined over the chains."""

    def warn(self, text: str) -> None:
        """A warning."""

    def printed(self, line: str) -> None:
        """A line that the program itself prints."""

    def progressed(self, chain: int, snapshot: Snapshot | None) -> None:
        """How far a chain is; None where it is done with an inference."""


class ProgramFailed(Exception):
    """A chain ended with an error of the user's; the text is the whole message."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; `draws` holds what had been collected."""

    def __init__(self, draws: Draws | None) -> None:
        super().__init__()
        self.draws = draws


def run(job: Job, listener: Listener) -> None:
    """Run the job, and tell the listener each directive's value in the program's order.

    Raises:
        VentureError, ProgramFailed: an error of the user's, here or in one of the chains.
        Interrupted: Ctrl-C.
    """
    if job.chains > 1:
        _run_chains(job, listener)
        return
    try:
        _run_chain(job, 0, listener)
    except KeyboardInterrupt as interrupt:
        raise Interrupted(getattr(interrupt, "draws", None)) from interrupt


def _run_chain(job: Job, chain: int, listener: Listener) -> None:
    """One chain of the job, in this process."""
    from venture_lite.session import Venture

    def progressed(snapshot: Snapshot | None) -> None:
        listener.progressed(chain, snapshot)

    with warnings_to(listener.warn), contextlib.redirect_stdout(_Lines(listener.printed)):
        model = Venture(
            seed=job.seed,
            chains=job.chains,
            only_chain=chain if job.chains > 1 else None,
            progress=Tracker(progressed) if job.watched else Silent(),
            nested_calls=job.nested_calls,
            memory_mb=job.memory_mb,
        )
        model.run_source(job.source, job.parameters, lambda result: listener.report(Report.of(result)))


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


# ------------------------------------------------------------------------------------------------- the parent's side


@dataclass(frozen=True, slots=True)
class _Warned:
    text: str


@dataclass(frozen=True, slots=True)
class _Printed:
    line: str


@dataclass(frozen=True, slots=True)
class _Progressed:
    snapshot: Snapshot | None


@dataclass(frozen=True, slots=True)
class _Failed:
    text: str


@dataclass(frozen=True, slots=True)
class _Stopped:
    draws: Draws | None


@dataclass(slots=True)
class _Worker:
    """A chain's process, and what it gave that waits for the other chains."""

    chain: int
    process: SpawnProcess
    messages: Connection
    reports: deque[Report]
    # the text of the error with which it ended
    failure: str | None = None


def _run_chains(job: Job, listener: Listener) -> None:
    workers = [_start(job, chain) for chain in range(job.chains)]
    try:
        open_ends = {worker.messages: worker for worker in workers}
        while open_ends:
            for end in wait(list(open_ends)):
                assert isinstance(end, Connection)
                if not _hear(open_ends[end], listener):
                    del open_ends[end]
            _tell_joined(workers, listener)
    except KeyboardInterrupt:
        raise Interrupted(_collect_interrupted(workers)) from None
    finally:
        for worker in workers:
            worker.process.terminate()
            worker.process.join()
            worker.messages.close()


def _start(job: Job, chain: int) -> _Worker:
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(job, chain, sending), daemon=True)
    process.start()
    sending.close()
    return _Worker(chain, process, receiving, deque())


def _hear(worker: _Worker, listener: Listener) -> bool:
    """Take one message of a worker; whether it may send more. Its end of the pipe closes when its program is over."""
    try:
        message = worker.messages.recv()
    except EOFError:
        worker.process.join()
        if worker.process.exitcode and worker.failure is None:
            worker.failure = _ending(worker.process.exitcode)
        return False
    match message:
        case Report():
            worker.reports.append(message)
        case _Warned(text):
            listener.warn(text)
        case _Printed(line):
            listener.printed(line)
        case _Progressed(snapshot):
            listener.progressed(worker.chain, snapshot)
        case _Failed(text):
            worker.failure = text
        case _Stopped():
            raise KeyboardInterrupt
    return True


def _tell_joined(workers: list[_Worker], listener: Listener) -> None:
    """Tell the values that all chains have given; the error of a chain comes after the values before it."""
    while all(worker.reports for worker in workers):
        listener.report(Report.merge([worker.reports.popleft() for worker in workers]))
    for worker in workers:
        if worker.failure is not None and not worker.reports:
            raise ProgramFailed(worker.failure)


def _ending(status: int) -> str:
    if status < 0:
        return f"error: a chain's process was killed by signal {-status}; perhaps there was not memory enough"
    return f"error: a chain's process ended with status {status}"


def _collect_interrupted(workers: list[_Worker]) -> Draws | None:
    """Pass Ctrl-C on to the workers, and join the draws that they still hand over."""
    for worker in workers:
        if worker.process.is_alive() and worker.process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.process.pid, signal.SIGINT)
    parts = []
    for worker in workers:
        with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
            while worker.messages.poll(INTERRUPT_SECONDS):
                message = worker.messages.recv()
                if isinstance(message, _Stopped):
                    parts.append(message.draws)
                    break
    kept = [draws for draws in parts if draws is not None]
    return Draws.merge(kept).cut_to_shortest() if kept else None


# ------------------------------------------------------------------------------------------------- a worker's side


class _Sender:
    """Hears a chain in its own process, and passes on what it hears to the parent."""

    def __init__(self, messages: Connection) -> None:
        self._messages = messages

    def report(self, report: Report) -> None:
        self._messages.send(report)

    def warn(self, text: str) -> None:
        self._messages.send(_Warned(text))

    def printed(self, line: str) -> None:
        self._messages.send(_Printed(line))

    def progressed(self, chain: int, snapshot: Snapshot | None) -> None:
        self._messages.send(_Progressed(snapshot))


def _work(job: Job, chain: int, messages: Connection) -> None:
    """One chain, in a process of its own."""
    if hasattr(os, "setpgrp"):
        # a terminal's Ctrl-C then reaches the parent alone, which passes it on once
        os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _run_chain(job, chain, _Sender(messages))
    except KeyboardInterrupt as interrupt:
        messages.send(_Stopped(getattr(interrupt, "draws", None)))
    except VentureError as error:
        messages.send(_Failed(str(error) if error.span else f"error: {error}"))
    except MemoryError:
        messages.send(_Failed("error: out of memory"))
    finally:
        messages.close()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
