"""Procedures of the reference interpreter, written apart from the package so that both can be wrong only separately.

Random procedures pair a simulator with a log density. Makers keep the plain list of their applications' values and
compute predictive densities from it afresh.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy import special, stats

Rng = np.random.Generator
IMPOSSIBLE = -math.inf


@dataclass(frozen=True, slots=True)
class Random:
    """A random procedure."""

    simulate: Callable[..., Any]
    log_density: Callable[..., float]


@dataclass(frozen=True, slots=True)
class Maker:
    """A procedure whose application makes a `Made`."""

    predictive: Callable[..., Any]


@dataclass(eq=False, slots=True)
class Made:
    """An exchangeable random procedure: its predictive distribution given `values`, the applications so far.

    Where applications are given inputs, `values` holds tuples (value, *inputs).
    """

    predictive: Callable[..., tuple[Callable[[Rng], Any], Callable[[Any], float]]]
    parameters: tuple[Any, ...]
    values: list[Any]


@dataclass(frozen=True, slots=True)
class UncollapsedMaker:
    """A maker that draws its parameter, from `prior(*arguments)`, and makes the random procedure `likelihood`."""

    prior: Callable[..., tuple[Random, tuple[Any, ...]]]
    likelihood: Random


def frozen(log_pdf: Callable[..., Any]) -> Callable[..., float]:
    return lambda *arguments: float(log_pdf(*arguments))


def normal_log_density(x: float, mean: float, sd: float) -> float:
    return -0.5 * ((x - mean) / sd) ** 2 - math.log(sd) - 0.9189385332046727


def bernoulli_log_density(x: Any, p: float = 0.5) -> float:
    chance = p if x == 1 else 1 - p if x == 0 else 0.0
    return math.log(chance) if chance > 0 else IMPOSSIBLE


def categorical_log_density(x: Any, p: Any, values: Any = None) -> float:
    outcomes = range(len(p)) if values is None else values
    chance = sum(q for q, outcome in zip(p, outcomes, strict=True) if outcome == x)
    return math.log(chance) if chance > 0 else IMPOSSIBLE


def categorical_simulate(rng: Rng, p: Any, values: Any = None) -> Any:
    index = int(rng.choice(len(p), p=np.asarray(p, dtype=float)))
    return index if values is None else values[index]


def shares_of(p: Any, given: Any) -> tuple[Any, Any]:
    """Probabilities, of weights too where a last word says so, and the list of values, if there is one."""
    values = given[0] if given and isinstance(given[0], tuple) else None
    return np.asarray(p, dtype=float) / sum(map(float, p)), values


def range_log_density(x: float, low: float, high: float) -> float:
    return -math.log(high - low) if low <= x < high else IMPOSSIBLE


def gamma_log_density(x: float, shape: float, rate: float) -> float:
    if x <= 0:
        return IMPOSSIBLE
    return shape * math.log(rate) - math.lgamma(shape) + (shape - 1) * math.log(x) - rate * x


def beta_log_density(x: float, a: float, b: float) -> float:
    if not 0 < x < 1:
        return IMPOSSIBLE
    return (a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - float(special.betaln(a, b))


def student_t_log_density(x: float, df: float, loc: float = 0.0, scale: float = 1.0) -> float:
    half, z = 0.5 * (df + 1.0), (x - loc) / scale
    constant = math.lgamma(half) - math.lgamma(0.5 * df) - 0.5 * math.log(math.pi * df) - math.log(scale)
    return constant - half * math.log1p(z * z / df)


def logistic_log_density(x: float, loc: float, scale: float) -> float:
    z = abs(x - loc) / scale
    return -z - math.log(scale) - 2.0 * math.log1p(math.exp(-z))


def half_normal_log_density(x: float, sd: float) -> float:
    return normal_log_density(x, 0.0, sd) + math.log(2.0) if x >= 0 else IMPOSSIBLE


def lognormal_log_density(x: float, mu: float, sigma: float) -> float:
    return normal_log_density(math.log(x), mu, sigma) - math.log(x) if x > 0 else IMPOSSIBLE


def inv_gamma_log_density(x: float, shape: float, scale: float) -> float:
    if x <= 0:
        return IMPOSSIBLE
    return shape * math.log(scale) - math.lgamma(shape) - (shape + 1.0) * math.log(x) - scale / x


def neg_binomial_log_density(x: float, r: float, p: float) -> float:
    if x < 0:
        return IMPOSSIBLE
    return math.lgamma(x + r) - math.lgamma(r) - math.lgamma(x + 1.0) + r * math.log(p) + x * math.log1p(-p)


def multivariate_normal_log_density(x: Any, mean: Any, covariance: Any) -> float:
    covariance, away = np.asarray(covariance), np.asarray(x) - np.asarray(mean)
    square = float(away @ np.linalg.solve(covariance, away))
    return -0.5 * (square + math.log(np.linalg.det(covariance)) + len(away) * math.log(2.0 * math.pi))


def ordered_simulate(rng: Rng, score: float, cuts: Any) -> int:
    return int(np.sum(rng.logistic(score) > np.asarray(cuts)))


def ordered_log_density(x: Any, score: float, cuts: Any) -> float:
    reached = [0.0, *special.expit(np.asarray(cuts, dtype=float) - score), 1.0]
    return math.log(reached[int(x) + 1] - reached[int(x)])


def lkj_simulate(rng: Rng, n: float, eta: float) -> np.ndarray:
    """Of two rows only."""
    correlation = 2 * rng.beta(eta, eta) - 1
    return np.array([[1.0, 0.0], [correlation, math.sqrt(1 - correlation**2)]])


def lkj_log_density(x: Any, n: float, eta: float) -> float:
    return float(stats.beta.logpdf((x[1][0] + 1) / 2, eta, eta)) - math.log(2)


def truncated(mean: float, sd: float, lo: float, hi: float) -> tuple[float, ...]:
    """As scipy has them. Its frozen distributions take a millisecond to make."""
    return (lo - mean) / sd, (hi - mean) / sd, mean, sd


def items_of(arguments: Sequence[Any]) -> list[tuple[Any, ...]] | None:
    """The arguments of each item, where vectors are among them."""
    sizes = {len(argument) for argument in arguments if isinstance(argument, (np.ndarray, tuple))}
    if not sizes:
        return None
    (size,) = sizes
    spread = [argument if isinstance(argument, (np.ndarray, tuple)) else (argument,) * size for argument in arguments]
    return list(zip(*spread, strict=True))


def of_vectors(one: Random) -> Random:
    """A distribution of numbers whose parameters may be vectors: one independent value for each item."""

    def simulate(rng: Rng, *arguments: Any) -> Any:
        items = items_of(arguments)
        if items is None:
            return one.simulate(rng, *arguments)
        return np.array([float(one.simulate(rng, *item)) for item in items])

    def log_density(x: Any, *arguments: Any) -> float:
        items = items_of(arguments)
        if items is None:
            return one.log_density(x, *arguments)
        return math.fsum(one.log_density(value, *item) for value, item in zip(x, items, strict=True))

    return Random(simulate, log_density)


OF_ARRAYS = (
    "multinomial", "wishart", "inv_wishart", "multivariate_normal", "multivariate_normal_cholesky", "lkj_cholesky",
    "categorical", "weighted_categorical", "softmax_categorical", "uniform_draw", "ordered_logistic", "dirichlet",
    "symmetric_dirichlet",
)  # fmt: skip
"""Procedures whose parameters are vectors, matrices or lists as such."""

flip = Random(lambda rng, p=0.5: bool(rng.random() < p), bernoulli_log_density)

SINGLE: dict[str, Random] = {
    "flip": flip,
    "bernoulli": flip,
    "binomial": Random(lambda rng, n, p: int(rng.binomial(int(n), p)), frozen(stats.binom.logpmf)),
    "poisson": Random(
        lambda rng, rate: int(rng.poisson(rate)),
        lambda x, rate: x * math.log(rate) - rate - math.lgamma(x + 1) if x >= 0 else IMPOSSIBLE,
    ),
    "categorical": Random(
        lambda rng, p, *given: categorical_simulate(rng, *shares_of(p, given)),
        lambda x, p, *given: categorical_log_density(x, *shares_of(p, given)),
    ),
    "bernoulli_logit": Random(
        lambda rng, logit: bool(rng.random() < special.expit(logit)),
        lambda x, logit: bernoulli_log_density(x, float(special.expit(logit))),
    ),
    "geometric": Random(
        lambda rng, p: int(rng.geometric(p)) - 1,
        lambda x, p: x * math.log1p(-p) + math.log(p) if x >= 0 else IMPOSSIBLE,
    ),
    "uniform_discrete": Random(lambda rng, low, high: int(rng.integers(int(low), int(high))), range_log_density),
    "uniform_continuous": Random(lambda rng, low, high: rng.uniform(low, high), range_log_density),
    "normal": Random(lambda rng, mean, sd: rng.normal(mean, sd), normal_log_density),
    "beta": Random(lambda rng, a, b: rng.beta(a, b), beta_log_density),
    "gamma": Random(lambda rng, shape, rate: rng.gamma(shape, 1 / rate), gamma_log_density),
    "expon": Random(lambda rng, rate: rng.exponential(1 / rate), lambda x, rate: gamma_log_density(x, 1.0, rate)),
    "inv_gamma": Random(
        lambda rng, shape, scale: scale / rng.gamma(shape),
        inv_gamma_log_density,
    ),
    "student_t": Random(
        lambda rng, df, loc=0.0, scale=1.0: loc + scale * rng.standard_t(df),
        student_t_log_density,
    ),
    "neg_binomial": Random(lambda rng, r, p: int(rng.negative_binomial(r, p)), neg_binomial_log_density),
    "neg_binomial_mean": Random(
        lambda rng, mu, size: int(rng.poisson(rng.gamma(size, mu / size))),
        lambda x, mu, size: neg_binomial_log_density(x, size, size / (size + mu)),
    ),
    "softmax_categorical": Random(
        lambda rng, scores: int(rng.choice(len(scores), p=special.softmax(scores))),
        lambda x, scores: float(special.log_softmax(scores)[int(x)]),
    ),
    "cauchy": Random(
        lambda rng, loc, scale: loc + scale * rng.standard_cauchy(),
        lambda x, loc, scale: -math.log(math.pi * scale) - math.log1p(((x - loc) / scale) ** 2),
    ),
    "half_cauchy": Random(
        lambda rng, scale: abs(scale * rng.standard_cauchy()),
        lambda x, scale: math.log(2 / (math.pi * scale)) - math.log1p((x / scale) ** 2) if x >= 0 else IMPOSSIBLE,
    ),
    "half_student_t": Random(
        lambda rng, df, scale: abs(scale * rng.standard_t(df)),
        lambda x, df, scale: math.log(2) + float(stats.t.logpdf(x, df, 0, scale)) if x >= 0 else IMPOSSIBLE,
    ),
    "truncated_normal": Random(
        lambda rng, mean, sd, lo, hi: float(stats.truncnorm.rvs(*truncated(mean, sd, lo, hi), random_state=rng)),
        lambda x, mean, sd, lo, hi: float(stats.truncnorm.logpdf(x, *truncated(mean, sd, lo, hi))),
    ),
    "beta_binomial": Random(
        lambda rng, n, a, b: int(rng.binomial(int(n), rng.beta(a, b))), frozen(stats.betabinom.logpmf)
    ),
    "laplace": Random(
        lambda rng, loc, scale: rng.laplace(loc, scale),
        lambda x, loc, scale: -math.log(2 * scale) - abs(x - loc) / scale,
    ),
    "logistic_dist": Random(
        lambda rng, loc, scale: rng.logistic(loc, scale),
        logistic_log_density,
    ),
    "chi_sq": Random(lambda rng, df: rng.chisquare(df), lambda x, df: gamma_log_density(x, df / 2, 0.5)),
    "half_normal": Random(lambda rng, sd: abs(rng.normal(0.0, sd)), half_normal_log_density),
    "lognormal": Random(
        lambda rng, mu, sigma: rng.lognormal(mu, sigma),
        lognormal_log_density,
    ),
    "inv_chi_sq": Random(
        lambda rng, df: 1 / rng.chisquare(df), lambda x, df: float(stats.invgamma.logpdf(x, df / 2, scale=0.5))
    ),
    "weibull": Random(
        lambda rng, shape, scale: scale * rng.weibull(shape),
        lambda x, shape, scale: float(stats.weibull_min.logpdf(x, shape, scale=scale)),
    ),
    "pareto": Random(
        lambda rng, shape, scale: scale * (1 + rng.pareto(shape)),
        lambda x, shape, scale: float(stats.pareto.logpdf(x, shape, scale=scale)),
    ),
    "von_mises": Random(
        lambda rng, mean, k: rng.vonmises(mean, k), lambda x, mean, k: float(stats.vonmises.logpdf(x, k, mean))
    ),
    "multinomial": Random(
        lambda rng, n, p: rng.multinomial(int(n), p), lambda x, n, p: float(stats.multinomial.logpmf(x, n, p))
    ),
    "wishart": Random(
        lambda rng, df, scale: np.atleast_2d(stats.wishart.rvs(df, scale, random_state=rng)),
        frozen(stats.wishart.logpdf),
    ),
    "inv_wishart": Random(
        lambda rng, df, scale: np.atleast_2d(stats.invwishart.rvs(df, scale, random_state=rng)),
        frozen(stats.invwishart.logpdf),
    ),
    "multivariate_normal": Random(
        lambda rng, mean, cov: rng.multivariate_normal(mean, cov), multivariate_normal_log_density
    ),
    "multivariate_normal_cholesky": Random(
        lambda rng, mean, lower: np.asarray(mean) + np.asarray(lower) @ rng.normal(size=len(mean)),
        lambda x, mean, lower: float(
            stats.multivariate_normal.logpdf(x, mean, np.asarray(lower) @ np.transpose(lower))
        ),
    ),
    "lkj_cholesky": Random(lkj_simulate, lkj_log_density),
    "weighted_categorical": Random(
        lambda rng, w, values=None: categorical_simulate(rng, np.asarray(w) / np.sum(w), values),
        lambda x, w, values=None: categorical_log_density(x, np.asarray(w) / np.sum(w), values),
    ),
    "uniform_draw": Random(
        lambda rng, items: items[int(rng.integers(len(items)))],
        lambda x, items: categorical_log_density(x, [1 / len(items)] * len(items), items),
    ),
    "ordered_logistic": Random(ordered_simulate, ordered_log_density),
    "dirichlet": Random(
        lambda rng, a: rng.dirichlet(a), lambda x, a: float(stats.dirichlet.logpdf(np.divide(x, sum(x)), a))
    ),
    "symmetric_dirichlet": Random(
        lambda rng, a, n: rng.dirichlet([a] * int(n)),
        lambda x, a, n: float(stats.dirichlet.logpdf(np.divide(x, sum(x)), [a] * int(n))),
    ),
}


RANDOM = {name: one if name in OF_ARRAYS else of_vectors(one) for name, one in SINGLE.items()}


def discrete(outcomes: list[Any], weights: list[float]) -> tuple[Callable[[Rng], Any], Callable[[Any], float]]:
    """A predictive distribution on listed outcomes."""
    total = math.fsum(weights)

    def simulate(rng: Rng) -> Any:
        return outcomes[int(rng.choice(len(outcomes), p=np.array(weights) / total))]

    def log_density(x: Any) -> float:
        chance = math.fsum(w for outcome, w in zip(outcomes, weights, strict=True) if outcome == x) / total
        return math.log(chance) if chance > 0 else IMPOSSIBLE

    return simulate, log_density


def crp(values: list[Any], alpha: float, discount: float = 0.0) -> Any:
    """Chinese restaurant; a label that nobody has stands for the fresh table."""
    tables = sorted(set(values))
    fresh = next(label for label in range(1, len(values) + 2) if label not in tables)
    weights = [values.count(t) - discount for t in tables] + [alpha + discount * len(tables)]
    simulate, log_density = discrete([*tables, fresh], weights)
    return simulate, lambda x: log_density(x if x in tables else fresh)


def beta_bernoulli(values: list[Any], a: float, b: float) -> Any:
    heads = sum(values)
    return discrete([True, False], [a + heads, b + len(values) - heads])


def sym_dir_mult(values: list[Any], a: float, n: int) -> Any:
    return discrete(list(range(int(n))), [a + values.count(k) for k in range(int(n))])


def dir_mult(values: list[Any], alphas: Any) -> Any:
    return discrete(list(range(len(alphas))), [a + values.count(k) for k, a in enumerate(alphas)])


def gamma_poisson(values: list[Any], shape: float, rate: float) -> Any:
    r, p = shape + sum(values), (rate + len(values)) / (rate + len(values) + 1)
    return lambda rng: int(rng.negative_binomial(r, p)), lambda x: neg_binomial_log_density(x, r, p)


def normal_inv_chi_sq(values: list[Any], mean: float, kappa: float, nu: float, var: float) -> Any:
    for x in values:
        var = (nu * var + kappa / (kappa + 1) * (x - mean) ** 2) / (nu + 1)
        mean = (kappa * mean + x) / (kappa + 1)
        kappa, nu = kappa + 1, nu + 1
    t = nu, mean, math.sqrt(var * (kappa + 1) / kappa)
    return lambda rng: float(stats.t.rvs(*t, random_state=rng)), lambda x: student_t_log_density(x, *t)


def collapsed_multivariate_normal(values: list[Any], m: Any, k: float, v: float, s: Any) -> Any:
    m, s = np.array(m, dtype=float), np.array(s, dtype=float)
    for x in values:
        s = s + k / (k + 1) * np.outer(x - m, x - m)
        m = (k * m + x) / (k + 1)
        k, v = k + 1, v + 1
    df = v - len(m) + 1
    t = stats.multivariate_t(m, s * (k + 1) / (k * df), df)
    return lambda rng: t.rvs(random_state=rng), lambda x: float(t.logpdf(x))


Between = Callable[[float, float], float]
Noisy = tuple[Between, float]
"""A covariance of two applications by their points, and the variance of each one's own noise."""


