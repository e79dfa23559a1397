"""One transition of the no-U-turn sampler: a trajectory that doubles until it turns, and a state drawn from it.

States are drawn by multinomial weights, uniformly within a subtree and in favour of the new half at the top; the
trajectory stops where the criterion of Betancourt (2017, A conceptual introduction to Hamiltonian Monte Carlo, appendix
A.4.2) sees a turn over the whole of it or over either half with the edge of the other, which a resonant trajectory
hides from the first check alone. Momenta are standard normal in the coordinates that the metric makes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from venture_lite.engines.adaptation import Metric
from venture_lite.engines.hmc import PathPoint

MOST_DEPTH = 10
"""Doublings of a trajectory."""
DIVERGED = 1000.0
"""Nats by which the energy may grow."""
FEWER = 1e12
"""Nats that one impossible term less is worth: a state of fewer always wins."""

Follow = Callable[[np.ndarray], PathPoint | None]
"""Free coordinates (D,) -> the state there; None where it has no finite density or gradient."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A state with its momentum."""

    point: PathPoint
    # (D,), in the coordinates of the metric
    momentum: np.ndarray


@dataclass(frozen=True, slots=True)
class Subtree:
    """Some consecutive states of a trajectory."""

    # the states nearest to where it began and furthest from there
    near: Phase
    far: Phase
    # the sum of momenta (D,)
    drift: np.ndarray
    # one of its states, drawn by their weights, and the logarithm of the sum of these
    drawn: Phase
    log_weight: float
    # whether it turns, or an energy left
    stopped: bool


class Trajectory:
    """A trajectory from one state. Mutable: grows by doubling."""

    def __init__(self, follow: Follow, start: PathPoint, metric: Metric, step: float, rng: np.random.Generator) -> None:
        self._follow, self.metric, self._step, self._rng = follow, metric, step, rng
        self._impossible = start.weight.impossible
        momentum = rng.standard_normal(len(start.free))
        self.start = Phase(start, momentum)
        self.energy = self._energy(self.start)
        self.steps = self.depth = 0
        # the sum over its states of the probability that each alone would be accepted
        self.acceptance = 0.0
        # the state before the step in which the energy left; none where it never did
        self.diverged: Phase | None = None

    def _energy(self, phase: Phase) -> float:
        weight = phase.point.weight
        kinetic = 0.5 * float(phase.momentum @ phase.momentum)
        return kinetic - weight.total + FEWER * (weight.impossible - self._impossible)

    def gain(self, phase: Phase) -> float:
        """How much more likely a state is than the one where the trajectory began, in nats; NaN is none."""
        return self.energy - self._energy(phase)

    def draw(self) -> Phase:
        """A state of the trajectory."""
        first = last = self.start
        drift, drawn, log_weight = self.start.momentum, self.start, 0.0
        while self.depth < MOST_DEPTH:
            forward = bool(self._rng.random() < 0.5)
            grown = self._grown(self.depth, 1.0 if forward else -1.0, last if forward else first)
            if grown.stopped:
                break
            self.depth += 1
            if math.log(self._rng.random() or 5e-324) < grown.log_weight - log_weight:
                drawn = grown.drawn
            log_weight = _log_add(log_weight, grown.log_weight)
            whole = Subtree(first if forward else last, last if forward else first, drift, drawn, 0.0, False)
            if _turns(whole, grown):
                break
            drift = drift + grown.drift
            first, last = (first, grown.far) if forward else (grown.far, last)
        return drawn

    def _grown(self, depth: int, way: float, edge: Phase) -> Subtree:
        """2^depth states beyond an edge."""
        if not depth:
            return self._leaf(way, edge)
        one = self._grown(depth - 1, way, edge)
        if one.stopped:
            return one
        other = self._grown(depth - 1, way, one.far)
        if other.stopped:
            return other
        log_weight = _log_add(one.log_weight, other.log_weight)
        takes_other = math.log(self._rng.random() or 5e-324) < other.log_weight - log_weight
        drawn = (other if takes_other else one).drawn
        return Subtree(one.near, other.far, one.drift + other.drift, drawn, log_weight, _turns(one, other))

    def _leaf(self, way: float, edge: Phase) -> Subtree:
        phase = self.leapfrog(way, edge)
        self.steps += 1
        gain = -math.inf if phase is None else self.gain(phase)
        if phase is None or not gain > -DIVERGED:
            self.diverged = edge
            return Subtree(edge, edge, edge.momentum, edge, -math.inf, True)
        self.acceptance += math.exp(min(gain, 0.0))
        return Subtree(phase, phase, phase.momentum, phase, gain, False)

    def leapfrog(self, way: float, edge: Phase) -> Phase | None:
        """The state one step on; None where it is not finite."""
        step, metric = way * self._step, self.metric
        with np.errstate(over="ignore", invalid="ignore"):
            momentum = edge.momentum + 0.5 * step * metric.pulled(edge.point.gradient)
            point = self._follow(edge.point.free + step * metric.free(momentum))
            if point is None:
                return None
            momentum = momentum + 0.5 * step * metric.pulled(point.gradient)
            return Phase(point, momentum) if math.isfinite(momentum @ momentum) else None


def _turns(one: Subtree, other: Subtree) -> bool:
    """Whether the momentum along the join of two neighbouring subtrees, or along either with the first state of the
    other, points against the momentum at an end."""
    return (
        _turned(one.drift + other.drift, one.near, other.far)
        or _turned(one.drift + other.near.momentum, one.near, other.near)
        or _turned(other.drift + one.far.momentum, one.far, other.far)
    )


def _turned(drift: np.ndarray, one: Phase, other: Phase) -> bool:
    return bool(drift @ one.momentum <= 0.0 or drift @ other.momentum <= 0.0)


def _log_add(one: float, other: float) -> float:
    high, low = max(one, other), min(one, other)
    return high + math.log1p(math.exp(low - high)) if low > -math.inf else high
