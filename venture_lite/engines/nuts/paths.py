"""Paths of one block: the density that a trajectory follows, and the block's way to where it ends."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from venture_lite.blocks.block_function import FAILURES
from venture_lite.blocks.block_text import NumbersFunction
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.gradients import Densities
from venture_lite.engines.nuts.trajectory import FEWER, Phase, Trajectory
from venture_lite.engines.nuts.vectors import Vector, Vectors
from venture_lite.interpreter.model import Transaction


class BlockPaths(Protocol):
    """Trajectories from where a block stands. Mutable: moves the block, whose transaction takes it back."""

    # the log density where the block stands
    log_density: float

    def trajectory(self, step: float) -> Trajectory: ...

    def leave(self, end: Phase) -> bool:
        """Move the block to the end of a path; whether it can be there."""

    def settle(self, end: Phase) -> None:
        """The block stays there, whatever else is known of that place is kept."""


class RowPaths:
    """By the passes over the block's rows, which move it at each step."""

    def __init__(self, densities: Densities, density: BlockDensity, vectors: Vectors, change: Transaction) -> None:
        self._densities, self._density, self._vectors, self._change = densities, density, vectors, change
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
        found = self._densities.at(self._density, end.free)
        if found is not None:
            self.log_density = found[0].total
        return found is not None

    def settle(self, end: Phase) -> None:
        """No more is known."""


class FunctionPaths:
    """By one function, which moves nothing; where it says nothing, by the passes over rows."""

    def __init__(
        self, densities: Densities, density: BlockDensity, vectors: Vectors, function: NumbersFunction
    ) -> None:
        self._densities, self._density, self._vectors, self._function = densities, density, vectors, function
        self._poll, self._are_numbers = densities.model.poll, vectors.are_numbers
        self.log_density = 0.0
        self._free: Vector = ()
        self._gradient: Vector = ()

    def begin(self) -> bool:
        """See where the block stands; whether the function knows that place."""
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
            if self._are_numbers:
                return self._function(*free)
            found = self._function(*free.tolist())
        except FAILURES:
            return None
        return None if found is None else (found[0], np.array(found[1]))

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
        if end.log_density > -FEWER / 2.0:
            self._density.put(np.asarray(end.free))
            return True
        found = self._densities.at(self._density, np.asarray(end.free))
        if found is not None:
            self.log_density = found[0].total
        return found is not None

    def settle(self, end: Phase) -> None:
        if end.log_density > -FEWER / 2.0:
            self._density.offer(tuple(map(float, end.free)))
