"""Sums over rows of what was recorded of one row: of columns only those are made that are read row by row.

Where the terms of a log density are scaled, squared, or shared by all rows, their sum needs no column of terms: that of
c z^2 is c times the product of z with itself, and that of what all rows share is a multiple of it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from venture_lite.procedures.columns import Flags
from venture_lite.procedures.derivatives import recorded_slopes
from venture_lite.procedures.record import Random
from venture_lite.procedures.straight_line import Node, Recording, again, compiled, needed, recorded

MOST = 1000
"""Functions that are kept."""

_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "negative": operator.neg,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "&": operator.and_, "|": operator.or_,
}  # fmt: skip


def is_summed(record: Random) -> bool:
    """Whether sums of a record's log densities and their derivatives follow from its definition: a discrete one has
    values of several kinds, and one with sums of its own has faster ones."""
    return record.definition is not None and record.log_density_total is None and record.transform is not None


@functools.lru_cache(MOST)
def summed_slopes(
    density: Callable[..., Any], asked: Flags, lifted: Flags, constants: tuple[float | None, ...]
) -> Callable[..., tuple[Any, ...]]:
    """`(*inputs, rows) -> (the sum over rows of a log density, one derivative for each input asked for)`: of a lifted
    input a column (rows,), of one that all rows share the sum.

    Inputs are floats, lifted ones columns of floats (rows,); those that are constants are given, but not read.
    """
    results = recorded_slopes(density, asked)
    try:
        sums = _OverRows(results, lifted, constants)
    except ArithmeticError:
        # a constant outside its domain
        sums = _OverRows(results, lifted, (None,) * len(lifted))
    total, *partials = sums.results
    ups = [up for up, ask in zip(lifted, asked, strict=True) if ask]
    slopes = [sums.column(part) if up else sums.total(part) for part, up in zip(partials, ups, strict=True)]
    return compiled([sums.total(total), *slopes], len(lifted) + 1, True)


class _OverRows:
    """Operations recorded once more, of inputs of which it is known which are columns and which are constants."""

    def __init__(self, results: Sequence[Any], lifted: Flags, constants: Sequence[float | None]) -> None:
        """Raises ArithmeticError where something has no value, of constants alone."""
        self._recording = recording = Recording()
        self._rows = recording.input(len(lifted))
        inputs = [recording.input(at) if constant is None else constant for at, constant in enumerate(constants)]
        # the places of columns
        self._columns = {each.place for each, up in zip(inputs, lifted, strict=True) if up and each.__class__ is Node}
        self.results = again(results, inputs, self._applied)

    def _applied(self, operation: str, *operands: Any) -> Any:
        if operation == "divide" and self._is_column(operands[1]):
            # of columns the same, and so it is not made twice
            operation = "/"
        if operation == "where" and operands[0].__class__ is not Node:
            return operands[1] if operands[0] else operands[2]
        return _OPERATORS[operation](*operands) if operation in _OPERATORS else recorded(operation)(*operands)

    def _is_column(self, value: Any) -> bool:
        if value.__class__ is not Node:
            return False
        for node in needed([value]) if value.place not in self._columns else ():
            if any(each.__class__ is Node and each.place in self._columns for each in node.operands):
                self._columns.add(node.place)
        return value.place in self._columns

    def column(self, value: Any) -> Any:
        """A value for each row."""
        return value if self._is_column(value) else self._recording.record("repeated", value, self._rows)

    def total(self, value: Any) -> Any:
        """The sum over rows."""
        if not self._is_column(value):
            return value * self._rows
        match value.operation, value.operands:
            case "+" | "-" | "negative" as operation, operands:
                return _OPERATORS[operation](*map(self.total, operands))
            case "*", (left, right) if self._is_column(left) and self._is_column(right):
                return self._recording.record("dot", left, right)
            case "*", (left, right):
                return self.total(left) * right if self._is_column(left) else left * self.total(right)
            case "/", (left, right) if not self._is_column(right):
                return self.total(left) / right
        return self._recording.record("total", value)
