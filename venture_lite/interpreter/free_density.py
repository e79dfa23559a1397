"""A block's log density in free coordinates as the interpreter has it, and how a faster one is held against it.

The faster one is compared where the block stands and at one other place, its gradient with differences along the line
between both. The other place is a fixed one, and no number is taken from the trace's generator.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from venture_lite.errors import InternalError, VentureError
from venture_lite.interpreter.ancestry import name_of_choice
from venture_lite.interpreter.answers import interpreted_weights, magnitude
from venture_lite.interpreter.impossible import first_outside
from venture_lite.interpreter.rounding import along_line, slope_agrees
from venture_lite.interpreter.weights import Weight, log_density
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import Transform
from venture_lite.program.code import Code
from venture_lite.trace.trace import Trace

if TYPE_CHECKING:
    from venture_lite.interpreter.model import Model

Made = TypeVar("Made")

DENSITY, FUNCTION, HESSIAN = "the log density and its slopes", "the function of the log density", "second derivatives"
"""What is compared."""
MOST_UNANSWERED = 3
"""Tries to compare something of a block, whose density has no value where it stands, until it is believed."""

TOLERANCE = 1e-8
"""Of the sum of the magnitudes of a log density's terms."""
GRADIENTS, SMALL = 1e-6, 1e-3
"""What gradients of one density may differ by, relative to each number, and to the largest times SMALL."""
SHARE = 0.1
"""Of the way to a place, how near to it coordinates must come back: near the ends of the floats many are one value."""
ASIDE, NEARER, TRIES = 0.3, 8.0, 8
"""How far the other place lies, in normal steps of each coordinate; what that is divided by where the density has no
finite value there, and how often."""


class FreeValues:
    """A proposal that puts choices at free coordinates. Mutable: it stands at some choices.

    What the distribution of a choice reads may change with other choices of the block.
    """

    counts = True

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        # by choice: its transform, the log Jacobian of its value, its free coordinates, and whether it is a number
        self.stood: dict[int, tuple[Transform, float, np.ndarray, bool]] = {}

    def stand(self, nodes: Iterable[int]) -> None:
        """At choices in their present state."""
        self.stood = {}
        for node in nodes:
            operator, arguments = self._trace.application(node)
            value = self._trace.value(node)
            transform = operator.transform if isinstance(operator, Random) else operator.record.transform
            if transform is None:
                raise InternalError("a discrete choice has no coordinates")
            free = np.array(transform.to_free(value, arguments), dtype=np.float64)
            is_number = not isinstance(value, (np.ndarray, tuple))
            self.stood[node] = transform, transform.log_jacobian(value, arguments), free, is_number

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """The old values are known."""

    def returned(self, node: int) -> np.ndarray:
        """The free coordinates of the value that a choice has at its coordinates, which rounding makes others."""
        transform, _, free, is_number = self.stood[node]
        _, arguments = self._trace.application(node)
        value = transform.from_free(float(free) if is_number else free.copy(), arguments)
        return np.asarray(transform.to_free(value, arguments))

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        transform, before, free, is_number = self.stood[node]
        value = transform.from_free(float(free) if is_number else free.copy(), arguments)
        return value, transform.log_jacobian(value, arguments) - before


class FreeDensity(Protocol):
    """A block's log density in free coordinates (D,). `put` moves the trace, what the journal holds takes it back;
    `evaluate` gives the log density where the block was put, and its gradient."""

    # the free coordinates of each choice
    places: dict[int, slice]

    def present(self) -> np.ndarray: ...

    def put(self, free: np.ndarray) -> None: ...

    def evaluate(self) -> tuple[Weight, np.ndarray]: ...

    def hessian(self) -> np.ndarray | None: ...


class AnsweringDensity(FreeDensity, Protocol):
    """A density that knows what of it was compared."""

    # by what is compared: whether it agrees with the interpreter; and how often that could not be said
    answered: dict[str, bool]
    unanswered: int

    def kind(self) -> tuple[Hashable, ...]:
        """Equal in blocks that read alike."""


