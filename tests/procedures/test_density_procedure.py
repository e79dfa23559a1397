"""`(log_density (normal 0 1) x)`: the density of a distribution that is written with its parameters, and not drawn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.procedures.examples import RANDOM
from tests.procedures.test_deterministic import column
from tests.procedures.test_random import draws, record_of
from venture_lite import Venture, VentureError
from venture_lite.checker import check
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.density import density_procedure

EXACT = {
    "(log_density (normal 0 1) 0.3)": stats.norm.logpdf(0.3),
    "(log_density (normal m s) x)": stats.norm.logpdf(0.3, 1, 2),
    "(log_density (gamma 2 3) 0.3)": stats.gamma.logpdf(0.3, 2, scale=1 / 3),
    "(log_density (poisson 3) 2)": stats.poisson.logpmf(2, 3),
    "(log_density (flip) true)": math.log(0.5),
    "(log_density (categorical (vector 0.2 0.8)) 1)": math.log(0.8),
    "(log_density (truncated (normal 0 1) 0 none) 0.3)": stats.halfnorm.logpdf(0.3),
    "(log_density (finite_mixture (vector 0.5 0.5) (normal 0 1) (normal 3 1)) 0)": math.log(
        0.5 * stats.norm.pdf(0) + 0.5 * stats.norm.pdf(3)
    ),
    "(log_density (dirichlet (vector 1 2 3)) (vector 0.2 0.3 0.5))": stats.dirichlet.logpdf([0.2, 0.3, 0.5], [1, 2, 3]),
    "(log_density (normal (vector 0 1) 1) (vector 0.3 1))": stats.norm.logpdf(0.3) + stats.norm.logpdf(0),
    "(log_density (normal 0 1) 'red)": -math.inf,
    "(exp (log_density (uniform_continuous 0 2) (* x 2)))": 0.5,
    # a name of the program's own, and what gives distributions when it is drawn, are asked as values
    "(let ((normal (lambda (p q) (enumerate (lambda () (flip p)))))) (log_density (normal 0.25 1) true))": math.log(
        0.25
    ),
    "(log_density (uniform_draw (list (enumerate (lambda () (flip 0.25))))) true)": math.log(0.25),
}


@pytest.mark.parametrize("text", EXACT)
def test_nothing_is_drawn(text: str) -> None:
    v = Venture(seed=1)
    v.execute("[assume m 1] [assume s 2] [assume x 0.3]")
    before = v.traces[0].trace.rng.bit_generator.state
    assert v.sample(text) == pytest.approx(EXACT[text], rel=1e-12)
    assert "uniform_draw" in text or v.traces[0].trace.rng.bit_generator.state == before
    assert not check(f"[assume m 1] [assume s 2] [assume x 0.3] [predict {text}]").diagnostics


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(log_density (normal 0 -1) 1)", "sd must be a positive number, got -1"),
        ("(log_density (normal 0 0) 1)", "sd must be a positive number, got 0"),
        ("(log_density (normal 0) 1)", "normal takes 2 arguments"),
        ("(log_density (normal 0 1))", "log_density takes"),
        ("(let ((x (normal 0 1))) (log_density x 1))", "distribution must be a distribution"),
    ],
)
def test_mistakes_are_told(text: str, said: str) -> None:
    with pytest.raises(VentureError, match=said):
        Venture(seed=1).sample(text)


# as a factor, and as the observation that it stands for
PAIRS = {
    "[factor (log_density (normal b a) 1.5)]": "[observe (normal b a) 1.5]",
    "for i in 1...5: [factor (log_density (student_t 4 b a) {y[i]})]": (
        "for i in 1...5: [observe (student_t 4 b a) {y[i]}]"
    ),
    "for i in 1...5: [factor (log_density (normal (* b {y[i]}) (+ a i)) {y[i]})]": (
        "for i in 1...5: [observe (normal (* b {y[i]}) (+ a i)) {y[i]}]"
    ),
    "[factor (log_density (dirichlet (vector a 1 (exp b))) (vector 0.2 0.3 0.5))]": (
        "[observe (dirichlet (vector a 1 (exp b))) (vector 0.2 0.3 0.5)]"
    ),
    "[factor (log_density (poisson a) 3)]": "[observe (poisson a) 3]",
}


@pytest.mark.parametrize("kernels", ["compiled", "interpreted", "checked"])
@pytest.mark.parametrize("text", PAIRS)
def test_a_factor_of_a_density_is_an_observation(text: str, kernels: str) -> None:
    """Value, gradient and columns: paths of Hamilton's are the same but for rounding."""
    found = []
    for program in (text, PAIRS[text]):
        v = Venture(seed=3, kernels=kernels)
        given = {"y": [0.3, -1.0, 2.0, 0.5, 1.0]} if "{y" in program else {}
        v.execute(f"[assume a (gamma 2 1)] [assume b (normal 0 1)]\n{program}", **given)
        draws = v.infer(
            "(repeat 10 (do (hmc (choices a b) all 0.1 3 1) (mh (choices a) one 'drift 0.3 1) (collect a b)))"
        )
        found.append(np.stack([draws["a"], draws["b"]]))
    np.testing.assert_allclose(*found, rtol=1e-8)


@pytest.mark.parametrize("kernels", ["compiled", "interpreted", "checked"])
def test_it_weighs_the_worlds_of_a_query(kernels: str) -> None:
    v = Venture(seed=1, kernels=kernels)
    v.assume("x", "0.3")
    text = "(let ((k (flip 0.5))) (factor (log_density (normal (if k 0 1) 1) x)) k)"
    if_true, if_false = stats.norm.pdf(0.3), stats.norm.pdf(0.7)
    found = v.sample(f"(probability (enumerate (lambda () {text})) true)")
    assert found == pytest.approx(if_true / (if_true + if_false), rel=1e-12)


CALLS = [
    (name, args)
    for name, example in RANDOM.items()
    for args in example.arguments
    if record_of(name).gradient is not None and record_of(name).start is None
]


@pytest.mark.parametrize(("name", "args"), CALLS, ids=lambda item: item if isinstance(item, str) else "")
def test_cotangents_of_rows_reach_what_they_share(name: str, args: tuple[Any, ...]) -> None:
    """Of three values under the same arguments: what a shared argument is due is the sum of what rows give it."""
    record = record_of(name)
    procedure = density_procedure(record)
    assert procedure.pullback is not None
    assert record.gradient is not None
    values = draws(name, args, 3)
    cotangents = np.array([0.5, -2.0, 1.25])
    wanted = (*record.gradient.exists[1:], record.gradient.exists[0])
    each = []
    for value, cotangent in zip(values, cotangents.tolist(), strict=True):
        given = (*args, value)
        result = procedure.scalar(*given)
        assert result == record.log_density(value, *args)
        each.append(procedure.pullback((False,) * len(given), wanted, cotangent, result, *given))
    if procedure.columns is None:
        return
    lifted = (False,) * len(args) + (True,)
    try:
        given = (*args, column(values))
        result = procedure.columns(lifted, *given)
        together = procedure.pullback(lifted, wanted, cotangents, result, *given)
    except RowByRow:
        return
    for position, asked in enumerate(wanted):
        if asked:
            rows = [np.asarray(one[position], dtype=float) for one in each]
            expected = np.stack(rows) if lifted[position] else sum(rows)
            np.testing.assert_allclose(np.asarray(together[position], dtype=float), expected, rtol=1e-7, atol=1e-9)
