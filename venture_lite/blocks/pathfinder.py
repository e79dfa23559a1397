"""Pathfinder: the best normal approximation along a path uphill (Zhang, Carpenter, Gelman and Vehtari 2022, JMLR 23).

The steps of L-BFGS know the curvature that they met. So at each of them there is a normal, whose covariance is the
method's inverse Hessian: a diagonal and a correction of low rank. The one of the highest evidence lower bound is taken,
which seldom is the one at the end: a mode need not be typical, and there may be none.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from venture_lite.blocks.curvature import inverse_root
from venture_lite.blocks.mode_search import Climb, Evaluate, Hessian, climb, search

HISTORY = 6
"""Steps from which a covariance is made (section 3.1)."""
DRAWS = 5
"""Of a normal, for its evidence lower bound (section 3.1)."""
CURVED = 1e-12
"""A step counts where s'z is above this share of z'z: its s is a move, z what the gradient lost there (section 2.2)."""
REACH = 2.0
"""Random starts lie between minus this and this, in each free coordinate (Stan reference manual, initialization)."""

RISING = 0.5
"""What a step of Newton's gains at the end of a path, in nats, if that is not a mode: there it is about 0."""

FLIGHT = 0.1
"""Nats for each coordinate: what the last quarter of a path gains where there is no mode. That of a normal's is half a
nat higher than where its draws are, and a path gains nearly all of it at its beginning."""

LOG_TWO_PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True)
class PathNormal:
    """The normal at one step of a path: its covariance is the inverse Hessian of L-BFGS there."""

    # (D,)
    mean: np.ndarray
    # square roots of the diagonal part (D,)
    root: np.ndarray
    # orthonormal columns (D, M), and a lower factor (M, M) of the covariance in their space, where root is 1
    across: np.ndarray
    lower: np.ndarray

    def covariance(self) -> np.ndarray:
        """(D, D)."""
        within = self.lower @ self.lower.T - np.eye(len(self.lower))
        inner = np.eye(len(self.root)) + self.across @ within @ self.across.T
        return np.asarray(self.root[:, None] * inner * self.root)

    def variances(self) -> np.ndarray:
        """The diagonal of the covariance (D,)."""
        within = self.lower @ self.lower.T - np.eye(len(self.lower))
        return np.asarray(self.root**2 * (1.0 + np.einsum("ij,jk,ik->i", self.across, within, self.across)))

    def precisions(self) -> np.ndarray:
        """The diagonal of the inverse of the covariance (D,)."""
        inverse = np.linalg.inv(self.lower)
        within = inverse.T @ inverse - np.eye(len(self.lower))
        return np.asarray((1.0 + np.einsum("ij,jk,ik->i", self.across, within, self.across)) / self.root**2)

    def spread(self, noise: np.ndarray) -> np.ndarray:
        """A factor of the covariance times (D,) or (D, N)."""
        within = self.across.T @ noise
        found = noise + self.across @ (self.lower @ within - within)
        return np.asarray((self.root * found.T).T)

    def pulled(self, gradient: np.ndarray) -> np.ndarray:
        """That factor transposed times (D,): a gradient by what `spread` takes."""
        found = self.root * gradient
        within = self.across.T @ found
        return np.asarray(found + self.across @ (self.lower.T @ within - within))

    def log_det(self) -> float:
        """Of the covariance."""
        return 2.0 * float(np.log(self.root).sum() + np.log(self.lower.diagonal()).sum())

    def draw(self, noise: np.ndarray, log_det: float | None = None) -> tuple[np.ndarray, float]:
        """Where standard normals (D,) lead, and the log density there (algorithm 4); the determinant may be known."""
        found = self.mean + self.spread(noise)
        log_det = self.log_det() if log_det is None else log_det
        return found, -0.5 * (log_det + float(noise @ noise) + len(noise) * LOG_TWO_PI)


@dataclass(frozen=True, slots=True)
class PathEnd:
    """A draw of the best normal along a path."""

    normal: PathNormal
    # the draw (D,), its log density, and that under the normal
    free: np.ndarray
    log_density: float
    log_normal: float
    # the highest evidence lower bound, and at which of the path's steps; beyond the last at the mode
    elbo: float
    step: int
    # of how many
    steps: int
    # the way to the path's end (D,) where that is no mode: a step of Newton's would gain RISING there
    growing: np.ndarray | None
    # whether the density grew as fast at the end as before
    is_in_flight: bool


