"""The method of Broyden, Fletcher, Goldfarb and Shanno with limited memory, L-BFGS, downhill.

Steps are those of L-BFGS-B without bounds (Byrd, Lu, Nocedal and Zhu 1995, SIAM Journal on Scientific Computing 16),
with the line search of More and Thuente (1994, ACM Transactions on Mathematical Software 20). `pathfinder.py` makes its
normals of the path that they take, and a short run has no time for the import of a library of optimizers.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

MEMORY = 10
"""Steps of which the curvature is remembered."""
FLAT = 1e-5
"""The greatest derivative at a minimum."""
LEVEL = 1e-12
"""What a step to a minimum gains, relative to the value, at most."""

# of a line search: a step gains at least this share of what the slope at its beginning promises, the slope at its end
# is at most this share of that, and the bounds of the step are no further apart than this share of it
GAIN, LESS_STEEP, NARROW = 1e-3, 0.9, 0.1
MOST_TRIALS = 20
"""Evaluations of a line search."""
LONGEST = 1e10
"""A step, relative to the first that is tried."""

SHRINKS = 0.66
"""Bounds that do not shrink to this share in two trials are halved."""

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""A point (D,) -> the value there, and the gradient (D,)."""


Memory = deque[tuple[np.ndarray, np.ndarray, float]]
"""Of steps their move, the change of the gradient (D,), and the product of both."""

EPSILON = float(np.finfo(float).eps)


class Ended(NamedTuple):
    """Why a descent ended."""

    why: str
    # whether nothing lower was found, though there is a slope
    is_stuck: bool = False


class Point(NamedTuple):
    at: np.ndarray
    value: float
    gradient: np.ndarray


def descent(function: Function, start: np.ndarray, most_steps: int) -> Iterator[Point | Ended]:
    """The points at which steps end, from `start` on, and then why there are no more."""
    here = Point(start, *function(start))
    yield here
    memory: Memory = deque(maxlen=MEMORY)
    for step in range(most_steps):
        if np.abs(here.gradient).max(initial=0.0) <= FLAT:
            yield Ended("the slope is 0")
            return
        while (found := _step(function, here, memory, step == 0)) is None:
            # what is remembered may be of another place
            if not memory:
                yield Ended("nothing higher was found, on a slope", True)
                return
            memory.clear()
        move, change = found.at - here.at, found.gradient - here.gradient
        before, here = here, found
        yield here
        if before.value - here.value <= LEVEL * max(abs(before.value), abs(here.value), 1.0):
            if np.abs(here.gradient).max(initial=0.0) > FLAT:
                yield Ended("a step gained nothing")
                return
        elif (product := float(move.dot(change))) > -EPSILON * float(move.dot(before.gradient)):
            memory.append((move, change, product))
    yield Ended(f"{most_steps} steps were made")


def _step(function: Function, here: Point, memory: Memory, is_first: bool) -> Point | None:
    """Where a step ends; None where a line search finds nothing lower."""
    way = _way(here.gradient, memory)
    slope = float(way.dot(here.gradient))
    if not slope < 0.0:
        return None
    length = 1.0 / math.sqrt(float(way.dot(way))) if is_first else 1.0
    try:
        return _searched(function, here, way, slope, length)
    except ArithmeticError:
        # values that are too large or too near one another
        return None


def _way(gradient: np.ndarray, memory: Memory) -> np.ndarray:
    """Minus the gradient times the inverse Hessian that is remembered (Nocedal and Wright 2006, Numerical optimization,
    algorithm 7.4)."""
    way = -gradient
    if not memory:
        return way
    shares = []
    for move, change, product in reversed(memory):
        shares.append(float(move.dot(way)) / product)
        way = way - shares[-1] * change
    _, change, product = memory[-1]
    way = way * (product / float(change.dot(change)))
    for (move, change, product), share in zip(memory, reversed(shares), strict=True):
        way = way + (share - float(change.dot(way)) / product) * move
    return way


class _Trial(NamedTuple):
    """A length that was tried, with the value and the slope there."""

    length: float
    value: float
    slope: float

    def tilted(self, slope: float) -> _Trial:
        """Of the function less a slope."""
        return _Trial(self.length, self.value - self.length * slope, self.slope - slope)


