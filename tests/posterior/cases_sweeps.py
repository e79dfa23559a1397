"""Sweeps over choices that only where they were made tells apart: memoized procedures made by memoized procedures, keys
that print alike, keys that are procedures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from tests.posterior.case import Case
from tests.posterior.derive import pushforward
from tests.statistics import Expected

SWEEPS = (
    "(gibbs default each 1)",
    "(mh default each 3)",
    "(mh default ordered 3)",
    "(mh default one 12)",
    "(pgibbs default ordered 6 2)",
)


def coins(probabilities: Sequence[float]) -> Iterator[tuple[tuple[bool, ...], float]]:
    """Every outcome of independent coins, with its probability."""
    for values in itertools.product((False, True), repeat=len(probabilities)):
        weight = 1.0
        for value, p in zip(values, probabilities, strict=True):
            weight *= p if value else 1 - p
        yield values, weight


def two_makers() -> Mapping[str, Expected]:
    weights = {(x, y): w * (0.25 if y else 0.75) for (x, y), w in coins([0.5, 0.5])}
    return {"xy": pushforward(weights, lambda x, y: x + 2 * y)}


def local_memos() -> Mapping[str, Expected]:
    """The first call's two keys are one."""
    weights = {}
    for (a, b, c), w in coins([0.3] * 3):
        weights[a, b, c] = w * (0.9 if a == b else 0.2) * (0.3 if c else 0.6)
    return {"coins": pushforward(weights, lambda a, b, c: 3 * a + 5 * b + c)}


def mapped_makers() -> Mapping[str, Expected]:
    weights = {}
    for values, w in coins([0.4] * 3):
        weights[values] = w * (0.9 if values[0] == values[2] else 0.2) * (0.7 if values[1] == values[2] else 0.3)
    return {"coins": pushforward(weights, lambda a, b, c: a + 2 * b + 4 * c)}


def keys_alike() -> Mapping[str, Expected]:
    weights = {}
    for (a, b, c, d, e), w in coins([0.3] * 5):
        likelihood = (0.8 if a == b else 0.2) * (0.9 if b == c else 0.3) * (0.7 if c == d else 0.3)
        weights[a, b, c, d, e] = w * likelihood * (0.1 if d == e else 0.6)
    return {"coins": pushforward(weights, lambda a, b, c, d, e: a + 2 * b + 4 * c + 8 * d + 16 * e)}


def labels_by_key() -> Mapping[str, Expected]:
    """Seats of three customers, whoever the first is."""
    weights: dict[tuple[float, ...], float] = {}
    for first, u, w in itertools.product(range(3), repeat=3):
        if first or u > 1 or w > max(u, 0) + 1:
            continue
        seats, chance = [first, u, w], 1.0
        for at, seat in enumerate(seats):
            chance *= (seats[:at].count(seat) or 1) / (at + 1)
        likelihood = (0.9 if first == u else 0.3) * (0.1 if u == w else 0.9)
        same = float(first == u), float(first == w)
        weights[same] = weights.get(same, 0.0) + chance * likelihood
    return {"same": pushforward(weights, lambda u, w: u + 2 * w)}


Tables = tuple[int, ...]


def seated(tables: Tables) -> Iterator[tuple[int, Tables, float]]:
    """Where the next customer of a Chinese restaurant of concentration 1 sits, how the tables are then, and with what
    probability."""
    total = sum(tables) + 1
    for at, count in enumerate((*tables, 1)):
        yield at, (*tables[:at], count + (at < len(tables)), *tables[at + 1 :]), count / total


