"""Reverse accumulation through procedures of vectors, matrices and lists.

The cotangent of a list is a tuple, or an array where all entries are numbers; `record.py` says more. Where a column of
rows has no form here, the caller goes row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.procedures.columns import Flags, RowByRow
from venture_lite.procedures.pullbacks import Cotangents, gathered
from venture_lite.procedures.record import Pullback


def single(pullback: Callable[..., Cotangents]) -> Pullback:
    """From a pullback of single calls, `(cotangent, result, *arguments)`, whose answers cost little to give unasked."""

    def checked(lifted: Flags, wanted: Flags, cotangent: Any, result: Any, *arguments: Any) -> Cotangents:
        if any(lifted):
            raise RowByRow
        given = pullback(cotangent, result, *arguments)
        return tuple(part if want else None for part, want in zip(given, wanted, strict=True))

    return checked


def _array(items: Any) -> Any:
    return items if hasattr(items, "dtype") else np.asarray(items, dtype=np.float64)


def dot(lifted: Flags, wanted: Flags, cotangent: Any, result: Any, left: Any, right: Any) -> Cotangents:
    """Of inner products row by row, and of products of vectors and matrices."""
    left, right = _array(left), _array(right)
    if any(lifted):
        if np.ndim(cotangent) == 2:
            return _matrix_and_rows(lifted, wanted, cotangent, left, right)
        if left.ndim - lifted[0] != 1 or right.ndim - lifted[1] != 1:
            raise RowByRow
        return (
            _factor(lifted[0], lifted[1], cotangent, right) if wanted[0] else None,
            _factor(lifted[1], lifted[0], cotangent, left) if wanted[1] else None,
        )
    return (
        _left_factor(cotangent, left, right) if wanted[0] else None,
        _left_factor(np.transpose(cotangent), right.T, left.T).T if wanted[1] else None,
    )


def _factor(lifted: bool, other_lifted: bool, cotangent: Any, other: Any) -> Any:
    """The cotangent of one of two vectors whose inner products were taken, one for each row."""
    if lifted:
        return cotangent[:, None] * other
    return cotangent @ other if other_lifted else cotangent.sum() * other


def _matrix_and_rows(lifted: Flags, wanted: Flags, cotangent: Any, left: Any, right: Any) -> Cotangents:
    """One matrix (K, D) times a vector of each row (rows, D), or these times one matrix (D, K); `cotangent` is
    (rows, K)."""
    if left.ndim != 2 or right.ndim != 2 or lifted[0] == lifted[1]:
        raise RowByRow
    if lifted[1]:
        return (cotangent.T @ right if wanted[0] else None, cotangent @ left if wanted[1] else None)
    return (cotangent @ right.T if wanted[0] else None, left.T @ cotangent if wanted[1] else None)


def _left_factor(cotangent: Any, left: Any, right: Any) -> Any:
    """d <cotangent, left right> / d left, of vectors and matrices."""
    if left.ndim == 1:
        return right @ cotangent if right.ndim == 2 else cotangent * right
    return np.outer(cotangent, right) if right.ndim == 1 else cotangent @ right.T


def linear_logistic(lifted: Flags, wanted: Flags, cotangent: Any, result: Any, weights: Any, inputs: Any) -> Cotangents:
    return dot(lifted, wanted, cotangent * (result * (1.0 - result)), result, weights, inputs)


def vector(lifted: Flags, wanted: Flags, cotangent: Any, result: Any, *entries: Any) -> Cotangents:
    shares = _array(cotangent)
    return tuple(
        gathered(shares[..., i][()], lifted, i, entry) if wanted[i] else None for i, entry in enumerate(entries)
    )


def _matrix(cotangent: Any, result: Any, *rows: Any) -> Cotangents:
    is_list_of_rows = len(rows) == 1 and isinstance(rows[0], tuple) and np.ndim(rows[0][:1]) != 1
    return (tuple(cotangent),) if is_list_of_rows else tuple(cotangent)


def _sum(cotangent: Any, result: Any, items: Any) -> Cotangents:
    return (np.full(np.shape(items), float(cotangent)),)


def _mean(cotangent: Any, result: Any, items: Any) -> Cotangents:
    entries = _array(items)
    return (np.full(entries.shape, cotangent / entries.size),)


def _product(cotangent: Any, result: Any, items: Any) -> Cotangents:
    # the products of all before and of all after an entry, which may be 0
    entries = _array(items)
    flat = np.concatenate(([1.0], entries.ravel(), [1.0]))
    others = np.cumprod(flat)[:-2] * np.cumprod(flat[::-1])[::-1][2:]
    return ((cotangent * others).reshape(entries.shape),)


def _variance(cotangent: Any, result: Any, items: Any) -> Cotangents:
    entries = _array(items)
    return (2.0 * cotangent / (entries.size - 1) * (entries - entries.mean()),)


def _sd(cotangent: Any, result: Any, items: Any) -> Cotangents:
    # where all entries are equal the sd has a kink, of which 0 is a subgradient
    return _variance(0.5 * cotangent / result if result else 0.0, result, items)


def _quantile(cotangent: Any, result: Any, items: Any, p: Any) -> Cotangents:
    entries = _array(items)
    order = np.argsort(entries, axis=None, kind="stable")
    below, share = between_ranks(entries.size, p)
    above = min(below + 1, entries.size - 1)
    by_items = np.zeros(entries.shape)
    by_items.flat[order[below]] += cotangent * (1.0 - share)
    by_items.flat[order[above]] += cotangent * share
    rise = float(entries.flat[order[above]] - entries.flat[order[below]])
    return (by_items, cotangent * (entries.size - 1) * rise)


def between_ranks(count: int, p: float) -> tuple[int, float]:
    """Where the quantile of p lies among sorted entries: the position below, and the share of the way to the next."""
    place = p * (count - 1)
    below = min(int(place), count - 1)
    return below, place - below


def lookup(lifted: Flags, wanted: Flags, cotangent: Any, result: Any, collection: Any, index: Any) -> Cotangents:
    """To the entry that was taken; rows that took the same entry add up."""
    if not wanted[0]:
        return (None, None)
    if isinstance(collection, tuple):
        if any(lifted):
            raise RowByRow
        return (_at(len(collection), int(index), cotangent), None)
    if collection.ndim == 1 and lifted[1] and not lifted[0]:
        return (np.bincount(index.astype(np.int64), weights=cotangent, minlength=len(collection)), None)
    if collection.ndim == 1 + lifted[0] and not lifted[1]:
        return (_array(cotangent)[..., None] * (np.arange(collection.shape[-1]) == int(index)), None)
    share = np.zeros(collection.shape)
    if not lifted[1]:
        share[(slice(None), int(index)) if lifted[0] else int(index)] = cotangent
    elif lifted[0]:
        share[np.arange(len(index)), index.astype(np.int64)] = cotangent
    else:
        np.add.at(share, index.astype(np.int64), cotangent)
    return (share, None)


def _at(size: int, position: int, cotangent: Any) -> tuple[Any, ...]:
    return tuple(cotangent if i == position else None for i in range(size))


def nth(position: int) -> Pullback:
    def pullback(cotangent: Any, result: Any, items: Any) -> Cotangents:
        if isinstance(items, tuple):
            return (_at(len(items), position % len(items), cotangent),)
        share = np.zeros(np.shape(items))
        share[position] = cotangent
        return (share,)

    return single(pullback)


def _rest(cotangent: Any, result: Any, items: Any) -> Cotangents:
    return (_padded(cotangent, items, 1, 0),)


def _take(cotangent: Any, result: Any, items: Any, count: Any) -> Cotangents:
    return (_padded(cotangent, items, 0, len(items) - len(result)), None)


def _drop(cotangent: Any, result: Any, items: Any, count: Any) -> Cotangents:
    return (_padded(cotangent, items, len(items) - len(result), 0), None)


def _padded(cotangent: Any, items: Any, before: int, after: int) -> Any:
    """The cotangent of a run of entries as that of all."""
    if isinstance(items, tuple):
        return (*(None,) * before, *cotangent, *(None,) * after)
    return np.pad(cotangent, [(before, after), *[(0, 0)] * (np.ndim(items) - 1)])


def _sort(cotangent: Any, result: Any, items: Any) -> Cotangents:
    places = np.argsort(np.argsort(_array(items), kind="stable"))
    return (tuple(cotangent[i] for i in places) if isinstance(items, tuple) else cotangent[places],)


def _append(cotangent: Any, result: Any, *lists: Any) -> Cotangents:
    parts, start = [], 0
    for items in lists:
        parts.append(cotangent[start : start + len(items)])
        start += len(items)
    return tuple(parts)


def _zip(cotangent: Any, result: Any, *lists: Any) -> Cotangents:
    def of_list(place: int, items: Any) -> Any:
        taken = tuple(None if row is None else row[place] for row in cotangent)
        return _like(items, taken + (None,) * (len(items) - len(taken)))

    return tuple(of_list(place, items) for place, items in enumerate(lists))


def _like(items: Any, parts: Any) -> Any:
    """The cotangents of the entries as that of an array, if it is one that they were taken from."""
    if isinstance(items, tuple) or isinstance(parts, np.ndarray):
        return parts
    return np.array([np.zeros(items.shape[1:]) if part is None else part for part in parts])


TO_VECTOR = single(lambda cotangent, result, items: (cotangent,))
MATRIX = single(_matrix)
TRANSPOSE = single(lambda cotangent, result, matrix: (cotangent.T,))
SUM = single(_sum)
PRODUCT = single(_product)
MEAN = single(_mean)
LIST = single(lambda cotangent, result, *items: tuple(cotangent))
PAIR = single(lambda cotangent, result, first, rest: (cotangent[0], cotangent[1:]))
REST = single(_rest)
TAKE = single(_take)
DROP = single(_drop)
SORT = single(_sort)
CUMULATIVE_SUM = single(lambda cotangent, result, items: (_array(cotangent)[::-1].cumsum()[::-1],))
VARIANCE = single(_variance)
SD = single(_sd)
QUANTILE = single(_quantile)
APPEND = single(_append)
REVERSE = single(lambda cotangent, result, items: (cotangent[::-1],))
ZIP = single(_zip)
TO_LIST = single(lambda cotangent, result, items: (_like(items, cotangent),))
