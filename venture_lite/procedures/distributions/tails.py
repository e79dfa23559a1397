"""Distribution functions: the logarithms of the probabilities that a value is at most x, and that it is above x.

Both tails are written, over the numeric namespace of densities, so that each keeps its digits where it is small. Where
one has no closed form of its own it is 1 less the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from venture_lite.procedures.distributions.continuous import log_student_t
from venture_lite.procedures.numeric import (
    LOG_PI,
    LOG_TWO,
    absolute,
    arctan2,
    exp,
    expm1,
    floor,
    inf,
    log,
    log1p,
    log_betainc,
    log_betaincc,
    log_gammainc,
    log_gammaincc,
    log_ndtr,
    maximum,
    minimum,
    where,
)


@dataclass(frozen=True, slots=True)
class Tails:
    """Of (x, *arguments): log P(X <= x) and log P(X > x)."""

    below: Callable[..., float]
    above: Callable[..., float]


def log_rest(log_share: float) -> float:
    """The logarithm of 1 less a probability: where it is nearly 1, of what expm1 keeps."""
    share = minimum(log_share, 0.0)
    return where(share > -LOG_TWO, log(-expm1(share)), log1p(-exp(share)))


def log_between(below_low: float, above_low: float, below_high: float, above_high: float) -> float:
    """The logarithm of the probability between two points, from their tails: of the two differences the one of the
    smaller tails."""
    # beyond the support there is nothing to subtract, and no derivative
    has_above, has_below = above_high > -inf, below_low > -inf
    upper = where(has_above, above_low + log_rest(where(has_above, above_high - above_low, -1.0)), above_low)
    lower = where(has_below, below_high + log_rest(where(has_below, below_low - below_high, -1.0)), below_high)
    return where(above_low < below_high, upper, lower)


def _normal_below(x: float, mean: float, sd: float) -> float:
    return log_ndtr((x - mean) / sd)


def _normal_above(x: float, mean: float, sd: float) -> float:
    return log_ndtr((mean - x) / sd)


def _lognormal_below(x: float, mu: float, sigma: float) -> float:
    return where(x > 0.0, log_ndtr((log(where(x > 0.0, x, 1.0)) - mu) / sigma), -inf)


def _lognormal_above(x: float, mu: float, sigma: float) -> float:
    return where(x > 0.0, log_ndtr((mu - log(where(x > 0.0, x, 1.0))) / sigma), 0.0)


def _half_normal_above(x: float, sd: float) -> float:
    return LOG_TWO + log_ndtr(-maximum(x, 0.0) / sd)


def _half_normal_below(x: float, sd: float) -> float:
    return log_rest(_half_normal_above(x, sd))


def _logistic_below(x: float, loc: float, scale: float) -> float:
    z = (x - loc) / scale
    return minimum(z, 0.0) - log1p(exp(-absolute(z)))


def _logistic_above(x: float, loc: float, scale: float) -> float:
    return _logistic_below(2.0 * loc - x, loc, scale)


def _laplace_below(x: float, loc: float, scale: float) -> float:
    z = (x - loc) / scale
    return where(z < 0.0, z - LOG_TWO, log1p(-0.5 * exp(-maximum(z, 0.0))))


def _laplace_above(x: float, loc: float, scale: float) -> float:
    return _laplace_below(2.0 * loc - x, loc, scale)


def _cauchy_below(x: float, loc: float, scale: float) -> float:
    return log(arctan2(1.0, (loc - x) / scale)) - LOG_PI


def _cauchy_above(x: float, loc: float, scale: float) -> float:
    return log(arctan2(1.0, (x - loc) / scale)) - LOG_PI


def _half_cauchy_below(x: float, scale: float) -> float:
    return LOG_TWO - LOG_PI + log(arctan2(maximum(x, 0.0) / scale, 1.0))


def _half_cauchy_above(x: float, scale: float) -> float:
    return LOG_TWO - LOG_PI + log(arctan2(1.0, maximum(x, 0.0) / scale))


def _student_t_above(x: float, df: float, loc: float, scale: float) -> float:
    # in the middle, where that of the incomplete beta function has no end, the derivative is the density
    z = (x - loc) / scale
    is_middle = absolute(z) < 1e-6
    away = where(is_middle, 1.0, z)
    # of squares beyond the floats only the power is left
    is_far = absolute(away) > 1e150
    square = where(is_far, 1.0, away * away)
    near, far = log_betaincc(0.5, 0.5 * df, square / (df + square)), log_betainc(0.5 * df, 0.5, df / (df + square))
    power = log_student_t(away, df, 0.0, 1.0) + log(absolute(away)) - log(df)
    beyond = where(is_far, power, where(square < df, near, far) - LOG_TWO)
    middle = log(0.5 - exp(log_student_t(0.0, df, 0.0, 1.0)) * where(is_middle, z, 0.0))
    return where(is_middle, middle, where(away > 0.0, beyond, log_rest(beyond)))


def _student_t_below(x: float, df: float, loc: float, scale: float) -> float:
    return _student_t_above(2.0 * loc - x, df, loc, scale)


def _half_student_t_above(x: float, df: float, scale: float) -> float:
    return where(x > 0.0, LOG_TWO + _student_t_above(where(x > 0.0, x, scale), df, 0.0, scale), 0.0)


def _half_student_t_below(x: float, df: float, scale: float) -> float:
    return log_rest(_half_student_t_above(x, df, scale))


def _uniform_below(x: float, lo: float, hi: float) -> float:
    return log((minimum(maximum(x, lo), hi) - lo) / (hi - lo))


def _uniform_above(x: float, lo: float, hi: float) -> float:
    return log((hi - minimum(maximum(x, lo), hi)) / (hi - lo))


def _pareto_above(x: float, shape: float, scale: float) -> float:
    return shape * log(scale / maximum(x, scale))


def _pareto_below(x: float, shape: float, scale: float) -> float:
    return log_rest(_pareto_above(x, shape, scale))


def _uniform_discrete_below(x: float, lo: float, hi: float) -> float:
    return log((minimum(maximum(floor(x), lo - 1.0), hi - 1.0) - (lo - 1.0)) / (hi - lo))


def _uniform_discrete_above(x: float, lo: float, hi: float) -> float:
    return log((hi - 1.0 - minimum(maximum(floor(x), lo - 1.0), hi - 1.0)) / (hi - lo))


def _expon_above(x: float, rate: float) -> float:
    return -rate * maximum(x, 0.0)


def _expon_below(x: float, rate: float) -> float:
    return log_rest(_expon_above(x, rate))


def _weibull_above(x: float, shape: float, scale: float) -> float:
    return where(x > 0.0, -exp(shape * log(where(x > 0.0, x, scale) / scale)), 0.0)


def _weibull_below(x: float, shape: float, scale: float) -> float:
    return log_rest(_weibull_above(x, shape, scale))


def _gamma_below(x: float, shape: float, rate: float) -> float:
    return where(x > 0.0, log_gammainc(shape, rate * where(x > 0.0, x, 1.0)), -inf)


def _gamma_above(x: float, shape: float, rate: float) -> float:
    return where(x > 0.0, log_gammaincc(shape, rate * where(x > 0.0, x, 1.0)), 0.0)


def _inv_gamma_below(x: float, shape: float, scale: float) -> float:
    return where(x > 0.0, log_gammaincc(shape, scale / where(x > 0.0, x, 1.0)), -inf)


def _inv_gamma_above(x: float, shape: float, scale: float) -> float:
    return where(x > 0.0, log_gammainc(shape, scale / where(x > 0.0, x, 1.0)), 0.0)


def _chi_sq_below(x: float, df: float) -> float:
    return _gamma_below(x, 0.5 * df, 0.5)


def _chi_sq_above(x: float, df: float) -> float:
    return _gamma_above(x, 0.5 * df, 0.5)


def _inv_chi_sq_below(x: float, df: float) -> float:
    return _inv_gamma_below(x, 0.5 * df, 0.5)


def _inv_chi_sq_above(x: float, df: float) -> float:
    return _inv_gamma_above(x, 0.5 * df, 0.5)


def _beta_below(x: float, a: float, b: float) -> float:
    inside = (x > 0.0) & (x < 1.0)
    return where(inside, log_betainc(a, b, where(inside, x, 0.5)), where(x > 0.0, 0.0, -inf))


def _beta_above(x: float, a: float, b: float) -> float:
    inside = (x > 0.0) & (x < 1.0)
    return where(inside, log_betaincc(a, b, where(inside, x, 0.5)), where(x > 0.0, -inf, 0.0))


def _poisson_below(x: float, rate: float) -> float:
    k = floor(x)
    return where(k >= 0.0, log_gammaincc(maximum(k, 0.0) + 1.0, rate), -inf)


def _poisson_above(x: float, rate: float) -> float:
    k = floor(x)
    return where(k >= 0.0, log_gammainc(maximum(k, 0.0) + 1.0, rate), 0.0)


def _binomial_below(x: float, n: float, p: float) -> float:
    k = minimum(floor(x), n)
    inside = where(k < n, log_betaincc(maximum(k, 0.0) + 1.0, maximum(n - k, 1.0), p), 0.0)
    return where(k >= 0.0, inside, -inf)


def _binomial_above(x: float, n: float, p: float) -> float:
    k = minimum(floor(x), n)
    inside = where(k < n, log_betainc(maximum(k, 0.0) + 1.0, maximum(n - k, 1.0), p), -inf)
    return where(k >= 0.0, inside, 0.0)


def _geometric_above(x: float, p: float) -> float:
    k = maximum(floor(x), -1.0) + 1.0
    return where(k > 0.0, k * log1p(-p), 0.0)


def _geometric_below(x: float, p: float) -> float:
    return log_rest(_geometric_above(x, p))


def _neg_binomial_below(x: float, r: float, p: float) -> float:
    k = floor(x)
    return where(k >= 0.0, log_betainc(r, maximum(k, 0.0) + 1.0, p), -inf)


def _neg_binomial_above(x: float, r: float, p: float) -> float:
    k = floor(x)
    return where(k >= 0.0, log_betaincc(r, maximum(k, 0.0) + 1.0, p), 0.0)


def _neg_binomial_mean_below(x: float, mu: float, size: float) -> float:
    k = floor(x)
    return where(k >= 0.0, log_betaincc(maximum(k, 0.0) + 1.0, size, mu / (size + mu)), -inf)


def _neg_binomial_mean_above(x: float, mu: float, size: float) -> float:
    k = floor(x)
    return where(k >= 0.0, log_betainc(maximum(k, 0.0) + 1.0, size, mu / (size + mu)), 0.0)


TAILS: dict[str, Tails] = {
    "normal": Tails(_normal_below, _normal_above),
    "lognormal": Tails(_lognormal_below, _lognormal_above),
    "half_normal": Tails(_half_normal_below, _half_normal_above),
    "logistic_dist": Tails(_logistic_below, _logistic_above),
    "laplace": Tails(_laplace_below, _laplace_above),
    "cauchy": Tails(_cauchy_below, _cauchy_above),
    "half_cauchy": Tails(_half_cauchy_below, _half_cauchy_above),
    "student_t": Tails(_student_t_below, _student_t_above),
    "half_student_t": Tails(_half_student_t_below, _half_student_t_above),
    "uniform_continuous": Tails(_uniform_below, _uniform_above),
    "pareto": Tails(_pareto_below, _pareto_above),
    "uniform_discrete": Tails(_uniform_discrete_below, _uniform_discrete_above),
    "expon": Tails(_expon_below, _expon_above),
    "weibull": Tails(_weibull_below, _weibull_above),
    "gamma": Tails(_gamma_below, _gamma_above),
    "inv_gamma": Tails(_inv_gamma_below, _inv_gamma_above),
    "chi_sq": Tails(_chi_sq_below, _chi_sq_above),
    "inv_chi_sq": Tails(_inv_chi_sq_below, _inv_chi_sq_above),
    "beta": Tails(_beta_below, _beta_above),
    "poisson": Tails(_poisson_below, _poisson_above),
    "binomial": Tails(_binomial_below, _binomial_above),
    "geometric": Tails(_geometric_below, _geometric_above),
    "neg_binomial": Tails(_neg_binomial_below, _neg_binomial_above),
    "neg_binomial_mean": Tails(_neg_binomial_mean_below, _neg_binomial_mean_above),
}
"""By name of the distribution."""
