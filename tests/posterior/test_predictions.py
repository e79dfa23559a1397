"""Predictions are current after every transition, whatever lies between them and the choice that moved."""

from __future__ import annotations

import numpy as np
import pytest

PROGRAMS = {
    "arithmetic": (
        "[assume mu (normal 0 1)] [assume double (* 2 mu)] [observe (normal double 1) 1]",
        ("(+ double 1)", "(exp (- mu))"),
        ("(mh default one 1)", "(mh default one 'drift 0.5 1)"),
    ),
    "branch": (
        "[assume z (flip)] [assume x (if z (normal 0 1) 7)] [observe (normal (if z x 1) 1) 0.5]",
        ("(if z (* x 10) -1)", "(list z x)", "(= x 7)"),
        ("(mh default one 1)", "(mh default each 1)"),
    ),
    "memo": (
        """[assume k (scope_include 'k 0 (uniform_discrete 0 3))] [assume f (mem (lambda (i) (normal i 1)))]
           [assume g (mem (lambda (i) (+ (f i) (f k))))] [observe (normal (g 1) 1) 2]""",
        ("(g 1)", "(+ (f 0) (f k))", "(* 2 (g k))"),
        ("(mh default one 1)", "(mh default all 1)", "(gibbs k one 1)"),
    ),
    "recursion": (
        """[assume (geo) (if (flip 0.6) 0 (+ 1 (geo)))] [assume n (geo)]
           [assume (count k) (if (<= k 0) (list) (pair k (count (- k 1))))] [observe (normal n 1) 2]""",
        ("(count n)", "(size (count n))"),
        ("(mh default one 1)", "(gibbs default one 1)"),
    ),
    "closures": (
        """[assume a (normal 0 1)] [assume make (lambda (b) (lambda (x) (+ a (* b x))))] [assume s (flip)]
           [assume line (if s (make 2) (make a))] [observe (normal (line 1) 1) 1]""",
        ("(line 3)", "((make a) 2)"),
        ("(mh default one 1)", "(mh default each 1)"),
    ),
    "tables": (
        """[assume crp (make_crp 1)] [assume z (mem (lambda (i) (scope_include 'z i (crp))))]
           [assume mean (mem (lambda (t) (normal 0 2)))]
           [observe (normal (mean (z 1)) 1) -1] [observe (normal (mean (z 2)) 1) 1]
           [observe (normal (mean (z 3)) 1) 2]""",
        ("(mean (z 2))", "(+ (mean (z 1)) (mean (z 3)))", "(= (z 1) (z 2))"),
        ("(mh default one 1)", "(gibbs z one 1)", "(gibbs z each 1)"),
    ),
    "wide": (
        """[assume mu (normal 0 1)] [assume x (mem (lambda (i) (scope_include 'x i (normal mu 1))))]
           [assume (total k) (if (= k 0) 0 (+ (x k) (total (- k 1))))] [observe (normal (total 60) 5) 20]""",
        ("(total 60)", "(- (total 60) (* 60 mu))", "(x 60)"),
        ("(mh default one 1)", "(mh x each 1)", "(mh x 60 1)"),
    ),
}
# a sweep over many choices is many transitions
ROUNDS, SWEEPS = 30, 6
CHECKS = [
    pytest.param(program, expressions, engine, SWEEPS if engine == "(mh x each 1)" else ROUNDS, id=f"{name}:{engine}")
    for name, (program, expressions, engines) in PROGRAMS.items()
    for engine in engines
]


@pytest.mark.parametrize(("program", "expressions", "engine", "rounds"), CHECKS)
def test_predictions_are_current_after_every_transition(
    program: str, expressions: tuple[str, ...], engine: str, rounds: int
) -> None:
    from venture_lite import Venture

    venture = Venture(seed=11)
    venture.execute(program)
    labels = [f"p{i}" for i in range(len(expressions))]
    for label, expression in zip(labels, expressions, strict=True):
        venture.predict(expression, label=label)
    seen = set()
    for _ in range(rounds):
        venture.infer(engine)
        for label, expression in zip(labels, expressions, strict=True):
            # What `sample` draws is evaluated now; nothing in these expressions is random beyond the trace.
            now, kept = venture.sample(expression), venture.report(label)
            assert np.array_equal(np.asarray(kept, dtype=object), np.asarray(now, dtype=object)) or np.allclose(
                np.asarray(kept, dtype=float), np.asarray(now, dtype=float), rtol=1e-12, atol=1e-12
            ), f"{expression} is reported as {kept} and is {now}"
            seen.add((label, str(now)))
    assert len(seen) > len(labels), "nothing ever moved"
