"""`'precondition`: steps in the coordinates in which a block's conditional distribution is about standard normal.

The scale is a factor of the inverse of minus the Hessian at the block's conditional mode, found when the kernel first
runs and fixed from then on, so that every transition stays exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from venture_lite.errors import KernelError
from venture_lite.inference.curvature import hessian_by_differences, inverse_root, scaled
from venture_lite.inference.gradients import Densities
from venture_lite.inference.linear_block import LinearBlock, refuse_dependent
from venture_lite.trace.gradients import BlockDensity
from venture_lite.trace.sections import Sections

OUTSIDE = 1e100
"""Stands for minus the log density where it is not finite, so that a line search turns back."""


class Preconditioner:
    """The factors of the blocks that one action moves."""

    def __init__(self, densities: Densities) -> None:
        self.densities = densities
        # (D, D) by block
        self._roots: dict[tuple[int, ...], np.ndarray] = {}
        # how many were made from which curvature
        self._made: dict[str, int] = {}

    def details(self) -> dict[str, float]:
        """By name, for the statistics of the kernel."""
        return {f"blocks preconditioned by {name}": float(count) for name, count in self._made.items()}

    def root(self, nodes: Sequence[int]) -> np.ndarray:
        """L (D, D), in the block's free coordinates, with L L' the inverse curvature at the mode."""
        block = tuple(nodes)
        density = self.densities.of(block)
        found = self._roots.get(block)
        if found is None or len(found) != density.size:
            found, name = self._find(density, block)
            self._roots[block] = found
            self._made[name] = self._made.get(name, 0) + 1
        return found

    def _find(self, density: BlockDensity, block: tuple[int, ...]) -> tuple[np.ndarray, str]:
        """A factor, and which curvature it was made from. Leaves the trace as it was."""
        linear = self._linear(block)
        if linear is not None:
            mode, _, evaluations = linear.mode()
            self.densities.rows += evaluations * density.rows
            root, name = linear.preconditioner(mode)
            return root, f"the {name}"
        journal = density.model.trace.journal
        mark = journal.mark()
        try:
            return factor(self._curvature(density, self._mode(density, mark), mark), density, block)
        finally:
            journal.rollback(mark)

    def _linear(self, block: tuple[int, ...]) -> LinearBlock | None:
        """The block as likelihoods read it through linear predictors, if they do."""
        try:
            model = self.densities.model
            sections = Sections.of(model, block)
            refuse_dependent(model, set(sections.plan.order), block)
            return LinearBlock(model, sections, block)
        except KernelError:
            return None

    def _mode(self, density: BlockDensity, mark: int) -> np.ndarray:
        """The conditional mode in free coordinates, from the present state."""
        from scipy.optimize import minimize

        def negative(free: np.ndarray) -> tuple[float, np.ndarray]:
            found = self._evaluated(density, free, mark)
            if found is None:
                return OUTSIDE, np.zeros(density.size)
            return -found[0], -found[1]

        start = density.present()
        return np.asarray(minimize(negative, start, method="L-BFGS-B", jac=True, options={"maxiter": 500}).x)

    def _evaluated(self, density: BlockDensity, free: np.ndarray, mark: int) -> tuple[float, np.ndarray] | None:
        density.model.trace.journal.rollback(mark)
        found = self.densities.at(density, free)
        return None if found is None or found[0].impossible else (found[0].total, found[1])

    def _curvature(self, density: BlockDensity, mode: np.ndarray, mark: int) -> np.ndarray:
        """Minus the Hessian (D, D) in free coordinates; NaN where it has none."""

        def gradient(free: np.ndarray) -> np.ndarray | None:
            found = self._evaluated(density, free, mark)
            return None if found is None else found[1]

        return -hessian_by_differences(gradient, mode)


def factor(curvature: np.ndarray, density: BlockDensity, block: Sequence[int]) -> tuple[np.ndarray, str]:
    """L with L L' the inverse of a curvature, and what it was made from.

    Where the curvature is not positive definite its eigenvalues count by their magnitude (Betancourt 2013, A general
    metric for Riemannian manifold Hamiltonian Monte Carlo): no likelihood's information is known here.
    """
    if not np.isfinite(curvature).all():
        code, slot, _ = density.model.trace.decode(block[0])
        raise KernelError("the density has no curvature at the block's mode", code.slots[slot].span, "no 'precondition")
    root = inverse_root(curvature)
    if root is not None:
        return root, "the Hessian"
    values, vectors = np.linalg.eigh(curvature)
    return scaled(np.abs(values), vectors), "the magnitudes of the Hessian"
