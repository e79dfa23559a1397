"""Derivatives by central differences, with the error that they have: what the tests of gradients compare with.

A central difference D(h) of a smooth function has the error c h^2 + O(h^4) of truncation and about r / h of rounding,
where r is the function's absolute rounding error. With two steps the first is measured, D(2h) - D(h) = 3 c h^2, and
taken out; what may be left is at most that difference itself, and the rounding of the combination (4 D(h) - D(2h)) / 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

STEP = 2.0**-14
"""Relative to the size of what is moved: near the cube root of rounding, where both errors are small."""

ROUNDING = 2.0**-45
"""128 units in the last place of the largest term of a density, which may be larger than their sum."""


def derivative(function: Callable[[float], float], size: float = 1.0) -> tuple[float, float]:
    """The derivative at 0 of a function of a displacement along a direction, and its possible error.

    `size` is the displacement over which the function changes in the large: the coordinate itself for a scale.
    """
    step = STEP * size
    near, far = [(function(h) - function(-h)) / (2.0 * h) for h in (step, 2.0 * step)]
    scale = max(abs(function(0.0)), abs(function(2.0 * step)), 10.0)
    return near + (near - far) / 3.0, abs(near - far) + ROUNDING * scale / step


def agree(found: float, expected: tuple[float, float]) -> bool:
    value, error = expected
    return math.isfinite(value) and abs(found - value) <= error + 1e-9 * abs(value)


def is_sharp(expected: tuple[float, float]) -> bool:
    """Whether a derivative that is wrong by a hundredth would be found out."""
    value, error = expected
    return error < 0.01 * max(abs(value), 1e-3)


def leaves(x: Any) -> list[float]:
    """The numbers in a value, or in a derivative of its shape; None stands for zero."""
    if isinstance(x, tuple):
        return [number for item in x for number in leaves(item)]
    return [0.0 if x is None else float(x)] if not isinstance(x, np.ndarray) else x.ravel().tolist()


def moved(x: Any, direction: Any, step: float) -> Any:
    """A number, an array or a list displaced along a direction of the same shape."""
    if isinstance(x, tuple):
        return tuple(moved(item, way, step) for item, way in zip(x, direction, strict=True))
    return x + step * direction


def inner(cotangent: Any, direction: Any) -> float:
    """The sum of products over all numbers; a part of a cotangent that is None counts 0."""
    if cotangent is None:
        return 0.0
    if isinstance(direction, tuple):
        return math.fsum(inner(part, way) for part, way in zip(cotangent, direction, strict=True))
    return float(np.sum(np.multiply(cotangent, direction)))


def random_direction(rng: np.random.Generator, x: Any) -> Any:
    """A displacement of the numbers of a value, of about their own sizes; other things in it stay."""
    if isinstance(x, tuple):
        return tuple(random_direction(rng, item) for item in x)
    if isinstance(x, np.ndarray):
        return rng.normal(size=x.shape) * np.maximum(np.abs(x), 1e-3)
    return float(rng.normal()) * max(abs(x), 1e-3)
