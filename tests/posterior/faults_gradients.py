"""Gradients and functions of blocks.

Each model has one number m, so that its posterior is that of a grid; the log likelihoods are written here once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.posterior.case import Case
from tests.posterior.derive import Grid
from tests.posterior.fault import Fault
from tests.statistics import Expected, Floats
from venture_lite.trace.table import Column

GRID = Grid(-6.0, 8.0, 4_001)
LOG_PRIOR = stats.norm.logpdf(GRID.points)
NUTS, HMC, MALA = "(nuts default all 'step 0.5 1)", "(hmc default all 0.4 3 1)", "(mala default all 0.8 1)"


def given(log_likelihood: Callable[[Floats], Any]) -> Mapping[str, Expected]:
    """Of m, which is normal before."""
    return {"m": GRID.cdf(LOG_PRIOR + log_likelihood(GRID.points))}


def regression(slopes: Sequence[float], offsets: Sequence[float], y: Sequence[float], sd: float, m: Floats) -> Any:
    """The log likelihood of y = slope m + offset + normal noise."""
    means = np.multiply.outer(m, np.asarray(slopes, float)) + np.asarray(offsets, float)
    return stats.norm.logpdf(np.asarray(y, float), means, sd).sum(axis=1)


def case(
    name: str, program: str, log_likelihood: Callable[[Floats], Any], *engines: str, **parameters: Sequence[Any]
) -> Case:
    return Case(
        name=name,
        program=f"[assume m (normal 0 1)] {program}",
        query={"m": "m"},
        exact=partial(given, log_likelihood),
        engines=engines,
        derivation="Quadrature over m.",
        parameters=parameters,
    )


def texts(count: int, odd: int) -> list[str]:
    """All one text but for the odd one."""
    return ["u" if at == odd else "t" for at in range(count)]


def data(count: int) -> dict[str, list[float]]:
    """Inputs and observations."""
    rng = np.random.default_rng(count)
    x = rng.uniform(-1.0, 1.0, count).round(2).tolist()
    return {"X": x, "Y": (np.array(x) + rng.normal(size=count)).round(2).tolist()}


# ------------------------------------------------------------------------------------------- predicates of texts

PREDICATES = "[observe (normal (* m (+ 1 (if (= {0} {1}) 3 0))) 4) {2}]"
SMALL, LARGE, MANY = data(10), data(26), data(45)


def slopes(inputs: Mapping[str, Sequence[float]], odd: int) -> list[float]:
    """Those of (+ 1 (if (= {S[n]} "t") 3 {X[n]})), where one text is odd."""
    return [1.0 + (x if at == odd else 3.0) for at, x in enumerate(inputs["X"])]


def take_none_for_a_value(patch: pytest.MonkeyPatch) -> None:
    """A select takes None for false."""
    patch.setattr("venture_lite.blocks.tape.values_of_rows", or_none(Column.gather))
    patch.setattr("venture_lite.blocks.tape.applied_to_rows", or_none(as_columns))


def as_columns(record: Any, lifted: tuple[bool, ...], arguments: Sequence[Any]) -> Any:
    return record.columns(lifted, *arguments)


def or_none(function: Callable[..., Any]) -> Callable[..., Any]:
    def tried(*given: Any) -> Any:
        try:
            return function(*given)
        except Exception:
            return None

    return tried


PREDICATES_OF_TEXTS = Fault(
    name="a predicate that has no column form",
    cases=(
        case(
            "texts_compared_beside_a_column_of_many_rows",
            'for n in 1...45: [observe (normal (* m (+ 1 (if (= {S[n]} "t") 3 {X[n]}))) 9) {Y[n]}]',
            partial(regression, slopes(MANY, 22), [0] * 45, MANY["Y"], 9.0),
            NUTS,
            S=texts(45, 22),
            **MANY,
        ),
        case(
            "texts_compared_in_single_rows",
            " ".join(PREDICATES.format('"t"', f'"{text}"', y) for text, y in (("t", 2), ("u", 0.5), ("t", 1))),
            partial(regression, [4, 1, 4], [0, 0, 0], [2, 0.5, 1], 4.0),
            NUTS,
        ),
        case(
            "texts_compared_beside_a_column",
            'for n in 1...10: [observe (normal (* m (+ 1 (if (= {S[n]} "t") 3 {X[n]}))) 5) {Y[n]}]',
            partial(regression, slopes(SMALL, 0), [0] * 10, SMALL["Y"], 5.0),
            HMC,
            S=texts(10, 0),
            **SMALL,
        ),
        case(
            "the_last_value_is_true",
            "for n in 1...3: [observe (normal (* m (+ 1 (if (is_boolean {B[n]}) 3 0))) 1) {Y[n]}]",
            partial(regression, [1, 1, 4], [0, 0, 0], [0.5, 1, 2], 1.0),
            HMC,
            B=[0.5, 2, True],
            Y=[0.5, 1, 2],
        ),
        case(
            "a_long_text_in_the_middle",
            "for n in 1...26: [observe (normal (* m (+ 1 (if (> (size {S[n]}) 1) 3 {X[n]}))) 8) {Y[n]}]",
            partial(regression, slopes(LARGE, 12), [0] * 26, LARGE["Y"], 8.0),
            NUTS,
            S=["t" if at == 12 else "uu" for at in range(26)],
            **LARGE,
        ),
    ),
    broken=take_none_for_a_value,
)


FAULTS: tuple[Fault, ...] = (PREDICATES_OF_TEXTS,)
