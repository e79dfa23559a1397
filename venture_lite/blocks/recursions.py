"""Recursions: rows of which each reads the one before, computed in one loop over numbers.

Of a recursion each step is a run of one row (`interpreter/runs.py`), and as calls of printed functions a thousand steps
take milliseconds. Here the operations of one step, over all kinds of rows that take turns, are recorded together, and
what no step makes is taken out of the loop (`loops.py`). Backward the values are columns, and the loop makes cotangents
of what steps make; those of all else are made of them afterwards, over columns. Rows that are not numbers made of
numbers, or fail, are left to the functions of single rows, which say what is wrong, and where.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.loops import (
    COLUMN,
    SHARED,
    STEP,
    UNIT,
    BeforeLoop,
    LoopCuts,
    LoopOperations,
    NotInOneLoop,
    StepLoop,
    is_affine,
)
from venture_lite.blocks.moving import BlockState, PassStep, RowKind, advance, as_slice, weighed
from venture_lite.blocks.tape import TapeLeaf
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.pullbacks import ElementwisePullback
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.straight_line import Node
from venture_lite.trace.table import Column, listed, part_of

FEWEST = 20
"""Steps of a recursion that has a loop."""
MOST_KINDS = 16
"""Kinds of rows that take turns."""
MOST_LAGS = 4
"""Steps back that a step reads."""

Stretch = tuple[RowKind, int, int]
"""Some rows of a kind, from one position to another."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Single rows of some kinds, which take turns: of each kind those from its start on, one at each step."""

    kinds: tuple[RowKind, ...]
    starts: tuple[int, ...]
    count: int

    def rows(self) -> Iterator[Stretch]:
        """One by one, in order."""
        for step in range(self.count):
            for kind, start in zip(self.kinds, self.starts, strict=True):
                yield kind, start + step, start + step + 1


def turns_in(moved: Sequence[Stretch]) -> Iterator[Turns | Stretch]:
    """What moves, with single rows that take turns put together."""
    at = 0
    while at < len(moved):
        turns = _turns_at(moved, at)
        yield moved[at] if turns is None else turns
        at += 1 if turns is None else turns.count * len(turns.kinds)


def _turns_at(moved: Sequence[Stretch], first: int) -> Turns | None:
    """The longest that begin there, of the fewest kinds."""
    found = []
    for size in range(1, MOST_KINDS + 1):
        begin = moved[first : first + size]
        if len({id(kind) for kind, _, _ in begin}) < len(begin):
            break
        count = _repeated(moved, first, size)
        if count >= FEWEST:
            found.append(Turns(tuple(kind for kind, _, _ in begin), tuple(start for _, start, _ in begin), count))
    return max(found, key=lambda turns: turns.count * len(turns.kinds), default=None)


def _repeated(moved: Sequence[Stretch], first: int, size: int) -> int:
    """How many steps of so many rows follow one another, each of which takes the next row of each kind."""
    steps = 0
    for at in range(first, len(moved) - size + 1, size):
        for (kind, start, _), (other, begin, end) in zip(
            moved[first : first + size], moved[at : at + size], strict=True
        ):
            if kind is not other or begin != start + steps or end != begin + 1:
                return steps
        steps += 1
    return steps


@dataclass(frozen=True, slots=True)
class StepRead:
    """A stored value that each step reads: of another row of the recursion, or from outside."""

    name: str
    column: Column
    # one row for all steps, or one for each (n,); so are the places of their cotangents
    rows: Any
    places: Any
    # which of the kinds it is a value of, and how many steps before; None from outside
    of: int | None = None
    lag: int = 0

    # whether it is one value from outside
    is_shared: bool = False


