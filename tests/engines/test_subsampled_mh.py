"""`subsampled_mh` on models: the decisions that `mh` makes at a tolerance of 0, the posterior with control variates,
nothing stale, and what it refuses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tests.engines.data_and_sessions import LOGISTIC, NORMAL, ROBUST, classes, node_of, venture
from tests.statistics import CONFIRM, Mean, assert_chain_agrees, compare_all
from venture_lite import Venture, VentureError, VentureWarning
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.blocks.linear_block import LinearBlock
from venture_lite.blocks.sections import Sections
from venture_lite.draws.draws import Draws
from venture_lite.engines.subsampled.control_variates import Expansion
from venture_lite.engines.subsampled.reach import Reach
from venture_lite.interpreter.model import FixedValue


def draws_of(v: Venture, kernel: str, count: int, *names: str) -> Draws:
    draws = v.infer(f"(repeat {count} (do {kernel} (collect {' '.join(names)})))")
    assert isinstance(draws, Draws)
    return draws


def test_a_tolerance_of_0_is_mh_draw_for_draw() -> None:
    found = []
    for kernel in ("(mh w all 'drift 0.05 1)", "(subsampled_mh w all 100 0 'drift 0.05 1)"):
        v = venture(LOGISTIC, **classes(2000))
        found.append(draws_of(v, kernel, 50, "w")["w"])
    assert np.array_equal(*found)


def test_an_audit_leaves_the_draws_as_they_are() -> None:
    found = []
    for options in ("", "'audit 0.5"):
        v = venture(LOGISTIC, **classes(2000))
        found.append(draws_of(v, f"(subsampled_mh w all 100 0.1 'drift 0.05 {options} 1)", 50, "w")["w"])
    assert np.array_equal(*found)


@pytest.mark.thorough
def test_what_was_not_read_is_not_stale() -> None:
    """A deterministic value between the block and the rows, a prediction and the log score follow every acceptance."""
    text = LOGISTIC.replace("linear_logistic w x", "linear_logistic v x").replace(
        "[assume y", "[assume v (* 1 w)] [assume z (lambda (x) (dot v x))] [predict (z (vector 1 1))] [assume y"
    )
    v = venture(text, **classes(5000))
    v.infer("(mh w all 'drift 0.03 300)")
    statistics = v.infer("(subsampled_mh w all 50 0.1 'drift 0.1 60)").statistics[0]
    assert 0 < statistics.accepted < 60
    assert statistics.rows < 60 * 5000
    check(v.traces[0])
    assert np.array_equal(v.report("v"), v.report("w"))


@pytest.mark.thorough
def test_a_rejection_restores_the_trace() -> None:
    v = venture(LOGISTIC, **classes(2000))
    v.infer("(mh w all 'drift 0.05 500)")
    before = snapshot(v.traces[0])
    assert v.infer("(subsampled_mh w all 100 0.05 'drift 3 40)").statistics[0].accepted == 0
    assert snapshot(v.traces[0]) == before


@functools.cache
def moments_of_weights() -> dict[str, Mean]:
    """Means of the weights of `classes(2000)` and their squared distances from these, by quadrature over 7 sds on each
    side, a quarter of one apart."""
    data = classes(2000)
    grid = np.stack(np.meshgrid(np.linspace(0.5, 1.4, 61), np.linspace(-1.5, -0.6, 61), indexing="ij"), axis=-1)
    eta = (2 * data["Y"] - 1)[:, None] * (data["X"] @ grid.reshape(-1, 2).T)
    log_density = -0.05 * (grid**2).sum(axis=-1).ravel() - np.logaddexp(0.0, -eta).sum(axis=0)
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    mean = mass @ grid.reshape(-1, 2)
    square = mass @ (grid.reshape(-1, 2) - mean) ** 2
    return {f"mean {k}": Mean(mean[k]) for k in range(2)} | {f"square {k}": Mean(square[k]) for k in range(2)}


def weights_by(tolerance: float, seed: int = 1) -> Callable[[int], Mapping[str, np.ndarray]]:
    v = Venture(seed=seed)
    v.execute(LOGISTIC, **classes(2000))
    v.infer("(mh w all 'drift 0.1 500)")
    exact = moments_of_weights()

    def more(n: int) -> dict[str, np.ndarray]:
        drawn = np.asarray(draws_of(v, f"(subsampled_mh w all 100 {tolerance} 'drift 0.08 'proxy 6)", n, "w")["w"])[0]
        found = {f"mean {k}": drawn[:, k] for k in range(2)}
        return found | {f"square {k}": (drawn[:, k] - exact[f"mean {k}"].value) ** 2 for k in range(2)}

    return more


# a third to two thirds of them are effective
DRAWS = 400


@pytest.mark.parametrize("tolerance", [0.01, pytest.param(0, marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_control_variates_leave_the_posterior_as_it_is(tolerance: float) -> None:
    """False alarms: below 5e-7 (`tests/statistics.py`). A tolerance of 0.01 moves the moments by less than 24 chains of
    1,500 draws could tell: 0.02 sds of the means, 1% of the sds."""
    assert_chain_agrees(weights_by(tolerance), moments_of_weights(), DRAWS, f"a tolerance of {tolerance}")


def without_rest(self: Expansion, kind: int, positions: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Rows count whole, beside their expansions."""
    linear = self.linear.kinds[kind]
    eta = [linear.eta(self.linear.coefficients(theta, linear), positions) for theta in (old, new)]
    before, after = (linear.predictor.first_order(*linear.given(each, positions))[0] for each in eta)
    change: np.ndarray = after - before
    return change


