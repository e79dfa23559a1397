"""Random-walk Metropolis-Hastings for logistic regression, against NumPy written by hand."""

from __future__ import annotations

import math

import numpy as np

from tests.benchmarks.measure import Row, compare
from venture_lite import Venture

MODEL = """
[assume w (scope_include 'w 0 (multivariate_normal {mu} {Sig}))]
[assume y_x (lambda (x) (bernoulli (linear_logistic w x)))]
for n in 1...N: [observe (y_x {X[n]}) {Y[n]}]
"""
BAR = 0.9
PRIOR_VARIANCE = 0.1


def rows() -> list[Row]:
    # bandwidths for an acceptance near the optimum of 0.234
    return [_row(12_214, 51, bandwidth=0.0095, transitions=1_000), _row(1_000_000, 3, bandwidth=0.006, transitions=20)]


def _row(count: int, dimensions: int, bandwidth: float, transitions: int) -> Row:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(count, dimensions))
    weights = rng.normal(scale=0.5, size=dimensions)
    classes = rng.random(count) < 1 / (1 + np.exp(-features @ weights))
    model = Venture(seed=1)
    prior = {"mu": np.zeros(dimensions), "Sig": PRIOR_VARIANCE * np.eye(dimensions)}
    model.execute(MODEL, X=features, Y=classes, N=count, **prior)
    chain = LogisticChain(features, classes, bandwidth, np.random.default_rng(2))

    def ours(steps: int = transitions) -> None:
        model.infer("(mh w all 'drift {s} {T})", s=bandwidth, T=steps)

    # both leave the prior's draw behind, where nearly every proposal is accepted
    ours(2 * transitions)
    chain.run(2 * transitions)
    found = compare(ours, lambda: chain.run(transitions))
    return Row(
        f"(mh w all 'drift s T), logistic {count:,} x {dimensions}",
        f"{transitions / found.ours:,.0f}/s",
        f"at least {BAR} of NumPy",
        f"NumPy by hand, {transitions / found.theirs:,.0f}/s",
        found.ratio,
        found.ratio >= BAR,
    )


class LogisticChain:
    """The same transition by hand: `run` moves `weights` and `log_joint`; buffers are made once.

    The rows' signs are folded into the features, so a row's log likelihood is -log(1 + exp(z)) with one z, taken
    without overflow as -max(z, 0) - log(1 + exp(-|z|)).
    """

    def __init__(self, features: np.ndarray, classes: np.ndarray, bandwidth: float, rng: np.random.Generator) -> None:
        self.signed = np.where(classes, -1.0, 1.0)[:, None] * features
        self.bandwidth = bandwidth
        self.rng = rng
        self._score = np.empty(len(features))
        self._tail = np.empty(len(features))
        self.weights: np.ndarray = math.sqrt(PRIOR_VARIANCE) * rng.standard_normal((features.shape[1],))
        self.log_joint = self._evaluate(self.weights)
        self.accepted = 0

    def run(self, transitions: int) -> None:
        rng, bandwidth = self.rng, self.bandwidth
        for _ in range(transitions):
            proposed = self.weights + bandwidth * rng.standard_normal(len(self.weights))
            log_joint = self._evaluate(proposed)
            if math.log(1.0 - rng.random()) < log_joint - self.log_joint:
                self.weights, self.log_joint = proposed, log_joint
                self.accepted += 1

    def _evaluate(self, weights: np.ndarray) -> float:
        score, tail = self._score, self._tail
        np.dot(self.signed, weights, out=score)
        np.abs(score, out=tail)
        np.negative(tail, out=tail)
        np.exp(tail, out=tail)
        np.add(tail, 1.0, out=tail)
        np.log(tail, out=tail)
        np.maximum(score, 0.0, out=score)
        return -float(tail.sum() + score.sum()) - 0.5 * float(weights @ weights) / PRIOR_VARIANCE
