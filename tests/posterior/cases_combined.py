"""Models of several parts, on which any two engines can meet: what one moves is an input of what the other keeps."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special, stats

from tests.posterior.case import Case
from tests.posterior.cases_predictors import X as POSITIONS
from tests.posterior.cases_predictors import Z as VALUES
from tests.posterior.cases_predictors import marginals, robust_line
from tests.posterior.derive import (
    Grid,
    gaussian_posterior,
    log_crp,
    partition_code,
    partition_expression,
    partitions,
    pushforward,
)
from tests.statistics import Cdf, Expected, Floats


def unrolled(program: str) -> str:
    """The program with its loop written out, for an interpreter without loops."""
    found = re.search(r"for n in 1\.\.\.(\d+): (.*)", program, re.DOTALL)
    assert found is not None
    passes = (re.sub(r"\bn\b", str(n), found[2]) for n in range(1, int(found[1]) + 1))
    return program[: found.start()] + "\n".join(passes)


# ------------------------------------------------------------------------------------------------ classes of one bit

BITS = [0, 1] * 10
CLASSES = [0, 1, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1]


def classes_of_bits() -> Mapping[str, Expected]:
    sides = {"tau": Grid(1e-3, 9.0, 91), "b": Grid(-5.0, 5.0, 81), "w": Grid(-9.0, 11.0, 161)}
    tau, b, w = np.meshgrid(*(side.points for side in sides.values()), indexing="ij", sparse=True)
    log_density = stats.gamma.logpdf(tau, 3, scale=0.5) + stats.norm.logpdf(b, 0, 1.5) + stats.norm.logpdf(w, 0, tau)
    for (bit, outcome), count in Counter(zip(BITS, CLASSES, strict=True)).items():
        log_density = log_density + count * special.log_expit((b + w * bit) * (1 if outcome else -1))
    return marginals(sides, log_density)


# ------------------------------------------------------------------------------------------------- states and a slope

HEARD = [1, 1, 0, 0, 1]


def states_and_slope() -> Mapping[str, Expected]:
    """The transitions' p and the slope are independent given the path: a beta, and a density on a grid."""
    grid = Grid(-12.0, 14.0, 4001)
    paths, p_parts, slope = {}, [], np.zeros(grid.size)
    p_points = np.array([0.4, 0.8])
    for path in itertools.product((0, 1), repeat=len(HEARD)):
        stays = sum(a == b for a, b in itertools.pairwise(path))
        changes = len(path) - 1 - stays
        log_density = stats.norm.logpdf(grid.points, 0, 2)
        for state, heard in zip(path, HEARD, strict=True):
            feature = 1.0 if state else -0.5
            log_density = log_density + special.log_expit((1 if heard else -1) * feature * grid.points)
        prior = float(special.beta(3 + stays, 1 + changes))
        paths[path] = prior * grid.mass(log_density)
        p_parts.append((paths[path], stats.beta(3 + stays, 1 + changes)))
        slope += prior * np.exp(log_density)
    total = math.fsum(paths.values())
    slopes = grid.cdf(np.log(slope))
    return {
        "ups": pushforward(paths, lambda *path: sum(path)),
        "ends": pushforward(paths, lambda *path: path[0] + 2 * path[4]),
        "p": Cdf(p_points, np.asarray(sum(weight / total * part.cdf(p_points) for weight, part in p_parts))),
        "mu": Cdf(slopes.points[::2], slopes.probabilities[::2]),
    }


# --------------------------------------------------------------------------------------- clusters of slopes, some wild

SLOPED_X = [-1.5, -1.0, 1.0, 1.5, 2.0]
SLOPED_Y = [0, 1, 1, 1, 0]


def evidence_of(rows: Sequence[int], grid: Grid) -> float:
    """The probability of some classes that share a slope."""
    log_density = stats.norm.logpdf(grid.points, 0, 2)
    for n in rows:
        log_density = log_density + special.log_expit((1 if SLOPED_Y[n] else -1) * SLOPED_X[n] * grid.points)
    return grid.mass(log_density)


