"""Linear algebra on matrices: systems of equations, factors, traces and determinants, and matrices from vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures.array_pullbacks import single
from venture_lite.procedures.columns import Flags, RowByRow
from venture_lite.procedures.distributions.factors import cholesky_of
from venture_lite.procedures.domains import COUNT, MATRIX, POSITIVE_DEFINITE
from venture_lite.procedures.functions.lists import SEQUENCE
from venture_lite.procedures.pullbacks import Cotangents
from venture_lite.procedures.record import Argument, Columns, Deterministic, Pullback
from venture_lite.values import freeze, show

LARGEST_SIZE = 2**15
"""More rows than this in one square matrix are a mistake (8 GB)."""


def _square(name: str, matrix: Any) -> np.ndarray:
    array = np.asarray(MATRIX.checked(name, "matrix", matrix), dtype=np.float64)
    if array.shape[0] != array.shape[1]:
        raise ArgumentError(f"{name}: the matrix must be square, and is {array.shape[0]} by {array.shape[1]}")
    return array


def _regular(name: str, solve: Callable[[], np.ndarray]) -> np.ndarray:
    try:
        solved = solve()
    except np.linalg.LinAlgError:
        solved = np.array([math.nan])
    if not np.isfinite(solved).all():
        raise ArgumentError(f"{name}: the matrix is singular")
    return freeze(solved)


def solve(matrix: Any, right: Any) -> np.ndarray:
    array, given = _square("solve", matrix), _matrix_or_vector(right)
    if not (isinstance(given, np.ndarray) and given.ndim in (1, 2) and np.isfinite(given).all()):
        raise ArgumentError(f"solve: right must be a vector or a matrix of finite numbers, got {show(right)}")
    if len(given) != len(array):
        raise ArgumentError(f"solve: the matrix is {len(array)} by {len(array)}, but right has {len(given)} rows")
    return _regular("solve", lambda: np.linalg.solve(array, given))


def _matrix_or_vector(items: Any) -> Any:
    """A list of numbers or of rows as an array, None for other lists; other values as they are."""
    if not isinstance(items, tuple):
        return items
    flat = all(isinstance(item, (int, float)) for item in items)
    return np.array(items, dtype=np.float64) if flat or MATRIX.contains(items) else None


def inverse(matrix: Any) -> np.ndarray:
    array = _square("inverse", matrix)
    return _regular("inverse", lambda: np.linalg.inv(array))


def cholesky(matrix: Any) -> np.ndarray:
    _square("cholesky", matrix)
    factor = cholesky_of(matrix)
    if factor is None:
        raise POSITIVE_DEFINITE.refusal("cholesky", "matrix", matrix)
    return freeze(factor.lower)


def trace(matrix: Any) -> float:
    return float(np.trace(_square("trace", matrix)))


def det(matrix: Any) -> float:
    array = _square("det", matrix)
    with np.errstate(all="ignore"):
        value = float(np.linalg.det(array))
        if math.isnan(value):
            # entries near the largest floats
            sign, log_value = np.linalg.slogdet(array)
            value = float(sign * np.exp(log_value)) if sign else 0.0
    return value


def eye(size: Any) -> np.ndarray:
    if not COUNT.contains(size) or size > LARGEST_SIZE:
        raise ArgumentError(f"eye: size must be {COUNT.phrase} and at most {LARGEST_SIZE:,}, got {show(size)}")
    return freeze(np.eye(int(size)))


def diagonal(items: Any) -> np.ndarray:
    array = _matrix_or_vector(items)
    if not (isinstance(array, np.ndarray) and array.ndim in (1, 2)):
        raise ArgumentError(f"diagonal: items must be a vector or a matrix, got {show(items)}")
    if len(array) > LARGEST_SIZE:
        raise ArgumentError(f"diagonal: a matrix of {len(array):,} rows is too large")
    return freeze(np.array(np.diag(array)))


def _columns(function: Callable[[np.ndarray], np.ndarray]) -> Columns:
    """Of one square matrix in each row."""

    def columns(lifted: Flags, matrices: Any) -> np.ndarray:
        if not (isinstance(matrices, np.ndarray) and matrices.dtype.kind == "f" and matrices.ndim == 3):
            raise RowByRow
        if matrices.shape[1] != matrices.shape[2] or not np.isfinite(matrices).all():
            raise RowByRow
        return _finite(lambda: function(matrices))

    return columns


def _finite(compute: Callable[[], np.ndarray]) -> np.ndarray:
    """What cannot be computed for all rows goes row by row, where the error is found."""
    try:
        with np.errstate(all="ignore"):
            result = compute()
    except np.linalg.LinAlgError:
        raise RowByRow from None
    if not np.isfinite(result).all():
        raise RowByRow
    return result


def _solve_columns(lifted: Flags, matrices: Any, rights: Any) -> np.ndarray:
    for argument, up in ((matrices, lifted[0]), (rights, lifted[1])):
        if not (isinstance(argument, np.ndarray) and argument.dtype.kind == "f" and argument.ndim - up in (1, 2)):
            raise RowByRow
        if not np.isfinite(argument).all():
            raise RowByRow
    size = matrices.shape[-1]
    vectors = rights.ndim - lifted[1] == 1
    if matrices.ndim - lifted[0] != 2 or matrices.shape[-2] != size or rights.shape[-1 if vectors else -2] != size:
        raise RowByRow
    solved = _finite(lambda: np.linalg.solve(matrices, rights[..., None] if vectors else rights))
    return solved[..., 0] if vectors else solved


# -------------------------------------------------------------------------------------------------------- derivatives


def _of_matrix(share: Callable[[Any, Any, np.ndarray], np.ndarray]) -> Pullback:
    """From `share(cotangent, result, matrix)`, of one matrix or of one in each row."""

    def pullback(lifted: Flags, wanted: Flags, cotangent: Any, result: Any, matrix: Any) -> Cotangents:
        return (share(cotangent, result, np.asarray(matrix, dtype=np.float64)) if wanted[0] else None,)

    return pullback


def _transposed(matrices: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrices, -1, -2)


def _of_solution(lifted: Flags, wanted: Flags, cotangent: Any, result: Any, matrix: Any, right: Any) -> Cotangents:
    array = np.asarray(matrix, dtype=np.float64)
    vectors = result.ndim - any(lifted) == 1
    if vectors:
        cotangent, result = cotangent[..., None], result[..., None]
    share = np.linalg.solve(_transposed(array), cotangent)
    parts = (-share @ _transposed(result), share[..., 0] if vectors else share)
    return tuple(
        None if not want else part.sum(axis=0) if any(lifted) and not up else part
        for part, want, up in zip(parts, wanted, lifted, strict=True)
    )


def _of_inverse(cotangent: Any, result: Any, matrix: np.ndarray) -> np.ndarray:
    share: np.ndarray = -_transposed(result) @ cotangent @ _transposed(result)
    return share


def _of_trace(cotangent: Any, result: Any, matrix: np.ndarray) -> np.ndarray:
    return np.asarray(cotangent)[..., None, None] * np.eye(matrix.shape[-1])


def _of_determinant(cotangent: Any, result: Any, matrix: np.ndarray) -> np.ndarray:
    """The matrix of cofactors, by singular values: it exists where the inverse does not."""
    left, values, right = np.linalg.svd(matrix)
    edge = np.ones((*values.shape[:-1], 1))
    around = np.concatenate((edge, values, edge), axis=-1)
    before, after = np.cumprod(around, axis=-1), np.cumprod(around[..., ::-1], axis=-1)[..., ::-1]
    others = before[..., :-2] * after[..., 2:]
    sign = np.linalg.det(left) * np.linalg.det(right)
    cofactors: np.ndarray = (left * others[..., None, :]) @ right
    share: np.ndarray = np.asarray(cotangent * sign)[..., None, None] * cofactors
    return share


def _of_factor(cotangent: Any, result: Any, matrix: Any) -> Cotangents:
    """Murray (2016), Differentiation of the Cholesky decomposition, equation 10; of the two entries that mirror each
    other, each has half."""
    lower = np.tril(result.T @ cotangent)
    lower[np.diag_indices(len(lower))] *= 0.5
    half = np.linalg.solve(result.T, lower)
    share = np.linalg.solve(result.T, half.T).T
    return (0.5 * (share + share.T),)


_MATRIX = (Argument("matrix", MATRIX),)

RECORDS = (
    Deterministic("solve", (*_MATRIX, Argument("right", SEQUENCE)),
                  "The x for which the matrix times x is right: a vector, or a matrix column by column.",
                  solve, _solve_columns, pullback=_of_solution),
    Deterministic("inverse", _MATRIX, "The inverse of a matrix; solve is quicker and more exact where it serves.",
                  inverse, _columns(np.linalg.inv),
                  pullback=_of_matrix(_of_inverse)),
    Deterministic("cholesky", (Argument("matrix", POSITIVE_DEFINITE),),
                  "The lower triangular L for which L times its transpose is the symmetric positive definite matrix.",
                  cholesky, pullback=single(_of_factor)),
    Deterministic("trace", _MATRIX, "The sum of the diagonal of a square matrix.", trace,
                  _columns(lambda matrices: np.trace(matrices, axis1=1, axis2=2)),
                  pullback=_of_matrix(_of_trace)),
    Deterministic("det", _MATRIX, "The determinant of a square matrix.", det, _columns(np.linalg.det),
                  pullback=_of_matrix(_of_determinant)),
    Deterministic("eye", (Argument("size", COUNT),), "The identity matrix of a size.", eye),
    Deterministic("diagonal", (Argument("items", SEQUENCE),),
                  "The matrix with a vector on its diagonal; of a matrix, its diagonal.", diagonal,
                  pullback=single(lambda cotangent, result, items: (np.diag(cotangent),))),
)  # fmt: skip
