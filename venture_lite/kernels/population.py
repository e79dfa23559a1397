"""One step of a schedule for a whole population: values of some nodes for many particles, each node a column.

What in a group of rows differs between rows differs here between particles: the same forms of the procedures for
columns evaluate both. Everything that does not depend on the blocks is read from the trace, where it is. For each step
one function is generated; what the columns form of a procedure cannot do is done particle by particle, which also finds
the call that an error belongs to. Strands of one bundle are written once and evaluated together: their particles stand
in one column, those of the first strand first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from venture_lite.errors import InternalError, KernelError, VentureError
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.explain import apply_checked
from venture_lite.interpreter.sources import computed_from
from venture_lite.interpreter.strands import Bundle, StrandRows
from venture_lite.interpreter.weights import count_if_impossible, density_of
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.record import Columns, Deterministic, Random
from venture_lite.program.code import Code, Constant, GlobalRef, Kind, Ref, SlotRef
from venture_lite.trace.runtime import Closure
from venture_lite.trace.table import ROW_MASK, Column, NotColumnar
from venture_lite.trace.trace import Trace

Population = dict[int, np.ndarray]
"""Node -> its values, (particles,) or, for vectors of one length, (particles, length); objects where neither fits."""

StepFunction = Callable[[Population, int], list[np.ndarray]]
"""(population, particles) -> log densities of what absorbs, each (particles,). Adds the step's nodes."""


DTYPES: dict[type | None, Any] = {float: np.float64, int: np.int64, bool: np.bool_}


def column_of(values: list[Any]) -> np.ndarray:
    """One node's values as an array: of numbers where all are of one kind, else of objects."""
    kinds = set(map(type, values))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind in DTYPES:
        try:
            return np.array(values, DTYPES[kind])
        except OverflowError:
            pass
    elif kind is np.ndarray and len({value.shape for value in values}) == 1 and values[0].dtype == np.float64:
        return np.stack(values)
    found = np.empty(len(values), object)
    for at, value in enumerate(values):
        # one by one: an array takes lists of one length for rows
        found[at] = value
    return found


def value_at(column: np.ndarray, particle: int) -> Any:
    """One particle's value as the trace stores it."""
    if column.ndim > 1:
        value = column[particle].copy()
        value.flags.writeable = False
        return value
    value = column[particle]
    return value.item() if isinstance(value, np.generic) else value


def _each(lifted: tuple[bool, ...], arguments: tuple[Any, ...], particles: int) -> Iterable[tuple[Any, ...]]:
    """The arguments of every particle."""
    columns = [
        (x.tolist() if x.ndim == 1 else list(x)) if up else [x] * particles
        for x, up in zip(arguments, lifted, strict=True)
    ]
    return zip(*columns, strict=True) if columns else [()] * particles


def _together(form: Columns | None, lifted: tuple[bool, ...], arguments: tuple[Any, ...]) -> Any:
    """What the columns form gives; None where it cannot."""
    if form is None or any(up and x.dtype == object for x, up in zip(arguments, lifted, strict=True)):
        return None
    try:
        return form(lifted, *arguments)
    except (RowByRow, NotColumnar, TypeError):
        return None


class PopulationFailed:
    """In place of a value that a particle could not have, and of all that is computed from it."""


FAILED = PopulationFailed()

Failures = dict[int, VentureError]
"""Particle -> the first error on its way."""


class Unalike(Exception):
    """Strands that were to be written together differ in more than the rows of their nodes."""


