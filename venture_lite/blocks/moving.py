"""What moves with a block and what weighs it, by kind: rows that read alike, and the two passes over them.

A kind holds the runs of one site that read by the same references. Its functions are printed once, for single rows and
for columns (`passes.py`). Rows that have no form as columns, or are not as they should be, go one by one; of a single
row that fails the interpreter says what is wrong, and where.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from venture_lite.blocks.passes import printed
from venture_lite.blocks.tape import INSTEAD, NOTHING, Tape, carries_derivatives
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.application import admitted
from venture_lite.interpreter.explain import explain
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.references import NUMBERS
from venture_lite.interpreter.runs import Places, Run
from venture_lite.interpreter.sources import ValueSource, source_value
from venture_lite.interpreter.weights import NARROW, AtLimit, Group, Weight, log_density
from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.columns import RowByRow, are_floats, has_nan
from venture_lite.procedures.pullbacks import accumulated
from venture_lite.procedures.record import Maker, Random
from venture_lite.procedures.straight_line import Node
from venture_lite.procedures.totals import is_summed, summed_slopes
from venture_lite.procedures.transforms import REAL, Elementwise
from venture_lite.program.code import Kind
from venture_lite.trace.nodes import node_at
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import Column, length, listed, one_of, part_of, picked
from venture_lite.trace.trace import Trace

MOST_TOTAL = 1e300
"""Nats that the sum over many rows counts at most: some of these are added up."""


class OtherCotangents(dict[int, Any]):
    """Cotangents that are no numbers, by place; None for 0."""

    def __missing__(self, place: int) -> None:
        return None


class BlockState:
    """What the passes over a block share: coordinates, gradient, cotangents, and what is impossible."""

    def __init__(self, model: Model, runs: Sequence[Run], size: int) -> None:
        self.model = model
        # (D,) the coordinates that the block was put at, and the derivatives by them
        self.free, self.gradient = np.zeros(size), np.zeros(size)
        # what impossible terms of the present evaluation count
        self.impossible = 0
        self.places = Places(runs)
        # the derivatives of what was weighed so far by the value of each node that moves, where it is a number, and
        # where not, None for 0; the last place takes those of nodes that stay, and is not read
        self.nowhere = self.places.nowhere
        self.cotangents = np.zeros(self.nowhere + 1)
        self.others = OtherCotangents()
        self._kept = [(site, rows, (-1, -1, -1)) for site, rows in self.places.rows()]

    def weigh(self, weight: float) -> None:
        """What was weighed so far stands for more than it is."""
        self.cotangents *= weight
        for place, other in self.others.items():
            self.others[place] = None if other is None else _times(weight, other)

    def begin(self) -> None:
        """An evaluation."""
        self.impossible = 0
        self.gradient.fill(0.0)
        self.cotangents.fill(0.0)
        self.others.clear()

    def scatter(self, places: Any, parts: Any) -> None:
        """Add one number for each row, where rows may share a place unless they follow one another."""
        if parts is None:
            return
        if isinstance(places, slice):
            self.cotangents[places] += parts
        else:
            np.add.at(self.cotangents, places, parts)

    def scatter_others(self, places: np.ndarray, parts: Any) -> None:
        """The same of vectors."""
        if parts is not None:
            places = listed(places)
            shared, which = np.unique(places, return_inverse=True)
            sums = np.zeros((len(shared), *np.shape(parts)[1:]))
            np.add.at(sums, which, parts)
            for place, part in zip(shared.tolist(), sums, strict=True):
                self.others[place] = accumulated(self.others[place], part)

    def keep(self) -> None:
        """Enter what moves in the journal, where columns of numbers are written without it."""
        trace = self.model.trace
        for number, (site, rows, kept) in enumerate(self._kept):
            column = trace.column(site)
            if column.kind is float:
                self._kept[number] = site, rows, trace.journal.keep_again(column, rows, kept)


class RowKind:
    """Rows of one site that read alike: choices of the block, with their coordinates, choices that absorb, or values
    that are computed."""

    def __init__(
        self,
        state: BlockState,
        run: Run,
        rows: Any,
        at: Any,
        coordinates: list[tuple[slice, Any]] | None = None,
        lent: Mapping[int, int] = NOTHING,
        is_apart: bool = False,
    ) -> None:
        """`run` is one of the kind; `lent` is as in `Tape`. Choices of the block that are moved apart from what weighs
        them are two kinds: the one with coordinates only moves, the other one only weighs."""
        self.state = state
        self.trace = trace = state.model.trace
        self.site, self.source, self.operator = run.site, run.source, run.operator
        # of makers the joint density is weighed
        self.is_maker = isinstance(run.operator, Maker)
        self.code = trace.program.site_code[self.site]
        self.slot = trace.program.site_slot[self.site]
        self.column = trace.column(self.site)
        self.tape = tape = Tape(trace, run.source.code, run.refs, lent)
        # a slice or an index array, and the rows that read
        self.rows, self._at = rows, at
        self.count = length(rows)
        # of each row its coordinates, and the shape in which the transform takes them, None for a number
        self.coordinates = coordinates
        self._firsts = np.array([taken.start for taken, _ in coordinates or ()])
        self.is_apart = is_apart
        # of numbers, each row and its coordinate
        placed = zip(listed(rows).tolist(), coordinates or (), strict=False)
        self._rows_placed = [(row, taken.start) for row, (taken, _) in placed]
        read = [tape.rows_of(leaf, at) for leaf in tape.leaves]
        places = [state.places.of(leaf.site, found) for leaf, found in zip(tape.leaves, read, strict=True)]
        moves = [found != state.nowhere for found in places]
        # places of the tape that depend on the block, and which of what is read does
        self.wanted = tape.wanted([bool(np.any(flags)) for flags in moves], trace)
        self.asked = tuple(value.__class__ is Node and value.place in self.wanted for value in tape.outputs)
        self._refuse(int(np.argmax(sum(np.broadcast_to(flags, self.count) for flags in moves))) if moves else 0)
        # for each row: itself, the place of its cotangent, its coordinates, rows and places of leaves, rows of closures
        leaves = [each for pair in zip(read, places, strict=True) for each in pair]
        self.given: list[Any] = [rows, state.places.of(self.site, rows), 0, *leaves]
        self.given += [tape.given(row, at) for _, row in tape.closures]
        # places of what does not depend on the block
        self.still = tape.still(self.wanted)
        # places of what was numbers, one or a column of them, when the functions were printed
        self.numbers: frozenset[int] = frozenset()
        # whether single rows keep them, too: what is only read is read again
        self.keeps_rows = any(node.place in self.still for node, *_ in tape.steps)
        # what the functions keep of them, as of the stamps of the columns that they read
        self._keeping: list[list[Any]] = []
        self.still_columns = [leaf.column for leaf in tape.leaves if leaf.node.place in self.still]
        if isinstance(self.operator, Random) and not self.flags[0]:
            self.still_columns.append(self.column)
        self._stamps: list[int] = []
        # forward and backward, of many rows, and of single ones, which wide kinds seldom need: None until they are
        self._together: tuple[Callable[..., Any], Callable[..., Any]] = (_unprinted, _unprinted)
        self._single: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def _refuse(self, example: int) -> None:
        """Raise KernelError where the value may jump, or a derivative is missing; a row in which it is needed."""
        if not isinstance(self.operator, (Random, Maker)):
            if self.operator is not None:
                carries_derivatives(self.operator, self.code.slots[self.slot].span)
            return
        record, moves = self.operator, self.is_apart or self.coordinates is not None
        defaults = record.arguments[len(self.tape.outputs) :]
        self.defaults = tuple(argument.default for argument in defaults)
        # of the value and of each argument
        self.flags = (moves, *self.asked, *(False,) * len(defaults))
        self.lifted = (True, *self.tape.lifted, *(False,) * len(defaults))
        refuse_without_gradient(record, self.flags, self.trace, self.node(example))
        if moves and not hasattr(record.transform, "free_gradient"):
            raise KernelError(f"the transform of {record.name} has no free_gradient", hint=INSTEAD)

    def node(self, index: int) -> int:
        return node_at(self.site, one_of(self.rows, index))

    def columns(self) -> list[Column]:
        """What the functions hold the memory of."""
        return [self.column, *(leaf.column for leaf in self.tape.leaves)]

    def hands_on(self, leaf: int) -> bool:
        """Whether a row's value is that of a leaf."""
        return self.operator is None and self.tape.outputs[0] is self.tape.leaves[leaf].node

    def group(self) -> Group:
        if self.code.slots[self.slot].kind is not Kind.RANDOM or self.operator.log_density_columns is None:
            raise RowByRow
        return self.state.model.weights.groups[self.site]

    # -------------------------------------------------------------------------------------------------- running

    def bind(self, together: bool) -> None:
        """Print the functions for the columns as they stand, of many rows; those of single ones when they are used."""
        if self.coordinates is not None:
            self.given[2] = self._firsts if self.column.kind is float else self.coordinates
        self._single, self._together = None, (_unprinted, _unprinted)
        self._keeping = []
        if together:
            with np.errstate(all="ignore"):
                self.numbers = self.tape.numbers_among(self.tape.places, self._rows_of_leaves())
            try:
                self._together = printed(self, True)
            except RowByRow:
                return

    def present(self, free: np.ndarray) -> None:
        """Fill in the coordinates of choices as they stand."""
        if self.coordinates and self.column.kind is float and self.operator.transform is REAL:
            free[self._firsts] = self.column.gather(self.rows)
            return
        transform = self.operator.transform if self.coordinates is not None else None
        if isinstance(transform, Elementwise) and not transform.reads_arguments and self.column.kind is float:
            view, free_of = self.column.view, transform.free_of
            for row, at in self._rows_placed:
                free[at] = free_of(view[row])
            return
        for index, (coordinates, _) in enumerate(self.coordinates or ()):
            _, arguments = self.trace.application(self.node(index))
            value = self.trace.value(self.node(index))
            free[coordinates] = np.ravel(self.operator.transform.to_free(value, arguments))

    def steps(self, start: int, stop: int, together: bool) -> tuple[list[PassStep], list[PassStep]]:
        """Both passes over some rows, to be called in order."""
        if together and self._together[0] is not _unprinted:
            many = (start, stop, *self._given_of(start, stop))
            forward, backward = self.keeper(), self.keeper()
            return (
                [(self._forward_together, (*many, forward), self, start)],
                [(self._backward_together, (*many, backward), self, start)],
            )
        keeper = self.keeper if self.keeps_rows else None
        return self._singly(0, range(start, stop), keeper), self._singly(1, range(start, stop), keeper)

    def _given_of(self, start: int, stop: int) -> list[Any]:
        # places of cotangents may be far apart
        spaced = {1, *range(4, len(self.given), 2)}
        return [as_slice(part_of(each, start, stop), at in spaced) for at, each in enumerate(self.given)]

    def _singly(
        self, which: int, places: Iterable[int], keeper: Callable[[], list[Any]] | None = None
    ) -> list[PassStep]:
        """One of both passes over the rows at some places, one by one; without a keeper nothing is kept."""
        if self._single is None:
            self._single = printed(self, False)
        function, keeper = self._single[which], keeper or list
        if self.keeps_rows:
            rows = ((n, (*[one_of(each, n) for each in self.given], keeper())) for n in places)
        else:
            rows = ((n, tuple([one_of(each, n) for each in self.given])) for n in places)
        return [(function, given, self, n) for n, given in rows]

    def weighing(self, at: np.ndarray, together: bool) -> list[PassStep]:
        """The backward pass over the rows at some places (n,), to be called in order."""
        if together and self._together[0] is not _unprinted:
            return [(self._backward_at, (at, *(picked(each, at) for each in self.given), []), self, -1)]
        return self._singly(1, at.tolist())

    def _rows_of_leaves(self) -> list[Any]:
        return self.given[3 : 3 + 2 * len(self.tape.leaves) : 2]

    def keeper(self) -> list[Any]:
        """A list that is cleared where something that stands still has changed."""
        self._keeping.append([])
        return self._keeping[-1]

    @property
    def keeps(self) -> bool:
        """Whether anything is kept that does not depend on the block."""
        return bool(self._keeping)

    def look(self) -> None:
        """Forget what does not depend on the block where something that it reads has changed."""
        stamps = [column.stamp for column in self.still_columns]
        if stamps != self._stamps:
            self._stamps = stamps
            for kept in self._keeping:
                kept.clear()

    def observed(self) -> np.ndarray:
        """Whether each row is an observation (n,)."""
        flags = self.trace.tables[self.code.index].observed.get(self.slot)
        return np.zeros(self.count, bool) if flags is None else np.frombuffer(flags, bool)[self.rows].copy()

    def _forward_together(self, start: int, stop: int, *given: Any) -> None:
        try:
            self._together[0](*given)
        except Exception:
            for first, last in _halves(start, stop):
                if last - first > NARROW:
                    self._forward_together(first, last, *self._given_of(first, last), [])
                else:
                    advance(self._singly(0, range(first, last)))

    def _backward_together(self, start: int, stop: int, *given: Any) -> float:
        def in_halves() -> float:
            total = 0.0
            for first, last in _halves(start, stop):
                if last - first > NARROW:
                    total += self._backward_together(first, last, *self._given_of(first, last), [])
                else:
                    total = weighed(self._singly(1, range(first, last)), total)
            return total

        def otherwise() -> float:
            impossible = self._at_limit(start, stop)
            if not impossible.any():
                return in_halves()
            self.state.impossible += self.group().impossible(part_of(self.rows, start, stop), impossible).impossible
            return weighed(self.weighing(start + np.flatnonzero(~impossible), not impossible.all()))

        return self._backward_or_else(part_of(self.rows, start, stop), otherwise, given)

    def _at_limit(self, start: int, stop: int) -> np.ndarray:
        """In which of some rows (n,) an argument that depends on the block is 0 or infinite by rounding, which makes
        them impossible."""
        found = np.zeros(stop - start, bool)
        if not isinstance(self.operator, Random) or self.coordinates is not None:
            return found
        values = self.tape.values_now(self.tape.places, [part_of(each, start, stop) for each in self._rows_of_leaves()])
        for argument, node, asked in zip(self.operator.arguments, self.tape.outputs, self.asked, strict=False):
            column = values.get(node.place) if asked else None
            if isinstance(column, np.ndarray) and column.shape == found.shape:
                found |= np.asarray(argument.domain.at_limit(column))
        return found

    def _backward_at(self, at: np.ndarray, *given: Any) -> float:
        return self._backward_or_else(picked(self.rows, at), lambda: weighed(self.weighing(at, False)), given)

    def _backward_or_else(self, rows: Any, otherwise: Callable[[], float], given: tuple[Any, ...]) -> float:
        """The backward pass over some rows in one go, or otherwise where that fails: of few rows that fail most others
        are not to go one by one."""
        impossible = self.state.impossible
        try:
            found: float = self._together[1](*given)
        except Exception as error:
            self.state.impossible = impossible
            if self.coordinates is None and isinstance(error, AtLimit):
                self.state.impossible += self.group().impossible(rows).impossible
                return 0.0
            found = otherwise()
        # a sum beyond the floats is none of a row's
        return min(max(found, -MOST_TOTAL), MOST_TOTAL)

    def recover(self, index: int, error: Exception) -> None:
        """Go on where a row failed forward, or raise the error with its place."""
        if self.coordinates is not None:
            self.trace.application(self.node(index))
            raise error
        code, _, slot, position = self.source
        row = one_of(self._at, index)
        if self.is_maker:
            raise explain(self.trace, code, self.source.refs, slot, row, error) from error
        try:
            value = source_value(self.trace, ValueSource(code, row, slot, position))
        except VentureError:
            raise
        except Exception as cause:
            raise explain(self.trace, code, self.source.refs, slot, row, cause) from cause
        self.trace.put(self.node(index), value)

    def judged(self, index: int, error: Exception | None) -> float:
        """What a row counts that failed backward, or has no finite density: no derivative leads away from there."""
        if self.is_maker and error is None:
            self.state.impossible += 1
            return 0.0
        if not isinstance(self.operator, Random):
            assert error is not None
            raise error
        if self.is_apart and self.coordinates is not None:
            # what weighs the choice judges its value
            self.state.impossible += 1
            return 0.0
        node, weight = self.node(index), Weight()
        weight.add_choice(self.trace, node, log_density(self.trace, node))
        self.state.impossible += weight.impossible
        if self.coordinates is not None and not weight.impossible:
            assert self.operator.transform is not None
            weight.total += self.operator.transform.log_jacobian(
                self.trace.value(node), self.trace.application(node)[1]
            )
        return weight.total

    # ------------------------------------------------------------------------------------- what the functions call

    def store(self, row: int, value: Any) -> None:
        self.trace.journal.put(self.column, row, value)

    def store_rows(self, rows: Any, values: Any) -> None:
        if values.__class__ is not np.ndarray or values.ndim != 1 or values.dtype != np.float64:
            values = np.asarray(values)
            if values.dtype != np.float64 or values.ndim or math.isnan(values):
                raise RowByRow
        elif has_nan(values):
            raise RowByRow
        self.column.array[rows] = values

    def refused(self, row: int, arguments: tuple[Any, ...]) -> None:
        admitted(self.trace, self.operator, arguments, node_at(self.site, row), is_drawn=False)

    def reconsider(self, maker: Exchangeable, arguments: tuple[Any, ...]) -> None:
        """Give a maker other parameters."""
        self.trace.statistics.set_arguments(maker, check_arguments(self.operator, arguments))

    def taken(self, at: tuple[slice, Any]) -> Any:
        """Coordinates as a transform takes them."""
        coordinates, shape = at
        free = self.state.free[coordinates]
        return float(free[0]) if shape is None else free.reshape(shape)

    def give(self, at: tuple[slice, Any], gradient: Any) -> None:
        self.state.gradient[at[0]] = np.ravel(gradient)

    def slopes_of_columns(self, rows: Any, value: Any, *arguments: Any) -> list[Any]:
        """The sum of the log densities of some rows, and the derivatives asked for; impossible rows are counted."""
        record, given = self.operator, (self.lifted, self.flags, value, *arguments)
        if record.log_density_total is not None:
            total = record.log_density_total(self.lifted, value, *arguments)
            if math.isfinite(total):
                return [total, *_asked(record.gradient.evaluate(*given), self.flags)]
        if record.gradient.of_columns is not None:
            terms, *parts = record.gradient.of_columns(*given)
        else:
            terms = record.log_density_columns(self.lifted, value, *arguments)
            parts = _asked(record.gradient.evaluate(*given), self.flags)
        weight = self.group().summed(rows, np.asarray(terms))
        if self.coordinates is not None and weight.impossible:
            raise RowByRow
        self.state.impossible += weight.impossible
        return [weight.total, *parts]

    def slopes_together(self, arguments: Sequence[Any]) -> Callable[..., Any]:
        """`slopes_of_columns`, faster of columns of floats where the density is a function of single numbers; some
        arguments are known."""
        record = self.operator
        if not is_summed(record):
            return self.slopes_of_columns
        constants = (None, *map(as_constant, arguments))
        slopes = summed_slopes(record.definition, self.flags, self.lifted, constants)

        def called(rows: Any, value: Any, *arguments: Any) -> Any:
            if all(map(are_floats, (value, *arguments))):
                found = slopes(value, *arguments, len(value))
                if -math.inf < found[0] < math.inf:
                    return found
            # a row may be impossible, or have no density
            return self.slopes_of_columns(rows, value, *arguments)

        return called

    def slopes(self) -> Callable[..., tuple[Any, ...]]:
        """(value, *arguments) -> the log density of one row and the derivatives asked for; a maker has arguments."""
        record, flags = self.operator, self.flags
        if self.is_maker:
            slopes = record.gradient.evaluate
            return lambda maker, *_: (maker.state.log_joint(), *_asked(slopes(maker.state), flags[1:]))
        if True not in flags:
            return lambda *given: (record.log_density(*given),)
        none = (False,) * len(flags)
        if record.item_log_densities is not None and self.column.kind not in NUMBERS:
            return partial(record.gradient.of_columns, none, flags)
        if record.gradient.of_numbers is not None:
            found: Callable[..., tuple[Any, ...]] = record.gradient.of_numbers(flags)
            return found
        evaluate = record.gradient.evaluate
        return lambda *given: (record.log_density(*given), *_asked(evaluate(none, flags, *given), flags))


