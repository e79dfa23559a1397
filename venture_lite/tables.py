"""Columns of numbers from .csv and .csv.gz files, read piece by piece.

A large file needs little more memory than its numbers. The first line names the columns; an empty cell is a missing
value and becomes NaN.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np

from venture_lite.errors import ParameterError, nearest

ROWS_AT_A_TIME = 20_000
MISSING = frozenset({"", "na", "n/a", "nan"})


def read_columns(path: Path, key: str | None) -> np.ndarray:
    """The columns that `key` names, separated by commas, or all numeric ones.

    A column is numeric if its first cell that is not empty holds a number.

    Returns:
        (rows,) for one column, (rows, columns) for several.

    Raises:
        ParameterError: the file cannot be read, a column is unknown, or a cell of a numeric column holds text.
    """
    try:
        with _open(path) as file:
            rows = csv.reader(file)
            header = next(rows, None)
            if not header:
                raise ParameterError(f"{path} is empty")
            pieces = list(_pieces(path, header, rows, key))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise ParameterError(f"{path} cannot be read: {error}") from error
    if not pieces:
        raise ParameterError(f"{path} has a line of column names and no data")
    table = np.concatenate(pieces)
    return table[:, 0] if table.shape[1] == 1 else table


def _open(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _pieces(path: Path, header: list[str], rows: Iterator[list[str]], key: str | None) -> Iterator[np.ndarray]:
    """(rows, columns) arrays, one after another."""
    chosen = None if key is None else _named_columns(path, header, key)
    first_row = 1
    while piece := list(itertools.islice(rows, ROWS_AT_A_TIME)):
        piece = [row for row in piece if row]
        _check_widths(path, header, piece, first_row)
        if chosen is None:
            chosen = _numeric_columns(path, header, piece)
        if piece:
            columns = list(zip(*piece, strict=True))
            yield np.stack([_numbers(path, header[place], columns[place], first_row) for place in chosen], axis=1)
        first_row += len(piece)


def _named_columns(path: Path, header: list[str], key: str) -> list[int]:
    names = [key] if key in header else [name.strip() for name in key.split(",")]
    for name in names:
        if name not in header:
            listed = f"its columns are {', '.join(header[:20])}" + (", ..." if len(header) > 20 else "")
            raise ParameterError(f"{path} has no column {name!r}", hint=nearest(name, header) or listed)
    return [header.index(name) for name in names]


def _numeric_columns(path: Path, header: list[str], piece: list[list[str]]) -> list[int]:
    chosen = []
    for place in range(len(header)):
        first = next((row[place] for row in piece if row[place].strip().lower() not in MISSING), None)
        if first is not None and _number(first) is not None:
            chosen.append(place)
    if not chosen:
        raise ParameterError(f"{path} has no numeric column; its columns are {', '.join(header[:20])}")
    return chosen


def _check_widths(path: Path, header: list[str], piece: list[list[str]], first_row: int) -> None:
    for row, cells in enumerate(piece, first_row):
        if len(cells) != len(header):
            raise ParameterError(f"{path}, row {row}: {len(cells)} cells, but {len(header)} column names")


def _numbers(path: Path, name: str, cells: tuple[str, ...], first_row: int) -> np.ndarray:
    try:
        if not any("_" in cell for cell in cells):
            return np.array(list(map(float, cells)))
    except ValueError:
        pass
    numbers = np.empty(len(cells))
    for place, cell in enumerate(cells):
        number = float("nan") if cell.strip().lower() in MISSING else _number(cell)
        if number is None:
            raise ParameterError(
                f"{path}, row {first_row + place}, column {name!r}: {cell!r} is not a number",
                hint="name the columns to read after a colon, FILE.csv:a,b; leave a missing cell empty",
            )
        numbers[place] = number
    return numbers


def _number(cell: str) -> float | None:
    """The number in a cell, as other programs read it: Python's 1_000 is not one."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
