"""Both passes over rows one by one, as recorded operations, in the order in which `moving.py` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from venture_lite.blocks.block_record import OPAQUE, BlockRecord, outputs_of, pulled, transform_of
from venture_lite.blocks.block_values import NotOneFunction, are_numbers, is_nothing
from venture_lite.blocks.moving import RowKind
from venture_lite.blocks.passes import NUMBERS
from venture_lite.blocks.tape import TapeLeaf
from venture_lite.procedures.derivatives import recorded_slopes
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.procedures.straight_line import Node, again, recordable
from venture_lite.trace.table import one_of


class RowsSingly:
    """Of row n of a kind."""

    def __init__(self, record: BlockRecord) -> None:
        self._record = record
        self._operations, self._values, self._nowhere = record.operations, record.values, record.nowhere

    def move(self, kind: RowKind, n: int) -> None:
        """The value of a row that moves."""
        self._values.hold(self._place(kind, n), self._value_of(kind, n))

    def _value_of(self, kind: RowKind, n: int) -> Any:
        if kind.column.kind is not float:
            raise NotOneFunction
        if kind.coordinates is not None:
            arguments = () if kind.is_apart else self._arguments(kind, self._reads(kind, n))
            transform, read = transform_of(kind, arguments)
            return recordable(transform.value_of)(self._coordinate(kind, n), *read)
        outputs = outputs_of(kind, self._reads(kind, n))
        return outputs[0] if kind.operator is None else self._record.called(kind.operator, outputs)

    def back(self, kind: RowKind, n: int) -> None:
        """The backward pass over a row that moves."""
        if kind.is_apart:
            self._settle(kind, n)
        elif kind.coordinates is not None:
            self.weigh(kind, n)
        else:
            self._pull_back(kind, n)

    def weigh(self, kind: RowKind, n: int) -> None:
        """Add the log density of a choice, and its derivatives to cotangents."""
        values = self._reads(kind, n)
        arguments = self._arguments(kind, values)
        place, row = self._place(kind, n), int(one_of(kind.rows, n))
        value = self._values.number(place) if place != self._nowhere else self._record.stored(kind.column, row)
        term, slopes = self._density(kind, value, arguments)
        self._record.terms.setdefault(kind.site, {})[row] = term
        following = iter(slopes)
        own, *parts = [next(following) if flag else None for flag in kind.flags]
        if kind.coordinates is not None:
            moved = self._moved(kind, n, value, own, arguments, parts)
            term = term + moved
        self._spread(kind, n, values, parts[: len(kind.asked)])
        if kind.is_apart:
            self._record.add(place, own)
        self._record.total = self._record.total + term

    def _density(self, kind: RowKind, value: Any, arguments: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The log density of a choice and its derivatives by what is asked for."""
        record = kind.operator
        if record.definition is not None and record.gradient is not None and record.gradient.of_numbers is not None:
            term, *slopes = again(
                recorded_slopes(record.definition, kind.flags), [value, *arguments], self._operations.record
            )
            return term, slopes
        whole = self._operations.apply(kind.slopes(), value, *arguments)
        term, *slopes = [self._operations.record("entry", whole, number) for number in range(1 + sum(kind.flags))]
        return term, slopes

    def _moved(self, kind: RowKind, n: int, value: Any, own: Any, arguments: Sequence[Any], parts: list[Any]) -> Any:
        """The log Jacobian of a choice's transform; what it adds to the derivatives is added to the parts."""
        transform, read = transform_of(kind, arguments)
        total = self._values.due(self._place(kind, n)) + own
        at = kind.coordinates[n][0].start  # type: ignore[index]
        self._record.gradient[at] = recordable(transform.by_free)(value, total, *read)
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
        transform, _ = transform_of(kind, ())
        value, own = self._values.number(place), self._values.due(place)
        at = kind.coordinates[n][0].start  # type: ignore[index]
        self._record.gradient[at] = recordable(transform.by_free)(value, own)
        self._record.total = self._record.total + recordable(transform.log_slope)(value)

    def _pull_back(self, kind: RowKind, n: int) -> None:
        """Pass the cotangent of a computed value on."""
        cotangent = self._values.due(self._place(kind, n))
        if is_nothing(cotangent):
            return
        values, parts = self._reads(kind, n), [cotangent]
        if kind.operator is not None:
            result = self._values.number(self._place(kind, n))
            parts = pulled(kind.operator, kind.asked, cotangent, result, outputs_of(kind, values))
        self._spread(kind, n, values, parts)

    def _spread(self, kind: RowKind, n: int, values: dict[int, Any], cotangents: Sequence[Any]) -> None:
        """From the cotangents of what a row reads to those of its leaves."""
        for at, part in self._record.due_to_leaves(kind, values, cotangents, lambda part, value: part):
            self._record.add(int(one_of(kind.given[4 + 2 * at], n)), part)

    # --------------------------------------------------------------------------------------------------- reading

    def _place(self, kind: RowKind, n: int) -> int:
        return int(one_of(kind.given[1], n))

    def _reads(self, kind: RowKind, n: int) -> dict[int, Any]:
        """The values of a row's tape, by place of the tape."""
        tape = kind.tape
        if tape.closures or kind.column.kind not in NUMBERS:
            raise NotOneFunction
        given = {leaf.node.place: kind.given[3 + 2 * at : 5 + 2 * at] for at, leaf in enumerate(tape.leaves)}

        def leaf_of(leaf: TapeLeaf) -> Any:
            row, place = (int(one_of(each, n)) for each in given[leaf.node.place])
            if self._record.is_opaque(leaf, place):
                return OPAQUE
            return self._values.number(place) if place != self._nowhere else self._record.stored(leaf.column, row)

        def called(node: Node, record: Deterministic, operands: list[Any]) -> Any:
            if node.place in kind.still and not are_numbers(operands):
                rows = [one_of(given[leaf.node.place][0], n) for leaf in tape.leaves]
                return self._record.standing(kind, node, rows, False)
            return self._record.called(record, operands)

        return tape.evaluated(leaf_of, called)

    def _coordinate(self, kind: RowKind, n: int) -> Any:
        assert kind.coordinates is not None
        taken, shape = kind.coordinates[n]
        if shape is not None:
            raise NotOneFunction
        return self._operations.free(taken.start)

    def _arguments(self, kind: RowKind, values: dict[int, Any]) -> list[Any]:
        """Those of a choice, which are tested."""
        if not isinstance(kind.operator, Random):
            raise NotOneFunction
        arguments = [*outputs_of(kind, values), *kind.defaults]
        if len(arguments) != len(kind.operator.arguments):
            raise NotOneFunction
        for argument, value in zip(kind.operator.arguments, arguments, strict=True):
            self._record.test(argument.domain, value)
        return arguments
