"""A chain of 100,000 memoized states, reached by recursion from its end."""

from __future__ import annotations

import random

from tests.benchmarks.measure import Row, compare, seconds
from venture_lite import Venture

MODEL = """
[assume x (mem (lambda (t) (scope_include 'x t (if (= t 0) (normal 0 1) (normal (* 0.9 (x (- t 1))) 1)))))]
[predict (x {N})]
"""
LENGTH = 100_000
BAR = 8.0


def rows() -> list[Row]:
    models: list[Venture] = []

    def evaluate() -> None:
        models[:] = [Venture(seed=1)]
        models[0].execute(MODEL, N=LENGTH)

    found = compare(evaluate, by_hand, repetitions=3)
    result = [
        Row(
            f"chain of {LENGTH:,} memoized states, evaluated",
            f"{found.ours:.2f} s",
            f"at most {BAR:.0f} s",
            f"a Python loop and a dictionary, {found.theirs:.3f} s",
            found.ratio,
            found.ours <= BAR,
        )
    ]
    for name, state in (("last", LENGTH), ("middle", LENGTH // 2), ("first", 0)):
        models[0].infer("(mh x {state} 1)", state=state)
        took = seconds(lambda state=state: models[0].infer("(mh x {state} 1)", state=state))  # type: ignore[misc]
        measured = f"{1e6 * took:,.0f} us"
        result.append(Row(f"  one transition of the {name}", measured, "no recursion error", "-", None, True))
    return result


def by_hand() -> float:
    rng = random.Random(1)
    states = {0: rng.gauss(0.0, 1.0)}
    for step in range(1, LENGTH + 1):
        states[step] = rng.gauss(0.9 * states[step - 1], 1.0)
    return states[LENGTH]
