"""Small models with discrete states for `pgibbs`, each with its exact posterior by enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

from tests.statistics import Expected, Table

CHAIN = """
[assume x (mem (lambda (t) (scope_include 'x t (flip (if (= t 1) 0.5 (if (x (- t 1)) 0.8 0.3))))))]
[observe (normal (if (x 1) 1 -1) 1) 0.3]
[observe (normal (if (x 2) 1 -1) 1) -0.8]
[observe (normal (if (x 3) 1 -1) 1) 1.1]
[observe (normal (if (x 4) 1 -1) 1) -0.2]
"""
# y reads states 1 and 3: it absorbs at the later one
LONG_MEMORY = """
[assume x (mem (lambda (t) (scope_include 'x t (flip 0.4))))]
[observe (normal (+ (x 1) (* 2 (x 3))) 1) 1.2]
[observe (normal (+ (x 1) (x 2)) 0.8) 1.7]
[observe (flip (if (x 2) 0.9 0.2)) true]
"""
# two choices a block, the second a parent of the next block's first
PAIRS = """
[assume a (mem (lambda (t) (scope_include 'x t (flip (if (= t 1) 0.6 (if (b (- t 1)) 0.7 0.2))))))]
[assume b (mem (lambda (t) (scope_include 'x t (flip (if (a t) 0.9 0.4)))))]
[observe (normal (+ (a 1) (b 1)) 1) 1.5]
[observe (normal (- (a 2) (b 2)) 1) -0.5]
"""
# three series, a state of each in every block; the first says more of its noise, the last is longer
PANEL = """
[assume x (mem (lambda (s t) (scope_include 'x t (flip (if (= t 1) 0.5 (if (x s (- t 1)) 0.8 0.3))))))]
[assume y (lambda (s t) (normal (if (x s t) 1 -1) (+ 0.5 (* 0.1 s))))]
[observe (y 1 1) 0.3]
[observe (y 2 1) -0.1]
[observe (y 3 1) 0.2]
[observe (y 1 2) -0.4]
[observe (y 2 2) 0.1]
[observe (y 3 2) 0.3]
[observe (y 3 3) -0.2]
"""
# nothing is observed: y is a choice as x is
JOINT = """
[assume x (mem (lambda (t) (scope_include 'x t (flip (if (= t 1) 0.3 (if (x (- t 1)) 0.8 0.3))))))]
[assume y (mem (lambda (t) (scope_include 'y t (flip (if (x t) 0.85 0.4)))))]
[predict (list (y 1) (y 2) (y 3))]
"""
# the blocks in the order against their dependence
BACKWARD = """
[assume x (mem (lambda (t) (scope_include 'x (- 4 t) (flip (if (= t 1) 0.5 (if (x (- t 1)) 0.8 0.3))))))]
[observe (normal (x 3) 0.7) 1.1]
[observe (normal (x 2) 0.7) 0.2]
"""
# two series of two states, and what is computed from both states is stored
SUMS = """
[assume x (mem (lambda (s t) (scope_include 'x t (flip 0.5))))]
[assume v (+ (x 1 1) (x 1 2))]
[assume w (+ (x 2 1) (x 2 2))]
[observe (flip (if (= v 0) 0.2 0.5)) true]
[observe (flip (if (= w 0) 0.2 0.5)) true]
"""
# the branch taken decides whether a further choice exists
BRANCHES = """
[assume z (mem (lambda (t) (scope_include 'x t (flip (if (= t 1) 0.4 (if (z (- t 1)) 0.7 0.2))))))]
[assume e (mem (lambda (t) (if (z t) (if (flip 0.3) 2 0) (if (if (= t 1) true (z (- t 1))) 1 (flip 0.5)))))]
[observe (normal (e 1) 0.8) 1]
[observe (normal (e 2) 0.8) 1.6]
[observe (normal (e 3) 0.8) 0.4]
"""
# what a branch of one block brings into being reads the next block
AHEAD = """
[assume z (mem (lambda (t) (scope_include 'x t (flip 0.4))))]
[assume e (mem (lambda (t) (if (z t) (if (flip (if (z (+ t 1)) 0.9 0.2)) 2 0) 1)))]
[predict (list (z 1) (z 2) (z 3))]
[observe (normal (e 1) 0.8) 1.6]
[observe (normal (e 2) 0.8) 0.4]
"""
# tables of a CRP, each with a coin that comes and goes with it
TABLES = """
[assume c (make_crp 1.3)]
[assume z (mem (lambda (i) (scope_include 'x i (c))))]
[assume coin (mem (lambda (k) (if (flip 0.5) 0.9 0.2)))]
[observe (flip (coin (z 1))) true]
[observe (flip (coin (z 2))) false]
[observe (flip (coin (z 3))) true]
"""
# a hidden Markov model with unknown rows: that of a state comes with its first visit
ROWS = """
[assume row (mem (lambda (s) (if (flip 0.4) 0.9 0.2)))]
[assume x (mem (lambda (t) (scope_include 'x t (flip (if (= t 1) 0.5 (row (x (- t 1))))))))]
[observe (normal (x 1) 0.7) 0.8]
[observe (normal (x 2) 0.7) 0.1]
[observe (normal (x 3) 0.7) 0.7]
[observe (normal (x 4) 0.7) 0.6]
"""
# a maker whose parameter moves with the first block
MAKER = """
[assume a (scope_include 'x 0 (uniform_discrete 1 4))]
[assume f (make_beta_bernoulli a 2)]
[assume y (mem (lambda (i) (scope_include 'x i (f))))]
[observe (f) true]
[observe (normal (+ (y 1) (y 2)) 1) 0.2]
[observe (f) true]
"""


def normal(x: float, mean: float, sd: float) -> float:
    return math.exp(-0.5 * ((x - mean) / sd) ** 2) / sd


def code(*bits: int) -> float:
    return float(sum(int(bit) << i for i, bit in enumerate(bits)))


class Answer(dict[str, Expected]):
    """The probabilities of the states, and the sum of the weights that they follow from."""

    total: float


def exact(weights: Mapping[float, float]) -> Answer:
    total = sum(weights.values())
    answer = Answer({"state": Table({state: weight / total for state, weight in weights.items()})})
    answer.total = total
    return answer


def persistence(states: tuple[int, ...], start: float, stay: float, come: float) -> float:
    p, before = 1.0, None
    for state in states:
        up = start if before is None else stay if before else come
        p *= up if state else 1 - up
        before = state
    return p


def chain_answer() -> Answer:
    data = (0.3, -0.8, 1.1, -0.2)
    return exact(
        {
            code(*x): persistence(x, 0.5, 0.8, 0.3)
            * math.prod(normal(y, 1 if xi else -1, 1) for xi, y in zip(x, data, strict=True))
            for x in itertools.product((0, 1), repeat=4)
        }
    )


def joint_answer() -> Answer:
    states = itertools.product((0, 1), repeat=3)
    return exact({code(*x): persistence(x, 0.3, 0.8, 0.3) for x in states})


def memory_answer() -> Answer:
    return exact(
        {
            code(a, b, c): math.prod(0.4 if xi else 0.6 for xi in (a, b, c))
            * normal(1.2, a + 2 * c, 1)
            * normal(1.7, a + b, 0.8)
            * (0.9 if b else 0.2)
            for a, b, c in itertools.product((0, 1), repeat=3)
        }
    )


def pairs_answer() -> Answer:
    def p(value: int, up: float) -> float:
        return up if value else 1 - up

    return exact(
        {
            code(a, b, c, d): p(a, 0.6) * p(b, 0.9 if a else 0.4) * p(c, 0.7 if b else 0.2) * p(d, 0.9 if c else 0.4)
            * normal(1.5, a + b, 1) * normal(-0.5, c - d, 1)
            for a, b, c, d in itertools.product((0, 1), repeat=4)
        }
    )  # fmt: skip


def panel_answer() -> Answer:
    data = ((0.3, -0.4), (-0.1, 0.1), (0.2, 0.3, -0.2))
    weights: dict[float, float] = {}
    for bits in itertools.product((0, 1), repeat=7):
        weight = 1.0
        for s, (x, seen) in enumerate(zip((bits[:2], bits[2:4], bits[4:]), data, strict=True)):
            weight *= persistence(x, 0.5, 0.8, 0.3)
            weight *= math.prod(normal(y, 1 if xi else -1, 0.6 + 0.1 * s) for xi, y in zip(x, seen, strict=True))
        # the states that are numbered: series 1 and 2, and the end of series 3
        state = code(*bits[:4], bits[6])
        weights[state] = weights.get(state, 0.0) + weight
    return exact(weights)


def backward_answer() -> Answer:
    return exact(
        {
            code(*x): persistence(x, 0.5, 0.8, 0.3) * normal(1.1, x[2], 0.7) * normal(0.2, x[1], 0.7)
            for x in itertools.product((0, 1), repeat=3)
        }
    )


def sums_answer() -> Answer:
    weights = {}
    for a, b, c, d in itertools.product((0, 1), repeat=4):
        weight = math.prod(0.5 if total else 0.2 for total in (a + b, c + d))
        weights[code(a, b, c, d) + 16 * (a + b) + 64 * (c + d)] = weight
    return exact(weights)


def branches_answer() -> Answer:
    weights: dict[float, float] = {}
    for z in itertools.product((0, 1), repeat=3):
        weight = persistence(z, 0.4, 0.7, 0.2)
        for t, y in enumerate((1, 1.6, 0.4)):
            if z[t]:
                weight *= 0.3 * normal(y, 2, 0.8) + 0.7 * normal(y, 0, 0.8)
            elif t == 0 or z[t - 1]:
                weight *= normal(y, 1, 0.8)
            else:
                weight *= 0.5 * normal(y, 1, 0.8) + 0.5 * normal(y, 0, 0.8)
        weights[code(*z)] = weight
    return exact(weights)


def ahead_answer() -> Answer:
    weights: dict[float, float] = {}
    for z in itertools.product((0, 1), repeat=3):
        weight = math.prod(0.4 if zt else 0.6 for zt in z)
        for t, y in enumerate((1.6, 0.4)):
            up = 0.9 if z[t + 1] else 0.2
            weight *= up * normal(y, 2, 0.8) + (1 - up) * normal(y, 0, 0.8) if z[t] else normal(y, 1, 0.8)
        weights[code(*z)] = weight
    return exact(weights)


def tables_answer() -> Answer:
    data = (1, 0, 1)
    alpha, weights = 1.3, {}
    for same12, same13, same23 in ((1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)):
        parts = {(1, 1, 1): [(0, 1, 2)], (1, 0, 0): [(0, 1), (2,)], (0, 1, 0): [(0, 2), (1,)]}.get(
            (same12, same13, same23), [(1, 2), (0,)] if same23 else [(0,), (1,), (2,)]
        )
        weight = 1.0
        for part in parts:
            weight *= alpha * math.factorial(len(part) - 1)
            weight *= sum(0.5 * math.prod(p if data[i] else 1 - p for i in part) for p in (0.9, 0.2))
        weights[code(same12, same13, same23)] = weight
    return exact(weights)


def rows_answer() -> Answer:
    weights: dict[float, float] = {}
    for *x, low, high in itertools.product((0, 1), repeat=6):
        rows = [0.9 if up else 0.2 for up in (low, high)]
        weight = math.prod(0.4 if up else 0.6 for up in (low, high))
        weight *= math.prod(normal(y, xt, 0.7) for y, xt in zip((0.8, 0.1, 0.7, 0.6), x, strict=True))
        for before, after in itertools.pairwise(x):
            weight *= rows[before] if after else 1 - rows[before]
        weights[code(*x)] = weights.get(code(*x), 0.0) + weight
    return exact(weights)


def maker_answer() -> Answer:
    weights = {}
    for a, x, y in itertools.product((1, 2, 3), (0, 1), (0, 1)):
        weight, heads, total = 1.0, a, a + 2
        for value in (1, 1, x, y):
            weight *= heads / total if value else 1 - heads / total
            heads, total = heads + value, total + 1
        weights[a + 4 * code(x, y)] = weight * normal(0.2, x + y, 1)
    return exact(weights)


Model = tuple[str, str, Callable[[], Answer]]
"""A program, an expression that numbers its states, and the states' exact probabilities."""

PLAIN: dict[str, Model] = {
    "chain": (CHAIN, "(+ (x 1) (* 2 (x 2)) (* 4 (x 3)) (* 8 (x 4)))", chain_answer),
    "long memory": (LONG_MEMORY, "(+ (x 1) (* 2 (x 2)) (* 4 (x 3)))", memory_answer),
    "panel": (PANEL, "(+ (x 1 1) (* 2 (x 1 2)) (* 4 (x 2 1)) (* 8 (x 2 2)) (* 16 (x 3 3)))", panel_answer),
    "backward": (BACKWARD, "(+ (x 1) (* 2 (x 2)) (* 4 (x 3)))", backward_answer),
    "sums": (
        SUMS,
        "(+ (x 1 1) (* 2 (x 1 2)) (* 4 (x 2 1)) (* 8 (x 2 2)) (* 16 v) (* 64 w))",
        sums_answer,
    ),
    "pairs": (PAIRS, "(+ (a 1) (* 2 (b 1)) (* 4 (a 2)) (* 8 (b 2)))", pairs_answer),
}
OTHER: dict[str, Model] = {
    "ahead": (AHEAD, "(+ (z 1) (* 2 (z 2)) (* 4 (z 3)))", ahead_answer),
    "branches": (BRANCHES, "(+ (z 1) (* 2 (z 2)) (* 4 (z 3)))", branches_answer),
    "tables": (TABLES, "(+ (= (z 1) (z 2)) (* 2 (= (z 1) (z 3))) (* 4 (= (z 2) (z 3))))", tables_answer),
    "rows": (ROWS, "(+ (x 1) (* 2 (x 2)) (* 4 (x 3)) (* 8 (x 4)))", rows_answer),
    "maker": (MAKER, "(+ a (* 4 (y 1)) (* 8 (y 2)))", maker_answer),
}
WITHOUT_DATA: Model = (JOINT, "(+ (x 1) (* 2 (x 2)) (* 4 (x 3)))", joint_answer)
MODELS = PLAIN | OTHER


NORMALS = {"chain": 4, "long memory": 2, "panel": 7, "backward": 2, "pairs": 2, "ahead": 2, "branches": 3, "rows": 4,
           "maker": 1}  # fmt: skip
"""How many normal densities the weights of a model leave a factor of 1 / sqrt(2 pi) out of, each."""


def log_evidence(name: str) -> float:
    """Of one of the MODELS, by enumeration."""
    # what the weights of a model are divided by, apart from that: a CRP's by rising factorials, states by halves
    divisor = {"tables": 1.3 * 2.3 * 3.3, "sums": 16.0, "rows": 2.0}.get(name, 1.0)
    if name == "maker":
        divisor = 3.0
    return math.log(MODELS[name][2]().total / divisor) - 0.5 * math.log(2 * math.pi) * NORMALS.get(name, 0)
