"""`mh` by resimulation of single choices that name families, by plans: the assignments of mixtures.

Proposals, fresh draws and the decision are those of the interpreter (`transitions.py`), in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from venture_lite.errors import VentureError
from venture_lite.inference.single_gibbs import MOST_MISSES
from venture_lite.trace.directives import Model
from venture_lite.trace.preview import Draws, Preview, Unplanned
from venture_lite.trace.reassign import CHOOSING, Reassignment, plans_of
from venture_lite.trace.weights import Weight
from venture_lite.values import equal


class SingleMH:
    """Transitions of single choices, where they have plans."""

    def __init__(self, model: Model, scope: Any, counts_blocks: bool, decide: Callable[[Weight], bool]) -> None:
        self.model = model
        self.decide = decide
        # absorbing choices weighed
        self.rows = 0
        self._plans = plans_of(model)
        # where the block was drawn, nothing may come or go that changes how many there are to draw from
        self._counts_blocks = counts_blocks
        self._draws = Draws(counts_blocks and scope == "default", scope if counts_blocks else None)
        # site -> how many more of its choices had no plan than had one
        self._misses: dict[int, int] = {}

    def has_plans(self, node: int) -> bool:
        """Whether choices of this site have had plans."""
        return self._misses.get(node >> 32, MOST_MISSES) < MOST_MISSES

    def step(self, node: int) -> bool | None:
        """Whether the proposal was accepted; None where there is no plan, and nothing was done."""
        site = node >> 32
        misses = self._misses.get(site, 0)
        if misses >= MOST_MISSES:
            return None
        generator = self.model.trace.rng.bit_generator
        state = generator.state
        try:
            plan = self._plans.plan(node, self._draws)
            value, weight, preview = self._proposed(plan)
        except (Unplanned, VentureError):
            # the interpreter draws what was drawn here, and locates an error
            generator.state = state
            self._misses[site] = misses + 1
            return None
        self._misses[site] = max(0, misses - 1)
        self.rows += 2 * plan.terms
        accepted = self.decide(weight)
        if accepted and value is not plan.old:
            plan.apply(value, preview)
        return accepted

    def _proposed(self, plan: Reassignment) -> tuple[Any, Weight, Preview | None]:
        """A value from the choice's own distribution, the log ratio of what absorbs, and what it brings about."""
        going = plan.dying()
        if self._counts_blocks:
            for code, _ in going:
                for slot in code.steps:
                    if code.slots[slot].kind in CHOOSING:
                        self._draws.refuse(code, slot)
        with plan:
            value = self.model.machine.simulate(plan.node, plan.operator, plan.arguments)
            if equal(value, plan.old):
                if going:
                    # what went would be made anew
                    raise Unplanned
                return plan.old, Weight(), None
            new, preview = plan.weigh(value, counts=False)
            old, _ = plan.weigh(plan.old, counts=False)
        return value, new.minus(old), preview