PassStep = tuple[Callable[..., Any], tuple[Any, ...], RowKind, int]
"""A function, what it is called with, and which row of which kind that is."""


def advance(steps: Iterable[PassStep]) -> None:
    for forward, given, kind, index in steps:
        try:
            forward(*given)
        except Exception as error:
            kind.recover(index, error)


def weighed(steps: Iterable[PassStep], total: float = 0.0) -> float:
    """`total` and the finite terms, added up; impossible ones are counted in the state."""
    for backward, given, kind, index in steps:
        cause = None
        try:
            term = backward(*given)
        except (VentureError, TypeError, ValueError, ArithmeticError) as error:
            term, cause = math.nan, error
        total += term if term - term == 0.0 else kind.judged(index, cause)
    return total


def _times(weight: float, cotangent: Any) -> Any:
    """A cotangent is an array, or a tuple of those of a list's items, of which some may be None for 0."""
    if isinstance(cotangent, tuple):
        return tuple([None if part is None else _times(weight, part) for part in cotangent])
    return weight * cotangent


def refuse_without_gradient(record: Random | Maker, asked: tuple[bool, ...], trace: Trace, node: int) -> None:
    """Raise KernelError where a density has no derivative by its value or by an argument that is asked for."""
    code, slot, row = trace.decode(node)
    names = ("the value", *[argument.name for argument in record.arguments])
    exists = record.gradient.exists if record.gradient is not None else (False,) * len(names)
    if isinstance(record, Maker):
        exists = (False, *exists)
    for name, there, ask in zip(names, exists, asked):  # noqa: B905
        if ask and not there:
            raise KernelError(
                f"the density of {record.name} has no derivative by {name}, which depends on the block",
                code.slots[slot].span,
                INSTEAD,
                trace.call_chain(code, slot, row),
            )


