"""Classes split and merged with the labels summed out, on the trace: the definition of what `slice` with 'splits does.

What is proposed is `blocks/summed_splits.py`, which asks for nothing but what labels have in a class whose parameters
are some. Here a label is led to a class that nobody has, whose parameters are given, and the densities of what absorbs
are summed. Classes with members that stay, observed ones or others outside the block, take no part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from venture_lite.blocks.label_weights import MeasureDraw
from venture_lite.blocks.slices import SliceWidth
from venture_lite.blocks.summed_columns import IMPOSSIBLE
from venture_lite.blocks.summed_splits import ClassPrior, FreeParameter, SummedSplits
from venture_lite.engines.known_parameters import KnownParameters
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.addresses import Address
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.weights import log_density

NOBODY = 1 << 40
"""The label of the class whose parameters are given; nothing keeps it."""


class SplitsOnTrace:
    """The classes of one measure, while labels may choose among them."""

    def __init__(
        self, model: Model, measure: MeasureDraw, known: KnownParameters, free: Sequence[int],
        levels: Sequence[float],
    ) -> None:  # fmt: skip
        """`free` are the labels that are summed out."""
        self._model, self._trace, self._measure, self._known = model, model.trace, measure, known
        self._free, self._levels = free, levels
        self._absorbing = [list(Builder(model.trace).build([node], with_brush=False).absorbing) for node in free]
        # where the parameters of a class that nobody has are
        self._places: list[Address] = []

    def move(
        self, times: int, width: SliceWidth | None, sites: frozenset[int], staying: frozenset[int]
    ) -> Mapping[str, int]:
        """Propose splits and merges of the classes but those of some labels, and with a width share weights out anew;
        how many, and how many stood. `sites` are those of the parameters that may move.

        Raises KernelError where classes have others.
        """
        with self._class_of_nobody():
            if not sites.issuperset(self._known.sites(NOBODY)):
                reason = "slice with 'splits moves all parameters of classes, and some are not in its block"
                raise KernelError(reason, hint="slice without 'splits")
            self._places = self._known.parameters(NOBODY, sites)
            wide = [label for label in self._measure.weights if self._measure.is_wide(label) and label not in staying]
            places = {label: self._known.parameters(label, sites) for label in wide}
            taking_part = {
                label: [self._known.value(place) for place in its_places]
                for label, its_places in places.items()
                if len(its_places) == len(self._places)
            }
            if not taking_part or not self._places:
                return {}
            distributions = [self._known.distribution(place) for place in self._places]
            prior = ClassPrior([FreeParameter(*each) for each in distributions], next(iter(taking_part.values())))
            splits = SummedSplits(
                self._trace.rng, self._measure, prior, self._terms, taking_part, self._others(taking_part)
            )
            for _ in range(times):
                self._model.poll()
                splits.propose()
            if width is not None:
                splits.move_weights(width)
            splits.reuse(map(self._trace.value, self._free))
        self._stand(taking_part, splits, sites)
        return splits.counts

    @contextmanager
    def _class_of_nobody(self) -> Iterator[None]:
        self._open(NOBODY)
        try:
            yield
        finally:
            self._known.forget(NOBODY)

    def _open(self, label: int) -> None:
        """Draw the parameters of a class, which get other values: the generator stays as it is."""
        generator = self._trace.rng.bit_generator
        before = generator.state
        self._known.open(label, self._free)
        generator.state = before

    # ---------------------------------------------------------------------------------------- what labels have

    def _terms(self, several: Sequence[Sequence[Any]]) -> np.ndarray:
        found = []
        for values in several:
            for place, value in zip(self._places, values, strict=True):
                self._known.give(place, value)
            found.append([self._absorbed(at, NOBODY) for at in range(len(self._free))])
        return np.array(found)

    def _absorbed(self, at: int, label: int) -> float:
        """The log density of what absorbs a label in a class, what is impossible counted as over columns."""
        model, node = self._model, self._free[at]
        try:
            with model.transaction():
                if self._trace.value(node) != label:
                    model.put_value(node, label)
                terms = [log_density(self._trace, absorbing) for absorbing in self._absorbing[at]]
                return math.fsum(IMPOSSIBLE if term == -math.inf else term for term in terms)
        except VentureError as error:
            if not rejects(model, error, ()):
                raise
            return IMPOSSIBLE

    def _others(self, taking_part: Mapping[int, Any]) -> np.ndarray:
        """The log density of each label in the classes that take no part and that it may choose."""
        found = np.full(len(self._free), -math.inf)
        for at, level in enumerate(self._levels):
            for label, log_odds in self._measure.wider_than(level):
                if label not in taking_part:
                    found[at] = np.logaddexp(found[at], log_odds + self._absorbed(at, label))
        return found

    # ------------------------------------------------------------------------------------------------- standing

    def _stand(self, before: Mapping[int, Any], splits: SummedSplits, sites: frozenset[int]) -> None:
        """Give classes the weights and parameters that they have now."""
        weights = {each.label: each.weight for each in splits.classes}
        self._measure.stand([label for label in before if label not in weights], weights)
        for each in splits.classes:
            if each.label not in before:
                self._open(each.label)
            for place, value in zip(self._known.parameters(each.label, sites), each.values, strict=True):
                self._known.give(place, value)
