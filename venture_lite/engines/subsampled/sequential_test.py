"""Deciding a Metropolis-Hastings transition from some of its rows: the sequential test of Chen et al. (2014),
Algorithm 2, after Korattikara et al. (2014), and its distribution-free variant.

The question is whether the sum of N terms is above a threshold. Minibatches are drawn without replacement until the
sample says so with confidence. Terms of several kinds are stratified: each kind has its own sample, its own mean and
its own variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from venture_lite.trace.row_order import AnySampler

FEWEST_OF_A_KIND = 10
"""Draws of a kind, where there are several kinds, before its variance is trusted."""

AHEAD = 4
"""One in so many of the stages so far is evaluated ahead, in one call: a test that went on for long may well go on."""

RowTerms = Callable[[int, np.ndarray], np.ndarray]
"""(kind, positions) -> the terms at these positions; raises NotFinite where one is impossible."""


class NotFinite(Exception):
    """A term is infinite: the sum is to be decided by the numbers of impossible terms."""


@dataclass(frozen=True, slots=True)
class Decision:
    above: bool
    # terms that were read
    rows: int
    # probability of the sample's deviation if the truth were at the threshold; 0 where every term was read, or all are
    # taken to be equal
    p_value: float
    # skewness and excess kurtosis of the sample's mean, for a decision at which they were looked at
    shape: tuple[float, float] | None = None
    # terms that were evaluated for stages that did not come
    ahead: int = 0


@dataclass(eq=False, slots=True)
class _Sample:
    """What has been read of one kind: number, mean and central sums, merged stage by stage (Chan et al. 1983)."""

    count: int
    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    # (number, mean, central sum) of stages that were evaluated already, the next one last
    ahead: list[tuple[int, float, float]] = field(default_factory=list)

    def look_at(self, terms: np.ndarray, share: int) -> None:
        """Terms of further stages, `share` of each."""
        parts = [terms] if len(terms) <= share else np.split(terms, range(share, len(terms), share))
        for part in reversed(parts):
            mean = float(np.add.reduce(part)) / len(part)
            away = part - mean
            self.ahead.append((len(part), mean, float(away @ away)))

    def advance(self) -> None:
        """Take in the next stage."""
        more, mean, squares = self.ahead.pop()
        away = mean - self.mean
        total = self.n + more
        self.squares += squares + away * away * self.n * more / total
        self.mean += away * more / total
        self.n = total

    @property
    def left(self) -> int:
        return self.count - self.n

    @property
    def variance(self) -> float:
        return self.squares / (self.n - 1) if self.n > 1 else 0.0


class SequentialTest:
    """The test for the kinds that the samplers draw from."""

    def __init__(
        self,
        samplers: Sequence[AnySampler],
        batch: int,
        tolerance: float,
        rng: np.random.Generator,
        trusts_equal: bool = False,
    ) -> None:
        self.counts = [sampler.count for sampler in samplers]
        # whether a kind of which all terms so far are equal is taken to have no others: residuals that vanish
        self._trusts_equal = trusts_equal
        self.batch = batch
        self.tolerance = tolerance
        self._samplers = samplers
        self._rng = rng
        self._total = sum(self.counts)
        from scipy.special import ndtri, stdtr

        self._t_distribution = stdtr
        # Student's t has the wider tails: below the normal quantile no p-value is small enough
        self._least = -float(ndtri(tolerance)) if tolerance else math.inf

    def decide(self, threshold: float, terms: RowTerms, largest: float | None = None, looks: bool = False) -> Decision:
        """Whether the sum of all terms is above the threshold; `looks`: with the sample's shape.

        With `largest`, a bound on every term's distance from any other, the stopping rule is the empirical
        Bernstein-Serfling inequality, which holds for terms of any distribution.
        """
        samples = [_Sample(count) for count in self.counts]
        seen: list[np.ndarray] = []
        for sampler in self._samplers:
            sampler.begin()
        stage = 0
        while True:
            stage += 1
            for kind, sample in enumerate(samples):
                if sample.left:
                    if not sample.ahead:
                        share = self._share(sample)
                        wanted = share * max(1, stage // AHEAD)
                        read = terms(kind, self._samplers[kind].take(wanted, self._rng))
                        sample.look_at(read, share)
                        seen.append(read)
                    sample.advance()
            estimate = math.fsum(sample.count * sample.mean for sample in samples)
            if not any(sample.left for sample in samples):
                return _decided(estimate > threshold, 0.0, samples, None)
            away = estimate - threshold
            p_value = self._p_value(samples, away) if largest is None else self._bound(samples, away, stage, largest)
            if p_value < self.tolerance:
                return _decided(away > 0, p_value, samples, seen if looks and p_value else None)

    def _share(self, sample: _Sample) -> int:
        """How many terms of a kind a minibatch takes: in proportion to its size, at least two; small kinds whole."""
        if sample.count <= self.batch and len(self.counts) > 1:
            return sample.count
        return max(2, round(self.batch * sample.count / self._total))

    def _p_value(self, samples: list[_Sample], away: float) -> float:
        """One-sided, by Student's t; 1 where the spread is not known yet, or it is not below the tolerance."""
        several = len(samples) > 1
        variance, squares = 0.0, 0.0
        for sample in samples:
            if not sample.left:
                continue
            if (sample.squares <= 0.0 and not self._trusts_equal) or (several and sample.n < FEWEST_OF_A_KIND):
                return 1.0
            # the finite population correction of Algorithm 2, step 7
            part = sample.count**2 * sample.variance / sample.n * (1 - (sample.n - 1) / (sample.count - 1))
            variance += part
            squares += part * part / (sample.n - 1)
        if not variance:
            return 0.0
        errors = abs(away) / math.sqrt(variance)
        if errors < self._least:
            return 1.0
        return float(self._t_distribution(variance * variance / squares, -errors))

    def _bound(self, samples: list[_Sample], away: float, stage: int, largest: float) -> float:
        """0 where the empirical Bernstein-Serfling inequality decides at this stage's share of the tolerance, else 1
        (Bardenet and Maillard 2015, theorem 4; the shares 1 / (stage (stage + 1)) sum to 1)."""
        log_term = math.log(5.0 * stage * (stage + 1) * len(samples) / self.tolerance)
        reach = 0.0
        for sample in samples:
            n, count = sample.n, sample.count
            if n == count:
                continue
            rho = 1 - (n - 1) / count if 2 * n <= count else (1 - n / count) * (1 + 1 / n)
            spread = math.sqrt(2 * rho * sample.squares / n * log_term / n)
            reach += count * (spread + (7 / 3 + 3 / math.sqrt(2)) * largest * log_term / n)
        return 0.0 if abs(away) > reach else 1.0


