"""Sums over rows of what was recorded of one row: of columns only those are made that are read row by row.

Where the terms of a log density are scaled, squared, or shared by all rows, their sum needs no column of terms: that of
c z^2 is c times the product of z with itself, and that of what all rows share is a multiple of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from venture_lite.procedures.columns import Flags
from venture_lite.procedures.derivatives import recorded_slopes
from venture_lite.procedures.record import Random
from venture_lite.procedures.straight_line import Node, Recording, again, applied, compiled, needed

MOST = 1000
"""Functions that are kept."""


def is_summed(record: Random, of_floats: bool = False) -> bool:
    """Whether sums of a record's log densities and their derivatives follow from its definition: one with sums of its
    own has faster ones, and a discrete one has values of several kinds, unless they are known to be floats."""
    is_of_floats = of_floats or record.transform is not None
    return record.definition is not None and record.log_density_total is None and is_of_floats


@functools.lru_cache(MOST)
def summed_slopes(
    density: Callable[..., Any], asked: Flags, lifted: Flags, constants: tuple[float | None, ...]
) -> Callable[..., tuple[Any, ...]]:
    """`(*inputs, rows) -> (the sum over rows of a log density, one derivative for each input asked for)`: of a lifted
    input a column (rows,), of one that all rows share the sum.

    Inputs are floats, lifted ones columns of floats (rows,); those that are constants are given, but not read.
    """
    recording, count = Recording(), len(lifted)
    rows, inputs = recording.input(count), [recording.input(at) for at in range(count)]

    def repeated(value: Any) -> Any:
        return recording.record("repeated", value, rows)

    try:
        given = [each if constant is None else constant for each, constant in zip(inputs, constants, strict=True)]
        found = summed_again(density, asked, lifted, given, rows, repeated)
    except ArithmeticError:
        # a constant outside its domain
        found = summed_again(density, asked, lifted, inputs, rows, repeated)
    return compiled(found, count + 1, True)


def summed_again(
    density: Callable[..., Any], asked: Flags, lifted: Flags, inputs: Sequence[Any], rows: Any,
    repeated: Callable[[Any], Any],
) -> list[Any]:  # fmt: skip
    """The same as operations on nodes and constants, with how many rows there are, and what makes a column of one
    number.

    Raises ArithmeticError where something has no value, of constants alone.
    """
    sums = _OverRows(lifted, inputs, rows, repeated)
    total, *partials = again(recorded_slopes(density, asked), inputs, sums.applied)
    ups = [up for up, ask in zip(lifted, asked, strict=True) if ask]
    slopes = [sums.column(part) if up else sums.total(part) for part, up in zip(partials, ups, strict=True)]
    return [sums.total(total), *slopes]


class _OverRows:
    """Operations recorded once more, of inputs of which it is known which are columns."""

    def __init__(self, lifted: Flags, inputs: Sequence[Any], rows: Any, repeated: Callable[[Any], Any]) -> None:
        self._rows, self._repeated = rows, repeated
        # the places of columns, and of what is known to be none
        self._columns = {each.place for each, up in zip(inputs, lifted, strict=True) if up and each.__class__ is Node}
        self._numbers = {
            each.place for each, up in zip(inputs, lifted, strict=True) if not up and each.__class__ is Node
        }

    def applied(self, operation: str, *operands: Any) -> Any:
        if operation == "divide" and self._is_column(operands[1]):
            # of columns the same, and so it is not made twice
            operation = "/"
        return applied(operation, *operands)

    def _is_column(self, value: Any) -> bool:
        if value.__class__ is not Node:
            return False
        known = self._columns, self._numbers
        if not any(value.place in each for each in known):
            for node in needed([value], self._columns | self._numbers):
                is_column = any(each.__class__ is Node and each.place in self._columns for each in node.operands)
                known[0 if is_column else 1].add(node.place)
        return value.place in self._columns

    def column(self, value: Any) -> Any:
        """A value for each row."""
        return value if self._is_column(value) else self._repeated(value)

    def total(self, value: Any) -> Any:
        """The sum over rows, term by term."""
        if self._is_column(value) and value.operation in ("+", "-"):
            return applied(value.operation, *map(self.total, value.operands))
        return total_over(value, self._rows, self._is_column, self.total)


def total_over(
    value: Any, rows: Any, is_column: Callable[[Any], bool], total: Callable[[Any], Any] | None = None
) -> Any:
    """The sum over rows of a value that was recorded, or of a constant; `rows` is how many there are. What all rows
    share, and signs, are taken out; `total` is the sum of what is left then."""
    if not is_column(value):
        return value * rows
    if total is None:
        total = partial(total_over, rows=rows, is_column=is_column)
    match value.operation, value.operands:
        case "negative", (positive,):
            return -total(positive)
        case "*", (left, right) if is_column(left) and is_column(right):
            return value.recording.record("dot", left, right)
        case "*", (left, right):
            return total(left) * right if is_column(left) else left * total(right)
        case "/", (left, right) if not is_column(right):
            return total(left) / right
    return value.recording.record("total", value)
