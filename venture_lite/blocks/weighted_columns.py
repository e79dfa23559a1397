"""The draws of `engines/weighted_labels.py` over columns: the same random numbers, and the same labels.

What each class gives to all labels is one evaluation of their rows, and all labels are drawn by one comparison. Those
that go over are led to their new classes together, by site; a class is opened by the first of its new members and
closed by the last of its old ones, which go one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from venture_lite.blocks.label_weights import MeasureDraw
from venture_lite.blocks.slices import SliceWidth
from venture_lite.blocks.summed_columns import IMPOSSIBLE, SummedClasses, moves_of, shared_cells
from venture_lite.interpreter.model import Model
from venture_lite.kernels.class_columns import ClassColumns
from venture_lite.kernels.label_rows import NotByColumns
from venture_lite.trace.nodes import site_of


class WeightedColumns:
    """The labels of one site, drawn given the weights of their classes. Mutable: `rows` counts."""

    def __init__(self, model: Model, node: int, width: SliceWidth | None = None) -> None:
        """Of the site of a label; with a width, other choices are moved with the labels summed out."""
        self._model, self._rng, self._node, self._width = model, model.trace.rng, node, width
        # evaluations of labels
        self.rows = 0

    @cached_property
    def _columns(self) -> ClassColumns:
        """Raises NotByColumns where the labels have none."""
        return ClassColumns(self._model, self._node)

    def draw(self, nodes: Sequence[int]) -> bool | None:
        """Draw the labels, after moving what else there is among some choices; whether something moved. None where
        they have no columns, and nothing was drawn."""
        before, self.rows = self._rng.bit_generator.state, 0
        try:
            return self._move(self._look(nodes))
        except NotByColumns:
            self._rng.bit_generator.state = before
            return None

    def has_columns(self, nodes: Sequence[int]) -> bool:
        """Whether the labels and what else there is have columns, as they stand. Nothing changes."""
        try:
            others = self._look(nodes)
            if self._width is not None:
                moves_of(self._model, self._columns, others, self._width)
        except NotByColumns:
            return False
        return True

    def _look(self, nodes: Sequence[int]) -> list[int]:
        """See who reads the labels; the other choices. Raises NotByColumns."""
        if self._width is None:
            self._columns.look(nodes)
            return []
        site = site_of(self._node)
        self._columns.look([node for node in nodes if site_of(node) == site])
        return [node for node in nodes if site_of(node) != site]

    def _move(self, others: Sequence[int]) -> bool:
        """Raises NotByColumns, before anything has changed but the generator."""
        columns, rng = self._columns, self._rng
        values = columns.values()
        tables = list(columns.state.tables)
        # they would go with their members
        classes = [(label, columns.parameters_of(label, np.flatnonzero(values == label))) for label in tables]
        moves = None if self._width is None else moves_of(self._model, columns, others, self._width)
        measure = MeasureDraw(rng, columns.state)
        widths = np.array([measure.width(measure.weights[label]) for label in tables])
        levels = widths[np.searchsorted(tables, values)] * (1.0 - rng.random(len(values)))
        classes += [(new.label, self._simulated(new.label)) for new in measure.broken(float(levels.min()))]
        shared: list[Any] = []
        with columns.standing_for(tables[0], IMPOSSIBLE) as cells:
            summed = SummedClasses(self._model, columns, cells, measure, classes, levels)
            if moves is not None:
                summed.move_classes(moves.places, moves.width)
                with shared_cells(moves.shared):
                    shared = [summed.move_shared(each, moves.width) for each in moves.shared]
            chosen = drawn_places(summed.log_weights(), rng.random(len(values)))
        self.rows += summed.rows
        labels = np.array(summed.labels)[chosen]
        if moves is None and bool((labels == values).all()):
            return False
        with self._model.transaction() as change:
            if moves is not None:
                for label, parameters in zip(tables, summed.parameters, strict=False):
                    columns.give(label, parameters)
                for each, value in zip(moves.shared, shared, strict=True):
                    self._model.put_value(each.node, value)
            opened = dict(zip(summed.labels[len(tables) :], summed.parameters[len(tables) :], strict=True))
            columns.reassign(values, labels, opened)
            change.keep()
        return True

    def _simulated(self, label: int) -> list[Any]:
        """Parameters of a new class from the prior, in the order in which evaluation would draw them."""
        columns = self._columns
        columns.refuse_known(label)
        drawn: list[Any] = [None] * len(columns.parameters)
        for place in columns.drawing_order:
            parameter = columns.parameters[place]
            drawn[place] = parameter.record.simulate(self._rng, *parameter.arguments)
        return drawn


def drawn_places(weights: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """A place (n,) for each of some draws, in proportion to log weights (K, n). Raises NotByColumns where none is
    possible."""
    best = weights.max(axis=0)
    if not bool(np.isfinite(best).all()):
        raise NotByColumns
    reached = np.cumsum(np.exp(weights - best), axis=0)
    found: np.ndarray = np.minimum((reached <= uniform * reached[-1]).sum(axis=0), len(weights) - 1)
    return found
