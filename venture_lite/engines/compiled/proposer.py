"""What was learned to be proposed, for blocks of a kind, and all that goes by one name."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from venture_lite.blocks.worlds import Blanket, Features, PortKey, names_of
from venture_lite.engines.compiled.differences import another_block, changed
from venture_lite.engines.compiled.frame import BlockFrame, Position
from venture_lite.engines.compiled.ranges import Range
from venture_lite.engines.compiled.report import KindReport, ProposerReport
from venture_lite.errors import KernelError
from venture_lite.interpreter.model import Model
from venture_lite.networks.conditional import Conditional, ExampleDensity
from venture_lite.networks.pooled import NAMELESS, InputNames

MOST_LEARNED_BODY = 20
"""Numbers of a body that are learned; a larger one is normal in its frame."""

SiteTexts = tuple[str, ...]
"""The choices of a block, by the names of their sites."""


@dataclass(frozen=True, slots=True)
class KindProposer:
    """Proposals for the blocks whose choices stand at the same sites."""

    sites: SiteTexts
    frame: BlockFrame
    # ports of which rows are read, and of which derivatives are
    ports: tuple[PortKey, ...]
    slopes: tuple[PortKey, ...]
    # None where the frame is all there is
    network: Conditional | None
    # bounds of all but the rarest worlds, of fixed inputs and of those of each port
    ranges: tuple[Range, ...]
    # what read the blocks that were trained on
    known: tuple[PortKey, ...]
    # how a block is read: in columns, where structure stays, else in the state at hand: at its mode, at its centre or,
    # a single choice, at several points
    reading: str = "columns"
    # where heads scale other numbers of choices than in the worlds: of each head's coordinate what `of_more` makes of
    # its density; None of others
    more: tuple[tuple[float, float, float] | None, ...] = ()
    # what is read, for a person, where the kind was trained; ports that are read no more among it
    names: InputNames = NAMELESS

    @property
    def body_is_learned(self) -> bool:
        return self.network is not None and len(self.network.heads) > sum(self.frame.widths)

    @property
    def learns(self) -> bool:
        """Whether there is anything for a network."""
        return bool(self.frame.heads) or self.frame.size <= MOST_LEARNED_BODY

    def corrected(self, mean: np.ndarray, root: np.ndarray) -> KindProposer:
        """Without a network, in a frame in which numbers have another mean and covariance."""
        before, factor = self.frame.mean, self.frame.root
        if before is not None and factor is not None:
            mean, root = before + factor @ mean, factor @ root
        return replace(self, frame=BlockFrame(self.frame.positions, mean, root), network=None, ports=(), ranges=())

    @property
    def parameters(self) -> int:
        return 0 if self.network is None else self.network.parameters

    def fixed(self, features: Features) -> np.ndarray:
        """Inputs (W, I) beside the rows of ports."""
        none = np.zeros((len(features.fixed), 2 * self.frame.size))
        return np.concatenate((features.fixed, *[features.slopes.get(key, none) for key in self.slopes]), axis=1)

    def fits(self, features: Features) -> bool:
        """Whether a state has as many inputs as the network reads: arguments may be lists of any length."""
        return self.network is None or self.fixed(features).shape[1] == len(self.network.layout.names.fixed)

    def given(self, features: Features) -> ExampleDensity | None:
        """The density for the state whose features these are; None where nothing was to be learned."""
        if self.network is None:
            return None
        return self.network.given(self.fixed(features)[0], [self.rows(features, key)[0] for key in self.ports])

    def lie_outside(self, features: Features) -> bool:
        """Whether some input of a state lies beyond what all but the rarest worlds have."""
        if self.network is None:
            return False
        read = [self.fixed(features), *[self.rows(features, key)[0] for key in self.ports]]
        return any(key not in self.known for key in features.ports) or any(
            bool((inputs < low).any() or (inputs > high).any())
            for inputs, (low, high) in zip(read, self.ranges, strict=True)
        )

    def rows(self, features: Features, key: PortKey) -> np.ndarray:
        """(W, N, F), none where nothing reads the block so."""
        assert self.network is not None
        found = features.ports.get(key)
        width = len(self.network.layout.names.ports[self.ports.index(key)][1])
        if found is None or found.shape[2] != width:
            return np.zeros((len(features.fixed), 0, width))
        return found


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
    # sites of blocks that came up in worlds too rarely to be learned
    rare: SiteTexts = ()

    @property
    def reads_states(self) -> bool:
        """Whether it was trained on worlds whose structure differs: blocks may come up of which it knows nothing."""
        return any(kind.reading != "columns" for kind in self.kinds.values())

    def refuse(self, model: Model, block: Sequence[int]) -> None:
        """Raises KernelError for a block that another program makes."""
        known = {*self.rare, *itertools.chain.from_iterable(self.kinds)}
        if not self.reads_states or not known.issuperset(names_of(model, block)):
            self.kind_of(model, block)

    @property
    def report(self) -> ProposerReport:
        return ProposerReport(self.name, self.reports)

    @property
    def parameters(self) -> int:
        return sum(kind.parameters for kind in self.kinds.values())

    def kind_of(self, model: Model, block: Sequence[int]) -> KindProposer:
        """Raises KernelError for a block of which no kind was compiled."""
        if not self.kinds:
            raise KernelError(f"there is no proposer {self.name}", hint="compile makes one")
        here = names_of(model, block)
        if here not in self.kinds and (alike := self._of_other_size(here)) is not None:
            self.kinds[here] = alike
        if here not in self.kinds:
            kinds = {names: [each.distribution for each in kind.frame.positions] for names, kind in self.kinds.items()}
            raise self._refusal(model, block[0], another_block(model, block, kinds))
        kind = self.kinds[here]
        for node, each in zip(block, kind.frame.positions, strict=True):
            if difference := changed(model, node, each.distribution, len(each.centre)):
                raise self._refusal(model, node, difference)
        return kind

    def _of_other_size(self, here: SiteTexts) -> KindProposer | None:
        """What was learned for blocks with the same heads, and other numbers of choices at the sites of a body of which
        the network reads sums alone."""
        for kind in self.kinds.values():
            if kind.body_is_learned or kind.frame.mean is not None or set(here) != set(kind.sites):
                continue
            of = dict(zip(kind.sites, kind.frame.positions, strict=True))
            body = {kind.sites[at] for at in kind.frame.body}
            heads = [name for name in here if of[name].is_head]
            if heads != [kind.sites[at] for at in kind.frame.heads]:
                continue
            more: list[tuple[float, float, float] | None] = []
            for position in kind.frame.head_positions:
                name, those = position.scales, [None] * position.width
                more += [_of_more(position, kind.sites.count(name), here.count(name))] if name in body else those
            frame = BlockFrame([of[name] for name in here])
            return replace(kind, sites=here, frame=frame, more=tuple(more), ranges=kind.ranges and _where_varied(kind))
        return None

    def refuse_ports(self, blanket: Blanket, kind: KindProposer) -> None:
        """Raises KernelError where something reads the block that nothing in the worlds was."""
        for port in blanket.ports:
            if port.key not in kind.known:
                reason = f"for another program: {port.key} did not read the block"
                raise self._refusal(blanket.model, blanket.block[0], reason)

    def _refusal(self, model: Model, node: int, reason: str) -> KernelError:
        code, slot, _ = model.trace.decode(node)
        return KernelError(
            f"proposer {self.name} was compiled {reason}", code.slots[slot].span, f"compile {self.name} again"
        )


def _of_more(scale: Position, learned: int, here: int) -> tuple[float, float, float] | None:
    """How the density of a scale of n choices differs where it scales others: its limit is their root mean square, and
    what n that are known say of its logarithm has a variance of 1 / 2 n."""
    unit = float(scale.scale[0])
    return (-float(scale.centre[0]) / unit, learned / here, (0.5 / learned) ** 0.5 / unit) if learned != here else None


def _where_varied(kind: KindProposer) -> tuple[Range, ...]:
    """The ranges without bounds of what was the same in all worlds, as the numbers of choices are."""
    low, high = kind.ranges[0]
    still = low == high
    return (np.where(still, -np.inf, low), np.where(still, np.inf, high)), *kind.ranges[1:]
