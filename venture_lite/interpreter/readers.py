"""From references to straight-line Python: how a slot's arguments are read from the tables.

For each slot one function is generated that reads the stored slots and applies the fused ones in order, each once, in
local variables: no recursion, no temporary objects. The scalar form takes one row, the columns form a group of rows (a
slice or an index array) and returns arrays for what differs between rows and plain values for what does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.errors import InternalError, NameUnknown
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.record import Deterministic
from venture_lite.program.code import Code, Constant, GlobalRef, Kind, Ref, SlotRef
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.runtime import Closure
from venture_lite.trace.table import ROW_MASK, Column, NotColumnar
from venture_lite.trace.trace import Reader, Trace

ColumnsReader = Callable[[Any], tuple[Any, ...]]


class _Emitter:
    """Collects the lines of one generated function."""

    def __init__(self, trace: Trace, code: Code) -> None:
        self.trace = trace
        self.code = code
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {"Closure": Closure}
        self.known: dict[tuple[int, int], str] = {}
        self.rows = ["r0"]
        self.columns_read: list[Column] = []
        # the slot of a call that leads to one family from all rows, and the row of that family
        self.call = -1
        self.family = [0]

    def bind(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def row(self, level: int) -> str:
        """The variable that holds the row `level` environments up."""
        while len(self.rows) <= level:
            below = len(self.rows) - 1
            table = self.trace.tables[self.code.ancestor(below).index]
            if table.environment is None:
                raise InternalError("a body without an environment reads one")
            name = f"r{below + 1}"
            self.lines.append(f"{name} = {self.read_column(table.environment, self.rows[below])}")
            self.rows.append(name)
        return self.rows[level]

    def constant(self, value: Any) -> str:
        if type(value) in (int, float, bool) and repr(value) not in ("nan", "inf", "-inf"):
            return repr(value)
        return self.bind("k", value)

    def read_column(self, column: Column, row: str) -> str:
        if isinstance(column, BorrowedColumn):
            return self.read_column(column.lender, f"{self.bind('c', column.edges)}.view[{row}] & {ROW_MASK}")
        return f"{self.bind('c', column)}.view[{row}]"

    def read_family(self, column: Column) -> tuple[str, bool]:
        """The result that all rows borrow from one family."""
        if not isinstance(column, BorrowedColumn):
            raise InternalError("a call that keeps copies is read as if it borrowed")
        self.columns_read.append(column.lender)
        return f"{self.bind('c', column.lender)}.view[{self.bind('family', self.family)}[0]]", False

    def apply(self, record: Deterministic, arguments: list[tuple[str, bool]]) -> tuple[str, bool]:
        call = ", ".join(text for text, _ in arguments)
        return f"{self.bind('f', record.scalar)}({call})", False

    def closure(self, body: Code, level: int) -> tuple[str, bool]:
        return f"Closure({self.bind('b', body)}, {self.row(level)})", False

    def resolve(self, ref: Ref) -> Ref | tuple[Column, int]:
        """A global's value: a constant, or the column and row where it stands."""
        while isinstance(ref, GlobalRef):
            target = ref.target
            if target.code is None:
                raise NameUnknown(f"{target.name} is used before it has a value", target.span)
            match target.code.result:
                case SlotRef(slot=index):
                    slot = target.code.slots[index]
                    if slot.kind is Kind.LAMBDA:
                        assert slot.body is not None
                        return Constant(Closure(slot.body, target.row))
                    column = self.trace.tables[target.code.index].columns[index]
                    assert column is not None
                    return column, target.row
                case other:
                    ref = other
        return ref

    def read(self, ref: Ref, level: int = 0) -> tuple[str, bool]:
        """(expression, whether it differs between rows) for a reference as seen `level` environments up."""
        match self.resolve(ref):
            case (Column() as column, int(row)):
                self.columns_read.append(column)
                return f"{self.bind('c', column)}.view[{row}]", False
            case Constant(value=value):
                return self.constant(value), False
            case SlotRef(depth=depth, slot=index):
                return self.read_slot(level + depth, index)
        raise InternalError("not a reference")

    def read_slot(self, level: int, index: int) -> tuple[str, bool]:
        code = self.code.ancestor(level)
        slot = code.slots[index]
        if slot.stored:
            column = self.trace.tables[code.index].columns[index]
            assert column is not None
            if level == 0 and index == self.call:
                return self.read_family(column)
            self.columns_read.append(column)
            return self.read_column(column, self.row(level)), True
        if (level, index) in self.known:
            return self.known[level, index], (level, index) in self.lifted
        if slot.kind is Kind.LAMBDA:
            assert slot.body is not None
            return self.closure(slot.body, level)
        arguments = [self.read(argument, level) for argument in slot.arguments]
        assert isinstance(slot.record, Deterministic)
        text, lifted = self.apply(slot.record, arguments)
        name = f"t{level}_{index}"
        self.lines.append(f"{name} = {text}")
        self.known[level, index] = name
        if lifted:
            self.lifted.add((level, index))
        return name, lifted

    @property
    def lifted(self) -> set[tuple[int, int]]:
        return self.namespace.setdefault("_lifted", set())  # type: ignore[no-any-return]

    def function(self, refs: tuple[Ref, ...]) -> tuple[Callable[..., tuple[Any, ...]], tuple[bool, ...]]:
        results = [self.read(ref) for ref in refs]
        returned = "".join(f"{text}, " for text, _ in results)
        body = "".join(f"    {line}\n" for line in self.lines)
        exec(f"def read(r0):\n{body}    return ({returned})\n", self.namespace)
        return self.namespace["read"], tuple(lifted for _, lifted in results)


class _ColumnsEmitter(_Emitter):
    def read_column(self, column: Column, row: str) -> str:
        return f"{self.bind('c', column)}.gather({row})"

    def apply(self, record: Deterministic, arguments: list[tuple[str, bool]]) -> tuple[str, bool]:
        call = ", ".join(text for text, _ in arguments)
        lifted = tuple(up for _, up in arguments)
        if not any(lifted):
            return f"{self.bind('f', record.scalar)}({call})", False
        together = record.columns or _row_by_row
        return f"{self.bind('f', together)}({lifted!r}, {call})", True

    def closure(self, body: Code, level: int) -> tuple[str, bool]:
        # found out when the function runs, as of any other value: what is made of text must not fail for good
        return f"{self.bind('f', _not_columnar)}()", True


def _row_by_row(*_: Any) -> np.ndarray:
    raise RowByRow


def _not_columnar() -> np.ndarray:
    raise NotColumnar


def reader(trace: Trace, code: Code, refs: tuple[Ref, ...]) -> Reader:
    """`row -> values of refs`."""
    return _Emitter(trace, code).function(refs)[0]


def columns_reader(
    trace: Trace, code: Code, refs: tuple[Ref, ...], call: int = -1, family: list[int] | None = None
) -> tuple[ColumnsReader, tuple[bool, ...], list[Column]]:
    """`rows -> values of refs`, which of them differ between rows, and every column that is read.

    With `call`, the slot of a call of a memoized procedure, all rows are read as if it led to one family, whose row
    stands in `family[0]` when the function runs.

    The function raises NotColumnar or RowByRow where the values of some slot do not form an array.
    """
    emitter = _ColumnsEmitter(trace, code)
    if family is not None:
        emitter.call, emitter.family = call, family
    function, lifted = emitter.function(refs)
    return function, lifted, emitter.columns_read
