"""Exchangeable makers, collapsed and uncollapsed, under random hyperparameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special, stats

from tests.posterior.case import Case
from tests.posterior.derive import (
    Grid,
    log_crp,
    normal_pdf,
    partition_code,
    partition_expression,
    partitions,
    pushforward,
    table,
)
from tests.statistics import Expected

EVERY = ("(mh default one 4)", "(mh default each 2)", "(mh default all 8)")
GIBBS = ("(gibbs default one 3)", "(gibbs default each 2)", "(gibbs default all 1)")


def beta_bernoulli() -> Mapping[str, Expected]:
    weights = {}
    for a in (1, 2, 3):
        for w in (0, 1):
            weights[a, w] = float(special.beta(a + 3 + w, 1 + 1 + 1 - w) / special.beta(a, 1))
    return {"aw": pushforward(weights, lambda a, w: 2 * a + w)}


def sym_dir_mult() -> Mapping[str, Expected]:
    grid = Grid(1e-4, 40.0)
    a = grid.points

    def counts(n: Sequence[int]) -> np.ndarray:
        rising = sum(special.gammaln(a + k) - special.gammaln(a) for k in n)
        return rising + special.gammaln(3 * a) - special.gammaln(3 * a + sum(n)) + np.log(a) - a

    parts = [counts(n) for n in ((3, 1, 0), (2, 2, 0), (2, 1, 1))]
    return {"a": grid.cdf(np.logaddexp.reduce(parts)), "w": grid.table(parts)}


def gamma_poisson() -> Mapping[str, Expected]:
    grid = Grid(1e-4, 40.0)
    a = grid.points

    def joint(w: int) -> np.ndarray:
        s = 6 + w
        return special.gammaln(a + s) - special.gammaln(a) - (a + s) * math.log(4) - math.lgamma(w + 1) + np.log(a) - a

    parts = [joint(w) for w in range(80)]
    return {"shape": grid.cdf(np.logaddexp.reduce(parts)), "w": grid.table(parts)}


def normal_inv_chi_sq() -> Mapping[str, Expected]:
    # Student t predictives one after the other; m on a grid, the CDF of w averaged over it.
    grid = Grid(-12.0, 14.0, 20_001)
    mean, kappa, nu, var = grid.points, 1.0, 3.0, np.full(grid.points.shape, 2.0)
    log_density = stats.norm.logpdf(mean, 0, 2)
    for x in (1.0, 2.5):
        log_density = log_density + stats.t.logpdf(x, nu, mean, np.sqrt(var * (kappa + 1) / kappa))
        var = (nu * var + kappa / (kappa + 1) * (x - mean) ** 2) / (nu + 1)
        mean = (kappa * mean + x) / (kappa + 1)
        kappa, nu = kappa + 1, nu + 1
    scale = np.sqrt(var * (kappa + 1) / kappa)
    return {
        "m": grid.cdf(log_density),
        "w": grid.average_cdf(
            log_density, lambda x: stats.t.cdf(x, nu, mean, scale), np.array([-1.0, 0.5, 1.5, 2.5, 4.0])
        ),
    }


NIW = {"S": np.array([[1.0, 0.3], [0.3, 0.5]]), "X": np.array([[1.0, 0.5], [1.8, -0.2]])}


def collapsed_multivariate_normal() -> Mapping[str, Expected]:
    # Joint density of n draws: Murphy (2007), Conjugate Bayesian analysis of the Gaussian, equation 266, up to
    # constants: |S_n|^(-(v + n) / 2).
    weights = {}
    x, n = NIW["X"], 2
    for i in range(3):
        m0, centre = np.array([i, 0.0]), x.mean(axis=0)
        scatter = (x - centre).T @ (x - centre)
        s_n = NIW["S"] + scatter + n / (1 + n) * np.outer(centre - m0, centre - m0)
        weights[i] = float(np.linalg.det(s_n)) ** (-(4 + n) / 2)
    return {"i": table(weights)}


def crp_concentration() -> Mapping[str, Expected]:
    grid = Grid(1e-4, 60.0)
    alpha = grid.points
    # Labels 1 1 2, then w at table 1, at table 2 or at a fresh one.
    base = 2 * np.log(alpha) - alpha + 2 * np.log(alpha) - sum(np.log(alpha + k) for k in range(4))
    parts = [base + np.log(seats) for seats in (alpha, np.full_like(alpha, 2.0), np.full_like(alpha, 1.0))]
    return {"alpha": grid.cdf(np.logaddexp.reduce(parts)), "w": grid.table(parts)}


def seating_plan(alpha: float, discount: float) -> Mapping[str, Expected]:
    weights = {}
    for p in partitions(4):
        together = (p[0] == p[1]) + (p[2] == p[3])
        weights[partition_code(p)] = math.exp(log_crp(p, alpha, discount)) * normal_pdf(1.5, together, 0.7)
    return {"plan": table(weights)}


def coins_by_key() -> Mapping[str, Expected]:
    data, weights = (1, 1, 0), {}
    for z in itertools.product(range(2), repeat=3):
        weight = 1.0
        for k in range(2):
            a, heads = (1 if k else 3), sum(x for x, zi in zip(data, z, strict=True) if zi == k)
            weight *= float(special.beta(a + heads, 1 + z.count(k) - heads) / special.beta(a, 1))
        weights[z] = weight * math.prod(0.3 if zi else 0.7 for zi in z)
    return {"z": pushforward(weights, lambda *z: sum(zi << i for i, zi in enumerate(z)))}


def latent_draws() -> Mapping[str, Expected]:
    weights = {
        z: float(special.beta(1 + sum(z), 4 - sum(z))) * normal_pdf(2, z[0] + z[1] + 0.5 * z[2], 0.5)
        for z in itertools.product(range(2), repeat=3)
    }
    return {"z": pushforward(weights, lambda a, b, c: a + 2 * b + 4 * c)}


def maker_in_branch() -> Mapping[str, Expected]:
    # Heads, heads, tails under Beta(1, 1) or Beta(5, 1).
    w = {1: float(special.beta(3, 2)), 0: float(special.beta(7, 2) / special.beta(5, 1))}
    return {"z": table({1: 0.4 * w[1], 0: 0.6 * w[0]})}


def hyperparameter_of_crp_tables() -> Mapping[str, Expected]:
    weights: dict[tuple[float, ...], float] = {}
    for alpha, prior in ((0.5, 0.3), (2.0, 0.7)):
        for p in partitions(3):
            k = len(set(p))
            weights[alpha, k] = weights.get((alpha, k), 0) + prior * math.exp(log_crp(p, alpha)) * normal_pdf(
                2.5, k, 0.8
            )
    return {"alpha": pushforward(weights, lambda a, k: a), "k": pushforward(weights, lambda a, k: k)}


CASES = (
    *(
        Case(
            name=name,
            program=f"""
                [assume a (scope_include 'a 0 (uniform_discrete 1 4))] [assume f ({maker} a 1)]
                [observe (f) true] [observe (f) true] [observe (f) false] [observe (f) true]
                [assume w (scope_include 'w 0 (f))]""",
            query={"aw": "(+ (* 2 a) w)"},
            exact=beta_bernoulli,
            engines=engines,
            derivation="Beta-binomial marginal likelihood for each a, with w as a fifth application.",
        )
        for name, maker, engines in (
            ("beta_bernoulli", "make_beta_bernoulli", (*EVERY, *GIBBS, "(cycle ((gibbs a one 1) (mh w one 1)) 2)")),
            (
                "uncollapsed_beta_bernoulli",
                "make_uc_beta_bernoulli",
                (
                    "(mh default one 16)",
                    "(mh default each 6)",
                    "(mh default all 8)",
                    "(cycle ((gibbs a one 1) (mh default each 1)) 2)",
                    "(cycle ((gibbs a all 1) (gibbs w one 1) (mh default one 3)) 4)",
                ),
            ),
        )
    ),
    Case(
        name="sym_dir_mult",
        program="""
            [assume a (scope_include 'a 0 (gamma 2 1))] [assume f (make_sym_dir_mult a 3)]
            [observe (f) 0] [observe (f) 0] [observe (f) 1] [assume w (scope_include 'w 0 (f))]""",
        query={"a": "a", "w": "w"},
        exact=sym_dir_mult,
        engines=(*EVERY, "(cycle ((mh a one 'drift 1.0 3) (gibbs w one 1)) 2)"),
        derivation="Dirichlet-multinomial for the counts with each w; quadrature over a.",
    ),
    Case(
        name="gamma_poisson_maker",
        program="""
            [assume shape (scope_include 'shape 0 (gamma 2 1))] [assume f (make_gamma_poisson shape 1)]
            [observe (f) 2] [observe (f) 4] [assume w (f)]""",
        query={"shape": "shape", "w": "w"},
        exact=gamma_poisson,
        engines=(
            "(mh default one 7)",
            "(mh default each 2)",
            "(mh default all 10)",
            "(cycle ((mh shape one 'drift 0.7 3) (mh default each 1)) 3)",
        ),
        derivation="Rate integrated out: Gamma(a + s) / Gamma(a) (rate + n)^-(a + s); quadrature over a.",
    ),
    Case(
        name="normal_inv_chi_sq",
        program="""
            [assume m (scope_include 'm 0 (normal 0 2))] [assume f (make_normal_inv_chi_sq m 1 3 2)]
            [observe (f) 1] [observe (f) 2.5] [assume w (f)]""",
        query={"m": "m", "w": "w"},
        exact=normal_inv_chi_sq,
        engines=(
            "(mh default one 5)",
            "(mh default each 6)",
            "(mh default all 8)",
            "(mh default one 'drift 2.0 14)",
            "(cycle ((mh m one 'drift 2.0 2) (mh default each 1)) 3)",
        ),
        derivation="Student t predictives one after the other; quadrature over m.",
    ),
    Case(
        name="collapsed_multivariate_normal",
        program="""
            [assume i (uniform_discrete 0 3)]
            [assume f (make_collapsed_multivariate_normal (vector i 0) 1 4 {S})]
            [observe (f) {X[1]}] [observe (f) {X[2]}]""",
        query={"i": "i"},
        exact=collapsed_multivariate_normal,
        engines=(*EVERY, *GIBBS),
        derivation="Closed-form marginal likelihood of a normal-inverse-Wishart, for each i.",
        parameters=NIW,
    ),
    Case(
        name="crp_concentration",
        program="""
            [assume alpha (scope_include 'alpha 0 (gamma 3 1))] [assume crp (make_crp alpha)]
            [observe (crp) 1] [observe (crp) 1] [observe (crp) 2] [assume w (scope_include 'w 0 (crp))]""",
        query={"alpha": "alpha", "w": "(if (= w 1) 1 (if (= w 2) 2 0))"},
        exact=crp_concentration,
        engines=(
            *EVERY,
            "(cycle ((mh alpha one 'drift 1.0 3) (gibbs w one 1)) 2)",
            "(cycle ((mh alpha one 2) (mh w one 2)) 3)",
        ),
        derivation="alpha^tables / (alpha)_n for each seat of w; quadrature over alpha.",
    ),
    *(
        Case(
            name=name,
            program=f"""
                [assume crp {maker}]
                [assume z (mem (lambda (i) (crp)))]
                [observe (normal (+ (= (z 1) (z 2)) (= (z 3) (z 4))) 0.7) 1.5]""",
            query={"plan": partition_expression(["(z 1)", "(z 2)", "(z 3)", "(z 4)"])},
            exact=lambda alpha=alpha, discount=discount: seating_plan(alpha, discount),
            engines=("(mh default one 14)", "(mh default each 2)", "(mh default all 8)", *GIBBS),
            derivation="Enumeration of the 15 partitions.",
        )
        for name, maker, alpha, discount in (
            ("seating_plan", "(make_crp 1.5)", 1.5, 0.0),
            ("seating_plan_with_discount", "(make_crp 0.7 0.4)", 0.7, 0.4),
        )
    ),
    Case(
        name="coins_by_key",
        program="""
            [assume coin (mem (lambda (k) (make_beta_bernoulli (if k 1 3) 1)))]
            [assume z (mem (lambda (i) (flip 0.3)))]
            [observe ((coin (z 1))) true] [observe ((coin (z 2))) true] [observe ((coin (z 3))) false]""",
        query={"z": "(+ (z 1) (* 2 (z 2)) (* 4 (z 3)))"},
        exact=coins_by_key,
        engines=("(mh default one 6)", "(mh default each 2)", "(mh default all 6)", *GIBBS),
        derivation="Enumeration of assignments; the observed call's operator is a maker's procedure at a random key.",
    ),
    Case(
        name="latent_draws",
        program="""
            [assume f (make_beta_bernoulli 1 1)] [assume a (f)] [assume b (f)] [assume c (f)]
            [observe (normal (+ a b (* 0.5 c)) 0.5) 2]""",
        query={"z": "(+ a (* 2 b) (* 4 c))"},
        exact=latent_draws,
        engines=("(mh default one 5)", "(mh default each 2)", "(mh default all 8)", *GIBBS),
        derivation="Enumeration: draws of one maker are dependent, in a block as well.",
    ),
    Case(
        name="maker_in_branch",
        program="""
            [assume z (flip 0.4)]
            [assume f (if z (make_beta_bernoulli 1 1) (make_beta_bernoulli 5 1))]
            [observe (f) true] [observe (f) false] [observe (f) true]""",
        query={"z": "z"},
        exact=maker_in_branch,
        engines=(*EVERY, *GIBBS),
        derivation="Beta-binomial marginal likelihood under each maker: all evidence moves from one to the other.",
    ),
    Case(
        name="number_of_tables",
        program="""
            [assume alpha (if (flip 0.3) 0.5 2)] [assume crp (make_crp alpha)]
            [assume a (crp)] [assume b (crp)] [assume c (crp)]
            [assume k (- 3 (max (+ (= a b) (= b c) (if (= b c) 0 (= a c))) 0))]
            [observe (normal k 0.8) 2.5]""",
        query={"alpha": "alpha", "k": "k"},
        exact=hyperparameter_of_crp_tables,
        engines=("(mh default one 12)", "(mh default each 4)", "(mh default all 8)", *GIBBS),
        derivation="Enumeration of the partitions of 3 for each alpha.",
    ),
)
