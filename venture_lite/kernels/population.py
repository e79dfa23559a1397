"""One step of a schedule for a whole population: values of some nodes for many particles, each node a column.

What in a group of rows differs between rows differs here between particles: the same forms of the procedures for
columns evaluate both. Everything that does not depend on the blocks is read from the trace, where it is. For each step
one function is generated; what the columns form of a procedure cannot do is done particle by particle, which also finds
the call that an error belongs to. Strands of one bundle are written once and evaluated together: their particles stand
in one column, those of the first strand first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.answered_columns import FAILED, FoundColumns, value_at
from venture_lite.interpreter.answers import UNDECLARED
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.readers import ColumnsText
from venture_lite.interpreter.references import Operations, References, Value, row_given
from venture_lite.interpreter.runs import operator_of, reads_of
from venture_lite.interpreter.schedule import Bundle, StrandRows
from venture_lite.interpreter.sources import applied, computed_from, source_value
from venture_lite.interpreter.weights import count_if_impossible, density_of, log_density
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.record import Columns, Deterministic, Random
from venture_lite.procedures.straight_line import Node
from venture_lite.trace.runtime import Closure
from venture_lite.trace.table import ROW_MASK, Column, NotColumnar, column_of, listed
from venture_lite.trace.trace import Trace

Population = dict[int, np.ndarray]
"""Node -> its values, (particles,) or, for vectors of one length, (particles, length); objects where neither fits."""

Terms = list[np.ndarray]
"""Log densities of what absorbs, each (particles,)."""

StepFunction = Callable[[Population, int], Terms]
"""(population, particles) -> log densities of what absorbs. Adds the step's nodes."""


def each_of(lifted: tuple[bool, ...], arguments: tuple[Any, ...], particles: int) -> Iterable[tuple[Any, ...]]:
    """The arguments of every particle."""
    columns = [
        (x.tolist() if x.ndim == 1 else list(x)) if up else [x] * particles
        for x, up in zip(arguments, lifted, strict=True)
    ]
    return zip(*columns, strict=True) if columns else [()] * particles


def together(form: Columns | None, lifted: tuple[bool, ...], arguments: tuple[Any, ...]) -> Any:
    """What the columns form gives; None where it cannot."""
    if form is None or any(up and x.dtype == object for x, up in zip(arguments, lifted, strict=True)):
        return None
    try:
        return form(lifted, *arguments)
    except (RowByRow, NotColumnar, TypeError):
        return None


def applied_to_rows(record: Deterministic, lifted: tuple[bool, ...], arguments: Sequence[Any]) -> Any:
    """The value of a call, for each row where arguments are lifted, row by row where it has no form as columns."""
    if True not in lifted:
        return record.scalar(*arguments)
    found = together(record.columns, lifted, tuple(arguments))
    if found is not None:
        return np.asarray(found)
    count = len(arguments[lifted.index(True)])
    return column_of([record.scalar(*row) for row in each_of(lifted, tuple(arguments), count)])


def values_of_rows(column: Column, rows: Any) -> np.ndarray:
    """The values of some rows, a slice or an index array, of whatever kind."""
    try:
        return column.gather(rows)
    except NotColumnar:
        return column_of([column.view[row] for row in listed(rows).tolist()])


