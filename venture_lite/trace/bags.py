"""Bags of integers with O(1) insert, remove and draw at random, each operation with an exact inverse.

The items stand in an array, and where each stands is kept in a column of the table that the item belongs to: no
dictionary, whose order could not be restored.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import numpy as np

from venture_lite.trace.journal import Journal
from venture_lite.trace.table import STAMPS, Column

Locate = Callable[[int], tuple[Column, int]]
"""Item -> (column, row) where its position is kept."""


def in_column(column: Column, row: int) -> tuple[Column, int]:
    """Where the position of an item is kept that is a row: in its row of a column."""
    return column, row


class Bag:
    __slots__ = ("count", "items", "locate", "stamp")

    def __init__(self, locate: Locate) -> None:
        self.items = Column(int)
        self.count = 0
        self.locate = locate
        self.stamp = next(STAMPS)

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        for name, value in state[1].items():
            setattr(self, name, value)
        self.stamp = next(STAMPS)

    def add(self, item: int, journal: Journal) -> None:
        position = self.count
        if position >= len(self.items.array):
            self.items.reserve(max(8, 2 * position if position < 4096 else position + (position >> 2)))
        self.items.view[position] = item
        column, row = self.locate(item)
        journal.note(Bag._undo_add, self, column, row, column.view[row])
        column.view[row] = position
        self.count = position + 1
        self.stamp = next(STAMPS)

    def _undo_add(self, column: Column, row: int, before: int) -> None:
        self.count -= 1
        column.view[row] = before
        self.stamp = next(STAMPS)

    def remove(self, item: int, journal: Journal) -> None:
        """The last item takes the place of the one that goes."""
        column, row = self.locate(item)
        position = column.view[row]
        last = self.items.view[self.count - 1]
        self.items.view[position] = last
        other_column, other_row = self.locate(last)
        other_column.view[other_row] = position
        self.count -= 1
        self.stamp = next(STAMPS)
        journal.note(Bag._undo_remove, self, item, position)

    def _undo_remove(self, item: int, position: int) -> None:
        if position < self.count:
            last = self.items.view[position]
            self.items.view[self.count] = last
            column, row = self.locate(last)
            column.view[row] = self.count
        self.items.view[position] = item
        column, row = self.locate(item)
        column.view[row] = position
        self.count += 1
        self.stamp = next(STAMPS)

    def replace(self, items: np.ndarray, column: Column, journal: Journal) -> None:
        """Hold other items, each a row whose position stands in its row of a column; those that go are in no bag that
        keeps positions there."""
        journal.note(Bag._undo_replace, self, self.array().copy(), column)
        self._hold(items, column)

    def _undo_replace(self, items: np.ndarray, column: Column) -> None:
        self._hold(items, column)

    def _hold(self, items: np.ndarray, column: Column) -> None:
        if len(items) > len(self.items.array):
            self.items.reserve(len(items))
        self.items.array[: len(items)] = items
        column.array[items] = np.arange(len(items))
        self.count = len(items)
        self.stamp = next(STAMPS)

    def array(self) -> np.ndarray:
        """The items, as a view that the next change invalidates."""
        return self.items.array[: self.count]  # type: ignore[no-any-return]

    def __iter__(self) -> Any:
        return iter(self.items.array[: self.count].tolist())

    def __len__(self) -> int:
        return self.count


class Users:
    """Who uses one memoized row: for each call site a bag of rows, so that a whole site can be followed as an array."""

    __slots__ = ("by_site", "count", "locate")

    def __init__(self, locate: Callable[[int], Locate]) -> None:
        self.by_site: dict[int, Bag] = {}
        self.count = 0
        # site -> where the positions of that site's rows are kept
        self.locate = locate

    def add(self, site: int, row: int, journal: Journal) -> None:
        bag = self.by_site.get(site)
        if bag is None:
            bag = Bag(self.locate(site))
            journal.set_item(self.by_site, site, bag)
        bag.add(row, journal)
        self._change(1)
        journal.note(Users._change, self, -1)

    def remove(self, site: int, row: int, journal: Journal) -> None:
        self.by_site[site].remove(row, journal)
        self._change(-1)
        journal.note(Users._change, self, 1)

    def add_all(self, site: int, rows: np.ndarray, journal: Journal) -> None:
        """Many rows of one site, none of which is there."""
        if site not in self.by_site:
            journal.set_item(self.by_site, site, Bag(self.locate(site)))
        bag = self.by_site[site]
        bag.replace(np.append(bag.array(), rows), self.locate(site)(0)[0], journal)
        self._change(len(rows))
        journal.note(Users._change, self, -len(rows))

    def remove_all(self, site: int, rows: np.ndarray, journal: Journal) -> None:
        """Many rows of one site, which all are there. The others keep their order."""
        bag, column = self.by_site[site], self.locate(site)(0)[0]
        stays = np.ones(bag.count, bool)
        stays[column.array[rows]] = False
        bag.replace(bag.array()[stays], column, journal)
        self._change(-len(rows))
        journal.note(Users._change, self, len(rows))

    def _change(self, by: int) -> None:
        self.count += by

    def __len__(self) -> int:
        return self.count

    def nodes(self, besides: Container[int] = ()) -> list[int]:
        """Packed nodes of all users, those of some sites aside."""
        return [site << 32 | row for site, bag in self.by_site.items() if site not in besides for row in bag]
