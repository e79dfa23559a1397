"""The traces of one program, what its caller gives to a directive, and how an error or Ctrl-C leaves them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from venture_lite.draws.draws import DrawsBuilder
from venture_lite.errors import LimitError, Span, VentureError
from venture_lite.inference.watch import Watch
from venture_lite.interpreter.machine import Limits
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.tally import Progress
from venture_lite.kernels.direct_worlds import DirectWorlds
from venture_lite.procedures.record import Procedure
from venture_lite.program.code import Extent
from venture_lite.session.interruption import Interruption
from venture_lite.session.shapes import truncate
from venture_lite.session.standard import StandardLibrary
from venture_lite.trace.kept import InCommon

if TYPE_CHECKING:
    from venture_lite.language.syntax import Expression
    from venture_lite.session.chain_processes import Elsewhere
    from venture_lite.session.live import Directory

LONGEST_JOURNAL = 100_000
"""Entries of a journal that are kept for one directive while the next runs, which may fail and change nothing."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a directive finds when it runs."""

    # values for `{name}`
    parameters: Mapping[str, Any]
    # the variables of the loops that run pass by pass around it, outermost first
    passes: Mapping[str, int] = field(default_factory=dict)
    # the outermost of these loops, this time: passes of one run may share a label
    run: object = None
    # in a loop, what is known of the draws of all its passes, by chain
    watches: tuple[Watch, ...] = ()

    def inside(self, variable: str, value: int) -> Given:
        return replace(self, passes={**self.passes, variable: value})

    def in_loop(self, models: list[Model]) -> Given:
        """The same at the start of a loop."""
        if self.run is not None:
            return self
        return replace(self, run=object(), watches=tuple(Watch(model, in_loop=True) for model in models))


