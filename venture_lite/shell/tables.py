"""Columns of tables: .csv and .tsv files, also compressed, read piece by piece, and .parquet files.

A large file needs little more memory than what it says. The first line names the columns. A column whose first cell
that is not empty holds a number is numeric, and an empty cell of it NaN, a missing value; any other column holds
strings, and an empty cell of it is None. Cells are divided by commas, in a .tsv file by tabs, and by semicolons where
the line of names has these and no commas; numbers may then have a comma for their point, as such files do.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import itertools
import math
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from venture_lite.errors import ParameterError, nearest
from venture_lite.program.supplied import series_array

CELLS_AT_A_TIME = 200_000
# what is read without a line break is no table, and must not fill the memory
LONGEST_LINE = 64_000_000
MISSING = frozenset({"", "na", "n/a", "nan"})
# about what Python needs for a string beside its characters
BYTES_OF_A_STRING = 60
SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")

FileColumn = np.ndarray | list[str | None]


@dataclass(slots=True)
class FileColumns:
    """What a file gives, by name."""

    values: dict[str, Any] = field(default_factory=dict)
    # of a table, every column of which was read
    rows: int | None = None
    # why a column is left out: it holds numbers and text, or what no program can read, or its name cannot be written
    left_out: dict[str, str] = field(default_factory=dict)


def half_of_memory() -> int:
    """Bytes beyond which data are not read: half of what the machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):
        return 2**33


def refuse_excess(path: Path, row: int, limit: int) -> None:
    """Raises ParameterError: what a file holds up to a row takes more memory than the limit."""
    raise ParameterError(
        f"{path}, row {row:,}: the data up to here take {limit / 2**20:,.0f} MB of memory, the limit",
        hint="read fewer columns, FILE:a,b; or --memory-mb M allows more",
    )


def read_table(path: Path, key: str | None, limit: int) -> FileColumns:
    """The columns that `key` names, separated by commas, or all of them.

    Raises:
        ParameterError: the file cannot be read or holds more than `limit` bytes, or a column is unknown.
    """
    return (_read_parquet if path.suffix.lower() == ".parquet" else _read_text)(path, key, limit)


def read_columns(path: Path, key: str | None, limit: int) -> FileColumn:
    """The columns that `key` names, separated by commas, or all numeric ones.

    Returns:
        (rows,) for one column, a list where it holds strings; (rows, columns) for several, which must be numeric.

    Raises:
        ParameterError: the file cannot be read or holds more than `limit` bytes, a column is unknown, or a cell of a
            numeric column holds text.
    """
    table = read_table(path, key, limit)
    for reason in table.left_out.values():
        if key is not None or isinstance(reason, _NotANumber):
            hint = "name the columns to read after a colon, FILE:a,b; leave a missing cell empty"
            raise ParameterError(f"{path}, {reason}" if isinstance(reason, _NotANumber) else reason, hint=hint)
    columns: dict[str, FileColumn] = table.values
    if key is None:
        columns = {name: column for name, column in columns.items() if isinstance(column, np.ndarray)}
    if not columns:
        raise ParameterError(f"{path} has no numeric column; its columns are {', '.join([*table.values][:20])}")
    if len(columns) == 1:
        return next(iter(columns.values()))
    texts = [name for name, column in columns.items() if not isinstance(column, np.ndarray)]
    if texts:
        hint = "name each by itself: -d NAME=FILE:COLUMN"
        raise ParameterError(f"{path}: the column {texts[0]!r} holds strings, and a matrix holds numbers", hint=hint)
    return np.column_stack([np.asarray(column, float) for column in columns.values()])


# ------------------------------------------------------------------------------------------------------ text files


class _NotANumber(str):
    """Says where a numeric column holds text."""


def _read_text(path: Path, key: str | None, limit: int) -> FileColumns:
    try:
        with _open(path) as file:
            first = file.readline(LONGEST_LINE)
            mark = _mark(path, first)
            rows = csv.reader(itertools.chain([first], _lines(path, file)), delimiter=mark)
            header = next(rows, None)
            if not header:
                raise ParameterError(f"{path} is empty")
            return _columns(path, header, rows, key, limit, mark == ";")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise ParameterError(f"{path} cannot be read: {error}") from error


def _open(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _mark(path: Path, names: str) -> str:
    """What divides cells."""
    if ".tsv" in path.suffixes[-2:]:
        return "\t"
    unquoted = "".join(names.split('"')[::2])
    return ";" if ";" in unquoted and "," not in unquoted else ","


def _lines(path: Path, file: TextIO) -> Iterator[str]:
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), ""), 1):
        if len(line) == LONGEST_LINE and not line.endswith("\n"):
            raise ParameterError(f"{path}, row {number}: the line does not end")
        yield line


