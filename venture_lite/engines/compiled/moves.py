"""The kernel: transitions that propose what was learned and accept by the exact weight.

The weight takes the density of the whole mixture, forward and backward; both come from one reading of the state, since
nothing that the network reads depends on where the block is. A block of several choices with a body is moved by its
density in free coordinates, as `hmc` moves it; any other by its form or the interpreter, choice by choice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.gradients import Densities
from venture_lite.blocks.worlds import Blanket, names_of
from venture_lite.engines.compiled.frame import Position
from venture_lite.engines.compiled.proposer import KindProposer, Proposer
from venture_lite.engines.compiled.reading import BlockReader, BlockReading
from venture_lite.engines.compiled.standing import StateProposal, UnreadState
from venture_lite.engines.compiled.state_reader import read_block
from venture_lite.errors import KernelError, LimitError, VentureError
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.impossible import first_outside
from venture_lite.interpreter.kernel import INTERPRETED, BlockKernel, Course, Metropolis, Move
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection, in_order
from venture_lite.interpreter.weights import NEVER, Weight, density_of
from venture_lite.kernels.compiled import kernel
from venture_lite.networks.heads import log_sum
from venture_lite.procedures.record import Random
from venture_lite.trace.trace import Trace

MOST_BLANKETS = 10_000
"""Blocks whose blankets are kept."""

MOST_WEIGHT = 100.0
"""In the mean of log weights those further from 0 count as this."""
LONG_STAY, ENOUGH, OUTSIDE = 200, 200, 0.05
"""Refusals in a row that are told; transitions after which, and the share from which, inputs beyond the worlds are."""

RETURN = 1e-6
"""By how much the coordinates of a value may differ from those that it was made from."""

Weighed = tuple[list[float], float, float]
"""Of a value: its coordinates, the log Jacobian from them to it, its log density by the prior."""


@dataclass(slots=True)
class ProposalCounts:
    """Proposals of one part of the mixture. Mutable."""

    made: int = 0
    accepted: int = 0


class CompiledProposal:
    """Proposals for one block after the other. Mutable: it stands at a transition."""

    counts = True

    def __init__(self, model: Model, safe: float) -> None:
        self.model = model
        self.proposer = Proposer("", None, "", {})
        # probabilities of the parts, and their logarithms: the prior, the wide normals, the network
        self._shares = (0.5 * safe, safe)
        self._logs = (math.log(0.5 * safe), math.log(0.5 * safe), math.log1p(-safe) if safe < 1.0 else -math.inf)
        self.learned, self.safe = ProposalCounts(), ProposalCounts()
        # whether networks may be fitted to what is read, also where there is none yet
        self.teaches = False
        # transitions with inputs beyond all that was trained on
        self.outside = 0
        # in the order of their addresses
        self.block: list[int] = []
        self._readers: dict[tuple[int, ...], tuple[BlockReader, KindProposer, Proposer]] = {}
        # by block what was read of it, with the stamps of all that was read
        self._kept: dict[tuple[int, ...], tuple[tuple[int, ...], StateProposal | UnreadState]] = {}

    # ---------------------------------------------------------------------------- what a transition calls, in order

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """Read the blanket, weigh the state that stands, and draw numbers of the frame."""
        if set(principals) != set(self.block):
            raise self.refusal("takes away choices of the block")
        standing = self.standing()
        self._weighed = {node: self._weigh(node, *trace.application(node), trace.value(node)) for node in self.block}
        self._old = self._log_density()
        coordinates = iter(self.drawn(of_prior=False))
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
        self.part = 0 if standing.is_unread or part < self._shares[0] else 1 if part < self._shares[1] else 2
        if self.part:
            return standing.drawn(rng, self.part == 1)
        return standing.reader.drawn() if of_prior else []

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

    def _read_state(self) -> StateProposal | None:
        kind = self.proposer.kinds.get(names_of(self.model, self.block))
        if kind is None:
            return None
        try:
            features = read_block(self.model, self.block, kind.frame, kind.reading == "points")
        except (KernelError, LimitError):
            raise
        except VentureError:
            return None
        if features is None or features.fixed.shape[1] != len(kind.ranges[0][0]):
            return None
        return StateProposal(kind, BlockReading(features, np.zeros((1, sum(kind.frame.widths)))), None)

    def reader(self) -> tuple[BlockReader, KindProposer]:
        """What reads the block, and what was learned for it."""
        key = tuple(self.block)
        found = self._readers.get(key)
        if found is None or not found[0].blanket.holds() or found[2] is not self.proposer:
            if len(self._readers) >= MOST_BLANKETS:
                self._readers.clear()
            kind = self.proposer.kind_of(self.model, self.block)
            blanket = Blanket(self.model, self.block)
            self.proposer.refuse_ports(blanket, kind)
            found = self._readers[key] = BlockReader(kind.frame, blanket), kind, self.proposer
            self._kept.pop(key, None)
        return found[:2]

    def _read(self) -> StateProposal | UnreadState:
        """The network and the frame in this state."""
        (reader, kind), key = self.reader(), tuple(self.block)
        stamps, kept = reader.blanket.stamps(), self._kept.get(key)
        if kept is None or kept[0] != stamps:
            kept = self._kept[key] = stamps, self._made(kind, reader)
        return kept[1]

    def _made(self, kind: KindProposer, reader: BlockReader) -> StateProposal | UnreadState:
        try:
            return StateProposal(kind, reader.read(None, kind.ports, self.teaches or kind.network is not None), reader)
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
        """The log density of proposing some coordinates, of which `prior` is the prior's."""
        if self._standing is None:
            return prior
        learned, wide = self._standing.log_densities(coordinates)
        return log_sum([log + term for log, term in zip(self._logs, (prior, wide, learned), strict=True)])

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        wanted = self._drawn.get(node)
        if wanted:
            value = self._position(node).value(operator, wanted, arguments)
        else:
            value = simulate_anew(self.model.trace, node, operator, arguments)
        coordinates, _, prior = self._weighed[node] = self._weigh(node, operator, arguments, value)
        # an angle beyond the seam, or a number at the end of the floats, has other numbers too
        if prior == -math.inf or (wanted and not _are_near(coordinates, wanted)):
            raise Outside
        self._waiting.discard(node)
        return value, 0.0 if self._waiting else self._old - self._log_density()


