"""Makers whose applications are given inputs: Gaussian processes and lazy hidden Markov models."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy import stats

from tests.posterior.case import Case
from tests.posterior.derive import Grid, mixture_cdf, normal_mixture, pushforward, table
from tests.statistics import Cdf, Expected, Floats, Table

EVERY = ("(mh default one 6)", "(mh default each 3)", "(mh default all 5)")

# ----------------------------------------------------------------------------------------------- Gaussian processes


def squared_exponential(amplitude: float, length: Floats | float) -> Callable[[Floats], Floats]:
    """Of distances (..., n, m) and lengths (...)."""
    return lambda d: amplitude**2 * np.exp(-0.5 * (d / np.asarray(length)[..., None, None]) ** 2)


def exponential(amplitude: float, length: float) -> Callable[[Floats], Floats]:
    return lambda d: amplitude**2 * np.exp(-np.abs(d) / length)


def conditional(
    covariance: Callable[[Floats], Floats], places: Sequence[float], noise: Sequence[float], values: Sequence[float]
) -> tuple[Floats, Floats, Floats]:
    """Log density of the first values, and mean and sd of the value at the last place given them, noise included."""
    x, y = np.array(places), np.array(values)
    matrix = covariance(x[:, None] - x[None, :]) + np.diag(np.array(noise) ** 2)
    n = len(y)
    known, cross, last = matrix[..., :n, :n], matrix[..., :n, n], matrix[..., n, n]
    gain = np.linalg.solve(known, np.broadcast_to(y[:, None], (*known.shape[:-1], 1)))[..., 0]
    _, log_determinant = np.linalg.slogdet(known)
    evidence = -0.5 * (gain @ y + log_determinant + n * math.log(2 * math.pi))
    weights = np.linalg.solve(known, cross[..., None])[..., 0]
    return evidence, weights @ y, np.sqrt(last - (weights * cross).sum(axis=-1))


DATA = ((0.0, 0.7), (0.0, 1.4), (1.0, 0.2), (2.5, -1.1), (3.0, -0.4))


def gp_regression() -> Mapping[str, Expected]:
    grid = Grid(1e-3, 12.0, 4001)
    length = grid.points
    places, values = zip(*DATA, strict=True)
    evidence, mean, sd = conditional(squared_exponential(1.5, length), (*places, 1.5), (0.4,) * 6, values)
    log_density = evidence + stats.gamma.logpdf(length, 3, scale=0.5)
    at = np.array([-1.5, -0.75, -0.25, 0.25, 1.0])
    return {
        "length": grid.cdf(log_density),
        "y": grid.average_cdf(log_density, lambda x: stats.norm.cdf(x, mean, sd), at),
    }


def gp_kinds() -> Mapping[str, Expected]:
    found = [
        conditional(kind, (0, 1, 0.5), (0.4, 0.4, 0), (1.2, 0.9))
        for kind in (exponential(1, 0.5), squared_exponential(1, 2.0))
    ]
    weights = [math.exp(evidence) for evidence, _, _ in found]
    return {
        "kind": table(dict(enumerate(weights))),
        "b": normal_mixture(weights, [float(m) for _, m, _ in found], [float(sd) for _, _, sd in found]),
        "same": Table({1: 1.0}),
    }


def gp_at_a_random_place() -> Mapping[str, Expected]:
    weights, parts = [], []
    for x in range(3):
        evidence, mean, sd = conditional(exponential(1, 1.0), (0, 1, x, x), (0.3,) * 4, (1.0, -1.0, -0.2))
        weights.append(math.exp(evidence))
        parts.append(stats.norm(mean, sd))
    return {"x": table(dict(enumerate(weights))), "y": mixture_cdf(weights, parts)}


# ---------------------------------------------------------------------------------------- lazy hidden Markov models

TRANSITION = ((0.9, 0.1), (0.15, 0.85))
EMISSION = ((0.6, 0.3, 0.1), (0.1, 0.2, 0.7))


def path_weight(
    path: Sequence[int], emitted: Sequence[tuple[int, int]], transition: Sequence[Sequence[float]]
) -> float:
    """Probability of a path from a uniform start together with emissions (time, outcome)."""
    moves = math.prod(transition[a][b] for a, b in itertools.pairwise(path))
    return 0.5 * moves * math.prod(EMISSION[path[t]][outcome] for t, outcome in emitted)


def hmm_emissions() -> Mapping[str, Expected]:
    weights: dict[tuple[float, ...], float] = {}
    for x, y, z in itertools.product(range(3), repeat=3):
        emitted = ((0, 0), (3, 1), (4, 2), (4, 2), (1, x), (3, y), (6, z))
        paths = itertools.product(range(2), repeat=7)
        weights[x, y, z] = math.fsum(path_weight(path, emitted, TRANSITION) for path in paths)
    return {"xyz": pushforward(weights, lambda x, y, z: x + 3 * y + 9 * z)}


def hmm_persistence() -> Mapping[str, Expected]:
    grid = Grid(0.0, 1.0, 20_001)
    stay = grid.points
    parts = []
    for w in range(3):
        emitted = ((0, 0), (1, 0), (3, 2), (4, 2), (5, 2), (6, 2), (2, w))
        total = np.zeros(len(stay))
        for path in itertools.product(range(2), repeat=7):
            stays = sum(a == b for a, b in itertools.pairwise(path))
            total += path_weight(path, emitted, ((1, 1), (1, 1))) * stay**stays * (1 - stay) ** (6 - stays)
        with np.errstate(divide="ignore"):
            parts.append(np.log(total) + stats.beta.logpdf(stay, 2, 2))
    density = np.logaddexp.reduce(parts)
    return {"stay": _interior(grid, density), "w": grid.table(parts)}


def hmm_of_normals() -> Mapping[str, Expected]:
    """Means -m and m: for each path the data are normal, given m on a grid; w is a mixture over the states at 2."""
    grid = Grid(-6.0, 6.0, 4001)
    m, by_state = grid.points, []
    for state in range(2):
        total = np.zeros(len(m))
        for path in itertools.product(range(2), repeat=4):
            if path[2] == state:
                terms = [stats.norm.pdf(y, m if path[t] else -m, 0.8) for t, y in ((0, -1.0), (1, -1.4), (3, 0.6))]
                total += path_weight(path, (), TRANSITION) * np.prod(terms, axis=0)
        by_state.append(total * stats.norm.pdf(m, 1, 1))
    density = np.log(by_state[0] + by_state[1])
    share = by_state[1] / (by_state[0] + by_state[1])
    at = np.array([-2.0, -0.8, 0.0, 0.8, 2.0])
    return {
        "m": grid.cdf(density),
        "w": grid.average_cdf(
            density, lambda x: share * stats.norm.cdf(x, m, 0.8) + (1 - share) * stats.norm.cdf(x, -m, 0.8), at
        ),
    }


def _interior(grid: Grid, log_density: Floats) -> Cdf:
    return grid.cdf(np.where(np.isfinite(log_density), log_density, -1e300))


PERSISTENCE = {"stay": "stay", "w": "w"}
MATRICES = {"B": EMISSION, "A": TRANSITION, "start": (0.5, 0.5)}

CASES = (
    Case(
        name="gp_regression",
        program="""
            [assume length (scope_include 'length 0 (gamma 3 2))]
            [assume f (make_gp 0 (gp_sum (gp_squared_exponential 1.5 length) (gp_noise 0.4)))]
            [observe (f 0) 0.7] [observe (f 0) 1.4] [observe (f 1) 0.2]
            [assume y (scope_include 'y 0 (f 1.5))]
            [observe (f 2.5) -1.1] [observe (f 3) -0.4]""",
        forward="""
            [assume length (gamma 3 2)]
            [assume f (make_gp 0 (gp_sum (gp_squared_exponential 1.5 length) (gp_noise 0.4)))]
            [observe (f 0) 0.7] [observe (f 0) 1.4] [observe (f 1) 0.2] [observe (f 2.5) -1.1] [observe (f 3) -0.4]
            [assume y (f 1.5)]""",
        query={"length": "length", "y": "y"},
        exact=gp_regression,
        engines=(
            *EVERY,
            "(mh default one 'drift 1.0 8)",
            "(mh default all 'drift 0.7 10)",
            "(cycle ((mh length one 'drift 1.0 3) (mh y one 1)) 2)",
        ),
        derivation="Multivariate normal for each length, quadrature over it; y is normal given length.",
    ),
    Case(
        name="gp_kinds",
        program="""
            [assume kind (scope_include 'kind 0 (flip))]
            [assume f (make_gp 0 (if kind (gp_squared_exponential 1 2) (gp_matern 1 0.5 0.5)))]
            [observe (normal (f 0) 0.4) 1.2] [observe (normal (f 1) 0.4) 0.9]""",
        query={"kind": "kind", "b": "(f 0.5)", "same": "(= (f 0) (f 0))"},
        exact=gp_kinds,
        engines=(
            "(mh default all 10)",
            "(cycle ((mh kind one 1) (mh default each 1)) 3)",
            "(cycle ((gibbs kind one 1) (mh default each 1)) 3)",
        ),
        derivation="Values at distinct points are normal given the kind; at one point they are one value.",
    ),
    Case(
        name="gp_at_a_random_place",
        program="""
            [assume x (scope_include 'x 0 (uniform_discrete 0 3))]
            [assume f (make_gp 0 (gp_sum (gp_matern 1 1 0.5) (gp_noise 0.3)))]
            [observe (f 0) 1] [observe (f 1) -1] [observe (f x) -0.2] [assume y (scope_include 'y 0 (f x))]""",
        query={"x": "x", "y": "y"},
        exact=gp_at_a_random_place,
        engines=(*EVERY, "(cycle ((gibbs x one 1) (mh y one 'drift 1.0 3)) 2)"),
        derivation="Multivariate normal for each x; y is normal given x.",
    ),
    Case(
        name="hmm_emissions",
        program="""
            [assume h (make_lazy_hmm {start} {A} {B})]
            [assume x (h 1)] [observe (h 0) 0] [observe (h 3) 1] [assume y (h 3)] [observe (h 4) 2] [observe (h 4) 2]
            [assume z (h 6)]""",
        forward="""
            [assume h (make_lazy_hmm {start} {A} {B})]
            [observe (h 0) 0] [observe (h 3) 1] [observe (h 4) 2] [observe (h 4) 2]
            [assume x (h 1)] [assume y (h 3)] [assume z (h 6)]""",
        query={"xyz": "(+ x (* 3 y) (* 9 z))"},
        exact=hmm_emissions,
        engines=(*EVERY, "(gibbs default one 4)", "(gibbs default each 1)", "(gibbs default all 1)"),
        derivation="Sum over all paths of states, for each x, y and z.",
        parameters=MATRICES,
    ),
    Case(
        name="hmm_of_normals",
        program="""
            [assume m (scope_include 'm 0 (normal 1 1))]
            [assume h (make_lazy_hmm {start} {A} (normal (vector (- m) m) 0.8))]
            [observe (h 0) -1] [observe (h 1) -1.4] [assume w (scope_include 'w 0 (h 2))] [observe (h 3) 0.6]""",
        forward="""
            [assume m (normal 1 1)]
            [assume s (mem (lambda (t) (flip (if (= t 0) 0.5 (if (s (- t 1)) 0.85 0.1)))))]
            [assume h (lambda (t) (normal (if (s t) m (- m)) 0.8))]
            [observe (h 0) -1] [observe (h 1) -1.4] [observe (h 3) 0.6] [assume w (h 2)]""",
        query={"m": "m", "w": "w"},
        exact=hmm_of_normals,
        engines=(
            "(cycle ((mh m one 'drift 1.0 3) (mh w one 1)) 2)",
            "(mh default all 12)",
            "(cycle ((nuts m all 'step 0.5 1) (mh w one 'drift 1.0 4)) 2)",
        ),
        derivation="Sum over all paths of states, quadrature over the mean.",
        parameters={"A": TRANSITION, "start": (0.5, 0.5)},
    ),
    Case(
        name="hmm_persistence",
        program="""
            [assume stay (scope_include 'stay 0 (beta 2 2))] [assume leave (- 1 stay)]
            [assume h (make_lazy_hmm {start} (list (list stay leave) (list leave stay)) {B})]
            [observe (h 0) 0] [observe (h 1) 0] [assume w (scope_include 'w 0 (h 2))] [observe (h 3) 2]
            [observe (h 4) 2] [observe (h 5) 2] [observe (h 6) 2]""",
        query=PERSISTENCE,
        exact=hmm_persistence,
        engines=(*EVERY, "(cycle ((mh stay one 'drift 1.0 3) (gibbs w one 1)) 2)"),
        derivation="Sum over all paths, quadrature over the probability to stay.",
        parameters=MATRICES,
    ),
    Case(
        name="hmm_persistence_uncollapsed",
        program="""
            [assume stay (scope_include 'stay 0 (beta 2 2))]
            [assume s (mem (lambda (t) (scope_include 's t
                (flip (if (= t 0) 0.5 (if (s (- t 1)) stay (- 1 stay)))))))]
            [assume h (lambda (t) (categorical (if (s t) {B[2]} {B[1]})))]
            [observe (h 0) 0] [observe (h 1) 0] [assume w (h 2)]
            [observe (h 3) 2] [observe (h 4) 2] [observe (h 5) 2] [observe (h 6) 2]""",
        query=PERSISTENCE,
        exact=hmm_persistence,
        engines=("(mh default one 40)", "(cycle ((mh stay one 'drift 1.0 2) (gibbs s each 1) (mh default one 3)) 2)"),
        derivation="The answer of the model with its states integrated out.",
        parameters=MATRICES,
    ),
)
