"""Columns that store nothing: the value of a memoized call is read where its family keeps it.

A row that calls `(w (z i))` holds the edge to the family of w; a copy of the family's result would have to be renewed
in every such row whenever w moves. Which calls are read so is decided by the text alone (`memoized_body`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.program.code import Code, GlobalRef, Kind, Ref, Slot, SlotRef
from venture_lite.trace.table import ROW_MASK, Column

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace

STAMP_BITS = 64
"""More than the stamp of edges ever has."""


class BorrowedColumn(Column):
    """The results of the families that one call's edges lead to. Writing to it changes nothing."""

    __slots__ = ("edges", "lender", "site")

    def __init__(self, edges: Column, lender: Column, site: int) -> None:
        super().__init__(object)
        self.edges = edges
        # the column in which the memoized body keeps its result, and that result's site
        self.lender = lender
        self.site = site
        self.view = self

    def __getitem__(self, row: int) -> Any:
        return self.lender.view[self.edges.view[row] & ROW_MASK]

    # Both stamps, not the later one alone: when a proposal goes, edges get back the stamp that they had, and a lender
    # whose new row goes does not.
    @property
    def stamp(self) -> int:
        return self.lender.stamp << STAMP_BITS | self.edges.stamp

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


def memoized_body(code: Code, index: int) -> Code | None:
    """The body that a call runs or finds, where the text shows that it is a memoized procedure's, and always the same.

    Not where the call is its own body's result: evidence may come that way.
    """
    body = called_body(code, index)
    return body if body is not None and body.result_slot >= 0 and index != code.result_slot else None


def called_body(code: Code, index: int) -> Code | None:
    """The body of the memoized procedure that a slot calls, where the text shows that it is always the same."""
    slot = code.slots[index]
    if slot.kind is not Kind.CALL:
        return None
    owner, memo = _named_slot(slot.operator)
    if owner is None or memo is None or memo.kind is not Kind.MEM:
        return None
    match memo.operator:
        case SlotRef(depth=0, slot=inner):
            # in the same directive as the `mem`
            procedure: Slot | None = owner.slots[inner]
        case other:
            _, procedure = _named_slot(other)
    return procedure.body if procedure is not None and procedure.kind is Kind.LAMBDA else None


def _named_slot(ref: Ref | None) -> tuple[Code | None, Slot | None]:
    """The slot whose value a name stands for, with the Code of its directive; None where the name may come to stand
    for another."""
    match ref:
        case GlobalRef(target=target) if target.code is not None and not target.awaited:
            match target.code.result:
                case SlotRef(depth=0, slot=index):
                    return target.code, target.code.slots[index]
                case other:
                    return _named_slot(other)
    return None, None


def borrow(trace: Trace, code: Code) -> None:
    """Let the table of a new Code read the results of memoized procedures where they are."""
    table = trace.tables[code.index]
    for index, slot in enumerate(code.slots):
        body = memoized_body(code, index) if slot.stored else None
        if body is not None and body.index < code.index:
            lender = trace.tables[body.index].columns[body.result_slot]
            assert lender is not None
            table.columns[index] = BorrowedColumn(table.edges[index], lender, body.first_site + body.result_slot)