def _are_near(found: list[float], wanted: list[float]) -> bool:
    return all(abs(x - y) <= RETURN * (1.0 + abs(y)) for x, y in zip(found, wanted, strict=True))


class Outside(Exception):
    """A proposed value lies outside the support of its choice, or is not the one that its numbers stand for."""


@dataclass(frozen=True, slots=True)
class Stand:
    """A block at some free coordinates (D,)."""

    free: np.ndarray
    # log density in free coordinates, of the block and all that reads it, and of the block alone
    weight: Weight
    prior: float


class CompiledMH(BlockKernel):
    """Transitions of one `compiled_mh` action."""

    refuses_blocks = True

    def __init__(
        self, model: Model, known: Mapping[str, Proposer], name: str, safe: float, warn: Callable[[str], None]
    ) -> None:
        super().__init__(model)
        # the proposer may be trained between now and the first transition
        self._known, self._name = known, name
        self.warn = warn
        self.proposal = CompiledProposal(model, safe)
        self._moves = kernel(model, Move(self.proposal, self._decide))
        self._metropolis = Metropolis(model)
        self._densities = Densities(model, "compiled_mh", warn)
        self._rows = 0
        # where a block stood last, as of which version of the trace
        self._stood: tuple[list[int], int, Stand] = [], -1, Stand(np.zeros(0), Weight(), 0.0)
        self._transitions = self._still = self._longest = 0
        self._total, self._largest = 0.0, -math.inf
        self._told = False

    @property
    def proposer(self) -> Proposer:
        return self._known.get(self._name) or Proposer(self._name, None, "", {})

    @property
    def rows(self) -> int:
        return self._rows + self._moves.rows

    def details(self) -> dict[str, float]:
        """Acceptance of the network's and of the safe proposals apart, weights, and the longest stay."""
        learned, safe, count = self.proposal.learned, self.proposal.safe, max(self._transitions, 1)
        return {
            "acceptance of learned proposals": learned.accepted / max(learned.made, 1),
            "acceptance of safe proposals": safe.accepted / max(safe.made, 1),
            "mean log weight": self._total / count,
            "greatest log weight": self._largest,
            "longest run without a move": float(max(self._longest, self._still)),
            "transitions with inputs outside of the worlds": float(self.proposal.outside),
        }

    def refuse(self, nodes: list[int]) -> None:
        # what is compiled in the same program has no kinds before that runs
        if nodes and self.proposer.kinds:
            self.proposal.block, self.proposal.proposer = in_order(self.model, nodes), self.proposer
            if self.proposer.reads_states:
                self.proposer.refuse(self.model, self.proposal.block)
            else:
                self.proposal.reader()

    def course(self, nodes: list[int], at: Selection) -> Course:
        self.refuse(nodes)
        return Course(INTERPRETED, "features of the block are read at each transition")

    def step(self, nodes: list[int], at: Selection) -> bool:
        self.proposal.block, self.proposal.proposer = in_order(self.model, nodes), self.proposer
        self._at = at
        density = self._density()
        try:
            moved = self._moves.step(self.proposal.block, at) if density is None else self._moved(density)
        except Outside:
            moved = False
        self._count(moved)
        return moved

    def _density(self) -> BlockDensity | None:
        """That of a block with a body; None where the block is moved choice by choice, as one of a single choice is."""
        block = self.proposal.block
        if len(block) == 1 or self.proposer.reads_states:
            return None
        standing = self.proposal.standing()
        if standing is None or not standing.kind.frame.body or first_outside(self.model, block) is not None:
            return None
        try:
            return self._densities.of(block)
        except KernelError:
            return None

    def _moved(self, density: BlockDensity) -> bool:
        """A transition in the block's free coordinates."""
        model, proposal = self.model, self.proposal
        with model.transaction() as change:
            block, version, start = self._stood
            if block != proposal.block or version != model.trace.journal.version:
                start = self._weighed(density, density.present())
            backward = proposal.log_mixture(start.free.tolist(), start.prior)
            free = np.array(proposal.drawn())
            end = self._put(density, free)
            if end is not None:
                weight = end.weight.minus(start.weight)
                weight.total += backward - proposal.log_mixture(free.tolist(), end.prior)
            accepted = self._decide(Weight(NEVER) if end is None else weight)
            if accepted:
                change.keep()
        self._stood = proposal.block, model.trace.journal.version, end if accepted and end is not None else start
        return accepted

    def _put(self, density: BlockDensity, free: np.ndarray) -> Stand | None:
        """The block elsewhere; None where the density has no value, or other coordinates are the same place: an angle's
        beyond the seam, or a number's at the end of the floats."""
        self.model.poll()
        try:
            density.put(free)
            if not _are_near(density.present().tolist(), free.tolist()):
                return None
            return self._weighed(density, free)
        except VentureError:
            return None

    def _weighed(self, density: BlockDensity, free: np.ndarray) -> Stand:
        weight, _ = density.evaluate()
        self._rows += density.rows
        return Stand(free, weight, self.proposal.log_prior())

    def _decide(self, weight: Weight) -> bool:
        if self.model.trace.journal.restructured and set(self._at.members_now()) != set(self.proposal.block):
            raise self.proposal.refusal("brings choices into the block")
        if not weight.impossible:
            self._total += max(min(weight.total, MOST_WEIGHT), -MOST_WEIGHT)
            self._largest = max(self._largest, weight.total)
        return self._metropolis(weight)

    def _count(self, moved: bool) -> None:
        counts = self.proposal.learned if self.proposal.part == 2 else self.proposal.safe
        counts.made += 1
        counts.accepted += moved
        self._transitions += 1
        self._still = 0 if moved else self._still + 1
        self._longest = max(self._longest, self._still)
        name = self.proposer.name
        if self._still == LONG_STAY:
            self.warn(f"compiled_mh: {LONG_STAY} proposals of {name} in a row were refused")
        if not self._told and self._transitions >= ENOUGH and self.proposal.outside > OUTSIDE * self._transitions:
            self._told = True
            self.warn(f"compiled_mh: the data lie outside what the prior draws for {name} in 99 of 100 worlds")
