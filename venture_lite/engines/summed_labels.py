"""`slice` with 'weights: parameters moved with the labels summed out, given the weights of their classes.

Labels hold the parameters of classes in place: two classes that lie on each other exchange few members in a sweep, and
the spread of all of them is known from labels to less than it is without. Given the measure and the levels of
`engines/weighted_labels.py` a label may choose among a few classes, and the density of its rows can be summed over
these. So parameters are moved by slices of that sum (Neal 2003), and the labels are drawn afterwards.

The labels that stand at the beginning play no part in this: which classes have members, and how many, is forgotten with
them. So the classes whose parameters move are those that are wide enough for every label, in the order of their
weights; whether one has members is not asked. All parameters of such a class move that some label would read there:
those that its members do not read are drawn from their distributions beforehand (`KnownParameters.open`).

This is the definition, on the trace. `blocks/summed_columns.py` does the same over columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from venture_lite.blocks.distributions import refuse_discrete, transform_of
from venture_lite.blocks.label_weights import MeasureDraw
from venture_lite.blocks.slices import SliceWidth, drawn_from_slice
from venture_lite.engines.known_parameters import KnownParameters
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.addresses import Address
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.weights import NEVER, Weight
from venture_lite.procedures.record import Random
from venture_lite.trace.nodes import site_of

HINT = "slice without 'weights, or nuts"


@dataclass(frozen=True, slots=True)
class SlicedBlock:
    """What is moved besides labels: the sites of the parameters of classes, and choices that no class has."""

    sites: frozenset[int]
    shared: tuple[int, ...]


def sliced_block(model: Model, known: KnownParameters, others: Sequence[int]) -> SlicedBlock:
    """Of the choices of a block that are no labels. Raises KernelError where one cannot be moved so."""
    refuse_discrete("slice", HINT)(model, list(others))
    trace, among = model.trace, set(others)
    sites = frozenset(site_of(node) for node in others if known.holds(node))
    if any(site_of(node) in sites and node not in among for node in known.nodes):
        raise KernelError("slice with 'weights moves the parameters of all classes, and some are not in its block")
    for node in others:
        scaffold = Builder(trace).build([node], with_brush=False)
        if scaffold.structural or scaffold.makers:
            raise _refused(model, node, "the weights of classes, or which choices exist, depend on it")
        if any(known.holds(absorbing) for absorbing in scaffold.absorbing):
            raise _refused(model, node, "parameters of classes depend on it")
    return SlicedBlock(sites, tuple(sorted(node for node in others if not known.holds(node))))


def _refused(model: Model, node: int, why: str) -> KernelError:
    reason = f"slice with 'weights moves what the data of labels depend on, and {why}"
    return KernelError(reason, hint=HINT).at(*model.trace.place(*model.trace.decode(node)))


class WeighLabels(Protocol):
    """What each free label has in the classes that it may choose, with the parameters as they are: the log weights,
    relative to its present class's terms."""

    def __call__(self) -> Iterator[list[Weight]]: ...


class SummedSlices:
    """Moves the parameters of one measure's classes."""

    def __init__(
        self, model: Model, measure: MeasureDraw, known: KnownParameters, weigh: WeighLabels, width: SliceWidth,
        count: int,
    ) -> None:  # fmt: skip
        """`count` labels are summed out."""
        self._model, self._trace, self._measure, self._known = model, model.trace, measure, known
        self._weigh, self._width, self._count = weigh, width, count

    def move_classes(self, block: SlicedBlock) -> None:
        """Move the parameters of classes."""
        measure = self._measure
        for label in sorted(filter(measure.is_wide, measure.weights), key=lambda label: -measure.weights[label]):
            width = self._width.of_class(measure.weights[label], self._count)
            for place in self._known.parameters(label, block.sites):
                node = self._known.node(place)
                if node is None:
                    self._move_absent(place, width)
                else:
                    self._known.give(place, self._moved(node, width))

    def move_shared(self, block: SlicedBlock) -> None:
        """Move what no class has."""
        for node in block.shared:
            self._model.put_value(node, self._moved(node, self._width.of_all(self._count)))

    def _moved(self, node: int, width: SliceWidth) -> Any:
        """A new value of a choice of the trace."""
        operator, arguments, value = self._trace.choice(node)
        assert isinstance(operator, Random)
        before, prior = self._summed(), operator.log_density(value, *arguments)

        def log_density(candidate: Any) -> float:
            try:
                with self._model.transaction():
                    weight = self._model.put_value(node, candidate)
                    weight.plus(self._summed())
            except VentureError as error:
                if not rejects(self._model, error, ()):
                    raise
                weight = Weight(NEVER)
            return _relative(weight.minus(before)) - (operator.log_density(candidate, *arguments) - prior)

        return self._drawn(operator, arguments, value, width, log_density)

    def _move_absent(self, place: Address, width: SliceWidth) -> None:
        """Move a parameter that no member of a class holds."""
        known = self._known
        (operator, arguments), value = known.distribution(place), known.value(place)
        before = self._summed()

        def log_density(candidate: Any) -> float:
            known.give(place, candidate)
            return _relative(self._summed().minus(before))

        known.give(place, self._drawn(operator, arguments, value, width, log_density))

    def _drawn(
        self, operator: Random, arguments: tuple[Any, ...], value: Any, width: SliceWidth,
        log_density: Callable[[Any], float],
    ) -> Any:  # fmt: skip
        self._model.poll()
        assert transform_of(operator) is not None
        rng = self._trace.rng
        return drawn_from_slice(
            rng, operator, arguments, value, width, lambda values: list(map(log_density, values)), 0.0
        )

    def _summed(self) -> Weight:
        """The sum over labels of what each has in all its classes, over what it has in the present one."""
        total = Weight()
        for weights in self._weigh():
            fewest = min(weight.impossible for weight in weights)
            totals = [weight.total for weight in weights if weight.impossible == fewest]
            most = max(totals)
            total.plus(Weight(fewest, most + math.log(math.fsum(math.exp(each - most) for each in totals))))
        return total


def _relative(weight: Weight) -> float:
    """As one number: a state with fewer impossible terms is in every slice, one with more in none."""
    return weight.total if not weight.impossible else math.copysign(math.inf, -weight.impossible)
