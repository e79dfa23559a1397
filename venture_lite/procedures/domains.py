"""Which values an argument may take: one `Domain` for each kind, with a check of one value and a check of a column.

A domain of single numbers also carries its test as an expression, from which `checks.py` compiles one fast check for
each record.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures.distributions.factors import cholesky_of
from venture_lite.procedures.triangles import above_diagonal
from venture_lite.values import Symbol, freeze, show

LARGEST_DEVIATION_FROM_ONE = 1e-9
"""How far the sum of a probability vector may be from 1 (the language's own figure)."""


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    name: str
    # for messages: 'must be PHRASE'
    phrase: str
    # one value of any kind; never raises
    contains: Callable[[Any], bool]
    # an array whose first axis is the rows
    contains_all: Callable[[np.ndarray], bool]
    # the test of one number as an expression in {x}; it may raise TypeError or ValueError on other kinds of values
    test: str | None = None
    # whole numbers, booleans: nothing is differentiated with respect to one
    discrete: bool = False
    # whether a value, or any entry of an array, is 0 or infinite where the domain ends there: what rounding makes of a
    # number that is too large, or of a positive one that is too small
    at_limit: Callable[[Any], Any] = lambda value: False
    # the test of one number, where vectors of such numbers are in the domain, too
    item: Callable[[Any], bool] | None = None

    def refusal(self, procedure: str, argument: str, value: Any) -> ArgumentError:
        """The error of a value that an argument may not take."""
        found = show(value)
        if self.item is not None and (vector := vector_of(value)) is not None:
            at, wrong = next((i, x) for i, x in enumerate(vector.tolist()) if not self.item(x))
            found = f"{show(wrong)} as item {at} of a vector"
        return ArgumentError(f"{procedure}: {argument} must be {self.phrase}, got {found}")

    def checked(self, procedure: str, argument: str, value: Any) -> Any:
        """The value of an argument; raises ArgumentError where it may not take this one."""
        if not self.contains(value):
            raise self.refusal(procedure, argument, value)
        return value


def by_rows(name: str, phrase: str, contains: Callable[[Any], bool]) -> Domain:
    """A domain whose columns are checked row by row."""
    return Domain(
        name, phrase, contains, lambda column: all(map(contains, column.tolist() if column.ndim == 1 else column))
    )


def of_kind(name: str, phrase: str, *kinds: type) -> Domain:
    return by_rows(name, phrase, lambda value: isinstance(value, kinds))


def either(name: str, phrase: str, one: Domain, several: Domain) -> Domain:
    """A number, or a vector with an entry for each coordinate."""
    return Domain(
        name, phrase, lambda value: one.contains(value) or several.contains(value),
        lambda column: one.contains_all(column) if column.ndim == 1 else several.contains_all(column),
    )  # fmt: skip


SEVERAL = (np.ndarray, tuple)
"""The classes of vectors: arrays, and lists of numbers, which stand for them."""


def vector_of(value: Any) -> np.ndarray | None:
    """A vector or a list of numbers as an array of floats, None where a value is neither."""
    if isinstance(value, np.ndarray):
        return value if value.ndim == 1 else None
    if isinstance(value, tuple) and all(isinstance(item, (int, float)) for item in value):
        return freeze(np.array(value, dtype=np.float64))
    return None


@functools.cache
def each(domain: Domain) -> Domain:
    """A number of a domain, or a vector of such numbers."""

    def contains(value: Any) -> bool:
        if not isinstance(value, SEVERAL):
            return domain.contains(value)
        vector = vector_of(value)
        return vector is not None and domain.contains_all(vector)

    def contains_all(column: np.ndarray) -> bool:
        return domain.contains_all(column.reshape(-1) if column.ndim == 2 else column)

    found = replace(domain, contains=contains, contains_all=contains_all, item=domain.contains)
    _SINGLE[found] = domain
    return found


_SINGLE: dict[Domain, Domain] = {}


def number_of(domain: Domain) -> Domain:
    """The domain of single numbers of which `each` made one."""
    return _SINGLE.get(domain, domain)


def _is_infinite(value: Any) -> Any:
    return value == math.inf


def _is_beyond_floats(value: Any) -> Any:
    return (value == math.inf) | (value == -math.inf)


def _is_zero_or_infinite(value: Any) -> Any:
    return (value == 0.0) | (value == math.inf)


def numbers(
    name: str, phrase: str, test: str, integral: bool = False, at_limit: Callable[[Any], Any] = lambda value: False,
    columns: Callable[[np.ndarray], bool] | None = None,
) -> Domain:  # fmt: skip
    """A domain of single numbers in a range, all or the whole ones. `columns` tests a nonempty one-dimensional float
    array where `test` is no range."""
    if columns is None:
        # what holds for the least and the greatest entry holds between them
        names = {"inf": math.inf, "least": np.minimum.reduce, "most": np.maximum.reduce}
        columns = eval(f"lambda c: bool({test.format(x='least(c)')} and {test.format(x='most(c)')})", names)
    test += " and {x} % 1 == 0" if integral else ""
    inside: Callable[[Any], bool] = eval(f"lambda x: bool({test.format(x='x')})", {"inf": math.inf})

    def contains(value: Any) -> bool:
        return isinstance(value, (int, float)) and inside(value)

    def contains_all(column: np.ndarray) -> bool:
        if column.ndim != 1:
            return False
        if column.dtype.kind not in "fbiu":
            return all(map(contains, column.tolist()))
        if not column.size:
            return True
        return columns(column) and not (integral and column.dtype.kind == "f" and bool((column % 1.0).any()))

    return Domain(name, phrase, contains, contains_all, test, integral, at_limit)


def _all_finite(column: np.ndarray) -> bool:
    return column.dtype.kind != "f" or bool(np.isfinite(column).all())


ANY = Domain("any", "a value", lambda value: True, lambda column: True, "True")
REAL = numbers("real", "a finite number", "-inf < {x} < inf", at_limit=_is_beyond_floats, columns=_all_finite)
POSITIVE = numbers("positive", "a positive number", "0.0 < {x} < inf", at_limit=_is_zero_or_infinite)
NON_NEGATIVE = numbers("non-negative", "a number that is not negative", "0.0 <= {x} < inf", at_limit=_is_infinite)
PROBABILITY = numbers("probability", "a number between 0 and 1", "0.0 <= {x} <= 1.0")
INTEGER = numbers("integer", "an integer", "-inf < {x} < inf", integral=True, columns=_all_finite)
COUNT = numbers("count", "an integer, 0 or more", "0 <= {x} < inf", integral=True)
POSITIVE_INTEGER = numbers(
    "positive integer", "a positive integer", "0 < {x} < inf", integral=True, at_limit=_is_zero_or_infinite
)
_ZERO_OR_ONE = numbers(
    "boolean", "a boolean, 0 or 1", "{x} == 0 or {x} == 1",
    columns=lambda c: c.dtype.kind == "b" or bool(((c == 0) | (c == 1)).all()),
)  # fmt: skip
BOOLEAN_LIKE = replace(_ZERO_OR_ONE, discrete=True)


def _is_numeric(value: Any) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, np.ndarray) and value.dtype.kind in "fbiu")


