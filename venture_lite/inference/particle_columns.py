"""A sweep of particle Gibbs in which only values change: all particles of a block are drawn and weighed in one call.

The trace keeps the retained state until the end, so that whatever a step reads and no block changes is read there. The
population holds, for each node that a later step still reads, its values over the particles; resampling takes rows of
these columns. The values drawn and the ancestors of each step say in the end which path was chosen, and it is written
once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from venture_lite.inference.resampling import draw_ancestors, draw_particle, effective, shares
from venture_lite.trace.directives import Model
from venture_lite.trace.population import Population, StepFunction, Writer, value_at
from venture_lite.trace.schedule import Schedule

NEVER = 1 << 60
"""Earlier than no step."""

Weights = tuple[np.ndarray, np.ndarray]
"""Numbers of impossible terms and sums of the others, each (particles,)."""


class ColumnSweep:
    """Sweeps over one schedule whose structure stays."""

    def __init__(self, model: Model, schedule: Schedule, particles: int, ancestor: bool) -> None:
        self.model = model
        self.schedule = schedule
        self.particles = particles
        self.ancestor = ancestor
        self._principals = [
            [node for node in step.order if node in schedule.scaffold.principals] for step in schedule.steps
        ]
        self._kept_after = self._live()
        self._steps = [self._step(at) for at in range(len(schedule.steps))]
        self._later = self._later_terms() if ancestor else []
        # terms weighed for one draw of the retained particle's ancestor, on average
        self.later_terms = sum(map(len, self._later)) / max(len(self._later) - 1, 1)
        self._futures: dict[int, StepFunction] = {}
        # choices weighed in one sweep
        self.rows = particles * sum(len(step.absorbing) for step in schedule.steps)

    def run(self) -> tuple[bool, float, float]:
        """One sweep: whether the state changed, the fraction of blocks that did, the mean effective share."""
        model, count = self.model, self.particles
        rng = model.trace.rng
        population: Population = {}
        drawn: list[Population] = []
        lineage: list[np.ndarray] = []
        weights: Weights = np.zeros(count, np.int64), np.zeros(count)
        share = shares(*weights)
        spread = 0.0
        for at, step in enumerate(self._steps):
            model.poll()
            if at:
                kept = self._ancestor(at, population, weights) if self.ancestor else 0
                ancestors = draw_ancestors(rng, share, kept)
                population = {node: population[node][ancestors] for node in self._kept_after[at - 1]}
                lineage.append(ancestors)
            weights = _sum(step(population, count), count)
            drawn.append({node: population[node] for node in self._principals[at]})
            share = shares(*weights)
            spread += effective(share) / count
        path = [draw_particle(rng, share)]
        for ancestors in reversed(lineage):
            path.append(int(ancestors[path[-1]]))
        path.reverse()
        # the first particle is the retained one: what comes from it stays as it is
        chosen = [(found, particle) for found, particle in zip(drawn, path, strict=True) if particle]
        self._write({node: value_at(c, particle) for found, particle in chosen for node, c in found.items()})
        return any(path), sum(map(bool, path)) / len(path), spread / len(path)

    def _step(self, at: int) -> StepFunction:
        schedule = self.schedule
        before = self._kept_after[at - 1] if at else ()
        writer = Writer(self.model.trace, self.model.machine, before)
        for node in schedule.steps[at].order:
            if node in schedule.scaffold.principals:
                writer.draw(node)
            else:
                writer.renew(node)
        for node in schedule.steps[at].absorbing:
            writer.weigh(node)
        return writer.function()

    def _live(self) -> list[list[int]]:
        """For each step: the nodes due by then that a later step reads."""
        schedule = self.schedule
        last_read: dict[int, int] = {}
        for node, parents in schedule.parents.items():
            for parent in parents:
                last_read[parent] = max(last_read.get(parent, 0), schedule.due[node])
        live: list[list[int]] = []
        known: list[int] = []
        for at, step in enumerate(schedule.steps):
            known = [node for node in (*known, *step.order) if last_read.get(node, 0) > at]
            live.append(known)
        return live

    # -------------------------------------------------------------------------------------- ancestor sampling

    def _later_terms(self) -> list[list[int]]:
        """For each step: what is due then or later and reads, other than through a choice, what came before."""
        schedule = self.schedule
        principals = schedule.scaffold.principals
        # the earliest step that a node's value depends on, the choices of later steps being given
        earliest: dict[int, int] = {}
        found: list[list[int]] = [[] for _ in schedule.steps]
        for step in schedule.steps:
            for node in (*step.order, *step.absorbing):
                due = schedule.due[node]
                first = min((earliest[parent] for parent in schedule.parents[node]), default=NEVER)
                earliest[node] = due if node in principals else first
                for at in range(first + 1, due + 1):
                    found[at].append(node)
        return found

    def _ancestor(self, at: int, population: Population, weights: Weights) -> int:
        """The retained particle's ancestor, in proportion to its weight and to the density of what was retained."""
        future = self._futures.get(at)
        if future is None:
            future = self._futures[at] = self._future(at)
        impossible, total = _sum(future(dict(population), self.particles), self.particles)
        return draw_particle(self.model.trace.rng, shares(impossible + weights[0], total + weights[1]))

    def _future(self, at: int) -> StepFunction:
        """Weighs, for every particle, the retained choices that read what came before a step."""
        scaffold = self.schedule.scaffold
        writer = Writer(self.model.trace, self.model.machine, self._kept_after[at - 1])
        for node in self._later[at]:
            if node in scaffold.pending:
                writer.renew(node)
            else:
                writer.weigh(node)
        return writer.function()

    # ----------------------------------------------------------------------------------------------- the end

    def _write(self, values: dict[int, Any]) -> None:
        """Put the chosen path in place and bring up to date what is computed from it."""
        if not values:
            return
        model = self.model
        machine, mark = model.machine, model.trace.journal.mark()
        scaffold, value = self.schedule.scaffold, model.trace.value
        machine.renew_choice = lambda node, operator, arguments: values[node] if node in values else value(node)
        machine.pending.update(self.schedule.parents.keys() & (scaffold.principals.keys() | scaffold.pending.keys()))
        try:
            for step in self.schedule.steps:
                for node in step.order:
                    machine.renew(node)
        except BaseException:
            model.rollback(mark)
            raise
        machine.renew_choice = None
        model.commit_transition()


def _sum(terms: list[np.ndarray], count: int) -> Weights:
    impossible, total = np.zeros(count, np.int64), np.zeros(count)
    for term in terms:
        gone = term == -np.inf
        if gone.any():
            impossible += gone
            term = np.where(gone, 0.0, term)
        total += term
    return impossible, total
