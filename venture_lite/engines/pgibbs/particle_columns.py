"""A sweep of particle Gibbs in which only values change: all particles of a block are drawn and weighed in one call.

The trace keeps the retained state until the end, so that whatever a step reads and no block changes is read there. The
population holds, for each node that a later step still reads, its values over the particles; resampling takes rows of
these columns. The values drawn and the ancestors of each step say in the end which path was chosen, and it is written
once.

Strands have nothing to do with each other, so that each has its own weights, ancestors and path; those of one bundle
are carried side by side.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

import numpy as np

from venture_lite.engines.pgibbs.particle_future import readers
from venture_lite.engines.pgibbs.particle_steps import DEAD
from venture_lite.engines.pgibbs.resampling import (
    draw_ancestors,
    draw_particles,
    draw_systematic,
    effective,
    log_means,
    shares,
)
from venture_lite.interpreter.answered_columns import value_at
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.schedule import Bundle, Schedule, alike, strands_of
from venture_lite.kernels.population import Failures, Population, StepFunction, Unalike, Writer, taken
from venture_lite.trace.nodes import node_at, site_of

Weights = tuple[np.ndarray, np.ndarray]
"""Numbers of impossible terms and sums of the others, each (strands, particles)."""


class ColumnSweep:
    """Sweeps over one schedule whose structure stays."""

    def __init__(self, model: Model, schedule: Schedule, particles: int, ancestor: bool) -> None:
        self.model = model
        self._bundles: list[BundleSweep] = []
        for strands in alike(schedule, strands_of(schedule)):
            try:
                self._bundles.append(BundleSweep(model, schedule, Bundle.of(strands), particles, ancestor))
            except Unalike:
                self._bundles.extend(
                    BundleSweep(model, schedule, Bundle.of([strand]), particles, ancestor) for strand in strands
                )
        # no step of the past is played again, and every history fits
        self.played = 0.0
        self.fitting = 1.0
        self._steps = sum(bundle.steps for bundle in self._bundles)
        draws = sum(bundle.draws for bundle in self._bundles)
        # terms weighed for one draw of the retained particle's ancestor, on average
        self.later_terms = sum(bundle.later_terms for bundle in self._bundles) / max(draws, 1)
        # choices weighed in one sweep
        self.rows = sum(bundle.rows for bundle in self._bundles)

    def run(self) -> tuple[bool, float, float]:
        """One sweep: whether the state changed, the fraction of blocks that did, the mean effective share."""
        moved, spread = 0, 0.0
        with self.model.transaction() as change:
            for bundle in self._bundles:
                found = bundle.run()
                moved += found[0]
                spread += found[1]
            change.keep()
        return moved > 0, moved / self._steps, spread / self._steps

    def free_pass(self) -> float:
        """The log of an estimate of what weighs the blocks, by a pass in which no particle is retained; the trace stays
        as it is."""
        return sum(float(bundle.free_pass().sum()) for bundle in self._bundles)


class BundleSweep:
    """Sweeps over the strands of one bundle."""

    def __init__(self, model: Model, schedule: Schedule, bundle: Bundle, particles: int, ancestor: bool) -> None:
        self.model = model
        self.schedule = schedule
        self.bundle = bundle
        self.particles = particles
        self.ancestor = ancestor
        # the step of the bundle at which each node is due
        self._due = {node: at for at, step in enumerate(bundle.steps) for node in (*step.order, *step.absorbing)}
        self._kept_after = self._live()
        # the nodes of each step that the trace stores
        self._written = [[node for node in step.order if not model.trace.is_borrowed(node)] for step in bundle.steps]
        # particles of the step under way that met an error
        self._failures: Failures = {}
        principals = schedule.scaffold.principals
        self._functions = [
            self._printed(at - 1, (*step.order, *step.absorbing), principals) for at, step in enumerate(bundle.steps)
        ]
        # the same for passes without a retained particle, once there is one
        self._free_functions: list[tuple[StepFunction, list[int]]] = []
        # for each step: what is due then or later and reads, other than through a choice, what came before
        self._later = readers(schedule, bundle.steps)[1] if ancestor else []
        # what weighs, for every particle, the retained choices that read what came before a step
        self._futures = [self._printed(at, later) for at, later in enumerate(self._later[1:])]
        # of all strands: steps of a sweep, draws of an ancestor, terms weighed for these and in a sweep
        self.steps = bundle.count * len(bundle.steps)
        self.draws = self.steps - bundle.count
        self.later_terms = bundle.count * sum(map(len, self._later))
        self.rows = bundle.count * particles * sum(len(step.absorbing) for step in bundle.steps)

    def run(self) -> tuple[int, float]:
        """One sweep: how many steps of strands moved, and the sum of their effective shares."""
        model, width = self.model, self.bundle.count * self.particles
        rng = model.trace.rng
        first = np.arange(0, width, self.particles)
        population: Population = {}
        drawn: list[Population] = []
        lineage: list[np.ndarray] = []
        retained = np.zeros(self.bundle.count, np.int64)
        self._failures.clear()
        weights: Weights = self._sum([], [])
        share = shares(*weights)
        spread = 0.0
        for at, (step, counts) in enumerate(self._functions):
            model.poll()
            if at:
                kept = self._ancestor(at, population, weights) if self.ancestor else retained
                ancestors = draw_ancestors(rng, share, kept)
                places = (first[:, None] + ancestors).ravel()
                population = {node: taken(population[node], places) for node in self._kept_after[at - 1]}
                lineage.append(ancestors)
            self._failures.clear()
            weights = self._sum(step(population, width), counts)
            drawn.append({node: population[node] for node in self._written[at] if node in population})
            share = shares(*weights)
            spread += float(effective(share).sum()) / self.particles
        return self._write(drawn, self._path(draw_particles(rng, share), lineage)), spread

    def free_pass(self) -> np.ndarray:
        """The log of an unbiased estimate, (strands,), of the density that what weighs each strand has: the product
        over the steps of the mean weight of particles of which none is retained."""
        model, width = self.model, self.bundle.count * self.particles
        if not self._free_functions:
            principals, steps = self.schedule.scaffold.principals, enumerate(self.bundle.steps)
            self._free_functions = [
                self._printed(at - 1, (*step.order, *step.absorbing), principals, retains=False) for at, step in steps
            ]
        first = np.arange(0, width, self.particles)
        population: Population = {}
        total = np.zeros(self.bundle.count)
        share = np.zeros(0)
        for at, (step, counts) in enumerate(self._free_functions):
            model.poll()
            if at:
                places = (first[:, None] + draw_systematic(model.trace.rng, share, self.particles)).ravel()
                population = {node: taken(population[node], places) for node in self._kept_after[at - 1]}
            self._failures.clear()
            weights = self._sum(step(population, width), counts)
            total += log_means(*weights)
            share = shares(*weights)
        return total

    def _path(self, chosen: np.ndarray, lineage: list[np.ndarray]) -> list[np.ndarray]:
        """Of each step: the particle of every strand from which the chosen ones of the last step come."""
        path = [chosen]
        for ancestors in reversed(lineage):
            path.append(ancestors[np.arange(self.bundle.count), path[-1]])
        return path[::-1]

    def _write(self, drawn: list[Population], path: list[np.ndarray]) -> int:
        """Give the trace the values of a path; how many steps of strands moved."""
        first = np.arange(self.bundle.count) * self.particles
        moved = 0
        # the first particle is the retained one: what it computed from its own past stays as it is
        is_other = np.zeros(self.bundle.count, bool)
        for chosen, population in zip(path, drawn, strict=True):
            moved += int(np.count_nonzero(chosen))
            is_other |= chosen != 0
            strands = np.flatnonzero(is_other)
            for node, column in population.items():
                self._put(node, column, strands, (first + chosen)[strands])
        return moved

    def _put(self, node: int, column: np.ndarray, strands: np.ndarray, places: np.ndarray) -> None:
        """Give a node the values of the chosen particles, in some strands."""
        if not len(strands):
            return
        trace = self.model.trace
        site, rows = site_of(node), self.bundle.rows[node]
        if isinstance(rows, int):
            trace.put(node_at(site, rows), value_at(column, places[0]))
        elif not trace.put_rows(site, rows[strands], column[places]):
            for row, place in zip(rows[strands].tolist(), places, strict=True):
                trace.put(node_at(site, row), value_at(column, place))

    def _printed(
        self, after: int, nodes: Iterable[int], drawn: Container[int] = (), retains: bool = True
    ) -> tuple[StepFunction, list[int]]:
        """What renews the nodes that wait and weighs the others, after a step, or before the first where that is
        negative; of the choices some are drawn."""
        kept = self._kept_after[after] if after >= 0 else ()
        writer = Writer(self.model, self.bundle, kept, self._failures, retains)
        for node in nodes:
            if node in drawn:
                writer.draw(node)
            elif node in self.schedule.scaffold.pending:
                writer.renew(node)
            else:
                writer.weigh(node)
        return writer.step(), writer.counts

    def _live(self) -> list[list[int]]:
        """For each step: the nodes due by then that a later step reads."""
        last_read: dict[int, int] = {}
        for node, due in self._due.items():
            for parent in self.schedule.parents[node]:
                last_read[parent] = max(last_read.get(parent, 0), due)
        live: list[list[int]] = []
        known: list[int] = []
        for at, step in enumerate(self.bundle.steps):
            known = [node for node in (*known, *step.order) if last_read.get(node, 0) > at]
            live.append(known)
        return live

    def _sum(self, terms: list[np.ndarray], counts: list[int]) -> Weights:
        width = self.bundle.count * self.particles
        impossible, total = np.zeros(width, np.int64), np.zeros(width)
        for term, count in zip(terms, counts, strict=True):
            gone = term == -np.inf
            if gone.any():
                impossible += count * gone
                term = np.where(gone, 0.0, term)
            total += term
        for particle, error in self._failures.items():
            if not impossible[particle] and not rejects(self.model, error, ()):
                raise error
            impossible[particle] = DEAD
        shape = self.bundle.count, self.particles
        return impossible.reshape(shape), total.reshape(shape)

    # -------------------------------------------------------------------------------------- ancestor sampling

    def _ancestor(self, at: int, population: Population, weights: Weights) -> np.ndarray:
        """The retained particles' ancestors, in proportion to their weight and to the density of what was retained."""
        width = self.bundle.count * self.particles
        future, counts = self._futures[at - 1]
        self._failures.clear()
        impossible, total = self._sum(future(dict(population), width), counts)
        return draw_particles(self.model.trace.rng, shares(impossible + weights[0], total + weights[1]))