def smooth(between: Between) -> Noisy:
    return between, 0.0


def matern(amplitude: float, length: float, order: float) -> Noisy:
    """Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, equations 4.14 and 4.17."""
    factors: dict[float, Callable[[float], float]] = {
        0.5: lambda r: 1.0,
        1.5: lambda r: 1 + r,
        2.5: lambda r: 1 + r + r * r / 3,
    }

    def between(a: float, b: float) -> float:
        r = math.sqrt(2 * order) * abs(a - b) / length
        return amplitude**2 * factors[order](r) * math.exp(-r)

    return smooth(between)


def gp_product(*parts: Any) -> Any:
    """Of covariances without noise, or of numbers and means."""
    if not isinstance(parts[0], tuple) and not isinstance(parts[-1], tuple):
        return lambda x: math.prod(mean_at(part, x) for part in parts)
    assert all(noise == 0 for _, noise in parts)
    return smooth(lambda a, b: math.prod(between(a, b) for between, _ in parts))


def gp_sum(*parts: Any) -> Any:
    if not isinstance(parts[0], tuple) and not isinstance(parts[-1], tuple):
        return lambda x: sum(mean_at(part, x) for part in parts)
    return lambda a, b: sum(between(a, b) for between, _ in parts), sum(noise for _, noise in parts)


