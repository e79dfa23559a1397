"""Scopes and blocks: blocks of dependent choices, sweeps in which blocks come and go, and the count of blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
from scipy import stats

from tests.posterior.case import Case
from tests.posterior.derive import cdf, gaussian_posterior, normal_mixture, normal_pdf, pushforward, table
from tests.statistics import Expected

HMM = """
    [assume state (mem (lambda (t) (scope_include 's t
        (if (= t 0) (flip 0.5) (flip (if (state (- t 1)) 0.8 0.3))))))]
    [observe (normal (if (state 0) 1 0) 0.8) 0.9] [observe (normal (if (state 1) 1 0) 0.8) 0.2]
    [observe (normal (if (state 2) 1 0) 0.8) 0.8] [observe (normal (if (state 3) 1 0) 0.8) 1.3]"""


def hidden_chain() -> Mapping[str, Expected]:
    weights = {}
    for path in itertools.product(range(2), repeat=4):
        weight = 0.5
        for before, after in itertools.pairwise(path):
            up = 0.8 if before else 0.3
            weight *= up if after else 1 - up
        weights[path] = weight * math.prod(
            normal_pdf(y, s, 0.8) for y, s in zip((0.9, 0.2, 0.8, 1.3), path, strict=True)
        )
    return {"path": pushforward(weights, lambda *p: sum(s << t for t, s in enumerate(p)))}


def dependent_block() -> Mapping[str, Expected]:
    # (x, y, w): y ~ N(x, 1), w ~ N(y, 1).
    cov = np.array([[1.0, 1, 1], [1, 2, 2], [1, 2, 3]])
    mean, post, _ = gaussian_posterior(np.zeros(3), cov, np.array([[0, 1.0, 1.0]]), np.array([1.0]), np.array([3.0]))
    return {name: cdf(stats.norm(mean[i], math.sqrt(post[i, i]))) for i, name in enumerate("xyw")}


def block_gains_a_choice() -> Mapping[str, Expected]:
    # a ~ N(0, 1); b ~ N(1, 1) in a's block if z, else N(0, 2) in its own: two blocks with z, three without.
    w = {1: 0.5 * normal_pdf(2, 1, math.sqrt(3)), 0: 0.5 * normal_pdf(2, 0, math.sqrt(6))}
    a = normal_mixture([w[1], w[0]], [1 / 3, 2 / 6], [math.sqrt(2 / 3), math.sqrt(5 / 6)])
    return {"z": table(w), "a": a}


def choices_come_and_go() -> Mapping[str, Expected]:
    # The sum of n terms N(1, 1), observed with sd 1 at 2.2.
    return {"n": table({n: normal_pdf(2.2, n, math.sqrt(n + 1)) for n in range(1, 4)})}


def conditional_members() -> Mapping[str, Expected]:
    weights = {}
    for a in range(2):
        for b in range(2) if a else range(3):
            p_b = (0.3 if b else 0.7) if a else (0.2, 0.5, 0.3)[b]
            for c in range(2) if b else (0,):
                p_c = (0.2 if c else 0.8) if b else 1.0
                for e in range(2) if a else (1,):
                    p_e = (0.4 if e else 0.6) if a else 1.0
                    for f in range(2):
                        p = (0.6 if a else 0.4) * p_b * p_c * p_e * 0.5
                        weights[a, b, c, e, f] = p * normal_pdf(2, a + b + 2 * c + e + f, 1)
    return {
        "head": pushforward(weights, lambda a, b, c, e, f: a + 2 * b + 6 * c),
        "tail": pushforward(weights, lambda a, b, c, e, f: e + 2 * f),
    }


def nested_tags() -> Mapping[str, Expected]:
    # (x, y, w) independent; x + y + w observed.
    mean, post, _ = gaussian_posterior(
        np.array([0.0, 1.0, 0.0]), np.eye(3), np.ones((1, 3)), np.array([0.8]), np.array([3.0])
    )
    return {name: cdf(stats.norm(mean[i], math.sqrt(post[i, i]))) for i, name in enumerate("xyw")}


def continuous_brush() -> Mapping[str, Expected]:
    w = {0: normal_pdf(1.4, 0, 1), 1: normal_pdf(1.4, 1, math.sqrt(2)), 2: normal_pdf(1.4, 2, math.sqrt(3))}
    return {"a": table(w)}


def count_within_a_block() -> Mapping[str, Expected]:
    # The number of choices in block 0 varies, the number of blocks does not.
    return {"z": table({1: 0.4 * normal_pdf(1, 0, math.sqrt(4)), 0: 0.6 * normal_pdf(1, 1, math.sqrt(2))})}


CASES = (
    Case(
        name="hidden_chain",
        program=HMM,
        query={"path": "(+ (state 0) (* 2 (state 1)) (* 4 (state 2)) (* 8 (state 3)))"},
        exact=hidden_chain,
        engines=(
            "(mh default one 12)",
            "(mh s one 12)",
            "(mh s ordered 3)",
            "(mh s all 8)",
            "(gibbs s one 8)",
            "(gibbs s ordered 2)",
            "(gibbs s each 2)",
            "(gibbs s all 1)",
            "(cycle ((gibbs s (ordered_range 0 1) 1) (mh s (ordered_range 2 3) 2)) 2)",
            "(cycle ((gibbs s 0 1) (gibbs s 1 1) (mh s 2 2) (mh s 3 2)) 1)",
            "(mixture (0.5 (gibbs s ordered 1) 0.5 (mh s one 3)) 3)",
        ),
        derivation="Enumeration of 16 paths.",
    ),
    Case(
        name="dependent_block",
        program="""
            [assume x (scope_include 's 0 (normal 0 1))] [assume y (scope_include 's 0 (normal x 1))]
            [assume w (scope_include 's 1 (normal y 1))]
            [observe (normal (+ y w) 1) 3]""",
        query={"x": "x", "y": "y", "w": "w"},
        exact=dependent_block,
        engines=(
            "(mh s one 24)",
            "(mh s each 14)",
            "(mh s all 20)",
            "(mh s one 'drift 0.7 24)",
            "(mh s each 'drift 0.7 14)",
            "(cycle ((mh s 0 'drift 0.7 2) (mh s 1 2) (mh s all 2)) 5)",
        ),
        derivation="Jointly normal; block 0 holds x and its child y.",
    ),
    Case(
        name="block_gains_a_choice",
        program="""
            [assume z (scope_include 's 0 (flip))] [assume a (scope_include 's 1 (normal 0 1))]
            [assume b (if z (scope_include 's 1 (normal 1 1)) (scope_include 's 2 (normal 0 2)))]
            [observe (normal (+ a b) 1) 2]""",
        query={"z": "z", "a": "a"},
        exact=block_gains_a_choice,
        engines=("(mh s one 14)", "(mh s each 3)", "(mh s ordered 6)", "(mh s all 10)", "(mh default one 14)"),
        derivation="Two normal marginals. Two blocks with z, three without: blocks are counted, not choices.",
    ),
    Case(
        name="choices_come_and_go",
        program="""
            [assume n (scope_include 's 2 (uniform_discrete 1 4))]
            [assume x (mem (lambda (i) (scope_include 's (if (< i 2) i (+ i 1)) (normal 1 1))))]
            [assume (total k) (if (= k 0) 0 (+ (x k) (total (- k 1))))]
            [observe (normal (total n) 1) 2.2]""",
        query={"n": "n"},
        exact=choices_come_and_go,
        engines=(
            "(mh s one 8)",
            "(mh s each 5)",
            "(mh s ordered 5)",
            "(mh s (ordered_range 1 4) 5)",
            "(mh s all 8)",
            "(mh default each 5)",
            "(cycle ((mh s (ordered_range 1 2) 2) (mh s (ordered_range 3 4) 1)) 3)",
            "(cycle ((gibbs s 2 1) (mh s each 1)) 4)",
        ),
        derivation="Sums of normals; blocks 3 and 4 come and go while a sweep passes block 2.",
    ),
    Case(
        name="conditional_members",
        program="""
            [assume a (scope_include 's 0 (flip 0.6))]
            [assume b (scope_include 's 0 (if a (if (flip 0.3) 1 0) (categorical (vector 0.2 0.5 0.3))))]
            [assume c (if (= b 0) false (scope_include 's 0 (flip 0.2)))]
            [assume e (if a (scope_include 's 1 (flip 0.4)) true)]
            [assume f (scope_include 's 2 (flip))]
            [observe (normal (+ a b (* 2 c) e f) 1) 2]""",
        query={"head": "(+ a (* 2 b) (* 6 c))", "tail": "(+ e (* 2 f))"},
        exact=conditional_members,
        engines=(
            "(mh s one 7)",
            "(mh s each 5)",
            "(mh s all 8)",
            "(mh default one 20)",
            "(gibbs s one 6)",
            "(gibbs s each 2)",
            "(gibbs s ordered 2)",
            "(gibbs s all 1)",
            "(gibbs default all 1)",
            "(gibbs default one 10)",
            "(gibbs default each 3)",
            "(cycle ((gibbs s 0 1) (gibbs s 1 1) (gibbs s 2 1)) 2)",
            "(cycle ((gibbs s one 1) (mh s one 1)) 5)",
        ),
        derivation="Enumeration. Members of block 0, and block 1 itself, exist only under some values of a and b.",
    ),
    Case(
        name="nested_tags",
        program="""
            [assume pair (scope_include 's 0 (list (normal 0 1) (scope_include 's 1 (normal 1 1))))]
            [assume w (scope_include 's 1 (scope_include 'other 5 (normal 0 1)))]
            [observe (normal (+ (lookup pair 0) (lookup pair 1) w) 0.8) 3]""",
        query={"x": "(lookup pair 0)", "y": "(lookup pair 1)", "w": "w"},
        exact=nested_tags,
        engines=(
            "(mh s one 20)",
            "(mh s each 10)",
            "(cycle ((mh s 0 'drift 1.0 1) (mh s 1 'drift 0.7 2)) 8)",
            "(cycle ((mh s 1 2) (mh other 5 1) (mh s 0 2)) 5)",
        ),
        derivation="Jointly normal; the inner tag of a scope counts.",
    ),
    Case(
        name="continuous_brush",
        program="""
            [assume a (scope_include 'a 0 (uniform_discrete 0 3))]
            [assume x (cond ((= a 0) 0) ((= a 1) (normal 1 1)) (else (+ (normal 0 1) (normal 2 1))))]
            [observe (normal x 1) 1.4]""",
        query={"a": "a"},
        exact=continuous_brush,
        engines=(
            "(gibbs a one 2)",
            "(gibbs a all 6)",
            "(gibbs a each 6)",
            "(mh a one 4)",
            "(cycle ((gibbs a one 1) (mh default one 2)) 4)",
            "(mh default each 6)",
        ),
        derivation="Three normal marginals; gibbs keeps the current branch as it is and draws the others.",
    ),
    Case(
        name="count_within_a_block",
        program="""
            [assume z (scope_include 's 0 (flip 0.4))]
            [assume x (if z (+ (scope_include 's 0 (normal 0 1)) (scope_include 's 1 (normal 0 1))
                               (scope_include 's 0 (normal 0 1)))
                            (scope_include 's 1 (normal 1 1)))]
            [observe (normal x 1) 1]""",
        query={"z": "z"},
        exact=count_within_a_block,
        engines=("(mh s one 5)", "(mh s each 3)", "(mh s 0 10)", "(mh s all 10)", "(mh default one 14)"),
        derivation="Two normal marginals; block 0 has three choices or one, and there are always two blocks.",
    ),
)
