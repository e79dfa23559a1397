"""Slices of one parameter whose log density is known at any value: stepping out and shrinking (Neal 2003, figures 3 and
5), coordinate by coordinate, in free coordinates.

What `engines/slice.py` does on the trace, where the density at a value is the weight of a transition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.distributions import transform_of
from venture_lite.procedures.record import Random


@dataclass(frozen=True, slots=True)
class SliceWidth:
    """How wide an interval is at first, and to how many times that it is widened at most."""

    width: float
    most_steps: int

    def of_class(self, weight: float, count: int) -> SliceWidth:
        """For a parameter of a class that has a weight among so many labels: it is known from its share of them."""
        return SliceWidth(self.width / math.sqrt(1.0 + weight * count), self.most_steps)

    def of_all(self, count: int) -> SliceWidth:
        """For one that all labels read."""
        return self.of_class(1.0, count)


def drawn_from_slice(
    rng: np.random.Generator, record: Random, arguments: tuple[Any, ...], value: Any, width: SliceWidth,
    log_densities: Callable[[Sequence[Any]], Sequence[float]], here: float,
) -> Any:  # fmt: skip
    """A value of a choice, each coordinate drawn from the slice below its density, that of its distribution times what
    `log_densities` says of values, which is `here` at the present one."""
    transform = transform_of(record)
    assert transform is not None
    free = np.array(transform.to_free(value, arguments), dtype=np.float64)

    def value_at(index: int, coordinate: float) -> Any:
        if not free.ndim:
            return transform.from_free(coordinate, arguments)
        moved = free.copy()
        moved.flat[index] = coordinate
        return transform.from_free(moved, arguments)

    def prior_of(at: Any) -> float:
        return float(record.log_density(at, *arguments)) + float(transform.log_jacobian(at, arguments))

    for index in range(free.size):

        def densities(points: Sequence[float], index: int = index) -> list[float]:
            values = [value_at(index, point) for point in points]
            return [prior_of(at) + rest for at, rest in zip(values, log_densities(values), strict=True)]

        if index:
            (here,) = log_densities([value])
        point = slice_point(rng, float(free.flat[index]), prior_of(value) + here, width, densities)
        if point is not None:
            value = value_at(index, point)
            free.flat[index] = point
    return value


def slice_point(
    rng: np.random.Generator, start: float, here: float, width: SliceWidth,
    densities: Callable[[Sequence[float]], Sequence[float]],
) -> float | None:  # fmt: skip
    """A point of the slice below the density at a start, `here`; None where rounding leaves the start alone."""
    left = start - width.width * rng.random()
    right = left + width.width
    at_left, at_right = densities((left, right))
    level = here - rng.standard_exponential()
    steps = int(width.most_steps * rng.random())
    left = _stepped_out(left, -width.width, steps, at_left, level, densities)
    right = _stepped_out(right, width.width, width.most_steps - 1 - steps, at_right, level, densities)
    while True:
        point = left + rng.random() * (right - left)
        if not left < point < right or point == start:
            return None
        if densities((point,))[0] > level:
            return point
        left, right = (point, right) if point < start else (left, point)


def _stepped_out(
    end: float, step: float, most: int, density: float, level: float,
    densities: Callable[[Sequence[float]], Sequence[float]],
) -> float:  # fmt: skip
    while most > 0 and density > level:
        end += step
        most -= 1
        density = densities((end,))[0] if most else -math.inf
    return end
