"""What is read through another name, or as a value: it moves where nothing in the reader's own text does."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from tests.posterior.case import Case
from tests.posterior.derive import table
from tests.statistics import Expected


def up(value: int, p: float) -> float:
    return p if value else 1.0 - p


def name_for_a_name() -> Mapping[str, Expected]:
    weights = {}
    for c, d, r in itertools.product((0, 1), repeat=3):
        x = 0.9 if d else 0.2
        weights[c + 2.0 * d + 4.0 * r] = 0.5 * up(d, 0.9 if c else 0.1) * up(r, x if c else 0.5) * (0.9 if r else 0.1)
    return {"state": table(weights)}


def maker_in_a_list() -> Mapping[str, Expected]:
    weights = {}
    for c, d, y in itertools.product((0, 1), repeat=3):
        weights[c + 2.0 * d + 4.0 * y] = up(c, 0.6) * up(d, 0.2 if c else 0.9) * up(y, 0.3 if c else 0.8 if d else 0.5)
    return {"state": table(weights)}


def maker_by_position() -> Mapping[str, Expected]:
    """Each maker's parameters move with the choice that decides which maker is asked."""
    weights = {}
    for c, d, y in itertools.product((0, 1), repeat=3):
        # (a, b) of the maker that is applied, after what it has seen
        first, second = (4.0 if d else 1.0, 2.0), (2.0 if d else 1.0, 2.0)
        seen = second[0] / sum(second)
        p = first[0] / sum(first) if c else (second[0] + 1.0) / (sum(second) + 1.0)
        weights[c + 2.0 * d + 4.0 * y] = up(c, 0.6) * up(d, 0.2 if c else 0.9) * seen * up(y, p)
    return {"state": table(weights)}


EVERY = (
    "(mh default one 6)",
    "(gibbs default one 6)",
    "(rejection default one 3)",
    "(pgibbs default ordered 3 2)",
    "(mh default all 4)",
    "(mh default each 3)",
    "(gibbs default each 2)",
    "(gibbs default all 1)",
    "(rejection default all 1)",
)
WITH_ANCESTORS = (*EVERY, "(pgibbs default ordered 3 'ancestor 2)")

CASES = (
    Case(
        name="name_for_a_name",
        program="""
            [assume c (flip 0.5)] [assume d (if c (flip 0.9) (flip 0.1))] [assume x1 (if d 0.9 0.2)]
            [assume x2 x1] [assume x3 (let ((x x2)) x)] [assume r (if c (flip x3) (flip 0.5))]
            [observe (flip (if r 0.9 0.1)) true]""",
        query={"state": "(+ c (* 2 d) (* 4 r))"},
        exact=name_for_a_name,
        engines=WITH_ANCESTORS,
        derivation="Enumeration: x3 is x1.",
    ),
    Case(
        name="maker_in_a_list",
        program="""
            [assume c (flip 0.6)] [assume d (if c (flip 0.2) (flip 0.9))]
            [assume l (list (make_beta_bernoulli (if d 4 1) 1))] [assume y (if c (flip 0.3) ((first l)))]""",
        query={"state": "(+ c (* 2 d) (* 4 y))"},
        exact=maker_in_a_list,
        engines=WITH_ANCESTORS,
        derivation="Enumeration, without data: the maker is asked after its parameters have moved.",
    ),
    Case(
        name="maker_by_position",
        program="""
            [assume c (flip 0.6)] [assume d (if c (flip 0.2) (flip 0.9))]
            [assume f (lambda (a) (make_beta_bernoulli (if d a 1) 2))] [assume l (list (f 4) (f 2))]
            [assume y ((lookup l (if c 0 1)))] [observe ((lookup l 1)) true]""",
        query={"state": "(+ c (* 2 d) (* 4 y))"},
        exact=maker_by_position,
        engines=EVERY,
        derivation="Enumeration: beta-binomial predictive of the maker that is asked.",
    ),
)