@dataclass(slots=True, eq=False)
class Told:
    """The names of choices that were told to be unmoved by one program text, and how often it ran since. Mutable."""

    names: set[str] = field(default_factory=set)
    runs: int = 0

    def looks_again(self, models: list[Model]) -> bool:
        """Whether one more run is judged: where many choices are unmoved each look costs as much as many transitions,
        so that the looks become rare, but for what `force` holds, which every summary tells."""
        self.runs += 1
        return not self.runs & (self.runs - 1) or any(model.trace.default.forced for model in models)


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a trace stood: a place in its journal, its random numbers, and what text there was. During an inference,
    which keeps the transitions that it has made, only the journal counts."""

    journal: int
    generator: Mapping[str, Any] | None
    text: Extent
    impossible: tuple[bool, Span | None]

    @classmethod
    def of(cls, model: Model, moves: bool = False) -> Mark:
        trace = model.trace
        return cls(
            trace.journal.mark(),
            None if moves else trace.rng.bit_generator.state,
            trace.program.extent(),
            (model.maybe_impossible, model.impossible_since),
        )

    def put_back(self, model: Model) -> None:
        """Take back what was done since."""
        model.rollback(self.journal)
        if self.generator is not None:
            model.trace.rng.bit_generator.state = self.generator
            model.maybe_impossible, model.impossible_since = self.impossible
            truncate(model, self.text)


class ChainExecutor(Protocol):
    """Where the chains of a session run, if not here."""

    def crew(
        self, chains: Chains, directory: Directory, expression: Expression, start: Expression | None, given: Given
    ) -> Elsewhere | None:
        """What runs an inference program in all chains; None where they cannot go there."""


def nested_too_deeply() -> LimitError:
    return LimitError("the expression is nested too deeply", hint="give parts of it names by assume or define")


class Chains:
    """Traces of one program, one for each chain. Mutable: they are made anew by `clear`."""

    def __init__(
        self,
        seeds: list[np.random.SeedSequence],
        count: int,
        first: int,
        limits: Limits,
        progress: Progress,
        kernels: str,
        executor: ChainExecutor | None = None,
    ) -> None:
        self.executor = executor
        self.seeds = seeds
        # of all chains of the program, here and in other processes
        self.count = count
        # position of the first of them among all chains of the program
        self.first = first
        self.limits = limits
        self.kernels = kernels
        self.progress = progress
        self.registered: dict[str, Procedure] = {}
        self.in_common = InCommon()
        # what `define` binds, for inference expressions only
        self.defined: dict[str, Any] = {}
        # program texts of which some choices were told to be moved by none of their kernels
        self.told_unmoved: dict[str, Told] = {}
        self.interruption = Interruption()
        # what the inference under way has collected in the chain that it is at; another thread may look
        self.collecting: DrawsBuilder | None = None
        # whether directives that are done can still be taken back: their journal is kept until `settle`
        self.holds = False
        # where each stood when the last directive was done
        self._marks: list[Mark] = []
        # how often everything before was made final
        self.settled = 0
        # held while a directive runs: a trace takes one at a time
        self._in_use = threading.Lock()
        self.models: list[Model] = []
        self.clear()

    def clear(self) -> None:
        """Empty traces, with the generators that the seed gives."""
        self.models = [
            Model(np.random.default_rng(seed), StandardLibrary(), self.limits, self.kernels) for seed in self.seeds
        ]
        self.defined.clear()
        self.holds = False
        self._mark()
        for model in self.models:
            # asked at each transition: no call of Python
            model.interrupted = partial(getattr, self.interruption, "noted")
            model.in_common = self.in_common
            model.direct = None if self.kernels == "interpreted" else DirectWorlds
            model.trace.analyzer.registered = self.registered
            model.trace.analyzer.defined = self.defined

    def anew(self, seeds: list[np.random.SeedSequence]) -> Chains:
        """Empty traces of other seeds, with the same procedures and definitions."""
        other = Chains(seeds, len(seeds), 0, self.limits, self.progress, self.kernels, self.executor)
        other.registered, other.interruption = self.registered, self.interruption
        other.clear()
        other.defined.update(self.defined)
        return other

    def keep(self, positions: list[int]) -> None:
        """Only the chains at these positions are left."""
        self.models[:] = [self.models[position] for position in positions]
        self.seeds[:] = [self.seeds[position] for position in positions]
        self._marks[:] = [self._marks[position] for position in positions]
        self.count = len(positions)

    def joined(self, values: list[Any]) -> Any:
        """One value where there is one chain, else the list."""
        return values[0] if len(self.models) == 1 else values

    def commit(self) -> None:
        """Make a directive final; while directives are held back, all but `take_back`."""
        if not self.holds:
            self.settle()
            return
        for model in self.models:
            model.trace.statistics.loading = None
        self._mark()

    def settle(self, moves: bool = False) -> None:
        """Nothing that was done until now can be taken back; what `moves` the traces from now on keeps what it does,
        transition by transition."""
        self.holds = False
        self.settled += 1
        for model in self.models:
            model.commit()
        self._mark(moves)

    def _mark(self, moves: bool = False) -> None:
        self._marks = [Mark.of(model, moves) for model in self.models]

    def hold_back(self) -> list[Mark]:
        """From now on, what directives do can be taken back, until an inference moves the traces; the marks for it."""
        if not self.holds or max(mark.journal for mark in self._marks) > LONGEST_JOURNAL:
            self.settle()
        self.holds = True
        self._mark()
        return self._marks

    def take_back(self, marks: list[Mark]) -> None:
        """Undo all that was done since `hold_back` gave the marks."""
        for model, mark in zip(self.models, marks, strict=True):
            mark.put_back(model)
        self._marks = marks

    def rollback(self) -> None:
        """Undo what the present directive has done."""
        self.take_back(self._marks)

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Ctrl-C becomes a note that is read where the trace can stop; after an error the trace is as it was.

        Raises VentureError where a directive is under way already, in another thread or in this one.
        """
        # in this order: between taking the lock and giving it back no signal may raise anything
        with self.interruption.deferred():
            if not self._in_use.acquire(blocking=False):
                hint = "give each thread a Venture of its own; a registered procedure cannot use the one that calls it"
                raise VentureError("this Venture is running a directive already", hint=hint)
            try:
                with self._undone_on_error():
                    yield
            finally:
                self._in_use.release()

    @contextlib.contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        self.commit()
        try:
            yield
        except BaseException as error:
            self.rollback()
            if isinstance(error, RecursionError):
                raise nested_too_deeply() from None
            if isinstance(error, MemoryError):
                raise LimitError("there is not enough memory for this", hint="use fewer or smaller values") from None
            raise