def mean_at(mean: Any, x: float) -> float:
    """A number is a constant mean."""
    return float(mean(x) if callable(mean) else mean)


def gaussian_process(applications: list[tuple[float, float]], mean: Any, covariance: Noisy, x: float) -> Any:
    between, noise = covariance
    if not noise:
        for value, z in applications:
            if z == x:
                return discrete([value], [1.0])
    places = [z for _, z in applications]
    matrix = np.array([[between(a, b) + noise * (i == j) for j, b in enumerate(places)] for i, a in enumerate(places)])
    cross = np.array([between(x, z) for z in places])
    gain = np.linalg.solve(matrix, cross) if places else cross
    residuals = np.array([value - mean_at(mean, z) for value, z in applications])
    center = mean_at(mean, x) + float(gain @ residuals)
    sd = math.sqrt(between(x, x) + noise - float(gain @ cross))
    return lambda rng: rng.normal(center, sd), lambda value: normal_log_density(value, center, sd)


def lazy_hmm(applications: list[tuple[int, int]], initial: Any, transition: Any, emission: Any, t: int) -> Any:
    outcomes = range(len(emission[0]))
    last = max([t, *(time for _, time in applications)])
    weights = []
    for outcome in outcomes:
        state = np.asarray(initial, dtype=float)
        for now in range(last + 1):
            state = state @ np.asarray(transition) if now else state
            for emitted, time in [*applications, (outcome, t)]:
                state = state * np.asarray(emission)[:, int(emitted)] if time == now else state
        weights.append(float(state.sum()))
    return discrete(list(outcomes), weights)


