"""Features of an example that has sets of rows beside its fixed inputs.

A *port* is one kind of row: all data that read a choice in one role, say. Each row goes through the port's network phi,
and the rows of an example are summed (Zaheer et al. 2017, Deep sets, theorem 2), so that their order is nothing and
their number is not in any shape. All rows of a port, of all examples, go through phi in one product.

What is read is the sum divided by the number of rows, beside log(1 + count): the same knowledge as the sum, of size one
whatever the count. Trained for the mean of 0 to 20 normals, it came within 0.015 nats of the posterior where the sum
came within 0.027; with 40, more than ever in training, within 0.10 and 0.16.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from venture_lite.networks.perceptron import Perceptron
from venture_lite.networks.standardisation import Standardisation

LAYERS = 2
"""Of each port's network."""
ARRAYS, ARRAYS_OF_PORT = 3, 3 + LAYERS
"""How many arrays `Pooled.arrays` has, and how many more for each port."""


@dataclass(slots=True, eq=False)
class PortRows:
    """The rows that N examples have at one port: those of an example lie together, the examples in order."""

    # (R, F)
    values: np.ndarray
    # how many are of each example, (N,): their sum is R
    counts: np.ndarray
    # where those of each example begin, (N,)
    starts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.starts = self.counts.cumsum() - self.counts

    @staticmethod
    def owned(values: np.ndarray, owners: np.ndarray, examples: int) -> PortRows:
        """From the example (R,) that each row belongs to. Raises ValueError unless the owners are sorted."""
        if (np.diff(owners) < 0).any():
            raise ValueError("rows of a port are not sorted by the example that they belong to")
        return PortRows(values, np.bincount(owners, minlength=examples))

    def take(self, chosen: np.ndarray) -> PortRows:
        """The rows of some examples, in the order in which these are chosen."""
        counts = self.counts[chosen]
        starts = counts.cumsum() - counts
        positions = np.repeat(self.starts[chosen] - starts, counts) + np.arange(counts.sum())
        return PortRows(self.values[positions], counts)

    def means(self, terms: np.ndarray) -> np.ndarray:
        """Means (N, P) of terms (R, P) by example; 0 where an example has no rows."""
        examples, width = len(self.counts), terms.shape[1]
        sums = np.zeros((examples, width), terms.dtype)
        if len(terms) and (self.counts == self.counts[0]).all():
            # a product is some ten times as fast as `reduceat`
            ones = np.ones((1, int(self.counts[0])), terms.dtype)
            np.matmul(ones, terms.reshape(examples, -1, width), out=sums[:, None])
        elif len(terms):
            some = self.counts > 0
            sums[some] = np.add.reduceat(terms, self.starts[some], axis=0)
        sums /= self._divisors(terms.dtype)
        return sums

    def by_terms(self, by_means: np.ndarray) -> np.ndarray:
        """From derivatives (N, P) by the means to those (R, P) by the terms."""
        return np.repeat(by_means / self._divisors(by_means.dtype), self.counts, axis=0)

    def _divisors(self, dtype: np.dtype) -> np.ndarray:
        counts: np.ndarray = np.maximum(self.counts, 1).astype(dtype)
        return counts[:, None]


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """What networks read of N examples."""

    # (N, I)
    fixed: np.ndarray
    ports: tuple[PortRows, ...] = ()

    def __len__(self) -> int:
        return len(self.fixed)

    def take(self, chosen: np.ndarray) -> Examples:
        return Examples(self.fixed[chosen], tuple(port.take(chosen) for port in self.ports))


@dataclass(frozen=True, slots=True)
class InputNames:
    """What inputs are called: in messages, and where a file is compared with a program."""

    fixed: tuple[str, ...]
    # each port's name, with those of its columns
    ports: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def beside(self) -> tuple[str, ...]:
        """Of the inputs beside the rows."""
        return (*self.fixed, *(f"count of {port}" for port, _ in self.ports))

    def of_rows(self) -> list[tuple[str, ...]]:
        """Of the columns of each port."""
        return [tuple(f"{column} of {port}" for column in columns) for port, columns in self.ports]


NAMELESS = InputNames(())
"""Of what nothing is known to be read."""


