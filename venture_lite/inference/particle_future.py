"""Ancestor sampling on the trace: what of the retained state reads the past, and how a particle fits it.

Of the retained values to come only those count that read, other than through a choice, what came before: in a Markov
chain those of one block. Which they are is found once a sweep, by playing the retained state and noting what each step
recalls. Where a step leaves memo entries or statistics behind, all that follows may read them, and all of it counts.
"""

from __future__ import annotations

from typing import Any

from venture_lite.errors import KernelError
from venture_lite.inference.particle_steps import Particle, Steps, Take
from venture_lite.trace.directives import Model
from venture_lite.trace.schedule import Schedule
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.weights import Weight, density_of

NEVER = 1 << 60
"""Earlier than no step."""


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


class Future:
    """The retained values from each step on, as read by what came before."""

    def __init__(self, steps: Steps, kept_value: Take) -> None:
        self.steps = steps
        self.schedule = steps.schedule
        self.kept_value = kept_value
        # terms weighed, and particles for which they were
        self.terms = 0
        self.weighed = 0
        # choices of the brush that were asked for
        self._asked = 0
        # the retained particles of all steps
        self._path: list[Particle] = []
        # of each step: how many choices its brush has, and the first step that it reads
        self._brush_choices: list[int] = []
        self._brush_reads: list[int] = []
        self._play_retained()
        # the first step whose choices a node's value depends on, the choices of later steps being given
        self._origin: dict[int, int] = {}
        # of each step: what is due then or later and reads what came before
        self._reading: list[list[int]] = [[] for _ in self.schedule.steps]
        self._find_readers()

    def _play_retained(self) -> None:
        steps = self.steps
        recalled: list[int] = []
        parent: Particle | None = None
        steps.recalled = recalled
        for _ in self.schedule.steps:
            recalled.clear()
            asked = self._asked
            parent = steps.child(parent, self._kept)
            self._path.append(parent)
            self._brush_choices.append(self._asked - asked)
            self._brush_reads.append(min(map(self.schedule.value_from, recalled), default=NEVER))
        steps.recalled = None

    def _kept(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        self._asked += node not in self.schedule.scaffold.principals
        return self.kept_value(node, operator, arguments)

    def _find_readers(self) -> None:
        schedule, origin = self.schedule, self._origin
        scaffold = schedule.scaffold
        for due, step in enumerate(schedule.steps):
            for node in (*step.order, *step.absorbing):
                first = min((origin[parent] for parent in schedule.parents[node]), default=NEVER)
                if node in scaffold.structural:
                    first = min(first, self._brush_reads[due])
                origin[node] = due if node in scaffold.principals else first
                for at in range(first + 1, due + 1):
                    self._reading[at].append(node)

    def weight(self, particle: Particle, at: int, is_all_read: bool) -> Weight:
        """The weight of what is retained from a step on, after a particle's history, as far as it differs between
        particles. Raises KernelError where the retained brush does not fit that history."""
        steps, schedule, trace = self.steps, self.schedule, self.steps.model.trace
        for node in (*particle.early, *self._path[-1].early):
            if schedule.due[node] >= at:
                raise _brush_depends(steps.model, node)
        steps.stand_after(particle)
        mark = trace.journal.mark()
        weight = Weight()
        before, asked = steps.rows, self._asked

        def take(node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
            try:
                value = self._kept(node, operator, arguments)
            except KeyError:
                raise _brush_depends(steps.model, node) from None
            term = density_of(trace, node >> 32, node & ROW_MASK, operator, arguments, value)
            weight.add_choice(trace, node, term)
            steps.rows += 1
            return value

        is_all_read = is_all_read or self._path[-1].lasting is not None
        expected = 0
        if not is_all_read:
            steps.later = lambda node: self._path[schedule.due[node]] if self._origin[node] >= at else None
        for due, order, absorbing in self._parts(at, is_all_read):
            steps.regenerate(order, absorbing, take, weight)
            if is_all_read or not schedule.scaffold.structural.keys().isdisjoint(order):
                expected += self._brush_choices[due]
        steps.later = lambda node: None
        trace.journal.rollback(mark)
        self.terms += steps.rows - before
        self.weighed += 1
        if self._asked - asked != expected:
            raise _brush_depends(steps.model, next(iter(schedule.scaffold.structural), -1))
        return weight

    def _parts(self, at: int, is_all_read: bool) -> list[tuple[int, list[int], list[int]]]:
        """(step, what is renewed, what absorbs) of what reads the past."""
        schedule = self.schedule
        if is_all_read:
            return [(at + k, step.order, step.absorbing) for k, step in enumerate(schedule.steps[at:])]
        found: dict[int, tuple[int, list[int], list[int]]] = {}
        for node in self._reading[at]:
            due = schedule.due[node]
            _, order, absorbing = found.setdefault(due, (due, [], []))
            (order if schedule.moves(node) else absorbing).append(node)
        return list(found.values())
