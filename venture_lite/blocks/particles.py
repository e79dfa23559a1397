"""Particles of whole traces: states that the one trace takes on in turn, for kernels to move.

Where choices change nothing but values, a state is an entry of columns, one for each choice and for what is computed
from choices: drawing, feeding data and resampling take all particles in one call. Any other state is a copy of what the
trace holds.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from venture_lite.errors import KernelError
from venture_lite.inference.data import Data
from venture_lite.inference.tree import Do, KernelPart, Part, Repeat
from venture_lite.interpreter.answered_columns import value_at
from venture_lite.interpreter.answers import Differs
from venture_lite.interpreter.impossible import REJECTING
from venture_lite.interpreter.kernel import BlockKernel, Move, Resimulation
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.schedule import BlockNodes, Bundle, Schedule, StrandRows
from venture_lite.interpreter.weights import density_of
from venture_lite.kernels.column_moves import ColumnMove, ColumnWeights, NoColumns
from venture_lite.kernels.population import Failures, Population, Writer, taken
from venture_lite.procedures.record import Random
from venture_lite.trace.copies import Copies
from venture_lite.trace.nodes import row_of
from venture_lite.trace.table import column_of

Visit = Callable[[int], None]
"""Called with the number of a particle, at whose state the trace stands; it may move it."""


def unobserved(model: Model) -> list[int]:
    """Every choice that no evidence fixes."""
    return list(model.trace.default.everything())


class Particles(ABC):
    """The states of `count` particles of one model; the trace stands at one of them, or between."""

    def __init__(self, model: Model, count: int) -> None:
        self.model = model
        self.count = count

    @abstractmethod
    def draw(self) -> np.ndarray:
        """Draw every particle from the prior; whether each (count,) could be drawn."""

    @abstractmethod
    def each(self, visit: Visit, alive: np.ndarray) -> None:
        """Visit the particles that are alive (count,), one after the other, and keep what they have become."""

    @abstractmethod
    def take(self, places: np.ndarray) -> None:
        """Have in each place the particle of these places (count,)."""

    @abstractmethod
    def stand_at(self, particle: int) -> None:
        """Bring the trace to a particle's state."""

    def moved(self, part: Part) -> bool:
        """Whether a part of a program was run for all particles at once."""
        return False

    def weigh(self, nodes: Sequence[int]) -> np.ndarray | None:
        """The sum of the log densities of some choices (count,), all particles at once; None where that is not to be
        had."""
        return None

    @abstractmethod
    def feed(self, data: Data, datum: int, alive: np.ndarray) -> np.ndarray:
        """Put a datum in, with choices of its own drawn; the log density (count,) of what it observes, -inf for
        particles that are not alive. Raises Differs, and nothing was done, where columns are not the interpreter's."""


# ------------------------------------------------------------------------------------------------------ whole traces


class WholeParticles(Particles):
    """Particles whose families differ: copies of the trace."""

    def __init__(self, model: Model, count: int, copies: Copies) -> None:
        super().__init__(model, count)
        self._copies = copies
        self.states: list[bytes] = []

    def draw(self) -> np.ndarray:
        drawn = np.ones(self.count, bool)
        proposal = Resimulation(self.model)
        for particle in range(self.count):
            self.model.poll()
            try:
                with self.model.transaction() as change:
                    scaffold = Builder(self.model.trace).build(unobserved(self.model))
                    self.model.regenerator.detach(scaffold, counts=False)
                    self.model.regenerator.regenerate(scaffold, proposal)
                    change.keep()
            except REJECTING:
                drawn[particle] = False
            self.states.append(self._copies.keep())
        return drawn

    def each(self, visit: Visit, alive: np.ndarray) -> None:
        for particle in np.flatnonzero(alive).tolist():
            self.model.poll()
            self.stand_at(particle)
            visit(particle)
            self.states[particle] = self._copies.keep()

    def take(self, places: np.ndarray) -> None:
        self.states = [self.states[place] for place in places.tolist()]

    def stand_at(self, particle: int) -> None:
        self._copies.put(self.states[particle])

    def feed(self, data: Data, datum: int, alive: np.ndarray) -> np.ndarray:
        terms = np.full(self.count, -math.inf)

        def visit(particle: int) -> None:
            # what cannot be drawn leaves the datum out of a state that has no weight and is never looked at again
            with suppress(*REJECTING):
                terms[particle] = data.feed(datum).value()

        self.each(visit, alive)
        data.is_in(datum)
        return terms