@pytest.mark.slow
def test_rows_that_count_twice_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Expansion, "residuals", without_rest)
    comparisons = compare_all(weights_by(0.01)(DRAWS), moments_of_weights())
    assert max(abs(c.z) for cs in comparisons.values() for c in cs) > CONFIRM


@pytest.mark.thorough
def test_a_quadratic_likelihood_is_decided_without_a_row() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(1.0, 2.0, 1000)
    v = venture(NORMAL, Y=values, N=1000)
    kernel = "(subsampled_mh mu all 100 0.01 'drift 0.15 'proxy 1)"
    draws = v.infer(f"(do (mh mu all 'drift 0.3 200) (repeat 4000 (do {kernel} (collect mu))))")
    # the search for the mode is the only look at the data
    assert draws.statistics[-1].rows < 30 * 1000
    mean = values.sum() / 4 / (1000 / 4 + 1 / 100)
    drawn = np.asarray(draws["mu"])[0]
    assert abs(drawn.mean() - mean) < 0.02
    assert abs(drawn.std() - 1 / np.sqrt(1000 / 4 + 0.01)) < 0.01


@pytest.mark.thorough
def test_rows_that_an_expansion_knows_exactly_are_not_read() -> None:
    """w is read by 20,000 classes and, linearly, by 30,000 normal values: the test reads classes alone."""
    text = LOGISTIC + "for n in 1...M: [observe (normal (dot w {Z[n]}) 5) {V[n]}]"
    rng = np.random.default_rng(2)
    features = rng.standard_normal((30_000, 2))
    values = features @ [1.0, -1.0] + 5 * rng.standard_normal(30_000)
    v = venture(text, M=30_000, Z=features, V=values, **classes(20_000))
    v.infer("(mh w all 'drift 0.03 300)")
    kernel = "(subsampled_mh w all 100 0.01 'drift 1.5 'precondition 'proxy 'audit 1 200)"
    details = v.infer(kernel).statistics[0].details
    # one minibatch is 100 of all the 50,000
    assert details["mean fraction of rows"] < 0.004
    assert details["share that differs"] < 0.05


@pytest.mark.parametrize("options", ["'bernstein", "'bernstein 'proxy"])
@pytest.mark.thorough
def test_the_distribution_free_rule_makes_the_exact_decisions(options: str) -> None:
    """Its 100 decisions at a tolerance of 1e-9 differ from the exact ones with probability 1e-7."""
    v = venture(LOGISTIC, **classes(20_000))
    v.infer("(mh w all 'drift 0.03 500)")
    details = v.infer(f"(subsampled_mh w all 100 1e-9 'drift 0.03 {options} 'audit 1 100)").statistics[0].details
    assert details["decisions compared"] == 100
    assert details["share that differs"] == 0
    assert details["mean fraction of rows"] < (0.6 if "proxy" in options else 1.01)


def test_bounds_hold_for_every_row() -> None:
    v = venture(LOGISTIC, **classes(2000))
    model = v.traces[0]
    node = node_of(model, "w")
    block = LinearBlock(model, Sections.of(model, [node]), [node])
    (kind,) = block.kinds
    center = np.array([1.0, -1.0])
    reach = Reach(block, center)
    rng = np.random.default_rng(1)
    for scale in (0.01, 0.3, 3.0):
        old, new = center + scale * rng.standard_normal((2, 2))
        at_old, at_new, at_center = (block.terms(theta, kind) for theta in (old, new, center))
        change = at_new[0] - at_old[0]
        assert np.ptp(change) <= reach.of_differences(old, new)

        def expanded(theta: np.ndarray, about: tuple[Any, Any, Any] = at_center) -> Any:
            away = kind.features @ (theta - center)
            return away * (about[1] + 0.5 * about[2] * away)

        left = change - (expanded(new) - expanded(old))
        assert np.ptp(left) <= reach.of_residuals(old, new, center)


