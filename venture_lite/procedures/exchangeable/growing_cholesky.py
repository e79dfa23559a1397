"""A Cholesky factor that gains rows, loses them, and takes either back bit for bit.

The rows of the lower factor L stand packed one after another in one buffer, row i at i (i + 1) / 2. A new observation
writes one row behind the others, so that taking it back is forgetting it; a solve with L reads the buffer in place (to
BLAS a packed lower factor by rows is a packed upper factor by columns).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray


class GrowingCholesky:
    """The lower factor of a symmetric positive definite matrix (size, size). Mutable; `extend`, `delete` and `put_back`
    cost O(size^2)."""

    __slots__ = ("_packed", "size")

    def __init__(self) -> None:
        self.size = 0
        self._packed = np.empty(64)

    def factor(self, matrix: Array) -> None:
        """Start anew from a whole matrix (n, n), O(n^3).

        Raises numpy.linalg.LinAlgError where the matrix is not positive definite.
        """
        lower = np.linalg.cholesky(matrix)
        self._packed = lower[np.tri(len(lower), dtype=bool)]
        self.size = len(lower)

    def solve(self, right: Array) -> Array:
        """L^-1 right (size,)."""
        if not self.size:
            return np.empty(0)
        solved: Array = _blas().dtpsv(self.size, self._packed, right, lower=0, trans=1)
        return solved

    def solve_transposed(self, right: Array) -> Array:
        """L^-T right (size,)."""
        solved: Array = _blas().dtpsv(self.size, self._packed, right, lower=0, trans=0)
        return solved

    def inverse(self) -> Array:
        """(size, size): that of the matrix, O(size^3)."""
        lower = np.zeros((self.size, self.size))
        lower[np.tri(self.size, dtype=bool)] = self._packed[: _start(self.size)]
        # the upper triangle stays 0
        inverse: Array = _lapack().dpotri(lower, lower=1)[0]
        whole: Array = inverse + inverse.T
        whole[np.diag_indices(self.size)] *= 0.5
        return whole

    def diagonal(self) -> Array:
        """(size,)"""
        last = np.arange(1, self.size + 1)
        found: Array = self._packed[last * (last + 1) // 2 - 1]
        return found

    def extend(self, left: Array, pivot: float) -> None:
        """A last row: `left` (size,), then the diagonal entry."""
        start, end = _start(self.size), _start(self.size + 1)
        if end > len(self._packed):
            grown = np.empty(max(end, 2 * len(self._packed)))
            grown[:start] = self._packed[:start]
            self._packed = grown
        self._packed[start : end - 1] = left
        self._packed[end - 1] = pivot
        self.size += 1

    def shorten(self) -> None:
        """Take the last row out: the exact inverse of `extend`."""
        self.size -= 1

    def delete(self, position: int) -> Array:
        """Take out one row and column of the matrix; returns what `put_back` needs."""
        size = self.size
        tail = self._packed[_start(position) : _start(size)].copy()
        below = size - 1 - position
        if below:
            rows = np.zeros((below, size))
            rows[np.tri(below, size, position + 1, dtype=bool)] = tail[position + 1 :]
            rows[:, position:-1] = _updated(rows[:, position + 1 :], rows[:, position])
            packed = rows[:, :-1][np.tri(below, size - 1, position, dtype=bool)]
            self._packed[_start(position) : _start(size - 1)] = packed
        self.size -= 1
        return tail

    def put_back(self, position: int, tail: Array) -> None:
        """The exact inverse of `delete`."""
        self.size += 1
        self._packed[_start(position) : _start(self.size)] = tail


def _start(row: int) -> int:
    return row * (row + 1) // 2


@cache
def _blas() -> Any:
    from scipy.linalg import blas

    return blas


@cache
def _lapack() -> Any:
    from scipy.linalg import lapack

    return lapack


def _updated(lower: Array, column: Array) -> Array:
    """The factor of lower @ lower.T + column column^T, (m, m).

    With v = lower^-1 column it is lower @ C, where C is the factor of I + v v^T. With t_j = 1 + v_1^2 + ... + v_j^2 its
    entries are sqrt(t_j / t_(j-1)) on the diagonal and v_i v_j / sqrt(t_j t_(j-1)) below it (Gill, Golub, Murray and
    Saunders 1974, Methods for modifying matrix factorizations, method C1). The sums of lower[:, i] v_i over i > j are
    taken as what the sums over i <= j leave of `column`, which keeps their rounding small.
    """
    lower = np.ascontiguousarray(lower)
    v = _blas().dtrsv(lower.T, column, lower=0, trans=1)
    after = 1.0 + np.cumsum(v * v)
    before = np.concatenate(([1.0], after[:-1]))
    left = column[:, None] - np.cumsum(lower * v, axis=1)
    updated: Array = lower * np.sqrt(after / before) + left * (v / np.sqrt(after * before))
    return updated
