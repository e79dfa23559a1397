"""One of finitely many values, by probabilities or by scores."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import array_gradients, likelihoods
from venture_lite.procedures.columns import Flags, RowByRow, arrays
from venture_lite.procedures.domains import LIST, PROBABILITY_VECTOR, SCORES
from venture_lite.procedures.record import Argument, Random
from venture_lite.values import equal, key_of


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


CATEGORICAL = Random(
    "categorical", (Argument("probs", PROBABILITY_VECTOR), Argument("values", LIST, None)),
    "One of the values with the given probabilities; without values, a position counted from 0. Equal values add up.",
    _simulate, _log_density, _columns, support=_support, source="the sum of the probabilities of the equal values",
    gradient=array_gradients.CATEGORICAL, simulate_columns=_simulate_columns,
)  # fmt: skip

SOFTMAX_CATEGORICAL = Random(
    "softmax_categorical", (Argument("scores", SCORES),),
    "A position counted from 0, with probabilities proportional to the exponentials of the scores.",
    _simulate_softmax, _log_softmax, _softmax_columns, support=lambda scores: range(len(scores)),
    source="exp(scores_k) / sum_j exp(scores_j)", gradient=array_gradients.SOFTMAX_CATEGORICAL,
    predictor=likelihoods.SOFTMAX,
)  # fmt: skip

RECORDS = (CATEGORICAL, SOFTMAX_CATEGORICAL)
