"""The second derivatives of a block's log density, in columns: both passes of `density.py` over jets.

Each kind of rows is gone through once, with the derivatives in all D directions of the free coordinates beside each
value: forward from the coordinates to what is computed from them, backward from the gradients of the densities, which
are functions of jets like any other, to the gradient by each coordinate, whose derivatives are a row of the Hessian
(Pearlmutter 1994, Fast exact multiplication by the Hessian, for all directions at once).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from venture_lite.blocks.moving import BlockState, RowKind
from venture_lite.blocks.tape import TapeLeaf
from venture_lite.errors import VentureError
from venture_lite.procedures.columns import RowByRow, numeric
from venture_lite.procedures.derivatives import slopes_of_columns
from venture_lite.procedures.items import laid_out
from venture_lite.procedures.jets import Jet, NoRule, value_of
from venture_lite.procedures.pullbacks import LOCALLY_CONSTANT, accumulated, gathered
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.procedures.straight_line import Node
from venture_lite.procedures.transforms import Elementwise
from venture_lite.trace.table import Column, NotColumnar, listed, one_of, part_of

Lifted = tuple[bool, ...]

Stretch = tuple[RowKind, int, int]
"""Some rows of a kind."""

MOST = 4_000_000
"""Derivatives held for the rows that are gone through together; those for all that moves may be ten times as many."""

REFUSALS = (NoRule, RowByRow, NotColumnar, TypeError, ValueError, AttributeError, VentureError)
"""What is raised where something on the way has no jets."""


def hessian(state: BlockState, size: int, moved: Sequence[Stretch], terms: Iterable[RowKind]) -> np.ndarray | None:
    """(D, D) at the state in which `present` or `put` left the block; None where a step on the way is not made of what
    jets go through."""
    if size * (state.nowhere + 1) > 10 * MOST:
        return None
    second = Second(state.nowhere, size)
    try:
        with np.errstate(all="ignore"):
            second.run(moved, terms)
    except REFUSALS:
        return None
    return np.asarray(0.5 * (second.hessian + second.hessian.T))


def of_value(record: Random, value: np.ndarray, arguments: Sequence[Any]) -> np.ndarray | None:
    """The second derivatives (D, D) of one log density by its value, a number () or a vector; None as above."""
    given, size = (Jet(value, np.eye(value.size).reshape(-1, *value.shape)), *arguments), 1 + len(arguments)
    try:
        with np.errstate(all="ignore"):
            slope = density_slopes(record, (False,) * size, (True, *(False,) * len(arguments)), given, ())[0]
    except REFUSALS:
        return None
    return slope.tangent.reshape(value.size, -1) if slope.__class__ is Jet else np.zeros((value.size, value.size))


class Second:
    """Passes over a block at the state in which `present` or `put` left it."""

    def __init__(self, nowhere: int, size: int) -> None:
        self.nowhere = nowhere
        self.size = size
        self.hessian = np.zeros((size, size))
        # by place: of each number that moves its derivatives in all directions, its cotangent, and the same of that
        self.moved = np.zeros((nowhere + 1, size))
        self.cotangents = np.zeros(nowhere + 1)
        self.slopes = np.zeros((nowhere + 1, size))
        # the values themselves, of jets, and the cotangents of vectors and lists
        self.values: dict[int, Any] = {}
        self.others: dict[int, Any] = {}

    def run(self, moved: Sequence[Stretch], terms: Iterable[RowKind]) -> None:
        for stretch in moved:
            self._through(SecondRows.forward, *stretch)
        at_once = max(1, MOST // max(self.size, 1))
        for kind in terms:
            for start in range(0, kind.count, at_once):
                self._through(SecondRows.backward, kind, start, min(start + at_once, kind.count))
        for stretch in reversed(moved):
            self._through(SecondRows.backward, *stretch)

    def _through(self, way: Callable[[SecondRows], None], kind: RowKind, start: int, stop: int) -> None:
        """One way through some rows: together, or one by one where they have no form as columns."""
        try:
            way(SecondRows(self, kind, start, stop))
        except (RowByRow, NotColumnar):
            for index in range(start, stop):
                way(SecondRows(self, kind, index))


class SecondRows:
    """Some rows of a kind, or a single one, with what they read."""

    def __init__(self, second: Second, kind: RowKind, start: int, stop: int = -1) -> None:
        self._second = second
        self._kind = kind
        self._tape = tape = kind.tape
        if tape.closures:
            raise RowByRow
        self._single = stop < 0
        # the dimension of rows, if there is one
        self._count = () if self._single else (stop - start,)
        self._given = [one_of(each, start) if self._single else part_of(each, start, stop) for each in kind.given]
        self._row, self._places = self._given[0], np.broadcast_to(self._given[1], self._count)
        read = zip(self._given[3::2], self._given[4::2], strict=True)
        self._read = {leaf.node.place: each for leaf, each in zip(tape.leaves, read, strict=True)}
        self._is_number = kind.column.kind is float
        self._flags = tuple(map(self._is_lifted, tape.outputs))
        # by place of the tape
        self._values = tape.evaluated(self._leaf, self._call)
        self._outputs = list(map(self._value, tape.outputs))

    def _is_lifted(self, operand: Any) -> bool:
        return not self._single and self._tape.is_lifted(operand)

    def _value(self, operand: Any) -> Any:
        return self._values[operand.place] if operand.__class__ is Node else operand

    def _leaf(self, leaf: TapeLeaf) -> Any:
        return self._moving(leaf.column, *self._read[leaf.node.place])

    def _own_value(self, places: Any) -> Any:
        return self._moving(self._kind.column, self._row, places)

    def _call(self, node: Node, record: Deterministic, arguments: list[Any]) -> Any:
        return called(record, tuple(map(self._is_lifted, node.operands[1:])), arguments)

    def _moving(self, column: Column, rows: Any, places: Any) -> Any:
        """The values of some rows, or the value of one, with derivatives; as they are where they stay."""
        second, is_single = self._second, isinstance(rows, int)
        if np.all(places == second.nowhere):
            return column.view[rows] if is_single else column.gather(rows)
        if column.kind is float:
            return Jet(column.view[rows] if is_single else column.gather(rows), second.moved[places].T)
        if is_single:
            return second.values.get(int(places), column.view[rows])
        each = listed(rows).tolist()
        found = [second.values.get(place, column.view[row]) for place, row in zip(places.tolist(), each, strict=True)]
        if not all(hasattr(value, "dtype") for value in found):
            raise NotColumnar
        return np.stack(found)

    # ------------------------------------------------------------------------------------------------- forward

    def forward(self) -> None:
        """The derivatives of what moves."""
        kind, second = self._kind, self._second
        if kind.coordinates is not None:
            transform, arguments = self._transform()
            value = self._own_value(second.nowhere)
            free = transform.columns[0](value, *map(value_of, arguments))
            coordinates = self._coordinates()
            directions = np.zeros((second.size, *coordinates.shape))
            directions[(coordinates, *np.indices(coordinates.shape))] = 1.0
            value = transform.columns[1](Jet(free, directions), *arguments)
        else:
            value = self._outputs[0]
            if kind.operator is not None:
                value = called(kind.operator, self._flags, self._outputs)
        is_shared = kind.coordinates is None and True not in self._flags
        if not self._is_number:
            for position, place in enumerate(np.atleast_1d(self._places).tolist()):
                second.values[place] = value if is_shared or self._single else value[position]
        elif value.__class__ is Jet:
            second.moved[self._places] = value.tangent.T

    def _transform(self) -> tuple[Elementwise, list[Any]]:
        """Of the choices, with the arguments that it reads."""
        transform = self._kind.operator.transform
        if not isinstance(transform, Elementwise):
            raise NoRule("a transform that is not made coordinate by coordinate")
        if transform.reads_arguments and not self._is_number and not self._single:
            raise RowByRow
        return transform, [*self._outputs, *self._kind.defaults] if transform.reads_arguments else []

    def _coordinates(self) -> np.ndarray:
        """The free coordinates of each choice, in the shape of the values."""
        found = self._given[2]
        if self._is_number:
            return np.asarray(found)
        each = [found] if self._single else found
        shaped = [np.arange(taken.start, taken.stop).reshape(shape) for taken, shape in each]
        return shaped[0] if self._single else np.array(shaped)

    # ------------------------------------------------------------------------------------------------ backward

    def backward(self) -> None:
        """From the cotangents of the values to those of what they read; those of choices after their densities."""
        kind, flags = self._kind, self._flags
        if kind.is_maker:
            raise NoRule("a joint density")
        parts: Sequence[Any] = [self._own()]
        if isinstance(kind.operator, Random):
            self._weigh(kind.operator, parts[0])
        elif parts[0] is not None:
            result = self._own_value(self._places)
            if True not in flags and not self._single:
                parts, result = [parts[0].sum(axis=0)], result[0]
            if kind.operator is not None:
                parts = _pulled(kind.operator, flags, kind.asked, parts[0], result, self._outputs)
            self._back(parts)

    def _own(self) -> Any:
        """The cotangents of the values; None for 0 of vectors and lists."""
        second = self._second
        if np.all(self._places == second.nowhere):
            return None
        if self._is_number:
            return Jet(second.cotangents[self._places], second.slopes[self._places].T)
        found = [second.others.get(place) for place in np.atleast_1d(self._places).tolist()]
        if self._single:
            return found[0]
        if any(each is not None for each in found):
            raise RowByRow
        return None

    def _weigh(self, record: Random, cotangent: Any) -> None:
        """Pass on the derivatives of log densities; those by the coordinates are rows of the Hessian."""
        kind, is_moved = self._kind, self._kind.coordinates is not None
        value = self._own_value(self._places if is_moved else self._second.nowhere)
        given, lifted = (value, *self._outputs, *kind.defaults), self._lifted()
        own, *parts = density_slopes(record, lifted, kind.flags, given, self._count)
        if not is_moved:
            self._back(parts[: len(self._outputs)])
            return
        transform, arguments = self._transform()
        total = accumulated(cotangent, own)
        if transform.by_arguments is not None:
            for position, part in enumerate(transform.by_arguments(value, total, *arguments)):
                if part is not None and kind.flags[1 + position]:
                    part = gathered(part, lifted[1:], position, arguments[position])
                    parts[position] = accumulated(parts[position], part)
        by_free = transform.by_free(value, total, *arguments)
        self._back(parts[: len(self._outputs)])
        self._take(by_free)

    def _take(self, by_free: Any) -> None:
        """The derivatives by the coordinates of choices."""
        if by_free.__class__ is Jet:
            at = np.ravel(self._coordinates())
            self._second.hessian[at] += by_free.tangent.reshape(self._second.size, -1).T

    def _lifted(self) -> Lifted:
        """Of the value and each argument of a choice."""
        return (not self._single, *self._flags, *(False,) * len(self._kind.defaults))

    def _back(self, cotangents: Sequence[Any]) -> None:
        """From the cotangents of what is read, None for 0, to those of the leaves, which are added up."""
        tape, wanted = self._tape, self._kind.wanted
        found: dict[int, Any] = {}

        def add(value: Any, part: Any) -> None:
            if value.__class__ is Node and value.place in wanted:
                found[value.place] = accumulated(found.get(value.place), part)

        for value, part in zip(tape.outputs, cotangents, strict=True):
            add(value, part)
        for node, record, operands, _ in reversed(tape.steps):
            if (cotangent := found.get(node.place)) is not None:
                lifted = tuple(map(self._is_lifted, operands))
                asked = tuple(value.__class__ is Node and value.place in wanted for value in operands)
                given = list(map(self._value, operands))
                parts = _pulled(record, lifted, asked, cotangent, self._values[node.place], given)
                for value, part in zip(operands, parts, strict=True):
                    add(value, part)
        # nothing is added before all is known
        for leaf in tape.leaves:
            if (part := found.get(leaf.node.place)) is not None:
                self._add(leaf, part)

    def _add(self, leaf: TapeLeaf, part: Any) -> None:
        """To the cotangents of a leaf, one place or one for each row."""
        second, places = self._second, self._read[leaf.node.place][1]
        if leaf.column.kind is float:
            np.add.at(second.cotangents, places, value_of(part))
            if part.__class__ is Jet:
                np.add.at(second.slopes, places, part.tangent.T)
            return
        for position, place in enumerate(np.atleast_1d(places).tolist()):
            share = part[position] if np.ndim(places) else part
            second.others[place] = accumulated(second.others.get(place), share)


def density_slopes(
    record: Random, lifted: Lifted, asked: Lifted, given: Sequence[Any], count: tuple[int, ...]
) -> Sequence[Any]:
    """The derivatives of log densities by the value and each argument, jets where these are; None where not asked for.
    Of `count` rows, or of a single choice where that is (), summed over those that share an argument."""
    assert record.gradient is not None
    if record.definition is None:
        found: tuple[Any, ...] = record.gradient.evaluate(lifted, asked, *given)
        if not any(part.__class__ is Jet for part in found):
            # what a gradient does not know as a number counts as impossible there
            raise NoRule(record.name)
        return found
    laid = laid_out(lifted, given)
    if laid is not None:
        rows = (math.prod(laid.shape),)
        parts = enumerate(_recorded_slopes(record.definition, laid.lifted, asked, laid.given, rows))
        return [laid.shared(part, at) if asked[at] else None for at, part in parts]
    return _recorded_slopes(record.definition, lifted, asked, given, count)


def _recorded_slopes(
    definition: Callable[..., Any], lifted: Lifted, asked: Lifted, given: Sequence[Any], count: tuple[int, ...]
) -> Sequence[Any]:
    with np.errstate(all="ignore"):
        following = iter(slopes_of_columns(definition, asked)(*map(numeric, given, lifted)))
    return [_summed(next(following), count, up) if ask else None for ask, up in zip(asked, lifted, strict=True)]


def _summed(part: Any, count: tuple[int, ...], lifted: bool) -> Any:
    """One derivative for each row, or their sum."""
    part = part if np.ndim(part) == len(count) else part + np.zeros(count)
    return part if lifted or not count else part.sum(axis=0)


def called(record: Deterministic, lifted: Lifted, arguments: Sequence[Any]) -> Any:
    """The value of a call, for each row where something is lifted."""
    if record.pullback is LOCALLY_CONSTANT:
        # the value depends on types and sizes, which are those of numbers and arrays, not of jets
        arguments = [x.value[()] if x.__class__ is Jet else x for x in arguments]
    if True in lifted:
        if record.columns is None:
            raise RowByRow
        return record.columns(lifted, *arguments)
    if _is_row(record, arguments):
        with contextlib.suppress(RowByRow):
            return called(record, *_as_row(arguments))[0]
    return record.scalar(*arguments)


def _pulled(
    record: Deterministic, lifted: Lifted, wanted: Lifted, cotangent: Any, result: Any, arguments: Sequence[Any]
) -> Sequence[Any]:
    """The cotangents of a call's arguments, from one for each row where something is lifted."""
    assert record.pullback is not None
    if True in lifted or not _is_row(record, arguments):
        return record.pullback(lifted, wanted, cotangent, result, *arguments)
    up, given = _as_row(arguments)
    try:
        parts = record.pullback(up, wanted, cotangent[None], result[None], *given)
    except RowByRow:
        return record.pullback(lifted, wanted, cotangent, result, *arguments)
    return [part[0] if lifted and part is not None else part for part, lifted in zip(parts, up, strict=True)]


def _is_row(record: Deterministic, arguments: Sequence[Any]) -> bool:
    """Whether a single call is made as that of a column: procedures of lists take jets as they take anything."""
    classes = [argument.__class__ for argument in arguments]
    return record.columns is not None and Jet in classes and tuple not in classes


def _as_row(arguments: Sequence[Any]) -> tuple[Lifted, list[Any]]:
    """A single call as that of a column of one row."""
    lifted = tuple([argument.__class__ is Jet for argument in arguments])
    return lifted, [argument[None] if up else argument for argument, up in zip(arguments, lifted, strict=True)]
