"""A transition by a learned proposal must cost no more than a walk's, interpreted, and five passes of its network."""

from __future__ import annotations

import statistics
import time

import numpy as np

from tests.benchmarks.measure import Row, compare
from venture_lite import Venture
from venture_lite.networks.conditional import Conditional, ExampleDensity

SCHOOLS = """
[assume b0 (tag 'x 0 (student_t 3 0 10))]
[assume a (tag 'x 1 (half_cauchy 3))] [assume b (tag 'x 2 (half_cauchy 3))] [assume c (tag 'x 3 (half_cauchy 3))]
[assume ea (mem (lambda (j) (tag 'x (+ j 10) (normal 0 a))))]
[assume eb (mem (lambda (j) (tag 'x (+ j 30) (normal 0 b))))]
[assume ec (mem (lambda (j) (tag 'x (+ j 50) (normal 0 c))))]
for k in 1...120: [observe (normal (+ b0 (ea {K[k,1]}) (eb {K[k,2]}) (ec {K[k,3]})) 1) {Y[k]}]
"""
LOGISTIC = """
[assume w (mem (lambda (k) (tag 'x k (normal 0 2.5))))]
for k in 1...120: [observe (bernoulli_logit (+ (w 0) (* (w 1) {Y[k]}) (* (w 2) {K[k,1]}))) (< {Y[k]} 1)]
"""
CONJUGATE = "[assume m (tag 'x 0 (normal 0 2))] [observe (normal m 0.1) 1.3]"
SWEEPS, PASSES = 100, 5
FEWEST = 1000
"""Transitions of one inference, of which its start is a small part."""


def rows() -> list[Row]:
    return [
        _row("n-schools, 24 choices", SCHOOLS, 24),
        _row("a logistic regression, 3 weights", LOGISTIC, 3),
        _row("a conjugate normal", CONJUGATE, 1),
    ]


def _row(what: str, program: str, choices: int) -> Row:
    rng = np.random.default_rng(0)
    levels = np.column_stack([rng.integers(0, size, 120) for size in (10, 6, 4)])
    data = {"K": levels, "Y": 1.0 + rng.normal(0.0, 2.5, 10)[levels[:, 0]] + rng.normal(size=120)}
    learned, walk = Venture(seed=1), Venture(seed=1, kernels="interpreted")
    for each in (learned, walk):
        each.execute(program, **data)
    learned.compile("p", "x", "one", worlds=1000)
    sweeps = max(SWEEPS, FEWEST // choices)
    found = compare(
        lambda: learned.infer("(repeat {N} (compiled_mh p x each 1))", N=sweeps),
        lambda: walk.infer("(repeat {N} (mh x each 'drift 1 1))", N=sweeps),
    )
    count = sweeps * choices
    bar = found.theirs / count + PASSES * _pass(learned) / choices
    ratio = bar * count / found.ours
    return Row(
        f"one transition of compiled_mh, {what}",
        f"{1e6 * found.ours / count:.0f} us",
        f"at most mh 'drift, interpreted, and {PASSES} passes of the network",
        f"{1e6 * bar:.0f} us",
        ratio,
        ratio >= 1.0,
    )


def _pass(venture: Venture) -> float:
    """Seconds that networks take in a sweep."""
    given, spent = Conditional.given, [0.0]

    def timed(*arguments: object) -> ExampleDensity:
        started = time.perf_counter()
        found = given(*arguments)  # type: ignore[arg-type]
        spent[-1] += time.perf_counter() - started
        return found

    Conditional.given = timed  # type: ignore[method-assign, assignment]
    try:
        for _ in range(SWEEPS):
            spent.append(0.0)
            venture.infer("(compiled_mh p x each 1)")
    finally:
        Conditional.given = given  # type: ignore[method-assign]
    return statistics.median(spent[1:])
