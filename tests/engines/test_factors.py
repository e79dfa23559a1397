"""`[factor ...]` and `[condition ...]`: every engine weighs them, and what cannot refuses them with their place.

Chains are compared with exact answers at a rate of false alarms below 1e-6 (`tests/statistics.py`).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.engines.data_and_sessions import venture
from tests.posterior.derive import cdf, table
from tests.statistics import CONFIRM, Cdf, Expected, Table, assert_chain_agrees, compare
from venture_lite import Venture, VentureError
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.interpreter import regenerate
from venture_lite.interpreter.weights import density_of

BONUS = (0.5, -1.0, 2.0)
CHAIN = """
[assume z (mem (lambda (t) (tag 'z t (flip (if (= t 0) 0.5 (if (z (- t 1)) 0.8 0.3))))))]
data: for t in 1...3: [factor (if (z t) {Y[t]} 0)]
[factor (if (and (z 0) (z 3)) 1 0)]
[condition (or (z 1) (z 2))]
"""
STATE = "(+ (if (z 0) 1 0) (if (z 1) 2 0) (if (z 2) 4 0) (if (z 3) 8 0))"
ENUMERATING = (
    "(gibbs z each 1)", "(mh z one 8)",
    *(
        pytest.param(kernel, marks=pytest.mark.slow)
        for kernel in (
            "(gibbs z all 1)", "(do (anneal z linear 1 (gibbs z each 1)) (gibbs z each 1))",
            "(mh default all 6)", "(pgibbs z ordered 6 1)", "(pgibbs z ordered 3 'ancestor 1)")
    ),
)  # fmt: skip


def states() -> Table:
    weights = {}
    for z in itertools.product((0, 1), repeat=4):
        p = 0.5
        for t in range(1, 4):
            rise = 0.8 if z[t - 1] else 0.3
            p *= (rise if z[t] else 1 - rise) * math.exp(BONUS[t - 1] * z[t])
        p *= math.exp(z[0] * z[3]) * (z[1] or z[2])
        weights[z[0] + 2.0 * z[1] + 4.0 * z[2] + 8.0 * z[3]] = p
    return table(weights)


def assert_finds(v: Venture, kernel: str, expression: str, exact: Expected, draws: int = 400) -> None:
    def more(n: int) -> dict[str, np.ndarray]:
        found = v.infer(f"(repeat {n} (do {kernel} (collect {expression})))")
        return {"it": np.asarray(found[expression], dtype=np.float64).reshape(n)}

    assert_chain_agrees(more, {"it": exact}, draws=draws, what=kernel)


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", ENUMERATING)
def test_discrete_choices_are_weighed_by_factors(kernel: str) -> None:
    v = venture(CHAIN, Y=list(BONUS))
    assert_finds(v, kernel, STATE, states(), draws=200)
    check(v.traces[0])


@pytest.mark.thorough
def test_a_broken_weight_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the factors that are weighed one by one."""

    def without(trace: Any, node: int, operator: Any, *rest: Any) -> float:
        return 0.0 if operator.name == "factor" else density_of(trace, node, operator, *rest)

    monkeypatch.setattr(regenerate, "density_of", without)
    v = Venture(seed=1, kernels="interpreted")
    v.execute(CHAIN, Y=list(BONUS))
    found = v.infer(f"(repeat 400 (do (mh z one 8) (collect {STATE})))")[STATE]
    assert max(abs(c.z) for c in compare(np.asarray(found, dtype=np.float64).reshape(400), states())) > 2 * CONFIRM


TILTED = "[assume x (normal 0 1)] [factor (* 3 x)] [condition (> 2 1)]\nfor i in 1...3: [factor (- (* x x))]"
MOVES = (
    "(mh default one 12)", "(mh default one 'drift 0.5 8)", "(slice default one 1 10 2)", "(hmc default all 0.3 4 2)",
    "(mala default all 0.3 6)", "(nuts default all 'step 0.4 1)", "(subsampled_mh default one 2 0 'drift 0.5 8)",
)  # fmt: skip


@pytest.mark.parametrize("kernel", MOVES)
@pytest.mark.thorough
def test_continuous_choices_are_weighed_by_factors(kernel: str) -> None:
    """Precision 1 + 2 * 3, and 3 times the variance for the mean."""
    assert_finds(venture(TILTED), kernel, "x", cdf(stats.norm(3 / 7, 7**-0.5)))


SHARED = "[assume x (normal 0 1)]\nfor i in 1...30: [factor (* 0.05 x)] [condition (> 2 1)]"


@pytest.mark.parametrize("kernel", MOVES)
@pytest.mark.thorough
def test_each_pass_of_a_long_loop_has_a_factor_that_all_share(kernel: str) -> None:
    """Seen to fail where it is weighed once (`Group.summed`): what goes along a gradient is 1.5 sds off."""
    assert_finds(venture(SHARED), kernel, "x", cdf(stats.norm(1.5, 1)))


def test_a_factor_that_all_passes_share_may_be_an_integer() -> None:
    v = venture("[assume k (binomial 2 0.5)] [observe k 2]\nfor i in 1...30: [factor (- k 1)]")
    assert v.log_score() == pytest.approx(30 + math.log(0.25))
    v.infer("(mh default one 1)")


def test_rejection_takes_conditions_and_refuses_factors() -> None:
    v = venture("[assume x (uniform_discrete 0 4)] [assume y (flip)] [condition (or y (> x 1))]")
    assert_finds(v, "(rejection default all 1)", "x", table({0: 0.5, 1: 0.5, 2: 1, 3: 1}))
    v.factor("(* x 1)")
    with pytest.raises(VentureError, match="no upper bound for the density of factor"):
        v.infer("(rejection default all 1)")


def test_values_labels_and_forgetting() -> None:
    v = venture("[assume x (normal 0 1)] f: [factor (* 2 x)] c: [condition (< x 9)]")
    before = snapshot(v.traces[0])
    assert v.factor("(- x)", label="g") == -v.report("x") == v.report("g")
    assert v.condition("(> x -9)") is True
    assert v.report("f") == 2 * v.report("x")
    assert v.report("c") is True
    x = v.report("x")
    assert math.isclose(v.execute("[get_logscore]")[0], stats.norm.logpdf(x) + x)
    v.forget("g")
    v.forget(5)
    assert snapshot(v.traces[0]) == before
    check(v.traces[0])


def test_data_of_a_loop_are_reported_and_forgotten() -> None:
    v = venture("[assume x (normal 0 1)]\nd: for i in 1...40:\n  w: [factor (* {i} x)]")
    assert v.report("d") == 40
    assert v.report("w")[2] == 3 * v.report("x")
    v.forget("d", 3)
    assert v.report("d") == 39
    score = stats.norm.logpdf(v.report("x")) + (820 - 3) * v.report("x")
    assert math.isclose(v.execute("[get_logscore]")[0], score)


@pytest.mark.parametrize(
    ("text", "told", "place"),
    [
        ("[factor (exp (* 1e6 (+ 1 (abs x))))]", "EXPR must be a number or -inf, got inf", "(exp"),
        ("[factor {W}]", "EXPR must be a number or -inf, got (1 2)", "{W}"),
        ("[factor (vector 1)]", "EXPR must be a number or -inf, got [1.]", "(vector 1)"),
        ("[factor (lkj_cholesky 1 1)]", "EXPR must be a number or -inf, got [[1.]]", "(lkj_cholesky 1 1)"),
        ("[factor (> x 0)]", "EXPR must be a number or -inf, got", "(> x 0)"),
        ("[factor (log 0)]", "the factor is -inf, whatever the random choices are", "(log 0)"),
        ("[condition (+ x 10)]", "EXPR must be a boolean, 0 or 1", "(+ x 10)"),
        ("[condition (< 2 1)]", "the condition does not hold, whatever the random choices are", "(< 2 1)"),
        ("[factor]", "factor takes one expression", "[factor]"),
        ("[observe (factor 1) 0]", "factor is an expression inside of queries only", "(factor 1)"),
    ],
)
def test_bad_weights_are_refused_with_their_place(text: str, told: str, place: str) -> None:
    v = venture("[assume x (normal 0 1)]")
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError) as refused:
        v.execute(text, **({"W": (1, 2)} if "{W}" in text else {}))
    assert told in refused.value.message
    assert refused.value.span is not None
    assert refused.value.span.text.startswith(place)
    assert snapshot(v.traces[0]) == before


def test_a_weight_that_becomes_infinite_is_an_error_in_its_place() -> None:
    v = venture(
        "[assume x (uniform_discrete 0 2)] [force x 0]\nfor i in 1...2: [factor (if (= x 1) (exp (* 1e6 i)) 0)]"
    )
    with pytest.raises(VentureError, match=r"<input>:2:25: factor: EXPR must be a number or -inf, got inf"):
        v.infer("(mh default one 50)")
    assert v.report("x") == 0


def test_a_condition_that_does_not_hold_is_left_and_told_of() -> None:
    v = venture("[assume x (uniform_discrete 0 3)] [condition (= x (+ 1 1))]", seed=2)
    assert v.execute("[get_logscore]")[0] == -math.inf
    with pytest.warns(UserWarning, match=r"probability zero: .*\(= x \(\+ 1 1\)\) does not hold"):
        v.infer("(repeat 0 (mh default one 1))")
    v.infer("(gibbs default one 1)")
    assert v.report("x") == 2


LEARNED = "[assume a (normal 0 1)] [assume x (tag 'x 0 (normal a 1))] [assume c (normal x 1)] [observe (normal x 1) 1] "


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ("[factor (* -1 (* x x))]", "(* -1 (* x x))"),
        ("[condition (> x -9)]", "(> x -9)"),
        ("[factor (* -1 (+ x a))]", "(* -1 (+ x a))"),
        ("[assume b (flip)] [observe (normal (if b x (gamma 1 1)) 1) 1] [factor (* -1 (* x x))]", "(* -1 (* x x))"),
        ("[assume f (flat)] [observe (normal (+ x f) 1) 0]", "(flat)"),
    ],
)
def test_proposals_are_not_learned_from_what_cannot_be_drawn(more: str, place: str) -> None:
    """What reads the block is told with its place, before anything is drawn."""
    v = venture(LEARNED + more)
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError, match=r"cannot be drawn|flat is improper") as refused:
        v.infer("(compile p x all 'worlds 100)")
    assert refused.value.span is not None
    assert refused.value.span.text == place
    assert snapshot(v.traces[0]) == before


