"""What moves with a block, and what is due to it, as recorded operations: numbers, and columns of many rows.

The nodes that move have places (`interpreter/runs.py`). A place holds a number, or is one of a column's; rows that read
many places read the columns in which these lie, in part, put together, or by an index, and what is due to the places
goes back the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from venture_lite.blocks.block_text import BlockOperations
from venture_lite.blocks.passes import NUMBERS
from venture_lite.procedures.straight_line import Node


class NotOneFunction(Exception):
    """A block is left to the passes over its rows."""


def are_numbers(operands: Iterable[Any]) -> bool:
    """True if all are numbers, or operations that make numbers."""
    return all(each.__class__ is Node or each.__class__ in NUMBERS for each in operands)


def refuse_others(operands: Iterable[Any]) -> None:
    """Raise NotOneFunction where one of them is no number."""
    if not are_numbers(operands):
        raise NotOneFunction


def is_nothing(cotangent: Any) -> bool:
    """True if a cotangent is 0 in all states. It may be another constant: that of `m` in `[factor m]` is 1."""
    return cotangent.__class__ is not Node and bool(cotangent == 0.0)


class _Piece:
    """A number, or a column. Mutable: what is due to it is added up."""

    def __init__(self, value: Any, count: int, is_column: bool) -> None:
        self.value, self.count, self.is_column = value, count, is_column
        # what is due to all of it, and to parts of a column, by their bounds
        self.due: Any = 0.0
        self.parts: dict[tuple[int, int], Any] = {}

    def add(self, start: int, stop: int, part: Any) -> None:
        if (start, stop) == (0, self.count):
            self.due = self.due + part
        else:
            self.parts[start, stop] = self.parts.get((start, stop), 0.0) + part


class BlockValues:
    """Values and cotangents by place. Mutable."""

    def __init__(self, operations: BlockOperations, nowhere: int) -> None:
        """`nowhere` is the place of what does not move, which is the last one."""
        self._operations = operations
        self._pieces: list[_Piece] = []
        # of each place its piece, -1 for none, and where in that it is
        self._piece_of, self._offsets = np.full(nowhere + 1, -1), np.zeros(nowhere + 1, int)
        # arrays of positions, each once, so that equal reads are one operation
        self._positions: dict[bytes, np.ndarray] = {}

    def hold(self, place: int, number: Any) -> None:
        self._piece_of[place] = len(self._pieces)
        self._pieces.append(_Piece(number, 1, False))

    def hold_column(self, places: np.ndarray, column: Any) -> None:
        self._piece_of[places] = len(self._pieces)
        self._offsets[places] = np.arange(len(places))
        self._pieces.append(_Piece(column, len(places), True))

    # ----------------------------------------------------------------------------------------------------- values

    def number(self, place: int) -> Any:
        piece, offset = self._at(place)
        return self._operations.item(piece.value, offset) if piece.is_column else piece.value

    def column(self, places: np.ndarray) -> Any:
        """Of many places, the same or different ones. Raises NotOneFunction where one of them does not move."""
        pieces, at = self._within(places)
        whole = pieces[0].value if len(pieces) == 1 and pieces[0].is_column else self._joined([p.value for p in pieces])
        if (stretch := _stretch(at)) is None:
            return self._operations.taken(whole, self._once(at))
        start, stop, is_reversed = stretch
        part = self._between(whole, start, stop, sum(piece.count for piece in pieces))
        return self._operations.reversed(part) if is_reversed else part

    def _at(self, place: int) -> tuple[_Piece, int]:
        return self._pieces[self._piece_of.item(place)], self._offsets.item(place)

    def _within(self, places: np.ndarray) -> tuple[list[_Piece], np.ndarray]:
        """The pieces in which some places lie, and where in these, put together, each of them is."""
        of = self._piece_of[places]
        numbers = np.unique(of)
        if numbers[0] < 0:
            raise NotOneFunction
        pieces = [self._pieces[number] for number in numbers.tolist()]
        starts = np.zeros(len(self._pieces), int)
        starts[numbers] = np.cumsum([0, *(piece.count for piece in pieces[:-1])])
        return pieces, starts[of] + self._offsets[places]

    def _joined(self, values: Sequence[Any]) -> Any:
        return self._operations.column_of(_joined, *values)

    def _between(self, column: Any, start: int, stop: int, count: int) -> Any:
        return column if stop - start == count else self._operations.between(column, start, stop)

    def _once(self, positions: np.ndarray) -> np.ndarray:
        return self._positions.setdefault(positions.tobytes(), positions)

    # ------------------------------------------------------------------------------------------------- cotangents

    def add(self, place: int, part: Any) -> None:
        piece, offset = self._at(place)
        piece.add(offset, offset + 1, part)

    def add_column(self, places: np.ndarray, part: Any) -> None:
        """A part (n,), or one number for each, for n places, which may be the same."""
        operations = self._operations
        pieces, at = self._within(places)
        total = sum(piece.count for piece in pieces)
        part = part if operations.is_column(part) else operations.column_of(np.full, len(at), part)
        start, stop, is_reversed = _stretch(at) or (0, total, None)
        if is_reversed is None:
            part = operations.summed_by(self._once(at), part, total)
        elif is_reversed:
            part = operations.reversed(part)
        begin = 0
        for piece in pieces:
            low, high = max(start, begin), min(stop, begin + piece.count)
            if low < high and piece.is_column:
                piece.add(low - begin, high - begin, self._between(part, low - start, high - start, stop - start))
            elif low < high:
                piece.add(0, 1, operations.item(part, low - start))
            begin += piece.count

    def due(self, place: int) -> Any:
        """What is due to a number; 0.0 is nothing."""
        return self._at(place)[0].due

    def due_column(self, places: np.ndarray) -> Any:
        """What is due to a column, whose places they are: a column, or 0.0 for nothing."""
        piece, _ = self._at(places.item(0))
        if not piece.parts:
            return piece.due
        bounds = sorted(piece.parts)
        values = [piece.parts[each] for each in bounds]
        if [0, *(stop for _, stop in bounds)] == [*(start for start, _ in bounds), piece.count]:
            found = self._joined(values)
        else:
            found = self._operations.column_of(_put_together, piece.count, tuple(bounds), *values)
        return piece.due + found


def _stretch(at: np.ndarray) -> tuple[int, int, bool] | None:
    """The bounds of positions that follow one another, and whether they do so in reverse."""
    least, most = int(at.min()), int(at.max()) + 1
    if most - least == len(at):
        for is_reversed, step in ((False, 1), (True, -1)):
            if (np.diff(at) == step).all():
                return least, most, is_reversed
    return None


def _joined(*parts: Any) -> np.ndarray:
    return np.concatenate([part if part.__class__ is np.ndarray else (part,) for part in parts])


def _put_together(count: int, bounds: Sequence[tuple[int, int]], *parts: Any) -> np.ndarray:
    found = np.zeros(count)
    for (start, stop), part in zip(bounds, parts, strict=True):
        found[start:stop] += part
    return found
