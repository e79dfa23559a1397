"""What splits and merges of classes have in common on the trace and over columns: how often the first label is one of a
class, how often members go to the first of two classes, and how probable each class is for a merge.
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

OFTEN = 0.2
"""How often they are made: two clusters in one class come apart in them, parts of one cluster are as they are."""

ANY_CLASS = 0.2
"""How often the other class is any: one that the first label's datum does not fit may be the right one for the rest."""


BY_CLASS = 0.8
"""How often the first label is one of a class, drawn among these, and not any."""

SMALL = 0.25
"""The parameter of the Beta distribution of shares where few members are to part, at any scale: with 0 log r would be
uniform, and have no end."""

LEAST = 1e-300
"""A share."""


def drawn_scans(rng: np.random.Generator) -> int:
    """How many restricted scans make the launch states of a proposal, whatever state it begins in."""
    return SCANS if rng.random() < OFTEN else 0


@dataclass(frozen=True, slots=True)
class Share:
    """The odds at which members go to the first class, as a share of the two."""

    first: float
    # of the Beta distribution that it has in a split
    parameter: float

    @staticmethod
    def any(rng: np.random.Generator, is_small: bool) -> Share:
        """For a split, which is to part few members or as many as remain, or any number."""
        parameter = SMALL if is_small else 1.0
        return Share._inside(rng.beta(parameter, parameter), parameter)

    @staticmethod
    def of(rng: np.random.Generator, first: int, second: int, is_small: bool) -> Share:
        """For the way back from two classes, of so many members."""
        return Share._inside(rng.beta(first + 1, second + 1), SMALL if is_small else 1.0)

    @staticmethod
    def _inside(share: float, parameter: float) -> Share:
        """Neither 0 nor 1, which rounding may give."""
        return Share(min(max(share, LEAST), 1.0 - float(np.finfo(float).epsneg)), parameter)

    @property
    def first_is_small(self) -> bool:
        return self.first <= 0.5

    def launched(self, rng: np.random.Generator, members: int) -> float:
        """How probable the first class is for each of so many members in a launch state without scans: those of the
        smaller class are any number up to its share of them, on a logarithmic scale."""
        most = 1.0 + min(self.first, 1.0 - self.first) * members
        small = float(most ** rng.random()) / (members + 2.0)
        return small if self.first_is_small else 1.0 - small

    def log_ratio_of(self, first: int, second: int) -> float:
        """The log density of the share as one drawn from classes of so many members, over that in a split."""
        log_first, log_second, drawn = math.log(self.first), math.log1p(-self.first), self.parameter
        back = _log_beta(first + 1.0, second + 1.0) + first * log_first + second * log_second
        return back - _log_beta(drawn, drawn) - (drawn - 1.0) * (log_first + log_second)

    @property
    def log_odds(self) -> float:
        return math.log(self.first) - math.log1p(-self.first)


def _log_beta(first: float, second: float) -> float:
    """Minus the log of the Beta function."""
    return lgamma(first + second) - lgamma(first) - lgamma(second)


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