NUMERIC = Domain(
    "numeric", "a number, a vector or a matrix", _is_numeric,
    lambda column: column.dtype.kind in "fbiu" or all(map(_is_numeric, column.tolist())),
)  # fmt: skip


def _vectors(
    name: str, phrase: str, inside: Callable[[np.ndarray], bool], at_limit: Callable[[Any], Any] = lambda value: False
) -> Domain:
    """A domain of vectors and lists of numbers; `inside` sees a float array whose last axis is the vector's."""

    def contains(value: Any) -> bool:
        if isinstance(value, tuple):
            if not all(isinstance(item, (int, float)) for item in value):
                return False
            value = np.array(value, dtype=np.float64)
        return isinstance(value, np.ndarray) and value.ndim == 1 and inside(value)

    def contains_all(column: np.ndarray) -> bool:
        if column.dtype.kind not in "fbiu":
            return all(map(contains, column))
        return column.ndim == 2 and inside(column)

    return Domain(name, phrase, contains, contains_all, at_limit=at_limit)


def _sums_to_one(vectors: np.ndarray) -> bool:
    if vectors.ndim == 1 and 0 < vectors.size <= 64:
        # the same on plain floats: for a few entries the array operations would cost ten times as much
        entries = vectors.tolist()
        # beyond 2 a sum is not needed, and may be beyond the floats
        if min(entries) < 0.0 or max(entries) > 2.0:
            return False
        return abs(math.fsum(entries) - 1.0) <= LARGEST_DEVIATION_FROM_ONE
    if not vectors.size or not vectors.min() >= 0.0:
        return False
    return bool((abs(vectors.sum(axis=-1) - 1.0) <= LARGEST_DEVIATION_FROM_ONE).all())


