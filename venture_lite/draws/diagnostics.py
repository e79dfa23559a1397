"""How far draws can be trusted: effective sample sizes and R-hat of one scalar quantity.

Rank-normalised split R-hat and bulk and tail ESS after Vehtari, Gelman, Simpson, Carpenter and Buerkner, "Rank-
normalization, folding, and localization" (Bayesian Analysis, 2021). They are written here, on NumPy alone, because
the summary of a run is printed at the end of every short program, and importing `arviz_stats` takes longer than
such a program runs. The tests hold them to `arviz_stats` within rounding.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

# below this many draws a chain's halves say nothing about their variance
FEWEST_DRAWS = 4
TAIL = (0.05, 0.95)
BY_CHANCE = 16.0
# whose squares, and sums of these over any chain, are floats
SQUARABLE = 1e140
# of the weights whose tail is looked at, and their relative rounding
FEWEST_OF_TAIL = 5
ROUNDING = 1e-12


def ess_bulk(draws: np.ndarray) -> float:
    """Effective sample size for the centre of the distribution.

    Args:
        draws: (chains, draws).

    Returns:
        The ESS, or NaN where it does not exist: fewer than 4 draws, a constant, or values that are not finite.
    """
    return _ess(_normal_scores(_split(draws))) if _has_spread(draws) else math.nan


def ess_tail(draws: np.ndarray) -> float:
    """The smaller effective sample size of the 5% and the 95% quantile; `draws: (chains, draws)`."""
    if not _has_spread(draws):
        return math.nan
    draws = in_squarable_unit(draws)[0]
    below = [_split(draws <= quantile).astype(np.float64) for quantile in np.quantile(draws, TAIL)]
    return min(_ess(indicator) if np.ptp(indicator) else float(draws.size) for indicator in below)


def ess_mean(draws: np.ndarray) -> float:
    """Effective sample size for the mean; `draws: (chains, draws)`."""
    return _ess(_split(draws)) if _has_spread(draws) else math.nan


def ess_sd(draws: np.ndarray) -> float:
    """Effective sample size for the standard deviation: that of the squared distances from the mean."""
    if not _has_spread(draws):
        return math.nan
    draws = in_squarable_unit(draws)[0]
    return ess_mean((draws - draws.mean()) ** 2)


def moments(draws: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation, also where the squares of draws, or their sum, are no floats; infinite where these
    are none themselves."""
    scaled, exponent = in_squarable_unit(draws)
    # the mean keeps what a small spread is apart from 0
    mean = float(np.mean(draws)) if exponent < 0 else _times_power(float(np.mean(scaled)), exponent)
    return mean, _times_power(float(np.std(scaled, ddof=1)), exponent)


def _times_power(number: float, exponent: int) -> float:
    return float(np.ldexp(number, exponent))


def in_squarable_unit(draws: np.ndarray) -> tuple[np.ndarray, int]:
    """Finite draws divided by a power of two, and its exponent, so that their squares and sums are floats; of draws
    that differ by too little, their distances from the first. As they are, and 0, where nothing is needed."""
    largest = float(np.abs(draws).max())
    if largest > SQUARABLE:
        exponent = math.frexp(largest)[1]
        return np.ldexp(draws, -exponent), exponent
    away = draws - draws.flat[0]
    spread = float(np.abs(away).max())
    if not 0.0 < spread < 1.0 / SQUARABLE:
        return draws, 0
    exponent = math.frexp(spread)[1]
    return np.ldexp(away, -exponent), exponent


def never_moves(draws: np.ndarray) -> np.ndarray:
    """Whether each chain holds one value throughout; `draws: (chains, draws)`."""
    return (draws == draws[:, :1]).all(axis=1)  # type: ignore[no-any-return]


def r_hat(draws: np.ndarray) -> float:
    """Rank-normalised R-hat over half-chains, the larger of the bulk's and the folded draws'.

    One chain is compared with itself, its first half with its second. Infinite where no half-chain ever moves but
    their values differ.
    """
    if not _has_spread(draws):
        return math.nan
    halves = _split(in_squarable_unit(draws)[0])
    folded = np.abs(halves - np.median(halves))
    return max(_scale_reduction(_normal_scores(halves)), _scale_reduction(_normal_scores(folded)))


def r_hat_by_chance(ess: float) -> float:
    """What R-hat exceeds in chains that agree with a probability of 2e-4, by their effective size."""
    return 1.0 + BY_CHANCE / ess if ess > 0.0 else math.inf


def _has_spread(draws: np.ndarray) -> bool:
    enough = draws.ndim == 2 and draws.shape[1] >= FEWEST_DRAWS
    return enough and bool(np.isfinite(draws).all()) and bool(draws.max() > draws.min())


def _split(draws: np.ndarray) -> np.ndarray:
    """Half-chains as chains: (2 chains, draws // 2); the middle draw of an odd number is left out."""
    half = draws.shape[1] // 2
    return np.concatenate((draws[:, :half], draws[:, -half:]))


