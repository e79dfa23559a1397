"""Scopes and their blocks: which random choices an inference action may move, found in O(1).

`default` holds every unconstrained choice as a block of its own; a tagged scope groups choices by block key. Blocks
stand in an array, for a draw at random; a dictionary finds a block by its key and is never iterated, so that its
order matters to nobody.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.trace.bags import Bag, Locate
from venture_lite.trace.journal import Journal
from venture_lite.trace.keys import KeyIndex
from venture_lite.trace.table import Column
from venture_lite.values import key_of

SEVERAL = -1
"""In `Scope.blocks`: the block has more than one choice."""


class DefaultScope:
    """Every unconstrained choice, each its own block; a block's key is the packed node."""

    __slots__ = ("_everything", "added", "bag", "births", "epoch", "forced")

    def __init__(self, locate: Locate) -> None:
        self.bag = Bag(locate)
        # every choice in order, as of a state of the bag
        self._everything: tuple[int, list[int]] = (-1, [])
        # while a sweep is on: the blocks that came since it began
        self.added: list[Any] | None = None
        # while draws are watched: a choice that came -> the epoch in which it did; that of a choice whose coming was
        # taken back is left, since its row stands for nothing
        self.births: dict[int, int] | None = None
        self.epoch = 0
        # a choice that `force` set -> the value, until the choice goes, is observed or is moved
        self.forced: dict[int, Any] = {}

    def add(self, node: int, journal: Journal) -> None:
        self.bag.add(node, journal)
        if self.added is not None:
            self.added.append(node)
        if self.births is not None:
            self.births[node] = self.epoch

    def remove(self, node: int, journal: Journal) -> None:
        self.bag.remove(node, journal)
        if self.forced and node in self.forced:
            journal.del_item(self.forced, node)

    def everything(self) -> list[int]:
        """Every choice, in order; kept until the scope changes."""
        stamp, nodes = self._everything
        if stamp != self.bag.stamp:
            nodes = sorted(self.bag)
            self._everything = (self.bag.stamp, nodes)
        return nodes

    def block_count(self) -> int:
        return self.bag.count

    def drawing(self, rng: np.random.Generator) -> Callable[[], tuple[int, int]]:
        """Draws blocks until the scope changes: the choice of one and the block's key, which are the same."""
        random, items, count = rng.random, self.bag.items.view, self.bag.count

        def draw() -> tuple[int, int]:
            node = items[int(random() * count)]
            return node, node

        return draw

    def all_keys(self) -> list[Any]:
        return list(self.bag)

    def array(self) -> np.ndarray:
        """Every choice (choices,), in no order."""
        return self.bag.array()

    def members(self, key: Any) -> list[int]:
        return [key] if self.has(key) else []

    def has(self, key: Any) -> bool:
        column, row = self.bag.locate(key)
        position = column.view[row]
        return 0 <= position < self.bag.count and bool(self.bag.items.view[position] == key)


