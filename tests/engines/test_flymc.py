"""`flymc` on models: mh's posteriors, what a transition costs, what other kernels' moves cost, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engines.data_and_sessions import classes, venture
from tests.posterior.cases_predictors import marginals
from tests.posterior.derive import Grid
from tests.statistics import THRESHOLD, Expected, assert_chain_agrees
from venture_lite import KernelError, Venture, VentureError, VentureWarning
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.draws.draws import Draws, KernelStatistics
from venture_lite.engines.firefly.firefly import Firefly, FireflySettings
from venture_lite.engines.firefly.firefly_bounds import bright_probability
from venture_lite.engines.firefly.flymc import GaussianStep, Langevin
from venture_lite.errors import ArgumentError
from venture_lite.procedures.predictor import Bound, LinearPredictor, Quadratic

LOGISTIC = """
[assume tau (scope_include 'tau 0 (gamma 4 2))]
[assume b (scope_include 'b 0 (normal 0 2))]
[assume w (scope_include 'w 0 (multivariate_normal (vector 0 0) (matrix (list (* tau tau) 0) (list 0 (* tau tau)))))]
for n in 1...N: [observe (bernoulli (logistic (+ b (dot w {X[n]})))) {Y[n]}]
"""
LINE = """
[assume w (scope_include 'w 0 (normal 0 10))]
for n in 1...N: [observe (student_t 4 (* w {X[n]}) 1) {Y[n]}]
"""


PRODUCT = LINE.replace("(* w", "(* v").replace(
    "for n", "[assume c (scope_include 'c 0 (normal 1 0.3))] [assume v (* c w)] for n"
)


def line(count: int = 20) -> dict[str, Any]:
    x = np.linspace(-2, 2, count)
    return {"X": x, "Y": x + np.sin(7 * np.arange(count)), "N": count}


def statistics_of(v: Venture, kernel: str) -> KernelStatistics:
    draws = v.infer(kernel)
    assert isinstance(draws, Draws)
    return next(row for row in draws.statistics if "flymc" in row.kernel)


# ------------------------------------------------------------------------------------------------------ exactness


def matrix_prior(v: Venture) -> None:
    """(matrix_normal sd): a matrix (3, 1) of independent normal numbers."""

    def log_density(value: Any, sd: float) -> float:
        return float(-0.5 * np.sum(np.square(value)) / sd**2 - 3 * np.log(sd))

    v.register(
        "matrix_normal",
        simulate=lambda rng, sd: sd * rng.standard_normal((3, 1)),
        log_density=log_density,
        arguments=["sd"],
        domain="real",
        gradient={"value": lambda value, sd: -np.asarray(value) / sd**2},
    )


SCORES = """
[assume W (scope_include 'W 0 (matrix_normal 1.5))]
for n in 1...12: [observe (softmax_categorical (matmul W {X[n]})) {Y[n]}]
"""
OUTCOMES = [0, 1, 2, 2, 1, 1, 0, 2, 2, 0, 2, 1]


ROWS = """
[assume w (mem (lambda (k) (scope_include 'W 0 (multivariate_normal (vector 0) (matrix (list (list 2.25)))))))]
[assume W (lambda () (matrix (list (w 0) (w 1) (w 2))))]
[assume scores (lambda (x) (vector (dot (w 0) x) (dot (w 1) x) (dot (w 2) x)))]
for n in 1...12: [observe (softmax_categorical (scores {X[n]})) {Y[n]}]
"""

MATRIX = """
[assume w (mem (lambda (k) (scope_include 'W 0 (multivariate_normal (vector 0) (matrix (list (list 2.25)))))))]
[assume W (matrix (w 0) (w 1) (w 2))]
for n in 1...12: [observe (softmax_categorical (matmul W {X[n]})) {Y[n]}]
"""


def weights_of_scores() -> dict[str, Expected]:
    """Quadrature over the three weights."""
    sides = {name: Grid(-6.0, 6.0, 81) for name in ("a", "b", "c")}
    grid = np.meshgrid(*(side.points for side in sides.values()), indexing="ij")
    log_density = -0.5 * sum(w * w for w in grid) / 1.5**2
    for x, outcome in zip(np.linspace(-2, 2, 12), OUTCOMES, strict=True):
        log_density = log_density + grid[outcome] * x - np.logaddexp.reduce([w * x for w in grid])
    return marginals(sides, log_density)


@pytest.mark.parametrize("program", [SCORES, ROWS, MATRIX])
@pytest.mark.parametrize(
    "kernel",
    [
        "(flymc W all auto 'map 0.5 'mala 1 'precondition 2)",
        pytest.param(
            "(flymc W all boehning 'untuned 0.7 'drift 1 'precondition 'explicit 0.8 5)", marks=pytest.mark.slow
        ),
    ],
)
@pytest.mark.thorough
def test_scores_have_their_exact_posterior(kernel: str, program: str) -> None:
    v = Venture(seed=1)
    matrix_prior(v)
    v.execute(program, X=np.linspace(-2, 2, 12)[:, None], Y=OUTCOMES)

    def more(n: int) -> dict[str, np.ndarray]:
        draws = v.infer(f"(repeat {n} (do {kernel} (collect {'(W)' if program == ROWS else 'W'})))")
        return {name: np.asarray(next(iter(draws.values())))[0, :, k, 0] for k, name in enumerate("abc")}

    assert_chain_agrees(more, weights_of_scores(), draws=300, what=kernel)


@pytest.mark.parametrize("explicit", [None, 0.3])
@pytest.mark.thorough
def test_rows_are_bright_as_often_as_they_must_be(explicit: float | None) -> None:
    """At one value of the block: each row's frequency (20 normal statistics at 5.5 sds, 8e-7; rows are
    independent, each a two-state chain whose autocorrelation time is at most 2 / 0.3 - 1)."""
    v = venture(LINE, X=np.linspace(-2, 2, 20), Y=np.linspace(-3, 4, 20), N=20)
    v.force("w", 1.0)
    model = v.traces[0]
    block = model.trace.scopes["w"].everything()
    settings = FireflySettings(None, False, 0.3, explicit, False)
    firefly = Firefly(model, block, settings, lambda text: None)
    expected = bright_probability(firefly._excess.copy())
    assert expected.min() < 0.05 < 0.5 < expected.max()
    times = 6000
    counts = np.zeros(20)
    for _ in range(times):
        firefly.resample(settings)
        counts[firefly.brightness.bright] += 1
    error = np.sqrt(expected * (1 - expected) * (2 / 0.3 - 1) / times)
    assert (np.abs(counts / times - expected) <= THRESHOLD * error + 1e-12).all()


@pytest.mark.parametrize("explicit", [None, 0.5])
def test_what_is_kept_of_bright_rows_is_what_holds_at_the_present_value(explicit: float | None) -> None:
    """Rows that were bright before a move, and those that came to be since."""
    v = venture(LINE, X=np.linspace(-2, 2, 20), Y=np.linspace(-3, 4, 20), N=20)
    model = v.traces[0]
    block = model.trace.scopes["w"].everything()
    settings = FireflySettings(None, False, 0.3, explicit, False)
    firefly = Firefly(model, block, settings, lambda text: None)
    move, step, moved, bright = Langevin(), 0.3, 0, 0
    for _ in range(60):
        firefly.resample(settings)
        moved += move(firefly, step)[0]
        bright += len(firefly.brightness.bright)
        kept, found = firefly.here(steep=True), firefly.at(firefly.theta, steep=True)
        assert kept.log_density == pytest.approx(found.log_density)
        assert kept.gradient == pytest.approx(found.gradient)
        above, below = (firefly.at(firefly.theta + away).log_density for away in (1e-6, -1e-6))
        assert kept.gradient == pytest.approx([(above - below) / 2e-6], rel=1e-3, abs=1e-3)
    assert moved > 10
    assert bright > 60


FAR = """
[assume w (scope_include 'w 0 (normal 0 4.2e6))]
for n in 1...100: [observe (LIKELIHOOD) {Y[n]}]
"""


@pytest.mark.parametrize(
    "kernel", ["auto 'untuned 0.5 'slice 1e6", "auto 'map 0.5 'slice 1e6", "auto 'untuned 0.5 'mala 0.001"]
)
@pytest.mark.thorough
def test_far_from_where_bounds_are_summed_transitions_are_exact(kernel: str) -> None:
    """The sum begins at a draw of the prior, 1e9 sds away (false alarms below 1e-6, see tests/statistics.py)."""
    target = 4.2e6 + 0.01 * np.random.default_rng(0).standard_normal(100)
    v = venture(FAR.replace("LIKELIHOOD", "normal w 0.01"), Y=target)
    precision = 1 / 4.2e6**2 + 100 / 1e-4
    mean, sd = target.sum() / 1e-4 / precision, precision**-0.5

    def more(n: int) -> dict[str, np.ndarray]:
        draws = v.infer(f"(do (flymc w all {kernel} 20) (repeat {n} (do (flymc w all {kernel} 1) (collect w))))")
        return {"w": (np.asarray(draws["w"])[0] - mean) / sd}

    grid = Grid(-8.0, 8.0, 4001)
    assert_chain_agrees(more, {"w": grid.cdf(-0.5 * grid.points**2)}, draws=600, what=kernel)


def test_bounds_that_touch_far_away_are_summed_about_the_present_value() -> None:
    target = 4.2e6 + 0.01 * np.random.default_rng(0).standard_normal(100)
    v = venture(FAR.replace("LIKELIHOOD", "normal w 0.01"), Y=target)
    model = v.traces[0]
    firefly = Firefly(model, model.trace.scopes["w"].everything(), FireflySettings(None, True, 0.1, None, False), print)
    assert firefly._mode is not None
    assert firefly._mode.at == pytest.approx([target.mean()], rel=1e-12)
    assert firefly._collapsed.reference == pytest.approx(firefly.theta)
    v.force("w", target.mean() + 0.003)
    firefly.refresh()
    here, there = (-0.5e4 * np.square(w - target).sum() for w in (firefly.theta, firefly.theta + 1e-3))
    assert firefly.at(firefly.theta + 1e-3).log_density == pytest.approx(there - here, abs=1e-5)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_bright_row_at_its_bound_raises_no_warning_of_numpys() -> None:
    """The gap is nothing but rounding there, and its weight infinite."""
    v = venture(LOGISTIC, **classes(200))
    v.force("w", [1.0, -1.0])
    model = v.traces[0]
    firefly = Firefly(model, model.trace.scopes["w"].everything(), FireflySettings(None, True, 0.1, None, False), print)
    firefly.brightness.brighten(firefly.brightness.dark.copy())
    assert firefly._mode is not None
    v.force("w", firefly._mode.at)
    firefly.theta = firefly._mode.at
    point = firefly.at(firefly._mode.at.copy(), steep=True)
    assert point.log_density == -np.inf
    for move in (Langevin(), GaussianStep()):
        move(firefly, 1.0)


# ------------------------------------------------------------------------------------------------------- the state


def test_what_is_computed_from_the_block_follows() -> None:
    v = venture(PRODUCT, **line())
    statistics = statistics_of(v, "(flymc w all auto 'map 0.05 'drift 0.3 40)")
    assert 0 < statistics.accepted < 40
    assert v.report("v") == v.report("c") * v.report("w")
    check(v.traces[0])


@pytest.mark.thorough
def test_a_rejection_restores_the_trace() -> None:
    v = venture(LOGISTIC, **classes(500))
    v.infer("(mh w all 'drift 0.1 200)")
    before = snapshot(v.traces[0])
    for kernel in ("'drift 50", "'mala 5"):
        assert statistics_of(v, f"(flymc w all auto 'map 0.05 {kernel} 20)").accepted == 0
    assert snapshot(v.traces[0]) == before


@pytest.mark.parametrize("after", range(1, 40, 3))
@pytest.mark.thorough
def test_an_interruption_leaves_a_valid_trace(after: int) -> None:
    v = venture(LOGISTIC, **classes(50))
    model = v.traces[0]
    model.interrupt_after = after
    with pytest.raises(KeyboardInterrupt):
        v.infer("(flymc w all auto 'map 0.05 'slice 0.05 50)")
    check(model)
    v.infer("(flymc w all auto 'map 0.05 'slice 0.5 5)")


def test_a_prior_that_moves_costs_no_query() -> None:
    v = venture(LOGISTIC, **classes(500))
    once = statistics_of(v, "(flymc w all auto 'map 0.05 'drift 0.1 1)").details["queries of set-up"]
    draws = v.infer("(cycle ((mh tau one 'drift 0.5 1) (flymc w all auto 'map 0.05 'drift 0.1 1)) 60)")
    assert draws.statistics[0].accepted > 10
    details = draws.statistics[1].details
    assert "queries of other kernels' moves" not in details
    assert details["queries of set-up"] <= 3 * once


def test_a_move_of_the_block_by_another_kernel_draws_the_brightness_anew() -> None:
    v = venture(LOGISTIC, **classes(500))
    draws = v.infer("(cycle ((mh w one 'drift 0.1 1) (flymc w all auto 'untuned 0.05 'drift 0.1 1)) 60)")
    moved = draws.statistics[0].accepted
    assert 5 < moved < 60
    details = draws.statistics[1].details
    # the first move comes before the set-up
    assert details["queries of other kernels' moves"] in (500 * moved, 500 * (moved - 1))
    assert details["queries of set-up"] == 1000


def test_another_input_of_the_likelihood_makes_the_bounds_anew() -> None:
    v = venture(LOGISTIC, **classes(500))
    draws = v.infer("(cycle ((mh b one 'drift 0.3 1) (flymc w all auto 'untuned 0.05 'drift 0.1 1)) 60)")
    moved = draws.statistics[0].accepted
    assert 5 < moved < 60
    assert draws.statistics[1].details["queries of set-up"] in (1000 * (moved + 1), 1000 * moved)


def test_choices_that_share_a_column_are_told_apart() -> None:
    """Two groups of rows, each with a slope of its own, of one memoized procedure: what moves one does not touch the
    bounds of the other."""
    groups = """[assume w (mem (lambda (g) (scope_include 'w g (normal 0 1))))]
for n in 1...N: [observe (bernoulli (logistic (* (w {G[n]}) {X[n]}))) {Y[n]}]"""
    rng = np.random.default_rng(0)
    data = {"G": [0, 1] * 50, "X": rng.standard_normal(100), "Y": rng.random(100) < 0.5, "N": 100}
    draws = venture(groups, **data).infer("(flymc w each auto 'untuned 0.1 'drift 0.5 30)")
    assert draws.statistics[0].details["queries of set-up"] == 200
    assert draws.statistics[0].accepted > 10


def test_a_factor_between_block_and_rows_is_an_input() -> None:
    """What the rows read is computed from the block and from another choice."""
    v = venture(PRODUCT, **line())
    draws = v.infer("(cycle ((mh c one 'drift 0.2 1) (flymc w all auto 'untuned 0.1 'drift 0.3 1)) 60)")
    moved = draws.statistics[0].accepted
    assert 5 < moved < 60
    assert draws.statistics[1].details["queries of set-up"] in (40 * (moved + 1), 40 * moved)


@pytest.mark.thorough
def test_few_rows_are_queried_where_bounds_touch_at_the_mode() -> None:
    v = venture(LOGISTIC, **classes(20_000))
    v.infer("(mh w all 'drift 0.03 500)")
    details = statistics_of(v, "(flymc w all auto 'map 0.002 'drift 0.03 300)").details
    assert details["queries a transition"] < 80
    assert details["mean bright rows"] < 40
    everything = details["queries of proposals"] + details["queries of brightening"]
    assert details["queries a transition"] == pytest.approx(everything / 300)


@pytest.mark.parametrize(("kernel", "low", "high"), [("'drift 5", 0.15, 0.33), ("'mala 0.01", 0.45, 0.7)])
@pytest.mark.thorough
def test_the_step_adapts_and_then_stays(kernel: str, low: float, high: float) -> None:
    v = venture(LOGISTIC, **classes(500))
    draws = v.infer(f"(repeat 900 (do (flymc w all auto 'map 0.05 {kernel} 'adapt 400 1) (collect w)))")
    assert low < draws.statistics[0].details["acceptance"] < high
    assert draws["w"].shape == (1, 900, 2)
    assert draws.without_adaptation()["w"].shape == (1, 500, 2)
    summary = draws.summary()
    assert summary.sizes == {"w": (1, 500)}
    assert "not counted: 400 warm-up draws a chain" in str(summary)


def test_a_search_that_does_not_converge_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from venture_lite.blocks.linear_block import LinearBlock

    searched = LinearBlock.mode
    monkeypatch.setattr(LinearBlock, "mode", lambda self, iterations=1, start=None: searched(self, 1, start))
    v = venture(LOGISTIC, **classes(500))
    with pytest.warns(VentureWarning, match="did not converge"):
        v.infer("(flymc w all auto 'map 0.05 'drift 0.1 1)")


# -------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("program", "kernel", "message"),
    [
        (LINE.replace("student_t 4 (* w {X[n]}) 1", "poisson (exp (* w {X[n]}))"), "'drift 1 1", "no lower bound"),
        (LINE.replace("student_t 4 (* w {X[n]}) 1", "gamma (exp w) 2"), "'drift 1 1", "gamma has no linear predictor"),
        (LINE.replace("(* w {X[n]}) 1", "(* w {X[n]}) (exp w)"), "'drift 1 1", "depends on the block too"),
        (LINE.replace("(* w {X[n]})", "(* w w {X[n]})"), "'drift 1 1", "two parts of the block are multiplied"),
        (LINE.replace("(normal 0 10)", "(gamma 1 1)"), "'drift 1 1", "unbounded continuous choices"),
        (LINE.replace("N:", "1:"), "'drift 1 1", "no border"),
        (
            LINE.replace("[assume w", "[assume m (scope_include 'w 0 (normal 0 1))] [assume w").replace(
                "(normal 0 10)", "(normal m 10)"
            ),
            "'drift 1 1",
            "depends on another choice of the block",
        ),
        (LINE, "'drift -1 1", "SIGMA must be a positive number"),
        (LINE, "'walk 1 1", "knows no such option"),
        (LINE, "'drift 1 'mala 1 1", "flymc is written"),
        (LINE, "'slice 1 'adapt 10 1", "flymc takes 'adapt with 'drift or 'mala only"),
        (LINE, "'drift 1 'explicit 0 1", "FRACTION must be above 0"),
    ],
)
def test_refusals_leave_the_trace_as_it_was(program: str, kernel: str, message: str) -> None:
    v = venture(program, X=np.ones(5), Y=np.ones(5), N=5)
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError, match=message) as caught:
        v.infer(f"(flymc w all auto 'untuned 0.1 {kernel})")
    assert caught.value.span is not None
    # what the form has wrong says itself what to write
    assert isinstance(caught.value, ArgumentError) or caught.value.hint
    assert snapshot(v.traces[0]) == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("jaakkola_jordan 'map 0.1", "student_t has no bound jaakkola_jordan"),
        ("auto 'tuned 0.1", "TUNING must be 'map or 'untuned"),
        ("auto 'map 0", "Q must be above 0"),
        ("auto 'map 2", "Q must be between 0 and 1"),
        ("3 'map 0.1", "BOUND must be auto or"),
    ],
)
def test_settings_that_cannot_be(settings: str, message: str) -> None:
    v = venture(LINE, X=np.ones(5), Y=np.ones(5), N=5)
    with pytest.raises(VentureError, match=message) as caught:
        v.infer(f"(flymc w all {settings} 'drift 1 1)")
    assert caught.value.span is not None


def test_a_bound_that_is_none_is_named_with_row_and_value() -> None:
    """A standard normal likelihood of the user's, with a bound that is flatter than it."""

    def taylor(value: Any, mean: Any) -> tuple[Any, Any, Any]:
        return -0.5 * (value - mean) ** 2, value - mean, -1.0

    def touching(value: Any, mean: Any) -> Quadratic:
        return Quadratic(mean, *taylor(value, mean)[:2], curvature=-0.5)

    predictor = LinearPredictor(
        0, taylor, lambda value, mean: 1.0, lambda value, mean: (np.inf, 0.0), bounds=(Bound("flat", touching),)
    )
    v = Venture(seed=1)
    v.register(
        "unit_normal",
        simulate=lambda rng, mean: rng.normal(mean, 1.0),
        log_density=lambda value, mean: -0.5 * (value - mean) ** 2,
        arguments=["mean"],
        predictor=predictor,
    )
    v.execute(LINE.replace("student_t 4 (* w {X[n]}) 1", "unit_normal (* w {X[n]})"), X=[0, 0, 2.0], Y=[1, 1, 7.5], N=3)
    v.force("w", 1.0)
    before = snapshot(v.traces[0])
    with pytest.raises(
        KernelError, match=r"the bound flat is not below unit_normal: at row 2 .* value is 7\.5"
    ) as caught:
        v.infer("(flymc w all auto 'untuned 0.1 'drift 1 1)")
    assert caught.value.span is not None
    assert snapshot(v.traces[0]) == before