def states(length: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """Paths of a hierarchical Dirichlet process hidden Markov model from state 0, with their probabilities. States go
    by dishes, which count from 1; state 0 is none of them."""
    todo: list[tuple[tuple[int, ...], dict[int, Tables], dict[tuple[int, int], int], Tables, float]] = [
        ((0,), {}, {}, (), 1.0)
    ]
    while todo:
        path, rows, dishes, top, weight = todo.pop()
        if len(path) > length:
            yield path[1:], weight
            continue
        last = path[-1]
        for table, row, p in seated(rows.get(last, ())):
            if (last, table) in dishes:
                dish = dishes[last, table]
                todo.append(((*path, dish), {**rows, last: row}, dishes, top, weight * p))
                continue
            for served, then, q in seated(top):
                more = {**dishes, (last, table): served + 1}
                todo.append(((*path, served + 1), {**rows, last: row}, more, then, weight * p * q))


def hierarchical_states() -> Mapping[str, Expected]:
    weights: dict[tuple[float, ...], float] = {}
    for (first, second, third), w in states(3):
        same = (float(first == second), float(second == third), float(first == third))
        likelihood = (0.2 if first == second else 0.8) * (0.9 if second == third else 0.4)
        weights[same] = weights.get(same, 0.0) + w * likelihood
    return {"same": pushforward(weights, lambda a, b, c: a + 2 * b + 4 * c)}


CASES = (
    Case(
        name="two_makers",
        program="""
            [assume maker (mem (lambda (i) (mem (lambda (k) (flip)))))]
            [assume x ((maker 1) 1)] [assume y ((maker 2) 1)]
            [observe (flip (if y 0.25 0.75)) true]""",
        query={"xy": "(+ x (* 2 y))"},
        exact=two_makers,
        engines=SWEEPS,
        derivation="Two coins, one of which the datum weighs.",
    ),
    Case(
        name="local_memos",
        program="""
            [assume pair (mem (lambda (i)
              (let ((g (mem (lambda (k) (flip 0.3))))) (list (g 1) (g i)))))]
            [assume a (first (pair 1))] [assume b (first (pair 2))] [assume c (lookup (pair 2) 1)]
            [observe (flip (if (= a b) 0.9 0.2)) true] [observe (flip (if c 0.3 0.6)) true]""",
        query={"coins": "(+ a (* 2 (lookup (pair 1) 1)) (* 5 b) c)"},
        exact=local_memos,
        engines=SWEEPS,
        derivation="Enumeration of three coins: the first call asks for one key twice.",
    ),
    Case(
        name="mapped_makers",
        program="""
            [assume maker (mem (lambda (i) (mem (lambda (k) (flip 0.4)))))]
            [assume coins (map (lambda (m) (m 1)) (map maker (list 1 2 3)))]
            [observe (flip (if (= (lookup coins 0) (lookup coins 2)) 0.9 0.2)) true]
            [observe (flip (if (= (lookup coins 1) (lookup coins 2)) 0.7 0.3)) true]""",
        query={"coins": "(+ (lookup coins 0) (* 2 (lookup coins 1)) (* 4 (lookup coins 2)))"},
        exact=mapped_makers,
        engines=SWEEPS,
        derivation="Enumeration of three coins.",
        forward="""
            [assume maker (mem (lambda (i) (mem (lambda (k) (flip 0.4)))))]
            [assume coins (list ((maker 1) 1) ((maker 2) 1) ((maker 3) 1))]
            [observe (flip (if (= (lookup coins 0) (lookup coins 2)) 0.9 0.2)) true]
            [observe (flip (if (= (lookup coins 1) (lookup coins 2)) 0.7 0.3)) true]""",
    ),
    Case(
        name="keys_alike",
        program="""
            [assume coin (mem (lambda (v) (tag 's v (flip 0.3))))]
            [assume made (lambda (i) (lambda () i))] [assume one (made 1)] [assume two (made 2)]
            [assume a (coin (vector 0.1 0.2))] [assume b (coin (vector 0.1 0.2000000001))]
            [assume c (coin one)] [assume d (coin two)] [assume e (coin (mem one))]
            [observe (flip (if (= a b) 0.8 0.2)) true] [observe (flip (if (= b c) 0.9 0.3)) true]
            [observe (flip (if (= c d) 0.7 0.3)) true] [observe (flip (if (= d e) 0.1 0.6)) true]""",
        query={"coins": "(+ a (* 2 b) (* 4 c) (* 8 d) (* 16 e))"},
        exact=keys_alike,
        engines=(
            "(gibbs s each 2)",
            "(mh s each 5)",
            "(gibbs s ordered 2)",
            "(gibbs default each 2)",
            "(pgibbs s ordered 6 2)",
        ),
        derivation="Enumeration of five coins, each with a key of its own.",
        forward="""
            [assume coin (mem (lambda (v) (flip 0.3)))]
            [assume a (coin 1)] [assume b (coin 2)] [assume c (coin 3)] [assume d (coin 4)] [assume e (coin 5)]
            [observe (flip (if (= a b) 0.8 0.2)) true] [observe (flip (if (= b c) 0.9 0.3)) true]
            [observe (flip (if (= c d) 0.7 0.3)) true] [observe (flip (if (= d e) 0.1 0.6)) true]""",
    ),
    Case(
        name="hierarchical_states",
        program="""
            [assume top (make_crp 1)]
            [assume row (mem (lambda (s) (make_crp 1)))]
            [assume dish (mem (lambda (s) (mem (lambda (table) (top)))))]
            [assume next (lambda (s) ((dish s) ((row s))))]
            [assume first_state (next 0)] [assume second_state (next first_state)]
            [assume third_state (next second_state)]
            [observe (flip (if (= first_state second_state) 0.2 0.8)) true]
            [observe (flip (if (= second_state third_state) 0.9 0.4)) true]""",
        query={
            "same": "(+ (= first_state second_state) (* 2 (= second_state third_state)) "
            "(* 4 (= first_state third_state)))"
        },
        exact=hierarchical_states,
        engines=("(gibbs default each 1)", "(mh default each 4)", "(mh default one 20)"),
        derivation="Enumeration of seats and dishes, three transitions long.",
    ),
    Case(
        name="labels_by_key",
        program="""
            [assume seat (make_crp 1)] [assume z (mem (lambda (i) (seat)))]
            [assume k (tag 'k 0 (uniform_discrete 0 4))] [assume a (z k)]
            [assume u (z 10)] [assume w (z 11)]
            [observe (flip (if (= a u) 0.9 0.3)) true] [observe (flip (if (= u w) 0.1 0.9)) true]""",
        query={"same": "(+ (= a u) (* 2 (= a w)))"},
        exact=labels_by_key,
        engines=(
            "(gibbs default each 1)",
            "(gibbs (choices 'finite) each 1)",
            "(do (gibbs k all 1) (gibbs (choices z) each 1))",
            "(gibbs default one 4)",
            "(mh default each 3)",
            "(mh (choices 'finite) each 3)",
            "(pgibbs default ordered 6 2)",
        ),
        derivation="Enumeration of the seats of three customers. The first one's name is drawn: each move of it makes "
        "another customer.",
    ),
)
