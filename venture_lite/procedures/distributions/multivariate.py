"""Distributions over vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, pairwise
from math import comb
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import array_gradients, bounds, transforms
from venture_lite.procedures.columns import Flags, RowByRow, arrays, numeric
from venture_lite.procedures.distributions.factors import MatrixFactor, cholesky_of
from venture_lite.procedures.domains import (
    CHOLESKY_FACTOR,
    COUNT,
    POSITIVE,
    POSITIVE_DEFINITE,
    POSITIVE_INTEGER,
    POSITIVE_VECTOR,
    PROBABILITY_VECTOR,
    VECTOR,
)
from venture_lite.procedures.functions.vectors import LARGEST_ARRAY
from venture_lite.procedures.numeric import BELOW_ONE, LOG_TWO_PI, SMALLEST, lgamma, xlogy
from venture_lite.procedures.record import Argument, Random
from venture_lite.values import freeze, show


def _vector(value: Any) -> np.ndarray | None:
    """A value as a vector of floats, None where it is none."""
    if isinstance(value, np.ndarray):
        return value if value.ndim == 1 else None
    if isinstance(value, tuple) and all(isinstance(item, (int, float)) for item in value):
        return np.array(value, dtype=np.float64)
    return None


def _covariance(mean: Any, cov: Any) -> MatrixFactor:
    factor = cholesky_of(cov)
    if factor is None:
        raise POSITIVE_DEFINITE.refusal("multivariate_normal", "cov", cov)
    if len(mean) != len(factor.lower):
        size = len(factor.lower)
        raise ArgumentError(f"multivariate_normal: mean has {len(mean)} entries, but cov is {size} by {size}")
    return factor


def _simulate_normal(rng: np.random.Generator, mean: Any, cov: Any) -> np.ndarray:
    factor = _covariance(mean, cov)
    drawn: np.ndarray = factor.lower @ rng.standard_normal(len(mean))
    drawn += mean
    return freeze(drawn)


def _normal(value: Any, mean: Any, cov: Any) -> float:
    factor = _covariance(mean, cov)
    point = _vector(value)
    if point is None or len(point) != len(mean):
        return -math.inf
    z = factor.whitening @ (point - mean)
    log_density = -0.5 * (float(z @ z) + factor.log_determinant + len(z) * LOG_TWO_PI)
    return log_density if log_density == log_density else -math.inf


def _normal_columns(lifted: Flags, value: Any, mean: Any, cov: Any) -> np.ndarray:
    if lifted[2]:
        raise RowByRow
    points, means = arrays(lifted[:2], (1, 1), (value, mean))
    factor = cholesky_of(cov)
    with np.errstate(all="ignore"):
        away = np.subtract(points, means)
        if factor is None or away.ndim != 2 or away.shape[1] != len(factor.lower):
            raise RowByRow
        z = away @ factor.whitening.T
        result = -0.5 * (np.einsum("nd,nd->n", z, z) + (factor.log_determinant + z.shape[1] * LOG_TWO_PI))
    return np.asarray(np.where(np.isnan(result), -np.inf, result))


def _lower(mean: Any, lower: Any) -> np.ndarray:
    factor = np.asarray(lower, dtype=np.float64)
    if len(mean) != len(factor):
        name, size = "multivariate_normal_cholesky", len(factor)
        raise ArgumentError(f"{name}: mean has {len(mean)} entries, but lower is {size} by {size}")
    return factor


def _simulate_normal_cholesky(rng: np.random.Generator, mean: Any, lower: Any) -> np.ndarray:
    drawn: np.ndarray = _lower(mean, lower) @ rng.standard_normal(len(mean))
    return freeze(drawn + np.asarray(mean, dtype=np.float64))


def _normal_cholesky(value: Any, mean: Any, lower: Any) -> float:
    factor, point = _lower(mean, lower), _vector(value)
    if point is None or len(point) != len(factor):
        return -math.inf
    return float(_normal_at(point[None], np.asarray(mean, dtype=np.float64), factor)[0])


def _normal_cholesky_columns(lifted: Flags, value: Any, mean: Any, lower: Any) -> np.ndarray:
    if lifted[2]:
        raise RowByRow
    points, means = arrays(lifted[:2], (1, 1), (value, mean))
    factor = np.asarray(lower, dtype=np.float64)
    if points.shape[-1] != len(factor) or means.shape[-1] != len(factor):
        raise RowByRow
    return _normal_at(points, means, factor)


def _normal_at(points: np.ndarray, means: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Log densities (rows,) where points or means are (rows, D)."""
    with np.errstate(all="ignore"):
        z = np.linalg.solve(factor, np.subtract(points, means).T)
        result = -0.5 * (np.einsum("dn,dn->n", z, z) + len(factor) * LOG_TWO_PI) - np.log(factor.diagonal()).sum()
    return np.where(np.isnan(result), -np.inf, result)


