"""Reverse accumulation through the fused slots of a Code: from what a slot reads back to the stored slots.

A tape is made once from the text, for one tuple of references. Run forward it computes every fused slot, each once, and
keeps the results; run backward it takes cotangents of the references, by the pullbacks of the procedures on the way, to
cotangents of the stored slots at its leaves. One tape serves single rows and groups of rows, as `emit.py` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from venture_lite.errors import KernelError, NameUnknown, Span
from venture_lite.interpreter.explain import explain_refs
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.pullbacks import LOCALLY_CONSTANT, accumulated
from venture_lite.procedures.record import Deterministic
from venture_lite.program.code import Code, Constant, GlobalRef, Kind, Ref, SlotRef
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.nodes import node_at, row_of, site_of
from venture_lite.trace.runtime import Closure
from venture_lite.trace.table import Column, NotColumnar

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class TapeLeaf:
    """A stored slot that is read: of one row, or of the row `level` environments up from each."""

    place: int
    column: Column
    site: int
    # -1 for a fixed row
    level: int
    row: int = -1
    # for what a call borrows: the edges from the rows so reached to the rows of `site`
    edges: Column | None = None


@dataclass(frozen=True, slots=True)
class TapeStep:
    """A fused slot: a procedure applied to earlier places."""

    place: int
    record: Deterministic
    arguments: tuple[int, ...]
    # which of them differ between the rows of a group
    lifted: tuple[bool, ...]
    span: Span | None


class Tape:
    """The places of one tuple of references, and in which order they follow from each other."""

    def __init__(self, trace: Trace, code: Code, refs: Sequence[Ref], call: int = -1, family: int = -1) -> None:
        self._trace = trace
        # the slot of a call that leads from all rows to one family, and the node of that family's result
        self._call = call
        self._family = family
        self.code = code
        self.refs = tuple(refs)
        # what stands at each place before a run: constants
        self._constants: list[Any] = []
        self._places: dict[Any, int] = {}
        self._lifted: list[bool] = []
        self._environments: list[Column] = []
        self._closures: list[tuple[int, Code, int]] = []
        self.leaves: list[TapeLeaf] = []
        self.steps: list[TapeStep] = []
        self.outputs = [self._read(ref, 0) for ref in refs]
        self.lifted = tuple(self._lifted[place] for place in self.outputs)

    # ------------------------------------------------------------------------------------------------- making

    def _place(self, key: Any, lifted: bool, value: Any = None) -> int:
        self._constants.append(value)
        self._lifted.append(lifted)
        self._places[key] = place = len(self._constants) - 1
        return place

    def _read(self, ref: Ref, level: int) -> int:
        match ref:
            case Constant(value=value):
                return self._place(object(), False, value)
            case GlobalRef(target=target):
                if target.code is None:
                    raise NameUnknown(f"{target.name} is used before it has a value", target.span)
                return self._read_global(target.code, target.row)
            case SlotRef(depth=depth, slot=slot):
                return self._read_slot(level + depth, slot)

    def _read_global(self, code: Code, row: int) -> int:
        """The value of a directive: a constant, a closure, or a stored slot of one row."""
        match code.result:
            case SlotRef(slot=index) if code.slots[index].kind is Kind.LAMBDA:
                body = code.slots[index].body
                assert body is not None
                return self._place(object(), False, Closure(body, row))
            case SlotRef(slot=index):
                return self._read_node(code.first_site + index, row)
            case other:
                return self._read(other, 0)

    def _read_node(self, site: int, row: int) -> int:
        """The value of a stored slot of one row."""
        if (site, row) not in self._places:
            place = self._place((site, row), False)
            self.leaves.append(TapeLeaf(place, self._trace.column(site), site, -1, row))
        return self._places[site, row]

    def _read_slot(self, level: int, index: int) -> int:
        key = (level, index, "slot")
        if key in self._places:
            return self._places[key]
        if level == 0 and index == self._call:
            return self._read_node(site_of(self._family), row_of(self._family))
        code = self.code.ancestor(level)
        slot = code.slots[index]
        while len(self._environments) < level:
            environment = self._trace.tables[self.code.ancestor(len(self._environments)).index].environment
            assert environment is not None
            self._environments.append(environment)
        if slot.stored:
            place = self._place(key, True)
            site = code.first_site + index
            column = self._trace.column(site)
            if isinstance(column, BorrowedColumn):
                self.leaves.append(TapeLeaf(place, column, column.site, level, edges=column.edges))
            else:
                self.leaves.append(TapeLeaf(place, column, site, level))
            return place
        if slot.kind is Kind.LAMBDA:
            assert slot.body is not None
            place = self._place(key, True)
            self._closures.append((place, slot.body, level))
            return place
        arguments = tuple(self._read(argument, level) for argument in slot.arguments)
        lifted = tuple(self._lifted[argument] for argument in arguments)
        place = self._place(key, any(lifted))
        assert isinstance(slot.record, Deterministic)
        self.steps.append(TapeStep(place, slot.record, arguments, lifted, slot.span))
        return place

    # ------------------------------------------------------------------------------------------ what is wanted

    def node(self, leaf: TapeLeaf, row: int) -> int:
        """The node that a leaf is, as read from a row."""
        if leaf.level < 0:
            return node_at(leaf.site, leaf.row)
        for level in range(leaf.level):
            row = self._environments[level].view[row]
        return node_at(leaf.site, row if leaf.edges is None else row_of(leaf.edges.view[row]))

    def wanted(self, active: Sequence[bool]) -> list[bool]:
        """Which places depend on the leaves that are active (one flag for each leaf).

        Raises KernelError where a procedure on the way has no derivative.
        """
        found = [False] * len(self._constants)
        for leaf, flag in zip(self.leaves, active, strict=True):
            found[leaf.place] = flag
        for step in self.steps:
            if any(found[argument] for argument in step.arguments):
                found[step.place] = carries_derivatives(step.record, step.span)
        return found

    # ------------------------------------------------------------------------------------------------ running

    def forward(self, row: int, slot: int) -> list[Any]:
        """The value at every place, for one row. An error is located at a slot, -1 for the body's result."""
        try:
            return self._forward(row)
        except Exception as error:
            raise explain_refs(self._trace, self.code, self.refs, slot, row, error) from error

    def _forward(self, row: int) -> list[Any]:
        values = self._constants.copy()
        rows = [row]
        for environment in self._environments:
            rows.append(environment.view[rows[-1]])
        for leaf in self.leaves:
            values[leaf.place] = leaf.column.view[leaf.row if leaf.level < 0 else rows[leaf.level]]
        for place, body, level in self._closures:
            values[place] = Closure(body, rows[level])
        for step in self.steps:
            values[step.place] = step.record.scalar(*[values[argument] for argument in step.arguments])
        return values

    def rows_of(self, leaf: TapeLeaf, rows: Any) -> Any:
        """The rows of a leaf's site that a group of rows reads."""
        rows = self._climb(leaf, rows)
        return rows if leaf.edges is None else row_of(leaf.edges.array[rows])

    def _climb(self, leaf: TapeLeaf, rows: Any) -> Any:
        for level in range(leaf.level):
            rows = self._environments[level].gather(rows)
        return rows

    def forward_rows(self, rows: Any) -> list[Any]:
        """The values at every place for a slice or an index array of rows, arrays where they differ.

        Raises NotColumnar or RowByRow where they do not form arrays.
        """
        if self._closures:
            raise NotColumnar
        values = self._constants.copy()
        for leaf in self.leaves:
            column = leaf.column
            values[leaf.place] = column.view[leaf.row] if leaf.level < 0 else column.gather(self._climb(leaf, rows))
        for step in self.steps:
            arguments = [values[argument] for argument in step.arguments]
            if True not in step.lifted:
                values[step.place] = step.record.scalar(*arguments)
            elif step.record.columns is None:
                raise RowByRow
            else:
                values[step.place] = step.record.columns(step.lifted, *arguments)
        return values

    def backward(self, values: list[Any], cotangents: list[Any], wanted: list[bool], together: bool) -> list[Any]:
        """From the cotangents of all outputs, None for 0, to those of the leaves; `together` for a group of rows."""
        found: list[Any] = [None] * len(values)
        for place, cotangent in zip(self.outputs, cotangents, strict=True):
            if wanted[place]:
                found[place] = accumulated(found[place], cotangent)
        for step in reversed(self.steps):
            cotangent = found[step.place]
            if cotangent is None:
                continue
            asked = tuple([wanted[argument] for argument in step.arguments])
            lifted = step.lifted if together else (False,) * len(asked)
            arguments = [values[argument] for argument in step.arguments]
            assert step.record.pullback is not None
            parts = step.record.pullback(lifted, asked, cotangent, values[step.place], *arguments)
            for argument, part, ask in zip(step.arguments, parts, asked, strict=True):
                if ask and part is not None:
                    found[argument] = accumulated(found[argument], part)
        return [found[leaf.place] for leaf in self.leaves]


def carries_derivatives(record: Deterministic, span: Span | None) -> bool:
    """Whether a procedure's value changes with its arguments' numbers. Raises KernelError where it may jump."""
    if record.pullback is None:
        message = f"{record.name} is applied to what depends on the block and has no derivative"
        raise KernelError(message, span, "mh with 'drift, or slice")
    return record.pullback is not LOCALLY_CONSTANT
