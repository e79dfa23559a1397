"""`slice`: slice sampling with stepping out and shrinking, one coordinate at a time (Neal 2003, figures 3 and 5).

WIDTH is measured in the unconstrained coordinate of a choice, as the steps of `'drift` are: the logarithm of a positive
value, the logit of one between bounds. The density there carries the Jacobian. A transition passes once over the
block: every coordinate of every choice, in the order of their addresses, on to the next choice that exists now.

What a candidate brings into being is drawn for it from its distribution. That is exact: stepping out and shrinking look
at the same points, whether the move goes there or back, and what is drawn at each of them is as probable either way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from venture_lite.blocks.coordinates import Coordinate, dimensions
from venture_lite.blocks.distributions import refuse_discrete
from venture_lite.blocks.inspection import inspected_first
from venture_lite.engines.mh import Resimulation
from venture_lite.engines.transitions import Transitions, from_within
from venture_lite.errors import ArgumentError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram, Kernel
from venture_lite.inference.selection import in_order, members_now, order_of
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import Weight


class Slice:
    """Transitions of one `slice` action."""

    def __init__(
        self, model: Model, scope: Any, block_count: Callable[[], int] | None, width: float, most_steps: int
    ) -> None:
        self.model = model
        self.scope = scope
        self.width = width
        self.most_steps = most_steps
        self.transitions = Transitions(model, block_count, self._decide)
        # the slice: log weights, relative to the current state's, above this
        self._level = 0.0
        # whether the last candidate lay in the slice, and whether one that does is to be moved to
        self._inside = False
        self._moves = False

    @property
    def rows(self) -> int:
        return self.transitions.rows

    def step(self, nodes: list[int], key: Any) -> bool:
        """One pass over the block; whether anything moved."""
        moved = False
        waiting = in_order(self.model, nodes)
        while waiting:
            node, *waiting = waiting
            structure = self.model.trace.structure_stamp()
            refuse_discrete("slice", "gibbs, or mh")(self.model, [node])
            for index in range(dimensions(self.model.trace, node)):
                moved |= self._update(node, index)
            if self.model.trace.structure_stamp() != structure:
                done = order_of(self.model, node)
                now = in_order(self.model, members_now(self.model, self.scope, key))
                waiting = [other for other in now if order_of(self.model, other) > done]
        return moved

    def _update(self, node: int, index: int) -> bool:
        """Draw one coordinate from the slice below the current state's density."""
        rng = self.model.trace.rng
        coordinate = Coordinate(self.model.trace, node, index)
        start = coordinate.start
        self._level = -rng.standard_exponential()
        left = start - self.width * rng.random()
        right = left + self.width
        steps = int(self.most_steps * rng.random())
        left = self._step_out(node, coordinate, left, -self.width, steps)
        right = self._step_out(node, coordinate, right, self.width, self.most_steps - 1 - steps)
        while True:
            at = left + rng.random() * (right - left)
            if self._lies_inside(node, coordinate, at, moves=True):
                return at != start
            if at == start or not left < at < right:
                # the interval has shrunk to the current state, but for rounding
                return False
            left, right = self._shrunk(left, right, at, start)

    @staticmethod
    def _shrunk(left: float, right: float, at: float, start: float) -> tuple[float, float]:
        """The part of the interval on the current state's side of a point outside the slice."""
        return (at, right) if at < start else (left, at)

    def _step_out(self, node: int, coordinate: Coordinate, end: float, step: float, most: int) -> float:
        while most > 0 and self._lies_inside(node, coordinate, end, moves=False):
            end += step
            most -= 1
        return end

    def _lies_inside(self, node: int, coordinate: Coordinate, at: float, moves: bool) -> bool:
        self.model.poll()
        coordinate.at, self._moves = at, moves
        self.transitions.step((node,), coordinate)
        return self._inside

    def _decide(self, weight: Weight) -> bool:
        self._inside = weight.impossible < 0 or (weight.impossible == 0 and weight.total > self._level)
        return self._inside and self._moves


def _compile_slice(program: InferenceProgram, given: ActionForm) -> Kernel:
    scope, selector = given.scope, given.selector
    width, most_steps = given.positive("WIDTH"), given.count("MAX-STEPS")
    if not most_steps:
        raise ArgumentError("MAX-STEPS must be 1 or more", given["MAX-STEPS"].span)
    engine = Slice(program.model, scope, program.block_counter(scope, selector), width, most_steps)
    step = from_within(program.model, engine.step, Resimulation(program.model))
    run = program.kernel(given.form, scope, selector, given.count("T"), step, engine)
    return inspected_first(program, scope, selector, given.form, run, refuse_discrete("slice", "gibbs, or mh"))


SLICE = Action(
    "slice", ("(slice SCOPE BLOCK WIDTH MAX-STEPS T)",),
    "T passes of slice sampling over a block, coordinate by coordinate: intervals of WIDTH, in the unconstrained "
    "coordinate, widened to at most MAX-STEPS times that.", _compile_slice,
)  # fmt: skip
