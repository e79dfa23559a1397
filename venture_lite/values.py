"""Values of the language, and their ways to and from Python and NumPy.

| in the language | in Python |
|---|---|
| number, boolean | int, float, bool |
| string, symbol | str, `Symbol`; a symbol that a caller receives is a `SymbolName` |
| list | tuple |
| vector, matrix | read-only float64 ndarray |
| dictionary | `Dictionary` here; dict in what a caller gives and receives |
| distribution of finitely many values | `Distribution` |
| procedure | a record of the registry, or a closure, memo or maker of the trace |
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from venture_lite.errors import HARMFUL, VentureError, escape

LARGEST_INTEGER = 2**63
"""Integers of this size and above are floats."""


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


class SymbolName(str):
    """A symbol as Python receives it: a str that is shown as a symbol, and is one again when it is given back."""

    __slots__ = ()


class Dictionary(Mapping[Any, Any]):
    """Values by keys, in the order of insertion; never changed. Keys are found, and dictionaries equal, as by `=`."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[Any, Any]] = ()) -> None:
        # key_of(key) -> (key, value)
        self._entries = {key_of(key): (key, value) for key, value in entries}

    def __getitem__(self, key: Any) -> Any:
        return self._entries[key_of(key)][1]

    def __contains__(self, key: object) -> bool:
        return key_of(key) in self._entries

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def with_entry(self, key: Any, value: Any) -> Dictionary:
        """A dictionary with one entry more, or another value at a key that is there, which keeps its place."""
        return self._changed({**self._entries, key_of(key): (key, value)})

    def without(self, key: Any) -> Dictionary:
        """A dictionary without the key, which is there."""
        entries = dict(self._entries)
        del entries[key_of(key)]
        return self._changed(entries)

    @staticmethod
    def _changed(entries: dict[Hashable, tuple[Any, Any]]) -> Dictionary:
        changed = Dictionary()
        changed._entries = entries
        return changed

    def key(self) -> Hashable:
        """What `key_of` makes of it."""
        return (Dictionary, frozenset((name, key_of(value)) for name, (_, value) in self._entries.items()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dictionary):
            return False
        mine, its = self._entries, other._entries
        return mine.keys() == its.keys() and all(equal(mine[name][1], its[name][1]) for name in mine)

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        return show(self)


class Distribution:
    """Finitely many values with their probabilities, in the order in which they were met; never changed. Equal values
    are one, and two distributions are equal where they give equal values the same probabilities.

    Where no value is possible it is empty: the probability of everything is zero, and nothing can be drawn.
    """

    __slots__ = ("_entries", "_key", "probabilities", "values")

    def __init__(self, weighed: Iterable[tuple[Any, float]]) -> None:
        """Values with log weights, which need not be normalised; those of weight -inf are left out.

        Raises VentureError for a value that is NaN.
        """
        terms: dict[Hashable, tuple[Any, list[float]]] = {}
        for value, log_weight in weighed:
            if log_weight > -math.inf:
                terms.setdefault(key_of(value), (value, []))[1].append(log_weight)
        top = max((log_weight for _, found in terms.values() for log_weight in found), default=0.0)
        masses = {key: math.fsum(math.exp(x - top) for x in found) for key, (_, found) in terms.items()}
        total = math.fsum(masses.values())
        self.values: tuple[Any, ...] = tuple(value for value, _ in terms.values())
        self.probabilities: tuple[float, ...] = tuple(mass / total for mass in masses.values())
        # key_of(value) -> (log probability, probability); that of a single term is exact where its exponential is 0
        self._entries: dict[Hashable, tuple[float, float]] = {}
        for (key, (_, found)), probability in zip(terms.items(), self.probabilities, strict=True):
            largest = max(found)
            log_mass = largest - top + math.log(math.fsum(math.exp(x - largest) for x in found))
            self._entries[key] = (log_mass - math.log(total), probability)
        self._key: Hashable = None

    def log_density(self, value: Any) -> float:
        """The log probability of a value; -inf where it is not among those of the distribution."""
        entry = self._entries.get(value if value.__class__ in _LOOKED_UP else key_of(value))
        return -math.inf if entry is None else entry[0]

    def probability(self, value: Any) -> float:
        entry = self._entries.get(value if value.__class__ in _LOOKED_UP else key_of(value))
        return 0.0 if entry is None else entry[1]

    def draw(self, u: float) -> Any:
        """The value that a uniform number in [0, 1) stands for; of an empty distribution there is none."""
        chosen = 0
        for position, probability in enumerate(self.probabilities):
            if probability > 0.0:
                # the last possible one is taken where rounding leaves something over
                chosen = position
                u -= probability
                if u < 0.0:
                    break
        return self.values[chosen]

    def key(self) -> Hashable:
        """What `key_of` makes of it."""
        if self._key is None:
            self._key = (Distribution, frozenset(self._entries.items()))
        return self._key

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distribution) and self._entries == other._entries

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        return show(self)


