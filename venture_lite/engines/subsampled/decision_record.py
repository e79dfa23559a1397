"""What the sequential tests of one action read and found, for its statistics: rows, p-values, how normal the samples'
means are, and how often exact decisions that were made beside differ."""

from __future__ import annotations

import numpy as np

from venture_lite.engines.subsampled.sequential_test import Decision, interval

SKEWED = 0.5
"""Skewness or excess kurtosis of a minibatch's mean above which Student's t is not to be trusted."""
LOOKED_AT = 8
"""One of so many samples is asked for its skewness and kurtosis."""
ENOUGH = 20
"""Samples after which their average says something: a single sample's skewness is mostly noise."""


class DecisionRecord:
    """What the tests of one action read and found, added up."""

    def __init__(self) -> None:
        self.tests = 0
        self.fraction = 0.0
        self.p_values = 0.0
        self.largest_p_value = 0.0
        # samples whose skewness and kurtosis were looked at
        self.shapes = 0
        self.shape = np.zeros(2)
        # exact decisions made beside, the rows that they read, and how many differ
        self.audited = 0
        self.rows_compared = 0
        self.differ = 0
        # fixed, so that an audit takes no numbers from the chain
        self._rng = np.random.default_rng(0)

    def is_to_compare(self, fraction: float) -> bool:
        """Whether the exact decision is to be made beside the next one."""
        return bool(fraction) and self._rng.random() < fraction

    def looks(self) -> bool:
        """Whether the next sample is asked for its skewness and kurtosis."""
        return (self.tests + 1) % LOOKED_AT == 0

    def add(self, decision: Decision, count: int) -> None:
        self.tests += 1
        self.fraction += decision.rows / count
        self.p_values += decision.p_value
        self.largest_p_value = max(self.largest_p_value, decision.p_value)
        if decision.shape is not None:
            self.shapes += 1
            self.shape += np.abs(decision.shape)

    def is_skewed(self) -> bool:
        return self.shapes >= ENOUGH and bool(self.shape.max() > SKEWED * self.shapes)

    def compare(self, decision: Decision, truth: Decision) -> None:
        self.audited += 1
        self.rows_compared += truth.rows
        self.differ += truth.above != decision.above

    def details(self) -> dict[str, float]:
        """By name, for the statistics of the kernel."""
        if not self.tests:
            return {}
        found = {
            "mean fraction of rows": self.fraction / self.tests,
            "mean p-value": self.p_values / self.tests,
            "largest p-value": self.largest_p_value,
        }
        if self.shapes:
            skewness, kurtosis = (self.shape / self.shapes).tolist()
            found |= {"skewness of a minibatch's mean": skewness, "kurtosis of a minibatch's mean": kurtosis}
        if self.audited:
            low, high = interval(self.differ, self.audited)
            found |= {"decisions compared": self.audited, "rows read to compare": self.rows_compared}
            found |= {"share that differs": self.differ / self.audited, "at least (95%)": low, "at most (95%)": high}
        return found
