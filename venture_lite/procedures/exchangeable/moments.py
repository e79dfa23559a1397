"""Mean and scatter of vectors by rank-one steps, and the Cholesky factor of a posterior scale matrix.

There are two implementations of one interface. A collapsed mixture asks for a factor at every candidate of every
assignment, so for a few dimensions plain floats are used, where NumPy would spend ten times as long on calls; above
that, arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

MOST_PLAIN = 6
"""Up to this dimension plain floats are faster than arrays."""


@dataclass(frozen=True, slots=True)
class Moments:
    count: int
    # (D,): a tuple of floats, or an array that nobody changes
    mean: Any
    # (D, D) centred scatter: the rows of its lower triangle one after the other, or an array that nobody changes
    scatter: Any


class Algebra(Protocol):
    def empty(self) -> Moments: ...

    def point(self, value: Any) -> Any:
        """A vector or list of numbers of this dimension in the form of `Moments.mean`; None for anything else."""

    def matrix(self, value: Any) -> Any:
        """A matrix in the form of `Moments.scatter`."""

    def moved(self, moments: Moments, point: Any, sign: int) -> Moments:
        """With one point more (1), or with one of them less (-1)."""

    def factor(self, base: Any, moments: Moments, mean: Any, weight: float) -> tuple[Any, float]:
        """The Cholesky factor of base + scatter + weight a a', where a is the moments' mean less `mean`, and its log
        determinant (that of the matrix)."""

    def between(self, mean: Any, moments: Moments, part: float) -> Any:
        """The point that lies the given part of the way from `mean` to the moments' mean."""

    def squared_distance(self, factor: Any, center: Any, point: Any) -> float:
        """|L^-1 (point - center)|^2."""


class PlainAlgebra:
    """Sequences of floats; a symmetric matrix is the rows of its lower triangle."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._places = [(row, column) for row in range(size) for column in range(row + 1)]

    def empty(self) -> Moments:
        return Moments(0, (0.0,) * self.size, (0.0,) * len(self._places))

    def point(self, value: Any) -> Sequence[float] | None:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, (tuple, list)) and len(value) == self.size:
            return value if all(isinstance(x, (int, float)) for x in value) else None
        return None

    def matrix(self, value: Any) -> tuple[float, ...]:
        rows = np.asarray(value, dtype=np.float64)
        return tuple(float(rows[place]) for place in self._places)

    def moved(self, moments: Moments, point: Any, sign: int) -> Moments:
        count = moments.count + sign
        if not count:
            return self.empty()
        away = [x - m for x, m in zip(point, moments.mean, strict=True)]
        signed = sign * count
        mean = [m + a / signed for m, a in zip(moments.mean, away, strict=True)]
        # (x - old mean)(x - new mean)' is symmetric: the new mean lies on the line from the old one to x
        part = moments.count / signed
        scatter = [s + part * away[i] * away[j] for s, (i, j) in zip(moments.scatter, self._places, strict=True)]
        return Moments(count, mean, scatter)

    def factor(self, base: Any, moments: Moments, mean: Any, weight: float) -> tuple[Any, float]:
        away = [x - m for x, m in zip(moments.mean, mean, strict=True)]
        matrix = [
            b + s + weight * away[i] * away[j] for b, s, (i, j) in zip(base, moments.scatter, self._places, strict=True)
        ]
        return self._cholesky(matrix, base)

    def _cholesky(self, matrix: list[float], base: Any) -> tuple[list[float], float]:
        """In place, row by row. A pivot that rounding made smaller than any can be stays at the least value."""
        log_determinant, start = 0.0, 0
        for row in range(self.size):
            other = 0
            for column in range(row):
                entry = matrix[start + column]
                for k in range(column):
                    entry -= matrix[start + k] * matrix[other + k]
                matrix[start + column] = entry / matrix[other + column]
                other += column + 1
            diagonal = matrix[start + row]
            pivot = diagonal
            for k in range(row):
                pivot -= matrix[start + k] * matrix[start + k]
            if not pivot > 0.0:
                pivot = 2.3e-16 * base[start + row]
            log_determinant += math.log(pivot)
            matrix[start + row] = math.sqrt(pivot)
            start += row + 1
        return matrix, log_determinant

    def between(self, mean: Any, moments: Moments, part: float) -> list[float]:
        return [m + part * (x - m) for m, x in zip(mean, moments.mean, strict=True)]

    def squared_distance(self, factor: Any, center: Any, point: Any) -> float:
        solved: list[float] = []
        start, total = 0, 0.0
        for row in range(self.size):
            entry = point[row] - center[row]
            for k in range(row):
                entry -= factor[start + k] * solved[k]
            entry /= factor[start + row]
            solved.append(entry)
            total += entry * entry
            start += row + 1
        return total


class ArrayAlgebra:
    """Arrays, for any dimension."""

    def __init__(self, size: int) -> None:
        self.size = size

    def empty(self) -> Moments:
        return Moments(0, np.zeros(self.size), np.zeros((self.size, self.size)))

    def point(self, value: Any) -> np.ndarray | None:
        if isinstance(value, tuple) and all(isinstance(x, (int, float)) for x in value):
            value = np.array(value, dtype=np.float64)
        return value if isinstance(value, np.ndarray) and value.shape == (self.size,) else None

    def matrix(self, value: Any) -> np.ndarray:
        return np.asarray(value, dtype=np.float64)

    def moved(self, moments: Moments, point: Any, sign: int) -> Moments:
        count = moments.count + sign
        if not count:
            return self.empty()
        away, signed = point - moments.mean, sign * count
        scatter = moments.scatter + moments.count / signed * np.outer(away, away)
        return Moments(count, moments.mean + away / signed, scatter)

    def factor(self, base: Any, moments: Moments, mean: Any, weight: float) -> tuple[Any, float]:
        away = moments.mean - mean
        matrix = base + moments.scatter + weight * np.outer(away, away)
        try:
            lower = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            # rounding in the scatter made a pivot negative: the base is what bounds it from below
            values, vectors = np.linalg.eigh(matrix)
            root = vectors * np.sqrt(np.maximum(values, 2.3e-16 * values.max()))
            lower = np.asarray(np.linalg.qr(root.T, mode="r")).T
            lower = lower * np.sign(lower.diagonal())
        return lower, 2.0 * float(np.log(lower.diagonal()).sum())

    def between(self, mean: Any, moments: Moments, part: float) -> np.ndarray:
        return np.asarray(mean + part * (moments.mean - mean))

    def squared_distance(self, factor: Any, center: Any, point: Any) -> float:
        from scipy.linalg import solve_triangular

        solved = solve_triangular(factor, point - center, lower=True, check_finite=False)
        return float(solved @ solved)


def algebra_of(size: int) -> Algebra:
    return PlainAlgebra(size) if size <= MOST_PLAIN else ArrayAlgebra(size)
