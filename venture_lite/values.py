"""Values of the language, and their ways to and from Python and NumPy.

| in the language | in Python |
|---|---|
| number, boolean | int, float, bool |
| string, symbol | str, `Symbol` |
| list | tuple |
| vector, matrix | read-only float64 ndarray |
| procedure | a record of the registry, or a closure, memo or maker of the trace |
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from venture_lite.errors import VentureError


class Symbol:
    """A name as a value (`'red`). Equal by name, and never equal to a string."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbol) and other.name == self.name

    def __hash__(self) -> int:
        return hash((Symbol, self.name))

    def __repr__(self) -> str:
        return self.name


def is_number(value: object) -> bool:
    """Whether arithmetic takes the value: booleans count as 0 and 1."""
    return isinstance(value, (int, float))


def key_of(value: Any) -> Hashable:
    """A hashable stand-in that is equal exactly where `=` holds: 1, 1.0 and true are one key; -0.0 is 0.

    Raises VentureError for NaN, which equals nothing and so can be no key.
    """
    if isinstance(value, float):
        if value != value:
            raise VentureError("NaN cannot be a key: it equals nothing, not even itself")
        return value
    if isinstance(value, tuple):
        return tuple(map(key_of, value))
    if isinstance(value, np.ndarray):
        if np.isnan(value).any():
            raise VentureError("a vector with NaN cannot be a key: NaN equals nothing, not even itself")
        return ("vector", value.shape, tuple((value + 0.0).ravel().tolist()))
    return value  # type: ignore[no-any-return]


def equal(left: Any, right: Any) -> bool:
    """`=`: numbers across kinds, lists and vectors by element, procedures by identity."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        same_kind = isinstance(left, np.ndarray) and isinstance(right, np.ndarray)
        return same_kind and left.shape == right.shape and bool((left == right).all())
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def freeze(array: np.ndarray) -> np.ndarray:
    """The array, made read-only: values are shared freely inside a trace, so none may change."""
    array.flags.writeable = False
    return array


def from_python(value: Any) -> Any:
    """A value of the language for what a Python caller gave; arrays are copied.

    Lists and tuples of numbers become lists of the language; arrays of numbers become vectors and matrices.
    """
    match value:
        case bool() | int() | str() | Symbol():
            return float(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value
        case float():
            # also np.float64, which is a float
            return float(value)
        case np.bool_() | np.integer() | np.floating():
            return value.item()
        case np.ndarray() if value.ndim == 0:
            return value.item()
        case np.ndarray() if value.dtype.kind in "biuf":
            return freeze(np.array(value, dtype=np.float64))
        case np.ndarray() if value.dtype.kind in "OUT":
            return tuple(map(from_python, value.tolist()))
        case list() | tuple():
            return tuple(map(from_python, value))
        case Real() | Decimal():
            return float(value)
    # what pandas has for a missing value
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def is_value(value: Any) -> bool:
    """Whether `from_python` made a value of the language of it, complete: no NaN, and nothing else that is missing."""
    match value:
        case float():
            return value == value
        case np.ndarray():
            return value.dtype == np.float64 and not np.isnan(value).any()
        case tuple():
            return all(map(is_value, value))
    return isinstance(value, (int, str, Symbol))


def to_python(value: Any) -> Any:
    """What a Python caller receives: a copy, never a view of the trace."""
    match value:
        case np.ndarray():
            return np.array(value)
        case tuple():
            return [to_python(item) for item in value]
        case Symbol():
            return value.name
    return value


def show(value: Any, digits: int = 6) -> str:
    """A short text for a person: numbers rounded, long vectors and lists cut."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return "nan" if math.isnan(value) else f"{value:.{digits}g}"
        case str():
            return f'"{value}"'
        case np.ndarray():
            return np.array2string(value, precision=4, threshold=12, edgeitems=3, max_line_width=100)
        case tuple() | list():
            shown = [show(item, digits) for item in value[:12]]
            return "(" + " ".join(shown + (["..."] if len(value) > 12 else [])) + ")"
    return str(value)
