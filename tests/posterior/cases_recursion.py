"""Recursion of random depth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from scipy import special, stats

from tests.posterior.case import Case
from tests.posterior.derive import normal_mixture, normal_pdf, pushforward, table
from tests.statistics import Expected

EVERY = ("(mh default one 6)", "(mh default each 4)", "(mh default all 8)")
DEEP = 200


def geometric() -> Mapping[str, Expected]:
    return {"n": table({n: 0.4**n * normal_pdf(2, n, 1) for n in range(DEEP)})}


def random_sum() -> Mapping[str, Expected]:
    # S given n is N(n, sqrt n); the observation adds variance 1/4.
    w = {n: 0.5**n * normal_pdf(2.2, n, math.sqrt(n + 0.25)) for n in range(DEEP)}
    heavy = range(1, 40)
    means = [0.0] + [(1 + 2.2 * 4) / (1 / n + 4) for n in heavy]
    sds = [1e-9] + [(1 / n + 4) ** -0.5 for n in heavy]
    sums = normal_mixture([w[n] for n in range(40)][1:], means[1:], sds[1:])
    # The atom at 0 (n = 0) is below every point that is compared.
    atom = w[0] / math.fsum(w.values())
    assert (sums.points > 0).all()
    return {"n": table(w), "s": type(sums)(sums.points, atom + (1 - atom) * sums.probabilities)}


def tree_size() -> Mapping[str, Expected]:
    # P(size = 2k + 1) = Catalan(k) p^(k+1) q^k (Otter 1949, The multiplicative process).
    w = {
        2 * k + 1: float(special.comb(2 * k, k, exact=True) / (k + 1)) * 0.65 ** (k + 1) * 0.35**k for k in range(DEEP)
    }
    return {"size": table({n: p * float(stats.poisson.pmf(4, n)) for n, p in w.items()})}


def evidence_at_depth() -> Mapping[str, Expected]:
    return {"depth": table({d: 0.5 ** (d + 1) * normal_pdf(2.3, d, 1) for d in range(DEEP)})}


def random_graph() -> Mapping[str, Expected]:
    weights = {}
    for successor in itertools.product(range(4), repeat=4):
        end = successor[successor[successor[0]]]
        loop = float(successor[0] == 0)
        weights[(end, loop, *successor)] = normal_pdf(2, end, 1)
    return {
        "end": pushforward(weights, lambda end, *_: end),
        "loop": pushforward(weights, lambda end, loop, *_: loop),
    }


def depth_as_argument() -> Mapping[str, Expected]:
    # n fair flips, each adding 1: k | n is binomial.
    weights = {
        (n, k): 0.6**n * 0.4 * math.comb(n, k) * 0.5**n * normal_pdf(1.5, k, 0.8)
        for n in range(60)
        for k in range(n + 1)
    }
    return {"n": pushforward(weights, lambda n, k: n), "k": pushforward(weights, lambda n, k: k)}


def random_list() -> Mapping[str, Expected]:
    weights = {n: 0.5 ** (n + 1) * normal_pdf(1, n, 1) for n in range(DEEP)}
    return {"n": table(weights)}


def mutual() -> Mapping[str, Expected]:
    # Stop in `even` with 0.3 and in `odd` with 0.6: n steps survive p_even p_odd alternately.
    w, alive = {}, 1.0
    for n in range(DEEP):
        stop = 0.6 if n % 2 else 0.3
        w[n] = alive * stop * normal_pdf(2.5, n, 1)
        alive *= 1 - stop
    return {"n": table(w)}


def shared_walk() -> Mapping[str, Expected]:
    # Memoized states of a two-state chain, started at 0 and kept with probability 0.7.
    weights = {}
    for path in itertools.product(range(2), repeat=4):
        weight, before = 1.0, 0
        for t, state in enumerate(path):
            weight *= 0.7 if state == before else 0.3
            if t in (1, 3):
                weight *= normal_pdf(0.8 if t == 1 else 0.4, state, 0.7)
            before = state
        weights[path] = weight
    return {"path": pushforward(weights, lambda *p: sum(s << t for t, s in enumerate(p)))}


CASES = (
    Case(
        name="geometric",
        program="[assume (geo) (if (flip 0.6) 0 (+ 1 (geo)))] [assume n (geo)] [observe (normal n 1) 2]",
        query={"n": "n"},
        exact=geometric,
        engines=(*EVERY, "(mh default ordered 4)", "(gibbs default one 10)", "(gibbs default each 3)"),
        derivation="Enumeration of depths; a depth of n has n + 1 blocks.",
    ),
    Case(
        name="random_sum",
        program="""
            [assume (geo) (if (flip 0.5) 0 (+ 1 (geo)))] [assume n (geo)]
            [assume (walk k) (if (= k 0) 0 (+ (normal 1 1) (walk (- k 1))))] [assume s (walk n)]
            [observe (normal s 0.5) 2.2]""",
        query={"n": "n", "s": "s"},
        exact=random_sum,
        engines=("(mh default one 20)", "(mh default each 6)", "(mh default all 14)"),
        derivation="n by enumeration with the steps integrated out; s given n is normal.",
    ),
    Case(
        name="tree_size",
        program="""
            [assume (tree) (if (flip 0.65) 1 (+ 1 (tree) (tree)))] [assume size (tree)]
            [observe (poisson size) 4]""",
        query={"size": "size"},
        exact=tree_size,
        engines=("(mh default one 8)", "(mh default each 5)", "(mh default all 6)", "(gibbs default one 12)"),
        derivation="Sizes of a branching tree are counted by Catalan numbers.",
    ),
    Case(
        name="evidence_at_depth",
        program="""
            [assume stop (mem (lambda (d) (flip 0.5)))]
            [assume (emit d) (if (stop d) (normal d 1) (emit (+ d 1)))]
            [assume (depth d) (if (stop d) d (depth (+ d 1)))]
            [observe (emit 0) 2.3]""",
        query={"depth": "(depth 0)"},
        exact=evidence_at_depth,
        engines=(*EVERY, "(gibbs default one 10)", "(gibbs default each 3)"),
        derivation="Enumeration of depths; the constrained choice lies at the bottom of a recursion of random depth.",
    ),
    Case(
        name="random_graph",
        program="""
            [assume next (mem (lambda (s) (uniform_discrete 0 4)))]
            [assume (hop s n) (if (= n 0) s (hop (next s) (- n 1)))]
            [assume end (hop 0 3)] [observe (normal end 1) 2]""",
        query={"end": "end", "loop": "(= (next 0) 0)"},
        exact=random_graph,
        engines=(
            "(mh default one 7)",
            "(mh default each 6)",
            "(mh default all 8)",
            "(gibbs default one 6)",
            "(gibbs default each 3)",
        ),
        derivation="Enumeration of all 256 successor maps; memoized rows come and go with the path.",
    ),
    Case(
        name="depth_as_argument",
        program="""
            [assume (geo) (if (flip 0.4) 0 (+ 1 (geo)))] [assume n (geo)]
            [assume (heads k) (if (= k 0) 0 (+ (if (flip) 1 0) (heads (- k 1))))] [assume k (heads n)]
            [observe (normal k 0.8) 1.5]""",
        query={"n": "n", "k": "k"},
        exact=depth_as_argument,
        engines=("(mh default one 6)", "(mh default each 5)", "(mh default all 8)", "(gibbs default one 16)"),
        derivation="Enumeration of (n, k): k given n is binomial.",
    ),
    Case(
        name="random_list",
        program="""
            [assume (items) (if (flip) (list) (pair (normal 0 1) (items)))] [assume xs (items)]
            [observe (normal (size xs) 1) 1]""",
        query={"n": "(size xs)"},
        exact=random_list,
        engines=(*EVERY, "(mh default ordered 4)"),
        derivation="Enumeration of lengths; two choices for each element, whose values do not matter.",
    ),
    Case(
        name="mutual_recursion",
        program="""
            [assume (even n) (if (flip 0.3) n (odd (+ n 1)))] [assume (odd n) (if (flip 0.6) n (even (+ n 1)))]
            [assume n (even 0)] [observe (normal n 1) 2.5]""",
        query={"n": "n"},
        exact=mutual,
        engines=(*EVERY, "(gibbs default one 10)"),
        derivation="Enumeration of depths.",
    ),
    Case(
        name="shared_walk",
        program="""
            [assume state (mem (lambda (t) (if (= t 0) 0 (if (flip 0.7) (state (- t 1)) (- 1 (state (- t 1)))))))]
            [observe (normal (state 2) 0.7) 0.8] [observe (normal (state 4) 0.7) 0.4]""",
        query={"path": "(+ (state 1) (* 2 (state 2)) (* 4 (state 3)) (* 8 (state 4)))"},
        exact=shared_walk,
        engines=(
            "(mh default one 6)",
            "(mh default each 4)",
            "(mh default all 6)",
            "(gibbs default one 10)",
            "(gibbs default each 3)",
            "(gibbs default all 1)",
        ),
        derivation="Enumeration of 16 paths; each state refers to the one before it in both branches.",
    ),
)
