"""What inputs the worlds have, but for the rarest of them: beyond these ranges a network has learned little."""

from __future__ import annotations

import numpy as np

from venture_lite.networks.pooled import Examples, PortRows
from venture_lite.networks.standardisation import CONSTANT, LARGEST

Range = tuple[np.ndarray, np.ndarray]
"""The bounds of each column."""

RARE = 0.011
"""The share of worlds of which some input lies beyond its bounds: of one normal input, 2.54 sds from its mean."""
SPREAD = (0.05, 0.5, 0.95)
"""Quantiles of an input whose distances are widened."""


def ranges_of(examples: Examples) -> tuple[Range, ...]:
    """Of the fixed inputs and of the rows of each port: distances between quantiles of what asinh makes of inputs, all
    of them widened by one factor, so that in all but RARE of the examples every input of every row lies inside."""
    ports = [PortRows(examples.fixed, np.ones(len(examples), np.intp)), *examples.ports]
    inputs = [_Inputs(port) for port in ports]
    factor = max(1.0, float(np.quantile(np.max([each.farthest for each in inputs], axis=0), 1.0 - RARE)))
    return tuple(each.range(factor) for each in inputs)


class _Inputs:
    """The columns of one port: where they lie."""

    def __init__(self, rows: PortRows) -> None:
        self.rows = rows
        # (N,): of each example the largest distance from a median, in those of the quantiles
        self.farthest = np.zeros(len(rows.counts))
        if not rows.values.size:
            return
        values = np.arcsinh(np.clip(rows.values, -LARGEST, LARGEST))
        low, self.middle, high = np.quantile(values, SPREAD, axis=0)
        # what varies by rounding alone is constant
        least = CONSTANT * (1.0 + np.abs(self.middle))
        self.below, self.above = [np.where(d > least, d, 0.0) for d in (self.middle - low, high - self.middle)]
        distances = values - self.middle
        spread = np.where(distances < 0.0, -self.below, self.above)
        # an input that seldom varies has the bounds of all its values
        far = np.divide(distances, spread, out=np.zeros_like(distances), where=spread != 0.0).max(axis=1)
        some = rows.counts > 0
        self.farthest[some] = np.maximum.reduceat(far, rows.starts[some])

    def range(self, factor: float) -> Range:
        values = self.rows.values
        if not values.size:
            return np.full(values.shape[1], -np.inf), np.full(values.shape[1], np.inf)
        with np.errstate(over="ignore"):
            low, high = np.sinh(self.middle - factor * self.below), np.sinh(self.middle + factor * self.above)
        least, largest = values.min(axis=0), values.max(axis=0)
        return np.where(self.below > 0.0, low, least), np.where(self.above > 0.0, high, largest)
