"""Parameters moved with the labels summed out, over columns: what `engines/summed_labels.py` does on the trace.

Given the weights of the classes and the levels of the labels each label has a few classes that it may choose. Its rows'
density, summed over these, is a number for each label, and what a parameter's new value makes of them is one evaluation
of rows. Which parameters are moved, and in which order, is a function of the weights alone: who has members at present
would say something of the labels that are summed out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.distributions import transform_of
from venture_lite.blocks.label_weights import MeasureDraw
from venture_lite.blocks.slices import SliceWidth, drawn_from_slice
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.kernels.class_columns import ClassColumns
from venture_lite.kernels.class_terms import ClassAtHand, Members
from venture_lite.kernels.label_rows import NotByColumns
from venture_lite.procedures.record import Random
from venture_lite.trace.nodes import row_of, site_of
from venture_lite.trace.table import Column

IMPOSSIBLE = -1e9
"""What a row of probability zero counts: of two states the one with fewer of them wins, whatever the others have, as
long as these are above it; and what others have keeps seven digits after the point."""


@dataclass(frozen=True, slots=True)
class SharedParameter:
    """A choice that the rows of all labels read, and no class."""

    node: int
    record: Random
    arguments: tuple[Any, ...]
    # where its value is
    column: Column


@dataclass(frozen=True, slots=True)
class SummedMoves:
    """Which parameters move with the labels summed out: places of those that each class has, and shared ones."""

    places: tuple[int, ...]
    shared: tuple[SharedParameter, ...]
    width: SliceWidth


class Last:
    """What was evaluated last, where a slice most often ends. Mutable."""

    def __init__(self) -> None:
        self._values: Sequence[Any] = ()
        self._terms: np.ndarray | Sequence[np.ndarray] = ()

    def were(self, values: Sequence[Any], terms: np.ndarray | Sequence[np.ndarray]) -> None:
        self._values, self._terms = values, terms

    def of(self, value: Any) -> np.ndarray | None:
        """The terms of a value; None where they are not known."""
        for known, terms in zip(self._values, self._terms, strict=True):
            if known == value if type(value) is float else np.array_equal(known, value):
                its: np.ndarray = terms
                return its
        return None


class SummedClasses:
    """All classes that some label may choose, with the labels summed out. Mutable: parameters move."""

    def __init__(
        self, model: Model, columns: ClassColumns, cells: ClassAtHand, measure: MeasureDraw,
        classes: Sequence[tuple[int, list[Any]]], levels: np.ndarray,
    ) -> None:  # fmt: skip
        """Of (label, parameters) of each class, and the levels of the labels (n,). Raises NotByColumns."""
        self._model, self._rng, self._columns, self._cells = model, model.trace.rng, columns, cells
        self.labels = [label for label, _ in classes]
        self.parameters = [list(parameters) for _, parameters in classes]
        self._weights = [measure.weights[label] for label in self.labels]
        self._is_wide = [measure.is_wide(label) for label in self.labels]
        self._log_odds = [measure.log_odds(label) for label in self.labels]
        widths = np.array([measure.width(weight) for weight in self._weights])
        # which classes a label may choose (K, n), and class by class these pairs as (class, label)
        self.visible = levels <= widths[:, None]
        self._everyone: Members = columns.everyone
        self._pairs = columns.pairs(self._everyone, self.visible)
        self._of_label = self._pairs.members
        ends = np.cumsum(self.visible.sum(axis=1)).tolist()
        self._parts = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        # of classes that every label may choose the pairs are the labels in their order; and the pairs of the others
        is_whole: np.ndarray = np.all(self.visible, axis=1)
        self._whole = [part for part, every in zip(self._parts, is_whole.tolist(), strict=True) if every]
        self._rest = np.flatnonzero(~is_whole[self._pairs.classes])
        self._of_rest = self._of_label[self._rest]
        self._log_odds_of_pairs = np.array(self._log_odds)[self._pairs.classes]
        # evaluations of labels
        self.rows = 0
        # the log weight of each pair, and as of the start the most that each label has (n,)
        self._terms = self._weighed()
        self._most = self.log_weights().max(axis=0)
        if not bool(np.isfinite(self._most).all()):
            raise NotByColumns
        self._most_of_pairs = self._most[self._of_label]
        # of each pair, over the most
        self._shares = np.exp(self._terms - self._most_of_pairs)

    def log_weights(self) -> np.ndarray:
        """Of each class for each label (K, n), -inf where a label may not choose it."""
        found = np.full(self.visible.shape, -math.inf)
        found[self.visible] = self._terms
        return found

    def _weighed(self) -> np.ndarray:
        """The log weights of the pairs, with the parameters as they are. Raises NotByColumns."""
        self.rows += self._pairs.count
        terms = self._cells.terms_where(self.parameters, self._everyone, self.visible, self._pairs)
        found: np.ndarray = terms + self._log_odds_of_pairs
        return found

    def _summed(
        self, shares: np.ndarray, part: slice = slice(0), terms: np.ndarray | Sequence[np.ndarray] = ()
    ) -> list[float]:
        """The log density of all labels, up to a constant, by what each has (P, n) over the most; where rounding took
        that to 0 or out of the floats, by the log weights of the pairs, of which a part is changed (P, p)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            totals: list[float] = np.log(shares).sum(axis=1).tolist()
        for at, total in enumerate(totals):
            if not math.isfinite(total):
                totals[at] = self._summed_in_logs(part, terms[at] if len(terms) else None)
        return totals

    def _summed_in_logs(self, part: slice, terms: np.ndarray | None) -> float:
        changed = self._terms.copy()
        if terms is not None:
            changed[part] = terms
        found = np.full(self.visible.shape, -math.inf)
        found[self.visible] = changed
        most = found.max(axis=0)
        if not bool(np.isfinite(most).all()):
            return -math.inf
        return float((most - self._most + np.log(np.exp(found - most).sum(axis=0))).sum())

    def _share_of(self, weights: np.ndarray) -> np.ndarray:
        """What each label has (n,), of what the pairs have."""
        found = np.zeros(len(self._most))
        if len(self._rest):
            found += np.bincount(self._of_rest, weights[self._rest], len(found))
        for part in self._whole:
            found += weights[part]
        return found

    # ------------------------------------------------------------------------------------------ parameters

    def move_classes(self, places: Sequence[int], width: SliceWidth) -> None:
        """Move parameters, by their places, of the classes that every label may choose, those of most weight first."""
        for at in sorted(range(len(self.labels)), key=lambda at: -self._weights[at]):
            if self._is_wide[at]:
                self._model.poll()
                self._move_class(at, places, width.of_class(self._weights[at], len(self._most)))

    def _move_class(self, at: int, places: Sequence[int], width: SliceWidth) -> None:
        part, values = self._parts[at], self.parameters[at]
        others = self._shares.copy()
        others[part] = 0.0
        rest = self._share_of(others)
        for place in places:
            parameter, last = self._columns.parameters[place], Last()

            def log_densities(candidates: Sequence[Any], place: int = place, last: Last = last) -> list[float]:
                self.rows += len(candidates) * len(rest)
                several = [[*values[:place], candidate, *values[place + 1 :]] for candidate in candidates]
                terms = self._cells.terms_of_lists(several, self._everyone) + self._log_odds[at]
                with np.errstate(over="ignore"):
                    shares = rest + np.exp(terms - self._most)
                last.were(candidates, terms)
                return self._summed(shares, part, terms)

            (here,) = self._summed((rest + self._shares[part])[None])
            values[place] = drawn_from_slice(
                self._rng, parameter.record, parameter.arguments, values[place], width, log_densities, here
            )
            terms = last.of(values[place])
            if terms is None:
                terms = self._cells.terms_of_lists([values], self._everyone)[0] + self._log_odds[at]
            self._terms[part] = terms
            with np.errstate(over="ignore"):
                self._shares[part] = np.exp(terms - self._most)

    def move_shared(self, parameter: SharedParameter, width: SliceWidth) -> Any:
        """Move a parameter that all classes share: its value, which stands in its cell until that is put back."""
        row, view, last = row_of(parameter.node), parameter.column.view, Last()

        def log_densities(candidates: Sequence[Any]) -> list[float]:
            found = []
            for value in candidates:
                view[row] = value
                terms = self._weighed()
                with np.errstate(over="ignore"):
                    shares = self._share_of(np.exp(terms - self._most_of_pairs))
                found += self._summed(shares[None], slice(None), [terms])
                last.were([value], [terms])
            return found

        (here,) = self._summed(self._share_of(self._shares)[None])
        value = drawn_from_slice(
            self._rng, parameter.record, parameter.arguments, view[row], width.of_all(len(self._most)), log_densities,
            here,
        )  # fmt: skip
        view[row] = value
        terms = last.of(value)
        self._terms = self._weighed() if terms is None else terms
        with np.errstate(over="ignore"):
            self._shares = np.exp(self._terms - self._most_of_pairs)
        return value


