"""Choices of a recursion without memory, named by their assume: each call is a block of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tests.posterior.derive import normal_pdf
from tests.statistics import Table, assert_chain_agrees
from venture_lite import Venture, VentureError
from venture_lite.audit.invariants import check

GEOMETRIC = "[assume tosses (lambda (n) (if (flip 0.3) n (tosses (+ n 1))))] [assume n (tosses 0)]"
IN_TURN = """[assume (even n) (if (flip 0.4) n (odd (+ n 1)))] [assume (odd n) (if (flip 0.2) n (even (+ n 1)))]
    [assume n (even 0)]"""
TREE = "[assume (leaves) (if (flip 0.6) 1 (+ (leaves) (leaves)))] [assume n (leaves)]"
STICKS = "[assume (pick k) (if (flip (beta 1 2)) k (pick (+ k 1)))] [assume n (pick 0)]"
IN_MEMORY = """[assume z (mem (lambda (i) ((letrec ((go (lambda (n) (if (flip 0.3) n (go (+ n 1)))))) go) 0)))]
    [assume n (z 4)] [predict (z 5)]"""
OBSERVED = "[observe (normal n 1) 3]"
MOST = 60


def geometric(p: float) -> dict[int, float]:
    return {n: (1.0 - p) ** n * p for n in range(MOST)}


def in_turn() -> dict[int, float]:
    left, found = 1.0, {}
    for n in range(MOST):
        p = 0.2 if n % 2 else 0.4
        found[n] = left * p
        left *= 1.0 - p
    return found


def trees() -> dict[int, float]:
    """By the number of binary trees with so many leaves (Catalan)."""
    return {n: math.comb(2 * n - 2, n - 1) / n * 0.6**n * 0.4 ** (n - 1) for n in range(1, MOST)}


MODELS: dict[str, tuple[str, Callable[[], dict[int, float]]]] = {
    "geometric": (GEOMETRIC, lambda: geometric(0.3)),
    "two that call one another": (IN_TURN, in_turn),
    "a tree": (TREE, trees),
    "sticks": (STICKS, lambda: geometric(1 / 3)),
    "in a family": (IN_MEMORY, lambda: geometric(0.3)),
}

EVERYDAY = [("geometric", "compiled"), ("two that call one another", "compiled"), ("a tree", "checked")]


def draws_of(text: str, kernel: str, kernels: str) -> Callable[[int], Mapping[str, np.ndarray]]:
    v = Venture(seed=3, kernels=kernels)
    v.execute(text + OBSERVED)

    def more(count: int) -> dict[str, np.ndarray]:
        found = v.infer(f"(repeat {count} (do {kernel} (collect n)))")
        check(v.traces[0])
        return {"n": np.asarray(found["n"], dtype=float).reshape(count)}

    return more


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        pytest.param(name, way, marks=[pytest.mark.slow] * ((name, way) not in EVERYDAY))
        for name in MODELS
        for way in ("compiled", "interpreted", "checked")
    ],
)
def test_the_posterior_is_exact(name: str, kernels: str) -> None:
    """False alarms below 1e-6, by assert_chain_agrees."""
    text, prior = MODELS[name]
    weights = {n: p * normal_pdf(3.0, n, 1.0) for n, p in prior().items()}
    total = math.fsum(weights.values())
    expected = {"n": Table({n: weight / total for n, weight in weights.items() if n < 7})}
    kernel = "(gibbs (choices 'finite) each 1)" + " (mh default one 1)" * (name == "sticks")
    assert_chain_agrees(draws_of(text, kernel, kernels), expected, 400, name)


@pytest.mark.parametrize("name", ["geometric", *(pytest.param(each, marks=pytest.mark.slow) for each in [*MODELS][1:])])
def test_auto_runs_it(name: str) -> None:
    v = Venture(seed=1)
    v.execute(MODELS[name][0] + OBSERVED)
    draws = v.auto(draws=20, warmup=20, target_ess=1, chains=2)
    assert "(choices 'finite) each 1)" in draws.program


@pytest.mark.parametrize("block", ["default all", "(choices 'finite) all", "s 0"])
def test_a_block_without_bound_is_refused(block: str) -> None:
    v = Venture(seed=1)
    v.execute(GEOMETRIC.replace("(tosses 0)", "(tag 's 0 (tosses 0))") + OBSERVED)
    before = v.log_score()
    with pytest.raises(VentureError, match="the block may have no bound"):
        v.infer(f"(gibbs {block} 1)")
    assert v.log_score() == before
    check(v.traces[0])
