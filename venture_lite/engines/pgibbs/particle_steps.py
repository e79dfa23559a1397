"""One step of one particle on the trace, for `particle_tree.py`: what it draws, what it recalls of its past, and what
of it has to be in place before a descendant's step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from venture_lite.errors import ImpossibleState, KernelError, VentureError
from venture_lite.interpreter.evidence import take_in
from venture_lite.interpreter.handler import Handler
from venture_lite.interpreter.impossible import REJECTING, rejects
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.schedule import Schedule
from venture_lite.interpreter.weights import NEVER, Weight, density_of
from venture_lite.trace.keys import KeyIndex
from venture_lite.trace.nodes import Cells
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.trace import Trace
from venture_lite.values import Symbol

Take = Callable[[int, Any, tuple[Any, ...]], Any]
"""(choice, distribution, arguments) -> its value."""

Application = tuple[Exchangeable, Any, tuple[Any, ...]]
"""(exchangeable procedure, value, inputs)."""

DEAD = NEVER >> 1
"""Impossible terms of a particle that met an error in a state of probability zero; twice as many are an integer."""

LASTING = {KeyIndex.remove, Exchangeable.set_arguments}
"""What takes back the changes that later steps may find other than as the value of a node or as an application in the
statistics: entries of memo tables, and makers' parameters."""


class Particle:
    """A state of the blocks up to one step."""

    __slots__ = ("applications", "depth", "early", "jump", "lasting", "parent", "rank", "tape", "values", "weight")

    def __init__(self, parent: Particle | None) -> None:
        self.parent = parent
        # the step at which its own values are due
        self.depth: int = 0 if parent is None else parent.depth + 1
        # its own choices, in the order in which regeneration asks for them
        self.tape: list[Any] = []
        # what the trace stores for its step's nodes, and for later ones that its step asked for
        self.values: dict[int, Any] = {}
        # of nodes that are due later: the particle, itself or an ancestor, that has them already
        self.early: dict[int, Particle] = {} if parent is None else parent.early
        self.weight = Weight()
        # what its step adds to statistics, where its descendants need no more of it in place
        self.applications: list[Application] | None = None
        # the last particle, itself or an ancestor, whose step has to be in place for its descendants, and how many
        # there are up to there
        self.lasting: Particle | None = None if parent is None else parent.lasting
        self.rank: int = 0 if parent is None else parent.rank
        # an ancestor further up, so that any can be found in O(log depth) steps (Myers 1983, An applicative
        # random-access stack)
        self.jump: Particle = self
        if parent is not None:
            further = parent.jump
            is_even = parent.depth - further.depth == further.depth - further.jump.depth
            self.jump = further.jump if is_even else parent

    def outlasts(self, applications: list[Application] | None) -> None:
        """Its step has to be in place for its descendants, or at least its applications in the statistics."""
        self.applications = applications
        self.lasting = self
        self.rank += 1

    def has_early(self, nodes: Iterable[int]) -> None:
        """It has drawn nodes that are due later."""
        self.early = self.early | dict.fromkeys(nodes, self)

    def ancestor(self, depth: int) -> Particle:
        """The one whose own values are due at a step, itself included."""
        found = self
        while found.depth > depth:
            if found.jump.depth >= depth:
                found = found.jump
            else:
                assert found.parent is not None
                found = found.parent
        return found


class _Waiting(set[int]):
    """Nodes that wait to be renewed; the journal brings back those that were."""

    def __init__(self, nodes: Iterable[int], trace: Trace) -> None:
        super().__init__(nodes)
        self._note = trace.journal.note
        # those that do not wait any more, the latest last; for whoever empties it
        self.gone: list[int] = []

    def discard(self, node: Any) -> None:
        if node in self:
            super().discard(node)
            self.gone.append(node)
            self._note(set.add, self, node)


