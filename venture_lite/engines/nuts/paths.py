"""Paths of one block: the density that a trajectory follows, over arrays or over numbers, and the block's way there."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from venture_lite.blocks.block_function import FAILURES, NumbersFunction
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


class ArrayPaths:
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


class NumberPaths:
    """By one function of numbers, which moves nothing; where it says nothing, by the passes over rows."""

    def __init__(
        self, densities: Densities, density: BlockDensity, vectors: Vectors, function: NumbersFunction
    ) -> None:
        self._densities, self._density, self._vectors, self._function = densities, density, vectors, function
        self._poll = densities.model.poll
        self.log_density = 0.0
        self._free: tuple[float, ...] = ()
        self._gradient: tuple[float, ...] = ()

    def begin(self) -> bool:
        """See where the block stands; whether the function knows that place."""
        self._free = tuple(self._density.present().tolist())
        found = self._found(self._free)
        if found is not None:
            self.log_density, self._gradient = found
        return found is not None

    def trajectory(self, step: float) -> Trajectory:
        here = self.log_density, self._gradient
        rng = self._densities.model.trace.rng
        return Trajectory(self._follow, self._vectors, self._free, here, step, rng)

    def _found(self, free: tuple[float, ...]) -> tuple[float, tuple[float, ...]] | None:
        self._densities.rows += self._density.rows
        try:
            return self._function(*free)
        except FAILURES:
            return None

    def _follow(self, free: tuple[float, ...]) -> tuple[float, tuple[float, ...]] | None:
        self._poll()
        found = self._found(free)
        if found is not None:
            return found
        with self._densities.model.aside():
            by_rows = self._densities.at(self._density, np.array(free))
        if by_rows is None:
            return None
        weight, gradient = by_rows
        return weight.total - FEWER * weight.impossible, tuple(gradient.tolist())

    def leave(self, end: Phase) -> bool:
        self.log_density = end.log_density
        if end.log_density > -FEWER / 2.0:
            self._density.put(np.array(end.free))
            return True
        found = self._densities.at(self._density, np.array(end.free))
        if found is not None:
            self.log_density = found[0].total
        return found is not None

    def settle(self, end: Phase) -> None:
        if end.log_density > -FEWER / 2.0:
            self._density.offer(end.free)
