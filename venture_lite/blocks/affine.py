"""Values that are affine in the principals of a block, over a group of rows: what `linear.py` computes with.

Beside them stand plain numbers: one for all rows, one for each (rows,), or vectors (1 or rows, D).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(slots=True)
class Affine:
    """One number for each row: by principal its coefficients, (1 or rows, D) or (D,), and the rest."""

    terms: dict[int, np.ndarray]
    offset: Any


@dataclass(frozen=True, slots=True)
class Whole:
    """A principal itself; a vector or matrix perhaps times numbers, or element by element times vectors."""

    node: int
    scale: Any = 1.0

    def is_bare(self) -> bool:
        return isinstance(self.scale, float) and self.scale == 1.0


@dataclass(frozen=True, slots=True)
class PrincipalRows:
    """A matrix whose rows are principals."""

    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scores:
    """A matrix principal times a vector of features (1 or rows, F) or (F,), plus an offset."""

    node: int
    features: Any
    offset: Any = 0.0


@dataclass(frozen=True, slots=True)
class Stack:
    """A vector of numbers, one for each score."""

    parts: tuple[Any, ...]


class NotLinear(Exception):
    """The value depends on the principals in another way."""


def is_affine(item: Any) -> bool:
    return isinstance(item, (Affine, Whole, PrincipalRows, Scores, Stack))


def by_row(scale: Any) -> Any:
    """Numbers for each row as a column, to stand beside vectors; other scales as they are."""
    return scale[:, None] if np.ndim(scale) == 1 else scale


def aligned(one: Any, other: Any) -> tuple[Any, Any]:
    """Plain numbers, shaped so that rows stand beside rows where one of the two has a vector for each."""
    return (one, other) if np.ndim(one) < 2 and np.ndim(other) < 2 else (by_row(one), by_row(other))


def scaled(features: Any, scale: Any) -> np.ndarray:
    """Features (1 or rows, D) or (D,), copied only where they are scaled."""
    array = np.asarray(features, dtype=np.float64)
    return array if isinstance(scale, float) and scale == 1.0 else array * by_row(scale)
