"""Makers of exchangeable draws that are counted: the parameter is integrated out, counts are kept exactly."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from venture_lite.procedures.domains import POSITIVE, POSITIVE_INTEGER
from venture_lite.procedures.record import Argument, Maker

_LARGE = 1e4
"""Above this the difference of two lgamma loses digits and Stirling's series, cut after 1/(12 x), loses none: its next
term, 1/(360 x^3), is below 3e-15."""


def log_rising(start: float, count: int) -> float:
    """log of start (start + 1) ... (start + count - 1)."""
    end = start + count
    if start < _LARGE:
        return math.lgamma(end) - math.lgamma(start)
    series = (1.0 / end - 1.0 / start) / 12.0
    return count * math.log(end) + (start - 0.5) * math.log1p(count / start) - count + series


class BetaBernoulliState:
    __slots__ = ("_a", "_b", "arguments", "count", "successes")

    def __init__(self, a: float, b: float) -> None:
        self.count = 0
        self.successes = 0
        self.set_arguments((a, b))

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments
        self._a, self._b = map(float, arguments)

    def simulate(self, rng: np.random.Generator) -> bool:
        return rng.random() * (self._a + self._b + self.count) < self._a + self.successes

    def log_predictive(self, value: Any) -> float:
        if not isinstance(value, (int, float)):
            return -math.inf
        if value == 1:
            mass = self._a + self.successes
        elif value == 0:
            mass = self._b + (self.count - self.successes)
        else:
            return -math.inf
        return math.log(mass) - math.log(self._a + self._b + self.count)

    def log_joint(self) -> float:
        joint = log_rising(self._a, self.successes) + log_rising(self._b, self.count - self.successes)
        return joint - log_rising(self._a + self._b, self.count)

    def support(self) -> Sequence[bool]:
        return (False, True)

    def add(self, value: Any) -> tuple[int, int]:
        return self._move(1, int(value))

    def remove(self, value: Any) -> tuple[int, int]:
        return self._move(-1, -int(value))

    def restore(self, token: tuple[int, int]) -> None:
        self._move(*token)

    def _move(self, draws: int, successes: int) -> tuple[int, int]:
        self.count += draws
        self.successes += successes
        return (-draws, -successes)

    def recount(self, applications: Iterable[tuple[Any, ...]]) -> None:
        self.count = self.successes = 0
        for (value,) in applications:
            self.add(value)

    def statistics(self) -> dict[str, int]:
        return {"count": self.count, "successes": self.successes}


class DirichletMultinomialState:
    """Draws 0 ... n - 1 whose probabilities have a symmetric Dirichlet prior."""

    __slots__ = ("_a", "_n", "arguments", "count", "counts")

    def __init__(self, a: float, n: float) -> None:
        self.count = 0
        # outcome -> number of draws, only where there are some: n may be large
        self.counts: dict[int, int] = {}
        self.set_arguments((a, n))

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments
        self._a, self._n = float(arguments[0]), int(arguments[1])

    def simulate(self, rng: np.random.Generator) -> int:
        """As an earlier draw, in order of outcomes so that it depends on the counts alone; else from the prior."""
        left = rng.random() * (self._a * self._n + self.count)
        for outcome in sorted(self.counts):
            left -= self.counts[outcome]
            if left < 0.0:
                return outcome
        return min(int(left / self._a), self._n - 1)

    def log_predictive(self, value: Any) -> float:
        if not (isinstance(value, (int, float)) and 0 <= value < self._n and value % 1 == 0):
            return -math.inf
        mass = self._a + self.counts.get(int(value), 0)
        return math.log(mass) - math.log(self._a * self._n + self.count)

    def log_joint(self) -> float:
        # an outcome beyond a new, smaller n has probability zero
        if self.counts and max(self.counts) >= self._n:
            return -math.inf
        joint = math.fsum(log_rising(self._a, count) for count in self.counts.values())
        return joint - log_rising(self._a * self._n, self.count)

    def support(self) -> Sequence[int]:
        return range(self._n)

    def add(self, value: Any) -> tuple[int, int]:
        return self._move(int(value), 1)

    def remove(self, value: Any) -> tuple[int, int]:
        return self._move(int(value), -1)

    def restore(self, token: tuple[int, int]) -> None:
        self._move(*token)

    def _move(self, outcome: int, change: int) -> tuple[int, int]:
        self.count += change
        after = self.counts.get(outcome, 0) + change
        if after:
            self.counts[outcome] = after
        else:
            del self.counts[outcome]
        return (outcome, -change)

    def recount(self, applications: Iterable[tuple[Any, ...]]) -> None:
        self.count, self.counts = 0, {}
        for (value,) in applications:
            self.add(value)

    def statistics(self) -> dict[int, int]:
        return dict(self.counts)


class GammaPoissonState:
    """Poisson counts whose rate has a gamma prior; how often each count was drawn is kept, so nothing is rounded."""

    __slots__ = ("_log_factorials", "_rate", "_shape", "arguments", "count", "counts", "total")

    def __init__(self, shape: float, rate: float) -> None:
        self.count = 0
        self.total = 0
        self.counts: dict[int, int] = {}
        self._log_factorials: float | None = 0.0
        self.set_arguments((shape, rate))

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments
        self._shape, self._rate = map(float, arguments)

    def simulate(self, rng: np.random.Generator) -> int:
        rate = rng.standard_gamma(self._shape + self.total) / (self._rate + self.count)
        return int(rng.poisson(min(rate, 1e15)))

    def log_predictive(self, value: Any) -> float:
        if not (isinstance(value, (int, float)) and 0 <= value < math.inf and value % 1 == 0):
            return -math.inf
        # negative binomial: shape and rate after the draws so far
        shape, rate = self._shape + self.total, self._rate + self.count
        mass = log_rising(shape, int(value)) - math.lgamma(value + 1.0)
        return mass - shape * math.log1p(1.0 / rate) - value * math.log(rate + 1.0)

    def log_joint(self) -> float:
        if self._log_factorials is None:
            self._log_factorials = math.fsum(n * math.lgamma(value + 1.0) for value, n in self.counts.items())
        joint = log_rising(self._shape, self.total) - self._shape * math.log1p(self.count / self._rate)
        return joint - self.total * math.log(self._rate + self.count) - self._log_factorials

    def support(self) -> None:
        return None

    def add(self, value: Any) -> tuple[int, int]:
        return self._move(int(value), 1)

    def remove(self, value: Any) -> tuple[int, int]:
        return self._move(int(value), -1)

    def restore(self, token: tuple[int, int]) -> None:
        self._move(*token)

    def _move(self, value: int, change: int) -> tuple[int, int]:
        self.count += change
        self.total += change * value
        self._log_factorials = None
        after = self.counts.get(value, 0) + change
        if after:
            self.counts[value] = after
        else:
            del self.counts[value]
        return (value, -change)

    def recount(self, applications: Iterable[tuple[Any, ...]]) -> None:
        self.count, self.total, self.counts = 0, 0, {}
        self._log_factorials = None
        for (value,) in applications:
            self.add(value)

    def statistics(self) -> dict[int, int]:
        return dict(self.counts)


_A = Argument("a", POSITIVE)

MAKE_BETA_BERNOULLI = Maker(
    "make_beta_bernoulli", (_A, Argument("b", POSITIVE)),
    "Booleans that share an unknown probability, itself beta(a, b) and integrated out.", BetaBernoulliState,
    source="true: (a + successes) / (a + b + N)",
)  # fmt: skip
MAKE_SYM_DIR_MULT = Maker(
    "make_sym_dir_mult", (_A, Argument("n", POSITIVE_INTEGER)),
    "Outcomes 0 to n - 1 that share unknown probabilities, themselves symmetric_dirichlet(a, n) and integrated out.",
    DirichletMultinomialState, source="outcome k: (a + N_k) / (a n + N)",
)  # fmt: skip
MAKE_GAMMA_POISSON = Maker(
    "make_gamma_poisson", (Argument("shape", POSITIVE), Argument("rate", POSITIVE)),
    "Counts that share an unknown Poisson rate, itself gamma(shape, rate) and integrated out.", GammaPoissonState,
    source="negative binomial with r = shape + sum and p = (rate + N) / (rate + N + 1)",
)  # fmt: skip

RECORDS = (MAKE_BETA_BERNOULLI, MAKE_SYM_DIR_MULT, MAKE_GAMMA_POISSON)
