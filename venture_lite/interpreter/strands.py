"""Independent parts of a schedule, and which of them are alike.

Choices that nothing connects, given what stays, belong to different *strands*: the series of a panel, say, even where
a block holds one state of each. Given the rest they are independent, so that each strand may be drawn on its own.
Strands that differ in nothing but the rows of their nodes form a *bundle*, which is evaluated in one call, as a group
of rows is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from venture_lite.interpreter.schedule import BlockNodes, Schedule
from venture_lite.interpreter.shape import Shape
from venture_lite.trace.table import ROW_MASK

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
        sizes = tuple((len(step.order), len(step.absorbing)) for step in strand.steps)
        groups.setdefault((_shape(schedule, strand), sizes), []).append(strand)
    return list(groups.values())


def _shape(schedule: Schedule, strand: Strand) -> Shape:
    number = {node: place for place, node in enumerate(strand.nodes())}
    return Shape(
        sites=tuple(node >> 32 for node in number),
        principals=tuple(place for node, place in number.items() if node in schedule.scaffold.principals),
        order=tuple(number[node] for step in strand.steps for node in step.order),
        absorbing=tuple(number[node] for step in strand.steps for node in step.absorbing),
        reads=tuple(tuple(number[parent] for parent in schedule.parents[node]) for node in number),
    )


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
