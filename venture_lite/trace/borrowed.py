"""Columns that store nothing: the value of a memoized call is read where its family keeps it.

A row that calls `(w (z i))` holds the edge to the family of w; a copy of the family's result would have to be renewed
in every such row whenever w moves. Which calls are read so is decided by the text alone (`memoized_body`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.code import Code, GlobalRef, Kind, Ref, SlotRef
from venture_lite.trace.table import ROW_MASK, Column

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace


class BorrowedColumn(Column):
    """The results of the families that one call's edges lead to. Writing to it changes nothing."""

    __slots__ = ("edges", "lender", "site")

    def __init__(self, edges: Column, lender: Column, site: int) -> None:
        super().__init__(object)
        self.edges = edges
        # the column in which the memoized body keeps its result, and that result's site
        self.lender = lender
        self.site = site
        self.view = _View(self)

    # Both change by stamps that no change before had, and go back in the order in which they came.
    @property
    def stamp(self) -> int:
        return max(self.edges.stamp, self.lender.stamp)

    @stamp.setter
    def stamp(self, stamp: int) -> None:
        pass

    def reserve(self, capacity: int) -> None:
        pass

    def put(self, row: int, value: Any) -> None:
        pass

    def fill(self, row: int, value: Any) -> None:
        pass

    def gather(self, rows: Any) -> np.ndarray:
        lent = self.edges.array[rows] & ROW_MASK
        if self.lender.array is not None:
            return self.lender.gather(lent)
        # objects are made an array once a family
        families, which = np.unique(lent, return_inverse=True)
        return self.lender.gather(families)[which]

    def bytes_used(self) -> int:
        return 0


class _View:
    """What `column.view` is for other columns."""

    __slots__ = ("column",)

    def __init__(self, column: BorrowedColumn) -> None:
        self.column = column

    def __getitem__(self, row: int) -> Any:
        column = self.column
        return column.lender.view[column.edges.view[row] & ROW_MASK]


def memoized_body(code: Code, index: int) -> Code | None:
    """The body that a call runs or finds, where the text shows that it is a memoized procedure's, and always the same.

    Not where the call is its own body's result: evidence may come that way.
    """
    slot = code.slots[index]
    if slot.kind is not Kind.CALL or index == code.result_slot:
        return None
    item = _global_slot(slot.operator)
    if item is None or item.kind is not Kind.MEM:
        return None
    assert item.operator is not None
    match item.operator:
        case SlotRef(depth=0, slot=inner):
            # in the same directive as the `mem`
            assert isinstance(slot.operator, GlobalRef)
            assert slot.operator.target.code is not None
            inner_slot = slot.operator.target.code.slots[inner]
        case other:
            inner_slot = _global_slot(other)
    if inner_slot is None or inner_slot.kind is not Kind.LAMBDA or inner_slot.body is None:
        return None
    return inner_slot.body if inner_slot.body.result_slot >= 0 else None


def _global_slot(ref: Ref | None) -> Any:
    """The slot that a global's directive has for its result; None where the name may come to stand for another."""
    match ref:
        case GlobalRef(target=target) if target.code is not None and not target.awaited:
            match target.code.result:
                case SlotRef(depth=0, slot=index):
                    return target.code.slots[index]
                case other:
                    return _global_slot(other)
    return None


def borrow(trace: Trace, code: Code) -> None:
    """Let the table of a new Code read the results of memoized procedures where they are."""
    table = trace.tables[code.index]
    for index, slot in enumerate(code.slots):
        body = memoized_body(code, index) if slot.stored else None
        if body is not None and body.index < code.index:
            lender = trace.tables[body.index].columns[body.result_slot]
            assert lender is not None
            table.columns[index] = BorrowedColumn(table.edges[index], lender, body.first_site + body.result_slot)