def _searched(function: Function, here: Point, way: np.ndarray, slope: float, length: float) -> Point | None:
    """Along a way the point at which the value and the slope are low enough, or between bounds of such a point that are
    as near as they should be (More and Thuente 1994, section 2). None after MOST_TRIALS."""
    wanted = GAIN * slope
    best = other = _Trial(0.0, here.value, slope)
    is_bracketed, is_first_stage = False, True
    least, most = 0.0, 5.0 * length
    width, width_before = LONGEST, 2.0 * LONGEST
    for _ in range(MOST_TRIALS):
        at = here.at + length * way
        point = Point(at, *function(at))
        trial, limit = _Trial(length, point.value, float(point.gradient.dot(way))), here.value + length * wanted
        is_below = trial.value <= limit
        if is_below and abs(trial.slope) <= -LESS_STEEP * slope:
            return point
        if is_bracketed and (not least < length < most or most - least <= NARROW * most):
            return point
        if length == LONGEST and is_below and trial.slope <= wanted:
            return point
        is_first_stage = is_first_stage and not (is_below and trial.slope >= 0.0)
        three = best, other, trial
        if is_first_stage and limit < trial.value <= best.value:
            three = best.tilted(wanted), other.tilted(wanted), trial.tilted(wanted)
        length, is_higher, is_turned = _next(*three, is_bracketed, least, most)
        is_bracketed = is_bracketed or is_higher or is_turned
        best, other = (best, trial) if is_higher else (trial, best if is_turned else other)
        if is_bracketed:
            if abs(other.length - best.length) >= SHRINKS * width_before:
                length = best.length + 0.5 * (other.length - best.length)
            width, width_before = abs(other.length - best.length), width
            least, most = sorted((best.length, other.length))
        else:
            least, most = length + 1.1 * (length - best.length), length + 4.0 * (length - best.length)
        length = min(max(length, 0.0), LONGEST)
        if is_bracketed and (not least < length < most or most - least <= NARROW * most):
            length = best.length
        if not math.isfinite(length):
            return None
    return None


def _next(
    best: _Trial, other: _Trial, trial: _Trial, is_bracketed: bool, least: float, most: float
) -> tuple[float, bool, bool]:
    """The next length to try, whether the value at the last one is higher than the best, and whether the slopes at both
    have different signs (More and Thuente 1994, section 4, cases 1 to 4)."""
    is_turned = trial.slope * best.slope < 0.0
    line = trial.length + _secant(trial, best) if trial.slope != best.slope else math.inf
    if trial.value > best.value:
        cubic = best.length + _cubic(best, trial)
        drop = (best.value - trial.value) / (trial.length - best.length) + best.slope
        parabola = best.length + 0.5 * best.slope / drop * (trial.length - best.length)
        is_near = abs(cubic - best.length) < abs(parabola - best.length)
        return (cubic if is_near else cubic + 0.5 * (parabola - cubic)), True, is_turned
    if is_turned:
        cubic = trial.length + _cubic(trial, best)
        return (cubic if abs(cubic - trial.length) > abs(line - trial.length) else line), False, True
    end = most if trial.length > best.length else least
    if abs(trial.slope) < abs(best.slope):
        cubic = _falling_cubic(best, trial, end)
        is_near = abs(cubic - trial.length) < abs(line - trial.length)
        if not is_bracketed:
            return min(max(line if is_near else cubic, least), most), False, False
        found, bound = cubic if is_near else line, trial.length + SHRINKS * (other.length - trial.length)
        return (min if trial.length > best.length else max)(found, bound), False, False
    return (trial.length + _cubic(trial, other) if is_bracketed else end), False, False


def _secant(one: _Trial, other: _Trial) -> float:
    """From `one`, where the line through both slopes is 0."""
    return one.slope / (one.slope - other.slope) * (other.length - one.length)


def _bend(one: _Trial, other: _Trial) -> float:
    return 3.0 * (one.value - other.value) / (other.length - one.length) + one.slope + other.slope


def _cubic(one: _Trial, other: _Trial) -> float:
    """From `one`, the minimum of the cubic through both."""
    bend = _bend(one, other)
    size = max(abs(bend), abs(one.slope), abs(other.slope))
    root = size * math.sqrt(max(0.0, (bend / size) ** 2 - one.slope / size * (other.slope / size)))
    root = -root if other.length < one.length else root
    share = ((root - one.slope) + bend) / (((root - one.slope) + root) + other.slope)
    return share * (other.length - one.length)


def _falling_cubic(best: _Trial, trial: _Trial, end: float) -> float:
    """The minimum of the cubic through both if it lies beyond the trial, or that which it leads to."""
    bend = _bend(best, trial)
    size = max(abs(bend), abs(best.slope), abs(trial.slope))
    root = size * math.sqrt(max(0.0, (bend / size) ** 2 - best.slope / size * (trial.slope / size)))
    root = -root if trial.length > best.length else root
    share = ((root - trial.slope) + bend) / ((root + (best.slope - trial.slope)) + root)
    return trial.length + share * (best.length - trial.length) if share < 0.0 and root != 0.0 else end
