"""The draws of `engines/weighted_labels.py` over columns: the same random numbers, and the same labels.

What each class gives to all labels is one evaluation of their rows, and all labels are drawn by one comparison. Those
that go over are led to their new classes together, by site; a class is opened by the first of its new members and
closed by the last of its old ones, which go one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from venture_lite.blocks.label_weights import MeasureDraw
from venture_lite.interpreter.model import Model
from venture_lite.kernels.class_columns import ClassColumns, Members
from venture_lite.kernels.label_rows import NotByColumns


@dataclass(frozen=True, slots=True)
class OpenedClass:
    """A class that has no members yet, with its parameters."""

    label: int
    parameters: list[Any]


class WeightedColumns:
    """The labels of one site, drawn given the weights of their classes. Mutable: `rows` counts."""

    def __init__(self, model: Model, node: int) -> None:
        """Of the site of a label."""
        self._model, self._rng, self._node = model, model.trace.rng, node
        # evaluations of labels
        self.rows = 0

    @cached_property
    def _columns(self) -> ClassColumns:
        """Raises NotByColumns where the labels have none."""
        return ClassColumns(self._model, self._node)

    def draw(self, nodes: Sequence[int]) -> bool | None:
        """Draw the labels; whether one moved. None where they have no columns, and nothing was drawn."""
        before, self.rows = self._rng.bit_generator.state, 0
        try:
            self._columns.look(nodes)
            values = self._columns.values()
            labels, opened = self._drawn(values)
            if bool((labels == values).all()):
                return False
            self._columns.reassign(values, labels, {each.label: each.parameters for each in opened})
        except NotByColumns:
            self._rng.bit_generator.state = before
            return None
        return True

    def _drawn(self, values: np.ndarray) -> tuple[np.ndarray, list[OpenedClass]]:
        """New labels (n,), and the classes without members among which they were drawn. Raises NotByColumns."""
        columns, rng, count = self._columns, self._rng, len(values)
        for label in columns.state.tables:
            # they would go with their members
            columns.parameters_of(label, np.flatnonzero(values == label))
        measure = MeasureDraw(rng, columns.state)
        tables = np.array(columns.state.tables)
        widths = np.array([measure.width(measure.weights[label]) for label in tables.tolist()])
        levels = widths[np.searchsorted(tables, values)] * (1.0 - rng.random(count))
        opened = [self._opened(new.label) for new in measure.broken(float(levels.min()))]
        uniform = rng.random(count)
        everyone = columns.members(np.arange(count))
        found = np.full((len(measure.weights), count), -math.inf)
        for place, label in enumerate(tables.tolist()):
            found[place] = self._fits(measure, label, levels, columns.terms(label, everyone))
        with columns.standing_for(int(tables[0])) as cells:
            for place, new in enumerate(opened, len(tables)):
                wide = np.flatnonzero(levels <= measure.width(measure.weights[new.label]))
                terms = cells.terms(new.parameters, _some(columns, everyone, wide))
                found[place, wide] = measure.log_odds(new.label) + terms
                self.rows += len(wide)
        self.rows += len(tables) * count
        chosen = drawn_places(found, uniform)
        return np.array([*tables.tolist(), *(new.label for new in opened)])[chosen], opened

    def _opened(self, label: int) -> OpenedClass:
        """A class with parameters from the prior, in the order in which evaluation would draw them."""
        columns = self._columns
        drawn: list[Any] = [None] * len(columns.parameters)
        for place in columns.drawing_order:
            parameter = columns.parameters[place]
            drawn[place] = parameter.record.simulate(self._rng, *parameter.arguments)
        return OpenedClass(label, drawn)

    @staticmethod
    def _fits(measure: MeasureDraw, label: int, levels: np.ndarray, terms: np.ndarray) -> np.ndarray:
        """The log weight (n,) of a class for each label, -inf where it is too narrow."""
        wide = levels <= measure.width(measure.weights[label])
        return np.where(wide, terms + measure.log_odds(label), -math.inf)


def _some(columns: ClassColumns, members: Members, positions: np.ndarray) -> Members:
    mask = np.zeros(members.count, bool)
    mask[positions] = True
    return columns.some(members, mask)


def drawn_places(weights: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """A place (n,) for each of some draws, in proportion to log weights (K, n). Raises NotByColumns where none is
    possible."""
    best = weights.max(axis=0)
    if not bool(np.isfinite(best).all()):
        raise NotByColumns
    reached = np.cumsum(np.exp(weights - best), axis=0)
    found: np.ndarray = np.minimum((reached <= uniform * reached[-1]).sum(axis=0), len(weights) - 1)
    return found
