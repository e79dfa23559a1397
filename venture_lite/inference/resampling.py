"""Which particles go on: weights as shares, one particle drawn, and ancestors of all beside one that is kept.

Ancestors come from conditional systematic resampling (Chopin and Singh 2015, section 5). P points, 1/P apart, lie on a
circle whose arcs are the particles' shares; which slot each point belongs to is shifted at random, so that every slot's
ancestor has the shares as its distribution. Given that one slot's ancestor is the one that is kept, its point is
uniform on that arc, and the others follow from it: nothing else is random. Systematic draws of P - 1 ancestors beside
the kept one would not have this distribution.
"""

from __future__ import annotations

import numpy as np

from venture_lite.trace.weights import Weight


def shares(impossible: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Log weights (particles,) as shares of 1. Only particles with the fewest impossible terms have one, which is the
    limit of giving an impossible term probability eps."""
    fewest = impossible == impossible.min()
    with np.errstate(under="ignore"):
        found = np.where(fewest, np.exp(np.where(fewest, total - total[fewest].max(), 0.0)), 0.0)
    found /= found.sum()
    return found


def shares_of(weights: list[Weight]) -> np.ndarray:
    return shares(np.array([w.impossible for w in weights]), np.array([w.total for w in weights]))


def draw_particle(rng: np.random.Generator, share: np.ndarray) -> int:
    return int(_on_arcs(share, np.array([rng.random()]))[0])


def draw_ancestors(rng: np.random.Generator, share: np.ndarray, kept: int) -> np.ndarray:
    """The ancestor of each particle of the next step, (particles,), given that the first one's is `kept`."""
    count = len(share)
    start = share[:kept].sum() + share[kept] * rng.random()
    ancestors = _on_arcs(share, (start + np.arange(count) / count) % 1.0)
    ancestors[0] = kept
    return ancestors


def effective(share: np.ndarray) -> float:
    """The effective number of particles, between 1 and all."""
    return float(1.0 / (share * share).sum())


def _on_arcs(share: np.ndarray, points: np.ndarray) -> np.ndarray:
    ends = share.cumsum()
    found = np.searchsorted(ends, points * ends[-1], side="right")
    # rounding may leave a point at the very end of the circle: it belongs to the last arc that has a length
    return np.asarray(np.minimum(found, np.flatnonzero(share)[-1]))
