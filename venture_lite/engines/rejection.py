"""`rejection`: exact draws of a block from its conditional distribution, by rejection from the prior.

A proposal draws the block and what hangs on it anew; it is kept with probability exp(w - m), where w is the log weight
of all that absorbs the change and m an upper bound of it, whatever the block is (`blocks/weight_bounds.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from venture_lite.blocks.weight_bounds import refuse_unbounded_evidence, weight_bound
from venture_lite.errors import InternalError, VentureError
from venture_lite.inference.program import Action
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.kernel import BlockKernel, Resimulation
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder, Scaffold, absorbing_count
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.weights import Weight

MANY = 100_000
"""Tries for one draw after which the user is told."""


class Rejection(BlockKernel):
    """Transitions of one `rejection` action."""

    refuses_blocks = True
    rows = 0

    def __init__(self, model: Model, warn: Callable[[str], None] = lambda text: None) -> None:
        super().__init__(model)
        self.warn = warn
        self.proposal = Resimulation(model)

    def step(self, nodes: list[int], at: Selection) -> bool:
        """Draw the block from its conditional distribution."""
        model = self.model
        with model.transaction() as change:
            scaffold = Builder(model.trace).build(nodes)
            bound = weight_bound(model, scaffold)
            model.regenerator.detach(scaffold, counts=False)
            # a state with more blocks than these leaves less of its weight to each
            fewest = at.drawn_from()
            tries = 1
            while not self._try(scaffold, bound, fewest, at):
                model.poll()
                tries += 1
                if tries == MANY:
                    self.warn(f"rejection: {MANY:,} tries for one draw, and no end; Ctrl-C stops it")
            change.keep()
        return True

    def _try(self, scaffold: Scaffold, bound: float, fewest: int, at: Selection) -> bool:
        """Whether one more proposal is accepted; it stands then."""
        try:
            with self.model.transaction() as change:
                weight = self.model.regenerator.regenerate(scaffold, self.proposal)
                accepted = self._accepts(scaffold, weight, bound, fewest, at)
                if accepted:
                    change.keep()
            return accepted
        except VentureError as error:
            if not rejects(self.model, error, self.model.regenerator.touched(scaffold)):
                raise
            return False

    def _accepts(self, scaffold: Scaffold, weight: Weight, bound: float, fewest: int, at: Selection) -> bool:
        self.rows += absorbing_count(self.model.trace, scaffold)
        if scaffold.structural:
            # the branches taken may hold other evidence than those before
            refuse_unbounded_evidence(self.model, Builder(self.model.trace).build(scaffold.principals))
        if weight.impossible:
            return False
        excess = weight.total - bound
        if excess > 0.0:
            raise InternalError(f"a log weight of {weight.total} exceeds its bound {bound}")
        excess += math.log(fewest) - math.log(at.drawn_from())
        return excess > -self.model.trace.rng.standard_exponential()

    def refuse(self, nodes: list[int]) -> None:
        """Raises KernelError where a block has no bound for what depends on it."""
        weight_bound(self.model, Builder(self.model.trace).build(nodes))


REJECTION = Action(
    "rejection", ("(rejection SCOPE BLOCK T)",),
    "T exact draws of a block from its conditional distribution: from the prior until one is kept, which takes as many "
    "tries as the data are improbable.",
    lambda program, given: given.kernel(
        "exact draws, by rejection from the prior", Rejection(program.model, program.warn)
    ),
)  # fmt: skip
