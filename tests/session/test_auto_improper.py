"""Posteriors that are improper are refused before anything is drawn, and no others."""

from __future__ import annotations

import warnings

import pytest

from venture_lite import Venture, VentureError
from venture_lite.audit.invariants import check
from venture_lite.session.auto.improper import refuse_exact_fit

DATA_OF_FLATS = {"x": [-1.0, 1.0, 2.0, 1.0], "y": [1.0, 3.0, 2.0, 2.4]}
MEAN_AND_SCALE = "[assume m (flat)] [assume s (flat 0)] for n in 1...{}: [observe (normal m s) {{y[n]}}]"


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("[assume x (flat)] [assume y (normal 0 1)] [observe (normal y 1) 2]", "as x increases"),
        ("[assume x (flat none 3)] [assume y (normal 0 1)] [observe (normal y 1) 2]", "as x decreases"),
        ("[assume s (flat 0)] [observe (normal 0 s) 2]", "as s increases"),
        (MEAN_AND_SCALE.format(2), "as m, s go far out together"),
        ("[assume m (flat)] for n in 2...4: [observe (flip (logistic (* m {x[n]}))) true]", "as m increases"),
        (
            "[assume b (mem (lambda (k) (flat)))] for n in 1...4: [observe (normal (* 0 (b 1)) 1) 1]",
            "as b increases",
        ),
    ],
)
def test_an_improper_posterior_is_refused_by_name(program: str, told: str) -> None:
    venture = Venture(seed=1)
    venture.execute(program, **DATA_OF_FLATS)
    with pytest.raises(VentureError, match=told) as caught:
        venture.auto(draws=20, warmup=20)
    assert caught.value.span is not None
    assert caught.value.span.text.startswith("(flat")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "program",
    [
        MEAN_AND_SCALE.format(3),
        "[assume m (flat)] [observe (cauchy m 1) 2]",
        "[assume m (flat)] [observe (normal m 1e6) 2e9]",
        "[assume m (flat)] for n in 1...4: [observe (flip (logistic (* m {x[n]}))) true]",
        "[assume b (mem (lambda (k) (flat)))] for n in 1...4: [observe (normal (+ (b 1) (* (b 2) {x[n]})) 1) {y[n]}]",
        pytest.param("[assume s (flat 0)] for n in 1...2: [observe (normal 0 s) {y[n]}]", marks=pytest.mark.slow),
        pytest.param("[assume m (flat)] [observe (uniform_continuous m (+ m 1e6)) 5e5]", marks=pytest.mark.slow),
    ],
)
def test_a_proper_posterior_of_improper_choices_is_drawn(program: str) -> None:
    venture = Venture(seed=1)
    venture.execute(program, **DATA_OF_FLATS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert venture.auto(draws=20, warmup=20, chains=1, seconds=5.0).names


LOCATION = "[assume m (normal 0 10)] [assume s {}] for n in 1...{}: [observe ({} s) 5]"
GROUPS = """[assume s {}] [assume t (gamma 2 2)] [assume m (mem (lambda (k) (normal 0 t)))]
    for n in 1...6: [observe (normal (m (if (< n 4) 1 2)) s) (if (< n 4) 3 {})]"""


@pytest.mark.parametrize(
    "program",
    [
        LOCATION.format("(gamma 1 1)", 2, "normal m"),
        LOCATION.format("(half_cauchy 2)", 10, "normal m"),
        LOCATION.format("(uniform_continuous 0 9)", 5, "student_t 4 m"),
        LOCATION.format("(gamma 3 1)", 4, "laplace m"),
        LOCATION.format("(flat 0)", 3, "normal m"),
        GROUPS.format("(gamma 2 2)", 7),
    ],
)
def test_data_that_are_all_equal_have_an_improper_posterior(program: str) -> None:
    venture = Venture(seed=1)
    venture.execute(program)
    with pytest.raises(VentureError, match="improper: it has no finite total as s decreases to 0") as caught:
        venture.auto(draws=20, warmup=20)
    assert caught.value.span is not None


@pytest.mark.parametrize(
    "program",
    [
        # the prior falls as s^1 where s^(n - k - 1) is 1
        LOCATION.format("(gamma 2 1)", 2, "normal m"),
        LOCATION.format("(gamma 1 1)", 1, "normal m"),
        LOCATION.format("(gamma 3.2 1)", 4, "laplace m"),
        LOCATION.format("(lognormal 0 1)", 10, "normal m"),
        LOCATION.format("(inv_gamma 2 1)", 10, "normal m"),
        LOCATION.format("(uniform_continuous 0.1 9)", 10, "normal m"),
        GROUPS.format("(gamma 4.2 2)", 7),
        GROUPS.format("(gamma 2 2)", "(if (= n 4) 7 8)"),
        "[assume p (beta 1 1)] for n in 1...9: [observe (flip p) true]",
        "[assume m (normal 0 1)] [assume s (gamma 1 1)] for n in 1...3: [observe (normal m (vector s s)) (vector 1 1)]",
        "[assume r (gamma 1 1)] for n in 1...9: [observe (poisson r) 0]",
    ],
)
def test_others_whose_data_are_equal_are_not_refused(program: str) -> None:
    venture = Venture(seed=1)
    venture.execute(program)
    (model,) = venture.traces
    state = model.trace.rng.bit_generator.state
    refuse_exact_fit(model, model.trace.default.everything())
    assert model.trace.rng.bit_generator.state == state
    check(model)
