"""Branches: random choices inside them, densities chosen by them, evidence inside them, and impossible states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

import numpy as np
from scipy import stats

from tests.posterior.case import Case
from tests.posterior.derive import Grid, normal_mixture, normal_pdf, pushforward, table
from tests.statistics import Cdf, Expected, Table

EVERY = ("(mh default one 6)", "(mh default each 4)", "(mh default all 8)")
DISCRETE = (*EVERY, "(gibbs default one 8)", "(gibbs default each 2)", "(gibbs default all 1)")


def choice_in_branch() -> Mapping[str, Expected]:
    w = [0.4 * normal_pdf(1.2, 0, math.sqrt(2)), 0.6 * normal_pdf(1.2, 3, math.sqrt(5))]
    means = [0.6, (3 / 4 + 1.2) / (1 / 4 + 1)]
    return {"z": table({1: w[0], 0: w[1]}), "x": normal_mixture(w, means, [math.sqrt(0.5), math.sqrt(0.8)])}


def counts_differ() -> Mapping[str, Expected]:
    return {"z": table({1: 0.5 * normal_pdf(1, 2, 2), 0: 0.5 * normal_pdf(1, 0, math.sqrt(2))})}


def nested_flips() -> Mapping[str, Expected]:
    prior = {1: 0.5 * 0.3, 2: 0.5 * 0.7, 3: 0.5 * 0.6 * 0.5, 4: 0.5 * 0.6 * 0.5, 5: 0.5 * 0.4}
    return {"b": table({b: p * b / 6 for b, p in prior.items()})}


def branch_chooses_density() -> Mapping[str, Expected]:
    w = [
        0.5 * normal_pdf(2, 0, math.sqrt(1.25)) * normal_pdf(1.5, 0, 4),
        0.5 * normal_pdf(2, 0, math.sqrt(10)) * 0.25,
    ]
    means, sds = [2 / 0.25 / (1 + 4), 2 / 9 / (1 + 1 / 9)], [math.sqrt(1 / 5), math.sqrt(0.9)]
    return {"z": table({1: w[0], 0: w[1]}), "mu": normal_mixture(w, means, sds)}


def evidence_in_branch() -> Mapping[str, Expected]:
    # z: x ~ N(m, 1). Else: a ~ N(3, 1) and x ~ N(m + a, 1/2), so x ~ N(m + 3, sqrt 1.25). m ~ N(1, 1) and x = 1.5.
    w = [0.3 * normal_pdf(1.5, 1, math.sqrt(2)), 0.7 * normal_pdf(1.5, 4, math.sqrt(2.25))]
    means = [(1 + 1.5) / 2, (1 - 1.5 / 1.25) / (1 + 1 / 1.25)]
    return {"z": table({1: w[0], 0: w[1]}), "m": normal_mixture(w, means, [math.sqrt(0.5), math.sqrt(1 / 1.8)])}


def evidence_through_calls() -> Mapping[str, Expected]:
    w = {
        0: normal_pdf(2.2, 0, 1),
        1: normal_pdf(2.2, 0, math.sqrt(5)),
        2: normal_pdf(2.2, 3, math.sqrt(2)),
    }
    means, sds = [0, 2.2 / 4 / (1 + 1 / 4), (2.2 - 3) / 2], [1, math.sqrt(0.8), math.sqrt(0.5)]
    return {"k": table(w), "m": normal_mixture(list(w.values()), means, sds)}


def three_families() -> Mapping[str, Expected]:
    grid = Grid(-8.0, 14.0, 220_001)
    x = grid.points
    likelihood = stats.norm.pdf(1.5, x, 0.5)
    parts = [0.2 * stats.norm.pdf(x), 0.3 * stats.gamma.pdf(x, 2), 0.5 * stats.uniform.pdf(x, 0, 4)]
    w = {c: float(np.trapezoid(part * likelihood, x)) for c, part in enumerate(parts)}
    with np.errstate(divide="ignore"):
        return {"c": table(w), "x": grid.cdf(np.log(sum(parts) * likelihood))}


def exclusive_or() -> Mapping[str, Expected]:
    return {"a": table({1: 0.3 * 0.4, 0: 0.7 * 0.6}), "agree": Table({0: 1.0})}


def bounded_by_each_other() -> Mapping[str, Expected]:
    weights = {(k, j): 1 / (k + 1) ** 2 * normal_pdf(5, j, 2) for k in range(7, 12) for j in range(k + 1)}
    return {"k": pushforward(weights, lambda k, j: k), "j": pushforward(weights, lambda k, j: j)}


def continuous_predicate() -> Mapping[str, Expected]:
    w = [0.5 * normal_pdf(0.2, -1, 1), 0.5 * normal_pdf(0.2, 2, 1)]
    below = w[0] / sum(w)
    points = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])
    half = 2 * stats.norm.cdf(points)
    return {"x": Cdf(points, np.where(points <= 0, below * half, below + (1 - below) * (half - 1)))}


def lazy_or() -> Mapping[str, Expected]:
    p = 0.2 + 0.8 * 0.5 * 0.4
    w = [p * normal_pdf(0.6, 0, math.sqrt(2)), (1 - p) * normal_pdf(0.6, 2, math.sqrt(2))]
    return {"o": table({1: w[0], 0: w[1]}), "x": normal_mixture(w, [0.3, 1.3], [math.sqrt(0.5)] * 2)}


def one_way_out() -> Mapping[str, Expected]:
    return {"a": Table({1: 1.0}), "b": Table({1: 1.0}), "c": table({1: 0.3 * 0.9, 0: 0.7 * 0.4})}


def operator_by_branch() -> Mapping[str, Expected]:
    p = {1: 0.3 * 0.25, 2: 0.7 * 0.6 * 0.8, 3: 0.7 * 0.4 * 0.5}
    return {"k": table(p)}


def random_procedure_or_lambda() -> Mapping[str, Expected]:
    weights = {
        (k, x, y): (0.4 if x else 0.6) * (p if y else 1 - p) * (0.9 if k == 2 else 0.3)
        for k, x, y in product((0, 1, 2), (0, 1), (0, 1))
        for p in [(0.2 if x else 0.7) if k == 2 else (0.8 if x else 0.3)]
    }
    return {name: pushforward(weights, lambda *at, part=part: at[part]) for part, name in enumerate("kxy")}


def sum_in_two_forms() -> Mapping[str, Expected]:
    grid = Grid(0.0, 40.0)
    log_gamma = stats.gamma.logpdf(grid.points, 2) + stats.norm.logpdf(1.8, grid.points, math.sqrt(0.5))
    w = [0.5 * normal_pdf(1.8, 0, math.sqrt(1.5)), 0.5 * grid.mass(log_gamma)]
    gamma = grid.cdf(log_gamma)
    below = w[0] / sum(w)
    normal = stats.norm(1.8 / 1.5, math.sqrt(1 / 3))
    x_cdf = below * normal.cdf(gamma.points) + (1 - below) * gamma.probabilities
    return {"z": table({1: w[0], 0: w[1]}), "x": Cdf(gamma.points, x_cdf)}


CASES = (
    Case(
        name="choice_in_branch",
        program="""
            [assume z (flip 0.4)] [assume x (if z (normal 0 1) (normal 3 2))]
            [observe (normal x 1) 1.2]""",
        query={"z": "z", "x": "x"},
        exact=choice_in_branch,
        engines=(*EVERY, "(mh default ordered 5)"),
        derivation="Two normal marginals; x given z is normal.",
    ),
    Case(
        name="counts_differ",
        program="""
            [assume z (flip 0.5)]
            [assume x (if z (+ (normal 1 1) (normal 1 1) (normal 0 1)) (normal 0 1))]
            [observe (normal x 1) 1]""",
        query={"z": "z"},
        exact=counts_differ,
        engines=EVERY,
        derivation="x ~ N(2, sqrt 3) or N(0, 1). Four blocks against two: without their counts the odds are off by 2.",
    ),
    Case(
        name="nested_flips",
        program="""
            [assume a (flip 0.5)]
            [assume b (if a (if (flip 0.3) 1 2) (if (flip 0.6) (if (flip 0.5) 3 4) 5))]
            [observe (flip (/ b 6)) true]""",
        query={"b": "b"},
        exact=nested_flips,
        engines=DISCRETE,
        derivation="Enumeration of five leaves; under gibbs the inner flips exist under some candidates only.",
    ),
    Case(
        name="branch_chooses_density",
        program="""
            [assume z (flip)] [assume mu (scope_include 'mu 0 (normal 0 1))]
            [observe (normal mu (if z 0.5 3)) 2]
            [observe ((if z normal uniform_continuous) 0 4) 1.5]""",
        query={"z": "z", "mu": "mu"},
        exact=branch_chooses_density,
        engines=(*EVERY, "(cycle ((mh default one 2) (mh mu one 'drift 0.8 2)) 4)"),
        derivation="mu integrated out of the first observation; the second is N(0, 4) or uniform on (0, 4).",
    ),
    Case(
        name="evidence_in_branch",
        program="""
            [assume z (flip 0.3)] [assume m (normal 1 1)]
            [observe (if z (normal m 1) (let ((a (normal 3 1))) (normal (+ m a) 0.5))) 1.5]""",
        query={"z": "z", "m": "m"},
        exact=evidence_in_branch,
        engines=("(mh default one 20)", *EVERY[1:]),
        derivation="Each alternative has its own constrained choice: normal marginals for both.",
    ),
    Case(
        name="evidence_through_calls",
        program="""
            [assume k (scope_include 'k 0 (uniform_discrete 0 3))] [assume m (scope_include 'm 0 (normal 0 1))]
            [assume g (lambda () (normal (+ m 3) 1))]
            [assume (f i) (if (= i 0) (normal 0 1) (if (= i 1) (normal m 2) (g)))]
            [observe (f k) 2.2]""",
        query={"k": "k", "m": "m"},
        exact=evidence_through_calls,
        engines=(
            *EVERY,
            "(cycle ((gibbs k one 1) (mh m one 3)) 3)",
            "(cycle ((gibbs k all 1) (mh m one 'drift 1.0 3)) 3)",
        ),
        derivation="Three normal marginals of the observation, m integrated out.",
    ),
    Case(
        name="three_families",
        program="""
            [assume c (categorical (vector 0.2 0.3 0.5))]
            [assume x (cond ((= c 0) (normal 0 1)) ((= c 1) (gamma 2 1)) (else (uniform_continuous 0 4)))]
            [observe (normal x 0.5) 1.5]""",
        query={"c": "c", "x": "x"},
        exact=three_families,
        engines=("(mh default one 14)", "(mh default each 7)", "(mh default all 12)"),
        derivation="Quadrature over x in each branch.",
    ),
    Case(
        name="exclusive_or",
        program="[assume a (flip 0.3)] [assume b (flip 0.6)] [observe (flip (if (= a b) 0 1)) true]",
        query={"a": "a", "agree": "(= a b)"},
        exact=exclusive_or,
        engines=("(mh default all 8)", "(gibbs default all 1)", "(cycle ((mh default all 4) (gibbs default one 2)) 1)"),
        derivation="Two states have positive probability, and no single flip leads from one to the other.",
    ),
    Case(
        name="bounded_by_each_other",
        program="""
            [assume k (uniform_discrete 0 12)] [assume j (uniform_discrete 0 (+ k 1))]
            [observe (uniform_discrete 0 (+ k 1)) 7] [observe (normal j 2) 5]""",
        query={"k": "k", "j": "j"},
        exact=bounded_by_each_other,
        engines=(
            "(mh default one 16)",
            "(mh default each 8)",
            "(mh default all 12)",
            "(gibbs default one 3)",
            "(gibbs default each 2)",
            "(gibbs default all 1)",
        ),
        derivation="Enumeration; k below 7 or below j is impossible, and most starts are.",
    ),
    Case(
        name="continuous_predicate",
        program="[assume x (normal 0 1)] [observe (normal (if (< x 0) -1 2) 1) 0.2]",
        query={"x": "x"},
        exact=continuous_predicate,
        engines=("(mh default one 6)", "(mh default all 6)", "(mh default one 'drift 2.0 8)"),
        derivation="Two half normals, weighted by their sides' likelihoods.",
    ),
    Case(
        name="lazy_or",
        program="""
            [assume o (or (flip 0.2) (and (flip 0.5) (flip 0.4)))]
            [assume x (if o (normal 0 1) (normal 2 1))] [observe (normal x 1) 0.6]""",
        query={"o": "o", "x": "x"},
        exact=lazy_or,
        engines=("(mh default one 5)", "(mh default each 6)", "(mh default all 8)"),
        derivation="P(o) = 0.2 + 0.8 * 0.5 * 0.4; the second and third flip exist only when they matter.",
    ),
    Case(
        name="one_way_out",
        program="""
            [assume a (flip 0.2)] [assume b (flip 0.2)] [assume c (flip 0.3)]
            [observe (flip (if a 1 0)) true] [observe (flip (if b 1 0)) true] [observe (flip (if c 0.9 0.4)) true]""",
        query={"a": "a", "b": "b", "c": "c"},
        exact=one_way_out,
        engines=DISCRETE,
        derivation="Most starts have two impossible terms; each flip that removes one is accepted and stays.",
    ),
    Case(
        name="operator_by_branch",
        program="""
            [assume f (lambda () (flip 0.25))] [assume g (lambda () (flip 0.8))] [assume h (lambda () (flip))]
            [assume k (if (flip 0.3) 1 (if (flip 0.6) 2 3))]
            [observe ((if (= k 1) f (if (= k 2) g h))) true]""",
        query={"k": "k"},
        exact=operator_by_branch,
        engines=DISCRETE,
        derivation="A random operator among lambdas: each body has its own constrained flip.",
    ),
    Case(
        name="random_procedure_or_lambda",
        program="""
            [assume k (uniform_discrete 0 3)] [assume f (if (= k 2) flip (lambda (p) (flip (- 1 p))))]
            [assume x (flip 0.4)] [assume y (f (if x 0.2 0.7))] [observe (flip (if (= k 2) 0.9 0.3)) true]""",
        query={"k": "k", "x": "x", "y": "y"},
        exact=random_procedure_or_lambda,
        engines=DISCRETE,
        derivation="Enumeration; operator and argument of one application change in one transition.",
    ),
    Case(
        name="sum_in_two_forms",
        program="""
            [assume z (flip)]
            [assume x (if z (normal 0 1) (+ (expon 1) (expon 1)))]
            [observe (normal x (sqrt 0.5)) 1.8]""",
        query={"z": "z", "x": "x"},
        exact=sum_in_two_forms,
        engines=("(mh default one 12)", "(mh default each 3)", "(mh default all 10)"),
        derivation="The sum of two exponentials is gamma with shape 2: quadrature.",
    ),
)
