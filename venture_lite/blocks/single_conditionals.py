"""The conditional density of a single number in the state that the trace is in, as a function of its free coordinate.

What reads the number is recorded, tape and density, as one straight line of operations, whose first two derivatives by
the number are recorded, too, and compiled: over arrays where many rows read it, else over numbers. So an evaluation is
some ten operations of NumPy for each kind of rows, without jets and without worlds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.affine_conditionals import BESIDE
from venture_lite.blocks.tape import TapeLeaf
from venture_lite.blocks.world_passes import WorldKind
from venture_lite.procedures.columns import RowByRow, numeric
from venture_lite.procedures.derivatives import two_derivatives
from venture_lite.procedures.pullbacks import ElementwisePullback
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.straight_line import Node, Recording, recordable, recorded
from venture_lite.procedures.transforms import REAL, Elementwise

NOT_KNOWN = (TypeError, ValueError, ArithmeticError)
"""What a function of single numbers raises where it has no value."""

Read = Callable[[], Any]
"""What is read in the state at hand: a number, or one for each row."""


class Line:
    """Recorded operations on a number, the first input, and on what is read beside it."""

    def __init__(self, nowhere: int, place: int) -> None:
        """Of the choice at a place."""
        self._recording = Recording()
        self.number = self._recording.input(0)
        self._nowhere = nowhere
        # by place, what is computed from the number
        self._values = {place: self.number}
        self.reads: list[Read] = []

    def _input(self, read: Read) -> Node:
        self.reads.append(read)
        return self._recording.input(len(self.reads))

    def _stored(self, plan: WorldKind, column: Any, rows: Any) -> Node:
        """What stays: a number, or one for each row of a kind."""
        if isinstance(rows, int) or plan.count == 1:
            row = int(np.ravel(rows)[0])
            return self._input(lambda: _number(column.view[row]))
        return self._input(KeptNumbers(column, rows))

    def _leaf(self, plan: WorldKind, leaf: TapeLeaf) -> Any:
        rows, _, moved = plan.read[leaf.node.place]
        if moved is None:
            return self._stored(plan, leaf.column, rows)
        (place, *more) = set(moved.tolist()) - {self._nowhere}
        if more:
            raise RowByRow
        moves = moved == place
        if moves.all():
            return self._values[place]
        return recorded("where")(self._input(lambda: moves), self._values[place], self._stored(plan, leaf.column, rows))

    def outputs(self, plan: WorldKind) -> list[Any]:
        """What rows of a kind read. Raises RowByRow where it is not made of numbers by recordable procedures."""
        tape = plan.kind.tape
        values = tape.evaluated(lambda leaf: self._leaf(plan, leaf), lambda node, record, given: _called(record, given))
        found = [values[each.place] if each.__class__ is Node else each for each in tape.outputs]
        if not all(each.__class__ is Node or isinstance(each, (int, float)) for each in found):
            raise RowByRow
        return found

    def renew(self, plan: WorldKind) -> None:
        """What a single row computes from the number."""
        if plan.count > 1:
            raise RowByRow
        outputs, operator = self.outputs(plan), plan.kind.operator
        self._values[int(plan.own[0])] = outputs[0] if operator is None else _called(operator, outputs)

    def log_density(self, plan: WorldKind, value: Any = None) -> Any:
        """Of the rows of a kind, at the values that stand if not at one that is given."""
        kind = plan.kind
        if kind.operator.definition is None:
            raise RowByRow
        value = self._stored(plan, kind.column, plan.rows) if value is None else value
        given = zip([value, *self.outputs(plan), *kind.defaults], kind.flags, strict=True)
        return recordable(kind.operator.definition)(*[each + BESIDE if moves else each for each, moves in given])


def _number(value: Any) -> Any:
    if not isinstance(value, (int, float)):
        raise RowByRow
    return value


class KeptNumbers:
    """What rows of a column hold, gathered where the column has changed."""

    __slots__ = ("_column", "_numbers", "_rows", "_stamp")

    def __init__(self, column: Any, rows: Any) -> None:
        self._column, self._rows, self._stamp, self._numbers = column, rows, -1, np.zeros(0)

    def __call__(self) -> np.ndarray:
        """Raises RowByRow where these are no numbers."""
        stamp = self._column.stamp
        if stamp != self._stamp:
            numbers = self._column.gather(self._rows)
            if numbers.ndim != 1:
                raise RowByRow
            self._numbers, self._stamp = numeric(numbers, True), stamp
        return self._numbers


def _called(record: Deterministic, given: Sequence[Any]) -> Any:
    pullback = record.pullback
    if not isinstance(pullback, ElementwisePullback) or pullback.value is None:
        raise RowByRow
    return pullback.value(*given)


Compiled = Callable[..., tuple[Any, ...]]
"""Of the number and what is read beside it: the first two derivatives of a value, or of each row's."""