@pytest.mark.thorough
def test_a_preconditioned_walk_needs_no_scale() -> None:
    """2.38 / sqrt(2) of the posterior's own sds in both coordinates is accepted about a third of the time."""
    v = venture(LOGISTIC, **classes(20_000))
    v.infer("(mh w all 'drift 0.03 500)")
    row = v.infer("(subsampled_mh w all 100 0.01 'drift 1.68 'precondition 'proxy 500)").statistics[0]
    assert 0.2 < row.accepted / 500 < 0.55
    assert row.details["mean fraction of rows"] < 0.02


@pytest.mark.thorough
def test_few_rows_are_read_with_control_variates() -> None:
    v = venture(LOGISTIC, **classes(20_000))
    v.infer("(mh w all 'drift 0.03 500)")
    v.infer("(subsampled_mh w all 100 0.01 'drift 0.03 1)")
    draws = v.infer("(subsampled_mh w all 100 0.01 'drift 0.03 'proxy 400)")
    assert draws.statistics[0].accepted > 100
    assert draws.statistics[0].details["mean fraction of rows"] < 0.02


@pytest.mark.thorough
def test_an_impossible_row_is_decided_by_all() -> None:
    """Where a minibatch holds an impossible row, the numbers of impossible rows decide. (A rare one may not be met: the
    minibatches here miss all the 1,500 with probability 2e-10 altogether.)"""
    text = """[assume top (scope_include 'top 0 (uniform_continuous 0 10))]
for n in 1...N: [observe (uniform_continuous 0 top) {Y[n]}]"""
    values = np.full(3000, 0.5)
    values[::2] = 4.0
    v = venture(text, Y=values, N=3000)
    v.force("top", 4.5)
    v.infer("(subsampled_mh top all 40 0.4 'drift 0.5 200)")
    assert v.report("top") >= 4.0


@pytest.mark.parametrize(
    ("program", "kernel", "message"),
    [
        (
            "[assume w (scope_include 'w 0 (normal 0 1))] [observe (normal w 1) 2]",
            "w all 10 0.1 'drift 1 1",
            "no border",
        ),
        (NORMAL, "mu all 1 0.1 'drift 1 1", "NBATCH must be a whole number, 2 or more"),
        (NORMAL, "mu all 10 0.6 'drift 1 1", "EPS must be between 0 and 0.5"),
        (NORMAL, "mu all 10 0.1 'drift -1 1", "SIGMA must be a positive number"),
        (NORMAL, "mu all 10 0.1 'walk 1 1", "knows no such option"),
        (NORMAL, "mu all 10 0.1 'precondition 1", "takes 'precondition with 'drift only"),
        (NORMAL.replace("normal mu 2", "normal 0 (exp mu)"), "mu all 10 0.1 'drift 1 'proxy 1", "depends on the block"),
        (
            NORMAL.replace("normal mu 2", "gamma (exp mu) 2"),
            "mu all 10 0.1 'drift 1 'proxy 1",
            "gamma has no linear predictor",
        ),
        (NORMAL, "mu all 10 0.1 'drift 1 'bernstein 1", "a bounded slope; that of normal has none"),
        (
            NORMAL.replace("normal mu 2", "poisson (exp mu)"),
            "mu all 10 0.1 'drift 1 'proxy 'bernstein 1",
            "a bounded third derivative; that of poisson has none",
        ),
        (
            NORMAL.replace("(normal mu 2)", "(if (< mu 0) (normal 0 2) (normal mu 1))"),
            "mu all 10 0.1 'drift 1 1",
            "may change with the block",
        ),
        (
            "[assume mu (scope_include 'mu 0 (gamma 1 1))] [assume coin (make_beta_bernoulli mu 1)]"
            " for n in 1...N: [observe (coin) {Y[n]}]",
            "mu all 10 0.1 'drift 1 1",
            "parameters of an exchangeable procedure",
        ),
    ],
)
def test_refusals_leave_the_trace_as_it_was(program: str, kernel: str, message: str) -> None:
    v = venture(program, Y=np.ones(50), N=50) if "{Y" in program else venture(program)
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError, match=message) as caught:
        v.infer(f"(subsampled_mh {kernel})")
    assert caught.value.span is not None
    assert snapshot(v.traces[0]) == before