def _asked(parts: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [part for part, flag in zip(parts, flags, strict=True) if flag]


def as_constant(argument: Any) -> float | None:
    """An argument that is the same number in all states."""
    if argument.__class__ not in (float, int) or abs(argument) > 2.0**53:
        return None
    # -0.0 is equal to 0.0, and what is divided by it is not
    return None if argument == 0 and math.copysign(1.0, argument) < 0.0 else float(argument)


def as_slice(rows: Any, is_spaced: bool = False) -> Any:
    """Rows that follow one another as a slice, through which columns are read without a copy; with `is_spaced` such as
    follow by as many each time, too."""
    if not isinstance(rows, np.ndarray) or not rows.ndim or not len(rows):
        return rows
    step = int(rows[1] - rows[0]) if is_spaced and len(rows) > 1 else 1
    if step < 1 or not bool((np.diff(rows) == step).all()):
        return rows
    return slice(int(rows[0]), int(rows[-1]) + 1, step if step > 1 else None)


def _halves(start: int, stop: int) -> list[tuple[int, int]]:
    """Both halves of some rows; few ones as they are."""
    middle = (start + stop) // 2
    return [(start, middle), (middle, stop)] if stop - start > NARROW else [(start, stop)]


def _unprinted(*given: Any) -> Any:
    raise RowByRow
