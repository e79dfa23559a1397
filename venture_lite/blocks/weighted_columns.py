"""The draws of `engines/weighted_labels.py` over columns: the same random numbers, and the same labels.

What each class gives to all labels is one evaluation of their rows, and all labels are drawn by one comparison. Those
that go over are led to their new classes together, by site; a class is opened by the first of its new members and
closed by the last of its old ones, which go one by one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from venture_lite.blocks.label_classes import is_label
from venture_lite.blocks.label_weights import MeasureDraw
from venture_lite.blocks.slices import SliceWidth
from venture_lite.blocks.summed_columns import IMPOSSIBLE, SummedClasses, SummedMoves, moves_of, shared_cells
from venture_lite.blocks.summed_splits import ClassPrior, FreeParameter, SummedSplits, parts_of
from venture_lite.interpreter.model import Model
from venture_lite.kernels.class_columns import ClassColumns
from venture_lite.kernels.class_terms import ClassAtHand
from venture_lite.kernels.label_rows import NotByColumns
from venture_lite.trace.nodes import site_of, sites_of


class WeightedColumns:
    """The labels of one site, drawn given the weights of their classes. Mutable: `rows` counts."""

    def __init__(self, model: Model, node: int, width: SliceWidth | None = None, splits: int = 0) -> None:
        """Of the site of a label; with a width, other choices are moved with the labels summed out, and so many splits
        and merges of classes proposed before."""
        self._model, self._rng, self._node, self._width = model, model.trace.rng, node, width
        self._splits = splits
        # splits and merges proposed and accepted in the last draw
        self.counts: Counter[str] = Counter()
        # evaluations of labels
        self.rows = 0

    @cached_property
    def _columns(self) -> ClassColumns:
        """Raises NotByColumns where the labels have none."""
        return ClassColumns(self._model, self._node)

    def draw(self, nodes: Sequence[int]) -> bool | None:
        """Draw the labels, after moving what else there is among some choices; whether something moved. None where
        they have no columns, and nothing was drawn."""
        before, self.rows, self.counts = self._rng.bit_generator.state, 0, Counter()
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
                self._moves_of(others, self._width)
        except NotByColumns:
            return False
        return True

    def _moves_of(self, others: Sequence[int], width: SliceWidth) -> SummedMoves:
        """Raises NotByColumns."""
        moves = moves_of(self._model, self._columns, others, width)
        if self._splits and len(moves.places) < len(self._columns.parameters):
            raise NotByColumns
        return moves

    def _look(self, nodes: Sequence[int]) -> list[int]:
        """See who reads the labels; the other choices. Raises NotByColumns."""
        if self._width is None:
            self._columns.look(nodes)
            return []
        is_label = (sites_of(nodes) == site_of(self._node)).tolist()
        self._columns.look(list(compress(nodes, is_label)))
        return [node for node, its in zip(nodes, is_label, strict=True) if not its]

    def _move(self, others: Sequence[int]) -> bool:
        """Raises NotByColumns, before anything has changed but the generator."""
        columns, rng = self._columns, self._rng
        values = columns.values()
        tables = list(columns.state.tables)
        # they would go with their members
        classes = [(label, columns.parameters_of(label, np.flatnonzero(values == label))) for label in tables]
        moves = None if self._width is None else self._moves_of(others, self._width)
        measure = MeasureDraw(rng, columns.state)
        widths = np.array([measure.width(measure.weights[label]) for label in tables])
        levels = widths[np.searchsorted(tables, values)] * (1.0 - rng.random(len(values)))
        classes += [(new.label, self._simulated(new.label)) for new in measure.broken(float(levels.min()))]
        shared: list[Any] = []
        with columns.standing_for(tables[0], IMPOSSIBLE) as cells, shared_cells(() if moves is None else moves.shared):
            parts = parts_of(self._splits, bool(moves is not None and moves.shared))
            for at, times in enumerate(parts, 1):
                if times:
                    width = self._width if at == len(parts) else None
                    classes = self._split(cells, measure, dict(classes), levels, times, width)
                summed = SummedClasses(self._model, columns, cells, measure, classes, levels)
                if moves is not None:
                    if at == len(parts):
                        summed.move_classes(moves.places, moves.width)
                    shared = [summed.move_shared(each, moves.width) for each in moves.shared]
                self.rows += summed.rows
            chosen = drawn_places(summed.log_weights(), rng.random(len(values)))
        labels = np.array(summed.labels)[chosen]
        if moves is None and bool((labels == values).all()):
            return False
        found = dict(zip(summed.labels, summed.parameters, strict=True))
        with self._model.transaction() as change:
            if moves is not None:
                for label in set(tables).intersection(found):
                    columns.give(label, found[label])
                for each, value in zip(moves.shared, shared, strict=True):
                    self._model.put_value(each.node, value)
            opened = {label: parameters for label, parameters in found.items() if label not in tables}
            columns.reassign(values, labels, opened)
            change.keep()
        return True

    def _split(
        self, cells: ClassAtHand, measure: MeasureDraw, classes: Mapping[int, list[Any]], levels: np.ndarray,
        times: int, width: SliceWidth | None,
    ) -> list[tuple[int, list[Any]]]:  # fmt: skip
        """Split and merge classes, given with their parameters, and with a width share weights out anew: the classes
        that there are then. Raises NotByColumns."""
        columns = self._columns
        wide = {label: classes[label] for label in classes if measure.is_wide(label)}
        if not wide or not columns.parameters:
            return list(classes.items())
        everyone = columns.everyone
        prior = ClassPrior(
            [FreeParameter(each.record, each.arguments) for each in columns.parameters], next(iter(wide.values()))
        )

        def terms(several: Sequence[Sequence[Any]]) -> np.ndarray:
            return cells.terms_of_lists(several, everyone)

        narrow = [label for label in classes if label not in wide]
        sees = levels <= np.array([measure.weights[label] for label in narrow]).reshape(-1, 1)
        others = np.full(len(levels), -math.inf)
        if sees.any():
            in_narrow = np.full(sees.shape, -math.inf)
            parameters = [classes[label] for label in narrow]
            in_narrow[sees] = cells.terms_where(parameters, everyone, sees, columns.pairs(everyone, sees))
            others = np.logaddexp.reduce(in_narrow, axis=0)
        splits = SummedSplits(self._rng, measure, prior, terms, wide, others)
        for _ in range(times):
            self._model.poll()
            splits.propose()
        if width is not None:
            splits.move_weights(width)
        splits.reuse(columns.state.tables)
        self.counts.update(splits.counts)
        self.rows += splits.points * len(levels)
        now = {each.label: each for each in splits.classes}
        measure.stand(
            [label for label in wide if label not in now], {label: each.weight for label, each in now.items()}
        )
        return [(label, now[label].values if label in now else classes[label]) for label in measure.weights]

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


def has_columns(model: Model, nodes: Sequence[int]) -> bool:
    """Whether the labels among some choices could be moved over columns, as they stand. Nothing changes."""
    label = next((node for node in nodes if is_label(model.trace, node)), None)
    return label is not None and WeightedColumns(model, label).has_columns(nodes)
