"""What references mean: the one place where a constant, a slot and a name are told apart.

What references read is recorded as operations on rows, each once, in the order of evaluation: *row* is the row that
reads, *load* takes a column's value in a row, *call* applies a procedure, *closure* is a lambda made in a row, *object*
a constant that is no number, *unbound* a name without a value. Whoever reads references prints these operations or
goes over them: as Python over rows or over columns (`readers.py`), as what went wrong (`explain.py`), as transitions
(`kernels/`), as a linear predictor (`blocks/linear.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from venture_lite.errors import InternalError
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.procedures.straight_line import Node, Recording
from venture_lite.program.code import Code, Constant, GlobalRef, Kind, Ref, SlotRef, named
from venture_lite.trace.runtime import Closure
from venture_lite.trace.table import Column

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace

Value = Any
"""An operation, or a number that is known beforehand; of rows, too."""

Known = Callable[[int, Value], Value]
"""(site, row) -> what a stored slot is read as; None where its column is loaded."""

NUMBERS = frozenset((float, int, bool))


class Operations(Recording):
    """Operations on rows, and by number the columns, procedures and constants that they are about."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: list[Column] = []
        self.objects: list[Any] = []
        # place of a call -> the procedure, and the site and the row where the first call of its kind stands
        self.calls: dict[int, tuple[Deterministic, int, Value]] = {}
        # places of the rows around rows
        self.rows: set[int] = set()
        self._numbers: dict[int, int] = {}

    def column(self, column: Column) -> int:
        return self._number(column, self.columns)

    def object(self, value: Any) -> int:
        return self._number(value, self.objects)

    def _number(self, value: Any, known: list[Any]) -> int:
        """The number of what is known by identity."""
        number = self._numbers.setdefault(id(value), len(known))
        if number == len(known):
            known.append(value)
        return number

    def constant(self, value: Any) -> Value:
        return value if type(value) in NUMBERS else self.record("object", self.object(value))

    def load(self, column: Column, row: Value) -> Node:
        return self.record("load", self.column(column), row)

    def environment(self, column: Column, row: Value) -> Node:
        """The row around a row."""
        found = self.load(column, row)
        self.rows.add(found.place)
        return found

    def call(self, record: Deterministic, site: int, row: Value, arguments: Sequence[Value]) -> Value:
        """Of constants the value, which is one object from then on; where there is none, whoever reads says why."""
        if PROCEDURES.get(record.name) is record and all(map(self._is_known, arguments)):
            try:
                return self.constant(record.scalar(*map(self._known, arguments)))
            except Exception:
                pass
        found = self.record("call", self.object(record.scalar), *arguments)
        self.calls.setdefault(found.place, (record, site, row))
        return found

    def _is_known(self, value: Value) -> bool:
        return value.__class__ is not Node or value.operation == "object"

    def _known(self, value: Value) -> Any:
        return self.objects[value.operands[0]] if value.__class__ is Node else value


class References:
    """Records what references of one trace read."""

    def __init__(self, trace: Trace, operations: Operations, known: Known | None = None) -> None:
        self._trace = trace
        self._operations = operations
        self._known = known
        # fused slots, by site and row
        self._fused: dict[tuple[int, int], Value] = {}

    def read(self, code: Code, row: Value, ref: Ref) -> Value:
        """What a reference means in a row, which is a value too."""
        match ref:
            case Constant(value=value):
                return self._operations.constant(value)
            case GlobalRef(target=target):
                target = named(target)
                if target.code is None:
                    return self._operations.record("unbound", self._operations.object(target))
                return self.read(target.code, target.row, target.code.result)
            case SlotRef(depth=depth, slot=slot):
                for _ in range(depth):
                    environment = self._trace.tables[code.index].environment
                    if environment is None or code.parent is None:
                        raise InternalError("a body without an environment reads one")
                    code, row = code.parent, self._operations.environment(environment, row)
                return self._slot(code, slot, row)

    def _slot(self, code: Code, index: int, row: Value) -> Value:
        slot, site = code.slots[index], code.first_site + index
        if slot.kind is Kind.LAMBDA and row.__class__ is int:
            assert slot.body is not None
            return self._operations.constant(Closure(slot.body, row))
        if slot.stored:
            found = None if self._known is None else self._known(site, row)
            return self._operations.load(self._trace.column(site), row) if found is None else found
        if slot.kind is Kind.LAMBDA:
            return self._operations.record("closure", self._operations.object(slot.body), row)
        key = site, row if row.__class__ is int else ~row.place
        if key not in self._fused:
            assert isinstance(slot.record, Deterministic)
            arguments = [self.read(code, row, argument) for argument in slot.arguments]
            self._fused[key] = self._operations.call(slot.record, site, row, arguments)
        return self._fused[key]


def row_given(operations: Operations, row: Value, given: dict[int, Any]) -> Any:
    """The row, or the rows (n,), that an operation gives, where those of some places are given."""
    if row.__class__ is int:
        return row
    if row.place not in given:
        column, inner = operations.columns[row.operands[0]], row_given(operations, row.operands[1], given)
        given[row.place] = column.view[inner] if inner.__class__ is int else column.array[inner]
    return given[row.place]
