"""When each node of a scaffold is due, if the blocks of its principals are regenerated one after the other.

A node is due at the step of the last block that it depends on: a choice that reads states 3 and 4 absorbs at state 4.
The schedule follows from what stays while the blocks move, never from the values that they have now: of a node whose
edge may change only its operator, its predicate or its key is looked at, not the family that it leads to. So every
state that the blocks can take has the same schedule, without which conditional sequential Monte Carlo is not exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from venture_lite.errors import InternalError
from venture_lite.interpreter.scaffold import Builder, Scaffold, is_distribution, is_maker_application
from venture_lite.interpreter.sources import application_nodes, parents_of
from venture_lite.trace.runtime import Exchangeable
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
        absorbing = absorbing_rows(trace, self.scaffold)
        self._moved = {*principals, *self.scaffold.pending}
        self.steps = [BlockNodes() for _ in own]
        for at, block in enumerate(own):
            for node in block:
                if node in principals:
                    self._settle(node, at)
        for node in (*self.scaffold.pending, *absorbing):
            self._settle(node, len(own))
        for node, at in self.due.items():
            step = self.steps[at]
            (step.order if node in self._moved else step.absorbing).append(node)

    def _settle(self, first: int, latest: int) -> None:
        """Find when a node is due, after all that it needs; a choice of a later block that it needs comes with it."""
        stack = [first]
        while stack:
            node = stack[-1]
            if node in self.due:
                stack.pop()
                continue
            parents = self.parents.get(node)
            if parents is None:
                found = _parents_of(self.trace, node, self.scaffold)
                parents = self.parents[node] = [p for p in dict.fromkeys(found) if p in self._moved and p != node]
                waiting = [parent for parent in parents if parent not in self.due]
                if waiting:
                    stack.extend(reversed(waiting))
                    continue
            if any(parent not in self.due for parent in parents):
                raise InternalError("a value is needed to compute itself")
            last = max((self.due[parent] for parent in parents), default=0)
            self.due[node] = min(self._step_of[node], latest) if node in self._step_of else last
            stack.pop()

    def value_from(self, node: int) -> int:
        """The first step whose choices a node's value depends on, other than through choices."""
        found = self.due[node]
        seen: set[int] = set()
        todo = [node]
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            found = min(found, self.due[at])
            if at not in self.scaffold.principals:
                todo.extend(self.parents[at])
        return found

    def moves(self, node: int) -> bool:
        """Whether a node is regenerated; otherwise it absorbs."""
        return node in self._moved

    def is_plain(self) -> bool:
        """Whether nothing but values changes: no family comes or goes, no statistics count, blocks in order."""
        scaffold = self.scaffold
        if scaffold.structural or scaffold.makers or scaffold.brush:
            return False
        due = self.due
        for node, at in due.items():
            if node not in scaffold.pending and not is_distribution(self.trace, node):
                return False
            if any(due[parent] > at for parent in self.parents[node]):
                return False
        return True


def absorbing_rows(trace: Trace, scaffold: Scaffold) -> list[int]:
    """Every choice that absorbs, one by one, each once."""
    found = dict(scaffold.absorbing)
    for site in scaffold.groups:
        found.update(dict.fromkeys(trace.nodes_of(site)))
    return [node for node in found if node not in scaffold.principals]


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
