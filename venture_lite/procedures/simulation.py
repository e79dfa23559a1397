"""From a simulator written once to columns of draws, and to a record of what it does.

A simulator is a plain function of a generator and arguments, over the numeric namespace of densities and the methods of
`numpy.random.Generator`. Bound to columns, its draws are columns too: the same operations, so that an end of the floats
is taken care of in both. Called with a generator that records, it leaves a straight line of operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.procedures.numeric import on_columns
from venture_lite.procedures.record import DrawColumn
from venture_lite.procedures.straight_line import Node, Recording


class ColumnGenerator:
    """Draws `count` numbers where a generator draws one."""

    __slots__ = ("_count", "_rng")

    def __init__(self, rng: np.random.Generator, count: int) -> None:
        self._rng = rng
        self._count = count

    def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
        method, count = getattr(self._rng, name), self._count
        return lambda *arguments: method(*arguments, count)


def column_draws(simulate: Callable[..., Any]) -> DrawColumn:
    """The simulator over columns; raises RowByRow where an argument of some row is refused."""
    bound = on_columns(simulate)

    def draws(rng: np.random.Generator, count: int, *arguments: Any) -> np.ndarray:
        # overflow is clipped, not warned of
        with np.errstate(all="ignore"):
            return np.asarray(bound(ColumnGenerator(rng, count), *arguments))

    return draws


class RecordingGenerator:
    """Draws nodes; no draw is another one, whatever its arguments."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def __getattr__(self, name: str) -> Callable[..., Node]:
        recording = self._recording
        return lambda *arguments: recording.record("draw", len(recording.nodes), name, *arguments)
