"""Both passes over rows that take turns, as recorded operations over columns.

What leads to the values of steps, and to their slopes by what they read, is written out over columns. What is solved
step by step, forward the values and backward what is due to them, is called (`recursions.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from venture_lite.blocks.block_columns import RowsTogether, floats_of
from venture_lite.blocks.block_record import BlockRecord
from venture_lite.blocks.block_values import is_nothing
from venture_lite.blocks.loops import UNIT
from venture_lite.blocks.recursions import Recursion
from venture_lite.procedures.straight_line import Node, applied, needed
from venture_lite.trace.table import listed


@dataclass(frozen=True, slots=True, eq=False)
class Recurring:
    """A recursion whose values are recorded."""

    recursion: Recursion
    # by name what is read from outside, and the values before the first step
    outside: Mapping[str, Any]
    starts: Sequence[Any]
    # the slopes by what steps made, where these are known before; and by number what they made, a column each
    slopes: Sequence[Any]
    made: Mapping[int, Any]
    # what they made some steps before
    shifted: dict[tuple[int, int], Any] = field(default_factory=dict)


class RowsInTurn:
    """Of recursions."""

    def __init__(self, record: BlockRecord, together: RowsTogether) -> None:
        self._record, self._together = record, together
        self._operations, self._values, self._nowhere = record.operations, record.values, record.nowhere

    def move(self, recursion: Recursion) -> Recurring:
        """The values of rows that take turns."""
        operations = self._operations
        outside, starts = self._outside(recursion), self._starts(recursion)
        slopes: list[Any] = []
        if recursion.is_affine:
            # as if all that steps make were 0
            given = dict.fromkeys(recursion.names_of_made(), 0.0) | outside | {UNIT: 1.0}
            slopes = self._again(recursion, recursion.inner_slopes, given)
            offsets = self._again(recursion, recursion.made_values, given)
            whole = operations.single(recursion.solved_values, *slopes, *offsets, *starts)
        else:
            whole = operations.single(partial(_looped, recursion, [*outside]), *outside.values(), *starts)
        made = {number: operations.column_at(whole, at) for at, number in enumerate(recursion.made)}
        found = Recurring(recursion, outside, starts, slopes, made)
        for number in recursion.numbers:
            copied = recursion.copied(number)
            value = made[number] if copied is None else self._shifted(found, *copied)
            self._values.hold_column(recursion.places(number), value)
        return found

    def back(self, recurring: Recurring) -> None:
        """Pass what is due to rows that take turns on to what they read."""
        operations, values, recursion = self._operations, self._values, recurring.recursion
        due = [values.due_column(recursion.places(number)) for number in recursion.numbers]
        if all(map(is_nothing, due)):
            return
        reads = recursion.reads_of_made()
        made = {read.name: self._shifted(recurring, read.of, read.lag) for read in reads if read.of is not None}
        given = {**recurring.outside, **made, UNIT: 1.0}
        slopes = recurring.slopes or self._again(recursion, recursion.inner_slopes, given)
        whole = operations.single(recursion.solved_cotangents, *slopes, *due)
        columns = {number: operations.column_at(whole, at) for at, number in enumerate(recursion.made)}
        outer = self._again(recursion, recursion.outer_slopes, given)
        for (number, read), slope in zip(recursion.outer, outer, strict=True):
            places, part = listed(read.places), columns[number]
            if not np.any(places != self._nowhere):
                continue
            if not read.is_shared:
                values.add_column(places, part * slope)
            elif operations.is_column(slope):
                values.add(int(places), operations.single(_product, part, slope))
            else:
                values.add(int(places), self._record.sum(part, recursion.count) * slope)
        for (number, read), slope in zip(recursion.inner, slopes, strict=True):
            for step in range(read.lag):
                first = operations.item(slope, step) if operations.is_column(slope) else slope
                self._record.add(recursion.place_of_start(read, step), operations.item(columns[number], step) * first)
        for number, read in recursion.copies.items():
            for step in range(0 if is_nothing(due[number]) else read.lag):
                self._record.add(recursion.place_of_start(read, step), operations.item(due[number], step))

    # --------------------------------------------------------------------------------------------------- reading

    def _shifted(self, recurring: Recurring, of: int, lag: int) -> Any:
        """What steps made some steps before."""
        if not lag:
            return recurring.made[of]
        if (of, lag) not in recurring.shifted:
            shifted = partial(_shifted, recurring.recursion, of, lag)
            recurring.shifted[of, lag] = self._operations.apply(shifted, recurring.made[of], *recurring.starts)
        return recurring.shifted[of, lag]

    def _outside(self, recursion: Recursion) -> dict[str, Any]:
        """By name what steps read and do not make."""
        operations, found = self._operations, dict[str, Any]()
        for read in recursion.reads_outside():
            places = listed(read.places)
            if np.any(places != self._nowhere):
                found[read.name] = self._values.number(int(places)) if read.is_shared else self._values.column(places)
            elif read.is_shared:
                found[read.name] = self._record.stored(read.column, int(read.rows))
            else:
                found[read.name] = operations.gathered(read.column, partial(floats_of, read.column, read.rows))
        for number, kind in enumerate(recursion.kinds):
            for name in recursion.standing(number):
                standing = partial(_standing, recursion, number, name)
                found[name] = operations.gathered_of(kind.still_columns, standing, recursion.is_column(name))
        return found

    def _starts(self, recursion: Recursion) -> list[Any]:
        """The values before the first step."""
        columns = [recursion.kinds[number].column for number, _ in recursion.waiting]
        return [
            self._values.number(place) if place != self._nowhere else self._record.stored(column, row)
            for column, (row, place) in zip(columns, recursion.starts, strict=True)
        ]

    def _again(self, recursion: Recursion, values: Sequence[Any], given: Mapping[str, Any]) -> list[Any]:
        """What a recursion recorded, of what is known by these names."""
        found: dict[int, Any] = {}

        def of(value: Any) -> Any:
            return found[value.place] if value.__class__ is Node else value

        for node in needed(values):
            operands = [*map(of, node.operands)]
            if node.operation == "name":
                found[node.place] = given[node.operands[0]]
            elif node.operation == "call":
                found[node.place] = self._together.called(recursion.procedures[operands[0]], operands[1:])
            elif node.operation == "*" and any(each.__class__ is float and each == 0.0 for each in operands):
                found[node.place] = 0.0
            else:
                found[node.place] = applied(node.operation, *operands)
            if recursion.is_guarded(node):
                self._record.refuse_infinite([found[node.place]])
        return [*map(of, values)]


def _standing(recursion: Recursion, number: int, name: str) -> Any:
    return recursion.standing(number)[name]


def _looped(recursion: Recursion, names: Sequence[str], *given: Any) -> tuple[np.ndarray, ...]:
    """The columns of what steps make, from what they read, by name, and from the values before the first step."""
    found = recursion.values(dict(zip(names, given, strict=False)), given[len(names) :])
    return tuple([found[number] for number in recursion.made])


def _shifted(recursion: Recursion, of: int, lag: int, values: np.ndarray, *starts: float) -> np.ndarray:
    return recursion.shifted(of, lag, values, starts)


def _product(left: np.ndarray, right: np.ndarray) -> float:
    return float(left.dot(right))
