"""Improper uniform densities: their posteriors, their starts, and everything that would have to draw one.

Chains are compared with exact answers at a rate of false alarms below 1e-6 (`tests/statistics.py`).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tests.engines.data_and_sessions import venture
from tests.posterior.derive import cdf
from tests.statistics import assert_chain_agrees
from venture_lite import VentureError
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.procedures import transforms

Y = [1.2, -0.4, 0.9, 2.1, 0.3, 1.7]
MODEL = """
[assume mu (tag 'mu 0 (flat))]
[assume s (tag 's 0 (flat 0))]
[assume below (tag 'b 0 (flat none 1))]
[assume between (tag 'c 0 (flat -1 3))]
for n in 1...6: [observe (normal mu s) {Y[n]}]
[observe (normal below 1) 1.5]
"""
EXACT = {
    # with both flat, (n - 1) S^2 / s^2 has n - 2 degrees of freedom, and mu Student's t with as many
    "mu": cdf(stats.t(4, np.mean(Y), np.std(Y) / 2)),
    "(pow s -2)": cdf(stats.gamma(2, scale=2 / (6 * np.var(Y)))),
    "below": cdf(stats.truncnorm(-math.inf, -0.5, 1.5, 1)),
    "between": cdf(stats.uniform(-1, 4)),
}
QUICK = "(mh default all 'drift 0.5 30)"
KERNELS = (
    "(mh default one 'drift 0.8 24)", "(slice default one 2 10 8)",
    "(hmc default all 0.3 5 3)", "(mala default all 0.5 12)", "(nuts default all 'step 0.4 2)",
)  # fmt: skip


def compare(kernel: str, draws: int = 500) -> None:
    v = venture(MODEL, Y=Y)
    v.infer("(mh default one 'drift 0.5 400)")

    def more(n: int) -> dict[str, np.ndarray]:
        found = v.infer(f"(repeat {n} (do {kernel} (collect {' '.join(EXACT)})))")
        return {name: np.asarray(found[name]).reshape(n) for name in EXACT}

    assert_chain_agrees(more, EXACT, draws=draws, what=kernel)
    check(v.traces[0])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.thorough
def test_kernels_find_the_posterior(kernel: str) -> None:
    compare(kernel)


@pytest.mark.thorough
def test_a_walk_finds_the_posterior() -> None:
    compare(QUICK)


@pytest.mark.thorough
def test_a_wrong_jacobian_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds' transforms without the logarithm of their slope."""
    monkeypatch.setattr(transforms.Elementwise, "log_jacobian", lambda self, value, arguments: 0.0)
    monkeypatch.setattr("venture_lite.engines.walk.Drift.formula", lambda *arguments: None)
    with pytest.raises(AssertionError):
        compare("(mh default one 'drift 0.8 24)", draws=150)


@pytest.mark.thorough
def test_fifty_flat_weights_in_a_list_and_in_a_memory() -> None:
    """Means within 5 standard errors of least squares: 1e-6 a comparison, on 100 draws' effective size at least."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(120, 50))
    y = x @ rng.normal(size=50) + rng.normal(size=120)
    least_squares, covariance = np.linalg.solve(x.T @ x, x.T @ y), np.linalg.inv(x.T @ x)
    v = venture(
        "[assume w (to_vector (map (lambda (i) (flat)) (range 50)))]\n"
        "for n in 1...120: [observe (normal (dot w {X[n]}) 1) {Y[n]}]", X=x, Y=y,
    )  # fmt: skip
    assert np.abs(v.report("w")).max() <= 2
    draws = v.infer(
        "(do (repeat 40 (nuts default all 'adapt 40 1)) (repeat 100 (do (nuts default all 'step 0.09 1) (collect w))))"
    )
    away = (np.asarray(draws["w"]).reshape(-1, 50).mean(axis=0) - least_squares) / np.sqrt(np.diag(covariance))
    assert np.abs(away).max() < 5 / math.sqrt(100)


def test_a_program_may_bind_none_itself() -> None:
    v = venture("[assume none 5] [assume x (flat none 6)]")
    assert 5 < v.report("x") < 6
    assert v.sample("(let ((none 7)) (flat none 8))") > 7


def test_starts_come_from_the_traces_generator() -> None:
    starts = [venture("[assume a (flat)] [assume b (flat 3)] [assume c (flat none -3)]", seed=s) for s in (1, 1, 2)]
    one, same, other = ([v.report(name) for name in "abc"] for v in starts)
    assert one == same != other
    assert abs(one[0]) <= 2
    assert 3 + math.exp(-2) <= one[1] <= 3 + math.exp(2)
    assert -3 - math.exp(2) <= one[2] <= -3 - math.exp(-2)


def test_a_new_start_is_taken_where_one_is_asked_for() -> None:
    v = venture("[assume a (flat)] [assume b (flat a)] [observe (normal b 1) 3]")
    before = v.report("a")
    v.infer("(initialize)")
    assert abs(v.report("a")) <= 2
    assert v.report("a") != before
    assert v.report("b") > v.report("a")


FRESH = "[assume m (mem (lambda (i) (tag 'm i (flat))))] [assume z (tag 'z 0 (flip))] [assume x (if z (m 1) 0)]"


@pytest.mark.parametrize(
    "wanted",
    [
        "[sample (flat)]", "[infer (collect (flat 0))]", "[sample (m 7)]", "[infer (mh a one 2)]",
        "[infer (rejection a one 1)]", "[infer (pgibbs a ordered 3 1)]", "[infer (gibbs z one 4)]",
        "[infer (mh z one 40)]", "[infer (compile p a all 'worlds 100)]", "[assume q (flat 1 2 3)]",
    ],
)  # fmt: skip
def test_what_would_draw_one_is_refused(wanted: str) -> None:
    v = venture(f"{FRESH} [force z false] [assume a (tag 'a 0 (flat))] [observe (normal (+ x a) 1) 0.3]")
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError) as refused:
        v.execute(wanted)
    assert refused.value.span is not None
    assert refused.value.span.text.startswith("(flat")
    assert refused.value.hint is not None
    if "infer" not in wanted:
        assert snapshot(v.traces[0]) == before
    check(v.traces[0])
