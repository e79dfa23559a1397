"""Proposals for numbers that move alone, by the shorter way that forms take.

What is drawn, in which order, and the density are those of `CompiledProposal`, to which all is left that is no number
in this state, or weighs nothing finite.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from venture_lite.blocks.single_conditionals import NOT_KNOWN
from venture_lite.engines.compiled.mixture import MOST_BLANKETS, RETURN, CompiledProposal
from venture_lite.engines.compiled.number import (
    BEYOND,
    InFrame,
    LearnedValue,
    NumberProposal,
    Weigh,
    number_of,
    weighing,
)
from venture_lite.engines.compiled.proposer import KindProposer
from venture_lite.engines.compiled.reading import BlockReader
from venture_lite.engines.compiled.standing import StateProposal
from venture_lite.errors import KernelError
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.regenerate import Straight
from venture_lite.procedures.record import Random
from venture_lite.trace.nodes import node_at


class StraightProposal(CompiledProposal):
    """Proposals for one block after the other, of a number that moves alone straight away. Mutable."""

    def __init__(self, model: Model, safe: float) -> None:
        super().__init__(model, safe)
        # by node what is proposed, None where it goes in the general way; of which reader, and as of which stamps
        self._numbers: dict[int, tuple[BlockReader, tuple[int, ...], NumberProposal | None]] = {}

    def straight(self, site: int, record: Random, count: int) -> Straight | None:
        weigh = weighing(record, count)
        return None if weigh is None else partial(self._moved, site, record, weigh)

    def _moved(self, site: int, record: Random, weigh: Weigh, row: int, old: Any, *arguments: Any) -> tuple[Any, float]:
        """What `prepare` and `propose` come to."""
        node, rng, wanted = node_at(site, row), self.model.trace.rng, None
        number = self._number(node)
        if number is None or not (number.at == old or self._stands(number, weigh, old, arguments)):
            self.prepare(self.model.trace, (node,))
            return self.propose(node, record, arguments, old)
        self.outside += number.lies_outside
        part = rng.random()
        of_prior = self._shares[0] if number.is_number else self._shares[1]
        self.part = 0 if part < of_prior else 1 if part < self._shares[1] else 2
        if self.part:
            wanted = number.drawn(rng, self.part == 1)
            if wanted is BEYOND:
                return self._beyond(node, record, arguments, number)
            value = wanted if record.transform is None else record.transform.from_free(wanted, arguments)
        else:
            value = simulate_anew(self.model.trace, node, record, arguments)
        try:
            coordinate, jacobian, prior = weigh(value, *arguments)
            density = number.log_mixture(self._logs_of(number), coordinate, prior + jacobian) - jacobian
            is_sound = math.isfinite(density) and (
                wanted is None or wanted == coordinate or abs(coordinate - wanted) <= RETURN * (1.0 + abs(wanted))
            )
        except (*NOT_KNOWN, KernelError):
            is_sound = False
        if not is_sound:
            return self._told_apart(node, record, arguments, value, wanted, number.density)
        return value, number.density - density

    def _beyond(
        self, node: int, record: Random, arguments: tuple[Any, ...], number: NumberProposal
    ) -> tuple[Any, float]:
        """A count in the tail, weighed in the general way."""
        assert isinstance(number, LearnedValue)
        assert number.tail is not None
        value = number.tail.beyond(record, arguments, self.model.trace.rng)
        return self._told_apart(node, record, arguments, value, value, number.density)

    def _logs_of(self, number: NumberProposal) -> tuple[float, float, float]:
        return self._logs if number.is_number else self._discrete_logs

    def _number(self, node: int) -> NumberProposal | None:
        """What is proposed for a number in this state; None where it goes in the general way."""
        if self.proposer.reads_states:
            return None
        reader, kind = self.reader()
        stamps, kept = reader.blanket.stamps(), self._numbers.get(node)
        if kept is None or kept[0] is not reader or kept[1] != stamps:
            if len(self._numbers) >= MOST_BLANKETS:
                self._numbers.clear()
            kept = self._numbers[node] = reader, stamps, self._made_number(kind, reader)
        return kept[2]

    def _made_number(self, kind: KindProposer, reader: BlockReader) -> NumberProposal | None:
        number = reader.number() if kind.network is None else None
        if number is not None:
            return InFrame(*number, kind.frame.mean is not None)
        standing = self._read()
        return number_of(standing) if isinstance(standing, StateProposal) else None

    def _stands(self, number: NumberProposal, weigh: Weigh, old: Any, arguments: tuple[Any, ...]) -> bool:
        """Whether the value that stands has a finite density of being proposed, which is kept."""
        try:
            coordinate, jacobian, prior = weigh(old, *arguments)
            number.density = number.log_mixture(self._logs_of(number), coordinate, prior + jacobian) - jacobian
        except NOT_KNOWN:
            return False
        number.at = old if math.isfinite(number.density) else None
        return number.at is not None

    def _told_apart(
        self, node: int, record: Random, arguments: tuple[Any, ...], value: Any, wanted: Any, backward: float
    ) -> tuple[Any, float]:
        """A value that was drawn, and whose density is in doubt, weighed in the general way."""
        standing = self.standing()
        self._weighed, self._waiting, self._old = {}, {node}, backward
        if wanted is None or standing is None:
            return self._weighed_against(node, record, arguments, value, None)
        (position,) = standing.kind.frame.positions
        coordinates = position.of_value(record, wanted, arguments) if position.is_discrete else [wanted]
        return self._weighed_against(node, record, arguments, value, coordinates)
