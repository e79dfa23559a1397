"""Chains in processes of their own: forked from the session's, each serves one chain until its program is over.

What a chain gave goes through a pipe, with what was warned of and printed; progress goes where the parent has time for
it. A process that is gone is an error of its chain, and the others go on. `multiprocessing` is imported where a process
is begun, since few sessions begin any and its import takes as long as a tenth of the package's.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import pickle
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from venture_lite.draws.draws import Draws
from venture_lite.errors import Span, VentureError
from venture_lite.inference.progress import Snapshot
from venture_lite.inference.watch import Verdict
from venture_lite.trace.handover import Handover

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

ANSWER_SECONDS = 10.0
"""How long a process that is told to stop may take for its transition."""

HAS_FORK = hasattr(os, "fork") and sys.platform != "darwin"
"""Whether a process can be forked that has used libraries; on macOS the system's own do not stand it."""


class ChainLost(VentureError):
    """The process of a chain is gone."""


@dataclass(frozen=True, slots=True)
class ChainOutcome:
    """What a chain gave until its program paused or ended."""

    # all draws of the program so far
    draws: Draws
    # of an expression that is no action
    value: Any = None
    error: BaseException | None = None
    # that the state has probability zero, and why; empty where it has not
    impossible: str = ""
    # what another process has warned of, each with its kind, and printed
    warned: tuple[tuple[str, type[Warning]], ...] = ()
    printed: str = ""


@dataclass(frozen=True, slots=True)
class ChainState:
    """What a process leaves of its chain."""

    # where it is asked for
    verdict: Verdict | None
    # whether the state may be impossible, and since which observation
    impossible: tuple[bool, Span | None]
    # of the handover
    trace: bytes


@dataclass(frozen=True, slots=True)
class ChainProgress:
    """How far a chain is; None where it is done with a task."""

    snapshot: Snapshot | None


