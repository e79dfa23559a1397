"""Values for `{parameters}` from the command line: `-p NAME=VALUE`, `-d NAME=PATH[:KEY]` and `-d FILE`.

NaN is let through, since the trace names it where it is used; what cannot be read is an error that says what to do.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from venture_lite.errors import ParameterError, UsageError, nearest
from venture_lite.shell.tables import SUFFIXES, FileColumns, half_of_memory, read_columns, read_table, refuse_excess

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# a suffix that can be followed by `:KEY`
_KEYED = re.compile(r"(?P<path>.*\.(?:npy|npz|csv|csv\.gz|tsv|tsv\.gz|parquet)):(?P<key>.*)", re.IGNORECASE | re.DOTALL)


def parse_parameter(text: str) -> tuple[str, Any]:
    """`NAME=VALUE` with a JSON value: a number, true, false, a string, or a list of these.

    Raises:
        UsageError: no name, or a value that is none of these.
    """
    name, equals, value = text.partition("=")
    if not equals or not NAME.fullmatch(name):
        raise UsageError(f"{text!r} is not of the form NAME=VALUE", hint="-p sigma=0.5")
    try:
        parsed = json.loads(value, parse_constant=_refuse_constant, parse_int=_integer)
        _check_parsed(name, parsed)
    except RecursionError:
        raise UsageError(f"the value of {name} is nested too deeply") from None
    except ValueError as error:
        hint = f"""-p '{name}="{value}"' for a string""" if re.fullmatch(r"\w+", value) else "-p 'xs=[1, 2.5, 3]'"
        raise UsageError(
            f"the value of {name} is not a number, true, false, a string or a list: {_cut(value)}", hint=hint
        ) from error
    return name, parsed


def load_data(text: str, limit: int | None = None) -> FileColumns:
    """Arrays by name for `NAME=PATH[:KEY]`; all arrays of `FILE.npz`, all columns of a table `FILE.csv`.

    .npy gives its array; .npz the array KEY (or its only one); tables (`tables.py`) the columns KEY, separated by
    commas, or all numeric ones: one column as a vector, several as a matrix with one row a line. Without a name every
    column goes by its own. Single numbers come as such. `limit` is in bytes, half of the machine's memory by default.

    Raises:
        UsageError: the text is of another form, or the file of another kind.
        ParameterError: the file is missing, empty or damaged, or has no such key, or text among its numbers, or takes
            more memory than the limit.
    """
    limit = half_of_memory() if limit is None else limit
    before, equals, location = text.partition("=")
    name = before if equals and NAME.fullmatch(before) else None
    path, key = _split_key(location if name is not None else text)
    suffix = _suffix(path)
    if suffix is None:
        raise UsageError(f"{path} is not a .npy, .npz, .csv, .tsv or .parquet file (.csv.gz and .tsv.gz are read, too)")
    if name is None and (suffix == ".npy" or key is not None):
        raise UsageError(f"{text} needs a name for its data", hint=f"-d data={text}")
    try:
        _check_readable(path)
        if name is None and suffix in SUFFIXES:
            return _by_column(path, limit)
        return FileColumns(_load_arrays(path, suffix, name, key, limit))
    except ParameterError as error:
        if name is not None:
            error.message = f"the parameter {name}: {error.message}"
        raise


@dataclass(frozen=True, slots=True)
class Options:
    """What all `-p` and `-d` of a command give."""

    parameters: dict[str, Any]
    # each option as a person wrote it, and the parameters that it gives
    given: tuple[tuple[str, tuple[str, ...]], ...]
    # what a person should know of columns that are left out, by a spelling that a program could have for them
    left_out: dict[str, str]


def read_options(values: Sequence[str], data: Sequence[str], limit: int | None = None) -> Options:
    """The parameters of a command. `N` is the number of rows of the tables whose columns go by their own names, where
    nothing else is called so.

    Raises:
        UsageError: an option of another form; a name that is given twice, since one of the two would be lost; tables of
            different length, which leave open what N is.
        ParameterError: a file that cannot be read.
    """
    given = [(f"-p {text}", dict([parse_parameter(text)])) for text in values]
    files = [(text, load_data(text, limit)) for text in data]
    given += [(f"-d {text}", file.values) for text, file in files]
    left_out = {name: note for _, file in files for name, note in file.left_out.items()}
    rows = {text: file.rows for text, file in files if file.rows is not None}
    parameters: dict[str, Any] = {}
    for option, found in given:
        for name, value in found.items():
            if name in parameters:
                hint = "-d NAME=PATH:COLUMN gives a column another name" if option.startswith("-d") else None
                raise UsageError(f"the parameter {name} is given twice", hint=hint)
            parameters[name] = value
    if rows and "N" not in parameters:
        parameters["N"] = _common_length(rows)
    return Options(parameters, tuple((option, tuple(found)) for option, found in given), left_out)


def _common_length(rows: Mapping[str, int]) -> int:
    (first, length), *others = rows.items()
    for other, different in others:
        if different != length:
            raise UsageError(
                f"{first} has {length:,} rows and {other} {different:,}, so N could be either",
                hint=f"-d NAME={other} gives the columns of one a name, or -p N={length}",
            )
    return length


def _by_column(path: Path, limit: int) -> FileColumns:
    """Every column of a table under its own name, if that can stand in braces."""
    table = read_table(path, None, limit)
    left_out = {name: f"{reason} ({path})" for name, reason in table.left_out.items()}
    values: dict[str, Any] = {}
    for name, column in table.values.items():
        if NAME.fullmatch(name):
            values[name] = column
        else:
            spelt = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
            told = f"the column {name!r} of {path} cannot stand in braces"
            left_out[spelt] = f"{told}: rename it, or give it a name, -d NAME={path}:{name}"
    return FileColumns(values, table.rows, left_out)


def _load_arrays(path: Path, suffix: str, name: str | None, key: str | None, limit: int) -> dict[str, Any]:
    if suffix == ".npy":
        if key is not None:
            raise UsageError(f"{path} holds one array, so :{key} means nothing", hint=f"-d {name}={path}")
        return {str(name): _plain(_load_numpy(path), f"{path}")}
    if suffix == ".npz":
        return _load_npz(path, name, key, limit)
    return {str(name): read_columns(path, key, limit)}


def _cut(text: str) -> str:
    """As much of a value as one reads in a message."""
    return text if len(text) <= 60 else f"{text[:60]}..."


def _integer(digits: str) -> int | float:
    """An integer of 64 bits; a longer one as a float, since Python would spend a while on a million digits."""
    return int(digits) if len(digits.lstrip("-")) < 20 else float(digits)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


def _check_parsed(name: str, value: Any) -> None:
    if isinstance(value, list):
        for item in value:
            _check_parsed(name, item)
    elif isinstance(value, float) and math.isinf(value):
        raise UsageError(f"the value of {name} is too large for a float")
    elif value is None or isinstance(value, dict):
        kind = "null" if value is None else "an object"
        raise UsageError(f"the value of {name} holds {kind}; it can be a number, true, false, a string or a list")


def _split_key(location: str) -> tuple[Path, str | None]:
    """A path may itself hold colons: the whole text wins if there is such a file."""
    if not os.path.exists(location) and (match := _KEYED.fullmatch(location)):
        return Path(match["path"]), match["key"]
    return Path(location), None


def _suffix(path: Path) -> str | None:
    name = path.name.lower()
    return next((suffix for suffix in (".npy", ".npz", *SUFFIXES) if name.endswith(suffix)), None)


def _check_readable(path: Path) -> None:
    if os.path.isdir(path):
        raise ParameterError(f"{path} is a folder, not a data file")
    # other than `Path.exists`, this says of a name too long for a file that there is none
    if not os.path.exists(path):
        siblings = os.listdir(path.parent) if os.path.isdir(path.parent) else []
        raise ParameterError(f"there is no file {path}", hint=nearest(path.name, siblings))
    if path.stat().st_size == 0:
        raise ParameterError(f"{path} is empty")


@contextlib.contextmanager
def _reading(what: str, damage: str) -> Iterator[None]:
    """Says what is wrong with an array that NumPy does not read."""
    try:
        yield
    except MemoryError as error:
        raise ParameterError(f"{what} needs more memory than there is, or is damaged") from error
    except Exception as error:
        # a header is an expression of Python: what it says wrong comes as whatever its reader, or NumPy, meets first
        if "Object arrays" in str(error):
            raise ParameterError(f"{what} holds Python objects, which are not loaded: they could run code") from error
        raise ParameterError(f"{what} cannot be read: {damage}") from error


def _load_numpy(path: Path) -> Any:
    """`numpy.load` without pickles, which could run code."""
    with _reading(f"{path}", "it is damaged, or not a NumPy file"):
        return np.load(path, allow_pickle=False)


def _load_npz(path: Path, name: str | None, key: str | None, limit: int) -> dict[str, Any]:
    archive = _load_numpy(path)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ParameterError(f"{path} holds one array, not several by name; its suffix should be .npy")
    with archive:
        entries = archive.files
        if name is None:
            wanted = {entry: entry for entry in entries}
        elif key is None and len(entries) != 1:
            raise ParameterError(
                f"{path} holds several arrays: {', '.join(entries) or 'none'}", hint=f"-d {name}={path}:KEY"
            )
        elif key is not None and key not in entries:
            hint = nearest(key, entries) or f"it holds {', '.join(entries)}"
            raise ParameterError(f"{path} has no array {key}", hint=hint)
        else:
            wanted = {name: key or entries[0]}
        _refuse_what_expands(path, archive, wanted.values(), limit)
        return {called: _entry(path, archive, entry) for called, entry in wanted.items()}


def _refuse_what_expands(path: Path, archive: Any, entries: Iterable[str], limit: int) -> None:
    """An archive is compressed: its arrays say how large they are before they are read."""
    total = 0
    for entry in entries:
        try:
            with archive.zip.open(f"{entry}.npy") as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(file)
        except Exception:
            # what is wrong with it is told when it is read
            continue
        row = math.prod(shape[1:]) * dtype.itemsize
        if total + math.prod(shape[:1]) * row > limit:
            refuse_excess(Path(f"{path}:{entry}"), (limit - total) // max(row, 1) + 1, limit)
        total += math.prod(shape[:1]) * row


def _entry(path: Path, archive: Any, key: str) -> Any:
    with _reading(f"array {key} of {path}", "the file is damaged"):
        array = archive[key]
    if not isinstance(array, np.ndarray):
        others = [entry for entry in archive.files if entry != key]
        raise ParameterError(f"{key} of {path} is no array", hint=f"it holds {', '.join(others)}" if others else None)
    return _plain(array, f"array {key} of {path}")


def _plain(array: np.ndarray, where: str) -> Any:
    """A number for an array without axes; anything else as it is."""
    if array.dtype.kind == "c" or array.dtype.names:
        raise ParameterError(f"{where} is of {array.dtype}: a parameter can be of numbers, truth values or text")
    return array.item() if array.ndim == 0 else array
