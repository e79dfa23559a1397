"""The weights that classes have in the random measure of a Chinese restaurant process, drawn given a partition.

What a kernel on the trace and one over columns have in common: both draw the same numbers in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from venture_lite.procedures.exchangeable.crp import CrpState

WIDTH = 0.5
"""Of the slices of classes that are not small, in units of the weight of one label among all: the smaller, the more new
classes a label looks at, a stick for each factor of 1 + 1 / concentration."""

LEAST = 1e-300
"""A weight, which rounding may take to 0."""


@dataclass(frozen=True, slots=True)
class NewClass:
    """A class without members: a label that no other has, and its weight."""

    label: int
    weight: float


class MeasureDraw:
    """The weights of the classes of one maker. Mutable: new classes are broken off what is left."""

    def __init__(self, rng: np.random.Generator, state: CrpState) -> None:
        self._rng, self._concentration = rng, state.concentration
        shares = [rng.standard_gamma(state.counts[label]) for label in state.tables]
        left = rng.standard_gamma(self._concentration)
        total = math.fsum(shares) + left
        # of the classes, and what all others have
        self.weights = {label: max(share / total, LEAST) for label, share in zip(state.tables, shares, strict=True)}
        self._left = left / total
        # beyond it all classes are as wide
        self._width = WIDTH / state.count
        self._labels = _unused(state.tables)

    def width(self, weight: float) -> float:
        return min(weight, self._width)

    def slice_of(self, label: int, u: float) -> float:
        """A level below the width of a label's class, of a number of [0, 1)."""
        return self.width(self.weights[label]) * (1.0 - u)

    def broken(self, level: float) -> Iterator[NewClass]:
        """Break what is left into classes until no other can be as wide as a level: those that are."""
        while self._left >= level:
            stick = self._rng.beta(1.0, self._concentration)
            weight, self._left = self._left * stick, self._left * (1.0 - stick)
            if self.width(weight) >= level:
                new = NewClass(next(self._labels), weight)
                self.weights[new.label] = weight
                yield new

    @property
    def widest(self) -> float:
        """No class is wider."""
        return self._width

    @property
    def concentration(self) -> float:
        return self._concentration

    def unused(self) -> int:
        """A label that no class has."""
        return next(self._labels)

    def is_wide(self, label: int) -> bool:
        """Whether a class is among those that every label may choose, whatever its level."""
        return self.weights[label] >= self._width

    def log_odds(self, label: int) -> float:
        """Of a class among those that are wide enough."""
        weight = self.weights[label]
        return math.log(weight) - math.log(self.width(weight))

    def stand(self, gone: Iterable[int], weights: Mapping[int, float]) -> None:
        """Give classes other weights, which have the same sum, and forget some."""
        for label in gone:
            del self.weights[label]
        self.weights.update(weights)

    def wider_than(self, level: float) -> list[tuple[int, float]]:
        """The classes that a label may choose, with their log odds."""
        return [(label, self.log_odds(label)) for label, weight in self.weights.items() if self.width(weight) >= level]


def _unused(tables: Sequence[int]) -> Iterator[int]:
    """Labels that no draw has, the smallest first."""
    used, label = set(tables), 1
    while True:
        if label not in used:
            yield label
        label += 1
