"""The record of one block: operations, what moves by place, and what they come to.

Both passes over the block's rows write to it: of rows one by one (`block_rows.py`), of rows together, over columns
(`block_columns.py`), and of rows that take turns (`block_recursions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from venture_lite.blocks.block_text import BlockOperations, BlockResults
from venture_lite.blocks.block_values import BlockValues, NotOneFunction, are_numbers, refuse_others
from venture_lite.blocks.moving import BlockState, RowKind
from venture_lite.blocks.passes import NUMBERS, as_floats
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
        not. `rows` are as of `Tape.values_now`."""
        if node.place not in kind.tape.numbers_among(kind.still, rows):
            return OPAQUE
        gather = partial(_standing, kind, node.place, rows, is_column)
        return self.operations.gathered_of(kind.still_columns, gather, is_column)

    def called(self, record: Deterministic, operands: Sequence[Any]) -> Any:
        """The value of a call of numbers, written out where it depends on the block."""
        refuse_others(operands)
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

    def due_to_leaves(
        self, kind: RowKind, values: dict[int, Any], cotangents: Sequence[Any], summed: Callable[[Any, Any], Any]
    ) -> list[tuple[int, Any]]:
        """From the cotangents of what rows read, None for 0, those of leaves, by their position among the tape's.
        `summed(cotangent, value)` is that of a value which rows share."""
        tape, found = kind.tape, dict[int, Any]()

        def add(value: Any, part: Any) -> None:
            if part is not None and value.__class__ is Node and value.place in kind.wanted:
                part = summed(part, values[value.place])
                found[value.place] = found[value.place] + part if value.place in found else part

        for value, part in zip(tape.outputs, cotangents, strict=True):
            add(value, part)
        for node, record, arguments, _ in reversed(tape.steps):
            if node.place in found and self.operations.is_moving(values[node.place]):
                asked = tuple(each.__class__ is Node and each.place in kind.wanted for each in arguments)
                given = [values[each.place] if each.__class__ is Node else each for each in arguments]
                parts = pulled(record, asked, found[node.place], values[node.place], given)
                for value, part in zip(arguments, parts, strict=True):
                    add(value, part)
        return [(at, found[leaf.node.place]) for at, leaf in enumerate(tape.leaves) if leaf.node.place in found]

    def sum(self, value: Any, count: int) -> Any:
        """Over rows, which may share it."""
        return total_over(value, count, self.operations.is_column)


def _standing(kind: RowKind, place: int, rows: Sequence[Any], is_column: bool) -> Any:
    found = kind.tape.values_now(kind.still, rows)[place]
    return as_floats(found) if is_column else found


def outputs_of(kind: RowKind, values: dict[int, Any]) -> list[Any]:
    found = [values[each.place] if each.__class__ is Node else each for each in kind.tape.outputs]
    refuse_others(found)
    # a density reads true as 1
    return [+each if each is True or each is False else each for each in found]


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
