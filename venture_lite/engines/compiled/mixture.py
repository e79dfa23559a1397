"""What is proposed for one block after the other, and weighed: the general way, for blocks of any size.

The density is that of the whole mixture, whichever part was drawn from; the density of the state that stands and that
of the proposed one come from one reading, since nothing that the network reads depends on where the block is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.worlds import Blanket, names_of
from venture_lite.engines.compiled.frame import Position
from venture_lite.engines.compiled.proposer import KindProposer, Proposer
from venture_lite.engines.compiled.reading import BlockReader, BlockReading
from venture_lite.engines.compiled.standing import StateProposal, UnreadState
from venture_lite.engines.compiled.state_reader import read_block, reader_at_mode
from venture_lite.errors import InternalError, KernelError, LimitError, VentureError
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import density_of
from venture_lite.networks.heads import log_sum
from venture_lite.procedures.record import Random
from venture_lite.trace.trace import Trace

MOST_BLANKETS = 10_000
"""Blocks whose blankets are kept."""

RETURN = 1e-6
"""By how much the coordinates of a value may differ from those that it was made from."""

Weighed = tuple[list[float], float, float]
"""Of a value: its coordinates, the log Jacobian from them to it, its log density by the prior."""


@dataclass(slots=True)
class ProposalCounts:
    """Proposals of one part of the mixture. Mutable."""

    made: int = 0
    accepted: int = 0


Readers = dict[tuple[str, tuple[int, ...]], tuple[BlockReader, KindProposer, Proposer]]
"""By the proposer's name and the block: what reads it, what was learned for it, and as of which training."""


def _readers_of(model: Model) -> Readers:
    return {}


