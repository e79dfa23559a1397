"""A sweep of particle Gibbs in which anything may change: particle by particle, on the trace itself.

The range is detached once. A particle is a node of a family tree: its parent, its values at its own step, and the
choices that were made for them, the brush's included, in the order in which regeneration asked for them.

The trace is never brought to a particle's whole past. All that came before its own step is pending; what the step reads
of it is recalled from the ancestor at whose step it was due, one value at a time. So a particle costs what its step
changes and reads, however long its past: P particles over T blocks cost O(P T). Some steps leave more behind than
values: entries of memo tables, statistics of exchangeable procedures, procedures made in the brush. These are played
again before a descendant's step, and the journal takes them back down to the last common ancestor. The path that is
chosen in the end is played as a whole.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from venture_lite.engines.pgibbs.particle_future import Future
from venture_lite.engines.pgibbs.particle_steps import Particle, Steps
from venture_lite.engines.pgibbs.resampling import (
    draw_ancestors,
    draw_particles,
    draw_systematic,
    effective,
    log_means,
    shares_of,
)
from venture_lite.errors import InternalError
from venture_lite.interpreter.addresses import address
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.schedule import Schedule


class TreeSweep:
    """One sweep over a schedule."""

    def __init__(self, model: Model, schedule: Schedule, particles: int, ancestor: bool) -> None:
        self.model = model
        self.schedule = schedule
        self.particles = particles
        self.ancestor = ancestor
        self.steps = Steps(model, schedule)
        # terms weighed for one particle in a draw of the retained particle's ancestor, on average
        self.later_terms = 0.0
        # fraction of particles whose histories the retained state fits
        self.fitting = 1.0
        # steps of the past that had to be played again for a step of one particle, on average
        self.played = 0.0

    @property
    def rows(self) -> int:
        """Choices weighed."""
        return self.steps.rows

    def run(self) -> tuple[bool, float, float]:
        """One sweep: whether the state changed, the fraction of blocks that did, the mean effective share."""
        model = self.model
        with model.transaction() as change:
            self._retained = self._kept_values()
            with self.steps.detached():
                population, retained, spread = self._particles()
                share = shares_of([particle.weight for particle in population])
                chosen = population[int(draw_particles(model.trace.rng, share)[0])]
                moved = sum(chosen.ancestor(at) is not particle for at, particle in enumerate(retained))
                if moved:
                    self.steps.play_whole(chosen)
                    if self.steps.pending:
                        raise InternalError("a node of the range was not regenerated")
            if moved:
                change.keep()
        return moved > 0, moved / len(retained), spread / len(retained)

    def free_pass(self) -> float:
        """The log of an unbiased estimate of the density of what weighs the blocks, by a pass in which no particle is
        retained; the trace stays as it is."""
        model, steps, total = self.model, self.steps, 0.0
        draw = partial(simulate_anew, model.trace)
        population: list[Particle] = []
        with model.aside(), steps.detached():
            for at in range(len(self.schedule.steps)):
                parents: list[Particle | None] = [None] * self.particles
                if at:
                    share = shares_of([particle.weight for particle in population])
                    found = draw_systematic(model.trace.rng, share, self.particles)[0]
                    parents = [population[place] for place in found.tolist()]
                # ancestors come in the order of the tree, so that what has to be in place is played once for each
                population = [steps.child(parent, draw) for parent in parents]
                weights = [particle.weight for particle in population]
                impossible = np.array([[weight.impossible for weight in weights]])
                total += float(log_means(impossible, np.array([[weight.total for weight in weights]]))[0])
        return total

    def _kept_values(self) -> dict[Any, Any]:
        """Values of the present state: of principals by node, of the brush by address."""
        trace, scaffold = self.model.trace, self.schedule.scaffold
        brush = (node for node in self.model.regenerator.choices_that_go(scaffold) if not trace.is_observed(node))
        return {node: trace.value(node) for node in scaffold.principals} | {
            address(trace, node): trace.value(node) for node in brush
        }

    def _kept_value(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        is_principal = node in self.schedule.scaffold.principals
        return self._retained[node if is_principal else address(self.model.trace, node)]

    def _particles(self) -> tuple[list[Particle], list[Particle], float]:
        """(the population at the last step, the retained particle at every step, sum of effective shares)."""
        rng, steps = self.model.trace.rng, self.steps
        draw = partial(simulate_anew, self.model.trace)
        future = Future(steps, self._kept_value) if self.ancestor else None
        population: list[Particle] = []
        retained: list[Particle] = []
        spread = 0.0
        for at in range(len(self.schedule.steps)):
            parents: list[Particle | None] = [None] * self.particles
            if at:
                kept = self._ancestor(at, population, future) if future is not None else 0
                share = shares_of([particle.weight for particle in population])
                parents = [population[j] for j in draw_ancestors(rng, share, np.array([kept]))[0]]
            first = steps.child(parents[0], self._kept_value)
            # ancestors come in the order of the tree, so that what has to be in place is played once for each
            population = [first, *(steps.child(parent, draw) for parent in parents[1:])]
            retained.append(first)
            spread += float(effective(shares_of([particle.weight for particle in population]))[0]) / self.particles
        self.played = steps.played / (self.particles * len(self.schedule.steps))
        if future is not None:
            self.later_terms = future.terms / max(future.weighed, 1)
            self.fitting = future.fitting / max(future.weighed, 1)
        return population, retained, spread

    def _ancestor(self, at: int, population: list[Particle], future: Future) -> int:
        """The retained particle's ancestor, in proportion to its weight and to the density of what was retained, among
        the particles whose histories it fits."""
        fitting: list[int] = []
        weights = []
        for which, (particle, weight) in enumerate(zip(population, future.weights(population, at), strict=True)):
            if weight is not None:
                weight.plus(particle.weight)
                fitting.append(which)
                weights.append(weight)
        return fitting[int(draw_particles(self.model.trace.rng, shares_of(weights))[0])]
