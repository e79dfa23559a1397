"""What a network learned to propose for blocks of a kind, and the move that proposes it.

A proposal is a mixture: with probability 1 - EPS from the network, with EPS from what is safe whatever it learned. Half
of that is the prior, half the network's own with each normal made a t with 8 degrees of freedom and twice its scale.
The weight takes the density of the whole mixture, forward and backward; both come from one evaluation, since the
network reads the block at the frame's centre and not where it is (Liang et al. 2021, section 3; the mixture is ours).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.worlds import Blanket, Features, PortKey, names_of
from venture_lite.engines.compiled.differences import difference
from venture_lite.engines.compiled.frame import BlockFrame, Position
from venture_lite.engines.compiled.report import KindReport, ProposerReport
from venture_lite.errors import KernelError
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.kernel import INTERPRETED, BlockKernel, Course, Metropolis, Move
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection, in_order
from venture_lite.interpreter.weights import Weight, density_of
from venture_lite.kernels.compiled import kernel
from venture_lite.networks.conditional import Conditional, ExampleDensity
from venture_lite.networks.heads import Density, NormalMixture, log_sum
from venture_lite.trace.trace import Trace

MOST_BLANKETS = 10_000
"""Blocks whose blankets are kept."""

DEGREES, WIDER = 8.0, 2.0
"""Of the t beside each normal of a head, and by how much its scale is larger."""
LOG_T = math.lgamma(0.5 * (DEGREES + 1.0)) - math.lgamma(0.5 * DEGREES) - 0.5 * math.log(DEGREES * math.pi)

LOG_WIDER = math.log(WIDER)

MOST_WEIGHT = 100.0
"""In the mean of log weights those further from 0 count as this."""
LONG_STAY, ENOUGH, OUTSIDE = 200, 200, 0.05
"""Refusals in a row that are told; transitions after which, and the share from which, inputs beyond the worlds are."""

RETURN = 1e-6
"""By how much the numbers of a value may differ from those that it was made from."""

SiteTexts = tuple[str, ...]
"""The choices of a block, by the names of their sites."""

Weighed = tuple[list[float], float, float]
"""Of a value: its numbers in the frame, the log Jacobian from them to it, its log density by the prior."""

Range = tuple[np.ndarray, np.ndarray]
"""The least and the largest of each column."""


@dataclass(frozen=True, slots=True)
class KindProposer:
    """Proposals for the blocks whose choices stand at the same sites."""

    sites: SiteTexts
    frame: BlockFrame
    ports: tuple[PortKey, ...]
    network: Conditional
    # the least and the largest of each input that was trained on, of fixed ones and of each port
    ranges: tuple[Range, ...]

    def given(self, features: Features) -> ExampleDensity:
        """The density for the state whose features these are."""
        return self.network.given(features.fixed[0], [self.rows(features, key)[0] for key in self.ports])

    def lie_outside(self, features: Features) -> bool:
        """Whether some input of a state lies beyond all that was trained on."""
        read = [features.fixed, *[self.rows(features, key)[0] for key in self.ports]]
        return any(
            bool((inputs < low).any() or (inputs > high).any())
            for inputs, (low, high) in zip(read, self.ranges, strict=True)
        )

    def rows(self, features: Features, key: PortKey) -> np.ndarray:
        """(W, N, F), none where nothing reads the block so."""
        found = features.ports.get(key)
        width = len(self.network.layout.names.ports[self.ports.index(key)][1])
        return np.zeros((len(features.fixed), 0, width)) if found is None else found


@dataclass(slots=True)
class Proposer:
    """What `compile` made under a name."""

    name: str
    scope: Any
    # BLOCK as the program has it
    blocks: str
    kinds: dict[SiteTexts, KindProposer]
    # what the training came to, in the order of the kinds
    reports: tuple[KindReport, ...] = ()

    @property
    def report(self) -> ProposerReport:
        return ProposerReport(self.name, self.reports)

    @property
    def parameters(self) -> int:
        return sum(kind.network.parameters for kind in self.kinds.values())

    def kind_of(self, model: Model, block: Sequence[int]) -> KindProposer:
        """Raises KernelError for a block of which no kind was compiled."""
        if not self.kinds:
            raise KernelError(f"there is no proposer {self.name}", hint="compile makes one")
        here = names_of(model, block)
        if here not in self.kinds:
            kinds = {names: [each.distribution for each in kind.frame.positions] for names, kind in self.kinds.items()}
            raise self._refusal(model, block[0], difference(model, block, kinds))
        return self.kinds[here]

    def refuse_ports(self, blanket: Blanket, kind: KindProposer) -> None:
        """Raises KernelError where something reads the block that nothing in the worlds was."""
        for port in blanket.ports:
            if port.key not in kind.ports:
                reason = f"for another program: {port.key} did not read the block"
                raise self._refusal(blanket.model, blanket.block[0], reason)

    def _refusal(self, model: Model, node: int, reason: str) -> KernelError:
        code, slot, _ = model.trace.decode(node)
        return KernelError(
            f"proposer {self.name} was compiled {reason}", code.slots[slot].span, f"compile {self.name} again"
        )


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
        # transitions with inputs beyond all that was trained on
        self.outside = 0
        # in the order of their addresses
        self.block: list[int] = []
        self._blankets: dict[tuple[int, ...], tuple[Blanket, KindProposer, Proposer]] = {}

    # ---------------------------------------------------------------------------- what a transition calls, in order

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """Read the blanket, weigh the state that stands, and draw numbers of the frame."""
        if set(principals) != set(self.block):
            code, slot, _ = trace.decode(self.block[0])
            reason = "the block takes away choices of its own by what it does to others"
            raise KernelError(reason, code.slots[slot].span, "mh, or tags that keep these in a block of their own")
        blanket, kind = self.read_by()
        self._kind = kind
        features = blanket.read(kind.frame.centre(self.block, 1))
        self._given = kind.given(features)
        self.outside += kind.lie_outside(features)
        self._weighed = {node: self._weigh(node, *trace.application(node), trace.value(node)) for node in self.block}
        self._old = self._log_density()
        part = trace.rng.random()
        self.part = 0 if part < self._shares[0] else 1 if part < self._shares[1] else 2
        numbers = iter(drawn(self._given, kind, trace.rng, self.part == 1) if self.part else ())
        # of each choice what was drawn; nothing where it comes from the prior
        self._drawn = {
            node: list(itertools.islice(numbers, position.width))
            for node, position in zip(self.block, kind.frame.positions, strict=True)
        }
        self._waiting = set(self.block)

    def read_by(self) -> tuple[Blanket, KindProposer]:
        """The blanket of the block, and the network that reads it."""
        key = tuple(self.block)
        found = self._blankets.get(key)
        if found is None or not found[0].holds() or found[2] is not self.proposer:
            if len(self._blankets) >= MOST_BLANKETS:
                self._blankets.clear()
            kind = self.proposer.kind_of(self.model, self.block)
            found = self._blankets[key] = Blanket(self.model, self.block), kind, self.proposer
            self.proposer.refuse_ports(found[0], kind)
        return found[:2]

    def _position(self, node: int) -> Position:
        return self._kind.frame.positions[self.block.index(node)]

    def _weigh(self, node: int, operator: Any, arguments: tuple[Any, ...], value: Any) -> Weighed:
        position = self._position(node)
        return (
            position.numbers(operator, value, arguments),
            position.log_jacobian(operator, value, arguments),
            density_of(self.model.trace, node, operator, arguments, value),
        )

    def _log_density(self) -> float:
        """Of proposing the values that were weighed, by the whole mixture."""
        weighed = [self._weighed[node] for node in self.block]
        numbers = [number for its, _, _ in weighed for number in its]
        jacobian, prior = sum(each[1] for each in weighed), sum(each[2] for each in weighed)
        learned, wide = log_densities(self._given, self._kind, numbers)
        terms = (prior, wide - jacobian, learned - jacobian)
        return log_sum([log + term for log, term in zip(self._logs, terms, strict=True)])

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        wanted = self._drawn[node]
        if wanted:
            value = self._position(node).value(operator, wanted, arguments)
        else:
            value = simulate_anew(self.model.trace, node, operator, arguments)
        numbers, _, prior = self._weighed[node] = self._weigh(node, operator, arguments, value)
        # an angle beyond the seam, or a number at the end of the floats, has other numbers too
        if prior == -math.inf or (wanted and not np.allclose(numbers, wanted, RETURN, RETURN)):
            raise Outside
        self._waiting.discard(node)
        return value, 0.0 if self._waiting else self._old - self._log_density()


class Outside(Exception):
    """A proposed value lies outside the support of its choice, or is not the one that its numbers stand for."""


def drawn(given: ExampleDensity, kind: KindProposer, rng: np.random.Generator, is_wide: bool) -> list[float]:
    """Numbers of the frame from the network, or from its normals made wide."""
    numbers: list[float] = []
    for d in range(len(kind.network.heads)):
        density = given.of_coordinate(d, numbers)
        numbers.append(_drawn_wide(density, rng) if is_wide else density.draw(rng))
    return numbers


def log_densities(given: ExampleDensity, kind: KindProposer, numbers: list[float]) -> tuple[float, float]:
    """Of numbers of the frame: by the network, and by its normals made wide."""
    learned = wide = 0.0
    for d, number in enumerate(numbers):
        density = given.of_coordinate(d, numbers)
        learned += density.log_density(number)
        wide += _log_wide(density, number)
        if wide == -math.inf:
            break
    return learned, wide


def _drawn_wide(density: Density, rng: np.random.Generator) -> float:
    if not isinstance(density, NormalMixture):
        return density.draw(rng)
    weights = np.exp(density.log_weights)
    chosen = int(rng.choice(len(weights), p=weights / weights.sum()))
    return density.means[chosen] + WIDER * math.exp(density.log_sds[chosen]) * float(rng.standard_t(DEGREES))


def _log_wide(density: Density, number: float) -> float:
    if not isinstance(density, NormalMixture):
        return density.log_density(number)
    terms = []
    for log_weight, mean, log_sd in zip(density.log_weights, density.means, density.log_sds, strict=True):
        scaled = (number - mean) * math.exp(-log_sd) / WIDER
        log_t = LOG_T - 0.5 * (DEGREES + 1.0) * math.log1p(scaled * scaled / DEGREES)
        terms.append(log_weight - log_sd - LOG_WIDER + log_t)
    return log_sum(terms)


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
        self._transitions = self._still = self._longest = 0
        self._total, self._largest = 0.0, -math.inf
        self._told = False

    @property
    def proposer(self) -> Proposer:
        return self._known.get(self._name) or Proposer(self._name, None, "", {})

    @property
    def rows(self) -> int:
        return self._moves.rows

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
            self.proposal.read_by()

    def course(self, nodes: list[int], at: Selection) -> Course:
        self.refuse(nodes)
        return Course(INTERPRETED, "features of the block are read at each transition")

    def step(self, nodes: list[int], at: Selection) -> bool:
        self.proposal.block, self.proposal.proposer = in_order(self.model, nodes), self.proposer
        try:
            moved = self._moves.step(self.proposal.block, at)
        except Outside:
            moved = False
        self._count(moved)
        return moved

    def _decide(self, weight: Weight) -> bool:
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
            self.warn(f"compiled_mh: the data lie outside what the prior draws for {name}: it proposes by its edge")