def _columns(
    path: Path, header: list[str], rows: Iterator[list[str]], key: str | None, limit: int, has_decimal_commas: bool
) -> FileColumns:
    names = [name.strip() for name in header]
    chosen = list(range(len(names))) if key is None else _named(path, names, key)
    columns = {place: _Column(names[place], has_decimal_commas) for place in chosen}
    at_a_time = max(1, CELLS_AT_A_TIME // len(names))
    row = 0
    # csv reads an empty line as a row without cells
    filled = filter(None, rows)
    while piece := list(itertools.islice(filled, at_a_time)):
        for number, cells in enumerate(piece, row + 1):
            if len(cells) != len(names):
                raise ParameterError(f"{path}, row {number}: {len(cells)} cells, but {len(names)} column names")
        by_place = list(zip(*piece, strict=True))
        for place, column in columns.items():
            column.add(by_place[place], row + 1)
        row += len(piece)
        if sum(column.bytes for column in columns.values()) > limit:
            refuse_excess(path, row, limit)
    if not row:
        raise ParameterError(f"{path} has a line of column names and no data")
    table = FileColumns(rows=row)
    for column in columns.values():
        if column.mistake is not None:
            table.left_out[column.name] = column.mistake
        else:
            table.values[column.name] = column.finish()
    return table


def _named(path: Path, names: list[str], key: str) -> list[int]:
    wanted = [key] if key in names else [name.strip() for name in key.split(",")]
    for name in wanted:
        if name not in names:
            listed = f"its columns are {', '.join(names[:20])}" + (", ..." if len(names) > 20 else "")
            raise ParameterError(f"{path} has no column {name!r}", hint=nearest(name, names) or listed)
    return [names.index(name) for name in wanted]


class _Column:
    """One column while it is read. Mutable: what it holds is known from its first cell that is not empty."""

    def __init__(self, name: str, has_decimal_commas: bool) -> None:
        self.name = name
        self.bytes = 0
        # the first cell of a numeric column that is no number
        self.mistake: _NotANumber | None = None
        self._has_decimal_commas = has_decimal_commas
        self._is_numeric: bool | None = None
        self._numbers: list[np.ndarray] = []
        self._texts: list[str | None] = []
        # the same string once: a column of groups has few
        self._known: dict[str, str] = {}

    def add(self, cells: tuple[str, ...], first_row: int) -> None:
        """The next cells."""
        if self._is_numeric is None:
            first = next((cell for cell in cells if cell.strip().lower() not in MISSING), None)
            if first is not None:
                self._is_numeric = self._number(first) is not None
                # rows before the first value were missing ones
                self._texts = [] if self._is_numeric else [None] * sum(map(len, self._numbers))
        if self.mistake is not None:
            return
        if self._is_numeric is False:
            self._add_texts(cells)
        else:
            self._add_numbers(cells, first_row)

    def _add_texts(self, cells: tuple[str, ...]) -> None:
        for cell in cells:
            text = cell.strip()
            if text and text not in self._known:
                self._known[text] = text
                self.bytes += BYTES_OF_A_STRING + len(text)
            self._texts.append(self._known[text] if text else None)
        self.bytes += 8 * len(cells)

    def _add_numbers(self, cells: tuple[str, ...], first_row: int) -> None:
        self.bytes += 8 * len(cells)
        with contextlib.suppress(ValueError):
            if not any("_" in cell for cell in cells):
                self._numbers.append(np.array(list(map(float, cells))))
                return
        numbers = [math.nan if cell.strip().lower() in MISSING else self._number(cell) for cell in cells]
        if None not in numbers:
            self._numbers.append(np.array(numbers))
            return
        place = numbers.index(None)
        self.mistake = _NotANumber(f"row {first_row + place}, column {self.name!r}: {cells[place]!r} is not a number")

    def _number(self, cell: str) -> float | None:
        """The number in a cell, as other programs read it: Python's 1_000 is not one."""
        if self._has_decimal_commas and "." not in cell:
            cell = cell.replace(",", ".", 1)
        try:
            return None if "_" in cell else float(cell)
        except ValueError:
            return None

    def finish(self) -> FileColumn:
        return self._texts if self._is_numeric is False else np.concatenate(self._numbers)


# --------------------------------------------------------------------------------------------------------- parquet


def _read_parquet(path: Path, key: str | None, limit: int) -> FileColumns:
    """By polars or pandas, whichever is there."""
    try:
        names, rows, read = _parquet_reader(path)
    except ParameterError:
        raise
    except Exception as error:
        raise ParameterError(f"{path} cannot be read: it is damaged, or no Parquet file") from error
    chosen = names if key is None else [names[place] for place in _named(path, names, key)]
    if rows * 8 * len(chosen) > limit:
        refuse_excess(path, limit // (8 * len(chosen)) + 1, limit)
    if not rows:
        raise ParameterError(f"{path} has columns and no data")
    table = FileColumns(rows=rows)
    for name in chosen:
        column = _plain(series_array(read(name)))
        if column is None:
            table.left_out[name] = f"the column {name} of {path} holds neither numbers, truth values nor strings"
        else:
            table.values[name] = column
    return table


def _parquet_reader(path: Path) -> tuple[list[str], int, Any]:
    """The names, the number of rows, and a function that gives a column as a series."""
    try:
        import polars
    except ImportError:
        return _by_pandas(path)
    frame = polars.scan_parquet(path)
    rows = int(frame.select(polars.len()).collect().item())
    return list(frame.collect_schema().names()), rows, lambda name: frame.select(name).collect()[name]


def _by_pandas(path: Path) -> tuple[list[str], int, Any]:
    try:
        import pandas  # type: ignore[import-untyped]

        frame = pandas.read_parquet(path)
    except ImportError as error:
        hint = "pip install polars, or write the table as .csv"
        raise ParameterError(f"{path} cannot be read: neither polars nor pandas reads it here", hint=hint) from error
    return [str(name) for name in frame.columns], len(frame), frame.__getitem__


def _plain(array: np.ndarray) -> FileColumn | None:
    """Numbers or truth values as an array, strings as a list; None for anything else."""
    if array.dtype.kind in "biuf" and array.ndim == 1:
        return array if array.dtype.kind == "b" else array.astype(np.float64)
    listed = list(array)
    kinds = {type(value) for value in listed if value is not None}
    if kinds and kinds <= {str}:
        return listed
    if kinds <= {bool, int, float}:
        return np.array([np.nan if value is None else float(value) for value in listed])
    return None
