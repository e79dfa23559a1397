"""The coordinates in which proposals of a block are learned: of each choice its values as numbers of size one.

A continuous choice stands at z = (free(x) - c) / s, `free` being the transform of its distribution, so that nothing is
proposed outside a support; c and s are the median and half the distance between the 16% and the 84% quantile of draws
from the prior. A discrete choice stands at the position of its value among those that it can have, or among the counts
that draws reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.worlds import Blanket, RunReader, Worlds
from venture_lite.errors import KernelError
from venture_lite.interpreter.model import Model
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import free_of_rows, values_of_rows
from venture_lite.trace.nodes import node_at

MOST_COUNT = 200
"""Counts above are left to the prior."""
MOST_LEARNED = 0.5
"""Of the draws of a count, so many must lie below."""
SHARE = 0.999
"""Of the draws of a count, so many lie in what is learned."""


@dataclass(frozen=True, slots=True)
class Position:
    """One choice of a block."""

    # as written, for a person
    text: str
    distribution: str
    # (K,) of a continuous choice, of a number K = 1; none of a discrete one
    centre: np.ndarray
    scale: np.ndarray
    # of a discrete choice: its values in order, bool, int or float; none of a continuous one
    values: np.ndarray
    is_number: bool = True

    @property
    def is_discrete(self) -> bool:
        return len(self.values) > 0

    @property
    def width(self) -> int:
        """How many numbers the choice is in the frame."""
        return 1 if self.is_discrete else len(self.centre)

    @property
    def middle(self) -> Any:
        """The value of a discrete choice at which a block is read."""
        return self.values[(len(self.values) - 1) // 2]

    def in_frame(self, raw: np.ndarray) -> np.ndarray:
        """What worlds hold of the choice as numbers of the frame, (W, width); positions of no value are -1."""
        if not self.is_discrete:
            return np.asarray((raw - self.centre) / self.scale)
        at = np.minimum(np.searchsorted(self.values, raw), len(self.values) - 1)
        return np.where(self.values[at] == raw, at, -1)[:, None].astype(np.float64)

    def numbers(self, record: Random, value: Any, arguments: Sequence[Any]) -> list[float]:
        """The same of one value."""
        if self.is_discrete:
            found: list[float] = self.in_frame(np.array([value]))[0].tolist()
            return found
        assert record.transform is not None
        free = np.ravel(record.transform.to_free(value, tuple(arguments)))
        numbers: list[float] = ((free - self.centre) / self.scale).tolist()
        return numbers

    def value(self, record: Random, numbers: Sequence[float], arguments: Sequence[Any]) -> Any:
        """The value that stands at some numbers of the frame."""
        if self.is_discrete:
            return self.values[int(numbers[0])].item()
        assert record.transform is not None
        free = self.centre + self.scale * np.asarray(numbers)
        return record.transform.from_free(float(free[0]) if self.is_number else free, tuple(arguments))

    def log_jacobian(self, record: Random, value: Any, arguments: Sequence[Any]) -> float:
        """log |d value / d numbers| at a value."""
        if self.is_discrete:
            return 0.0
        assert record.transform is not None
        return float(np.log(self.scale).sum()) + record.transform.log_jacobian(value, tuple(arguments))


class BlockFrame:
    """The positions of a block's choices, in the order of the block."""

    def __init__(self, positions: Sequence[Position]) -> None:
        self.positions = tuple(positions)

    @property
    def log_scale(self) -> float:
        """log |d free coordinates / d numbers| of a block."""
        return float(sum(np.log(position.scale).sum() for position in self.positions))

    def centre(self, block: Sequence[int], count: int) -> Any:
        """What puts the choices of a run at their centres, in so many worlds."""
        of = dict(zip(block, self.positions, strict=True))

        def put(reader: RunReader, arguments: list[Any]) -> np.ndarray:
            own = [of[node_at(reader.run.site, row)] for row in reader.run.rows.tolist()]
            if own[0].is_discrete:
                return np.repeat(np.array([each.middle for each in own]), count)
            free = np.repeat(np.stack([each.centre for each in own]), count, axis=0)
            return values_of_rows(reader.run.operator.transform, free[:, 0] if own[0].is_number else free, arguments)

        return put


def frame_of(model: Model, blankets: Sequence[Blanket], worlds: Worlds) -> BlockFrame:
    """From what the worlds hold of the blocks of one kind. Raises KernelError for a choice that cannot be learned."""
    drawn: list[list[np.ndarray]] = []
    for blanket in blankets:
        found = raw(blanket, worlds)
        drawn.append([found[node] for node in blanket.block])
    pooled = [np.concatenate(parts) for parts in zip(*drawn, strict=True)]
    return BlockFrame([_position(model, node, draws) for node, draws in zip(blankets[0].block, pooled, strict=True)])


def raw(blanket: Blanket, worlds: Worlds) -> dict[int, np.ndarray]:
    """Of each choice what the worlds hold: its free coordinates (W, K), or the values (W,) of a discrete one."""
    found: dict[int, np.ndarray] = {}
    for reader in blanket.choices:
        values, record = reader.values(worlds), reader.run.operator
        if record.transform is not None:
            values = free_of_rows(record.transform, values, reader.outputs(worlds))
        parts = values.reshape(len(reader.run.rows), worlds.count, *values.shape[1:])
        for row, part in zip(reader.run.rows.tolist(), parts, strict=True):
            found[node_at(reader.run.site, row)] = part
    return found


def _position(model: Model, node: int, draws: np.ndarray) -> Position:
    trace = model.trace
    code, slot, row = trace.decode(node)
    span, (record, arguments) = code.slots[slot].span, trace.application(node)
    assert isinstance(record, Random)
    text = " ".join(span.text.split()) if span is not None else record.name
    none = np.zeros(0)
    if record.transform is not None:
        low, centre, high = np.quantile(draws, (0.16, 0.5, 0.84), axis=0)
        scale = 0.5 * (high - low)
        return Position(text, record.name, centre, np.where(scale > 0.0, scale, 1.0), none, draws.shape[1] == 1)
    support = record.support(*arguments) if record.support is not None else None
    if draws.dtype.kind not in "fbiu" or (
        support is not None and not all(isinstance(x, (int, float)) for x in support)
    ):
        reason = f"a proposal for {record.name} cannot be learned: its values are no numbers"
        raise KernelError(reason, span, "gibbs, or mh", trace.call_chain(code, slot, row))
    values = np.unique(draws)
    if len(values) > MOST_COUNT or record.support is None:
        values = np.arange(min(int(np.quantile(draws, SHARE)) + 1, MOST_COUNT) + 1)
    if np.isin(draws, values).mean() < MOST_LEARNED:
        reason = f"a proposal for {record.name} cannot be learned: most of its counts are above {MOST_COUNT}"
        raise KernelError(reason, span, "mh, or a proposal of your own", trace.call_chain(code, slot, row))
    return Position(text, record.name, none, none, values)
