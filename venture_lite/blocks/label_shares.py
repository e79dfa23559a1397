"""What splits and merges of classes have in common on the trace and over columns: how often members go to the first of
two classes, and how probable each class is for a merge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from venture_lite.interpreter.weights import Weight
from venture_lite.procedures.numeric import lgamma

SCANS = 3
"""Restricted scans that make a launch state; Jain and Neal (2007) use three."""

OFTEN = 0.5
"""How often they are made: two clusters in one class come apart in them, parts of one cluster are as they are."""

ANY_CLASS = 0.2
"""How often the other class is any: one that the first label's datum does not fit may be the right one for the rest."""


def drawn_scans(rng: np.random.Generator) -> int:
    """How many restricted scans make the launch states of a proposal, whatever state it begins in."""
    return SCANS if rng.random() < OFTEN else 0


@dataclass(frozen=True, slots=True)
class Share:
    """The odds at which members go to the first class, as a share of the two."""

    first: float

    @staticmethod
    def any(rng: np.random.Generator) -> Share:
        """For a split."""
        return Share(rng.random()).inside()

    @staticmethod
    def of(rng: np.random.Generator, first: int, second: int) -> Share:
        """For the way back from two classes, of so many members."""
        return Share(rng.beta(first + 1, second + 1)).inside()

    def inside(self) -> Share:
        """Neither 0 nor 1, which rounding may give."""
        return Share(min(max(self.first, float(np.finfo(float).tiny)), 1.0 - float(np.finfo(float).epsneg)))

    def log_density_of(self, first: int, second: int) -> float:
        """As of a share drawn from classes of so many members."""
        normaliser = lgamma(first + second + 2.0) - lgamma(first + 1.0) - lgamma(second + 1.0)
        return normaliser + first * math.log(self.first) + second * math.log1p(-self.first)

    @property
    def log_odds(self) -> float:
        return math.log(self.first) - math.log1p(-self.first)


def shares_of(weights: Sequence[Weight]) -> list[float]:
    """The probability of each class, of the log weights that a label has in them."""
    fewest = min(weight.impossible for weight in weights)
    best = max(weight.total for weight in weights if weight.impossible == fewest)
    fits = [math.exp(weight.total - best) if weight.impossible == fewest else 0.0 for weight in weights]
    total = math.fsum(fits)
    return [ANY_CLASS / len(weights) + (1.0 - ANY_CLASS) * fit / total for fit in fits]


def drawn_index(shares: Sequence[float], u: float) -> int:
    """An index drawn by probabilities."""
    for index, share in enumerate(shares):
        u -= share
        if u < 0.0:
            return index
    return len(shares) - 1
