"""Distributions over correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import transforms
from venture_lite.procedures.columns import Flags, RowByRow
from venture_lite.procedures.domains import CHOLESKY_FACTOR, POSITIVE, POSITIVE_INTEGER
from venture_lite.procedures.numeric import lgamma
from venture_lite.procedures.record import Argument, Gradient, Random
from venture_lite.procedures.straight_line import digamma
from venture_lite.procedures.triangles import lower_triangle
from venture_lite.values import freeze, show

LARGEST = 1000
"""More rows are a mistake: half a million free coordinates."""
UNIT = 1e-9
"""How far the square of a row's length may be from 1."""


def _simulate(rng: np.random.Generator, n: float, eta: float) -> np.ndarray:
    """Partial correlations z in column j are 2 beta(a_j, a_j) - 1, independent of each other."""
    if n > LARGEST:
        raise ArgumentError(f"lkj_cholesky: n must be at most {LARGEST}, got {show(n)}")
    shapes = _shapes(int(n), eta)
    # atanh(2 beta - 1) is half the logarithm of a ratio of gammas
    one, other = (np.log(rng.standard_gamma(shapes + 1.0)) + np.log1p(-rng.random(len(shapes))) / shapes for _ in "ab")
    return freeze(transforms.CORRELATION_FACTOR.from_free(0.5 * (one - other), ()))


@functools.lru_cache(100)
def _shapes(n: int, eta: float) -> np.ndarray:
    """Of each entry below the diagonal, row by row, the shape of its partial correlation's beta (Lewandowski, Kurowicka
    and Joe 2009, section 2.4)."""
    return freeze(eta + 0.5 * (n - 2 - lower_triangle(n, -1)[1]))


@functools.lru_cache(100)
def _constant(n: int, eta: float) -> float:
    a = _shapes(n, eta).tolist()
    return math.fsum(lgamma(2.0 * x) - 2.0 * lgamma(x) - (2.0 * x - 1.0) * math.log(2.0) for x in a)


@functools.lru_cache(100)
def _exponents(n: int, eta: float) -> np.ndarray:
    """Of the diagonal's entries; the first one is always 1."""
    return freeze((2.0 * eta - 2.0 + np.arange(n - 1, -1, -1.0)) * (np.arange(n) > 0))


def _factor(value: Any, n: float) -> np.ndarray | None:
    """A value as a matrix of floats where it is a factor of this size with rows of length 1."""
    if not CHOLESKY_FACTOR.contains(value):
        return None
    lower = np.asarray(value, dtype=np.float64)
    is_unit = np.abs(np.square(lower).sum(axis=1) - 1.0).max() <= UNIT
    return lower if len(lower) == n and is_unit else None


def _log_density(value: Any, n: float, eta: float) -> float:
    lower = _factor(value, n)
    if lower is None:
        return -math.inf
    return _log_density_of(lower, eta)


def _log_density_of(lower: np.ndarray, eta: float) -> float:
    n = len(lower)
    return float(_exponents(n, eta) @ np.log(lower.diagonal())) + _constant(n, eta)


def _slopes_of(lower: np.ndarray, eta: float, wanted: Flags) -> tuple[Any, ...]:
    """The derivatives by the value, and by eta."""
    n, diagonal = len(lower), lower.diagonal()
    by_value = np.zeros((n, n)) if wanted[0] else None
    if by_value is not None:
        np.fill_diagonal(by_value, _exponents(n, eta) / diagonal)
    if not wanted[2]:
        return by_value, None
    a = _shapes(n, eta)
    by_a = 2.0 * (digamma(2.0 * a) - digamma(a) - math.log(2.0))
    return by_value, float(2.0 * np.log(diagonal).sum() + by_a.sum())


def _gradient(lifted: Flags, wanted: Flags, value: Any, n: Any, eta: Any) -> tuple[Any, ...]:
    if any(lifted):
        raise RowByRow
    lower = _factor(value, n)
    if lower is None:
        shape = np.shape(value) if isinstance(value, np.ndarray) else ()
        return (np.zeros(shape) if wanted[0] else None, None, 0.0 if wanted[2] else None)
    by_value, by_eta = _slopes_of(lower, eta, wanted)
    return by_value, None, by_eta


def _slopes_of_one(wanted: Flags) -> Callable[..., tuple[Any, ...]]:
    """(value, n, eta) -> the log density and the derivatives asked for, of a value that is looked at once."""

    def slopes(value: Any, n: Any, eta: Any) -> tuple[Any, ...]:
        lower = _factor(value, n)
        if lower is None:
            return -math.inf, *(0.0 for want in wanted if want)
        parts = zip(_slopes_of(lower, eta, wanted), (wanted[0], wanted[2]), strict=True)
        return _log_density_of(lower, eta), *(part for part, want in parts if want)

    return slopes


LKJ_CHOLESKY = Random(
    "lkj_cholesky", (Argument("n", POSITIVE_INTEGER), Argument("eta", POSITIVE)),
    "The Cholesky factor L of an n by n correlation matrix whose density is its determinant to the power eta - 1: "
    "uniform over correlation matrices for eta = 1, nearer to the identity for larger ones. A covariance matrix with "
    "these sds has the factor (matmul (diagonal sds) L).",
    _simulate, _log_density, transform=transforms.CORRELATION_FACTOR,
    source="c prod_i L_ii^(n - i + 2 eta - 2) for the entries below the diagonal, i = 2 ... n",
    gradient=Gradient((True, False, True), _gradient, _slopes_of_one),
)  # fmt: skip

RECORDS = (LKJ_CHOLESKY,)
