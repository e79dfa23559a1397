"""Whether two results of one computation agree but for rounding, and whether a slope agrees with differences.

A result is compared with another of the same size. Where they differ by more than rounding leaves of sums, the results
for arguments that differ by a few units in the last place say how much more is rounding: a small difference of large
numbers, or an ill-conditioned matrix, multiplies it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

EPS = float(np.finfo(float).eps)
UNITS = 4.0 * EPS
"""How far arguments are moved, relative to themselves, to see what rounding does."""
MOVES = 4
ALLOWED = 16.0
"""Of the largest change that was seen of so many, what rounding may come to."""

SLOPE, SMALL = 1e-4, 1e-2
"""What slopes may be off by, relative to themselves, and to the largest of several times SMALL."""
STEPS = (1e-4, 1e-5, 1e-3, 1e-6, 1e-2, 1e-7, 1e-1)
"""Lengths of steps of which one must show the slope: a long one meets curvature and kinks, a short one rounding."""
SHORTER, SPREAD, ALIKE = (0.8, 0.6), 3.0, 1e-2
"""By how much differences over such parts of a step may differ, relative to themselves, for the step to show a slope,
and how often what they differ by the slope may be off."""

Along = Callable[[float], Any]
"""A function, of numbers or arrays, at a distance along a line; None where it has no value."""


def of_counts(values: Any) -> Any:
    """The magnitudes of the log factorials of which the log densities of whole numbers are made; 0 of other values.
    Of a number or an array of them."""
    try:
        sizes = np.abs(np.asarray(values, np.float64))
    except (TypeError, ValueError):
        return 0.0
    return np.where(np.isfinite(sizes) & (np.trunc(sizes) == sizes), sizes * np.log(2.0 + sizes), 0.0)


def of_arguments(function: Callable[..., float], arguments: Sequence[Any]) -> float:
    """How far rounding may take a function, from how much it changes with the last places of its arguments, numbers and
    arrays."""
    rng, here, most = np.random.default_rng(0), function(*arguments), 0.0
    for _ in range(MOVES):
        moved = [_moved(each, rng) for each in arguments]
        try:
            found = abs(function(*moved) - here)
        except Exception:
            continue
        most = max(most, found if math.isfinite(found) else 0.0)
    return ALLOWED * most


def _moved(argument: Any, rng: np.random.Generator) -> Any:
    if isinstance(argument, float):
        return argument * (1.0 + UNITS * rng.standard_normal())
    if isinstance(argument, np.ndarray) and argument.dtype.kind == "f":
        return argument * (1.0 + UNITS * rng.standard_normal(argument.shape))
    return argument


def along_line(along: Along) -> Any:
    """How far rounding may take a function along a line whose unit is no shorter than its coordinates are large."""
    here = along(0.0)
    found = [along(sign * count * UNITS) for count in range(1, MOVES + 1) for sign in (1.0, -1.0)]
    changes = [np.abs(np.asarray(each) - here) for each in found if each is not None]
    return ALLOWED * np.max(changes, axis=0) if changes else 0.0


def slope_agrees(along: Along, slope: Any, size: float = 0.0) -> bool | None:
    """True if the slope of a function along a line agrees with its differences over a step of some length, each number
    of an array with one of its own; `size` is that of the function's values, to which what is computed in steps, as the
    solution of an equation, is exact. None where no step shows a slope."""
    slope = np.asarray(slope)
    allowed = SLOPE * (np.abs(slope) + SMALL * np.max(np.abs(slope), initial=size))
    agrees, varies, is_known = np.zeros(slope.shape, bool), np.zeros(slope.shape, bool), False
    for step in STEPS:
        if (found := _difference(along, step)) is not None:
            is_known = True
            varies |= found != 0.0
            agrees |= np.abs(found - slope) <= allowed
        if agrees.all():
            return True
    # of a function that rounding makes flat over short steps, a longer one may show the slope
    is_shown, least = ~varies if is_known else varies, np.full(slope.shape, np.inf)
    is_near = np.zeros(slope.shape, bool)
    for step in STEPS:
        differences = [_difference(along, part * step) for part in (1.0, *SHORTER)]
        if any(each is None for each in differences):
            continue
        spread, size = np.ptp(differences, axis=0), np.abs(differences[0])
        shows = (size > 0.0) & (spread <= ALIKE * (size + SMALL * np.max(size, initial=0.0))) & (spread < least)
        is_near = np.where(shows, np.abs(differences[0] - slope) <= allowed + SPREAD * spread, is_near)
        least = np.where(shows, spread, least)
    agrees |= is_near
    return bool(agrees.all()) if (agrees | is_shown | np.isfinite(least)).all() else None


def _difference(along: Along, step: float) -> Any:
    """The central difference; None where the function has no value."""
    there, back = along(step), along(-step)
    return None if there is None or back is None else (np.asarray(there) - back) / (2.0 * step)
