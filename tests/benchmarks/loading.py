"""A million observations by a loop, against one copy and one evaluation of the same data in NumPy."""

from __future__ import annotations

import statistics

import numpy as np

from tests.benchmarks.logistic import MODEL
from tests.benchmarks.measure import Row, compare, peak_bytes, reset_peak, resident_bytes, seconds
from venture_lite import Venture

COUNT = 1_000_000
SECONDS_BAR = 1.0
RESIDENT_BAR = 40
PEAK_BAR = 64


def rows() -> list[Row]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(COUNT, 2))
    classes = rng.random(COUNT) < 0.5
    prior = {"mu": np.zeros(2), "Sig": np.eye(2)}

    def load(count: int = COUNT) -> Venture:
        model = Venture(seed=1)
        model.execute(MODEL, X=features[:count], Y=classes[:count], N=count, **prior)
        return model

    def by_hand() -> float:
        owned, signs = features.copy(), np.where(classes, -1.0, 1.0)
        return -float(np.logaddexp(0.0, signs * (owned @ np.zeros(2))).sum())

    load(1_000)
    kept, resident, peak = _memory_of(load)
    data = (features.nbytes + classes.nbytes) / COUNT
    found = compare(load, by_hand, repetitions=3)
    took = statistics.median(seconds(load) for _ in range(3))
    baseline = "NumPy's copy and one evaluation"
    del kept
    return [
        Row(
            "a million observations by a loop",
            f"{took:.2f} s",
            f"at most {SECONDS_BAR:.0f} s",
            f"{baseline}, {found.theirs:.3f} s",
            found.ratio,
            took <= SECONDS_BAR,
        ),
        _bytes_row("resident, beyond a copy of the data", resident - data, RESIDENT_BAR, data),
        _bytes_row("peak, on top of the caller's arrays", peak, PEAK_BAR, data),
    ]


def _memory_of(load: object) -> tuple[object, float, float]:
    """The loaded model, and bytes an observation that it keeps and took at its peak."""
    assert callable(load)
    before = resident_bytes()
    reset_peak()
    model = load()
    peak = peak_bytes() - before
    return model, (resident_bytes() - before) / COUNT, peak / COUNT


def _bytes_row(what: str, measured: float, bar: int, data: float) -> Row:
    baseline = f"the data's own {data:.0f} bytes"
    return Row(f"  {what}", f"{measured:.0f} bytes each", f"at most {bar}", baseline, measured / data, measured <= bar)
