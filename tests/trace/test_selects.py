"""An `if` between arithmetic on numbers at hand is a select: it has no rows, and what is not taken may fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.audit.invariants import check
from venture_lite.errors import VentureError
from venture_lite.program import selects
from venture_lite.program.code import Kind
from venture_lite.program.selects import SELECT

BRANCHES = {
    "a slope": ("(if (> t w) (* c (- t w)) 0)", True),
    "one inside of another": ("(if (< t w) a (if (< t c) 1 (abs (- t c))))", True),
    "conditions": ("(cond ((< t w) a) ((and (> t 3) (> c 0)) (+ a c)) (else 0))", True),
    "a logarithm": ("(if (> a 0) (log a) 0)", False),
    "a quotient": ("(if (= t 0) 0 (/ a t))", False),
    "a call": ("(if (> t w) (f t) 0)", False),
    "a choice": ("(if (> t w) (normal 0 1) 0)", False),
    "more than is cheap": (f"(if (> t w) {'(+ 1 ' * 13}a{')' * 13} 0)", False),
}
NAMES = """
    [assume a (normal 0 1)] [assume c (normal 0 1)] [assume w (uniform_discrete 1 6)]
    [assume f (mem (lambda (t) (normal t 1)))] """


@pytest.mark.parametrize("name", BRANCHES)
def test_only_what_is_cheap_is_selected(name: str) -> None:
    text, is_select = BRANCHES[name]
    v = Venture(seed=1)
    v.execute(f"{NAMES} for t in 1...4: [observe (normal (+ a {text}) 1) t]")
    code = v.traces[0].trace.program.codes[-1]
    code = code if code.kind == "directive" else code.parent or code
    assert any(slot.record is SELECT for slot in code.slots) == is_select
    assert any(slot.kind is Kind.IF for slot in code.slots) != is_select


VALUES: list[tuple[str, Any]] = [
    ("[assume s (categorical (list 0.5 0.5) (list 'red 'blue))] [predict (+ 1 (if false (* 2 s) 3))]", 4),
    ("[assume s (categorical (list 0.5 0.5) (list 'red 'blue))] [predict (+ 1 (if true 3 (- (* 2 s) 1)))]", 4),
    ("[assume x (dirichlet (list 1 1))] [assume y (dirichlet (list 1 1 1))] [predict (+ 1 (if (> 0 1) (+ x y) 0))]", 1),
    ("[assume b (* 1e200 1e200)] [assume n (normal 0 1)] [predict (+ 1 (if (< n -99) (- b b) 0))]", 1),
    ("[assume s (uniform_draw (list 'red 'blue))] [predict (+ 1 (if true 2 (if (< s 1) 3 4)))]", 3),
    ("[assume s (uniform_draw (list 'red 'blue))] [assume (f x) (if (> x 1) (* x s) x)] [predict (f 1)]", 1),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_what_is_not_taken_may_fail(text: str, value: Any) -> None:
    v = Venture(seed=1)
    assert v.execute(text)[-1] == value
    v.infer("(mh default one 20)")
    check(v.traces[0])


def test_rows_of_which_some_fail_are_computed_one_by_one() -> None:
    """Of thirty rows, where one has a vector of another length in what it does not take."""
    v = Venture(seed=1, kernels="checked")
    v.execute(
        """[assume c (normal 0 1)] [assume inf (* 1e200 1e200)]
           for t in 1...30: [observe (normal (+ c (if (> t 40) (- (* inf t) inf) 0.5)) 1) {Y[t]}]""",
        Y=np.linspace(0, 1, 30),
    )
    v.infer("(mh default one 30)")
    check(v.traces[0])


FAILING = [
    ("[assume s (uniform_draw (list 'red 'red))] [predict (+ 1 (if true (+ 1 (* 2 s)) 3))]", "(* 2 s)"),
    ("[assume s (uniform_draw (list 'red 'red))] [predict (if (> 2 1) (+ 1 (* 2 s)) (+ 1 2))]", "(* 2 s)"),
    ("[assume s (uniform_draw (list 'red 'red))] [predict (+ 1 (if (< 2 1) 0 (if (< s 1) 3 4)))]", "(< s 1)"),
]


@pytest.mark.parametrize(("text", "place"), FAILING)
def test_what_is_taken_and_fails_is_an_error_with_its_place(text: str, place: str) -> None:
    with pytest.raises(VentureError) as caught:
        Venture(seed=1).execute(text)
    assert caught.value.span is not None
    assert caught.value.span.text == place


def test_a_select_that_raises_what_it_does_not_take_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.program.compiler.tolerant", lambda record: record)
    monkeypatch.setattr("venture_lite.program.forms.tolerant", lambda record: record)
    with pytest.raises(VentureError):
        test_what_is_not_taken_may_fail(*VALUES[0])
    assert selects.tolerant(SELECT) is not SELECT


def test_a_change_of_slope_moves_by_columns() -> None:
    v = Venture(seed=1, kernels="checked")
    v.execute(
        """[assume level (normal 0 1)] [assume change (normal 0 1)] [assume when (uniform_continuous 1 30)]
           for t in 1...30: [observe (normal (+ level (if (> t when) (* change (- t when)) 0)) 1) {Y[t]}]""",
        Y=[0.2 * max(t - 12, 0) for t in range(30)],
    )
    kernel = "(slice (choices when) each 5 8 20)"
    assert "columns" in str(v.explain(kernel))
    (row,) = v.infer(kernel).statistics
    assert row.transitions == 20
