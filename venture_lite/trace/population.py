"""One step of a schedule for a whole population: values of some nodes for many particles, each node a column.

What in a group of rows differs between rows differs here between particles: the same forms of the procedures for
columns evaluate both. Everything that does not depend on the blocks is read from the trace, where it is. For each step
one function is generated; what the columns form of a procedure cannot do is done particle by particle, which also finds
the call that an error belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from venture_lite.code import Code, Constant, GlobalRef, Kind, Ref, SlotRef
from venture_lite.errors import InternalError, VentureError
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.record import Columns, Deterministic, Random
from venture_lite.procedures.simulation import DRAWS
from venture_lite.trace.evaluate import Evaluator
from venture_lite.trace.explain import apply_checked
from venture_lite.trace.runtime import Closure
from venture_lite.trace.table import ROW_MASK, NotColumnar
from venture_lite.trace.trace import Trace
from venture_lite.trace.weights import density_of

Population = dict[int, np.ndarray]
"""Node -> its values, (particles,) or, for vectors of one length, (particles, length); objects where neither fits."""

StepFunction = Callable[[Population, int], list[np.ndarray]]
"""(population, particles) -> log densities of what absorbs, each (particles,). Adds the step's nodes."""


def column_of(values: list[Any]) -> np.ndarray:
    """One node's values as an array: of numbers where all are of one kind, else of objects."""
    kinds = set(map(type, values))
    if len(kinds) == 1 and (kind := kinds.pop()) in (float, int, bool):
        try:
            return np.array(values, {float: np.float64, int: np.int64, bool: np.bool_}[kind])
        except OverflowError:
            pass
    elif kind is np.ndarray and len({value.shape for value in values}) == 1 and values[0].dtype == np.float64:
        return np.stack(values)
    found = np.empty(len(values), object)
    found[:] = values
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


class _Apply:
    """A deterministic procedure."""

    def __init__(self, trace: Trace, node: int, record: Deterministic, span: Any, lifted: tuple[bool, ...]) -> None:
        self.trace, self.node, self.record, self.span, self.lifted = trace, node, record, span, lifted

    def __call__(self, particles: int, *arguments: Any) -> Any:
        if not any(self.lifted):
            return self._scalar(arguments)
        found = _together(self.record.columns, self.lifted, arguments)
        if found is not None:
            return found
        return column_of([self._scalar(row) for row in _each(self.lifted, arguments, particles)])

    def _scalar(self, arguments: tuple[Any, ...]) -> Any:
        try:
            return self.record.scalar(*arguments)
        except Exception as error:
            try:
                return apply_checked(self.record, arguments, self.span)
            except VentureError as located:
                raise located.at(self.span, self.trace.call_chain(*self.trace.decode(self.node))) from error


class _Choice:
    """A random choice whose arguments are columns."""

    def __init__(self, trace: Trace, node: int, record: Random, lifted: tuple[bool, ...]) -> None:
        self.trace, self.node, self.record, self.lifted = trace, node, record, lifted

    def _fit(self, arguments: tuple[Any, ...]) -> bool:
        for argument, x, up in zip(self.record.arguments, arguments, self.lifted, strict=False):
            domain = argument.domain
            if not (domain.contains_all(x) if up else x is argument.default or domain.contains(x)):
                return False
        return True


class _Draw(_Choice):
    """The choice is drawn for each particle; the first keeps the value that the trace has."""

    def __init__(self, trace: Trace, machine: Evaluator, node: int, record: Random, lifted: tuple[bool, ...]) -> None:
        super().__init__(trace, node, record, lifted)
        self.machine = machine
        self.draw = DRAWS.get(record)

    def __call__(self, particles: int, *arguments: Any) -> np.ndarray:
        kept = self.trace.value(self.node)
        if self.draw is not None and isinstance(kept, (int, float)) and self._fit(arguments):
            try:
                column = self.draw(self.trace.rng, particles, *arguments)
            except RowByRow:
                pass
            else:
                column[0] = kept
                return column
        where = self.trace.decode(self.node)
        values = [kept]
        for row in list(_each(self.lifted, arguments, particles))[1:]:
            self.machine.check(self.record, row, *where)
            values.append(self.machine.simulate(self.node, self.record, row))
        return column_of(values)