class Scope:
    """A tagged scope: blocks by key, each with its choices in order of arrival."""

    __slots__ = ("_everything", "added", "blocks", "crowds", "index", "names", "ordered")

    def __init__(self) -> None:
        # normalised key -> position in `blocks` and `names`
        self.index = KeyIndex(lambda position: key_of(self.names.view[position]))
        # position -> packed node, or SEVERAL where `crowds` has a list of them
        self.blocks = array("q")
        self.crowds: dict[int, list[int]] = {}
        # position -> the key as the program gave it
        self.names = Column()
        # every choice in order; None where the scope has changed since it was made
        self._everything: list[int] | None = None
        # the blocks as a sweep visits them (`interpreter/selection.py`); None where one has come or gone since
        self.ordered: list[tuple[tuple[Any, ...], int, Any]] | None = None
        self.added: list[Any] | None = None

    @classmethod
    def of(cls, blocks: array[int], crowds: dict[int, list[int]], names: Column) -> Scope:
        """A scope of these blocks."""
        scope = cls()
        scope.blocks, scope.crowds, scope.names = blocks, crowds, names
        scope.index = KeyIndex(scope.index.key_at, range(len(blocks)))
        return scope

    def add(self, key: Any, node: int, journal: Journal) -> None:
        self._everything = None
        normal = key_of(key)
        position = self.index.get(normal)
        if position is None:
            self.ordered = None
            self.blocks.append(node)
            self._name(key)
            self.index.add(normal, len(self.blocks) - 1)
            journal.note(Scope._drop_last, self, normal)
            if self.added is not None:
                self.added.append(key)
            return
        if self.blocks[position] == SEVERAL:
            self.crowds[position].append(node)
        else:
            self.crowds[position] = [self.blocks[position], node]
            self.blocks[position] = SEVERAL
        journal.note(Scope._pop_member, self, position)

    def _name(self, key: Any) -> None:
        """The key of the block that was appended last."""
        position = len(self.blocks) - 1
        if position >= len(self.names.view):
            self.names.reserve(position + (position >> 2) + 8)
        self.names.put(position, key)

    def _drop_last(self, normal: Any) -> None:
        self._everything = self.ordered = None
        self.index.remove(normal)
        self.blocks.pop()

    def _pop_member(self, position: int) -> None:
        self._everything = None
        self.crowds[position].pop()
        self._thin_out(position)

    def _thin_out(self, position: int) -> None:
        """A crowd of one is no crowd."""
        if len(self.crowds[position]) == 1:
            (self.blocks[position],) = self.crowds.pop(position)

    def remove(self, key: Any, node: int, journal: Journal) -> None:
        self._everything = None
        normal = key_of(key)
        position = self.index[normal]
        if self.blocks[position] == SEVERAL:
            # the last takes the place of the one that goes
            members = self.crowds[position]
            at = len(members) - 1 - members[::-1].index(node)
            members[at] = members[-1]
            members.pop()
            self._thin_out(position)
            journal.note(Scope._put_back_member, self, position, at, node)
            return
        self.ordered = None
        name = self.names.view[position]
        self.index.remove(normal)
        last = len(self.blocks) - 1
        if position < last:
            self._move_block(last, position)
        self.blocks.pop()
        journal.note(Scope._put_back_block, self, position, name, normal, node)

    def _move_block(self, source: int, target: int) -> None:
        self.index.move(key_of(self.names.view[source]), target)
        self.blocks[target] = self.blocks[source]
        self.names.put(target, self.names.view[source])
        if source in self.crowds:
            self.crowds[target] = self.crowds.pop(source)

    def _put_back_member(self, position: int, at: int, node: int) -> None:
        self._everything = None
        if self.blocks[position] != SEVERAL:
            self.crowds[position] = [self.blocks[position]]
            self.blocks[position] = SEVERAL
        members = self.crowds[position]
        if at == len(members):
            members.append(node)
        else:
            members.append(members[at])
            members[at] = node

    def _put_back_block(self, position: int, name: Any, normal: Any, node: int) -> None:
        self._everything = self.ordered = None
        self.blocks.append(node)
        self._name(name)
        last = len(self.blocks) - 1
        if position < last:
            self._move_block(position, last)
            self.blocks[position] = node
            self.names.put(position, name)
        self.index.add(normal, position)

    def everything(self) -> list[int]:
        """Every choice, in order; kept until the scope changes."""
        if self._everything is None:
            self._everything = sorted(self.array().tolist())
        return self._everything

    def array(self) -> np.ndarray:
        """Every choice (choices,), in no order."""
        single = np.array(self.blocks, np.int64)
        crowds = [node for members in self.crowds.values() for node in members]
        return np.concatenate((single[single != SEVERAL], np.array(crowds, np.int64)))

    def block_count(self) -> int:
        return len(self.blocks)

    def drawing(self, rng: np.random.Generator) -> Callable[[], tuple[int, Any]]:
        """Draws blocks until the scope changes: the choice of one, or SEVERAL, and the block's key."""
        random, blocks, names, count = rng.random, self.blocks, self.names.view, len(self.blocks)

        def draw() -> tuple[int, Any]:
            position = int(random() * count)
            return blocks[position], names[position]

        return draw

    def all_keys(self) -> list[Any]:
        return list(self.names.view[: len(self.blocks)])

    def members(self, key: Any) -> list[int]:
        position = self.index.get(key_of(key))
        return [] if position is None else self.at(position)

    def at(self, position: int) -> list[int]:
        """The choices of the block that stands there."""
        return list(self.crowds[position]) if self.blocks[position] == SEVERAL else [self.blocks[position]]

    def has(self, key: Any) -> bool:
        return key_of(key) in self.index
