"""References as straight-line Python: how a slot's arguments are read from the tables.

For the references of a slot one function is printed that reads the stored slots and applies the fused ones in order,
each once, in local variables: no recursion, no temporary objects. The scalar form takes one row, the columns form a
group of rows (a slice or an index array) and returns arrays for what differs between rows and plain values for what
does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from venture_lite.errors import InternalError, NameUnknown
from venture_lite.interpreter.references import Operations, References, Value
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.straight_line import Node, depending, needed
from venture_lite.program.code import Code, Ref
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.runtime import Closure
from venture_lite.trace.table import ROW_MASK, Column, NotColumnar
from venture_lite.trace.trace import Reader, Trace

ColumnsReader = Callable[[Any], tuple[Any, ...]]


class RowText:
    """Prints operations as the body of a function of one row, r0: what is called, and rows around it, in variables; all
    else where it is read."""

    def __init__(self, operations: Operations) -> None:
        self.operations = operations
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {"Closure": Closure, "inf": math.inf, "nan": math.nan}
        # places of what stands in variables
        self.names: dict[int, str] = {}

    def value(self, value: Value) -> str:
        """An expression, what it needs being printed."""
        for node in needed([value]):
            if node.operation == "call":
                self._keep(node)
        return self.name(value)

    def row(self, row: Value) -> str:
        """The variable of a row, or its number."""
        if row.__class__ is Node and row.place in self.operations.rows:
            self._keep(row)
        return self.name(row)

    def _keep(self, node: Node) -> None:
        if node.place not in self.names:
            self.lines.append(f"t{node.place} = {self.text(node)}")
            self.names[node.place] = f"t{node.place}"

    def name(self, value: Value) -> str:
        if value.__class__ is not Node:
            return f"({value!r})"
        return self.names.get(value.place) or self.text(value)

    def text(self, node: Node) -> str:
        match node.operation, node.operands:
            case "load", (number, row):
                return self.load(number, self.operations.columns[number], row)
            case "call", (number, *arguments):
                return self.call(node, number, arguments)
            case "object", (number,):
                return self.bound("o", number, self.operations.objects[number])
            case "closure", (number, row):
                return f"Closure({self.bound('o', number, self.operations.objects[number])}, {self.row(row)})"
            case "unbound", (number,):
                target = self.operations.objects[number]
                raise NameUnknown(f"{target.name} is used before it has a value", target.span)
        return node.operands[0]  # type: ignore[no-any-return]

    def load(self, number: int, column: Column, row: Value) -> str:
        if isinstance(column, BorrowedColumn):
            lent = f"{self.bound('e', number, column.edges)}.view[{self.row(row)}] & {ROW_MASK}"
            return f"{self.bound('l', number, column.lender)}.view[{lent}]"
        return f"{self.bound('c', number, column)}.view[{self.row(row)}]"

    def call(self, node: Node, number: int, arguments: Sequence[Value]) -> str:
        procedure = self.bound("o", number, self.operations.objects[number])
        return f"{procedure}({', '.join(map(self.name, arguments))})"

    def bound(self, prefix: str, number: int, value: Any) -> str:
        name = f"{prefix}{number}"
        self.namespace[name] = value
        return name

    def reader(self, values: Sequence[Value]) -> Callable[[Any], tuple[Any, ...]]:
        """The function of r0 that gives the values."""
        return self.function("r0", f"({''.join(f'{self.value(value)}, ' for value in values)})")

    def function(self, parameters: str, returned: str) -> Callable[..., Any]:
        """The function of what was printed."""
        body = "".join(f"    {line}\n" for line in self.lines)
        exec(compiled_text(f"def read({parameters}):\n{body}    return {returned}\n"), self.namespace)
        found: Callable[..., Any] = self.namespace["read"]
        return found


@lru_cache(maxsize=1024)
def compiled_text(text: str) -> CodeType:
    """What is printed alike has one text, in every session: only what its names are bound to differs."""
    return compile(text, "<printed>", "exec")


class ColumnsText(RowText):
    """Prints operations for a group of rows."""

    def __init__(self, operations: Operations) -> None:
        super().__init__(operations)
        self.namespace["not_columnar"] = _not_columnar
        # places of what differs between rows
        self.lifted: set[int] = set()

    def value(self, value: Value) -> str:
        self.lifted |= depending([value], self.differs)
        return super().value(value)

    def differs(self, node: Node) -> bool:
        """Whether rows give an operation different values, though not by its operands."""
        return node.operation in ("row", "given")

    def is_lifted(self, value: Value) -> bool:
        return value.__class__ is Node and value.place in self.lifted

    def load(self, number: int, column: Column, row: Value) -> str:
        if not self.is_lifted(row):
            return super().load(number, column, row)
        return f"{self.bound('c', number, column)}.gather({self.row(row)})"

    def call(self, node: Node, number: int, arguments: Sequence[Value]) -> str:
        lifted = tuple(map(self.is_lifted, arguments))
        if not any(lifted):
            return super().call(node, number, arguments)
        record, _, _ = self.operations.calls[node.place]
        together = self.bound("m", number, record.columns or _row_by_row)
        return f"{together}({lifted!r}, {', '.join(map(self.name, arguments))})"

    def text(self, node: Node) -> str:
        if node.operation == "closure":
            # found out when the function runs, as of any other value: what is made of text must not fail for good
            return "not_columnar()"
        return super().text(node)


def _row_by_row(*_: Any) -> np.ndarray:
    raise RowByRow


def _not_columnar() -> np.ndarray:
    raise NotColumnar


def reader(trace: Trace, code: Code, refs: tuple[Ref, ...]) -> Reader:
    """`row -> values of refs`."""
    operations = Operations()
    references, row = References(trace, operations), operations.record("row", "r0")
    return RowText(operations).reader([references.read(code, row, ref) for ref in refs])


def columns_reader(
    trace: Trace,
    code: Code,
    refs: tuple[Ref, ...],
    calls: tuple[int, ...] = (),
    families: list[Any] | None = None,
    are_given: bool = False,
) -> tuple[ColumnsReader, tuple[bool, ...], list[Column]]:
    """`rows -> values of refs`, which of them differ between rows, and every column that is read.

    With `calls`, slots of calls of memoized procedures, all rows are read as if each led to one family, whose row
    stands at the call's place in `families` when the function runs; where they `are_given`, what the call gives in each
    row stands there instead, an array.

    The function raises NotColumnar or RowByRow where the values of some slot do not form an array.
    """
    operations = Operations()
    row = operations.record("row", "r0")

    def known(site: int, at: Value) -> Value:
        """The result that all rows borrow from one family."""
        slot = site - code.first_site
        if at is not row or slot not in calls:
            return None
        column = trace.column(site)
        if not isinstance(column, BorrowedColumn):
            raise InternalError("a call that keeps copies is read as if it borrowed")
        place = f"families[{calls.index(slot)}]"
        if are_given:
            return operations.record("given", place)
        return operations.load(column.lender, operations.record("name", place))

    references, text = References(trace, operations, known), ColumnsText(operations)
    text.namespace["families"] = families
    values = [references.read(code, row, ref) for ref in refs]
    return text.reader(values), tuple(map(text.is_lifted, values)), operations.columns
