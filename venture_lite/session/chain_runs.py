"""An inference program on every chain of a session, in processes of their own where that pays; it can go on.

The first chain runs here. Where that takes more than PATIENCE seconds, the chains that have not begun go to processes
forked from this one, which know all that it knows: registered procedures go along, and a short program pays nothing.
The clock decides where a chain runs and never what it draws, for each has its trace and its generator. A process keeps
its chain until the program is over, and then hands back its state (`trace/handover.py`).
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from venture_lite.draws.draws import Draws
from venture_lite.errors import Span, VentureError, VentureWarning, warn
from venture_lite.inference.actions import ACTIONS
from venture_lite.inference.program import InferenceProgram
from venture_lite.inference.tree import Part, Repeat
from venture_lite.inference.watch import Verdict, Watch, unmoved_line
from venture_lite.interpreter.impossible import impossible_choices, told
from venture_lite.interpreter.model import Model
from venture_lite.language.syntax import Expression
from venture_lite.procedures import registry
from venture_lite.session.chain_processes import (
    HAS_FORK,
    ChainLost,
    ChainOutcome,
    ChainState,
    Finish,
    Pipe,
    Unsent,
    Worker,
    heard,
)
from venture_lite.session.chains import Chains, Told
from venture_lite.trace.handover import Handover
from venture_lite.values import to_python

PATIENCE = 0.25
"""Seconds that a program runs before chains go to other processes, whose start takes a tenth of that."""
LOOK_SECONDS = 0.1
"""How often the processes are heard while a chain runs here."""


class ChainProgram:
    """The program in one chain. Mutates the chain's trace."""

    def __init__(
        self,
        chains: Chains,
        program: InferenceProgram,
        expression: Expression,
        start: Expression | None,
        number: int | None,
    ) -> None:
        self.program, self.model = program, program.model
        self._chains, self._expression, self._start = chains, expression, start
        # what the chain is called, where there are several
        self._number = number
        # what begins it, and what runs; none before it first does, and for an expression that is no action
        self._begin: Part | None = None
        self._part: Part | None = None

    def more(self, times: int) -> ChainOutcome:
        """Run the program so many times more; all that it gave so far. After an error or Ctrl-C, which the outcome has,
        the trace is as the last whole transition left it."""
        program, model = self.program, self.model
        self._chains.collecting = program.draws
        error: BaseException | None = None
        value = None
        try:
            value = to_python(self._run(times))
            model.commit()
        except BaseException as met:
            error = met
            model.rollback()
        finally:
            self._chains.collecting = None
        draws = program.finished(looked_at=error is None)
        if error is None:
            _warn_impossible(model, self._number)
        return ChainOutcome(draws, value, error)

    def _run(self, times: int) -> Any:
        if not self.program.is_action(self._expression):
            return self.program.value(self._expression)
        if self._part is None:
            # all is known before the first thing runs, as of a program in one text: a start may take long, too
            self._begin = None if self._start is None else self.program.compile(self._start)
            self._part = self.program.compile(self._expression)
            if self._begin is not None:
                self._begin.run()
        if times == 1:
            self._part.run()
        else:
            Repeat("repeat", times, self.program, parts=(self._part,)).run()
        return None

    def is_alone(self) -> bool:
        """Whether a program that runs makes nothing that is for all chains."""
        parts = [part for part in (self._begin, self._part) if part is not None]
        return bool(parts) and not any(ACTIONS[each.action].for_all_chains for part in parts for _, each in part.walk())