@dataclass(frozen=True, slots=True, eq=False)
class PooledPort:
    """What reads the rows of one port."""

    standard: Standardisation
    phi: Perceptron


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """Features: fixed inputs and log(1 + count) of each port, standardised, then the means over rows of each port."""

    standard: Standardisation
    ports: tuple[PooledPort, ...]

    @staticmethod
    def drawn(rng: np.random.Generator, names: InputNames, examples: Examples, width: int) -> Pooled:
        """Initial weights of networks of LAYERS layers of `width`, and the standardisation of these examples.

        Raises ParameterError for an input that is not a number.
        """
        ports = []
        for columns, rows in zip(names.of_rows(), examples.ports, strict=True):
            standard = Standardisation.of(columns, rows.values)
            phi = Perceptron.drawn(rng, (standard.width, *(width,) * LAYERS), ends_linear=False)
            ports.append(PooledPort(standard, phi))
        return Pooled(Standardisation.of(names.beside(), _beside(examples)), tuple(ports))

    @property
    def width(self) -> int:
        return self.standard.width + sum(port.phi.outputs for port in self.ports)

    @property
    def weights(self) -> list[np.ndarray]:
        return [layer for port in self.ports for layer in port.phi.weights]

    def with_weights(self, weights: Iterator[np.ndarray]) -> Pooled:
        """The same over other arrays, taken in the order of `weights`. Raises ValueError where shapes do not fit."""
        ports = []
        for port in self.ports:
            phi = Perceptron(list(itertools.islice(weights, LAYERS)), port.standard.width, ends_linear=False)
            ports.append(PooledPort(port.standard, phi))
        return Pooled(self.standard, tuple(ports))

    def prepared(self, examples: Examples, dtype: type[np.floating]) -> tuple[Examples, int]:
        """Standardised examples, and how many numbers were clipped. Raises ParameterError as Standardisation does."""
        fixed, clipped = self.standard(_beside(examples))
        ports = []
        for port, rows in zip(self.ports, examples.ports, strict=True):
            values, more = port.standard(rows.values)
            clipped += more
            ports.append(PortRows(values.astype(dtype, copy=False), rows.counts))
        return Examples(fixed.astype(dtype, copy=False), tuple(ports)), clipped

    def forward(self, prepared: Examples) -> tuple[np.ndarray, list[list[np.ndarray]]]:
        """Features (N, F) of prepared examples, and the activations of each port for `backward`."""
        parts, activations = [prepared.fixed], []
        for port, rows in zip(self.ports, prepared.ports, strict=True):
            activations.append(port.phi.forward(rows.values))
            parts.append(rows.means(activations[-1][-1]))
        return np.concatenate(parts, axis=1), activations

    def backward(
        self, prepared: Examples, activations: list[list[np.ndarray]], by_features: np.ndarray
    ) -> list[np.ndarray]:
        """From derivatives (N, F) by the features to those by each array of `weights`."""
        found, reached = [], self.standard.width
        for port, rows, made in zip(self.ports, prepared.ports, activations, strict=True):
            by_means = by_features[:, reached : reached + port.phi.outputs]
            reached += port.phi.outputs
            found += port.phi.backward(made, rows.by_terms(by_means))[0]
        return found

    def row(self, fixed: np.ndarray, ports: Sequence[np.ndarray]) -> tuple[np.ndarray, int]:
        """Features (F,) of one example, fixed inputs (I,) and rows (R, F) of each port, and how many numbers were
        clipped. Raises ParameterError as Standardisation does."""
        if not self.ports:
            return self.standard(fixed)
        read, clipped = self.standard(np.concatenate((fixed, [math.log1p(len(rows)) for rows in ports])))
        parts = [read]
        for port, rows in zip(self.ports, ports, strict=True):
            values, more = port.standard(rows)
            clipped += more
            parts.append(port.phi.forward(values)[-1].sum(axis=0) / max(len(rows), 1))
        return np.concatenate(parts), clipped

    def arrays(self) -> list[np.ndarray]:
        """All but the names, as plain arrays."""
        of_ports = [[*port.standard.arrays(), *port.phi.weights] for port in self.ports]
        return [*self.standard.arrays(), *itertools.chain.from_iterable(of_ports)]

    @staticmethod
    def from_arrays(names: InputNames, arrays: Iterator[np.ndarray]) -> Pooled:
        """What `arrays` gave. Raises ValueError where they are not of these names."""
        standard = Standardisation.from_arrays(names.beside(), next(arrays), next(arrays), next(arrays))
        ports = []
        for columns in names.of_rows():
            of_rows = Standardisation.from_arrays(columns, next(arrays), next(arrays), next(arrays))
            phi = Perceptron(list(itertools.islice(arrays, LAYERS)), of_rows.width, ends_linear=False)
            ports.append(PooledPort(of_rows, phi))
        return Pooled(standard, tuple(ports))


def _beside(examples: Examples) -> np.ndarray:
    """Fixed inputs, and log(1 + count) of each port."""
    return np.column_stack((examples.fixed, *(np.log1p(rows.counts) for rows in examples.ports)))
