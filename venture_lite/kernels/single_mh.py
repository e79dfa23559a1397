"""`mh` by resimulation of single choices that name families, by plans: the assignments of mixtures.

Proposals, fresh draws and the decision are those of the interpreter, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.weights import Weight
from venture_lite.kernels.preview import Drawable, Preview, Unplanned
from venture_lite.kernels.reassign import Reassignment
from venture_lite.kernels.single_choices import SingleChoices
from venture_lite.values import equal

Proposed = tuple[Reassignment, Any, Weight, Preview | None]


class SingleMH:
    """Transitions of single choices, where they have plans."""

    def __init__(self, model: Model, decide: Callable[[Weight], bool]) -> None:
        self.decide = decide
        # absorbing choices weighed
        self.rows = 0
        self.choices = SingleChoices(model)
        self._counts_blocks = False

    def draws(self, at: Selection) -> Drawable:
        """Which new choices a move may draw."""
        return Drawable(at.is_drawn and at.scope == "default", at.scope if at.is_drawn else None)

    def step(self, node: int, at: Selection) -> bool | None:
        """Whether the proposal was accepted; None where there is no plan, and nothing was done."""
        # where the block was drawn, nothing may come or go that changes how many there are to draw from
        self._counts_blocks = at.is_drawn
        found = self.choices.attempt(node, self.draws(at), self._proposed)
        if found is None:
            return None
        plan, value, weight, preview = found
        self.rows += 2 * plan.terms
        accepted = self.decide(weight)
        if accepted and value is not plan.old:
            plan.apply(value, preview)
        return accepted

    def _proposed(self, plan: Reassignment) -> Proposed:
        """A value from the choice's own distribution, the log ratio of what absorbs, and what it brings about."""
        if self._counts_blocks:
            plan.refuse_draws_that_go()
        with plan:
            value = plan.simulate()
            if equal(value, plan.old):
                if plan.dying:
                    # what went would be made anew
                    raise Unplanned
                return plan, plan.old, Weight(), None
            new, preview = plan.weigh(value, counts=False)
            old = plan.present
        return plan, value, new.minus(old), preview
