"""What a kernel is: something that moves the blocks of a selection, and counts what came of it.

A transition of Metropolis and Hastings is a `Move`, a proposal and a decision; `Interpreted` makes it on the trace, and
is what such a transition means. Kernels that are no such move, as `gibbs` is, say themselves what they do to a block.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from venture_lite.errors import Span, VentureError
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.impossible import first_outside, rejects
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.regenerate import Proposal
from venture_lite.interpreter.scaffold import Builder, absorbing_count
from venture_lite.interpreter.selection import Selection, Selector
from venture_lite.interpreter.tally import Tally
from venture_lite.interpreter.weights import NEVER, Weight
from venture_lite.trace.trace import Trace

Decide = Callable[[Weight], bool]
"""The weight that the new state has over the old one -> whether the block moves there."""


COLUMNS, ROWS = "columns", "rows by the interpreter"
"""The ways of transitions: over columns, by what was made for the kind of block, or row by row."""


@dataclass(frozen=True, slots=True)
class Course:
    """The way that a kernel takes with a block, as of a state: most of its transitions are made so."""

    # COLUMNS or ROWS, or what else there is to say where nothing moves
    way: str
    how: str | None = None
    # why it is no faster one, and the expression at which that shows
    reason: str | None = None
    place: Span | None = None


class Kernel(Protocol):
    """What an action that moves choices is compiled to."""

    @property
    def rows(self) -> int:
        """Evaluations of rows so far."""

    def details(self) -> Mapping[str, float]:
        """What else there is to say of the transitions so far, by name."""

    def course(self, nodes: list[int], at: Selection) -> Course:
        """The way that it takes with a block, at which a selection stands; nothing changes. Raises KernelError where it
        cannot move the block."""

    def run(self, selection: Selection, times: int, tally: Tally) -> int:
        """Make up to so many transitions, of a sweep as many on each block; how many were made. The trace is settled
        then, and after an error or Ctrl-C it is as the last whole transition left it."""


class BlockKernel(ABC):
    """A kernel that moves one block after the other, as most do: `step` moves one."""

    # whether a move begins in free coordinates, which a choice outside its own support has none of: such a choice is
    # first drawn from its distribution
    starts_inside = False
    # whether `refuse` looks at the choices of each block together
    refuses_blocks = False
    # whether what it leaves is not quite the posterior, so that draws are marked
    is_approximate = False
    # what there is to say of the last transition along a gradient, by ArviZ's names; None for kernels without one
    transition: Mapping[str, float] | None = None

    def __init__(self, model: Model) -> None:
        self.model = model
        # whether the choices that it may move were told to it, and whether it has looked whether it can move them
        self._begun = self._looked = False

    @property
    def rows(self) -> int:
        """Evaluations of rows so far."""
        return 0

    def details(self) -> Mapping[str, float]:
        """What else there is to say of the transitions so far, by name."""
        return {}

    def begin(self, nodes: list[int]) -> None:  # noqa: B027
        """The kernel is about to run for the first time; these are the choices that it may move."""

    def refuse(self, nodes: list[int]) -> None:  # noqa: B027
        """Raises KernelError, before anything moves, where choices cannot be moved: one of each kind, or a block."""

    def inspect(self, selection: Selection) -> bool:
        """Let `refuse` look at all that a selection may move; whether there was a scope to look at."""
        for nodes in selection.samples(self.refuses_blocks):
            # of a block that does not exist there is nothing to see
            if nodes:
                self.refuse(nodes)
        return selection.scope in selection.model.trace.scopes

    def look(self, selection: Selection) -> None:
        """Before it first runs, see what it is to move. Raises KernelError where `refuse` does."""
        if self._looked:
            return
        if not self._begun and _says(self, "begin"):
            self.begin(selection.everything())
        self._begun = True
        self._looked = not _says(self, "refuse", "inspect") or self.inspect(selection)

    def course(self, nodes: list[int], at: Selection) -> Course:
        """The way that it takes with a block, at which a selection stands. Raises KernelError as `refuse` does."""
        self.refuse(nodes)
        return Course(ROWS)

    @abstractmethod
    def step(self, nodes: list[int], at: Selection) -> bool:
        """One transition of the block at which a selection stands; whether it was accepted. An error leaves the trace
        as it was."""

    def run(self, selection: Selection, times: int, tally: Tally) -> int:
        """Make up to so many transitions, of a sweep as many on each block; how many were made."""
        before = tally.transitions
        step = self._step_from_inside if self.starts_inside else self.step
        with tally.task(times):
            for nodes in selection.blocks(times, tally):
                tally.count(step(nodes, selection))
        return tally.transitions - before

    def _step_from_inside(self, nodes: list[int], at: Selection) -> bool:
        outside = first_outside(self.model, nodes)
        if outside is None:
            return self.step(nodes, at)
        anew = Interpreted(self.model, Move(Resimulation(self.model), Metropolis(self.model)))
        return anew.step([outside], Selection(self.model, "default", Selector("key"), outside))


def _says(kernel: BlockKernel, *methods: str) -> bool:
    """Whether a kernel has something of its own to say there: to tell it of every choice takes as long as a sweep."""
    return any(getattr(type(kernel), method) is not getattr(BlockKernel, method) for method in methods)


class Drawing(BlockKernel):
    """A kernel that draws a block from its conditional distribution, by enumeration."""

    # whether other choices may have come or gone with the last step
    restructured = False

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        # of the candidates of the last step
        self.weights: list[Weight] = []


# ------------------------------------------------------------------------------------------ Metropolis and Hastings


@dataclass(frozen=True, slots=True)
class Move:
    """All of Metropolis and Hastings: where a block's new values come from, and whether they are taken."""

    proposal: Proposal
    decide: Decide
    # whether the decision looks at the new state, which then has to stand
    looks: bool = False
    # whether a state of probability zero is refused without a question; the present state is possible
    refuses_impossible: bool = False


