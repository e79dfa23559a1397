"""What the tests of Taylor terms and bounds look at: each likelihood with a linear predictor, some values and settings
of its other arguments, and the predictors to try."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from venture_lite.procedures.predictor import LinearPredictor
from venture_lite.procedures.record import Random
from venture_lite.procedures.registry import PROCEDURES

RECORDS = {r.name: r for r in PROCEDURES.values() if isinstance(r, Random) and r.predictor is not None}

SETTINGS: dict[str, list[tuple[Any, ...]]] = {
    # (value, *arguments), the predictor's place empty
    "flip": [(True, None), (0, None)],
    "bernoulli": [(True, None), (0.0, None)],
    "bernoulli_logit": [(True, None), (0, None)],
    "binomial": [(3, 10, None), (0, 4, None), (7, 7.0, None)],
    "geometric": [(0, None), (6, None)],
    "neg_binomial": [(4, 2.5, None), (0, 0.3, None)],
    "neg_binomial_mean": [(4, None, 2.5), (0, None, 0.3)],
    "poisson": [(0, None), (3, None), (40, None)],
    "normal": [(0.5, None, 2.0), (-30.0, None, 0.1)],
    "lognormal": [(0.5, None, 2.0), (30.0, None, 0.25)],
    "student_t": [(0.5, 4.0, None, 0.45), (-2.0, 1.5, None, 3.0), (100.0, 30, None, 1.0)],
    "cauchy": [(0.5, None, 1.0), (-2.0, None, 0.1)],
    "softmax_categorical": [(0, None), (2, None), (1.0, None)],
}

SIZES = (2, 3, 5)
"""Numbers of scores of a vector predictor."""


def predictor_of(name: str) -> LinearPredictor:
    predictor = RECORDS[name].predictor
    assert predictor is not None
    return predictor


def placed(name: str, setting: tuple[Any, ...], predictor: Any) -> tuple[Any, ...]:
    """(value, *arguments) with the predictor in its place."""
    place = 1 + predictor_of(name).argument
    return (*setting[:place], predictor, *setting[place + 1 :])


def centers(name: str, setting: tuple[Any, ...]) -> float:
    """About where the predictor is likely: at the value, for a location."""
    return float(setting[0]) if name in ("normal", "student_t", "cauchy") else 0.0


def predictors(name: str, setting: tuple[Any, ...], rng: np.random.Generator, count: int = 400) -> Iterator[np.ndarray]:
    """Columns of predictors: a wide grid and random points at several scales."""
    center = centers(name, setting)
    if predictor_of(name).is_vector:
        for size in SIZES:
            if setting[0] < size:
                yield rng.normal(size=(count, size)) * np.exp(rng.uniform(-4, 4, size=(count, 1)))
    else:
        yield center + np.linspace(-40.0, 40.0, 1601)
        yield center + rng.normal(size=count) * np.exp(rng.uniform(-8, 5, size=count))
