"""Distributions over symmetric positive definite matrices, with density on the lower triangle.

Both are written in the coordinates in which they are drawn (Bartlett 1933, On the theory of statistical regression;
Muirhead 1982, Aspects of Multivariate Statistical Theory, theorem 3.2.14): if X is wishart(df, I) and A its Cholesky
factor, the squares of A's diagonal are independent chi-squared with df, df - 1, ... degrees of freedom and the entries
below it are standard normal. So there is no determinant to a large power that a normaliser must cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import array_gradients, bounds, transforms
from venture_lite.procedures.columns import Flags, RowByRow
from venture_lite.procedures.distributions.factors import RELATIVE_ASYMMETRY, MatrixFactor, cholesky_of
from venture_lite.procedures.domains import POSITIVE, POSITIVE_DEFINITE
from venture_lite.procedures.numeric import LOG_TWO_PI, log_gamma_density, on_columns
from venture_lite.procedures.record import Argument, Columns, Random
from venture_lite.values import show

SMALLEST_ROOT = 1e-140
"""Of a simulated chi-squared: its reciprocal, squared, is a float."""

_LOG_TWO = math.log(2.0)
_log_gamma_density = on_columns(log_gamma_density)


def _scale(name: str, df: float, scale: Any) -> MatrixFactor:
    factor = cholesky_of(scale)
    if factor is None:
        raise POSITIVE_DEFINITE.refusal(name, "scale", scale)
    size = len(factor.lower)
    if not df > size - 1:
        raise ArgumentError(f"{name}: df must be above {size - 1} where scale is {size} by {size}, got {show(df)}")
    return factor


def _bartlett(rng: np.random.Generator, df: float, size: int) -> np.ndarray:
    """The Cholesky factor of a draw of wishart(df, I)."""
    lower = np.tril(rng.standard_normal((size, size)), -1)
    roots = np.sqrt(2.0 * rng.standard_gamma(0.5 * (df - np.arange(size))))
    np.fill_diagonal(lower, np.maximum(roots, SMALLEST_ROOT))
    return lower


def _reversed(triangle: np.ndarray) -> np.ndarray:
    """Coordinates in the opposite order: an upper triangle becomes a lower one."""
    return triangle[..., ::-1, ::-1]


def _log_bartlett(lower: np.ndarray, df: Any) -> Any:
    """Log density of A A' under wishart(df, I), for Cholesky factors A (..., D, D) and df (...)."""
    size = lower.shape[-1]
    order = np.arange(size)
    roots = np.diagonal(lower, axis1=-2, axis2=-1)
    logs = np.log(roots)
    squares = _log_gamma_density(0.5 * (np.asarray(df)[..., None] - order), 0.5 * roots * roots, 2.0 * logs - _LOG_TWO)
    # from the chi-squared to the diagonal of A, and from A to A A'
    diagonal = (squares - _LOG_TWO - (size - 1 - order) * logs).sum(axis=-1)
    below = np.square(np.tril(lower, -1)).sum(axis=(-2, -1)) + 0.5 * size * (size - 1) * LOG_TWO_PI
    return diagonal - 0.5 * below


def _log_wishart(df: Any, value: MatrixFactor, scale: MatrixFactor) -> Any:
    size = value.lower.shape[-1]
    return _log_bartlett(scale.whitening @ value.lower, df) - 0.5 * (size + 1) * scale.log_determinant


def _log_inv_wishart(df: Any, value: MatrixFactor, scale: MatrixFactor) -> Any:
    """The density of wishart at the inverse, times |X|^-(D + 1) for the inversion."""
    size = value.lower.shape[-1]
    upper = np.swapaxes(value.whitening @ scale.lower, -2, -1)
    inverse = _log_bartlett(_reversed(upper), df) + 0.5 * (size + 1) * scale.log_determinant
    return inverse - (size + 1) * value.log_determinant


