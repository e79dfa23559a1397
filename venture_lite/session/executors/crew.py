"""The chains of a session that an executor runs, as the session knows them.

A task for each chain is given to the executor. Whatever becomes a task, now or when the executor has room, calls and is
a member of the crew; it is given a chain, and another one where it is done and some have not begun, so that a crew of
two runs four chains. A member keeps its chains until the inference is over. One that is gone leaves its chains to the
others, and to a further task: each begins anew from its own generator and draws what it drew, so that of two beginnings
the longer one counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

from venture_lite.draws.draws import Draws, column_array
from venture_lite.errors import VentureError, warn
from venture_lite.inference.progress import Silent
from venture_lite.language.syntax import Expression
from venture_lite.procedures import registry
from venture_lite.session.chain_processes import (
    ANSWER_SECONDS,
    ChainLost,
    ChainOutcome,
    ChainProgress,
    ChainState,
    Finish,
    Unsent,
)
from venture_lite.session.chains import Chains, Given
from venture_lite.session.executors.contact import Listening, hang_up, hosts_for
from venture_lite.session.executors.member import NotReached, serve
from venture_lite.session.executors.messages import (
    Ask,
    Begin,
    CannotMake,
    ChainSetting,
    DrawsSoFar,
    Gave,
    Hello,
    Interrupt,
    Parts,
    Wanted,
    versions,
)
from venture_lite.session.executors.parcel import Packer, Work
from venture_lite.session.live import Directory
from venture_lite.trace.handover import Handover

WAITING_SECONDS = 10.0
"""After which a person is told that nothing has begun."""
SILENT_SECONDS = 60.0
"""After which a member that says nothing, not even that it is there, is taken to be gone."""
LOOK_SECONDS = 0.5
"""How often tasks are looked at."""
MOST_LOST = 3
"""Members that a chain may lose: it may be the chain that ends them."""

KEPT = (
    "its trace is as it was before the inference; the exception has all draws that came back as `draws`; an executor "
    "that was broken off or shut down is of no more use: make another one, and a session with it"
)
ANOTHER = "an executor that was shut down is of no more use: make another one, and a session with it"

Answer = ChainOutcome | ChainState | Unsent


@dataclass(frozen=True, slots=True)
class InExecutor:
    """Has an executor run the chains of a session."""

    executor: Executor

    def crew(
        self, chains: Chains, directory: Directory, expression: Expression, start: Expression | None, given: Given
    ) -> Crew | None:
        """None where the chains cannot be sent, which is said."""
        try:
            packer = Packer(chains, directory, Work.of(expression, start, given))
            packer.pack_ahead(0)
        except Exception as error:
            warn(f"the chains run here, for what they are made of cannot be sent: {error}")
            return None
        return Crew(self.executor, chains, packer)


@dataclass(slots=True, eq=False)
class _Posted:
    """A chain that is with the crew. Mutable."""

    index: int
    handover: Handover
    # who has it
    member: _Member | None = None
    # how often it was asked to run its program in all, and whether it was told to leave
    total: int = 0
    finish: Finish | None = None
    # what it gave last; None while it is at work
    answer: Answer | None = None
    # outcomes of a run that is done again
    repeats: int = 0
    lost: int = 0
    # what became of its member, where it is gone and nobody was told yet
    fate: str | None = None
    # whether it is given up
    is_out: bool = False
    # draws that its members have told of, and how many of them are warm-up
    columns: dict[str, list[Any]] = field(default_factory=dict)
    adapting: dict[str, int] = field(default_factory=dict)

    def add(self, news: DrawsSoFar) -> None:
        """Draws that came before are the same."""
        for name, values in self.handover.loads(news.columns).items():
            column = self.columns.setdefault(name, [])
            column.extend(values[max(0, len(column) - news.known.get(name, 0)) :])
        self.adapting = {**self.adapting, **news.adapting}

    def with_all_draws(self, outcome: ChainOutcome) -> ChainOutcome:
        """Where a chain that had begun anew was broken off, what it had drawn before counts."""
        drawn = outcome.draws
        known = {name: len(drawn.by_chain(name)[0]) for name in drawn.names}
        if outcome.error is None or not any(len(column) > known.get(name, 0) for name, column in self.columns.items()):
            return outcome
        columns = {name: column_array(column) for name, column in self.columns.items()}
        return replace(outcome, draws=Draws([columns], adapting=[self.adapting]))


@dataclass(slots=True, eq=False)
class _Member:
    """Something that an executor runs. Mutable."""

    connection: Connection
    where: str
    heard: float
    chains: dict[int, _Posted] = field(default_factory=dict)

    @property
    def is_idle(self) -> bool:
        return all(posted.answer is not None for posted in self.chains.values())


class Crew:
    """See above. Mutates the traces of the session's chains when they come back."""

    def __init__(self, executor: Executor, chains: Chains, packer: Packer) -> None:
        """Raises VentureError for an executor that takes no tasks."""
        self._executor, self._chains, self._packer = executor, chains, packer
        procedures = [*registry.PROCEDURES.values(), *chains.registered.values()]
        self._posted: dict[int, _Posted] = {}
        for index, model in enumerate(chains.models):
            model.trace.grow_with_program()
            self._posted[index] = _Posted(index, Handover(model.trace, procedures))
        self._setting = partial(
            ChainSetting,
            count=chains.count,
            limits=chains.limits,
            kernels=chains.kernels,
            is_watched=not isinstance(chains.progress, Silent),
        )
        self._members: dict[Connection, _Member] = {}
        # chains that wait for a member
        self._waiting: list[_Posted] = []
        self._listening = Listening(hosts_for(executor))
        self._tasks: list[Future[NotReached | None]] = []
        # why no more tasks can be given to the executor
        self._closed: str | None = None
        # why a member was not taken
        self._refused: str | None = None
        # when a person is told that nothing has begun, and when tasks are looked at next
        self._patience = time.monotonic() + WAITING_SECONDS
        self._next_look = time.monotonic() + LOOK_SECONDS
        # when chains that were interrupted are given up
        self._deadline = math.inf
        self._shown: list[tuple[int, ChainProgress]] = []
        self._submit(len(self._posted))
        if self._closed is not None and not self._tasks:
            self.end()
            raise VentureError(f"the executor takes no tasks: {self._closed}", hint=ANOTHER)

    def _submit(self, count: int) -> None:
        """Give the executor so many tasks more."""
        try:
            for _ in range(count):
                # the number tells tasks apart: an executor may take equal calls for one
                self._tasks.append(self._executor.submit(serve, self._listening.contact, len(self._tasks)))
        except Exception as error:
            # each kind of executor has errors of its own for this
            self._closed = _told(error)

    # --------------------------------------------------------------------------------------------- as `Elsewhere`

    def __contains__(self, index: object) -> bool:
        return index in self._posted

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._posted))

    def answer(self, index: int) -> Answer | None:
        return self._posted[index].answer

    def ask(self, index: int, request: int | Finish) -> None:
        posted = self._posted[index]
        if isinstance(request, Finish):
            if posted.is_out or not posted.total or (posted.member is None and self._deadline < math.inf):
                # its trace here is as it was before
                posted.answer = posted.answer or ChainOutcome(Draws([{}]))
                return
            posted.finish = request
        elif posted.is_out:
            return
        else:
            posted.total += request
        posted.answer = None
        if posted.member is not None:
            self._say(posted.member, Ask(index, request))
        else:
            self._wait(posted)
            self._assign()

    def _wait(self, posted: _Posted) -> None:
        """A chain is for the next member that has nothing to do."""
        if posted.fate is not None:
            warn(f"chain {self._chains.first + posted.index}: {posted.fate}; the chain begins anew elsewhere")
            posted.fate = None
        self._waiting.append(posted)

    def hear(self, seconds: float) -> list[tuple[int, ChainProgress]]:
        for ready in wait([self._listening.bell, *self._members], timeout=seconds):
            if ready is self._listening.bell:
                self._welcome(*self._listening.caller())
            elif ready in self._members:
                self._hear(self._members[ready])
        self._assign()
        if time.monotonic() >= self._next_look:
            self._look()
        shown, self._shown = self._shown, []
        return shown

    def interrupt(self) -> None:
        if self._deadline == math.inf:
            self._deadline = time.monotonic() + ANSWER_SECONDS
            for member in list(self._members.values()):
                if not member.is_idle:
                    self._say(member, Interrupt())
            for posted in self._waiting:
                self._give(posted, posted.with_all_draws(ChainOutcome(Draws([{}]), error=KeyboardInterrupt())))
            self._waiting.clear()
        elif time.monotonic() > self._deadline:
            for member in [each for each in self._members.values() if not each.is_idle]:
                self._forget(member)
                for posted in member.chains.values():
                    self._give_up(posted, ChainLost(f"{member.where} did not answer", hint=KEPT))

    def take_back(self, index: int) -> None:
        posted = self._posted.pop(index)
        if posted.member is not None:
            posted.member.chains.pop(index)

    def unpack(self, index: int, trace: bytes) -> None:
        self._posted[index].handover.unpack(trace)

    def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        for member in list(self._members.values()):
            self._forget(member)
        self._listening.close()

    # --------------------------------------------------------------------------------------------------- members

    def _welcome(self, connection: Connection, hello: Hello) -> None:
        """Take a member, unless it would draw something else."""
        different = [name for name, here in versions().items() if hello.versions.get(name) != here]
        if different:
            name = different[0]
            self._refused = f"{hello.where} has {name} {hello.versions.get(name)}, and here is {versions()[name]}"
            connection.close()
            return
        self._members[connection] = _Member(connection, hello.where, time.monotonic())

    def _assign(self) -> None:
        """Give chains that wait to members that have nothing to do."""
        while self._waiting:
            idle = [member for member in self._members.values() if member.is_idle]
            if not idle:
                return
            # the one that has the fewest
            member = min(idle, key=lambda each: len(each.chains))
            posted = self._waiting.pop(0)
            try:
                parcel = self._packer.pack(posted.index)
            except Exception as error:
                # as where a chain has something that cannot be sent back: it runs here
                posted.answer = Unsent(str(error))
                continue
            number = self._chains.first + posted.index
            setting = self._setting(seed=self._chains.seeds[posted.index], number=number)
            posted.member = member
            member.chains[posted.index] = posted
            self._say(member, Begin(posted.index, parcel, setting))
            self._say(member, Ask(posted.index, posted.total))
            if posted.finish is not None:
                posted.repeats += 1
                self._say(member, Ask(posted.index, posted.finish))

    def _say(self, member: _Member, message: Any) -> None:
        try:
            member.connection.send(message)
        except OSError:
            # it is gone, or takes nothing any more: either is met when it is heard
            hang_up(member.connection)

    def _hear(self, member: _Member) -> None:
        try:
            message = member.connection.recv()
        except (OSError, EOFError):
            self._gone(member, "is gone")
            return
        member.heard = time.monotonic()
        match message:
            case Wanted(digests):
                self._say(member, Parts({digest: self._packer.parts[digest] for digest in digests}))
            case Gave(chain, sent) if chain in member.chains:
                posted = member.chains[chain]
                self._take(posted, posted.handover.loads(sent))
            case DrawsSoFar(chain) if chain in member.chains:
                member.chains[chain].add(message)
            case CannotMake(chain, reason) if chain in member.chains:
                hint = (
                    "a module that a registered procedure imports is to be installed there too, or sent along by "
                    "cloudpickle.register_pickle_by_value(module)"
                )
                error = VentureError(f"{member.where} cannot make the chain: {reason}", hint=hint)
                self._give_up(member.chains[chain], error)

    def _take(self, posted: _Posted, gave: Any) -> None:
        """What a chain says."""
        if isinstance(gave, ChainProgress):
            self._shown.append((posted.index, gave))
        elif isinstance(gave, ChainOutcome) and posted.repeats:
            posted.repeats -= 1
        else:
            self._give(posted, posted.with_all_draws(gave) if isinstance(gave, ChainOutcome) else gave)

    def _give(self, posted: _Posted, answer: Answer) -> None:
        posted.answer = answer
        if isinstance(answer, ChainOutcome) and answer.error is not None:
            self._shown.append((posted.index, ChainProgress(None)))

    def _forget(self, member: _Member) -> None:
        self._members.pop(member.connection, None)
        member.connection.close()

    def _gone(self, member: _Member, fate: str) -> None:
        """A member is gone; its chains begin anew elsewhere."""
        self._forget(member)
        for posted in member.chains.values():
            posted.member, posted.repeats, posted.fate = None, 0, f"{member.where} {fate}"
            if posted.answer is not None:
                continue
            posted.lost += 1
            if posted.lost >= MOST_LOST or self._deadline < math.inf:
                times = f", as were {posted.lost - 1} before it" if posted.lost > 1 else ""
                self._give_up(posted, ChainLost(f"{member.where} {fate}{times}", hint=KEPT))
                continue
            self._shown.append((posted.index, ChainProgress(None)))
            self._wait(posted)

    def _give_up(self, posted: _Posted, error: VentureError) -> None:
        """A chain that is at work will come to no end."""
        if posted.answer is None:
            posted.is_out = True
            error.message = f"chain {self._chains.first + posted.index}: {error.message}"
            self._give(posted, posted.with_all_draws(ChainOutcome(Draws([{}]), error=error)))

    # ----------------------------------------------------------------------------------------------------- tasks

    def _look(self) -> None:
        """See what has become of the tasks, and of members that say nothing."""
        now = time.monotonic()
        self._next_look = now + LOOK_SECONDS
        for member in [each for each in self._members.values() if now - each.heard > SILENT_SECONDS]:
            self._gone(member, f"has said nothing for {SILENT_SECONDS:.0f} s")
        if not self._waiting:
            return
        # a cluster starts a task anew by itself where its worker is gone
        free = sum(not task.done() for task in self._tasks) - len(self._members)
        if free <= 0:
            self._replace()
        if self._waiting and not self._members and now >= self._patience:
            self._patience = math.inf
            warn(f"the executor has begun nothing for {WAITING_SECONDS:.0f} s; it is waited for, and Ctrl-C ends that")

    def _replace(self) -> None:
        """Give the executor tasks for the chains that wait, if it takes any, or else give these up."""
        reason = self._refused or self._reason()
        if self._closed is None and reason is None:
            self._submit(len(self._waiting))
        reason = self._closed or reason
        if reason is not None and not self._members:
            waiting, self._waiting = self._waiting, []
            for posted in waiting:
                self._give_up(posted, ChainLost(f"the executor runs it no more: {reason}", hint=KEPT))

    def _reason(self) -> str | None:
        """Why tasks have failed, where one did."""
        for task in self._tasks:
            if task.cancelled():
                return "its tasks were cancelled"
            if not task.done():
                continue
            if (error := task.exception()) is not None:
                return _told(error)
            if isinstance(ended := task.result(), NotReached):
                return f"{ended.where} cannot call this session ({ended.reason})"
        return None


def _told(error: BaseException) -> str:
    """An executor's error in a line."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}".rstrip(": ")