class Recursion:
    """Both passes over rows that take turns.

    Raises NotInOneLoop for rows that read otherwise than a few steps back, or are computed by what is not elementwise.
    """

    def __init__(self, state: BlockState, turns: Turns) -> None:
        self._state, self._turns = state, turns
        if not all(map(_is_plain, turns.kinds)):
            raise NotInOneLoop
        self._operations = LoopOperations()
        # of each kind what is given for its rows
        self._given = [
            [part_of(each, start, start + turns.count) for each in kind.given]
            for kind, start in zip(turns.kinds, turns.starts, strict=True)
        ]
        self._rows = [listed(given[0]) for given in self._given]
        # the same, and the places of cotangents, as slices where they follow one another
        self._stretches = [(as_slice(given[0]), as_slice(given[1])) for given in self._given]
        self._reads: dict[str, StepRead] = {}
        # of each kind what the places of its tape are, and which of these are still, by name
        self._values: list[dict[int, Any]] = [{} for _ in turns.kinds]
        self._still: list[dict[str, int]] = [{} for _ in turns.kinds]
        self._kept = [kind.keeper() for kind in turns.kinds]
        # what names are made from in the forward pass
        self._names: dict[str, int] = {}
        self._results = [self._recorded(number) for number in self._numbers]
        # how many steps back each kind is read, and of the rows read before the first step, the last one first, the
        # place of the cotangent, too
        self._lags = [max((read.lag for read in self._reads_of(number)), default=0) for number in self._numbers]
        self._earlier = [self._before_first(number) for number in self._numbers]
        # each kind and steps back for which something waits
        self._waiting = [(number, back) for number, lag in enumerate(self._lags) for back in range(1, lag + 1)]
        cuts = LoopCuts(self._names)
        self._is_affine = is_affine(self._results, cuts)
        if not self._is_affine:
            self._loop = StepLoop(self._operations, cuts, self._results, self._waiting)
        self._print_backward()
        if self._is_affine:
            self._print_forward()

    @property
    def _numbers(self) -> range:
        return range(len(self._turns.kinds))

    def _reads_of(self, number: int) -> Iterable[StepRead]:
        return (read for read in self._reads.values() if read.of == number)

    # ---------------------------------------------------------------------------------------------- what is read

    def _rows_of_leaves(self, number: int) -> list[Any]:
        return self._given[number][3 : 3 + 2 * len(self._turns.kinds[number].tape.leaves) : 2]

    def _recorded(self, number: int) -> Any:
        """The value of a kind at a step, as an operation."""
        kind, values = self._turns.kinds[number], self._values[number]
        tape = kind.tape
        leaves = {leaf.node.place: (position, leaf) for position, leaf in enumerate(tape.leaves)}
        steps = {node.place: (record, arguments) for node, record, arguments, _ in tape.steps}
        numbers = tape.numbers_among(kind.still, self._rows_of_leaves(number))

        def read(value: Any) -> Any:
            if value.__class__ is not Node:
                return value
            if value.place not in values:
                values[value.place] = made(value)
            return values[value.place]

        def made(value: Node) -> Any:
            if value.place in numbers:
                name = f"s{number}_{value.place}"
                self._still[number][name] = value.place
                return self._named(name, COLUMN if tape.is_lifted(value) else SHARED)
            if value.place in leaves:
                return self._leaf(number, *leaves[value.place])
            if value.place not in steps:
                raise NotInOneLoop
            record, arguments = steps[value.place]
            return self._operations.call(record, list(map(read, arguments)))

        outputs = list(map(read, tape.outputs))
        return outputs[0] if kind.operator is None else self._operations.call(kind.operator, outputs)

    def _leaf(self, number: int, position: int, leaf: TapeLeaf) -> Node:
        if leaf.column.kind is not float:
            raise NotInOneLoop
        rows, places = self._given[number][3 + 2 * position : 5 + 2 * position]
        of, lag = self._within(number, leaf.column, rows)
        name = f"v{number}_{position}" if of is None else f"x{of}" if lag == 0 else f"p{of}_{lag}"
        is_shared = of is None and np.ndim(listed(rows)) == 0
        if of is None and not is_shared:
            rows, places = as_slice(rows), as_slice(places)
        read = self._reads[name] = StepRead(name, leaf.column, rows, places, of, lag, is_shared)
        return self._named(name, STEP if of is not None else SHARED if read.is_shared else COLUMN)

    def _named(self, name: str, cut: int) -> Node:
        self._names[name] = cut
        return self._operations.named(name)

    def _within(self, number: int, column: Column, rows: Any) -> tuple[int | None, int]:
        """Which of the kinds some rows are of, and how many steps before; None for rows from outside."""
        rows = listed(rows)
        for of, (kind, own) in enumerate(zip(self._turns.kinds, self._rows, strict=True)):
            if kind.column is not column or not np.any(inside := np.isin(rows, own)):
                continue
            if np.ndim(rows) == 0:
                raise NotInOneLoop
            lag = int(np.argmax(inside))
            if lag > MOST_LAGS or (lag == 0 and of >= number) or (rows[lag:] != own[: len(own) - lag]).any():
                raise NotInOneLoop
            return of, lag
        return None, 0

    def _before_first(self, number: int) -> list[tuple[int, int]]:
        """Of the rows read before the first step, the last one first: row and place."""
        found: list[tuple[int, int]] = []
        for back in range(1, self._lags[number] + 1):
            reads = [read for read in self._reads_of(number) if read.lag >= back]
            same = {(int(read.rows[at]), int(read.places[at])) for read in reads for at in (read.lag - back,)}
            if len(same) != 1:
                raise NotInOneLoop
            found += same
        return found

    # -------------------------------------------------------------------------------------------------- printing

    def _print_backward(self) -> None:
        """What gives the slopes of each kind's value by what it reads: values of the recursion are columns here."""
        cuts = LoopCuts({name: min(cut, COLUMN) for name, cut in self._names.items()} | {UNIT: SHARED})
        found = [(number, read, slope) for number in self._numbers for read, slope in self._slopes_by(number)]
        # kind and what it reads: of the recursion, and from outside
        self._inner = [(number, read) for number, read, _ in found if read.of is not None]
        self._outer = [(number, read) for number, read, _ in found if read.of is None]
        slopes = [slope for _, read, slope in found if read.of is not None]
        slopes += [slope for _, read, slope in found if read.of is None]
        self._slopes = BeforeLoop(self._operations, slopes, cuts)
        width = max((self._below(number, read) for number, read in self._inner), default=0)
        self._band = np.zeros((width + 1, self._turns.count * len(self._turns.kinds)), order="F")

    def _print_forward(self) -> None:
        """What gives the slopes, which no step makes, and the values as they were if all that steps made were 0."""
        slopes = [slope for number in self._numbers for read, slope in self._slopes_by(number) if read.of is not None]
        cuts = LoopCuts({name: min(cut, COLUMN) for name, cut in self._names.items()} | {UNIT: SHARED})
        self._made_of_nothing = dict.fromkeys((name for name, cut in self._names.items() if cut == STEP), 0.0) | {
            UNIT: 1.0
        }
        self._affine = BeforeLoop(self._operations, [*slopes, *self._results], cuts)

    def _below(self, number: int, read: StepRead) -> int:
        """How many values after one that it reads a kind's value comes, where those of one step follow one another."""
        assert read.of is not None
        return read.lag * len(self._turns.kinds) + number - read.of

    def _slopes_by(self, number: int) -> Iterable[tuple[StepRead, Any]]:
        """The slopes of a kind's value by all that it reads and that moves."""
        kind, values = self._turns.kinds[number], self._values[number]
        tape = kind.tape
        found: dict[int, Any] = {}

        def pass_on(record: Deterministic, cotangent: Any, value: Any, arguments: Sequence[Any]) -> None:
            wanted = tuple(each.__class__ is Node and each.place in kind.wanted for each in arguments)
            given = [values[each.place] if each.__class__ is Node else each for each in arguments]
            assert isinstance(record.pullback, ElementwisePullback)
            parts = record.pullback.of_numbers(wanted, cotangent, value, *given)
            for each, part in zip(arguments, parts, strict=True):
                if part is not None:
                    found[each.place] = found[each.place] + part if each.place in found else part

        if kind.operator is None:
            found[tape.outputs[0].place] = self._operations.unit
        else:
            pass_on(kind.operator, self._operations.unit, self._results[number], tape.outputs)
        for node, record, arguments, _ in reversed(tape.steps):
            if node.place in found:
                pass_on(record, found[node.place], values[node.place], arguments)
        # several leaves may be one value
        slopes: dict[str, Any] = {}
        for leaf in tape.leaves:
            if leaf.node.place in found:
                name, slope = values[leaf.node.place].operands[0], found[leaf.node.place]
                slopes[name] = slopes[name] + slope if name in slopes else slope
        return [(self._reads[name], slope) for name, slope in slopes.items()]

    # --------------------------------------------------------------------------------------------------- running

    def steps(self) -> tuple[list[PassStep], list[PassStep]]:
        """Both passes, to be called in order."""
        first = self._turns.kinds[0], self._turns.starts[0]
        return [(self._forward_or_singly, (), *first)], [(self._backward_or_singly, (), *first)]

    def _forward_or_singly(self) -> None:
        try:
            self.forward()
        except Exception:
            advance(step for kind, at, end in self._turns.rows() for step in kind.steps(at, end, False)[0])

    def _backward_or_singly(self) -> float:
        try:
            self.backward()
        except Exception:
            rows = reversed(list(self._turns.rows()))
            return weighed(step for kind, at, end in rows for step in kind.steps(at, end, False)[1])
        return 0.0

    def forward(self) -> None:
        """Raises RowByRow, or what arithmetic raises, where a step has no value; then nothing was stored."""
        values = self._solved_forward() if self._is_affine else self._made_in_turn()
        if any(math.isnan(float(np.add.reduce(value))) for value in values.values()):
            raise RowByRow
        for number, value in values.items():
            self._turns.kinds[number].column.array[self._stretches[number][0]] = value

    def _made_in_turn(self) -> dict[int, np.ndarray]:
        """Of each kind the values (steps,), step by step."""
        starts = [self._before(number, back) for number, back in self._waiting]
        values = self._loop.run(self._turns.count, self._outside(), starts)
        for number, (of, lag) in self._loop.copies.items():
            values[number] = self._shifted(of, lag, values[of])
        return values

    def _before(self, number: int, back: int) -> float:
        """The value of a kind so many steps before the first."""
        value: float = self._turns.kinds[number].column.view[self._earlier[number][back - 1][0]]
        return value

    def _solved_forward(self) -> dict[int, np.ndarray]:
        """The same of an affine recursion: the solution of a triangular system of equations with a band."""
        found = self._affine(self._outside() | self._made_of_nothing)
        slopes, offsets = found[: len(self._inner)], found[len(self._inner) :]
        given = np.empty((self._turns.count, len(self._turns.kinds)))
        for number, offset in enumerate(offsets):
            given[:, number] = offset
        for (number, read), slope in zip(self._inner, slopes, strict=True):
            assert read.of is not None
            for step in range(read.lag):
                given[step, number] += (slope[step] if np.ndim(slope) else slope) * self._before(
                    read.of, read.lag - step
                )
        values = self._through_band(slopes, given, "N")
        return {number: values[:, number] for number in self._numbers}

    def _shifted(self, number: int, lag: int, values: np.ndarray) -> np.ndarray:
        """The values of a kind so many steps before each step."""
        if not lag:
            return values
        earlier = [self._turns.kinds[number].column.view[row] for row, _ in self._earlier[number][:lag]]
        return np.concatenate([earlier[::-1], values[: len(values) - lag]])

    def backward(self) -> None:
        """Raises RowByRow, or what arithmetic raises, where a derivative is none; then nothing was added."""
        cotangents = self._state.cotangents
        slopes = self._slopes({**self._outside(), **self._values_of_steps(), UNIT: 1.0})
        inner, outer = slopes[: len(self._inner)], slopes[len(self._inner) :]
        due = self._solved(inner)
        parts = [due[:, number] * slope for (number, _), slope in zip(self._outer, outer, strict=True)]
        sums = [float(np.add.reduce(part)) for part in parts]
        # of what is no number the sum is none
        if math.isnan(float(np.add.reduce(due, axis=None))) or any(map(math.isnan, sums)):
            raise RowByRow
        for (_, read), part, total in zip(self._outer, parts, sums, strict=True):
            if read.is_shared:
                cotangents[read.places] += total
            else:
                self._state.scatter(read.places, part)
        for (number, read), slope in zip(self._inner, inner, strict=True):
            # the first steps read rows before the first
            for step in range(read.lag):
                cotangents[read.places[step]] += due[step, number] * (slope[step] if np.ndim(slope) else slope)

    def _solved(self, slopes: Sequence[Any]) -> np.ndarray:
        """The cotangents (steps, kinds) of what steps make, which hand them on by these slopes: of each value that of
        its readers times their slopes, and what is due to it from outside, which is a triangular system of equations
        with a band."""
        due = np.empty((self._turns.count, len(self._turns.kinds)))
        for number, (_, places) in enumerate(self._stretches):
            due[:, number] = self._state.cotangents[places]
        return self._through_band(slopes, due, "T")

    def _through_band(self, slopes: Sequence[Any], given: np.ndarray, way: str) -> np.ndarray:
        """What solves the equations (steps, kinds) of values by what is `given`, or of cotangents, the other way (T).
        Overwrites `given`."""
        from scipy.linalg.lapack import dtbtrs

        count, kinds = given.shape
        for (number, read), slope in zip(self._inner, slopes, strict=True):
            entries = self._band[self._below(number, read)].reshape(count, kinds)[: count - read.lag, read.of]
            np.negative(slope[read.lag :] if np.ndim(slope) else slope, out=entries)
        found, _ = dtbtrs(self._band, given.reshape(-1, 1), uplo="L", trans=way, diag="U", overwrite_b=True)
        return np.asarray(found).reshape(count, kinds)

    def _outside(self) -> dict[str, Any]:
        """By name, what is read that steps do not make."""
        found: dict[str, Any] = {}
        for name, read in self._reads.items():
            if read.of is None:
                found[name] = read.column.view[read.rows] if read.is_shared else read.column.gather(read.rows)
        for number, (kind, kept) in enumerate(zip(self._turns.kinds, self._kept, strict=True)):
            if self._still[number] and not kept:
                values = kind.tape.still_values(kind.still, self._rows_of_leaves(number))
                kept.append({name: _as_float(values[place]) for name, place in self._still[number].items()})
            found |= kept[0] if kept else {}
        return found

    def _values_of_steps(self) -> Mapping[str, np.ndarray]:
        found = {}
        for number, (kind, (rows, _)) in enumerate(zip(self._turns.kinds, self._stretches, strict=True)):
            found[f"x{number}"] = values = kind.column.gather(rows)
            for back in range(1, self._lags[number] + 1):
                found[f"p{number}_{back}"] = self._shifted(number, back, values)
        return found


def _is_plain(kind: RowKind) -> bool:
    """Whether rows are computed, numbers from numbers."""
    is_computed = kind.operator is None or isinstance(kind.operator, Deterministic)
    return is_computed and kind.coordinates is None and kind.column.kind is float and not kind.tape.closures


def _as_float(value: Any) -> Any:
    return np.asarray(value, dtype=np.float64) if np.ndim(value) else float(value)
