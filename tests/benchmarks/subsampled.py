"""Subsampled Metropolis-Hastings: what a transition costs as the data grow, and what control variates leave to read."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np

from tests.benchmarks.firefly import DATA
from tests.benchmarks.measure import Row, compare
from venture_lite import Venture

PAPERS = Path(__file__).parents[2] / "programs" / "papers"

MODEL = """
[assume w (scope_include 'w 0 (multivariate_normal {mean} {covariance}))]
[assume y (lambda (x) (bernoulli (linear_logistic w x)))]
for n in 1...N: [observe (y {X[n]}) {Y[n]}]
"""
GROWTH = 1.3
SPEEDUP = 20.0


def model(count: int, scales: np.ndarray) -> Venture:
    """Logistic regression with independent normal features of the given scales, near its mode."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((count, len(scales))) * scales
    weights = np.where(np.arange(len(scales)) % 2, -1.0, 1.0) * 0.3
    classes = rng.random(count) < 1 / (1 + np.exp(-features @ weights))
    v = Venture(seed=1)
    size = len(scales)
    v.execute(MODEL, X=features, Y=classes, N=count, mean=np.zeros(size), covariance=10 * np.eye(size))
    v.force("w", weights)
    return v


def rows() -> list[Row]:
    few, many = (model(count, np.ones(3)) for count in (10**4, 10**6))
    # proposals so far away that the first minibatch decides; a transition is rejected
    far = "(subsampled_mh w all 100 0.1 'drift 3 {T})"
    for v in (few, many):
        v.infer(far, T=5)
    grown = compare(lambda: many.infer(far, T=2000), lambda: few.infer(far, T=2000), repetitions=3)
    result = [
        Row(
            "subsampled_mh, one minibatch decides, 1,000,000 rows",
            f"{1e6 * grown.ours / 2000:,.0f} us",
            f"at most {GROWTH} times",
            f"10,000 rows, {1e6 * grown.theirs / 2000:,.0f} us",
            1 / grown.ratio,
            1 / grown.ratio <= GROWTH,
        ),
        _against_exact(many),
    ]
    for what, v, bar in (
        ("  rows read at 1,000,000 x 3", many, 0.0005),
        ("  rows read at 12,214 x 51", model(12_214, np.linspace(1.5, 0.2, 51)), 0.02),
    ):
        result.append(_fraction(what, v, bar))
    if DATA.exists():
        sys.path.insert(0, str(PAPERS))
        data = importlib.import_module("logistic").seven_nine(DATA)
        result.append(_fraction("  rows read on MNIST, 7 against 9", data.session(), 0.045))
    return result


def _fraction(what: str, v: Venture, bar: float) -> Row:
    """With control variates, of a preconditioned walk of the best scale (2.38 / sqrt(d) posterior sds)."""
    step = 2.38 / np.sqrt(np.size(v.report("w")))
    v.infer("(mh w all 'drift {s} 'precondition 200)", s=step)
    kernel = "(subsampled_mh w all 100 0.01 'drift {s} 'precondition 'proxy 2000)"
    statistics = v.infer(kernel, s=step).statistics[0]
    fraction = statistics.details["mean fraction of rows"]
    accepted = f"acceptance {statistics.accepted / 2000:.2f}"
    return Row(what, f"{100 * fraction:.3g}%", f"at most {100 * bar:g}%", accepted, None, fraction <= bar)


def _against_exact(v: Venture) -> Row:
    kernel = "(repeat 1 (subsampled_mh w all 100 0.01 'drift 0.003 'proxy {T}))"
    short, long = 200, 4200

    # the search for the mode, once for each run, is in both: their difference is 4,000 transitions
    def added() -> float:
        return _seconds(v, kernel, long) - _seconds(v, kernel, short)

    took = sorted(added() for _ in range(3))[1] / (long - short)
    exact = _seconds(v, "(mh w all 'drift 0.003 {T})", 50) / 50
    return Row(
        "subsampled_mh with 'proxy, 1,000,000 x 3, a transition",
        f"{1e6 * took:,.0f} us",
        f"at least {SPEEDUP:.0f} times mh",
        f"mh, {1e6 * exact:,.0f} us",
        exact / took,
        exact / took >= SPEEDUP,
    )


def _seconds(v: Venture, kernel: str, count: int) -> float:
    found: float = sum(row.seconds for row in v.infer(kernel, T=count).statistics)
    return found