def _simulate_dirichlet(rng: np.random.Generator, alphas: Any) -> np.ndarray:
    """Normalised gammas, in logs: for small alphas the gammas underflow. gamma(a) is gamma(a + 1) u^(1/a)."""
    shapes = np.asarray(alphas, dtype=np.float64)
    gammas, falls = rng.standard_gamma(shapes + 1.0), -np.log1p(-rng.random(len(shapes)))
    with np.errstate(over="ignore", divide="ignore"):
        logs = np.log(gammas) - falls / shapes
        if logs.max() == -np.inf:
            # a corner: of parts so small only the order of their logarithms is left
            logs = np.where(np.arange(len(logs)) == (np.log(falls) - np.log(shapes)).argmin(), 0.0, -np.inf)
    parts = np.exp(logs - logs.max())
    point = parts / parts.sum()
    return freeze(np.clip(point, SMALLEST, BELOW_ONE if len(point) > 1 else 1.0))


def _dirichlet(value: Any, alphas: Any) -> float:
    point = _vector(value)
    if point is None or len(point) != len(alphas):
        return -math.inf
    parts = point.tolist()
    # of NaN neither holds
    if not (min(parts) >= 0.0 and abs(math.fsum(parts) - 1.0) <= 1e-9):
        return -math.inf
    shapes = np.asarray(alphas).tolist()
    total = lgamma(math.fsum(shapes)) - math.fsum(map(lgamma, shapes))
    impossible = infinite = False
    for shape, part in zip(shapes, parts, strict=True):
        if part > 0.0:
            total += (shape - 1.0) * math.log(part)
        elif shape != 1.0:
            impossible |= shape > 1.0
            infinite |= shape < 1.0
    return -math.inf if impossible else math.inf if infinite else total


def _dirichlet_of_one(wanted: Flags) -> Callable[..., tuple[Any, ...]]:
    """(value, alphas) -> the log density and the derivatives asked for, of short vectors without arrays."""
    general = array_gradients.DIRICHLET.evaluate

    def slopes(value: Any, alphas: Any) -> tuple[Any, ...]:
        total = _dirichlet(value, alphas)
        if wanted[1] or len(alphas) > SHORT or not math.isfinite(total):
            parts = general((False, False), wanted, value, alphas)
            return total, *(part for part, want in zip(parts, wanted, strict=True) if want)
        pairs = zip(np.asarray(alphas).tolist(), np.asarray(value).tolist(), strict=True)
        # where nothing is of a part its shape is 1
        return total, np.array([(shape - 1.0) / part if part > 0.0 else 0.0 for shape, part in pairs])

    return slopes


def _simulate_symmetric(rng: np.random.Generator, a: float, n: float) -> np.ndarray:
    if n > LARGEST_ARRAY:
        raise ArgumentError(f"symmetric_dirichlet: n must be at most 2^30, got {show(n)}")
    return _simulate_dirichlet(rng, np.full(int(n), a))


def _symmetric(value: Any, a: float, n: float) -> float:
    point = _vector(value)
    return -math.inf if point is None or len(point) != n else _dirichlet(point, np.full(len(point), a))


SHORT = 16
"""Items of a vector whose functions are faster without arrays."""
MOST_EXACT = 2**53
"""Counts are kept as floats, which are exact up to here."""
MOST_COMPOSITIONS = 5_000
"""A multinomial of more outcomes is not enumerated."""


def _simulate_multinomial(rng: np.random.Generator, n: float, probs: Any) -> np.ndarray:
    if n > MOST_EXACT:
        raise ArgumentError(f"multinomial: n must be at most 2^53, got {show(n)}")
    masses = np.asarray(probs, dtype=np.float64)
    # the last outcome takes what rounding leaves over, so the most probable one comes last
    order = masses.argsort(kind="stable")
    counts = np.empty(len(masses))
    counts[order] = rng.multinomial(int(n), masses[order] / masses.sum())
    return freeze(counts)


def _multinomial(value: Any, n: float, probs: Any) -> float:
    counts = _vector(value)
    if counts is None or len(counts) != len(probs):
        return -math.inf
    entries = counts.tolist()
    if not all(0.0 <= k < math.inf and k % 1.0 == 0.0 for k in entries) or math.fsum(entries) != n:
        return -math.inf
    masses = np.asarray(probs, dtype=np.float64).tolist()
    terms = (xlogy(k, p) - lgamma(k + 1.0) for k, p in zip(entries, masses, strict=True))
    return lgamma(n + 1.0) + sum(terms)


