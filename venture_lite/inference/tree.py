"""What an inference program is compiled to: a tree of records, each of which runs, and tells what it is.

Combinators have parts; kernels, of which each says how it moves what, and effects (`collect`, `print`, ...) have none.
`str` of a part is its tree, a line for each part.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from venture_lite.errors import CallSite, Span, VentureError, escaped
from venture_lite.interpreter.failures import FailedSolves
from venture_lite.interpreter.kernel import BlockKernel, Kernel
from venture_lite.interpreter.selection import Selection, Selector
from venture_lite.interpreter.tally import Tally
from venture_lite.values import show, to_python

if TYPE_CHECKING:
    from venture_lite.inference.program import InferenceProgram
    from venture_lite.inference.watch import Use, WatchedCollect


@dataclass(frozen=True, slots=True)
class Part(ABC):
    """A part of an inference program. Parts compare by what they do, not by the model that they do it to."""

    action: str
    # what it runs
    parts: tuple[Part, ...] = field(default=(), kw_only=True)

    @property
    def heading(self) -> str:
        """What it is, without its parts, in a line."""
        return self.action

    @abstractmethod
    def run(self) -> None:
        """Run it once. After an error or Ctrl-C the traces are as the last whole transition left them."""

    def run_parts(self) -> None:
        """Run what it runs, one after the other."""
        for part in self.parts:
            part.run()

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Part]]:
        """It and the parts inside it, each with its depth."""
        yield depth, self
        for part in self.parts:
            yield from part.walk(depth + 1)

    def __str__(self) -> str:
        return "\n".join("  " * depth + part.heading for depth, part in self.walk())


def often(times: int) -> str:
    return "once" if times == 1 else f"{times:,} times"


# ------------------------------------------------------------------------------------------------- combinators


@dataclass(frozen=True, slots=True)
class Do(Part):
    """Runs parts one after the other."""

    def run(self) -> None:
        self.run_parts()


@dataclass(frozen=True, slots=True)
class Repeat(Part):
    """Runs parts, in order, so many times."""

    times: int
    program: InferenceProgram = field(repr=False, compare=False)

    @property
    def heading(self) -> str:
        return f"{self.action} {often(self.times)}"

    def run(self) -> None:
        _repeat(self.program, self.action, self.times, self.run_parts)


@dataclass(frozen=True, slots=True)
class Mixture(Part):
    """Runs one part, drawn with probability in proportion to its weight, so many times."""

    times: int
    weights: tuple[float, ...]
    program: InferenceProgram = field(repr=False, compare=False)

    @property
    def heading(self) -> str:
        return f"mixture {often(self.times)}, by weights {', '.join(map(show, self.weights))}"

    def run(self) -> None:
        _repeat(self.program, self.action, self.times, self._run_one)

    def _run_one(self) -> None:
        target = self.program.model.trace.rng.random() * float(sum(self.weights))
        for weight, part in zip(self.weights, self.parts, strict=True):
            target -= weight
            if target < 0:
                part.run()
                return
        self.parts[max(i for i, weight in enumerate(self.weights) if weight > 0)].run()


def _repeat(program: InferenceProgram, action: str, times: int, once: Callable[[], None]) -> None:
    program.progress.begin(action, times)
    try:
        for done in range(times):
            program.model.poll()
            once()
            program.progress.advance(done + 1)
    finally:
        program.progress.end()


# ----------------------------------------------------------------------------------------------------- effects


Samplers = tuple[tuple[str, Callable[[], Any]], ...]
"""The name of each variable, and what gives its present value."""
Add = Callable[[list[tuple[str, Any]]], None]
"""Adds one draw of each of some variables, by name."""


@dataclass(frozen=True, slots=True)
class Keep(Part):
    """Draws every variable and adds the draws to the result: `collect`, `labelled` and `plot`."""

    names: tuple[str, ...]
    samplers: Samplers = field(repr=False, compare=False)
    add: Add = field(repr=False, compare=False)
    watched: WatchedCollect = field(repr=False, compare=False)

    @property
    def heading(self) -> str:
        return " ".join([self.action, *self.names])

    def run(self) -> None:
        self.watched.begin()
        # all are made before one is kept: an error or Ctrl-C in the second leaves no draw of the first alone
        values = [(name, sample()) for name, sample in self.samplers]
        self.add([(name, value if value.__class__ is float else to_python(value)) for name, value in values])
        self.watched.ran()


@dataclass(frozen=True, slots=True)
class Print(Part):
    """Shows the present value of every variable."""

    names: tuple[str, ...]
    samplers: Samplers = field(repr=False, compare=False)

    @property
    def heading(self) -> str:
        return " ".join([self.action, *self.names])

    def run(self) -> None:
        print(escaped("  ".join(f"{name} = {show(sample())}" for name, sample in self.samplers)))


# ----------------------------------------------------------------------------------------------------- kernels


@dataclass(frozen=True, slots=True)
class KernelPart(Part):
    """Moves blocks: an action by its engine, so many times; of a sweep each time every block."""

    scope: Any
    selector: Selector
    times: int
    # how it moves a block
    move: str
    span: Span = field(repr=False, compare=False)
    kernel: Kernel = field(repr=False, compare=False)
    selection: Selection = field(repr=False, compare=False)
    tally: Tally = field(repr=False, compare=False)
    use: Use = field(repr=False, compare=False)
    failures: FailedSolves = field(repr=False, compare=False)

    @property
    def heading(self) -> str:
        return f"{self.action} {often(self.times)}, {self.selector.words(self.scope)}: {self.move}"

    def run(self) -> None:
        kernel, tally = self.kernel, self.tally
        try:
            if isinstance(kernel, BlockKernel):
                kernel.look(self.selection)
            start = time.perf_counter()
            if self.times:
                self.use.ran()
            try:
                with self.failures.added_to(tally.failures):
                    kernel.run(self.selection, self.times, tally)
            finally:
                tally.seconds += time.perf_counter() - start
        except VentureError as error:
            raise located(error, self.span) from error


def located(error: VentureError, action: Span) -> VentureError:
    """An error met while an action ran: the action ends the chain of calls."""
    if error.span is None:
        return error.at(action)
    error.chain = (*error.chain, CallSite(" ".join(action.text.split()), action))
    return error


@dataclass(frozen=True, slots=True)
class Reported(Part):
    """Runs parts and tells what came of it: `subsampled_mh_report`."""

    tell: Callable[[], None] = field(repr=False, compare=False)

    def run(self) -> None:
        self.run_parts()
        self.tell()
