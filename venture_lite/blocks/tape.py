"""What a kind of rows reads, step by step: from stored values, its leaves, through procedures to references of a Code.

A tape is made once for a tuple of references (`interpreter/references.py`). `passes.py` prints it forward, to their
values, and backward, from cotangents of these to cotangents of the leaves.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.blocks.passes import as_column, as_number
from venture_lite.errors import KernelError, NameUnknown, Span
from venture_lite.interpreter.references import Operations, References, Value, row_given
from venture_lite.kernels.population import applied_to_rows, values_of_rows
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.pullbacks import LOCALLY_CONSTANT
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.straight_line import Node, needed
from venture_lite.program.code import Code, Ref
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.nodes import row_of, site_of
from venture_lite.trace.table import Column

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace


NOTHING: Mapping[int, int] = {}

SMOOTH = "the choices with gradients are (choices 'smooth)"
INSTEAD = f"mh with 'drift, or slice; {SMOOTH}"
"""What moves a choice without a gradient, and which have one."""


@dataclass(frozen=True, slots=True)
class TapeLeaf:
    """A stored value that is read."""

    node: Node
    # where it is stored, and the site there: those of the family, for what a call borrows
    column: Column
    site: int
    # the row that is read: fixed, or an operation on the row that reads
    row: Value
    # for what a call borrows: the edges from the rows so reached to the rows of `site`
    edges: Column | None = None

    @property
    def is_lifted(self) -> bool:
        """Whether rows read different ones."""
        return self.row.__class__ is Node


class Tape:
    """The operations that lead to some references, in order of evaluation.

    `lent` has the slots of calls that lead from all rows to one family, with the node of its result.
    """

    def __init__(self, trace: Trace, code: Code, refs: Sequence[Ref], lent: Mapping[int, int] = NOTHING) -> None:
        self.operations = Operations()
        self._row = self.operations.record("row", "r")
        sites: dict[int, int] = {}

        def known(site: int, at: Value) -> Value:
            column = trace.column(site)
            sites[id(column)] = site
            family = lent.get(site - code.first_site) if at is self._row else None
            if family is None:
                return None
            column = trace.column(site_of(family))
            sites[id(column)] = site_of(family)
            return self.operations.load(column, row_of(family))

        references = References(trace, self.operations, known)
        self.outputs = [references.read(code, self._row, ref) for ref in refs]
        # calls with their procedures, their arguments and which of these differ between rows
        self.steps: list[tuple[Node, Deterministic, tuple[Value, ...], tuple[bool, ...]]] = []
        self.leaves: list[TapeLeaf] = []
        # closures, with the rows in which they are made
        self.closures: list[tuple[Node, Value]] = []
        # places of what differs between rows
        self._lifted: set[int] = set()
        self._order = needed(self.outputs)
        for node in self._order:
            if node is self._row or any(self.is_lifted(operand) for operand in node.operands):
                self._lifted.add(node.place)
            self._note(trace, node, sites)
        self.lifted = tuple(map(self.is_lifted, self.outputs))
        self._leaves = {leaf.node.place: leaf for leaf in self.leaves}

    def _note(self, trace: Trace, node: Node, sites: dict[int, int]) -> None:
        operations = self.operations
        if node.operation == "unbound":
            target = operations.objects[node.operands[0]]
            raise NameUnknown(f"{target.name} is used before it has a value", target.span)
        if node.operation == "call":
            arguments = node.operands[1:]
            self.steps.append((node, operations.calls[node.place][0], arguments, tuple(map(self.is_lifted, arguments))))
        if node.operation == "closure":
            self.closures.append((node, node.operands[1]))
        if node.operation != "load":
            return
        column, row = operations.columns[node.operands[0]], node.operands[1]
        if isinstance(column, BorrowedColumn):
            self.leaves.append(TapeLeaf(node, column.lender, column.site, row, column.edges))
        elif id(column) in sites:
            # all other columns give rows
            self.leaves.append(TapeLeaf(node, column, sites[id(column)], row))

    def is_lifted(self, value: Value) -> bool:
        return value.__class__ is Node and value.place in self._lifted

    def evaluated(
        self, leaf_of: Callable[[TapeLeaf], Any], called: Callable[[Node, Deterministic, list[Any]], Any]
    ) -> dict[int, Any]:
        """By place, all that leads to the outputs, from what leaves are and what calls give of such values."""
        values: dict[int, Any] = {}
        for node in self._order:
            if (leaf := self._leaves.get(node.place)) is not None:
                values[node.place] = leaf_of(leaf)
            elif node.operation == "object":
                values[node.place] = self.operations.objects[node.operands[0]]
            elif node.operation == "call":
                given = [values[each.place] if each.__class__ is Node else each for each in node.operands[1:]]
                values[node.place] = called(node, self.operations.calls[node.place][0], given)
        return values

    def rows_of(self, leaf: TapeLeaf, rows: Any) -> Any:
        """The rows of a leaf's site that a group of rows, a slice or an index array, reads: one, or as many."""
        found = self.given(leaf.row, rows)
        if leaf.edges is None:
            return found
        return row_of(leaf.edges.view[found] if isinstance(found, int) else leaf.edges.array[found])

    def given(self, row: Value, rows: Any) -> Any:
        """The rows that an operation gives."""
        return row_given(self.operations, row, {self._row.place: rows})

    def still(self, wanted: frozenset[int]) -> frozenset[int]:
        """Places of what is read or computed from what is not wanted; matrices, which are read where they are, left
        out."""
        matrices = {leaf.node.place for leaf in self.leaves if leaf.column.kind is np.ndarray}
        found = {leaf.node.place for leaf in self.leaves} - wanted - matrices
        for node, _, arguments, _ in self.steps:
            given = [each for each in arguments if each.__class__ is Node and each.operation != "object"]
            if all(each.place in found for each in given):
                found.add(node.place)
        return frozenset(found)

    @property
    def places(self) -> frozenset[int]:
        """Of all that is read, and that calls give."""
        return frozenset((*self._leaves, *(node.place for node, *_ in self.steps)))

    def numbers_among(self, places: frozenset[int], rows: Sequence[Any]) -> frozenset[int]:
        """Of some places those that hold numbers now, one or a column of them; `rows` are as of `values_now`."""
        values, lifted = self.values_now(places, rows), self._lifted_in(rows)
        return frozenset(place for place in places if _are_numbers(values.get(place), place in lifted))

    def values_now(self, places: frozenset[int], rows: Sequence[Any]) -> dict[int, Any]:
        """By place the values of leaves, and of the calls at some places: one value, or an array of one for each row.
        A value that cannot be computed has no entry. `rows` are those of the leaves: of a single row integers.
        """
        at = {leaf.node.place: found for leaf, found in zip(self.leaves, rows, strict=True)}
        values: dict[int, Any] = {}
        many = self._lifted_in(rows)
        for node in self._order:
            with contextlib.suppress(Exception):
                if (leaf := self._leaves.get(node.place)) is not None:
                    read = partial(values_of_rows, leaf.column) if node.place in many else leaf.column.view.__getitem__
                    values[node.place] = read(at[node.place])
                elif node.operation == "object":
                    values[node.place] = self.operations.objects[node.operands[0]]
                elif node.operation == "call" and node.place in places:
                    record, operands = self.operations.calls[node.place][0], node.operands[1:]
                    lifted = tuple([each.__class__ is Node and each.place in many for each in operands])
                    given = [values[each.place] if each.__class__ is Node else each for each in operands]
                    values[node.place] = applied_to_rows(record, lifted, given)
        return values

    def _lifted_in(self, rows: Sequence[Any]) -> Container[int]:
        """Places of what differs between some rows, which are none where these are a single one."""
        return () if all(isinstance(each, int) for each in rows) else self._lifted

    def wanted(self, active: Sequence[bool], trace: Trace) -> frozenset[int]:
        """Places of what depends on the leaves that are active (one flag for each leaf).

        Raises KernelError where a procedure on the way has no derivative.
        """
        found = {leaf.node.place for leaf, flag in zip(self.leaves, active, strict=True) if flag}
        for node, record, arguments, _ in self.steps:
            if any(value.__class__ is Node and value.place in found for value in arguments):
                _, site, _ = self.operations.calls[node.place]
                span = trace.program.site_code[site].slots[trace.program.site_slot[site]].span
                if carries_derivatives(record, span):
                    found.add(node.place)
        return frozenset(found)


def _are_numbers(value: Any, is_lifted: bool) -> bool:
    try:
        (as_column if is_lifted else as_number)(value)
    except RowByRow:
        return False
    return True


def carries_derivatives(record: Deterministic, span: Span | None) -> bool:
    """Whether a procedure's value changes with its arguments' numbers. Raises KernelError where it may jump."""
    if record.pullback is None:
        message = f"{record.name} is applied to what depends on the block and has no derivative"
        raise KernelError(message, span, INSTEAD)
    return record.pullback is not LOCALLY_CONSTANT
