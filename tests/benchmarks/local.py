"""A transition of a local choice must cost the same however much data there is."""

from __future__ import annotations

import numpy as np

from tests.benchmarks.measure import Row, compare
from venture_lite import Venture

MIXTURE = """
[assume cluster (make_crp 1)]
[assume z (mem (lambda (i) (scope_include 'z i (cluster))))]
[assume centre (mem (lambda (k) (scope_include 'centre k (normal 0 5))))]
for i in 1...N: [observe (normal (centre (z i)) 1) {Y[i]}]
"""
CHAIN = """
[assume x (mem (lambda (t) (scope_include 'x t (if (= t 0) (normal 0 1) (normal (* 0.9 (x (- t 1))) 1)))))]
for t in 1...N: [observe (normal (x t) 1) {Y[t]}]
"""
SMALL, LARGE = 1_000, 100_000
BAR = 1.5
TRANSITIONS = 5_000


def rows() -> list[Row]:
    return [
        _row("an assignment in a mixture", MIXTURE, "(mh z one {T})"),
        _row("a state in a chain", CHAIN, "(mh x one {T})"),
    ]


def _row(what: str, program: str, kernel: str) -> Row:
    values = np.random.default_rng(0).normal(size=LARGE)
    small, large = Venture(seed=1), Venture(seed=1)
    small.execute(program, Y=values, N=SMALL)
    large.execute(program, Y=values, N=LARGE)
    found = compare(lambda: large.infer(kernel, T=TRANSITIONS), lambda: small.infer(kernel, T=TRANSITIONS))
    slower = 1 / found.ratio
    return Row(
        f"one transition of {what}, at {LARGE:,}",
        f"{1e6 * found.ours / TRANSITIONS:.1f} us",
        f"at most {BAR} times that at {SMALL:,}",
        f"the same at {SMALL:,}, {1e6 * found.theirs / TRANSITIONS:.1f} us",
        slower,
        slower <= BAR,
    )
