"""How Firefly Monte Carlo moves its block given the brightness: a walk, a Langevin step, a slice."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from venture_lite.inference.firefly import Firefly, Point


class Step:
    """The size of a block's steps; while it adapts, raised and lowered towards an acceptance rate by steps that fade
    (Robbins and Monro 1951; Andrieu and Thoms 2008, section 5.1)."""

    def __init__(self, size: float, target: float, adapting: int) -> None:
        self.size = size
        self.target = target
        # transitions for which it still adapts
        self.adapting = adapting
        self._made = 0

    def learn(self, probability: float) -> None:
        """What one transition was accepted with."""
        if self.adapting:
            self._made += 1
            self.adapting -= 1
            # as long as rates are far off the steps are large: 0.6 is the slow end of the exponents that converge
            self.size *= math.exp((probability - self.target) / self._made**0.6)


class Move(Protocol):
    """One transition of a block given its brightness; whether it moved."""

    # the acceptance rate to which 'adapt tunes; None where there is no step to tune
    target: float | None

    def __call__(self, firefly: Firefly, step: Step, /) -> bool: ...


class Density(Protocol):
    """A density with a present value, in which a slice moves: Firefly's given the brightness, or one over all rows."""

    rng: np.random.Generator

    # the present value (D,)
    @property
    def theta(self) -> np.ndarray: ...

    # points have a `log_density`; what else they carry comes back with `move`, which is False and changes nothing where
    # the trace says that the point has density zero after all
    def here(self) -> Any: ...

    def at(self, theta: np.ndarray) -> Any: ...

    def move(self, point: Any) -> bool: ...

    def poll(self) -> None: ...


class Walk:
    """A Gaussian step. Accepting 0.234 is best (Roberts, Gelman and Gilks 1997)."""

    target: float | None = 0.234

    def __call__(self, firefly: Firefly, step: Step) -> bool:
        noise = _scaled(firefly, firefly.rng.standard_normal(len(firefly.theta)))
        u = firefly.rng.random()
        here, there = firefly.here(), firefly.at(firefly.theta + step.size * noise)
        return _decided(firefly, step, u, there, there.log_density - here.log_density)


class Langevin:
    """A Gaussian step of sd h about a drift of h^2 / 2 times the gradient, Metropolis-adjusted. Accepting 0.57 is best
    (Roberts and Rosenthal 1998).

    With M = L L' and noise z the step is h L (z + h/2 L' gradient); the noise that leads back is minus (z + h/2 L' (sum
    of the gradients at both ends)).
    """

    target: float | None = 0.57

    def __call__(self, firefly: Firefly, step: Step) -> bool:
        noise = firefly.rng.standard_normal(len(firefly.theta))
        u = firefly.rng.random()
        here = firefly.here(steep=True)
        assert here.gradient is not None
        uphill = 0.5 * step.size * _pulled(firefly, here.gradient)
        there = firefly.at(firefly.theta + step.size * _scaled(firefly, noise + uphill), steep=True)
        assert there.gradient is not None
        change = there.log_density - here.log_density
        # where a bright row would be dark there is no gradient either
        if math.isfinite(change):
            back = noise + uphill + 0.5 * step.size * _pulled(firefly, there.gradient)
            change += 0.5 * float(noise @ noise - back @ back)
        return _decided(firefly, step, u, there, change)


class Slice:
    """A slice along a uniformly drawn direction, stepping out and shrinking (Neal 2003, figures 3 and 5).

    A point that the trace rejects has density zero and lies outside the slice: the interval shrinks to it. Stepping out
    does not ask the trace. That is right, since it would make the same intervals from every point of the slice.
    """

    target: float | None = None

    def __call__(self, density: Density, step: Step) -> bool:
        rng, poll = density.rng, density.poll
        direction = rng.standard_normal(len(density.theta))
        direction /= np.linalg.norm(direction)
        start, level = density.theta, density.here().log_density - rng.standard_exponential()
        left = -step.size * rng.random()
        right = left + step.size
        while density.at(start + left * direction).log_density > level:
            poll()
            left -= step.size
        while density.at(start + right * direction).log_density > level:
            poll()
            right += step.size
        while True:
            poll()
            distance = left + rng.random() * (right - left)
            if not left < distance < right or distance == 0.0:
                # the interval has shrunk to the present value, but for rounding
                return False
            there = density.at(start + distance * direction)
            if there.log_density > level and density.move(there):
                return True
            if distance < 0.0:
                left = distance
            else:
                right = distance


def _scaled(firefly: Firefly, noise: np.ndarray) -> np.ndarray:
    return noise if firefly.scale is None else firefly.scale.root @ noise


def _pulled(firefly: Firefly, gradient: np.ndarray) -> np.ndarray:
    """A gradient in the coordinates of the noise."""
    return gradient if firefly.scale is None else firefly.scale.root.T @ gradient


def _decided(firefly: Firefly, step: Step, u: float, there: Point, change: float) -> bool:
    """Move by the change of the log density; whether it moved. The trace is asked last, where u lets the point pass: a
    point that it rejects has density zero."""
    probability = _probability(change)
    passes = u < probability
    moved = passes and firefly.move(there)
    step.learn(probability if moved or not passes else 0.0)
    return moved


def _probability(change: float) -> float:
    """Of accepting a change of the log density; 0 for one that is no number."""
    return 1.0 if change >= 0.0 else math.exp(change) if change == change else 0.0
