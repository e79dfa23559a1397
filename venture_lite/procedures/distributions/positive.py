"""Distributions over positive numbers.

Their tails reach beyond the floats: densities work with logarithms of ratios where a quotient could overflow, and a
simulated value that rounding puts on 0 or infinity is moved to the nearest float inside.
"""

from __future__ import annotations

import math

import numpy as np

from venture_lite.procedures import bounds, likelihoods, transforms
from venture_lite.procedures.density import random
from venture_lite.procedures.distributions.continuous import log_student_t, simulate_student_t
from venture_lite.procedures.domains import POSITIVE, REAL
from venture_lite.procedures.numeric import (
    LOG_TWO,
    LOG_TWO_PI,
    SMALLEST,
    absolute,
    clip,
    exp,
    inf,
    log,
    log_cauchy,
    log_gamma_density,
    log_ratio,
    nextafter,
    pi,
    times,
    where,
)
from venture_lite.procedures.record import Argument
from venture_lite.procedures.transforms import LARGEST

HALF_LOG_TWO_OVER_PI = 0.5 * math.log(2.0 / pi)


def _inside(value: float) -> float:
    return clip(value, SMALLEST, LARGEST)


def _gamma(value: float, shape: float, rate: float) -> float:
    inside = value >= 0
    x = where(inside, value, 1.0)
    return where(inside, log_gamma_density(shape, rate * x, log(rate) + log(x)) + log(rate), -inf)


def _inv_gamma(value: float, shape: float, scale: float) -> float:
    inside = value > 0
    x = where(inside, value, 1.0)
    log_y = log_ratio(scale, x)
    return where(inside, log_gamma_density(shape, scale / x, log_y) + log_y - log(x), -inf)


def _expon(value: float, rate: float) -> float:
    return where(value >= 0, log(rate) - rate * value, -inf)


def _chi_sq(value: float, df: float) -> float:
    return _gamma(value, 0.5 * df, 0.5)


def _inv_chi_sq(value: float, df: float) -> float:
    return _inv_gamma(value, 0.5 * df, 0.5)


def _half_normal(value: float, sd: float) -> float:
    z = value / sd
    return where(value >= 0, HALF_LOG_TWO_OVER_PI - log(sd) - 0.5 * (z * z), -inf)


def _half_cauchy(value: float, scale: float) -> float:
    return where(value >= 0, LOG_TWO + log_cauchy(absolute(value), scale), -inf)


def _half_student_t(value: float, df: float, scale: float) -> float:
    return where(value >= 0, LOG_TWO + log_student_t(value, df, 0.0, scale), -inf)


def _lognormal(value: float, mu: float, sigma: float) -> float:
    inside = value > 0
    log_x = log(where(inside, value, 1.0))
    z = (log_x - mu) / sigma
    return where(inside, -0.5 * (z * z) - log(sigma) - log_x - 0.5 * LOG_TWO_PI, -inf)


def _weibull(value: float, shape: float, scale: float) -> float:
    inside = value >= 0
    log_z = log_ratio(where(inside, value, 1.0), scale)
    power = times(shape - 1.0, log_z)
    return where(inside, log(shape) - log(scale) + power - exp(shape * log_z), -inf)


def _pareto(value: float, shape: float, scale: float) -> float:
    inside = value >= scale
    x = where(inside, value, scale)
    return where(inside, log(shape) - log(x) - shape * log_ratio(x, scale), -inf)


def _simulate_inv_gamma(rng: np.random.Generator, shape: float, scale: float) -> float:
    return _inside(scale / _inside(rng.standard_gamma(shape)))


def _simulate_weibull(rng: np.random.Generator, shape: float, scale: float) -> float:
    # rng.weibull overflows for a shape near 0
    return _inside(exp(log(scale) + log(rng.standard_exponential()) / shape))


def _simulate_pareto(rng: np.random.Generator, shape: float, scale: float) -> float:
    above = scale * exp(rng.standard_exponential() / shape)
    return clip(above, nextafter(scale, inf), LARGEST)


_SHAPE = Argument("shape", POSITIVE)
_SCALE = Argument("scale", POSITIVE)
_DF = (Argument("df", POSITIVE),)

