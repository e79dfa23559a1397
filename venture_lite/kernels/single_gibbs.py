"""`gibbs` of single choices by plans: what the assignments of mixtures are made by.

The candidates, their order, the draws and the decision are those of the interpreter (`gibbs.py`); only the way to the
weights is another.
"""

from __future__ import annotations

from typing import Any

from venture_lite.interpreter.candidates import MOST_CANDIDATES, draw_candidate, present_first, support_of
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.weights import Weight
from venture_lite.kernels.preview import Drawable, Preview, Unplanned
from venture_lite.kernels.reassign import Reassignment
from venture_lite.kernels.single_choices import SingleChoices


class SingleGibbs:
    """Draws single choices from their conditional distributions, where they have plans."""

    def __init__(self, model: Model) -> None:
        self.model = model
        # absorbing choices weighed
        self.rows = 0
        # whether the last move made no choice come or go
        self.quiet = False
        # of the candidates of the last move
        self.weights: list[Weight] = []
        self.choices = SingleChoices(model)

    def draws(self, at: Selection) -> Drawable:
        """Which new choices a move may draw."""
        # in `default` every choice is a block, and 'all' has them all
        is_all = isinstance(at.key, str) and at.key == "all"
        return Drawable(at.scope == "default" and (is_all or at.is_drawn), at.scope)

    def step(self, node: int, at: Selection) -> bool | None:
        """Whether the choice changed; None where there is no plan, and nothing was done."""
        found = self.choices.attempt(node, self.draws(at), self._drawn)
        if found is None:
            return None
        plan, value, preview = found
        if value is plan.old:
            return False
        self.quiet = plan.is_quiet()
        plan.apply(value, preview)
        return True

    def _drawn(self, plan: Reassignment) -> tuple[Reassignment, Any, Preview | None]:
        """A value from the conditional distribution, with what it brings about."""
        plan.refuse_draws_that_go()
        with plan:
            support = support_of(plan.operator, plan.arguments)
            if support is None or len(support) > MOST_CANDIDATES:
                raise Unplanned
            values = present_first(plan.operator, support, plan.old)
            weighed = [plan.weigh(value) for value in values]
        self.weights = [weight for weight, _ in weighed]
        self.rows += plan.terms * len(values)
        chosen = draw_candidate(self.weights, self.model.trace.rng.random())
        return plan, values[chosen], weighed[chosen][1]
