"""`gibbs` with 'forward: a block of finite choices that form chains, drawn as a whole.

What `gibbs` does to a block by enumerating its states, whose number is a power of its length, forward filtering and
backward sampling do in a time that grows with the length (`blocks/filtering.py`). The draw is from the same conditional
distribution. Where a state is the key of memoized calls, families that no present state leads to are drawn from their
distributions before, and stand as candidates beside those that there are: they carry no evidence, so that the prior is
their conditional distribution. Those that no state leads to afterwards go again. So the block is drawn given a value
for every key, which is exact (an auxiliary variable for each, as in Neal 2000, Algorithm 8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from venture_lite.blocks.chains import StateChains
from venture_lite.interpreter.answers import Differs
from venture_lite.interpreter.candidates import support_of
from venture_lite.interpreter.kernel import COLUMNS, BlockKernel, Course
from venture_lite.interpreter.selection import Selection

MOST_BLOCKS = 64
"""Blocks whose structure is kept."""
MOST_STATES = 256
"""Of a chain that is enumerated as a whole where lanes differ from the interpreter."""


@dataclass(slots=True)
class KnownChains:
    """The chains of a block, as of a state of the trace's structure. Mutable."""

    nodes: list[int]
    chains: StateChains
    stamp: tuple[int, int]


class ForwardGibbs(BlockKernel):
    """Draws of blocks that are chains; by enumeration, where their terms differ from the interpreter's."""

    refuses_blocks = True

    def __init__(self, enumerating: BlockKernel) -> None:
        super().__init__(enumerating.model)
        self._enumerating = enumerating
        self._rows = 0
        # by the first choice of a block
        self._known: dict[int, KnownChains] = {}

    @property
    def rows(self) -> int:
        return self._rows + self._enumerating.rows

    def refuse(self, nodes: list[int]) -> None:
        """Raises KernelError where a block is no set of chains of finite states."""
        self._chains(nodes)

    def course(self, nodes: list[int], at: Selection) -> Course:
        paths = self._chains(nodes).paths
        chains = "one chain" if len(paths) == 1 else f"{len(paths):,} chains"
        how = f"forward filtering, backward sampling, of {chains} of up to {max(map(len, paths)):,} choices"
        return Course(COLUMNS, how)

    def step(self, nodes: list[int], at: Selection) -> bool:
        known = self._chains_of(nodes)
        try:
            with self.model.transaction() as change:
                moved = known.chains.draw()
                self._rows += known.chains.rows
                change.keep()
        except Differs:
            del self._known[nodes[0]]
            return self._enumerated(known.chains.paths, at)
        # which families states find is no part of what is known of the chains
        known.stamp = self.model.trace.structure_stamp()
        return moved

    def _enumerated(self, paths: list[list[int]], at: Selection) -> bool:
        """Draw chains of few states as a whole, and of others one choice after the other."""
        trace, moved = self.model.trace, False
        for path in paths:
            states = math.prod(len(support_of(*trace.application(node)) or ()) for node in path)
            for part in [path] if states <= MOST_STATES else [[node] for node in path]:
                moved = self._enumerating.step(part, at) or moved
        return moved

    def _chains(self, nodes: list[int]) -> StateChains:
        return self._chains_of(nodes).chains

    def _chains_of(self, nodes: list[int]) -> KnownChains:
        stamp = self.model.trace.structure_stamp()
        known = self._known.get(nodes[0])
        if known is None or known.stamp != stamp or known.nodes != nodes:
            self._known.pop(nodes[0], None)
            known = KnownChains(list(nodes), StateChains(self.model, nodes), stamp)
            if len(self._known) >= MOST_BLOCKS:
                del self._known[next(iter(self._known))]
            self._known[nodes[0]] = known
        return known
