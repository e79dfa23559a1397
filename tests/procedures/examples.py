"""One entry for each record of the registry: what the property tests call it with. A record without an entry fails."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from venture_lite.procedures.functions.covariances import Covariance, Mean
from venture_lite.values import Dictionary, Distribution, Symbol, freeze


def vector(*entries: float) -> np.ndarray:
    return freeze(np.array(entries, dtype=np.float64))


def matrix(*rows: tuple[float, ...]) -> np.ndarray:
    return freeze(np.array(rows, dtype=np.float64))


@dataclass(frozen=True)
class RandomExample:
    # argument tuples, each complete
    arguments: list[tuple[Any, ...]]
    # (value, *arguments) -> log density, from scipy
    reference: Callable[..., Any] | None = None
    # values outside the support or of the wrong kind
    outside: tuple[Any, ...] = ("text", Symbol("red"), math.nan)
    # values are vectors or matrices, continuous
    is_array: bool = False


DRAWN = Distribution([(Symbol("red"), math.log(2.0)), ("a", math.log(5.0)), ("a", 0.0)])
CORRELATED = matrix((2.0, 0.3), (0.3, 0.5))
WISHARTS: list[tuple[Any, ...]] = [
    (1.5, matrix((2.0,))), (3.5, matrix((1.0, 0.0), (0.0, 1.0))), (9, ((2, 0.3), (0.3, 0.5))),
]  # fmt: skip
NOT_POSITIVE_DEFINITE = (
    "t", 1.0, vector(1, 2), matrix((1, 2), (2, 1)), matrix((1, 0.5), (0.25, 1)), freeze(np.eye(3)),
    matrix((math.nan, 0), (0, 1)), ((1, 0), (0,)),
)  # fmt: skip

NOT_CORRELATIONS = (
    "t", 1.0, vector(1, 2), matrix((1, 0.5), (0, 1)), matrix((2, 0), (0, 1)), freeze(np.eye(5)),
    matrix((1, 0), (0.6, -0.8)), matrix((1, 0), (0.6, 0.7)), ((1, 0), (0,)),
)  # fmt: skip


def log_lkj(lower: Any, n: int, eta: float) -> float:
    """Equation 16 of Lewandowski, Kurowicka and Joe 2009, and the Jacobian of the correlations by the factor."""
    rows = [(n - k, eta + 0.5 * (n - k - 1)) for k in range(1, int(n))]
    constant = sum((2 * eta - 2 + m) * m * math.log(2) + m * special.betaln(a, a) for m, a in rows)
    roots = np.log(np.diag(lower))
    return float(2 * (eta - 1) * roots.sum() + np.arange(n - 1, -1, -1) @ roots - constant)


def beta_binomial_logpmf(k: Any, n: Any, a: Any, b: Any) -> Any:
    """That of scipy knows no parameter of 0."""
    return stats.betabinom.logpmf(k, n, a, b) if a and b else 0.0 if k == (n if a else 0) else -math.inf


def neg_binomial_logpmf(k: Any, r: Any, p: Any) -> Any:
    """That of scipy knows no r of 0."""
    return stats.nbinom.logpmf(k, r, p) if r else 0.0 if k == 0 else -math.inf


RANDOM: dict[str, RandomExample] = {
    "flip": RandomExample([(0.5,), (0.1,), (1.0,), (0,)], lambda x, p: stats.bernoulli.logpmf(x, p), (2, 0.5, "t")),
    "bernoulli": RandomExample(
        [(0.5,), (0.9,), (0.0,)], lambda x, p: stats.bernoulli.logpmf(x, p), (-1, 0.5, math.nan)
    ),
    "bernoulli_logit": RandomExample([(0.0,), (3.5,), (-2,), (-40.0,), (800.0,)], None, (2, 0.5, "t", math.nan)),
    "binomial": RandomExample([(10, 0.3), (4.0, 1.0), (3, 0.0), (0, 0.5)], stats.binom.logpmf, (-1, 11, 2.5, "t")),
    "beta_binomial": RandomExample(
        [(10, 2, 0.5), (4.0, 0.2, 30.0), (0, 1, 1), (3, 0, 2.5), (3, 1.5, 0.0)],
        beta_binomial_logpmf,
        (-1, 11, 2.5, "t"),
    ),
    "poisson": RandomExample([(0.3,), (4,), (30.5,), (0,)], stats.poisson.logpmf, (-1, 2.5, math.inf, math.nan, "t")),
    "geometric": RandomExample([(0.3,), (0.9,), (1,)], lambda x, p: stats.geom.logpmf(x + 1, p), (-1, 2.5, "t")),
    "neg_binomial": RandomExample(
        [(3, 0.4), (0.3, 0.2), (40.5, 0.9), (2, 1), (0, 0.3)], neg_binomial_logpmf, (-1, 2.5, math.inf, math.nan, "t")
    ),
    "neg_binomial_mean": RandomExample(
        [(4.5, 3), (0.3, 0.2), (40.5, 9.0), (2, 1), (0, 2.5)],
        lambda k, mu, size: stats.nbinom.logpmf(k, size, size / (size + mu)),
        (-1, 2.5, math.inf, math.nan, "t"),
    ),
    "uniform_discrete": RandomExample([(0, 5), (-3, 4.0), (2, 3)], stats.randint.logpmf, (-4, 7, 2.5, math.nan, "t")),
    "categorical": RandomExample(
        [
            (vector(0.2, 0.0, 0.8), None),
            ((0.25, 0.75), None),
            ((0.5, 0.3, 0.2), (Symbol("a"), Symbol("b"), Symbol("a"))),
            (vector(0.5, 0.25, 0.25), (1, True, 2.5)),
        ],
        outside=(-1, 3, 0.5, "a", math.nan),
    ),
    "weighted_categorical": RandomExample(
        [(vector(2, 0.0, 0.5), None), ((3, 1), None), ((5e300, 3e300, 2e300), (Symbol("a"), Symbol("b"), Symbol("a")))],
        outside=(-1, 3, 0.5, "a", math.nan),
    ),
    "uniform_draw": RandomExample([((1, 2, 3.5),), ((Symbol("a"), "a", Symbol("a")),)], outside=(7, "b", math.nan)),
    "ordered_logistic": RandomExample(
        [(0.5, vector(-1, 0.5, 2)), (-3, (0,)), (2.0, (-1, 1.5))],
        lambda k, s, cuts: math.log(np.diff(special.expit([-math.inf, *(np.array(cuts) - s), math.inf]))[k]),
        outside=(-1, 4, 0.5, "a", math.nan),
    ),
    "draw": RandomExample(
        [(DRAWN,), (Distribution([(2, -800.0), (3.5, 0.0), (True, -1.0)]),)], outside=(7, "b", math.nan)
    ),
    "softmax_categorical": RandomExample(
        [(vector(0, 1, -2),), ((0.5, 3, -0.25),), (vector(-40, 700, 699),)],
        lambda x, scores: special.log_softmax(scores)[x],
        outside=(-1, 3, 0.5, "a", math.nan),
    ),
    "normal": RandomExample([(0, 1), (-3.0, 0.25), (100.0, 20.0)], stats.norm.logpdf),
    "uniform_continuous": RandomExample(
        [(0, 1), (-3.0, 5.5)], lambda x, a, b: stats.uniform.logpdf(x, a, b - a), (-4, 6, "t")
    ),
    "beta": RandomExample([(1, 1), (0.5, 2.0), (20.0, 3.5)], stats.beta.logpdf, (-0.1, 1.1, math.nan, "t")),
    "gamma": RandomExample(
        [(1, 1), (0.3, 2.0), (50.0, 0.1)], lambda x, k, r: stats.gamma.logpdf(x, k, scale=1 / r), (-1, math.inf, "t")
    ),
    "inv_gamma": RandomExample(
        [(1, 1), (0.7, 2.0), (30.0, 3)], lambda x, k, s: stats.invgamma.logpdf(x, k, scale=s), (-1, 0, "t", math.nan)
    ),
    "expon": RandomExample([(1,), (0.01,)], lambda x, r: stats.expon.logpdf(x, scale=1 / r), (-1, math.inf, "t")),
    "student_t": RandomExample([(1, 0.0, 1.0), (7.5, -2, 3.0)], stats.t.logpdf),
    "laplace": RandomExample([(0, 1), (-2.0, 3.0)], stats.laplace.logpdf),
    "cauchy": RandomExample([(0, 1), (-2.0, 3.0)], stats.cauchy.logpdf),
    "logistic_dist": RandomExample([(0, 1), (-2.0, 3.0)], stats.logistic.logpdf),
    "von_mises": RandomExample(
        [(0, 1), (2.5, 4.0), (-20, 0), (3.0, 300.0)], lambda x, m, k: stats.vonmises.logpdf(x, k, m), (-3.2, 4, "t")
    ),
    "chi_sq": RandomExample([(1,), (0.6,), (30.5,)], stats.chi2.logpdf, (-1, math.inf, "t", math.nan)),
    "inv_chi_sq": RandomExample(
        [(1,), (2.6,), (30.5,)], lambda x, df: stats.invgamma.logpdf(x, df / 2, scale=0.5), (-1, 0, "t", math.nan)
    ),
    "half_normal": RandomExample(
        [(1,), (0.02,)], lambda x, sd: stats.halfnorm.logpdf(x, scale=sd), (-1, math.inf, "t")
    ),
    "half_cauchy": RandomExample([(1,), (50.0,)], lambda x, s: stats.halfcauchy.logpdf(x, scale=s), (-1, "t")),
    "half_student_t": RandomExample(
        [(3, 1), (0.6, 20.0)], lambda x, df, s: math.log(2) + stats.t.logpdf(x, df, scale=s), (-1, "t", math.nan)
    ),
    "truncated_normal": RandomExample(
        [(0, 1, -1, 2.5), (3.0, 0.5, -2.0, 0.5), (-1.0, 0.25, 0.5, 4.0)],
        lambda x, m, s, a, b: stats.truncnorm.logpdf(x, (a - m) / s, (b - m) / s, m, s),
        (-4, 6, "t", math.nan),
    ),
    "lognormal": RandomExample(
        [(0, 1), (-3.0, 0.25), (2, 4.0)], lambda x, m, s: stats.lognorm.logpdf(x, s, scale=math.exp(m)), (-1, 0, "t")
    ),
    "weibull": RandomExample(
        [(1, 1), (0.4, 2.0), (7.5, 30)], lambda x, k, s: stats.weibull_min.logpdf(x, k, scale=s), (-1, math.inf, "t")
    ),
    "pareto": RandomExample(
        [(1, 1), (0.5, 3.0), (20, 0.25)], lambda x, k, s: stats.pareto.logpdf(x, k, scale=s), (-1, 0.2, "t", math.nan)
    ),
    "multinomial": RandomExample(
        [(4, vector(0.2, 0.5, 0.3)), (3, (0.5, 0.0, 0.5)), (0, vector(0.25, 0.25, 0.5)), (7, vector(0, 1, 0))],
        lambda x, n, p: stats.multinomial.logpmf(x, n, p),
        outside=(
            "t",
            3,
            vector(1, 2),
            vector(-1, 2, 3),
            vector(2.5, 0.5, 1),
            vector(9, 9, 9),
            (1, "t", 2),
            vector(math.nan, 1, 2),
            vector(math.inf, 0, 0),
        ),
    ),
    "wishart": RandomExample(WISHARTS, stats.wishart.logpdf, NOT_POSITIVE_DEFINITE, is_array=True),
    "inv_wishart": RandomExample(WISHARTS, stats.invwishart.logpdf, NOT_POSITIVE_DEFINITE, is_array=True),
    "multivariate_normal": RandomExample(
        [(vector(0, 0), matrix((1, 0), (0, 1))), (vector(1, -2), CORRELATED), ((0, 1.5), ((1.0, 0.5), (0.5, 1)))],
        lambda x, m, c: stats.multivariate_normal.logpdf(x, m, c),
        outside=("t", 1.0, vector(1, 2, 3), vector(1, math.nan), (1, "t")),
        is_array=True,
    ),
    "multivariate_normal_cholesky": RandomExample(
        [
            (vector(0, 0), matrix((1, 0), (0, 1))),
            (vector(1, -2), matrix((0.5, 0), (-1, 2))),
            ((0, 1.5), ((1.0, 0), (3, 1))),
        ],
        lambda x, m, lower: stats.multivariate_normal.logpdf(x, m, np.array(lower) @ np.array(lower).T),
        outside=("t", 1.0, vector(1, 2, 3), vector(1, math.nan), (1, "t")),
        is_array=True,
    ),
    "lkj_cholesky": RandomExample([(2, 0.8), (2, 3), (3, 1.5), (4.0, 2)], log_lkj, NOT_CORRELATIONS, is_array=True),
    "dirichlet": RandomExample(
        [(vector(1, 1, 1),), ((2.5, 1.5, 4),)],
        lambda x, a: stats.dirichlet.logpdf(x, a),
        outside=("t", 1.0, vector(0.5, 0.5), vector(0.5, 0.6, 0.2), vector(0.5, 0.6, -0.1)),
        is_array=True,
    ),
    "symmetric_dirichlet": RandomExample(
        [(1.5, 3)],
        lambda x, a, n: stats.dirichlet.logpdf(x, [a] * n),
        outside=("t", 1.0, vector(0.5, 0.5)),
        is_array=True,
    ),
}


@dataclass(frozen=True)
class MakerExample:
    arguments: list[tuple[Any, ...]]
    # applications to incorporate
    values: list[Any]
    outside: tuple[Any, ...] = ("text", Symbol("red"), math.nan)


POINTS = [vector(0.5, 1.0), vector(-1.5, 2.0), vector(0.25, -0.75), vector(3.0, 1.25), vector(0.1, 0.2)]

MAKERS: dict[str, MakerExample] = {
    "make_crp": MakerExample(
        [(1.0, 0.0), (0.2, 0.5), (50_000.0, 0.0), (3.0, 1e-9), (0.0, 0.3)],
        [1, 1, 7, 2, 7, 7.0, 40],
        ("t", 0, -1, 2.5, math.nan),
    ),
    "make_beta_bernoulli": MakerExample([(1.0, 1.0), (0.3, 20_000.0)], [True, False, 1, 1.0, 0], ("t", 2, 0.5)),
    "make_sym_dir_mult": MakerExample([(1.0, 4), (0.05, 9.0)], [0, 3, 3.0, 1, True], ("t", -1, 9, 0.5, math.nan)),
    "make_dir_mult": MakerExample(
        [(vector(1.0, 0.5, 30.0, 1e-3),), ((2, 0.1, 5, 20_000.0),)], [0, 3, 3.0, 1, True], ("t", -1, 4, 0.5, math.nan)
    ),
    "make_gamma_poisson": MakerExample([(1.0, 1.0), (0.3, 2.5)], [0, 3, 3.0, 1, 12], ("t", -1, 0.5, math.inf)),
    "make_normal_inv_chi_sq": MakerExample(
        [(0.0, 1.0, 3.0, 1.0), (-2, 0.1, 8.0, 4.0)], [0.5, -1.5, 3, 0.25, 2.75], ("t", math.inf, math.nan)
    ),
    "make_collapsed_multivariate_normal": MakerExample(
        [
            (vector(0, 0), 1.0, 9.0, matrix((1, 0), (0, 1))),
            ((1, -1), 0.1, 12.5, CORRELATED),
        ],
        POINTS,
        ("t", 1.0, vector(1, 2, 3), vector(1, math.nan), vector(1, math.inf)),
    ),
}

SMOOTH = Covariance("gp_squared_exponential", (1.5, 0.5))

APPLIED: dict[str, list[tuple[Any, ...]]] = {
    "make_gp": [(0, SMOOTH), (Mean("gp_linear_mean", (1.0, 0.0)), Covariance("gp_noise", (2.0,)))],
    "make_lazy_hmm": [((0.5, 0.5), matrix((0.5, 0.5), (1, 0)), ((0.25, 0.75, 0), (0, 0, 1)))],
}
"""Arguments of makers whose applications are given inputs; `test_processes.py` applies them."""

V = vector(1, 2, 3)
W = vector(4, -1, 0.5)
M = matrix((1, 2), (3, 4))
RED = Symbol("red")
S = matrix((2, 1), (1, 3))
DICT = Dictionary([("a", 1), (RED, 2.5), ((1, 2), V)])

DETERMINISTIC: dict[str, list[tuple[tuple[Any, ...], Any]]] = {
    "+": [((), 0), ((2, 3), 5), ((1.5, 2.25), 3.75), ((True, 1), 2), ((V, 1), vector(2, 3, 4)), ((1, 2, 3.5), 6.5)],
    "-": [((5,), -5), ((5, 3), 2), ((1.5, 2.0), -0.5), ((True, 3), -2), ((V, W), vector(-3, 3, 2.5)), ((9, 2, 3), 4)],
    "*": [((), 1), ((2, 3), 6), ((2, 1.5), 3.0), ((True, 0.5), 0.5), ((V, 2), vector(2, 4, 6)), ((2, 3, 4), 24)],
    "/": [((4,), 0.25), ((1, 2), 0.5), ((3.0, 2.0), 1.5), ((V, 2), vector(0.5, 1, 1.5)), ((12, 2, 3), 2.0)],
    "mod": [((-1, 3), 2), ((5.5, 2), 1.5)],
    "int_div": [((-1, 3), -1), ((7.5, 2), 3)],
    "=": [((1, 1.0), True), ((2.0, 3.0), False), ((1, True, 1), True), ((V, V), True), ((RED, "red"), False)],
    "!=": [((1, 2), True), ((1, True), False), (("a", "a"), False), ((2.5, 2.0), True)],
    "<": [((1, 2), True), ((2.0, 2.0), False), ((1, 2, 2), False), (("a", "b"), True), ((0.5, True), True)],
    "<=": [((1, 2), True), ((2.0, 2.0), True), ((3, 2.5), False), ((1, 2, 2), True)],
    ">": [((1, 2), False), ((3.0, 2.0), True), ((3, 2, 1), True)],
    ">=": [((1, 2), False), ((2.0, 2.0), True), ((3, 2, 2), True)],
    "not": [((True,), False), ((0,), True), ((1.0,), False)],
    "exp": [((0,), 1.0), ((1.5,), math.exp(1.5)), ((1000.0,), math.inf), ((vector(0, 1),), vector(1, math.e))],
    "expm1": [((0,), 0.0), ((1e-10,), math.expm1(1e-10))],
    "log": [((1,), 0.0), ((0.0,), -math.inf), ((2.5,), math.log(2.5)), ((vector(1, 1),), vector(0, 0))],
    "log1p": [((0,), 0.0), ((1e-10,), math.log1p(1e-10))],
    "log10": [((1000,), 3.0), ((0.0,), -math.inf), ((2.5,), math.log10(2.5)), ((vector(1, 10),), vector(0, 1))],
    "sqrt": [((4,), 2.0), ((0.25,), 0.5)],
    "abs": [((-4,), 4), ((-0.25,), 0.25), ((W,), vector(4, 1, 0.5))],
    "floor": [((1.75,), 1), ((-1.25,), -2), ((3,), 3)],
    "round": [((1.75,), 2), ((2.5,), 2), ((3,), 3)],
    "sin": [((0.5,), math.sin(0.5)), ((0,), 0.0)],
    "cos": [((0.5,), math.cos(0.5)), ((0,), 1.0)],
    "tan": [((0.5,), math.tan(0.5)), ((0,), 0.0)],
    "logistic": [((0,), 0.5), ((-800.0,), 0.0), ((2.5,), 1 / (1 + math.exp(-2.5)))],
    "logit": [((0.5,), 0.0), ((0.25,), math.log(1 / 3)), ((1,), math.inf)],
    "lgamma": [((5,), math.log(24)), ((0.5,), math.lgamma(0.5))],
    "erf": [((0,), 0.0), ((0.5,), math.erf(0.5))],
    "erfc": [((0,), 1.0), ((0.5,), math.erfc(0.5)), ((20.0,), math.erfc(20.0))],
    "normal_cdf": [((0,), 0.5), ((1.5,), 0.9331927987311419), ((-5.0,), 2.8665157187919391e-07)],
    "pow": [((2, 3), 8), ((2.0, -1), 0.5), ((V, 2), vector(1, 4, 9))],
    "atan2": [((1, 1), math.pi / 4), ((0.5, -0.5), 3 * math.pi / 4)],
    "min": [((3, 1, 2), 1), ((2.5, 1.5), 1.5), ((V,), 1.0), (((3, 1),), 1), ((V, W), vector(1, -1, 0.5))],
    "max": [((3, 1, 2), 3), ((2.5, 1.5), 2.5), ((V,), 3.0), (((3, 1),), 3), ((V, W), vector(4, 2, 3))],
    "logsumexp": [((0, 0), math.log(2)), ((vector(1000, 1000),), 1000 + math.log(2)), ((-math.inf,), -math.inf)],
    "list": [((), ()), ((1, "a", V), (1, "a", V))],
    "pair": [((1, (2, 3)), (1, 2, 3))],
    "first": [(((1, 2),), 1), ((V,), 1.0)],
    "second": [(((1, 2),), 2), ((V,), 2.0)],
    "last": [(((1, 2),), 2), ((V,), 3.0)],
    "take": [(((1, 2, 3), 2), (1, 2)), ((V, 1.0), vector(1)), ((M, 1), matrix((1, 2))), (("abc", 5), "abc")],
    "drop": [(((1, 2, 3), 2), (3,)), ((V, 1), vector(2, 3)), ((M, 1), matrix((3, 4))), (("abc", 5), "")],
    "rest": [(((1, 2),), (2,)), ((V,), vector(2, 3))],
    "is_pair": [(((),), False), (((1,),), True), ((1,), False)],
    "is_empty": [(((),), True), (((1,),), False), (("",), True)],
    "size": [((DICT,), 3), (((1, 2),), 2), ((V,), 3), ((M,), 2), (("abc",), 3)],
    "append": [((), ()), (("ab", "", "c"), "abc"), (((1,), (2, 3)), (1, 2, 3)), ((vector(1), vector(2)), vector(1, 2))],
    "reverse": [(((1, 2, 3),), (3, 2, 1)), ((V,), vector(3, 2, 1)), (("abc",), "cba")],
    "sort": [(((3, 1.5, True),), (True, 1.5, 3)), ((W,), vector(-1, 0.5, 4)), ((("b", "a"),), ("a", "b")), (((),), ())],
    "unique": [
        (((1, RED, 1.0, "red", True, RED),), (1, RED, "red")),
        ((vector(2, 1, 2),), vector(2, 1)),
        ((matrix((1, 2), (1, 2), (3, 4)),), M),
    ],
    "range": [((3, None, 1), (0, 1, 2)), ((1, 3, 1), (1, 2)), ((5.0, 0, -2), (5, 3, 1))],
    "contains": [
        (((1, RED), RED), True),
        (((1, 2), "a"), False),
        ((V, 2), True),
        ((DICT, RED), True),
        ((DICT, "red"), False),
        (("hello", "ell"), True),
    ],
    "lookup": [
        (((1, RED), 1, None), RED),
        (((1.5, 2.5), 1, None), 2.5),
        (((3, 2**70), 0, None), 3),
        ((V, 2.0, None), 3.0),
        ((V, 0, None), 1.0),
        ((M, 1, None), vector(3, 4)),
        ((V, True, None), 2.0),
        ((V, 3, RED), RED),
        ((DICT, (1.0, True + True), None), V),
        ((DICT, "z", 7), 7),
        (("abc", 1, None), "b"),
    ],
    "zip": [(((1, 2), V), ((1, 1.0), (2, 2.0)))],
    "to_list": [
        ((V,), (1.0, 2.0, 3.0)),
        (((1, 2),), (1, 2)),
        (("ab",), ("a", "b")),
        ((DICT,), (("a", 1), (RED, 2.5), ((1, 2), V))),
    ],
    "vector": [((), vector()), ((1, 2, 3), V), ((True, 0.5, 2), vector(1, 0.5, 2))],
    "matrix": [((((1, 2), (3, 4)),), M), (((1, 2), vector(3, 4)), M)],
    "to_vector": [(((1, 2, 3),), V), ((V,), V)],
    "ones": [((2,), vector(1, 1)), ((1, 2), matrix((1, 1)))],
    "zeros": [((2,), vector(0, 0)), ((1, 2), matrix((0, 0)))],
    "dot": [((V, W), 3.5), ((W, W), 17.25), (((1, 2, 3), W), 3.5), ((M, vector(1, 1)), vector(3, 7))],
    "matmul": [
        ((M, M), matrix((7, 10), (15, 22))),
        ((M, vector(1, 1)), vector(3, 7)),
        ((vector(1, 1), M), vector(4, 6)),
    ],
    "transpose": [((M,), matrix((1, 3), (2, 4)))],
    "solve": [
        ((S, vector(3, 4)), vector(1, 1)),
        ((S, M), matrix((0, 0.4), (1, 1.2))),
        ((((2, 0), (0, 4)), (1, 1)), vector(0.5, 0.25)),
    ],
    "inverse": [((M,), matrix((-2, 1), (1.5, -0.5))), ((((2, 0), (0, 4)),), matrix((0.5, 0), (0, 0.25)))],
    "cholesky": [((matrix((4, 2), (2, 5)),), matrix((2, 0), (1, 2))), ((((9,),),), matrix((3,)))],
    "trace": [((M,), 5.0), ((S,), 5.0)],
    "det": [((M,), -2.0), ((S,), 5.0), ((matrix((1, 2), (2, 4)),), 0.0)],
    "eye": [((2,), matrix((1, 0), (0, 1)))],
    "diagonal": [((vector(1, 2),), matrix((1, 0), (0, 2))), ((M,), vector(1, 4)), (((3,),), matrix((3,)))],
    "probability": [((DRAWN, RED), 0.25), ((DRAWN, 7), 0.0)],
    "log_density": [((DRAWN, "a"), math.log(0.75)), ((DRAWN, RED), math.log(0.25)), ((DRAWN, 7), -math.inf)],
    "probabilities": [((DRAWN,), (0.25, 0.75))],
    "support": [((DRAWN,), (Symbol("red"), "a")), ((Distribution([]),), ())],
    "dict": [((), Dictionary()), (("a", 1, RED, 2.5, (1, 2), V), DICT)],
    "to_dict": [(((("a", 1), (RED, 2.5), ((1, 2), V)),), DICT), (((),), Dictionary())],
    "keys": [((DICT,), ("a", RED, (1, 2)))],
    "values": [((DICT,), (1, 2.5, V))],
    "insert": [((Dictionary([("a", 1)]), "b", 2), Dictionary([("a", 1), ("b", 2)])), ((DICT, "a", 1.0), DICT)],
    "remove": [((DICT, (1, 2)), Dictionary([("a", 1), (RED, 2.5)]))],
    "substring": [(("hello", 1, 3), "el"), (("hello", 2.0, None), "llo"), (("", 0, 0), "")],
    "split": [(("a, b,c", ","), ("a", " b", "c")), ((" a\tb ", None), ("a", "b"))],
    "join": [((("a", "b"), "-"), "a-b"), (((), ""), "")],
    "to_string": [
        ((3.0,), "3"),
        ((0.1,), "0.1"),
        (("a",), "a"),
        ((RED,), "red"),
        (((True, RED, "a"),), '(list true \'red "a")'),
    ],
    "to_number": [(("3",), 3), ((" -2.5e3 ",), -2500.0), (("1e400",), math.inf)],
    "to_symbol": [(("red",), RED), ((RED,), RED)],
    "linear_logistic": [((V, W), 1 / (1 + math.exp(-3.5))), ((W, W), 1 / (1 + math.exp(-17.25)))],
    "sum": [(((1, 2, 3),), 6), ((V,), 6.0), ((M,), 10.0)],
    "prod": [(((1, 2, 3),), 6), ((V,), 6.0), ((M,), 24.0)],
    "mean": [(((1, 2, 3),), 2.0), ((V,), 2.0), ((M,), 2.5)],
    "variance": [(((1, 2, 6),), 7.0), ((V,), 1.0), ((M,), 5 / 3)],
    "sd": [(((1, 2, 6),), math.sqrt(7)), ((V,), 1.0), (((2, 2),), 0.0)],
    "cumsum": [(((1, 2, 3),), vector(1, 3, 6)), ((W,), vector(4, 3, 3.5)), ((vector(),), vector())],
    "quantile": [(((4, 1, 2), 0.25), 1.5), ((W, 0.25), -0.25), ((V, 1), 3.0), ((V, 0), 1.0), (((7,), 0.3), 7.0)],
    "gp_squared_exponential": [((1.5, 0.5), SMOOTH), ((1, vector(1, 2)), Covariance(SMOOTH.name, (1.0, (1.0, 2.0))))],
    "gp_matern": [((1, 2, 1.5), Covariance("gp_matern", (1.0, 2.0, 1.5)))],
    "gp_rational_quadratic": [((1, (2, 3), 0.5), Covariance("gp_rational_quadratic", (1.0, (2.0, 3.0), 0.5)))],
    "gp_periodic": [((1, 2, 3), Covariance("gp_periodic", (1.0, 2.0, 3.0)))],
    "gp_linear": [((2, 0.5), Covariance("gp_linear", (2.0, 0.5))), ((2, (1,)), Covariance("gp_linear", (2.0, (1.0,))))],
    "gp_constant": [((2,), Covariance("gp_constant", (2.0,)))],
    "gp_noise": [((0.5,), Covariance("gp_noise", (0.5,)))],
    "gp_linear_mean": [((2, 3), Mean("gp_linear_mean", (2.0, 3.0))), (((1,), 1), Mean("gp_linear_mean", ((1.0,), 1)))],
    "gp_sum": [((SMOOTH, SMOOTH), Covariance("gp_sum", (SMOOTH, SMOOTH))), ((1, 2.5), Mean("gp_sum", (1.0, 2.5)))],
    "gp_product": [((SMOOTH,), Covariance("gp_product", (SMOOTH,))), ((1, 2), Mean("gp_product", (1.0, 2.0)))],
    "is_number": [((1,), True), ((0.5,), True), (("1",), False), ((V,), False)],
    "is_boolean": [((1,), False), ((True,), True)],
    "is_symbol": [((RED,), True), (("red",), False)],
    "is_string": [((RED,), False), (("red",), True)],
    "is_list": [(((),), True), ((V,), False)],
    "is_vector": [(((),), False), ((V,), True), ((M,), False)],
    "is_dict": [((DICT,), True), (((),), False)],
    "is_matrix": [((M,), True), ((V,), False)],
    "is_integer": [((2.0,), True), ((2.5,), False), (("2",), False)],
}
