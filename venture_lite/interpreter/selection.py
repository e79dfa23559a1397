"""Which blocks a kernel moves: `one`, `all`, `each`, `ordered`, a range, or a block by its key."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.interpreter.addresses import address, address_order, block_order
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.tally import Tally
from venture_lite.program.code import Kind
from venture_lite.trace.scopes import SEVERAL, DefaultScope, Scope
from venture_lite.values import key_of, show

OrderedKey = tuple[tuple[Any, ...], int, Any]
"""A block's place in the order of a sweep, a number that tells apart those at one place, and its key."""


@dataclass(frozen=True, slots=True)
class Selector:
    """`kind` is 'one', 'all', 'each', 'ordered', 'range' or 'key'."""

    kind: str
    key: Any = None
    low: Any = None
    high: Any = None

    @property
    def sweeps(self) -> bool:
        return self.kind in ("each", "ordered", "range")

    def text(self) -> str:
        """As the program has it."""
        return f"(ordered_range {show(self.low)} {show(self.high)})" if self.kind == "range" else show(self.key)

    def words(self, scope: Any) -> str:
        """For a person: which blocks of a scope these are."""
        match self.kind:
            case "one":
                return f"one block of {scope}"
            case "all":
                return f"all of {scope} as one block"
            case "key":
                return f"block {self.text()} of {scope}"
            case "range":
                return f"blocks {show(self.low)} to {show(self.high)} of {scope}, in order"
        return f"each block of {scope}, in order"


def one_of_each_kind(model: Model, nodes: list[int]) -> list[int]:
    """One node for each site whose distribution the text names, the first; every node of the others."""
    every = np.array(nodes, np.int64)
    kinds, first, of = np.unique(every >> 32, return_index=True, return_inverse=True)
    program = model.trace.program
    named = [program.site_code[site].slots[program.site_slot[site]].kind is Kind.RANDOM for site in kinds.tolist()]
    taken = ~np.array(named, bool)[of]
    taken[first] = True
    found: list[int] = every[taken].tolist()
    return found


