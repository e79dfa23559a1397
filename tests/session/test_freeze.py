"""`[freeze ...]`: a value becomes a constant, and the choices that only it used leave the trace."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from venture_lite import Venture, VentureError
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot


def venture(text: str, seed: int = 1, **options: int) -> Venture:
    v = Venture(seed=seed, **options)
    v.execute(text)
    return v


def assert_sound(v: Venture) -> None:
    for model in v.traces:
        check(model)


def test_the_value_stays_and_its_choice_is_gone() -> None:
    v = venture("[assume x (normal 0 1)] [assume y (normal x 1)]")
    x, y = v.report("x"), v.report("y")
    v.freeze("x")
    assert_sound(v)
    assert (v.report("x"), v.report("y")) == (x, y)
    assert v.log_score() == pytest.approx(stats.norm.logpdf(y, x, 1))
    v.infer("(mh default all 50)")
    assert v.report("x") == x
    assert v.report("y") != y
    assert_sound(v)


def test_a_choice_that_something_else_uses_stays() -> None:
    v = venture("[assume x (normal 0 1)] [assume double (* 2 x)]")
    x = v.report("x")
    v.freeze("double")
    v.force("x", 5.0)
    assert (v.report("x"), v.report("double")) == (5.0, 2 * x)
    assert_sound(v)


def test_a_memoized_family_lives_while_somebody_uses_it() -> None:
    v = venture("[assume f (mem (lambda (k) (normal k 1)))] a: [predict (f 1)] b: [predict (f 1)]")
    v.freeze("a")
    assert v.log_score() == pytest.approx(stats.norm.logpdf(v.report("b"), 1, 1))
    v.freeze("b")
    assert v.log_score() == 0.0
    assert v.report("a") == v.report("b")
    assert_sound(v)


def test_what_the_lost_choice_depended_on_is_no_longer_informed() -> None:
    """With x frozen, mu given x is its prior again: 2,000 exact draws, Kolmogorov-Smirnov at 1e-6."""
    v = venture("[assume mu (normal 0 1)] [assume x (normal mu 0.1)] [force x 3]")
    v.freeze("x")
    draws = v.infer("(repeat 2000 (do (mh default one 1) (collect mu x)))")
    assert stats.kstest(np.asarray(draws["mu"]).ravel(), "norm").pvalue > 1e-6
    assert set(np.asarray(draws["x"]).ravel()) == {3.0}


def test_applications_leave_the_statistics_of_their_maker() -> None:
    v = venture("[assume coin (make_beta_bernoulli 1 1)] a: [predict (coin)] [observe (coin) true]")
    v.freeze("a")
    assert v.log_score() == pytest.approx(math.log(0.5))
    assert_sound(v)


def test_the_label_in_a_loop_names_every_pass() -> None:
    v = venture("[assume mu (normal 0 1)] for n in 1...3: p: [predict (normal mu n)]")
    values = v.report("p")
    v.freeze("p")
    assert v.report("p") == values
    assert v.log_score() == pytest.approx(stats.norm.logpdf(v.report("mu")))
    v.execute("[forget p]")
    assert_sound(v)


def test_each_chain_freezes_its_own_value() -> None:
    v = venture("[assume x (normal 0 1)] [assume y (+ x 1)]", chains=2)
    v.freeze("x")
    x = v.report("x")
    assert x[0] != x[1]
    assert v.report("y") == [x[0] + 1, x[1] + 1]


def test_a_frozen_name_is_forgotten_as_any_other() -> None:
    v = venture("[assume x (normal 0 1)] [assume y (+ x 1)]")
    v.freeze("y")
    v.forget("x")
    v.execute("[assume x 7]")
    v.forget("y")
    assert v.log_score() == 0.0
    assert_sound(v)


def test_a_scope_loses_what_was_frozen() -> None:
    v = venture("[assume x (scope_include 'here 1 (normal 0 1))] [assume y (scope_include 'here 2 (normal x 1))]")
    x = v.report("x")
    v.freeze("x")
    v.infer("(mh here all 20)")
    assert v.report("x") == x


@pytest.mark.parametrize(
    ("program", "reference", "message"),
    [
        ("o: [observe (normal 0 1) 2]", "o", "an observe cannot be frozen"),
        ("data: for n in 1...2: [observe (normal n 1) 2]", "data", "an observe cannot be frozen"),
        ("[assume x (normal 0 1)] [observe x 2]", "x", "an observed choice would leave the trace"),
        ("[assume f (lambda (a) (normal a 1))]", "f", "a procedure of the program cannot be frozen"),
        ("[assume f (list 1 (make_crp 1))]", "f", "a procedure of the program cannot be frozen"),
        ("[assume x 1]", "y", "no directive is labelled or numbered y"),
    ],
)
def test_what_cannot_be_frozen_is_refused_and_nothing_changes(program: str, reference: str, message: str) -> None:
    v = venture(program)
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError, match=message):
        v.freeze(reference)
    assert snapshot(v.traces[0]) == before
    assert_sound(v)
