"""Enumeration, conjugacy and quadrature: the arithmetic that the exact answers share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from tests.statistics import Cdf, Floats, Table

QUANTILES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


def normal_pdf(x: float, mean: float, sd: float) -> float:
    return math.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))


def table(weights: Mapping[float, float]) -> Table:
    """The distribution proportional to `weights`."""
    total = math.fsum(weights.values())
    return Table({value: w / total for value, w in weights.items()})


def pushforward(weights: Mapping[tuple[float, ...], float], of: Callable[..., float]) -> Table:
    """The distribution of `of(*state)` when states have these weights."""
    collected: dict[float, float] = {}
    for state, weight in weights.items():
        value = float(of(*state))
        collected[value] = collected.get(value, 0.0) + weight
    return table(collected)


def cdf(distribution: stats.rv_continuous) -> Cdf:
    """Five quantiles of a frozen SciPy distribution."""
    return Cdf(np.asarray(distribution.ppf(QUANTILES)), QUANTILES)


def mixture_cdf(weights: Sequence[float], parts: Sequence[stats.rv_continuous]) -> Cdf:
    """CDF of a mixture of frozen SciPy distributions at the medians and quartiles of its heaviest parts."""
    w = np.array(weights) / math.fsum(weights)
    heaviest = [parts[i] for i in np.argsort(-w)[:2]]
    points = np.unique(np.concatenate([part.ppf([0.25, 0.5, 0.75]) for part in heaviest]))
    values = sum(p * part.cdf(points) for p, part in zip(w, parts, strict=True))
    return Cdf(points, np.asarray(values))


def normal_mixture(weights: Sequence[float], means: Sequence[float], sds: Sequence[float]) -> Cdf:
    return mixture_cdf(weights, [stats.norm(m, s) for m, s in zip(means, sds, strict=True)])


@dataclass(frozen=True, slots=True)
class Grid:
    """Quadrature by the trapezium rule on equally spaced points."""

    low: float
    high: float
    size: int = 200_001

    @property
    def points(self) -> Floats:
        return np.linspace(self.low, self.high, self.size)

    def mass(self, log_density: Floats) -> float:
        return float(np.trapezoid(np.exp(log_density), self.points))

    def cdf(self, log_density: Floats) -> Cdf:
        """Five quantiles of the normalised density."""
        density = np.exp(log_density - log_density.max())
        mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
        mass /= mass[-1]
        at = np.clip(np.searchsorted(mass, QUANTILES), 1, self.size - 1)
        return Cdf(self.points[at], mass[at])

    def average_cdf(self, log_density: Floats, of: Callable[[float], Floats], at: Floats) -> Cdf:
        """CDF at the points `at` of a variable whose CDF given the grid's is `of`."""
        density = np.exp(log_density - log_density.max())
        total = np.trapezoid(density, self.points)
        return Cdf(at, np.array([float(np.trapezoid(density * of(x), self.points) / total) for x in at]))

    def table(self, log_densities: Sequence[Floats]) -> Table:
        """Distribution of a discrete variable 0, 1, ... from its joint densities with the grid's."""
        return table({k: self.mass(log_density) for k, log_density in enumerate(log_densities)})


def gaussian_posterior(
    prior_mean: Floats, prior_cov: Floats, rows: Floats, noise_sd: Floats, data: Floats
) -> tuple[Floats, Floats, float]:
    """Posterior mean and covariance of x ~ N(prior) given data = rows @ x + noise, and the log marginal likelihood."""
    rows, data = np.atleast_2d(rows), np.atleast_1d(data)
    noise = np.diag(np.broadcast_to(np.asarray(noise_sd, dtype=float) ** 2, data.shape))
    marginal = rows @ prior_cov @ rows.T + noise
    gain = prior_cov @ rows.T @ np.linalg.inv(marginal)
    mean = prior_mean + gain @ (data - rows @ prior_mean)
    evidence = float(stats.multivariate_normal.logpdf(data, rows @ prior_mean, marginal))
    return mean, prior_cov - gain @ rows @ prior_cov, evidence


def iid_normal_evidence(data: Sequence[float], prior_mean: float, prior_sd: float, sd: float) -> float:
    """Log marginal likelihood of data ~ N(mu, sd) with mu ~ N(prior_mean, prior_sd)."""
    n = len(data)
    return gaussian_posterior(np.array([prior_mean]), np.array([[prior_sd**2]]), np.ones((n, 1)), sd, np.array(data))[2]


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Set partitions of n items as restricted growth strings."""
    strings: list[tuple[int, ...]] = [()]
    for _ in range(n):
        strings = [(*s, k) for s in strings for k in range(max(s, default=-1) + 2)]
    yield from strings


def groups(partition: Sequence[int], items: Sequence[float]) -> list[list[float]]:
    """The items of each part."""
    return [[x for x, k in zip(items, partition, strict=True) if k == part] for part in sorted(set(partition))]


def log_crp(partition: Sequence[int], alpha: float, discount: float = 0.0) -> float:
    """Log probability of a partition (Pitman 1995, Exchangeable and partially exchangeable random partitions)."""
    sizes = [partition.count(part) for part in set(partition)]
    seats = math.fsum(math.log(alpha + discount * j) for j in range(len(sizes)))
    within = math.fsum(float(special.gammaln(s - discount) - special.gammaln(1 - discount)) for s in sizes)
    return seats + within + math.lgamma(alpha) - math.lgamma(alpha + len(partition))


def partition_expression(names: Sequence[str]) -> str:
    """An expression that numbers the partition of these labels, as `partition_code` does."""
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    return "(+ 0 " + " ".join(f"(* {2**k} (= {a} {b}))" for k, (a, b) in enumerate(pairs)) + ")"


def partition_code(partition: Sequence[int]) -> int:
    pairs = [(a, b) for i, a in enumerate(partition) for b in partition[i + 1 :]]
    return sum(2**k for k, (a, b) in enumerate(pairs) if a == b)
