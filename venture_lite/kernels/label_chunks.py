"""What reads the labels of one site absorbs in each class, for the labels of a chunk of rows together.

While nothing but labels moves, the families that a class leads to stay as they are, and so does a column: the log
density of what reads each label of a chunk, were that its class.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.interpreter.model import Model
from venture_lite.kernels.label_rows import LabelReader, LabelRows, Layout, NotByColumns, group_terms
from venture_lite.kernels.preview import Drawable
from venture_lite.program.code import Code

CHUNK = 1024
"""Rows of labels whose columns are made together."""

Families = dict[LabelReader, tuple[list[int], dict[int, Any]]]
"""For each way to read a label what its calls lead to in a class: rows of families, and results."""


@dataclass(slots=True)
class Chunk:
    """Who reads the labels of CHUNK rows. Mutable: as of the last look at who uses them."""

    number: int
    layout: Layout
    # (CHUNK,) how many choices absorb, -1 where there is no label with columns, or one that is applied; and which
    # labels have several users, who may change without a trace
    absorbing: np.ndarray
    several: np.ndarray
    # how many labels have columns, and the ways in which these are read
    labels: int
    kinds: set[tuple[LabelReader, ...]]
    stamp: tuple[int, int]

    def part(self, places: np.ndarray) -> Layout:
        """The layout of the labels at some places (n,), numbered as these are."""
        position = np.full(len(self.absorbing), -1)
        position[places] = np.arange(len(places))
        found = []
        for reader, at, rows in self.layout:
            owners = position[at]
            found.append((reader, owners[owners >= 0], rows[owners >= 0]))
        return found


class LabelChunks:
    """The labels of one site. Mutable: what it knows of classes holds while these stay."""

    def __init__(self, model: Model, code: Code, slot: int) -> None:
        """Raises NotByColumns where the labels of the site have no columns."""
        self.rows = LabelRows(model, code, slot, self._forget)
        self._table = model.trace.tables[code.index]
        self._chunks: dict[int, Chunk] = {}
        self.begin()

    def begin(self) -> None:
        """Nothing is known of classes."""
        self._classes: dict[int, Families] = {}
        # (chunk, class) -> the log density of what reads each label (CHUNK,)
        self._columns: dict[tuple[int, int], np.ndarray] = {}
        # a chunk with its columns in the order of the classes
        self._at_hand: tuple[int, list[list[float]]] | None = None

    def forget_classes(self, besides: Container[int]) -> None:
        """Classes may have come, or gone but for some; so may the families of those, which unread labels may keep."""
        self._at_hand = None
        self._classes = {
            label: known for label, known in self._classes.items() if label in besides and self._stands(label, known)
        }
        self._columns = {key: column for key, column in self._columns.items() if key[1] in self._classes}

    def _stands(self, label: int, known: Families) -> bool:
        try:
            return all(self.rows.led_to(reader, label)[0] == families for reader, (families, _) in known.items())
        except NotByColumns:
            return False

    def _forget(self, row: int) -> None:
        """A label is read otherwise than before: the columns of its chunk were made without it."""
        number = row // CHUNK
        self._chunks.pop(number, None)
        self._columns = {key: column for key, column in self._columns.items() if key[0] != number}
        self._at_hand = None

    # --------------------------------------------------------------------------------------------- who reads

    def chunk(self, number: int, draws: Drawable) -> Chunk:
        """As of when it was first asked for."""
        found = self._chunks.get(number)
        if found is None:
            # the look at its labels may find that some are read otherwise than before
            found = self._laid_out(number, draws)
            self._chunks[number] = found
        return found

    def _laid_out(self, number: int, draws: Drawable) -> Chunk:
        first, places = number * CHUNK, dict[LabelReader, tuple[list[int], list[int]]]()
        absorbing, several, kinds, labels = np.full(CHUNK, -1), np.zeros(CHUNK, bool), set[tuple[LabelReader, ...]](), 0
        for row in range(first, min(first + CHUNK, self._table.count)):
            if not self._table.live[row]:
                self.rows.drop(row)
                continue
            label = self.rows.of(row, draws)
            if label is None:
                continue
            at, labels = row - first, labels + 1
            absorbing[at], several[at] = -1 if label.is_applied else label.terms, len(label.users) > 1
            for reader, its_row in label.readers:
                known = places.setdefault(reader, ([], []))
                known[0].append(at)
                known[1].append(its_row)
            kinds.add(label.kinds)
        layout = [(reader, np.array(at), np.array(rows)) for reader, (at, rows) in places.items()]
        return Chunk(number, layout, absorbing, several, labels, kinds, self._stamp())

    def _stamp(self) -> tuple[int, int]:
        return self._table.shape_stamp, self._table.user.stamp

    def together(self, rows: list[int], draws: Drawable) -> tuple[Chunk, np.ndarray]:
        """The chunk of the first of some labels, as things are now, and the places (n,) there of the first ones: those
        that are in the chunk, and not applied. Raises NotByColumns."""
        number = rows[0] // CHUNK
        places = np.array(rows) - number * CHUNK
        places = places[: first_of((places < 0) | (places >= CHUNK))]
        found, stamp = self.chunk(number, draws), self._stamp()
        if found.stamp != stamp:
            live = bytes(self._table.live[number * CHUNK : number * CHUNK + CHUNK])
            doubtful = np.flatnonzero(np.frombuffer(live, np.uint8))
        else:
            doubtful = places[found.several[places]]
        for place in doubtful.tolist():
            self.rows.of(number * CHUNK + place, draws)
        if self._chunks.get(number) is not found:
            raise NotByColumns
        found.stamp = stamp
        return found, places[: first_of(found.absorbing[places] < 0)]

    def kinds(self, count: int, draws: Drawable) -> tuple[LabelReader, ...]:
        """The ways in which each of so many labels, all of a maker's, is read: the families of a class are there while
        it has a member. Raises NotByColumns where labels differ."""
        chunks = [self.chunk(number, draws) for number in range(-(-self._table.count // CHUNK))]
        kinds = set[tuple[LabelReader, ...]]().union(*(chunk.kinds for chunk in chunks))
        if sum(chunk.labels for chunk in chunks) != count or len(kinds) != 1:
            raise NotByColumns
        return kinds.pop()

    # ------------------------------------------------------------------------------------------- what absorbs

    def terms(self, row: int, labels: list[int], draws: Drawable) -> list[float]:
        """The log density of what reads a label in each class, but for what is applied. Raises NotByColumns."""
        number, at = divmod(row, CHUNK)
        if self._at_hand is None or self._at_hand[0] != number:
            chunk = self.chunk(number, draws)
            if self.rows.of(row, draws) is None:
                # the look at the labels of the chunk found that another one is read with it
                raise NotByColumns
            self._at_hand = number, [self.column(chunk, label).tolist() for label in labels]
        return [column[at] for column in self._at_hand[1]]

    def column(self, chunk: Chunk, label: int) -> np.ndarray:
        """The log density (CHUNK,) of what reads the labels of a chunk, were this their class. Raises NotByColumns."""
        found = self._columns.get((chunk.number, label))
        if found is None:
            found = np.zeros(CHUNK)
            for reader, at, rows in chunk.layout:
                families = self.families(label)[reader][0]
                for group in reader.groups:
                    group.families[:] = families
                    # a label may be read in several rows
                    np.add.at(found, at, group_terms(group, rows))
            self._columns[chunk.number, label] = found
        return found

    def families(self, label: int) -> Families:
        """Of a class. Raises NotByColumns where they do not exist."""
        known = self._classes.setdefault(label, {})
        for reader in self.rows.readers:
            if reader not in known:
                known[reader] = self.rows.led_to(reader, label)
        return known


def first_of(where: np.ndarray) -> int:
    """The first place at which a mask (n,) holds; n where it does nowhere."""
    return int(where.argmax()) if where.any() else len(where)
