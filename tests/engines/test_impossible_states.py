"""States of probability zero: an error on the way to one rejects the proposal, and a start in one is left for good.

False alarms: a chain is compared in the two stages of `assert_chain_agrees`, 1e-6. All else is no matter of chance.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from tests.posterior.case import Case
from tests.posterior.derive import Grid
from tests.posterior.test_posterior import chain
from tests.statistics import Table, assert_chain_agrees
from venture_lite import Venture
from venture_lite.audit.invariants import check as check_trace
from venture_lite.errors import ArgumentError, ImpossibleState, VentureError


def check(v: Venture) -> None:
    check_trace(v.traces[0])


LIST = """
    [assume n (tag 'n 0 (uniform_discrete 1 5))]
    [assume k (tag 'k 0 (uniform_discrete 0 n))]
    [assume v (lookup (map (lambda (i) true) (range n)) k)]"""
ROOT = """
    [assume u (tag 'u 0 (uniform_continuous 0 1))]
    [assume x (tag 'x 0 (uniform_continuous 0 u))]
    [assume y (sqrt (- u x))]"""


@pytest.mark.parametrize(
    ("program", "kernel"),
    [
        (LIST, "(mh default one 300)"),
        (LIST, "(gibbs default one 200)"),
        (LIST, "(gibbs n 0 50)"),
        (LIST, "(rejection n 0 50)"),
        (LIST, "(pgibbs n ordered 4 50)"),
        (LIST, "(pgibbs default ordered 4 'ancestor 30)"),
        (ROOT, "(pgibbs u ordered 4 50)"),
        (LIST, "(mh n 0 (lambda (n) (uniform_discrete 1 5)) 100)"),
        (ROOT, "(mh default one 300)"),
        (ROOT, "(mh u 0 'drift 1 300)"),
        (ROOT, "(slice u 0 1 5 100)"),
        (ROOT, "(hmc u 0 0.5 3 100)"),
        (ROOT, "(mala u 0 0.5 100)"),
        (ROOT, "(rejection u 0 50)"),
        (ROOT, "(mh u 0 (lambda (u) (uniform_continuous 0 1)) 100)"),
    ],
)
@pytest.mark.thorough
def test_an_error_in_a_state_of_probability_zero_is_a_rejection(program: str, kernel: str) -> None:
    v = Venture(seed=2)
    v.execute(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        v.infer(kernel)
    check(v)
    assert v.log_score() > -np.inf


@pytest.mark.parametrize(
    "kernel", ["mh default one", "gibbs default one", "mh default all", "gibbs default all", "pgibbs default ordered 4"]
)
def test_an_error_in_a_possible_state_is_an_error(kernel: str) -> None:
    v = Venture(seed=1)
    v.execute("[assume n (uniform_discrete 1 5)] [assume k (uniform_discrete 0 2)] [force n 4]")
    v.execute("[assume v (lookup (map (lambda (i) true) (range n)) k)] [force k 1]")
    with pytest.raises(VentureError, match="lookup: position 1 of 1") as caught:
        v.infer(f"({kernel} 200)")
    assert not isinstance(caught.value, ImpossibleState)
    check(v)


def test_what_can_be_weighed_beyond_the_error_is_weighed() -> None:
    """The choice that becomes impossible is reached by a stored value, after the one that is an error."""
    v = Venture(seed=1)
    v.execute("""
        [assume f (mem (lambda (i) (uniform_discrete 1 5)))]
        [assume n (f 1)]
        [force n 4]
        [assume wrong (lookup (list 1 1 1 1) (if (< n 2) 9 0))]
        [assume above (mem (lambda (i) (* 2 n)))]
        [assume k (uniform_discrete 2 (above 1))]
        [force k 7]""")
    v.infer("(mh default one 300)")
    check(v)


def test_a_choice_elsewhere_of_density_zero_rejects_as_well() -> None:
    v = Venture(seed=1)
    v.execute("[assume a (uniform_discrete 0 2)] [assume n (uniform_discrete 1 5)] [force n 4] [force a 0]")
    v.execute("[observe (flip (if (= a 1) 0.5 0)) true] [assume v (lookup (list 1 2 3 4) (if (= n 1) 9 0))]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        v.execute("[infer (do (mh default one 1))] [force n 4]")
    v = Venture(seed=1)
    v.execute("[assume n (uniform_discrete 1 5)] [force n 4]")
    v.execute("[observe (flip (if (= n 9) 0.5 0)) true] [assume v (lookup (list 1 2 3 4) (if (= n 1) 9 0))]")
    with pytest.warns(UserWarning, match="probability zero"):
        v.infer("(mh default one 100)")
    assert v.report("n") > 1


def test_loading_says_which_observation_made_the_state_impossible() -> None:
    v = Venture(seed=1)
    v.execute(
        "[assume n (uniform_discrete 1 5)] [assume k (uniform_discrete 0 n)] [force n 4] [force k 3] [observe n 2]"
    )
    with pytest.raises(ArgumentError) as caught:
        v.execute("[assume v (lookup (list 1 n) k)]")
    assert "since the observation at <input>:1:102: n" in caught.value.message
    assert "(uniform_discrete 0 n) cannot be 3" in caught.value.message
    assert "force" in str(caught.value.hint)


def test_an_observation_that_is_an_error_names_the_choice_that_it_makes_impossible() -> None:
    v = Venture(seed=1)
    v.execute(LIST + "[force n 4] [force k 3]")
    with pytest.raises(ImpossibleState) as caught:
        v.execute("[observe n 2]")
    assert "(uniform_discrete 0 n) cannot be 3), since the observation at <input>:1:10: n" in caught.value.message
    check(v)
    assert (v.report("n"), v.report("k")) == (4, 3)


# ------------------------------------------------------------------------------------- starts of probability zero

GATE = """
    [assume c (tag 'c 0 (flip 0.5))]
    [assume u (tag 'u 0 (uniform_continuous 0 (if c 3 1)))]
    [force c true] [force u 2]
    [observe (flip (if c 0 0.5)) true]"""


@pytest.mark.parametrize("kernel", ["(gibbs c 0 5)", "(mh c 0 20)", "(pgibbs c ordered 3 5)"])
def test_impossible_evidence_is_not_exchanged_for_a_choice_outside_its_support(kernel: str) -> None:
    v = Venture(seed=1)
    v.execute(GATE)
    with pytest.warns(UserWarning, match="probability zero"):
        v.infer(kernel)
    assert v.report("c")


@pytest.mark.parametrize(
    "kernel", ["(slice u 0 1 10 5)", "(mh u 0 'drift 1 5)", "(hmc u 0 0.3 3 5)", "(mala u 0 0.3 5)"]
)
def test_such_a_start_is_left(kernel: str) -> None:
    v = Venture(seed=1)
    v.execute(GATE)
    v.infer(f"(repeat 100 (do (gibbs c 0 1) {kernel}))")
    assert not v.report("c")
    assert v.report("u") < 1
    check(v)


@pytest.mark.parametrize(
    "kernel", ["(slice u 0 1 10 5)", "(mh u 0 'drift 1 5)", "(hmc u 0 0.3 3 5)", "(mala u 0 0.3 5)"]
)
def test_a_choice_that_stands_outside_its_support_is_brought_in(kernel: str) -> None:
    v = Venture(seed=1)
    v.execute("""
        [assume c (flip 0.5)]
        [assume u (tag 'u 0 (uniform_continuous 0 (if c 3 1)))]
        [force c true] [force u 2] [observe c false]""")
    v.infer(kernel)
    assert v.report("u") < 1
    check(v)


# --------------------------------------------------------------------------------------------- scales that underflow

DATA = (0.5, -1.2, 2.0, 0.3)


def scale_of_some_data() -> Case:
    # log sd ~ N(0, 300), four normals of mean 0
    grid = Grid(-4.0, 12.0)
    s = grid.points
    log_density = stats.norm.logpdf(s, 0, 300) - len(DATA) * s - 0.5 * sum(x * x for x in DATA) * np.exp(-2 * s)
    program = f"[assume s (normal 0 300)] {' '.join(f'[observe (normal 0 (exp s)) {x}]' for x in DATA)}"
    return Case("scale_of_some_data", program, {"s": "s"}, lambda: {"s": grid.cdf(log_density)}, (), "Quadrature.")


@pytest.mark.parametrize(
    "kernel",
    [
        "(do (mh default one 'drift 1000 2) (mh default one 'drift 2 6))",
        "(do (mh default one 1) (slice default one 500 3 1))",
        "(do (hmc default one 300 2 1) (hmc default one 0.5 3 2))",
    ],
)
@pytest.mark.thorough
def test_scales_of_zero_and_infinity_are_rejected(kernel: str) -> None:
    case = scale_of_some_data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_chain_agrees(chain(case, kernel, 3), case.exact(), draws=1000, what=case.name)


@pytest.mark.parametrize("count", [1, 4, 12, 60])
@pytest.mark.parametrize("scale", [-800, 800])
def test_a_scale_at_its_limit_gives_data_probability_zero(count: int, scale: int) -> None:
    v = Venture(seed=1)
    v.execute(f"[assume s (normal 0 300)] [force s {scale}]")
    v.execute("for i in 1...N: [observe (normal 0 (exp s)) {Y[i]}]", Y=np.linspace(-1, 1, count) + 0.01, N=count)
    assert v.log_score() == -np.inf
    v.infer("(mh default one 100)")
    assert -np.inf < v.log_score()
    check(v)


@pytest.mark.parametrize("scale", ["0", "(- (exp s))", "(* 0 1)"])
@pytest.mark.parametrize("count", [1, 30])
def test_a_constant_zero_and_negative_scales_are_errors(scale: str, count: int) -> None:
    v = Venture(seed=1)
    v.execute("[assume s (normal 0 1)]")
    with pytest.raises(ArgumentError, match="sd must be a positive number"):
        v.execute(f"for i in 1...N: [observe (normal 0 {scale}) {{Y[i]}}]", Y=np.ones(count), N=count)


def test_what_would_be_drawn_with_a_scale_at_its_limit_rejects() -> None:
    v = Venture(seed=1)
    v.execute("[assume s (normal 0 300)] [force s 0] [assume x (if (< s -700) (normal 0 (exp s)) 1)]")
    v.infer("(mh default one 300)")
    assert np.exp(v.report("s")) > 0
    check(v)


def test_loading_refuses_to_draw_with_a_scale_at_its_limit() -> None:
    v = Venture(seed=1)
    v.execute("[assume s (normal 0 300)] [force s -800]")
    with pytest.raises(ArgumentError, match="sd must be a positive number, got 0"):
        v.execute("[predict (normal 0 (exp s))]")


@pytest.mark.parametrize(
    "observed",
    [
        "(gamma (exp s) 1) 1.5", "(beta (exp s) 2) 0.5", "(poisson (exp s)) 3", "(geometric (logistic s)) 2",
        "(dirichlet (vector 1 (exp s))) {X}", "(student_t 3 0 (exp s)) 1", "((if true normal cauchy) 0 (exp s)) 1",
    ],
)  # fmt: skip
def test_every_positive_argument_may_underflow(observed: str) -> None:
    v = Venture(seed=1)
    v.execute(f"[assume s (normal 0 300)] [force s -800] [observe {observed}]", X=[0.25, 0.75])
    assert v.log_score() == -np.inf
    v.infer("(mh default one 300)")
    assert -np.inf < v.log_score()


def test_a_maker_whose_parameter_underflows_rejects() -> None:
    v = Venture(seed=1)
    v.execute("[assume s (normal 0 300)] [force s 0] [assume c (make_crp (exp s))]")
    v.execute("[observe (c) 1] [observe (c) 2] [infer (mh default one 300)]")
    assert 0 < np.exp(v.report("s")) < np.inf
    check(v)


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", ["(subsampled_mh u 0 20 0.05 100)", "(subsampled_mh u 0 20 0.05 'drift 1 100)"])
def test_subsampled_transitions_reject_what_is_an_error_in_an_impossible_state(kernel: str) -> None:
    v = Venture(seed=1)
    v.execute(ROOT)
    v.execute("for i in 1...300: [observe (normal u 1) {Y[i]}]", Y=np.random.default_rng(1).normal(0.5, 1, 300))
    v.infer(kernel)
    check(v)


ROWS = np.random.default_rng(1).normal(0.5, 1, 12)


def rows_that_are_errors() -> Case:
    # x uniform on 0 ... u, u uniform, 12 normals around sqrt(u - x): where u falls below x, each row is an error
    grid = Grid(1e-6, 1.0)
    likelihood = np.exp(-0.5 * len(ROWS) * (np.sqrt(grid.points) - ROWS.mean()) ** 2)
    log_density = np.log(np.cumsum(likelihood)) - np.log(grid.points)
    return Case(
        name="rows_that_are_errors",
        program="""
            [assume u (tag 'u 0 (uniform_continuous 0 1))] [assume x (tag 'x 0 (uniform_continuous 0 u))]
            for i in 1...12: [observe (normal (sqrt (- u x)) 1) {Y[i]}]""",
        query={"u": "u"},
        exact=lambda: {"u": grid.cdf(log_density)},
        engines=(),
        derivation="Quadrature.",
        parameters={"Y": ROWS},
    )


@pytest.mark.thorough
@pytest.mark.parametrize("options", [pytest.param("", marks=pytest.mark.slow), "'drift 4 'audit 1"])
def test_sampled_rows_that_are_errors_in_an_impossible_state_reject(options: str) -> None:
    # a tolerance of 1e-6: a wrong decision in a million is not seen
    case = rows_that_are_errors()
    kernel = f"(do (subsampled_mh u 0 4 0.000001 {options} 3) (mh x 0 3))"
    assert_chain_agrees(chain(case, kernel, 6), case.exact(), draws=400, what=kernel)


@pytest.mark.parametrize("options", ["", "'drift 0.5", "'drift 0.5 'audit 1"])
def test_sampled_rows_that_are_errors_in_a_possible_state_are_errors(options: str) -> None:
    v = Venture(seed=1)
    v.execute("[assume u (uniform_continuous 0 1)] [force u 0.9] [assume x (uniform_continuous 0 0.8)] [force x 0.4]")
    v.execute("for i in 1...12: [observe (normal (sqrt (- u x)) 1) {Y[i]}]", Y=ROWS)
    with pytest.raises(ArgumentError, match="sqrt: x must be") as caught:
        v.infer(f"(subsampled_mh default one 4 0.01 {options} 300)")
    assert not isinstance(caught.value, ImpossibleState)
    assert v.report("u") >= v.report("x")
    check(v)


@pytest.mark.thorough
@pytest.mark.parametrize("other", ["(- 1 (* u {S[i]}))", "(sqrt (- 1 (* u {S[i]})))"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_chain_leaves_an_impossible_state_that_it_entered_without_reading_the_rows(other: str) -> None:
    """One row of each 400 is impossible, or an error, where u is above 0.8; an audit that reads it changes nothing."""
    slopes = np.linspace(1e-4, 1e-3, 400)
    slopes[7] = 1.25
    ends = []
    for audit in ("", "'audit 1"):
        v = Venture(seed=1)
        v.execute("[assume u (tag 'u 0 (uniform_continuous 0 1))] [force u 0.5]")
        v.execute("for i in 1...400: [observe (flip (max 0 (- 1 (* u {S[i]})))) true]", S=slopes)
        v.execute(f"for i in 1...400: [observe (flip (max 0 {other})) true]", S=slopes)
        draws = v.infer(f"(repeat 300 (do (subsampled_mh u 0 8 0.3 'drift 0.5 {audit} 1) (collect u)))")
        ends.append(draws["u"].ravel())
    assert np.array_equal(*ends)
    was_above = ends[0] > 0.8
    assert was_above.any()
    assert not was_above[-50:].all()


# ------------------------------------------------------------------------------------------------ flymc and anneal

FEATURES = np.linspace(0.1, 2.0, 12)
OUTCOMES = np.arange(12) % 3 > 0
BOUNDED = """
    [assume w (tag 'w 0 (normal 0 1))] [force w -1]
    [assume y (mem (lambda (i) (sqrt (- 0.1 w))))] [predict (y 1)]
    for i in 1...12: [observe (flip (logistic (* w {X[i]}))) {Y[i]}]"""


def bounded_by_an_error() -> Case:
    # an observation elsewhere is impossible whatever w is, so that an error in y rejects: w, a normal with logistic
    # data, is below 0.1
    grid = Grid(-6.0, 0.1)
    eta = np.outer(grid.points, FEATURES)
    log_density = stats.norm.logpdf(grid.points) - np.logaddexp(0.0, np.where(OUTCOMES, -eta, eta)).sum(axis=1)
    return Case(
        name="bounded_by_an_error",
        program=f"[assume n (uniform_discrete 1 5)] [observe (flip (if (= n 9) 0.5 0)) true] {BOUNDED}",
        query={"w": "w"},
        exact=lambda: {"w": grid.cdf(log_density)},
        engines=(),
        derivation="Quadrature.",
        parameters={"X": FEATURES, "Y": OUTCOMES},
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "move", ["'drift 0.5", *(pytest.param(m, marks=pytest.mark.slow) for m in ("'mala 0.5", "'slice 1"))]
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_flymc_rejects_what_is_an_error_in_an_impossible_state(move: str) -> None:
    case = bounded_by_an_error()
    more = chain(case, f"(flymc w all auto 'map 0.2 {move} 2)", 5)
    assert_chain_agrees(more, case.exact(), draws=250, what=move)


@pytest.mark.parametrize("move", ["'drift 0.5", "'mala 0.5", "'slice 1"])
def test_flymc_ends_with_an_error_in_a_possible_state(move: str) -> None:
    v = Venture(seed=1)
    v.execute(BOUNDED, X=FEATURES, Y=OUTCOMES)
    with pytest.raises(ArgumentError, match="sqrt: x must be"):
        v.infer(f"(flymc w all auto 'map 0.2 {move} 300)")
    assert v.report("w") < 0.1
    check(v)


@pytest.mark.thorough
@pytest.mark.parametrize("move", ["'drift 0.5", "'mala 0.5"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_step_that_adapts_learns_of_moves_that_the_trace_rejects(move: str) -> None:
    """Only w = -1 is no error, so that no size has the acceptance that is aimed at: it falls."""
    v = Venture(seed=1)
    v.execute(bounded_by_an_error().program.replace("(- 0.1 w)", "(if (= w -1) 1 -1)"), X=FEATURES, Y=OUTCOMES)
    draws = v.infer(f"(flymc w all auto 'map 0.2 {move} 'adapt 300 301)")
    assert draws.statistics[0].details["step"] < 0.1


def lists_that_end() -> Case:
    # z uniform on 1, 2, 3; k uniform below z; a datum is true with probability (k + 4 - z) / 4, the entry k + 3 - z of
    # a list of three
    outcomes = (True, False, True)
    chances = {(z, k): (k + 4 - z) / 4 for z in (1, 2, 3) for k in range(z)}
    joint = {zk: np.array([p if y else 1 - p for y in outcomes]) / zk[0] for zk, p in chances.items()}
    total = sum(joint.values())

    def marginal(part: int, datum: int) -> Table:
        return Table({v: sum(p[datum] for zk, p in joint.items() if zk[part] == v) / total[datum] for v in range(4)})

    program = """
        [assume z (mem (lambda (i) (tag 'z i (uniform_discrete 1 4))))]
        [assume k (mem (lambda (i) (tag 'k i (uniform_discrete 0 (z i)))))]
        for i in 1...3: [observe (flip (lookup (list 0.25 0.5 0.75) (+ (k i) (- 3 (z i))))) {Y[i]}]"""
    return Case(
        name="lists_that_end",
        program=program,
        query={f"{name}{i}": f"({name} {i + 1})" for name in "zk" for i in range(3)},
        exact=lambda: {f"{name}{i}": marginal(part, i) for part, name in enumerate("zk") for i in range(3)},
        engines=(),
        derivation="Enumeration.",
        parameters={"Y": outcomes},
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "kernel",
    [
        "(anneal z constant 1 (gibbs k each 1))",
        pytest.param("(do (anneal z constant 'energy 1) (gibbs k each 1))", marks=pytest.mark.slow),
    ],
)
def test_anneal_gives_no_weight_to_what_is_an_error_in_an_impossible_state(kernel: str) -> None:
    """Where z shrinks, the k that stands leads beyond the end of the list."""
    case = lists_that_end()
    assert_chain_agrees(chain(case, kernel, 4), case.exact(), draws=300, what=kernel)
