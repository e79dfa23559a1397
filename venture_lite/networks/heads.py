"""What a network's outputs become: the density of one coordinate, of a real number or of one of finitely many.

A head is a record of a few numbers, without weights. In columns it gives log densities with their derivatives by the
outputs, which training needs; for one row it gives the density itself, to draw from and to weigh with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
MOST_LOG_SD = 8.0
"""Standard deviations lie between exp(-8) = 3e-4 and exp(8) = 3e3 of a frame's scale: enough for a posterior of 10^6
data in the frame of its prior, and in float32 squares of scaled distances are floats."""

OF_DATA = 5.0
"""A normal of so many times the least variance that data leave is wholly of these, of a wider one as much less. Of 2 to
10, tried on scales of 20, 12 and 8 effects that were learned of half as many, 5 and 10 had the least loss."""


class Density(Protocol):
    """A density of one coordinate."""

    def draw(self, rng: np.random.Generator) -> float: ...

    def log_density(self, value: float) -> float:
        """-inf where the value is none of the finitely many."""


class Head(Protocol):
    """From outputs to densities."""

    @property
    def width(self) -> int:
        """How many outputs the head reads."""

    def start(self, values: np.ndarray) -> np.ndarray:
        """Outputs (width,) whose density is about that of the values (N,): the biases from which training starts."""

    def log_density(self, outputs: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log densities (N,) of values (N,) at outputs (N, width), and their derivatives (N, width) by these."""

    def at(self, outputs: np.ndarray) -> Density:
        """The density at the outputs (width,) of one row."""

    def columns(self, values: np.ndarray) -> np.ndarray:
        """What the networks of later coordinates read of values (..., 1): (..., R)."""


