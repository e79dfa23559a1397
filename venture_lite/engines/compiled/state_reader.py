"""What the network of a kind reads of a block in the state that the trace is in, where structure depends on choices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from venture_lite.blocks.resimulated import Reading, StateBlanket
from venture_lite.blocks.worlds import Blanket, Features
from venture_lite.engines.compiled.frame import BlockFrame, Position, heads_of
from venture_lite.engines.compiled.reading import BlockReader
from venture_lite.errors import KernelError
from venture_lite.interpreter.model import Model
from venture_lite.networks.pooled import InputNames
from venture_lite.values import show

MOST_VALUES = 10
"""A single choice of more values is read at three points of its frame."""
POINTS = (0.0, -1.0, 1.0)
"""In the frame, where what exists depends on a single choice, or statistics that makers keep do: the first is the
centre."""


def read_block(
    model: Model,
    block: Sequence[int],
    frame: BlockFrame,
    at_points: bool,
    thinned_by: np.random.Generator | None = None,
) -> Features | None:
    """None where an input is not finite. `thinned_by` leaves out data in half of the readings.

    Raises VentureError where something cannot be computed with the block at its centre: so it is wherever the block
    stands; KernelError for a block that takes away choices of its own.
    """
    blanket = StateBlanket(model, block)
    if thinned_by is not None and thinned_by.random() < 0.5:
        blanket.thin_out(thinned_by)
    features = blanket.read(readings(block, frame, at_points))
    read = (features.fixed, *features.ports.values())
    return features if all(np.isfinite(inputs).all() for inputs in read) else None


def reader_at_mode(model: Model, frame: BlockFrame, block: Sequence[int]) -> BlockReader | None:
    """What reads a block of which all is a body, as where structure stays; None where what exists, or statistics that
    are kept, depend on it, a choice has no gradient, or some choice is a head: so it is wherever the block stands.

    Raises KernelError where derivatives are missing.
    """
    if any(position.is_discrete for position in frame.positions):
        return None
    try:
        blanket = Blanket(model, block)
    except KernelError:
        return None
    return None if heads_of(model, block, frame) else BlockReader(frame, blanket)


def input_names(model: Model, block: Sequence[int], frame: BlockFrame, at_points: bool) -> InputNames:
    """What the inputs are that `read_block` finds. Raises VentureError as that does."""
    fixed, columns = StateBlanket(model, block).input_names(readings(block, frame, at_points))
    return InputNames(tuple(fixed), tuple(columns.items()))


def readings(block: Sequence[int], frame: BlockFrame, at_points: bool) -> list[Reading]:
    """The block at the centre of its frame; a single choice at each of its values, or at three points."""
    of = dict(zip(block, frame.positions, strict=True))
    if not at_points:
        return [Reading(lambda node, operator, arguments: _at(of[node], 0.0, operator, arguments))]
    (position,) = frame.positions
    if position.is_discrete and len(position.values) <= MOST_VALUES:
        return [Reading(partial(_given, value), f" at {show(value)}") for value in position.values.tolist()]
    return [Reading(partial(_at_point, position, point), f" at {point:+.0f}") for point in POINTS]


def _given(value: Any, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
    return value


def _at_point(position: Position, point: float, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
    return _at(position, point, operator, arguments)


def _at(position: Position, point: float, operator: Any, arguments: tuple[Any, ...]) -> Any:
    """The value at a point of the frame, of a discrete choice at a quartile of its values."""
    last = len(position.values) - 1
    if position.is_discrete:
        return position.value(operator, [float(int(last * (0.5 + 0.25 * point)))], arguments)
    return position.value(operator, (position.centre + point * position.scale).tolist(), arguments)