VECTOR = _vectors("vector", "a vector of finite numbers", lambda v: bool(np.isfinite(v).all()))
SCORES = _vectors(
    "scores", "a vector of finite numbers, at least one", lambda v: v.size > 0 and bool(np.isfinite(v).all())
)
POSITIVE_VECTOR = _vectors(
    "positive vector", "a vector of positive numbers",
    lambda v: v.size > 0 and bool(v.min() > 0.0 and v.max() < math.inf), _is_zero_or_infinite,
)  # fmt: skip
INCREASING_VECTOR = _vectors(
    "increasing vector", "a vector of increasing finite numbers, at least one",
    lambda v: v.size > 0 and bool(np.isfinite(v).all() and (np.diff(v, axis=-1) > 0.0).all()),
)  # fmt: skip
WEIGHTS = _vectors(
    "weights", "a vector of numbers that are not negative, one of them positive",
    lambda v: v.size > 0 and bool(v.min() >= 0.0 and v.max() < math.inf and (v.max(axis=-1) > 0.0).all()),
    _is_infinite,
)  # fmt: skip
PROBABILITY_VECTOR = _vectors("probability vector", "a vector of probabilities that sum to 1", _sums_to_one)


def _is_matrix(value: Any) -> bool:
    if isinstance(value, tuple):
        rows = [row.tolist() if isinstance(row, np.ndarray) and row.ndim == 1 else row for row in value]
        return (
            len(rows) > 0
            and all(isinstance(row, (tuple, list)) and len(row) == len(rows[0]) for row in rows)
            and all(isinstance(item, (int, float)) and math.isfinite(item) for row in rows for item in row)
        )
    return isinstance(value, np.ndarray) and value.ndim == 2 and bool(np.isfinite(value).all())


def _are_matrices(column: np.ndarray) -> bool:
    if column.dtype.kind not in "fbiu":
        return all(map(_is_matrix, column))
    return column.ndim == 3 and bool(np.isfinite(column).all())


def _is_stochastic(value: Any) -> bool:
    return _is_matrix(value) and _sums_to_one(np.array(value, dtype=np.float64))


def _is_positive_definite(value: Any) -> bool:
    return (isinstance(value, np.ndarray) or _is_matrix(value)) and cholesky_of(value) is not None


def _is_cholesky_factor(value: Any) -> bool:
    if not _is_matrix(value):
        return False
    lower = np.asarray(value, dtype=np.float64)
    square = lower.shape[0] == lower.shape[1] > 0
    return square and not lower[above_diagonal(len(lower))].any() and bool(lower.diagonal().min() > 0.0)


MATRIX = Domain("matrix", "a matrix of finite numbers", _is_matrix, _are_matrices)
STOCHASTIC_MATRIX = by_rows("stochastic matrix", "a matrix of probabilities whose rows each sum to 1", _is_stochastic)
POSITIVE_DEFINITE = by_rows("positive definite", "a symmetric positive definite matrix", _is_positive_definite)
CHOLESKY_FACTOR = by_rows("Cholesky factor", "a lower triangular matrix with a positive diagonal", _is_cholesky_factor)
NONEMPTY_LIST = by_rows("nonempty list", "a list with an entry", lambda value: isinstance(value, tuple) and value != ())
LIST = of_kind("list", "a list", tuple)
SYMBOL_OR_STRING = of_kind("name", "a symbol or a string", str, Symbol)
STRING = of_kind("string", "a string", str)
