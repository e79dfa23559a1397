"""Both passes over all rows of a small block as recorded operations, in the order in which `moving.py` makes them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from venture_lite.blocks.block_text import BlockOperations, BlockResults
from venture_lite.blocks.moving import BlockState, RowKind
from venture_lite.blocks.passes import as_floats
from venture_lite.blocks.tape import TapeLeaf
from venture_lite.interpreter.weights import NARROW, Group
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.derivatives import recorded_slopes
from venture_lite.procedures.functions.arithmetic import ADD, DIVIDE, MULTIPLY, SUBTRACT
from venture_lite.procedures.pullbacks import ElementwisePullback
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.procedures.straight_line import Node, again, recordable
from venture_lite.procedures.transforms import Elementwise
from venture_lite.trace.table import Column, listed, one_of

WIDE = 40
"""Rows of one kind that weigh a block, of which more are faster over columns."""
NUMBERS = (float, int, bool)
ANY_NUMBER = "-inf < {x} < inf"
"""The test of a domain that all finite numbers are in."""
ARITHMETIC = (ADD, SUBTRACT, MULTIPLY, DIVIDE)
"""What makes no number of what is none."""


class NotOneFunction(Exception):
    """A block is left to the passes over its rows."""


class BlockPasses:
    """The operations of one block."""

    def __init__(
        self, state: BlockState, moved: Sequence[tuple[RowKind, int, int]], terms: Sequence[RowKind], size: int
    ) -> None:
        """As of `BlockFunction`. Raises NotOneFunction where not all is numbers."""
        self._trace, self._nowhere = state.model.trace, state.nowhere
        self.operations = BlockOperations()
        self._free = [self.operations.free(number) for number in range(size)]
        # numbers that must be finite, and tests with the numbers that must pass them
        self._finite: dict[int, Node] = {}
        self._tests: dict[tuple[str, int], Node] = {}
        # calls that raise an error where arguments are outside their domains
        self._checks: list[Node] = []
        # by place of the block
        self._values: dict[int, Any] = {}
        self._cotangents: dict[int, Any] = {}
        self._gradient: list[Any] = [0.0] * size
        self._total: Any = 0.0
        # by site the log densities of its choices, by row
        self._terms: dict[int, dict[int, Any]] = {}
        for kind, start, stop in moved:
            for n in range(start, stop):
                self._values[self._place(kind, n)] = self._value_of(kind, n)
        for kind in terms:
            if kind.count > WIDE:
                self._weigh_together(kind)
            for n in range(kind.count if kind.count <= WIDE else 0):
                self._weigh(kind, n)
        for kind, start, stop in reversed(moved):
            for n in range(start, stop):
                if kind.is_apart:
                    self._settle(kind, n)
                elif kind.coordinates is not None:
                    self._weigh(kind, n)
                else:
                    self._pull_back(kind, n)

    def results(self, sums: Iterable[Any]) -> BlockResults:
        """With sums of log densities."""
        return BlockResults(self._total, self._gradient, self._finite, self._tests, self._checks, [*sums])

    def sums(self) -> dict[int, Any]:
        """The sum of the log densities of all choices of a site, row by row, where the block moves or weighs all."""
        trace, found = self._trace, dict[int, Any]()
        for site, terms in self._terms.items():
            rows = listed(trace.tables[trace.program.site_code[site].index].rows()).tolist()
            if len(rows) <= NARROW and sorted(terms) == rows:
                found[site] = functools.reduce(lambda left, right: left + right, [terms[row] for row in rows])
        return found

    def _place(self, kind: RowKind, n: int) -> int:
        return int(one_of(kind.given[1], n))

    # --------------------------------------------------------------------------------------------------- reading

    def _reads(self, kind: RowKind, n: int) -> dict[int, Any]:
        """The values of a row's tape, by place of the tape."""
        tape = kind.tape
        if tape.closures or kind.column.kind not in NUMBERS:
            raise NotOneFunction
        given = {leaf.node.place: kind.given[3 + 2 * at : 5 + 2 * at] for at, leaf in enumerate(tape.leaves)}

        def leaf_of(leaf: Any) -> Any:
            row, place = (int(one_of(each, n)) for each in given[leaf.node.place])
            return self._values[place] if place != self._nowhere else self._stored(leaf.column, row)

        return tape.evaluated(leaf_of, lambda node, record, operands: self._called(record, operands))

    def _outputs(self, kind: RowKind, values: dict[int, Any]) -> list[Any]:
        return [values[each.place] if each.__class__ is Node else each for each in kind.tape.outputs]

    def _stored(self, column: Column, row: int) -> Node:
        """A number that does not depend on the block."""
        if column.kind not in NUMBERS:
            raise NotOneFunction
        return self.operations.stored(column, row)

    def _called(self, record: Deterministic, operands: Sequence[Any]) -> Any:
        """The value of a call, written out where it depends on the block."""
        if not all(each.__class__ is Node or each.__class__ in NUMBERS for each in operands):
            raise NotOneFunction
        pullback = record.pullback
        if not any(map(self.operations.is_moving, operands)):
            return self.operations.apply(record.scalar, *operands)
        if not isinstance(pullback, ElementwisePullback):
            raise NotOneFunction
        if record not in ARITHMETIC:
            self._refuse_infinite(operands)
        return self.operations.apply(record.scalar, *operands) if pullback.value is None else pullback.value(*operands)

    def _refuse_infinite(self, values: Iterable[Any]) -> None:
        self._finite.update((value.place, value) for value in values if value.__class__ is Node)

    # --------------------------------------------------------------------------------------------------- moving

    def _value_of(self, kind: RowKind, n: int) -> Any:
        """The value of a row that moves."""
        if kind.column.kind is not float:
            raise NotOneFunction
        if kind.coordinates is not None:
            arguments = () if kind.is_apart else self._arguments(kind, self._reads(kind, n))
            transform, read = self._transform(kind, arguments)
            return recordable(transform.value_of)(self._coordinate(kind, n), *read)
        outputs = self._outputs(kind, self._reads(kind, n))
        return outputs[0] if kind.operator is None else self._called(kind.operator, outputs)

    def _coordinate(self, kind: RowKind, n: int) -> Any:
        assert kind.coordinates is not None
        taken, shape = kind.coordinates[n]
        if shape is not None:
            raise NotOneFunction
        return self._free[taken.start]

    def _transform(self, kind: RowKind, arguments: Sequence[Any]) -> tuple[Elementwise, tuple[Any, ...]]:
        """That of a choice, with the arguments that it reads."""
        transform = kind.operator.transform
        if not isinstance(transform, Elementwise):
            raise NotOneFunction
        return transform, tuple(arguments) if transform.reads_arguments else ()

    def _arguments(self, kind: RowKind, values: dict[int, Any]) -> list[Any]:
        """Those of a choice, which are tested."""
        if not isinstance(kind.operator, Random):
            raise NotOneFunction
        arguments = [*self._outputs(kind, values), *kind.defaults]
        if len(arguments) != len(kind.operator.arguments):
            raise NotOneFunction
        for argument, value in zip(kind.operator.arguments, arguments, strict=True):
            if (value.__class__ is not Node and value.__class__ not in NUMBERS) or argument.domain.test is None:
                raise NotOneFunction
            if argument.domain.test == ANY_NUMBER:
                self._refuse_infinite([value])
            else:
                named = value if value.__class__ is Node else self.operations.apply(float, value)
                self._tests[argument.domain.test, named.place] = named
        return arguments

    # ------------------------------------------------------------------------------------------------- weighing

    def _weigh(self, kind: RowKind, n: int) -> None:
        """Add the log density of a choice, and its derivatives to cotangents."""
        values = self._reads(kind, n)
        arguments = self._arguments(kind, values)
        place, row = self._place(kind, n), int(one_of(kind.rows, n))
        value = self._values[place] if place != self._nowhere else self._stored(kind.column, row)
        term, slopes = self._density(kind, value, arguments)
        self._terms.setdefault(kind.site, {})[row] = term
        following = iter(slopes)
        own, *parts = [next(following) if flag else None for flag in kind.flags]
        if kind.coordinates is not None:
            moved = self._moved(kind, n, value, own, arguments, parts)
            term = term + moved
        self._spread(kind, n, values, parts[: len(kind.asked)])
        if kind.is_apart:
            self._add(place, own)
        self._total = self._total + term

    def _density(self, kind: RowKind, value: Any, arguments: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The log density of a choice and its derivatives by what is asked for."""
        record = kind.operator
        if record.definition is not None and record.gradient is not None and record.gradient.of_numbers is not None:
            term, *slopes = again(
                recorded_slopes(record.definition, kind.flags), [value, *arguments], self.operations.record
            )
            return term, slopes
        whole = self.operations.apply(kind.slopes(), value, *arguments)
        term, *slopes = [self.operations.record("entry", whole, number) for number in range(1 + sum(kind.flags))]
        return term, slopes

    def _moved(self, kind: RowKind, n: int, value: Any, own: Any, arguments: Sequence[Any], parts: list[Any]) -> Any:
        """The log Jacobian of a choice's transform; what it adds to the derivatives is added to the parts."""
        transform, read = self._transform(kind, arguments)
        total = self._cotangents.get(self._place(kind, n), 0.0) + own
        at = kind.coordinates[n][0].start  # type: ignore[index]
        self._gradient[at] = recordable(transform.by_free)(value, total, *read)
        if transform.reads_arguments and any(kind.asked):
            assert transform.by_arguments is not None
            by_arguments = recordable(transform.by_arguments)(value, total, *read)
            for position, part in enumerate(by_arguments[: len(parts)]):
                if part is not None and parts[position] is not None:
                    parts[position] = parts[position] + part
        return recordable(transform.log_slope)(value, *read)

    def _settle(self, kind: RowKind, n: int) -> None:
        """Add the log Jacobian of a choice that is weighed apart."""
        place = self._place(kind, n)
        transform, _ = self._transform(kind, ())
        value, own = self._values[place], self._cotangents.get(place, 0.0)
        at = kind.coordinates[n][0].start  # type: ignore[index]
        self._gradient[at] = recordable(transform.by_free)(value, own)
        self._total = self._total + recordable(transform.log_slope)(value)

    # -------------------------------------------------------------------------------------------- many rows at once

    def _weigh_together(self, kind: RowKind) -> None:
        """Add the log densities of rows that read single numbers of the block, by columns."""
        tape, operations = kind.tape, self.operations
        if not isinstance(kind.operator, Random) or kind.coordinates is not None or kind.is_apart or tape.closures:
            raise NotOneFunction
        given = {leaf.node.place: kind.given[3 + 2 * at : 5 + 2 * at] for at, leaf in enumerate(tape.leaves)}

        def called(node: Node, record: Deterministic, operands: list[Any]) -> Any:
            found = self._called_together(record, operands)
            stands = operations.is_column(found) and not operations.is_moving(found)
            return operations.apply(as_floats, found) if stands and found.operation == "apply" else found

        values = tape.evaluated(lambda leaf: self._leaf_together(leaf, *given[leaf.node.place]), called)
        arguments = [*self._outputs(kind, values), *kind.defaults]
        if tuple(map(operations.is_column, arguments)) != kind.lifted[1:]:
            raise NotOneFunction
        term, parts = self._density_together(kind, arguments)
        self._spread_together(kind, values, parts[: len(kind.asked)])
        self._total = self._total + term

    def _leaf_together(self, leaf: TapeLeaf, rows: Any, places: Any) -> Any:
        """What all rows read in one place, or each in its own outside of the block."""
        if np.any(places != self._nowhere):
            return self._values[int(places)] if np.ndim(places) == 0 else _refuse()
        if leaf.is_lifted:
            return self.operations.gathered(leaf.column, partial(_floats_of, leaf.column, rows))
        return self._stored(leaf.column, int(rows))

    def _called_together(self, record: Deterministic, operands: list[Any]) -> Any:
        """The value of a call, for all rows."""
        operations, pullback = self.operations, record.pullback
        lifted = tuple(map(operations.is_column, operands))
        if True not in lifted:
            return self._called(record, operands)
        if any(map(operations.is_moving, operands)) and not isinstance(pullback, ElementwisePullback):
            raise NotOneFunction
        if record.total and isinstance(pullback, ElementwisePullback) and pullback.value is not None:
            return pullback.value(*operands)
        return operations.apply(partial(record.columns or _refuse, lifted), *operands)

    def _density_together(self, kind: RowKind, arguments: list[Any]) -> tuple[Any, list[Any]]:
        """The sum of the log densities of all rows, and the derivatives by the arguments that are asked for."""
        operations = self.operations
        try:
            group = kind.group()
        except RowByRow:
            raise NotOneFunction from None
        if group.checked:
            check = partial(_checked, group, kind.rows, kind.tape.lifted)
            self._checks.append(operations.single(check, *arguments))
        value = operations.gathered(kind.column, partial(group.values_of, kind.rows))
        whole = operations.single(partial(_possible, kind, kind.slopes_together(arguments)), value, *arguments)
        term, *found = [operations.record("entry", whole, number) for number in range(1 + sum(kind.flags))]
        following = iter(found)
        _, *parts = [next(following) if flag else None for flag in kind.flags]
        for part, up in zip(parts, kind.lifted[1:], strict=True):
            if part is not None and up:
                operations.columns.add(part.place)
        return term, parts

    def _spread_together(self, kind: RowKind, values: dict[int, Any], cotangents: Sequence[Any]) -> None:
        """As `_spread`; what rows share is summed over them."""
        tape, found = kind.tape, dict[int, Any]()

        def add(value: Any, part: Any) -> None:
            if part is None or value.__class__ is not Node or value.place not in kind.wanted:
                return
            if self.operations.is_column(part) and not self.operations.is_column(values[value.place]):
                part = self.operations.single(_total, part)
            found[value.place] = found[value.place] + part if value.place in found else part

        for value, part in zip(tape.outputs, cotangents, strict=True):
            add(value, part)
        for node, record, arguments, _ in reversed(tape.steps):
            if node.place in found:
                asked = tuple(each.__class__ is Node and each.place in kind.wanted for each in arguments)
                given = [values[each.place] if each.__class__ is Node else each for each in arguments]
                parts = self._pulled(record, asked, found[node.place], values[node.place], given)
                for value, part in zip(arguments, parts, strict=True):
                    add(value, part)
        for at, leaf in enumerate(tape.leaves):
            if leaf.node.place in found:
                self._add(int(kind.given[4 + 2 * at]), found[leaf.node.place])

    # ------------------------------------------------------------------------------------------------ cotangents

    def _add(self, place: int, part: Any) -> None:
        if place != self._nowhere:
            self._cotangents[place] = self._cotangents.get(place, 0.0) + part

    def _pull_back(self, kind: RowKind, n: int) -> None:
        """Pass the cotangent of a computed value on."""
        cotangent = self._cotangents.get(self._place(kind, n), 0.0)
        if cotangent.__class__ is not Node:
            return
        values, parts = self._reads(kind, n), [cotangent]
        if kind.operator is not None:
            result = self._values[self._place(kind, n)]
            parts = self._pulled(kind.operator, kind.asked, cotangent, result, self._outputs(kind, values))
        self._spread(kind, n, values, parts)

    def _pulled(
        self, record: Deterministic, wanted: tuple[bool, ...], cotangent: Any, result: Any, arguments: Sequence[Any]
    ) -> list[Any]:
        assert isinstance(record.pullback, ElementwisePullback)
        return list(record.pullback.of_numbers(wanted, cotangent, result, *arguments))

    def _spread(self, kind: RowKind, n: int, values: dict[int, Any], cotangents: Sequence[Any]) -> None:
        """From the cotangents of what a row reads to those of its leaves."""
        tape, found = kind.tape, dict[int, Any]()

        def add(value: Any, part: Any) -> None:
            if part is not None and value.__class__ is Node and value.place in kind.wanted:
                found[value.place] = found[value.place] + part if value.place in found else part

        for value, part in zip(tape.outputs, cotangents, strict=True):
            add(value, part)
        for node, record, arguments, _ in reversed(tape.steps):
            if node.place in found and self.operations.is_moving(values[node.place]):
                asked = tuple(each.__class__ is Node and each.place in kind.wanted for each in arguments)
                given = [values[each.place] if each.__class__ is Node else each for each in arguments]
                for value, part in zip(
                    arguments, self._pulled(record, asked, found[node.place], values[node.place], given), strict=True
                ):
                    add(value, part)
        for at, leaf in enumerate(tape.leaves):
            if leaf.node.place in found:
                self._add(int(one_of(kind.given[4 + 2 * at], n)), found[leaf.node.place])


def _refuse(*given: Any) -> Any:
    raise NotOneFunction


def _floats_of(column: Column, rows: Any) -> Any:
    return as_floats(column.gather(rows))


def _total(part: Any) -> float:
    return float(np.add.reduce(part))


def _checked(group: Group, rows: Any, lifted: tuple[bool, ...], *arguments: Any) -> None:
    group.check(rows, lifted, arguments)


def _possible(kind: RowKind, slopes: Callable[..., Any], *given: Any) -> Any:
    """What `slopes` gives of the rows of a kind. Raises RowByRow where one of them is impossible."""
    before = kind.state.impossible
    found = slopes(kind.rows, *given)
    if kind.state.impossible != before:
        kind.state.impossible = before
        raise RowByRow
    return found
