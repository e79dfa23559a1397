"""Gradients of log posteriors through the scaffold: against NumPy written by hand, against a vector, and against the
density alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.logistic import MODEL, PRIOR_VARIANCE
from tests.benchmarks.measure import Row, compare
from venture_lite import Venture
from venture_lite.blocks.density import BlockDensity

BAR = 4.0
EVALUATIONS = 100

COUNTIES = """
    [assume sa (gamma 2 2)] [assume sy (gamma 2 2)] [assume b (normal 0 10)] [assume ma (normal 0 10)] EFFECTS
    for n in 1...919: [observe (normal (+ EFFECT (* b {x[n]})) sy) {y[n]}]
"""
MEMOIZED = ("[assume a (mem (lambda (j) (normal ma sa)))]", "(a {c[n]})")
LOOKUP = ("[assume a (multivariate_normal {m} {S})]", "(lookup a {c[n]})")
LOOKUP_BAR = 3.0

RECURSION = """
    [assume s (gamma 2 2)] [assume phi (normal 0 1)]
    [assume h (mem (lambda (t) (if (= t 0) 0.1 (+ (* phi (h (- t 1))) (* 0.1 s)))))]
    for t in 1...416: [observe (normal (h {t}) s) {y[t]}]
"""
RECURSION_BAR = 6.0


def rows() -> list[Row]:
    return [_row(12_214, 51, EVALUATIONS), _row(1_000_000, 3, EVALUATIONS // 20), _effects(), _recursion()]


def _density(program: str, **data: Any) -> tuple[Callable[[], object], Callable[[], object]]:
    """A density of all choices with its gradient, and the density alone: each moves the block and takes it back."""
    venture = Venture(seed=1)
    venture.execute(program, **data)
    model = venture.traces[0]
    nodes, journal = model.trace.default.everything(), model.trace.journal
    found = BlockDensity(model, nodes)
    free = found.present()

    def gradient() -> object:
        mark = journal.mark()
        found.put(free)
        weight = found.evaluate()
        journal.rollback(mark)
        return weight

    def alone() -> object:
        mark = journal.mark()
        found.put(free)
        weight = model.log_score()
        journal.rollback(mark)
        return weight

    return gradient, alone


def _effects() -> Row:
    """85 effects as memoized choices, and as one vector."""
    rng = np.random.default_rng(0)
    data = {"c": rng.integers(0, 85, 919).tolist(), "x": rng.integers(0, 2, 919) * 1.0, "y": rng.normal(1, 1, 919)}
    program, vector = (
        COUNTIES.replace("EFFECTS", effects).replace("EFFECT", effect) for effects, effect in (MEMOIZED, LOOKUP)
    )
    ours, _ = _density(program, **data)
    theirs, _ = _density(vector, **data, m=np.zeros(85), S=np.eye(85))
    return _ratio("log posterior and gradient, 919 rows with 85 memoized effects", ours, theirs, LOOKUP_BAR, "a vector")


def _recursion() -> Row:
    """A state computed by a recursion."""
    level = np.random.default_rng(0).normal(0.0, 0.3, 416).cumsum()
    gradient, alone = _density(RECURSION, y=level)
    return _ratio("log posterior and gradient, a recursion of 416 steps", gradient, alone, RECURSION_BAR, "the density")


def _ratio(what: str, ours: Callable[[], object], theirs: Callable[[], object], bar: float, other: str) -> Row:
    compared = compare(lambda: [ours() for _ in range(20)], lambda: [theirs() for _ in range(20)])
    ratio = 1.0 / compared.ratio
    measured, baseline = f"{20 / compared.ours:,.0f}/s", f"{other}, {20 / compared.theirs:,.0f}/s"
    return Row(what, measured, f"at most {bar:g} times its time", baseline, ratio, ratio <= bar)


def _row(count: int, dimensions: int, evaluations: int) -> Row:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(count, dimensions))
    weights = rng.normal(scale=0.5, size=dimensions)
    classes = rng.random(count) < 1 / (1 + np.exp(-features @ weights))
    venture = Venture(seed=1)
    prior = {"mu": np.zeros(dimensions), "Sig": PRIOR_VARIANCE * np.eye(dimensions)}
    venture.execute(MODEL, X=features, Y=classes, N=count, **prior)
    model = venture.traces[0]
    journal = model.trace.journal
    density = BlockDensity(model, model.trace.default.everything())
    outcomes = classes.astype(np.float64)

    def ours() -> tuple[float, np.ndarray]:
        """As a step of a path does it: move the block, evaluate, take it back."""
        mark = journal.mark()
        density.put(weights)
        weight, gradient = density.evaluate()
        journal.rollback(mark)
        return weight.total, gradient

    def by_hand() -> tuple[float, np.ndarray]:
        scores = features @ weights
        probabilities = 1 / (1 + np.exp(-scores))
        value = (
            float(outcomes @ scores - np.log1p(np.exp(scores)).sum()) - 0.5 * float(weights @ weights) / PRIOR_VARIANCE
        )
        return value, features.T @ (outcomes - probabilities) - weights / PRIOR_VARIANCE

    assert np.allclose(ours()[1], by_hand()[1])
    compared = compare(lambda: [ours() for _ in range(evaluations)], lambda: [by_hand() for _ in range(evaluations)])
    ratio = 1.0 / compared.ratio
    return Row(
        f"log posterior and gradient, logistic {count:,} x {dimensions}",
        f"{evaluations / compared.ours:,.0f}/s",
        f"at most {BAR:g} times NumPy's time",
        f"plain NumPy, {evaluations / compared.theirs:,.0f}/s",
        ratio,
        ratio <= BAR,
    )
