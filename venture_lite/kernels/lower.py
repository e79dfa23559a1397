"""From a move and a shape to a form: values by the references of Codes, densities and draws by their one definition.

What is read is found in one binding of the shape; every other binding reads the same places (`interpreter/shape.py`).
A transition has no form where a value is no number, where a distribution has no definition or is known by its value
alone, or where rows absorb as a whole; then it is made otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from venture_lite.interpreter.kernel import Resimulation
from venture_lite.interpreter.shape import Binding, Shape
from venture_lite.interpreter.sources import RESULT, computed_from, environment_of
from venture_lite.kernels.form import Demand, Form, Loop, Side, Store, Value
from venture_lite.procedures.domains import ANY
from venture_lite.procedures.numeric import rebound
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.procedures.simulation import RecordingGenerator
from venture_lite.procedures.straight_line import SCALAR_NAMES, Node, Recording, needed, recorded
from venture_lite.program.code import Code, Constant, GlobalRef, Kind, Ref, SlotRef, origin
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.table import ROW_MASK, Column
from venture_lite.trace.trace import Trace

NUMBERS = (float, int, bool)

MOST_TERMS = 30
"""More single absorbing choices than this are a long function."""
MOST_ROWS = 20
"""The densities of more rows are weighed by columns."""


class NoForm(Exception):
    """Why a transition has no form."""


def rows_of(trace: Trace, site: int) -> list[int]:
    """The live rows of a site."""
    rows = trace.tables[trace.program.site_code[site].index].rows()
    return list(range(rows.stop)) if isinstance(rows, slice) else list(rows.tolist())


@cache
def _recordable(function: Callable[..., Any]) -> Callable[..., Any]:
    return rebound(function, {name: recorded(name) for name in SCALAR_NAMES})


def lower(trace: Trace, proposal: Any, shape: Shape, binding: Binding) -> Form:
    """The form of a transition of one choice. Raises NoForm."""
    if shape.users or len(shape.principals) != 1 or len(shape.absorbing) > MOST_TERMS:
        raise NoForm("many rows absorb")
    if not isinstance(proposal, Resimulation):
        raise NoForm("the proposal has no form")
    return _Lowering(trace, shape, binding.nodes).form()


class _Lowering:
    """Makes one form; the present state is read from columns, the new one from what was computed before."""

    def __init__(self, trace: Trace, shape: Shape, nodes: Sequence[int]) -> None:
        self._trace = trace
        self._shape = shape
        self._nodes = nodes
        self._place_of = {node: place for place, node in enumerate(nodes)}
        self._recording = Recording()
        self._columns: dict[Column, int] = {}
        self._objects: list[Any] = []
        # the value of a loop's row, by its place in the recording -> the rows
        self._rows: dict[int, list[int]] = {}
        # node -> its new value
        self._new: dict[int, Value] = {}

    def form(self) -> Form:
        shape, nodes = self._shape, self._nodes
        (principal,) = (nodes[place] for place in shape.principals)
        record, arguments = self._application(principal, self._row_of(principal), {})
        proposed = _recordable(record.simulate)(RecordingGenerator(self._recording), *arguments)
        before = self._demands(record, arguments)
        self._new[principal] = proposed
        for node in (nodes[place] for place in shape.order):
            if node != principal:
                self._new[node] = self._renewed(node)
        old, new = self._side({}), self._side(self._new)
        stores = tuple(self._stores())
        columns, objects = tuple(self._columns), tuple(self._objects)
        return Form(before, proposed, 0.0, old, new, stores, columns, objects)

    def _side(self, new: dict[int, Value]) -> Side:
        """What absorbs, as of the present state or with what is `new`."""
        # by value and test: a new value that many densities read is tested once
        demands: dict[tuple[int, str], Demand] = {}
        terms: list[Value] = []
        for node in (self._nodes[place] for place in self._shape.absorbing):
            record, arguments = self._application(node, self._row_of(node), new)
            demands |= {(item.value.place, item.test): item for item in self._changing(record, arguments)}
            terms.append(self._density(record, arguments, self._stored(node, self._row_of(node), {})))
        loops = tuple(self._loop(number, site, new) for number, site in enumerate(self._shape.groups))
        return Side(tuple(terms), loops, tuple(demands.values()) if new else ())

    def _loop(self, number: int, site: int, new: dict[int, Value]) -> Loop:
        """All rows of a site; what is new is read there by its name alone, and means the same in each."""
        each, rows = self._recording.record("each", number), rows_of(self._trace, site)
        self._rows[each.place] = rows
        code = self._trace.program.site_code[site]
        own = range(code.first_site, code.first_site + len(code.slots))
        if not 0 < len(rows) <= MOST_ROWS or any(node >> 32 in own for node in self._new):
            raise NoForm("many rows absorb")
        node = site << 32 | rows[0]
        record, arguments = self._application(node, each, new)
        demands = self._changing(record, arguments) if new else ()
        return Loop(each, demands, self._density(record, arguments, self._stored(node, each, {})))

    # ----------------------------------------------------------------------------------------- distributions

    def _application(self, node: int, at: Value, new: dict[int, Value]) -> tuple[Random, list[Value]]:
        """A choice's distribution and its arguments, as of the present state or with what is `new`."""
        code, slot, row = self._trace.decode(node)
        item = code.slots[slot]
        if item.kind is not Kind.RANDOM or not isinstance(item.record, Random) or item.record.definition is None:
            raise NoForm("a distribution without a definition")
        return item.record, [self._read(code, row, at, ref, new) for ref in item.arguments]

    def _density(self, record: Random, arguments: list[Value], value: Value) -> Value:
        assert record.definition is not None
        return _recordable(record.definition)(value, *arguments)

    def _demands(self, record: Random, arguments: list[Value]) -> tuple[Demand, ...]:
        """What must be tested of arguments that are computed; a constant was tested when it was loaded."""
        found = []
        for argument, value in zip(record.arguments, arguments, strict=True):
            if value.__class__ is Node and argument.domain is not ANY:
                if argument.domain.test is None:
                    raise NoForm("an argument that is no number")
                found.append(Demand(value, argument.domain.test))
        return tuple(found)

    def _changing(self, record: Random, arguments: list[Value]) -> tuple[Demand, ...]:
        """What must be tested of arguments that change with the transition; the others stand, and were tested."""
        new = {value.place for value in self._new.values() if value.__class__ is Node}
        found = self._demands(record, arguments)
        return tuple(item for item in found if any(node.place in new for node in needed([item.value])))

    # ----------------------------------------------------------------------------------------------- values

    def _renewed(self, node: int) -> Value:
        source = computed_from(self._trace, node)
        assert source is not None
        code, row, slot, position = source
        at = self._row_known(code, row)
        if slot == RESULT or position >= 0:
            (ref,) = source.refs
            return self._read(code, row, at, ref, self._new)
        item = code.slots[slot]
        if item.kind is not Kind.DETERMINISTIC:
            raise NoForm("a primitive that is known by its value alone")
        return self._applied(item.record, [self._read(code, row, at, ref, self._new) for ref in item.arguments])

    def _read(self, code: Code, row: int, at: Value, ref: Ref, new: dict[int, Value]) -> Value:
        """What a reference means in a row; `at` is the row as a value."""
        match ref:
            case Constant(value=value):
                return self._known(value)
            case GlobalRef(target=target) if (place := origin(target)) is not None:
                return self._read(*place, place[1], place[0].result, new)
            case SlotRef(depth=depth, slot=slot):
                for level in range(depth):
                    environment = self._trace.tables[code.ancestor(level).index].environment
                    assert environment is not None
                    at = self._loaded(environment, at)
                code, row = environment_of(self._trace, code, row, depth)
                item = code.slots[slot]
                if item.stored:
                    return self._stored((code.first_site + slot) << 32 | row, at, new)
                if item.kind is Kind.DETERMINISTIC:
                    parts = [self._read(code, row, at, part, new) for part in item.arguments]
                    return self._applied(item.record, parts)
        raise NoForm("a value that is no number")

    def _known(self, value: Any) -> Value:
        """What is the same in every row: a number, else one of the form's objects."""
        return value if type(value) in NUMBERS else self._recording.record("object", self._object(value))

    def _applied(self, record: Any, arguments: list[Value]) -> Value:
        assert isinstance(record, Deterministic)
        if all(argument.__class__ is not Node for argument in arguments):
            return self._known(record.scalar(*arguments))
        return self._recording.record("call", self._object(record.scalar), *arguments)

    def _stored(self, node: int, at: Value, new: dict[int, Value]) -> Value:
        if node in new:
            return new[node]
        column = self._trace.column(node >> 32)
        if isinstance(column, BorrowedColumn):
            edges, lender = column.edges, column.lender
            lent = edges.view[node & ROW_MASK] & ROW_MASK
            if (column.site << 32 | lent) in new:
                return new[column.site << 32 | lent]
            return self._loaded(lender, self._recording.record("&", self._loaded(edges, at), ROW_MASK))
        return self._loaded(column, self._one_row(node, column, at))

    def _one_row(self, node: int, column: Column, at: Value) -> Value:
        """The row where a loop's data are read: the first one where they are the same in all rows, as literals are.
        Data never change while their rows stay."""
        rows = self._rows.get(at.place) if at.__class__ is Node else None
        code, slot, row = self._trace.decode(node)
        if rows is None or code.kind != "directive" or code.slots[slot].kind is not Kind.ARGUMENT:
            return at
        return row if len({column.view[each] for each in rows}) == 1 else at

    def _loaded(self, column: Column, at: Value) -> Value:
        if column.kind not in NUMBERS:
            raise NoForm("a column of no numbers")
        return self._recording.record("load", self._column(column), at)

    # -------------------------------------------------------------------------------------- rows and objects

    def _row_of(self, node: int) -> Value:
        return self._recording.record("row", self._place_of[node])

    def _row_known(self, code: Code, row: int) -> Value:
        """A row that some place stands in."""
        for node, place in self._place_of.items():
            if node & ROW_MASK == row and self._trace.program.site_code[node >> 32] is code:
                return self._recording.record("row", place)
        raise NoForm("a row without a place")

    def _column(self, column: Column) -> int:
        return self._columns.setdefault(column, len(self._columns))

    def _object(self, value: Any) -> int:
        for number, known in enumerate(self._objects):
            if known is value:
                return number
        self._objects.append(value)
        return len(self._objects) - 1

    def _stores(self) -> Iterator[Store]:
        for node, value in self._new.items():
            column = self._trace.column(node >> 32)
            if not isinstance(column, BorrowedColumn):
                if column.kind not in NUMBERS:
                    raise NoForm("a value that is no number")
                yield Store(self._place_of[node], self._column(column), value)