GAMMA = random(
    "gamma", (_SHAPE, Argument("rate", POSITIVE)), "A positive number with mean shape / rate.",
    lambda rng, shape, rate: _inside(rng.standard_gamma(shape) / rate), _gamma, transform=transforms.POSITIVE,
    source="rate^shape x^(shape - 1) exp(-rate x) / Gamma(shape)",
    most_likely=bounds.gamma,
)  # fmt: skip
INV_GAMMA = random(
    "inv_gamma", (_SHAPE, _SCALE), "A positive number whose reciprocal is gamma with this shape and rate scale.",
    _simulate_inv_gamma, _inv_gamma, transform=transforms.POSITIVE,
    source="scale^shape x^(-shape - 1) exp(-scale / x) / Gamma(shape)",
    most_likely=bounds.inv_gamma,
)  # fmt: skip
EXPON = random(
    "expon", (Argument("rate", POSITIVE),), "A positive number with mean 1 / rate.",
    lambda rng, rate: _inside(rng.standard_exponential() / rate), _expon, transform=transforms.POSITIVE,
    source="rate exp(-rate x)",
    most_likely=bounds.scale_alone(lambda value: 1.0 / value if value else math.inf),
)  # fmt: skip
CHI_SQ = random(
    "chi_sq", _DF, "A positive number distributed as the sum of df squared standard normals; df need not be whole.",
    lambda rng, df: _inside(2.0 * rng.standard_gamma(0.5 * df)), _chi_sq, transform=transforms.POSITIVE,
    source="x^(df/2 - 1) exp(-x / 2) / (2^(df/2) Gamma(df/2)): gamma with shape df/2 and rate 1/2",
    most_likely=bounds.chi_sq,
)  # fmt: skip
INV_CHI_SQ = random(
    "inv_chi_sq", _DF, "A positive number whose reciprocal is chi_sq with df degrees of freedom.",
    lambda rng, df: _simulate_inv_gamma(rng, 0.5 * df, 0.5), _inv_chi_sq, transform=transforms.POSITIVE,
    source="x^(-df/2 - 1) exp(-1 / (2 x)) / (2^(df/2) Gamma(df/2)): inv_gamma with shape df/2 and scale 1/2",
    most_likely=bounds.inv_chi_sq,
)  # fmt: skip
HALF_NORMAL = random(
    "half_normal", (Argument("sd", POSITIVE),), "The size of a normal number with mean 0 and the given sd.",
    lambda rng, sd: _inside(sd * absolute(rng.standard_normal())), _half_normal, transform=transforms.POSITIVE,
    source="sqrt(2 / pi) exp(-(x / sd)^2 / 2) / sd",
    most_likely=bounds.scale_alone(),
)  # fmt: skip
HALF_CAUCHY = random(
    "half_cauchy", (_SCALE,), "The size of a Cauchy number with location 0: no mean, median scale.",
    lambda rng, scale: _inside(scale * absolute(rng.standard_cauchy())), _half_cauchy, transform=transforms.POSITIVE,
    source="2 / (pi scale (1 + (x / scale)^2))",
    most_likely=bounds.scale_alone(),
)  # fmt: skip
HALF_STUDENT_T = random(
    "half_student_t", (*_DF, _SCALE), "The size of a number from Student's t with location 0.",
    lambda rng, df, scale: _inside(absolute(simulate_student_t(rng, df, 0.0, scale))), _half_student_t,
    transform=transforms.POSITIVE, source="2 student_t(x; df, 0, scale)",
    most_likely=bounds.scale_second,
)  # fmt: skip
LOGNORMAL = random(
    "lognormal", (Argument("mu", REAL), Argument("sigma", POSITIVE)),
    "A positive number whose logarithm is normal with mean mu and standard deviation sigma.",
    lambda rng, mu, sigma: _inside(exp(mu + sigma * rng.standard_normal())), _lognormal,
    transform=transforms.POSITIVE, source="exp(-((log x - mu) / sigma)^2 / 2) / (x sigma sqrt(2 pi))",
    predictor=likelihoods.normal_predictor(_lognormal, np.log),
    most_likely=bounds.location_scale(coordinate=math.log),
)  # fmt: skip
WEIBULL = random(
    "weibull", (_SHAPE, _SCALE), "A positive number; (x / scale)^shape is exponential with mean 1.",
    _simulate_weibull, _weibull, transform=transforms.POSITIVE,
    source="shape / scale z^(shape - 1) exp(-z^shape), z = x / scale",
    most_likely=bounds.scale_second,
)  # fmt: skip
PARETO = random(
    "pareto", (_SHAPE, _SCALE), "A number above scale whose tail falls as a power: P(X > x) = (scale / x)^shape.",
    _simulate_pareto, _pareto, transform=transforms.ABOVE_SCALE, source="shape scale^shape / x^(shape + 1)",
    most_likely=bounds.pareto,
)  # fmt: skip

RECORDS = (
    GAMMA, INV_GAMMA, EXPON, CHI_SQ, INV_CHI_SQ, HALF_NORMAL, HALF_CAUCHY, HALF_STUDENT_T, LOGNORMAL, WEIBULL,
    PARETO,
)  # fmt: skip
