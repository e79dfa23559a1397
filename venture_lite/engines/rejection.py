"""`rejection`: exact draws of a block from its conditional distribution, by rejection from the prior.

A proposal draws the block and what hangs on it anew; it is kept with probability exp(w - m), where w is the log weight
of all that absorbs the change and m an upper bound of it, whatever the block is (`weight_bounds.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from venture_lite.blocks.inspection import inspected_first
from venture_lite.blocks.weight_bounds import refuse_unbounded_evidence, weight_bound
from venture_lite.engines.mh import Resimulation
from venture_lite.errors import InternalError, VentureError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram, Kernel
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder, Scaffold, absorbing_count
from venture_lite.interpreter.weights import Weight

MANY = 100_000
"""Tries for one draw after which the user is told."""


class Rejection:
    """Transitions of one `rejection` action."""

    def __init__(
        self, model: Model, block_count: Callable[[], int] | None, warn: Callable[[str], None] = lambda text: None
    ) -> None:
        self.model = model
        self.warn = warn
        self.block_count = block_count
        self.proposal = Resimulation(model)
        self.rows = 0

    def step(self, nodes: list[int], key: Any) -> bool:
        """Draw the block from its conditional distribution."""
        model = self.model
        with model.transaction() as change:
            scaffold = Builder(model.trace).build(nodes)
            bound = weight_bound(model, scaffold)
            model.regenerator.detach(scaffold, counts=False)
            # a state with more blocks than these leaves less of its weight to each
            fewest = self._blocks()
            tries = 1
            while not self._try(scaffold, bound, fewest):
                model.poll()
                tries += 1
                if tries == MANY:
                    self.warn(f"rejection: {MANY:,} tries for one draw, and no end; Ctrl-C stops it")
            change.keep()
        return True

    def _try(self, scaffold: Scaffold, bound: float, fewest: int) -> bool:
        """Whether one more proposal is accepted; it stands then."""
        try:
            with self.model.transaction() as change:
                weight = self.model.regenerator.regenerate(scaffold, self.proposal)
                accepted = self._accepts(scaffold, weight, bound, fewest)
                if accepted:
                    change.keep()
            return accepted
        except VentureError as error:
            if not rejects(self.model, error, self.model.regenerator.touched(scaffold)):
                raise
            return False

    def _accepts(self, scaffold: Scaffold, weight: Weight, bound: float, fewest: int) -> bool:
        self.rows += absorbing_count(self.model.trace, scaffold)
        if scaffold.structural:
            # the branches taken may hold other evidence than those before
            refuse_unbounded_evidence(self.model, Builder(self.model.trace).build(scaffold.principals))
        if weight.impossible:
            return False
        excess = weight.total - bound
        if excess > 0.0:
            raise InternalError(f"a log weight of {weight.total} exceeds its bound {bound}")
        excess += math.log(fewest) - math.log(self._blocks())
        return excess > -self.model.trace.rng.standard_exponential()

    def _blocks(self) -> int:
        return max(self.block_count(), 1) if self.block_count is not None else 1

    def refuse(self, model: Model, nodes: list[int]) -> None:
        """Raises KernelError where a block has no bound for what depends on it."""
        weight_bound(model, Builder(model.trace).build(nodes))


def _compile_rejection(program: InferenceProgram, given: ActionForm) -> Kernel:
    scope, selector = given.scope, given.selector
    engine = Rejection(program.model, program.block_counter(scope, selector), program.warn)
    run = program.kernel(given.form, scope, selector, given.count("T"), engine.step, engine)
    return inspected_first(program, scope, selector, given.form, run, engine.refuse, by_block=True)


REJECTION = Action(
    "rejection", ("(rejection SCOPE BLOCK T)",),
    "T exact draws of a block from its conditional distribution: from the prior until one is kept, which takes as many "
    "tries as the data are improbable.", _compile_rejection,
)  # fmt: skip
