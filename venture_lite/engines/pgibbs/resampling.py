"""Which particles go on: weights as shares, one particle drawn, and ancestors of all beside one that is kept.

Ancestors come from conditional systematic resampling (Chopin and Singh 2015, section 5). P points, 1/P apart, lie on a
circle whose arcs are the particles' shares; which slot each point belongs to is shifted at random, so that every slot's
ancestor has the shares as its distribution. Given that one slot's ancestor is the one that is kept, its point is
uniform on that arc, and the others follow from it: nothing else is random. Systematic draws of P - 1 ancestors beside
the kept one would not have this distribution.

Several populations of P particles are resampled together: shares are (populations, P), each row a circle of its own.
"""

from __future__ import annotations

import numpy as np

from venture_lite.interpreter.weights import Weight


def shares(impossible: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Log weights (populations, P) as shares of 1 in each row. Only particles with the fewest impossible terms have
    one, which is the limit of giving an impossible term probability eps."""
    if impossible.any():
        total = np.where(impossible == impossible.min(axis=-1, keepdims=True), total, -np.inf)
    with np.errstate(under="ignore"):
        found: np.ndarray = np.exp(total - total.max(axis=-1, keepdims=True))
    found /= found.sum(axis=-1, keepdims=True)
    return found


def log_means(impossible: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The log of the mean weight of each population, (populations,): -inf where no particle is possible."""
    logs = np.where(impossible > 0, -np.inf, total)
    means: np.ndarray = np.logaddexp.reduce(logs, axis=-1) - np.log(logs.shape[-1])
    return means


def shares_of(weights: list[Weight]) -> np.ndarray:
    """Those of one population, (1, P)."""
    return shares(np.array([[w.impossible for w in weights]]), np.array([[w.total for w in weights]]))


def draw_particles(rng: np.random.Generator, share: np.ndarray) -> np.ndarray:
    """One particle of each population, (populations,)."""
    found: np.ndarray = _on_arcs(share.cumsum(axis=-1), share, rng.random((len(share), 1)))[:, 0]
    return found


def draw_ancestors(rng: np.random.Generator, share: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """The ancestor of each particle of the next step, (populations, P), given those that are kept, (populations,), of
    the first ones."""
    populations, count = share.shape
    ends = share.cumsum(axis=-1)
    rows = np.arange(populations)
    start = ends[rows, kept] - share[rows, kept] * rng.random(populations)
    ancestors = _on_arcs(ends, share, (start[:, None] + np.arange(count) / count) % 1.0)
    ancestors[:, 0] = kept
    return ancestors


def draw_systematic(rng: np.random.Generator, share: np.ndarray, count: int) -> np.ndarray:
    """So many particles of each population, (populations, count), in order: each as often as its share of them, but for
    less than one."""
    points = (rng.random((len(share), 1)) + np.arange(count)) / count
    return _on_arcs(share.cumsum(axis=-1), share, points)


def effective(share: np.ndarray) -> np.ndarray:
    """The effective number of particles of each population, between 1 and all."""
    found: np.ndarray = 1.0 / (share * share).sum(axis=-1)
    return found


def _on_arcs(ends: np.ndarray, share: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The arc that each point of [0, 1) lies on; `ends` are the cumulated shares."""
    if len(ends) == 1:
        found = np.searchsorted(ends[0], points[0] * ends[0, -1], side="right")[None]
    else:
        # the circles are laid end to end, so that one search serves all
        first = np.arange(len(ends))[:, None]
        line = (first + ends / ends[:, -1:]).ravel()
        found = np.searchsorted(line, (first + points).ravel(), side="right").reshape(points.shape)
        found -= first * share.shape[1]
    # rounding may leave a point at the very end of the circle: it belongs to the last arc that has a length
    last = share.shape[1] - 1 - np.argmax(share[:, ::-1] > 0, axis=1)
    return np.asarray(np.minimum(found, last[:, None]))
