"""Vectors and matrices: read-only arrays of floats."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import array_pullbacks as pullbacks
from venture_lite.procedures.columns import Flags, RowByRow, single_numbers
from venture_lite.procedures.domains import ANY, COUNT, MATRIX, NUMERIC, PROBABILITY, VECTOR
from venture_lite.procedures.functions.elementary import logistic, logistic_array
from venture_lite.procedures.functions.lists import SEQUENCE
from venture_lite.procedures.record import Argument, Deterministic
from venture_lite.values import freeze, show

LARGEST_ARRAY = 2**30
"""More entries than this in one array are a mistake (8 GB)."""


def make_vector(*entries: Any) -> np.ndarray:
    return freeze(np.array(entries, dtype=np.float64)) if _are_numbers(entries) else _refuse("vector", entries)


def _are_numbers(entries: tuple[Any, ...]) -> bool:
    return all(isinstance(entry, (int, float)) for entry in entries)


def _refuse(name: str, entries: tuple[Any, ...]) -> np.ndarray:
    wrong = next(entry for entry in entries if not isinstance(entry, (int, float)))
    raise ArgumentError(f"{name} takes numbers, got {show(wrong)}")


def _vector_columns(lifted: Flags, *entries: Any) -> Any:
    numbers = single_numbers(lifted, entries)
    # -0.0 changes no number, zeros of either sign included
    none = np.full(next(len(number) for number, up in zip(numbers, lifted, strict=True) if up), -0.0)
    return np.stack([number + none for number in numbers], axis=1)


def make_matrix(*rows: Any) -> np.ndarray:
    """From rows, or from one list of rows."""
    given = rows[0] if len(rows) == 1 and isinstance(rows[0], tuple) and not _are_numbers(rows[0]) else rows
    arrays = [_entries("matrix", row) for row in given]
    if not arrays:
        raise ArgumentError("matrix takes at least one row")
    if len({len(row) for row in arrays}) > 1:
        raise ArgumentError(f"matrix: the rows differ in length: {', '.join(str(len(row)) for row in arrays)}")
    return freeze(np.array(arrays, dtype=np.float64).reshape(len(arrays), -1))


def _entries(name: str, items: Any) -> Any:
    if isinstance(items, np.ndarray) and items.ndim == 1:
        return items
    if isinstance(items, tuple):
        return items if _are_numbers(items) else _refuse(name, items)
    raise ArgumentError(f"{name} takes lists and vectors of numbers, got {show(items)}")


def to_vector(items: Any) -> np.ndarray:
    if isinstance(items, np.ndarray) and items.ndim == 1:
        return items
    return freeze(np.array(_entries("to_vector", items), dtype=np.float64))


def _filled(name: str, number: float, *sizes: Any) -> np.ndarray:
    if not 1 <= len(sizes) <= 2 or not all(map(COUNT.contains, sizes)):
        raise ArgumentError(f"{name} takes one or two sizes, got {' '.join(map(show, sizes))}")
    if max(sizes) > LARGEST_ARRAY or math.prod(sizes) > LARGEST_ARRAY:
        raise ArgumentError(f"{name}: {' by '.join(map(show, sizes))} entries are too many")
    return freeze(np.full(tuple(map(int, sizes)), number))


ones = partial(_filled, "ones", 1.0)
zeros = partial(_filled, "zeros", 0.0)


def _array(name: str, value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    # a list of rows, as a nested list of data is, stands for a matrix
    return np.array(value if MATRIX.contains(value) else _entries(name, value), dtype=np.float64)


def _product(name: str, left: Any, right: Any) -> Any:
    if left.__class__ is not np.ndarray or right.__class__ is not np.ndarray:
        left, right = _array(name, left), _array(name, right)
    try:
        result = left @ right
    except ValueError:
        raise ArgumentError(f"{name}: sizes do not match: {left.shape} and {right.shape}") from None
    return freeze(result) if isinstance(result, np.ndarray) else float(result)


dot = partial(_product, "dot")
matmul = partial(_product, "matmul")


def transpose(matrix: Any) -> np.ndarray:
    found = np.array(matrix, dtype=np.float64) if isinstance(matrix, tuple) and MATRIX.contains(matrix) else matrix
    if not isinstance(found, np.ndarray) or found.ndim != 2:
        raise ArgumentError(f"transpose: matrix must be a matrix, got {show(matrix)}")
    return freeze(np.ascontiguousarray(found.T))


def linear_logistic(weights: Any, inputs: Any) -> float:
    product = _product("linear_logistic", weights, inputs)
    if not isinstance(product, float):
        raise ArgumentError(f"linear_logistic takes two vectors, got {show(weights)} and {show(inputs)}")
    return logistic(product)


def dot_columns(lifted: Flags, left: Any, right: Any) -> Any:
    """One number for each row, from vectors of one size."""
    left, right = _column(left, lifted[0]), _column(right, lifted[1])
    if left.shape[-1] != right.shape[-1]:
        raise RowByRow
    with np.errstate(all="ignore"):
        if lifted[0] and lifted[1]:
            return np.einsum("nd,nd->n", left, right)
        return left @ right if lifted[0] else right @ left


def _matmul_columns(lifted: Flags, left: Any, right: Any) -> Any:
    """One matrix times the vector of each row, or each row's times one: the scores of a softmax regression."""
    if lifted == (False, True) and getattr(left, "ndim", 0) == 2:
        matrix, rows = np.transpose(left), _column(right, True)
    elif lifted == (True, False) and getattr(right, "ndim", 0) == 2:
        matrix, rows = right, _column(left, True)
    else:
        return dot_columns(lifted, left, right)
    if not isinstance(matrix, np.ndarray) or len(matrix) != rows.shape[1]:
        raise RowByRow
    with np.errstate(all="ignore"):
        return rows @ matrix


