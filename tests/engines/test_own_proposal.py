"""`(mh SCOPE BLOCK PROPOSAL T)`: what a proposal may be, what it may read, and what is refused with the reason."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.audit.snapshot import snapshot
from venture_lite.errors import KernelError, VentureError, VentureWarning

NORMAL = "[assume x (normal 0 1)] [observe (normal x 1) 2]"
COUNTS = "[assume k (poisson 3)] [assume j (flip)] [observe (normal (+ k j) 1) 2]"
TABLES = "[assume crp (make_crp 1)] [assume a (scope_include 'a 0 (uniform_discrete 1 4))] [predict (crp)]"
GAINS = """[assume z (scope_include 's 0 (flip))] [assume y (if z (scope_include 's 0 (normal 0 1)) 3)]
           [observe (normal y 1) 2]"""


def loaded(program: str, chains: int = 1) -> Venture:
    venture = Venture(seed=3, chains=chains)
    venture.execute(program)
    return venture


def draws(program: str, engine: str, **parameters: object) -> np.ndarray:
    return np.asarray(loaded(program).infer(f"(repeat 50 (do {engine} (collect x)))", **parameters)["x"])


WALK = draws(NORMAL, "(mh default one (lambda (x) (normal x 0.5)) 3)")


@pytest.mark.parametrize(
    ("program", "engine"),
    [
        ("[define step (lambda (x) (normal x 0.5))]", "(mh default one step 3)"),
        ("[define s 0.5] [define step (lambda (x) (normal x s))] [define s 9]", "(mh default one step 3)"),
        ("[define s 0.5]", "(mh default one (lambda (x) (normal x s)) 3)"),
        (
            "[define by (lambda (x s) (normal x s))] [define step (lambda (x) (by x 0.5))]",
            "(mh default one step 3)",
        ),
        ("[assume step (lambda (x) (normal x 0.5))]", "(mh default one step 3)"),
        ("[assume stepper (lambda (s) (lambda (x) (normal x s)))]", "(mh default one (stepper 0.5) 3)"),
        ("", "(mh default one (lambda (x) (let ((s 0.5) (y x)) (begin 3 (normal y s)))) 3)"),
        (
            "[assume step (lambda (y n) (if (= n 0) (normal y 0.5) (step y (- n 1))))]",
            "(mh default one (lambda (v) (step v 4)) 3)",
        ),
        ("", "(mh default one (lambda (v) (normal x 0.5)) 3)"),
    ],
)
@pytest.mark.thorough
def test_a_proposal_is_written_in_place_defined_or_assumed(program: str, engine: str) -> None:
    """All of these are one random walk, and draw the same numbers."""
    assert np.array_equal(draws(NORMAL + program, engine), WALK)


def test_a_proposal_reads_parameters_and_loop_variables() -> None:
    assert np.array_equal(draws(NORMAL, "(mh default one (lambda (x) (normal x {S})) 3)", S=0.5), WALK)
    for text in (
        "[define sd (lambda (x) (normal x (/ i 4)))] [infer (mh default one sd 3)]",
        "[infer (mh default one (lambda (x) (normal x (/ i 4))) 3)]",
    ):
        venture = loaded(NORMAL)
        venture.execute(f"for i in 2...2: {text}")
        assert venture.report("x") == WALK.ravel()[0]


def test_a_drift_and_the_same_walk_as_a_proposal_are_one() -> None:
    assert np.array_equal(draws(NORMAL, "(mh default one 'drift 0.5 3)"), WALK)


def test_values_come_in_the_order_of_the_addresses() -> None:
    venture = loaded("[assume b (normal 10 0.1)] [assume a (normal 20 0.1)] [assume c (normal 30 0.1)]")
    with pytest.raises(KernelError, match=r"gave \(10 20 30 5\)"):
        venture.infer("(mh default all (lambda (u v w) (list (round u) (round v) (round w) 5)) 1)")


@pytest.mark.parametrize(
    ("program", "engine", "message", "at"),
    [
        (NORMAL, "(mh default one (lambda (x) (+ x 1)) 9)", "never proposes back: it makes no", "(lambda"),
        (NORMAL, "(mh default one (lambda (x) (+ x (normal 0 1))) 9)", "computes its value from random", "(lambda"),
        (NORMAL, "(mh default one (lambda (x) (if (flip) (+ x 1) (- x 1))) 9)", "computes its value", "(lambda"),
        (NORMAL, '(mh default one (lambda (x) "a") 9)', 'gave "a", where the choice is 0.5', "(lambda"),
        (NORMAL, "(mh default one (lambda (x) (list (normal x 1))) 9)", "where the choice is 0.5", "(lambda"),
        (NORMAL, "(mh default one (lambda (x y) (normal x 1)) 9)", "takes 2 values, but the block has 1", "(lambda"),
        (NORMAL, "(mh default one (lambda (x) (poisson 3)) 9)", "discrete, for a continuous choice", "(lambda"),
        (NORMAL, "(mh default one (lambda (x) (normal x -1)) 9)", "sd must be a positive number, got -1", "(normal"),
        (NORMAL, "(mh default one (lambda (x) (nrmal x 1)) 9)", "unknown name nrmal", "nrmal"),
        (NORMAL, "(mh default one 3 9)", "PROPOSAL must be a procedure, got 3", "3"),
        (NORMAL, "(mh default one stp 9)", "unknown name stp", "stp"),
        (NORMAL, "(mh default one 'step 9)", "mh knows no such option", "'step"),
        (NORMAL, "(mh default one (lambda x 3) 9)", "lambda is written (lambda (parameter ...) body)", "(lambda"),
        (NORMAL, "(mh default one (normal 0 1) 9)", "is not a procedure", "(normal"),
        (NORMAL, "(mh default one (lambda (x) (begin (binomial 500 0.5) (binomial 500 0.5) (normal x 1))) 9)",
         "more than 10,000 combinations", "(lambda"),
        (COUNTS, "(mh default all (lambda (a b) (list (+ a 1) b)) 9)", "never proposes back", "(lambda"),
        (COUNTS, "(mh default all (lambda (a b) (list (+ a 1) b b)) 9)", "which is no list of 2 values", "(lambda"),
        (COUNTS, "(mh default all (lambda (a b) (list (normal a 1) b)) 9)", "continuous, for a discrete", "(lambda"),
        (COUNTS, "(mh default all (lambda (a b) (list (round (normal a 1)) b)) 99)", "computes its value", "(lambda"),
        (TABLES, "(mh default all (lambda (a b) (list a b)) 9)", "labels of make_crp mean nothing", "(crp)"),
        (TABLES, "(mh a one (lambda (a) (crp)) 9)", "takes its value from make_crp", "(lambda"),
        (GAINS, "(mh s 0 (lambda (z) (not z)) 9)", "brings choices into its block", "(lambda"),
        ("[assume v (multivariate_normal (vector 0 0) (list (list 1 0) (list 0 1)))]",
         "(mh default one (lambda (v) (normal 0 1)) 9)", "where the choice is", "(lambda"),
    ],
)  # fmt: skip
@pytest.mark.thorough
def test_what_a_proposal_cannot_be_is_said_at_its_place(program: str, engine: str, message: str, at: str) -> None:
    venture = loaded(program)
    before, score = snapshot(venture.traces[0]), venture.log_score()
    with pytest.raises(VentureError, match=re.escape(message)) as caught:
        venture.infer(engine)
    assert caught.value.span is not None
    assert caught.value.span.text.startswith(at)
    assert snapshot(venture.traces[0]) == before
    assert venture.log_score() == score
    venture.infer("(mh default one 5)")


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_proposal_that_gives_nan_is_named() -> None:
    venture = loaded("[assume v (multivariate_normal (vector 0 0) (list (list 1 0) (list 0 1)))]")
    with pytest.raises(VentureError, match=r"gave NaN|not a number"):
        venture.infer("(mh default one (lambda (v) (matmul (* v 1e308 1e308) (matrix (list 0 1) (list 1 0)))) 1)")


def test_values_outside_the_support_are_rejected_and_what_reads_them_is_not_evaluated() -> None:
    venture = loaded("[assume sd (gamma 2 2)] [observe (normal 0 sd) 1]")
    draws = venture.infer("(repeat 200 (do (mh default one (lambda (s) (normal s 5)) 1) (collect sd)))")
    assert np.asarray(draws["sd"]).min() > 0
    assert 0 < draws.statistics[0].accepted < 150


def test_moves_that_cannot_be_proposed_back_are_told_of_once() -> None:
    venture = loaded(NORMAL)
    with pytest.warns(VentureWarning, match="none of 100 moves by the proposal .* could be proposed back"):
        draws = venture.infer("(mh default one (lambda (x) (uniform_continuous x (+ x 1))) 300)")
    assert draws.statistics[0].accepted == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        venture.infer("(mh default one (lambda (x) (uniform_continuous (- x 1) (+ x 1))) 300)")


def test_a_program_that_runs_again_makes_no_further_codes() -> None:
    venture = loaded(NORMAL)
    venture.infer("(mh default one (lambda (x) (normal x 1)) 5)")
    codes = len(venture.traces[0].trace.program.codes)
    for _ in range(5):
        venture.infer("(mh default one (lambda (x) (normal x 1)) 5)")
    assert len(venture.traces[0].trace.program.codes) == codes


def test_several_chains_have_their_own_procedures() -> None:
    venture = loaded(NORMAL + "[assume scale (gamma 2 2)]", chains=2)
    draws = venture.infer("(repeat 20 (do (mh default one (lambda (v) (normal v scale)) 5) (collect x)))")
    first, second = np.asarray(draws["x"])
    assert not np.array_equal(first, second)


def test_a_lambda_that_is_none_cannot_be_defined() -> None:
    with pytest.raises(VentureError, match="lambda is written"):
        loaded("[define step (lambda x 3)]")
