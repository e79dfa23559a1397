"""Minibatches: some of the observations that weigh a block's change, which stand for all of them.

Priors, unobserved choices that read the block, and factors that no loop makes are always there. The observations count
N / B, B of N, so that the log density and its gradient are estimates without bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from venture_lite.blocks.sections import MOST_FACTORS, refuse_vector
from venture_lite.errors import KernelError
from venture_lite.interpreter.weights import NARROW
from venture_lite.procedures.distributions.improper import WEIGHED

if TYPE_CHECKING:
    from venture_lite.blocks.moving import PassStep, RowKind

KindRows = Sequence[tuple["RowKind", np.ndarray]]
"""Kinds, with the places (n,) of some of the rows of each."""


@dataclass(frozen=True, slots=True)
class Minibatch:
    """Observations, and what counts besides."""

    observations: KindRows
    others: KindRows
    # N / B
    weight: float
    # evaluations of rows that it costs
    rows: int

    def steps(self) -> list[PassStep]:
        """The backward pass over the observations."""
        return _steps(self.observations)

    def other_steps(self) -> list[PassStep]:
        """The backward pass over what else weighs the change."""
        return _steps(self.others)


def _steps(kinds: KindRows) -> list[PassStep]:
    return [step for kind, at in kinds for step in kind.weighing(at, len(at) > NARROW)]


class Minibatches:
    """The observations of a block, in an order that is drawn anew each time all of them were taken."""

    def __init__(self, terms: Sequence[RowKind], moving: int, rng: np.random.Generator) -> None:
        """`moving` is how many rows are evaluated besides `terms`.

        Raises KernelError where observations do not weigh one by one, or there are none.
        """
        self._rng, self._moving = rng, moving
        for kind in terms:
            if kind.is_maker:
                reason = f"the observations of {kind.operator.name} weigh together: no part of them stands for all"
                raise KernelError(reason, kind.code.slots[kind.slot].span, "vi without 'minibatch")
        observed = [(kind, _observed(kind)) for kind in terms]
        self._kinds = [(kind, np.flatnonzero(flags)) for kind, flags in observed if flags.any()]
        self._others = [(kind, np.flatnonzero(~flags)) for kind, flags in observed if not flags.all()]
        for kind, at in self._kinds:
            refuse_vector(kind.trace, kind.node(int(at[0])))
        # where the observations of each kind begin, in one count of all
        self._ends = np.cumsum([len(at) for _, at in self._kinds])
        self.count = int(self._ends[-1]) if self._kinds else 0
        if not self.count:
            raise KernelError("no observation depends on the block", hint="vi without 'minibatch")
        self._order, self._taken = np.arange(self.count), self.count

    def next(self, size: int) -> Minibatch:
        """`size` observations, or all where there are no more than that."""
        size = min(size, self.count)
        if self._taken + size > self.count:
            self._order, self._taken = self._rng.permutation(self.count), 0
        chosen = np.sort(self._order[self._taken : self._taken + size])
        self._taken += size
        cuts = np.searchsorted(chosen, self._ends)
        found, start = list[tuple["RowKind", np.ndarray]](), 0
        for number, (kind, at) in enumerate(self._kinds):
            stop, first = int(cuts[number]), int(self._ends[number]) - len(at)
            if stop > start:
                found.append((kind, at[chosen[start:stop] - first]))
            start = stop
        others = sum(len(at) for _, at in self._others)
        return Minibatch(found, self._others, self.count / size, self._moving + others + size)


def _observed(kind: RowKind) -> np.ndarray:
    """Which rows are observations; factors that no loop makes are none: one of them may weigh as much as all."""
    if kind.operator in WEIGHED and kind.count <= MOST_FACTORS:
        return np.zeros(kind.count, bool)
    return kind.observed()
