"""The rows of a table in a uniformly random order, kept so while rows come and go: what minibatches are drawn from.

A new row takes the last place and swaps with a uniformly chosen one, the place of a row that goes is taken by the last:
either keeps every order equally likely, at a cost that does not depend on how many rows there are. Neighbouring places
are therefore a random sample, and so are blocks of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from venture_lite.trace.table import Table

BLOCK = 20
"""Neighbouring places that are drawn together, where there are enough of them."""
FEWEST_BLOCKS = 500
"""Below so many blocks places are drawn one by one: few blocks would be seen again and again in the same company."""
WITHIN = np.arange(BLOCK)
NOWHERE = -1


class RowOrder:
    """A random permutation of some row numbers, and the samplers that draw from it."""

    __slots__ = ("_places", "_rows", "count", "samplers", "touched")

    def __init__(self, rows: np.ndarray, rng: np.random.Generator) -> None:
        # the row at each place below `count`, and each row's place
        self._rows = rng.permutation(rows)
        self._places = np.full(int(rows.max(initial=0)) + 1, NOWHERE)
        self._places[self._rows] = np.arange(len(rows))
        self.count = len(rows)
        # rows that came or went since the order was looked at
        self.touched: set[int] = set()
        # by the site whose choices are drawn: kinds of sections that stand in the same rows
        self.samplers: dict[int, Sampler] = {}

    @property
    def rows(self) -> np.ndarray:
        """(count,) in their order."""
        return self._rows[: self.count]

    def renew(self, is_live: bytearray, end: int, rng: np.random.Generator) -> None:
        """Follow the table, whose rows below `end` may be live, in what changed since the last time."""
        if not self.touched:
            return
        places = self._places
        new = []
        for row in self.touched:
            place = int(places[row]) if row < len(places) else NOWHERE
            if row < end and is_live[row]:
                if place == NOWHERE:
                    new.append(row)
            elif place != NOWHERE:
                self._remove(row, place)
        self.touched.clear()
        if new:
            self._add(new, rng)

    def _remove(self, row: int, place: int) -> None:
        self.count -= 1
        last = self._rows[self.count]
        self._rows[place] = last
        self._places[last] = place
        self._places[row] = NOWHERE

    def _add(self, new: Sequence[int], rng: np.random.Generator) -> None:
        stop = self.count + len(new)
        self._rows = _grown(self._rows, stop)
        self._places = _grown(self._places, max(new) + 1)
        rows, places = self._rows, self._places
        # one uniform place for each, the row's own included
        swaps = rng.integers(np.arange(self.count, stop) + 1).tolist()
        for row, last, place in zip(new, range(self.count, stop), swaps, strict=True):
            moved = rows[place] if place < last else row
            rows[last], places[moved] = moved, last
            rows[place], places[row] = row, place
        self.count = stop

    def sampler(self, site: int) -> Sampler:
        return self.samplers.setdefault(site, Sampler(self))


def order_of(table: Table, rng: np.random.Generator) -> RowOrder:
    """The order of a table's live rows, made when it is first asked for."""
    if table.order is None:
        table.order = RowOrder(np.flatnonzero(np.frombuffer(table.live, np.uint8, table.count)), rng)
    else:
        table.order.renew(table.live, table.count, rng)
    return table.order


class Sampler:
    """Draws rows without replacement, at a cost that depends on how many are drawn alone.

    Each round draws blocks of neighbouring places (single places, where there are few blocks) by the first steps of a
    Fisher-Yates shuffle of the blocks. Any order of them is a start for the next round, so nothing is put back.
    """

    __slots__ = ("_blocks", "_order", "_size", "_taken", "among")

    def __init__(self, order: RowOrder) -> None:
        self._order = order
        self._size = 0
        self._blocks: list[int] = []
        self._taken = 0
        # sorted rows: what is drawn is then told by its position among them
        self.among: np.ndarray | None = None

    @property
    def count(self) -> int:
        return self._order.count

    def begin(self) -> None:
        """Start a round: all rows are there to be drawn."""
        self._taken = 0
        size = BLOCK if self.count >= BLOCK * FEWEST_BLOCKS else 1
        needed = -(-self.count // size)
        # blocks that rows have left are passed over, while they are not too many
        if size != self._size or len(self._blocks) > 2 * needed:
            self._size, self._blocks = size, list(range(needed))
        elif len(self._blocks) < needed:
            self._blocks.extend(range(len(self._blocks), needed))

    def take(self, wanted: int, rng: np.random.Generator) -> np.ndarray:
        """About `wanted` further rows; all that are left where there are not more."""
        found = self._next(wanted, rng)
        while len(found) < wanted and self._taken < len(self._blocks):
            found = np.concatenate((found, self._next(wanted - len(found), rng)))
        return found if self.among is None else np.searchsorted(self.among, found)

    def _next(self, wanted: int, rng: np.random.Generator) -> np.ndarray:
        start, blocks, size = self._taken, self._blocks, self._size
        stop = min(start + -(-wanted // size), len(blocks))
        if stop < len(blocks):
            for here, u in enumerate(rng.random(stop - start).tolist(), start):
                other = here + int(u * (len(blocks) - here))
                blocks[here], blocks[other] = blocks[other], blocks[here]
        self._taken = stop
        places = np.array(blocks[start:stop], dtype=np.int64)
        if size > 1:
            places = (places[:, None] * size + WITHIN).ravel()
        if len(blocks) * size > self.count:
            places = places[places < self.count]
        return np.asarray(self._order.rows[places])


class LooseSampler:
    """Draws positions 0 ... count - 1 one by one, for sections that are some of a table's rows and may be others at the
    next transition: nothing is prepared, and only what a round moved is remembered."""

    __slots__ = ("_moved", "_taken", "count")

    def __init__(self, count: int) -> None:
        self.count = count
        self._taken = 0
        # place -> position there, where it is another
        self._moved: dict[int, int] = {}

    def begin(self) -> None:
        self._taken = 0
        self._moved.clear()

    def take(self, wanted: int, rng: np.random.Generator) -> np.ndarray:
        """`wanted` further positions, or all that are left."""
        start, stop = self._taken, min(self._taken + wanted, self.count)
        self._taken, moved = stop, self._moved
        found = np.empty(stop - start, dtype=np.int64)
        for at, u in enumerate(rng.random(stop - start).tolist()):
            here = start + at
            other = here + int(u * (self.count - here))
            found[at] = moved.get(other, other)
            moved[other] = moved.pop(here, here)
        return found


AnySampler = Sampler | LooseSampler


def _grown(array: np.ndarray, size: int) -> np.ndarray:
    """Room for `size` numbers, NOWHERE in what is new."""
    if len(array) >= size:
        return array
    return np.concatenate((array, np.full(max(size, 2 * len(array)) - len(array), NOWHERE)))