def _normal_scores(draws: np.ndarray) -> np.ndarray:
    """Each draw's rank among all (ties share the mean of theirs), as a quantile of the normal distribution."""
    _, position, count = np.unique(draws, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    twice_rank = (2 * last - count + 1)[position]
    scores: np.ndarray = _score_table(draws.size)[twice_rank].reshape(draws.shape)
    return scores


@lru_cache(maxsize=8)
def _score_table(size: int) -> np.ndarray:
    """Normal quantiles of (rank - 3/8) / (size + 1/4) (Blom, 1958) at every half-integer rank, at index 2 rank."""
    from statistics import NormalDist

    quantile = NormalDist().inv_cdf
    upper = [quantile((twice / 2 - 0.375) / (size + 0.25)) for twice in range(size + 1, 2 * size + 1)]
    # symmetry: rank r and rank size + 1 - r have opposite scores, and the middle one is 0
    lower = [-score for score in reversed(upper[1:])]
    return np.array([math.nan, math.nan, *lower, *upper])


def _scale_reduction(chains: np.ndarray) -> float:
    """sqrt of pooled over within-chain variance (Gelman and Rubin, 1992)."""
    count = chains.shape[1]
    if never_moves(chains).all():
        # the variance of equal numbers is not 0 where their mean is rounded
        return 1.0 if bool((chains == chains[0, 0]).all()) else math.inf
    within = float(np.mean(np.var(chains, axis=1, ddof=1)))
    between = float(np.var(np.mean(chains, axis=1), ddof=1))
    return math.sqrt((count - 1) / count + between / within)


def _ess(chains: np.ndarray) -> float:
    """Geyer's initial monotone sequence over the chains' combined autocorrelations (Vehtari et al., section 3)."""
    chain_count, count = chains.shape
    # sizes do not depend on units
    chains = in_squarable_unit(chains)[0]
    covariance = _autocovariance(chains).mean(axis=0)
    within = covariance[0] * count / (count - 1)
    pooled = covariance[0] + float(np.var(chains.mean(axis=1), ddof=1))
    if pooled <= 0.0:
        return math.nan
    correlation = 1.0 - (within - covariance) / pooled
    correlation[0] = 1.0
    pair_count = max(1, (count - 1) // 2 - 1)
    pairs = correlation[0 : 2 * pair_count : 2] + correlation[1 : 2 * pair_count : 2]
    stop = np.flatnonzero(pairs < 0.0)
    kept = int(stop[0]) if len(stop) else pair_count
    monotone = np.minimum.accumulate(pairs[:kept])
    # the first term left out is added where it is positive: antithetic chains alternate in sign
    remainder = max(0.0, float(correlation[2 * kept])) if 2 * kept < count else 0.0
    size = chain_count * count
    time = max(-1.0 + 2.0 * float(monotone.sum()) + remainder, 1.0 / math.log10(size))
    return float(size / time)


def _autocovariance(chains: np.ndarray) -> np.ndarray:
    """Biased autocovariances at all lags, by the fast Fourier transform: (chains, lags)."""
    count = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    width = 1 << (2 * count - 1).bit_length()
    spectrum = np.fft.rfft(centred, n=width, axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    covariance: np.ndarray = np.fft.irfft(power, n=width, axis=1)[:, :count] / count
    return covariance


def pareto_k(log_weights: np.ndarray) -> float:
    """The shape of the generalised Pareto distribution of the largest importance weights, `log_weights: (draws,)`.

    Above 0.7 sums of weights are not to be trusted, nor is what the draws came from (Vehtari, Simpson, Gelman, Yao and
    Gabry, "Pareto smoothed importance sampling", JMLR 2024, sections 3.2 and 3.4). The tail is the largest
    min(S / 5, 3 sqrt(S)) of S weights. 0 where these are equal but for rounding; infinite where fewer than 5 of them
    are above the rest, or none is above zero.
    """
    count = math.floor(min(0.2 * len(log_weights), 3.0 * math.sqrt(len(log_weights))))
    ordered = np.sort(log_weights)[-count - 1 :]
    if count < FEWEST_OF_TAIL or not np.isfinite(ordered[-1]):
        return math.inf
    if ordered[-1] - ordered[0] <= ROUNDING * max(abs(ordered[-1]), 1.0):
        return 0.0
    tail = np.exp(ordered[1:] - ordered[-1]) - np.exp(ordered[0] - ordered[-1])
    tail = tail[tail > 0.0]
    return pareto_shape(tail) if len(tail) >= FEWEST_OF_TAIL else math.inf


def pareto_shape(tail: np.ndarray) -> float:
    """The shape of a generalised Pareto distribution from which a sample `(N,)`, in order, might come.

    By the mean of the likelihood over a grid (Zhang and Stephens, "A new and efficient estimation method for the
    generalized Pareto distribution", Technometrics 2009, section 3), shrunk towards 1/2 as by 10 further draws
    (Vehtari and others, appendix C).
    """
    size, points = len(tail), 30 + math.isqrt(len(tail))
    quarter = tail[math.floor(size / 4 + 0.5) - 1]
    grid = 1.0 - np.sqrt(points / (np.arange(1, points + 1) - 0.5))
    grid = grid / (3.0 * quarter) + 1.0 / tail[-1]
    shapes = np.log1p(-grid[:, None] * tail).mean(axis=1)
    likelihood = size * (np.log(-grid / shapes) - shapes - 1.0)
    weights = np.exp(likelihood - likelihood.max())
    keep = weights >= 10.0 * np.finfo(float).eps * weights.sum()
    best = float(np.sum(grid[keep] * weights[keep]) / weights[keep].sum())
    shape = float(np.log1p(-best * tail).mean())
    return (size * shape + 10.0 * 0.5) / (size + 10.0)
