"""Makers of exchangeable draws that are counted: the parameter is integrated out, counts are kept exactly."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures.domains import NON_NEGATIVE, POSITIVE, POSITIVE_INTEGER, WEIGHTS
from venture_lite.procedures.exchangeable import joint_gradients
from venture_lite.procedures.numeric import MOST_RATE, demanded, drawn_count, lgamma, log, log_rising, of_large_rate
from venture_lite.procedures.record import Argument, Maker


class Counted:
    """How often each whole number was drawn: all that these makers need to know of their applications."""

    __slots__ = ("arguments", "count", "counts")

    def __init__(self, *arguments: Any) -> None:
        self._clear()
        self.set_arguments(arguments)

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments

    def _clear(self) -> None:
        self.count = 0
        # value -> number of draws, only where there are some: there may be very many values
        self.counts: dict[int, int] = {}

    def add(self, value: Any) -> tuple[int, int]:
        return self._move(int(value), 1)

    def remove(self, value: Any) -> tuple[int, int]:
        return self._move(int(value), -1)

    def change(self, value: int, change: int) -> tuple[int, int]:
        """So many more draws of a value, or fewer."""
        return self._move(value, change)

    def restore(self, token: tuple[int, int]) -> None:
        self._move(*token)

    def _move(self, value: int, change: int) -> tuple[int, int]:
        self.count += change
        after = self.counts.get(value, 0) + change
        if after:
            self.counts[value] = after
        else:
            del self.counts[value]
        return (value, -change)

    def recount(self, applications: Iterable[tuple[Any, ...]]) -> None:
        self._clear()
        for (value,) in applications:
            self._move(int(value), 1)

    def statistics(self) -> dict[int, int]:
        return dict(self.counts)


def below_the_largest(what: str, total: float) -> None:
    """Raises ArgumentError where a sum of parameters is beyond the floats, and no share of it is known."""
    if not total < math.inf:
        raise ArgumentError(f"{what} must be below 1.8e308")


class BetaBernoulliState(Counted):
    __slots__ = ("_a", "_b")

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        super().set_arguments(arguments)
        self._a, self._b = map(float, arguments)
        below_the_largest("make_beta_bernoulli: a + b", self._a + self._b)

    def simulate(self, rng: np.random.Generator) -> bool:
        mass = self._a + self._b
        demanded(mass, mass > 0.0, "make_beta_bernoulli: a and b must not both be 0")
        return rng.random() * (mass + self.count) < self._a + self.counts.get(1, 0)

    def log_predictive(self, value: Any) -> float:
        if not isinstance(value, (int, float)) or self._a + self._b == 0.0:
            return -math.inf
        if value == 1:
            mass = self._a + self.counts.get(1, 0)
        elif value == 0:
            mass = self._b + self.counts.get(0, 0)
        else:
            return -math.inf
        return log(mass) - math.log(self._a + self._b + self.count)

    def log_joint(self) -> float:
        if self._a + self._b == 0.0:
            return -math.inf if self.count else 0.0
        joint = log_rising(self._a, self.counts.get(1, 0)) + log_rising(self._b, self.counts.get(0, 0))
        return joint - log_rising(self._a + self._b, self.count)

    def support(self) -> Sequence[bool]:
        return (False, True)


class SymmetricAlphas:
    """The same alpha for each of n outcomes, at a cost that does not grow with n."""

    __slots__ = ("_a", "size", "total")

    def __init__(self, a: float, n: float) -> None:
        self._a, self.size = float(a), int(n)
        self.total = self._a * self.size

    def alpha(self, outcome: int) -> float:
        return self._a

    def outcome_at(self, reached: float) -> int:
        """The outcome in whose part of 0 ... total a number falls."""
        return min(int(reached / self._a), self.size - 1)


class ListedAlphas:
    """An alpha of its own for each outcome."""

    __slots__ = ("_alphas", "_reached", "size", "total")

    def __init__(self, alphas: Any) -> None:
        self._alphas: list[float] = np.asarray(alphas, dtype=np.float64).tolist()
        self._reached = list(accumulate(self._alphas))
        self.size, self.total = len(self._alphas), self._reached[-1]

    def alpha(self, outcome: int) -> float:
        return self._alphas[outcome]

    def outcome_at(self, reached: float) -> int:
        return min(bisect_right(self._reached, reached), self.size - 1)


class DirichletMultinomialState(Counted):
    """Draws 0 ... n - 1 whose probabilities have a Dirichlet prior."""

    __slots__ = ("_alphas", "_prior")

    def __init__(self, prior: type[SymmetricAlphas] | type[ListedAlphas], *arguments: Any) -> None:
        self._prior = prior
        super().__init__(*arguments)

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        super().set_arguments(arguments)
        self._alphas = self._prior(*arguments)
        below_the_largest("the sum of all alphas", self._alphas.total)

    def simulate(self, rng: np.random.Generator) -> int:
        """As an earlier draw, in order of outcomes so that it depends on the counts alone; else from the prior."""
        left = rng.random() * (self._alphas.total + self.count)
        for outcome in sorted(self.counts):
            left -= self.counts[outcome]
            if left < 0.0:
                return outcome
        return self._alphas.outcome_at(left)

    def log_predictive(self, value: Any) -> float:
        alphas = self._alphas
        if not (isinstance(value, (int, float)) and 0 <= value < alphas.size and value % 1 == 0):
            return -math.inf
        outcome = int(value)
        mass = alphas.alpha(outcome) + self.counts.get(outcome, 0)
        return log(mass) - math.log(alphas.total + self.count)

    def log_joint(self) -> float:
        alphas = self._alphas
        # an outcome beyond a new, smaller n has probability zero
        if self.counts and max(self.counts) >= alphas.size:
            return -math.inf
        joint = math.fsum(log_rising(alphas.alpha(outcome), count) for outcome, count in self.counts.items())
        return joint - log_rising(alphas.total, self.count)

    def support(self) -> Sequence[int]:
        return range(self._alphas.size)


class GammaPoissonState(Counted):
    """Poisson counts whose rate has a gamma prior; how often each count was drawn is kept, so nothing is rounded."""

    __slots__ = ("_log_factorials", "_rate", "_shape", "total")

    def _clear(self) -> None:
        super()._clear()
        self.total = 0
        self._log_factorials: float | None = 0.0

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        super().set_arguments(arguments)
        self._shape, self._rate = map(float, arguments)

    def _move(self, value: int, change: int) -> tuple[int, int]:
        self.total += change * value
        self._log_factorials = None
        return super()._move(value, change)

    def simulate(self, rng: np.random.Generator) -> int:
        rate = rng.standard_gamma(self._shape + self.total) / (self._rate + self.count)
        count = of_large_rate(rng.poisson(min(rate, MOST_RATE)), rate)
        return drawn_count(count, "make_gamma_poisson: a draw of rate {}", rate)

    def log_predictive(self, value: Any) -> float:
        if not (isinstance(value, (int, float)) and 0 <= value < math.inf and value % 1 == 0):
            return -math.inf
        # negative binomial: shape and rate after the draws so far
        shape, rate = self._shape + self.total, self._rate + self.count
        mass = log_rising(shape, int(value)) - lgamma(value + 1.0)
        return mass - shape * math.log1p(1.0 / rate) - value * math.log(rate + 1.0)

    def log_joint(self) -> float:
        if self._log_factorials is None:
            self._log_factorials = math.fsum(n * lgamma(value + 1.0) for value, n in self.counts.items())
        joint = log_rising(self._shape, self.total) - self._shape * math.log1p(self.count / self._rate)
        return joint - self.total * math.log(self._rate + self.count) - self._log_factorials

    def support(self) -> None:
        return None


MAKE_BETA_BERNOULLI = Maker(
    "make_beta_bernoulli", (Argument("a", NON_NEGATIVE), Argument("b", NON_NEGATIVE)),
    "Booleans that share an unknown probability, itself beta(a, b) and integrated out; with an a of 0 all are "
    "false, with a b of 0 all true.",
    BetaBernoulliState,
    source="true: (a + successes) / (a + b + N)",
    gradient=joint_gradients.BETA_BERNOULLI,
)  # fmt: skip
MAKE_SYM_DIR_MULT = Maker(
    "make_sym_dir_mult", (Argument("a", POSITIVE), Argument("n", POSITIVE_INTEGER)),
    "Outcomes 0 to n - 1 that share unknown probabilities, themselves symmetric_dirichlet(a, n) and integrated out.",
    partial(DirichletMultinomialState, SymmetricAlphas), source="outcome k: (a + N_k) / (a n + N)",
    gradient=joint_gradients.SYMMETRIC_DIRICHLET_MULTINOMIAL,
)  # fmt: skip
MAKE_DIR_MULT = Maker(
    "make_dir_mult", (Argument("alphas", WEIGHTS),),
    "Outcomes 0 to n - 1 that share unknown probabilities, themselves dirichlet(alphas) with n alphas and integrated "
    "out; an outcome whose alpha is 0 is never drawn.",
    partial(DirichletMultinomialState, ListedAlphas), source="outcome k: (a_k + N_k) / (sum a + N)",
    gradient=joint_gradients.DIRICHLET_MULTINOMIAL,
)  # fmt: skip
MAKE_GAMMA_POISSON = Maker(
    "make_gamma_poisson", (Argument("shape", NON_NEGATIVE), Argument("rate", POSITIVE)),
    "Counts that share an unknown Poisson rate, itself gamma(shape, rate) and integrated out; with a shape of 0 all "
    "are 0.",
    GammaPoissonState,
    source="negative binomial with r = shape + sum and p = (rate + N) / (rate + N + 1)",
    finite=False, gradient=joint_gradients.GAMMA_POISSON,
)  # fmt: skip

RECORDS = (MAKE_BETA_BERNOULLI, MAKE_SYM_DIR_MULT, MAKE_DIR_MULT, MAKE_GAMMA_POISSON)
