"""What an engine sees of the program's data: it may take any datum out of the trace, and must put it back."""

from __future__ import annotations

from typing import Protocol

from venture_lite.interpreter.weights import Weight
from venture_lite.program.code import Code


class Data(Protocol):
    """The data of the program's loops, by number from 0 to `count` - 1, in the order of entry; with the observations
    outside of loops, where they are asked for."""

    @property
    def count(self) -> int: ...

    def is_out(self, datum: int) -> bool:
        """Whether the datum is out of the trace."""

    def remove(self, datum: int) -> None:
        """Take a datum out, with the choices that nothing else refers to; final at once."""

    def add(self, datum: int) -> None:
        """Evaluate a datum's rows again, constrained to what they observed; final at once."""

    def rows(self, datum: int) -> list[tuple[Code, int]]:
        """Where a datum's expressions are evaluated, in order, whether it is in or out."""

    def choices(self, datum: int) -> list[int]:
        """The unobserved choices that a datum which is in brings about or names."""

    def can_go(self, datum: int) -> bool:
        """Whether a datum observes choices that nothing else has made, so that its weight is theirs."""

    def feed(self, datum: int) -> Weight:
        """As `add`, but for other states of the trace the datum is still out, until `is_in` is called; the weight of
        what it observes, each value given those before."""

    def is_in(self, datum: int) -> None:
        """The datum is in, in every state that the trace will have."""

    def all_in(self) -> None:
        """The trace is in a state in which no datum is out."""

    def evidence(self, datum: int) -> list[int]:
        """The choices that a datum which is in observes, in order."""


class Subsample:
    """Which data are in: a permutation, those that are in first. Drawing one of either part is O(1)."""

    def __init__(self, count: int) -> None:
        self.order = list(range(count))
        self.size = count

    def take_out(self, u: float) -> int:
        """Move one of those that are in, `u` says which, to the others."""
        position = int(u * self.size)
        self.size -= 1
        return self._swap(position)

    def take_in(self, u: float) -> int:
        """Move one of those that are out to the others."""
        datum = self._swap(self.size + int(u * (len(self.order) - self.size)))
        self.size += 1
        return datum

    def _swap(self, position: int) -> int:
        """Exchange an entry with the one at the border, and return it."""
        order, border = self.order, self.size
        order[position], order[border] = order[border], order[position]
        return order[border]
