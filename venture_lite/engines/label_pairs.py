"""Which two labels of one maker a split or a merge begins from, and how probable that is.

Whether a class is to be split or to be merged is a coin. The first label of a split is any, the second any other member
of its class. The first label of a merge is mostly one of a class that is drawn among all: of two classes that could be
one the smaller has few of the labels, and would seldom be found by them. For the second label a class is drawn first,
mostly by the conditional distribution of the first label: classes that lie where others do explain each other's data,
and of two that lie apart no merge is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from venture_lite.blocks.label_classes import by_label, free_labels, labels_by_maker
from venture_lite.blocks.label_shares import BY_CLASS, drawn_index, shares_of
from venture_lite.errors import VentureError
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import NEVER, Weight
from venture_lite.values import key_of


@dataclass(frozen=True, slots=True)
class LabelPair:
    """Two labels of one maker, whose class is to be split or whose classes are to be merged."""

    maker: int
    first: int
    second: int
    splits: bool
    # whether the first label of a merge is drawn by its class
    by_class: bool


class LabelPairs:
    """The pairs of one state."""

    def __init__(self, model: Model, nodes: Sequence[int]) -> None:
        """Of the labels among some choices."""
        self._model = model
        self.every = labels_by_maker(model)
        self._free = free_labels(self.every, nodes)

    def drawn(self) -> LabelPair | None:
        """None where there is no second label."""
        rng = self._model.trace.rng
        by_class, splits = rng.random() < BY_CLASS, rng.random() < 0.5
        labels = [(maker, node) for maker, members in self._free.items() for node in members]
        if not labels:
            return None
        if by_class and not splits:
            every = self._classes()
            maker, members = every[int(rng.random() * len(every))]
            first = members[int(rng.random() * len(members))]
        else:
            maker, first = labels[int(rng.random() * len(labels))]
        classes = by_label(self._model.trace, self._free[maker])
        own = classes.pop(key_of(self._model.trace.value(first)))
        if splits:
            others = [node for node in own if node != first]
        elif classes:
            others = list(classes.values())[drawn_index(self._shares(first, classes), rng.random())]
        else:
            return None
        if not others:
            return None
        return LabelPair(maker, first, others[int(rng.random() * len(others))], splits, by_class)

    def _classes(self) -> list[tuple[int, list[int]]]:
        """All classes that have free labels, with their makers."""
        trace = self._model.trace
        return [(maker, each) for maker, free in self._free.items() for each in by_label(trace, free).values()]

    def log_probability(self, pair: LabelPair, splits: bool) -> float:
        """That two labels are drawn, to be split or to be merged."""
        trace = self._model.trace
        classes = by_label(trace, self._free[pair.maker])
        own, other = (key_of(trace.value(node)) for node in (pair.first, pair.second))
        among = -math.log(2 * sum(map(len, self._free.values())))
        if splits:
            return among - math.log(len(classes[own]) - 1)
        if pair.by_class:
            among = -math.log(2 * len(self._classes())) - math.log(len(classes[own]))
        members = classes.pop(own), classes[other]
        share = self._shares(pair.first, classes)[list(classes).index(other)]
        return among + math.log(share) - math.log(len(members[1]))

    def _shares(self, first: int, classes: dict[Any, list[int]]) -> list[float]:
        """The probability of each class but the first label's own."""
        return shares_of([self._weight(first, members[0]) for members in classes.values()])

    def _weight(self, node: int, other: int) -> Weight:
        """The log weight that the label of another has for a choice; nothing is left of it."""
        model = self._model
        try:
            with model.transaction():
                return model.put_value(node, model.trace.value(other))
        except VentureError as error:
            if not rejects(model, error, ()):
                raise
            return Weight(NEVER)
