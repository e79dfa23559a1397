"""What is proposed for one number in one state, drawn and weighed by arithmetic on numbers.

`StateProposal` says what the mixture is; here it is for a single choice, without lists, arrays and addresses. What
the choice's own distribution knows of it (its coordinate, the Jacobian, its density) is printed as one function.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from venture_lite.engines.compiled.frame import Position
from venture_lite.engines.compiled.standing import DEGREES, StateProposal, drawn_wide, log_t, log_wide
from venture_lite.networks.heads import HALF_LOG_TWO_PI, Density, NormalMixture
from venture_lite.procedures.record import Random
from venture_lite.procedures.straight_line import Recording, compiled, recordable
from venture_lite.procedures.transforms import Elementwise

Weigh = Callable[..., tuple[float, float, float]]
"""(value, *arguments) -> its coordinate, the log Jacobian from that to it, its log density by the prior."""


def weighing(record: Random, count: int) -> Weigh | None:
    """Of a choice with so many arguments, discrete ones at the value as it is; None where it is not recordable.

    The function raises what arithmetic raises.
    """
    transform = record.transform
    if record.definition is None or not (transform is None or isinstance(transform, Elementwise)):
        return None
    return _weighing(record.definition, transform, count)


@functools.cache
def _weighing(definition: Callable[..., float], transform: Elementwise | None, count: int) -> Weigh:
    recording = Recording()
    value, *arguments = map(recording.input, range(1 + count))
    density = recordable(definition)(value, *arguments)
    if transform is None:
        return compiled([value, 0.0, density], 1 + count, False)
    free, slope = (recordable(part)(value, *arguments) for part in (transform.free_of, transform.log_slope))
    return compiled([free, slope, density], 1 + count, False)


BEYOND: Any = object()
"""Stands for a count in the tail."""


class NumberProposal(ABC):
    """What is proposed for one number in one state. Mutable: it keeps how the number that stands was weighed."""

    __slots__ = ("at", "density", "lies_outside")
    # whether it is no discrete value
    is_number = True

    def __init__(self, lies_outside: bool) -> None:
        self.lies_outside = lies_outside
        # the value that was weighed last as one that stands, and the log density of proposing it
        self.at: Any = None
        self.density = 0.0

    @abstractmethod
    def log_densities(self, coordinate: Any) -> tuple[float, float]:
        """As `StateProposal.log_densities`."""

    @abstractmethod
    def drawn(self, rng: np.random.Generator, is_wide: bool) -> Any:
        """As `StateProposal.drawn`; of a discrete choice the value."""

    def log_mixture(self, logs: Sequence[float], coordinate: Any, prior: float) -> float:
        """The log density of proposing a coordinate, of which `prior` is the prior's; `logs` are the logarithms of the
        shares of the prior, of what is wide, and of what was learned."""
        learned, wide = self.log_densities(coordinate)
        a, b, c = logs[0] + prior, logs[1] + wide, logs[2] + learned
        top = a if a >= b else b
        top = top if top >= c else c
        if top == -math.inf:
            return top
        return top + math.log(math.exp(a - top) + math.exp(b - top) + math.exp(c - top))


class InFrame(NumberProposal):
    """The normal in the frame of the mode, or the t where a round has corrected that; the t beside it."""

    __slots__ = ("_centre", "_is_heavy", "_log_sd", "_sd")

    def __init__(self, centre: float, sd: float, is_heavy: bool) -> None:
        super().__init__(False)
        self._centre, self._sd, self._log_sd, self._is_heavy = centre, sd, math.log(sd), is_heavy

    def log_densities(self, coordinate: float) -> tuple[float, float]:
        number = (coordinate - self._centre) / self._sd
        square = number * number
        wide = log_t(square, 1) - self._log_sd
        return wide if self._is_heavy else -0.5 * square - HALF_LOG_TWO_PI - self._log_sd, wide

    def drawn(self, rng: np.random.Generator, is_wide: bool) -> float:
        number: float = rng.standard_normal()
        if is_wide or self._is_heavy:
            number *= math.sqrt(DEGREES / rng.chisquare(DEGREES))
        return self._centre + self._sd * number


class LearnedInFrame(InFrame):
    """A learned density in the frame of the mode, the t beside it."""

    __slots__ = ("_density",)

    def __init__(self, centre: float, sd: float, density: Density, lies_outside: bool) -> None:
        super().__init__(centre, sd, True)
        self._density, self.lies_outside = density, lies_outside

    def log_densities(self, coordinate: float) -> tuple[float, float]:
        _, wide = super().log_densities(coordinate)
        return self._density.log_density((coordinate - self._centre) / self._sd) - self._log_sd, wide

    def drawn(self, rng: np.random.Generator, is_wide: bool) -> float:
        return super().drawn(rng, True) if is_wide else self._centre + self._sd * self._density.draw(rng)


class LearnedHead(NumberProposal):
    """Learned normals in the frame of the prior, each with a wide t beside it."""

    __slots__ = ("_centre", "_density", "_log_sd", "_sd")

    def __init__(self, centre: float, sd: float, density: Density, lies_outside: bool) -> None:
        super().__init__(lies_outside)
        self._centre, self._sd, self._log_sd, self._density = centre, sd, math.log(sd), density

    def log_densities(self, coordinate: float) -> tuple[float, float]:
        number = (coordinate - self._centre) / self._sd
        return self._density.log_density(number) - self._log_sd, log_wide(self._density, number) - self._log_sd

    def drawn(self, rng: np.random.Generator, is_wide: bool) -> float:
        density = self._density
        return self._centre + self._sd * (drawn_wide(density, rng) if is_wide else density.draw(rng))


class LearnedValue(NumberProposal):
    """Learned frequencies of the values of a discrete choice. Counts in the tail, of which one is drawn as BEYOND, have
    no density here, and are left to the general way."""

    __slots__ = ("_density", "_positions", "_values", "tail")
    is_number = False

    def __init__(self, position: Position, density: Density, lies_outside: bool) -> None:
        super().__init__(lies_outside)
        self._density, values = density, position.values.tolist()
        self.tail = position if position.has_tail else None
        self._values = [*values, BEYOND] if position.has_tail else values
        self._positions = {value: at for at, value in enumerate(values)}

    def log_densities(self, coordinate: Any) -> tuple[float, float]:
        at = self._positions.get(coordinate)
        if at is None and self.tail is not None:
            return math.nan, math.nan
        density = self._density.log_density(-1 if at is None else at)
        return density, density

    def drawn(self, rng: np.random.Generator, is_wide: bool) -> Any:
        return self._values[int(self._density.draw(rng))]


def number_of(standing: StateProposal) -> NumberProposal | None:
    """Of one choice, what is proposed in a state; None where it is no number."""
    kind, given, outside = standing.kind, standing.given, standing.lies_outside
    (position,) = kind.frame.positions
    density = None if given is None else given.of_coordinate(0, [])
    if kind.frame.body:
        at = standing.reader.body_of_state(standing.reading, []).number
        if at is None:
            return None
        return InFrame(*at, kind.frame.mean is not None) if density is None else LearnedInFrame(*at, density, outside)
    if density is None or kind.more:
        return None
    if position.is_discrete:
        return LearnedValue(position, density, outside)
    if not position.is_number or not isinstance(density, NormalMixture):
        return None
    return LearnedHead(float(position.centre[0]), float(position.scale[0]), density, outside)
