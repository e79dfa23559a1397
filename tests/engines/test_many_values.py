"""`gibbs` over whole numbers, on both sides of the size from which candidates stay columns up to the draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.statistics import Table, assert_chain_agrees
from venture_lite import Venture
from venture_lite.audit.invariants import check
from venture_lite.errors import Disagreement
from venture_lite.interpreter.candidates import FEW, draw_candidate, draw_total
from venture_lite.interpreter.weights import NEVER, Weight
from venture_lite.kernels.candidates import FormedGibbs

SIZES = (FEW - 1, FEW, FEW + 1, 3 * FEW)
PROGRAMS = {
    "a number": "[assume n (uniform_discrete -3 (- {size} 3))] for i in 1...4: [observe (normal (* 0.1 n) 1) {{y[i]}}]",
    "successes": "[assume n (binomial (- {size} 1) 0.5)] for i in 1...4: [observe (poisson (+ 1 (/ n 9))) {{k[i]}}]",
    "a bound": "[assume n (uniform_discrete 0 {size})] for i in 1...4: [observe (uniform_discrete 0 (+ n 1)) {{k[i]}}]",
    "one with a prior": "[assume m (normal 0 3)] [assume n (uniform_discrete 0 {size})] [observe (normal (+ m n) 2) 7]",
}
DATA = {"y": [1.2, 0.4, 2.5, 1.1], "k": [3, 1, 4, 2]}


def session(name: str, size: int, kernels: str) -> Venture:
    v = Venture(seed=5, kernels=kernels)
    v.execute(PROGRAMS[name].format(size=size), **DATA)
    return v


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_way_draws_the_same(name: str, size: int) -> None:
    kernel = "(gibbs (choices n) one 1) " + "(slice (choices m) one 1 5 1)" * ("assume m" in PROGRAMS[name])
    drawn = []
    for kernels in ("compiled", "interpreted", "checked"):
        v = session(name, size, kernels)
        drawn.append(np.asarray(v.infer(f"(repeat 12 (do {kernel} (collect n)))")["n"]).tolist())
        check(v.traces[0])
    assert drawn[0] == drawn[1] == drawn[2]


@pytest.mark.parametrize("size", [150, pytest.param(10_000, marks=pytest.mark.slow)])
def test_the_posterior_is_exact(size: int) -> None:
    """False alarms below 1e-6, by assert_chain_agrees."""
    v = session("a number", size, "compiled")
    n = np.arange(-3, size - 3)
    logs = -0.5 * ((np.array(DATA["y"])[:, None] - 0.1 * n) ** 2).sum(axis=0)
    weights = np.exp(logs - logs.max())

    def more(count: int) -> dict[str, np.ndarray]:
        found = v.infer(f"(repeat {count} (do (gibbs default one 1) (collect n)))")["n"]
        return {"n": np.asarray(found, dtype=float).reshape(count)}

    table = Table(dict(zip(n.tolist(), (weights / weights.sum()).tolist(), strict=True)))
    assert_chain_agrees(more, {"n": table}, 400, "many values")


def test_the_two_rules_draw_by_the_same_shares() -> None:
    rng = np.random.default_rng(2)
    totals = rng.normal(size=FEW) * 3.0
    totals[[3, 20, FEW - 1]] = -np.inf
    weights = [Weight(0, total) if total > -np.inf else Weight(NEVER) for total in totals.tolist()]
    shares = np.exp(totals) / np.exp(totals).sum()
    ends = np.concatenate(([0.0], np.cumsum(shares)))
    for u in [*rng.random(200).tolist(), 0.0, 1.0 - 2.0**-53]:
        chosen = draw_candidate(weights, u)
        assert draw_total(totals, u) == chosen
        assert ends[chosen] <= u + 1e-12
        assert u <= ends[chosen + 1] + 1e-12
    # of states of which none is possible those with the fewest impossible terms count
    many = [Weight(2, 0.0)] * 50 + [Weight(1, 1.0)] * 50
    assert {draw_candidate(many, u) >= 50 for u in rng.random(50).tolist()} == {True}


@pytest.mark.filterwarnings("default::venture_lite.errors.Disagreement")
def test_weights_that_are_wrong_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    original = FormedGibbs._totals_together

    def tilted(self: FormedGibbs, *given: Any) -> np.ndarray | None:
        found = original(self, *given)
        return None if found is None else found + np.linspace(0.0, 3.0, len(found))

    monkeypatch.setattr(FormedGibbs, "_totals_together", tilted)
    with pytest.warns(Disagreement, match="weights of many values"):
        drawn = session("a number", 150, "compiled").infer("(repeat 5 (do (gibbs default one 1) (collect n)))")["n"]
    right = session("a number", 150, "interpreted").infer("(repeat 5 (do (gibbs default one 1) (collect n)))")["n"]
    assert np.asarray(drawn).tolist() == np.asarray(right).tolist()