def is_right(
    model: Model, density: AnsweringDensity, what: str, difference: Callable[[DensityLine], str | None]
) -> bool:
    """True if something of a density agrees with the interpreter's. Of blocks of one kind the first are compared, each
    once its density has a value around the place where it stands."""
    answers, known = model.answers, density.answered
    if what in known and not answers.always:
        return known[what]
    key, block = (what, *density.kind()), list(density.places)
    if answers.due(key) and first_outside(model, block) is None:
        density.unanswered += 1
        with answers.comparing(), suppress(VentureError):
            try:
                found = difference(DensityLine(model, density))
            except VentureError:
                raise
            except Exception as error:
                found = f"an error, {error!r}"
            density.unanswered -= 1
            known[what] = answers.judge(key, f"{what} of {name_of_choice(model.trace, block[0])}", found)
    if answers.settled(key) or density.unanswered >= MOST_UNANSWERED:
        known.setdefault(what, not answers.failed(key))
    return not answers.failed(key)


class DensityLine:
    """A block's density on a line through its free coordinates, from where the block stands to another place.

    Where a method compares, it returns what differs, in words, and None where nothing does. It raises VentureError
    where no place on the line has a finite density. Mutable: the other place comes nearer until one is found.
    """

    def __init__(self, model: Model, density: FreeDensity) -> None:
        self.model, self.density = model, density
        self._start = density.present()
        steps = np.random.default_rng(0).standard_normal(len(self._start))
        self._way = steps * np.maximum(np.abs(self._start), 1.0)
        # of the other place
        self.distance = ASIDE
        # by distance what was found there
        self._found: dict[float, tuple[float, np.ndarray] | None] = {}

    def _nearest(self, found: Callable[[], Made]) -> Made:
        """What there is at the other place, brought nearer until there is something."""
        for _ in range(TRIES):
            try:
                return found()
            except VentureError:
                self.distance /= NEARER
        return found()

    def _both(self) -> tuple[tuple[float, np.ndarray], tuple[float, np.ndarray]]:
        """The log density and its gradient where the block stands, and at the other place."""
        here, there = self._at(0.0), self._at(self.distance)
        if here is None or there is None:
            raise VentureError("the density is not finite around the block")
        return here, there

    def free(self, distance: float) -> np.ndarray:
        return np.asarray(self._start + distance * self._way)

    def _at(self, distance: float) -> tuple[float, np.ndarray] | None:
        """The log density at a place, and its gradient; None where they are not finite."""
        if distance not in self._found:
            self._found[distance] = self._evaluated(distance)
        return self._found[distance]

    def _evaluated(self, distance: float) -> tuple[float, np.ndarray] | None:
        with self.model.aside():
            try:
                self.density.put(self.free(distance))
                weight, gradient = self.density.evaluate()
            except VentureError:
                return None
        if weight.impossible or not np.isfinite(weight.total) or not np.isfinite(gradient).all():
            return None
        return weight.total, gradient

    def _value(self, away: float, around: float) -> float | None:
        found = self._at(around + away)
        return None if found is None else found[0]

    def _gradient(self, away: float) -> np.ndarray | None:
        """Beside the other place."""
        found = self._at(self.distance + away)
        return None if found is None else found[1]

    def _interpreted(self) -> tuple[Weight, Weight]:
        """The interpreter's log densities where the block stands, and at the other place; both without the log
        Jacobian where it stands."""
        proposal, there = FreeValues(self.model.trace), self.free(self.distance)
        proposal.stand(self.density.places)
        for node, (_, _, free, _) in proposal.stood.items():
            free.flat[:] = there[self.density.places[node]]
            off = np.abs(proposal.returned(node) - free)
            if (off > SHARE * self.distance * np.abs(self._way[self.density.places[node]]).reshape(free.shape)).any():
                raise VentureError("a choice is at the end of the floats")
        return interpreted_weights(self.model, list(self.density.places), proposal, moves_numbers=True)

    def density_difference(self) -> str | None:
        """Between the change of the density and that of the interpreter's, which may have terms that do not change, or
        between the gradient and differences of the density."""
        (here, there), weights = self._nearest(lambda: (self._both(), self._interpreted()))
        if weights[0].impossible:
            raise VentureError("the block stands where the density is zero")
        change, expected = there[0] - here[0], weights[1].minus(weights[0])
        size = abs(here[0]) + abs(there[0]) + abs(weights[0].total) + abs(weights[1].total)
        if expected.impossible or not self._agree(change, expected.total, size, 0.0, self.distance):
            return f"a change of the log density, {change} in place of {expected.value()}"
        slope = float(there[1] @ self._way)
        if slope_agrees(partial(self._value, around=self.distance), slope, abs(there[0])) is not False:
            return None
        return f"the slope of the log density, {slope}"

    def hessian_difference(self) -> str | None:
        """Between second derivatives and differences of the gradient; where terms cancel they are as exact as it is."""
        _, (_, gradient) = self._nearest(self._both)
        with self.model.aside():
            self.density.put(self.free(self.distance))
            hessian = self.density.hessian()
        if hessian is None:
            return None
        size = float(np.max(np.abs(gradient), initial=0.0))
        return "second derivatives" if slope_agrees(self._gradient, hessian @ self._way, size) is False else None

    def function_difference(
        self,
        made: Callable[[], Callable[[np.ndarray], tuple[float, np.ndarray] | None] | None],
        sums: Callable[[np.ndarray], Mapping[int, float]],
    ) -> str | None:
        """Between a function of free coordinates, if there is one, and the density, and between the sums over sites
        that are known of it and the interpreter's."""
        function = made()
        if function is None:
            raise VentureError("there is no function as all else stands")
        for distance, expected in zip((0.0, self.distance), self._nearest(self._both), strict=True):
            free = self.free(distance)
            if (found := function(free)) is None:
                continue
            if not self._agree(found[0], expected[0], abs(found[0]) + abs(expected[0]), distance):
                return f"a log density, {found[0]} in place of {expected[0]}"
            # where the block stands may be a kink
            if distance and not self._are_alike(found[1], expected[1]):
                return f"a gradient, {found[1]} in place of {expected[1]}"
            if (site := self._other_site(free, sums(free))) is not None:
                return f"the log density of {site}"
        return None

    def _other_site(self, free: np.ndarray, sums: Mapping[int, float]) -> Code | None:
        """Where a site is whose log density at free coordinates is not what it is said to be; None if there is none."""
        trace = self.model.trace
        with self.model.aside():
            self.density.put(free)
            for site, total in sums.items():
                terms = [log_density(trace, node) for node in trace.nodes_of(site)]
                if not abs(total - sum(terms)) <= TOLERANCE * sum(map(abs, terms)):
                    return trace.program.site_code[site]
        return None

    def _are_alike(self, one: np.ndarray, other: np.ndarray) -> bool:
        """True if two gradients at the other place differ by rounding alone."""
        off, size = np.abs(one - other), np.abs(other)
        allowed = GRADIENTS * (size + SMALL * np.max(size, initial=0.0))
        if (off <= allowed).all():
            return True
        return bool((off <= allowed + along_line(self._gradient)).all())

    def _agree(self, found: float, expected: float, size: float, *distances: float) -> bool:
        """True if two numbers, made of log densities at these places of this size, differ by rounding alone."""
        off = abs(found - expected)
        if off <= TOLERANCE * size:
            return True
        for distance in distances:
            with self.model.aside():
                self.density.put(self.free(distance))
                size += magnitude(self.model, list(self.density.places))
        if off <= TOLERANCE * size:
            return True
        rounding = [along_line(partial(self._value, around=distance)) for distance in distances]
        return bool(off <= TOLERANCE * size + sum(rounding))
