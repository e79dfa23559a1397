"""Lists, and what lists share with vectors, matrices, strings and dictionaries: entries, sizes, joining, reversing.

Positions count from 0.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import array_pullbacks as pullbacks
from venture_lite.procedures.columns import Flags, RowByRow
from venture_lite.procedures.domains import ANY, COUNT, INTEGER, LIST, Domain
from venture_lite.procedures.pullbacks import LOCALLY_CONSTANT, Cotangents
from venture_lite.procedures.record import Argument, Deterministic
from venture_lite.values import Dictionary, equal, freeze, key_of, show

LONGEST_RANGE = 2**27


def _of_kinds(name: str, phrase: str, *kinds: type) -> Domain:
    """A domain of values with entries. In a column rows of a matrix are vectors, others are looked at one by one."""

    def contains(value: Any) -> bool:
        return isinstance(value, kinds)

    def contains_all(column: np.ndarray) -> bool:
        return column.ndim > 1 or (column.dtype.kind in "OU" and all(map(contains, column.tolist())))

    return Domain(name, phrase, contains, contains_all)


SEQUENCE = _of_kinds("sequence", "a list or a vector", tuple, np.ndarray)
COLLECTION = _of_kinds(
    "collection", "a list, a vector, a matrix, a string or a dictionary", tuple, np.ndarray, str, Dictionary
)
JOINABLE = _of_kinds("joinable", "a list, a vector or a string", tuple, np.ndarray, str)
KEY = Domain("key", "a position or a key", lambda value: True, lambda column: True, "True", discrete=True)


def make_list(*items: Any) -> tuple[Any, ...]:
    return items


def pair(first: Any, rest: Any) -> tuple[Any, ...]:
    return (first, *LIST.checked("pair", "rest", rest))


def plain(item: Any) -> Any:
    """An entry taken out of an array: a number as Python's own, a row as it is."""
    return item.item() if isinstance(item, np.generic) else item


ABSENT: Any = object()
OF_MATRIX = "(lookup (lookup m i) j) is the entry of a matrix, or of a list of lists, in row i at j"


def lookup(collection: Any, index: Any, default: Any = None) -> Any:
    if collection.__class__ is Dictionary:
        item = collection.get(index, ABSENT)
        if item is ABSENT:
            return _otherwise(collection, index, default)
        return item
    try:
        if index.__class__ is int and index >= 0:
            item = collection[index]
        else:
            item = collection[_position(collection, index)]
    except (IndexError, TypeError, KeyError):
        return _otherwise(collection, index, default)
    if item.__class__ is float or isinstance(collection, (tuple, str)):
        return item
    if not isinstance(collection, np.ndarray):
        raise _lookup_error(collection, index)
    if default is not None and isinstance(item, np.ndarray) and not isinstance(default, np.ndarray):
        # two positions are meant, of which the second would be no more than a default
        raise ArgumentError(
            f"lookup: default must be a vector, as the rows of a matrix are, got {show(default)}", hint=OF_MATRIX
        )
    return plain(item)


def _otherwise(collection: Any, index: Any, default: Any) -> Any:
    """What stands in for an entry that is not there."""
    fits = isinstance(collection, Dictionary) or (COLLECTION.contains(collection) and INTEGER.contains(index))
    if default is None or not fits:
        raise _lookup_error(collection, index) from None
    return default


def _position(collection: Any, index: Any) -> int:
    if not INTEGER.contains(index) or index < 0:
        raise IndexError
    return int(index)


def _lookup_error(collection: Any, index: Any) -> ArgumentError:
    if isinstance(collection, Dictionary):
        hint = "a third argument is given where the key is not there"
        return ArgumentError(f"lookup: the dictionary has no key {show(index)}", hint=hint)
    if not COLLECTION.contains(collection):
        return COLLECTION.refusal("lookup", "collection", collection)
    if not INTEGER.contains(index):
        refused = INTEGER.refusal("lookup", "index", index)
        if isinstance(index, (tuple, np.ndarray)):
            refused.hint = OF_MATRIX
        return refused
    size = len(collection)
    if not size:
        return ArgumentError(f"lookup: position {show(index)} of an empty {_noun(collection)}")
    return ArgumentError(f"lookup: position {show(index)} of {size}: positions run from 0 to {size - 1}")


def _noun(collection: Any) -> str:
    return "string" if isinstance(collection, str) else "vector" if isinstance(collection, np.ndarray) else "list"


def _as_vector(items: tuple[Any, ...]) -> np.ndarray:
    """A list of numbers of one kind as a vector. Raises RowByRow for another."""
    if set(map(type, items)) not in ({float}, {int}):
        raise RowByRow
    found = np.array(items)
    if found.dtype.kind not in "fi":
        raise RowByRow
    return found


