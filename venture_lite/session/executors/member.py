"""What an executor runs for a session: it calls the session, makes the chains that it is given, and runs them.

Three threads: the executor's own runs the chains, one after the other; another takes the session's messages, so that
an interruption is heard while a chain runs; a third tells now and then what has been drawn, so that the session has it,
whatever becomes of the process. When the session hangs up, all is over.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from venture_lite.errors import heard_here
from venture_lite.inference.program import InferenceProgram
from venture_lite.inference.progress import Silent, Snapshot, Tracker
from venture_lite.inference.watch import Watch
from venture_lite.interpreter.model import Model
from venture_lite.procedures import registry
from venture_lite.program.supplied import Parameters
from venture_lite.session.blas import BLAS_THREADS
from venture_lite.session.chain_processes import ChainOutcome, ChainProgress, ChainState, Finish, Unsent, portable_error
from venture_lite.session.chain_program import ChainProgram
from venture_lite.session.chains import Chains, Given
from venture_lite.session.executors.contact import Contact, Unreachable, hang_up, reach
from venture_lite.session.executors.messages import (
    Ask,
    Begin,
    CannotMake,
    DrawsSoFar,
    Gave,
    Hello,
    Interrupt,
    Parts,
    StillHere,
    Wanted,
    versions,
)
from venture_lite.session.executors.output import printed_here
from venture_lite.session.executors.parcel import Shareable, Work, unpack
from venture_lite.session.queries import inference_program
from venture_lite.trace.handover import Handover
from venture_lite.values import freeze

SECONDS_BETWEEN_WORDS = 2.0
"""How long draws may stand in a process of which the session does not know."""
MOST_BYTES_KEPT = 2**30
"""Of parts that other chains, or the next inference, may want again."""


@dataclass(frozen=True, slots=True)
class NotReached:
    """The session did not answer."""

    where: str
    reason: str


def serve(contact: Contact, number: int) -> NotReached | None:
    """Run chains for the session, until it hangs up; the number of the task is for the executor."""
    try:
        connection = reach(contact)
    except Unreachable as error:
        return NotReached(whereabouts(), str(error))
    with contextlib.closing(connection), _no_signals():
        _Member(connection).run()
    return None


def whereabouts() -> str:
    """Machine and process, for a person."""
    return f"process {os.getpid()} on {socket.gethostname()}"


@contextlib.contextmanager
def _no_signals() -> Iterator[None]:
    """A terminal's Ctrl-C reaches the session, which passes it on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# --------------------------------------------------------------------------------------------------- what is kept


class _Kept:
    """Parts that this process has, by digest; those that were wanted last stay. Mutable, by several threads."""

    def __init__(self) -> None:
        self._parts: OrderedDict[bytes, Shareable] = OrderedDict()
        self._lock = threading.Lock()

    def missing(self, digests: tuple[bytes, ...]) -> tuple[bytes, ...]:
        with self._lock:
            return tuple(digest for digest in digests if digest not in self._parts)

    def enter(self, found: Any) -> None:
        with self._lock:
            for digest, part in found.items():
                self._parts[digest] = freeze(part) if isinstance(part, np.ndarray) else part

    def take(self, digests: tuple[bytes, ...]) -> dict[bytes, Any]:
        with self._lock:
            taken = {digest: self._parts[digest] for digest in digests}
            for digest in digests:
                self._parts.move_to_end(digest)
            used = sum(map(_size, self._parts.values()))
            while used > MOST_BYTES_KEPT and next(iter(self._parts)) not in taken:
                used -= _size(self._parts.popitem(last=False)[1])
            return taken


def _size(part: Shareable) -> int:
    return part.nbytes if isinstance(part, np.ndarray) else len(part)


_KEPT = _Kept()

# ------------------------------------------------------------------------------------------------------ chains