@dataclass(frozen=True, slots=True)
class Normals:
    """A mixture of K normals over the line.

    Outputs are K unnormalised log weights, K means and K log standard deviations u, which MOST_LOG_SD tanh(u /
    MOST_LOG_SD) bounds smoothly. Weights and means need no bound: a perceptron's outputs are finite wherever its inputs
    lie.
    """

    components: int = 5

    @property
    def width(self) -> int:
        return 3 * self.components

    def start(self, values: np.ndarray) -> np.ndarray:
        """Normals of one weight and width at equidistant quantiles: as different as the values are."""
        means = np.quantile(values, (np.arange(self.components) + 0.5) / self.components)
        low, high = np.quantile(values, (0.1, 0.9))
        # 2.56 sds of a normal lie between these
        log_sd = math.log(max((high - low) / 2.56, math.exp(-MOST_LOG_SD))) - 0.5 * math.log(self.components)
        log_sds = np.full(self.components, MOST_LOG_SD * math.atanh(min(max(log_sd / MOST_LOG_SD, -0.9), 0.9)))
        return np.concatenate((np.zeros(self.components), means, log_sds))

    def log_density(self, outputs: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        size = self.components
        log_weights = _log_softmax(outputs[:, :size])
        bounded = np.tanh(outputs[:, 2 * size :] / MOST_LOG_SD)
        log_sds = MOST_LOG_SD * bounded
        precise = np.exp(-log_sds)
        scaled = (values[:, None] - outputs[:, size : 2 * size]) * precise
        squares = scaled * scaled
        joint = log_weights - log_sds - 0.5 * squares
        top = joint.max(axis=1, keepdims=True)
        shares = np.exp(joint - top)
        total = shares.sum(axis=1, keepdims=True)
        shares /= total
        by_log_sds = shares * (squares - 1.0) * (1.0 - bounded * bounded)
        gradient = np.concatenate((shares - np.exp(log_weights), shares * scaled * precise, by_log_sds), axis=1)
        return (top + np.log(total))[:, 0] - HALF_LOG_TWO_PI, gradient

    def at(self, outputs: np.ndarray) -> Density:
        return NormalMixture(outputs.tolist())

    def columns(self, values: np.ndarray) -> np.ndarray:
        return values


class NormalMixture:
    """One mixture of normals, its few components as numbers: at K = 5 arrays would take twice as long."""

    __slots__ = ("log_sds", "log_weights", "means")

    def __init__(self, outputs: list[float]) -> None:
        size = len(outputs) // 3
        logits = outputs[:size]
        total = log_sum(logits)
        self.log_weights = [logit - total for logit in logits]
        self.means = outputs[size : 2 * size]
        self.log_sds = [MOST_LOG_SD * math.tanh(unbounded / MOST_LOG_SD) for unbounded in outputs[2 * size :]]

    def of_more(self, limit: float, share: float, least_sd: float) -> NormalMixture:
        """What it is where data of the same kind are 1 / share as many: variances, and how far means are from their
        limit for ever more data, are a share of these. A normal far wider than `least_sd` is not of the data but of the
        prior, and stays."""
        found = NormalMixture.__new__(NormalMixture)
        found.log_weights = self.log_weights
        shares = [1.0 + (share - 1.0) * min(1.0, OF_DATA * least_sd**2 * math.exp(-2.0 * log)) for log in self.log_sds]
        found.means = [limit + each * (mean - limit) for each, mean in zip(shares, self.means, strict=True)]
        found.log_sds = [log_sd + 0.5 * math.log(each) for each, log_sd in zip(shares, self.log_sds, strict=True)]
        return found

    def wider(self, factor: float) -> NormalMixture:
        """The same, each normal about its own mean."""
        found = NormalMixture.__new__(NormalMixture)
        found.log_weights, found.means = self.log_weights, self.means
        found.log_sds = [log_sd + math.log(factor) for log_sd in self.log_sds]
        return found

    def draw(self, rng: np.random.Generator) -> float:
        left, chosen = rng.random() - math.exp(self.log_weights[0]), 0
        # the last component is taken where rounding leaves something over
        while left >= 0.0 and chosen < len(self.means) - 1:
            chosen += 1
            left -= math.exp(self.log_weights[chosen])
        return self.means[chosen] + math.exp(self.log_sds[chosen]) * float(rng.standard_normal())

    def log_density(self, value: float) -> float:
        terms = []
        for log_weight, mean, log_sd in zip(self.log_weights, self.means, self.log_sds, strict=True):
            scaled = (value - mean) * math.exp(-log_sd)
            terms.append(log_weight - log_sd - 0.5 * scaled * scaled)
        return log_sum(terms) - HALF_LOG_TWO_PI


@dataclass(frozen=True, slots=True)
class Categories:
    """The values 0 ... size - 1, by logits."""

    size: int
    # counts have an order: later networks read the number, and of others one column for each value
    ordered: bool = False

    @property
    def width(self) -> int:
        return self.size

    def start(self, values: np.ndarray) -> np.ndarray:
        """Frequencies, with half an example added to each value."""
        counts = np.bincount(values.astype(np.intp), minlength=self.size) + 0.5
        return np.asarray(np.log(counts / counts.sum()))

    def log_density(self, outputs: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Raises IndexError where a value is none of them."""
        log_probabilities = _log_softmax(outputs)
        gradient = -np.exp(log_probabilities)
        at = np.arange(len(values)), values.astype(np.intp)
        gradient[at] += 1.0
        return log_probabilities[at], gradient

    def at(self, outputs: np.ndarray) -> Density:
        return Frequencies(_log_softmax(outputs))

    def columns(self, values: np.ndarray) -> np.ndarray:
        read: np.ndarray = values == np.arange(self.size)
        return values if self.ordered else read.astype(np.float64)


class Frequencies:
    """One distribution over 0 ... n - 1."""

    __slots__ = ("log_probabilities",)

    def __init__(self, log_probabilities: np.ndarray) -> None:
        self.log_probabilities = log_probabilities

    def draw(self, rng: np.random.Generator) -> float:
        reached = np.exp(self.log_probabilities).cumsum()
        return float(np.searchsorted(reached[:-1], rng.random() * reached[-1], side="right"))

    def log_density(self, value: float) -> float:
        inside = 0 <= value < len(self.log_probabilities) and value % 1 == 0
        return float(self.log_probabilities[int(value)]) if inside else -math.inf


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    """Logits (..., n) less the logarithm of the sum of their exponentials."""
    shifted: np.ndarray = logits - logits.max(axis=-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted


def log_sum(terms: list[float]) -> float:
    """The logarithm of the sum of exponentials."""
    top = max(terms)
    return top if top == -math.inf else top + math.log(sum([math.exp(term - top) for term in terms]))