# the variance and the mean, as one pair
mean_and_variance = Random(
    lambda rng, mean, kappa, nu, var: (v := nu * var / rng.chisquare(nu), rng.normal(mean, math.sqrt(v / kappa))),
    lambda pair, mean, kappa, nu, var: (
        float(stats.invgamma.logpdf(pair[0], nu / 2, scale=nu * var / 2))
        + normal_log_density(pair[1], mean, math.sqrt(pair[0] / kappa))
    ),
)
normal_of_pair = Random(
    lambda rng, pair: rng.normal(pair[1], math.sqrt(pair[0])),
    lambda x, pair: normal_log_density(x, pair[1], math.sqrt(pair[0])),
)

MAKERS: dict[str, Maker | UncollapsedMaker] = {
    "make_gp": Maker(gaussian_process),
    "make_lazy_hmm": Maker(lazy_hmm),
    "make_crp": Maker(crp),
    "make_beta_bernoulli": Maker(beta_bernoulli),
    "make_sym_dir_mult": Maker(sym_dir_mult),
    "make_dir_mult": Maker(dir_mult),
    "make_gamma_poisson": Maker(gamma_poisson),
    "make_normal_inv_chi_sq": Maker(normal_inv_chi_sq),
    "make_collapsed_multivariate_normal": Maker(collapsed_multivariate_normal),
    "make_uc_beta_bernoulli": UncollapsedMaker(lambda a, b: (RANDOM["beta"], (a, b)), flip),
    "make_uc_sym_dir_mult": UncollapsedMaker(
        lambda a, n: (RANDOM["symmetric_dirichlet"], (a, n)), RANDOM["categorical"]
    ),
    "make_uc_gamma_poisson": UncollapsedMaker(lambda shape, rate: (RANDOM["gamma"], (shape, rate)), RANDOM["poisson"]),
    "make_uc_dir_mult": UncollapsedMaker(lambda alphas: (RANDOM["dirichlet"], (alphas,)), RANDOM["categorical"]),
    "make_uc_normal_inv_chi_sq": UncollapsedMaker(lambda *prior: (mean_and_variance, prior), normal_of_pair),
}

