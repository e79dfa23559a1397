"""Densities with gradients, for kernels that follow them: kept by block, and refused where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from venture_lite.blocks.block_function import FAILURES, DensityFunction
from venture_lite.blocks.block_text import ArrayFunction
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.distributions import refuse_discrete
from venture_lite.blocks.minibatch import Minibatch
from venture_lite.blocks.tape import SMOOTH
from venture_lite.errors import VentureError
from venture_lite.interpreter.free_density import DENSITY, FUNCTION, HESSIAN, DensityLine, is_right
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import Weight

MOST = 10_000
"""Blocks whose densities are kept."""
FEW_MOVES, FEWER_MOVES = 20, 3
"""Moves after which one of many blocks, and a block of many rows, is worth the print of its function."""


class Densities:
    """The densities of the blocks that one action moves."""

    def __init__(self, model: Model, name: str, warn: Callable[[str], None]) -> None:
        self.model = model
        self.name = name
        self.warn = warn
        # evaluations of rows so far
        self.rows = 0
        self._told = False
        self._kept: dict[tuple[int, ...], BlockDensity] = {}

    def of(self, nodes: Sequence[int]) -> BlockDensity:
        """Raises KernelError, with the reason, where a block's density may jump or has no derivative."""
        block = tuple(nodes)
        found = self._kept.get(block)
        if found is None or not found.is_valid():
            refuse_discrete(self.name, f"gibbs, or mh; {SMOOTH}")(self.model, list(nodes))
            if len(self._kept) >= MOST:
                self._kept.clear()
            found = self._kept[block] = BlockDensity(self.model, block)
        if not is_right(self.model, found, DENSITY, DensityLine.density_difference):
            raise found.refused(block[0], "its density and derivatives are not those of the interpreter's density")
        return found

    def refuse(self, nodes: list[int]) -> None:
        """Raises KernelError where a block cannot be moved."""
        if nodes:
            self.of(nodes)

    def function(self, density: BlockDensity, is_only: bool) -> DensityFunction | None:
        """That of a block which is about to be moved, as `BlockDensity.function`, if it was moved often enough; whether
        it is the only block is said."""
        density.moves += 1
        least = 0 if is_only else FEW_MOVES
        is_worth_it = density.moves > (least if density.is_small else max(least, FEWER_MOVES))
        return self._right_function(density) if is_worth_it else None

    def _right_function(self, density: BlockDensity) -> DensityFunction | None:
        """The function of a density; None where there is none, or where it is wrong."""

        def made() -> ArrayFunction | None:
            function = density.function()
            return None if function is None else partial(_value_of, function)

        right = is_right(self.model, density, FUNCTION, lambda found: found.function_difference(made, density.sums))
        return density.function() if right else None

    def by(self, function: DensityFunction, density: BlockDensity, free: np.ndarray) -> tuple[float, np.ndarray] | None:
        """The log density there and its gradient by a function, which may say nothing; the block stays where it is."""
        self.model.poll()
        known = _value_of(function, free)
        if known is not None:
            self.rows += density.rows
        return known

    def evaluate(
        self, density: BlockDensity, free: np.ndarray, minibatch: Minibatch | None = None
    ) -> tuple[float, np.ndarray] | None:
        """The log density of a block at other free coordinates and its gradient, None where it is zero or they are not
        finite; the block stays where it is."""
        if minibatch is None and (function := self._right_function(density)) is not None:
            known = self.by(function, density, free)
            if known is not None:
                return known
        with self.model.aside():
            found = self.at(density, free, minibatch)
        return None if found is None or found[0].impossible else (found[0].total, found[1])

    def hessian(self, density: BlockDensity, free: np.ndarray) -> np.ndarray | None:
        """Second derivatives there (D, D), where there is a pass for them; the block stays where it is."""
        if not is_right(self.model, density, HESSIAN, DensityLine.hessian_difference):
            return None
        with self.model.aside():
            return None if self.at(density, free) is None else density.hessian()

    def here(self, density: BlockDensity) -> tuple[np.ndarray, Weight, np.ndarray]:
        """The present free coordinates of a block, its log density and the gradient."""
        free = density.present()
        self.rows += density.rows
        return free, *density.evaluate()

    def at(
        self, density: BlockDensity, free: np.ndarray, minibatch: Minibatch | None = None
    ) -> tuple[Weight, np.ndarray] | None:
        """Move a block: the log density there and its gradient, or what a minibatch says of them; None where they are
        not finite.

        A path that runs away leaves the domains of procedures (`exp` of a large number is infinite). That is the
        path's doing, not the program's, and is said once. What the journal holds since takes the block back.
        """
        self.model.poll()
        if not np.isfinite(free).all():
            return None
        self.rows += density.rows if minibatch is None else minibatch.rows
        try:
            density.put(free)
            weight, gradient = density.evaluate(minibatch)
        except VentureError as error:
            if not self._told:
                self.warn(f"{self.name}: a path ended where the density has no value: {error.message}")
                self._told = True
            return None
        if not np.isfinite(gradient).all():
            return None
        return weight, gradient


def _value_of(function: DensityFunction, free: np.ndarray) -> tuple[float, np.ndarray] | None:
    """What a function says, which may be nothing."""
    try:
        with np.errstate(all="ignore"):
            return function.of_array(free)
    except FAILURES:
        return None
