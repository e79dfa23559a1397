"""The gradient of a logistic regression's log posterior through the scaffold, against NumPy written by hand."""

from __future__ import annotations

import numpy as np

from tests.benchmarks.logistic import MODEL, PRIOR_VARIANCE
from tests.benchmarks.measure import Row, compare
from venture_lite import Venture
from venture_lite.blocks.density import BlockDensity

BAR = 4.0
EVALUATIONS = 100


def rows() -> list[Row]:
    return [_row(12_214, 51, EVALUATIONS), _row(1_000_000, 3, EVALUATIONS // 20)]


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
