"""Tests of Monte Carlo draws against exact answers, quiet at a stated rate and honest about autocorrelation.

Every comparison is of the mean of a bounded or square-integrable function of the draws with its exact expectation. The
standard error is `sd * sqrt(tau / n)`: `sd` is exact where the function is an indicator, else the sample's, and `tau`
is the integrated autocorrelation time by Geyer's initial monotone positive sequence (Geyer 1992, Practical Markov
chain Monte Carlo, section 3.3), never below 1.

Two stages. A chain of n draws of which fewer than MIN_EFFECTIVE are effective is made longer by what it lacks, by a
quarter of it at least and twice as long at most, until it has EXTENSION * n. It is suspect beyond SUSPECT = 3 standard
errors, or where it is still too slow to tell. A suspect runs on for EXTENSION * n draws, and only these decide: a
comparison beyond CONFIRM = 4.8 standard errors fails, and so does a chain that still could not tell.

False alarms. A normal statistic is suspect with probability 2.7e-3 and confirmed with 1.6e-6; for ten statistics of one
test that is below 0.027 * 1.6e-5 = 5e-7, also when tau is estimated 10% too low. Probabilities below RARE are pooled,
so that no count is far from normal.

A chain that is broken on purpose is looked at again and again (`assert_chain_misses`), at most eight times: one that is
right would be taken for wrong with a probability of about 1e-4, and where it is not it fails the test.

Power. The error of a probability p that is found half of the time is `3 * sqrt(p (1 - p) tau / n)`: 0.047 at p = 0.5
with 1,000 effective draws, 0.017 with 8,000.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

SUSPECT = 3.0
CONFIRM = 4.8
EXTENSION = 8
# For a single comparison without a second stage: two-sided normal tail 3.8e-8.
THRESHOLD = 5.5
# Values rarer than this are compared together.
RARE = 0.01
# Below this many effective draws a comparison could only find gross errors.
MIN_EFFECTIVE = 150
# A chain that is expected to be wrong is looked at for the first time after so many draws.
FIRST_LOOK = 200


@dataclass(frozen=True, slots=True)
class Table:
    """A discrete answer. Mass that is missing from 1 belongs to values not listed (a truncated infinite table)."""

    probabilities: Mapping[float, float]


@dataclass(frozen=True, slots=True)
class Cdf:
    """A continuous answer: P(x <= points[i]) = probabilities[i]."""

    points: Floats
    probabilities: Floats


@dataclass(frozen=True, slots=True)
class Mean:
    """An expectation, of a variable with finite variance."""

    value: float


Expected = Table | Cdf | Mean


@dataclass(frozen=True, slots=True)
class Statistic:
    """A function of the draws with its exact mean, and its exact standard deviation where that is known."""

    name: str
    of: Callable[[Floats], Floats]
    mean: float
    sd: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one statistic came to."""

    name: str
    expected: float
    got: float
    error: float
    effective: float
    # The statistic could vary enough for `effective` to mean something.
    informative: bool

    @property
    def slow(self) -> bool:
        return self.informative and self.effective < MIN_EFFECTIVE

    @property
    def z(self) -> float:
        return (self.got - self.expected) / self.error

    def __str__(self) -> str:
        return (
            f"{self.name}: expected {self.expected:.5g}, got {self.got:.5g} +- {self.error:.2g} "
            f"(z = {self.z:+.1f}, {self.effective:.0f} effective draws)"
        )


def indicator(name: str, of: Callable[[Floats], NDArray[np.bool_]], p: float) -> Statistic:
    """The statistic of an event of probability `p`."""
    p = min(max(p, 0.0), 1.0)
    return Statistic(name, lambda x: of(x).astype(float), p, math.sqrt(p * (1 - p)))


def statistics(expected: Expected) -> Iterator[Statistic]:
    """The statistics by which draws are compared with `expected`."""
    match expected:
        case Table(probabilities):
            frequent = {value: p for value, p in probabilities.items() if p >= RARE}
            for value, p in frequent.items():
                yield indicator(f"P(x = {value:g})", lambda x, v=value: np.isclose(x, v, rtol=0, atol=1e-9), p)
            listed = np.array(list(frequent), dtype=float)
            rest = 1.0 - math.fsum(frequent.values())
            yield indicator("P(x rare)", lambda x: ~np.isclose(x[:, None], listed, rtol=0, atol=1e-9).any(axis=1), rest)
        case Cdf(points, probabilities):
            for point, p in zip(points, probabilities, strict=True):
                yield indicator(f"P(x <= {point:.4g})", lambda x, v=point: x <= v, float(p))
        case Mean(value):
            yield Statistic("E[x]", lambda x: x, value, None)


