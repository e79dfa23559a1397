"""Paths of one block: the density that a trajectory follows, and the block's way to where it ends.

What is known of that end is where the next trajectory begins, unless something else has moved in between.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from venture_lite.blocks.block_function import FAILURES, DensityFunction
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.gradients import Densities
from venture_lite.engines.nuts.trajectory import FEWER, Phase, Trajectory
from venture_lite.engines.nuts.vectors import Vector, Vectors
from venture_lite.interpreter.model import Transaction


class Standpoint(NamedTuple):
    """Where a block stands, all of whose terms are possible."""

    # free coordinates (D,), the log density there, and its gradient
    free: Vector
    log_density: float
    gradient: Vector

    def as_vectors(self, are_numbers: bool) -> Standpoint:
        if are_numbers == isinstance(self.free, tuple):
            return self
        free, gradient = np.asarray(self.free), np.asarray(self.gradient)
        if are_numbers:
            return Standpoint(tuple(free.tolist()), self.log_density, tuple(gradient.tolist()))
        return Standpoint(free, self.log_density, gradient)


class BlockPaths(Protocol):
    """Trajectories from where a block stands. Mutable: moves the block, whose transaction takes it back."""

    # the log density where the block stands
    log_density: float

    def trajectory(self, step: float) -> Trajectory: ...

    def leave(self, end: Phase) -> bool:
        """Move the block to the end of a path; whether it can be there."""

    def settle(self, end: Phase) -> None:
        """The block stays there, whatever else is known of that place is kept."""

    def stand(self, end: Phase) -> Standpoint | None:
        """What is known of the place where the block stays; None where something is impossible there."""


class RowPaths:
    """By the passes over the block's rows, which move it at each step."""

    def __init__(
        self,
        densities: Densities,
        density: BlockDensity,
        vectors: Vectors,
        change: Transaction,
        known: Standpoint | None = None,
    ) -> None:
        """`known`: of where the block stands, if it is."""
        self._densities, self._density, self._vectors, self._change = densities, density, vectors, change
        self._free: Vector
        self._gradient: Vector
        if known is not None:
            self._free, self.log_density, self._gradient = known.as_vectors(False)
            self._impossible = 0
        else:
            self._free, weight, self._gradient = densities.here(density)
            self.log_density, self._impossible = weight.total, weight.impossible

    def trajectory(self, step: float) -> Trajectory:
        here = self.log_density, self._gradient
        rng = self._densities.model.trace.rng
        return Trajectory(self._follow, self._vectors, self._free, here, step, rng)

    def _follow(self, free: Vector) -> tuple[float, Vector] | None:
        if not self._density.is_put_over:
            self._change.back()
        found = self._densities.at(self._density, free)
        if found is None:
            return None
        weight, gradient = found
        return weight.total - FEWER * (weight.impossible - self._impossible), gradient

    def leave(self, end: Phase) -> bool:
        if not self._density.is_put_over:
            self._change.back()
        if (known := self.stand(end)) is not None:
            self.log_density = known.log_density
            self._density.put(np.asarray(known.free))
            return True
        found = self._densities.at(self._density, np.asarray(end.free))
        if found is not None:
            self.log_density = found[0].total
        return found is not None

    def settle(self, end: Phase) -> None:
        """No more is known."""

    def stand(self, end: Phase) -> Standpoint | None:
        return _stand(end) if not self._impossible else None


class FunctionPaths:
    """By one function, which moves nothing; where it says nothing, by the passes over rows."""

    def __init__(
        self, densities: Densities, density: BlockDensity, vectors: Vectors, function: DensityFunction
    ) -> None:
        self._densities, self._density, self._vectors = densities, density, vectors
        self._poll, self._are_numbers = densities.model.poll, vectors.are_numbers
        self._of_array, self._of_numbers = function.of_array, function.of_numbers
        self.log_density = 0.0
        self._free: Vector = ()
        self._gradient: Vector = ()

    def begin(self, known: Standpoint | None) -> bool:
        """See where the block stands, which may be known; whether the function knows that place."""
        if known is not None:
            self._free, self.log_density, self._gradient = known.as_vectors(self._are_numbers)
            return True
        free = self._density.present()
        self._free = tuple(free.tolist()) if self._are_numbers else free
        found = self._found(self._free)
        if found is not None:
            self.log_density, self._gradient = found
        return found is not None

    def trajectory(self, step: float) -> Trajectory:
        here = self.log_density, self._gradient
        rng = self._densities.model.trace.rng
        return Trajectory(self._follow, self._vectors, self._free, here, step, rng)

    def _found(self, free: Vector) -> tuple[float, Vector] | None:
        self._densities.rows += self._density.rows
        try:
            return self._of_numbers(*free) if self._are_numbers else self._of_array(free)  # type: ignore[misc]
        except FAILURES:
            return None

    def _follow(self, free: Vector) -> tuple[float, Vector] | None:
        self._poll()
        found = self._found(free)
        if found is not None:
            return found
        with self._densities.model.aside():
            by_rows = self._densities.at(self._density, np.asarray(free))
        if by_rows is None:
            return None
        weight, gradient = by_rows
        return weight.total - FEWER * weight.impossible, tuple(gradient.tolist()) if self._are_numbers else gradient

    def leave(self, end: Phase) -> bool:
        self.log_density = end.log_density
        if (known := self.stand(end)) is not None:
            self._density.put(np.asarray(known.free))
            return True
        found = self._densities.at(self._density, np.asarray(end.free))
        if found is not None:
            self.log_density = found[0].total
        return found is not None

    def settle(self, end: Phase) -> None:
        if (known := self.stand(end)) is not None:
            self._density.offer(known.free)

    def stand(self, end: Phase) -> Standpoint | None:
        return _stand(end)


def _stand(end: Phase) -> Standpoint | None:
    return Standpoint(end.free, end.log_density, end.gradient) if end.log_density > -FEWER / 2.0 else None
