"""Variational normals: the normal of highest evidence lower bound, by stochastic gradients (Kucukelbir and others 2017,
Automatic differentiation variational inference, JMLR 18).

A fit begins at a normal along a path uphill (`pathfinder.py`), and steps are in its coordinates or in those of the fit
itself, in which a density is about standard normal: so one rate does for all models. A gradient is that of a pair of
draws that mirror each other, along their path alone (Roeder, Wu and Duvenaud 2017, Sticking the landing, equation 8):
where the density is a normal, and the fit is that normal, it is 0 without noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from venture_lite.blocks.mode_search import Evaluate
from venture_lite.blocks.pathfinder import LOG_TWO_PI, PathNormal
from venture_lite.draws.diagnostics import pareto_k
from venture_lite.networks.adam import Adam

RATE = 0.1
"""Of Adam's first step, in sds; rates fall to 0 in a line (Defazio and others 2023, Optimal linear decay learning rate
schedules, corollary 1)."""
LARGEST = 0.5
"""The share by which one step changes a covariance's factor, at most."""
AVERAGED = 0.5
"""The last share of the steps, whose normals are averaged (Polyak and Juditsky 1992)."""
FUTILE = 100
"""Steps of which none met a positive density, after which a fit is given up."""
NOISE = 4.0
"""Standard errors that a slope of the evidence lower bound may have by chance."""

Slope = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...] | None]
"""Both gradients (D,) of the log density at two free coordinates (D,), by the same rows; None where one has none."""


