"""Slices of a density: stepping out and shrinking (Neal 2003, figures 3 and 5), which all slices share, and draws of
one parameter whose log density is known at any value, coordinate by coordinate, in free coordinates.

On the trace, where the density at a value is the weight of a transition, `engines/slice.py` draws coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.distributions import transform_of
from venture_lite.procedures.record import Random

FEW = 8.0
"""How many times wider the first interval is for a class without members. Of a mixture with classes of 1 to 900 members
each point of a parameter took 16 to 5 evaluations without that, 6 to 5 with it."""


@dataclass(frozen=True, slots=True)
class SliceWidth:
    """How wide an interval is at first, and to how many times that it is widened at most."""

    width: float
    most_steps: int

    def of_class(self, weight: float, count: int) -> SliceWidth:
        """For a parameter of a class that has a weight among so many labels: it is known from its share of them, and
        where these are few they may as well belong to others, so that it is hardly known at all."""
        known = math.sqrt(1.0 + weight * count)
        return SliceWidth(self.width * (1.0 + FEW / known) / known, self.most_steps)

    def of_all(self, count: int) -> SliceWidth:
        """For one that all labels read."""
        return SliceWidth(self.width / math.sqrt(1.0 + count), self.most_steps)


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
    found = start
    left = start - width.width * rng.random()
    # one evaluation for both ends
    ends = left, left + width.width
    known = dict(zip(ends, densities(ends), strict=True))
    level = here - rng.standard_exponential()

    def lies_inside(point: float) -> bool:
        density = known.pop(point, None)
        return (densities((point,))[0] if density is None else density) > level

    def moves_to(point: float) -> bool:
        nonlocal found
        found = point
        return lies_inside(point)

    left, right = stepped_out(rng, left, width.width, width.most_steps, lies_inside)
    return found if shrink(rng, left, right, start, moves_to) else None


def stepped_out(
    rng: np.random.Generator, left: float, width: float, most_steps: int, lies_inside: Callable[[float], bool]
) -> tuple[float, float]:
    """An interval of some width made longer by that, at either end while it lies in the slice: at most so many wide."""
    steps = int(most_steps * rng.random())

    def end_of(end: float, step: float, most: int) -> float:
        while most > 0 and lies_inside(end):
            end += step
            most -= 1
        return end

    return end_of(left, -width, steps), end_of(left + width, width, most_steps - 1 - steps)


def shrink(
    rng: np.random.Generator, left: float, right: float, start: float, moves_to: Callable[[float], bool]
) -> bool:
    """Draw points of an interval about the current state until one is moved to; each before it, which lies outside the
    slice, becomes the end on its side. Whether there was one."""
    while True:
        point = left + rng.random() * (right - left)
        if not left < point < right or point == start:
            # the interval has shrunk to the current state, but for rounding
            return False
        if moves_to(point):
            return True
        left, right = shrunk(left, right, point, start)


def shrunk(left: float, right: float, point: float, start: float) -> tuple[float, float]:
    """The part of the interval on the current state's side of a point outside the slice."""
    return (point, right) if point < start else (left, point)
