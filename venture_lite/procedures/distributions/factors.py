"""Cholesky factors of covariance matrices, kept by object identity.

Values of the language never change and are shared, so one matrix object is factored once, however many densities read
it.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

KEPT = 64
"""How many factors are kept; a trace with more covariance matrices than this at once factors some of them again."""

RELATIVE_ASYMMETRY = 1e-9
"""Largest difference between mirrored entries, relative to the largest entry, that still counts as rounding."""


@dataclass(frozen=True, slots=True)
class MatrixFactor:
    # lower triangular, lower @ lower.T is the matrix
    lower: np.ndarray
    # the inverse of `lower`
    whitening: np.ndarray
    log_determinant: float


_kept: dict[int, tuple[Any, MatrixFactor | None]] = {}
# sessions in other threads share what is kept
_changing = threading.Lock()


def cholesky_of(matrix: Any) -> MatrixFactor | None:
    """The factor of a symmetric positive definite matrix (D, D), or None where it is neither."""
    entry = _kept.get(id(matrix))
    if entry is not None and entry[0] is matrix:
        return entry[1]
    factor = factor_of(np.asarray(matrix, dtype=np.float64))
    if not (isinstance(matrix, np.ndarray) and matrix.flags.writeable):
        with _changing:
            while len(_kept) >= KEPT:
                _kept.pop(next(iter(_kept)), None)
            _kept[id(matrix)] = (matrix, factor)
    return factor


def factor_of(matrix: np.ndarray) -> MatrixFactor | None:
    """As `cholesky_of`, without remembering."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size or not np.isfinite(matrix).all():
        return None
    if abs(matrix - matrix.T).max() > RELATIVE_ASYMMETRY * abs(matrix).max():
        return None
    try:
        lower = np.linalg.cholesky(matrix)
        whitening = np.linalg.solve(lower, np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return None
    return MatrixFactor(lower, np.tril(whitening), 2.0 * sum(map(math.log, lower.diagonal().tolist())))
