"""A normal distribution registered from Python, and the comparison of draws with a mean, for tests of registration."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from venture_lite import Venture

# tests of means: at |z| = 5.5 a right sampler fails with probability 4e-8
THRESHOLD = 5.5


def gauss(value: float, mean: float, sd: Annotated[float, "positive"]) -> float:
    return -0.5 * ((value - mean) / sd) ** 2 - math.log(sd) - 0.5 * math.log(2 * math.pi)


def gauss_columns(value: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    return -0.5 * ((value - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)


def with_gauss(**changed: Any) -> Venture:
    venture = Venture(seed=1)
    fields: dict[str, Any] = {
        "simulate": lambda rng, mean, sd: rng.normal(mean, sd),
        "log_density": gauss,
        "domain": "real",
    }
    venture.register("gauss", **{**fields, **changed})
    return venture


def agrees(draws: np.ndarray, mean: float, ess: float) -> bool:
    return bool(abs(draws.mean() - mean) < THRESHOLD * draws.std() / math.sqrt(ess))
