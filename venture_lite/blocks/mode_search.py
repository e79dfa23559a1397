"""Where the log density of a block is highest in its free coordinates, by its derivatives.

A density need not have a mode: as the scale of a hierarchy goes to 0 it may grow without end, and the search then
leaves for the edge of the coordinates. Whether it ended at a maximum is looked at, not believed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from venture_lite.blocks.curvature import hessian_by_differences, inverse_root, scaled
from venture_lite.blocks.lbfgs import Ended, descent

OUTSIDE = 1.0
"""Nats by which the log density counts as lower than at the start where it is not finite, so that a line search turns
back, but not by more: it makes its next step from the difference, and an immense one would leave it where it is."""
MOST_OUTSIDE = 8
"""Evaluations of one step where the log density is not finite, after which a path stops."""

ROUNDS = 3
"""Searches, each in the coordinates in which the end of the one before is about standard normal."""
ITERATIONS = 300

ASIDE = 0.5
"""Sds from the end at which the slopes are looked at."""
DOUBLINGS = 60
FLAT = 0.25
"""A slope in units of the sds that may lead away from the end: half of a standard normal's at ASIDE leads back."""

Evaluate = Callable[[np.ndarray], tuple[float, np.ndarray] | None]
"""The log density and its gradient (D,) at free coordinates (D,); None where they are not finite."""

Hessian = Callable[[np.ndarray], np.ndarray | None]
"""The second derivatives (D, D) at free coordinates; None where only differences of gradients give them."""


@dataclass(frozen=True, slots=True)
class Peak:
    """Where a search ended."""

    at: np.ndarray
    # minus the Hessian (D, D); NaN where the density has none
    curvature: np.ndarray
    # whether the density falls from there in every direction that was looked at
    is_maximum: bool


@dataclass(frozen=True, slots=True)
class Climb:
    """A path of L-BFGS uphill (Nocedal and Wright 2006, Numerical optimization, algorithm 7.5)."""

    # where it ended, in free coordinates (D,)
    end: np.ndarray
    # its steps from the start on: free coordinates (D,), the log density and the gradient (D,)
    steps: list[tuple[np.ndarray, float, np.ndarray]]
    # in the words of the method
    why: str
    # whether it found nothing higher, though the density has a slope there
    is_stuck: bool


class _Walled(Exception):
    """Nothing but walls is met."""


def climb(evaluate: Evaluate, start: np.ndarray, root: np.ndarray | None = None) -> Climb:
    """From `start` uphill, in coordinates z with free coordinates start + root z."""
    outside = evaluations = 0
    steps: list[tuple[np.ndarray, float, np.ndarray]] = []
    # since the last step: what was found, by the identity of the gradient that was given for it
    seen: dict[int, tuple[np.ndarray, float, np.ndarray]] = {}

    def negative(away: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal outside, evaluations
        evaluations += 1
        free = np.asarray(start + (away if root is None else root @ away))
        found = evaluate(free)
        if found is None:
            outside += 1
            if outside == MOST_OUTSIDE:
                raise _Walled
            # the start is the lowest of a path's steps
            return OUTSIDE - (steps[0][1] if steps else 0.0), np.zeros(len(start))
        gradient = -(found[1] if root is None else root.T @ found[1])
        seen[id(gradient)] = free, *found
        return -found[0], gradient

    why, is_stuck = "", False
    try:
        for point in descent(negative, np.zeros(len(start)), ITERATIONS):
            if isinstance(point, Ended):
                why, is_stuck = point
                break
            if (step := seen.get(id(point.gradient))) is not None:
                steps.append(step)
            seen.clear()
            outside = 0
            if evaluations > 2 * ITERATIONS:
                why = f"{evaluations} evaluations were made"
                break
    except _Walled:
        why, is_stuck = "the density is not finite around it", True
    return Climb(steps[-1][0] if steps else start, steps, why, is_stuck)


def search(evaluate: Evaluate, start: np.ndarray, hessian: Hessian = lambda at: None) -> Peak:
    """From `start` uphill, in rounds until one ends at a maximum."""
    at, root = start, np.eye(len(start))
    for _ in range(ROUNDS):
        at = climb(evaluate, at, root).end
        found = hessian(at)
        if found is None:
            found = hessian_by_differences(lambda free: None if (f := evaluate(free)) is None else f[1], at)
        curvature = -found
        if not np.isfinite(curvature).all():
            return Peak(at, curvature, False)
        root = root_of(curvature)[0]
        higher = _higher(evaluate, at, curvature, root)
        if higher is None:
            return Peak(at, curvature, True)
        at = higher
    return Peak(at, curvature, False)


def root_of(curvature: np.ndarray) -> tuple[np.ndarray, str]:
    """L with L L' the inverse of a curvature, its columns along its axes, and what it was made from.

    Where the curvature is not positive definite its eigenvalues count by their magnitude (Betancourt 2013, A general
    metric for Riemannian manifold Hamiltonian Monte Carlo): no likelihood's information is known here.
    """
    root = inverse_root(curvature)
    if root is not None:
        return root, "Hessian"
    values, vectors = np.linalg.eigh(curvature)
    return scaled(np.abs(values), vectors), "magnitudes of the Hessian"


def _higher(evaluate: Evaluate, at: np.ndarray, curvature: np.ndarray, root: np.ndarray) -> np.ndarray | None:
    """Where to go on from an end that is no maximum; None for a maximum.

    The density must not rise outwards along any axis. Where it is curved that is seen within a sd, by its slopes: at a
    kink they jump from one sign to the other, which is a maximum like any other. Where it is not, the first change that
    can be told from none must be a fall, however far away.
    """
    curved = np.einsum("ij,ik,kj->j", root, curvature, root) > 0.5
    for axis, is_curved in zip(root.T, curved, strict=True):
        for way in (ASIDE, -ASIDE):
            there: np.ndarray = at + way * axis
            found = evaluate(there)
            if found is not None and float(np.sign(way) * (found[1] @ axis)) > FLAT:
                return there
            if not is_curved and (rising := _rises(evaluate, at, np.sign(way) * axis)) is not None:
                return rising
    return None


def _rises(evaluate: Evaluate, at: np.ndarray, axis: np.ndarray) -> np.ndarray | None:
    """The first point on the way along an axis, by steps that double, where the log density differs by 1, if it is
    higher there."""
    here = evaluate(at)
    assert here is not None
    for doubled in range(DOUBLINGS):
        there: np.ndarray = at + 2.0**doubled * axis
        found = evaluate(there)
        if found is None or found[0] < here[0] - 1.0:
            return None
        if found[0] > here[0] + 1.0:
            return there
    return None
