"""Single coordinates of continuous choices, unconstrained: what one-dimensional methods move."""

from __future__ import annotations

from typing import Any

import numpy as np

from venture_lite.blocks.distributions import transform_of
from venture_lite.interpreter.free_density import FreeValues
from venture_lite.trace.trace import Trace


def dimensions(trace: Trace, node: int) -> int:
    """How many free coordinates a choice has."""
    return len(free_of(trace, node))


def free_of(trace: Trace, node: int) -> np.ndarray:
    """The free coordinates of a choice (K,); an integer is its own."""
    operator, arguments, value = trace.choice(node)
    transform = transform_of(operator)
    return np.ravel(np.asarray(value if transform is None else transform.to_free(value, arguments), np.float64))


class Coordinate(FreeValues):
    """One free coordinate of a choice, and the proposal that puts it at `at`. Mutable: it stands at a coordinate."""

    def stand_at(self, node: int, index: int) -> None:
        """At a coordinate of a choice in its present state."""
        self.node, self._index = node, index
        self.stand([node])
        self.start = self.at = float(self.stood[node][2].flat[index])

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        self.stood[node][2].flat[self._index] = self.at
        return super().propose(node, operator, arguments, old)