def taken(column: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The values of the ancestors; numbers again, where some particle that dies out had none."""
    found = column[places]
    has_failed = column.dtype == object and any(value is FAILED for value in column.tolist())
    return column_of(found.tolist()) if has_failed else found


Failures = dict[int, VentureError]
"""Particle -> the first error on its way."""


EACH_ROW = 4
"""So many rows of a site have comparisons of their own."""


class Unalike(Exception):
    """Strands that were to be written together differ in more than the rows of their nodes."""


@dataclass(frozen=True, slots=True)
class _Stays:
    """Values of the trace that no block changes, one for each strand, for all their particles."""

    column: Column
    rows: np.ndarray

    def values(self) -> np.ndarray:
        """One for each strand."""
        return values_of_rows(self.column, self.rows)

    def __call__(self, particles: int) -> np.ndarray:
        return np.repeat(self.values(), particles // len(self.rows), axis=0)


@dataclass(frozen=True)
class _Operation:
    """A procedure whose arguments are columns, or differ for no particle."""

    trace: Trace
    # one for each strand
    nodes: list[int]
    record: Any
    lifted: tuple[bool, ...]
    # where a particle's errors are entered
    failures: Failures
    # whether the first particle of each strand has the state of the trace
    retains: bool = True

    def _row_by_row(
        self, particles: int, arguments: tuple[Any, ...], one: Callable[..., Any], instead: Any
    ) -> list[Any]:
        """`one` of every particle, (particle, arguments); `instead` where some argument could not be had, or none can
        be found. What is an error in the first particle of each strand, where that is retained, is one."""
        each = particles // len(self.nodes)
        found = []
        for at, row in enumerate(each_of(self.lifted, arguments, particles)):
            if any(x is FAILED for x in row):
                found.append(instead)
                continue
            try:
                found.append(one(at, row))
            except VentureError as error:
                if self._is_retained(at, each) or isinstance(error, KernelError):
                    raise
                self.failures.setdefault(at, error)
                found.append(instead)
        return found

    def _is_retained(self, particle: int, each: int) -> bool:
        return self.retains and not particle % each

    def _node(self, particle: int, particles: int) -> int:
        return self.nodes[particle * len(self.nodes) // particles]


class _Apply(_Operation):
    """A deterministic procedure."""

    def __call__(self, particles: int, *arguments: Any) -> Any:
        if not any(self.lifted):
            return self._scalar(self.nodes[0], arguments)
        found = together(self.record.columns, self.lifted, arguments)
        if found is not None:
            return found
        values = self._row_by_row(
            particles, arguments, lambda at, row: self._scalar(self._node(at, particles), row), FAILED
        )
        return column_of(values)

    def _scalar(self, node: int, arguments: tuple[Any, ...]) -> Any:
        return applied(self.trace, self.record, arguments, *self.trace.decode(node))


@dataclass(frozen=True)
class ColumnChoice(_Operation):
    """A random choice."""

    # what its arguments were in the last run
    seen: list[Any] = field(default_factory=list)

    def _fit(self, arguments: Sequence[Any]) -> bool:
        """Note the arguments; whether all are in their domains."""
        self.seen[:] = arguments
        given = zip(self.distribution.arguments, arguments, self.lifted_arguments, strict=False)
        return all(
            argument.domain.contains_all(x) if up else x is argument.default or argument.domain.contains(x)
            for argument, x, up in given
        )

    @property
    def lifted_arguments(self) -> tuple[bool, ...]:
        return self.lifted[-len(self.seen) :] if self.seen else ()

    @property
    def distribution(self) -> Any:
        """Where its power may change the one that the text names now."""
        return self.record or operator_of(self.trace, self.nodes[0])

    def arguments_at(self, particle: int) -> tuple[Any, ...]:
        """Those of one particle, in the last run."""
        given = zip(self.seen, self.lifted_arguments, strict=True)
        return tuple([value_at(x, particle) if up else x for x, up in given])


class _Draw(ColumnChoice):
    """The choice is drawn for each particle; one that is retained keeps the value that the trace has."""

    @cached_property
    def _values(self) -> _Stays:
        return _Stays(self.trace.column(self.nodes[0] >> 32), np.array([node & ROW_MASK for node in self.nodes]))

    def __call__(self, particles: int, *arguments: Any) -> np.ndarray:
        each = particles // len(self.nodes)
        if self._fit(arguments) and self.record.simulate_columns is not None:
            kept = self._values.values()
            if kept.ndim == 1 and kept.dtype != object:
                try:
                    column: np.ndarray = self.record.simulate_columns(self.trace.rng, particles, *arguments)
                    if self.retains:
                        column[::each] = kept
                    return column
                except RowByRow:
                    pass

        def draw(at: int, row: tuple[Any, ...]) -> Any:
            node = self._node(at, particles)
            if self._is_retained(at, each):
                return self.trace.value(node)
            return simulate_anew(self.trace, node, self.record, row)

        return column_of(self._row_by_row(particles, arguments, draw, FAILED))


class Weigh(ColumnChoice):
    """The log density of the choice at a value, or at each particle's own, under each particle's arguments. The value
    comes before the arguments, in `lifted` too."""

    def __call__(self, particles: int, value: Any, *arguments: Any) -> np.ndarray:
        if self._fit(arguments):
            form = self.distribution.log_density_columns
            terms = together(form, self.lifted, (value, *arguments))
            if terms is None and not self.lifted[0]:
                values = column_of([value] * particles)
                terms = together(form, (True, *self.lifted[1:]), (values, *arguments))
            # NaN and infinity are errors that name their call, found below
            if terms is not None and not (np.isnan(terms) | (terms == np.inf)).any():
                return np.broadcast_to(terms, (particles,))

        def term(at: int, row: tuple[Any, ...]) -> float:
            return density_of(self.trace, self._node(at, particles), self.distribution, row[1:], row[0])

        return np.array(self._row_by_row(particles, (value, *arguments), term, 0.0))


class Writer(ColumnsText):
    """Writes the function of one step of a bundle. `moved` are the nodes that have columns when it runs, `failures` is
    where the errors of its particles are entered; it `retains` the trace's state as the first particle of each strand,
    or draws all.

    Raises Unalike where the strands of the bundle cannot be written together.
    """

    # whether distributions stay those that the text names when the function is written
    keeps_records = True

    def __init__(
        self, model: Model, bundle: Bundle, moved: Iterable[int], failures: Failures, retains: bool = True
    ) -> None:
        super().__init__(Operations())
        self.retains = retains
        self.model, self.trace = model, model.trace
        self.bundle = bundle
        self.failures = failures
        # the choices that are weighed, term by term, and the nodes that get columns
        self.weighed: list[int] = []
        self.set: list[int] = []
        # what draws or weighs a choice
        self.choices: dict[int, ColumnChoice] = {}
        # nodes that have columns, and the others whose values stand in these
        self.moved: set[int] = set()
        self._with_them: set[int] = set()
        for node in moved:
            self._move(node)
        self.lines.append("w = []")
        self._references = References(self.trace, self.operations, self._known)
        # by place of a row: the rows of all strands
        self._rows: dict[int, StrandRows] = {}

    def draw(self, node: int) -> None:
        """Draw a principal from its distribution."""
        record, _, arguments = self._application(node)
        self._set(node, self._called(_Draw, self._likes(node), record, arguments))

    def renew(self, node: int) -> None:
        """Compute a node from what it is computed from."""
        record, row, values = self._application(node)
        value = values[0] if record is None else self.operations.call(record, node >> 32, row, values)
        text = self.value(value)
        if self.is_lifted(value):
            self._set(node, text)

    def weigh(self, node: int) -> bool:
        """Weigh a choice at the value that it has; False where no particle differs, and nothing is weighed."""
        record, _, arguments = self._application(node)
        own = self.operations.record("moved", node) if node in self.moved else self._stored(node)
        record = record if self.keeps_records else None
        text = self._called(Weigh, self._likes(node), record, (own, *arguments))
        if not any(map(self.is_lifted, (own, *arguments))):
            return False
        self.lines.append(f"w.append({text})")
        self.weighed.append(node)
        return True

    @property
    def counts(self) -> list[int]:
        """What each term counts where it is impossible."""
        return [count_if_impossible(self.trace, node) for node in self.weighed]

    def _stored(self, node: int) -> Value:
        """The value that the trace has, in each strand."""
        return self.operations.load(self.trace.column(node >> 32), self._row(self.bundle.rows[node]))

    def step(self) -> StepFunction:
        return AnsweredStep(self, self.function("v, n", "w"))

    def _called(self, kind: type[_Operation], nodes: list[int], record: Any, arguments: Sequence[Value]) -> str:
        """The call of an operation, what it needs being printed."""
        texts = list(map(self.value, arguments))
        operation = kind(self.trace, nodes, record, tuple(map(self.is_lifted, arguments)), self.failures, self.retains)
        if isinstance(operation, ColumnChoice):
            self.choices[nodes[0]] = operation
        return f"{self._bind(operation)}(n, {', '.join(texts)})"

    def _bind(self, value: Any) -> str:
        return self.bound("k", len(self.namespace), value)

    def _set(self, node: int, text: str) -> None:
        self.lines.append(f"v[{self._bind(node)}] = {text}")
        self.set.append(node)
        self._move(node)

    def _move(self, node: int) -> None:
        self.moved.add(node)
        self._with_them.update(self._likes(node)[1:])

    # ------------------------------------------------------------------------------------- the rows of strands

    def _likes(self, node: int) -> list[int]:
        """The node in every strand."""
        return _nodes(node >> 32, self.bundle.rows[node])

    def _same(self, found: Iterable[Any]) -> Any:
        """What all strands have in common."""
        first, *others = found
        if any(other is not first and other != first for other in others):
            raise Unalike
        return first

    def _application(self, node: int) -> tuple[Any, Value, list[Value]]:
        """The procedure that gives a node its value, None where what is read is handed on; the row that reads; and what
        it reads, defaults included."""
        likes = self._likes(node)
        reading = [reads_of(self.trace, like) for like in likes]
        self._same((source.code, source.slot, source.position) for source in reading)
        first = reading[0]
        row = self._row(first.row if len(likes) == 1 else np.array([source.row for source in reading]))
        values = [self._references.read(first.code, row, ref) for ref in first.refs]
        record = self._same(operator_of(self.trace, like) for like in likes) if first.is_applied else None
        if isinstance(record, Random):
            values.extend(self.operations.constant(argument.default) for argument in record.arguments[len(values) :])
        return record, row, values

    # ------------------------------------------------------------------------------------------- what is printed

    def _row(self, rows: StrandRows) -> Value:
        if isinstance(rows, int):
            return rows
        found = self.operations.record("rows", rows.tobytes())
        self._rows[found.place] = rows
        return found

    def _known(self, site: int, row: Value) -> Value:
        """The column of a node that moves; else what the trace has, of one row where all strands read the same."""
        rows = row_given(self.operations, row, self._rows)
        nodes = _nodes(site, rows)
        if nodes[0] in self.moved:
            if nodes != self._likes(nodes[0]):
                raise Unalike
            return self.operations.record("moved", nodes[0])
        if not self._with_them.isdisjoint(nodes):
            raise Unalike
        one = _one(rows)
        return None if one is None else self.operations.load(self.trace.column(site), one)

    def differs(self, node: Node) -> bool:
        return node.operation in ("moved", "rows")

    def load(self, number: int, column: Column, row: Value) -> str:
        if row.__class__ is int:
            return f"{self.bound('c', number, column)}.view[{self._bind(row)}]"
        return f"{self._bind(_Stays(column, row_given(self.operations, row, self._rows)))}(n)"

    def call(self, node: Node, number: int, arguments: Sequence[Value]) -> str:
        record, site, row = self.operations.calls[node.place]
        return self._called(_Apply, _nodes(site, row_given(self.operations, row, self._rows)), record, arguments)

    def text(self, node: Node) -> str:
        match node.operation, node.operands:
            case "moved", (moved,):
                return f"v[{self._bind(moved)}]"
            case "closure", (number, row):
                one = _one(row_given(self.operations, row, self._rows))
                if one is None:
                    raise Unalike
                return self._bind(Closure(self.operations.objects[number], one))
        return super().text(node)


class AnsweredStep:
    """The function of a step: the first times that it is called for rows of some sites, the values that it sets, what
    its choices read and what it weighs are compared with the interpreter's, of a few particles that differ.

    Raises Differs where they are others.
    """

    def __init__(self, writer: Writer, function: StepFunction) -> None:
        self._model, self._bundle, self._failures = writer.model, writer.bundle, writer.failures
        self._function, self._weighed = function, writer.weighed
        self._computed = [node for node in writer.set if node not in writer.choices]
        self._arguments = {node: choice.arguments_at for node, choice in writer.choices.items()}
        nodes = [*writer.set, *writer.weighed]
        # of the first rows each is compared
        row = self._own(0, nodes[0]) & ROW_MASK if nodes else 0
        kind = min(row, EACH_ROW) + max(row - EACH_ROW, 0).bit_length()
        self._is_believed = False
        self._key = "particles", *sorted({node >> 32 for node in nodes}), kind

    def __call__(self, population: Population, particles: int) -> Terms:
        if self._is_believed:
            with suppress(*UNDECLARED):
                return self._function(population, particles)
        make, compare = partial(self._function, population, particles), partial(self._difference, population, particles)
        found: Terms = self._model.answers.believed(self._key, "values of particles in columns", make, compare)
        self._is_believed = self._model.answers.settled(self._key)
        return found

    def _difference(self, population: Population, particles: int, found: Terms | VentureError) -> str | None:
        if isinstance(found, VentureError):
            return self._difference_of_error(found)
        terms = dict(zip(self._weighed, found, strict=False))
        return FoundColumns(
            self._model, particles, population, self._computed, self._arguments, terms, self._failures,
            strands=self._bundle.count, own=self._own,
        ).difference()  # fmt: skip

    def _difference_of_error(self, found: VentureError) -> str | None:
        """Of an error that ends the step: it was met by a retained particle, which has the trace's state, or in a call
        that no block changes. The trace meets one, too."""
        if isinstance(found, KernelError):
            return None
        trace = self._model.trace
        try:
            for strand in range(self._bundle.count):
                for node in self._computed:
                    if (source := computed_from(trace, self._own(strand, node))) is not None:
                        source_value(trace, source)
                for node in self._weighed:
                    log_density(trace, self._own(strand, node))
        except VentureError:
            return None
        return f"an error, {found.message}"

    def _own(self, strand: int, node: int) -> int:
        """The node in a strand."""
        return node & ~ROW_MASK | int(np.ravel(self._bundle.rows[node])[strand])


def _nodes(site: int, rows: StrandRows) -> list[int]:
    return [site << 32 | rows] if isinstance(rows, int) else [site << 32 | row for row in rows.tolist()]


def _one(rows: StrandRows) -> int | None:
    """The row, where it is the same for all strands."""
    if isinstance(rows, int):
        return rows
    return int(rows[0]) if (rows == rows[0]).all() else None