def sloped_clusters() -> Mapping[str, Expected]:
    grid, count = Grid(-16.0, 16.0, 2001), len(SLOPED_X)
    subsets = (rows for size in range(count + 1) for rows in itertools.combinations(range(count), size))
    evidence = {rows: evidence_of(rows, grid) for rows in subsets}
    weights: dict[tuple[float, ...], float] = {}
    for partition in partitions(count):
        prior = math.exp(log_crp(partition, 1.0))
        for wild in itertools.product((0, 1), repeat=count):
            weight = prior * math.prod(0.3 * 0.5 if flag else 0.7 for flag in wild)
            for part in set(partition):
                weight *= evidence[tuple(n for n in range(count) if partition[n] == part and not wild[n])]
            weights[(*partition, *wild)] = weight
    return {
        "first": pushforward(weights, lambda *state: partition_code(state[:3])),
        "last": pushforward(weights, lambda *state: state[3] == state[4]),
        "wild": pushforward(weights, lambda *state: sum(state[count:])),
    }


# ------------------------------------------------------------------------------------------------ a normal hierarchy

GROUPS = [0, 0, 1, 1, 2, 2]
MEASURED = [1.2, 0.4, 3.0, 2.2, -0.5, 0.6]


def levels_of_means() -> Mapping[str, Expected]:
    """Normal given the sd of the data; quadrature over that."""
    grid = Grid(0.05, 8.0, 401)
    load = np.hstack([np.zeros((6, 1)), np.eye(3)[GROUPS]])
    prior = 4.0 * np.ones((4, 4)) + np.diag([0.0, 1.0, 1.0, 1.0])
    log_density, means, sds = np.empty(grid.size), np.empty((grid.size, 2)), np.empty((grid.size, 2))
    for i, s in enumerate(grid.points):
        mean, cov, evidence = gaussian_posterior(np.zeros(4), prior, load, np.array([s]), np.array(MEASURED))
        log_density[i] = evidence + stats.gamma.logpdf(s, 3, scale=0.5)
        means[i], sds[i] = mean[[0, 2]], np.sqrt(np.diag(cov)[[0, 2]])

    def level(k: int, at: Floats) -> Cdf:
        return grid.average_cdf(log_density, lambda x: stats.norm.cdf(x, means[:, k], sds[:, k]), at)

    return {
        "s": grid.cdf(log_density),
        "mu": level(0, np.array([-0.5, 0.3, 1.0, 1.6, 2.3])),
        "middle": level(1, np.array([0.9, 1.5, 2.0, 2.5, 3.0])),
    }


# -------------------------------------------------------------------------------------------------------- the cases

BITS_PROGRAM = """
[assume tau (scope_include 'tau 0 (gamma 3 2))]
[assume b (scope_include 'b 0 (scope_include 'line 0 (normal 0 1.5)))]
[assume w (scope_include 'w 0 (scope_include 'line 0 (normal 0 tau)))]
for n in 1...20: [observe (bernoulli (logistic (+ b (* w {X[n]})))) {Y[n]}]"""

ROBUST_PROGRAM = """
[assume a (scope_include 'w 0 (normal 0 1))] [assume w (scope_include 'w 0 (normal 0 1.5))]
[assume s (scope_include 's 0 (gamma 2 2))]
for n in 1...6: [observe (student_t 4 (+ a (* w {X[n]})) s) {Z[n]}]"""

STATES_PROGRAM = """
[assume p (scope_include 'p 0 (beta 3 1))] [assume mu (scope_include 'mu 0 (normal 0 2))]
[assume state (mem (lambda (t) (scope_include 's t
    (flip (if (= t 1) 0.5 (if (state (- t 1)) p (- 1 p)))))))]
for n in 1...5: [observe (bernoulli (logistic (* mu (if (state n) 1 -0.5)))) {Y[n]}]"""

