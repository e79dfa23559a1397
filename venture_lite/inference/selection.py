"""Which blocks a kernel moves: `one`, `all`, `each`, `ordered`, a range, or a block by its key."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from venture_lite.interpreter.model import Model
from venture_lite.trace.addresses import address, address_order, block_order
from venture_lite.trace.scopes import DefaultScope, Scope
from venture_lite.values import key_of, show


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


def scope_of(model: Model, name: Any) -> DefaultScope | Scope | None:
    return model.trace.scopes.get(name)


def draw_block(model: Model, name: Any, block: Any) -> list[int] | None:
    """The nodes of one block: drawn at random for 'one', everything for 'all', else the block of that key."""
    scope = scope_of(model, name)
    if scope is None or not scope.block_count():
        return None
    if block == "one":
        return scope.members(scope.draw(model.trace.rng))
    if block == "all":
        return all_members(scope)
    return scope.members(block) or None


def members_of_key(scope: DefaultScope | Scope, key: Any) -> list[int]:
    """The choices of one block; in `default` no block has a key that a program could name."""
    return [] if isinstance(scope, DefaultScope) else scope.members(key)


def all_members(scope: DefaultScope | Scope) -> list[int]:
    """Every choice of a scope, as one block."""
    return scope.everything()


def members_now(model: Model, name: Any, key: Any) -> list[int]:
    """The choices of a block in the state at hand; `key` is as kernels are given it, 'all' for the whole scope."""
    scope = scope_of(model, name)
    if scope is None:
        return []
    return all_members(scope) if key == "all" else scope.members(key)


def order_of(model: Model, node: int) -> tuple[Any, ...]:
    """Sorts choices by address: directive, place in the text, call path."""
    return address_order(address(model.trace, node))


def in_order(model: Model, nodes: list[int]) -> list[int]:
    """The choices of a block in the order of their addresses, which does not depend on how they came to be."""
    return sorted(nodes, key=lambda node: order_of(model, node)) if len(nodes) > 1 else nodes


def order_of_key(model: Model, name: Any, key: Any) -> tuple[Any, ...]:
    """Sorts the blocks of a scope by their keys; in `default`, where a key is a choice, by address."""
    return order_of(model, key) if name == "default" else block_order(model.trace, key)


def in_range(model: Model, selector: Selector, key: Any) -> bool:
    """Whether a block lies in the range of an `ordered_range`."""
    low, high = block_order(model.trace, selector.low), block_order(model.trace, selector.high)
    return low <= block_order(model.trace, key) <= high


def sweep(model: Model, name: Any, selector: Selector) -> Iterator[tuple[list[int], Any]]:
    """Every block in the order of its key, on to the next that exists now.

    A block that vanished is passed over; one that appeared further on is visited.
    """
    scope = scope_of(model, name)
    if scope is None:
        return
    waiting = [(order_of_key(model, name, key), position, key) for position, key in enumerate(scope.all_keys())]
    heapq.heapify(waiting)
    before, scope.added = scope.added, []
    done: tuple[Any, ...] = ()
    # the blocks visited at this place of the order: one, and more where the order does not tell blocks apart
    visited: set[Hashable] = set()
    arrivals = len(waiting)
    try:
        while True:
            for key in scope.added:
                if scope.has(key):
                    heapq.heappush(waiting, (order_of_key(model, name, key), arrivals, key))
                    arrivals += 1
            scope.added.clear()
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
            if selector.kind == "range" and not in_range(model, selector, key):
                continue
            yield scope.members(key), key
    finally:
        scope.added = before
