"""Plans: a transition whose scaffold changes no structure, prepared once and run thousands of times.

A plan holds what a scaffold says: the principals and what is computed from them, in an order in which each finds its parents done,
and what absorbs. It is good while rows, edges and readers stay as they are. It makes the same draws, in the same order, and the same
decisions as detach and regenerate do on the same scaffold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from venture_lite.code import Kind
from venture_lite.trace.dependence import source_nodes
from venture_lite.trace.directives import Model
from venture_lite.trace.regenerate import Proposal
from venture_lite.trace.scaffold import Builder, Scaffold
from venture_lite.trace.trace import RANDOM_EDGE, ROW_MASK
from venture_lite.trace.weights import Weight, density_of, log_density

LONGEST = 64
"""More renewed nodes than this are left to the machine, which walks chains of any length."""


def make_plan(model: Model, block: tuple[int, ...]) -> Plan | None:
    """A plan for a block, or None where a transition may change structure or statistics."""
    scaffold = Builder(model.trace, None).build(block)
    if scaffold.structural or scaffold.makers or scaffold.brush or len(scaffold.pending) > LONGEST:
        return None
    if not all(_is_distribution(model, node) for node in scaffold.principals):
        return None
    order = _order(model, scaffold)
    return None if order is None else Plan(model, scaffold, order)


def _is_distribution(model: Model, node: int) -> bool:
    code, slot, row = model.trace.decode(node)
    if code.slots[slot].kind is Kind.RANDOM:
        return True
    return bool(model.trace.tables[code.index].edges[slot].view[row] == RANDOM_EDGE)


def _parents(model: Model, node: int) -> list[int]:
    """The nodes that a renewed node is computed from."""
    trace = model.trace
    code, slot, row = trace.decode(node)
    item = code.slots[slot]
    if item.kind is Kind.ARGUMENT:
        caller, call, at = trace.decode(trace.user_nodes(code, row)[0])
        return source_nodes(trace, caller, at, caller.slots[call].arguments[slot])
    if item.kind in (Kind.CALL, Kind.IF) and (packed := trace.tables[code.index].edges[slot].view[row]) >= 0:
        inner = trace.program.codes[packed >> 32]
        return source_nodes(trace, inner, packed & ROW_MASK, inner.result)
    refs = item.arguments if item.operator is None else (item.operator, *item.arguments)
    return [source for ref in refs for source in source_nodes(trace, code, row, ref)]


def _order(model: Model, scaffold: Scaffold) -> list[int] | None:
    """Principals and renewed nodes, parents first, in the order in which the machine would renew them."""
    waiting = {**scaffold.principals, **scaffold.pending}
    order: list[int] = []
    for first in list(waiting):
        stack = [first]
        while stack:
            node = stack[-1]
            if node not in waiting:
                stack.pop()
                continue
            needed = [parent for parent in _parents(model, node) if parent in waiting and parent != node]
            if not needed:
                order.append(node)
                del waiting[node]
                stack.pop()
            elif needed[0] in stack or len(stack) > LONGEST:
                return None
            else:
                stack.append(needed[0])
    return order


class Plan:
    __slots__ = ("_absorbing", "_groups", "_model", "_principals", "_stamp", "_steps", "rows")

    def __init__(self, model: Model, scaffold: Scaffold, order: list[int]) -> None:
        self._model = model
        self._stamp = model.trace.structure_stamp()
        self._principals = list(scaffold.principals)
        self._absorbing = list(scaffold.absorbing)
        self._groups = list(scaffold.groups)
        self._steps = [(node, None if node in scaffold.principals else self._renewal(node)) for node in order]
        # rows of absorbing choices that a transition weighs
        tables = model.trace.tables
        sites = [tables[model.trace.program.site_code[site].index] for site in self._groups]
        self.rows = len(self._absorbing) + sum(table.count - table.dead for table in sites)

    def is_valid(self) -> bool:
        return self._stamp == self._model.trace.structure_stamp()

    def _renewal(self, node: int) -> Callable[[], Any]:
        """How a renewed node's value is computed."""
        trace = self._model.trace
        code, slot, row = trace.decode(node)
        item = code.slots[slot]
        if item.kind is Kind.ARGUMENT:
            packed = trace.user_nodes(code, row)[0]
            return lambda: trace.read(packed >> 32, packed & ROW_MASK)[1 + slot]
        if item.kind in (Kind.CALL, Kind.IF) and (packed := trace.tables[code.index].edges[slot].view[row]) >= 0:
            inner, at = trace.program.codes[packed >> 32], packed & ROW_MASK
            return lambda: trace.result(inner, at)
        return lambda: self._model.machine.primitive(code, slot, row)

    def transition(self, proposal: Proposal, decide: Callable[[Weight], bool]) -> bool:
        model = self._model
        journal = model.trace.journal
        mark = journal.mark()
        try:
            proposal.prepare(model.trace, self._principals)
            old = self._absorb()
            if proposal.counts:
                for node in self._principals:
                    old.add(log_density(model.trace, node >> 32, node & ROW_MASK))
            new = self._renew(proposal)
            new.plus(self._absorb())
            accepted = decide(new.minus(old))
        except BaseException:
            model.rollback(mark)
            raise
        if accepted:
            model.commit_transition()
        else:
            journal.rollback(mark)
        return accepted

    def _renew(self, proposal: Proposal) -> Weight:
        """New values for the principals and what is computed from them; the weight of the principals."""
        model, trace = self._model, self._model.trace
        weight = Weight()
        for node, renewal in self._steps:
            site, row = node >> 32, node & ROW_MASK
            column = trace.column(site)
            if renewal is not None:
                trace.journal.put(column, row, renewal())
                continue
            operator, arguments = trace.application(site, row)
            model.machine.check(operator, arguments, *trace.decode(node))
            value, ratio = proposal.propose(node, operator, arguments, column.view[row])
            if proposal.counts:
                weight.add(density_of(trace, site, row, operator, arguments, value))
            weight.total += ratio
            trace.journal.put(column, row, value)
        return weight

    def _absorb(self) -> Weight:
        weight = Weight()
        for node in self._absorbing:
            weight.add(log_density(self._model.trace, node >> 32, node & ROW_MASK))
        for site in self._groups:
            weight.plus(self._model.kept.all_rows(site))
        return weight
