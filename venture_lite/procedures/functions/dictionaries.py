"""Dictionaries: immutable values by keys. Whatever may be a memo key may be a key: keys compare as `=` does.

The cotangent of a dictionary, in reverse accumulation, is a tuple with an entry for each of its values.
"""

from __future__ import annotations

from typing import Any

from venture_lite.errors import ArgumentError
from venture_lite.procedures.array_pullbacks import single
from venture_lite.procedures.domains import ANY, LIST, of_kind
from venture_lite.procedures.pullbacks import LOCALLY_CONSTANT, Cotangents
from venture_lite.procedures.record import Argument, Deterministic
from venture_lite.values import Dictionary, equal, show

DICTIONARY = of_kind("dictionary", "a dictionary", Dictionary)


def make_dict(*entries: Any) -> Dictionary:
    if len(entries) % 2:
        raise ArgumentError(
            f"dict takes keys and values in turn, got {len(entries)} arguments; the last is a key alone"
        )
    return _of_pairs("dict", list(zip(entries[::2], entries[1::2], strict=True)))


def _of_pairs(name: str, pairs: list[tuple[Any, Any]]) -> Dictionary:
    made = Dictionary(pairs)
    if len(made) < len(pairs):
        twice = next(key for position, (key, _) in enumerate(pairs) if key in Dictionary(pairs[:position]))
        raise ArgumentError(f"{name}: the key {show(twice)} is given twice")
    return made


def to_dict(pairs: Any) -> Dictionary:
    for pair in pairs if isinstance(pairs, tuple) else (pairs,):
        if not (isinstance(pairs, tuple) and isinstance(pair, tuple) and len(pair) == 2):
            raise ArgumentError(f"to_dict takes a list of lists of a key and a value, got {show(pairs)}")
    return _of_pairs("to_dict", list(pairs))


def _checked(name: str, dictionary: Any) -> Dictionary:
    checked: Dictionary = DICTIONARY.checked(name, "dictionary", dictionary)
    return checked


def keys(dictionary: Any) -> tuple[Any, ...]:
    return tuple(_checked("keys", dictionary))


def values(dictionary: Any) -> tuple[Any, ...]:
    return tuple(_checked("values", dictionary).values())


def insert(dictionary: Any, key: Any, value: Any) -> Dictionary:
    return _checked("insert", dictionary).with_entry(key, value)


def remove(dictionary: Any, key: Any) -> Dictionary:
    checked = _checked("remove", dictionary)
    if key not in checked:
        raise ArgumentError(f"remove: the dictionary has no key {show(key)}")
    return checked.without(key)


def _of_entries(cotangent: Any, result: Any, *entries: Any) -> Cotangents:
    return tuple(part for share in cotangent for part in (None, share))


def _of_insertion(cotangent: Any, result: Any, dictionary: Any, key: Any, value: Any) -> Cotangents:
    share = next(part for part, there in zip(cotangent, result, strict=True) if equal(there, key))
    kept = tuple(None if equal(there, key) else part for part, there in zip(cotangent, dictionary, strict=False))
    return (kept, None, share)


def _of_removal(cotangent: Any, result: Any, dictionary: Any, key: Any) -> Cotangents:
    parts = iter(cotangent)
    return (tuple(None if equal(there, key) else next(parts) for there in dictionary), None)


_DICTIONARY = Argument("dictionary", DICTIONARY)
_KEY = Argument("key", ANY)

RECORDS = (
    Deterministic("dict", (), "A dictionary of keys and values, given in turn.", make_dict, rest=ANY,
                  pullback=single(_of_entries)),
    Deterministic("to_dict", (Argument("pairs", LIST),), "A dictionary from a list of lists of a key and a value.",
                  to_dict,
                  pullback=single(lambda cotangent, result, pairs: (tuple((None, part) for part in cotangent),))),
    Deterministic("keys", (_DICTIONARY,), "The keys of a dictionary, in the order of insertion.", keys,
                  pullback=LOCALLY_CONSTANT),
    Deterministic("values", (_DICTIONARY,), "The values of a dictionary, in the order of insertion.", values,
                  pullback=single(lambda cotangent, result, dictionary: (tuple(cotangent),))),
    Deterministic("insert", (_DICTIONARY, _KEY, Argument("value", ANY)),
                  "The dictionary with one entry more, or another value at a key that it has.", insert,
                  pullback=single(_of_insertion)),
    Deterministic("remove", (_DICTIONARY, _KEY), "The dictionary without one of its keys.", remove,
                  pullback=single(_of_removal)),
)  # fmt: skip
