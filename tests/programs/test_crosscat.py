"""Cross-categorization, `programs/papers/crosscat.vnt`, on tables so small that all its states can be enumerated."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.special import betaln, gammaln, logsumexp

from tests.statistics import Table as Answer
from tests.statistics import assert_chain_agrees
from venture_lite import Venture

sys.path.insert(0, str(Path(__file__).parents[2] / "programs" / "papers"))
import crosscat
from crosscat_table import Table, log_predictive, program, state_of

GRIDS = {
    "strengths": [0.5, 2.0],
    "discounts": [0.0, 0.5],
    "means": [0.0],
    "kappas": [0.1, 1.0],
    "nus": [2.0],
    "vars": [0.2, 1.0],
    "weights": [0.5, 2.0],
}
ROWS = np.array([[-1.0, 0.0], [-0.8, 0.0], [1.2, 1.0]])
PARTITIONS = ((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2))
SAME = "(+ (if (= (category (view {0}) 1) (category (view {0}) 2)) {1} 0) "
SAME += "(if (= (category (view {0}) 1) (category (view {0}) 3)) {2} 0))"
CODE = f"(+ (if (= (view 1) (view 2)) 1 0) {SAME.format(1, 2, 4)} {SAME.format(2, 8, 16)})"


def blocks(values: np.ndarray, partition: Sequence[int]) -> Iterable[np.ndarray]:
    return (values[np.array(partition) == block] for block in set(partition))


def seating(partition: Sequence[int], strength: float, discount: float) -> float:
    """Log probability of a partition under the Pitman-Yor process, customer by customer."""
    total, sizes = 0.0, dict.fromkeys(partition, 0)
    for count, block in enumerate(partition):
        tables = sum(size > 0 for size in sizes.values())
        mass = sizes[block] - discount if sizes[block] else strength + discount * tables
        total += math.log(mass / (strength + count))
        sizes[block] += 1
    return total


def normal_evidence(x: np.ndarray, mean: float, kappa: float, nu: float, var: float) -> float:
    """Murphy 2007, equation 171."""
    n = len(x)
    after = nu * var + ((x - x.mean()) ** 2).sum() + n * kappa / (kappa + n) * (x.mean() - mean) ** 2
    found = gammaln((nu + n) / 2) - gammaln(nu / 2) + 0.5 * math.log(kappa / (kappa + n))
    return float(found + nu / 2 * math.log(nu * var) - (nu + n) / 2 * math.log(after) - n / 2 * math.log(math.pi))


def exact() -> dict[float, float]:
    """Weight of each code: whether the columns share a view, and which rows share a category with the first."""
    g = GRIDS
    seat = {
        partition: logsumexp([seating(partition, *pair) for pair in itertools.product(g["strengths"], g["discounts"])])
        for partition in ((0, 0), (0, 1), *PARTITIONS)
    }
    shared = list(itertools.product(g["means"], g["kappas"], g["nus"], g["vars"]))
    numeric = {
        p: logsumexp([sum(normal_evidence(x, *one) for x in blocks(ROWS[:, 0], p)) for one in shared])
        for p in PARTITIONS
    }
    nominal = {
        p: logsumexp([
            sum(betaln(a + (x == 0).sum(), b + (x == 1).sum()) - betaln(a, b) for x in blocks(ROWS[:, 1], p))
            for a, b in itertools.product(g["weights"], repeat=2)
        ])
        for p in PARTITIONS
    }  # fmt: skip
    weights: dict[float, float] = {}
    processes = math.log(len(g["strengths"]) * len(g["discounts"]))
    for first, second in itertools.product(PARTITIONS, repeat=2):
        same = [part[0] == part[row] for part in (first, second) for row in (1, 2)]
        code = float(sum(2 << i for i, flag in enumerate(same) if flag))
        apart = seat[0, 1] + seat[first] + seat[second] + numeric[first] + nominal[second]
        together = seat[0, 0] + seat[first] + numeric[first] + nominal[second] + processes
        weights[code] = weights.get(code, 0.0) + math.exp(apart)
        if first == second:
            weights[code + 1] = weights.get(code + 1, 0.0) + math.exp(together)
    return weights


def infer(v: Venture, draws: int) -> dict[str, np.ndarray]:
    kernel = f"(anneal category constant 0 {crosscat.KERNELS})"
    found = v.infer(f"(repeat {draws} (do {kernel} (collect (labelled {CODE} code))))")
    return {"code": np.asarray(found["code"], dtype=float).reshape(draws)}


def tiny(seed: int) -> Venture:
    v = Venture(seed=seed)
    v.execute(program((0, 2)), X=ROWS, N=len(ROWS), **GRIDS)
    return v


@pytest.mark.parametrize(("seed", "draws"), [(1, 200), pytest.param(2, 8000, marks=pytest.mark.slow)])
def test_views_and_categories_have_their_exact_posterior(seed: int, draws: int) -> None:
    """False alarms below 1e-6, by assert_chain_agrees."""
    weights = exact()
    total = math.fsum(weights.values())
    v = tiny(seed)
    answer = {"code": Answer({code: weight / total for code, weight in weights.items()})}
    assert_chain_agrees(lambda n: infer(v, n), answer, draws=draws, what="three rows, two columns")


def by_enumeration(v: Venture, row: np.ndarray, number: int) -> float:
    """The log density of a new row in the present state: the sum over its categories in all views, each forced."""
    before = v.log_score()
    views = sorted({v.sample("(view 1)"), v.sample("(view 2)")})
    for view in views:
        v.predict(f"(category {view} {number})", label=f"view{view}")
    labels = [sorted({*(v.sample(f"(category {view} {n})") for n in range(1, number)), 99}) for view in views]
    terms = []
    for chosen in itertools.product(*labels):
        for view, label in zip(views, chosen, strict=True):
            v.force(f"(category {view} {number})", label)
        v.observe(f"((components_1 (category view_1 {number})))", row[0], label="number")
        v.observe(f"((components_2 (category view_2 {number})))", row[1], label="outcome")
        terms.append(v.log_score() - before)
        v.forget("number")
        v.forget("outcome")
    for view in views:
        v.forget(f"view{view}")
    return float(logsumexp(terms))


def test_the_predictive_density_of_new_rows_is_that_of_the_program() -> None:
    v = tiny(seed=4)
    new, seen_views = np.array([[0.3, 1.0], [-2.0, 0.0]]), set()
    for _ in range(6):
        infer(v, 2)
        state = state_of(v, (0, 2), len(ROWS))
        seen_views.add(len(state.views))
        found = log_predictive(state, Table(ROWS, (0, 2)), new)
        assert found == pytest.approx([by_enumeration(v, row, len(ROWS) + 1) for row in new], abs=1e-9)
    assert seen_views == {1, 2}
