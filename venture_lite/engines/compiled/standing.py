"""What is proposed for a block in one state: densities of its coordinates, to draw from and to weigh with.

A proposal is a mixture: with probability 1 - EPS from the network, with EPS from what is safe whatever it learned. Half
of that is the prior; half is wide: of heads the network's normals, each made a t with 8 degrees of freedom and twice
its scale, of a body the t with 8 degrees in its frame. Discrete choices come from the prior in both halves. (Liang et
al. 2021, section 3; the mixture is ours.)
"""

from __future__ import annotations

import functools
import math

import numpy as np

from venture_lite.engines.compiled.frame import Position
from venture_lite.engines.compiled.proposer import KindProposer
from venture_lite.engines.compiled.reading import BlockReader, BlockReading
from venture_lite.errors import InternalError
from venture_lite.networks.heads import HALF_LOG_TWO_PI, Density, NormalMixture, log_sum

DEGREES, WIDER = 8.0, 2.0
"""Of the t beside each normal of a head, and by how much its scale is larger."""
LOG_WIDER = math.log(WIDER)
TAILS = 1.15
"""By how much each normal of a head is wider than it was learned, where there is a body. What examples teach is a bit
too narrow in some tail, and a chain that comes there stays: twice the effective size for 0.02 of the acceptance."""
MOST_WEIGHED = 8
"""Coordinates whose densities are kept: where a block is refused it is weighed again."""


class StateProposal:
    """What is proposed for a block in one state: the densities of its coordinates by the network, and by its normals
    made wide with the body's t."""

    is_unread = False

    def __init__(self, kind: KindProposer, reading: BlockReading, reader: BlockReader | None) -> None:
        """Where the block has no body, there need be no reader."""
        self.kind, self.reading, self._reader = kind, reading, reader
        self.given = kind.given(self.reading.features)
        self.lies_outside = kind.lie_outside(self.reading.features)
        frame = kind.frame
        self._shifts = self.reading.shifts[0].tolist()
        self._volume = frame.log_volume
        self._heads, self._body = frame.head_coordinates, frame.body_coordinates
        # whether the density of what is wide leaves out discrete choices, which the prior weighs, and draws choice by
        # choice
        self.discrete_by_prior = reader is not None and reader.discrete_by_prior
        # by coordinates, of those that were weighed last
        self._weighed: dict[tuple[float, ...], tuple[float, float]] = {}

    @property
    def reader(self) -> BlockReader:
        """What finds the frame of the body."""
        assert self._reader is not None
        return self._reader

    def drawn(self, rng: np.random.Generator, is_wide: bool) -> list[float]:
        """Coordinates of the block, from the network or from what is wide."""
        learned = self.kind.body_is_learned and not is_wide
        count = len(self._heads) + (len(self._body) if learned else 0)
        numbers: list[float] = []
        for d in range(count):
            density = self._of_coordinate(d, numbers)
            numbers.append(drawn_wide(density, rng) if is_wide else density.draw(rng))
        found = [0.0] * (len(self._heads) + len(self._body))
        heads = self._of_heads(numbers)
        for at, coordinate in zip(self._heads, heads, strict=True):
            found[at] = coordinate
        if self._body:
            body: list[float] = numbers[len(heads) :] if learned else rng.standard_normal(len(self._body)).tolist()
            if is_wide or (not learned and self.kind.frame.mean is not None):
                factor = math.sqrt(DEGREES / rng.chisquare(DEGREES))
                body = [factor * number for number in body]
            normal = self.reader.body_of_state(self.reading, heads)
            for at, coordinate in zip(self._body, normal.free(body), strict=True):
                found[at] = coordinate
        return found

    def drawn_next(self, rng: np.random.Generator, position: Position, before: list[float]) -> list[float]:
        """Coordinates of the next choice of a block without a body, from what is wide, after numbers of the frame that
        are known; which become more."""
        start = len(before)
        for _ in range(position.width):
            before.append(drawn_wide(self._of_coordinate(len(before), before), rng))
        shifts = self._shifts[start:]
        return [
            float(position.centre[k]) + shifts[k] + float(position.scale[k]) * before[start + k]
            for k in range(position.width)
        ]

    def _of_heads(self, numbers: list[float]) -> list[float]:
        """Coordinates of heads."""
        positions, found, at = self.kind.frame.head_positions, [], 0
        for position in positions:
            for k in range(position.width):
                number = numbers[at]
                if not position.is_discrete:
                    number = float(position.centre[k]) + self._shifts[at] + float(position.scale[k]) * number
                found.append(number)
                at += 1
        return found

    def _of_coordinate(self, d: int, numbers: list[float]) -> Density:
        """The density of a number after those before it."""
        assert self.given is not None
        density = self.given.of_coordinate(d, numbers)
        if not isinstance(density, NormalMixture):
            return density
        more = self.kind.more[d] if d < len(self.kind.more) else None
        density = density if more is None else density.of_more(*more)
        return density.wider(TAILS) if self._body and d < len(self._heads) else density

    def numbers(self, coordinates: list[float]) -> list[float]:
        """Those of the frame at coordinates of the block: of heads, then of the body."""
        return self._numbers(coordinates)[0]

    def log_volume(self, coordinates: list[float]) -> float:
        """log |d coordinates / d numbers| of the body."""
        return self._numbers(coordinates)[1]

    def _numbers(self, coordinates: list[float]) -> tuple[list[float], float]:
        """The same, with log |d coordinates / d numbers| of the body."""
        heads, numbers, at = [coordinates[at] for at in self._heads], [], 0
        for position in self.kind.frame.head_positions:
            part, shift = np.array(heads[at : at + position.width]), self._shifts[at : at + position.width]
            numbers += position.numbers(part, shift).tolist()
            at += position.width
        if not self._body:
            return numbers, 0.0
        normal = self.reader.body_of_state(self.reading, heads)
        return numbers + normal.numbers([coordinates[at] for at in self._body]), normal.log_volume

    def log_densities(self, coordinates: list[float]) -> tuple[float, float]:
        """Of coordinates of the block: by the network, and by what is wide, without the discrete choices where the
        prior weighs these."""
        key = tuple(coordinates)
        if key not in self._weighed:
            if len(self._weighed) > MOST_WEIGHED:
                self._weighed.clear()
            self._weighed[key] = self._log_densities(coordinates)
        return self._weighed[key]

    def _log_densities(self, coordinates: list[float]) -> tuple[float, float]:
        learned = wide = -self._volume
        heads = len(self._heads)
        numbers, volume = self._numbers(coordinates)
        for d in range(heads):
            density = self._of_coordinate(d, numbers)
            learned += density.log_density(numbers[d])
            if not self.discrete_by_prior or isinstance(density, NormalMixture):
                wide += log_wide(density, numbers[d])
            if wide == -math.inf:
                return learned, wide
        if not self._body:
            return learned, wide
        body = numbers[heads:]
        squares = sum([number * number for number in body])
        heavy = log_t(squares, len(body)) - volume
        if not self.kind.body_is_learned:
            normal = -0.5 * squares - HALF_LOG_TWO_PI * len(body) - volume
            return learned + (heavy if self.kind.frame.mean is not None else normal), wide + heavy
        assert self.given is not None
        for d in range(heads, len(numbers)):
            learned += self.given.of_coordinate(d, numbers).log_density(numbers[d])
        return learned - volume, wide + heavy