@dataclass(slots=True, eq=False)
class Selection:
    """The blocks of one scope that a kernel moves. Mutable: it stands at the block that is being moved."""

    model: Model
    # the scope's name
    scope: Any
    selector: Selector
    # the key of the block at hand; "all" for the whole scope
    key: Any = None
    # how many blocks were drawn, or sweeps begun, by `blocks`
    runs: int = 0

    @property
    def is_drawn(self) -> bool:
        """Whether the block at hand was drawn from all that there are."""
        return self.selector.kind == "one"

    def found(self) -> DefaultScope | Scope:
        """The scope; an empty one, if no choice ever was in it."""
        return self.model.trace.scopes.get(self.scope) or Scope()

    def drawn_from(self) -> int:
        """Out of how many blocks the one at hand would be drawn as of this state; 1 where none is drawn."""
        return max(self.found().block_count(), 1) if self.selector.kind == "one" else 1

    def members_now(self) -> list[int]:
        """The choices of the block at hand as of this state."""
        found = self.found()
        # a key may be an array
        return found.everything() if isinstance(self.key, str) and self.key == "all" else found.members(self.key)

    def everything(self) -> list[int]:
        """Every choice that may be moved as of this state; in `default` no block has a key that a program could
        name."""
        found = self.found()
        if self.selector.kind != "key":
            return found.everything()
        return [] if isinstance(found, DefaultScope) else found.members(self.selector.key)

    def in_order(self) -> list[list[int]]:
        """The choices of each block as of this state, of a range of those that lie in it."""
        return [nodes for _, nodes in self.present()]

    def present(self) -> list[tuple[Any, list[int]]]:
        """The blocks that may be moved next, each with its key: for `one` those of which one is drawn."""
        if self.selector.kind in ("all", "key"):
            return [("all" if self.selector.kind == "all" else self.selector.key, self.everything())]
        found, model, is_range = self.found(), self.model, self.selector.kind == "range"
        keys = sorted(found.all_keys(), key=lambda key: order_of_key(model, self.scope, key))
        return [(key, found.members(key)) for key in keys if not is_range or in_range(model, self.selector, key)]

    def samples(self, by_block: bool) -> list[list[int]]:
        """What a look at every choice that may be moved can do with: one choice of each kind, or, `by_block`, the
        choices of one block for each combination of sites."""
        found = self.found()
        if not by_block:
            return [one_of_each_kind(self.model, self.everything())]
        if self.selector.kind in ("key", "all"):
            return [self.everything()]
        if isinstance(found, DefaultScope):
            return [[node] for node in one_of_each_kind(self.model, found.everything())]
        blocks: dict[tuple[int, ...], list[int]] = {}
        for key in found.all_keys():
            nodes = found.members(key)
            blocks.setdefault(tuple(sorted(node >> 32 for node in nodes)), nodes)
        return list(blocks.values())

    def missing(self) -> str | None:
        """What there is to say where no block exists that could be moved."""
        found, selector = self.found(), self.selector
        if not found.block_count():
            return f"the scope {self.scope} is empty, nothing is moved"
        if selector.kind not in ("key", "range"):
            return None
        if isinstance(found, DefaultScope):
            hint = "its blocks have no keys; tag the choices with scope_include"
            return f"the scope default has no block {selector.text()} ({hint}), nothing is moved"
        if selector.kind == "key" and not found.has(selector.key):
            return f"the scope {self.scope} has no block {selector.text()}, nothing is moved"
        return None

    def blocks(self, times: int, tally: Tally, first: int = 0) -> Iterator[list[int]]:
        """The choices of the next block that exists now, `times` times less the `first` that are behind; for a sweep,
        of every block so many times."""
        model, sweeps = self.model, self.selector.sweeps
        for done in range(first, times):
            missing = self.missing()
            if missing is not None:
                tally.warn(missing)
                return
            self.runs += 1
            for nodes in self.sweep() if sweeps else (self.next_block(),):
                model.poll()
                yield nodes
            if not done & 63:
                tally.progress.advance(done)

    def next_block(self) -> list[int]:
        """The choices of the block that is moved next; for `one` it is drawn."""
        trace, selector = self.model.trace, self.selector
        found = trace.scopes[self.scope]
        if selector.kind == "one":
            node, self.key = found.drawing(trace.rng)()
            return found.members(self.key) if node == SEVERAL else [node]
        self.key = "all" if selector.kind == "all" else selector.key
        return found.everything() if selector.kind == "all" else found.members(self.key)

    def sweep(self) -> Iterator[list[int]]:
        """Every block in the order of its key, on to the next that exists now.

        A block that vanished is passed over; one that appeared further on is visited.
        """
        scope = self.found()
        before, scope.added = scope.added, []
        try:
            waiting, visited = ordered_keys(self.model, self.scope, scope), list[Any]()
            if isinstance(scope, Scope):
                for at, (place, position, key) in enumerate(waiting):
                    if scope.ordered is not waiting:
                        # blocks have come or gone
                        done = waiting[at - 1][0] if at else ()
                        yield from self._rest(waiting[at:], done, visited)
                        return
                    if at and place != waiting[at - 1][0]:
                        visited.clear()
                    visited.append(key)
                    if self.selector.kind != "range" or in_range(self.model, self.selector, key):
                        self.key = key
                        yield scope.at(position)
                # the last block may have brought others: those that lie before it wait for the next sweep
                yield from self._rest([], waiting[-1][0] if waiting else (), visited)
            else:
                yield from self._rest(list(waiting), (), visited)
        finally:
            scope.added = before

    def _rest(self, waiting: list[OrderedKey], done: tuple[Any, ...], seen: list[Any]) -> Iterator[list[int]]:
        """Blocks from those that wait, in order, and those that come, beyond the place in the order up to which all is
        done; `seen` are the keys that were visited there."""
        model, name, scope = self.model, self.scope, self.found()
        # the blocks visited at this place of the order: one, and more where the order does not tell blocks apart
        visited: set[Hashable] = set(map(key_of, seen))
        arrivals = len(waiting) and max(position for _, position, _ in waiting) + 1
        while True:
            for key in scope.added or ():
                if scope.has(key):
                    heapq.heappush(waiting, (order_of_key(model, name, key), arrivals, key))
                    arrivals += 1
            scope.added = []
            if not waiting:
                return
            place, _, key = heapq.heappop(waiting)
            if not scope.has(key) or place < done or (place == done and key_of(key) in visited):
                continue
            # the row of a choice that went may hold another one now, which waits for its own turn
            if name == "default" and order_of(model, key) != place:
                continue
            if place != done:
                visited.clear()
            done = place
            visited.add(key_of(key))
            if self.selector.kind == "range" and not in_range(model, self.selector, key):
                continue
            self.key = key
            yield scope.members(key)


def order_of(model: Model, node: int) -> tuple[Any, ...]:
    """Sorts choices by address: directive, place in the text, call path."""
    return address_order(address(model.trace, node))


def in_order(model: Model, nodes: list[int]) -> list[int]:
    """The choices of a block in the order of their addresses, which does not depend on how they came to be."""
    return sorted(nodes, key=lambda node: order_of(model, node)) if len(nodes) > 1 else nodes


def order_of_key(model: Model, name: Any, key: Any) -> tuple[Any, ...]:
    """Sorts the blocks of a scope by their keys; in `default`, where a key is a choice, by address."""
    return order_of(model, key) if name == "default" else block_order(model.trace, key)


def ordered_keys(model: Model, name: Any, scope: DefaultScope | Scope) -> list[OrderedKey]:
    """The blocks of a scope, in order. Keys keep their order for life, and the list of a tagged scope stays good while
    its blocks are the same."""
    kept = scope.ordered if isinstance(scope, Scope) else None
    if kept is None:
        kept = [(order_of_key(model, name, key), position, key) for position, key in enumerate(scope.all_keys())]
        kept.sort(key=lambda entry: entry[:2])
        if isinstance(scope, Scope):
            scope.ordered = kept
    return kept


def in_range(model: Model, selector: Selector, key: Any) -> bool:
    """Whether a block lies in the range of an `ordered_range`."""
    low, high = block_order(model.trace, selector.low), block_order(model.trace, selector.high)
    return low <= block_order(model.trace, key) <= high
