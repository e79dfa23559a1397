"""`anneal` finds exact laws: the posterior by churns at full size, and that of sequential assignment."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from scipy import special

from tests.geweke.models import MODELS
from tests.posterior.derive import (
    groups,
    iid_normal_evidence,
    log_crp,
    partition_code,
    partition_expression,
    partitions,
    table,
)
from tests.statistics import Expected, assert_chain_agrees, assert_same_mean
from venture_lite import Venture
from venture_lite.draws.draws import Draws
from venture_lite.engines.anneal.anneal import Annealing
from venture_lite.engines.anneal.assignments import Assignments
from venture_lite.inference.data import Subsample
from venture_lite.trace.runtime import Statistics

CRP = """
[assume crp (make_crp 1.5)]
[assume z (mem (lambda (n) (tag 'z n (crp))))]
"""
COINS = (
    CRP
    + """
[assume coin (mem (lambda (k) (make_beta_bernoulli 0.5 0.5)))]
for n in 1...N: [observe ((coin (z n))) {x[n]}]
"""
)
NORMALS = (
    CRP
    + """
[assume mean (mem (lambda (k) (tag 'mean k (normal 0 2))))]
for n in 1...N: [observe (normal (mean (z n)) 0.8) {x[n]}]
"""
)
URNS = """
[assume urn (mem (lambda (left) (make_beta_bernoulli 0.5 0.5)))]
[assume left (mem (lambda (n) (tag 'left n (flip 0.45))))]
for n in 1...N: [observe ((urn (left n))) {x[n]}]
"""
FACES = [True, True, False, True]
REALS = [-1.0, -0.4, 1.3, 1.9]


def venture(text: str, x: Any, seed: int = 1, **parameters: Any) -> Venture:
    v = Venture(seed=seed)
    v.execute(text, x=x, N=len(x), **parameters)
    return v


def beta_evidence(part: list[float], a: float = 0.5) -> float:
    heads = sum(part)
    return float(special.betaln(a + heads, a + len(part) - heads) - special.betaln(a, a))


def over_partitions(x: list[Any], evidence: Callable[[list[float]], float]) -> dict[float, float]:
    return {
        partition_code(p): math.exp(log_crp(p, 1.5) + math.fsum(map(evidence, groups(p, x))))
        for p in partitions(len(x))
    }


def of_coins() -> Mapping[str, Expected]:
    return {"z": table(over_partitions(FACES, beta_evidence))}


def of_normals() -> Mapping[str, Expected]:
    return {"z": table(over_partitions(REALS, lambda part: iid_normal_evidence(part, 0.0, 2.0, 0.8)))}


def of_urns() -> Mapping[str, Expected]:
    weights: dict[float, float] = {}
    for sides in itertools.product((0, 1), repeat=len(FACES)):
        weight = math.prod(0.45 if side else 0.55 for side in sides)
        parts = [[x for x, s in zip(FACES, sides, strict=True) if s == side] for side in (0, 1)]
        code = float(sum(side << i for i, side in enumerate(sides)))
        weights[code] = weight * math.exp(sum(map(beta_evidence, parts)))
    return {"z": table(weights)}


PARTITION = partition_expression(["(z 1)", "(z 2)", "(z 3)", "(z 4)"])
SIDES = " ".join(f"(* {2**i} (left {i + 1}))" for i in range(4))
CASES = {
    "collapsed": (COINS, FACES, PARTITION, of_coins, "(anneal z constant 1)"),
    "own parameters": (NORMALS, REALS, PARTITION, of_normals, "(anneal z constant 1 (mh mean one 4))"),
    "two urns": (URNS, FACES, f"(+ {SIDES})", of_urns, "(anneal left constant 1)"),
}


def chain(case: str, seed: int) -> Callable[[int], dict[str, np.ndarray]]:
    text, x, expression, _, kernel = CASES[case]
    v = venture(text, x, seed)

    def more(n: int) -> dict[str, np.ndarray]:
        draws = v.infer(f"(repeat {n} (do {kernel} (collect (labelled {expression} z))))")
        assert isinstance(draws, Draws)
        return {"z": np.asarray(draws["z"], dtype=float).reshape(n)}

    return more


# ------------------------------------------------------------------------------------------------- what is exact


@pytest.mark.parametrize("case", [pytest.param(c, marks=[pytest.mark.slow] * (at > 0)) for at, c in enumerate(CASES)])
@pytest.mark.thorough
def test_churns_at_full_size_keep_the_posterior(case: str) -> None:
    """False alarms below 1e-6, by assert_chain_agrees."""
    assert_chain_agrees(chain(case, seed=5), CASES[case][3](), draws=200, what=case)


def removed_and_added(self: Annealing, assignments: Assignments, subsample: Subsample) -> None:
    """Every datum is taken out and put in again, also where it is the same."""
    datum = subsample.take_out(self._draw())
    assert datum == subsample.take_in(0.0)
    self._remove(assignments, datum)
    self._assign(assignments, subsample, datum, new=True)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["collapsed", "two urns"])
def test_to_remove_and_add_a_datum_is_a_gibbs_step_to_within_0_005(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """40,000 draws: a standard error of 0.0025 at most, were they independent."""
    monkeypatch.setattr(Annealing, "_churn", removed_and_added)
    assert_chain_agrees(chain(case, seed=8), CASES[case][3](), draws=40_000, what=case)


@pytest.mark.parametrize("case", ["collapsed", "two urns"])
@pytest.mark.thorough
def test_to_remove_and_add_a_datum_is_a_gibbs_step(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """False alarms below 1e-6, by assert_chain_agrees."""
    monkeypatch.setattr(Annealing, "_churn", removed_and_added)
    assert_chain_agrees(chain(case, seed=6), CASES[case][3](), draws=400, what=case)


@pytest.mark.slow
def test_statistics_of_a_removed_datum_that_are_left_in_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave_in(self: Annealing, assignments: Assignments, datum: int) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(Statistics, "unincorporate", lambda *_: None)
            assignments.data.remove(datum)

    monkeypatch.setattr(Annealing, "_churn", removed_and_added)
    monkeypatch.setattr(Annealing, "_remove", leave_in)
    with pytest.raises(AssertionError, match="expected"):
        assert_chain_agrees(chain("collapsed", seed=6), of_coins(), draws=300, what="left in")


@pytest.mark.thorough
def test_sequential_assignment_has_the_law_of_its_orders() -> None:
    """Independent draws against every order and every assignment of three data; false alarms below 1e-6."""
    x = [True, True, False]
    weights = dict.fromkeys(range(8), 0.0)
    for order in itertools.permutations(range(3)):
        for sides in itertools.product((0, 1), repeat=3):
            probability, counts = 1 / 6, {0: [0.5, 0.5], 1: [0.5, 0.5]}
            for n in order:
                shares = [(0.55, 0.45)[s] * counts[s][x[n]] / sum(counts[s]) for s in (0, 1)]
                probability *= shares[sides[n]] / sum(shares)
                counts[sides[n]][x[n]] += 1
            weights[sum(side << n for n, side in enumerate(sides))] += probability
    v = venture(URNS, x)

    def more(n: int) -> dict[str, np.ndarray]:
        code = "(+ (left 1) (* 2 (left 2)) (* 4 (left 3)))"
        draws = v.infer(f"(repeat {n} (do (anneal left sequential 0) (collect (labelled {code} z))))")
        assert isinstance(draws, Draws)
        return {"z": np.asarray(draws["z"], dtype=float).reshape(n)}

    assert_chain_agrees(more, {"z": table({float(k): w for k, w in weights.items()})}, draws=400, what="sequential")


VIEWS = """
[assume crp (mem (lambda (v) (make_crp 1.5)))]
[assume z (mem (lambda (v n) (tag 'z (+ (* 10 v) n) ((crp v)))))]
[assume coin (mem (lambda (v k) (make_beta_bernoulli 0.5 0.5)))]
for n in 1...N:
  [observe ((coin 1 (z 1 n))) {x[n]}]
  [observe ((coin 2 (z 2 n))) {y[n]}]
"""


@pytest.mark.thorough
def test_a_datum_may_have_an_assignment_in_each_of_several_views(monkeypatch: pytest.MonkeyPatch) -> None:
    """False alarms below 1e-6, by assert_chain_agrees."""
    monkeypatch.setattr(Annealing, "_churn", removed_and_added)
    x, y = FACES[:3], FACES[1:]
    v = venture(VIEWS, x, y=y)
    names = {view: partition_expression([f"(z {view} {n})" for n in (1, 2, 3)]) for view in (1, 2)}

    def more(n: int) -> dict[str, np.ndarray]:
        collected = " ".join(f"(labelled {expression} view{view})" for view, expression in names.items())
        draws = v.infer(f"(repeat {n} (do (anneal z constant 0) (collect {collected})))")
        assert isinstance(draws, Draws)
        return {name: np.asarray(draws[name], dtype=float).reshape(n) for name in ("view1", "view2")}

    exact = {f"view{k}": table(over_partitions(values, beta_evidence)) for k, values in ((1, x), (2, y))}
    assert_chain_agrees(more, exact, draws=200, what="two views")


@pytest.mark.thorough
def test_assignments_of_one_block_are_drawn_together() -> None:
    """Data that are independent given nothing: every annealing is an exact draw. False alarms below 1e-6."""
    text = """
    [assume a (mem (lambda (n) (tag 'ab n (flip 0.1))))]
    [assume b (mem (lambda (n) (tag 'ab n (flip 0.9))))]
    for n in 1...N: [observe (flip (if (a n) (if (b n) 0.95 0.05) (if (b n) 0.05 0.95))) {x[n]}]
    """
    v = venture(text, [True, False])
    weights = {
        a + 2.0 * b: (0.1 if a else 0.9) * (0.9 if b else 0.1) * (0.95 if a == b else 0.05)
        for a, b in itertools.product((0, 1), repeat=2)
    }

    def more(n: int) -> dict[str, np.ndarray]:
        draws = v.infer(f"(repeat {n} (do (anneal ab linear 0) (collect (labelled (+ (a 1) (* 2 (b 1))) ab))))")
        assert isinstance(draws, Draws)
        return {"ab": np.asarray(draws["ab"], dtype=float).reshape(n)}

    assert_chain_agrees(more, {"ab": table(weights)}, draws=300, what="together")


JOINT = """
[assume alpha (tag 'c 0 (gamma 2 2))]
[assume crp (make_crp alpha)]
[assume z (mem (lambda (n) (tag 'd n (crp))))]
[assume mean (mem (lambda (k) (tag 'c k (normal 0 1))))]
[predict (list (mean (z 1)) (mean (z 2)) (mean (z 3)))]
"""
REDRAWN = "data: for n in 1...3: [observe (normal (mean (z n)) 0.7) {y[n]}]"


@pytest.mark.slow
def test_annealing_keeps_the_joint_distribution_of_parameters_and_data() -> None:
    """Geweke's test, the data observed anew after each annealing; false alarms below 1e-6."""
    model = MODELS["tables"]
    v = Venture(seed=21)
    v.execute(JOINT)
    at = {f"m{n}": f"(mean (z {n}))" for n in (1, 2, 3)}
    same = {f"s{a}{b}": f"(= (z {a}) (z {b}))" for a, b in ((1, 2), (1, 3), (2, 3))}
    names = " ".join(f"(labelled {text} {name})" for name, text in {"alpha": "alpha", **at, **same}.items())
    rng = np.random.default_rng(22)
    rows: list[dict[str, float]] = []
    y = rng.normal([v.sample(text) for text in at.values()], 0.7)
    for _ in range(5000):
        v.execute(REDRAWN, y=y)
        draws = v.infer(f"(do (anneal d constant 1 (mh c one 4)) (collect {names}))")
        assert isinstance(draws, Draws)
        found = {name: float(np.asarray(draws[name]).ravel()[0]) for name in ("alpha", *at, *same)}
        y = rng.normal([found[name] for name in at], 0.7)
        rows.append({**found, "y1": y[0], "y2": y[1], "y3": y[2]})
        v.forget("data")
    r = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    functions = {
        "alpha": r["alpha"],
        "s12": r["s12"],
        "s13": r["s13"],
        "together": r["s12"] * r["s13"],
        "alpha_s12": r["alpha"] * r["s12"],
        "m1": r["m1"],
        "m1_square": r["m1"] ** 2,
        "m1_m3": r["m1"] * r["m3"],
        "m2_y2": r["m2"] * r["y2"],
        "y1_y3": r["y1"] * r["y3"],
        "s23_y2_y3": r["s23"] * r["y2"] * r["y3"],
    }
    forward = model.simulate(np.random.default_rng(23), 200_000)
    for name, draws_of_it in functions.items():
        assert_same_mean(draws_of_it, forward[name], f"E[{name}] under anneal")


# ---------------------------------------------------------------------------------------------------- 'energy


@pytest.mark.parametrize("power", [1.0, 0.4])
@pytest.mark.thorough
def test_a_tempered_likelihood_is_raised_to_its_power(power: float) -> None:
    """At a power that stays, by gibbs; false alarms below 1e-6."""
    v = venture(COINS.replace("0.5 0.5", "0.1 0.1"), FACES)
    v.traces[0].regenerator.power = power

    def more(n: int) -> dict[str, np.ndarray]:
        draws = v.infer(f"(repeat {n} (do (gibbs z one 4) (collect (labelled {PARTITION} z))))")
        assert isinstance(draws, Draws)
        return {"z": np.asarray(draws["z"], dtype=float).reshape(n)}

    weights = over_partitions(FACES, lambda part: power * beta_evidence(part, 0.1))
    assert_chain_agrees(more, {"z": table(weights)}, draws=300, what=f"power {power}")
