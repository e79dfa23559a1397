"""`slice`: what it moves, what it refuses, and what a candidate costs."""

from __future__ import annotations

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.errors import VentureError
from venture_lite.kernels import formed


def loaded(program: str, **parameters: object) -> Venture:
    venture = Venture(seed=3)
    venture.execute(program, **parameters)
    return venture


@pytest.mark.parametrize(
    ("engine", "message", "at"),
    [
        ("(slice default one 1 5 9)", "slice moves continuous choices; poisson is discrete", "(poisson"),
        ("(slice default one 0 5 9)", "WIDTH must be a positive number, got 0", "0"),
        ("(slice default one (- 1) 5 9)", "WIDTH must be a positive number, got -1", "(- 1)"),
        ("(slice default one (lambda (x) x) 5 9)", "WIDTH must be a positive number", "(lambda"),
        ("(slice default one 1 0 9)", "MAX-STEPS must be 1 or more", "0"),
        ("(slice default one 1 2.5 9)", "MAX-STEPS must be a whole number, 0 or more, got 2.5", "2.5"),
        ("(slice default one 1 9)", "slice is written", "(slice"),
    ],
)
def test_what_slice_cannot_do_is_said_at_its_place(engine: str, message: str, at: str) -> None:
    venture = loaded("[assume k (poisson 3)] [observe (normal k 1) 2]")
    before = snapshot(venture.traces[0])
    with pytest.raises(VentureError) as caught:
        venture.infer(engine)
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.text.startswith(at)
    assert snapshot(venture.traces[0]) == before


def test_a_discrete_choice_that_comes_later_ends_the_kernel() -> None:
    program = "[assume x (scope_include 's 0 (normal -3 1))] [assume y (if (< x -3.2) (scope_include 's 1 (flip)) 0)]"
    venture = loaded(program)
    venture.force("x", -3.0)
    with pytest.raises(VentureError, match="flip is discrete"):
        venture.infer("(slice s each 2 4 200)")
    check(venture.traces[0])


def test_candidates_are_weighed_by_one_prepared_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = formed.lower
    monkeypatch.setattr(formed, "lower", lambda *given: made.append(1) or original(*given))
    venture = loaded("[assume m (normal 0 1)] for n in 1...50: [observe (normal m 1) {Y[n]}]", Y=np.zeros(50))
    venture.infer("(slice default one 0.5 10 100)")
    draws = venture.infer("(slice default one 0.5 10 100)")
    assert len(made) == 1
    # every candidate weighs every row
    assert draws.statistics[0].rows >= 100 * 50 * 3


def test_stepping_out_stops_at_the_limit() -> None:
    """From a far tail with steps of a hundredth, at most MAX-STEPS widths are crossed."""
    venture = loaded("[assume m (normal 0 1)]")
    venture.force("m", 30)
    draws = venture.infer("(repeat 20 (do (slice default one 0.01 7 1) (collect m)))")
    moves = np.abs(np.diff([30.0, *np.asarray(draws["m"]).ravel()]))
    assert moves.max() < 0.07
    assert moves.min() > 0


@pytest.mark.parametrize(
    "program",
    [
        "[assume x (uniform_continuous 2 3)]",
        "[assume x (gamma 0.3 1)]",
        "[assume x (beta 0.2 0.2)]",
        "[assume x (pareto 2 5)]",
        "[assume x (dirichlet (vector 0.3 0.3 0.3))]",
        "[assume x (dirichlet (vector 2))]",
        "[assume x (von_mises 3 2)]",
        "[assume x (inv_wishart 4 (list (list 1 0) (list 0 1)))]",
        "[assume f (make_normal_inv_chi_sq 0 1 3 1)] [assume x (f)] [observe (f) 1]",
        "[assume f (make_collapsed_multivariate_normal (vector 0 0) 1 4 (list (list 1 0) (list 0 1)))] [assume x (f)]",
    ],
)
@pytest.mark.thorough
def test_every_continuous_value_moves_and_stays_in_its_support(program: str) -> None:
    venture = loaded(program)
    for _ in range(20):
        venture.infer("(slice default one 3 5 3)")
        assert np.isfinite(venture.log_score())
    check(venture.traces[0])


def test_a_state_of_probability_zero_is_left() -> None:
    venture = loaded("[assume x (normal 0 1)]")
    venture.execute("[observe (uniform_continuous 0 (+ 1 (abs x))) 3]")
    venture.force("x", 0.5)
    venture.infer("(slice default one 2 5 60)")
    assert abs(venture.report("x")) >= 2
