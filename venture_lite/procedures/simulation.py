"""Many draws of one distribution in one call, with arguments that differ from draw to draw.

`simulate` of a record draws one value; these draw a column, with the same care at the ends of the floats. A
distribution that is not listed is drawn one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.distributions import categorical, continuous, discrete, positive
from venture_lite.procedures.distributions.discrete import LARGEST_COUNT
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import LARGEST, SMALLEST

Rng = np.random.Generator

DrawColumn = Callable[..., np.ndarray]
"""(rng, count, *arguments) -> (count,); each argument, checked already, is a number or an array (count,)."""


def _finite(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(values, -LARGEST, LARGEST))


def _inside(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(values, SMALLEST, LARGEST))


def _bernoulli_logit(rng: Rng, count: int, logit: Any) -> np.ndarray:
    # P(log u - log(1 - u) < logit) is the logistic function of the logit
    u = rng.random(count)
    return np.asarray(np.log(u) - np.log1p(-u) < logit)


def _student_t(rng: Rng, count: int, df: Any, loc: Any, scale: Any) -> np.ndarray:
    return _finite(loc + scale * np.clip(rng.standard_t(df, count), -1e300, 1e300))


def _gamma(rng: Rng, count: int, shape: Any, rate: Any) -> np.ndarray:
    return _inside(rng.standard_gamma(shape, count) / rate)


def _inv_gamma(rng: Rng, count: int, shape: Any, scale: Any) -> np.ndarray:
    return _inside(scale / _inside(rng.standard_gamma(shape, count)))


def _beta(rng: Rng, count: int, a: Any, b: Any) -> np.ndarray:
    return np.asarray(np.clip(rng.beta(a, b, count), SMALLEST, np.nextafter(1.0, 0.0)))


def _uniform(rng: Rng, count: int, lo: Any, hi: Any) -> np.ndarray:
    if not np.all(lo < hi):
        raise RowByRow
    found = lo + (hi - lo) * rng.random(count)
    return np.asarray(np.clip(found, np.nextafter(lo, hi), np.nextafter(hi, lo)))


def _uniform_discrete(rng: Rng, count: int, lo: Any, hi: Any) -> np.ndarray:
    if not (np.all(lo < hi) and np.all(lo >= -LARGEST_COUNT) and np.all(hi <= LARGEST_COUNT)):
        raise RowByRow
    return rng.integers(np.asarray(lo, np.int64), np.asarray(hi, np.int64), count)


def _binomial(rng: Rng, count: int, n: Any, p: Any) -> np.ndarray:
    if np.any(n > LARGEST_COUNT):
        raise RowByRow
    return rng.binomial(np.asarray(n, np.int64), p, count)


def _poisson(rng: Rng, count: int, rate: Any) -> np.ndarray:
    if np.any(rate >= 1e15):
        raise RowByRow
    return rng.poisson(rate, count)


def _categorical(rng: Rng, count: int, probs: Any, values: Any) -> np.ndarray:
    masses = np.asarray(probs)
    if values is not None or masses.dtype.kind != "f":
        raise RowByRow
    reached = masses.cumsum(axis=-1)
    # the last possible one is taken where rounding leaves something over
    last = masses.shape[-1] - 1 - np.argmax(masses[..., ::-1] > 0.0, axis=-1)
    found = (reached <= rng.random((count, 1))).sum(axis=-1)
    return np.asarray(np.minimum(found, last))


def _quiet(draw: DrawColumn) -> DrawColumn:
    """Overflow is clipped, not warned of."""

    def quiet(rng: Rng, count: int, *arguments: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return draw(rng, count, *arguments)

    return quiet


_LISTED: dict[Random, DrawColumn] = {
    continuous.NORMAL: lambda rng, count, mean, sd: _finite(mean + sd * rng.standard_normal(count)),
    continuous.STUDENT_T: _student_t,
    continuous.LAPLACE: lambda rng, count, loc, scale: _finite(rng.laplace(loc, scale, count)),
    continuous.CAUCHY: lambda rng, count, loc, scale: _finite(loc + scale * rng.standard_cauchy(count)),
    continuous.LOGISTIC_DIST: lambda rng, count, loc, scale: _finite(rng.logistic(loc, scale, count)),
    positive.GAMMA: _gamma,
    positive.INV_GAMMA: _inv_gamma,
    positive.EXPON: lambda rng, count, rate: _inside(rng.standard_exponential(count) / rate),
    positive.HALF_NORMAL: lambda rng, count, sd: _inside(sd * np.abs(rng.standard_normal(count))),
    positive.LOGNORMAL: lambda rng, count, mu, sigma: _inside(np.exp(mu + sigma * rng.standard_normal(count))),
    continuous.UNIFORM_CONTINUOUS: _uniform,
    continuous.BETA: _beta,
    categorical.CATEGORICAL: _categorical,
    discrete.UNIFORM_DISCRETE: _uniform_discrete,
    discrete.BINOMIAL: _binomial,
    discrete.POISSON: _poisson,
    discrete.BERNOULLI: lambda rng, count, p: rng.random(count) < p,
    discrete.FLIP: lambda rng, count, p: rng.random(count) < p,
    discrete.BERNOULLI_LOGIT: _bernoulli_logit,
}

DRAWS: dict[Random, DrawColumn] = {record: _quiet(draw) for record, draw in _LISTED.items()}