class ChainRuns:
    """One program on all chains of a session. Mutable.

        with ChainRuns(chains, programs, expression) as runs:
            draws = runs.more(1000)
            while not is_enough(draws):
                draws = runs.more(500)

    At the end of the block each chain of the session stands at its last state, and what no kernel moved is told.
    """

    def __init__(
        self,
        chains: Chains,
        programs: Sequence[InferenceProgram],
        expression: Expression,
        start: Expression | None = None,
        in_loop: bool = False,
    ) -> None:
        """One program for each chain; `start` is run once, before the expression first is. In a loop that runs pass by
        pass all runs here, and the loop's end tells what no kernel moved."""
        self._chains, self._span, self._in_loop = chains, expression.span, in_loop
        several = len(programs) > 1
        self._runs = [
            ChainProgram(chains, program, expression, start, chains.first + index if several else None)
            for index, program in enumerate(programs)
        ]
        # by index, the chains that are in processes of their own
        self._workers: dict[int, Worker] = {}
        # the chains that this run of the program has not reached yet
        self._waiting: list[int] = []
        # by index, what each chain gave last
        self._given: dict[int, ChainOutcome] = {}
        # how often the program runs now, and has been asked to run in all
        self._times = self._total = 0
        # when chains go to other processes, and when these are heard next
        self._due = self._next_look = 0.0
        # whether chains are to stop because another did
        self._stopped = False
        # so far; and by chain, of an expression that is no action
        self.draws = Draws([{}] * len(programs))
        self.values: list[Any] = []
        self._around = contextlib.ExitStack()

    def __enter__(self) -> ChainRuns:
        # a proposal may overflow: what that means is for the engines to say
        self._around.enter_context(np.errstate(all="ignore"))
        self._around.enter_context(_BLAS_THREADS.one())
        for index, run in enumerate(self._runs):
            run.program.show(self._chains.progress.of_chain(self._chains.first + index))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *rest: object) -> None:
        try:
            # a second Ctrl-C ends the look at what there is, and the first goes on
            with self._around, contextlib.suppress(*[KeyboardInterrupt] * (error is not None)):
                self._leave(error is None or isinstance(error, (KeyboardInterrupt, VentureError)))
        except KeyboardInterrupt as interrupt:
            interrupt.draws = self.draws  # type: ignore[attr-defined]
            raise
        finally:
            for worker in self._workers.values():
                worker.end()

    # ------------------------------------------------------------------------------------------------- running

    def more(self, times: int = 1) -> Draws:
        """Run the program so many times more in every chain; all draws so far.

        An error of any kind, and Ctrl-C, carries the draws made so far as `draws`; each chain is then as its last whole
        transition left it. Where a chain's process is lost the others come to their end.
        """
        self._times, self._total, self._due = times, self._total + times, time.monotonic() + PATIENCE
        for worker in self._workers.values():
            worker.ask(times)
        self._waiting = [index for index in range(len(self._runs)) if index not in self._workers]
        outcomes: dict[int, ChainOutcome] = {}
        while self._waiting and not self._stopped:
            index = self._waiting.pop(0)
            outcomes[index] = self._here(index, times)
            self._stopped |= outcomes[index].error is not None
        for index in sorted(self._workers):
            outcomes[index] = self._elsewhere(index)
        for index in self._waiting:
            # another chain ended this run before; what the chain made in earlier ones stays
            if (given := self._given.get(index)) is not None:
                outcomes[index] = ChainOutcome(given.draws, given.value, None)
        self._given |= outcomes
        return self._joined([outcome for _, outcome in sorted(outcomes.items())])

    def _joined(self, outcomes: list[ChainOutcome]) -> Draws:
        self.draws = Draws.merge([outcome.draws for outcome in outcomes])
        self.values = [outcome.value for outcome in outcomes]
        for outcome in outcomes:
            _say(outcome)
        met = [outcome.error for outcome in outcomes if outcome.error is not None]
        if met:
            # where one chain had an error the others were interrupted
            error = next((error for error in met if not isinstance(error, KeyboardInterrupt)), met[0])
            error.draws = self.draws  # type: ignore[attr-defined]
            raise error
        return self.draws

    def _here(self, index: int, times: int) -> ChainOutcome:
        """Run a chain in this process, which meanwhile looks after the others."""
        run = self._runs[index]
        before = run.model.interrupted
        if self._waiting or self._workers:
            run.model.interrupted = partial(self._look, run)
        try:
            return run.more(times)
        finally:
            run.model.interrupted = before

    def _look(self, run: ChainProgram) -> bool:
        """Whether a chain that runs here is to stop, which it asks at each transition."""
        now = time.monotonic()
        if self._waiting and now >= self._due:
            self._due = math.inf
            if not self._in_loop and run.is_alone() and self._can_fork():
                self._fork()
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            self._hear(0.0)
        return self._stopped or self._chains.interruption.noted

    # ----------------------------------------------------------------------------------------------- processes

    def _can_fork(self) -> bool:
        """Whether chains can go to other processes, and gain by it."""
        if not HAS_FORK:
            self._runs[0].program.warn("the chains run one after the other: this system cannot fork")
        in_main = threading.current_thread() is threading.main_thread()
        free = HAS_FORK and in_main and not multiprocessing.current_process().daemon
        return free and len(os.sched_getaffinity(0)) > 1

    def _fork(self) -> None:
        """Let the chains that have not begun run in processes of their own."""
        procedures = [*registry.PROCEDURES.values(), *self._chains.registered.values()]
        waiting, self._waiting = self._waiting, []
        for index in waiting:
            handover = Handover(self._runs[index].model.trace, procedures)
            self._workers[index] = Worker(index, handover, partial(self._serve, index))

    def _serve(self, index: int, pipe: Pipe) -> None:
        """Run a chain in this process, which exists for it, as long as more is asked for."""
        run, model, watch = self._runs[index], self._runs[index].model, self._runs[index].program.watch
        run.program.show(self._chains.progress.of_chain(index, pipe.show))
        request: int | Finish = self._times
        while isinstance(request, int):
            self._chains.interruption.noted = False
            pipe.send(partial(heard, partial(run.more, request)))
            request = pipe.request()
        watch.close()
        verdict = watch.finish() if request.is_judged else None
        impossible = (model.maybe_impossible, model.impossible_since)
        pipe.send(lambda: ChainState(verdict, impossible, pipe.handover.packed()))

    def _hear(self, seconds: float) -> None:
        """Take what messages there are."""
        while working := {each.connection: each for each in self._workers.values() if each.answer is None}:
            ready = wait(list(working), timeout=seconds)
            for end in ready:
                self._hear_one(working[end])  # type: ignore[index]
            if not ready or seconds:
                return

    def _hear_one(self, worker: Worker) -> None:
        shown = worker.hear()
        answer, progress = worker.answer, self._chains.progress.of_chain(self._chains.first + worker.index)
        if shown is not None:
            progress.show(shown.snapshot)
        elif isinstance(answer, ChainOutcome) and isinstance(answer.error, ChainLost):
            progress.show(None)
        elif isinstance(answer, ChainOutcome):
            self._stopped |= answer.error is not None

    def _elsewhere(self, index: int) -> ChainOutcome:
        """What a chain gives in its process; where that cannot be sent, what it gives here, from its start."""
        answer = self._answer(index)
        if isinstance(answer, Unsent):
            self._take_back(index, answer)
            return self._here(index, self._total)
        assert isinstance(answer, ChainOutcome)
        return answer

    def _answer(self, index: int) -> ChainOutcome | ChainState | Unsent:
        worker = self._workers[index]
        while worker.answer is None:
            if self._stopped or self._chains.interruption.noted:
                for other in self._workers.values():
                    other.interrupt()
            self._hear(LOOK_SECONDS)
        return worker.answer

    def _take_back(self, index: int, unsent: Unsent) -> None:
        self._workers.pop(index).end()
        number = self._chains.first + index
        warn(f"chain {number} runs again here, for what its process has cannot be sent: {unsent.reason}")

    # ------------------------------------------------------------------------------------------------ at the end

    def _leave(self, tells: bool) -> None:
        """Let each chain of the session stand at its last state, and tell what no kernel moved."""
        if self._in_loop:
            return
        told = self._chains.told_unmoved.get(self._span.text)
        is_judged = tells and (told is None or told.looks_again(self._chains.models))
        for worker in self._workers.values():
            worker.ask(Finish(is_judged))
        verdicts = []
        for index, run in enumerate(self._runs):
            left = self._left(index, run) if index in self._workers else None
            run.program.watch.close()
            if is_judged:
                verdicts.append(run.program.watch.finish() if left is None or left.verdict is None else left.verdict)
            if self._chains.count > 1:
                # a process leaves behind what it made ready: no draw is to depend on where a chain ran
                run.model.let_go()
        if tells:
            tell(self._chains, verdicts, self._span, self.draws)

    def _left(self, index: int, run: ChainProgram) -> ChainState | None:
        """Bring a chain to the state that its process leaves; None where it came there by itself, or the process is
        lost."""
        worker = self._workers[index]
        answer = self._answer(index)
        if isinstance(answer, Unsent):
            self._take_back(index, answer)
            run.more(self._total)
        if not isinstance(answer, ChainState):
            return None
        worker.handover.unpack(answer.trace)
        run.model.maybe_impossible, run.model.impossible_since = answer.impossible
        return answer