def _derived(line: Line, result: Any, rows: int, with_value: bool = False) -> Compiled:
    """Raises RowByRow where a function of the number has no second derivative."""
    found = two_derivatives(result, 1 + len(line.reads), rows > 1, with_value)
    if found is None:
        raise RowByRow
    return found


@dataclass(frozen=True, slots=True)
class Term:
    """The density of what reads the number, of one or several rows."""

    compiled: Compiled
    reads: list[Read]
    rows: int


class SingleConditional:
    """The log density of a choice's free coordinate given all else."""

    def __init__(self, nowhere: int, moved: Sequence[WorldKind], terms: Sequence[WorldKind]) -> None:
        """Of one choice, with what is computed from it and what weighs it. Raises RowByRow where some of it is not
        made of recordable procedures and densities."""
        choice, *self._between = moved
        transform = choice.kind.operator.transform
        if choice.count > 1 or choice.width > 1 or not isinstance(transform, Elementwise):
            raise RowByRow
        self._at = nowhere, int(choice.own[0])
        own = Line(*self._at)
        arguments = own.outputs(choice) if transform.reads_arguments else []
        jacobian = recordable(transform.log_slope)(own.number, *arguments)
        self._own = Term(_derived(own, own.log_density(choice, own.number) + jacobian, 1), own.reads, 1)
        self._terms = [self._term(plan) for plan in terms]
        # from the free coordinate to the number; none where they are the same
        self._number: Term | None = None
        if transform is not REAL:
            free = Line(*self._at)
            arguments = free.outputs(choice) if transform.reads_arguments else []
            number = recordable(transform.value_of)(free.number + BESIDE, *arguments)
            self._number = Term(_derived(free, number, 1, with_value=True), free.reads, 1)

    def _term(self, plan: WorldKind) -> Term:
        line = Line(*self._at)
        for computed in self._between:
            line.renew(computed)
        return Term(_derived(line, line.log_density(plan), plan.count), line.reads, plan.count)

    def given(self) -> GivenSingle:
        """As the trace stands. Raises RowByRow where something that is read is no number."""
        number = None if self._number is None else _read(self._number)
        return GivenSingle(number, _read(self._own), [_read(term) for term in self._terms])


ReadTerm = tuple[Compiled, list[Any], int]
"""A term with what it reads, and its number of rows."""


def _read(term: Term) -> ReadTerm:
    return term.compiled, [read() for read in term.reads], term.rows


class GivenSingle:
    """The same, as the trace stood."""

    __slots__ = ("_number", "_own", "_terms")

    def __init__(self, number: ReadTerm | None, own: ReadTerm, terms: Sequence[ReadTerm]) -> None:
        self._number, self._own, self._terms = number, own, terms

    def along(self, free: float, terms: Sequence[int] | None = None) -> tuple[float, float]:
        """The first two derivatives at a free coordinate, NaN where there are none; of what reads the choice, some may
        be chosen. NumPy may warn."""
        number, way, turn = free, 1.0, 0.0
        try:
            if self._number is not None:
                compiled, read, _ = self._number
                number, way, turn = compiled(free, *read)
            compiled, read, _ = self._own
            slope, curve = compiled(number, *read)
            for compiled, read, rows in self._terms if terms is None else [self._terms[at] for at in terms]:
                by_number, curved = compiled(number, *read)
                if rows > 1:
                    by_number, curved = _summed(by_number, rows), _summed(curved, rows)
                slope += by_number
                curve += curved
        except NOT_KNOWN:
            return math.nan, math.nan
        return slope * way, curve * way * way + slope * turn

    def at(
        self, which: np.ndarray, free: np.ndarray, terms: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `Conditionals.at`, of the one state."""
        with np.errstate(all="ignore"):
            slope, curve = self.along(float(free[0, 0]), terms)
        return np.array([[slope]]), np.array([[[curve]]])


def _summed(part: Any, rows: int) -> float:
    """Over rows, of which there may be one number for all."""
    return float(np.add.reduce(part)) if part.__class__ is np.ndarray else float(part) * rows
