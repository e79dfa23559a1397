"""Whether the chains of `auto` missed a place: other paths uphill are followed, on traces of their own, to see.

Chains that all stand in one of two modes agree with one another. So some paths, those of the chains among them, begin
at random starts of their own (never resampled against each other, which would leave the wrong mode alone). Where one
ends outside of what the chains drew, it is moved as they were for a while; a place from which it never comes to them,
though its density is not much lower than theirs, is one that they missed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.draws.draws import Draws
from venture_lite.draws.presentation import number
from venture_lite.draws.summary import coordinates
from venture_lite.session.auto.judging import LOG_SCORE

PATHS, FEW_PATHS = 16, 8
"""In all, and where each takes as long as many draws."""
SWEEPS, BURN, STRIDE = 150, 100, 10
"""Of paths of which one ends elsewhere: how many there are at most, how many of them tune, and after how many it is
looked whether all have come to the chains."""
DEEPER = 10.0
"""Nats below all that the chains met: where a density is lower by more, next to nothing of the posterior is."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where paths stand that chains did not come to."""

    # a number by which that is seen, there, and the least and the greatest that the chains drew
    name: str
    value: float
    least: float
    greatest: float
    # the log joint density there, and the mean of the chains'
    log_density: float
    usual: float

    def __str__(self) -> str:
        return (
            f"{self.name} is {number(self.value, 3)} there, {number(self.least, 3)} to {number(self.greatest, 3)} in "
            f"the chains, the log density {number(self.log_density, 4)} there, {number(self.usual, 4)} in the chains"
        )


def elsewhere(draws: Draws, others: Draws) -> dict[int, Place]:
    """For each chain of `others`, by its position, of which every draw lies outside of all `draws`, and the last not
    far below them in density, where that is; by the number that is furthest out. Both hold the same variables, the log
    density among them."""
    usual, there = draws[LOG_SCORE], others[LOG_SCORE][:, -1]
    furthest = np.ones(others[LOG_SCORE].shape)
    found: dict[int, Place] = {}
    for name, drawn, ends in _numbers(draws, others):
        least, greatest, sd = float(drawn.min()), float(drawn.max()), float(drawn.std())
        # how far beyond the draws, in their sds
        out = np.maximum(least - ends, ends - greatest) / max(sd, 1e-300)
        for path in np.flatnonzero(out[:, -1] > furthest[:, -1]).tolist():
            place = Place(name, float(ends[path, -1]), least, greatest, float(there[path]), float(usual.mean()))
            found[path] = place
        furthest = np.maximum(furthest, out)
    nearest, lowest = furthest.min(axis=1), float(usual.min()) - DEEPER
    return {path: found[path] for path in sorted(found) if nearest[path] > 1.0 and found[path].log_density > lowest}


def _numbers(draws: Draws, others: Draws) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Each number but the log density: its name, its draws (C, N), and those of the others (P, M)."""
    for name in draws.names:
        if name == LOG_SCORE or not draws.is_numeric(name) or not others.is_numeric(name):
            continue
        values, ends = draws[name], others[name]
        if values.shape[2:] != ends.shape[2:]:
            continue
        for label, index in coordinates(name, values.shape[2:]):
            at: Any = (slice(None), slice(None), *index)
            yield label, values[at].astype(np.float64), ends[at].astype(np.float64)


def places_line(places: Collection[Place], paths: int) -> str:
    """What is said of them, and what to do."""
    best = max(places, key=lambda place: place.log_density)
    count = f"{len(places)} of {paths} paths lead" if len(places) > 1 else f"one of {paths} paths leads"
    return (
        f"{count} to where no chain was: {best}; there are several modes, and the draws are of those that the chains "
        "found: begin chains at the others by initialize, or write the model so that it has one"
    )
