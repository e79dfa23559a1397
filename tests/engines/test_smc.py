"""`smc`: evidence and draws against exact answers.

A run's estimate of the evidence is unbiased, so that the mean of R = 40 of them is near to normal about the evidence;
its error in standard errors has nearly a t distribution with 39 degrees of freedom, which is beyond FURTHEST with
probability 1e-6. `test_smc_power.py` shows which broken samplers these tests notice.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from tests.engines.particle_models import MODELS, OTHER, PLAIN, log_evidence
from venture_lite import Draws, Venture
from venture_lite.errors import VentureError
from venture_lite.shell.report import RunReport, as_json, as_text

RUNS = 40
FURTHEST = 5.8
WAYS = ("'tempered", "")
DATA = np.random.default_rng(8).normal(1.0, 1.0, 12)
FLIPS = np.random.default_rng(9).random(12) < 0.7
ROWS = np.random.default_rng(10).normal(0.0, 1.0, (15, 2))
HEIGHTS = ROWS @ np.array([1.0, -0.5]) + np.random.default_rng(11).normal(0.0, 0.5, 15)


def normal_mean(v: Venture) -> float:
    v.execute("[assume mu (normal 0 2)] for i in 1...12: [observe (normal mu 1) {y[i]}]", y=DATA)
    return float(stats.multivariate_normal(np.zeros(12), np.eye(12) + 4.0).logpdf(DATA))


def coin(v: Venture) -> float:
    v.execute("[assume p (beta 2 1)] for i in 1...12: [observe (flip p) {y[i]}]", y=FLIPS)
    heads = int(FLIPS.sum())
    return float(special.betaln(2 + heads, 13 - heads) - special.betaln(2, 1))


def regression(v: Venture) -> float:
    v.execute(
        "[assume a (normal 0 1)] [assume b (normal 0 1)]"
        "for i in 1...15: [observe (normal (+ (* a {X[i, 1]}) (* b {X[i, 2]})) 0.5) {y[i]}]",
        X=ROWS, y=HEIGHTS,
    )  # fmt: skip
    return float(stats.multivariate_normal(np.zeros(15), 0.25 * np.eye(15) + ROWS @ ROWS.T).logpdf(HEIGHTS))


def two_modes(v: Venture) -> float:
    v.execute("[assume m (normal 0 2)] [observe (normal (* m m) 0.5) 4] [factor (* 0.5 m)]")
    points = np.linspace(-12.0, 12.0, 200_001)
    densities = stats.norm.logpdf(points, 0, 2) + stats.norm.logpdf(4, points**2, 0.5) + 0.5 * points
    return float(special.logsumexp(densities) + math.log(points[1] - points[0]))


def groups(v: Venture) -> float:
    """Means of groups about a common one: what absorbs is a choice that moves, too."""
    v.execute(
        "[assume m (normal 0 1)] [assume t (mem (lambda (g) (normal m 0.5)))]"
        "for i in 1...12: [observe (normal (t (mod {g[i]} 3)) 1) {y[i]}]",
        g=np.arange(12), y=DATA,
    )  # fmt: skip
    same = np.equal.outer(np.arange(12) % 3, np.arange(12) % 3)
    return float(stats.multivariate_normal(np.zeros(12), np.eye(12) + 1.0 + 0.25 * same).logpdf(DATA))


def lists(v: Venture) -> float:
    """Observations of several choices at once."""
    v.execute("[assume x (normal 0 2)] for i in 1...6: [observe (list (normal x 1) (normal x 1)) (list {y[i]} {z[i]})]",
              y=DATA[:6], z=DATA[6:])  # fmt: skip
    return float(stats.multivariate_normal(np.zeros(12), np.eye(12) + 4.0).logpdf(DATA))


def matrices(v: Venture) -> float:
    """A matrix that is computed from what moves: the precision of both coordinates is one gamma variable."""
    v.execute("[assume s (gamma 2 2)] [assume m (matrix (list (/ 1 s) 0) (list 0 (/ 1 s)))]"
              "for i in 1...2: [observe (multivariate_normal (vector 0 0) m) (vector {y[i]} {z[i]})]",
              y=DATA[:2], z=DATA[2:4])  # fmt: skip
    rest = special.gammaln(4) - special.gammaln(2) + 2 * math.log(2) - 2 * math.log(2 * math.pi)
    return float(rest - 4 * math.log(2 + 0.5 * (DATA[:4] ** 2).sum()))


CONJUGATE: dict[str, tuple[Callable[[Venture], float], str]] = {
    "normal": (normal_mean, "(mh default one 3)"),
    "coin": (coin, "(mh default one 'drift 0.5 2)"),
    "regression": (regression, "(mh default each 'drift 0.2 1)"),
    "groups": (groups, "(repeat 2 (mh default each 'drift 0.5 1))"),
    "lists": (lists, "(mh default one 3)"),
    "matrices": (matrices, "(mh default one 3)"),
    "two modes": (two_modes, "(slice default one 0.5 10 1)"),
}


OFTEN = ("coin", "groups", "two modes", "lists", "matrices")


def beyond(draws: Draws, exact: float, most: float = 0.15) -> float:
    """How many of its errors an estimate is away from the exact log evidence; the error is no more than `most`."""
    evidence = draws.evidence
    assert evidence is not None
    assert evidence.error <= most, evidence
    return abs(evidence.log - exact) / evidence.error


def often(name: str, those: tuple[str, ...]) -> Any:
    """A case that always runs, if it is one of those."""
    return name if name in those else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.thorough
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [often(name, OFTEN) for name in CONJUGATE])
def test_evidence_is_that_of_a_closed_form(name: str, way: str) -> None:
    model, kernel = CONJUGATE[name]
    v = Venture(seed=4)
    exact = model(v)
    assert beyond(v.infer(f"(smc 40 {way} 'runs {RUNS} {kernel})"), exact, most=0.2) < FURTHEST


def check_states(name: str, way: str, kernel: str, runs: int, particles: int, seed: int = 5) -> None:
    program, query, answer = MODELS[name]
    v = Venture(seed=seed)
    v.execute(program)
    draws = v.infer(f"(smc {particles} {way} 'runs {runs} {kernel} (collect (labelled {query} state)))")
    assert beyond(draws, log_evidence(name), most=0.25) < FURTHEST
    states = draws["state"].ravel()
    for state, p in answer()["state"].probabilities.items():
        # draws are taken evenly from all runs, so that they vary less than independent ones, and more for the runs'
        # weights: beyond 8 of these errors is no chance
        assert abs((states == state).mean() - p) < 8.0 * math.sqrt(p * (1 - p) / len(states)) + 1e-3


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [often(name, ("chain", "panel")) for name in PLAIN])
def test_states_of_plain_models_have_their_probabilities(name: str, way: str) -> None:
    check_states(name, way, "(mh default one 1)" if name == "chain" else "", RUNS, 60)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OTHER)
def test_states_of_models_whose_structure_changes_have_their_probabilities(name: str, way: str) -> None:
    if name == "maker" and way:
        pytest.skip("its observations cannot be tempered")
    check_states(name, way, "(mh default one 2)", RUNS // 2, 60)


@pytest.mark.thorough
def test_copies_of_traces_are_as_good_as_columns() -> None:
    """The draws, and what each copy is worth, where structure changes: fewer particles than in the slow tests."""
    check_states("branches", "", "(mh default one 1)", RUNS, 3, seed=6)


@pytest.mark.thorough
def test_draws_of_two_modes_are_shared_out_by_weight() -> None:
    """Small steps never cross between the modes, so that the particles alone know their weights: e to 1."""
    v = Venture(seed=4)
    two_modes(v)
    draws = v.infer("(smc 500 'tempered (mh default one 'drift 0.1 3) (collect m))")
    share = float((draws["m"] > 0).mean())
    points = np.linspace(-12.0, 12.0, 20_001)
    weights = np.exp(stats.norm.logpdf(points, 0, 2) + stats.norm.logpdf(4, points**2, 0.5) + 0.5 * points)
    # of 4,000 particles; three stages of resampling multiply the variance by less than 4: 6 errors
    assert abs(share - weights[points > 0].sum() / weights.sum()) < 6 * math.sqrt(4 * 0.1 / 4000)


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", [often("(hmc default all 0.3 3 1)", ()), "(nuts default all 'step 0.5 1)"])
def test_gradients_follow_the_power_of_the_likelihood(kernel: str) -> None:
    v = Venture(seed=4)
    exact = regression(v)
    assert beyond(v.infer(f"(smc 10 'tempered 'runs {RUNS} {kernel})"), exact, most=0.25) < FURTHEST


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["(mh default one 2)", "(do (mh default each 'drift 0.7 1) (mh default all 1))"])
def test_one_by_one_particles_go_as_they_do_together(kernel: str) -> None:
    """The estimate of a session whose kernels are interpreted, where nothing moves in columns."""
    v = Venture(seed=4, kernels="interpreted")
    exact = groups(v)
    assert beyond(v.infer(f"(smc 10 'tempered 'runs {RUNS} {kernel})"), exact, most=0.3) < FURTHEST


def test_the_trace_is_left_as_one_of_the_particles() -> None:
    v = Venture(seed=1)
    normal_mean(v)
    draws = v.infer("(smc 20 (mh default one 1) (collect mu))")
    assert v.sample("mu") in draws["mu"].ravel()
    again = Venture(seed=1)
    normal_mean(again)
    assert (again.infer("(smc 20 (mh default one 1) (collect mu))")["mu"] == draws["mu"]).all()


@pytest.mark.thorough
def test_runs_of_several_chains_are_one_estimate() -> None:
    v = Venture(seed=1, chains=2)
    exact = normal_mean(v)
    draws = v.infer("(smc 50 'tempered 'runs 20 (mh default one 2) (collect mu))")
    assert draws["mu"].shape == (2, 50)
    assert draws.evidence is not None
    assert len(draws.evidence.runs) == 40
    assert beyond(draws, exact) < FURTHEST
    assert draws.to_datatree().attrs["log_evidence"] == draws.evidence.log
    assert f"log evidence {draws.evidence.log:.3f}, error " in str(draws.summary())


def test_without_data_the_evidence_is_one() -> None:
    v = Venture(seed=1)
    v.execute("[assume mu (normal 0 1)]")
    evidence = v.infer("(smc 10 (collect mu))").evidence
    assert evidence is not None
    assert abs(evidence.log) < 1e-12
    assert "log evidence 0.000, error 0" in str(evidence)
    report = RunReport("infer", None, "(smc 10)", v.infer("(smc 10)"), None)
    assert "log evidence 0.000" in (as_text(report) or "")
    assert json.loads(as_json(report, None) or "")["evidence"]["log"] == pytest.approx(0.0, abs=1e-12)


def test_what_something_else_has_made_is_weighed_with_the_prior() -> None:
    v = Venture(seed=1)
    v.execute("[assume m (normal 0 1)] [assume x (normal m 1)] [assume y (* 2 x)] [observe x 1.5]")
    exact = float(stats.norm.logpdf(1.5, 0, math.sqrt(2)))
    assert beyond(v.infer(f"(smc 50 'runs {RUNS} (mh default one 1))"), exact) < FURTHEST


BAD = [
    ("[assume a (flat)] [observe (normal a 1) 2]", "(smc 9 (collect a))", "flat is improper: there is no prior", 11),
    ("", "(repeat 3 (smc 9 (collect m)))", "smc cannot stand inside repeat", 11),
    ("", "(smc 9 (collect m) (mh default one 1))", "a kernel after what smc collects has no place", 20),
    ("", "(smc 9 (repeat 2 (collect m)))", "collect inside a kernel of smc has no place", 8),
    ("", "(smc 1 (collect m))", "P must be a whole number, 2 or more, got 1", 6),
    ("", "(smc 9 'runs 0 (collect m))", "RUNS must be a whole number, 1 or more, got 0", 14),
    ("", "(smc 9 'tempred (collect m))", "smc knows no such option", 8),
    ("", "(smc 9 (flymc default one auto 'map 0.1 'drift 1 1))", "flymc cannot move particles: which rows", 8),
    ("", "(smc 9 (smc 9))", "smc cannot stand inside smc", 8),
    ("[condition (> m 99)]", "(smc 9 (collect m))", "all 72 particles have probability zero at datum 2 of 2", 1),
    ("[condition (> m 99)]", "(smc 9 'tempered (collect m))", "all 72 particles have probability zero under the", 1),
    ("[assume f (make_crp 1)] [observe (f) 1]", "(smc 9 'tempered)", "it cannot be tempered", 34),
]


@pytest.mark.parametrize(("more", "program", "message", "column"), BAD)
def test_a_mistake_is_told_with_its_place_and_the_trace_is_as_before(
    more: str, program: str, message: str, column: int
) -> None:
    v = Venture(seed=3)
    v.execute("[assume m (normal 6 1)] [observe (normal m 1) 7]")
    v.execute(more)
    before, state = v.log_score(), v.sample("m")
    with pytest.raises(VentureError, match=message.replace("(", r"\(")) as met:
        v.infer(program)
    assert met.value.span is not None
    assert met.value.span.place().endswith(f":{column}")
    assert (v.log_score(), v.sample("m")) == (before, state)
    # what is inferred next is not the worse for it
    v.infer("(mh default one 'drift 0.1 5)")


@pytest.mark.thorough
def test_a_proposal_that_cannot_be_is_rejected_by_itself() -> None:
    """A scale that underflows, and one outside of its bounds, for some particles of a transition of all."""
    v = Venture(seed=2)
    v.execute("[assume s (normal 0 400)] [assume x (normal 0 (exp s))] [observe (normal x (exp s)) 0.5]")
    draws = v.infer("(smc 40 'tempered 'runs 10 (mh default all 2) (mh default each 'drift 300 1) (collect s))")
    assert np.isfinite(draws["s"]).all()
    other = Venture(seed=2)
    other.execute("[assume m (normal 1 1)] [observe (normal 0 (+ 4 m)) 0.5]")
    with pytest.raises(VentureError, match="sd must be a positive number"):
        other.infer("(smc 400 'tempered (mh default one 'drift 9 2) (collect m))")


@pytest.mark.thorough
def test_draws_by_plan_follow_the_power_of_the_likelihood() -> None:
    """Plans that stood for an earlier power give the state that is collected nearly its prior probability, 1/2. A
    population's draws are as good as independent ones, since its last kernel draws each anew; 5.5 errors, 1e-6."""
    v = Venture(seed=3)
    v.execute(
        "[assume x (normal 0 4)] [observe (normal x 0.1) 3] [assume k (uniform_discrete 0 2)]"
        "[assume p (mem (lambda (k) (if (= k 1) 0.8 0.2)))] [observe (flip (p k)) true]"
    )
    kernels = "(mh (choices x) one 'drift 1 2) (gibbs (choices k) each 1)"
    found = v.infer(f"(smc 90 'tempered 'runs 1 {kernels} (collect k))")["k"].ravel()
    assert len(found) == 90
    assert abs(found.mean() - 0.8) < 5.5 * math.sqrt(0.16 / 90)


def test_particles_hold_vectors_and_lists() -> None:
    """The evidence is 0.6 in every particle, so that it is exact."""
    v = Venture(seed=1)
    v.execute("[assume x (uniform_draw (list (vector 1 2) (list 1 2)))] [observe (flip (if (= x x) 0.6 0.4)) true]")
    assert v.infer("(smc 20 (mh default one 2))").evidence.log == pytest.approx(math.log(0.6))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("drawn", ["(categorical (list 0.3 0.7))", "(categorical (vector 0.3 0.7))", "(categorical p)"])
def test_particles_move_categorical_choices(drawn: str, way: str) -> None:
    """Whether their values are given or not, and their weights are a list or an array."""
    v = Venture(seed=4)
    v.execute(f"[assume p (vector 0.3 0.7)] [assume x {drawn}] [observe (normal x 1) 0.8]")
    exact = math.log(0.3 * stats.norm.pdf(0.8) + 0.7 * stats.norm.pdf(-0.2))
    assert beyond(v.infer(f"(smc 10 {way} 'runs {RUNS} (mh default one 1))"), exact) < FURTHEST
