"""Likelihoods that read their parameters through a linear predictor: quadrature over one, two and three of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special, stats

from tests.posterior.case import Case
from tests.posterior.derive import Grid
from tests.statistics import Expected, Floats

X = [-2.0, -1.0, -0.5, 0.3, 0.8, 1.0, 1.5, 2.5]
Y = [0, 1, 0, 0, 1, 1, 1, 1]
Z = [-1.7, -0.2, 0.1, 0.4, 6.0, 1.2]


def logistic_slope() -> Mapping[str, Expected]:
    grid = Grid(-20.0, 20.0, 20_001)
    return {"w": grid.cdf(stats.norm.logpdf(grid.points, 0, 2) + log_logistic(grid.points))}


def observed(expression: str, values: Sequence[float]) -> str:
    """An observation of the expression for each value, with its X."""
    return " ".join(f"[observe {expression.replace('x', str(x), 1)} {y}]" for x, y in zip(X, values, strict=False))


def log_logistic(w: Floats) -> Floats:
    """Log likelihood (w...) of the classes Y."""
    signs = np.where(np.array(Y) == 1, 1.0, -1.0)
    return np.asarray(special.log_expit(w[..., None] * (signs * np.array(X))).sum(axis=-1))


def robust_line() -> Mapping[str, Expected]:
    sides = {"a": Grid(-6.0, 6.0, 121), "w": Grid(-6.0, 6.0, 121), "s": Grid(1e-3, 9.0, 121)}
    a, w, s = np.meshgrid(*(side.points for side in sides.values()), indexing="ij", sparse=True)
    log_density = -0.5 * a**2 - 0.5 * (w / 1.5) ** 2 + np.log(s) - 2 * s
    for x, z in zip(X, Z, strict=False):
        log_density = log_density - np.log(s) - 2.5 * np.log1p(((z - a - w * x) / s) ** 2 / 4)
    return marginals(sides, log_density)


def slope_of_unknown_scale() -> Mapping[str, Expected]:
    sides = {"tau": Grid(1e-3, 10.0, 1001), "w": Grid(-15.0, 15.0, 1501)}
    tau, w = np.meshgrid(*(side.points for side in sides.values()), indexing="ij")
    log_density = stats.gamma.logpdf(tau, 2, scale=1.0) + stats.norm.logpdf(w, 0, tau) + log_logistic(w)
    return marginals(sides, log_density + stats.norm.logpdf(1.8, 2 * w, 1.5))


def three_likelihoods() -> Mapping[str, Expected]:
    grid = Grid(-12.0, 12.0, 12_001)
    w = grid.points
    log_density = stats.t.logpdf(w, 3) + log_logistic(w)
    for x, z in zip(X, Z, strict=False):
        log_density = log_density + stats.t.logpdf(z, 3, 0.5 + w * x, 0.8) + stats.norm.logpdf(z, w * x, 2)
    return {"w": grid.cdf(log_density)}


def marginals(sides: Mapping[str, Grid], log_density: Floats) -> dict[str, Expected]:
    """The CDF of each axis of an equally spaced grid."""
    axes = range(log_density.ndim)
    return {
        name: side.cdf(special.logsumexp(log_density, axis=tuple(other for other in axes if other != axis)))
        for axis, (name, side) in enumerate(sides.items())
    }


CASES: tuple[Case, ...] = (
    Case(
        name="logistic_slope",
        program="[assume w (scope_include 'w 0 (normal 0 2))]" + observed("(bernoulli (logistic (* w x)))", Y),
        query={"w": "w"},
        exact=logistic_slope,
        engines=("(mh w one 8)", "(mh w all 'drift 1.2 6)"),
        derivation="Quadrature on [-20, 20].",
    ),
    Case(
        name="robust_line",
        program="""
            [assume a (scope_include 'w 0 (normal 0 1))] [assume w (scope_include 'w 0 (normal 0 1.5))]
            [assume s (scope_include 's 0 (gamma 2 2))]"""
        + observed("(student_t 4 (+ a (* w x)) s)", Z),
        query={"a": "a", "w": "w", "s": "s"},
        exact=robust_line,
        engines=("(mh default one 10)", "(cycle ((mh w 0 'drift 0.7 2) (mh s 0 'drift 0.8 1)) 3)"),
        derivation="Quadrature over three variables, none of them beyond the grid with probability above 1e-6.",
    ),
    Case(
        name="slope_of_unknown_scale",
        program="""
            [assume tau (scope_include 'tau 0 (gamma 2 1))] [assume w (scope_include 'w 0 (normal 0 tau))]
            [observe (normal (* 2 w) 1.5) 1.8]"""
        + observed("(bernoulli (logistic (* w x)))", Y),
        query={"tau": "tau", "w": "w"},
        exact=slope_of_unknown_scale,
        engines=("(mh default one 8)", "(cycle ((mh w 0 'drift 0.8 2) (mh tau 0 'drift 0.8 1)) 3)"),
        derivation="Quadrature over both; one observation is normal in the slope, the others are classes.",
    ),
    Case(
        name="three_likelihoods",
        program="[assume w (scope_include 'w 0 (student_t 3 0 1))]"
        + observed("(bernoulli (logistic (* w x)))", Y)
        + observed("(student_t 3 (+ 0.5 (* w x)) 0.8)", Z)
        + observed("(normal (* w x) 2)", Z),
        query={"w": "w"},
        exact=three_likelihoods,
        engines=("(mh w one 8)", "(mh w all 'drift 0.8 5)"),
        derivation="Quadrature on [-12, 12].",
    ),
)
