"""When each node of a scaffold is due, if the blocks of its principals are regenerated one after the other.

A node is due at the step of the last block that it depends on: a choice that reads states 3 and 4 absorbs at state 4.
The schedule follows from what stays while the blocks move, never from the values that they have now: of a node whose
edge may change only its operator, its predicate or its key is looked at, not the family that it leads to. So every
state that the blocks can take has the same schedule, without which conditional sequential Monte Carlo is not exact.

Choices that nothing connects, given what stays, belong to different *strands*: the series of a panel, say, even where
a block holds one state of each. Given the rest they are independent, so that each strand may be drawn on its own.
Strands that differ in nothing but the rows of their nodes form a *bundle*, which is evaluated in one call, as a group
of rows is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from venture_lite.interpreter.scaffold import Builder, Scaffold, is_distribution, is_maker_application
from venture_lite.interpreter.sources import application_nodes, parents_first, parents_of, reached
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.trace import Trace


@dataclass(slots=True)
class BlockNodes:
    """What is due at one block, parents before their readers."""

    # the block's choices and what is computed from them
    order: list[int] = field(default_factory=list)
    absorbing: list[int] = field(default_factory=list)


class Schedule:
    """The scaffold of several blocks, by the step at which each of its nodes is due."""

    def __init__(self, trace: Trace, blocks: Sequence[Sequence[int]]) -> None:
        self.trace = trace
        self.scaffold = Builder(trace).build(node for block in blocks for node in block)
        # for each node that depends on the blocks: those that it is computed from, as far as they do too
        self.parents: dict[int, list[int]] = {}
        self.due: dict[int, int] = {}
        principals = self.scaffold.principals
        # a block whose choices exist only by what another block decides is drawn with that one
        own = [block for block in blocks if any(node in principals for node in block)]
        self._step_of = {node: at for at, block in enumerate(own) for node in block if node in principals}
        self._moved = {*principals, *self.scaffold.pending}
        self.steps = [BlockNodes() for _ in own]
        for node, at in self._step_of.items():
            self._settle([node], at)
        groups = (node for site in self.scaffold.groups for node in trace.nodes_of(site))
        self._settle((*self.scaffold.pending, *self.scaffold.absorbing, *groups), len(own))
        for node, at in self.due.items():
            step = self.steps[at]
            (step.order if node in self._moved else step.absorbing).append(node)

    def _settle(self, nodes: Iterable[int], latest: int) -> None:
        """Find when nodes are due, after all that they need; a choice of a later block that one needs comes with it."""
        for node in parents_first(nodes, self._read_by, self.due):
            last = max((self.due[parent] for parent in self.parents[node]), default=0)
            self.due[node] = min(self._step_of[node], latest) if node in self._step_of else last

    def _read_by(self, node: int) -> list[int]:
        found = _parents_of(self.trace, node, self.scaffold)
        self.parents[node] = [parent for parent in dict.fromkeys(found) if parent in self._moved and parent != node]
        return self.parents[node]

    def value_from(self, node: int) -> int:
        """The first step whose choices a node's value depends on, other than through choices."""
        principals = self.scaffold.principals
        return min(self.due[at] for at in reached([node], lambda at: () if at in principals else self.parents[at]))

    def moves(self, node: int) -> bool:
        """Whether a node is regenerated; otherwise it absorbs."""
        return node in self._moved

    def is_plain(self) -> bool:
        """Whether nothing but values changes: no family comes or goes, no statistics count, blocks in order."""
        scaffold, due = self.scaffold, self.due
        if scaffold.structural or scaffold.makers or scaffold.brush:
            return False
        return all(
            (node in scaffold.pending or is_distribution(self.trace, node))
            and all(due[parent] <= at for parent in self.parents[node])
            for node, at in due.items()
        )


def _parents_of(trace: Trace, node: int, scaffold: Scaffold) -> list[int]:
    """The nodes that a node of a scaffold is computed from, whatever family a changing edge will lead to."""
    if node in scaffold.structural:
        return application_nodes(trace, node)
    found = parents_of(trace, node)
    if is_maker_application(trace, node):
        operator, _ = trace.application(node)
        assert isinstance(operator, Exchangeable)
        found.append(operator.node)
    return found


# ------------------------------------------------------------------------------------------------------ strands


StrandRows = int | np.ndarray
"""The row of a node, or of the like nodes of several strands: (strands,)."""


@dataclass(slots=True)
class Strand:
    """Choices that depend on each other and on no others."""

    # what of it is due at each block, parents before their readers
    steps: list[BlockNodes] = field(default_factory=list)

    def nodes(self) -> list[int]:
        return [node for step in self.steps for node in (*step.order, *step.absorbing)]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Strands that are alike, written as the first of them."""

    steps: list[BlockNodes]
    count: int
    # for each node of the first strand: its row, or the rows of all its likes
    rows: dict[int, StrandRows]

    @classmethod
    def of(cls, strands: list[Strand]) -> Bundle:
        first = strands[0]
        if len(strands) == 1:
            return cls(first.steps, 1, {node: node & ROW_MASK for node in first.nodes()})
        like = zip(*(strand.nodes() for strand in strands), strict=True)
        rows: dict[int, StrandRows] = {nodes[0]: np.array([node & ROW_MASK for node in nodes]) for nodes in like}
        return cls(first.steps, len(strands), rows)


def strands_of(schedule: Schedule) -> list[Strand]:
    """The strands, in the order of their first blocks."""
    root = _connected(schedule)
    found: dict[int, Strand] = {}
    for step in schedule.steps:
        own: dict[int, BlockNodes] = {}
        for node in step.order:
            own.setdefault(root[node], BlockNodes()).order.append(node)
        for node in step.absorbing:
            own.setdefault(root[node], BlockNodes()).absorbing.append(node)
        for name, part in own.items():
            found.setdefault(name, Strand()).steps.append(part)
    return list(found.values())


def alike(schedule: Schedule, strands: Iterable[Strand]) -> list[list[Strand]]:
    """Strands of the same sites that read each other in the same way, together."""
    groups: dict[tuple[object, ...], list[Strand]] = {}
    for strand in strands:
        groups.setdefault(_kind(schedule, strand), []).append(strand)
    return list(groups.values())


def _kind(schedule: Schedule, strand: Strand) -> tuple[object, ...]:
    """The site of each node, whether it is principal and which it reads; how many are due at each step."""
    number = {node: place for place, node in enumerate(strand.nodes())}
    principals = schedule.scaffold.principals
    reads = (tuple(number[parent] for parent in schedule.parents[node]) for node in number)
    sites = tuple((node >> 32, node in principals, read) for node, read in zip(number, reads, strict=True))
    return sites, tuple((len(step.order), len(step.absorbing)) for step in strand.steps)


def _connected(schedule: Schedule) -> dict[int, int]:
    """For each node one that stands for its strand: union and find, with paths halved."""
    above: dict[int, int] = {node: node for node in schedule.due}

    def find(node: int) -> int:
        while above[node] != node:
            above[node] = above[above[node]]
            node = above[node]
        return node

    for node, parents in schedule.parents.items():
        for parent in parents:
            above[find(node)] = find(parent)
    return {node: find(node) for node in above}
