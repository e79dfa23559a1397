"""What a session keeps of expressions that it evaluated once, and of directives that were forgotten."""

from __future__ import annotations

import gc
import random
from typing import Any

import numpy as np
import pytest

from tests.generator.session import check
from venture_lite import Venture
from venture_lite.errors import VentureError
from venture_lite.interpreter.model import Model
from venture_lite.program.code import VACANT, Code

PROGRAM = """
    [assume mu (tag 'm 0 (normal 0 1))]
    [assume f (mem (lambda (i) (normal (+ mu i) 1)))]
    [observe (normal (f 1) 1) 0.5]
    [predict (map f (list 1 2))]"""


def shape(number: int) -> str:
    """An expression of a shape of its own, of one to four Codes."""
    text = "mu" if number % 2 else "((lambda (x) (if (< x 0) (+ x (f 1)) mu)) mu)"
    while number:
        number, digit = divmod(number, 8)
        text = f"({['exp', 'sin', 'cos', 'abs', 'floor', 'atan2', '+', '*'][digit]} {text}{' mu' if digit > 4 else ''})"
    return text


def codes(model: Model) -> list[Code]:
    return [code for code in model.trace.program.codes if code is not VACANT]


def loaded() -> Venture:
    venture = Venture(seed=1)
    venture.execute(PROGRAM)
    return venture


@pytest.mark.thorough
def test_the_shapes_of_samples_are_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, together = 20, 5
    monkeypatch.setattr("venture_lite.session.shapes.MOST_KEPT", kept)
    monkeypatch.setattr("venture_lite.session.shapes.TOGETHER", together)
    venture = loaded()
    (model,) = venture.traces
    sizes = []
    for number in range(180):
        venture.sample(shape(number))
        if number % 60 == 59:
            gc.collect()
            sizes.append((len(model.trace.program.codes), len(model.trace.program.site_code), len(codes(model))))
    check(venture)
    most = 4 * (kept + together) + 20
    assert all(count <= most for _, _, count in sizes)
    assert sizes[-1][0] <= most
    assert sizes[-1][1] <= 16 * most
    readers = venture.traces[0].trace.analyzer.globals["mu"].readers
    assert len(readers) < 8 * most


@pytest.mark.thorough
def test_samples_give_the_same_values_and_draws_whatever_was_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.session.shapes.MOST_KEPT", 3)
    monkeypatch.setattr("venture_lite.session.shapes.TOGETHER", 1)
    found = []
    for few in (True, False):
        if not few:
            monkeypatch.undo()
        venture = loaded()
        rng = random.Random(2)
        values: list[Any] = []
        for number in range(60):
            values.append(venture.sample(shape(rng.randrange(20))))
            if number % 10 == 5:
                venture.assume(f"g{number}", f"(mem (lambda (i) (normal (f i) {number + 1})))")
                venture.predict(f"(+ 1 (g{number} 1))")
            if number % 10 == 9:
                draws = venture.infer(f"(repeat 3 (do (mh default each 1) (collect mu {shape(number)} (f 7))))")
                values.extend(np.asarray(draws[name]).ravel().tolist() for name in draws)
                check(venture)
        found.append((values, venture.log_score()))
    assert found[0] == found[1]


@pytest.mark.thorough
def test_a_program_keeps_the_shapes_that_it_collects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.session.shapes.MOST_KEPT", 2)
    monkeypatch.setattr("venture_lite.session.shapes.TOGETHER", 1)
    venture = loaded()
    collected = " ".join(f"(labelled {shape(number)} v{number})" for number in range(12))
    draws = venture.infer(f"(repeat 4 (do (mh default one 2) (collect mu {collected})))")
    venture.sample("(* 3 mu)")
    assert venture.sample(shape(3)) == draws["v3"].ravel()[-1]
    gc.collect()
    venture.sample("(* 4 mu)")
    assert sum(code.name == "sample" for code in codes(venture.traces[0])) <= 6


@pytest.mark.thorough
def test_forgotten_directives_leave_nothing() -> None:
    venture = loaded()
    (model,) = venture.traces
    before = len(codes(model))
    for number in range(40):
        venture.assume("g", f"(lambda (i) (if (< i {number}) (lambda (x) (+ x i (f {number}))) (normal mu 1)))")
        venture.execute(f"p: [predict (if (flip) (g {number + 1}) {shape(number)})]")
        venture.sample("(g 1000)")
        venture.infer("(mh default each 1)")
        venture.forget("p")
        venture.forget("g")
    check(venture)
    gc.collect()
    venture.sample("(+ mu mu mu mu)")
    assert len(codes(model)) <= before + 4
    assert len(model.codes) <= 6
    assert len(model.trace.analyzer.globals["mu"].readers) < 20


def test_a_forgotten_directive_leaves_the_Code_that_another_one_shares() -> None:
    venture = loaded()
    venture.execute("one: [predict (+ mu (f 3))] two: [predict (+ mu (f 4))]")
    venture.forget("one")
    check(venture)
    venture.infer("(mh default each 3)")
    check(venture)
    venture.forget("two")
    venture.execute("three: [predict (+ mu (f 4))]")
    venture.infer("(mh default each 3)")
    check(venture)


def test_calls_that_stand_are_read_as_they_are_evaluated() -> None:
    """What is written otherwise evaluates the call; a call that does not stand, or cannot be made, is as ever."""
    venture = loaded()
    venture.execute('[assume g (mem (lambda (s k) (+ (f k) 1)))] [predict (g "x" 2)] [assume h f]')
    for call in ("(f 1)", "(f 1.0)", "(h 2)", '(g "x" 2)', "(f true)"):
        drawn = venture.infer(f"(repeat 3 (do (mh default one 5) (collect {call} (+ {call} 0))))")
        first, second = drawn.names
        np.testing.assert_array_equal(drawn[first], drawn[second])
    assert len(set(venture.infer("(repeat 3 (collect (f 7)))")["(f 7)"].ravel())) == 3
    with pytest.raises(VentureError, match="f takes 1 argument, got 2"):
        venture.infer("(collect (f 1 2))")
    check(venture)
