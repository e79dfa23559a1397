"""A density of D coordinates given what an example reads: the autoregressive join of networks and heads.

The density of coordinate d given those before it is the head at the outputs of a perceptron of its own, its *body*,
which reads the example's pooled features and the earlier coordinates: those of the example in training, those just
drawn in drawing. One coordinate is the case D = 1. Nothing but the order of the product of conditional densities is
assumed, so that any joint density can be learned.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from venture_lite.networks.heads import Density, Head
from venture_lite.networks.perceptron import Perceptron
from venture_lite.networks.pooled import ARRAYS, ARRAYS_OF_PORT, Examples, InputNames, Pooled
from venture_lite.networks.standardisation import Standardisation

LAYERS = 3
"""Of a body: two hidden ones, and the outputs."""
FORCE, MOST_OFF = 10.0, 0.5
"""How much more the squares of what log densities are off count than these themselves, and the nats beyond which they
count as absolute values, so that no example in a tail rules."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a conditional density reads, and of what it is one: its signature, without numbers."""

    names: InputNames
    # in order, each by its name
    coordinates: tuple[tuple[str, Head], ...]


@dataclass(frozen=True, slots=True, eq=False)
class PreparedExamples:
    """Examples as training reads them, standardised and in one floating type."""

    inputs: Examples
    # what bodies read of earlier coordinates, (N, E)
    earlier: np.ndarray
    # (N, D)
    values: np.ndarray
    # (N,): the log densities that the values have, but for a constant; None where they are not known
    targets: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, chosen: np.ndarray) -> PreparedExamples:
        targets = None if self.targets is None else self.targets[chosen]
        return PreparedExamples(self.inputs.take(chosen), self.earlier[chosen], self.values[chosen], targets)

    def loss(self, densities: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean of -log density (N,), and its derivatives by these. Where the values' own log densities are known,
        the variance of the difference counts, too: of draws it is 0 at the truth, whatever draws these are, where the
        mean alone leads to what few draws look like (Richter et al. 2020, VarGrad: the log-variance loss). The mean
        sees densities elsewhere, which that variance does not."""
        if self.targets is None:
            return -float(densities.mean(dtype=np.float64)), np.full_like(densities, -1.0 / len(densities))
        off = self.targets - densities
        off -= off.mean()
        cut = np.clip(off, -MOST_OFF, MOST_OFF)
        loss = float(np.mean(FORCE * cut * (off - 0.5 * cut) - densities, dtype=np.float64))
        return loss, (FORCE * (cut.mean() - cut) - 1.0) / len(densities)


class Conditional:
    """The density; `given` evaluates its features for one example."""

    def __init__(
        self, layout: Layout, pooled: Pooled, earlier: Sequence[Standardisation], bodies: Sequence[Perceptron]
    ) -> None:
        self.layout = layout
        self.pooled = pooled
        # of the columns that later bodies read of each coordinate but the last
        self.earlier = tuple(earlier)
        self.bodies = tuple(bodies)
        self.heads = tuple(head for _, head in layout.coordinates)
        # how many columns of earlier coordinates each body reads
        self.reach = [0, *itertools.accumulate(standard.width for standard in earlier)]

    @staticmethod
    def drawn(
        rng: np.random.Generator,
        layout: Layout,
        examples: Examples,
        values: np.ndarray,
        hidden: int = 32,
        summed: int = 32,
    ) -> Conditional:
        """Initial weights for these examples and values (N, D).

        The last layers are 0 but for their biases: the density begins as about the values' own, whatever the inputs.
        Raises ParameterError for an input that is not a number.
        """
        pooled = Pooled.drawn(rng, layout.names, examples, summed)
        names_of_columns = _names_of_columns(layout)
        bodies, earlier, width = [], [], pooled.width
        for d, (_, head) in enumerate(layout.coordinates):
            body = Perceptron.drawn(rng, (width, *(hidden,) * (LAYERS - 1), head.width))
            body.weights[-1][:-1] = 0.0
            body.weights[-1][-1] = head.start(values[:, d])
            bodies.append(body)
            earlier.append(Standardisation.of(names_of_columns[d], head.columns(values[:, [d]])))
            width += earlier[-1].width
        return Conditional(layout, pooled, earlier[:-1], bodies)

    @property
    def weights(self) -> list[np.ndarray]:
        """Of the ports' networks and of the bodies, layer by layer."""
        return [*self.pooled.weights, *(layer for body in self.bodies for layer in body.weights)]

    @property
    def parameters(self) -> int:
        """How many numbers are in the weights."""
        return sum(layer.size for layer in self.weights)

    def with_weights(self, weights: Iterable[np.ndarray]) -> Conditional:
        """The same over other arrays. Raises ValueError where their shapes do not fit."""
        left = iter(weights)
        pooled = self.pooled.with_weights(left)
        bodies = [Perceptron(list(itertools.islice(left, LAYERS)), body.inputs) for body in self.bodies]
        return Conditional(self.layout, pooled, self.earlier, bodies)

    def first(self, count: int) -> Conditional:
        """The density of so many first coordinates."""
        layout = Layout(self.layout.names, self.layout.coordinates[:count])
        return Conditional(layout, self.pooled, self.earlier[: count - 1], self.bodies[:count])

    def arrays(self) -> list[np.ndarray]:
        """All but the layout, as plain arrays, copied."""
        of_bodies = [body.weights for body in self.bodies]
        of_earlier = [array for standard in self.earlier for array in standard.arrays()]
        found = [*self.pooled.arrays(), *of_earlier, *itertools.chain.from_iterable(of_bodies)]
        return [array.copy() for array in found]

    @staticmethod
    def from_arrays(layout: Layout, arrays: Sequence[np.ndarray]) -> Conditional:
        """What `arrays` gave. Raises ValueError where they are not of this layout."""
        dimensions = len(layout.coordinates)
        expected = ARRAYS + ARRAYS_OF_PORT * len(layout.names.ports) + 3 * (dimensions - 1) + LAYERS * dimensions
        if len(arrays) != expected or not all(a.dtype.kind in "fi" and np.isfinite(a).all() for a in arrays):
            raise ValueError(f"a network of this layout has {expected} arrays of finite numbers")
        # copied, and of the types that one row's evaluation asks for
        left = iter([array.astype(np.float64 if array.dtype.kind == "f" else np.intp) for array in arrays])
        pooled = Pooled.from_arrays(layout.names, left)
        earlier = []
        for names in _names_of_columns(layout)[:-1]:
            earlier.append(Standardisation.from_arrays(names, next(left), next(left), next(left)))
        widths = itertools.accumulate([standard.width for standard in earlier], initial=pooled.width)
        bodies = [Perceptron(list(itertools.islice(left, LAYERS)), width) for width in widths]
        if any(body.outputs != head.width for body, (_, head) in zip(bodies, layout.coordinates, strict=True)):
            raise ValueError("a network has other outputs than its head reads")
        return Conditional(layout, pooled, earlier, bodies)

    def prepared(
        self,
        examples: Examples,
        values: np.ndarray,
        dtype: type[np.floating],
        targets: np.ndarray | None = None,
    ) -> tuple[PreparedExamples, int]:
        """Examples and values (N, D) for training, with the log densities (N,) of the values where these are known, and
        how many inputs were clipped.

        Raises ParameterError for an input that is not a number.
        """
        inputs, clipped = self.pooled.prepared(examples, dtype)
        earlier = [
            standard(head.columns(values[:, [d]]))[0]
            for d, (standard, head) in enumerate(zip(self.earlier, self.heads, strict=False))
        ]
        read = np.concatenate([np.empty((len(values), 0)), *earlier], axis=1)
        # a constant says nothing, and would take the digits of float32
        aimed = None if targets is None else (targets - np.median(targets)).astype(dtype)
        return PreparedExamples(inputs, read.astype(dtype), values.astype(dtype), aimed), clipped

    def log_density(self, prepared: PreparedExamples) -> np.ndarray:
        """Log densities (N,)."""
        features, _ = self.pooled.forward(prepared.inputs)
        found = np.zeros(len(prepared), features.dtype)
        for _, densities, _ in self._coordinates(prepared, features):
            found += densities
        return found

    def loss(self, prepared: PreparedExamples) -> tuple[float, list[np.ndarray]]:
        """That of the examples, and its derivatives by each array of `weights`."""
        features, activations = self.pooled.forward(prepared.inputs)
        each = list(self._coordinates(prepared, features))
        loss, by_densities = prepared.loss(np.sum([densities for _, densities, _ in each], axis=0))
        by_features, by_weights = np.zeros_like(features), []
        for body, (layers, _, by_outputs) in zip(self.bodies, each, strict=True):
            by_body, by_inputs = body.backward(layers, by_outputs * by_densities[:, None])
            by_weights += by_body
            by_features += by_inputs[:, : features.shape[1]]
        return loss, self.pooled.backward(prepared.inputs, activations, by_features) + by_weights

    def _coordinates(
        self, prepared: PreparedExamples, features: np.ndarray
    ) -> Iterator[tuple[list[np.ndarray], np.ndarray, np.ndarray]]:
        """For each coordinate: its body's activations, log densities (N,), and their derivatives by the outputs."""
        for d, (body, head) in enumerate(zip(self.bodies, self.heads, strict=True)):
            layers = body.forward(np.concatenate((features, prepared.earlier[:, : self.reach[d]]), axis=1))
            yield layers, *head.log_density(layers[-1], prepared.values[:, d])

    def given(self, fixed: np.ndarray, ports: Sequence[np.ndarray] = ()) -> ExampleDensity:
        """The density of one example: fixed inputs (I,) and rows (R, F) of each port. Weights are float64.

        Raises ParameterError for an input that is not a number.
        """
        return ExampleDensity(self, *self.pooled.row(fixed, ports))


class ExampleDensity:
    """The density of D coordinates for one example: its features are evaluated once."""

    __slots__ = ("_conditional", "_first", "_inputs", "_width", "clipped")

    def __init__(self, conditional: Conditional, features: np.ndarray, clipped: int) -> None:
        self._conditional = conditional
        self._width = len(features)
        self._inputs = np.empty(self._width + conditional.reach[-1])
        self._inputs[: self._width] = features
        # how many of the example's inputs were clipped
        self.clipped = clipped
        # that of the first coordinate reads no others, and serves both drawing and weighing
        self._first = conditional.heads[0].at(conditional.bodies[0].row(features))

    def draw(self, rng: np.random.Generator) -> tuple[list[float], float]:
        """Values (D,), and the log density of these."""
        values: list[float] = []
        total = 0.0
        for d in range(len(self._conditional.heads)):
            density = self.of_coordinate(d, values)
            values.append(density.draw(rng))
            total += density.log_density(values[-1])
        return values, total

    def log_density(self, values: Sequence[float]) -> float:
        """Of values (D,); -inf where one is none of finitely many."""
        total = 0.0
        for d, value in enumerate(values):
            total += self.of_coordinate(d, values).log_density(value)
            if total == -math.inf:
                break
        return total

    def of_coordinate(self, d: int, values: Sequence[float]) -> Density:
        """The density of a coordinate after the values of those before it. Coordinates are asked for in order: what a
        body reads of the earlier ones was written as these were passed."""
        if d == 0:
            return self._first
        its = self._conditional
        read = its.earlier[d - 1](its.heads[d - 1].columns(np.array([values[d - 1]])))[0]
        start, end = self._width + its.reach[d - 1], self._width + its.reach[d]
        self._inputs[start:end] = read
        return its.heads[d].at(its.bodies[d].row(self._inputs[:end]))


def _names_of_columns(layout: Layout) -> list[tuple[str, ...]]:
    """Of what later bodies read of each coordinate."""
    return [(name,) * head.columns(np.zeros((1, 1))).shape[1] for name, head in layout.coordinates]
