"""Firefly Monte Carlo against regular Metropolis-Hastings on MNIST, 7 against 9 (Maclaurin and Adams 2014, Table 1).

Both walk isotropically, their steps tuned to the same acceptance; what is compared is effective draws a query, which
does not depend on the machine. Skipped where the data are not at hand (`VENTURE_DATA` names their folder).
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tests.benchmarks.logistic import Plain
from tests.benchmarks.measure import Row
from venture_lite import Draws, Venture, diagnostics

DATA = Path(os.environ.get("VENTURE_DATA", Path(__file__).parents[3] / "shared" / "data")) / "mnist_7v9.npz"
COMPONENTS = 50
PRIOR_VARIANCE = 0.1
MODEL = """
[assume w (scope_include 'w 0 (multivariate_normal {mean} {covariance}))]
[assume y (lambda (x) (bernoulli (linear_logistic w x)))]
for n in 1...N: [observe (y {X[n]}) {Y[n]}]
"""
ADAPTING = 20_000
REGULAR = 160_000
DRAWS = 500_000
"""Transitions of the regular walk and of Firefly's: at least 400 effective draws of the median coordinate."""
KEPT_EACH = 10
QUERIES = 207
"""The paper's, an iteration."""


def data() -> tuple[np.ndarray, np.ndarray]:
    """Features (rows, 51): the leading principal components, divided by one common sd, and a bias; whether a 9."""
    with np.load(DATA) as found:
        pixels, labels = found["X_train"].reshape(-1, 784) / 255.0, found["y_train"]
    centred = pixels - pixels.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    scores = centred @ directions[:COMPONENTS].T
    return np.column_stack([scores / scores.std(), np.ones(len(scores))]), labels == 9


def rows() -> list[Row]:
    if not DATA.exists():
        return [Row("flymc, MNIST 7 against 9", "no data", "-", "-", None, True)]
    features, classes = data()
    regular = regular_ess(features, classes) / (REGULAR * len(features))
    found = []
    for q, bar in ((0.01, 12.0), (0.003, 22.0)):
        draws = firefly(features, classes, f"'map {q} 'drift 0.02 'adapt {ADAPTING}", DRAWS)
        details = draws.statistics[-1].details
        queries = details["queries a transition"]
        sizes = effective(np.asarray(draws["w"])[0, -DRAWS // KEPT_EACH :])
        gain = float(np.median(sizes)) / (DRAWS * queries) / regular
        what = f"flymc 'map, plain walk, MNIST, q = {q}"
        accepted = f"acceptance {details['acceptance']:.3f}, {details['mean bright rows']:.0f} bright"
        if q == 0.01:
            most = f"at most {QUERIES}"
            found.append(Row(what, f"{queries:.0f} queries a transition", most, accepted, None, queries <= QUERIES))
        measured = f"ESS {np.median(sizes):.0f} (smallest {sizes.min():.0f}), {queries:.0f} queries, {accepted}"
        found.append(Row(what, measured, f"at least {bar:g} times", "regular, ESS a query", gain, gain >= bar))
    return [*found, langevin(features, classes, float(sizes.min()) / DRAWS)]


def langevin(features: np.ndarray, classes: np.ndarray, walk: float) -> Row:
    """With preconditioned steps along the gradient; `walk` is the smallest ESS a transition of the plain walk."""
    count = 10_000
    kernel = "'map 0.003 'mala 0.8 'precondition 'adapt 2000"
    draws = firefly(features, classes, kernel, count, every=1, adapting=2000)
    details = draws.statistics[-1].details
    smallest = float(effective(np.asarray(draws["w"])[0, -count:]).min())
    gain, acceptance = smallest / count / walk, details["acceptance"]
    measured = f"smallest ESS {smallest:.0f} in {count:,}, acceptance {acceptance:.2f}"
    met = gain >= 20.0 and 0.5 <= acceptance <= 0.65
    return Row("  preconditioned MALA, q = 0.003", measured, "at least 20 times", "its plain walk's", gain, met)


def firefly(
    features: np.ndarray,
    classes: np.ndarray,
    options: str,
    count: int,
    every: int = KEPT_EACH,
    adapting: int = ADAPTING,
) -> Draws:
    v = Venture(seed=1)
    size = features.shape[1]
    prior = {"mean": np.zeros(size), "covariance": PRIOR_VARIANCE * np.eye(size)}
    v.execute(MODEL, X=features, Y=classes, N=len(features), **prior)
    times = (count + adapting) // every
    draws = v.infer(f"(repeat {times} (do (flymc w all auto {options} {every}) (collect w)))")
    assert isinstance(draws, Draws)
    return draws


def regular_ess(features: np.ndarray, classes: np.ndarray) -> float:
    """Median ESS of as many draws of the same walk over all rows, tuned to the same acceptance."""
    chain = Tuned(features, classes, 0.02, np.random.default_rng(2))
    chain.tune(ADAPTING)
    draws = np.empty((REGULAR // KEPT_EACH, features.shape[1]))
    for position in range(len(draws)):
        chain.run(KEPT_EACH)
        draws[position] = chain.weights
    return float(np.median(effective(draws)))


class Tuned(Plain):
    """The walk by hand, its step brought to an acceptance of 0.234."""

    def tune(self, transitions: int) -> None:
        for made in range(1, transitions + 1):
            before = self.weights
            self.run(1)
            self.bandwidth *= np.exp(((self.weights is not before) - 0.234) / made**0.6)


def effective(draws: np.ndarray) -> np.ndarray:
    """Bulk ESS of each coordinate of (draws, D)."""
    return np.array([diagnostics.ess_bulk(draws[None, :, k]) for k in range(draws.shape[1])])