class UnreadState:
    """Where something that reads the block has no value with the block at its centre, the prior alone is proposed: what
    is read depends on the rest of the state, so that it is so in both directions."""

    is_unread = lies_outside = True

    def __init__(self, kind: KindProposer, reader: BlockReader) -> None:
        self.kind, self.reader = kind, reader

    def drawn(self, rng: np.random.Generator, is_wide: bool) -> list[float]:
        raise InternalError("nothing is proposed but by the prior")

    def log_densities(self, coordinates: list[float]) -> tuple[float, float]:
        return -math.inf, -math.inf


def log_t(squares: float, size: int) -> float:
    """The log density of the t in so many dimensions, DEGREES of freedom, at a point of this squared length (Kotz and
    Nadarajah 2004, Multivariate t distributions, equation 1.1)."""
    return _log_t_at_centre(size) - 0.5 * (DEGREES + size) * math.log1p(squares / DEGREES)


@functools.cache
def _log_t_at_centre(size: int) -> float:
    of_degrees = math.lgamma(0.5 * (DEGREES + size)) - math.lgamma(0.5 * DEGREES)
    return of_degrees - 0.5 * size * math.log(DEGREES * math.pi)


def drawn_wide(density: Density, rng: np.random.Generator) -> float:
    """A number of what is wide beside a learned density."""
    if not isinstance(density, NormalMixture):
        return density.draw(rng)
    weights = np.exp(density.log_weights)
    chosen = int(rng.choice(len(weights), p=weights / weights.sum()))
    return density.means[chosen] + WIDER * math.exp(density.log_sds[chosen]) * float(rng.standard_t(DEGREES))


def log_wide(density: Density, number: float) -> float:
    """The log density of what is wide beside a learned one."""
    if not isinstance(density, NormalMixture):
        return density.log_density(number)
    terms = []
    for log_weight, mean, log_sd in zip(density.log_weights, density.means, density.log_sds, strict=True):
        scaled = (number - mean) * math.exp(-log_sd) / WIDER
        terms.append(log_weight - log_sd - LOG_WIDER + log_t(scaled * scaled, 1))
    return log_sum(terms)
