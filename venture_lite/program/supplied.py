"""What a caller supplies for `{name}`: NumPy arrays, frames, series and plain Python, brought to what the index
expressions of `parameters.py` read.

A frame's columns are parameters under their own names, and the frame's name stands for the matrix of them, if all are
numbers. Nothing is converted before the program asks for it, so that a frame may hold columns that no program could
read. Missing values of every kind (masked, NaN, null, NA) become NaN or None, which are refused where they are used.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from venture_lite.errors import ParameterError
from venture_lite.values import Symbol, from_python, is_value

NAME = re.compile(r"[^\W\d]\w*")
LARGEST_INTEGER = 2**63 - 1


class Parameters(Mapping[str, Any]):
    """Values by name. Asking for one that cannot be read, or that has two meanings, raises ParameterError.

    `around` is looked in for what was not given: a notebook's variables. `left_out` says by name why something was not
    given. Mutable: it notes what a program reads.
    """

    def __init__(
        self,
        given: Mapping[str, Any],
        around: Mapping[str, Any] | None = None,
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        self._around = around or {}
        # the names that were asked for
        self.used: set[str] = set()
        # those that were read whole, which rows were of others, and of which of these by loops
        self._whole: set[str] = set()
        self._rows: dict[str, np.ndarray] = {}
        self._in_loops: set[str] = set()
        self._sources: dict[str, list[_Source]] = {}
        self._converted: dict[str, Any] = {}
        # columns whose names cannot be written in a program, as a person would spell them there
        self._misnamed: dict[str, str] = dict(left_out or {})
        for name, value in given.items():
            self._enter(name, _Source(f"the parameter {name}", partial(converted, name, value)))
            if is_frame(value):
                self._enter_columns(name, value)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Parameters:
        return given if isinstance(given, Parameters) else cls(given)

    def _enter(self, name: str, source: _Source) -> None:
        self._sources.setdefault(unicodedata.normalize("NFKC", name), []).append(source)

    def _enter_columns(self, frame: str, value: Any) -> None:
        for column in value.columns:
            if isinstance(column, str) and NAME.fullmatch(column):
                told = f"the column {column} of {frame}"
                self._enter(column, _Source(told, partial(_column, value, column)))
            else:
                spelt = re.sub(r"\W+", "_", str(column)).strip("_")
                self._misnamed[spelt] = f"the column {column!r} of {frame} is no name of the language: rename it"

    def hint(self, name: str) -> str | None:
        """What to try where a name is not there."""
        return self._misnamed.get(name)

    def note_rows(self, name: str, count: int, positions: Any, in_loop: bool) -> None:
        """Rows of a parameter, counted from 1, were read; `count` is how many it has."""
        if name not in self._rows:
            self._rows[name] = np.zeros(count, bool)
        self._rows[name][positions - 1] = True
        if in_loop:
            self._in_loops.add(name)

    def note_whole(self, name: str) -> None:
        """All of a parameter was read at once."""
        self._whole.add(name)

    def unread(self) -> list[str]:
        """A line for each parameter that loops read, and not to its end."""
        return [
            f"the program reads {int(read.sum()):,} of the {len(read):,} rows of {name}"
            for name, read in self._rows.items()
            if name in self._in_loops - self._whole and not read.all()
        ]

    def __getitem__(self, name: str) -> Any:
        self.used.add(name)
        if name not in self._converted:
            sources = self._sources.get(name)
            if sources is None:
                return converted(name, self._around[name])
            if len(sources) > 1:
                told = " and ".join(source.told for source in sources)
                raise ParameterError(f"{name} has two meanings: {told}", hint="rename one of them")
            self._converted[name] = sources[0].read()
        return self._converted[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._sources
        yield from (name for name in self._around if name not in self._sources and not name.startswith("_"))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._sources or name in self._around


class _Source(NamedTuple):
    """Where a name's value comes from."""

    told: str
    read: Callable[[], Any]


def _column(frame: Any, name: str) -> Any:
    return converted(name, frame[name])