def moves_of(model: Model, columns: ClassColumns, nodes: Sequence[int], width: SliceWidth) -> SummedMoves:
    """What moves of some choices that are no labels. Raises NotByColumns where one of them cannot be moved over
    columns."""
    of_classes = {
        each.memo.procedure.code.first_site + each.slot: place for place, each in enumerate(columns.parameters)
    }
    sites = [site_of(node) for node in nodes]
    places = sorted({of_classes[site] for site in sites if site in of_classes})
    shared = [node for node, site in zip(nodes, sites, strict=True) if site not in of_classes]
    if any(transform_of(columns.parameters[place].record) is None for place in places):
        raise NotByColumns
    if sum(site in of_classes for site in sites) != len(places) * len(columns.state.tables):
        # those of some classes
        raise NotByColumns
    return SummedMoves(tuple(places), tuple([_shared(model, columns, node) for node in sorted(shared)]), width)


def _shared(model: Model, columns: ClassColumns, node: int) -> SharedParameter:
    """A choice that the rows of all labels read, and nothing else does. Raises NotByColumns."""
    trace = model.trace
    scaffold = Builder(trace, by_family=True, by_value=True).build([node], with_brush=False)
    if scaffold.pending or scaffold.structural or scaffold.makers or scaffold.users:
        raise NotByColumns
    if not columns.holds_all(list(scaffold.absorbing), list(scaffold.groups)):
        raise NotByColumns
    if columns.holds_all([node], ()):
        # its own density depends on a label that is summed out, and would count twice
        raise NotByColumns
    operator, arguments, _ = trace.choice(node)
    column = trace.column(site_of(node))
    if not isinstance(operator, Random) or transform_of(operator) is None or type(column) is not Column:
        raise NotByColumns
    return SharedParameter(node, operator, arguments, column)


@contextmanager
def shared_cells(parameters: Sequence[SharedParameter]) -> Iterator[None]:
    """The cells of shared parameters may be written meanwhile."""
    values = [each.column.view[row_of(each.node)] for each in parameters]
    try:
        yield
    finally:
        for each, value in zip(parameters, values, strict=True):
            each.column.view[row_of(each.node)] = value