class Metropolis:
    """Accept with the probability that the weight gives; states with fewer impossible terms always win."""

    def __init__(self, model: Model) -> None:
        self._random = model.trace.rng.random

    def __call__(self, weight: Weight) -> bool:
        u = self._random()
        if weight.impossible:
            return weight.impossible < 0
        return weight.total >= 0.0 or u < math.exp(weight.total)


class Resimulation:
    """A proposal from the choice's own distribution, given its parents' new values."""

    counts = False
    key = "prior"

    def __init__(self, model: Model) -> None:
        self.trace = model.trace

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """Nothing depends on the old state."""

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        return simulate_anew(self.trace, node, operator, arguments), 0.0

    def formula(self, over: Any, rng: Any, record: Any, old: Any, before: Any, arguments: Any) -> Any:
        if record.start is not None or record.sampler is None:
            return None
        return over(record.sampler)(rng, *arguments), 0.0


class Interpreted(BlockKernel):
    """Transitions by a move on the trace (Chen et al. 2014, Algorithm 1), for any block and any proposal."""

    rows = 0

    def __init__(self, model: Model, move: Move) -> None:
        super().__init__(model)
        self.move = move

    def step(self, nodes: list[int], at: Selection) -> bool:
        model, proposal = self.model, self.move.proposal
        scaffold = Builder(model.trace).build(nodes)
        # where edges stay, no block comes or goes
        blocks = at.drawn_from() if scaffold.edges else 1
        try:
            with model.transaction() as change:
                weighed = absorbing_count(model.trace, scaffold)
                proposal.prepare(model.trace, scaffold.principals)
                old = model.regenerator.detach(scaffold, proposal.counts)
                weight = model.regenerator.regenerate(scaffold, proposal).minus(old)
                self.rows += weighed
                if scaffold.edges:
                    weight.total += math.log(blocks) - math.log(at.drawn_from())
                accepted = self.move.decide(weight)
                if accepted:
                    change.keep()
            return accepted
        except VentureError as error:
            if not rejects(model, error, model.regenerator.touched(scaffold)):
                raise
            return self.move.decide(Weight(NEVER))