CLUSTERS_PROGRAM = """
[assume crp (make_crp 1)] [assume z (mem (lambda (i) (scope_include 'z i (crp))))]
[assume wild (mem (lambda (i) (scope_include 'wild i (flip 0.3))))]
[assume w (mem (lambda (k) (scope_include 'w k (normal 0 2))))]
for n in 1...5: [observe (if (wild n) (bernoulli 0.5) (bernoulli (logistic (* (w (z n)) {X[n]})))) {Y[n]}]"""

LEVELS_PROGRAM = """
[assume mu (scope_include 'mu 0 (normal 0 2))] [assume s (scope_include 's 0 (gamma 3 2))]
[assume theta (mem (lambda (g) (scope_include 'theta g (normal mu 1))))]
for n in 1...6: [observe (normal (theta {G[n]}) s) {Y[n]}]"""

CASES: tuple[Case, ...] = (
    Case(
        name="classes_of_bits",
        program=BITS_PROGRAM,
        parameters={"X": BITS, "Y": CLASSES},
        query={"tau": "tau", "b": "b", "w": "w"},
        exact=classes_of_bits,
        engines=("(mh default one 16)", "(cycle ((mh line 0 'drift 0.7 2) (mh tau 0 'drift 0.9 1)) 4)"),
        derivation="Quadrature over three variables.",
        forward=unrolled(BITS_PROGRAM),
    ),
    Case(
        name="robust_line_in_a_loop",
        program=ROBUST_PROGRAM,
        parameters={"X": POSITIONS[:6], "Z": VALUES},
        query={"a": "a", "w": "w", "s": "s"},
        exact=robust_line,
        engines=("(mh default one 10)", "(cycle ((mh w 0 'drift 0.7 2) (mh s 0 'drift 0.8 1)) 3)"),
        derivation="Quadrature over three variables, none of them beyond the grid with probability above 1e-6.",
        forward=unrolled(ROBUST_PROGRAM),
    ),
    Case(
        name="states_and_slope",
        program=STATES_PROGRAM,
        parameters={"Y": HEARD},
        query={
            "ups": "(+ 0 (state 1) (state 2) (state 3) (state 4) (state 5))",
            "ends": "(+ (state 1) (* 2 (state 5)))",
            "p": "p",
            "mu": "mu",
        },
        exact=states_and_slope,
        engines=("(mh default one 24)", "(cycle ((gibbs s each 1) (mh p 0 1) (mh mu 0 'drift 2 1)) 4)"),
        derivation="Enumeration of 32 paths; given one, p is beta and the slope's density is on a grid.",
        forward=unrolled(STATES_PROGRAM),
    ),
    Case(
        name="sloped_clusters",
        program=CLUSTERS_PROGRAM,
        parameters={"X": SLOPED_X, "Y": SLOPED_Y},
        query={
            "first": partition_expression(["(z 1)", "(z 2)", "(z 3)"]),
            "last": "(= (z 4) (z 5))",
            "wild": "(+ 0 (wild 1) (wild 2) (wild 3) (wild 4) (wild 5))",
        },
        exact=sloped_clusters,
        engines=("(mh default one 24)", "(cycle ((gibbs z each 1) (gibbs wild each 1) (mh w each 1)) 2)"),
        derivation="Enumeration of 52 partitions and 32 patterns of wild rows; a cluster's slope on a grid.",
        forward=unrolled(CLUSTERS_PROGRAM),
    ),
    Case(
        name="levels_of_means",
        program=LEVELS_PROGRAM,
        parameters={"G": GROUPS, "Y": MEASURED},
        query={"mu": "mu", "s": "s", "middle": "(theta 1)"},
        exact=levels_of_means,
        engines=("(mh default one 20)", "(cycle ((mh theta each 'drift 0.8 1) (mh default one 'drift 0.9 4)) 3)"),
        derivation="Normal given the sd of the data, quadrature over that.",
        forward=unrolled(LEVELS_PROGRAM),
    ),
)