class CompiledProposal:
    """Proposals for one block after the other. Mutable: it stands at a transition."""

    counts = True

    def __init__(self, model: Model, safe: float) -> None:
        self.model = model
        self.proposer = Proposer("", None, "", {})
        # probabilities of the parts, and their logarithms: the prior, the wide normals, the network
        self._shares = (0.5 * safe, safe)
        self._logs = (math.log(0.5 * safe), math.log(0.5 * safe), math.log1p(-safe) if safe < 1.0 else -math.inf)
        # the same of discrete choices alone, of which nothing is wide but the prior
        self._discrete_logs = (math.log(safe), -math.inf, self._logs[2])
        self.learned, self.safe = ProposalCounts(), ProposalCounts()
        # whether networks may be fitted to what is read, also where there is none yet
        self.teaches = False
        # transitions with inputs beyond all that was trained on
        self.outside = 0
        # in the order of their addresses
        self.block: list[int] = []
        # what reads blocks stays with the model: the next action may move the same ones
        self._readers = model.kept.learned(_readers_of, model)
        # by block what was read of it and by which reader, with the stamps of all that was read
        self._kept: dict[tuple[int, ...], tuple[BlockReader, tuple[int, ...], StateProposal | UnreadState]] = {}

    # ---------------------------------------------------------------------------- what a transition calls, in order

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """Read the blanket, weigh the state that stands, and draw numbers of the frame."""
        if set(principals) != set(self.block):
            raise self.refusal("takes away choices of the block")
        standing = self.standing()
        self._weighed = {node: self._weigh(node, *trace.application(node), trace.value(node)) for node in self.block}
        self._old = self._log_density()
        coordinates = iter(self.drawn(of_prior=False))
        # numbers of the frame of the choices that have been proposed, where these are drawn one after the other
        self._before: list[float] | None = [] if self.part == 1 and self.draws_in_order else None
        positions = [] if standing is None else standing.kind.frame.positions
        # of each choice what was drawn; nothing where it comes from the prior
        self._drawn = {
            node: list(itertools.islice(coordinates, position.width))
            for node, position in zip(self.block, positions, strict=standing is not None)
        }
        self._waiting = set(self.block)

    def refusal(self, what: str) -> KernelError:
        code, slot, _ = self.model.trace.decode(self.block[0])
        reason = f"what choices the block has depends on itself: it {what} by what it does to others"
        return KernelError(reason, code.slots[slot].span, "mh, or tags that keep these in a block of their own")

    def drawn(self, of_prior: bool = True) -> list[float]:
        """Coordinates of the block, from a part of the mixture that is drawn; none from the prior, unless asked for."""
        rng, standing = self.model.trace.rng, self._standing
        self.outside += standing is None or standing.lies_outside
        part = rng.random()
        if standing is None:
            self.part = 0
            return []
        of_prior_alone = self._shares[0] if standing.kind.frame.has_numbers else self._shares[1]
        self.part = 0 if standing.is_unread or part < of_prior_alone else 1 if part < self._shares[1] else 2
        if self.part == 1 and self.draws_in_order:
            return []
        if self.part:
            return standing.drawn(rng, self.part == 1)
        return standing.reader.drawn() if of_prior else []

    @property
    def draws_in_order(self) -> bool:
        """Whether choices of what is wide are drawn where they are proposed: discrete ones come from the prior."""
        return isinstance(self._standing, StateProposal) and self._standing.discrete_by_prior

    def present(self) -> list[float]:
        """The coordinates of the block where it stands."""
        trace, found = self.model.trace, list[float]()
        assert self._standing is not None
        for node, position in zip(self.block, self._standing.kind.frame.positions, strict=True):
            operator, arguments = trace.application(node)
            assert isinstance(operator, Random)
            found += position.of_value(operator, trace.value(node), arguments)
        return found

    def standing(self) -> StateProposal | UnreadState | None:
        """What is proposed for the block in this state; None for the prior alone, there and on the way back: where
        nothing was learned of such a block, or it cannot be read, whatever its values are."""
        self._standing = self._read_state() if self.proposer.reads_states else self._read()
        return self._standing

    @property
    def stands_at(self) -> StateProposal | UnreadState | None:
        """What `standing` gave last: the same before and after a transition of the block."""
        return self._standing

    def log_prior(self) -> float:
        """Of the block where it stands, in its free coordinates."""
        trace, total = self.model.trace, 0.0
        assert self._standing is not None
        for node, position in zip(self.block, self._standing.kind.frame.positions, strict=True):
            operator, arguments = trace.application(node)
            value = trace.value(node)
            assert isinstance(operator, Random)
            total += density_of(trace, node, operator, arguments, value)
            total += position.log_jacobian(operator, value, arguments)
        return total

    def log_volume(self) -> float:
        """log |d values / d numbers| of the block where it stands, but for what the heads' scales add."""
        assert isinstance(self._standing, StateProposal)
        total = self._standing.log_volume(self.present())
        for node, position in zip(self.block, self._standing.kind.frame.positions, strict=True):
            operator, arguments = self.model.trace.application(node)
            assert isinstance(operator, Random)
            total += position.log_jacobian(operator, self.model.trace.value(node), arguments)
        return total

    def _read_state(self) -> StateProposal | UnreadState | None:
        kind = self.proposer.kinds.get(names_of(self.model, self.block))
        if kind is None:
            return None
        if kind.reading == "modes":
            return self._read_at_mode(kind)
        try:
            features = read_block(self.model, self.block, kind.frame, kind.reading == "points")
        except (KernelError, LimitError):
            raise
        except VentureError:
            return None
        if features is None or features.fixed.shape[1] != len(kind.ranges[0][0]):
            return None
        return StateProposal(kind, BlockReading(features, np.zeros((1, sum(kind.frame.widths)))), None)

    def _read_at_mode(self, kind: KindProposer) -> StateProposal | UnreadState | None:
        """The network, and the frame of the mode in this state; None where there is no such frame, wherever the block
        stands."""
        key = self.proposer.name, tuple(self.block)
        found = self._readers.get(key)
        try:
            if found is None or not found[0].blanket.holds() or found[2] is not self.proposer:
                if len(self._readers) >= MOST_BLANKETS:
                    self._readers.clear()
                reader = reader_at_mode(self.model, kind.frame, self.block)
                if reader is None:
                    return None
                found = self._readers[key] = reader, kind, self.proposer
            return self._read_by(found[0], kind)
        except KernelError:
            return None

    def reader(self) -> tuple[BlockReader, KindProposer]:
        """What reads the block, and what was learned for it."""
        key = self.proposer.name, tuple(self.block)
        found = self._readers.get(key)
        if found is None or not found[0].blanket.holds() or found[2] is not self.proposer:
            if len(self._readers) >= MOST_BLANKETS:
                self._readers.clear()
            kind = self.proposer.kind_of(self.model, self.block)
            blanket = Blanket(self.model, self.block)
            self.proposer.refuse_ports(blanket, kind)
            found = self._readers[key] = BlockReader(kind.frame, blanket), kind, self.proposer
        return found[:2]

    def _read(self) -> StateProposal | UnreadState:
        """The network and the frame in this state."""
        return self._read_by(*self.reader())

    def _read_by(self, reader: BlockReader, kind: KindProposer) -> StateProposal | UnreadState:
        key = tuple(self.block)
        stamps, kept = reader.blanket.stamps(), self._kept.get(key)
        if kept is None or kept[0] is not reader or kept[1] != stamps:
            if len(self._kept) >= MOST_BLANKETS:
                self._kept.clear()
            kept = self._kept[key] = reader, stamps, self._made(kind, reader)
        return kept[2]

    def _made(self, kind: KindProposer, reader: BlockReader) -> StateProposal | UnreadState:
        try:
            reading = reader.read(None, kind.ports, self.teaches or kind.network is not None)
            if kind.reading == "modes" and not kind.fits(reading.features):
                return UnreadState(kind, reader)
            return StateProposal(kind, reading, reader)
        except KernelError:
            raise
        except VentureError:
            return UnreadState(kind, reader)

    def _position(self, node: int) -> Position:
        assert self._standing is not None
        return self._standing.kind.frame.positions[self.block.index(node)]

    def _weigh(self, node: int, operator: Any, arguments: tuple[Any, ...], value: Any) -> Weighed:
        if self._standing is None:
            return [], 0.0, density_of(self.model.trace, node, operator, arguments, value)
        position = self._position(node)
        return (
            position.of_value(operator, value, arguments),
            position.log_jacobian(operator, value, arguments),
            density_of(self.model.trace, node, operator, arguments, value),
        )

    def _log_density(self) -> float:
        """Of proposing the values that were weighed, by the whole mixture."""
        weighed = [self._weighed[node] for node in self.block]
        coordinates = [coordinate for its, _, _ in weighed for coordinate in its]
        jacobian, prior = sum(each[1] for each in weighed), sum(each[2] for each in weighed)
        return self.log_mixture(coordinates, prior + jacobian) - jacobian

    def log_mixture(self, coordinates: list[float], prior: float) -> float:
        """The log density of proposing some coordinates, of which `prior` is the prior's, as of the values that were
        weighed."""
        if self._standing is None:
            return prior
        learned, wide = self._standing.log_densities(coordinates)
        if self.draws_in_order:
            wide += sum(
                jacobian + density
                for node, (_, jacobian, density) in self._weighed.items()
                if self._position(node).is_discrete
            )
        logs = self._logs if self._standing.kind.frame.has_numbers else self._discrete_logs
        return log_sum([log + term for log, term in zip(logs, (prior, wide, learned), strict=True)])

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        wanted = self._drawn.get(node) if self._before is None else self._next(node)
        if wanted and (position := self._position(node)).is_beyond(wanted):
            value = position.beyond(operator, arguments, self.model.trace.rng)
        elif wanted:
            value = self._position(node).value(operator, wanted, arguments)
        else:
            value = simulate_anew(self.model.trace, node, operator, arguments)
        if self._before is not None and not wanted:
            self._before += self._position(node).of_value(operator, value, arguments)
        return self._weighed_against(node, operator, arguments, value, wanted)

    def _next(self, node: int) -> list[float] | None:
        """Coordinates of the next choice, from what is wide; None of a discrete one, which comes from the prior."""
        position, before = self._position(node), self._before
        assert before is not None
        if len(before) != sum(each.width for each in self._positions_before(node)):
            raise InternalError("choices of a block are proposed in another order than they are read")
        if position.is_discrete:
            return None
        assert isinstance(self._standing, StateProposal)
        return self._standing.drawn_next(self.model.trace.rng, position, before)

    def _positions_before(self, node: int) -> Sequence[Position]:
        assert self._standing is not None
        return self._standing.kind.frame.positions[: self.block.index(node)]

    def _weighed_against(
        self, node: int, operator: Any, arguments: tuple[Any, ...], value: Any | None, wanted: list[float] | None
    ) -> tuple[Any, float]:
        """A value that was drawn, at coordinates `wanted` or from the prior, with the ratio of the densities; None
        where there is none in the tail."""
        if value is None:
            raise Outside
        try:
            coordinates, _, prior = self._weighed[node] = self._weigh(node, operator, arguments, value)
        except KernelError:
            # beyond the logits that floats tell apart; where the prior draws what has no numbers, the move is refused
            if wanted:
                raise Outside from None
            raise
        # an angle beyond the seam, or a number at the end of the floats, has other numbers too
        if prior == -math.inf or (wanted and not are_near(coordinates, wanted)):
            raise Outside
        self._waiting.discard(node)
        return value, 0.0 if self._waiting else self._old - self._log_density()


def are_near(found: list[float], wanted: list[float]) -> bool:
    return all(abs(x - y) <= RETURN * (1.0 + abs(y)) for x, y in zip(found, wanted, strict=True))


class Outside(Exception):
    """A proposed value lies outside the support of its choice, or is not the one that its numbers stand for."""
