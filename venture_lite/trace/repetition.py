"""Regeneration once more: further values of one choice, tried where the first one has shown the way.

`gibbs` regenerates the same scaffold for every candidate, only to weigh it. What the first regeneration found, the
order in which each node has its parents done, holds for the others. So they compute the nodes in that order, and where
a memoized call leads to a family that exists, its value is read and nobody is entered as its user: all of it is taken
back. What does not exist is left to the machine. Values, weights and their order are those of `Regenerator.regenerate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from venture_lite.code import Code, Kind, SlotRef, sources
from venture_lite.errors import VentureError
from venture_lite.trace.dependence import source_nodes
from venture_lite.trace.evaluate import Evaluator
from venture_lite.trace.keys import memo_key
from venture_lite.trace.regenerate import Proposal, Regenerator
from venture_lite.trace.runtime import Exchangeable, Memo
from venture_lite.trace.scaffold import Scaffold
from venture_lite.trace.table import MAKER_EDGE, NONE, PRIMITIVE_EDGE, ROW_MASK, Column
from venture_lite.trace.weights import Weight, density_of

Step = Callable[[], None]


class _Drawn(Exception):
    """A candidate needs a fresh choice: where it stands among the others only regeneration knows."""


def repetition(regenerator: Regenerator, machine: Evaluator, scaffold: Scaffold, order: list[int]) -> Repetition | None:
    """For a scaffold that was just regenerated, renewing nodes in this order, and taken back; None where a family could
    go that is not memoized, or whole sites are weighed."""
    if scaffold.groups or regenerator.power != 1.0 or len(scaffold.principals) != 1 or not order:
        return None
    if order[0] not in scaffold.principals or len(order) != 1 + len(scaffold.pending):
        return None
    made = Repetition(regenerator, machine, scaffold, order)
    return made if all(made.steps) else None


class Repetition:
    """Weighs candidates, each from the detached state, to which its caller then rolls the journal back."""

    def __init__(self, regenerator: Regenerator, machine: Evaluator, scaffold: Scaffold, order: list[int]) -> None:
        self.regenerator = regenerator
        self.trace = regenerator.trace
        self.machine = machine
        self.scaffold = scaffold
        self.order = order
        # sites of the nodes that change, and for each memoized body whether its result may depend on one of them
        self._sites = {node >> 32 for node in order}
        self._changing: dict[Code, bool] = {}
        # what all these nodes hold in the detached state
        self._cells: list[tuple[Column, int, Any, int]] = []
        self._weight = Weight()
        # makers whose arguments were changed, with those that they had
        self._makers: list[tuple[Exchangeable, tuple[Any, ...]]] = []
        self.steps = [self._step(node) for node in order]

    # ------------------------------------------------------------------------------------------- a candidate

    def weigh(self, proposal: Proposal) -> Weight | None:
        """The weight of regenerating with the proposal's value, or None where a choice would have to be drawn."""
        machine = self.machine
        machine.poll()
        self._weight = weight = Weight()
        self._makers = []
        self.trace.journal.note(Repetition._restore, self)
        pending = machine.pending
        pending.update(self.order)
        machine.structural.update(self.scaffold.structural)
        machine.choose = _refuse_draw
        machine.renew_choice = self.regenerator.renewing(self.scaffold, proposal, weight)
        try:
            for node, step in zip(self.order, self.steps, strict=True):
                # the machine renews what it needs early
                if node in pending:
                    assert step is not None
                    step()
                    pending.discard(node)
            self._absorb(chain(machine.constrained, reversed(self.scaffold.absorbing)), weight)
        except _Drawn:
            machine.reset()
            return None
        finally:
            for maker, arguments in reversed(self._makers):
                maker.state.set_arguments(arguments)
        machine.constrained.clear()
        machine.structural.clear()
        machine.choose = machine.renew_choice = None
        return weight

    def _restore(self) -> None:
        for column, row, value, stamp in self._cells:
            column.put(row, value)
            column.stamp = stamp

    def _absorb(self, nodes: Iterable[int], weight: Weight) -> None:
        """Weigh choices whose values stay, one after another; statistics hold those before only where it matters."""
        trace = self.trace
        found = [(node, *trace.application(node >> 32, node & ROW_MASK), trace.value(node)) for node in nodes]
        makers = [operator for _, operator, _, _ in found if isinstance(operator, Exchangeable)]
        apart = len(set(map(id, makers))) == len(makers)
        tokens: list[tuple[Exchangeable, Any]] = []
        try:
            for node, operator, arguments, value in found:
                term = density_of(trace, node >> 32, node & ROW_MASK, operator, arguments, value)
                weight.add_choice(trace, node, term)
                if not apart and isinstance(operator, Exchangeable):
                    tokens.append((operator, operator.state.add(value, *arguments)))
        finally:
            for operator, token in reversed(tokens):
                operator.state.restore(token)

    # ------------------------------------------------------------------------------------------ single nodes

    def _step(self, node: int) -> Step | None:
        """What computes a node again; None where only the machine can."""
        code, slot, row = self.trace.decode(node)
        item = code.slots[slot]
        table = self.trace.tables[code.index]
        column = self.trace.column(node >> 32)
        self._cells.append((column, row, column.view[row], column.stamp))
        if node in self.scaffold.principals:
            return lambda: self.machine.renew(node)
        if node in self.scaffold.makers:
            return lambda: self._maker(node, item.record, column, row)
        if item.kind is Kind.DETERMINISTIC:
            return lambda: column.put(row, self.machine.primitive(code, slot, row))
        if item.kind is Kind.ARGUMENT:
            user = table.user.view[row]
            return lambda: column.put(row, self.trace.read(user >> 32, user & ROW_MASK)[1 + slot])
        if item.kind is not Kind.CALL:
            return None
        edge = table.edges[slot]
        if node in self.scaffold.structural:
            self._cells.append((edge, row, edge.view[row], edge.stamp))
            return lambda: self._call(node, code, slot, row, column, edge)
        packed = edge.view[row]
        if packed == PRIMITIVE_EDGE:
            return lambda: column.put(row, self.machine.primitive(code, slot, row))
        if packed < 0:
            return None
        inner = self.trace.program.codes[packed >> 32]
        return lambda: column.put(row, self.trace.result(inner, packed & ROW_MASK))

    def _call(self, node: int, code: Code, slot: int, row: int, column: Column, edge: Column) -> None:
        """A call whose operator or key may be another one now."""
        trace = self.trace
        operator, *values = trace.read(node >> 32, row)
        if isinstance(operator, Memo):
            if (family := self._family(operator, values)) is not None:
                body, inner = family
                edge.put(row, body.index << 32 | inner)
                column.put(row, trace.result(body, inner))
                return
        elif isinstance(operator, Exchangeable) and trace.tables[code.index].is_observed(slot, row):
            self.machine.check(operator, tuple(values), code, slot, row, is_drawn=False)
            edge.put(row, MAKER_EDGE)
            self.machine.constrained.append(node)
            return
        self.machine.renew(node)

    def _family(self, memo: Memo, values: list[Any]) -> tuple[Code, int] | None:
        """The family of a memoized procedure for these values, if it is there and its result does not change."""
        procedure = memo.procedure
        if procedure.code.arity != len(values):
            return None
        body = procedure.code
        if body not in self._changing:
            self._changing[body] = any(self._changes(body, source) for source in sources(body, body.result))
        if self._changing[body]:
            return None
        try:
            row = memo.entries.get(memo_key(tuple(values)))
        except (VentureError, TypeError):
            return None
        return None if row is None else (body, row)

    def _changes(self, body: Code, source: Any) -> bool:
        """Whether a part of a body's result is at one of the sites that change."""
        if isinstance(source, SlotRef):
            return body.ancestor(source.depth).first_site + source.slot in self._sites
        return any(node in self.order for node in source_nodes(self.trace, body, NONE, source))

    def _maker(self, node: int, record: Any, column: Column, row: int) -> None:
        """New arguments for a maker; the joint density of its statistics."""
        trace = self.trace
        values = trace.read(node >> 32, row)
        if len(values) != len(record.arguments) or not trace.valid(record)(*values):
            self.machine.renew(node)
            return
        maker = column.view[row]
        self._makers.append((maker, maker.state.arguments))
        maker.state.set_arguments(values)
        self._weight.add(maker.state.log_joint())


def _refuse_draw(*_: Any) -> Any:
    raise _Drawn
