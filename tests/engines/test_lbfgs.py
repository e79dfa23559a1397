"""L-BFGS, against that of scipy without bounds: the same steps, as long as rounding has not grown."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from venture_lite.blocks.lbfgs import Ended, Point, descent

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
RNG = np.random.default_rng(0)


def quadratic(size: int, condition: float) -> Function:
    axes = np.linalg.qr(RNG.normal(size=(size, size)))[0]
    curvature = axes @ np.diag(np.geomspace(1.0, condition, size)) @ axes.T
    slope = RNG.normal(size=size)
    return lambda x: (float(0.5 * x @ curvature @ x - slope @ x), curvature @ x - slope)


FEATURES = RNG.normal(size=(200, 8))
LABELS = (RNG.random(200) < 1.0 / (1.0 + np.exp(-FEATURES @ RNG.normal(size=8)))).astype(float)


def logistic(w: np.ndarray) -> tuple[float, np.ndarray]:
    e = FEATURES @ w
    value = np.sum(np.logaddexp(0.0, e) - LABELS * e) + 0.5 * w @ w
    return float(value), FEATURES.T @ (1.0 / (1.0 + np.exp(-e)) - LABELS) + w


def normal_with_scale(x: np.ndarray) -> tuple[float, np.ndarray]:
    off = (np.array([1.0, 2.0, 3.5, 10.0]) - x[0]) / math.exp(x[1])
    value = 0.5 * off @ off + 4.0 * x[1] + x[0] ** 2 / 200.0
    return float(value), np.array([x[0] / 100.0 - off.sum() / math.exp(x[1]), 4.0 - off @ off])


def beside_a_wall(x: np.ndarray) -> tuple[float, np.ndarray]:
    """With a gamma density of log x; the value beyond the wall is one more than at the start, and has no slope."""
    if x[0] <= 0.0:
        return 1.0 + beside_a_wall(WALL)[0], np.zeros(2)
    return float(x[0] - 5.0 * math.log(x[0]) + 0.5 * x[1] ** 2), np.array([1.0 - 5.0 / x[0], x[1]])


def waves(x: np.ndarray) -> tuple[float, np.ndarray]:
    """A bowl with ripples: slopes change their sign within a step."""
    value = 0.05 * x @ x + np.sin(2.0 * x).sum()
    return float(value), 0.1 * x + 2.0 * np.cos(2.0 * x)


def slow_rise(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Steep near 0 and flat from there on: the first step is far too short, and so are those that follow."""
    return float(np.sqrt(1e-3 + x @ x)) * 1e-3, 1e-3 * x / np.sqrt(1e-3 + x @ x)


def drop(x: np.ndarray) -> tuple[float, np.ndarray]:
    """So steep at 0 that no long step gains the share of the slope that is asked for."""
    fall = np.exp(-2000.0 * np.abs(x))
    value = (0.5 * (fall - 1.0) - 0.05 * x + 1e-4 * x**2).sum()
    return float(value), -1000.0 * np.sign(x + 1e-300) * fall - 0.05 + 2e-4 * x


def bends(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Lines that bend at 2.4, and 0.7, which is further than the first step leads, and more than it overshoots."""
    off = x - np.array([2.4, 0.7])
    return float(np.log(np.cosh(off)).sum() + 0.01 * (off**4).sum()), np.tanh(off) + 0.04 * off**3


def ripples(x: np.ndarray) -> tuple[float, np.ndarray]:
    """A slope that is nearly the same after the first step, and less steep on the way."""
    k = 2.0 * math.pi / 1.05
    return float((-0.6 * x - 0.4 * np.sin(k * x) / k + 1e-2 * x**2).sum()), -0.6 - 0.4 * np.cos(k * x) + 2e-2 * x


WALL = np.array([0.1, 3.0])
FUNCTIONS: dict[str, tuple[Function, np.ndarray]] = {
    "round": (quadratic(10, 1.0), RNG.normal(size=10)),
    "a quadratic": (quadratic(10, 100.0), RNG.normal(size=10)),
    "a steep one": (quadratic(30, 1e3), RNG.normal(size=30)),
    "a valley": (lambda x: (float(rosen(x)), rosen_der(x)), np.array([-1.2, 1.0, 0.5])),
    "a regression": (logistic, RNG.uniform(-2.0, 2.0, 8)),
    "a scale": (normal_with_scale, np.array([-2.0, 1.0])),
    "a scale from far": (normal_with_scale, np.array([50.0, -3.0])),
    "waves": (waves, np.array([3.1, -2.3, 7.0])),
    "other waves": (waves, np.array([11.0, 0.4])),
    "a cone": (slow_rise, np.array([40.0, -30.0])),
    "a drop": (drop, np.array([0.0])),
    "bends": (bends, np.zeros(2)),
    "bends from further": (bends, np.array([-1.0, 4.0])),
    "ripples": (ripples, np.array([0.0])),
    "ripples in two": (ripples, np.array([0.0, 0.1])),
    "a wall": (beside_a_wall, WALL),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_steps_are_those_of_lbfgsb(name: str) -> None:
    """Noticed: any case of the line search, the first step's length, what is remembered and for how long, the order of
    the two loops, and when it stops."""
    function, start = FUNCTIONS[name]
    theirs, trials = [start], [0, 0]

    def counted(at: int) -> Function:
        def call(x: np.ndarray) -> tuple[float, np.ndarray]:
            trials[at] += 1
            return function(x)

        return call

    found = minimize(
        counted(0), start, method="L-BFGS-B", jac=True, callback=lambda x: theirs.append(x.copy()),
        options={"maxiter": 300, "maxfun": 600, "ftol": 1e-12, "gtol": 1e-5},
    )  # fmt: skip
    *points, stop = descent(counted(1), start, 300)
    assert isinstance(stop, Ended)
    assert not stop.is_stuck
    ours = [point for point in points if isinstance(point, Point)]
    for mine, other in zip(ours[:12], theirs, strict=False):
        np.testing.assert_allclose(mine.at, other, rtol=1e-6, atol=1e-6)
    assert ours[-1].value == pytest.approx(found.fun, rel=1e-9, abs=1e-9)
    assert abs(len(ours) - len(theirs)) <= 0.1 * len(theirs)
    assert abs(trials[1] - trials[0]) <= 0.1 * trials[0] + 1


def test_it_says_why_it_stops() -> None:
    def ends(function: Function, start: np.ndarray, most: int = 300) -> Ended | Point:
        return list(descent(function, start, most))[-1]

    assert ends(quadratic(3, 10.0), np.ones(3), 2) == Ended("2 steps were made")
    assert ends(lambda x: (0.0, np.zeros(2)), np.ones(2)) == Ended("the slope is 0")
    assert ends(lambda x: (0.0, x), np.zeros(0)) == Ended("the slope is 0")
    # the gradient of another function leads up
    assert ends(lambda x: (float(x @ x), -2.0 * x), np.ones(2)) == Ended("nothing higher was found, on a slope", True)
    kink = ends(lambda x: (abs(float(x[0])), np.sign(x)), np.array([0.3]))
    assert isinstance(kink, Ended)
    assert kink.is_stuck or kink.why == "a step gained nothing"


def test_a_density_without_an_end_is_followed_as_far_as_it_may() -> None:
    *points, stop = descent(lambda x: (-float(x.sum()), -np.ones(2)), np.zeros(2), 4)
    assert stop == Ended("4 steps were made")
    assert isinstance(points[-1], Point)
    assert points[-1].value < -1e10