def _column(argument: Any, lifted: bool) -> Any:
    if isinstance(argument, tuple):
        argument = np.asarray(argument, dtype=np.float64) if _are_numbers(argument) else None
    if not hasattr(argument, "dtype") or argument.dtype.kind not in "fbiu" or argument.ndim != 1 + lifted:
        raise RowByRow
    return argument


def _linear_logistic_columns(lifted: Flags, weights: Any, inputs: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return logistic_array(dot_columns(lifted, weights, inputs))  # type: ignore[no-any-return]


def total(items: Any) -> Any:
    entries = _entries("sum", items) if not _is_matrix(items) else items
    return float(entries.sum()) if isinstance(entries, np.ndarray) else _sum(entries)


def _is_matrix(items: Any) -> bool:
    return isinstance(items, np.ndarray) and items.ndim == 2


def _sum(entries: tuple[Any, ...]) -> Any:
    if all(isinstance(entry, int) for entry in entries):
        result = sum(entries)
        return result if -(2**63) <= result < 2**63 else float(result)
    return math.fsum(entries) if all(map(math.isfinite, entries)) else sum(entries)


def product(items: Any) -> Any:
    entries = _entries("prod", items) if not _is_matrix(items) else items
    if isinstance(entries, np.ndarray):
        return float(entries.prod())
    result = math.prod(entries)
    return result if isinstance(result, float) or -(2**63) <= result < 2**63 else float(result)


def mean(items: Any) -> float:
    entries = _entries("mean", items) if not _is_matrix(items) else items
    if not len(entries):
        raise ArgumentError("mean: an empty list has none")
    return float(entries.mean()) if isinstance(entries, np.ndarray) else float(_sum(entries) / len(entries))


def _several(name: str, items: Any) -> np.ndarray:
    entries = np.asarray(_entries(name, items) if not _is_matrix(items) else items, dtype=np.float64)
    if entries.size < 2:
        raise ArgumentError(f"{name} takes at least two numbers, got {show(items)}")
    if not np.isfinite(entries).all():
        raise ArgumentError(f"{name} takes finite numbers, got {show(items)}")
    return entries


def variance(items: Any) -> float:
    with np.errstate(over="ignore"):
        return float(_several("variance", items).var(ddof=1))


def sd(items: Any) -> float:
    with np.errstate(over="ignore"):
        return float(_several("sd", items).std(ddof=1))


def cumulative_sum(items: Any) -> np.ndarray:
    entries = np.asarray(_entries("cumsum", items), dtype=np.float64)
    with np.errstate(all="ignore"):
        sums = entries.cumsum()
    if np.isnan(sums).any():
        raise ArgumentError(f"cumsum: the result is not a number, for {show(items)}")
    return freeze(sums)


def quantile(items: Any, p: Any) -> float:
    entries = np.sort(np.asarray(_entries("quantile", items) if not _is_matrix(items) else items, float), axis=None)
    if not entries.size:
        raise ArgumentError("quantile: an empty list has none")
    below, share = pullbacks.between_ranks(entries.size, PROBABILITY.checked("quantile", "p", p))
    low, high = entries[below], entries[min(below + 1, entries.size - 1)]
    # of equal entries, infinite ones too, no difference is taken
    return float(low if low == high or not share else (1.0 - share) * low + share * high)


_PAIR = (Argument("left", SEQUENCE), Argument("right", SEQUENCE))
_ITEMS = (Argument("items", SEQUENCE),)

RECORDS = (
    Deterministic("vector", (), "A vector of its arguments, as floats.", make_vector, _vector_columns, rest=NUMERIC,
                  pullback=pullbacks.vector),
    Deterministic("matrix", (), "A matrix from its rows, or from one list of rows.", make_matrix, rest=SEQUENCE,
                  pullback=pullbacks.MATRIX),
    Deterministic("to_vector", _ITEMS, "The numbers of a list as a vector.", to_vector,
                  pullback=pullbacks.TO_VECTOR),
    Deterministic("ones", (Argument("rows", COUNT),), "A vector of ones; of two sizes, a matrix.", ones, rest=COUNT),
    Deterministic("zeros", (Argument("rows", COUNT),), "A vector of zeros; of two sizes, a matrix.", zeros, rest=COUNT),
    Deterministic("dot", _PAIR, "The inner product of two vectors; of matrices, their product.", dot, dot_columns,
                  pullback=pullbacks.dot),
    Deterministic("matmul", _PAIR, "The product of two matrices, or of a matrix and a vector.", matmul,
                  _matmul_columns, pullback=pullbacks.dot),
    Deterministic("transpose", (Argument("matrix", ANY),), "A matrix with its rows as columns.", transpose,
                  pullback=pullbacks.TRANSPOSE),
    Deterministic("linear_logistic", (Argument("weights", VECTOR), Argument("inputs", VECTOR)),
                  "logistic of the inner product of two vectors.", linear_logistic, _linear_logistic_columns,
                  pullback=pullbacks.linear_logistic),
    Deterministic("sum", _ITEMS, "The sum of the entries of a list, vector or matrix.", total,
                  pullback=pullbacks.SUM),
    Deterministic("prod", _ITEMS, "The product of the entries of a list, vector or matrix.", product,
                  pullback=pullbacks.PRODUCT),
    Deterministic("mean", _ITEMS, "The mean of the entries of a list, vector or matrix.", mean,
                  pullback=pullbacks.MEAN),
    Deterministic("variance", _ITEMS, "The variance of the entries of a list, vector or matrix: the sum of squared "
                  "distances from their mean, divided by one less than their number.", variance,
                  pullback=pullbacks.VARIANCE),
    Deterministic("sd", _ITEMS, "The square root of the variance of the entries of a list, vector or matrix.", sd,
                  pullback=pullbacks.SD),
    Deterministic("cumsum", _ITEMS, "The sums of the first, the first two, ... entries of a list or vector, as a "
                  "vector.", cumulative_sum, pullback=pullbacks.CUMULATIVE_SUM),
    Deterministic("quantile", (*_ITEMS, Argument("p", PROBABILITY)),
                  "The number below which a share p of the entries of a list, vector or matrix lies, linear between "
                  "the entries: of p = 0 the least, of 1/2 the median, of 1 the greatest.", quantile,
                  pullback=pullbacks.QUANTILE),
)  # fmt: skip
