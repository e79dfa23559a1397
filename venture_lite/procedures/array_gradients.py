"""Gradients of the densities of vectors and matrices, written by hand; `record.py` says what they are given and give.

The derivative with respect to a symmetric matrix is the symmetric G with d log density = sum(G * dX) for symmetric dX;
that with respect to a point of the simplex, and to a vector of probabilities, holds for changes that sum to 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.procedures.columns import Flags, RowByRow, arrays
from venture_lite.procedures.distributions.factors import MatrixFactor, cholesky_of
from venture_lite.procedures.domains import POSITIVE_DEFINITE
from venture_lite.procedures.record import Gradient
from venture_lite.procedures.straight_line import digamma
from venture_lite.values import equal

Derivatives = tuple[Any, ...]

LOG_TWO = math.log(2.0)


def shared(rows: Any, lifted: Flags, position: int) -> Any:
    """Derivatives row by row as they are given back: summed where the argument is uniform."""
    total = rows if lifted[position] or not any(lifted) else rows.sum(axis=0)
    return float(total) if isinstance(total, (float, np.ndarray)) and not np.ndim(total) else total


def _floats(lifted: Flags, dimensions: tuple[int, ...], given: tuple[Any, ...]) -> list[np.ndarray]:
    return [array.astype(np.float64, copy=False) for array in arrays(lifted, dimensions, given)]


def _zeros(x: Any) -> Any:
    """Of the shape of what has one."""
    try:
        return np.zeros(np.shape(x))
    except ValueError:
        return 0.0


def _of_columns(rows: Callable[..., Derivatives], exists: Flags, dimensions: tuple[int, ...]) -> Gradient:
    """From a function of arrays, one row or many, to the derivatives row by row, all cheap enough to give unasked.

    A call whose arrays are not what they must be has density 0, and derivatives 0.
    """

    def evaluate(lifted: Flags, wanted: Flags, *given: Any) -> Derivatives:
        try:
            with np.errstate(all="ignore"):
                found = rows(*_floats(lifted, dimensions, given))
        except (RowByRow, ValueError, TypeError, IndexError):
            if any(lifted):
                raise RowByRow from None
            found = tuple(_zeros(x) if there else None for x, there in zip(given, exists, strict=True))
        return tuple(shared(found[i], lifted, i) if wanted[i] and exists[i] else None for i in range(len(given)))

    return Gradient(exists, evaluate)


def _one_matrix(lifted: Flags, wanted: Flags, matrix: Any) -> Any:
    """What all rows share, also where it is given for each of them. Raises RowByRow where it differs between rows, or
    the derivatives by each are asked for."""
    if not lifted[2]:
        return matrix
    if wanted[2] or not isinstance(matrix, np.ndarray) or matrix.ndim != 3 or (matrix != matrix[:1]).any():
        raise RowByRow
    return matrix[0]


def _multivariate_normal(lifted: Flags, wanted: Flags, value: Any, mean: Any, cov: Any) -> Derivatives:
    cov = _one_matrix(lifted, wanted, cov)
    factor = cholesky_of(cov)
    if factor is None:
        raise RowByRow
    try:
        point, center = _floats(lifted[:2], (1, 1), (value, mean))
        with np.errstate(all="ignore"):
            away = center - point
            possible = np.isfinite(away).all(axis=-1, keepdims=True)
            slope = np.where(possible, (away @ factor.whitening.T) @ factor.whitening, 0.0)
    except (RowByRow, ValueError, TypeError):
        if any(lifted):
            raise RowByRow from None
        return tuple(_zeros(x) if want else None for x, want in zip((value, mean, cov), wanted, strict=True))
    return (
        shared(slope, lifted, 0) if wanted[0] else None,
        shared(-slope, lifted, 1) if wanted[1] else None,
        _by_covariance(slope.reshape(-1, slope.shape[-1]), int(possible.sum()), factor) if wanted[2] else None,
    )


def _by_covariance(slopes: Any, count: int, factor: MatrixFactor) -> Any:
    precision = factor.whitening.T @ factor.whitening
    return 0.5 * (slopes.T @ slopes - count * precision)


def _multivariate_normal_cholesky(lifted: Flags, wanted: Flags, value: Any, mean: Any, lower: Any) -> Derivatives:
    """With z = L^-1 (x - mean): by the mean L^-T z, by L the lower triangle of L^-T (z z' - I)."""
    lower = _one_matrix(lifted, wanted, lower)
    whitening = np.linalg.inv(np.asarray(lower, dtype=np.float64))
    try:
        point, center = _floats(lifted[:2], (1, 1), (value, mean))
        with np.errstate(all="ignore"):
            away = point - center
            possible = np.isfinite(away).all(axis=-1, keepdims=True)
            z = np.where(possible, away @ whitening.T, 0.0)
    except (RowByRow, ValueError, TypeError):
        if any(lifted):
            raise RowByRow from None
        return tuple(_zeros(x) if want else None for x, want in zip((value, mean, lower), wanted, strict=True))
    return (
        shared(-(z @ whitening), lifted, 0) if wanted[0] else None,
        shared(z @ whitening, lifted, 1) if wanted[1] else None,
        _by_lower(z.reshape(-1, z.shape[-1]), int(possible.sum()), whitening) if wanted[2] else None,
    )


def _by_lower(z: Any, count: int, whitening: np.ndarray) -> Any:
    return (whitening.T @ (z.T @ z - count * np.eye(len(whitening)))) * np.tri(len(whitening))


def _on_simplex(points: np.ndarray) -> Any:
    return (points >= 0.0).all(axis=-1) & (abs(points.sum(axis=-1) - 1.0) <= 1e-9)


def _dirichlet_by_point(points: np.ndarray, alphas: np.ndarray) -> Derivatives:
    inside = _on_simplex(points)[..., None]
    return np.where(inside & ((alphas != 1.0) | (points > 0.0)), (alphas - 1.0) / points, 0.0), None


def _dirichlet(points: np.ndarray, alphas: np.ndarray) -> Derivatives:
    inside = _on_simplex(points)[..., None]
    by_alphas = digamma(alphas.sum(axis=-1, keepdims=True)) - digamma(alphas) + np.log(points)
    return _dirichlet_by_point(points, alphas)[0], np.where(inside, by_alphas, 0.0)


def _symmetric_dirichlet(points: np.ndarray, a: np.ndarray, n: np.ndarray) -> Derivatives:
    size = points.shape[-1]
    by_points, by_alphas = _dirichlet(points, np.broadcast_to(a[..., None], (*a.shape, size)))
    fits = n == size
    return np.where(fits[..., None], by_points, 0.0), np.where(fits, by_alphas.sum(axis=-1), 0.0), None


def _categorical(lifted: Flags, wanted: Flags, value: Any, probs: Any, values: Any = None) -> Derivatives:
    if values is None and lifted[1]:
        return (*_chosen.evaluate(lifted[:2], wanted[:2], value, probs), None)
    if values is None:
        return None, _shares(_counted(value, len(probs)), probs) if wanted[1] else None, None
    if any(lifted):
        raise RowByRow
    same = np.array([equal(other, value) for other in values], dtype=np.float64)
    mass = float(same @ np.asarray(probs, dtype=np.float64))
    return (None, same / mass if mass > 0.0 else np.zeros(len(same)), None) if wanted[1] else (None, None, None)


def indicators(positions: Any, size: int) -> np.ndarray:
    """1 at the positions, (..., size); all 0 where a position is none of 0 ... size - 1."""
    return np.asarray(np.equal(np.asarray(positions)[..., None], np.arange(size)), dtype=np.float64)


def _counted(positions: Any, size: int) -> np.ndarray:
    """How often each of 0 ... size - 1 is among positions, a number or (n,): (size,).

    Raises RowByRow where these are no numbers.
    """
    if not isinstance(positions, np.ndarray):
        counts = np.zeros(size)
        if isinstance(positions, (int, float)) and 0 <= positions < size and positions % 1 == 0:
            counts[int(positions)] = 1.0
        return counts
    if positions.dtype.kind not in "fbiu" or positions.ndim != 1:
        raise RowByRow
    inside = (positions >= 0) & (positions < size) & (np.mod(positions, 1) == 0)
    return np.bincount(positions[inside].astype(np.int64), minlength=size).astype(np.float64)


def _shares(counts: np.ndarray, masses: Any) -> np.ndarray:
    """Counts over what is counted so often (K,); 0 where that has no mass."""
    given = np.asarray(masses, dtype=np.float64)
    with np.errstate(all="ignore"):
        found = counts / given
    # most often all have
    return found if given.min(initial=1.0) > 0.0 else np.where(given > 0.0, found, 0.0)


def _chosen_position(positions: np.ndarray, probs: np.ndarray) -> Derivatives:
    taken = indicators(positions, probs.shape[-1])
    return None, np.where((taken > 0.0) & (probs > 0.0), taken / probs, 0.0)


_chosen = _of_columns(_chosen_position, (False, True), (0, 1))


def _weighted_position(positions: np.ndarray, weights: np.ndarray) -> Derivatives:
    taken = indicators(positions, weights.shape[-1])
    share = np.where((taken > 0.0) & (weights > 0.0), taken / weights, 0.0)
    possible = (share > 0.0).any(axis=-1, keepdims=True)
    return None, np.where(possible, share - 1.0 / weights.sum(axis=-1, keepdims=True), 0.0)


_weighted = _of_columns(_weighted_position, (False, True), (0, 1))


def _weighted_categorical(lifted: Flags, wanted: Flags, value: Any, weights: Any, values: Any = None) -> Derivatives:
    if values is None and lifted[1]:
        return (*_weighted.evaluate(lifted[:2], wanted[:2], value, weights), None)
    if values is None:
        if not wanted[1]:
            return None, None, None
        counts = np.where(np.asarray(weights) > 0.0, _counted(value, len(weights)), 0.0)
        return None, _shares(counts, weights) - counts.sum() / np.sum(weights), None
    found = _categorical(lifted, wanted, value, weights, values)[1]
    return None, found if found is None or not found.any() else found - 1.0 / np.sum(weights), None


BEYOND = 700.0
"""As good as an infinite distance for a logistic function, and finite for its derivatives."""


def cuts_around(positions: Any, score: Any, cuts: Any) -> tuple[Any, Any]:
    """The cuts below and above positions, less the score: (...), for cuts (..., K)."""
    size = cuts.shape[-1]
    at = indicators(positions, size + 1)
    below, above = ((at[..., shift : size + shift] * cuts).sum(axis=-1) - score for shift in (1, 0))
    return (
        np.where(np.equal(positions, 0), np.minimum(above, 0.0) - BEYOND, below),
        np.where(np.equal(positions, size), np.maximum(below, 0.0) + BEYOND, above),
    )


def _ordered_logistic(positions: np.ndarray, score: np.ndarray, cuts: np.ndarray) -> Derivatives:
    below, above = cuts_around(positions, score, cuts)
    at = indicators(positions, cuts.shape[-1] + 1)
    inside = at.any(axis=-1)
    over, under = 1.0 / (1.0 + np.exp(above)), 1.0 / (1.0 + np.exp(-below))
    between = 1.0 / np.expm1(above - below)
    up, down = np.where(inside, over + between, 0.0), np.where(inside, under + between, 0.0)
    return None, np.where(inside, under - over, 0.0), at[..., :-1] * up[..., None] - at[..., 1:] * down[..., None]


def _softmax(positions: np.ndarray, scores: np.ndarray) -> Derivatives:
    taken = indicators(positions, scores.shape[-1])
    return None, taken - softmax(scores) * taken.sum(axis=-1, keepdims=True)


def softmax(scores: Any) -> Any:
    grown = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


def _multinomial(counts: np.ndarray, n: np.ndarray, probs: np.ndarray) -> Derivatives:
    inside = ((counts >= 0.0) & (np.mod(counts, 1.0) == 0.0) & ((probs > 0.0) | (counts == 0.0))).all(axis=-1)
    inside = inside & (counts.sum(axis=-1) == n)
    return None, None, np.where(inside[..., None] & (counts > 0.0), counts / probs, 0.0)


def _wishart(df: float, value: MatrixFactor, scale: MatrixFactor) -> Derivatives:
    size = len(scale.lower)
    value_inverse, scale_inverse = value.whitening.T @ value.whitening, scale.whitening.T @ scale.whitening
    root = scale_inverse @ value.lower
    return (
        0.5 * ((df - size - 1) * value_inverse - scale_inverse),
        0.5 * (value.log_determinant - scale.log_determinant) - _digammas(df, size),
        0.5 * (root @ root.T - df * scale_inverse),
    )


def _inv_wishart(df: float, value: MatrixFactor, scale: MatrixFactor) -> Derivatives:
    size = len(scale.lower)
    value_inverse, scale_inverse = value.whitening.T @ value.whitening, scale.whitening.T @ scale.whitening
    root = value_inverse @ scale.lower
    return (
        0.5 * (root @ root.T - (df + size + 1) * value_inverse),
        0.5 * (scale.log_determinant - value.log_determinant) - _digammas(df, size),
        0.5 * (df * scale_inverse - value_inverse),
    )


def _digammas(df: float, size: int) -> float:
    """The derivative of log(2^(df D/2) Gamma_D(df/2)), the product of D gamma functions, apart from its constant."""
    return 0.5 * (size * LOG_TWO + float(digamma(0.5 * (df - np.arange(size))).sum()))


def _of_matrices(derivatives: Callable[[float, MatrixFactor, MatrixFactor], Derivatives]) -> Gradient:
    def evaluate(lifted: Flags, wanted: Flags, value: Any, df: Any, scale: Any) -> Derivatives:
        if any(lifted):
            raise RowByRow
        of_value = cholesky_of(value) if POSITIVE_DEFINITE.contains(value) else None
        of_scale = cholesky_of(scale)
        if of_value is None or of_scale is None or of_value.lower.shape != of_scale.lower.shape:
            found: Derivatives = (_zeros(value), 0.0, _zeros(scale))
        else:
            found = derivatives(df, of_value, of_scale)
        return tuple(part if want else None for part, want in zip(found, wanted, strict=True))

    return Gradient((True, True, True), evaluate)


MULTIVARIATE_NORMAL = Gradient((True, True, True), _multivariate_normal)
_DIRICHLET = _of_columns(_dirichlet, (True, True), (1, 1))
_BY_POINT = _of_columns(_dirichlet_by_point, (True, False), (1, 1))
DIRICHLET = Gradient(
    (True, True),
    lambda lifted, wanted, *given: (_DIRICHLET if wanted[1] else _BY_POINT).evaluate(lifted, wanted, *given),
)
SYMMETRIC_DIRICHLET = _of_columns(_symmetric_dirichlet, (True, True, False), (1, 0, 0))
CATEGORICAL = Gradient((False, True, False), _categorical)
WEIGHTED_CATEGORICAL = Gradient((False, True, False), _weighted_categorical)
ORDERED_LOGISTIC = _of_columns(_ordered_logistic, (False, True, True), (0, 0, 1))
MULTIVARIATE_NORMAL_CHOLESKY = Gradient((True, True, True), _multivariate_normal_cholesky)
SOFTMAX_CATEGORICAL = _of_columns(_softmax, (False, True), (0, 1))
MULTINOMIAL = _of_columns(_multinomial, (False, False, True), (1, 0, 1))
WISHART = _of_matrices(_wishart)
INV_WISHART = _of_matrices(_inv_wishart)
