"""The kernel: transitions that propose what was learned and accept by the exact weight.

The weight takes the density of the whole mixture, forward and backward; both come from one reading of the state, since
nothing that the network reads depends on where the block is. A block of several choices with a body is moved by its
density in free coordinates, as `hmc` moves it; any other by its form or the interpreter, choice by choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.gradients import Densities
from venture_lite.engines.compiled.alone import StraightProposal
from venture_lite.engines.compiled.mixture import MOST_BLANKETS, Outside, are_near
from venture_lite.engines.compiled.proposer import Proposer
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.impossible import first_outside
from venture_lite.interpreter.kernel import COLUMNS, ROWS, BlockKernel, Course, Interpreted, Metropolis, Move
from venture_lite.interpreter.last_state import LastState
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection, in_order
from venture_lite.interpreter.weights import NEVER, Weight
from venture_lite.kernels.compiled import kernel

MOST_WEIGHT = 100.0
"""In the mean of log weights those further from 0 count as this."""
LONG_STAY, ENOUGH, OUTSIDE = 200, 200, 0.05
"""Refusals in a row that are told; transitions after which, and the share from which, inputs beyond the worlds are."""


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
        self.proposal = StraightProposal(model, safe)
        move = Move(self.proposal, self._decide)
        # the interpreter proposes the choices of a block in their order, forms in one of their own
        self._moves, self._in_order = kernel(model, move), Interpreted(model, move)
        self._metropolis = Metropolis(model)
        self._densities = Densities(model, "compiled_mh", warn)
        self._rows = 0
        # blocks whose readers have answered to the interpreter
        self._answered: set[tuple[int, ...]] = set()
        self._left = LastState[Stand](model.trace.journal)
        self._transitions = self._still = self._longest = 0
        self._total, self._largest = 0.0, -math.inf
        self._told = False

    @property
    def proposer(self) -> Proposer:
        return self._known.get(self._name) or Proposer(self._name, None, "", {})

    @property
    def rows(self) -> int:
        return self._rows + self._moves.rows + self._in_order.rows

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
        if not self.proposer.kinds:
            return Course(ROWS, None, "nothing is learned yet")
        if self._density() is not None:
            return Course(COLUMNS, "in the free coordinates of the block")
        if any(np.ndim(self.model.trace.value(node)) for node in nodes):
            return Course(ROWS, None, "a vector is proposed by its coordinates together")
        return self._moves_of_choices().course(self.proposal.block, at)

    def step(self, nodes: list[int], at: Selection) -> bool:
        self.proposal.block, self.proposal.proposer = in_order(self.model, nodes), self.proposer
        self._at = at
        if tuple(nodes) not in self._answered or self.model.answers.always:
            self._answer(tuple(nodes))
        density = self._density()
        try:
            moved = self._stepped(at) if density is None else self._moved(density)
        except Outside:
            moved = False
        self._count(moved)
        return moved

    def _answer(self, block: tuple[int, ...]) -> None:
        if len(self._answered) >= MOST_BLANKETS:
            self._answered.clear()
        self._answered.add(block)
        if not self.proposer.reads_states:
            self.proposal.reader()[0].answer()

    def _stepped(self, at: Selection) -> bool:
        """A transition choice by choice."""
        return self._moves_of_choices().step(self.proposal.block, at)

    def _moves_of_choices(self) -> BlockKernel:
        proposal = self.proposal
        is_single = len(proposal.block) == 1 or proposal.proposer.reads_states
        in_order = not is_single and proposal.reader()[0].discrete_by_prior
        return self._in_order if in_order else self._moves

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
            start = self._left.of(tuple(proposal.block)) or self._weighed(density, density.present())
            backward = proposal.log_mixture(start.free.tolist(), start.prior)
            free = np.array(proposal.drawn())
            end = self._put(density, free)
            if end is not None:
                weight = end.weight.minus(start.weight)
                weight.total += backward - proposal.log_mixture(free.tolist(), end.prior)
            accepted = self._decide(Weight(NEVER) if end is None else weight)
            if accepted:
                change.keep()
        self._left.leave(tuple(proposal.block), end if accepted and end is not None else start)
        return accepted

    def _put(self, density: BlockDensity, free: np.ndarray) -> Stand | None:
        """The block elsewhere; None where the density has no value, or other coordinates are the same place: an angle's
        beyond the seam, or a number's at the end of the floats."""
        self.model.poll()
        try:
            density.put(free)
            if not are_near(density.present().tolist(), free.tolist()):
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