# -------------------------------------------------------------------------------------------------------- plain ones


class PlainParticles(Particles):
    """Particles that differ in values alone: a column for each choice and each value computed from choices."""

    def __init__(self, model: Model, count: int) -> None:
        super().__init__(model, count)
        self._population: Population = {}
        # the nodes of the population that the trace stores
        self._stored: list[int] = []
        # transitions of blocks, by kernel and block; None where columns have none
        self._printed: dict[tuple[int, ...], ColumnMove | None] = {}
        self._weights: ColumnWeights | None = None
        self._printed_at = -1

    @staticmethod
    def fit(model: Model) -> bool:
        """Whether the states of a model differ in values alone."""
        return Schedule(model.trace, [unobserved(model)]).is_plain()

    def draw(self) -> np.ndarray:
        self._population.clear()
        self._stored.clear()
        return self._extend()

    def whole(self, copies: Copies, alive: np.ndarray) -> WholeParticles:
        """The same states as copies of the trace; of those that are not alive (count,) any."""
        found = WholeParticles(self.model, self.count, copies)
        for particle, is_alive in enumerate(alive.tolist()):
            if is_alive:
                self.stand_at(particle)
            found.states.append(copies.keep())
        return found

    def _extend(self) -> np.ndarray:
        """Draw and compute for every particle what the trace has and the population has not yet; whether each could
        be."""
        schedule = Schedule(self.model.trace, [unobserved(self.model)])
        new = [node for step in schedule.steps for node in step.order if node not in self._population]
        principals = schedule.scaffold.principals

        def write(writer: Writer) -> None:
            for node in new:
                (writer.draw if node in principals else writer.renew)(node)

        _, possible = self._computed(new, write)
        stored = (node for node in new if node in self._population)
        self._stored += [node for node in stored if not self.model.trace.is_borrowed(node)]
        return possible

    def _computed(self, nodes: Sequence[int], write: Callable[[Writer], None]) -> tuple[np.ndarray, np.ndarray]:
        """The sum of what a function of columns weighs (count,), and for which particles there is one (count,); of all
        nodes that it is about."""
        failures: Failures = {}
        rows: dict[int, StrandRows] = {node: row_of(node) for node in (*self._population, *nodes)}
        step = BlockNodes(list(rows))
        writer = Writer(self.model, Bundle([step], 1, rows), self._population, failures, retains=False)
        write(writer)
        total = np.zeros(self.count)
        for term in writer.step()(self._population, self.count):
            total += term
        possible = np.ones(self.count, bool)
        for particle, error in failures.items():
            if not isinstance(error, REJECTING):
                raise error
            possible[particle] = False
        return total, possible

    def each(self, visit: Visit, alive: np.ndarray) -> None:
        trace = self.model.trace
        values: dict[int, list[Any]] = {node: [] for node in self._population}
        for particle, is_alive in enumerate(alive.tolist()):
            self.model.poll()
            if is_alive:
                self.stand_at(particle)
                visit(particle)
            for node, column in values.items():
                column.append(trace.value(node) if is_alive else value_at(self._population[node], particle))
        self._population = {node: column_of(column) for node, column in values.items()}

    def moved(self, part: Part) -> bool:
        try:
            steps = list(self._steps_of(part))
        except NoColumns:
            return False
        for kernel in steps:
            self._run(kernel)
        return True

    def _steps_of(self, part: Part) -> Iterator[KernelPart]:
        """The kernels that a part runs, in order. Raises NoColumns where one cannot move all particles at once."""
        match part:
            case KernelPart(kernel=kernel):
                if getattr(kernel, "move", None) is None or not self.model.may_take("smc"):
                    raise NoColumns
                for nodes in part.selection.samples(by_block=True):
                    self._move_of(nodes, part)
                yield part
            case Repeat(times=times, parts=parts):
                steps = [step for each in parts for step in self._steps_of(each)]
                yield from steps * times
            case Do(parts=parts):
                for each in parts:
                    yield from self._steps_of(each)
            case _:
                raise NoColumns

    def _run(self, part: KernelPart) -> None:
        """Make the transitions of a kernel for every particle: what the columns cannot, one after the other."""
        start, everyone = time.perf_counter(), np.ones(self.count, bool)
        kernel, tally = part.kernel, part.tally
        if isinstance(kernel, BlockKernel):
            kernel.look(part.selection)
        for nodes in part.selection.blocks(part.times, tally):
            try:
                accepted = int(self._move_of(nodes, part).step(self._population, self.count).sum())
            except (NoColumns, Differs):
                accepted = self._one_by_one(part, nodes, everyone)
            tally.transitions += self.count
            tally.accepted += accepted
        tally.seconds += time.perf_counter() - start

    def _one_by_one(self, part: KernelPart, nodes: list[int], alive: np.ndarray) -> int:
        accepted = 0

        def visit(particle: int) -> None:
            nonlocal accepted
            assert isinstance(part.kernel, BlockKernel)
            accepted += part.kernel.step(nodes, part.selection)

        self.each(visit, alive)
        return accepted

    def _move_of(self, nodes: Sequence[int], part: KernelPart) -> ColumnMove:
        """A block's transitions, printed once for a structure. Raises NoColumns."""
        self._look()
        move: Move = getattr(part.kernel, "move")  # noqa: B009
        key = (id(part), *nodes)
        if key not in self._printed:
            try:
                self._printed[key] = ColumnMove(self.model, nodes, list(self._population), move)
            except NoColumns:
                self._printed[key] = None
        found = self._printed[key]
        if found is None:
            raise NoColumns
        return found

    def _look(self) -> None:
        """Forget what was printed for another structure; the power of a likelihood is none."""
        _, structure = self.model.trace.structure_stamp()
        if structure != self._printed_at:
            self._printed.clear()
            self._weights = None
            self._printed_at = structure

    def weigh(self, nodes: Sequence[int]) -> np.ndarray | None:
        self._look()
        try:
            if self._weights is None:
                self._weights = ColumnWeights(self.model, nodes, list(self._population))
            return self._weights(self._population, self.count)
        except (NoColumns, Differs):
            return None

    def take(self, places: np.ndarray) -> None:
        self._population = {node: taken(column, places) for node, column in self._population.items()}

    def stand_at(self, particle: int) -> None:
        trace = self.model.trace
        with self.model.transaction() as change:
            for node in self._stored:
                trace.put(node, value_at(self._population[node], particle))
            change.keep()

    def feed(self, data: Data, datum: int, alive: np.ndarray) -> np.ndarray:
        # what the trace computes in the new rows must have a value where it stands
        self.stand_at(int(np.argmax(alive)))
        data.feed(datum)
        data.is_in(datum)
        before = dict(self._population), list(self._stored)
        # a row of nothing but data and one observed choice adds nothing to a state
        is_flat = all(self.model.is_flat(code) for code, _ in data.rows(datum))
        try:
            possible = np.ones(self.count, bool) if is_flat else self._extend()
            terms, weighed = self._weighed(data.evidence(datum))
        except Differs:
            self._population, self._stored = before
            data.remove(datum)
            raise
        return np.where(alive & possible & weighed, terms, -math.inf)

    def _weighed(self, evidence: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
        nodes = list(evidence)
        fixed = 0.0

        def write(writer: Writer) -> None:
            nonlocal fixed
            for node in nodes:
                if not writer.weigh(node):
                    # no choice is read
                    fixed += density_of(self.model.trace, node, *self.model.trace.choice(node))

        terms, weighed = self._computed(nodes, write)
        return terms + fixed, weighed


def refuse_improper(model: Model) -> None:
    """Raises KernelError, with its place, where a choice has no prior to be drawn from."""
    trace = model.trace
    for node in unobserved(model):
        operator, _ = trace.application(node)
        if isinstance(operator, Random) and operator.start is not None:
            code, slot, row = trace.decode(node)
            what = f"{operator.name} is improper: there is no prior to draw particles from, and no evidence"
            hint = "a proper prior in its place, as (normal 0 100)"
            raise KernelError(what, code.slots[slot].span, hint, trace.call_chain(code, slot, row))
