"""A whole program in several processes, one for each chain.

Every worker runs the program as chain k of K of one seed, so the draws are those of `Venture(seed, chains=K)`. The
parent takes the workers' values directive by directive and joins them.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from venture_lite.draws import Draws
from venture_lite.errors import Source, VentureError, VentureWarning
from venture_lite.report import Report

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
    nested_calls: int = 400_000
    memory_mb: float | None = None


class ProgramFailed(Exception):
    """A chain ended with an error of the user's; the text is the whole message."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; `draws` holds what had been collected."""

    def __init__(self, draws: Draws | None) -> None:
        super().__init__()
        self.draws = draws


@dataclass(frozen=True, slots=True)
class _Warned:
    text: str


@dataclass(frozen=True, slots=True)
class _Failed:
    text: str


@dataclass(frozen=True, slots=True)
class _Stopped:
    draws: Draws | None


@dataclass(frozen=True, slots=True)
class _Worker:
    process: SpawnProcess
    messages: Connection


def run_chains(job: Job, on_report: Callable[[Report], None], on_warning: Callable[[str], None]) -> None:
    """Run the job, and call `on_report` with each directive's joined value, in the program's order.

    Raises:
        ProgramFailed: an error of the user's in one of the chains.
        Interrupted: Ctrl-C.
    """
    workers = [_start(job, chain) for chain in range(job.chains)]
    try:
        streams = [_reports(worker, on_warning) for worker in workers]
        for reports in zip(*streams, strict=False):
            on_report(Report.merge(reports))
        for stream in streams:
            # a last warning, or the error of a chain that is behind the others
            deque(stream, maxlen=0)
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
    return _Worker(process, receiving)


def _reports(worker: _Worker, on_warning: Callable[[str], None]) -> Iterator[Report]:
    """A worker's reports; its end of the pipe closes when its program is over."""
    while True:
        try:
            message = worker.messages.recv()
        except EOFError:
            worker.process.join()
            if worker.process.exitcode:
                raise ProgramFailed(_ending(worker.process.exitcode)) from None
            return
        match message:
            case Report():
                yield message
            case _Warned(text):
                on_warning(text)
            case _Failed(text):
                raise ProgramFailed(text)
            case _Stopped():
                raise KeyboardInterrupt


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


def _work(job: Job, chain: int, messages: Connection) -> None:
    """One chain, in a process of its own."""
    if hasattr(os, "setpgrp"):
        # a terminal's Ctrl-C then reaches the parent alone, which passes it on once
        os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def warned(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if issubclass(category, VentureWarning):
            messages.send(_Warned(str(message)))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", VentureWarning)
            warnings.showwarning = warned
            run_one(job, chain, lambda report: messages.send(report))
    except KeyboardInterrupt as interrupt:
        messages.send(_Stopped(getattr(interrupt, "draws", None)))
    except VentureError as error:
        messages.send(_Failed(str(error) if error.span else f"error: {error}"))
    except MemoryError:
        messages.send(_Failed("error: out of memory"))
    finally:
        messages.close()


def run_one(job: Job, chain: int, on_report: Callable[[Report], None]) -> None:
    """One chain of the job, in this process; the first one shows how far it is."""
    from venture_lite import progress
    from venture_lite.session import Venture

    line = progress.for_terminal() if chain == 0 else progress.Silent()
    only_chain = chain if job.chains > 1 else None
    model = Venture(
        seed=job.seed,
        chains=job.chains,
        only_chain=only_chain,
        progress=line,
        nested_calls=job.nested_calls,
        memory_mb=job.memory_mb,
    )
    model.run_source(job.source, job.parameters, lambda result: on_report(Report.of(result)))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
