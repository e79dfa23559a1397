"""Programs of fixed structure with continuous or mixed choices: conjugacy and quadrature."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy import stats

from tests.posterior.case import Case
from tests.posterior.derive import (
    Grid,
    cdf,
    gaussian_posterior,
    iid_normal_evidence,
    normal_mixture,
    normal_pdf,
    table,
)
from tests.statistics import Cdf, Expected, Mean

RESIMULATION = ("(mh default one 6)", "(mh default each 4)", "(mh default all 6)")


def normal_mean() -> Mapping[str, Expected]:
    precision = 1 / 4 + 3
    mean = (1 / 4 * 1.0 + 2.5 + 0.5 + 3.0) / precision
    return {"mu": cdf(stats.norm(mean, precision**-0.5)), "square": Mean(mean**2 + 1 / precision)}


def beta_flips() -> Mapping[str, Expected]:
    return {"p": cdf(stats.beta(2 + 2 + 1, 1.5 + 1 + 2))}


def gamma_poisson() -> Mapping[str, Expected]:
    return {"rate": cdf(stats.gamma(2 + 4 + 2, scale=1 / (1 + 2)))}


def correlated_pair() -> Mapping[str, Expected]:
    mean, cov, _ = gaussian_posterior(
        np.zeros(2), np.array([[1.0, 1.0], [1.0, 2.0]]), np.array([[1.0, 1.0]]), np.array([0.7]), np.array([2.0])
    )
    step = np.array([-1.0, 1.0])
    return {
        "a": cdf(stats.norm(mean[0], math.sqrt(cov[0, 0]))),
        "b": cdf(stats.norm(mean[1], math.sqrt(cov[1, 1]))),
        "step": cdf(stats.norm(step @ mean, math.sqrt(step @ cov @ step))),
    }


def folded_list() -> Mapping[str, Expected]:
    mean, cov, _ = gaussian_posterior(
        np.zeros(3), np.diag([1.0, 4.0, 1.0]), np.array([[1.0, 1.0, 1.0]]), np.array([math.sqrt(0.5)]), np.array([2.0])
    )
    ones = np.ones(3)
    return {
        "s": cdf(stats.norm(ones @ mean, math.sqrt(ones @ cov @ ones))),
        "b": cdf(stats.norm(mean[1], math.sqrt(cov[1, 1]))),
    }


def normal_inv_gamma() -> Mapping[str, Expected]:
    data, kappa = np.array([1.2, -0.3, 2.1]), 0.5
    n, mean = 3, float(data.mean())
    shape = 3 + n / 2
    scale = 2 + 0.5 * float(((data - mean) ** 2).sum()) + 0.5 * kappa * n / (kappa + n) * mean**2
    location = n * mean / (kappa + n)
    return {
        "s2": cdf(stats.invgamma(shape, scale=scale)),
        "mu": cdf(stats.t(2 * shape, location, math.sqrt(scale / shape / (kappa + n)))),
    }


REGRESSION = {
    "M": np.array([0.5, -0.5]),
    "C": np.array([[1.0, 0.5], [0.5, 2.0]]),
    "X": np.array([[1.0, 2.0], [1.0, -1.0], [0.0, 1.0]]),
}


def regression() -> Mapping[str, Expected]:
    mean, cov, _ = gaussian_posterior(
        REGRESSION["M"], REGRESSION["C"], REGRESSION["X"], np.array([1.5]), np.array([1.0, 2.0, -1.0])
    )
    total = np.ones(2)
    return {
        "w0": cdf(stats.norm(mean[0], math.sqrt(cov[0, 0]))),
        "w1": cdf(stats.norm(mean[1], math.sqrt(cov[1, 1]))),
        "sum": cdf(stats.norm(total @ mean, math.sqrt(total @ cov @ total))),
    }


def nested_uniforms() -> Mapping[str, Expected]:
    # Midpoints in b; p(b) = integral over a from b to 2 of 1/(2a), and p(a | b) is proportional to 1/a there.
    b = (np.arange(200_000) + 0.5) * 1e-5
    likelihood = np.exp(-0.5 * ((b - 0.8) / 0.3) ** 2)
    marginal_b = likelihood * np.log(2 / b)
    points = np.array([0.5, 0.7, 0.85, 1.0, 1.3])
    b_cdf = [float(marginal_b[b <= x].sum() / marginal_b.sum()) for x in points]
    a_points = np.array([0.9, 1.1, 1.3, 1.5, 1.8])
    a_cdf = [float((likelihood * np.log(np.maximum(x / b, 1.0))).sum() / marginal_b.sum()) for x in a_points]
    return {"a": Cdf(a_points, np.array(a_cdf)), "b": Cdf(points, np.array(b_cdf))}


def heavy_tails() -> Mapping[str, Expected]:
    grid = Grid(-400.0, 400.0, 800_001)
    m = grid.points
    log_density = stats.t.logpdf(m, 2) + stats.t.logpdf(0.5, 2, m, 1) + stats.t.logpdf(4.0, 2, m, 1)
    return {"m": grid.cdf(log_density)}


def dirichlet_categorical() -> Mapping[str, Expected]:
    return {"p0": cdf(stats.beta(3.5, 4.0)), "p2": cdf(stats.beta(2.5, 5.0)), "q1": cdf(stats.beta(3.0, 4.0))}


def exponential_rate() -> Mapping[str, Expected]:
    return {"rate": cdf(stats.gamma(1 + 2 + 1, scale=1 / (0.5 + 1.5 + 0.7)))}


def poisson_thinning() -> Mapping[str, Expected]:
    return {"n": table({n: float(stats.poisson.pmf(n - 2, 3 * 0.6)) for n in range(2, 40)})}


def binomial_then_normal() -> Mapping[str, Expected]:
    weights = {k: math.comb(4, k) * normal_pdf(3.0, k, math.sqrt(2)) for k in range(5)}
    return {
        "k": table(weights),
        "x": normal_mixture(list(weights.values()), [(k + 3) / 2 for k in range(5)], [math.sqrt(0.5)] * 5),
    }


def sprinkler() -> Mapping[str, Expected]:
    weights: dict[float, float] = {}
    for state in range(8):
        cloudy, sprinkler_on, rain = state & 1, state >> 1 & 1, state >> 2 & 1
        p_sprinkler, p_rain = (0.1, 0.8) if cloudy else (0.5, 0.2)
        p_wet = 1 - (1 - 0.9 * sprinkler_on) * (1 - 0.8 * rain) * 0.95
        weights[state] = (
            (0.4 if cloudy else 0.6)
            * (p_sprinkler if sprinkler_on else 1 - p_sprinkler)
            * (p_rain if rain else 1 - p_rain)
            * p_wet
        )
    return {"state": table(weights)}


def scale_of_normals() -> Mapping[str, Expected]:
    grid = Grid(1e-4, 30.0)
    sd = grid.points
    square = 0.4**2 + 1.1**2 + 2.0**2
    return {"sd": grid.cdf(np.log(sd) - sd - 3 * np.log(sd) - square / (2 * sd**2))}


def spread_from_listed_values() -> Mapping[str, Expected]:
    weights = {
        1: 0.5 * math.exp(iid_normal_evidence([1.0, 2.5], 0.0, 1.0, 1.0)),
        2: 0.3 * math.exp(iid_normal_evidence([1.0, 2.5], 0.0, 2.0, 1.0)),
        4: 0.2 * math.exp(iid_normal_evidence([1.0, 2.5], 0.0, 4.0, 1.0)),
    }
    return {"spread": table(weights)}


CASES = (
    Case(
        name="normal_mean",
        program="""
            [assume mu (normal 1 2)]
            [observe (normal mu 1) 2.5] [observe (normal mu 1) 0.5] [observe (normal mu 1) 3]""",
        query={"mu": "mu", "square": "(* mu mu)"},
        exact=normal_mean,
        engines=(
            *RESIMULATION,
            "(mh default one 'drift 1.0 6)",
            "(cycle ((mh default all 1) (mh default one 'drift 0.5 2)) 3)",
        ),
        derivation="Normal prior and likelihood: precisions add.",
    ),
    Case(
        name="beta_flips",
        program="""
            [assume p (beta 2 1.5)]
            [observe (flip p) true] [observe (bernoulli p) 1] [observe (flip p) false]
            [observe (binomial 3 p) 1]""",
        query={"p": "p"},
        exact=beta_flips,
        engines=(*RESIMULATION, "(mh default one 'drift 1.0 6)", "(mh default all 'drift 0.7 6)"),
        derivation="Beta prior: successes and failures add; the drift needs the Jacobian of the logit.",
    ),
    Case(
        name="gamma_poisson",
        program="[assume rate (gamma 2 1)] [observe (poisson rate) 4] [observe (poisson rate) 2]",
        query={"rate": "rate"},
        exact=gamma_poisson,
        engines=(*RESIMULATION, "(mh default one 'drift 0.5 8)"),
        derivation="Gamma prior: counts add to the shape, 2 to the rate; the drift needs the Jacobian of log.",
    ),
    Case(
        name="correlated_pair",
        program="[assume a (normal 0 1)] [assume b (normal a 1)] [observe (normal (+ a b) 0.7) 2]",
        query={"a": "a", "b": "b", "step": "(- b a)"},
        exact=correlated_pair,
        engines=(
            "(mh default one 12)",
            "(mh default each 6)",
            "(mh default all 10)",
            "(mh default ordered 6)",
            "(mh default one 'drift 1.0 12)",
            "(mh default all 'drift 0.6 10)",
            "(mixture (0.5 (mh default all 1) 0.5 (mh default one 'drift 0.8 1)) 10)",
        ),
        derivation="Jointly normal; `all` is one block whose second choice depends on its first.",
    ),
    Case(
        name="folded_list",
        program="""
            [assume total (lambda (items) (if (is_empty items) 0 (+ (first items) (total (rest items)))))]
            [assume xs (list (normal 0 1) (normal 0 2) (normal 0 1))] [assume s (total xs)]
            [observe (normal s (sqrt 0.5)) 2]""",
        query={"s": "s", "b": "(first (rest xs))"},
        exact=folded_list,
        engines=("(hmc default all 0.5 4 2)", "(nuts default all 'step 0.9 2)"),
        derivation="Jointly normal; the length of the list decides the recursion, and no number in it.",
    ),
    Case(
        name="normal_inv_gamma",
        program="""
            [assume s2 (inv_gamma 3 2)]
            [assume mu (normal 0 (sqrt (* 2 s2)))]
            [observe (normal mu (sqrt s2)) 1.2] [observe (normal mu (sqrt s2)) -0.3]
            [observe (normal mu (sqrt s2)) 2.1]""",
        query={"s2": "s2", "mu": "mu"},
        exact=normal_inv_gamma,
        engines=("(mh default one 12)", "(mh default each 6)", "(mh default all 8)", "(mh default one 'drift 0.8 12)"),
        derivation="Normal-inverse-gamma: s2 is inverse gamma, mu is Student t.",
    ),
    Case(
        name="regression",
        program="""
            [assume w (multivariate_normal {M} {C})]
            [observe (normal (dot w {X[1]}) 1.5) 1]
            [observe (normal (dot w {X[2]}) 1.5) 2]
            [observe (normal (dot w {X[3]}) 1.5) -1]""",
        query={"w0": "(lookup w 0)", "w1": "(lookup w 1)", "sum": "(+ (lookup w 0) (lookup w 1))"},
        exact=regression,
        engines=("(mh default one 8)", "(mh default each 8)", "(mh default one 'drift 0.8 10)"),
        derivation="Linear model with a normal prior.",
        parameters=REGRESSION,
    ),
    Case(
        name="nested_uniforms",
        program="""
            [assume a (uniform_continuous 0 2)] [assume b (uniform_continuous 0 a)]
            [observe (normal b 0.3) 0.8]""",
        query={"a": "a", "b": "b"},
        exact=nested_uniforms,
        engines=(
            "(mh default one 12)",
            "(mh default each 6)",
            "(mh default all 10)",
            "(mh default one 'drift 1.5 12)",
            "(cycle ((mh default all 1) (mh default one 'drift 1.0 2)) 4)",
        ),
        derivation="Quadrature over b, a integrated by hand: p(b) = log(2/b) / 2; a below b is impossible.",
    ),
    Case(
        name="heavy_tails",
        program="[assume m (student_t 2)] [observe (student_t 2 m 1) 0.5] [observe (student_t 2 m 1) 4]",
        query={"m": "m"},
        exact=heavy_tails,
        engines=("(mh default one 8)", "(mh default all 8)", "(mh default one 'drift 3.0 8)"),
        derivation="Quadrature on [-400, 400]; the density falls as |m|^-9.",
    ),
    Case(
        name="dirichlet_categorical",
        program="""
            [assume p (symmetric_dirichlet 1.5 3)] [assume q (dirichlet (vector 1 2 3))]
            [observe (categorical p) 0] [observe (categorical p) 0] [observe (categorical p) 2]
            [observe (categorical q '(a b c)) 'b]""",
        query={"p0": "(lookup p 0)", "p2": "(lookup p 2)", "q1": "(lookup q 1)"},
        exact=dirichlet_categorical,
        engines=("(mh default one 10)", "(mh default each 5)", "(mh default all 12)"),
        derivation="Dirichlet prior: counts add; marginals of a Dirichlet are beta.",
    ),
    Case(
        name="exponential_rate",
        program="[assume rate (expon 0.5)] [observe (gamma 2 rate) 1.5] [observe (expon rate) 0.7]",
        query={"rate": "rate"},
        exact=exponential_rate,
        engines=(*RESIMULATION, "(mh default one 'drift 0.8 8)"),
        derivation="Gamma prior (shape 1) of a rate: shapes add, observations add to the rate.",
    ),
    Case(
        name="poisson_thinning",
        program="[assume n (poisson 3)] [observe (binomial n 0.4) 2]",
        query={"n": "n"},
        exact=poisson_thinning,
        engines=RESIMULATION,
        derivation="A thinned Poisson: the unseen n - 2 are Poisson(3 * 0.6). n below 2 is an impossible start.",
    ),
    Case(
        name="binomial_then_normal",
        program="""
            [assume k (scope_include 'k 0 (binomial 4 0.5))] [assume x (scope_include 'x 0 (normal k 1))]
            [observe (normal x 1) 3]""",
        query={"k": "k", "x": "x"},
        exact=binomial_then_normal,
        engines=(
            "(mh default one 10)",
            "(mh default each 6)",
            "(mh default all 8)",
            "(cycle ((gibbs k one 1) (mh x one 2)) 4)",
            "(cycle ((gibbs k all 1) (mh x one 'drift 1.0 2)) 4)",
        ),
        derivation="k by enumeration of N(3; k, sqrt 2); x given k is normal.",
    ),
    Case(
        name="sprinkler",
        program="""
            [assume cloudy (flip 0.4)]
            [assume sprinkler (flip (if cloudy 0.1 0.5))]
            [assume rain (flip (if cloudy 0.8 0.2))]
            [observe (flip (- 1 (* (- 1 (* 0.9 sprinkler)) (- 1 (* 0.8 rain)) 0.95))) true]""",
        query={"state": "(+ cloudy (* 2 sprinkler) (* 4 rain))"},
        exact=sprinkler,
        engines=(
            "(mh default one 10)",
            "(mh default each 4)",
            "(mh default all 6)",
            "(gibbs default one 8)",
            "(gibbs default each 2)",
            "(gibbs default all 1)",
            "(cycle ((gibbs default one 1) (mh default one 1)) 5)",
        ),
        derivation="Enumeration of eight states.",
    ),
    Case(
        name="scale_of_normals",
        program="""
            [assume sd (gamma 2 1)]
            [observe (normal 0 sd) 0.4] [observe (normal 0 sd) -1.1] [observe (normal 0 sd) 2]""",
        query={"sd": "sd"},
        exact=scale_of_normals,
        engines=("(mh default one 8)", "(mh default one 'drift 0.7 8)"),
        derivation="Quadrature: sd exp(-sd) sd^-3 exp(-sum of squares / (2 sd^2)).",
    ),
    Case(
        name="spread_from_listed_values",
        program="""
            [assume spread (categorical (vector 0.5 0.3 0.2) (list 1 2 4))]
            [assume mu (scope_include 'mu 0 (normal 0 spread))]
            [observe (normal mu 1) 1] [observe (normal mu 1) 2.5]""",
        query={"spread": "spread"},
        exact=spread_from_listed_values,
        engines=("(mh default one 10)", "(mh default each 6)", "(mh default all 8)"),
        derivation="mu integrated out: a normal marginal likelihood for each listed spread.",
    ),
)
