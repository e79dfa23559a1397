"""An inference program on every chain of a session, in processes of their own where that pays; it can go on.

The first chain runs here. Where that takes more than PATIENCE seconds, the chains that have not begun go to processes
forked from this one, which know all that it knows: registered procedures go along, and a short program pays nothing, be
its chains ever so many.
The clock decides where and when a chain runs (`turns.py`) and never what it draws, for each has its trace and its
generator. A process keeps its chain until the program is over, and then hands back its state (`trace/handover.py`).

A session that was given an executor has all its chains run there, from their first transition on (`executors/`).
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from venture_lite.draws.draws import Draws
from venture_lite.errors import Span, VentureError, VentureWarning, warn
from venture_lite.inference.program import InferenceProgram
from venture_lite.inference.watch import Verdict, Watch, unmoved_line
from venture_lite.language.syntax import Expression
from venture_lite.procedures import registry
from venture_lite.session.blas import BLAS_THREADS
from venture_lite.session.chain_processes import (
    HAS_FORK,
    ChainLost,
    ChainOutcome,
    ChainState,
    Elsewhere,
    Finish,
    ForkedChains,
    Pipe,
    Unsent,
    heard,
)
from venture_lite.session.chain_program import ChainProgram
from venture_lite.session.chains import Chains, Told
from venture_lite.session.turns import LOOK_SECONDS as TURN_LOOK_SECONDS
from venture_lite.session.turns import ChainTurns, processors
from venture_lite.trace.handover import Handover

PATIENCE = 0.1
"""Seconds that a program runs before chains go to other processes, whose start takes a quarter of that."""
SHORT = 0.08
"""Seconds of a chain of which half, which two processors save, is no more than the start of its process."""
LOOK_SECONDS = 0.1
"""How often the processes are heard while a chain runs here."""


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
        crew: Callable[[], Elsewhere | None] | None = None,
        until: float = math.inf,
    ) -> None:
        """One program for each chain; `start` is run once, before the expression first is. In a loop that runs pass by
        pass all runs here, and the loop's end tells what no kernel moved. `crew` makes what runs all chains where the
        session's executor has them run. At `until`, of the monotonic clock, chains stop as after Ctrl-C, wherever they
        are: it is no error, and chains may then have different numbers of draws."""
        self._chains, self._span, self._in_loop = chains, expression.span, in_loop
        several = len(programs) > 1
        self._runs = [
            ChainProgram(chains, program, expression, start, chains.first + index if several else None)
            for index, program in enumerate(programs)
        ]
        self._make_crew = crew
        # the chains that are in other processes
        self._forked = ForkedChains()
        self._others: Elsewhere = self._forked
        self._turns = ChainTurns(len(programs))
        # the chains that this run of the program has not reached yet
        self._waiting: list[int] = []
        # by index, what each chain gave last
        self._given: dict[int, ChainOutcome] = {}
        # how often the program runs now, and has been asked to run in all
        self._times = self._total = 0
        # when this run began, when chains go to other processes, and when these are heard next
        self._began = self._due = self._next_look = 0.0
        # whether chains are to stop because another did, or because the time is over
        self._stopped = False
        self._until = until
        # what chains elsewhere have warned of, and what was said of states of probability zero
        self._said: set[str] = set()
        # so far; and by chain, of an expression that is no action
        self.draws = Draws([{}] * len(programs))
        self.values: list[Any] = []
        self._around = contextlib.ExitStack()

    def __enter__(self) -> ChainRuns:
        # a proposal may overflow: what that means is for the engines to say
        self._around.enter_context(np.errstate(all="ignore"))
        self._around.enter_context(BLAS_THREADS.one())
        for index, run in enumerate(self._runs):
            run.program.show(self._chains.progress.of_chain(self._chains.first + index))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *rest: object) -> None:
        try:
            # a second Ctrl-C ends the look at what there is, and the first goes on
            with self._around, contextlib.suppress(*[KeyboardInterrupt] * (error is not None)):
                if error is None:
                    self.tell_impossible()
                self._leave(error is None or isinstance(error, (KeyboardInterrupt, VentureError)))
        except KeyboardInterrupt as interrupt:
            interrupt.draws = self.draws  # type: ignore[attr-defined]
            raise
        finally:
            self._others.end()

    # ------------------------------------------------------------------------------------------------- running

    def more(self, times: int = 1) -> Draws:
        """Run the program so many times more in every chain; all draws so far.

        An error of any kind, and Ctrl-C, carries the draws made so far as `draws`; each chain is then as its last whole
        transition left it. Where a chain's process is lost the others come to their end.
        """
        self._times, self._total, self._began = times, self._total + times, time.monotonic()
        self._due = self._began + PATIENCE
        if self._make_crew is not None:
            self._send_away(self._make_crew)
        for index in self._others:
            self._ask(index, times)
        self._waiting = [index for index in range(len(self._runs)) if index not in self._others]
        outcomes: dict[int, ChainOutcome] = {}
        while self._waiting and not (self._stopped or self._is_late):
            index = self._waiting.pop(0)
            outcomes[index] = self._here(index, times)
            self._stopped |= outcomes[index].error is not None
        for index in list(self._others):
            outcomes[index] = self._elsewhere(index)
        for index in self._waiting:
            # another chain ended this run before; what the chain made in earlier ones stays
            if (given := self._given.get(index)) is not None:
                outcomes[index] = ChainOutcome(given.draws, given.value, None)
            elif self._is_late:
                outcomes[index] = ChainOutcome(Draws([{}]))
        self._given |= outcomes
        return self._joined([outcome for _, outcome in sorted(outcomes.items())])

    def tell_impossible(self) -> None:
        """Say of chains that stand at probability zero that they do: while chains warm up they may find their way out,
        and so it is for the caller to say when that counts. Said at the end, too."""
        for outcome in self._given.values():
            if outcome.impossible and outcome.impossible not in self._said:
                self._said.add(outcome.impossible)
                warn(outcome.impossible)

    def _ask(self, index: int, times: int) -> None:
        if self._others is self._forked:
            self._turns.begin(index)
        self._others.ask(index, times)

    def _joined(self, outcomes: list[ChainOutcome]) -> Draws:
        self.draws = Draws.merge([outcome.draws for outcome in outcomes])
        self.values = [outcome.value for outcome in outcomes]
        for outcome in outcomes:
            self._say(outcome)
        met = [outcome.error for outcome in outcomes if outcome.error is not None]
        is_late = self._is_late and not self._chains.interruption.noted
        if met and not (is_late and all(isinstance(error, KeyboardInterrupt) for error in met)):
            # where one chain had an error the others were interrupted
            error = next((error for error in met if not isinstance(error, KeyboardInterrupt)), met[0])
            error.draws = self.draws  # type: ignore[attr-defined]
            raise error
        return self.draws

    def _say(self, outcome: ChainOutcome) -> None:
        """Say what a chain said in its process, but for warnings that another one said."""
        if outcome.printed:
            print(outcome.printed, end="")
        for text, kind in outcome.warned:
            if issubclass(kind, VentureWarning):
                if text not in self._said:
                    warn(text, kind)
                self._said.add(text)
            else:
                warnings.warn(text, kind, stacklevel=2)

    def _here(self, index: int, times: int) -> ChainOutcome:
        """Run a chain in this process, which meanwhile looks after the others."""
        run = self._runs[index]
        before = run.model.interrupted
        if self._waiting or list(self._others) or self._until < math.inf:
            run.model.interrupted = partial(self._look, index, run)
        self._turns.begin(index)
        try:
            return run.more(times)
        finally:
            self._turns.end(index)
            run.model.interrupted = before

    def _look(self, index: int, run: ChainProgram) -> bool:
        """Whether a chain that runs here is to stop, which it asks at each transition; out of its turn it waits."""
        now = time.monotonic()
        if self._waiting and now >= self._due:
            self._due = now + PATIENCE if self._are_short(now) else math.inf
            is_free = self._others is self._forked and not self._in_loop and run.is_alone()
            if self._due == math.inf and is_free and self._can_fork():
                self._fork()
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            self._hear(0.0)
        while not (is_over := self._stopped or self._chains.interruption.noted or self._is_late):
            if not (seconds := self._turns.seconds_until(index)):
                break
            self._hear(min(seconds, TURN_LOOK_SECONDS))
        return is_over

    @property
    def _is_late(self) -> bool:
        return self._until < math.inf and time.monotonic() >= self._until

    def _are_short(self, now: float) -> bool:
        """Whether chains end here in the time that another process would gain."""
        ended = len(self._runs) - len(self._waiting) - 1
        return now - self._began < ended * SHORT

    # ----------------------------------------------------------------------------------------------- processes

    def _can_fork(self) -> bool:
        """Whether chains can go to other processes, and gain by it."""
        if not HAS_FORK:
            self._runs[0].program.warn("the chains run one after the other: this system cannot fork")
            return False
        from multiprocessing import current_process

        in_main = threading.current_thread() is threading.main_thread()
        return in_main and not current_process().daemon and processors() > 1

    def _fork(self) -> None:
        """Let the chains that have not begun run in processes of their own."""
        procedures = [*registry.PROCEDURES.values(), *self._chains.registered.values()]
        waiting, self._waiting = self._waiting, []
        for index in waiting:
            handover = Handover(self._runs[index].model.trace, procedures)
            self._turns.begin(index)
            self._forked.fork(index, handover, partial(self._serve, index))

    def _send_away(self, make_crew: Callable[[], Elsewhere | None]) -> None:
        """Let all chains run where the session's executor has them run, or say why they do not."""
        self._make_crew = None
        first = self._runs[0]
        if self._in_loop:
            first.program.warn("the chains run here: an inference inside of a loop goes to no executor")
            return
        try:
            first.prepare()
        except VentureError:
            # told where it is run
            return
        if first.is_alone():
            self._others = make_crew() or self._forked
        elif first.does_more():
            first.program.warn("the chains run here: what the program makes for all of them goes to no executor")

    def _serve(self, index: int, pipe: Pipe) -> None:
        """Run a chain in this process, which exists for it, as long as more is asked for."""
        run, model, watch = self._runs[index], self._runs[index].model, self._runs[index].program.watch
        run.program.show(self._chains.progress.of_chain(index, pipe.show))
        model.interrupted = partial(self._is_interrupted, index)
        request: int | Finish = self._times
        while isinstance(request, int):
            pipe.send(partial(self._run_in_turns, index, request))
            # an interruption that comes from now on is of what is asked for next
            self._chains.interruption.noted = False
            request = pipe.request()
        watch.close()
        verdict = watch.finish() if request.is_judged else None
        impossible = (model.maybe_impossible, model.impossible_since)
        pipe.send(lambda: ChainState(verdict, impossible, pipe.handover.packed()))

    def _run_in_turns(self, index: int, times: int) -> ChainOutcome:
        try:
            return heard(partial(self._runs[index].more, times))
        finally:
            self._turns.end(index)

    def _is_interrupted(self, index: int) -> bool:
        """Whether a chain in its process is to stop; out of its turn it waits."""
        while not self._chains.interruption.noted and (seconds := self._turns.seconds_until(index)):
            time.sleep(min(seconds, TURN_LOOK_SECONDS))
        return self._chains.interruption.noted

    def _hear(self, seconds: float) -> None:
        """Take what messages there are, or come within this time."""
        for index, shown in self._others.hear(seconds):
            self._chains.progress.of_chain(self._chains.first + index).show(shown.snapshot)
        for index in self._others:
            if (answer := self._others.answer(index)) is not None:
                # a process that is lost cannot say so itself
                self._turns.end(index)
                self._stopped |= _ends_all(answer)

    def _elsewhere(self, index: int) -> ChainOutcome:
        """What a chain gives in its process; where that cannot be sent, what it gives here, from its start."""
        answer = self._answer(index)
        if isinstance(answer, Unsent):
            self._take_back(index, answer)
            return self._here(index, self._total)
        assert isinstance(answer, ChainOutcome)
        return answer

    def _answer(self, index: int) -> ChainOutcome | ChainState | Unsent:
        while (answer := self._others.answer(index)) is None:
            if self._stopped or self._chains.interruption.noted or self._is_late:
                self._others.interrupt()
            self._hear(LOOK_SECONDS)
        return answer

    def _take_back(self, index: int, unsent: Unsent) -> None:
        self._others.take_back(index)
        number = self._chains.first + index
        warn(f"chain {number} runs again here, for what its process has cannot be sent: {unsent.reason}")

    # ------------------------------------------------------------------------------------------------ at the end

    def _leave(self, tells: bool) -> None:
        """Let each chain of the session stand at its last state, and tell what no kernel moved."""
        if self._in_loop:
            return
        told = self._chains.told_unmoved.get(self._span.text)
        is_judged = tells and (told is None or told.looks_again(self._chains.models))
        for index in self._others:
            self._others.ask(index, Finish(is_judged))
        verdicts = []
        for index, run in enumerate(self._runs):
            left = self._left(index, run) if index in self._others else None
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
        answer = self._answer(index)
        if isinstance(answer, Unsent):
            self._take_back(index, answer)
            run.more(self._total)
        if not isinstance(answer, ChainState):
            return None
        self._others.unpack(index, answer.trace)
        run.model.maybe_impossible, run.model.impossible_since = answer.impossible
        return answer


def _ends_all(answer: ChainOutcome | ChainState | Unsent | None) -> bool:
    """Whether what a chain gave ends the run of the others: one that is lost does not."""
    return isinstance(answer, ChainOutcome) and answer.error is not None and not isinstance(answer.error, ChainLost)


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
