"""Single coordinates of continuous choices, unconstrained: what one-dimensional methods move."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from venture_lite.blocks.distributions import transform_of
from venture_lite.errors import InternalError
from venture_lite.procedures.transforms import Transform
from venture_lite.trace.trace import Trace


def dimensions(trace: Trace, node: int) -> int:
    """How many free coordinates a choice has."""
    transform, value, arguments = _continuous(trace, node)
    return int(np.size(transform.to_free(value, arguments)))


def free_of(trace: Trace, node: int) -> np.ndarray:
    """The free coordinates of a choice (K,); an integer is its own."""
    operator, arguments, value = trace.choice(node)
    transform = transform_of(operator)
    return np.ravel(np.asarray(value if transform is None else transform.to_free(value, arguments), np.float64))


def _continuous(trace: Trace, node: int) -> tuple[Transform, Any, tuple[Any, ...]]:
    """(transform, value, arguments) of a choice."""
    operator, arguments = trace.application(node)
    transform = transform_of(operator)
    if transform is None:
        raise InternalError("a discrete choice has no coordinates")
    return transform, trace.value(node), arguments


class Coordinate:
    """One free coordinate of a choice, and the proposal that puts it at `at`. Mutable: it stands at a coordinate.

    What the choice's distribution reads stays as it is while the coordinate is moved.
    """

    counts = True

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def stand_at(self, node: int, index: int) -> None:
        """At a coordinate of a choice in its present state."""
        self.node = node
        self._transform, old, arguments = _continuous(self._trace, node)
        self._log_jacobian = self._transform.log_jacobian(old, arguments)
        self._is_one = not isinstance(old, (np.ndarray, tuple))
        # every free coordinate of the choice
        self._free = np.array(self._transform.to_free(old, arguments), dtype=np.float64)
        self._index = index
        self.start = self.at = float(self._free.flat[index])

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """The old value is known."""

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        if self._is_one:
            value = self._transform.from_free(self.at, arguments)
        else:
            free = self._free.copy()
            free.flat[self._index] = self.at
            value = self._transform.from_free(free, arguments)
        return value, self._transform.log_jacobian(value, arguments) - self._log_jacobian