def autocorrelation_time(x: Floats) -> float:
    """Integrated autocorrelation time of one chain, `(draws,)`, by the initial monotone positive sequence."""
    n = len(x)
    centred = x - x.mean()
    power = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    covariance = np.fft.irfft(power)[:n] / n
    if covariance[0] <= 1e-300:
        return 1.0
    pairs = covariance[: n - n % 2].reshape(-1, 2).sum(axis=1) / covariance[0]
    negative = np.flatnonzero(pairs <= 0)
    pairs = pairs[: negative[0]] if len(negative) else pairs
    return max(1.0, float(2 * np.minimum.accumulate(pairs).sum() - 1))


def compare(draws: ArrayLike, expected: Expected) -> list[Comparison]:
    """Compare one chain of draws, `(draws,)`, with the exact answer."""
    x = np.asarray(draws, dtype=float)
    assert x.ndim == 1, f"one chain of numbers is compared, not an array of shape {x.shape}"
    assert np.isfinite(x).all(), "a draw is not a finite number"
    found = []
    for statistic in statistics(expected):
        values = statistic.of(x)
        sd = float(values.std()) if statistic.sd is None else statistic.sd
        tau = autocorrelation_time(values)
        # One count of slack keeps discreteness from mattering where hardly anything is expected.
        error = sd * math.sqrt(tau / len(x)) + 1.0 / len(x) * (1.0 if statistic.sd is not None else sd)
        if statistic.sd == 0.0:
            error = 1e-12
        informative = statistic.sd is None or sd > 0.1
        found.append(Comparison(statistic.name, statistic.mean, float(values.mean()), error, len(x) / tau, informative))
    return found


def compare_all(draws: Mapping[str, ArrayLike], expected: Mapping[str, Expected]) -> dict[str, list[Comparison]]:
    return {name: compare(draws[name], answer) for name, answer in expected.items()}


def is_slow(found: Mapping[str, list[Comparison]]) -> bool:
    return any(c.slow for cs in found.values() for c in cs)


def lacking(found: Mapping[str, list[Comparison]], n: int) -> int:
    """How many draws a slow chain of n should be made longer by, if its autocorrelation is as it seems."""
    effective = min(c.effective for cs in found.values() for c in cs if c.slow)
    return math.ceil(n * min(1.0, max(0.25, 1.1 * MIN_EFFECTIVE / effective - 1.0)))


def assert_chain_agrees(
    more: Callable[[int], Mapping[str, ArrayLike]], expected: Mapping[str, Expected], draws: int, what: str
) -> None:
    """Fail where a chain differs from the exact answers, or could not tell.

    `more(n)` moves the chain on and returns its next n draws, `(n,)`, of each variable in `expected`.
    """
    found, n = more(draws), draws
    while is_slow(first := compare_all(found, expected)) and n < EXTENSION * draws:
        added = min(lacking(first, n), EXTENSION * draws - n)
        found = {name: np.concatenate([found[name], further]) for name, further in more(added).items()}
        n += added
    if not is_slow(first) and all(abs(c.z) <= SUSPECT for cs in first.values() for c in cs):
        return
    second = compare_all(more(EXTENSION * draws), expected)
    faults = [f"{name}, {c}" for name, cs in second.items() for c in cs if c.slow or not abs(c.z) <= CONFIRM]
    assert not faults, f"{what}\n  " + "\n  ".join(faults)


def assert_chain_misses(
    more: Callable[[int], Mapping[str, ArrayLike]], expected: Mapping[str, Expected], draws: int
) -> None:
    """Fail unless a chain is seen to differ from the exact answers within its first `draws` draws, where `more` and
    `expected` are as above. It is looked at after FIRST_LOOK draws and each time that it has become half as long again:
    before the last look by what is not slow."""
    found, n = more(min(FIRST_LOOK, draws)), min(FIRST_LOOK, draws)
    while True:
        comparisons = [c for cs in compare_all(found, expected).values() for c in cs]
        if any(abs(c.z) > CONFIRM for c in comparisons if n == draws or not c.slow):
            return
        assert n < draws, f"no error is seen in {n} draws:\n  " + "\n  ".join(map(str, comparisons))
        added = min(n // 2, draws - n)
        found = {name: np.concatenate([found[name], further]) for name, further in more(added).items()}
        n += added


def assert_same_mean(chain: ArrayLike, independent: ArrayLike, what: str) -> None:
    """Fail where the mean of a chain, `(draws,)`, differs from that of independent draws of the same distribution.

    Under the same distribution both samples have the same variance, so the larger of the two estimates serves both.
    """
    a, b = np.asarray(chain, dtype=float), np.asarray(independent, dtype=float)
    variance = max(float(a.var()), float(b.var()))
    tau = autocorrelation_time(a)
    error = math.sqrt(variance * (tau / len(a) + 1 / len(b)))
    difference = abs(float(a.mean() - b.mean()))
    assert difference <= THRESHOLD * error + 1e-12, (
        f"{what}: means {a.mean():.5g} and {b.mean():.5g} differ by {difference / error:.1f} standard errors"
    )
    assert len(a) / tau >= MIN_EFFECTIVE, f"{what}: mixes too slowly to tell ({len(a) / tau:.0f} effective draws)"
