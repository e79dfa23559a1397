"""Sums and integrals of densities for the tests, by the trapezoidal rule in coordinates where every density here is
smooth and falls off: the free coordinate of the record's transform, stretched by sinh for heavy tails."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.procedures import transforms
from venture_lite.procedures.transforms import Transform

COUNTS = range(4000)
"""Enough of the counts for every example: the mass beyond is below 1e-9."""


def line(
    log_density: Callable[[Any], float], transform: Transform, arguments: tuple[Any, ...], points: int = 20_001
) -> tuple[np.ndarray, np.ndarray]:
    """Values (points,) and the cumulative mass up to each."""
    if transform is transforms.CIRCLE:
        angles = np.linspace(-math.pi, math.pi, points)
        mass = np.exp(list(map(log_density, angles.tolist()))) * (angles[1] - angles[0])
        return angles, mass.cumsum() - 0.5 * (mass + mass[0])
    reach = 30.0 if transform is transforms.REAL else 6.5
    stretched = np.linspace(-reach, reach, points)
    step = stretched[1] - stretched[0]
    values, masses = [], []
    for s in stretched.tolist():
        value = transform.from_free(math.sinh(s), arguments)
        values.append(value)
        log_mass = log_density(value) + transform.log_jacobian(value, arguments)
        masses.append(math.exp(log_mass) * math.cosh(s) * step)
    mass = np.array(masses)
    return np.array(values), mass.cumsum() - 0.5 * mass


def volume(
    log_density: Callable[[Any], float], transform: Transform, arguments: tuple[Any, ...], dimensions: int = 2
) -> float:
    """The integral over one or two free coordinates of an array."""
    stretched = np.linspace(-5.0, 5.0, 121)
    step = stretched[1] - stretched[0]
    total = 0.0
    for at in itertools.product(stretched.tolist(), repeat=dimensions):
        value = transform.from_free(np.sinh(at), arguments)
        stretch = math.prod(map(math.cosh, at))
        total += stretch * math.exp(log_density(value) + transform.log_jacobian(value, arguments))
    return total * float(step) ** dimensions
