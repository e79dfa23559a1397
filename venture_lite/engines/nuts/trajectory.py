"""One transition of the no-U-turn sampler: a trajectory that doubles until it turns, and a state drawn from it.

States are drawn by multinomial weights, uniformly within a subtree and in favour of the new half at the top; the
trajectory stops where the criterion of Betancourt (2017, A conceptual introduction to Hamiltonian Monte Carlo, appendix
A.4.2) sees a turn over the whole of it or over either half with the edge of the other, which a resonant trajectory
hides from the first check alone. Momenta are standard normal in the coordinates that the metric makes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from venture_lite.engines.nuts.vectors import Vector, Vectors

MOST_DEPTH = 10
"""Doublings of a trajectory."""
DIVERGED = 1000.0
"""Nats by which the energy may grow."""
FEWER = 1e12
"""Nats that one impossible term less is worth: a state of fewer always wins."""
LEAST = 5e-324
"""In place of a random number that is 0, whose logarithm is taken."""

Follow = Callable[[Vector], tuple[float, Vector] | None]
"""Free coordinates (D,) -> the log density there, FEWER less for each impossible term, and its gradient (D,); None
where they are not finite."""


class Phase(NamedTuple):
    """A state with its momentum."""

    # free coordinates (D,), and the log density and its gradient there as `Follow` has them
    free: Vector
    log_density: float
    gradient: Vector
    # the momentum and the slope of the log density (D,), in the coordinates of the metric
    momentum: Vector
    slope: Vector
    kinetic: float


class Subtree(NamedTuple):
    """Some consecutive states of a trajectory."""

    # the states nearest to where it began and furthest from there
    near: Phase
    far: Phase
    # the sum of momenta (D,)
    drift: Vector
    # one of its states, drawn by their weights, and the logarithm of the sum of these
    drawn: Phase
    log_weight: float


class Trajectory:
    """A trajectory from one state. Mutable: grows by doubling."""

    def __init__(
        self, follow: Follow, vectors: Vectors, free: Vector, here: tuple[float, Vector], step: float,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        """From `free`, where `follow` gives what is `here`."""
        self._follow, self._vectors, self._step, self._rng = follow, vectors, step, rng
        log_density, gradient = here
        drawn = rng.standard_normal(len(free))
        momentum, slope, kinetic = vectors.land(tuple(drawn.tolist()) if vectors.are_numbers else drawn, gradient, 0.0)
        self.start = Phase(free, log_density, gradient, momentum, slope, kinetic)
        self.energy = kinetic - log_density
        self.steps = self.depth = 0
        # the sum over its states of the probability that each alone would be accepted
        self.acceptance = 0.0
        # the state before the step in which the energy left; none where it never did
        self.diverged: Phase | None = None

    def gain(self, phase: Phase) -> float:
        """How much more likely a state is than the one where the trajectory began, in nats; NaN is none."""
        return self.energy - (phase.kinetic - phase.log_density)

    def draw(self) -> Phase:
        """A state of the trajectory."""
        random, joined = self._rng.random, self._vectors.joined
        first = last = drawn = self.start
        drift, log_weight = self.start.momentum, 0.0
        while self.depth < MOST_DEPTH:
            forward = random() < 0.5
            grown = self._grown(self.depth, self._step if forward else -self._step, last if forward else first)
            if grown is None:
                break
            self.depth += 1
            if math.log(random() or LEAST) < grown.log_weight - log_weight:
                drawn = grown.drawn
            log_weight = _log_add(log_weight, grown.log_weight)
            near, far = (first, last) if forward else (last, first)
            drift = joined(
                drift, near.momentum, far.momentum, grown.drift, grown.near.momentum, grown.far.momentum
            )  # fmt: skip
            if drift is None:
                break
            first, last = (first, grown.far) if forward else (grown.far, last)
        return drawn

    def _grown(self, depth: int, step: float, edge: Phase) -> Subtree | None:
        """2^depth states beyond an edge; None where they turn, or an energy left."""
        if not depth:
            return self._leaf(step, edge)
        one = self._grown(depth - 1, step, edge)
        other = None if one is None else self._grown(depth - 1, step, one.far)
        if one is None or other is None:
            return None
        log_weight = _log_add(one.log_weight, other.log_weight)
        takes_other = math.log(self._rng.random() or LEAST) < other.log_weight - log_weight
        drift = self._vectors.joined(
            one.drift, one.near.momentum, one.far.momentum, other.drift, other.near.momentum, other.far.momentum
        )
        if drift is None:
            return None
        return Subtree(one.near, other.far, drift, other.drawn if takes_other else one.drawn, log_weight)

    def _leaf(self, step: float, edge: Phase) -> Subtree | None:
        phase = self.leapfrog(step, edge)
        self.steps += 1
        gain = -math.inf if phase is None else self.gain(phase)
        if phase is None or not gain > -DIVERGED:
            self.diverged = edge
            return None
        self.acceptance += math.exp(gain) if gain < 0.0 else 1.0
        return Subtree(phase, phase, phase.momentum, phase, gain)

    def leapfrog(self, step: float, edge: Phase) -> Phase | None:
        """The state a step on, or back; None where it is not finite."""
        free, momentum = self._vectors.leap(edge.free, edge.momentum, edge.slope, step)
        found = self._follow(free)
        if found is None:
            return None
        log_density, gradient = found
        momentum, slope, kinetic = self._vectors.land(momentum, gradient, step)
        return Phase(free, log_density, gradient, momentum, slope, kinetic) if kinetic < math.inf else None


def _log_add(one: float, other: float) -> float:
    high, low = (one, other) if one > other else (other, one)
    return high + math.log1p(math.exp(low - high)) if low > -math.inf else high