def _lookup_columns(lifted: Flags, collection: Any, index: Any, default: Any = None) -> np.ndarray:
    if isinstance(collection, tuple):
        collection = _as_vector(collection)
    if default is not None or not hasattr(collection, "dtype") or collection.dtype.kind not in "fbiu":
        raise RowByRow
    if not lifted[1]:
        if collection.ndim < 2 or not INTEGER.contains(index) or not 0 <= index < collection.shape[1]:
            raise RowByRow
        return collection[:, int(index)]  # type: ignore[no-any-return]
    size = collection.shape[1] if lifted[0] and collection.ndim > 1 else len(collection) if not lifted[0] else 0
    if not (INTEGER.contains_all(index) and index.size and index.min() >= 0 and index.max() < size):
        raise RowByRow
    where = index.astype(np.int64)
    return collection[np.arange(len(where)), where] if lifted[0] else collection[where]  # type: ignore[no-any-return]


def _nth(name: str, position: int, items: Any) -> Any:
    if len(SEQUENCE.checked(name, "items", items)) <= position:
        raise ArgumentError(f"{name}: the list has {'no' if position == 0 else 'no second'} entry: {show(items)}")
    return plain(items[position])


first = partial(_nth, "first", 0)
second = partial(_nth, "second", 1)


def last(items: Any) -> Any:
    if not len(SEQUENCE.checked("last", "items", items)):
        raise ArgumentError(f"last: the list has no entry: {show(items)}")
    return plain(items[-1])


def take(items: Any, count: Any) -> Any:
    return JOINABLE.checked("take", "items", items)[: int(COUNT.checked("take", "count", count))]


def drop(items: Any, count: Any) -> Any:
    return JOINABLE.checked("drop", "items", items)[int(COUNT.checked("drop", "count", count)) :]


def rest(items: Any) -> Any:
    if not SEQUENCE.contains(items) or not len(items):
        raise ArgumentError(f"rest: items must be a list or a vector that is not empty, got {show(items)}")
    return items[1:]


def is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) > 0


def is_empty(items: Any) -> bool:
    return size(items) == 0


def size(items: Any) -> int:
    return len(COLLECTION.checked("size", "items", items))


def append(*lists: Any) -> Any:
    if lists and all(isinstance(items, np.ndarray) and items.ndim == 1 for items in lists):
        return freeze(np.concatenate(lists))
    if lists and all(isinstance(items, str) for items in lists):
        return "".join(lists)
    if not all(isinstance(items, tuple) for items in lists):
        shown = " ".join(map(show, lists))
        raise ArgumentError(f"append joins lists with lists, vectors with vectors, strings with strings, got {shown}")
    return tuple(item for items in lists for item in items)


def reverse(items: Any) -> Any:
    return JOINABLE.checked("reverse", "items", items)[::-1]


def sort(items: Any) -> Any:
    """From the least to the greatest, as `<` compares; equal ones keep their order."""
    if _is_vector(items):
        return freeze(np.sort(items, kind="stable"))
    entries = LIST.checked("sort", "items", items)
    if not any(all(isinstance(entry, kind) for entry in entries) for kind in ((int, float), str)):
        raise ArgumentError(f"sort takes a vector, a list of numbers or a list of strings, got {show(items)}")
    return tuple(sorted(entries))


def unique(items: Any) -> Any:
    entries = SEQUENCE.checked("unique", "items", items)
    first_of: dict[Hashable, int] = {}
    for position, entry in enumerate(entries.tolist() if _is_vector(entries) else entries):
        first_of.setdefault(key_of(entry), position)
    places = list(first_of.values())
    return tuple(entries[i] for i in places) if isinstance(entries, tuple) else freeze(entries[places])


def make_range(start: Any, stop: Any = None, step: Any = 1) -> tuple[int, ...]:
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if value is not None:
            INTEGER.checked("range", name, value)
    if step == 0:
        raise ArgumentError("range: step must not be 0")
    integers = range(int(start)) if stop is None else range(int(start), int(stop), int(step))
    if abs(start if stop is None else stop - start) > abs(LONGEST_RANGE * step):
        raise ArgumentError("range: a list of more than 2^27 integers")
    return tuple(integers)


def contains(items: Any, value: Any) -> bool:
    if isinstance(items, Dictionary):
        return value in items
    if isinstance(items, str):
        if not isinstance(value, str):
            raise ArgumentError(f"contains: value must be a string, as items is one, got {show(value)}")
        return value in items
    if not SEQUENCE.contains(items):
        raise COLLECTION.refusal("contains", "items", items)
    if isinstance(items, np.ndarray) and items.ndim == 1:
        return isinstance(value, (int, float)) and bool((items == value).any())
    return any(equal(item, value) for item in items)


def make_zip(*lists: Any) -> tuple[Any, ...]:
    if not all(map(SEQUENCE.contains, lists)):
        raise ArgumentError(f"zip takes lists and vectors, got {' '.join(map(show, lists))}")
    return tuple(zip(*(items.tolist() if _is_vector(items) else items for items in lists), strict=False))


def _is_vector(items: Any) -> bool:
    return isinstance(items, np.ndarray) and items.ndim == 1


def to_list(items: Any) -> tuple[Any, ...]:
    if isinstance(COLLECTION.checked("to_list", "items", items), Dictionary):
        return tuple(items.items())
    return tuple(items.tolist()) if _is_vector(items) else tuple(items)


