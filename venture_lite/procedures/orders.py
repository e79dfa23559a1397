"""The probability that independent values of several distributions increase.

With densities f_1 ... f_K it is F_K at the end of F_k(x) = the integral of f_k F_(k-1) up to x, from F_0 = 1. All are
polynomials between the points of one grid, which is halved until each density is one to 11 digits there, and changes by
no more than a factor of e^4, so that what is small keeps its digits as well.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import transforms
from venture_lite.procedures.record import Random

NODES = 20
"""Points of a polynomial (Gauss and Legendre)."""
ROUNDING = 1e-11
MOST_CHANGE = 4.0
NEGLIGIBLE = -690.0
"""A log probability below which a panel is not looked at."""
MOST_HALVINGS = 48
MOST_LOST = 1e-6
"""Of a density, by rounding of the points or beyond them."""
SEEDS = 16
"""Draws of each item, from which the grid begins: so it has points wherever there is mass."""


@dataclass(frozen=True, slots=True)
class _Rule:
    # on [-1, 1]
    nodes: np.ndarray
    # from values at the nodes to integrals from -1 to each of them, and to 1
    partial: np.ndarray
    whole: np.ndarray
    # where polynomials are compared, and from values at the nodes to those there
    between: np.ndarray
    interpolated: np.ndarray


@functools.cache
def _rule() -> _Rule:
    legendre = np.polynomial.legendre
    nodes, weights = legendre.leggauss(NODES)
    coefficients = np.linalg.inv(legendre.legvander(nodes, NODES - 1))
    integrals = legendre.legint(np.eye(NODES), lbnd=-1, axis=0)
    between = np.array([-0.999, -0.77, -0.23, 0.31, 0.69, 0.998])
    return _Rule(
        nodes,
        legendre.legvander(nodes, NODES) @ integrals @ coefficients,
        weights,
        between,
        legendre.legvander(between, NODES - 1) @ coefficients,
    )


LogDensity = Callable[[np.ndarray], np.ndarray]
"""Of one item, over an array of values."""


@functools.lru_cache(maxsize=64)
def log_probability_of_increase(inner: Random, items: tuple[tuple[float, ...], ...]) -> float:
    """Log of the probability that values of a distribution of numbers increase, of which each item has arguments of its
    own; to about 1e-9. -inf where it is below the floats.

    Raises ArgumentError where an item has mass nearer to an end of its support than any float."""
    densities = [_density(inner, arguments) for arguments in items]
    low, high = _panels(densities, _ends(inner, items, densities))
    half, rule = 0.5 * (high - low), _rule()
    points = _points(low, high, rule.nodes)
    below, total = np.ones(points.shape), 0.0
    with np.errstate(all="ignore"):
        for density in densities:
            shares = np.exp(density(points))
            if abs(float(half @ (shares @ rule.whole)) - 1.0) > MOST_LOST:
                raise ArgumentError(
                    f"increasing: items of {inner.name} have mass beyond the floats", hint="parameters that are larger"
                )
            product = shares * below
            masses = half * (product @ rule.whole)
            reached = np.cumsum(masses)
            scale = float(reached[-1])
            if not scale > 0.0:
                return -math.inf
            total += math.log(scale)
            below = ((reached - masses)[:, None] + half[:, None] * (product @ rule.partial.T)) / scale
    return total


def _density(inner: Random, arguments: tuple[float, ...]) -> LogDensity:
    columns = inner.log_density_columns
    lifted = (True, *(False for _ in arguments))
    assert columns is not None

    def density(x: np.ndarray) -> np.ndarray:
        assert columns is not None
        return columns(lifted, x.ravel(), *arguments).reshape(x.shape)

    return density


def _points(low: np.ndarray, high: np.ndarray, at: np.ndarray) -> np.ndarray:
    """(panels, points)"""
    return np.asarray(0.5 * (low + high)[:, None] + 0.5 * (high - low)[:, None] * at)


def _ends(inner: Random, items: tuple[tuple[float, ...], ...], densities: list[LogDensity]) -> np.ndarray:
    """The ends of panels before they are halved: draws; on both sides of each item's points whose distances double; to
    an end of the support points at halved distances; beyond all of them points that go as far as there is mass."""
    rng = np.random.default_rng(0)
    drawn = np.array([[float(inner.simulate(rng, *arguments)) for _ in range(SEEDS)] for arguments in items])
    least, most, steps = float(drawn.min()), float(drawn.max()), np.arange(1, 1100)
    with np.errstate(over="ignore"):
        away = np.ptp(drawn) * (2.0**steps - 1.0)
        around = np.concatenate([x for own in drawn for x in _around(own, 2.0**steps - 1.0)])
    inside = [drawn.ravel(), around[(around > least - away[1]) & (around < most + away[1])]]
    low, high = -math.inf, math.inf
    down, up = least - away, most + away
    if inner.transform is not transforms.REAL:
        low, down = 0.0, least * 0.5**steps
        inside.append(most * 0.5**steps)
    if inner.transform is transforms.UNIT:
        high, up = 1.0, 1.0 - (1.0 - most) * 0.5**steps
        inside.append(1.0 - (1.0 - least) * 0.5**steps)
    down, up = (each[(each > low) & (each < high)] for each in (down, up))
    down, up = _reached(np.unique(down)[::-1], least, densities), _reached(np.unique(up), most, densities)
    low, high = min(least, *down), max(most, *up)
    points = np.concatenate((down, up, *inside))
    return np.unique(points[(points >= low) & (points <= high)])


def _around(own: np.ndarray, steps: np.ndarray) -> list[np.ndarray]:
    """Of the draws of one item."""
    away = np.ptp(own) * steps
    return [own.min() - away, own.max() + away]


def _reached(points: np.ndarray, start: float, densities: list[LogDensity]) -> np.ndarray:
    """Of points ever further out those up to the first beyond which there is nothing."""
    widths = np.abs(np.diff(points, prepend=start))
    with np.errstate(all="ignore"):
        masses = np.max([density(points) for density in densities], axis=0) + np.log(widths)
    there = np.flatnonzero(masses > NEGLIGIBLE)
    return points[: there[-1] + 2] if len(there) else points[:1]


def _panels(densities: list[LogDensity], ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The panels' lower and upper ends, from the left to the right."""
    low, high = ends[:-1], ends[1:]
    done: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(MOST_HALVINGS):
        rough = np.zeros(len(low), bool)
        for density in densities:
            at = np.flatnonzero(~rough)
            rough[at] = _is_rough(density, low[at], high[at])
        middle = 0.5 * (low + high)
        rough &= (middle > low) & (middle < high)
        done.append((low[~rough], high[~rough]))
        low, high = (
            np.concatenate((low[rough], middle[rough])),
            np.concatenate((middle[rough], high[rough])),
        )
        if not len(low):
            break
    done.append((low, high))
    lows, highs = (np.concatenate(each) for each in zip(*done, strict=True))
    order = np.argsort(lows)
    return lows[order], highs[order]


def _is_rough(density: LogDensity, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """In which panels a density is no polynomial, as far as rounding of the points lets one tell."""
    rule, width = _rule(), high - low
    with np.errstate(all="ignore"):
        logs = density(_points(low, high, np.concatenate((rule.nodes, rule.between))))
        top = logs.max(axis=1)
        change = top - logs.min(axis=1)
        shares = np.exp(logs - top[:, None])
        error = np.abs(shares[:, :NODES] @ rule.interpolated.T - shares[:, NODES:]).max(axis=1)
        of_points = 16.0 * np.spacing(np.maximum(np.abs(low), np.abs(high))) / width
        is_bad = (error > ROUNDING + of_points * np.minimum(change, 1.0)) | (change > MOST_CHANGE)
        return np.asarray(is_bad & (top + np.log(width) > NEGLIGIBLE) & (of_points < 0.1))
