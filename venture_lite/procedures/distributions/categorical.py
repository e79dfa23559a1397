"""One of finitely many values, by probabilities or by scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import array_gradients, likelihoods
from venture_lite.procedures.columns import Flags, RowByRow, arrays
from venture_lite.procedures.domains import (
    INCREASING_VECTOR,
    LIST,
    NONEMPTY_LIST,
    PROBABILITY_VECTOR,
    REAL,
    SCORES,
    WEIGHTS,
)
from venture_lite.procedures.record import Argument, Random
from venture_lite.values import are_told_apart, equal, key_of


def _masses(probs: Any, values: Any) -> Sequence[float]:
    masses: Sequence[float] = probs.tolist() if isinstance(probs, np.ndarray) else probs
    if values is not None and len(values) != len(masses):
        raise ArgumentError(f"categorical: {len(masses)} probabilities for {len(values)} values")
    return masses


def _simulate(rng: np.random.Generator, probs: Any, values: Any) -> Any:
    masses = _masses(probs, values)
    left = rng.random()
    chosen = 0
    for position, mass in enumerate(masses):
        if mass > 0.0:
            # the last possible one is taken where rounding leaves something over
            chosen = position
            left -= mass
            if left < 0.0:
                break
    return chosen if values is None else values[chosen]


def _simulate_columns(rng: np.random.Generator, count: int, probs: Any, values: Any) -> np.ndarray:
    masses = np.asarray(probs)
    if values is not None or masses.dtype.kind != "f":
        raise RowByRow
    reached = masses.cumsum(axis=-1)
    # the last possible one is taken where rounding leaves something over
    last = masses.shape[-1] - 1 - np.argmax(masses[..., ::-1] > 0.0, axis=-1)
    found = (reached <= rng.random((count, 1))).sum(axis=-1)
    return np.asarray(np.minimum(found, last))


def _log_density(value: Any, probs: Any, values: Any = None) -> float:
    masses = _masses(probs, values)
    if values is None:
        position = _position(value, len(masses))
        mass = 0.0 if position is None else masses[position]
    else:
        mass = math.fsum(m for m, other in zip(masses, values, strict=True) if equal(other, value))
    return math.log(mass) if mass > 0.0 else -math.inf


def _slopes_of_one(wanted: Flags) -> Callable[..., tuple[Any, ...]]:
    """(value, probs, values) -> the log probability, and where it is asked for the derivative by the probabilities."""
    by_probs = array_gradients.CATEGORICAL.evaluate

    def slopes(value: Any, probs: Any, values: Any = None) -> tuple[Any, ...]:
        if values is not None:
            none = (False,) * 3
            return _log_density(value, probs, values), by_probs(none, wanted, value, probs, values)[1]
        masses = _masses(probs, None)
        position = _position(value, len(masses))
        mass = 0.0 if position is None else masses[position]
        share = np.zeros(len(masses))
        if mass > 0.0:
            share[position] = 1.0 / mass
        return math.log(mass) if mass > 0.0 else -math.inf, share

    return slopes if wanted[1] else lambda *given: (_log_density(*given),)


def _columns(lifted: Flags, value: Any, probs: Any, values: Any = None) -> np.ndarray:
    if values is not None or not lifted[0] or value.ndim != 1 or value.dtype.kind not in "fbiu":
        raise RowByRow
    masses = np.asarray(probs)
    if masses.dtype.kind != "f" or masses.ndim != 1 + lifted[1]:
        raise RowByRow
    with np.errstate(all="ignore"):
        inside, mass = _taken(value, masses, lifted[1])
        return np.asarray(np.where(inside, np.log(mass), -np.inf))


def _taken(positions: np.ndarray, entries: np.ndarray, are_rows: bool) -> tuple[np.ndarray, np.ndarray]:
    """Which positions there are, and the entries that stand there: of each row, or of one vector."""
    inside = (positions >= 0) & (positions < entries.shape[-1]) & (np.mod(positions, 1) == 0)
    places = np.where(inside, positions, 0).astype(np.int64)
    return inside, entries[np.arange(len(entries)), places] if are_rows else entries[places]


def _support(probs: Any, values: Any = None) -> Sequence[Any]:
    masses = _masses(probs, values)
    outcomes = range(len(masses)) if values is None else values
    possible: dict[Hashable, Any] = {}
    for mass, outcome in zip(masses, outcomes, strict=True):
        if mass > 0.0:
            possible.setdefault(key_of(outcome), outcome)
    return tuple(possible.values())


def _position(value: Any, size: int) -> int | None:
    """A value as a position from 0 to size - 1, None where it is none."""
    inside = isinstance(value, (int, float)) and 0 <= value < size and value % 1 == 0
    return int(value) if inside else None


def _simulate_softmax(rng: np.random.Generator, scores: Any) -> int:
    given = np.asarray(scores, dtype=np.float64)
    with np.errstate(over="ignore"):
        reached = np.exp(given - given.max()).cumsum()
    return int(np.searchsorted(reached[:-1], rng.random() * reached[-1], side="right"))


def _log_softmax(value: Any, scores: Any) -> float:
    position = _position(value, len(scores))
    if position is None:
        return -math.inf
    given: list[float] = np.asarray(scores, dtype=np.float64).tolist()
    top = max(given)
    return (given[position] - top) - math.log(math.fsum(math.exp(score - top) for score in given))


def _softmax_columns(lifted: Flags, value: Any, scores: Any) -> np.ndarray:
    positions, given = arrays(lifted, (0, 1), (value, scores))
    with np.errstate(all="ignore"):
        shifted = given - given.max(axis=-1, keepdims=True)
        normaliser = np.log(np.exp(shifted).sum(axis=-1))
        inside, taken = _taken(positions, shifted, lifted[1])
        return np.where(inside, taken - normaliser, -np.inf)


def _shares(weights: Any) -> np.ndarray:
    """Weights (..., K) as probabilities; the largest is taken out first, so that no sum overflows."""
    given = np.asarray(weights, dtype=np.float64)
    scaled = given / given.max(axis=-1, keepdims=True)
    return np.asarray(scaled / scaled.sum(axis=-1, keepdims=True))


def _weighted_columns(lifted: Flags, value: Any, weights: Any, values: Any = None) -> np.ndarray:
    return _columns(lifted, value, _shares(arrays(lifted[1:2], (1,), (weights,))[0]), values)


def _simulate_uniform(rng: np.random.Generator, items: Any) -> Any:
    return items[rng.integers(len(items))]


def _log_uniform(value: Any, items: Any) -> float:
    count = sum(equal(item, value) for item in items)
    return math.log(count / len(items)) if count else -math.inf


def _support_uniform(items: Any) -> Sequence[Any]:
    return tuple({key_of(item): item for item in reversed(items)}.values())[::-1]


def _simulate_ordered(rng: np.random.Generator, score: float, cuts: Any) -> int:
    # a logistic number around the score, and how many cuts lie below it
    return int(np.searchsorted(np.asarray(cuts, dtype=np.float64), score + rng.logistic()))


def _log_ordered(value: Any, score: float, cuts: Any) -> float:
    given = np.asarray(cuts, dtype=np.float64)
    position = _position(value, len(given) + 1)
    return -math.inf if position is None else float(_ordered(np.array([position]), score, given)[0])


def _ordered_columns(lifted: Flags, value: Any, score: Any, cuts: Any) -> np.ndarray:
    return _ordered(*arrays(lifted, (0, 0, 1), (value, score, cuts)))


def _ordered(positions: Any, score: Any, cuts: Any) -> np.ndarray:
    """The logistic function at b less that at a is logistic(b) logistic(-a) (1 - exp(a - b)), without cancellation."""
    inside = (positions >= 0) & (positions <= cuts.shape[-1]) & (np.mod(positions, 1) == 0)
    below, above = array_gradients.cuts_around(np.where(inside, positions, 0), score, cuts)
    with np.errstate(all="ignore"):
        parts = np.logaddexp(0.0, below) + np.logaddexp(0.0, -above) - np.log(-np.expm1(below - above))
    return np.asarray(np.where(inside, -parts, -np.inf))


CATEGORICAL = Random(
    "categorical", (Argument("probs", PROBABILITY_VECTOR), Argument("values", LIST, None)),
    "One of the values with the given probabilities; without values, a position counted from 0. Equal values add up.",
    _simulate, _log_density, _columns, support=_support, source="the sum of the probabilities of the equal values",
    gradient=replace(array_gradients.CATEGORICAL, of_numbers=_slopes_of_one), simulate_columns=_simulate_columns,
)  # fmt: skip

SOFTMAX_CATEGORICAL = Random(
    "softmax_categorical", (Argument("scores", SCORES),),
    "A position counted from 0, with probabilities proportional to the exponentials of the scores.",
    _simulate_softmax, _log_softmax, _softmax_columns, support=lambda scores: range(len(scores)),
    source="exp(scores_k) / sum_j exp(scores_j)", gradient=array_gradients.SOFTMAX_CATEGORICAL,
    predictor=likelihoods.SOFTMAX,
)  # fmt: skip

WEIGHTED_CATEGORICAL = Random(
    "weighted_categorical", (Argument("weights", WEIGHTS), Argument("values", LIST, None)),
    "As categorical, of weights that need not sum to 1; (categorical weights values 'unnormalized) stands for it.",
    lambda rng, weights, values: _simulate(rng, _shares(weights), values),
    lambda value, weights, values=None: _log_density(value, _shares(weights), values),
    _weighted_columns, support=_support, source="the sum of the weights of the equal values over the sum of all",
    gradient=array_gradients.WEIGHTED_CATEGORICAL,
)  # fmt: skip
UNIFORM_DRAW = Random(
    "uniform_draw", (Argument("items", NONEMPTY_LIST),),
    "An item of a list, each place equally probable: equal items add up.",
    _simulate_uniform, _log_uniform, support=_support_uniform, source="how many items are equal to it / size(items)",
)  # fmt: skip
ORDERED_LOGISTIC = Random(
    "ordered_logistic", (Argument("score", REAL), Argument("cuts", INCREASING_VECTOR)),
    "A position from 0 to the number of cuts: how many of them lie below a logistic number around the score.",
    _simulate_ordered, _log_ordered, _ordered_columns, support=lambda score, cuts: range(len(cuts) + 1),
    source="logistic(cuts_k - score) - logistic(cuts_(k-1) - score), the cuts beyond the first and last infinite",
    gradient=array_gradients.ORDERED_LOGISTIC,
)  # fmt: skip

OF_VALUES = frozenset((CATEGORICAL, WEIGHTED_CATEGORICAL, UNIFORM_DRAW))
"""The distributions of the values in a list, their last argument."""


def confounded(values: Sequence[Any]) -> tuple[Any, Any] | None:
    """Two of the values that are equal and not the same, as true and 1: a support has one of them, with both masses."""
    first: dict[Hashable, Any] = {}
    pairs = ((first.setdefault(key_of(value), value), value) for value in values)
    return next((pair for pair in pairs if are_told_apart(*pair)), None)


RECORDS = (CATEGORICAL, WEIGHTED_CATEGORICAL, UNIFORM_DRAW, SOFTMAX_CATEGORICAL, ORDERED_LOGISTIC)