def _to_list_pullback(lifted: Flags, wanted: Flags, cotangent: Any, result: Any, items: Any) -> Cotangents:
    if isinstance(items, Dictionary):
        return (tuple(None if pair is None else pair[1] for pair in cotangent),)
    return pullbacks.TO_LIST(lifted, wanted, cotangent, result, items)


def _lookup_pullback(
    lifted: Flags, wanted: Flags, cotangent: Any, result: Any, collection: Any, index: Any,
    default: Any = None,
) -> Cotangents:  # fmt: skip
    """The cotangent of a dictionary is a tuple, an entry for each of its values."""
    if default is None and not isinstance(collection, Dictionary):
        taken = pullbacks.lookup(lifted[:2], wanted[:2], cotangent, result, collection, index)
        return taken + (None,) * (len(lifted) - 2)
    if any(lifted):
        raise RowByRow
    there = index in collection if isinstance(collection, Dictionary) else 0 <= index < len(collection)
    share: Any = None
    if there and wanted[0]:
        if isinstance(collection, Dictionary):
            share = tuple(cotangent if equal(key, index) else None for key in collection)
        else:
            share = pullbacks.lookup(lifted, wanted, cotangent, result, collection, index)[0]
    parts = (share, None, None if there else cotangent)
    return tuple(part if want else None for part, want in zip(parts, wanted, strict=False))


_ITEMS = (Argument("items", SEQUENCE),)
_SOME = (Argument("items", JOINABLE), Argument("count", COUNT))
_COLLECTION = (Argument("items", COLLECTION),)

RECORDS = (
    Deterministic("list", (), "A list of its arguments.", make_list, rest=ANY, pullback=pullbacks.LIST),
    Deterministic("pair", (Argument("first", ANY), Argument("rest", LIST)), "A list with one more first entry.", pair,
                  pullback=pullbacks.PAIR),
    Deterministic("first", _ITEMS, "The first entry of a list or vector.", first, pullback=pullbacks.nth(0)),
    Deterministic("second", _ITEMS, "The second entry of a list or vector.", second, pullback=pullbacks.nth(1)),
    Deterministic("last", _ITEMS, "The last entry of a list or vector.", last, pullback=pullbacks.nth(-1)),
    Deterministic("take", _SOME, "The first entries of a list, vector or string, as many as count says or there are.",
                  take, pullback=pullbacks.TAKE),
    Deterministic("drop", _SOME, "A list, vector or string without its first entries, as many as count says.", drop,
                  pullback=pullbacks.DROP),
    Deterministic("rest", _ITEMS, "A list or vector without its first entry.", rest, pullback=pullbacks.REST),
    Deterministic("is_pair", (Argument("value", ANY),), "Whether it is a list with an entry.", is_pair, total=True,
                  pullback=LOCALLY_CONSTANT),
    Deterministic("is_empty", _COLLECTION, "Whether a list, vector, string or dictionary has no entry.", is_empty,
                  pullback=LOCALLY_CONSTANT),
    Deterministic("size", _COLLECTION,
                  "The number of entries of a list, vector or dictionary, of rows of a matrix, of characters of a "
                  "string.", size, pullback=LOCALLY_CONSTANT),
    Deterministic("append", (), "Several lists, several vectors or several strings as one.", append, rest=JOINABLE,
                  pullback=pullbacks.APPEND),
    Deterministic("reverse", (Argument("items", JOINABLE),), "A list, vector or string from its end to its start.",
                  reverse, pullback=pullbacks.REVERSE),
    Deterministic("sort", _ITEMS, "The numbers of a list or vector, or the strings of a list, in increasing order.",
                  sort, pullback=pullbacks.SORT),
    Deterministic("unique", _ITEMS, "A list or vector without what equals an earlier entry.", unique),
    Deterministic("range", (Argument("start", INTEGER), Argument("stop", INTEGER, None), Argument("step", INTEGER, 1)),
                  "The integers from start up to, not including, stop; of one argument, from 0 on.", make_range),
    Deterministic("contains", (*_COLLECTION, Argument("value", ANY)),
                  "Whether an entry of a list or vector, or a key of a dictionary, equals the value; whether a string "
                  "has another in it.", contains),
    Deterministic("lookup",
                  (Argument("collection", COLLECTION), Argument("index", KEY), Argument("default", ANY, None)),
                  "The entry of a list or vector, the row of a matrix or the character of a string at a position, "
                  "counted from 0; the value of a dictionary at a key; the default where there is none.",
                  lookup, _lookup_columns, pullback=_lookup_pullback),
    Deterministic("zip", (), "A list of lists: the first entries of all arguments, the second, up to the shortest.",
                  make_zip, rest=SEQUENCE, pullback=pullbacks.ZIP),
    Deterministic("to_list", _COLLECTION,
                  "The entries of a vector, the rows of a matrix, the characters of a string, or the keys of a "
                  "dictionary, each in a list with its value, as a list.", to_list, pullback=_to_list_pullback),
)  # fmt: skip