def is_number(value: object) -> bool:
    """Whether arithmetic takes the value: booleans count as 0 and 1."""
    return isinstance(value, (int, float))


_OWN_KEYS = frozenset((int, bool, str, Symbol))
_LOOKED_UP = _OWN_KEYS | {float}


def key_of(value: Any) -> Hashable:
    """A hashable stand-in that is equal exactly where `=` holds: 1, 1.0 and true are one key; -0.0 is 0.

    Raises VentureError for NaN, which equals nothing and so can be no key.
    """
    if value.__class__ in _OWN_KEYS:
        # most keys: to ask whether they are dictionaries, an abstract class, would cost more than all else here
        return value
    if isinstance(value, float):
        if value != value:
            raise VentureError("NaN cannot be a key: it equals nothing, not even itself")
        return value
    if isinstance(value, tuple):
        return tuple(map(key_of, value))
    if isinstance(value, np.ndarray):
        if np.isnan(value).any():
            raise VentureError("a vector with NaN cannot be a key: NaN equals nothing, not even itself")
        # a class as the mark: no list of the language can hold one
        return (np.ndarray, value.shape, tuple((value + 0.0).ravel().tolist()))
    if isinstance(value, Dictionary):
        return value.key()
    if value.__class__ is Distribution:
        return value.key()
    return value  # type: ignore[no-any-return]


def exact_key(value: Any) -> Hashable:
    """A hashable stand-in that values share only where no procedure tells them apart: 0.0 and -0.0 have two, as have
    true and 1, at any depth."""
    if isinstance(value, tuple):
        return (tuple, *map(exact_key, value))
    if isinstance(value, float):
        return (float, repr(value))
    if isinstance(value, np.ndarray):
        return (np.ndarray, value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, Dictionary):
        return (Dictionary, *((exact_key(key), exact_key(item)) for key, item in value.items()))
    if value.__class__ is Distribution:
        return (Distribution, tuple(map(exact_key, value.values)), value.probabilities)
    try:
        hash(value)
    except TypeError:
        return (object, id(value))
    return (value.__class__, value)


def are_told_apart(one: Any, other: Any) -> bool:
    """Whether some procedure tells two equal values apart: of numbers up to 2^53 only a boolean from others, and the
    signs of zeros."""
    numbers = (int, float)
    if one.__class__ in numbers and other.__class__ in numbers and abs(one) <= 2**53:
        return math.copysign(1.0, one) != math.copysign(1.0, other)
    return exact_key(one) != exact_key(other)


