"""From a move and a shape to a form: values by the references of Codes, densities and draws by their one definition.

What is read is found in one binding of the shape; every other binding reads the same places (`interpreter/shape.py`).
A transition has no form where a value is no number, where a distribution has no definition or is known by its value
alone, or where rows absorb as a whole; then it is made otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from venture_lite.interpreter.kernel import Resimulation
from venture_lite.interpreter.references import NUMBERS, Operations, References, row_given
from venture_lite.interpreter.shape import Binding, Shape
from venture_lite.interpreter.sources import computed_from
from venture_lite.kernels.form import Demand, Form, Loop, Side, Store, Value
from venture_lite.procedures.domains import ANY
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.procedures.simulation import RecordingGenerator
from venture_lite.procedures.straight_line import Node, needed, recordable
from venture_lite.program.code import Code, Kind
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.table import ROW_MASK, Column
from venture_lite.trace.trace import Trace

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


def lower(trace: Trace, proposal: Any, shape: Shape, binding: Binding) -> Form:
    """The form of a transition of one choice. Raises NoForm."""
    if shape.users or len(shape.principals) != 1 or len(shape.absorbing) > MOST_TERMS:
        raise NoForm("many rows absorb")
    if not isinstance(proposal, Resimulation):
        raise NoForm("the proposal has no form")
    return _Lowering(trace, shape, binding.nodes).form()


class _Operations(Operations):
    """What is the same in all states is computed beforehand."""

    def call(self, record: Deterministic, site: int, row: Value, arguments: Sequence[Value]) -> Value:
        if all(argument.__class__ is not Node for argument in arguments):
            return self.constant(record.scalar(*arguments))
        return super().call(record, site, row, arguments)


class _Lowering:
    """Makes one form; the present state is read from columns, the new one from what was computed before."""

    def __init__(self, trace: Trace, shape: Shape, nodes: Sequence[int]) -> None:
        self._trace = trace
        self._shape = shape
        self._nodes = nodes
        self._place_of = {node: place for place, node in enumerate(nodes)}
        self._operations = _Operations()
        # by place of a loop's row: the rows; by place of any row: the one in this binding
        self._rows: dict[int, list[int]] = {}
        self._row: dict[int, int] = {}
        # node -> its new value
        self._new: dict[int, Value] = {}
        self._present = References(trace, self._operations, partial(self._known, {}))
        self._proposed = References(trace, self._operations, partial(self._known, self._new))

    def form(self) -> Form:
        shape, nodes = self._shape, self._nodes
        (principal,) = (nodes[place] for place in shape.principals)
        record, arguments = self._application(principal, self._row_of(principal), self._present)
        proposed = recordable(record.simulate)(RecordingGenerator(self._operations), *arguments)
        before = self._demands(record, arguments)
        self._new[principal] = proposed
        for node in (nodes[place] for place in shape.order):
            if node != principal:
                self._new[node] = self._renewed(node)
        old, new = self._side(self._present), self._side(self._proposed)
        stores = tuple(self._stores())
        if any(node.operation in ("closure", "unbound") for node in self._operations.nodes.values()):
            raise NoForm("a value that is no number")
        columns, objects = tuple(self._operations.columns), tuple(self._operations.objects)
        return Form(before, proposed, 0.0, old, new, stores, columns, objects)

    def _side(self, state: References) -> Side:
        """What absorbs, as of the present or the proposed state."""
        # by value and test: a new value that many densities read is tested once
        demands: dict[tuple[int, str], Demand] = {}
        terms: list[Value] = []
        for node in (self._nodes[place] for place in self._shape.absorbing):
            record, arguments = self._application(node, self._row_of(node), state)
            demands |= {(item.value.place, item.test): item for item in self._changing(record, arguments)}
            terms.append(self._density(record, arguments, self._known({}, node >> 32, self._row_of(node))))
        loops = tuple(self._loop(number, site, state) for number, site in enumerate(self._shape.groups))
        return Side(tuple(terms), loops, tuple(demands.values()) if state is self._proposed else ())

    def _loop(self, number: int, site: int, state: References) -> Loop:
        """All rows of a site; what is new is read there by its name alone, and means the same in each."""
        each, rows = self._operations.record("each", number), rows_of(self._trace, site)
        code = self._trace.program.site_code[site]
        own = range(code.first_site, code.first_site + len(code.slots))
        if not 0 < len(rows) <= MOST_ROWS or any(node >> 32 in own for node in self._new):
            raise NoForm("many rows absorb")
        self._rows[each.place], self._row[each.place] = rows, rows[0]
        record, arguments = self._application(site << 32 | rows[0], each, state)
        demands = self._changing(record, arguments) if state is self._proposed else ()
        return Loop(each, demands, self._density(record, arguments, self._known({}, site, each)))

    # ----------------------------------------------------------------------------------------- distributions

    def _application(self, node: int, row: Value, state: References) -> tuple[Random, list[Value]]:
        """A choice's distribution and its arguments, as of the present or the proposed state."""
        code, slot, _ = self._trace.decode(node)
        item = code.slots[slot]
        if item.kind is not Kind.RANDOM or not isinstance(item.record, Random) or item.record.definition is None:
            raise NoForm("a distribution without a definition")
        return item.record, [state.read(code, row, ref) for ref in item.arguments]

    def _density(self, record: Random, arguments: list[Value], value: Value) -> Value:
        assert record.definition is not None
        return recordable(record.definition)(value, *arguments)

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
        at = self._row_known(source.code, source.row)
        values = [self._proposed.read(source.code, at, ref) for ref in source.refs]
        if not source.is_applied:
            return values[0]
        record = source.code.slots[source.slot].record
        if not isinstance(record, Deterministic):
            raise NoForm("a primitive that is known by its value alone")
        return self._operations.call(record, node >> 32, at, values)

    def _known(self, new: dict[int, Value], site: int, at: Value) -> Value:
        """What a stored slot is read as in a row: what is new, else its column."""
        row, column = row_given(self._operations, at, self._row), self._trace.column(site)
        node = site << 32 | row
        if node in new:
            return new[node]
        if not isinstance(column, BorrowedColumn):
            return self._loaded(column, self._one_row(node, column, at))
        lent = column.site << 32 | column.edges.view[row] & ROW_MASK
        if lent in new:
            return new[lent]
        return self._loaded(column.lender, self._operations.record("&", self._loaded(column.edges, at), ROW_MASK))

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
        return self._operations.load(column, at)

    # -------------------------------------------------------------------------------------- rows and objects

    def _row_of(self, node: int) -> Value:
        found = self._operations.record("row", self._place_of[node])
        self._row[found.place] = node & ROW_MASK
        return found

    def _row_known(self, code: Code, row: int) -> Value:
        """A row that some place stands in."""
        for node in self._place_of:
            if node & ROW_MASK == row and self._trace.program.site_code[node >> 32] is code:
                return self._row_of(node)
        raise NoForm("a row without a place")

    def _stores(self) -> Iterator[Store]:
        for node, value in self._new.items():
            column = self._trace.column(node >> 32)
            if not isinstance(column, BorrowedColumn):
                if column.kind not in NUMBERS:
                    raise NoForm("a value that is no number")
                yield Store(self._place_of[node], self._operations.column(column), value)
