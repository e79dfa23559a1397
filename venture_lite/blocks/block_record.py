"""The record of one block: operations, what moves by place, and what they come to.

Both passes over the block's rows write to it: of rows one by one (`block_rows.py`), of rows together, over columns
(`block_columns.py`), and of rows that take turns (`block_recursions.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from venture_lite.blocks.block_text import BlockOperations, BlockResults
from venture_lite.blocks.block_values import BlockValues, NotOneFunction
from venture_lite.blocks.moving import BlockState, RowKind
from venture_lite.blocks.passes import as_floats
from venture_lite.blocks.tape import TapeLeaf
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.domains import Domain
from venture_lite.procedures.functions.arithmetic import ADD, DIVIDE, MULTIPLY, SUBTRACT
from venture_lite.procedures.pullbacks import ElementwisePullback
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.straight_line import Node
from venture_lite.procedures.totals import total_over
from venture_lite.procedures.transforms import Elementwise
from venture_lite.trace.table import Column

NUMBERS = (float, int, bool)
OPAQUE = object()
"""Something that stands, and is no number: what calls make of it may be one."""
ANY_NUMBER = "-inf < {x} < inf"
"""The test of a domain that all finite numbers are in."""
ARITHMETIC = (ADD, SUBTRACT, MULTIPLY, DIVIDE)
"""What makes no number of what is none."""


class BlockRecord:
    """What the operations of one block are, and what they come to. Mutable: passes add to it."""

    def __init__(self, state: BlockState, size: int) -> None:
        self.trace, self.nowhere = state.model.trace, state.nowhere
        self.operations = BlockOperations()
        self.values = BlockValues(self.operations, state.nowhere)
        self.total: Any = 0.0
        # the derivatives by single coordinates, in order, and those by columns of them, in the order of their names
        self.gradient: dict[int, Any] = dict.fromkeys(range(size), 0.0)
        self.by_columns: list[Any] = []
        # by site the log densities of its choices, by row, of those that are weighed one by one
        self.terms: dict[int, dict[int, Any]] = {}
        # tests with the numbers that must pass them
        self.tests: dict[tuple[str, int], Node] = {}
        # calls that raise an error where arguments are outside their domains, or something is not finite
        self.checks: list[Node] = []
        # numbers that must be finite
        self._finite: dict[int, Node] = {}

    def results(self, sums: Iterable[Any]) -> BlockResults:
        """With sums of log densities."""
        return BlockResults(self.total, self.gradient, self.by_columns, self._finite, self.tests, self.checks, [*sums])

    def stored(self, column: Column, row: int) -> Node:
        """A number that does not depend on the block."""
        if column.kind not in NUMBERS:
            raise NotOneFunction
        return self.operations.stored(column, row)

    def is_opaque(self, leaf: TapeLeaf, places: Any) -> bool:
        """Whether what rows read does not depend on the block, and is no number."""
        return not np.any(places != self.nowhere) and leaf.column.kind not in NUMBERS

    def standing(self, kind: RowKind, node: Node, rows: Sequence[Any], is_column: bool) -> Any:
        """What a call gives that does not depend on the block, where it is a number, or a column of them; OPAQUE where
        not. `rows` are those of the leaves: of one row arrays of length one, and one is given."""
        if node.place not in kind.tape.numbers_among(kind.still, rows):
            return OPAQUE
        gather = partial(_standing, kind, node.place, rows, is_column)
        return self.operations.gathered_of(kind.still_columns, gather, is_column)

    def called(self, record: Deterministic, operands: Sequence[Any]) -> Any:
        """The value of a call of numbers, written out where it depends on the block."""
        if not are_numbers(operands):
            raise NotOneFunction
        pullback = record.pullback
        if not any(map(self.operations.is_moving, operands)):
            return self.operations.apply(record.scalar, *operands)
        if not isinstance(pullback, ElementwisePullback):
            raise NotOneFunction
        if record not in ARITHMETIC:
            self.refuse_infinite(operands)
        return self.operations.apply(record.scalar, *operands) if pullback.value is None else pullback.value(*operands)

    def refuse_infinite(self, values: Iterable[Any]) -> None:
        """Say nothing where one of these is not finite."""
        for value in values:
            if self.operations.is_column(value):
                self.checks.append(self.operations.single(_refuse_infinite, value))
            elif value.__class__ is Node:
                self._finite[value.place] = value

    def test(self, domain: Domain, value: Any) -> None:
        """Say nothing where an argument, a number, is outside its domain."""
        if not are_numbers([value]) or domain.test is None:
            raise NotOneFunction
        if domain.test == ANY_NUMBER:
            self.refuse_infinite([value])
        else:
            named = value if value.__class__ is Node else self.operations.apply(float, value)
            self.tests[domain.test, named.place] = named

    def add(self, place: int, part: Any) -> None:
        """What is due to a number, if it moves."""
        if place != self.nowhere:
            self.values.add(place, part)

    def sum(self, value: Any, count: int) -> Any:
        """Over rows, which may share it."""
        return total_over(value, count, self.operations.is_column)


def are_numbers(operands: Iterable[Any]) -> bool:
    return all(each.__class__ is Node or each.__class__ in NUMBERS for each in operands)


def _standing(kind: RowKind, place: int, rows: Sequence[Any], is_column: bool) -> Any:
    found = kind.tape.values_now(kind.still, rows)[place]
    return as_floats(found) if is_column else found.item() if isinstance(found, np.ndarray) else found


def outputs_of(kind: RowKind, values: dict[int, Any]) -> list[Any]:
    found = [values[each.place] if each.__class__ is Node else each for each in kind.tape.outputs]
    if any(each is OPAQUE for each in found):
        raise NotOneFunction
    return found


def transform_of(kind: RowKind, arguments: Sequence[Any]) -> tuple[Elementwise, tuple[Any, ...]]:
    """That of a choice, with the arguments that it reads."""
    transform = kind.operator.transform
    if not isinstance(transform, Elementwise):
        raise NotOneFunction
    return transform, tuple(arguments) if transform.reads_arguments else ()


def pulled(
    record: Deterministic, wanted: tuple[bool, ...], cotangent: Any, result: Any, arguments: Sequence[Any]
) -> list[Any]:
    """The cotangents of a call's arguments, None for those not wanted."""
    assert isinstance(record.pullback, ElementwisePullback)
    return list(record.pullback.of_numbers(wanted, cotangent, result, *arguments))


def _refuse_infinite(values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise RowByRow