def _multinomial_columns(lifted: Flags, value: Any, n: Any, probs: Any) -> np.ndarray:
    from scipy.special import gammaln, xlogy

    n, (counts, masses) = numeric(n, lifted[1]), arrays((lifted[0], lifted[2]), (1, 1), (value, probs))
    if counts.shape[-1] != masses.shape[-1]:
        raise RowByRow
    with np.errstate(all="ignore"):
        inside = ((counts >= 0) & (np.mod(counts, 1) == 0)).all(axis=-1) & (counts.sum(axis=-1) == n)
        k = np.where(inside[..., None], counts, 0.0)
        terms = (xlogy(k, masses) - gammaln(k + 1.0)).sum(axis=-1)
        return np.where(inside, gammaln(np.add(n, 1.0)) + terms, -np.inf)


def _support_multinomial(n: float, probs: Any) -> Any:
    """Vectors of counts, or None where there are too many."""
    possible = tuple(position for position, mass in enumerate(probs) if mass > 0.0)
    bars = len(possible) - 1
    if min(bars, n) > MOST_COMPOSITIONS or comb(int(n) + bars, bars) > MOST_COMPOSITIONS:
        return None
    return _compositions(int(n), len(probs), possible)


@lru_cache(maxsize=16)
def _compositions(n: int, size: int, possible: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Every vector of counts that sum to n with positive counts in the possible positions only: stars and bars."""
    slots = n + len(possible) - 1
    # a single outcome takes all, however many they are
    places = range(slots) if len(possible) > 1 else ()
    found = []
    for bars in combinations(places, len(possible) - 1):
        counts = np.zeros(size)
        counts[list(possible)] = [right - left - 1 for left, right in pairwise((-1, *bars, slots))]
        found.append(freeze(counts))
    return tuple(found)


MULTIVARIATE_NORMAL = Random(
    "multivariate_normal", (Argument("mean", VECTOR), Argument("cov", POSITIVE_DEFINITE)),
    "A vector with the given mean and covariance matrix.", _simulate_normal, _normal, _normal_columns,
    transform=transforms.REAL, source="exp(-|z|^2 / 2) / (|L| (2 pi)^(D/2)), cov = L L', z = L^-1 (x - mean)",
    gradient=array_gradients.MULTIVARIATE_NORMAL, log_bound=bounds.bound_at(_normal, bounds.multivariate_normal),
)  # fmt: skip
MULTIVARIATE_NORMAL_CHOLESKY = Random(
    "multivariate_normal_cholesky", (Argument("mean", VECTOR), Argument("lower", CHOLESKY_FACTOR)),
    "A vector with the given mean, whose covariance matrix is lower times its transpose.",
    _simulate_normal_cholesky, _normal_cholesky, _normal_cholesky_columns, transform=transforms.REAL,
    source="exp(-|z|^2 / 2) / (prod L_ii (2 pi)^(D/2)), z = L^-1 (x - mean)",
    gradient=array_gradients.MULTIVARIATE_NORMAL_CHOLESKY,
    log_bound=bounds.bound_at(_normal_cholesky, bounds.multivariate_normal),
)  # fmt: skip
DIRICHLET = Random(
    "dirichlet", (Argument("alphas", POSITIVE_VECTOR),),
    "A vector of probabilities that sum to 1, with mean alphas / sum(alphas).", _simulate_dirichlet, _dirichlet,
    transform=transforms.SIMPLEX,
    source="Gamma(sum a) / prod Gamma(a_i) prod x_i^(a_i - 1), on the first n - 1 coordinates",
    gradient=replace(array_gradients.DIRICHLET, of_numbers=_dirichlet_of_one),
)  # fmt: skip
SYMMETRIC_DIRICHLET = Random(
    "symmetric_dirichlet", (Argument("a", POSITIVE), Argument("n", POSITIVE_INTEGER)),
    "A vector of n probabilities, dirichlet with all alphas equal to a.", _simulate_symmetric, _symmetric,
    transform=transforms.SIMPLEX, source="dirichlet with alphas (a ... a)",
    gradient=array_gradients.SYMMETRIC_DIRICHLET,
)  # fmt: skip

MULTINOMIAL = Random(
    "multinomial", (Argument("n", COUNT), Argument("probs", PROBABILITY_VECTOR)),
    "How often each outcome came up in n independent draws with the given probabilities: a vector of counts that sum "
    "to n, positions counted from 0.",
    _simulate_multinomial, _multinomial, _multinomial_columns, support=_support_multinomial,
    source="n! / prod k_i! prod p_i^k_i", gradient=array_gradients.MULTINOMIAL,
)  # fmt: skip

RECORDS = (MULTIVARIATE_NORMAL, MULTIVARIATE_NORMAL_CHOLESKY, DIRICHLET, SYMMETRIC_DIRICHLET, MULTINOMIAL)
