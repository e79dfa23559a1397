"""A scale above effects: in one block the effects have their mode given the scale."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.posterior.case import Case
from tests.posterior.derive import Grid
from tests.statistics import Expected, Mean

EFFECTS = (2.0, -1.5, 3.0, 0.5, -4.0, 1.0)


def scale_of_effects() -> Mapping[str, Expected]:
    """Effects are integrated out: their data have variance sd^2 + 9."""
    grid = Grid(1e-4, 100.0)
    variance = grid.points**2 + 9.0
    log_density = (
        -0.3 * grid.points
        - 0.5 * len(EFFECTS) * np.log(variance)
        - sum(effect**2 for effect in EFFECTS) / (2.0 * variance)
    )
    share = grid.points**2 / variance
    square = (share * EFFECTS[0]) ** 2 + 9.0 * share
    density = np.exp(log_density)
    return {"sd": grid.cdf(log_density), "square": Mean(float((density * square).sum() / density.sum()))}


HIERARCHY = Case(
    name="scale_of_effects",
    program="""
        [assume sd (gamma 1 0.3)] [assume x (mem (lambda (i) (normal 0 sd)))]
        for i in 1...6: [observe (normal (x i) 3) {Y[i]}]""",
    parameters={"Y": np.array(EFFECTS)},
    query={"sd": "sd", "square": "(* (x 1) (x 1))"},
    exact=scale_of_effects,
    engines=(),
    derivation="Quadrature over the scale.",
)
