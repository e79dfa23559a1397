"""Cones: what reads some choices of a block, and by which ways.

Given choices that move together, everything that changes with them is followed from the trace: values that are computed
from them, calls of memoized procedures whose key moves, and the densities that read them. For each node that reads one
or two of the choices its cone says which, and what lies between, parents first. That holds for every state that the
choices can take: of a call whose key moves only operator and key are looked at, not the family that it leads to now.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from venture_lite.errors import KernelError
from venture_lite.interpreter.scaffold import Builder, Scaffold, is_maker_application
from venture_lite.interpreter.shape import INPUTS_CHANGE, PARAMETERS_CHANGE
from venture_lite.interpreter.sources import application_nodes, nodes_read, parents_first, parents_of, reached
from venture_lite.program.code import Code
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.trace import Trace

MOST = 2
"""Choices of one cone."""

KEY_HINT = "a call that has the state for its key, as (m (s t))"
READS_STATES = "what a call finds by a state reads states itself"
IS_CIRCULAR = "what a state finds, and only a state keeps, reads a state or is one"

Refuse = Callable[[int, str, str | None], KernelError]
"""(node, reason, what to write instead) -> the error."""


@dataclass(frozen=True, slots=True)
class Cone:
    """A node that reads some choices of a block."""

    node: int
    choices: tuple[int, ...]
    # what is computed from them on the way to the node, parents first; the node itself last, if it is computed
    between: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MovingNodes:
    """What the choices of a block decide."""

    # the choices, and what is computed from them
    every: Container[int]
    # calls of memoized procedures whose key moves
    keyed: Container[int]
    # of each node that reads the choices: those of `every` that it is computed from, or that its density depends on
    parents: dict[int, list[int]]


class Cones:
    """The cones of a block's choices. Raises KernelError, made by `refuse`, where structure may change otherwise
    than by keys, where statistics count, and where a density reads more than MOST of the choices."""

    def __init__(self, trace: Trace, choices: Sequence[int], refuse: Refuse) -> None:
        self.trace = trace
        scaffold = Builder(trace).build(choices, with_brush=False)
        self._refuse = refuse
        self.moving = MovingNodes({*scaffold.principals, *scaffold.pending}, scaffold.structural, {})
        self._refuse_structure(choices, scaffold)
        # of each node the choices that it reads and what lies between; None where these are too many
        self._known: dict[int, tuple[tuple[int, ...], tuple[int, ...]] | None] = {x: ((x,), ()) for x in choices}
        computed = []
        for node in parents_first(scaffold.pending, self._read_by, self._known):
            self._known[node] = self._joined(node, [node])
            computed.append(node)
        # the densities that depend on the choices: their own, and those of what absorbs
        absorbing = [*scaffold.absorbing, *(node for site in scaffold.groups for node in trace.nodes_of(site))]
        self.weighed = [self._weighed(node) for node in dict.fromkeys((*choices, *absorbing))]
        # what is computed: from few choices, and, parents first, from many
        self.computed = [Cone(node, *found) for node in computed if (found := self._known[node]) is not None]
        self.late = [node for node in computed if self._known[node] is None]
        for node in self.late:
            if node in scaffold.structural:
                raise refuse(node, "this call's key reads more than two of them", None)

    def _refuse_structure(self, choices: Sequence[int], scaffold: Scaffold) -> None:
        trace, refuse = self.trace, self._refuse
        for node in scaffold.makers:
            raise refuse(node, PARAMETERS_CHANGE, None)
        for node in scaffold.structural:
            self._refuse_call(node)
        for node in scaffold.absorbing:
            if is_maker_application(trace, node):
                raise refuse(node, INPUTS_CHANGE, None)
        for node in scaffold.pending:
            if trace.is_observed(node):
                raise refuse(node, "which choice takes an observed value depends on a state", None)
        depends = {*choices, *scaffold.pending, *scaffold.absorbing}
        builder = Builder(trace)
        builder.scaffold.structural = dict(scaffold.structural)
        builder.grow_brush()
        for code, row in builder.scaffold.brush:
            for slot in code.steps:
                if (node := (code.first_site + slot) << 32 | row) in depends:
                    raise refuse(node, IS_CIRCULAR, None)

    def _refuse_call(self, node: int) -> None:
        """Raises where the edge of a node depends on the choices otherwise than by the key of a memoized procedure."""
        trace = self.trace
        code, slot, row = trace.decode(node)
        if code.slots[slot].branches:
            raise self._refuse(node, "a branch depends on a state here", KEY_HINT)
        operator = nodes_read(trace, code, row, (code.slots[slot].operator,))
        packed = trace.edge(node)
        is_memoized = packed >= 0 and trace.is_memoized(trace.program.codes[packed >> 32], packed & ROW_MASK)
        if not is_memoized or any(read in self.moving.every for read in operator):
            raise self._refuse(node, "which procedure is applied depends on a state here", KEY_HINT)

    # ---------------------------------------------------------------------------------------------- what reads what

    def _read_by(self, node: int) -> list[int]:
        """The parents of a node, of a call whose key moves its operator and its key."""
        moving, trace = self.moving, self.trace
        found = application_nodes(trace, node) if node in moving.keyed else parents_of(trace, node)
        parents = [parent for parent in dict.fromkeys(found) if parent in moving.every and parent != node]
        moving.parents[node] = parents
        return parents

    def _joined(self, node: int, last: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """The choices that the parents of a node read, and what lies between; None where these are too many."""
        choices: dict[int, None] = {}
        between: dict[int, None] = {}
        for parent in self.moving.parents[node]:
            known = self._known[parent]
            if known is None:
                return None
            choices.update(dict.fromkeys(known[0]))
            between.update(dict.fromkeys(known[1]))
        between.update(dict.fromkeys(last))
        return (tuple(choices), tuple(between)) if len(choices) <= MOST else None

    def _weighed(self, node: int) -> Cone:
        """The cone of a density; of a choice's own it reads the choice, too."""
        self._read_by(node)
        found = self._joined(node, [])
        own = (node,) if node in self._known else ()
        choices = () if found is None else tuple(dict.fromkeys((*found[0], *own)))
        if found is None or len(choices) > MOST:
            what = f"this density reads more than {MOST} of them"
            raise self._refuse(node, what, "states that hold all that is carried on, as pairs do")
        return Cone(node, choices, found[1])


def read_by_family(trace: Trace, code: Code, row: int) -> Iterator[int]:
    """What a family reads, and what those that it calls read, outside of them and inside."""

    def called(family: tuple[Code, int]) -> Iterable[tuple[Code, int]]:
        edges = (column.view[family[1]] for column in trace.tables[family[0].index].edges.values())
        return [(trace.program.codes[edge >> 32], edge & ROW_MASK) for edge in edges if edge >= 0]

    for inner, at in reached([(code, row)], called):
        stored = [slot for slot in inner.slots if slot.stored]
        yield from nodes_read(trace, inner, at, [ref for slot in stored for ref in (slot.operator, *slot.arguments)])