class _RemoteChain:
    """One chain here. Mutable."""

    def __init__(self, begin: Begin, send: Callable[[int, Callable[[], Any]], None]) -> None:
        """Makes it of a parcel, all of whose parts are here. Raises an exception of any kind."""
        setting, parcel = begin.setting, begin.parcel
        self.number, self._send = begin.chain, send
        progress = Tracker(self._show) if setting.is_watched else Silent()
        self.chains = Chains([setting.seed], setting.count, setting.number, setting.limits, progress, setting.kernels)
        parts = _KEPT.take(parcel.digests())
        directory, work = unpack(parts[parcel.program], parcel.chain, parts, self.chains)
        self.model: Model = self.chains.models[0]
        procedures = [*registry.PROCEDURES.values(), *self.chains.registered.values()]
        self.handover = Handover(self.model.trace, procedures)
        self.program: InferenceProgram = inference_program(self.chains, _given(work), directory, 0, Watch(self.model))
        self.program.show(progress)
        self.run = ChainProgram(self.chains, self.program, work.expression, work.start, setting.number)
        self._known: dict[str, int] = {}

    def _show(self, snapshot: Snapshot | None) -> None:
        self._send(self.number, lambda: ChainProgress(snapshot))

    def more(self, times: int) -> ChainOutcome:
        with np.errstate(all="ignore"), BLAS_THREADS.one(), printed_here() as printed, heard_here() as warned:
            outcome = self.run.more(times)
        return replace(outcome, error=portable_error(outcome.error), warned=tuple(warned), printed=printed.getvalue())

    def state(self, is_judged: bool) -> ChainState:
        watch = self.program.watch
        watch.close()
        verdict = watch.finish() if is_judged else None
        return ChainState(verdict, (self.model.maybe_impossible, self.model.impossible_since), self.handover.packed())

    def news(self) -> DrawsSoFar | None:
        """What was drawn since this was asked last; another thread asks."""
        builder = self.program.draws
        found = builder.news(self._known)
        if not found:
            return None
        known, adapting = dict(self._known), dict(builder.adapting)
        self._known.update((name, known.get(name, 0) + len(values)) for name, values in found.items())
        return DrawsSoFar(self.number, known, self.handover.dumps(found), adapting)


def _given(work: Work) -> Given:
    return Given(Parameters(work.parameters), work.passes)


class _Member:
    """The chains that a session has here. Mutable."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # one message at a time
        self._sending = threading.Lock()
        # None where the session has hung up
        self._messages: queue.SimpleQueue[Begin | Ask | None] = queue.SimpleQueue()
        self._parts: queue.SimpleQueue[Parts | None] = queue.SimpleQueue()
        self._chains: dict[int, _RemoteChain] = {}
        # whether chains are to stop
        self._is_stopped = False
        self._is_over = threading.Event()

    def run(self) -> None:
        self._say(Hello(whereabouts(), versions()))
        others = [threading.Thread(target=target, daemon=True) for target in (self._hear, self._keep_talking)]
        for thread in others:
            thread.start()
        try:
            while (message := self._messages.get()) is not None:
                match message:
                    case Begin():
                        self._begin(message)
                    case Ask(chain=chain, request=request) if chain in self._chains:
                        self._answer(self._chains[chain], request)
        finally:
            self._is_over.set()
            hang_up(self._connection)
            for thread in others:
                thread.join()

    def _begin(self, begin: Begin) -> None:
        missing = _KEPT.missing(begin.parcel.digests())
        if missing:
            self._say(Wanted(missing))
            parts = self._parts.get()
            if parts is None:
                return
            _KEPT.enter(parts.found)
        try:
            self._chains[begin.chain] = _RemoteChain(begin, self._send)
        except Exception as error:
            self._say(CannotMake(begin.chain, f"{type(error).__name__}: {error}"))

    def _answer(self, chain: _RemoteChain, request: int | Finish) -> None:
        if isinstance(request, Finish):
            self._send(chain.number, partial(chain.state, request.is_judged))
            return
        chain.chains.interruption.noted = self._is_stopped
        self._send(chain.number, partial(chain.more, request))

    def _send(self, chain: int, make: Callable[[], Any]) -> None:
        """Send what a chain gives; that it cannot be sent, where it cannot."""
        handover = self._chains[chain].handover
        try:
            made = handover.dumps(make())
        except Exception as error:
            made = handover.dumps(Unsent(str(error)))
        self._say(Gave(chain, made))

    def _say(self, message: Any, waits: bool = True) -> None:
        with self._sending:
            if waits or select.select([], [self._connection], [], 0.0)[1]:
                with contextlib.suppress(OSError):
                    self._connection.send(message)

    # ---------------------------------------------------------------------------------------------- other threads

    def _hear(self) -> None:
        while True:
            try:
                message = self._connection.recv()
            except (OSError, EOFError):
                message = None
            if message is None or isinstance(message, Interrupt):
                self._is_stopped = True
                for chain in list(self._chains.values()):
                    chain.chains.interruption.noted = True
            if message is None or isinstance(message, Parts):
                self._parts.put(message)
            if message is None or isinstance(message, (Begin, Ask)):
                self._messages.put(message)
            if message is None:
                return

    def _keep_talking(self) -> None:
        while not self._is_over.wait(SECONDS_BETWEEN_WORDS):
            self._say(StillHere(), waits=False)
            for chain in list(self._chains.values()):
                # what cannot be sent is told of when the chain answers
                with contextlib.suppress(Exception):
                    if (news := chain.news()) is not None:
                        self._say(news)
