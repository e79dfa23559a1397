"""Memoized procedures: random keys, shared rows, rows that vanish and return, evidence on them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
from scipy import special, stats

from tests.posterior.case import Case
from tests.posterior.derive import cdf, gaussian_posterior, normal_mixture, normal_pdf, pushforward, table
from tests.statistics import Expected

EVERY = ("(mh default one 6)", "(mh default each 3)", "(mh default all 8)")


def random_key() -> Mapping[str, Expected]:
    w = {k: normal_pdf(2.5, 2 * k, math.sqrt(2)) for k in range(3)}
    return {"k": table(w), "fk": normal_mixture(list(w.values()), [k + 1.25 for k in range(3)], [math.sqrt(0.5)] * 3)}


def two_keys() -> Mapping[str, Expected]:
    noise = np.array([0.7, 0.7])
    prior_mean, prior_cov, data = np.array([0.0, 1.0]), np.diag([4.0, 1.0]), np.array([1.5, 1.0])
    weights, means, sds = {}, [], []
    for i, j in itertools.product(range(2), repeat=2):
        rows = np.eye(2)[[i, j]]
        mean, cov, evidence = gaussian_posterior(prior_mean, prior_cov, rows, noise, data)
        weights[i, j] = (0.6 if i else 0.4) * (0.6 if j else 0.4) * math.exp(evidence)
        means.append(mean[i])
        sds.append(math.sqrt(cov[i, i]))
    return {
        "keys": pushforward(weights, lambda i, j: i + 2 * j),
        "fi": normal_mixture(list(weights.values()), means, sds),
    }


def coin_mixture() -> Mapping[str, Expected]:
    data = (True, True, False, True)
    weights = {}
    for z in itertools.product(range(2), repeat=4):
        weight = 1.0
        for k, (a, b) in enumerate(((1, 1), (2, 1))):
            heads = sum(x for x, zi in zip(data, z, strict=True) if zi == k)
            tails = z.count(k) - heads
            weight *= float(special.beta(a + heads, b + tails) / special.beta(a, b))
        weights[z] = weight * math.prod(0.3 if zi else 0.7 for zi in z)
    return {"z": pushforward(weights, lambda *z: sum(zi << i for i, zi in enumerate(z)))}


def memo_of_memo() -> Mapping[str, Expected]:
    # g(0), g(1), g(2) ~ N(f(parity), 1), f(0), f(1) ~ N(0, 2); observations of g(0) + noise and of g(2) + noise.
    # x = (f0, f1, g0, g1, g2).
    load = np.array([[1.0, 0], [0, 1], [1, 0]])
    cov_f = 4 * np.eye(2)
    cov = np.block([[cov_f, cov_f @ load.T], [load @ cov_f, load @ cov_f @ load.T + np.eye(3)]])
    rows = np.array([[0, 0, 1.0, 0, 0], [0, 0, 0, 1.0, 0], [0, 0, 0, 0, 1.0]])
    mean, post, _ = gaussian_posterior(np.zeros(5), cov, rows, np.array([1.0]), np.array([1.0, -2.0, 2.0]))
    return {name: cdf(stats.norm(mean[i], math.sqrt(post[i, i]))) for name, i in (("f0", 0), ("f1", 1), ("g2", 4))}


def observed_row() -> Mapping[str, Expected]:
    # f(1) is observed at 2; f(0) is free. The second observation has whichever k chooses.
    w = {1: 0.5 * normal_pdf(1.5, 2, 1), 0: 0.5 * normal_pdf(1.5, 0, math.sqrt(2))}
    return {"k": table(w)}


def existing_choice() -> Mapping[str, Expected]:
    # x(1) = 3 and x(2) free; m ~ N(0, 1), both N(m, 1); x(2) observed through noise at 1.
    mean, cov, _ = gaussian_posterior(
        np.zeros(1), np.eye(1), np.ones((2, 1)), np.array([1.0, math.sqrt(2)]), np.array([3.0, 1.0])
    )
    return {"m": cdf(stats.norm(mean[0], math.sqrt(cov[0, 0])))}


def structure_in_rows() -> Mapping[str, Expected]:
    # f(i) ~ N(0, 1) with 0.6, else the sum of N(0, 1) and N(2, 1). Observed with sd 0.5: f(1) at 1.5, f(2) at 0.
    code = {}
    for a, b in itertools.product(range(2), repeat=2):
        weight = 1.0
        for one, data in ((a, 1.5), (b, 0.0)):
            weight *= 0.6 * normal_pdf(data, 0, math.sqrt(1.25)) if one else 0.4 * normal_pdf(data, 2, 1.5)
        code[a, b] = weight
    return {"code": pushforward(code, lambda a, b: a + 2 * b)}


def list_keys() -> Mapping[str, Expected]:
    weights = {}
    for i, j in itertools.product(range(2), repeat=2):
        same = i == j
        evidence = gaussian_posterior(
            np.array([0.0, 0.0]),
            np.eye(2),
            np.array([[1.0, 0], [1.0, 0]] if same else [[1.0, 0], [0, 1.0]]),
            np.array([0.5, 0.5]),
            np.array([1.0, 0.6]),
        )[2]
        weights[i, j] = (0.7 if i else 0.3) * (0.5) * math.exp(evidence)
    return {"ij": pushforward(weights, lambda i, j: i + 2 * j)}


def memory_of_a_choice() -> Mapping[str, Expected]:
    return {"z": table({1: normal_pdf(5, 3, 1), 0: normal_pdf(5, 6, 1)})}


def chosen_procedure() -> Mapping[str, Expected]:
    # Two memoized procedures; a flip chooses which one both calls use.
    w = {}
    for z, sd in ((1, 1.0), (0, 3.0)):
        evidence = gaussian_posterior(
            np.zeros(1), np.array([[sd**2]]), np.ones((2, 1)), np.array([1.0, 1.0]), np.array([1.0, 2.0])
        )[2]
        w[z] = 0.5 * math.exp(evidence)
    return {"z": table(w)}


def poisson_keys() -> Mapping[str, Expected]:
    # `(size k)` for a random k that has no bound: rows for keys nobody has seen.
    w = {k: float(stats.poisson.pmf(k, 1.5)) * normal_pdf(2.0, k, math.sqrt(1.25)) for k in range(60)}
    return {"k": table(w)}


CASES = (
    Case(
        name="random_key",
        program="""
            [assume k (uniform_discrete 0 3)] [assume f (mem (lambda (i) (normal (* 2 i) 1)))]
            [observe (normal (f k) 1) 2.5]""",
        query={"k": "k", "fk": "(f k)"},
        exact=random_key,
        engines=(*EVERY, "(mh default ordered 5)"),
        derivation="Enumeration of keys, the row integrated out.",
    ),
    Case(
        name="two_keys",
        program="""
            [assume f (mem (lambda (i) (scope_include 'f i (normal i (if i 1 2)))))]
            [assume i (scope_include 'keys 0 (flip 0.6))] [assume j (scope_include 'keys 1 (flip 0.6))]
            [observe (normal (f i) 0.7) 1.5] [observe (normal (f j) 0.7) 1]""",
        query={"keys": "(+ i (* 2 j))", "fi": "(f i)"},
        exact=two_keys,
        engines=(
            *EVERY,
            "(cycle ((gibbs keys one 2) (mh f each 2)) 3)",
            "(cycle ((gibbs keys each 1) (mh f one 'drift 1.0 3)) 4)",
            "(cycle ((mh keys all 2) (mh f all 2) (mh f one 2)) 3)",
            "(cycle ((gibbs keys all 1) (mh f each 2)) 3)",
        ),
        derivation="Enumeration of keys; equal keys share one normal row.",
    ),
    Case(
        name="coin_mixture",
        program="""
            [assume weight (mem (lambda (k) (scope_include 'weight k (beta (if k 2 1) 1))))]
            [assume z (mem (lambda (i) (scope_include 'z i (flip 0.3))))]
            [observe (flip (weight (z 1))) true] [observe (flip (weight (z 2))) true]
            [observe (flip (weight (z 3))) false] [observe (flip (weight (z 4))) true]""",
        query={"z": "(+ (z 1) (* 2 (z 2)) (* 4 (z 3)) (* 8 (z 4)))"},
        exact=coin_mixture,
        engines=(
            "(mh default one 24)",
            "(mh default each 5)",
            "(mh default all 12)",
            "(cycle ((gibbs z one 4) (mh weight each 2)) 2)",
            "(cycle ((gibbs z each 1) (mh weight one 'drift 1.5 3)) 2)",
            "(cycle ((mh z each 2) (mh weight one 3)) 2)",
            "(cycle ((gibbs z all 1) (mh weight each 3)) 2)",
        ),
        derivation="Enumeration of 16 assignments, beta-binomial within each group.",
    ),
    Case(
        name="memo_of_memo",
        program="""
            [assume f (mem (lambda (p) (normal 0 2)))]
            [assume g (mem (lambda (i) (normal (f (= i 1)) 1)))]
            [observe (normal (g 0) 1) 1] [observe (normal (g 1) 1) -2] [observe (normal (g 2) 1) 2]""",
        query={"f0": "(f false)", "f1": "(f true)", "g2": "(g 2)"},
        exact=memo_of_memo,
        engines=(
            "(mh default one 30)",
            "(mh default each 8)",
            "(mh default one 'drift 1.5 30)",
            "(mh default each 'drift 1.5 6)",
        ),
        derivation="Jointly normal.",
    ),
    Case(
        name="observed_row",
        program="""
            [assume f (mem (lambda (i) (normal 0 1)))] [assume k (flip)]
            [observe (f 1) 2] [observe (normal (f k) 1) 1.5]""",
        query={"k": "k"},
        exact=observed_row,
        engines=EVERY,
        derivation="One alternative is an observed value, the other a free row; `true` and 1 are one key.",
    ),
    Case(
        name="existing_choice",
        program="""
            [assume m (normal 0 1)] [assume x (mem (lambda (i) (normal m 1)))]
            [predict (+ (x 1) (x 2))] [observe (normal (x 2) 1) 1] [observe (x 1) 3]""",
        query={"m": "m"},
        exact=existing_choice,
        engines=(*EVERY, "(mh default one 'drift 1.0 10)"),
        derivation="Normal; x(1) exists, and is used, before it is observed.",
        forward="""
            [assume m (normal 0 1)] [assume x (mem (lambda (i) (normal m 1)))]
            [observe (x 1) 3] [observe (normal (x 2) 1) 1]""",
    ),
    Case(
        name="structure_in_rows",
        program="""
            [assume f (mem (lambda (i) (scope_include 'rows i
                (if (flip 0.6) (list 1 (normal 0 1)) (list 0 (+ (normal 0 1) (normal 2 1)))))))]
            [observe (normal (lookup (f 1) 1) 0.5) 1.5] [observe (normal (lookup (f 2) 1) 0.5) 0]""",
        query={"code": "(+ (lookup (f 1) 0) (* 2 (lookup (f 2) 0)))"},
        exact=structure_in_rows,
        engines=(
            "(mh default one 24)",
            "(mh default each 6)",
            "(mh default all 14)",
            "(mh rows one 12)",
            "(mh rows each 6)",
            "(mh rows ordered 6)",
            "(mh rows all 14)",
            "(cycle ((mh rows 1 2) (mh rows 2 2)) 3)",
            "(cycle ((mh rows (ordered_range 1 1) 2) (mh default one 4)) 3)",
        ),
        derivation="Each row is one of two normal marginals; rows are independent.",
    ),
    Case(
        name="list_keys",
        program="""
            [assume f (mem (lambda (key) (normal 0 1)))] [assume i (flip 0.7)] [assume j (flip 0.5)]
            [observe (normal (f (list i 7)) 0.5) 1] [observe (normal (f (list j 7)) 0.5) 0.6]""",
        query={"ij": "(+ i (* 2 j))"},
        exact=list_keys,
        engines=EVERY,
        derivation="Enumeration: lists that are equal element by element are one key.",
    ),
    Case(
        name="chosen_procedure",
        program="""
            [assume f (mem (lambda (i) (normal 0 1)))] [assume g (mem (lambda (i) (normal 0 3)))]
            [assume z (flip)] [assume h (if z f g)]
            [observe (normal (h 0) 1) 1] [observe (normal (h 0) 1) 2]""",
        query={"z": "z"},
        exact=chosen_procedure,
        engines=EVERY,
        derivation="Two normal marginal likelihoods; the operator is a random choice between memoized procedures.",
    ),
    Case(
        name="memory_of_a_choice",
        program="""
            [assume z (flip)] [assume f (lambda (i) (normal i 1))] [assume g (lambda (i) (normal (* 2 i) 1))]
            [assume h (mem (if z f g))] [observe (h 3) 5]""",
        query={"z": "z"},
        exact=memory_of_a_choice,
        engines=EVERY,
        derivation="Two normal densities; evidence stays with the family of a procedure that is memoized anew.",
    ),
    Case(
        name="unbounded_keys",
        program="""
            [assume k (poisson 1.5)] [assume f (mem (lambda (i) (normal i 0.5)))]
            [observe (normal (f k) 1) 2]""",
        query={"k": "k"},
        exact=poisson_keys,
        engines=EVERY,
        derivation="Enumeration of keys, the row integrated out.",
    ),
)
