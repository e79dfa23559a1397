"""Whether draws are enough, and what is wrong where they will not be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.draws import diagnostics
from venture_lite.draws.calls import by_procedure
from venture_lite.draws.draws import Draws
from venture_lite.draws.presentation import listed
from venture_lite.draws.summary import R_HAT_LIMIT, coordinates

APART, OF_FEW = 1.1, 20.0
"""R-hat of chains that are in different places, and what is added to it over the number of draws."""
RARE = 20
"""A whole number that differs from its most frequent value in fewer draws counts as a constant."""
FEWEST = 4
"""Draws a chain of which anything can be said."""
SHOWN = 5
LOG_SCORE = "(log_score)"


@dataclass(frozen=True, slots=True)
class Judged:
    """One number of the draws."""

    name: str
    # the least of the effective sizes of the bulk, the tails and the sd
    ess: float
    r_hat: float
    # how many chains hold one value throughout
    still: int
    chains: int
    draws: int

    @property
    def is_constant(self) -> bool:
        return self.draws >= FEWEST and self.still == self.chains

    @property
    def r_hat_limit(self) -> float:
        return max(R_HAT_LIMIT, diagnostics.r_hat_by_chance(self.ess))

    @property
    def is_apart(self) -> bool:
        """Whether chains are in different places: few draws look so by chance."""
        return self.draws >= FEWEST and not self.r_hat <= APART + OF_FEW / self.draws

    def is_enough(self, target: float) -> bool:
        return self.is_constant or (self.ess >= target and self.r_hat <= self.r_hat_limit)


@dataclass(frozen=True, slots=True)
class Judgement:
    """All numbers of some draws."""

    numbers: tuple[Judged, ...]
    target: float
    # that count, a chain; without end where nothing is drawn
    draws: float
    # the mean log joint density of each chain, where it was drawn
    log_densities: tuple[float, ...] = ()

    @property
    def is_enough(self) -> bool:
        return self.draws >= FEWEST and all(number.is_enough(self.target) for number in self.numbers)

    @property
    def apart(self) -> list[Judged]:
        """What differs between chains, those that differ most first."""
        found = [number for number in self.numbers if not number.is_constant and number.is_apart]
        return sorted(found, key=lambda number: -number.r_hat)

    @property
    def least(self) -> Judged | None:
        """What has the fewest effective draws."""
        moving = [number for number in self.numbers if not number.is_constant]
        return min(moving, key=lambda number: number.ess, default=None)

    def warnings(self) -> Iterator[str]:
        """What is wrong, with what to try, a line each."""
        if apart := self.apart:
            names = listed(by_procedure([number.name for number in apart]), SHOWN)
            where = ", ".join(f"{density:.4g}" for density in self.log_densities)
            where = f" The mean log density by chain is {where}." if where else ""
            yield (
                f"the chains are in different places (R-hat up to {apart[0].r_hat:.2f}, for {names}): there are "
                f"several modes, or parts that chains do not leave; look at the draws chain by chain.{where}"
            )
        still = [number.name for number in self.numbers if 0 < number.still < number.chains]
        if still:
            names = listed(by_procedure(still), SHOWN)
            yield f"some chains never move {names}, others do: run longer, or move these otherwise"
        constant = [number.name for number in self.numbers if number.is_constant]
        if constant:
            yield f"not judged, for it is the same in all draws: {listed(by_procedure(constant), SHOWN)}"


def judged(draws: Draws, target: float) -> Judgement:
    """The draws that count, number by number; what is no number is left out."""
    draws, found = draws.without_adaptation(), []
    for name in draws.names:
        if not draws.is_numeric(name):
            continue
        values = draws[name]
        for label, index in coordinates(name, values.shape[2:]):
            place: Any = (slice(None), slice(None), *index)
            # numbers near the end of the floats have no finite moments
            with np.errstate(all="ignore"):
                found.append(_judged(label, values[place].astype(np.float64)))
    counted = min((len(values) for name in draws.names for values in draws.by_chain(name)), default=math.inf)
    densities = draws[LOG_SCORE].mean(axis=1).tolist() if counted and LOG_SCORE in draws else ()
    return Judgement(tuple(found), target, counted, tuple(densities))


def _judged(name: str, values: np.ndarray) -> Judged:
    """Of draws (chains, draws)."""
    if values.shape[1] < FEWEST:
        return Judged(name, 0.0, math.nan, 0, *values.shape)
    still, chains = int(diagnostics.never_moves(values).sum()), len(values)
    if still == chains and not bool((values == values[0, 0]).all()):
        return Judged(name, 0.0, math.inf, 0, *values.shape)
    if still == chains or _is_rare(values):
        return Judged(name, 0.0, math.nan, chains, *values.shape)
    sizes = [diagnostics.ess_bulk(values), diagnostics.ess_tail(values), diagnostics.ess_sd(values)]
    ess = min(0.0 if math.isnan(size) else size for size in sizes)
    return Judged(name, ess, diagnostics.r_hat(values), still, *values.shape)


def _is_rare(values: np.ndarray) -> bool:
    """Whether whole numbers hardly ever differ from one of them."""
    if values.size and not bool((values == np.round(values)).all()):
        return False
    _, counts = np.unique(values, return_counts=True)
    return values.size - int(counts.max()) < RARE


def looks(draws: int) -> Iterator[int]:
    """After how many draws a chain one looks: these, and each time half as many more."""
    while True:
        yield draws
        draws += max(draws // 2, 1)
