"""How far terms can be apart: bounds for the distribution-free stopping rule, from what records know of densities.

A term's change between two values of the block is at most the largest slope of its log density times the change of its
predictor, and what a second-order expansion leaves over is at most a sixth of the largest third derivative times the
cube of the distance from the center (Taylor's theorem); a predictor changes by at most the length of its row's features
times that of the block's step.
"""

from __future__ import annotations

import math

import numpy as np

from venture_lite.blocks.linear import Linear
from venture_lite.blocks.linear_block import LinearBlock
from venture_lite.blocks.sections import Sections
from venture_lite.errors import KernelError


class Reach:
    """The bounds for one block."""

    def __init__(self, block: LinearBlock, theta: np.ndarray) -> None:
        # largest first and third derivative of each kind's terms along a step of the block; infinite: there is none
        self._limits: list[tuple[float, float]] = []
        for kind in block.kinds:
            length = _longest(kind)
            slope, third = kind.predictor.limits(*kind.given(kind.eta(block.coefficients(theta, kind))))
            self._limits.append((length * float(np.max(slope)), length**3 * float(np.max(third))))
        self.slope = max(slope for slope, _ in self._limits)
        self.third = max(third for _, third in self._limits)

    def refuse_unbounded(self, sections: Sections, of_residuals: bool) -> None:
        """Raises KernelError where a bound that the transitions will ask for is infinite."""
        for kind, limits in zip(sections.kinds, self._limits, strict=True):
            if not limits[of_residuals] < math.inf:
                group = kind.group
                what = "a bounded third derivative" if of_residuals else "a bounded slope"
                reason = f"'bernstein needs a log density with {what}; that of {group.record.name} has none"
                raise KernelError(reason, group.code.slots[group.slot].span, "the t-test, without 'bernstein")

    def of_differences(self, old: np.ndarray, new: np.ndarray) -> float:
        """A bound on the distance between any two rows' changes."""
        return 2.0 * self.slope * float(np.linalg.norm(new - old))

    def of_residuals(self, old: np.ndarray, new: np.ndarray, center: np.ndarray) -> float:
        """The same of what control variates about a center leave over."""
        cubes = sum(float(np.linalg.norm(theta - center)) ** 3 for theta in (old, new))
        return 2.0 * self.third * cubes / 6.0


def _longest(kind: Linear) -> float:
    """The length of the longest row of features; a vector predictor's range is at most sqrt(2) times its length."""
    longest = math.sqrt(float(np.square(kind.features).sum(axis=1).max()))
    return math.sqrt(2.0) * longest if kind.predictor.is_vector else longest
