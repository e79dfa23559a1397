"""The densities that absorb a block's change, with their derivatives: one choice at a time, or all rows of a site."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.blocks.tape import Tape, TapeLeaf
from venture_lite.errors import KernelError
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import CHUNK, AtLimit, Weight, density_of
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.pullbacks import accumulated
from venture_lite.procedures.record import Random
from venture_lite.trace.nodes import node_at, row_of, site_of
from venture_lite.trace.table import NotColumnar

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace

TermCotangents = dict[int, Any]
"""Node -> the derivative of what was added up so far with respect to its value; no entry for 0."""


def add_to(cotangents: TermCotangents, node: int, part: Any) -> None:
    cotangents[node] = accumulated(cotangents[node], part) if node in cotangents else part


def refuse_without_gradient(record: Random, asked: tuple[bool, ...], trace: Trace, node: int) -> None:
    """Raise KernelError where a density has no derivative by its value or by an argument that is asked for."""
    code, slot, row = trace.decode(node)
    names = ("the value", *[argument.name for argument in record.arguments])
    exists = record.gradient.exists if record.gradient is not None else (False,) * len(names)
    for name, there, ask in zip(names, exists, asked):  # noqa: B905
        if ask and not there:
            raise KernelError(
                f"the density of {record.name} has no derivative by {name}, which depends on the block",
                code.slots[slot].span,
                "mh with 'drift, or slice",
                trace.call_chain(code, slot, row),
            )


class SingleTerm:
    """The density of one choice at its value."""

    count = 1

    def __init__(self, trace: Trace, node: int, tape: Tape, moving: set[int]) -> None:
        self.trace = trace
        self.tape = tape
        self.node, self.row = node, row_of(node)
        self.slot = trace.program.site_slot[site_of(node)]
        operator, arguments = trace.application(node)
        assert isinstance(operator, Random)
        self.record = operator
        self.defaults = arguments[len(tape.outputs) :]
        self.parents = [tape.node(leaf, self.row) for leaf in tape.leaves]
        self.wanted = tape.wanted([parent in moving for parent in self.parents])
        self.asked = (False, *[self.wanted[place] for place in tape.outputs])
        refuse_without_gradient(operator, self.asked, trace, node)
        self.asked += (False,) * len(self.defaults)

    def evaluate(self, cotangents: TermCotangents) -> Weight:
        """The log density; its derivatives are added to the cotangents."""
        values = self.tape.forward(self.row, self.slot)
        arguments = (*[values[place] for place in self.tape.outputs], *self.defaults)
        value = self.trace.value(self.node)
        weight = Weight()
        term = density_of(self.trace, self.node, self.record, arguments, value)
        weight.add_choice(self.trace, self.node, term)
        if weight.impossible:
            return weight
        assert self.record.gradient is not None
        parts = self.record.gradient.evaluate((False,) * len(self.asked), self.asked, value, *arguments)[1:]
        found = self.tape.backward(values, list(parts[: len(self.tape.outputs)]), self.wanted, together=False)
        for leaf, parent, part in zip(self.tape.leaves, self.parents, found, strict=True):
            if part is not None and self.wanted[leaf.place]:
                add_to(cotangents, parent, part)
        return weight


class SiteTerms:
    """The densities of the choices of one site, over all live rows or some, in one call for each 32,768 of them.

    With `call`, the slot by which the rows call one family, whose result is the node `family`.
    """

    def __init__(
        self, model: Model, site: int, rows: np.ndarray | None, moving: set[int], call: int = -1, family: int = -1
    ) -> None:
        self.model = model
        self.trace = trace = model.trace
        self.site = site
        self.code = trace.program.site_code[site]
        self.slot = trace.program.site_slot[site]
        slot = self.code.slots[self.slot]
        assert isinstance(slot.record, Random)
        self.record = slot.record
        self.moving = moving
        self.table = trace.tables[self.code.index]
        # a slice or an index array
        self.rows: Any = self.table.rows() if rows is None else rows
        self.count = self.rows.stop - self.rows.start if isinstance(self.rows, slice) else len(self.rows)
        self.group = model.weights.group(site)
        self.tape = Tape(trace, self.code, slot.arguments, call, family)
        # for each leaf the moving nodes among those that the rows read
        self.nodes = [self._moving(leaf) for leaf in self.tape.leaves]
        self.wanted = self.tape.wanted([bool(nodes) for nodes in self.nodes])
        self.asked = (False, *[self.wanted[place] for place in self.tape.outputs])
        first = self.rows.start if isinstance(self.rows, slice) else int(self.rows[0])
        refuse_without_gradient(self.record, self.asked, trace, node_at(site, first))
        self.lifted = (True, *self.tape.lifted)
        # one by one, made where the rows have no form together
        self._singles: list[SingleTerm] = []

    def _moving(self, leaf: TapeLeaf) -> list[int]:
        if leaf.level < 0:
            node = node_at(leaf.site, leaf.row)
            return [node] if node in self.moving else []
        return [node for node in self.moving if site_of(node) == leaf.site]

    def evaluate(self, cotangents: TermCotangents) -> Weight:
        """The summed log density; its derivatives are added to the cotangents."""
        if self.record.log_density_columns is not None:
            added: TermCotangents = {}
            try:
                weight = self._together(added)
            except AtLimit:
                return self.group.impossible(self.rows)
            except (NotColumnar, RowByRow):
                added.clear()
            else:
                for node, part in added.items():
                    add_to(cotangents, node, part)
                return weight
        weight = Weight()
        for single in self._one_by_one():
            weight.plus(single.evaluate(cotangents))
        return weight

    def _one_by_one(self) -> list[SingleTerm]:
        if not self._singles:
            rows = range(self.rows.start, self.rows.stop) if isinstance(self.rows, slice) else self.rows.tolist()
            self._singles = [SingleTerm(self.trace, node_at(self.site, row), self.tape, self.moving) for row in rows]
        return self._singles

    def _together(self, cotangents: TermCotangents) -> Weight:
        if self.count <= 2 * CHUNK:
            return self._chunk(self.rows, cotangents)
        weight = Weight()
        first = self.rows.start if isinstance(self.rows, slice) else 0
        for start in range(0, self.count, CHUNK):
            stop = min(start + CHUNK, self.count)
            taken = slice(first + start, first + stop) if isinstance(self.rows, slice) else self.rows[start:stop]
            weight.plus(self._chunk(taken, cotangents))
        return weight

    def _chunk(self, rows: Any, cotangents: TermCotangents) -> Weight:
        try:
            values = self.tape.forward_rows(rows)
        except (NotColumnar, RowByRow):
            raise
        except Exception:
            raise RowByRow from None  # row by row the call that fails is found
        arguments = [values[place] for place in self.tape.outputs]
        self.group.check(rows, self.tape.lifted, arguments)
        chosen = self.group.values_of(rows)
        weight = self._weigh(rows, chosen, arguments)
        assert self.record.gradient is not None
        parts = self.record.gradient.evaluate(self.lifted, self.asked, chosen, *arguments)[1:]
        found = self.tape.backward(values, list(parts), self.wanted, together=True)
        for leaf, nodes, part in zip(self.tape.leaves, self.nodes, found, strict=True):
            if part is not None and nodes:
                self._scatter(leaf, nodes, part, rows, cotangents)
        return weight

    def _weigh(self, rows: Any, chosen: Any, arguments: list[Any]) -> Weight:
        if self.record.log_density_total is not None:
            total = self.record.log_density_total(self.lifted, chosen, *arguments)
            if math.isfinite(total):
                return Weight(0, total)
        assert self.record.log_density_columns is not None
        terms = np.atleast_1d(self.record.log_density_columns(self.lifted, chosen, *arguments))
        impossible = terms == -math.inf
        rest = float(np.sum(terms[~impossible]))
        if not math.isfinite(rest):
            raise RowByRow
        weight = self.group.impossible(rows, impossible)
        weight.total = rest
        return weight

    def _scatter(self, leaf: TapeLeaf, nodes: list[int], part: Any, rows: Any, cotangents: TermCotangents) -> None:
        """Add the cotangents of a leaf, one for each row that read it, to the nodes that moved."""
        if leaf.level < 0:
            add_to(cotangents, nodes[0], part)
            return
        read = self.tape.rows_of(leaf, rows)
        if isinstance(read, slice):
            read = np.arange(read.start, read.stop)
        sums = np.zeros((int(read.max()) + 1, *np.shape(part)[1:]))
        np.add.at(sums, read, part)
        for node in nodes:
            row = row_of(node)
            if row < len(sums):
                add_to(cotangents, node, sums[row] if sums.ndim > 1 else float(sums[row]))
