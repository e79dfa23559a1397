"""Plans for moves of single choices: tried while they are found, given up where they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from venture_lite.errors import VentureError
from venture_lite.interpreter.model import Model
from venture_lite.kernels.preview import Drawable, Unplanned
from venture_lite.kernels.reassign import Reassignment, plans_of

Made = TypeVar("Made")

MOST_MISSES = 8
"""A site of which so many more choices had no plan than had one is not tried again."""


class SingleChoices:
    """The plans of one engine's moves."""

    def __init__(self, model: Model) -> None:
        self.plans = plans_of(model)
        self._generator = model.trace.rng.bit_generator
        # site -> how many more of its choices had no plan than had one, where one was tried
        self.misses: dict[int, int] = {}

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
        no longer be from their distribution. An error, too, is located where the interpreter meets it."""
        site = node >> 32
        misses = self.misses.get(site, 0)
        if misses >= MOST_MISSES:
            return None
        state = self._generator.state
        try:
            found = use(self.plans.plan(node, draws))
        except (Unplanned, VentureError):
            self._generator.state = state
            self.misses[site] = misses + 1
            return None
        self.misses[site] = max(0, misses - 1)
        return found