BESIDE = "[assume u (normal 0 1)] [factor (* -0.5 (* a a))] [factor (* -0.5 (* c c))] [condition (< u 3)]"
"""Above the block, below what reads it, and elsewhere."""


def test_factors_that_do_not_read_the_block_are_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.networks.fitting.LEAST_STEPS", 20)
    v = venture(LEARNED + BESIDE, seed=2)
    report = v.compile("p", "x", "all", worlds=100, hidden=2)
    assert report.kinds[0].worlds == 100
    assert v.infer("(compiled_mh p x all 20)").statistics[0].accepted > 0


@pytest.mark.slow
def test_proposals_are_exact_beside_factors_that_do_not_read_the_block() -> None:
    """Given these the block has the density that it has without."""
    v = venture(LEARNED + BESIDE, seed=2)
    v.infer("(compile p x all 'worlds 300 'hidden 4)")

    def more(n: int) -> dict[str, np.ndarray]:
        kernel = "(compiled_mh p x all 2) (mh default each 'drift 1 3) (collect x)"
        return {"x": np.asarray(v.infer(f"(repeat {n} (do {kernel}))")["x"], dtype=float).reshape(n)}

    # by the two factors a has variance 1 / 2, and c + 0 is observed with sd 1
    precision = 1.0 / 1.5 + 1.0 + 0.5
    points = stats.norm(1.0 / precision, precision**-0.5).ppf(np.array([0.1, 0.3, 0.5, 0.7, 0.9]))
    answer = Cdf(points, np.array([0.1, 0.3, 0.5, 0.7, 0.9]))
    assert_chain_agrees(more, {"x": answer}, 400, "beside factors")
