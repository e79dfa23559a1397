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
from venture_lite.blocks.passes import as_column, as_number
from venture_lite.blocks.tape import TapeLeaf
from venture_lite.procedures.columns import RowByRow, has_nan
from venture_lite.procedures.pullbacks import ElementwisePullback
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.straight_line import Node
from venture_lite.trace.table import Column, listed, one_of, part_of

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
    # one row for all steps, or one for each, a slice or (steps,); so are the places of their cotangents
    rows: Any
    places: Any
    # which of the kinds it is a value of, and how many steps before; None from outside
    of: int | None = None
    lag: int = 0

    # whether it is one value from outside
    is_shared: bool = False

    def value(self) -> Any:
        """As it stands: a number, or one for each step."""
        return self.column.view[self.rows] if self.is_shared else self.column.gather(self.rows)

    def at(self, step: int) -> tuple[int, int]:
        """The row that a step reads, and its place."""
        return one_of(self.rows, step), one_of(self.places, step)


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
        self._stretches = [(as_slice(given[0]), as_slice(given[1], True)) for given in self._given]
        self._reads: dict[str, StepRead] = {}
        # of each kind what the places of its tape are, and which of these are still, by name
        self._values: list[dict[int, Any]] = [{} for _ in turns.kinds]
        self._still: list[dict[str, int]] = [{} for _ in turns.kinds]
        self._kept = [kind.keeper() for kind in turns.kinds]
        # what names are made from in the forward pass
        self._names: dict[str, int] = {}
        # kinds that hold what another one made some steps before, and what they read
        self.copies: dict[int, StepRead] = {}
        self.copies = self._copying()
        self.made = [number for number in self.numbers if number not in self.copies]
        self._results = [self._recorded(number) for number in self.numbers]
        # how many steps back each kind is read, and of the rows read before the first step, the last one first, the
        # place of the cotangent, too
        self._lags = [max((read.lag for read in self._reads_of(number)), default=0) for number in self.numbers]
        earlier = [self._before_first(number) for number in self.numbers]
        # each kind and steps back for which something waits, where that is among them, and the row and the place of it
        self.waiting = [(number, back) for number, lag in enumerate(self._lags) for back in range(1, lag + 1)]
        self._place_of_start = {each: at for at, each in enumerate(self.waiting)}
        self.starts = [earlier[number][back - 1] for number, back in self.waiting]
        cuts = LoopCuts(self._names)
        self.is_affine = is_affine(self._results, cuts)
        if not self.is_affine:
            self._loop = StepLoop(self._operations, cuts, self._results, self.waiting)
        self._print_backward()
        if self.is_affine:
            self._print_forward()

    @property
    def numbers(self) -> range:
        return range(len(self._turns.kinds))

    @property
    def kinds(self) -> tuple[RowKind, ...]:
        return self._turns.kinds

    @property
    def count(self) -> int:
        """Its steps."""
        return self._turns.count

    def places(self, number: int) -> np.ndarray:
        """Those of a kind's cotangents (steps,)."""
        return listed(self._given[number][1])

    def copied(self, number: int) -> tuple[int, int] | None:
        """Of which kind a kind's values are, and from how many steps before; None for what steps make."""
        read = self.copies.get(number)
        return None if read is None or read.of is None else (read.of, read.lag)

    @property
    def made_values(self) -> list[Any]:
        """What steps make, as operations."""
        return [self._results[number] for number in self.made]

    @property
    def procedures(self) -> Sequence[Deterministic]:
        """Those that operations call, by their number."""
        return self._operations.procedures

    def is_guarded(self, node: Node) -> bool:
        """Whether an operation has no value where that is not finite."""
        return node.place in self._operations.guarded

    def names_of_made(self) -> list[str]:
        return [name for name, cut in self._names.items() if cut == STEP]

    def reads_of_made(self) -> Iterable[StepRead]:
        return (read for read in self._reads.values() if read.of is not None)

    def place_of_start(self, read: StepRead, step: int) -> int:
        """The place of a value before the first step, which one of the first steps reads."""
        assert read.of is not None
        return self.starts[self._place_of_start[read.of, read.lag - step]][1]

    def reads_outside(self) -> Iterable[StepRead]:
        return (read for read in self._reads.values() if read.of is None)

    def is_column(self, name: str) -> bool:
        """Whether steps read different ones of what is known by a name."""
        return self._names[name] == COLUMN

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

    def _copying(self) -> dict[int, StepRead]:
        """What kinds read whose value is that of another kind, made some steps before, where only their own step reads
        them: `(h (- t 1))`, which `h` reads."""
        reads = [
            (of, lag, number, position)
            for number, kind in enumerate(self._turns.kinds)
            for position, leaf in enumerate(kind.tape.leaves)
            for of, lag in (self._within(number, leaf.column, self._given[number][3 + 2 * position]),)
            if of is not None
        ]
        handed = {
            number: (of, lag, position)
            for of, lag, number, position in reads
            if lag and self._turns.kinds[number].hands_on(position)
        }
        read_later = {of for of, lag, _, _ in reads if lag}
        return {
            number: self._step_read(number, position, of, lag)
            for number, (of, lag, position) in handed.items()
            if number not in read_later and of not in handed
        }

    def _leaf(self, number: int, position: int, leaf: TapeLeaf) -> Node:
        if leaf.column.kind is not float:
            raise NotInOneLoop
        rows = self._given[number][3 + 2 * position]
        of, lag = self._within(number, leaf.column, rows)
        if lag == 0 and of in self.copies:
            read = self.copies[of]
        else:
            read = self._step_read(number, position, of, lag)
        self._reads[read.name] = read
        return self._named(read.name, STEP if read.of is not None else SHARED if read.is_shared else COLUMN)

    def _step_read(self, number: int, position: int, of: int | None, lag: int) -> StepRead:
        column = self._turns.kinds[number].tape.leaves[position].column
        rows, places = self._given[number][3 + 2 * position : 5 + 2 * position]
        name = f"v{number}_{position}" if of is None else f"x{of}" if lag == 0 else f"p{of}_{lag}"
        is_shared = of is None and np.ndim(listed(rows)) == 0
        if not is_shared:
            rows, places = as_slice(rows), as_slice(places, True)
        return StepRead(name, column, rows, places, of, lag, is_shared)

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
            same = {read.at(read.lag - back) for read in reads}
            if len(same) != 1:
                raise NotInOneLoop
            found += same
        return found

    # -------------------------------------------------------------------------------------------------- printing

    def _print_backward(self) -> None:
        """What gives the slopes of each kind's value by what it reads: values of the recursion are columns here."""
        cuts = LoopCuts({name: min(cut, COLUMN) for name, cut in self._names.items()} | {UNIT: SHARED})
        found = [(number, read, slope) for number in self.made for read, slope in self._slopes_by(number)]
        # kind and what it reads: of the recursion, and from outside
        self.inner = [(number, read) for number, read, _ in found if read.of is not None]
        self.outer = [(number, read) for number, read, _ in found if read.of is None]
        self.inner_slopes = [slope for _, read, slope in found if read.of is not None]
        self.outer_slopes = [slope for _, read, slope in found if read.of is None]
        self._slopes = BeforeLoop(self._operations, [*self.inner_slopes, *self.outer_slopes], cuts)
        # of each kind that is made its column among the equations, of which those of one step follow one another
        self._at = {number: at for at, number in enumerate(self.made)}
        width = max((self._below(number, read) for number, read in self.inner), default=0)
        self._band = np.zeros((width + 1, self._turns.count * len(self.made)), order="F")
        # of each slope what it makes in the band, negated
        self._entries = [
            self._band[self._below(number, read)].reshape(-1, len(self.made))[: self._turns.count - read.lag, at]
            for number, read in self.inner
            for at in (self._at[read.of],)  # type: ignore[index]
        ]

    def _print_forward(self) -> None:
        """What gives the slopes, which no step makes, and the values as they were if all that steps made were 0."""
        cuts = LoopCuts({name: min(cut, COLUMN) for name, cut in self._names.items()} | {UNIT: SHARED})
        self._made_of_nothing = dict.fromkeys(self.names_of_made(), 0.0) | {UNIT: 1.0}
        self._affine = BeforeLoop(self._operations, [*self.inner_slopes, *self.made_values], cuts)

    def _below(self, number: int, read: StepRead) -> int:
        """How many values after one that it reads a kind's value comes."""
        assert read.of is not None
        return read.lag * len(self.made) + self._at[number] - self._at[read.of]

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
        values = self.values(self._outside(), self._starts())
        if any(map(has_nan, values.values())):
            raise RowByRow
        for number, value in values.items():
            self._turns.kinds[number].column.array[self._stretches[number][0]] = value
        for number, read in self.copies.items():
            self._turns.kinds[number].column.array[self._stretches[number][0]] = read.value()

    def backward(self) -> None:
        """Raises RowByRow, or what arithmetic raises, where a derivative is none; then nothing was added."""
        cotangents = self._state.cotangents
        made = {name: read.value() for name, read in self._reads.items() if read.of is not None}
        slopes = self._slopes({**self._outside(), **made, UNIT: 1.0})
        inner, outer = slopes[: len(self.inner)], slopes[len(self.inner) :]
        due = self.solved_cotangents(*inner, *(cotangents[places] for _, places in self._stretches))
        columns = dict(zip(self.made, due, strict=True))
        sums = {number: float(np.add.reduce(column)) for number, column in columns.items()}
        # of what is no number the sum is none
        if any(map(math.isnan, sums.values())):
            raise RowByRow
        parts = [
            _shared_part(columns[number], sums[number], slope) if read.is_shared else _part(columns[number], slope)
            for (number, read), slope in zip(self.outer, outer, strict=True)
        ]
        for (_, read), part in zip(self.outer, parts, strict=True):
            if read.is_shared:
                cotangents[read.places] += part
            else:
                self._state.scatter(read.places, part)
        for (number, read), slope in zip(self.inner, inner, strict=True):
            for step in range(read.lag):
                cotangents[self.place_of_start(read, step)] += columns[number][step] * _slope_at(slope, step)
        for number, read in self.copies.items():
            for step, part in enumerate(cotangents[self._stretches[number][1]][: read.lag].tolist()):
                cotangents[self.place_of_start(read, step)] += part

    def _outside(self) -> dict[str, Any]:
        """By name, what is read that steps do not make."""
        found = {name: read.value() for name, read in self._reads.items() if read.of is None}
        for number, kept in enumerate(self._kept):
            if self._still[number] and not kept:
                kept.append(self.standing(number))
            found |= kept[0] if kept else {}
        return found

    def standing(self, number: int) -> dict[str, Any]:
        """By name, what a kind reads that does not depend on the block."""
        kind = self._turns.kinds[number]
        values = kind.tape.values_now(kind.still, self._rows_of_leaves(number))
        found = {name: values[place] for name, place in self._still[number].items()}
        return {name: (as_column if np.ndim(value) else as_number)(value) for name, value in found.items()}

    def _starts(self) -> list[float]:
        """The values before the first step that are waited for."""
        views = [self._turns.kinds[number].column.view for number, _ in self.waiting]
        return [view[row] for view, (row, _) in zip(views, self.starts, strict=True)]

    # ------------------------------------------------------------------------------------------- as functions

    def values(self, outside: Mapping[str, Any], before: Sequence[float]) -> dict[int, np.ndarray]:
        """The values (steps,) of each kind that copies none, from what is read from outside, by name, and the values
        before the first step, as of `starts`. Raises RowByRow, or what arithmetic raises."""
        if self.is_affine:
            found = self.solved_values(*self._affine({**outside, **self._made_of_nothing}), *before)
            return dict(zip(self.made, found, strict=True))
        made = self._loop.run(self._turns.count, outside, before)
        for number, (of, lag) in self._loop.copies.items():
            if number not in self.copies:
                made[number] = self.shifted(of, lag, made[of], before)
        return made

    def solved_values(self, *given: Any) -> list[np.ndarray]:
        """Those of an affine recursion, from the slopes of `inner`, what steps would make if all others were 0, and the
        values before the first step: the solution of a triangular system of equations with a band."""
        slopes, rest = given[: len(self.inner)], given[len(self.inner) :]
        before = rest[len(self.made) :]
        found = np.empty((self._turns.count, len(self.made)))
        for at in range(len(self.made)):
            found[:, at] = rest[at]
        for (number, read), slope in zip(self.inner, slopes, strict=True):
            assert read.of is not None
            for step in range(read.lag):
                start = before[self._place_of_start[read.of, read.lag - step]]
                found[step, self._at[number]] += _slope_at(slope, step) * start
        solved = self._through_band(slopes, found, "N")
        return [solved[:, at] for at in range(len(self.made))]

    def shifted(self, number: int, lag: int, values: np.ndarray, before: Sequence[float]) -> np.ndarray:
        """The values of a kind so many steps before each step."""
        if not lag:
            return values
        earlier = [before[self._place_of_start[number, back]] for back in range(lag, 0, -1)]
        return np.concatenate([earlier, values[: len(values) - lag]])

    def solved_cotangents(self, *given: Any) -> list[np.ndarray]:
        """What is due to what steps make, which hand it on by the slopes of `inner`, where the values of each kind have
        what is due to them from elsewhere: to each value that to its readers times their slopes, and the rest, which is
        a triangular system of equations with a band."""
        slopes, due = given[: len(self.inner)], given[len(self.inner) :]
        found = np.empty((self._turns.count, len(self.made)))
        for number, at in self._at.items():
            found[:, at] = due[number]
        for number, read in self.copies.items():
            if due[number].__class__ is np.ndarray:
                assert read.of is not None
                found[: -read.lag, self._at[read.of]] += due[number][read.lag :]
        solved = self._through_band(slopes, found, "T")
        return [solved[:, at] for at in range(len(self.made))]

    def _through_band(self, slopes: Sequence[Any], given: np.ndarray, way: str) -> np.ndarray:
        """What solves the equations (steps, kinds) of values by what is `given`, or of cotangents, the other way (T).
        Overwrites `given`."""
        from scipy.linalg.lapack import dtbtrs

        for (_, read), slope, entries in zip(self.inner, slopes, self._entries, strict=True):
            np.negative(slope[read.lag :] if slope.__class__ is np.ndarray else slope, out=entries)
        found, _ = dtbtrs(self._band, given.reshape(-1, 1), uplo="L", trans=way, diag="U", overwrite_b=True)
        return np.asarray(found).reshape(given.shape)


def _slope_at(slope: Any, step: int) -> Any:
    return slope[step] if slope.__class__ is np.ndarray else slope


def _part(due: np.ndarray, slope: Any) -> np.ndarray:
    """What cotangents (steps,) hand on by their slopes. Raises RowByRow where that is no number."""
    part = np.asarray(due * slope)
    if not (slope.__class__ is float and math.isfinite(slope)) and has_nan(part):
        raise RowByRow
    return part


def _shared_part(due: np.ndarray, total: float, slope: Any) -> float:
    """The same in sum, of what all steps share; `total` is that of the cotangents."""
    part = float(due.dot(slope)) if slope.__class__ is np.ndarray else total * float(slope)
    if math.isnan(part):
        raise RowByRow
    return part


def _is_plain(kind: RowKind) -> bool:
    """Whether rows are computed, numbers from numbers."""
    is_computed = kind.operator is None or isinstance(kind.operator, Deterministic)
    return is_computed and kind.coordinates is None and kind.column.kind is float and not kind.tape.closures
