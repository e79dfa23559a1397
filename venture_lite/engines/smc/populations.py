"""The weights of several populations of particles, one for each run: what resampling and the evidence are made of.

The runs go through their distributions side by side and have nothing in common but where these lie: an increment of
the weights, its effective share of particles and its resampling are a run's own.
"""

from __future__ import annotations

import math

import numpy as np

from venture_lite.engines.pgibbs.resampling import draw_systematic, effective

RESAMPLED = 0.5
"""A run whose effective share of particles is below this is resampled."""


class Populations:
    """R runs of P particles each, numbered run by run: log weights, and estimates of the log evidence so far."""

    def __init__(self, runs: int, particles: int) -> None:
        self.runs, self.particles = runs, particles
        # log of each particle's share in its run (R, P)
        self._logs = np.full((runs, particles), -math.log(particles))
        # of each run, -inf once all its particles have probability zero (R,)
        self.log_evidence = np.zeros(runs)

    @property
    def is_dead(self) -> bool:
        """Whether no particle of any run is left."""
        return bool((self.log_evidence == -math.inf).all())

    def alive(self) -> np.ndarray:
        """Whether each particle (R P,) has a weight."""
        found: np.ndarray = (self._logs > -math.inf).ravel()
        return found

    def add(self, increments: np.ndarray) -> None:
        """Weigh the particles by these log increments (R P,): each run's evidence grows by the log of their mean."""
        logs = self._logs + increments.reshape(self._logs.shape)
        totals = np.logaddexp.reduce(logs, axis=1)
        self.log_evidence = self.log_evidence + totals
        with np.errstate(invalid="ignore"):
            self._logs = np.where(totals[:, None] > -math.inf, logs - totals[:, None], -math.inf)

    def conditional_share(self, increments: np.ndarray) -> float:
        """The conditional effective sample size of increments (R P,) over P, the mean over the runs that are alive
        (Zhou, Johansen and Aston 2016, equation 3.15): 1 where they are all alike, whatever the weights are."""
        increments = increments.reshape(self._logs.shape)
        first = np.logaddexp.reduce(self._logs + increments, axis=1)
        with np.errstate(invalid="ignore"):
            second = np.logaddexp.reduce(self._logs + 2.0 * increments, axis=1)
            ratios = np.exp(2.0 * first - second)
        ratios = np.where(first > -math.inf, ratios, 0.0)
        return float(ratios.sum() / max((self.log_evidence > -math.inf).sum(), 1))

    def is_uneven(self) -> bool:
        """Whether some run is to be resampled."""
        return bool(self._uneven().any())

    def _uneven(self) -> np.ndarray:
        shares = np.exp(self._logs)
        alive = self.log_evidence > -math.inf
        shares[~alive] = 1.0 / self.particles
        return alive & (effective(shares) < RESAMPLED * self.particles)

    def resample(self, rng: np.random.Generator) -> np.ndarray:
        """The ancestor of each particle (R P,), itself where its run is not resampled; those that are have equal
        weights then."""
        uneven = np.flatnonzero(self._uneven())
        places = np.arange(self.runs * self.particles).reshape(self._logs.shape)
        if len(uneven):
            shares = np.exp(self._logs[uneven])
            ancestors = draw_systematic(rng, shares, self.particles)
            places[uneven] = uneven[:, None] * self.particles + ancestors
            self._logs[uneven] = -math.log(self.particles)
        return places.ravel()

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """P particles (P,) of all runs, each run's weighed by its evidence, in order."""
        highest = self.log_evidence.max()
        with np.errstate(invalid="ignore"):
            shares = np.exp(self._logs + (self.log_evidence - highest)[:, None]).ravel()
        shares /= shares.sum()
        found: np.ndarray = draw_systematic(rng, shares[None], self.particles)[0]
        return found
