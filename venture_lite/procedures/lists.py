"""Lists, and access by position to lists, vectors and matrices. Positions count from 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import array_pullbacks as pullbacks
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.domains import ANY, INTEGER, LIST, Domain
from venture_lite.procedures.pullbacks import LOCALLY_CONSTANT
from venture_lite.procedures.record import Argument, Deterministic
from venture_lite.values import equal, freeze, show

LONGEST_RANGE = 2**27


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (tuple, np.ndarray))


SEQUENCE = Domain("sequence", "a list or a vector", _is_sequence, lambda column: column.ndim > 1 or _all_rows(column))


def _all_rows(column: np.ndarray) -> bool:
    return column.dtype.kind == "O" and all(map(_is_sequence, column.tolist()))


def make_list(*items: Any) -> tuple[Any, ...]:
    return items


def pair(first: Any, rest: Any) -> tuple[Any, ...]:
    if not isinstance(rest, tuple):
        raise ArgumentError(f"pair: rest must be a list, got {show(rest)}")
    return (first, *rest)


def plain(item: Any) -> Any:
    """An entry taken out of an array: a number as Python's own, a row as it is."""
    return item.item() if isinstance(item, np.generic) else item


def lookup(collection: Any, index: Any) -> Any:
    try:
        if index.__class__ is int and index >= 0:
            item = collection[index]
        else:
            item = collection[_position(collection, index)]
    except (IndexError, TypeError, KeyError):
        raise _lookup_error(collection, index) from None
    if item.__class__ is float or isinstance(collection, tuple):
        return item
    if not isinstance(collection, np.ndarray):
        raise _lookup_error(collection, index)
    return plain(item)


def _position(collection: Any, index: Any) -> int:
    if not INTEGER.contains(index) or index < 0:
        raise IndexError
    return int(index)


def _lookup_error(collection: Any, index: Any) -> ArgumentError:
    if not _is_sequence(collection):
        return ArgumentError(f"lookup: collection must be a list, a vector or a matrix, got {show(collection)}")
    if not INTEGER.contains(index):
        return ArgumentError(f"lookup: index must be an integer, got {show(index)}")
    size = len(collection)
    if not size:
        return ArgumentError(f"lookup: position {show(index)} of an empty list")
    return ArgumentError(f"lookup: position {show(index)} of {size}: positions run from 0 to {size - 1}")


def _lookup_columns(lifted: tuple[bool, ...], collection: Any, index: Any) -> np.ndarray:
    if not isinstance(collection, np.ndarray) or collection.dtype.kind == "O":
        raise RowByRow
    if not lifted[1]:
        if collection.ndim < 2 or not INTEGER.contains(index) or not 0 <= index < collection.shape[1]:
            raise RowByRow
        return np.asarray(collection[:, int(index)])
    size = collection.shape[1] if lifted[0] and collection.ndim > 1 else len(collection) if not lifted[0] else 0
    if not (INTEGER.contains_all(index) and index.size and index.min() >= 0 and index.max() < size):
        raise RowByRow
    where = index.astype(np.int64)
    return np.asarray(collection[np.arange(len(where)), where] if lifted[0] else collection[where])


def first(items: Any) -> Any:
    return _nth("first", items, 0)


def second(items: Any) -> Any:
    return _nth("second", items, 1)


def _nth(name: str, items: Any, position: int) -> Any:
    if not _is_sequence(items):
        raise ArgumentError(f"{name}: items must be {SEQUENCE.phrase}, got {show(items)}")
    if len(items) <= position:
        raise ArgumentError(f"{name}: the list has {'no' if position == 0 else 'no second'} entry: {show(items)}")
    return plain(items[position])


def rest(items: Any) -> Any:
    if not _is_sequence(items) or not len(items):
        raise ArgumentError(f"rest: items must be a list or a vector that is not empty, got {show(items)}")
    return items[1:]


def is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) > 0


def is_empty(items: Any) -> bool:
    return size(items) == 0


def size(items: Any) -> int:
    if not isinstance(items, (tuple, np.ndarray, str)):
        raise ArgumentError(f"size: items must be a list, a vector or a string, got {show(items)}")
    return len(items)


def append(*lists: Any) -> Any:
    if lists and all(isinstance(items, np.ndarray) and items.ndim == 1 for items in lists):
        return freeze(np.concatenate(lists))
    if not all(isinstance(items, tuple) for items in lists):
        shown = " ".join(show(items) for items in lists if not isinstance(items, tuple))
        raise ArgumentError(f"append joins lists with lists, or vectors with vectors, got {shown}")
    return tuple(item for items in lists for item in items)