class _Weigh(_Choice):
    """The log density of the choice, at the value that the trace has, under each particle's arguments."""

    def __call__(self, particles: int, *arguments: Any) -> np.ndarray:
        value = self.trace.value(self.node)
        if self._fit(arguments):
            form = self.record.log_density_columns
            terms = _together(form, (False, *self.lifted), (value, *arguments))
            if terms is None:
                terms = _together(form, (True, *self.lifted), (column_of([value] * particles), *arguments))
            # NaN and infinity are errors that name their call, found below
            if terms is not None and not (np.isnan(terms) | (terms == np.inf)).any():
                return np.broadcast_to(terms, (particles,))
        site, row = self.node >> 32, self.node & ROW_MASK
        return np.array(
            [
                density_of(self.trace, site, row, self.record, values, value)
                for values in _each(self.lifted, arguments, particles)
            ]
        )


class Writer:
    """Writes the function of one step. `moved` are the nodes that have columns when it runs."""

    def __init__(self, trace: Trace, machine: Evaluator, moved: Iterable[int]) -> None:
        self.trace = trace
        self.machine = machine
        self.moved = set(moved)
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {}
        self._known: dict[int, tuple[str, bool]] = {}

    def draw(self, node: int) -> None:
        """Draw a principal from its distribution."""
        record, texts, lifted = self._application(node)
        operation = self._bind(_Draw(self.trace, self.machine, node, record, lifted))
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
            operation = self._bind(_Weigh(self.trace, node, record, lifted))
            self.lines.append(f"w.append({operation}(n, {', '.join(texts)}))")

    def function(self) -> StepFunction:
        body = "".join(f"    {line}\n" for line in self.lines)
        exec(_compiled(f"def step(v, n):\n    w = []\n{body}    return w\n"), self.namespace)
        found: StepFunction = self.namespace["step"]
        return found

    def _bind(self, value: Any) -> str:
        name = f"k{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def _set(self, node: int, text: str) -> None:
        self.lines.append(f"v[{self._bind(node)}] = {text}")
        self.moved.add(node)

    def _application(self, node: int) -> tuple[Random, list[str], tuple[bool, ...]]:
        """The distribution of a choice, and how its arguments are read."""
        trace = self.trace
        code, slot, row = trace.decode(node)
        item = code.slots[slot]
        found = [self._read(code, row, ref) for ref in item.arguments]
        record: Any = item.record
        if item.kind is Kind.CALL:
            record, _ = trace.application(node >> 32, row)
            found.extend((self._bind(a.default), False) for a in record.arguments[len(found) :])
        return record, [text for text, _ in found], tuple(up for _, up in found)

    def _computed(self, node: int) -> tuple[str, bool]:
        trace = self.trace
        code, slot, row = trace.decode(node)
        item = code.slots[slot]
        if item.kind is Kind.ARGUMENT:
            caller, call, at = trace.decode(trace.users.nodes(code, row)[0])
            return self._read(caller, at, caller.slots[call].arguments[slot])
        if item.kind in (Kind.CALL, Kind.IF) and (packed := trace.tables[code.index].edges[slot].view[row]) >= 0:
            inner = trace.program.codes[packed >> 32]
            return self._read(inner, packed & ROW_MASK, inner.result)
        record = item.record if item.kind is Kind.DETERMINISTIC else trace.read(node >> 32, row)[0]
        return self._apply(node, record, item.span, [self._read(code, row, ref) for ref in item.arguments])

    def _apply(self, node: int, record: Any, span: Any, arguments: list[tuple[str, bool]]) -> tuple[str, bool]:
        lifted = tuple(up for _, up in arguments)
        operation = self._bind(_Apply(self.trace, node, record, span, lifted))
        return f"{operation}(n, {', '.join(text for text, _ in arguments)})", any(lifted)

    def _read(self, code: Code, row: int, ref: Ref) -> tuple[str, bool]:
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
                    code, row = code.parent, environment.view[row]
                return self._read_slot(code, row, index)
        raise InternalError("not a reference")

    def _read_slot(self, code: Code, row: int, index: int) -> tuple[str, bool]:
        slot = code.slots[index]
        node = (code.first_site + index) << 32 | row
        if slot.stored:
            if node in self.moved:
                return f"v[{self._bind(node)}]", True
            return f"{self._bind(self.trace.column(node >> 32))}.view[{self._bind(row)}]", False
        if slot.kind is Kind.LAMBDA:
            if slot.body is None:
                raise InternalError("a lambda without a body")
            return self._bind(Closure(slot.body, row)), False
        if node not in self._known:
            text, lifted = self._apply(
                node, slot.record, slot.span, [self._read(code, row, argument) for argument in slot.arguments]
            )
            name = f"t{len(self._known)}"
            self.lines.append(f"{name} = {text}")
            self._known[node] = name, lifted
        return self._known[node]


@lru_cache(maxsize=1024)
def _compiled(source: str) -> CodeType:
    """Steps of one shape have one text: only what their names are bound to differs."""
    return compile(source, "<a step of a population>", "exec")
