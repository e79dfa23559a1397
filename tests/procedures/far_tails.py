"""Log densities with 60 digits, from the textbook formulas, at the floats given: what the records are compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import mp, mpf

mp.dps = 60


def log_gamma(x: Any) -> Any:
    return mp.loggamma(x)


def _times_log(k: Any, p: Any) -> Any:
    return k * mp.log(p) if k else mpf(0)


def _gamma(x: Any, shape: Any, rate: Any) -> Any:
    return shape * mp.log(rate) + _times_log(shape - 1, x) - rate * x - log_gamma(shape)


def _inv_gamma(x: Any, shape: Any, scale: Any) -> Any:
    return shape * mp.log(scale) - (shape + 1) * mp.log(x) - scale / x - log_gamma(shape)


def _student_t(x: Any, df: Any, loc: Any, scale: Any) -> Any:
    z = (x - loc) / scale
    constant = log_gamma((df + 1) / 2) - log_gamma(df / 2) - mp.log(df * mp.pi) / 2 - mp.log(scale)
    return constant - (df + 1) / 2 * mp.log1p(z * z / df)


def _truncated_normal(x: Any, mean: Any, sd: Any, lo: Any, hi: Any) -> Any:
    low, high = (lo - mean) / sd, (hi - mean) / sd
    if low + high > 0:
        low, high = -high, -low
    mass = (mp.erfc(-high / mp.sqrt(2)) - mp.erfc(-low / mp.sqrt(2))) / 2
    return -(((x - mean) / sd) ** 2) / 2 - mp.log(sd) - mp.log(2 * mp.pi) / 2 - mp.log(mass)


def _log_beta(a: Any, b: Any) -> Any:
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


def _logistic(x: Any, loc: Any, scale: Any) -> Any:
    z = -abs(x - loc) / scale
    return z - mp.log(scale) - 2 * mp.log1p(mp.exp(z))


def _log_bessel(concentration: Any) -> Any:
    if concentration < 1e4:
        return mp.log(mp.besseli(0, concentration))
    # the asymptotic series, whose terms fall by a factor of 1e4 at least
    total, term = mpf(1), mpf(1)
    for k in range(1, 12):
        term *= mpf((2 * k - 1) ** 2) / (k * 8 * concentration)
        total += term
    return concentration - mp.log(2 * mp.pi * concentration) / 2 + mp.log(total)


def _log_choices(n: Any, k: Any) -> Any:
    return log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1)


EXACT: dict[str, Callable[..., Any]] = {
    "normal": lambda x, mean, sd: -(((x - mean) / sd) ** 2) / 2 - mp.log(sd) - mp.log(2 * mp.pi) / 2,
    "uniform_continuous": lambda x, lo, hi: -mp.log(hi - lo),
    "beta": lambda x, a, b: (
        _times_log(a - 1, x) + _times_log(b - 1, 1 - x) + log_gamma(a + b) - log_gamma(a) - log_gamma(b)
    ),
    "gamma": _gamma,
    "inv_gamma": _inv_gamma,
    "expon": lambda x, rate: mp.log(rate) - rate * x,
    "chi_sq": lambda x, df: _gamma(x, df / 2, mpf(1) / 2),
    "inv_chi_sq": lambda x, df: _inv_gamma(x, df / 2, mpf(1) / 2),
    "student_t": _student_t,
    "cauchy": lambda x, loc, scale: -mp.log(mp.pi * scale) - mp.log1p(((x - loc) / scale) ** 2),
    "half_cauchy": lambda x, scale: mp.log(2 / (mp.pi * scale)) - mp.log1p((x / scale) ** 2),
    "half_normal": lambda x, sd: mp.log(2 / mp.pi) / 2 - mp.log(sd) - (x / sd) ** 2 / 2,
    "half_student_t": lambda x, df, scale: mp.log(2) + _student_t(x, df, mpf(0), scale),
    "truncated_normal": _truncated_normal,
    "laplace": lambda x, loc, scale: -abs(x - loc) / scale - mp.log(2 * scale),
    "lognormal": lambda x, mu, sigma: (
        -(((mp.log(x) - mu) / sigma) ** 2) / 2 - mp.log(sigma) - mp.log(x) - mp.log(2 * mp.pi) / 2
    ),
    "logistic_dist": _logistic,
    "weibull": lambda x, shape, scale: mp.log(shape / scale) + _times_log(shape - 1, x / scale) - (x / scale) ** shape,
    "pareto": lambda x, shape, scale: mp.log(shape) + shape * mp.log(scale) - (shape + 1) * mp.log(x),
    "von_mises": lambda x, mean, concentration: (
        concentration * mp.cos(x - mean) - mp.log(2 * mp.pi) - _log_bessel(concentration)
    ),
    "bernoulli": lambda x, p: mp.log(p) if x else mp.log1p(-p),
    "bernoulli_logit": lambda x, s: -mp.log1p(mp.exp(-s if x else s)) if abs(s) < 1e6 else min(s if x else -s, mpf(0)),
    "binomial": lambda k, n, p: _log_choices(n, k) + _times_log(k, p) + (n - k) * mp.log1p(-p),
    "beta_binomial": lambda k, n, a, b: (
        _log_choices(n, k) + _log_beta(k + a, n - k + b) - _log_beta(a, b) if a and b else mpf(0)
    ),
    "poisson": lambda k, rate: _times_log(k, rate) - rate - log_gamma(k + 1),
    "geometric": lambda k, p: mp.log(p) + k * mp.log1p(-p),
    "neg_binomial": lambda k, r, p: (
        log_gamma(k + r) - log_gamma(k + 1) - log_gamma(r) + r * mp.log(p) + k * mp.log1p(-p) if r else mpf(0)
    ),
    "neg_binomial_mean": lambda k, mu, size: (
        log_gamma(k + size)
        - log_gamma(k + 1)
        - log_gamma(size)
        + size * mp.log(size / (size + mu))
        + _times_log(k, mu / (size + mu))
    ),
    "uniform_discrete": lambda k, lo, hi: -mp.log(hi - lo),
}


def _dirichlet(x: Any, alphas: Any) -> Any:
    exact = [mpf(float(a)) for a in alphas]
    constant = log_gamma(mp.fsum(exact)) - mp.fsum(map(log_gamma, exact))
    return constant + mp.fsum((a - 1) * mp.log(mpf(float(part))) for a, part in zip(exact, x, strict=True))


def _multinomial(counts: Any, n: Any, probs: Any) -> Any:
    terms = (
        _times_log(mpf(float(k)), mpf(float(p))) - log_gamma(mpf(float(k)) + 1)
        for k, p in zip(counts, probs, strict=True)
    )
    return log_gamma(mpf(n) + 1) + mp.fsum(terms)


def _multivariate_normal(x: Any, mean: Any, cov: Any) -> Any:
    size = len(mean)
    matrix = mp.matrix(cov.tolist())
    away = mp.matrix([mpf(float(a)) - mpf(float(b)) for a, b in zip(x, mean, strict=True)])
    square = (away.T * mp.lu_solve(matrix, away))[0]
    return -(square + mp.log(mp.det(matrix)) + size * mp.log(2 * mp.pi)) / 2


def _log_multigamma(a: Any, size: int) -> Any:
    return mpf(size * (size - 1)) / 4 * mp.log(mp.pi) + mp.fsum(log_gamma(a - mpf(i) / 2) for i in range(size))


def _wishart(x: Any, df: Any, scale: Any) -> Any:
    size, v, s = len(scale), mp.matrix(x.tolist()), mp.matrix(scale.tolist())
    trace = mp.fsum((mp.lu_solve(s, v[:, i]))[i] for i in range(size))
    log_det = (mpf(df) - size - 1) / 2 * mp.log(mp.det(v)) - mpf(df) / 2 * mp.log(mp.det(s))
    return log_det - trace / 2 - mpf(df) * size / 2 * mp.log(2) - _log_multigamma(mpf(df) / 2, size)


def _inv_wishart(x: Any, df: Any, scale: Any) -> Any:
    size, v, s = len(scale), mp.matrix(x.tolist()), mp.matrix(scale.tolist())
    trace = mp.fsum((mp.lu_solve(v, s[:, i]))[i] for i in range(size))
    log_det = mpf(df) / 2 * mp.log(mp.det(s)) - (mpf(df) + size + 1) / 2 * mp.log(mp.det(v))
    return log_det - trace / 2 - mpf(df) * size / 2 * mp.log(2) - _log_multigamma(mpf(df) / 2, size)


def _covariances(rng: np.random.Generator) -> list[np.ndarray]:
    """Of condition up to 1e8, in units of 1e-6 to 1e6."""
    found = []
    for size, unit in ((1, 1e-6), (2, 1.0), (3, 1e6), (4, 1e-3)):
        turned, _ = np.linalg.qr(rng.normal(size=(size, size)))
        spread = turned @ np.diag(np.logspace(0, -4 if size > 2 else -2, size)) @ turned.T
        found.append(unit * (spread + spread.T) / 2)
        found.append(np.diag(np.logspace(-4, 4, size)))
    return found


VECTORS: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator], list[tuple[Any, ...]]]]] = {
    "dirichlet": (_dirichlet, lambda rng: [(10.0 ** rng.uniform(-6, 6, size),) for size in (2, 3, 7) * 8]),
    "symmetric_dirichlet": (
        lambda x, a, n: _dirichlet(x, [a] * int(n)),
        lambda rng: [(a, n) for a in (1e-6, 1e-3, 1.0, 1e3, 1e6) for n in (2, 5, 9)],
    ),
    "multinomial": (
        _multinomial, lambda rng: [(n, rng.dirichlet(np.full(4, 0.3))) for n in (0, 3, 17, 1000, 10**6) * 4]
    ),
    "multivariate_normal": (
        _multivariate_normal,
        lambda rng: [(rng.normal(size=len(cov)) * 10.0 ** rng.integers(-6, 6), cov) for cov in _covariances(rng)],
    ),
    "wishart": (_wishart, lambda rng: [(df, cov) for cov in _covariances(rng) for df in (4.5, 1e3, 1e6)]),
    "inv_wishart": (_inv_wishart, lambda rng: [(df, cov) for cov in _covariances(rng) for df in (4.5, 1e3, 1e6)]),
}  # fmt: skip
"""(formula, arguments at the corners)"""
