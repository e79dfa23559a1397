"""Gradients of the joint densities of exchangeable makers by their arguments, from their sufficient statistics,
whatever the number of applications."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from venture_lite.procedures.distributions.factors import cholesky_of
from venture_lite.procedures.record import JointGradient, MakerState
from venture_lite.procedures.straight_line import digamma

StatisticsDerivatives = tuple[Any, ...]


def _rise(start: Any, count: Any) -> Any:
    """The derivative of log Gamma(start + count) - log Gamma(start) by start; of no factors 0, also where that is 0."""
    none = np.equal(count, 0)
    return np.where(none, 0.0, digamma(start + count) - digamma(np.where(none, 1.0, start)))


def _beta_bernoulli(state: MakerState) -> StatisticsDerivatives:
    a, b = map(float, state.arguments)
    counts = state.statistics()
    if (a == 0.0 and counts.get(1)) or (b == 0.0 and counts.get(0)):
        return 0.0, 0.0
    both = _rise(a + b, state.count)
    return float(_rise(a, counts.get(1, 0)) - both), float(_rise(b, counts.get(0, 0)) - both)


def _counts(state: MakerState, size: int) -> tuple[list[int], np.ndarray] | None:
    """The outcomes drawn and how often, None where one is beyond a new, smaller size and the density is 0."""
    counts = state.statistics()
    if counts and max(counts) >= size:
        return None
    return list(counts), np.array(list(counts.values()), dtype=np.float64)


def _symmetric_dirichlet_multinomial(state: MakerState) -> StatisticsDerivatives:
    a, size = float(state.arguments[0]), int(state.arguments[1])
    drawn = _counts(state, size)
    if drawn is None:
        return 0.0, None
    return float(_rise(a, drawn[1]).sum() - size * _rise(a * size, state.count)), None


def _dirichlet_multinomial(state: MakerState) -> StatisticsDerivatives:
    alphas = np.asarray(state.arguments[0], dtype=np.float64)
    drawn = _counts(state, len(alphas))
    if drawn is None:
        return (np.zeros(len(alphas)),)
    if not alphas[drawn[0]].all():
        return (np.zeros(len(alphas)),)
    slopes = np.full(len(alphas), -_rise(alphas.sum(), state.count))
    slopes[drawn[0]] += _rise(alphas[drawn[0]], drawn[1])
    return (slopes,)


def _gamma_poisson(state: MakerState) -> StatisticsDerivatives:
    shape, rate = map(float, state.arguments)
    total = sum(value * count for value, count in state.statistics().items())
    if shape == 0.0 < total:
        return 0.0, 0.0
    by_shape = float(_rise(shape, total)) - math.log1p(state.count / rate)
    return by_shape, shape / rate - (shape + total) / (rate + state.count)


def _crp(state: MakerState) -> StatisticsDerivatives:
    alpha, discount = float(state.arguments[0]), float(state.arguments[1])
    sizes = np.array(list(state.statistics().values()), dtype=np.float64)
    # the first draw opens a table for certain
    opened = np.arange(1, len(sizes))
    if alpha == 0.0 == discount and len(opened):
        return 0.0, 0.0
    by_alpha = (1.0 / (alpha + discount * opened)).sum() - _rise(alpha + 1.0, max(state.count - 1, 0))
    by_discount = (opened / (alpha + discount * opened)).sum() - _rise(1.0 - discount, sizes - 1.0).sum()
    return float(by_alpha), float(by_discount)


def _normal_inv_chi_sq(state: MakerState) -> StatisticsDerivatives:
    """With S_n = nu var + scatter + kappa n / kappa_n (mean of the draws - mean)^2 and nu_n / S_n the weight."""
    kappa, nu, var = map(float, state.arguments[1:])
    n, (away, squares) = state.count, normal_statistics(state)
    kappa_n, weight = kappa + n, (nu + n) / squares
    by_nu = 0.5 * (_rise(0.5 * nu, 0.5 * n) + math.log(nu * var / squares) + 1.0 - weight * var)
    return (
        weight * kappa * n / kappa_n * away,
        0.5 * (n / (kappa * kappa_n) - weight * (n / kappa_n * away) ** 2),
        float(by_nu),
        0.5 * nu * (1.0 / var - weight),
    )


def normal_statistics(state: MakerState) -> tuple[float, float]:
    """The mean of the draws of `make_normal_inv_chi_sq` less the prior's, and S_n."""
    mean, kappa, nu, var = map(float, state.arguments)
    statistics, n = state.statistics(), state.count
    away = statistics["mean"] - mean if n else 0.0
    return away, nu * var + statistics["scatter"] + kappa * n / (kappa + n) * away * away


def _normal_inverse_wishart(state: MakerState) -> StatisticsDerivatives:
    """With S_n = S0 + scatter + k0 n / k_n away away' and away the mean of the draws less m0."""
    _, k0, v0, base = state.arguments
    n, (away, spread) = state.count, wishart_statistics(state)
    size, kn, vn = len(away), k0 + n, v0 + n
    of_base, of_spread = cholesky_of(base), cholesky_of(spread)
    assert of_base is not None
    assert of_spread is not None
    precision = of_spread.whitening.T @ of_spread.whitening
    toward = precision @ away
    orders = np.arange(size)
    by_v0 = _rise(0.5 * (v0 - orders), 0.5 * n).sum() + of_base.log_determinant - of_spread.log_determinant
    return (
        vn * k0 * n / kn * toward,
        0.5 * (size * n / (k0 * kn) - vn * (n / kn) ** 2 * float(away @ toward)),
        0.5 * float(by_v0),
        0.5 * (v0 * of_base.whitening.T @ of_base.whitening - vn * precision),
    )


def wishart_statistics(state: MakerState) -> tuple[np.ndarray, np.ndarray]:
    """The same of `make_collapsed_multivariate_normal`, with S_n a matrix."""
    m0, k0, _, base = state.arguments
    statistics, n = state.statistics(), state.count
    prior = np.asarray(m0, dtype=np.float64)
    away = statistics["mean"] - prior if n else np.zeros(len(prior))
    matrix = np.asarray(base, dtype=np.float64)
    scatter = np.asarray(statistics["scatter"])
    if scatter.ndim == 1:
        # kept as the lower triangle, row by row
        lower = np.zeros(matrix.shape)
        lower[np.tril_indices(len(lower))] = scatter
        scatter = lower + np.tril(lower, -1).T
    return away, matrix + scatter + k0 * n / (k0 + n) * np.outer(away, away)


BETA_BERNOULLI = JointGradient((True, True), _beta_bernoulli)
SYMMETRIC_DIRICHLET_MULTINOMIAL = JointGradient((True, False), _symmetric_dirichlet_multinomial)
DIRICHLET_MULTINOMIAL = JointGradient((True,), _dirichlet_multinomial)
GAMMA_POISSON = JointGradient((True, True), _gamma_poisson)
CRP = JointGradient((True, True), _crp)
NORMAL_INV_CHI_SQ = JointGradient((True,) * 4, _normal_inv_chi_sq)
NORMAL_INVERSE_WISHART = JointGradient((True,) * 4, _normal_inverse_wishart)