def _say(outcome: ChainOutcome) -> None:
    """Say what a chain said in its process."""
    if outcome.printed:
        print(outcome.printed, end="")
    for text, kind in outcome.warned:
        if issubclass(kind, VentureWarning):
            warn(text)
        else:
            warnings.warn(text, kind, stacklevel=2)


def judge(chains: Chains, watches: Sequence[Watch], span: Span, draws: Draws | None) -> None:
    """Say what no kernel moved though the draws of a loop rest on it."""
    for watch in watches:
        watch.close()
    told = chains.told_unmoved.get(span.text)
    verdicts = [watch.finish() for watch in watches] if told is None or told.looks_again(chains.models) else []
    tell(chains, verdicts, span, draws)


def tell(chains: Chains, verdicts: Sequence[Verdict], span: Span, draws: Draws | None) -> None:
    """Say what no kernel moved, each name once for a program text; `draws` are told of what `force` holds."""
    held: dict[str, None] = dict.fromkeys(draws.held if draws is not None else ())
    for verdict in verdicts:
        held.update(dict.fromkeys(verdict.held))
        for name, count in verdict.unmoved.items():
            told = chains.told_unmoved.setdefault(span.text, Told())
            if name not in told.names:
                told.names.add(name)
                warn(f"{span.place()}: {unmoved_line(name, count)}")
    if draws is not None:
        draws.held = tuple(held)