def test_a_term_without_bound_is_refused_before_any_block_moves() -> None:
    """Of the two blocks the second one's rows have no bounded slope."""
    text = ROBUST.replace(
        "[assume s (scope_include 's 0 (gamma 2 2))]", "[assume nu (scope_include 'mu 1 (normal 0 1))]"
    )
    text = text.replace("student_t 1 mu s", "student_t 1 mu 1") + "for n in 1...N: [observe (normal nu 1) {Y[n]}]"
    v = venture(text, Y=np.linspace(-1.0, 1.0, 30), N=30)
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError, match="that of normal has none"):
        v.infer("(subsampled_mh mu each 5 0.1 'drift 0.5 'bernstein 3)")
    assert snapshot(v.traces[0]) == before


def test_the_report_is_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    v = venture(LOGISTIC, **classes(2000))
    v.infer("(subsampled_mh_report w all 100 0.05 'drift 0.05 50)")
    printed = capsys.readouterr().out
    for name in ("mean fraction of rows", "largest p-value", "share that differs", "rows read to compare"):
        assert name in printed
    v.infer("(subsampled_mh_report w all 100 0 'drift 0.05 5)")
    assert "no decision was tested" in capsys.readouterr().out


def test_rows_read_to_compare_and_for_a_preconditioner_are_counted() -> None:
    v = venture(LOGISTIC, **classes(2000))
    options = "'drift 1 'precondition"
    (walk,) = v.infer(f"(mh w all {options} 20)").statistics
    assert walk.rows - 20 * 2000 > 5 * 2000
    v = venture(LOGISTIC, **classes(2000))
    (tested,) = v.infer(f"(subsampled_mh w all 100 0.1 {options} 'audit 1 20)").statistics
    assert tested.details["rows read to compare"] == 20 * 2000
    assert tested.rows - 20 * 2000 * tested.details["mean fraction of rows"] > 5 * 2000


@pytest.mark.parametrize(
    "kernel", ["subsampled_mh w 3 10 0.1 'drift 1", "subsampled_mh w 3 10 0", "flymc w 3 auto 'map 0.1 'drift 1"]
)
def test_a_block_that_does_not_exist_is_warned_of(kernel: str) -> None:
    v = venture(LOGISTIC, **classes(50))
    with pytest.warns(VentureWarning, match="the scope w has no block 3"):
        v.infer(f"({kernel} 5)")


@pytest.mark.parametrize(
    "kernel",
    ["subsampled_mh b all 5 0.1 'drift 0.5", "subsampled_mh b all 5 0.1 'proxy", "flymc b all auto 'map 0.3 'drift 1"],
)
def test_a_block_that_few_data_read_while_the_others_are_out_is_moved(kernel: str) -> None:
    """The first pass of an annealing goes through a single datum."""
    text = """[assume crp (make_crp 1)] [assume z (mem (lambda (n) (scope_include 'z n (crp))))]
[assume b (scope_include 'b 0 (normal 0 1))] [assume m (mem (lambda (k) (normal 0 3)))]
for n in 1...N: [observe (student_t 4 (+ b (m (z n))) 1) {Y[n]}]"""
    v = venture(text, Y=np.linspace(-3.0, 3.0, 30), N=30)
    moved, annealed = v.infer(f"(anneal z linear 1 ({kernel} 2))").statistics
    assert moved.transitions == 2 * annealed.details["passes of kernels"] > 6
    check(v.traces[0])


def test_a_factor_outside_of_loops_counts_with_the_prior() -> None:
    """It is no row that a minibatch may miss."""
    v = Venture(seed=1)
    v.execute("[assume mu (tag 'mu 0 (normal 0 1))] for i in 1...50: [observe (normal mu 1) 0.5]")
    v.execute("[factor (* -1000 (* mu mu))]")
    model = v.traces[0]
    (node,) = model.trace.scopes["mu"].everything()
    old = model.trace.value(node)
    sections = Sections.of(model, [node])
    assert sections.count == 50
    with model.transaction():
        _, weight = sections.propose(FixedValue(0.25))
    assert weight.total == pytest.approx(-(1000.0 + 0.5) * (0.25**2 - old**2))
    with pytest.raises(VentureError, match="a factor depends on the block: it has no linear predictor"):
        v.infer("(subsampled_mh mu all 20 0.05 'drift 0.1 'proxy 5)")