class Steps(Handler):
    """The trace with the range of a schedule detached, and steps of particles on it."""

    def __init__(self, model: Model, schedule: Schedule) -> None:
        super().__init__(model.trace)
        self.model = model
        self.schedule = schedule
        # the particle whose values are recalled
        self.past: Particle | None = None
        # whose value a node is to have that is not due yet, if anybody's
        self.later: Callable[[int], Particle | None] = lambda node: None
        # nodes recalled, while somebody wants to know
        self.recalled: list[int] | None = None
        # choices weighed, and steps played again
        self.rows = 0
        self.played = 0
        # particles whose steps are in place, each with the journal's mark before it
        self._in_place: list[tuple[Particle, int]] = []
        # of the step under way: where its choices take their values, and its weight, if anybody wants it
        self._take: Take = self.renew
        self._weight: Weight | None = None
        # of each step: its nodes that are stored
        self._stored = [Cells(model.trace, step.order) for step in schedule.steps]

    @contextmanager
    def detached(self) -> Iterator[None]:
        """In the block the range is out of the trace: all its nodes wait."""
        model, scaffold = self.model, self.schedule.scaffold
        model.regenerator.detach(scaffold, counts=False)
        self.pending = self._waiting = _Waiting((*scaffold.principals, *scaffold.pending), model.trace)
        self.structural = _Waiting(scaffold.structural, model.trace)
        # exchangeable procedures that no particle made
        self._makers = set(model.trace.statistics.makers.values())
        with model.machine.handled_by(self):
            yield

    # ------------------------------------------------------------------------------- what evaluation asks for

    def renew(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        trace = self.trace
        if node in self.schedule.scaffold.makers:
            trace.statistics.set_arguments(operator, arguments)
            if self._weight is not None:
                self._weight.add(operator.state.log_joint())
            return operator
        value = self._take(node, operator, arguments)
        if isinstance(operator, Exchangeable):
            trace.statistics.incorporate(operator, value, arguments)
        return value

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        return self._take(node, operator, arguments)

    # -------------------------------------------------------------------------------------------------- steps

    def stand_after(self, particle: Particle | None) -> None:
        """Make the trace ready for a step that follows a particle's."""
        missing: list[Particle] = []
        in_place = self._in_place
        last = None if particle is None else particle.lasting
        while last is not None and not (last.rank <= len(in_place) and in_place[last.rank - 1][0] is last):
            missing.append(last)
            last = None if last.parent is None else last.parent.lasting
        keep = 0 if last is None else last.rank
        if keep < len(in_place):
            self.model.trace.journal.rollback(in_place[keep][1])
            del in_place[keep:]
        for later in reversed(missing):
            if later.applications is None:
                self._play(later)
            else:
                in_place.append((later, self.model.trace.journal.mark()))
                for application in later.applications:
                    self.model.trace.statistics.incorporate(*application)
        self.past = particle

    def play_whole(self, particle: Particle) -> None:
        """Bring the trace to a particle's state, all its past included."""
        if self._in_place:
            self.model.trace.journal.rollback(self._in_place[0][1])
            self._in_place.clear()
        for depth in range(particle.depth + 1):
            self._play(particle.ancestor(depth))

    def _play(self, particle: Particle) -> None:
        """A step once more, as it was drawn."""
        self.past = particle.parent
        self._in_place.append((particle, self.model.trace.journal.mark()))
        self.played += 1
        step = self.schedule.steps[particle.depth]
        values = iter(particle.tape)
        self.regenerate(step.order, step.absorbing, lambda node, operator, arguments: next(values), None)

    def child(self, parent: Particle | None, value_of: Take) -> Particle:
        """A step after the parent's, its choices taken from `value_of`; the trace is left as after the parent."""
        self.model.poll()
        self.stand_after(parent)
        journal = self.model.trace.journal
        mark = journal.mark()
        child = Particle(parent)

        def take(node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
            value = value_of(node, operator, arguments)
            child.tape.append(value)
            return value

        step = self.schedule.steps[child.depth]
        gone = self._waiting.gone
        gone.clear()
        entering = self.model.trace.statistics.entering = []
        try:
            self.regenerate(step.order, step.absorbing, take, child.weight)
        except REJECTING:
            self.model.machine.reset()
            journal.rollback(mark)
            child.weight = Weight(DEAD)
            return child
        finally:
            self.model.trace.statistics.entering = None
        child.values = self._stored[child.depth].values()
        if early := [node for node in gone if self.schedule.due[node] > child.depth and node not in child.early]:
            child.values |= {node: self.model.trace.value(node) for node in early}
            child.has_early(early)
        if not LASTING.isdisjoint(journal.undos(mark)) or not all(map(_is_data, child.values.values())):
            child.outlasts(None)
        elif entering:
            # what a particle made is made anew when its step is played again
            are_kept = self._makers.issuperset(application[0] for application in entering)
            child.outlasts(entering if are_kept else None)
        journal.rollback(mark)
        return child

    def regenerate(self, order: list[int], absorbing: list[int], take: Take, weight: Weight | None) -> None:
        """Renew nodes of a step, and weigh what absorbs."""
        machine = self.model.machine
        self._take, self._weight = take, weight
        early = {} if self.past is None else self.past.early
        try:
            for node in order:
                if node not in early or not self.recall(node):
                    machine.renew(node)
            for node in (*self.constrained, *absorbing):
                self._absorb(node, weight)
        except VentureError as error:
            raise self._judged(error, absorbing, weight) from error
        self.constrained.clear()

    def _judged(self, error: VentureError, absorbing: list[int], weight: Weight | None) -> VentureError:
        """An error of a step, or an ImpossibleState where some choice that stands has density zero; all that can be
        weighed is."""
        machine = self.model.machine
        if weight is None or isinstance(error, KernelError):
            return error
        if rejects(self.model, error, ()):
            return ImpossibleState(error.message)
        weighed = Weight()
        for node in (*self.constrained, *absorbing):
            machine.stack.clear()
            try:
                self._absorb(node, weighed)
            except VentureError:
                continue
        return ImpossibleState(error.message) if weight.impossible or weighed.impossible else error

    def _absorb(self, node: int, weight: Weight | None) -> None:
        """Weigh a choice whose value stays; an application enters the statistics of its maker."""
        trace, machine = self.model.trace, self.model.machine
        for parent in self.schedule.parents.get(node, ()):
            if parent in self.pending and not self.recall(parent):
                machine.renew(parent)
        operator, arguments, value = trace.choice(node)
        term = 0.0
        if weight is not None:
            term = density_of(trace, node, operator, arguments, value)
            weight.add_choice(trace, node, term)
            self.rows += 1
        if isinstance(operator, Exchangeable):
            take_in(trace, node, operator, value, arguments, term)

    def recall(self, node: int) -> bool:
        """Put the value of a pending node in place, if it is known; where it is borrowed, in the lender's place."""
        trace = self.trace
        particle = self._whose(node)
        if particle is None:
            return False
        if trace.is_borrowed(node):
            if node in self.schedule.scaffold.structural:
                # the family is in place wherever it is now, and found by its key
                return False
            for lender in self.schedule.parents[node]:
                if lender in self.pending:
                    self.recall(lender)
        else:
            trace.put(node, particle.values[node])
        self.pending.discard(node)
        if self.recalled is not None:
            self.recalled.append(node)
        return True

    def _whose(self, node: int) -> Particle | None:
        """The particle whose value a node is to have."""
        if self.past is not None:
            if node in self.past.early:
                return self.past.early[node]
            due = self.schedule.due[node]
            if due <= self.past.depth:
                return self.past.ancestor(due)
        return self.later(node)


def _is_data(value: Any) -> bool:
    """Whether a value holds no procedure, which could lead to the rows of a family."""
    if isinstance(value, (float, int, str, Symbol, np.ndarray)):
        return True
    return isinstance(value, tuple) and all(map(_is_data, value))
