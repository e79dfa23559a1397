"""The log evidence of a model, the log of the density that it gives its data: what independent runs estimate.

Each run gives an unbiased estimate of the evidence itself, so that the estimate is the log of their mean. Its error
comes from their spread: one run knows nothing of it, whose particles soon have one ancestor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from venture_lite.draws.presentation import number


@dataclass(frozen=True, slots=True)
class Evidence:
    """An estimate of the log evidence, in nats."""

    log: float
    # its standard error; NaN from a single run
    error: float
    # the log of each run's estimate; -inf where all its particles died out
    runs: tuple[float, ...]

    @classmethod
    def of(cls, runs: Sequence[float]) -> Evidence:
        """From the logs of independent estimates of the evidence (R,): the log of their mean, whose error follows from
        theirs by the delta method."""
        logs = np.array(runs, float)
        highest = logs.max()
        if highest == -math.inf:
            return cls(-math.inf, math.nan, tuple(runs))
        ratios = np.exp(logs - highest)
        mean = float(ratios.mean())
        error = float(ratios.std(ddof=1)) / (mean * math.sqrt(len(logs))) if len(logs) > 1 else math.nan
        return cls(float(highest) + math.log(mean), error, tuple(runs))

    def __str__(self) -> str:
        error = "its error unknown from one run" if math.isnan(self.error) else f"error {number(self.error, 2)}"
        return f"log evidence {round(self.log, 3) + 0.0:.3f}, {error}"
