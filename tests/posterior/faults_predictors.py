"""Linear predictors: what rows read of a block is asked of every row, and numbers are added as the interpreter adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from tests.posterior.case import Case
from tests.posterior.derive import Grid
from tests.posterior.fault import Fault
from tests.statistics import Expected, Floats
from venture_lite.blocks import linear
from venture_lite.trace.table import listed

SIDE = Grid(-6.0, 6.0, 401)
Likelihood = Callable[[Floats, float], Floats]
"""Log density of a value by the predictors at the points of a grid."""


def bernoulli(eta: Floats, value: float) -> Floats:
    return np.asarray(special.log_expit(eta if value else -eta))


def normal(eta: Floats, value: float) -> Floats:
    return np.asarray(stats.norm.logpdf(value, eta, 1.5))


def poisson(eta: Floats, value: float) -> Floats:
    return np.asarray(value * 0.3 * eta - np.exp(0.3 * eta))


def student(eta: Floats, value: float) -> Floats:
    return np.asarray(stats.t.logpdf(value, 4.0, eta, 0.7))


def two_weights(
    names: tuple[str, str], rows: Sequence[tuple[float, float, float]], values: Sequence[float], likelihood: Likelihood
) -> Callable[[], Mapping[str, Expected]]:
    """The CDFs of two standard normal weights that rows read with coefficients (c1, c2) and an offset."""

    def exact() -> Mapping[str, Expected]:
        one, two = np.meshgrid(SIDE.points, SIDE.points, indexing="ij", sparse=True)
        log_density = -0.5 * one**2 - 0.5 * two**2
        for (first, second, offset), value in zip(rows, values, strict=True):
            log_density = log_density + likelihood(first * one + second * two + offset, value)
        return {name: SIDE.cdf(special.logsumexp(log_density, axis=1 - at)) for at, name in enumerate(names)}

    return exact


def one_weight(
    rows: Sequence[tuple[float, float]], values: Sequence[float], likelihood: Likelihood
) -> Callable[[], Mapping[str, Expected]]:
    """The CDF of one standard normal weight that rows read with a coefficient and an offset."""

    def exact() -> Mapping[str, Expected]:
        log_density = -0.5 * SIDE.points**2
        for (coefficient, offset), value in zip(rows, values, strict=True):
            log_density = log_density + likelihood(coefficient * SIDE.points + offset, value)
        return {"a": SIDE.cdf(log_density)}

    return exact


def odd_one(count: int, place: int, odd: Any, other: Any) -> list[Any]:
    return [odd if at == place else other for at in range(count)]


def effects(
    name: str, row: str, keys: list[int], values: Sequence[float], likelihood: Likelihood, *engines: str
) -> Case:
    """Rows read the effect of group 1 and that of their own group, one of 1 and 2."""
    rows = [(2.0, 0.0, 0.0) if key == 1 else (1.0, 1.0, 0.0) for key in keys]
    return Case(
        name=name,
        program=f"""
        [assume w (mem (lambda (k) (tag 'w k (normal 0 1))))]
        for n in 1...{len(keys)}: [observe {row.replace("eta", "(+ (w 1) (w {J[n]}))")} {{Y[n]}}]""",
        query={"one": "(w 1)", "two": "(w 2)"},
        exact=two_weights(("one", "two"), rows, values, likelihood),
        engines=engines,
        derivation="Quadrature over both effects.",
        parameters={"J": keys, "Y": list(values)},
    )


ZIGZAG = [0.4, -0.9, 1.7, 0.2, 2.3, -0.5, 1.1]

OTHER_ROWS = (
    effects(
        "effects_where_the_first_row_is_odd", "(bernoulli (logistic eta))", odd_one(20, 0, 2, 1),
        odd_one(20, 0, False, True),
        bernoulli, "(flymc w one auto 'map 0.2 'drift 1.5 4)", "(subsampled_mh w one 3 0 'drift 1.5 'proxy 5)",
    ),
    effects(
        "effects_where_the_last_row_is_odd", "(normal eta 1.5)", odd_one(10, 9, 1, 2), [2.0, *ZIGZAG, 1.0, 4.0],
        normal, "(flymc w one auto 'untuned 0.3 'mala 0.9 10)",
    ),
    effects(
        "effects_where_a_row_in_the_middle_is_odd", "(poisson (exp (* 0.3 eta)))", odd_one(25, 12, 1, 2),
        [float(n % 4) for n in range(25)], poisson,
        "(cycle ((subsampled_mh w 1 5 0 'drift 1.2 'proxy 6) (mh w 2 'drift 1.2 6)) 1)",
    ),
    effects(
        "effects_where_two_of_many_rows_are_odd", "(student_t 4 eta 0.7)", [2, *odd_one(41, 40, 2, 1)],
        6 * ZIGZAG, student, "(flymc w one auto 'map 0.2 'slice 1 2)",
    ),
)  # fmt: skip


def counted(
    name: str, predictor: str, rows: list[tuple[float, float]], values: list[float], *engines: str, **of: Any
) -> Case:
    return Case(
        name=name,
        program=f"""
        [assume a (normal 0 1)]
        for n in 1...{len(rows)}: [observe (normal {predictor} 1.5) {{Y[n]}}]""",
        query={"a": "a"},
        exact=one_weight(rows, values, normal),
        engines=engines,
        derivation="Quadrature.",
        parameters={"Y": values, **of},
    )


SUMS = (
    counted(
        "truth_values_of_rows_are_added", "(+ {B[n]} {C[n]} a)", [(1.0, 2.0)] * 5 + [(1.0, 1.0)], ZIGZAG[:6],
        "(flymc default all auto 'map 0.2 'drift 1 4)", "(subsampled_mh default all 3 0 'drift 1 'proxy 4)",
        B=[True] * 6, C=odd_one(6, 5, False, True),
    ),
    counted(
        "truth_values_of_the_text_are_added", "(+ true true a)", [(1.0, 2.0)] * 3, ZIGZAG[:3],
        "(flymc default all auto 'untuned 0.2 'drift 1 4)",
    ),
    counted(
        "truth_values_of_many_rows_are_added", "(+ {B[n]} (= {X[n]} 1) (* 0.5 a))", [(0.5, 1.0)] + 24 * [(0.5, 2.0)],
        [*ZIGZAG, *ZIGZAG, *ZIGZAG, 2.5, 2.0, 1.0, 3.0],
        "(flymc default all auto 'map 0.2 'mala 0.4 4)", B=[True] * 25, X=odd_one(25, 0, 2.0, 1.0),
    ),
    counted(
        "integers_whose_product_is_large_are_multiplied", "(/ (* {G[n]} {G[n]} a) {H[n]})", [(1.0, 0.0)] * 9,
        [*ZIGZAG, 2.0, 1.0], "(flymc default all auto 'map 0.2 'drift 0.5 4)", G=[2**32] * 9, H=[2.0**64] * 9,
    ),
)  # fmt: skip


def asked_of_the_first_row(patch: pytest.MonkeyPatch) -> None:
    of_all = linear._Reading._known

    def of_first(self: Any, site: int, at: Any) -> Any:
        given, self._given = self._given, {self.row.place: listed(self.rows)[:1]}
        try:
            return of_all(self, site, at)
        finally:
            self._given = given

    patch.setattr(linear._Reading, "_known", of_first)


def added_as_numpy_does(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(linear, "_numbers", np.asarray)


FAULTS: tuple[Fault, ...] = (
    Fault("one row stands for all that read a linear predictor", OTHER_ROWS, asked_of_the_first_row),
    Fault("truth values are added in a linear predictor", SUMS, added_as_numpy_does),
)
