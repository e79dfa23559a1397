"""Ancestor sampling on the trace: what of the retained state reads the past, and how a particle fits it.

Of the retained values to come only those count that read, other than through a choice, what came before: in a Markov
chain those of one block. Which they are is found once a sweep, by playing the retained state and noting what each step
recalls. Where a step leaves memo entries or statistics behind, all that follows may read them, and all of it counts.

What the retained state brings into being is part of it: after another history there may be more of it, or less (the row
of a state that the history has visited already is there). Such a history has density zero with what is retained, as a
value outside a support would have, and is no ancestor.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from venture_lite.engines.pgibbs.particle_steps import DEAD, Particle, Steps, Take
from venture_lite.interpreter.addresses import address
from venture_lite.interpreter.impossible import REJECTING
from venture_lite.interpreter.schedule import BlockNodes, Schedule
from venture_lite.interpreter.weights import Weight, density_of

NEVER = 1 << 60
"""Earlier than no step."""


def readers(
    schedule: Schedule, steps: Sequence[BlockNodes], brush_reads: Sequence[int] = ()
) -> tuple[dict[int, int], list[list[int]]]:
    """The first step whose choices a node's value depends on, the choices of later steps being given; and of each
    step: what is due then or later and reads, other than through a choice, what came before. `brush_reads`: of each
    step the first one that its brush reads."""
    scaffold = schedule.scaffold
    origin: dict[int, int] = {}
    reading: list[list[int]] = [[] for _ in steps]
    for due, step in enumerate(steps):
        for node in (*step.order, *step.absorbing):
            first = min((origin[parent] for parent in schedule.parents[node]), default=NEVER)
            if node in scaffold.structural:
                first = min(first, brush_reads[due])
            origin[node] = due if node in scaffold.principals else first
            for at in range(first + 1, due + 1):
                reading[at].append(node)
    return origin, reading


class _Unlike(Exception):
    """The retained brush is not what would be brought into being after a particle's history."""


class Future:
    """The retained values from each step on, as read by what came before."""

    def __init__(self, steps: Steps, kept_value: Take) -> None:
        self.steps = steps
        self.schedule = steps.schedule
        self.kept_value = kept_value
        # terms weighed, particles for which they were, and how many of these could be the ancestor
        self.terms = 0
        self.weighed = 0
        self.fitting = 0
        # choices of the brush that were asked for, by address, and those that may be, where that is known
        self._asked: set[Hashable] = set()
        self._expected: set[Hashable] | None = None
        # the retained particles of all steps
        self._path: list[Particle] = []
        self._origin, self._reading = readers(self.schedule, self.schedule.steps, self._play_retained())

    def _play_retained(self) -> list[int]:
        """Go the retained path; of each step: the first step that its brush reads."""
        steps, found = self.steps, []
        steps.recalled = recalled = list[int]()
        parent: Particle | None = None
        for _ in self.schedule.steps:
            recalled.clear()
            parent = steps.child(parent, self.kept_value)
            self._path.append(parent)
            found.append(min(map(self.schedule.value_from, recalled), default=NEVER))
        steps.recalled = None
        return found

    def _kept(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        """The retained value of a choice. Raises _Unlike where the retained one has no such choice there."""
        if node not in self.schedule.scaffold.principals:
            place = address(self.steps.model.trace, node)
            if self._expected is not None and place not in self._expected:
                raise _Unlike
            self._asked.add(place)
        return self.kept_value(node, operator, arguments)

    def weights(self, population: list[Particle], at: int) -> list[Weight | None]:
        """Of each particle, the retained one first: the weight of what is retained from a step on after its history, as
        far as that differs between particles; None where what is retained does not fit the history."""
        # what one particle left in memo tables, another may lack
        is_all_read = any(particle.lasting is not None for particle in (*population, self._path[-1]))
        self._expected = None
        found: list[Weight | None] = [self._weight(population[0], at, is_all_read)]
        self._expected = self._asked
        has_early = self._has_early(population[0], at)
        for particle in population[1:]:
            self.steps.model.poll()
            # what was drawn before its step is the history's own: the retained one's draws are no others'
            fits = not has_early and not self._has_early(particle, at) and particle.weight.impossible < DEAD
            weight = self._weight(particle, at, is_all_read) if fits else None
            found.append(weight)
        self.weighed += len(population)
        self.fitting += sum(weight is not None for weight in found)
        return found

    def _has_early(self, particle: Particle, at: int) -> bool:
        """Whether a particle has drawn choices that are due at a step or later."""
        return any(self.schedule.due[node] >= at for node in particle.early)

    def _weight(self, particle: Particle, at: int, is_all_read: bool) -> Weight | None:
        steps, schedule, trace = self.steps, self.schedule, self.steps.model.trace
        steps.stand_after(particle)
        mark = trace.journal.mark()
        weight = Weight()
        before = steps.rows
        self._asked = set()

        def take(node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
            value = self._kept(node, operator, arguments)
            weight.add(density_of(trace, node, operator, arguments, value))
            steps.rows += 1
            return value

        if not is_all_read:
            steps.later = lambda node: self._path[schedule.due[node]] if self._origin[node] >= at else None
        try:
            for order, absorbing in self._parts(at, is_all_read):
                steps.regenerate(order, absorbing, take, weight)
            fits = self._expected is None or self._asked == self._expected
        except (_Unlike, *REJECTING):
            steps.model.machine.reset()
            fits = False
        steps.later = lambda node: None
        trace.journal.rollback(mark)
        self.terms += steps.rows - before
        return weight if fits else None

    def _parts(self, at: int, is_all_read: bool) -> list[tuple[list[int], list[int]]]:
        """(what is renewed, what absorbs) of each step that reads the past."""
        schedule = self.schedule
        if is_all_read:
            return [(step.order, step.absorbing) for step in schedule.steps[at:]]
        found: dict[int, tuple[list[int], list[int]]] = {}
        for node in self._reading[at]:
            order, absorbing = found.setdefault(schedule.due[node], ([], []))
            (order if schedule.moves(node) else absorbing).append(node)
        return list(found.values())
