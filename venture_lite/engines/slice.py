"""`slice`: slice sampling with stepping out and shrinking, one coordinate at a time (Neal 2003, figures 3 and 5).

WIDTH is measured in the unconstrained coordinate of a choice, as the steps of `'drift` are: the logarithm of a positive
value, the logit of one between bounds. The density there carries the Jacobian. A transition passes once over the
block: every coordinate of every choice, in the order of their addresses, on to the next choice that exists now.

What a candidate brings into being is drawn for it from its distribution. That is exact: stepping out and shrinking look
at the same points, whether the move goes there or back, and what is drawn at each of them is as probable either way.
"""

from __future__ import annotations

from venture_lite.blocks.coordinates import Coordinate, dimensions
from venture_lite.blocks.distributions import refuse_discrete
from venture_lite.blocks.slices import SliceWidth, shrink, stepped_out
from venture_lite.engines.adaptation import LEAST_BURN, WarmUp, Widths, tuned
from venture_lite.engines.weighted_labels import WeightedLabels
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part
from venture_lite.interpreter.kernel import BlockKernel, Course, Move
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection, in_order, order_of
from venture_lite.interpreter.weights import Weight
from venture_lite.kernels.compiled import kernel
from venture_lite.values import show


class Slice(BlockKernel):
    """Transitions of one `slice` action."""

    starts_inside = True
    # by which this action's candidates were weighed; others have the same candidates
    rows = 0

    def __init__(self, program: InferenceProgram, width: float, most_steps: int, burn: int = 0) -> None:
        """Widths are tuned for `burn` runs of the action's loop, from the one given."""
        super().__init__(program.model)
        model = program.model
        self._draws = program.draws
        self._widths, self._warm_up = Widths(width), WarmUp(burn)
        self.width, self.most_steps = width, most_steps
        self._candidates = model.kept.learned(Candidates, model)

    def details(self) -> dict[str, float]:
        """By name, for the statistics of the kernel."""
        return {"width": self._widths.mean()} if self._warm_up.burn and self._warm_up.runs else {}

    def refuse(self, nodes: list[int]) -> None:
        refuse_discrete("slice", "gibbs, or mh")(self.model, nodes)

    def course(self, nodes: list[int], at: Selection) -> Course:
        """That of the first choice which has no plan, if there is one: a slice moves them one after the other."""
        self.refuse(nodes)
        courses = [self._candidates.kernel.course([node], at) for node in nodes]
        return next((course for course in courses if course.reason is not None), courses[0])

    def step(self, nodes: list[int], at: Selection) -> bool:
        """One pass over the block; whether anything moved."""
        moved = False
        if self._warm_up.burn:
            self._warm_up.begin(at)
            self._draws.mark(self, self._warm_up.left)
        waiting = in_order(self.model, nodes)
        while waiting:
            node, *waiting = waiting
            structure = self.model.trace.structure_stamp()
            self.refuse([node])
            for index in range(dimensions(self.model.trace, node)):
                before = self._candidates.kernel.rows
                moved |= self._update(node, index, at)
                self.rows += self._candidates.kernel.rows - before
            if self.model.trace.structure_stamp() != structure:
                done = order_of(self.model, node)
                now = in_order(self.model, at.members_now())
                waiting = [other for other in now if order_of(self.model, other) > done]
        return moved

    def _update(self, node: int, index: int, at: Selection) -> bool:
        """Draw one coordinate from the slice below the current state's density."""
        rng, candidates = self.model.trace.rng, self._candidates
        candidates.coordinate.stand_at(node, index)
        start, width = candidates.coordinate.start, self._width(node, index)
        candidates.level = -rng.standard_exponential()
        left = start - width * rng.random()
        left, right = stepped_out(
            rng, left, width, self.most_steps, lambda end: candidates.lie_inside(end, at, moves=False)
        )
        moved = shrink(rng, left, right, start, lambda candidate: candidates.lie_inside(candidate, at, moves=True))
        if self._warm_up.burn and self._warm_up.is_on:
            self._widths.learn(node, index, candidates.coordinate.at - start if moved else 0.0)
        return moved

    def _width(self, node: int, index: int) -> float:
        return self._widths.of(node, index, self._warm_up.is_on) if self._warm_up.burn else self.width


class Candidates:
    """Puts one coordinate at candidates, each weighed against the slice. A model has one, whose kernel has learned the
    blocks that it met."""

    def __init__(self, model: Model) -> None:
        self.model = model
        # the coordinate that is being moved
        self.coordinate = Coordinate(model.trace)
        self.kernel = kernel(model, Move(self.coordinate, self._decide))
        # the slice: log weights, relative to the current state's, above this
        self.level = 0.0
        # whether the last candidate lay in the slice, and whether one that does is to be moved to
        self._inside = False
        self._moves = False

    def lie_inside(self, candidate: float, at: Selection, moves: bool) -> bool:
        """Whether a candidate lies in the slice; the coordinate moves there if it does and is to."""
        self.model.poll()
        self.coordinate.at, self._moves = candidate, moves
        self.kernel.step([self.coordinate.node], at)
        return self._inside

    def _decide(self, weight: Weight) -> bool:
        self._inside = weight.impossible < 0 or (weight.impossible == 0 and weight.total > self.level)
        return self._inside and self._moves


def _compile_slice(program: InferenceProgram, given: ActionForm) -> Part:
    width, most_steps = given.positive("WIDTH"), given.some("MAX-STEPS")
    if "weights" in given:
        splits = given.count("PROPOSALS", 1) if "splits" in given else 0
        engine = WeightedLabels(program.model, SliceWidth(width, most_steps), splits)
        before = f"{splits} splits and merges, then " if splits else ""
        move = f"{before}slices with labels summed out given the weights of their classes, then the labels"
        return given.kernel(move, engine)
    burn = given.count("BURN", LEAST_BURN) if "adapt" in given else 0
    move = f"slices of width {show(width)}{tuned(burn)}, at most {most_steps} of them"
    return given.kernel(move, Slice(program, width, most_steps, burn))


SLICE = Action(
    "slice",
    (
        "(slice SCOPE BLOCK WIDTH MAX-STEPS ['adapt BURN] T)",
        "(slice SCOPE BLOCK WIDTH MAX-STEPS 'weights ['splits PROPOSALS] T)",
    ),
    "T passes of slice sampling over a block, coordinate by coordinate: intervals of WIDTH, in the unconstrained "
    "coordinate, widened to at most MAX-STEPS times that. 'adapt tunes the width of each coordinate in the first BURN "
    "passes, which do not count as draws. With 'weights the block has the labels of one make_crp, which are summed out "
    "meanwhile; 'splits proposes to split and merge their classes first.",
    _compile_slice,
)
