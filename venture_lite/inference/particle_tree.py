"""A sweep of particle Gibbs in which anything may change: particle by particle, on the trace itself.

The range is detached once. A particle is a node of a family tree: its parent, and the values drawn at its own step,
the brush's included, in the order in which regeneration asks for them. The trace stands at one particle at a time. To
go to another, the journal takes back the steps down to the last common ancestor, and the tapes on the way up are played
again. So particles share all but what they change, whatever that is: families, memo tables, statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from venture_lite.errors import InternalError, KernelError
from venture_lite.inference.resampling import draw_ancestors, draw_particles, effective, shares_of
from venture_lite.trace.directives import Model
from venture_lite.trace.journal import Journal
from venture_lite.trace.places import place
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.schedule import Schedule
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.weights import Weight, density_of

Take = Callable[[int, Any, tuple[Any, ...]], Any]
"""(choice, distribution, arguments) -> its value."""


class Particle:
    """A state of the blocks up to one step."""

    __slots__ = ("depth", "parent", "tape", "weight")

    def __init__(self, parent: Particle | None, depth: int, tape: list[Any]) -> None:
        self.parent = parent
        # the step at which its own values are due
        self.depth = depth
        # its own values, in the order in which regeneration asks for them
        self.tape = tape
        self.weight = Weight()


class _Waiting(set[int]):
    """Nodes that wait to be renewed; the journal brings back those that were."""

    def __init__(self, nodes: Iterable[int], journal: Journal) -> None:
        super().__init__(nodes)
        self.journal = journal

    def discard(self, node: Any) -> None:
        if node in self:
            super().discard(node)
            self.journal.note(set.add, self, node)


def _played(tape: list[Any]) -> Take:
    values = iter(tape)
    return lambda node, operator, arguments: next(values)


def refuse_ancestors(model: Model, schedule: Schedule) -> None:
    """Raises KernelError where the retained brush of a block depends on the blocks before it: then the retained values
    would not fit another ancestor."""
    for node in schedule.scaffold.structural:
        if schedule.earliest(node) < schedule.due[node]:
            raise _brush_depends(model, node)


def _brush_depends(model: Model, node: int) -> KernelError:
    reason = "'ancestor cannot be used: what the retained state brings into being depends on the ancestor"
    code, slot, row = model.trace.decode(node)
    return KernelError(
        reason, code.slots[slot].span, "pgibbs without 'ancestor", model.trace.call_chain(code, slot, row)
    )


class TreeSweep:
    """One sweep over a schedule."""

    def __init__(self, model: Model, schedule: Schedule, particles: int, ancestor: bool) -> None:
        self.model = model
        self.schedule = schedule
        self.particles = particles
        self.ancestor = ancestor
        self.rows = 0
        # terms weighed for one draw of the retained particle's ancestor, on average
        self.later_terms = sum(node not in schedule.scaffold.pending for node in schedule.due) / 2 if ancestor else 0.0
        # values of the retained state: of principals by node, of the brush by place
        self._retained: dict[Any, Any] = {}
        # where the trace stands: particles by depth, each with the journal's mark before it
        self._standing: list[tuple[Particle, int]] = []
        # how many of the retained values are those of steps that are done
        self._kept_before = 0

    def run(self) -> tuple[bool, float, float]:
        """One sweep: whether the state changed, the fraction of blocks that did, the mean effective share."""
        model = self.model
        machine, journal = model.machine, model.trace.journal
        scaffold = self.schedule.scaffold
        mark = journal.mark()
        try:
            self._remember()
            model.regenerator.detach(scaffold, counts=False)
            machine.pending = _Waiting((*scaffold.principals, *scaffold.pending), journal)
            machine.structural = _Waiting(scaffold.structural, journal)
            population, retained, spread = self._particles()
            share = shares_of([particle.weight for particle in population])
            chosen: Particle | None = population[int(draw_particles(model.trace.rng, share)[0])]
            self._stand_at(chosen)
            if machine.pending:
                raise InternalError("a node of the range was not regenerated")
            moved = 0
            while chosen is not None:
                moved += chosen is not retained[chosen.depth]
                chosen = chosen.parent
        except BaseException:
            model.rollback(mark)
            raise
        finally:
            machine.pending, machine.structural = set(), set()
            machine.renew_choice = machine.choose = None
        if moved:
            model.commit_transition()
        else:
            journal.rollback(mark)
        return moved > 0, moved / len(retained), spread / len(retained)

    def _remember(self) -> None:
        trace, scaffold = self.model.trace, self.schedule.scaffold
        for node in scaffold.principals:
            self._retained[node] = trace.value(node)
        for node in self.model.regenerator.choices_that_go(scaffold):
            code, slot, row = trace.decode(node)
            if not trace.tables[code.index].is_observed(slot, row):
                self._retained[place(trace, node)] = trace.value(node)

    def _particles(self) -> tuple[list[Particle], list[Particle], float]:
        """(the population at the last step, the retained particle at every step, sum of effective shares)."""
        rng = self.model.trace.rng
        population: list[Particle] = []
        retained: list[Particle] = []
        spread = 0.0
        for at in range(len(self.schedule.steps)):
            parents: list[Particle | None] = [None] * self.particles
            if at:
                kept = self._ancestor(at, population) if self.ancestor else 0
                share = shares_of([particle.weight for particle in population])
                parents = [population[j] for j in draw_ancestors(rng, share, np.array([kept]))[0]]
            # ancestors come in the order of the tree, so that the trace goes to each of them once
            population = [self._child(parent, at, kept=not j) for j, parent in enumerate(parents)]
            retained.append(population[0])
            self._kept_before += len(population[0].tape)
            spread += float(effective(shares_of([particle.weight for particle in population]))[0]) / self.particles
        return population, retained, spread

    def _child(self, parent: Particle | None, at: int, kept: bool) -> Particle:
        self.model.poll()
        self._stand_at(parent)
        child = Particle(parent, at, [])
        value_of = self._kept_value if kept else self.model.machine.simulate

        def take(node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
            value = value_of(node, operator, arguments)
            child.tape.append(value)
            return value

        self._regenerate(child, take, child.weight)
        return child

    def _ancestor(self, at: int, population: list[Particle]) -> int:
        """The retained particle's ancestor, in proportion to its weight and to the density of what was retained."""
        weights = []
        for particle in population:
            self.model.poll()
            weight = self._later(particle, at)
            weight.plus(particle.weight)
            weights.append(weight)
        return int(draw_particles(self.model.trace.rng, shares_of(weights))[0])

    def _later(self, particle: Particle, at: int) -> Weight:
        """The weight of the retained values of a step and all later ones, after a particle's history."""
        model = self.model
        self._stand_at(particle)
        mark, standing = model.trace.journal.mark(), len(self._standing)
        weight = Weight()
        asked = 0

        def take(node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
            nonlocal asked
            asked += 1
            try:
                value = self._kept_value(node, operator, arguments)
            except KeyError:
                raise _brush_depends(model, node) from None
            weight.add(density_of(model.trace, node >> 32, node & ROW_MASK, operator, arguments, value))
            self.rows += 1
            return value

        for step in range(at, len(self.schedule.steps)):
            self._regenerate(Particle(None, step, []), take, weight)
        del self._standing[standing:]
        model.trace.journal.rollback(mark)
        if asked != len(self._retained) - self._kept_before:
            raise _brush_depends(model, next(iter(self.schedule.scaffold.structural), -1))
        return weight

    def _kept_value(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        if node in self.schedule.scaffold.principals:
            return self._retained[node]
        return self._retained[place(self.model.trace, node)]

    def _stand_at(self, particle: Particle | None) -> None:
        """Bring the trace to a particle's state."""
        missing: list[Particle] = []
        standing = self._standing
        while particle is not None and not (particle.depth < len(standing) and standing[particle.depth][0] is particle):
            missing.append(particle)
            particle = particle.parent
        keep = 0 if particle is None else particle.depth + 1
        if keep < len(standing):
            self.model.trace.journal.rollback(standing[keep][1])
            del standing[keep:]
        for later in reversed(missing):
            self._regenerate(later, _played(later.tape), None)

    def _regenerate(self, particle: Particle, take: Take, weight: Weight | None) -> None:
        """A step from the parent's state; weighed the first time only."""
        model = self.model
        machine, trace = model.machine, model.trace
        scaffold = self.schedule.scaffold
        step = self.schedule.steps[particle.depth]
        self._standing.append((particle, trace.journal.mark()))

        def renew(node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
            if node in scaffold.makers:
                trace.statistics.set_arguments(operator, arguments)
                if weight is not None:
                    weight.add(operator.state.log_joint())
                return operator
            value = take(node, operator, arguments)
            if isinstance(operator, Exchangeable):
                trace.statistics.incorporate(operator, value, arguments)
            return value

        machine.renew_choice, machine.choose = renew, take
        for node in step.order:
            machine.renew(node)
        for node in (*machine.constrained, *step.absorbing):
            self._absorb(node, weight)
        machine.constrained.clear()

    def _absorb(self, node: int, weight: Weight | None) -> None:
        """Weigh a choice whose value stays; an application enters the statistics of its maker."""
        trace = self.model.trace
        operator, arguments = trace.application(node >> 32, node & ROW_MASK)
        value = trace.value(node)
        if weight is not None:
            weight.add(density_of(trace, node >> 32, node & ROW_MASK, operator, arguments, value))
            self.rows += 1
        if isinstance(operator, Exchangeable):
            trace.statistics.incorporate(operator, value, arguments)