def equal(left: Any, right: Any) -> bool:
    """`=`: numbers across kinds, lists, vectors and dictionaries by what they hold, procedures by identity."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        same_kind = isinstance(left, np.ndarray) and isinstance(right, np.ndarray)
        return same_kind and left.shape == right.shape and bool((left == right).all())
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def is_same(left: Any, right: Any) -> bool:
    """Whether no program can tell two values apart: `equal` does not see true from 1, 1 from 1.0, or 0.0 from -0.0."""
    return exact_key(left) == exact_key(right)


def freeze(array: np.ndarray) -> np.ndarray:
    """The array, made read-only: values are shared freely inside a trace, so none may change."""
    array.flags.writeable = False
    return array


def from_python(value: Any) -> Any:
    """A value of the language for what a Python caller gave; arrays are copied.

    Lists and tuples of numbers become lists of the language; arrays of numbers become vectors and matrices. What is
    none, a number beyond the floats among them, comes back as it is: `is_value` tells.
    Raises VentureError for a dictionary with the key NaN.
    """
    match value:
        case SymbolName():
            return Symbol(str(value))
        case bool() | int() | str() | Symbol():
            return _as_float(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value
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
        case Mapping() if not isinstance(value, Dictionary):
            return Dictionary((from_python(key), from_python(entry)) for key, entry in value.items())
        case Real() | Decimal():
            return _as_float(value)
    # what pandas has for a missing value
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def _as_float(value: Any) -> Any:
    """A number of another kind as a float; one that is too large as it is, a signalling NaN as a NaN like any other."""
    try:
        return float(value)
    except OverflowError:
        return value
    except ValueError:
        return math.nan


def is_value(value: Any) -> bool:
    """Whether `from_python` made a value of the language of it, complete: no NaN, and nothing else that is missing."""
    match value:
        case float():
            return value == value
        case np.ndarray():
            return value.dtype == np.float64 and not np.isnan(value).any()
        case tuple():
            return all(map(is_value, value))
        case Dictionary():
            return all(is_value(key) and is_value(entry) for key, entry in value.items())
    if isinstance(value, int):
        return -LARGEST_INTEGER <= value < LARGEST_INTEGER
    return isinstance(value, (str, Symbol))


def to_python(value: Any) -> Any:
    """What a Python caller receives: a copy, never a view of the trace."""
    match value:
        case np.ndarray():
            return np.array(value)
        case tuple():
            return [to_python(item) for item in value]
        case Symbol():
            return SymbolName(value.name)
        case Dictionary():
            return _python_dictionary(value)
    return value


def object_array(values: Sequence[Any] | np.ndarray) -> np.ndarray:
    """The values as a Python caller receives them, one an entry."""
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = to_python(value)
    return array


def _python_dictionary(value: Dictionary) -> dict[Any, Any]:
    """Keys as Python has them: lists as tuples, symbols as strings unless there is such a string too."""

    def hashable(key: Any) -> Any:
        match key:
            case Symbol():
                return key if key.name in value else SymbolName(key.name)
            case tuple():
                return tuple(map(hashable, key))
            case np.ndarray():
                return tuple(map(hashable, key)) if key.ndim > 1 else tuple(key.tolist())
        return key

    return {hashable(key): to_python(entry) for key, entry in value.items()}


_ESCAPED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", '"': '\\"', "\\": "\\\\"}


_UNSAFE = re.compile(f'["\\\\\n\t{HARMFUL}]')


def quoted(text: str) -> str:
    """A string as it is typed in a program."""
    return '"' + _UNSAFE.sub(lambda found: _ESCAPED.get(found[0]) or escape(found[0]), text) + '"'


def written(value: Any) -> str:
    """The value as a program would write it, in full; an integer and the float equal to it alike."""
    match value:
        case float() if value.is_integer() and abs(value) < LARGEST_INTEGER:
            return str(int(value))
        case Symbol():
            return f"'{value.name}"
        case np.ndarray() if value.ndim < 2:
            return _call("vector", value.tolist())
        case np.ndarray():
            return _call("matrix", map(tuple, value.tolist()))
        case tuple():
            return _call("list", value)
        case Dictionary():
            return _call("dict", [part for entry in value.items() for part in entry])
        case float():
            return repr(value)
    return show(value)


def _call(name: str, arguments: Iterable[Any]) -> str:
    return f"({' '.join([name, *map(written, arguments)])})"


def show(value: Any, digits: int = 6) -> str:
    """A short text for a person, as it is typed: numbers rounded, long vectors, lists and dictionaries cut."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return "nan" if math.isnan(value) else f"{value:.{digits}g}"
        case SymbolName():
            return str(value)
        case str():
            return quoted(value)
        case np.ndarray():
            return np.array2string(value, precision=4, threshold=12, edgeitems=3, max_line_width=100)
        case tuple() | list():
            shown = [show(item, digits) for item in value[:12]]
            return "(" + " ".join(shown + (["..."] if len(value) > 12 else [])) + ")"
        case Mapping():
            shown = [show(item, digits) for entry in [*value.items()][:6] for item in entry]
            return f"({' '.join(['dict', *shown, *(['...'] if len(value) > 6 else [])])})"
        case Distribution():
            pairs = [*zip(value.values, value.probabilities, strict=True)][:6]
            shown = [f"{show(item, digits)} {show(probability, 4)}" for item, probability in pairs]
            return f"<distribution {', '.join([*shown, *(['...'] if len(value) > 6 else [])]) or 'of no value'}>"
    return str(value)
