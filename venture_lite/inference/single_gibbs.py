"""`gibbs` of single choices by plans: what the assignments of mixtures are made by.

The candidates, their order, the draws and the decision are those of the interpreter (`gibbs.py`); only the way to the
weights is another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from venture_lite.errors import VentureError
from venture_lite.inference.enumeration import MOST_CANDIDATES, draw_candidate, present_first, support_of
from venture_lite.trace.directives import Model
from venture_lite.trace.preview import Draws, Preview, Unplanned
from venture_lite.trace.reassign import CHOOSING, Reassignment, plans_of

MOST_MISSES = 8
"""A site of which so many more choices had no plan than had one is not tried again."""


class SingleGibbs:
    """Draws single choices from their conditional distributions, where they have plans."""

    def __init__(self, model: Model, scope: Any, block_count: Callable[[], int] | None) -> None:
        self.model = model
        self.scope = scope
        self.block_count = block_count
        # absorbing choices weighed
        self.rows = 0
        # whether the last move made no choice come or go
        self.quiet = False
        self.plans = plans_of(model)
        self._misses: dict[int, int] = {}

    def step(self, node: int, key: Any) -> bool | None:
        """Whether the choice changed; None where there is no plan, and nothing was done."""
        site = node >> 32
        misses = self._misses.get(site, 0)
        if misses >= MOST_MISSES:
            return None
        generator = self.model.trace.rng.bit_generator
        state = generator.state
        try:
            plan = self.plans.plan(node, self._draws(key))
            value, preview = self._drawn(plan)
        except (Unplanned, VentureError):
            # An error is located where the interpreter meets it. It draws what was drawn here: other draws instead of
            # those that have no plan would no longer be from their distribution.
            generator.state = state
            self._misses[site] = misses + 1
            return None
        self._misses[site] = max(0, misses - 1)
        if value is plan.old:
            return False
        self.quiet = plan.is_quiet()
        plan.apply(value, preview)
        return True

    def _draws(self, key: Any) -> Draws:
        """What may be drawn along with a block: in `default` every choice is a block, and 'all' has them all."""
        return Draws(self.scope == "default" and (key == "all" or self.block_count is not None), self.scope)

    def _drawn(self, plan: Reassignment) -> tuple[Any, Preview | None]:
        """A value from the conditional distribution, with what it brings about."""
        for code, _ in plan.dying():
            for slot in code.steps:
                if code.slots[slot].kind in CHOOSING:
                    plan.draws.refuse(code, slot)
        with plan:
            support = support_of(plan.operator, plan.arguments)
            if support is None or len(support) > MOST_CANDIDATES:
                raise Unplanned
            values = present_first(plan.operator, support, plan.old)
            weighed = [plan.weigh(value) for value in values]
        self.rows += plan.terms * len(values)
        chosen = draw_candidate([weight for weight, _ in weighed], self.model.trace.rng.random())
        return values[chosen], weighed[chosen][1]