def _warn_impossible(model: Model, chain: int | None) -> None:
    """Say so where inference ended at probability zero, and name the observation."""
    if not model.maybe_impossible:
        return
    impossible = impossible_choices(model.trace)
    if not impossible:
        model.maybe_impossible = False
        return
    more = f" (and {len(impossible) - 1} more)" if len(impossible) > 1 else ""
    of_chain = f"chain {chain}: " if chain is not None else ""
    warn(f"{of_chain}the state has probability zero: {told(model.trace, impossible[0])}{more}")


class _BlasThreads:
    """The BLAS library's number of threads, which the whole process shares: one while any thread infers.

    Each thread that limited it for itself would put back, at its end, what another had set.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None
        # the libraries that were loaded when so many modules were
        self._libraries: Any = None
        self._modules = 0

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Transitions are many and small: BLAS threads would cost more than they bring."""
        with self._lock:
            if not self._users:
                self._limit = self._found().limit(limits=1, user_api="blas")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._limit.restore_original_limits()

    def _found(self) -> Any:
        """The process's libraries. To look for them takes 5 ms, and only a module that is imported brings another."""
        from threadpoolctl import ThreadpoolController

        if self._modules != len(sys.modules):
            self._libraries, self._modules = ThreadpoolController(), len(sys.modules)
        return self._libraries


_BLAS_THREADS = _BlasThreads()
