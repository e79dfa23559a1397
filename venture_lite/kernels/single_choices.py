"""Moves of single choices that name families, by plans: the assignments of mixtures.

Plans are tried while they are found, and given up where they are not. Candidates, proposals, fresh draws and decisions
are those of the interpreter, in the same order; only the way to the weights is another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from venture_lite.errors import VentureError
from venture_lite.interpreter.candidates import MOST_CANDIDATES, draw_candidate, present_first, support_of
from venture_lite.interpreter.comparison import Check, Uncompared
from venture_lite.interpreter.kernel import Decide
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.weights import Weight
from venture_lite.kernels.preview import Drawable, Preview, Unplanned, drawn_for
from venture_lite.kernels.reassign import Reassignment, plans_of
from venture_lite.values import equal

Made = TypeVar("Made")

Proposed = tuple[Reassignment, Any, Weight, Preview | None]

MOST_MISSES = 8
"""A site of which so many more choices had no plan than had one is not tried again."""


class SingleChoices:
    """The plans of the moves of one kind."""

    def __init__(self, model: Model, kind: str, check: Check) -> None:
        self.plans = plans_of(model)
        self._kind, self._check = kind, check
        self._generator = model.trace.rng.bit_generator
        # site -> how many more of its choices had no plan than had one, where one was tried, in this program
        self.misses = self.plans.misses.setdefault(kind, {})

    def could_plan(self, node: int, draws: Drawable) -> bool:
        """Whether the choice has a plan in this state; the moves that it has none for are left to the interpreter."""
        state = self._generator.state
        try:
            self.plans.plan(node, draws)
        except (Unplanned, VentureError):
            return False
        finally:
            self._generator.state = state
        return True

    def attempt(self, node: int, draws: Drawable, use: Callable[[Reassignment], Made]) -> Made | None:
        """What is made of the choice's plan, or None where there is none for all that it takes. Then the generator is
        as before, so that the interpreter draws what was drawn: other draws in place of those that have no plan would
        no longer be from their distribution. An error, too, is located where the interpreter meets it. Raises
        Uncompared."""
        site = node >> 32
        misses = self.misses.get(site, 0)
        if misses >= MOST_MISSES:
            return None
        state = self._generator.state
        try:
            plan = self.plans.plan(node, draws)
            if not self._check.believes((self._kind, site, *[part.shape for part in plan.parts])):
                raise Unplanned
            found = use(plan)
        except Uncompared:
            self._generator.state = state
            raise
        except (Unplanned, VentureError):
            self._generator.state = state
            self.misses[site] = misses + 1
            return None
        self.misses[site] = max(0, misses - 1)
        return found


class SingleMH:
    """`mh` by resimulation of single choices, where they have plans."""

    def __init__(self, model: Model, check: Check) -> None:
        # absorbing choices weighed
        self.rows = 0
        self.choices = SingleChoices(model, "mh", check)

    def draws(self, at: Selection) -> Drawable:
        """Which new choices a move may draw: where the block was drawn, nothing may come or go that changes how many
        there are to draw from."""
        named = at.model.trace.named
        return Drawable(at.is_drawn and at.scope == "default", at.scope if at.is_drawn else None, named)

    def step(self, node: int, at: Selection, decide: Decide) -> bool | None:
        """Whether the proposal was accepted; None where there is no plan, and nothing was done. Raises Uncompared."""
        found = self.choices.attempt(node, self.draws(at), self._proposed)
        if found is None:
            return None
        plan, value, weight, preview = found
        self.rows += 2 * plan.terms
        accepted = decide(weight)
        if accepted and value is not plan.old:
            plan.apply(value, drawn_for(preview))
        return accepted

    def _proposed(self, plan: Reassignment) -> Proposed:
        """A value from the choice's own distribution, the log ratio of what absorbs, and what it brings about."""
        plan.refuse_draws_that_go()
        with plan:
            value = plan.simulate()
            if equal(value, plan.old):
                if plan.dying:
                    # what went would be made anew
                    raise Unplanned
                return plan, plan.old, Weight(), None
            new, preview = plan.weigh(value, counts=False)
            plan.refuse_draws_after_draws_that_go([preview])
            old = plan.present
        return plan, value, new.minus(old), preview


class SingleGibbs:
    """`gibbs` of single choices, where they have plans."""

    def __init__(self, model: Model, check: Check) -> None:
        self.model = model
        # absorbing choices weighed
        self.rows = 0
        # whether the last move made no choice come or go
        self.quiet = False
        # of the candidates of the last move
        self.weights: list[Weight] = []
        self.choices = SingleChoices(model, "gibbs", check)

    def draws(self, at: Selection) -> Drawable:
        """Which new choices a move may draw."""
        # in `default` every choice is a block, and 'all' has them all
        is_all = isinstance(at.key, str) and at.key == "all"
        return Drawable(at.scope == "default" and (is_all or at.is_drawn), at.scope, at.model.trace.named)

    def step(self, node: int, at: Selection) -> bool | None:
        """Whether the choice changed; None where there is no plan, and nothing was done. Raises Uncompared."""
        found = self.choices.attempt(node, self.draws(at), self._drawn)
        if found is None:
            return None
        plan, value, preview = found
        if value is plan.old:
            return False
        self.quiet = plan.is_quiet()
        plan.apply(value, drawn_for(preview))
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
            plan.refuse_draws_after_draws_that_go([preview for _, preview in weighed])
        self.weights = [weight for weight, _ in weighed]
        self.rows += plan.terms * len(values)
        chosen = draw_candidate(self.weights, self.model.trace.rng.random())
        return plan, values[chosen], weighed[chosen][1]
