"""Random-walk Metropolis-Hastings for logistic regression, against NumPy written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tests.benchmarks.measure import Row, compare
from venture_lite import Venture

MODEL = """
[assume w (scope_include 'w 0 (multivariate_normal {mu} {Sig}))]
[assume y_x (lambda (x) (bernoulli (linear_logistic w x)))]
for n in 1...N: [observe (y_x {X[n]}) {Y[n]}]
"""
BAR = 0.9
BAR_FLOATS = 0.85
"""Of NumPy with its signs folded in, where the classes are given as 0.0 and 1.0."""
PRIOR_VARIANCE = 0.1


def rows() -> list[Row]:
    # bandwidths for an acceptance near the optimum of 0.234
    return [
        *_rows(12_214, 51, bandwidth=0.0095, transitions=1_000),
        *_rows(1_000_000, 3, bandwidth=0.006, transitions=20),
    ]


def _rows(count: int, dimensions: int, bandwidth: float, transitions: int) -> list[Row]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(count, dimensions))
    weights = rng.normal(scale=0.5, size=dimensions)
    classes = rng.random(count) < 1 / (1 + np.exp(-features @ weights))
    booleans = _walk(features, classes, bandwidth)
    floats = _walk(features, classes.astype(np.float64), bandwidth)
    by_hand = {
        chain: chain(features, classes, bandwidth, np.random.default_rng(2)).run for chain in (Plain, Folded, Tuned)
    }
    what = f"(mh w all 'drift s T), logistic {count:,} x {dimensions}"
    found = []
    for name, ours, theirs, baseline, bar in (
        (what, booleans, by_hand[Plain], "plain NumPy", BAR),
        ("  the same, against", booleans, by_hand[Tuned], "NumPy, tuned in place", 0.0),
        ("  classes as 0.0 and 1.0", floats, by_hand[Folded], "NumPy, signs folded in", BAR_FLOATS),
        ("  the same, against", floats, booleans, "booleans", BAR),
    ):
        # both leave the prior's draw behind, where nearly every proposal is accepted
        ours(2 * transitions)
        theirs(2 * transitions)
        compared = compare(lambda ours=ours: ours(transitions), lambda theirs=theirs: theirs(transitions))  # type: ignore[misc]
        found.append(
            Row(
                name,
                f"{transitions / compared.ours:,.0f}/s",
                f"at least {bar} of it" if bar else "-",
                f"{baseline}, {transitions / compared.theirs:,.0f}/s",
                compared.ratio,
                compared.ratio >= bar,
            )
        )
    return found


def _walk(features: np.ndarray, classes: np.ndarray, bandwidth: float) -> Callable[[int], None]:
    """The model with its data; makes so many transitions."""
    count, dimensions = features.shape
    model = Venture(seed=1)
    prior = {"mu": np.zeros(dimensions), "Sig": PRIOR_VARIANCE * np.eye(dimensions)}
    model.execute(MODEL, X=features, Y=classes, N=count, **prior)

    def run(transitions: int) -> None:
        model.infer("(mh w all 'drift {s} {T})", s=bandwidth, T=transitions)

    return run


class Plain:
    """The same transition as one writes it in NumPy: keeps the current log joint density, one `X @ w` a proposal.

    A row's log likelihood is -log(1 + exp(-s x.w)), s its sign; `run` moves `weights` and `log_joint`.
    """

    def __init__(self, features: np.ndarray, classes: np.ndarray, bandwidth: float, rng: np.random.Generator) -> None:
        self.features = features
        self.signs = np.where(classes, -1.0, 1.0)
        self.bandwidth = bandwidth
        self.rng = rng
        self.weights: np.ndarray = math.sqrt(PRIOR_VARIANCE) * rng.standard_normal((features.shape[1],))
        self.log_joint = self.evaluate(self.weights)

    def run(self, transitions: int) -> None:
        for _ in range(transitions):
            proposed = self.weights + self.bandwidth * self.rng.standard_normal(len(self.weights))
            log_joint = self.evaluate(proposed)
            if math.log(1.0 - self.rng.random()) < log_joint - self.log_joint:
                self.weights, self.log_joint = proposed, log_joint

    def evaluate(self, weights: np.ndarray) -> float:
        # scores that overflow exp, beyond 709, do not arise here; np.logaddexp, which minds them, is three times slower
        scores = self.signs * (self.features @ weights)
        return -float(np.log1p(np.exp(scores)).sum()) - 0.5 * float(weights @ weights) / PRIOR_VARIANCE


class Folded(Plain):
    """The signs folded into the features once."""

    def __init__(self, features: np.ndarray, classes: np.ndarray, bandwidth: float, rng: np.random.Generator) -> None:
        self.signed = np.where(classes, -1.0, 1.0)[:, None] * features
        super().__init__(features, classes, bandwidth, rng)

    def evaluate(self, weights: np.ndarray) -> float:
        log_likelihood = -float(np.log1p(np.exp(self.signed @ weights)).sum())
        return log_likelihood - 0.5 * float(weights @ weights) / PRIOR_VARIANCE


class Tuned(Folded):
    """And no new array: every step is written into one buffer."""

    def __init__(self, features: np.ndarray, classes: np.ndarray, bandwidth: float, rng: np.random.Generator) -> None:
        self.buffer = np.empty(len(features))
        super().__init__(features, classes, bandwidth, rng)

    def evaluate(self, weights: np.ndarray) -> float:
        buffer = self.buffer
        np.dot(self.signed, weights, out=buffer)
        np.exp(buffer, out=buffer)
        np.add(buffer, 1.0, out=buffer)
        np.log(buffer, out=buffer)
        return -float(buffer.sum()) - 0.5 * float(weights @ weights) / PRIOR_VARIANCE
