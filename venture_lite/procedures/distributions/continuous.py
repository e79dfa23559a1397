"""Distributions over the real line, an interval and the circle."""

from __future__ import annotations

from typing import Any

import numpy as np

from venture_lite.procedures import bounds, likelihoods, transforms
from venture_lite.procedures.density import random
from venture_lite.procedures.domains import NON_NEGATIVE, POSITIVE, REAL
from venture_lite.procedures.numeric import (
    LOG_PI,
    LOG_TWO,
    LOG_TWO_PI,
    absolute,
    arctan2,
    clip,
    cos,
    demanded,
    exp,
    i0e,
    inf,
    log,
    log1p,
    log1p_square,
    log_beta_density,
    log_cauchy,
    log_normal_mass,
    log_rising,
    maximum,
    minimum,
    nextafter,
    normal_between,
    pi,
    sin,
    sqrt,
    times,
    turned,
    where,
)
from venture_lite.procedures.record import Argument
from venture_lite.procedures.transforms import LARGEST, log_gap

HALF_LOG_TWO_PI = 0.5 * LOG_TWO_PI


def _between(value: float, low: float, high: float) -> float:
    return clip(value, nextafter(low, high), nextafter(high, low))


def _finite(value: float) -> float:
    return clip(value, -LARGEST, LARGEST)


def _normal(value: float, mean: float, sd: float) -> float:
    z = (value - mean) / sd
    return -0.5 * (z * z) - (log(sd) + HALF_LOG_TWO_PI)


def _uniform_continuous(value: float, lo: float, hi: float) -> float:
    return where((value >= lo) & (value <= hi) & (lo < hi), -log_gap(lo, hi), -inf)


def _simulate_uniform(rng: np.random.Generator, lo: float, hi: float) -> float:
    start = demanded(lo, lo < hi, "uniform_continuous: lo must be less than hi, got {} and {}", lo, hi)
    width, part = hi - lo, rng.random()
    return _between(where(width < inf, start + width * part, (1.0 - part) * start + part * hi), lo, hi)


def _truncated_normal(value: float, mean: float, sd: float, lo: float, hi: float) -> float:
    # relative to the density at the point of the interval that is nearest to the mean, whose square is beyond rounding
    nearest = minimum(maximum(mean, lo), hi)
    away, twice = (value - nearest) / sd, (value - mean) / sd + (nearest - mean) / sd
    log_mass = log_normal_mass((lo - mean) / sd, (hi - mean) / sd)
    inside = (value >= lo) & (value <= hi) & (lo < hi)
    return where(inside, -0.5 * (away * twice) - log(sd) - log_mass, -inf)


def _simulate_truncated_normal(rng: np.random.Generator, mean: float, sd: float, lo: float, hi: float) -> float:
    low = demanded(lo, lo < hi, "truncated_normal: lo must be less than hi, got {} and {}", lo, hi)
    away = normal_between(rng.random(), (low - mean) / sd, (hi - mean) / sd)
    return _between(clip(mean, low, hi) + sd * away, low, hi)


def _beta(value: float, a: float, b: float) -> float:
    # at 0 and 1, where log x has no value, the density is 0, finite or infinite as the exponent there says
    within = (value > 0) & (value < 1)
    x = where(within, value, 0.5)
    exponent = where(value == 0, a, where(value == 1, b, inf)) - 1.0
    return where(within, log_beta_density(x, a, b), where(exponent == 0.0, log(a) + log(b), times(exponent, -inf)))


def log_student_t(value: float, df: float, loc: float, scale: float) -> float:
    z = (value - loc) / scale
    tail = 0.5 * (df + 1) * log1p_square(z / sqrt(df))
    return log_rising(0.5 * df, 0.5) - 0.5 * (LOG_PI + log(df)) - log(scale) - tail


def simulate_student_t(rng: np.random.Generator, df: float, loc: float, scale: float) -> float:
    # for df near 0 most draws are beyond the floats; within 1e300 the density has no overflow
    return _finite(loc + scale * clip(rng.standard_t(df), -1e300, 1e300))


def _laplace(value: float, loc: float, scale: float) -> float:
    return -absolute(value - loc) / scale - log(scale) - LOG_TWO


def _cauchy(value: float, loc: float, scale: float) -> float:
    return log_cauchy(absolute(value - loc), scale)


def _logistic_dist(value: float, loc: float, scale: float) -> float:
    z = -absolute(value - loc) / scale
    return z - log(scale) - 2.0 * log1p(exp(z))


def _von_mises(value: float, mean: float, concentration: float) -> float:
    # cos d - 1 = -2 sin^2(d / 2) keeps its digits where the concentration is large and d small
    inside = (value >= -pi) & (value <= pi)
    s = sin(0.5 * (where(inside, value, 0.0) - turned(mean)))
    normaliser = LOG_TWO_PI + log(i0e(concentration))
    return where(inside, -2.0 * concentration * (s * s) - normaliser, -inf)


