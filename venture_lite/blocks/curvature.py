"""Second derivatives by differences of first ones, and the factors of curvatures by which proposals are scaled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

STEP = 6e-6
"""Relative step of central differences of a gradient: the cube root of the rounding unit."""

CONDITION = 1e8
"""Largest ratio of curvatures that steps are scaled by."""

ROUNDING = 1e-12
"""An eigenvalue below this share of the largest is taken for 0."""


def hessian_by_differences(gradient: Callable[[np.ndarray], np.ndarray | None], at: np.ndarray) -> np.ndarray:
    """(D, D) made symmetric. Where the gradient jumps, at the kink of a Laplace prior, it is the Hessian beside the
    jump. NaN where the gradient has no value."""
    size = len(at)
    found = np.full((size, size), np.nan)

    def difference(i: int, low: float, high: float) -> np.ndarray:
        below, above = at.copy(), at.copy()
        below[i] += low
        above[i] += high
        first, second = gradient(below), gradient(above)
        return np.full(size, np.nan) if first is None or second is None else (second - first) / (above[i] - below[i])

    for i in range(size):
        step = STEP * max(1.0, abs(float(at[i])))
        found[i] = difference(i, -step, step)
        # of a smooth gradient both are the derivative; the quotient of a jump grows as the step shrinks, or drops to 0
        narrow = difference(i, -step / 8, step / 8)
        if abs(narrow[i] - found[i, i]) > 0.5 * abs(found[i, i]):
            found[i] = difference(i, 2 * step, 4 * step)
    symmetric: np.ndarray = 0.5 * (found + found.T)
    return symmetric


def inverse_root(curvature: np.ndarray) -> np.ndarray | None:
    """L (D, D) with L L' the inverse of a curvature, the condition capped; None where it is not positive definite."""
    values, vectors = np.linalg.eigh(curvature)
    if len(values) and not values[0] > ROUNDING * values[-1]:
        return None
    return scaled(values, vectors)


def scaled(values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """L with L L' the inverse of the matrix of these eigenvectors, its eigenvalues no further apart than CONDITION."""
    largest = values.max(initial=0.0)
    if not largest > 0.0:
        return vectors
    found: np.ndarray = vectors / np.sqrt(np.maximum(values, largest / CONDITION))
    return found