class _Stays:
    """Values of the trace that no block changes, one for each strand, for all their particles."""

    def __init__(self, column: Column, rows: np.ndarray) -> None:
        self.column, self.rows = column, rows

    def values(self) -> np.ndarray:
        """One for each strand."""
        try:
            return self.column.gather(self.rows)
        except NotColumnar:
            return column_of([self.column.view[row] for row in self.rows.tolist()])

    def __call__(self, particles: int) -> np.ndarray:
        return np.repeat(self.values(), particles // len(self.rows), axis=0)


class _Operation:
    """A procedure whose arguments are columns, or differ for no particle. `nodes` has one for each strand."""

    def __init__(self, trace: Trace, nodes: list[int], record: Any, lifted: tuple[bool, ...]) -> None:
        self.trace, self.nodes, self.record, self.lifted = trace, nodes, record, lifted
        # where a particle's errors are entered; the writer's
        self.failures: Failures = {}

    def _row_by_row(
        self, particles: int, arguments: tuple[Any, ...], one: Callable[..., Any], instead: Any
    ) -> list[Any]:
        """`one` of every particle, (particle, arguments); `instead` where some argument could not be had, or none can
        be found. The first particle of each strand is retained: what is an error there is one."""
        each = particles // len(self.nodes)
        found = []
        for at, row in enumerate(_each(self.lifted, arguments, particles)):
            if any(x is FAILED for x in row):
                found.append(instead)
                continue
            try:
                found.append(one(at, row))
            except VentureError as error:
                if not at % each or isinstance(error, KernelError):
                    raise
                self.failures.setdefault(at, error)
                found.append(instead)
        return found

    def _node(self, particle: int, particles: int) -> int:
        return self.nodes[particle * len(self.nodes) // particles]


class _Apply(_Operation):
    """A deterministic procedure."""

    def __init__(self, trace: Trace, nodes: list[int], record: Deterministic, span: Any, lifted: tuple[bool, ...]):
        super().__init__(trace, nodes, record, lifted)
        self.span = span

    def __call__(self, particles: int, *arguments: Any) -> Any:
        if not any(self.lifted):
            return self._scalar(self.nodes[0], arguments)
        found = _together(self.record.columns, self.lifted, arguments)
        if found is not None:
            return found
        values = self._row_by_row(
            particles, arguments, lambda at, row: self._scalar(self._node(at, particles), row), FAILED
        )
        return column_of(values)

    def _scalar(self, node: int, arguments: tuple[Any, ...]) -> Any:
        try:
            return self.record.scalar(*arguments)
        except Exception as error:
            try:
                return apply_checked(self.record, arguments, self.span)
            except VentureError as located:
                raise located.at(self.span, self.trace.call_chain(*self.trace.decode(node))) from error


class _Choice(_Operation):
    """A random choice."""

    def __init__(self, trace: Trace, nodes: list[int], record: Random, lifted: tuple[bool, ...]):
        super().__init__(trace, nodes, record, lifted)
        self._values = _Stays(trace.column(nodes[0] >> 32), np.array([node & ROW_MASK for node in nodes]))

    def _fit(self, arguments: tuple[Any, ...]) -> bool:
        for argument, x, up in zip(self.record.arguments, arguments, self.lifted, strict=False):
            domain = argument.domain
            if not (domain.contains_all(x) if up else x is argument.default or domain.contains(x)):
                return False
        return True


class _Draw(_Choice):
    """The choice is drawn for each particle; the first of each strand keeps the value that the trace has."""

    def __init__(self, trace: Trace, nodes: list[int], record: Random, lifted: tuple[bool, ...]):
        super().__init__(trace, nodes, record, lifted)
        self.draw = record.simulate_columns

    def __call__(self, particles: int, *arguments: Any) -> np.ndarray:
        each = particles // len(self.nodes)
        if self.draw is not None and self._fit(arguments):
            kept = self._values.values()
            if kept.ndim == 1 and kept.dtype != object:
                try:
                    column = self.draw(self.trace.rng, particles, *arguments)
                except RowByRow:
                    pass
                else:
                    column[::each] = kept
                    return column

        def draw(at: int, row: tuple[Any, ...]) -> Any:
            node = self._node(at, particles)
            return simulate_anew(self.trace, node, self.record, row) if at % each else self.trace.value(node)

        return column_of(self._row_by_row(particles, arguments, draw, FAILED))


class _Weigh(_Choice):
    """The log density of the choice, at the value that the trace has, under each particle's arguments."""

    def __call__(self, particles: int, *arguments: Any) -> np.ndarray:
        if self._fit(arguments):
            form = self.record.log_density_columns
            terms = None
            if len(self.nodes) == 1:
                terms = _together(form, (False, *self.lifted), (self.trace.value(self.nodes[0]), *arguments))
            if terms is None:
                values = self._values(particles)
                terms = _together(form, (True, *self.lifted), (values, *arguments))
            # NaN and infinity are errors that name their call, found below
            if terms is not None and not (np.isnan(terms) | (terms == np.inf)).any():
                return np.broadcast_to(terms, (particles,))
        terms = self._row_by_row(
            particles, arguments, lambda at, values: self._term(self._node(at, particles), values), 0.0
        )
        return np.array(terms)

    def _term(self, node: int, arguments: tuple[Any, ...]) -> float:
        value = self.trace.value(node)
        return density_of(self.trace, node, self.record, arguments, value)


class Writer:
    """Writes the function of one step of a bundle. `moved` are the nodes that have columns when it runs, `failures` is
    where the errors of its particles are entered.

    Raises Unalike where the strands of the bundle cannot be written together.
    """

    def __init__(self, trace: Trace, bundle: Bundle, moved: Iterable[int], failures: Failures) -> None:
        self.trace = trace
        self.bundle = bundle
        self.failures = failures
        # what each term counts where it is impossible
        self.counts: list[int] = []
        # nodes that have columns, and the others whose values stand in these
        self.moved: set[int] = set()
        self._with_them: set[int] = set()
        for node in moved:
            self._move(node)
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {}
        self._known: dict[Any, tuple[str, bool]] = {}

    def draw(self, node: int) -> None:
        """Draw a principal from its distribution."""
        record, texts, lifted = self._application(node)
        operation = self._bind(_Draw(self.trace, self._likes(node), record, lifted))
        self._set(node, f"{operation}(n, {', '.join(texts)})")

    def renew(self, node: int) -> None:
        """Compute a node from what it is computed from."""
        text, lifted = self._computed(node)
        if lifted:
            self._set(node, text)

    def weigh(self, node: int) -> None:
        """Weigh a choice that stays as it is."""
        record, texts, lifted = self._application(node)
        if any(lifted):
            operation = self._bind(_Weigh(self.trace, self._likes(node), record, lifted))
            self.lines.append(f"w.append({operation}(n, {', '.join(texts)}))")
            self.counts.append(count_if_impossible(self.trace, node))

    def function(self) -> StepFunction:
        body = "".join(f"    {line}\n" for line in self.lines)
        exec(_compiled(f"def step(v, n):\n    w = []\n{body}    return w\n"), self.namespace)
        found: StepFunction = self.namespace["step"]
        return found

    def _bind(self, value: Any) -> str:
        name = f"k{len(self.namespace)}"
        self.namespace[name] = value
        if isinstance(value, _Operation):
            value.failures = self.failures
        return name

    def _set(self, node: int, text: str) -> None:
        self.lines.append(f"v[{self._bind(node)}] = {text}")
        self._move(node)

    def _move(self, node: int) -> None:
        self.moved.add(node)
        self._with_them.update(self._likes(node)[1:])

    # ------------------------------------------------------------------------------------- the rows of strands

    def _likes(self, node: int) -> list[int]:
        """The node in every strand."""
        return _nodes(node >> 32, self.bundle.rows[node])

    def _stays(self, column: Column, rows: StrandRows) -> tuple[str, bool]:
        row = _one(rows)
        if row is None:
            return f"{self._bind(_Stays(column, np.asarray(rows)))}(n)", True
        return f"{self._bind(column)}.view[{self._bind(row)}]", False

    def _same(self, found: Iterable[Any]) -> Any:
        """What all strands have in common."""
        first, *others = found
        if any(other is not first and other != first for other in others):
            raise Unalike
        return first

    def _operator(self, site: int, rows: StrandRows) -> Any:
        return self._same(self.trace.read(site, node & ROW_MASK)[0] for node in _nodes(site, rows))

    def _application(self, node: int) -> tuple[Random, list[str], tuple[bool, ...]]:
        """The distribution of a choice, and how its arguments are read."""
        trace = self.trace
        code, slot, _ = trace.decode(node)
        item = code.slots[slot]
        rows = self.bundle.rows[node]
        found = [self._read(code, rows, ref) for ref in item.arguments]
        record: Any = item.record
        if item.operator is not None:
            record = self._same(trace.application(like)[0] for like in self._likes(node))
            found.extend((self._bind(a.default), False) for a in record.arguments[len(found) :])
        return record, [text for text, _ in found], tuple(up for _, up in found)

    def _computed(self, node: int) -> tuple[str, bool]:
        trace = self.trace
        code, slot, _ = trace.decode(node)
        item = code.slots[slot]
        likes = [source for like in self._likes(node) if (source := computed_from(trace, like)) is not None]
        self._same((source.code, source.slot, source.position) for source in likes)
        rows: StrandRows = likes[0].row if len(likes) == 1 else np.array([source.row for source in likes])
        arguments = [self._read(likes[0].code, rows, ref) for ref in likes[0].refs]
        if not likes[0].is_applied:
            return arguments[0]
        record = item.record if item.operator is None else self._operator(node >> 32, rows)
        return self._apply(node >> 32, rows, record, item.span, arguments)

    def _apply(
        self, site: int, rows: StrandRows, record: Any, span: Any, arguments: list[tuple[str, bool]]
    ) -> tuple[str, bool]:
        lifted = tuple(up for _, up in arguments)
        operation = self._bind(_Apply(self.trace, _nodes(site, rows), record, span, lifted))
        return f"{operation}(n, {', '.join(text for text, _ in arguments)})", any(lifted)

    def _read(self, code: Code, rows: StrandRows, ref: Ref) -> tuple[str, bool]:
        """(expression, whether it differs between particles) for a reference as seen from a row."""
        match ref:
            case Constant(value=value):
                return self._bind(value), False
            case GlobalRef(target=target) if target.code is not None:
                return self._read(target.code, target.row, target.code.result)
            case SlotRef(depth=depth, slot=index):
                for _ in range(depth):
                    environment = self.trace.tables[code.index].environment
                    if environment is None or code.parent is None:
                        raise InternalError("a body without an environment reads one")
                    code = code.parent
                    rows = environment.view[rows] if isinstance(rows, int) else environment.array[rows]
                return self._read_slot(code, rows, index)
        raise InternalError("not a reference")

    def _read_slot(self, code: Code, rows: StrandRows, index: int) -> tuple[str, bool]:
        slot = code.slots[index]
        site = code.first_site + index
        nodes = _nodes(site, rows)
        if slot.stored:
            if nodes[0] in self.moved:
                if nodes != self._likes(nodes[0]):
                    raise Unalike
                return f"v[{self._bind(nodes[0])}]", True
            if not self._with_them.isdisjoint(nodes):
                raise Unalike
            return self._stays(self.trace.column(site), rows)
        if slot.kind is Kind.LAMBDA:
            row = _one(rows)
            if slot.body is None:
                raise InternalError("a lambda without a body")
            if row is None:
                raise Unalike
            return self._bind(Closure(slot.body, row)), False
        known = tuple(nodes)
        if known not in self._known:
            arguments = [self._read(code, rows, argument) for argument in slot.arguments]
            text, lifted = self._apply(site, rows, slot.record, slot.span, arguments)
            name = f"t{len(self._known)}"
            self.lines.append(f"{name} = {text}")
            self._known[known] = name, lifted
        return self._known[known]


def _nodes(site: int, rows: StrandRows) -> list[int]:
    return [site << 32 | rows] if isinstance(rows, int) else [site << 32 | row for row in rows.tolist()]


def _rows(nodes: list[int]) -> StrandRows:
    return nodes[0] & ROW_MASK if len(nodes) == 1 else np.array([node & ROW_MASK for node in nodes])


def _one(rows: StrandRows) -> int | None:
    """The row, where it is the same for all strands."""
    if isinstance(rows, int):
        return rows
    return int(rows[0]) if (rows == rows[0]).all() else None


@lru_cache(maxsize=1024)
def _compiled(source: str) -> CodeType:
    """Steps of one shape have one text: only what their names are bound to differs."""
    return compile(source, "<a step of a population>", "exec")