class VariationalNormal(ABC):
    """A normal in free coordinates, fitted step by step. Mutable."""

    def __init__(self, start: PathNormal) -> None:
        self.size = len(start.mean)
        # (D,)
        self.mean = start.mean.copy()

    @abstractmethod
    def away(self, noise: np.ndarray) -> np.ndarray:
        """Where standard normals (D,) lead from the mean."""

    @abstractmethod
    def slopes(self, noise: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Slopes of log density - log normal for each sd that the mean moves, and for each e-fold of the spread, at a
        draw with this gradient, along the draw's path."""

    @abstractmethod
    def step(self, noise: np.ndarray, level: np.ndarray, spread: np.ndarray, rate: float) -> None:
        """One step uphill, from half the sum and half the difference of the gradients (D,) at a pair of draws; `rate`
        falls from 1 to 0."""

    @abstractmethod
    def state(self) -> np.ndarray:
        """What the normal is made of, in which normals are averaged."""

    @abstractmethod
    def put(self, state: np.ndarray) -> None:
        """Take that for what the normal is made of."""

    @abstractmethod
    def log_det(self) -> float:
        """The logarithm of the determinant of what `away` applies."""

    def log_density(self, noise: np.ndarray, log_det: float) -> float:
        """Of the normal, where standard normals lead."""
        return -log_det - 0.5 * (float(noise @ noise) + self.size * LOG_TWO_PI)


class MeanField(VariationalNormal):
    """Independent coordinates. The mean moves in the coordinates of the path's normal: if these depend on one another
    strongly, a mean that moved in each of them alone would creep."""

    def __init__(self, start: PathNormal) -> None:
        super().__init__(start)
        self._start = start
        # logarithms of the sds (D,): of the best, were the density the normal of the path
        self._spread = -0.5 * np.log(start.precisions())
        self._adam = Adam(np.zeros(2 * self.size))

    @property
    def sds(self) -> np.ndarray:
        """(D,)."""
        return np.asarray(np.exp(self._spread))

    def away(self, noise: np.ndarray) -> np.ndarray:
        return np.asarray(self.sds * noise)

    def slopes(self, noise: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        moved = self.sds * gradient + noise
        return np.concatenate((self._start.pulled(gradient + noise / self.sds), moved * noise))

    def step(self, noise: np.ndarray, level: np.ndarray, spread: np.ndarray, rate: float) -> None:
        gradient = np.concatenate((self._start.pulled(level), (self.sds * spread + noise) * noise))
        move = self._adam.step(gradient, rate * RATE)
        self.mean += self._start.spread(move[: self.size])
        self._spread += move[self.size :]

    def state(self) -> np.ndarray:
        return np.concatenate((self.mean, self._spread))

    def put(self, state: np.ndarray) -> None:
        self.mean, self._spread = np.split(state, 2)

    def log_det(self) -> float:
        return float(self._spread.sum())

    def covariance(self) -> np.ndarray:
        """(D, D)."""
        return np.diag(self.sds**2)


class FullRank(VariationalNormal):
    """Any covariance F F'. A step is one along the natural gradient: F becomes F (I + B / 2), which for a normal
    density and B without noise is a step of Newton's for the inverse of its precision."""

    def __init__(self, start: PathNormal) -> None:
        super().__init__(start)
        self._factor = start.spread(np.eye(self.size))
        self._adam = Adam(np.zeros(self.size))

    def away(self, noise: np.ndarray) -> np.ndarray:
        return np.asarray(self._factor @ noise)

    def slopes(self, noise: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        moved = self._factor.T @ gradient + noise
        return np.concatenate((moved, moved * noise))

    def step(self, noise: np.ndarray, level: np.ndarray, spread: np.ndarray, rate: float) -> None:
        of_mean, moved = self._factor.T @ level, self._factor.T @ spread + noise
        # the mean of B is symmetric, and B is made so: (moved noise' + noise moved') / 2. With steps of more than
        # 1 / (D + 2) its noise would grow, for that is the mean of (noise noise')^2 over that of noise noise'
        across = float(np.sqrt((moved @ moved) * (noise @ noise)))
        share = min(rate / (self.size + 2.0), 2.0 * LARGEST / max(across, 1e-300))
        self.mean += self._factor @ self._adam.step(of_mean, rate * RATE)
        self._factor += 0.25 * share * (np.outer(self._factor @ moved, noise) + np.outer(self._factor @ noise, moved))

    def state(self) -> np.ndarray:
        return np.concatenate((self.mean, self._factor.ravel()))

    def put(self, state: np.ndarray) -> None:
        self.mean, self._factor = state[: self.size].copy(), state[self.size :].reshape(self.size, self.size).copy()

    def log_det(self) -> float:
        return float(np.linalg.slogdet(self._factor)[1])

    def covariance(self) -> np.ndarray:
        """(D, D)."""
        return np.asarray(self._factor @ self._factor.T)


def fit(
    normal: VariationalNormal,
    slope: Slope,
    steps: int,
    rng: np.random.Generator,
    began: Callable[[int], None] = lambda step: None,
) -> bool:
    """Move a normal to the highest evidence lower bound, in so many steps, of each of which `began` is told first.

    False, and the normal is of no use, where the density was zero at every draw.
    """
    average, averaged, moved = np.zeros_like(normal.state()), 0, 0
    for step in range(steps):
        began(step)
        noise = rng.standard_normal(normal.size)
        away = normal.away(noise)
        found = slope(normal.mean + away, normal.mean - away)
        if found is not None:
            moved += 1
            with np.errstate(all="ignore"):
                normal.step(noise, 0.5 * (found[0] + found[1]), 0.5 * (found[0] - found[1]), 1.0 - step / steps)
        elif not moved and step + 1 >= min(FUTILE, steps):
            return False
        if step >= (1.0 - AVERAGED) * steps:
            averaged += 1
            average += (normal.state() - average) / averaged
    if averaged:
        normal.put(average)
    return True


@dataclass(frozen=True, slots=True)
class FitQuality:
    """What draws of a fit say of it."""

    # the mean of log density - log normal, and its standard error; -inf where a draw had no positive density
    elbo: float
    error: float
    # the Pareto shape of the largest weights density / normal
    k: float
    # the effective size of all weights over their number, from 0 to 1
    efficiency: float
    # draws, and those of no positive density
    draws: int
    impossible: int
    # the largest slope of the evidence lower bound that is left, less its noise, in nats for an sd or for an e-fold
    slope: float


def judge(normal: VariationalNormal, evaluate: Evaluate, rng: np.random.Generator, draws: int) -> FitQuality:
    """Compare a fit with the density at draws of it (Yao and others 2018, Yes, but did it work?, section 3.1)."""
    weights, log_det = np.full(draws, -math.inf), normal.log_det()
    total, squares, count = np.zeros(2 * normal.size), np.zeros(2 * normal.size), 0
    for at in range(draws):
        noise = rng.standard_normal(normal.size)
        found = evaluate(normal.mean + normal.away(noise))
        if found is None:
            continue
        weights[at] = found[0] - normal.log_density(noise, log_det)
        with np.errstate(all="ignore"):
            slopes = normal.slopes(noise, found[1])
            count += 1
            off = slopes - total
            total += off / count
            squares += off * (slopes - total)
    errors = np.sqrt(squares) / max(count, 1)
    slope = float(np.max(np.abs(total) - NOISE * errors, initial=0.0))
    possible = weights[np.isfinite(weights)]
    elbo = float(possible.mean()) if len(possible) == draws else -math.inf
    error = float(possible.std() / math.sqrt(len(possible))) if len(possible) else math.nan
    return FitQuality(elbo, error, pareto_k(weights), _efficiency(weights), draws, draws - len(possible), slope)


def _efficiency(log_weights: np.ndarray) -> float:
    largest = log_weights.max()
    if not np.isfinite(largest):
        return 0.0
    weights = np.exp(log_weights - largest)
    return float(weights.sum() ** 2 / (weights @ weights) / len(weights))
