"""The Chinese restaurant process and its two-parameter form, the Pitman-Yor process.

Tables are positive integers that mean nothing but equality. All labels that no live draw has share one probability,
that of a fresh table, and a simulated fresh table takes the smallest of them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any

import numpy as np

from venture_lite.procedures.domains import NON_NEGATIVE, numbers
from venture_lite.procedures.exchangeable import joint_gradients
from venture_lite.procedures.exchangeable.counted import Counted
from venture_lite.procedures.numeric import lgamma, log, log_rising, xlogy
from venture_lite.procedures.record import Argument, Maker


class CrpState(Counted):
    """How many draws each table has; every change keeps `tables` sorted, so that draws depend on the seating alone."""

    __slots__ = ("_alpha", "_discount", "_log_factorials", "sizes", "tables")

    def __init__(self, alpha: float, discount: float = 0.0) -> None:
        super().__init__(alpha, discount)

    def _clear(self) -> None:
        super()._clear()
        # occupied labels in increasing order
        self.tables: list[int] = []
        # number of draws at a table -> number of such tables
        self.sizes: dict[int, int] = {}
        self._log_factorials: float | None = 0.0

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        super().set_arguments(arguments)
        self._alpha = float(arguments[0])
        self._discount = float(arguments[1]) if len(arguments) > 1 else 0.0

    @property
    def discount(self) -> float:
        return self._discount

    @property
    def concentration(self) -> float:
        return self._alpha

    def fresh(self) -> int:
        """The smallest unused label: occupied ones are sorted and distinct, so those up to the gap stand at label -
        1."""
        tables = self.tables
        low, high = 0, len(tables)
        while low < high:
            middle = (low + high) // 2
            if tables[middle] == middle + 1:
                low = middle + 1
            else:
                high = middle
        return low + 1

    def simulate(self, rng: np.random.Generator) -> int:
        left = rng.random() * (self.count + self._alpha)
        seated, discount = self.counts, self._discount
        for table in self.tables:
            left -= seated[table] - discount
            if left < 0.0:
                return table
        return self.fresh()

    def log_predictive(self, value: Any) -> float:
        if not isinstance(value, (int, float)):
            return -math.inf
        seated = self.counts.get(value)  # type: ignore[arg-type]
        if seated is not None:
            return math.log((seated - self._discount) / (self.count + self._alpha))
        if not (value > 0 and value % 1 == 0):
            return -math.inf
        if not self.count:
            return 0.0
        return log((self._alpha + self._discount * len(self.tables)) / (self.count + self._alpha))

    def log_joint(self) -> float:
        alpha, discount, tables = self._alpha, self._discount, len(self.tables)
        if not tables:
            return 0.0
        # the first draw opens a table for certain: alpha / alpha is left out, which may be 0 / 0
        if discount == 0.0:
            opened = xlogy(tables - 1, alpha)
            if self._log_factorials is None:
                self._log_factorials = math.fsum(many * lgamma(size) for size, many in self.sizes.items())
            joined = self._log_factorials
        else:
            opened = math.fsum(math.log(alpha + discount * i) for i in range(1, tables))
            joined = math.fsum(many * log_rising(1.0 - discount, size - 1) for size, many in self.sizes.items())
        return opened + joined - log_rising(alpha + 1.0, self.count - 1)

    def log_split(self, first: int, second: int, tables: int) -> float:
        """The log joint density with a table of `first` and one of `second` draws over that with one table of all of
        them, which has `tables` tables."""
        rising = 1.0 - self._discount
        parts = log_rising(rising, first - 1) + log_rising(rising, second - 1) - log_rising(rising, first + second - 1)
        return log(self._alpha + self._discount * tables) + parts

    def support(self) -> Sequence[int]:
        return [*self.tables, self.fresh()]

    def masses_without(self, own: int) -> list[float]:
        """What each table has of the next draw, and at the end a fresh one, in proportion; one draw less of the several
        at the table `own`, by its place among `tables`."""
        masses = self.masses()
        masses[own] -= 1.0
        return masses

    def masses(self) -> list[float]:
        """What each table has of the next draw, and at the end a fresh one, in proportion."""
        counts, discount = self.counts, self._discount
        masses = [counts[table] - discount for table in self.tables]
        masses.append(self._alpha + discount * len(self.tables) if masses else 1.0)
        return masses

    def _move(self, value: int, change: int) -> tuple[int, int]:
        before = self.counts.get(value, 0)
        after = before + change
        if not before:
            insort(self.tables, value)
        else:
            self._resize(before, -1)
        if after:
            self.counts[value] = after
            self._resize(after, 1)
        else:
            del self.counts[value]
            del self.tables[bisect_left(self.tables, value)]
        self.count += change
        self._log_factorials = None
        return (value, -change)

    def _resize(self, size: int, change: int) -> None:
        many = self.sizes.get(size, 0) + change
        if many:
            self.sizes[size] = many
        else:
            del self.sizes[size]


DISCOUNT = numbers("discount", "a number from 0 up to, not including, 1", "0.0 <= {x} < 1.0")

MAKE_CRP = Maker(
    "make_crp", (Argument("alpha", NON_NEGATIVE), Argument("discount", DISCOUNT, 0.0)),
    "A Chinese restaurant process: each draw is a table, a positive integer; with a discount, a Pitman-Yor process. "
    "With an alpha of 0 and no discount all sit at one table.",
    CrpState,
    source="an occupied table of n: (n - discount) / (N + alpha); a fresh one: (alpha + discount K) / (N + alpha), "
    "with K tables and N applications so far (Pitman and Yor 1997)",
    labels=True, gradient=joint_gradients.CRP,
)  # fmt: skip

RECORDS = (MAKE_CRP,)