def reverse(items: Any) -> Any:
    if not _is_sequence(items):
        raise ArgumentError(f"reverse: items must be {SEQUENCE.phrase}, got {show(items)}")
    return items[::-1]


def make_range(start: Any, stop: Any = None, step: Any = 1) -> tuple[int, ...]:
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if not (value is None or INTEGER.contains(value)):
            raise ArgumentError(f"range: {name} must be an integer, got {show(value)}")
    if step == 0:
        raise ArgumentError("range: step must not be 0")
    integers = range(int(start)) if stop is None else range(int(start), int(stop), int(step))
    if abs(start if stop is None else stop - start) > abs(LONGEST_RANGE * step):
        raise ArgumentError("range: a list of more than 2^27 integers")
    return tuple(integers)


def contains(items: Any, value: Any) -> bool:
    if not _is_sequence(items):
        raise ArgumentError(f"contains: items must be {SEQUENCE.phrase}, got {show(items)}")
    if isinstance(items, np.ndarray) and items.ndim == 1:
        return isinstance(value, (int, float)) and bool((items == value).any())
    return any(equal(item, value) for item in items)


def make_zip(*lists: Any) -> tuple[Any, ...]:
    if not all(map(_is_sequence, lists)):
        raise ArgumentError(f"zip takes lists and vectors, got {' '.join(map(show, lists))}")
    return tuple(zip(*(items.tolist() if _is_vector(items) else items for items in lists), strict=False))


def _is_vector(items: Any) -> bool:
    return isinstance(items, np.ndarray) and items.ndim == 1


def to_list(items: Any) -> tuple[Any, ...]:
    if not _is_sequence(items):
        raise ArgumentError(f"to_list: items must be {SEQUENCE.phrase}, got {show(items)}")
    return tuple(items.tolist()) if _is_vector(items) else tuple(items)


_ITEMS = (Argument("items", SEQUENCE),)

RECORDS = (
    Deterministic("list", (), "A list of its arguments.", make_list, rest=ANY, pullback=pullbacks.LIST),
    Deterministic("pair", (Argument("first", ANY), Argument("rest", LIST)), "A list with one more first entry.", pair,
                  pullback=pullbacks.PAIR),
    Deterministic("first", _ITEMS, "The first entry of a list or vector.", first, pullback=pullbacks.nth(0)),
    Deterministic("second", _ITEMS, "The second entry of a list or vector.", second, pullback=pullbacks.nth(1)),
    Deterministic("rest", _ITEMS, "A list or vector without its first entry.", rest, pullback=pullbacks.REST),
    Deterministic("is_pair", (Argument("value", ANY),), "Whether it is a list with an entry.", is_pair, total=True,
                  pullback=LOCALLY_CONSTANT),
    Deterministic("is_empty", (Argument("items", ANY),), "Whether a list, vector or string has no entry.", is_empty,
                  pullback=LOCALLY_CONSTANT),
    Deterministic("size", (Argument("items", ANY),),
                  "The number of entries of a list or vector, of rows of a matrix, of characters of a string.", size,
                  pullback=LOCALLY_CONSTANT),
    Deterministic("append", (), "The entries of several lists, or of several vectors.", append, rest=SEQUENCE,
                  pullback=pullbacks.APPEND),
    Deterministic("reverse", _ITEMS, "A list or vector from its last entry to its first.", reverse,
                  pullback=pullbacks.REVERSE),
    Deterministic("range", (Argument("start", INTEGER), Argument("stop", INTEGER, None), Argument("step", INTEGER, 1)),
                  "The integers from start up to, not including, stop; of one argument, from 0 on.", make_range),
    Deterministic("contains", (Argument("items", SEQUENCE), Argument("value", ANY)),
                  "Whether an entry of the list or vector equals the value.", contains),
    Deterministic("lookup", (Argument("collection", SEQUENCE), Argument("index", INTEGER)),
                  "The entry of a list or vector, or the row of a matrix, at a position counted from 0.",
                  lookup, _lookup_columns, pullback=pullbacks.lookup),
    Deterministic("zip", (), "A list of lists: the first entries of all arguments, the second, up to the shortest.",
                  make_zip, rest=SEQUENCE, pullback=pullbacks.ZIP),
    Deterministic("to_list", _ITEMS, "The entries of a vector, or the rows of a matrix, as a list.", to_list,
                  pullback=pullbacks.TO_LIST),
)  # fmt: skip