DETERMINISTIC: dict[str, Callable[..., Any]] = {
    "+": lambda *xs: reduce(operator.add, xs),
    "*": lambda *xs: reduce(operator.mul, xs),
    "-": lambda x, *ys: reduce(operator.sub, ys, x) if ys else -x,
    "/": operator.truediv,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "abs": abs,
    "min": min,
    "max": max,
    "pow": operator.pow,
    "floor": math.floor,
    "sin": math.sin,
    "cos": math.cos,
    "logistic": special.expit,
    "not": operator.not_,
    "vector": lambda *xs: np.array(xs, dtype=float),
    "list": lambda *xs: tuple(xs),
    "pair": lambda x, xs: (x, *xs),
    "first": lambda xs: xs[0],
    "rest": lambda xs: xs[1:],
    "is_empty": lambda xs: len(xs) == 0,
    "size": len,
    "lookup": lambda xs, i: xs[int(i)],
    "dot": lambda a, b: float(np.dot(a, b)),
    "gp_squared_exponential": lambda amplitude, length: smooth(
        lambda a, b: amplitude**2 * math.exp(-0.5 * ((a - b) / length) ** 2)
    ),
    "gp_matern": matern,
    "gp_rational_quadratic": lambda amplitude, length, mixture: smooth(
        lambda a, b: amplitude**2 * (1 + (a - b) ** 2 / (2 * mixture * length**2)) ** -mixture
    ),
    "gp_periodic": lambda amplitude, length, period: smooth(
        lambda a, b: amplitude**2 * math.exp(-2 * math.sin(math.pi * (a - b) / period) ** 2 / length**2)
    ),
    "gp_linear": lambda amplitude, center=0.0: smooth(lambda a, b: amplitude**2 * (a - center) * (b - center)),
    "gp_constant": lambda amplitude: smooth(lambda a, b: amplitude**2),
    "gp_noise": lambda sd: (lambda a, b: 0.0, sd**2),
    "gp_linear_mean": lambda slope, intercept=0.0: lambda x: intercept + slope * x,
    "gp_sum": gp_sum,
    "gp_product": gp_product,
}
