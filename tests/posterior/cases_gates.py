"""A continuous choice that decides which others there are: what engines of one coordinate find hard."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy import stats

from tests.posterior.case import Case
from tests.posterior.derive import normal_mixture, normal_pdf
from tests.statistics import Cdf, Expected

GATE = 0.3
BELOW = float(stats.norm.cdf(GATE))
POINTS = np.array([-1.2, -0.5, 0.1, 0.6, 1.3])


def gate(below: float, above: float) -> Cdf:
    """The CDF of x ~ N(0, 1) where x below the gate has likelihood `below`, else `above`."""
    phi = np.asarray(stats.norm.cdf(POINTS))
    mass = below * np.minimum(phi, BELOW) + above * np.maximum(phi - BELOW, 0.0)
    return Cdf(POINTS, mass / (below * BELOW + above * (1.0 - BELOW)))


def choices_above_a_gate() -> Mapping[str, Expected]:
    # y ~ N(0, 1) below, else the sum of two N(1, 1); observed with sd 1 at 1.8.
    below, above = normal_pdf(1.8, 0, math.sqrt(2)), normal_pdf(1.8, 2, math.sqrt(3))
    y = normal_mixture([BELOW * below, (1 - BELOW) * above], [0.9, 2 - 0.4 / 3], [math.sqrt(0.5), math.sqrt(2 / 3)])
    return {"x": gate(below, above), "y": y}


def block_below_a_gate() -> Mapping[str, Expected]:
    below, above = normal_pdf(1.5, 0, math.sqrt(2)), normal_pdf(1.5, 2, math.sqrt(2))
    y = normal_mixture([BELOW * below, (1 - BELOW) * above], [0.75, 1.75], [math.sqrt(0.5)] * 2)
    return {"x": gate(below, above), "y": y}


CASES = (
    Case(
        name="choices_above_a_gate",
        program=f"""
            [assume x (normal 0 1)]
            [assume y (if (< x {GATE}) (normal 0 1) (+ (normal 1 1) (normal 1 1)))]
            [observe (normal y 1) 1.8]""",
        query={"x": "x", "y": "y"},
        exact=choices_above_a_gate,
        engines=(
            "(slice default one 1.5 5 5)",
            "(mh default one 12)",
            "(rejection default one 4)",
            "(mh default one (lambda (v) (normal (* 0.7 v) 1)) 14)",
            "(slice default each 1.5 5 4)",
            "(slice default all 1.5 5 4)",
            "(rejection default all 1)",
            "(mh default one 'drift 1 20)",
            "(mh default one (lambda (v) (if (flip 0.7) (normal v 1) (normal y 1))) 20)",
        ),
        derivation="Normal marginals on either side of the gate. Two choices below it, three above.",
    ),
    Case(
        name="block_below_a_gate",
        program=f"""
            [assume x (scope_include 's 0 (normal 0 1))]
            [assume y (if (< x {GATE}) (scope_include 's 0 (normal 0 1)) (scope_include 's 1 (normal 2 1)))]
            [observe (normal y 1) 1.5]""",
        query={"x": "x", "y": "y"},
        exact=block_below_a_gate,
        engines=(
            "(slice s one 1.5 5 4)",
            "(mh s one 6)",
            "(slice s each 1.5 5 4)",
            "(slice s all 1.5 5 4)",
            "(rejection s one 3)",
            "(rejection s all 1)",
            "(cycle ((slice s 0 2 4 1) (slice s 1 2 4 1)) 4)",
        ),
        derivation="Normal marginals. Block 0 gains y below the gate; above it y is a block of its own.",
    ),
)