def _bound(name: str, log_density: Callable[..., Any]) -> tuple[Callable[..., float], Columns]:
    """The density of one matrix and of a column of them."""

    def scalar(value: Any, df: float, scale: Any) -> float:
        of_scale = _scale(name, df, scale)
        of_value = cholesky_of(value) if POSITIVE_DEFINITE.contains(value) else None
        if of_value is None or of_value.lower.shape != of_scale.lower.shape:
            return -math.inf
        with np.errstate(all="ignore"):
            result = float(log_density(df, of_value, of_scale))
        return result if result == result else -math.inf

    def columns(lifted: Flags, value: Any, df: Any, scale: Any) -> np.ndarray:
        of_value, of_scale = _factors(value), _factors(scale)
        if of_value.lower.shape[-1] != of_scale.lower.shape[-1] or not np.all(df > of_scale.lower.shape[-1] - 1):
            raise RowByRow
        with np.errstate(all="ignore"):
            result = np.asarray(log_density(df, of_value, of_scale))
        return np.where(np.isnan(result), -np.inf, result)

    return scalar, columns


def _factors(matrices: Any) -> MatrixFactor:
    """Of one matrix or of a column of them (rows, D, D), all positive definite."""
    matrices = np.asarray(matrices)
    if matrices.ndim not in (2, 3) or matrices.dtype.kind not in "fbiu" or not np.isfinite(matrices).all():
        raise RowByRow
    try:
        lower = np.linalg.cholesky(matrices)
        whitening = np.linalg.solve(lower, np.eye(matrices.shape[-1]))
    except np.linalg.LinAlgError:
        raise RowByRow from None
    away = abs(matrices - np.swapaxes(matrices, -2, -1)).max(axis=(-2, -1))
    if (away > RELATIVE_ASYMMETRY * abs(matrices).max(axis=(-2, -1))).any():
        raise RowByRow
    logs = np.log(np.diagonal(lower, axis1=-2, axis2=-1))
    return MatrixFactor(lower, whitening, 2.0 * logs.sum(axis=-1))


def _simulate_wishart(rng: np.random.Generator, df: float, scale: Any) -> np.ndarray:
    factor = _scale("wishart", df, scale)
    return transforms.matrix_of(factor.lower @ _bartlett(rng, df, len(factor.lower)))


def _simulate_inv_wishart(rng: np.random.Generator, df: float, scale: Any) -> np.ndarray:
    factor = _scale("inv_wishart", df, scale)
    size = len(factor.lower)
    upper = _reversed(_bartlett(rng, df, size))
    return transforms.matrix_of(factor.lower @ np.tril(np.linalg.solve(upper.T, np.eye(size))))


_WISHART = _bound("wishart", _log_wishart)
_INV_WISHART = _bound("inv_wishart", _log_inv_wishart)
_ARGUMENTS = (Argument("df", POSITIVE), Argument("scale", POSITIVE_DEFINITE))

WISHART = Random(
    "wishart", _ARGUMENTS,
    "A positive definite matrix with mean df times scale: the sum of df outer products of normal vectors with "
    "covariance scale. df, above D - 1 for D by D matrices, need not be whole.",
    _simulate_wishart, _WISHART[0], _WISHART[1], transform=transforms.POSITIVE_DEFINITE,
    source="|X|^((df - D - 1)/2) exp(-tr(scale^-1 X) / 2) / (2^(df D/2) |scale|^(df/2) Gamma_D(df/2))",
    gradient=array_gradients.WISHART, log_bound=bounds.bound_at(_WISHART[0], bounds.wishart),
)  # fmt: skip
INV_WISHART = Random(
    "inv_wishart", _ARGUMENTS,
    "A positive definite matrix whose inverse is wishart with this df and the inverse of scale; its mean is "
    "scale / (df - D - 1) for D by D matrices. df, above D - 1, need not be whole.",
    _simulate_inv_wishart, _INV_WISHART[0], _INV_WISHART[1], transform=transforms.POSITIVE_DEFINITE,
    source="|scale|^(df/2) |X|^(-(df + D + 1)/2) exp(-tr(scale X^-1) / 2) / (2^(df D/2) Gamma_D(df/2))",
    gradient=array_gradients.INV_WISHART, log_bound=bounds.bound_at(_INV_WISHART[0], bounds.inv_wishart),
)  # fmt: skip

RECORDS = (WISHART, INV_WISHART)
