"""`categorical`: one of finitely many values."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.domains import LIST, PROBABILITY_VECTOR
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


def _log_density(value: Any, probs: Any, values: Any = None) -> float:
    masses = _masses(probs, values)
    if values is None:
        if not (isinstance(value, (int, float)) and 0 <= value < len(masses) and value % 1 == 0):
            return -math.inf
        mass = masses[int(value)]
    else:
        mass = math.fsum(m for m, other in zip(masses, values, strict=True) if equal(other, value))
    return math.log(mass) if mass > 0.0 else -math.inf


def _columns(lifted: tuple[bool, ...], value: Any, probs: Any, values: Any = None) -> np.ndarray:
    if values is not None or not lifted[0] or value.ndim != 1 or value.dtype.kind not in "fbiu":
        raise RowByRow
    masses = np.asarray(probs)
    if masses.dtype.kind != "f" or masses.ndim != 1 + lifted[1]:
        raise RowByRow
    with np.errstate(all="ignore"):
        inside = (value >= 0) & (value < masses.shape[-1]) & (np.mod(value, 1) == 0)
        chosen = np.where(inside, value, 0).astype(np.int64)
        mass = masses[np.arange(len(chosen)), chosen] if lifted[1] else masses[chosen]
        return np.asarray(np.where(inside, np.log(mass), -np.inf))


def _support(probs: Any, values: Any = None) -> Sequence[Any]:
    masses = _masses(probs, values)
    outcomes = range(len(masses)) if values is None else values
    possible: dict[Hashable, Any] = {}
    for mass, outcome in zip(masses, outcomes, strict=True):
        if mass > 0.0:
            possible.setdefault(key_of(outcome), outcome)
    return tuple(possible.values())


CATEGORICAL = Random(
    "categorical", (Argument("probs", PROBABILITY_VECTOR), Argument("values", LIST, None)),
    "One of the values with the given probabilities; without values, a position counted from 0. Equal values add up.",
    _simulate, _log_density, _columns, support=_support, source="the sum of the probabilities of the equal values",
)  # fmt: skip

RECORDS = (CATEGORICAL,)