@dataclass(frozen=True, slots=True)
class Unsent:
    """What a process has to say cannot be sent."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finish:
    """What a process is told in place of a number of runs: the program is over."""

    is_judged: bool


class Worker:
    """A chain in a process of its own, as its parent knows it. Mutable."""

    def __init__(self, index: int, handover: Handover, serve: Callable[[Pipe], None]) -> None:
        """Forks; `serve` is called in the new process, which ends after it."""
        from multiprocessing import get_context

        self.index = index
        self.handover = handover
        # what it gave last; None while it is at work
        self.answer: ChainOutcome | ChainState | Unsent | None = None
        self._deadline = math.inf
        context = get_context("fork")
        self.connection, other = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_work, args=(serve, Pipe(other, handover)), name=f"chain {index}", daemon=True
        )
        with warnings.catch_warnings():
            # that other threads may hold locks: none of the package's does, and NumPy's see to themselves
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        other.close()

    def ask(self, request: int | Finish) -> None:
        """Let it run the program so many times more, or leave."""
        if not self.connection.closed:
            self.answer = None
            with contextlib.suppress(OSError):
                self.connection.send(request)

    def hear(self) -> ChainProgress | None:
        """Take its message: an answer is kept, and progress is given."""
        try:
            message = self.handover.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            self._process.join()
            status = self._process.exitcode or 0
            message = self._lost(f"was killed by {signal.Signals(-status).name}" if status < 0 else "is gone")
            self.connection.close()
        if isinstance(message, ChainProgress):
            return message
        self.answer = message
        return None

    def interrupt(self) -> None:
        """Let the program stop as after Ctrl-C; a process that does not answer in time is ended."""
        if self.answer is not None:
            return
        if self._deadline == math.inf and self._process.pid is not None:
            self._deadline = time.monotonic() + ANSWER_SECONDS
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGINT)
        elif time.monotonic() > self._deadline:
            self.answer = self._lost("did not answer, and was ended")
            self.end()

    def _lost(self, fate: str) -> ChainOutcome:
        guess = ", perhaps for want of memory" if fate.endswith("SIGKILL") else ""
        hint = "its trace is as it was before the inference; the exception has the draws of the others as `draws`"
        error = ChainLost(f"chain {self.index}: its process {self._process.pid} {fate}{guess}", hint=hint)
        return ChainOutcome(Draws([{}]), error=error)

    def end(self) -> None:
        """The process is over, whatever it does."""
        self._process.kill()
        self._process.join()
        self.connection.close()


class Elsewhere(Protocol):
    """Chains that run in other processes, by index."""

    def __contains__(self, index: object) -> bool: ...

    def __iter__(self) -> Iterator[int]: ...

    def ask(self, index: int, request: int | Finish) -> None:
        """Let a chain run the program so many times more, or leave."""

    def answer(self, index: int) -> ChainOutcome | ChainState | Unsent | None:
        """What a chain gave last; None while it is at work."""

    def hear(self, seconds: float) -> list[tuple[int, ChainProgress]]:
        """Take what messages there are, or come within this time: how far chains are; a chain that is lost has no
        more to show."""

    def interrupt(self) -> None:
        """Let every chain stop as after Ctrl-C; one that does not answer in time is given up. To be said again and
        again until all have answered."""

    def take_back(self, index: int) -> None:
        """A chain is no longer elsewhere."""

    def unpack(self, index: int, trace: bytes) -> None:
        """Bring the trace of a chain here to the state that it has elsewhere."""

    def end(self) -> None:
        """All is over, whatever the chains do."""


class ForkedChains:
    """Chains each of which has a process that was forked for it. Mutable."""

    def __init__(self) -> None:
        self._workers: dict[int, Worker] = {}

    def fork(self, index: int, handover: Handover, serve: Callable[[Pipe], None]) -> None:
        self._workers[index] = Worker(index, handover, serve)

    def __contains__(self, index: object) -> bool:
        return index in self._workers

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._workers))

    def ask(self, index: int, request: int | Finish) -> None:
        self._workers[index].ask(request)

    def answer(self, index: int) -> ChainOutcome | ChainState | Unsent | None:
        return self._workers[index].answer

    def hear(self, seconds: float) -> list[tuple[int, ChainProgress]]:
        from multiprocessing.connection import wait

        shown = []
        while working := {each.connection: each for each in self._workers.values() if each.answer is None}:
            ready = wait(list(working), timeout=seconds)
            for end in ready:
                worker = working[end]  # type: ignore[index]
                if (progress := worker.hear()) is not None:
                    shown.append((worker.index, progress))
                elif isinstance(worker.answer, ChainOutcome) and isinstance(worker.answer.error, ChainLost):
                    shown.append((worker.index, ChainProgress(None)))
            if not ready or seconds:
                break
        return shown

    def interrupt(self) -> None:
        for worker in self._workers.values():
            worker.interrupt()

    def take_back(self, index: int) -> None:
        self._workers.pop(index).end()

    def unpack(self, index: int, trace: bytes) -> None:
        self._workers[index].handover.unpack(trace)

    def end(self) -> None:
        for worker in self._workers.values():
            worker.end()


@dataclass(frozen=True, slots=True)
class Pipe:
    """The end of a chain's process."""

    connection: Connection
    handover: Handover

    def send(self, make: Callable[[], Any]) -> None:
        """Send what is made; that it cannot be sent, where it cannot."""
        try:
            message = self.handover.dumps(make())
        except Exception as error:
            message = pickle.dumps(Unsent(str(error)))
        self.connection.send_bytes(message)

    def show(self, snapshot: Snapshot | None) -> None:
        """Say how far the chain is, if the parent has time to hear it, and when it is done."""
        if snapshot is None or select.select([], [self.connection], [], 0.0)[1]:
            self.send(lambda: ChainProgress(snapshot))

    def request(self) -> int | Finish:
        found: int | Finish = self.connection.recv()
        return found


def _work(serve: Callable[[Pipe], None], pipe: Pipe) -> None:
    # a terminal's Ctrl-C then reaches the parent alone, which passes it on
    os.setpgrp()
    threading.Thread(target=end_with_parent, daemon=True).start()
    serve(pipe)


def end_with_parent() -> None:
    """Wait until the parent of this process is gone, and end it."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def heard(run: Callable[[], ChainOutcome]) -> ChainOutcome:
    """What a program gives in a process of its own, with all that it says, fit to be sent."""
    with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = run()
    warned = tuple((str(warning.message), warning.category) for warning in caught)
    return replace(outcome, error=portable_error(outcome.error), warned=warned, printed=printed.getvalue())


def portable_error(error: BaseException | None) -> BaseException | None:
    """The error without its frames, and what refers to a trace."""
    if not isinstance(error, VentureError):
        return error
    made = type(error).__new__(type(error))
    VentureError.__init__(made, error.message, error.span, error.hint, error.chain)
    made.position, made.passes = error.position, error.passes
    return made