def is_frame(value: Any) -> bool:
    """Whether a value has named columns, as frames of pandas and polars do."""
    return hasattr(value, "columns") and hasattr(value, "to_numpy") and getattr(value, "ndim", 2) == 2


def converted(name: str, value: Any) -> Any:
    """A number, a string, a list, or an array of numbers, booleans or strings, for what was given.

    Raises ParameterError for what is none of these and cannot be made one.
    """
    match value:
        case np.ma.MaskedArray():
            return _array(name, _unmasked(value))
        case np.ndarray():
            return _array(name, value)
        case bool() | int() | float() | str() | Symbol() | list() | tuple() | range() | Mapping() | None:
            return value
        case np.generic():
            return _array(name, np.asarray(value)).item()
    if is_frame(value):
        return _matrix(name, value)
    if hasattr(value, "to_numpy") and hasattr(value, "__len__") and not hasattr(value, "dims"):
        return _array(name, series_array(value))
    if hasattr(value, "__array__"):
        return _array(name, np.asarray(value))
    plain = from_python(value)
    if plain is None or is_value(plain):
        return plain
    if isinstance(plain, (Real, Decimal)):
        raise ParameterError(f"{name} is too large for a float", hint="scale it, or pass its logarithm")
    hint = "pass x.toarray()" if hasattr(value, "toarray") else "numbers, strings, lists, arrays, series and frames can"
    raise ParameterError(f"{name} is a {type(value).__name__}, which no program can read", hint=hint)


def _array(name: str, array: np.ndarray) -> np.ndarray:
    """The array, if the language has values for its entries."""
    kind = array.dtype.kind
    if kind == "u" and array.size and int(array.max()) > LARGEST_INTEGER:
        return array.astype(np.float64)
    if kind in "biufOUT":
        return array
    what, hint = _UNREADABLE.get(kind, (f"entries of type {array.dtype}", "pass numbers or strings"))
    raise ParameterError(f"{name} holds {what}, which the language has no values for", hint=hint)


_UNREADABLE = {
    "M": ("dates", "pass numbers, for example days since the first: (t - t[0]) / np.timedelta64(1, 'D')"),
    "m": ("spans of time", "pass numbers, for example days: x / np.timedelta64(1, 'D')"),
    "c": ("complex numbers", "pass their real and imaginary parts"),
    "S": ("bytes", "pass strings: x.astype(str)"),
    "V": ("records", "pass each field by itself: a=x['a'], b=x['b']"),
}


def _unmasked(array: np.ma.MaskedArray[Any, Any]) -> np.ndarray:
    """Masked entries as NaN among numbers, else as None."""
    if not np.ma.is_masked(array):
        return np.asarray(array.data)
    wanted = np.float64 if array.dtype.kind in "iuf" else object
    filled = np.array(array.data, dtype=wanted)
    filled[np.ma.getmaskarray(array)] = np.nan if wanted is np.float64 else None
    return filled


def series_array(series: Any) -> np.ndarray:
    """A column of pandas or polars; null and NA as NaN among numbers, else as None."""
    if hasattr(series, "isna"):
        missing = np.asarray(series.isna())
        if missing.any() and getattr(series.dtype, "kind", "O") in "iuf":
            return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    else:
        missing = np.asarray(series.is_null().to_numpy())
    array = np.asarray(series.to_numpy())
    if array.dtype.kind == "O" and missing.any():
        array = array.copy()
        array[missing] = None
    return array


def _matrix(name: str, frame: Any) -> np.ndarray:
    """A frame of numbers as one matrix (rows, columns)."""
    columns = {str(column): series_array(frame[column]) for column in frame.columns}
    other = [column for column, array in columns.items() if array.dtype.kind not in "biuf"]
    if other:
        raise ParameterError(
            f"{name} is no matrix: its column{'s' * (len(other) > 1)} {', '.join(other)} "
            f"hold{'s' * (len(other) == 1)} other things than numbers",
            hint=f"its columns are parameters: {{{next(iter(columns))}[n]}}",
        )
    return np.column_stack([array.astype(np.float64) for array in columns.values()]) if columns else np.empty((0, 0))
