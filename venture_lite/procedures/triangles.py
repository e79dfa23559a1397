"""The places of entries of triangular matrices, which NumPy would look for in each call."""

from __future__ import annotations

import functools

import numpy as np

from venture_lite.values import freeze

Places = tuple[np.ndarray, np.ndarray]
"""Rows and columns, row by row."""


@functools.lru_cache(100)
def lower_triangle(size: int, above: int = 0) -> Places:
    """Those on and below the diagonal, or with `above` that many diagonals further up: -1 leaves the diagonal out."""
    rows, columns = np.tril_indices(size, above)
    return freeze(rows), freeze(columns)


@functools.lru_cache(100)
def above_diagonal(size: int) -> Places:
    """Those above the diagonal."""
    rows, columns = np.triu_indices(size, 1)
    return freeze(rows), freeze(columns)