def _simulate_von_mises(rng: np.random.Generator, mean: float, concentration: float) -> float:
    # NumPy refuses -0.0
    return rng.vonmises(arctan2(sin(mean), cos(mean)), absolute(concentration))


def _simulate_beta(rng: np.random.Generator, a: float, b: float) -> float:
    return _between(rng.beta(a, b), 0.0, 1.0)


_LOC_SCALE = (Argument("loc", REAL), Argument("scale", POSITIVE))

NORMAL = random(
    "normal", (Argument("mean", REAL), Argument("sd", POSITIVE)),
    "A real number with the given mean and standard deviation.",
    lambda rng, mean, sd: _finite(mean + sd * rng.standard_normal()), _normal, transform=transforms.REAL,
    source="exp(-((x - mean) / sd)^2 / 2) / (sd sqrt(2 pi))", predictor=likelihoods.normal_predictor(_normal),
    most_likely=bounds.location_scale(),
)  # fmt: skip
UNIFORM_CONTINUOUS = random(
    "uniform_continuous", (Argument("lo", REAL), Argument("hi", REAL)),
    "A real number between lo and hi, with constant density.",
    _simulate_uniform, _uniform_continuous, transform=transforms.INTERVAL, source="1 / (hi - lo)",
    most_likely=bounds.interval,
)  # fmt: skip
TRUNCATED_NORMAL = random(
    "truncated_normal",
    (Argument("mean", REAL), Argument("sd", POSITIVE), Argument("lo", REAL), Argument("hi", REAL)),
    "A real number between lo and hi, normal with this mean and sd before it is known to lie there.",
    _simulate_truncated_normal, _truncated_normal, transform=transforms.INTERVAL_AFTER_TWO,
    source="normal(x; mean, sd) / (Phi((hi - mean) / sd) - Phi((lo - mean) / sd))",
)  # fmt: skip
BETA = random(
    "beta", (Argument("a", POSITIVE), Argument("b", POSITIVE)), "A number between 0 and 1 with mean a / (a + b).",
    _simulate_beta, _beta, transform=transforms.UNIT,
    source="x^(a - 1) (1 - x)^(b - 1) / B(a, b)",
    most_likely=bounds.beta,
)  # fmt: skip
STUDENT_T = random(
    "student_t", (Argument("df", POSITIVE), Argument("loc", REAL, 0.0), Argument("scale", POSITIVE, 1.0)),
    "A real number from Student's t with df degrees of freedom, shifted by loc and stretched by scale.",
    simulate_student_t, log_student_t, transform=transforms.REAL,
    source="Gamma((df + 1) / 2) / (Gamma(df / 2) sqrt(df pi) scale) (1 + z^2 / df)^(-(df + 1) / 2), z = (x - loc) / "
    "scale",
    predictor=likelihoods.student_t_predictor(log_student_t, 1),
    most_likely=bounds.location_scale(),
)  # fmt: skip
LAPLACE = random(
    "laplace", _LOC_SCALE, "A real number with density falling exponentially on both sides of loc.",
    lambda rng, loc, scale: _finite(rng.laplace(loc, scale)), _laplace, transform=transforms.REAL,
    source="exp(-|x - loc| / scale) / (2 scale)",
    most_likely=bounds.location_scale(),
)  # fmt: skip
CAUCHY = random(
    "cauchy", _LOC_SCALE, "A real number from the Cauchy distribution: no mean, median loc.",
    lambda rng, loc, scale: _finite(loc + scale * rng.standard_cauchy()), _cauchy, transform=transforms.REAL,
    source="1 / (pi scale (1 + z^2)), z = (x - loc) / scale",
    predictor=likelihoods.student_t_predictor(_cauchy, 0, df=1.0),
    most_likely=bounds.location_scale(),
)  # fmt: skip

LOGISTIC_DIST = random(
    "logistic_dist", _LOC_SCALE, "A real number whose distribution function is logistic((x - loc) / scale).",
    lambda rng, loc, scale: _finite(rng.logistic(loc, scale)), _logistic_dist, transform=transforms.REAL,
    source="exp(-z) / (scale (1 + exp(-z))^2), z = (x - loc) / scale",
    most_likely=bounds.location_scale(lambda distance: abs(distance) / bounds.LOGISTIC_MODE),
)  # fmt: skip
VON_MISES = random(
    "von_mises", (Argument("mean", REAL), Argument("concentration", NON_NEGATIVE)),
    "An angle from -pi to pi around the mean direction, uniform for concentration 0 and nearly normal with variance "
    "1 / concentration where that is large. Angles beyond -pi to pi are impossible.",
    _simulate_von_mises, _von_mises, transform=transforms.CIRCLE,
    source="exp(concentration cos(x - mean)) / (2 pi I0(concentration)), I0 the modified Bessel function",
    most_likely=bounds.direction,
)  # fmt: skip

RECORDS: tuple[Any, ...] = (
    NORMAL, UNIFORM_CONTINUOUS, TRUNCATED_NORMAL, BETA, STUDENT_T, LAPLACE, CAUCHY, LOGISTIC_DIST, VON_MISES,
)  # fmt: skip
