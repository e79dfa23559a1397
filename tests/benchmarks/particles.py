"""Particle Gibbs on a chain of states: sweeps a second, and how the time grows with states and with particles; the same
growth where every block brings a branch into being, and with ancestor sampling."""

from __future__ import annotations

import statistics

import numpy as np

from tests.benchmarks.measure import Row, seconds
from venture_lite import Venture

MODEL = """
[assume h (mem (lambda (t) (scope_include 'h t (if (= t 1) (normal 0 1) (normal (* 0.95 (h (- t 1))) 0.3)))))]
for t in 1...N: [observe (normal 0 (exp (/ (h t) 2))) {Y[t]}]
"""
SWITCHES = """
[assume z (mem (lambda (t) (scope_include 'h t (flip (if (= t 1) 0.5 (if (z (- t 1)) 0.9 0.1))))))]
[assume e (mem (lambda (t) (if (z t) (normal 2 1) (normal 0 (if (flip 0.5) 1 2)))))]
for t in 1...N: [observe (normal (e t) 0.5) {Y[t]}]
"""
STATES, PARTICLES, SWEEPS = 50, 100, 20
BAR = 20.0
GROWTH = 1.3


def model(states: int, text: str = MODEL) -> Venture:
    v = Venture(seed=1)
    v.execute(text, N=states, Y=np.random.default_rng(0).normal(size=states))
    return v


def time_of(v: Venture, particles: int, sweeps: int = SWEEPS, option: str = "") -> float:
    """Seconds for a sweep, the preparation that is made once in a program left out; the median of five."""
    kernel = f"(pgibbs h ordered {particles} {option} {{T}})"
    found = []
    for _ in range(5):
        both = [seconds(lambda n=n: v.infer(kernel, T=n)) for n in (1, 1 + sweeps)]  # type: ignore[misc]
        found.append((both[1] - both[0]) / sweeps)
    return statistics.median(found)


def growth(what: str, long: float, short: float) -> Row:
    """From 50 to 400 of something, as a multiple of what is in proportion."""
    found = long / short / 8
    measured = f"{found:.2f} times in proportion"
    return Row(f"  from 50 to 400 {what}", measured, f"at most {GROWTH}", "in proportion", found, found <= GROWTH)


def rows() -> list[Row]:
    short, long = model(STATES), model(8 * STATES)
    few, many = time_of(short, 50), time_of(short, 400)
    base, longer = time_of(short, PARTICLES), time_of(long, PARTICLES)
    name = f"pgibbs, {STATES} states, {PARTICLES} particles"
    result = [Row(name, f"{1 / base:.0f} sweeps a second", f"at least {BAR:.0f}", "-", None, 1 / base >= BAR)]
    result += [growth("states", longer, base), growth("particles", many, few)]
    short, long = model(STATES, SWITCHES), model(8 * STATES, SWITCHES)
    for option in ("", "'ancestor"):
        base = time_of(short, 50, 1, option)
        with_option = f"a branch in every block{', ' if option else ''}{option}"
        result.append(growth(f"states, {with_option}", time_of(long, 50, 1, option), base))
        result.append(growth(f"particles, {with_option}", time_of(short, 400, 1, option), base))
    return result
