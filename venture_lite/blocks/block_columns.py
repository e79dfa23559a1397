"""Both passes over rows that read alike, together, as recorded operations over columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from venture_lite.blocks.block_record import OPAQUE, BlockRecord, outputs_of, pulled, transform_of
from venture_lite.blocks.block_values import NotOneFunction, are_numbers, is_nothing, refuse_others
from venture_lite.blocks.moving import RowKind, as_constant, as_slice
from venture_lite.blocks.passes import NUMBERS, as_floats, divides_by_constants
from venture_lite.blocks.tape import TapeLeaf
from venture_lite.interpreter.weights import Group
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.domains import Domain
from venture_lite.procedures.functions.arithmetic import DIVIDE
from venture_lite.procedures.pullbacks import ElementwisePullback
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.procedures.straight_line import Node, recordable
from venture_lite.procedures.totals import is_summed, summed_again
from venture_lite.trace.table import Column, length, listed, part_of


class RowsTogether:
    """Of rows of a kind, from one position to another. Mutable: knows the columns of coordinates that were asked for.

    What all rows read in one place is a number, and what is due to it is summed over them.
    """

    def __init__(self, record: BlockRecord, reads_columns: bool) -> None:
        """Without `reads_columns`, rows read what moves in one place for all."""
        self._record, self._reads_columns = record, reads_columns
        self._operations, self._values, self._nowhere = record.operations, record.values, record.nowhere
        # by kind and start the position of its column of coordinates
        self._coordinates_of: dict[tuple[int, int], int] = {}

    def move(self, kind: RowKind, start: int, stop: int) -> None:
        """The values of rows that move."""
        operations = self._operations
        if kind.column.kind is not float:
            raise NotOneFunction
        if kind.coordinates is not None:
            arguments = () if kind.is_apart else self._arguments(kind, self._read(kind, start, stop))
            transform, read = transform_of(kind, arguments)
            value = recordable(transform.value_of)(self._coordinates(kind, start, stop), *read)
        else:
            outputs = outputs_of(kind, self._read(kind, start, stop))
            value = outputs[0] if kind.operator is None else self.called(kind.operator, outputs)
        if not operations.is_column(value):
            value = operations.column_of(np.full, stop - start, value)
        self._values.hold_column(self._places(kind, start, stop), value)

    def back(self, kind: RowKind, start: int, stop: int) -> None:
        """The backward pass over rows that move."""
        if kind.is_apart:
            self._settle(kind, start, stop)
        elif kind.coordinates is not None:
            self.weigh(kind, start, stop)
        else:
            self._pull_back(kind, start, stop)

    def weigh(self, kind: RowKind, start: int, stop: int) -> None:
        """Add the log densities of rows, and their derivatives to cotangents."""
        if not isinstance(kind.operator, Random):
            raise NotOneFunction
        values = self._read(kind, start, stop)
        arguments = self._arguments(kind, values)
        places = self._places(kind, start, stop)
        value = self._values.column(places) if kind.flags[0] else None
        term, own, parts = self._density(kind, part_of(kind.rows, start, stop), value, arguments)
        if kind.coordinates is not None:
            term = term + self._moved(kind, start, stop, own, arguments, parts)
        self._spread(kind, start, stop, values, parts[: len(kind.asked)])
        if kind.is_apart:
            self._values.add_column(places, own)
        self._record.total = self._record.total + term

    def _moved(self, kind: RowKind, start: int, stop: int, own: Any, arguments: Sequence[Any], parts: list[Any]) -> Any:
        """The sum of the log Jacobians of a transform; what it adds to the derivatives is added to the parts."""
        transform, read = transform_of(kind, arguments)
        places = self._places(kind, start, stop)
        value, total = self._values.column(places), self._values.due_column(places) + own
        self._give(kind, start, recordable(transform.by_free)(value, total, *read))
        if transform.reads_arguments and any(kind.asked):
            assert transform.by_arguments is not None
            by_arguments = recordable(transform.by_arguments)(value, total, *read)
            for position, part in enumerate(by_arguments[: len(parts)]):
                if part is not None and parts[position] is not None:
                    parts[position] = parts[position] + self._summed(part, stop - start, arguments[position])
        return self._record.sum(recordable(transform.log_slope)(value, *read), stop - start)

    def _settle(self, kind: RowKind, start: int, stop: int) -> None:
        """Add the log Jacobians of choices that are weighed apart."""
        transform, _ = transform_of(kind, ())
        places = self._places(kind, start, stop)
        value = self._values.column(places)
        self._give(kind, start, recordable(transform.by_free)(value, self._values.due_column(places)))
        self._record.total = self._record.total + self._record.sum(recordable(transform.log_slope)(value), stop - start)

    def _pull_back(self, kind: RowKind, start: int, stop: int) -> None:
        """Pass the cotangents of computed values on."""
        places = self._places(kind, start, stop)
        cotangent = self._values.due_column(places)
        if is_nothing(cotangent):
            return
        values, parts = self._read(kind, start, stop), [cotangent]
        if kind.operator is not None:
            result = self._values.column(places)
            parts = pulled(kind.operator, kind.asked, cotangent, result, outputs_of(kind, values))
        self._spread(kind, start, stop, values, parts)

    def _give(self, kind: RowKind, start: int, gradient: Any) -> None:
        """Derivatives by coordinates."""
        self._record.by_columns[self._coordinates_of[id(kind), start]] = gradient

    # --------------------------------------------------------------------------------------------------- reading

    def _places(self, kind: RowKind, start: int, stop: int) -> np.ndarray:
        return listed(part_of(kind.given[1], start, stop))

    def _read(self, kind: RowKind, start: int, stop: int) -> dict[int, Any]:
        """The values of the tape of some rows, by place of the tape."""
        tape, operations = kind.tape, self._operations
        if tape.closures:
            raise NotOneFunction
        given = {leaf.node.place: kind.given[3 + 2 * at : 5 + 2 * at] for at, leaf in enumerate(tape.leaves)}

        def leaf_of(leaf: TapeLeaf) -> Any:
            rows, places = (part_of(each, start, stop) for each in given[leaf.node.place])
            return OPAQUE if self._record.is_opaque(leaf, places) else self._leaf(leaf, rows, places)

        def called(node: Node, record: Deterministic, operands: list[Any]) -> Any:
            if node.place in kind.still and not are_numbers(operands):
                rows = [part_of(given[leaf.node.place][0], start, stop) for leaf in tape.leaves]
                return self._record.standing(kind, node, rows, tape.is_lifted(node))
            found = self.called(record, operands)
            stands = operations.is_column(found) and not operations.is_moving(found)
            return operations.apply(as_floats, found) if stands and found.operation == "apply" else found

        return tape.evaluated(leaf_of, called)

    def _leaf(self, leaf: TapeLeaf, rows: Any, places: Any) -> Any:
        """What all rows read in one place, or each in its own."""
        if np.any(places != self._nowhere):
            if np.ndim(places) and not self._reads_columns:
                raise NotOneFunction
            return self._values.column(places) if np.ndim(places) else self._values.number(int(places))
        if leaf.is_lifted:
            return self._operations.gathered(leaf.column, partial(floats_of, leaf.column, rows))
        return self._record.stored(leaf.column, int(rows))

    def called(self, record: Deterministic, operands: list[Any]) -> Any:
        """The value of a call, for all rows."""
        operations, pullback = self._operations, record.pullback
        lifted = tuple(map(operations.is_column, operands))
        if True not in lifted:
            return self._record.called(record, operands)
        refuse_others(operands)
        if any(map(operations.is_moving, operands)) and not isinstance(pullback, ElementwisePullback):
            raise NotOneFunction
        if isinstance(pullback, ElementwisePullback) and pullback.value is not None:
            if record.total or divides_by_constants(record, operands):
                return pullback.value(*operands)
            if record is DIVIDE:
                # of three numbers and more no function is one of columns
                found = pullback.value(*operands)
                self._record.refuse_infinite([found])
                return found
        return operations.apply(partial(record.columns or _refuse, lifted), *operands)

    def _coordinates(self, kind: RowKind, start: int, stop: int) -> Node:
        """The free coordinates of some choices."""
        assert kind.coordinates is not None
        if any(shape is not None for _, shape in kind.coordinates[start:stop]):
            raise NotOneFunction
        firsts = np.array([taken.start for taken, _ in kind.coordinates[start:stop]])
        found = self._operations.free_column(as_slice(firsts))
        for first in firsts.tolist():
            del self._record.gradient[first]
        self._coordinates_of[id(kind), start] = len(self._record.by_columns)
        self._record.by_columns.append(0.0)
        return found

    def _arguments(self, kind: RowKind, values: dict[int, Any]) -> list[Any]:
        """Those of choices."""
        arguments = [*outputs_of(kind, values), *kind.defaults]
        if tuple(map(self._operations.is_column, arguments)) != kind.lifted[1:]:
            raise NotOneFunction
        return arguments

    # ------------------------------------------------------------------------------------------------- densities

    def _density(self, kind: RowKind, rows: Any, value: Any, arguments: list[Any]) -> tuple[Any, Any, list[Any]]:
        """The sum of the log densities of some rows, and the derivatives by their values and the arguments, of what is
        asked for; `value` is None where it does not move."""
        operations = self._operations
        try:
            group = kind.group()
        except RowByRow:
            raise NotOneFunction from None
        for position in group.checked:
            self._check(kind.operator.arguments[position].domain, arguments[position])
        if is_summed(kind.operator, value is None and kind.column.kind in NUMBERS):
            return self._written_out(kind, rows, value, arguments)
        if value is None:
            value = operations.gathered(kind.column, partial(group.values_of, rows))
        slopes = partial(_possible, kind, rows, kind.slopes_together(arguments))
        whole = operations.single(slopes, value, *arguments)
        numbers = itertools.count(1)

        def entry(is_column: bool) -> Node:
            found = operations.record("entry", whole, next(numbers))
            if is_column:
                operations.columns.add(found.place)
            return found

        term = operations.record("entry", whole, 0)
        own, *parts = [entry(up) if asked else None for asked, up in zip(kind.flags, kind.lifted, strict=True)]
        return term, own, parts

    def _check(self, domain: Domain, value: Any) -> None:
        """Say nothing where an argument is outside its domain."""
        if self._operations.is_column(value):
            check = partial(_refuse_outside, domain.contains_all)
            self._record.checks.append(self._operations.single(check, value))
        else:
            self._record.test(domain, value)

    def _written_out(self, kind: RowKind, rows: Any, value: Any, arguments: list[Any]) -> tuple[Any, Any, list[Any]]:
        """The same, written out."""
        operations, count = self._operations, length(rows)
        if value is None:
            value = operations.gathered(kind.column, partial(_floats_among, kind.group(), rows))
        named = [each if each.__class__ is Node else operations.apply(float, each) for each in arguments]
        constants = [as_constant(each) for each in arguments]
        given = [each if known is None else known for each, known in zip(named, constants, strict=True)]
        again = partial(summed_again, kind.operator.definition, kind.flags, kind.lifted)
        repeated = partial(operations.column_of, np.full, count)
        try:
            term, *found = again([value, *given], count, repeated)
        except ArithmeticError:
            # a constant outside its domain
            term, *found = again([value, *named], count, repeated)
        following = iter(found)
        own, *parts = [next(following) if asked else None for asked in kind.flags]
        return term, own, parts

    # ------------------------------------------------------------------------------------------------ cotangents

    def _spread(self, kind: RowKind, start: int, stop: int, values: dict[int, Any], cotangents: Sequence[Any]) -> None:
        """From the cotangents of what rows read to those of their leaves."""

        def summed(part: Any, value: Any) -> Any:
            return self._summed(part, stop - start, value) if self._operations.is_column(part) else part

        for at, part in self._record.due_to_leaves(kind, values, cotangents, summed):
            places = part_of(kind.given[4 + 2 * at], start, stop)
            if np.ndim(places):
                self._values.add_column(places, part)
            else:
                self._record.add(int(places), part)

    def _summed(self, part: Any, count: int, argument: Any) -> Any:
        """What is due to an argument, summed where rows share that."""
        return part if self._operations.is_column(argument) else self._record.sum(part, count)


def _refuse(*given: Any) -> Any:
    raise NotOneFunction


def floats_of(column: Column, rows: Any) -> Any:
    return _single(column.gather(rows))


def _floats_among(group: Group, rows: Any) -> Any:
    return _single(group.values_of(rows))


def _single(values: np.ndarray) -> Any:
    """Values of rows as floats. Raises RowByRow where they are not a number each, vectors for one."""
    if values.ndim != 1:
        raise RowByRow
    return as_floats(values)


def _refuse_outside(contains_all: Callable[[np.ndarray], bool], values: np.ndarray) -> None:
    if not contains_all(values):
        raise RowByRow


def _possible(kind: RowKind, rows: Any, slopes: Callable[..., Any], *given: Any) -> Any:
    """What `slopes` gives of some rows of a kind. Raises RowByRow where one of them is impossible."""
    before = kind.state.impossible
    found = slopes(rows, *given)
    if kind.state.impossible != before:
        kind.state.impossible = before
        raise RowByRow
    return found
