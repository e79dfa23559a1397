"""Particle Gibbs on a chain of states: sweeps a second, and how the time grows with states and with particles."""

from __future__ import annotations

import statistics

import numpy as np

from tests.benchmarks.measure import Row, seconds
from venture_lite import Venture

MODEL = """
[assume h (mem (lambda (t) (scope_include 'h t (if (= t 1) (normal 0 1) (normal (* 0.95 (h (- t 1))) 0.3)))))]
for t in 1...N: [observe (normal 0 (exp (/ (h t) 2))) {Y[t]}]
"""
STATES, PARTICLES, SWEEPS = 50, 100, 20
BAR = 20.0
GROWTH = 1.3


def model(states: int) -> Venture:
    v = Venture(seed=1)
    v.execute(MODEL, N=states, Y=np.random.default_rng(0).normal(size=states))
    return v


def time_of(v: Venture, particles: int) -> float:
    """Seconds for a sweep, the preparation that is made once in a program left out; the median of five."""
    found = []
    for _ in range(5):
        both = [seconds(lambda n=n: v.infer("(pgibbs h ordered {P} {T})", P=particles, T=n)) for n in (1, 1 + SWEEPS)]  # type: ignore[misc]
        found.append((both[1] - both[0]) / SWEEPS)
    return statistics.median(found)


def rows() -> list[Row]:
    short, long = model(STATES), model(8 * STATES)
    few, many = time_of(short, 50), time_of(short, 400)
    base, longer = time_of(short, PARTICLES), time_of(long, PARTICLES)
    result = [
        Row(
            f"pgibbs, {STATES} states, {PARTICLES} particles",
            f"{1 / base:.0f} sweeps a second",
            f"at least {BAR:.0f}",
            "-",
            None,
            1 / base >= BAR,
        )
    ]
    for what, growth in (("states", longer / base / 8), ("particles", many / few / 8)):
        measured = f"{growth:.2f} times in proportion"
        result.append(
            Row(f"  from 50 to 400 {what}", measured, f"at most {GROWTH}", "in proportion", growth, growth <= GROWTH)
        )
    return result
