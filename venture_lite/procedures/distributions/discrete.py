"""Distributions over booleans and integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from venture_lite.procedures import likelihoods
from venture_lite.procedures.columns import Flags
from venture_lite.procedures.density import column_density, random
from venture_lite.procedures.domains import (
    BOOLEAN_LIKE,
    COUNT,
    INTEGER,
    NON_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    REAL,
    numbers,
)
from venture_lite.procedures.numeric import (
    BELOW_ONE,
    LARGEST_COUNT,
    MOST_RATE,
    absolute,
    demanded,
    deviance_at,
    divide,
    drawn_count,
    exp,
    floor,
    inf,
    is_integral,
    log,
    log1p,
    log_beta_density,
    log_gamma_density,
    log_ratio,
    log_rising,
    log_split,
    maximum,
    minimum,
    of_large_rate,
    stirling_rest,
    where,
    whole,
    xlog1py,
)
from venture_lite.procedures.record import Argument


def _bernoulli(value: Any, p: float) -> float:
    return where(value == 1, log(p), where(value == 0, log1p(-p), -inf))


def _simulate_bernoulli(rng: np.random.Generator, p: float) -> bool:
    return rng.random() < p


def _support_bernoulli(p: float) -> Sequence[bool]:
    return tuple(value for value, mass in ((False, 1.0 - p), (True, p)) if mass > 0.0)


def _bernoulli_logit(value: Any, logit: float) -> float:
    signed = where(value == 1, logit, where(value == 0, -logit, -inf))
    return minimum(signed, 0.0) - log1p(exp(-absolute(signed)))


_bernoulli_logit_as_defined = column_density(_bernoulli_logit)


def _bernoulli_logit_columns(lifted: Flags, value: Any, logit: Any) -> np.ndarray:
    """-log(1 + exp(-signed)) with one temporary: the hottest loop of logistic regressions.

    The sign is flipped by its bit. Where exp overflows the form gives -inf in place of `signed`, and is mended.
    """
    if not _are_columns(lifted, value, logit):
        return _bernoulli_logit_as_defined(lifted, value, logit)
    bits = value.astype(np.int64)
    bits <<= 63
    bits ^= logit.view(np.int64)
    result = bits.view(np.float64)
    with np.errstate(all="ignore"):
        np.exp(result, out=result)
        np.log1p(result, out=result)
    np.negative(result, out=result)
    if result.size and not result.min() > -inf:
        result = np.where(np.isinf(result), np.where(value, logit, -logit), result)
    return np.asarray(result)


def _are_columns(lifted: Flags, value: Any, logit: Any) -> bool:
    """Whether there is a boolean and a logit for each row."""
    return all(lifted) and logit.ndim == 1 and logit.dtype == np.float64 and BOOLEAN_LIKE.contains_all(value)


FACTORS = 8
"""Factors 1 + exp(x) multiplied before a logarithm is taken: no overflow while x stays below 709 / 8."""


def _bernoulli_logit_total(lifted: Flags, value: Any, logit: Any) -> float:
    """The sum over rows of value * logit - log(1 + exp(logit)), the last as the log of products of factors: an eighth
    of the logarithms. NaN where the form does not apply or a product overflows."""
    if not _are_columns(lifted, value, logit):
        return math.nan
    even = len(logit) // FACTORS * FACTORS
    with np.errstate(all="ignore"):
        factors = np.exp(logit)
        factors += 1.0
        products = np.multiply.reduce(factors[:even].reshape(FACTORS, -1), axis=0)
        normalisers = float(np.log(products, out=products).sum()) + float(np.log(factors[even:]).sum())
        total = float(np.dot(value, logit)) - normalisers
    return total if math.isfinite(total) else math.nan


def _simulate_bernoulli_logit(rng: np.random.Generator, logit: float) -> bool:
    # P(log u - log(1 - u) < logit) is the logistic function of the logit
    u = rng.random()
    return u < where(logit > -700.0, 1.0 / (1.0 + exp(-logit)), exp(maximum(logit, -745.0)))


def _binomial(value: Any, n: float, p: float) -> float:
    inside = is_integral(value) & (value >= 0) & (value <= n)
    k = where(inside, value, 0)
    return where(inside, log_split(k, where(inside, n - k, 0), p, 1.0 - p), -inf)


def _simulate_binomial(rng: np.random.Generator, n: float, p: float) -> int:
    trials = demanded(n, n <= LARGEST_COUNT, "binomial: n must be at most 2^62, got {}", n)
    return rng.binomial(whole(trials), p)


def _beta_binomial(value: Any, n: float, a: float, b: float) -> float:
    # the binomial probability times the ratio of prior and posterior densities, the same for every p: here the mean
    inside = is_integral(value) & (value >= 0) & (value <= n)
    k = where(inside, value, 0)
    rest = where(inside, n - k, 0)
    p = minimum(maximum((a + k) / (a + b + n), 1e-290), BELOW_ONE)
    ratio = log_beta_density(p, a, b) - log_beta_density(p, a + k, b + rest)
    density = log_split(k, rest, p, 1.0 - p) + ratio
    # one parameter of 0: all trials fail, or all succeed; 0, with the derivative by that parameter
    failing = where(k == 0, log_rising(b, n) - log_rising(a + b, n), -inf)
    succeeding = where(rest == 0, log_rising(a, n) - log_rising(a + b, n), -inf)
    density = where(a == 0, failing, where(b == 0, succeeding, density))
    return where(inside & (a + b > 0.0), density, -inf)


def _simulate_beta_binomial(rng: np.random.Generator, n: float, a: float, b: float) -> int:
    trials = demanded(n, n <= LARGEST_COUNT, "beta_binomial: n must be at most 2^62, got {}", n)
    trials = demanded(trials, a + b > 0.0, "beta_binomial: a and b must not both be 0")
    # with a parameter of 0 the generator's beta is refused
    p = where(b == 0.0, 1.0, rng.beta(where(a == 0.0, 1.0, a), where(b == 0.0, 1.0, b)))
    return rng.binomial(whole(trials), where(a == 0.0, 0.0, p))


def _support_beta_binomial(n: float, a: float, b: float) -> Sequence[int]:
    return (0,) if a == 0 else (int(n),) if b == 0 else range(int(n) + 1)


def _poisson(value: Any, rate: float) -> float:
    inside = is_integral(value) & (value >= 0)
    k = where(inside, value, 0)
    # of no events also at rate 0, with its derivative
    return where(inside, where(k == 0, -rate, log_gamma_density(k + 1.0, rate, log(rate))), -inf)


def _geometric(value: Any, p: float) -> float:
    inside = is_integral(value) & (value >= 0)
    return where(inside, log(p) + xlog1py(where(inside, value, 0), -p), -inf)


def _neg_binomial(value: Any, r: float, p: float) -> float:
    inside = is_integral(value) & (value >= 0)
    some = where(inside & (value > 0), value, 1)
    # of k + r trials the last one is a success: r / (k + r) times the binomial probability of r among k + r
    density = log_split(r, some, p, 1.0 - p) + log_ratio(r, r + some)
    return where(inside, where(value == 0, r * log(p), density), -inf)


def _neg_binomial_mean(value: Any, mu: float, size: float) -> float:
    inside = is_integral(value) & (value >= 0)
    k = where(inside & (value > 0), value, 1)
    # as neg_binomial of p = size / (size + mu), with distances from the shares that do not round it
    n, share = size + k, size / (size + mu)
    excess = (k - mu) * share
    of_size = deviance_at(size, n * share, (mu - k) / n, -excess)
    of_count = deviance_at(k, n * (mu / (size + mu)), divide((k - mu) * (size / n), mu), excess)
    rests = stirling_rest(n) - stirling_rest(size) - stirling_rest(k)
    odds = mu / size
    none = -size * where(odds < inf, log1p(odds), log(mu) - log(size))
    return where(inside, where(value == 0, none, rests - of_size - of_count + log_ratio(size, n)), -inf)


def _uniform_discrete(value: Any, lo: float, hi: float) -> float:
    inside = is_integral(value) & (value >= lo) & (value < hi)
    return where(inside, -log(hi - lo), -inf)


def _simulate_uniform_discrete(rng: np.random.Generator, lo: float, hi: float) -> int:
    low = demanded(lo, lo < hi, "uniform_discrete: lo must be less than hi, got {} and {}", lo, hi)
    within = (lo >= -LARGEST_COUNT) & (hi <= LARGEST_COUNT)
    low = demanded(low, within, "uniform_discrete: lo and hi must lie within 2^62, got {} and {}", lo, hi)
    return whole(rng.integers(whole(low), whole(hi)))


def _of_rate(rng: np.random.Generator, rate: float) -> int:
    """A Poisson count, LARGEST_COUNT where it is not below that."""
    return of_large_rate(rng.poisson(minimum(rate, MOST_RATE)), rate)


def _simulate_poisson(rng: np.random.Generator, rate: float) -> int:
    return drawn_count(_of_rate(rng, rate), "poisson: a draw of rate {}", rate)


def _simulate_neg_binomial(rng: np.random.Generator, r: float, p: float) -> int:
    # a Poisson whose rate is gamma: exact also where the generator's own refuses (p far below 1 / r)
    rate = minimum(rng.standard_gamma(r) * (1.0 - p) / p, 2.0 * LARGEST_COUNT)
    return drawn_count(_of_rate(rng, rate), "neg_binomial: a draw of r {} and p {}", r, p)


def _simulate_neg_binomial_mean(rng: np.random.Generator, mu: float, size: float) -> int:
    rate = minimum(rng.standard_gamma(size) * (mu / size), 2.0 * LARGEST_COUNT)
    return drawn_count(_of_rate(rng, rate), "neg_binomial_mean: a draw of mu {} and size {}", mu, size)


def _simulate_geometric(rng: np.random.Generator, p: float) -> int:
    # failures before the first success, by inversion: exact also for p far below the generator's own limit
    return drawn_count(floor(log1p(-rng.random()) / log1p(-p)), "geometric: a draw of p {}", p)


_P = (Argument("p", PROBABILITY, 0.5),)
_POSITIVE_PROBABILITY = numbers(
    "positive probability", "a probability above 0", "0.0 < {x} <= 1.0", at_limit=lambda x: x == 0.0
)

_binary_predictor = partial(
    likelihoods.logistic_predictor, _bernoulli, likelihoods.binary_counts, quickly=likelihoods.binary_first_order
)

BERNOULLI_LOGIT = random(
    "bernoulli_logit", (Argument("logit", REAL),),
    "A boolean, true with probability logistic(logit).",
    _simulate_bernoulli_logit, _bernoulli_logit, columns=_bernoulli_logit_columns,
    log_density_total=_bernoulli_logit_total,
    support=lambda logit: (False, True),
    source="log logistic(s) = min(s, 0) - log(1 + exp(-|s|)), s the logit with the sign of the outcome",
    gradient=likelihoods.BERNOULLI_LOGIT_GRADIENT,
    predictor=_binary_predictor(inverse_link=None),
)  # fmt: skip
BERNOULLI = random(
    "bernoulli", _P, "A boolean, true with probability p (default 1/2).",
    _simulate_bernoulli, _bernoulli, support=_support_bernoulli, logit_form=BERNOULLI_LOGIT,
    source="p^x (1 - p)^(1 - x)",
    predictor=_binary_predictor(),
)  # fmt: skip
FLIP = replace(
    BERNOULLI, name="flip", summary="A boolean, true with probability p (default 1/2); another name of bernoulli."
)
BINOMIAL = random(
    "binomial", (Argument("n", COUNT), Argument("p", PROBABILITY)),
    "The number of successes among n independent trials of probability p.",
    _simulate_binomial, _binomial,
    support=lambda n, p: range(int(n) + 1) if 0.0 < p < 1.0 else (int(n) if p else 0,),
    source="C(n, k) p^k (1 - p)^(n - k)",
    predictor=likelihoods.logistic_predictor(_binomial, lambda k, n, p: (k, n - k), 1),
)  # fmt: skip
BETA_BINOMIAL = random(
    "beta_binomial", (Argument("n", COUNT), Argument("a", NON_NEGATIVE), Argument("b", NON_NEGATIVE)),
    "The number of successes among n independent trials of one probability, which is beta with a and b; with an a of 0 "
    "none, with a b of 0 all. Not both may be 0.",
    _simulate_beta_binomial, _beta_binomial, support=_support_beta_binomial,
    source="C(n, k) B(k + a, n - k + b) / B(a, b)",
)  # fmt: skip
POISSON = random(
    "poisson", (Argument("rate", NON_NEGATIVE),), "A count with the given mean; 0 for certain where that is 0.",
    _simulate_poisson, _poisson, source="rate^k exp(-rate) / k!", predictor=likelihoods.poisson_predictor(_poisson),
)  # fmt: skip
GEOMETRIC = random(
    "geometric", (Argument("p", _POSITIVE_PROBABILITY),),
    "The number of failures before the first success (0, 1, ...), p the probability of success.",
    _simulate_geometric, _geometric, source="p (1 - p)^k",
    predictor=likelihoods.logistic_predictor(_geometric, lambda k, p: (1.0, k), trials=lambda p, _: 1.0 / p),
)  # fmt: skip
NEG_BINOMIAL = random(
    "neg_binomial", (Argument("r", NON_NEGATIVE), Argument("p", _POSITIVE_PROBABILITY)),
    "The number of failures before the r-th success, p the probability of success; mean r (1 - p) / p. r need not be "
    "whole; with an r of 0 there are none. p is rounded to 1e-16, so that of r / mean = 10^d the mean loses d digits, "
    "which neg_binomial_mean keeps.",
    _simulate_neg_binomial, _neg_binomial, source="Gamma(k + r) / (k! Gamma(r)) p^r (1 - p)^k",
    predictor=likelihoods.logistic_predictor(_neg_binomial, lambda k, r, p: (r, k), 1, trials=lambda p, r, _: r / p),
)  # fmt: skip
NEG_BINOMIAL_MEAN = random(
    "neg_binomial_mean", (Argument("mu", NON_NEGATIVE), Argument("size", POSITIVE)),
    "A count with mean mu and variance mu + mu^2 / size: neg_binomial with r = size and p = size / (size + mu), to all "
    "digits for any size; 0 for certain where mu is 0.",
    _simulate_neg_binomial_mean, _neg_binomial_mean,
    source="Gamma(k + size) / (k! Gamma(size)) (size / (size + mu))^size (mu / (size + mu))^k",
    predictor=likelihoods.neg_binomial_predictor(_neg_binomial_mean),
)  # fmt: skip
UNIFORM_DISCRETE = random(
    "uniform_discrete", (Argument("lo", INTEGER), Argument("hi", INTEGER)),
    "An integer from lo to hi - 1, each equally probable.",
    _simulate_uniform_discrete, _uniform_discrete,
    support=lambda lo, hi: range(int(lo), int(hi)), source="1 / (hi - lo)",
)  # fmt: skip

RECORDS = (
    FLIP,
    BERNOULLI,
    BERNOULLI_LOGIT,
    BINOMIAL,
    BETA_BINOMIAL,
    POISSON,
    GEOMETRIC,
    NEG_BINOMIAL,
    NEG_BINOMIAL_MEAN,
    UNIFORM_DISCRETE,
)