def pathfinder(
    evaluate: Evaluate, start: np.ndarray, rng: np.random.Generator, hessian: Hessian | None = None
) -> PathEnd | None:
    """A draw of the best normal along the path from `start`; of the next best, where no draw of it has a positive
    density. None where no normal has one.

    With a `hessian` the mode beyond the path's end, and the curvature there, make one normal more: where coordinates
    differ by orders of magnitude L-BFGS stops before it.
    """
    path = climb(evaluate, start)
    if len(path.steps) == 1:
        # nothing is seen from a mode: a path from near by leads back
        path = climb(evaluate, start + rng.uniform(-REACH, REACH, len(start)))
    judged = [(_elbo(evaluate, normal, rng), step, normal) for step, normal in normals(path)]
    growing = _growing(path, judged[-1][2]) if judged else None
    # from where nothing higher is found, on a slope, there is no way to a mode
    leads_on = not path.is_stuck or (growing is None and judged)
    if hessian is not None and leads_on and (normal := _of_mode(evaluate, path.end, hessian)) is not None:
        judged.append((_elbo(evaluate, normal, rng), len(path.steps), normal))
    for elbo, step, normal in sorted(judged, key=lambda each: -each[0]):
        log_det = normal.log_det()
        for _ in range(DRAWS if elbo > -math.inf else 0):
            free, log_normal = normal.draw(rng.standard_normal(len(start)), log_det)
            if (there := evaluate(free)) is not None:
                return PathEnd(
                    normal, free, there[0], log_normal, elbo, step, len(path.steps) - 1, growing, _is_in_flight(path)
                )
    return None


def _of_mode(evaluate: Evaluate, end: np.ndarray, hessian: Hessian) -> PathNormal | None:
    """The normal at the mode uphill from a path's end; None where curvature makes none."""
    peak = search(evaluate, end, hessian)
    if not np.isfinite(peak.curvature).all() or (root := inverse_root(peak.curvature)) is None:
        return None
    size = len(end)
    return PathNormal(peak.at, np.ones(size), np.eye(size), np.linalg.cholesky(root @ root.T))


def _is_in_flight(path: Climb) -> bool:
    highest = [step[1] for step in path.steps]
    return highest[-1] - highest[3 * (len(highest) - 1) // 4] > FLIGHT * len(path.end)


def _growing(path: Climb, last: PathNormal) -> np.ndarray | None:
    end, _, gradient = path.steps[-1]
    rises = 0.5 * float(gradient @ (last.mean - end)) > RISING
    return end - path.steps[0][0] if rises else None


def _elbo(evaluate: Evaluate, normal: PathNormal, rng: np.random.Generator) -> float:
    """-inf where a draw has no positive density."""
    total, log_det = 0.0, normal.log_det()
    for _ in range(DRAWS):
        free, log_normal = normal.draw(rng.standard_normal(len(normal.mean)), log_det)
        if (there := evaluate(free)) is None:
            return -math.inf
        total += there[0] - log_normal
    return total / DRAWS


def normals(path: Climb) -> Iterator[tuple[int, PathNormal]]:
    """The normal at each step after the first, where there is one (algorithm 3)."""
    diagonal = np.ones(len(path.end))
    moves: list[np.ndarray] = []
    losses: list[np.ndarray] = []
    for step, ((before, _, gradient), (free, _, now)) in enumerate(zip(path.steps, path.steps[1:], strict=False), 1):
        move, loss = free - before, gradient - now
        if float(move @ loss) > CURVED * float(loss @ loss):
            diagonal = _diagonal(diagonal, move, loss)
            moves, losses = [*moves, move][-HISTORY:], [*losses, loss][-HISTORY:]
        if moves and (normal := _normal(free, now, diagonal, np.array(moves).T, np.array(losses).T)) is not None:
            yield step, normal


def _diagonal(before: np.ndarray, move: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """The diagonal part after one more step (Gilbert and Lemarechal 1989, as in algorithm 3)."""
    a, b, c = float(loss @ (before * loss)), float(move @ loss), float(move @ (move / before))
    return np.asarray(1.0 / (a / (b * before) + loss**2 / b - a * move**2 / (b * c * before**2)))


def _normal(
    free: np.ndarray, gradient: np.ndarray, diagonal: np.ndarray, moves: np.ndarray, losses: np.ndarray
) -> PathNormal | None:
    """With the inverse Hessian diag(diagonal) + beta gamma beta' in the compact form of L-BFGS (Byrd, Nocedal and
    Schnabel 1994, theorem 2.2), moves and losses (D, J); None where it is not positive definite."""
    if not (np.isfinite(diagonal).all() and (diagonal > 0.0).all()):
        return None
    upper = moves.T @ losses
    count = len(upper)
    upper[_below(count)] = 0.0
    try:
        inverse = np.linalg.inv(upper)
        scaled = diagonal[:, None] * losses
        inner = losses.T @ scaled
        inner.flat[:: count + 1] += upper.diagonal()
        gamma = np.zeros((2 * count, 2 * count))
        gamma[:count, count:], gamma[count:, :count] = -inverse, -inverse.T
        gamma[count:, count:] = inverse.T @ inner @ inverse
        beta = np.concatenate((scaled, moves), axis=1)
        root = np.sqrt(diagonal)
        across, triangle = np.linalg.qr(beta / root[:, None])
        within = triangle @ gamma @ triangle.T
        within.flat[:: len(within) + 1] += 1.0
        lower = np.linalg.cholesky(within)
    except np.linalg.LinAlgError:
        return None
    mean = free + diagonal * gradient + beta @ (gamma @ (beta.T @ gradient))
    return PathNormal(mean, root, across, lower) if np.isfinite(mean).all() else None


@functools.cache
def _below(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The entries below the diagonal of a matrix."""
    return np.tril_indices(count, -1)