def _decided(above: bool, p_value: float, samples: list[_Sample], seen: list[np.ndarray] | None) -> Decision:
    rows = sum(sample.n for sample in samples)
    ahead = sum(number for sample in samples for number, _, _ in sample.ahead)
    if seen is None:
        return Decision(above, rows, p_value, None, ahead)
    skewness, kurtosis = moments(np.concatenate(seen))
    return Decision(above, rows, p_value, (skewness / math.sqrt(rows), kurtosis / rows), ahead)


def moments(terms: np.ndarray) -> tuple[float, float]:
    """Skewness and excess kurtosis of a sample."""
    away = terms - terms.mean()
    square = away * away
    variance = float(square.mean())
    if variance <= 0.0:
        return 0.0, 0.0
    third = float((square * away).mean()) / variance**1.5
    return third, float((square * square).mean()) / variance**2 - 3.0


def exact(counts: Sequence[int], threshold: float, terms: RowTerms) -> Decision:
    """The decision from every term."""
    total = math.fsum(float(terms(kind, np.arange(count)).sum()) for kind, count in enumerate(counts))
    return Decision(total > threshold, sum(counts), 0.0)


def interval(successes: int, trials: int) -> tuple[Any, Any]:
    """The 95% Clopper-Pearson interval of a share."""
    from scipy.special import betaincinv

    low = 0.0 if not successes else float(betaincinv(successes, trials - successes + 1, 0.025))
    high = 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 0.975))
    return low, high
