"""`vi`: draws of a normal that is fitted to a block, in its free coordinates (Kucukelbir and others 2017).

The fit is made when the action first runs, to the density of the block given all else as it then stands; each run after
that sets the block to a draw of it. Such draws are approximate, and are marked; how far they may be off is seen from
draws that are weighed with all rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.gradients import Densities
from venture_lite.blocks.minibatch import Minibatch, Minibatches
from venture_lite.blocks.pathfinder import PathNormal, pathfinder
from venture_lite.blocks.variational import FitQuality, FullRank, MeanField, Slope, VariationalNormal, fit, judge
from venture_lite.draws.kernel_summary import EFFICIENCY, IMPOSSIBLE, SHAPE, SLOPE
from venture_lite.draws.presentation import counted
from venture_lite.engines.starts import MOST_CURVED_PATH, come_inside
from venture_lite.errors import KernelError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part
from venture_lite.interpreter.kernel import COLUMNS, BlockKernel, Course
from venture_lite.interpreter.selection import Selection

MOST_FULL = 2000
"""Coordinates up to which a full covariance is fitted: its factor, and what is averaged of it, are D^2 numbers each."""
TRIES = 100
"""Draws of a fit until one has a positive density."""
FIRST_ROWS = 10_000
"""Observations from which a fit by minibatches begins, if these are smaller."""
REFERENCES = 20
"""How often, in all steps of a fit by minibatches, the gradient is taken over all observations."""
JUDGED = 2000
"""Draws by which a fit is judged."""
CHANGED = 1e-6
"""By how much a log density at the mean of a fit, relative to itself, may change by rounding."""


@dataclass(slots=True)
class Fit:
    """A normal fitted to a block. Mutable: `version` follows the trace."""

    normal: VariationalNormal
    quality: FitQuality
    # the log density at the normal's mean when it was fitted
    at_mean: float
    # that of the trace when the block was last drawn
    version: int = -1


class Variational(BlockKernel):
    """Draws of one action."""

    refuses_blocks = is_approximate = True

    def __init__(self, program: InferenceProgram, given: ActionForm, densities: Densities) -> None:
        super().__init__(program.model)
        self._program, self._place, self._densities = program, given.span.place(), densities
        self._label = given.span.text
        self._steps = given.some("T")
        self._is_full = "full" in given
        self._size = given.some("B") if "minibatch" in given else None
        self._fits: dict[tuple[int, ...], Fit] = {}

    @property
    def rows(self) -> int:
        return self._densities.rows

    def details(self) -> Mapping[str, float]:
        """By name, for the statistics of the kernel: of the worst fit, and of one alone its evidence lower bound."""
        found = [each.quality for each in self._fits.values()]
        if not found:
            return {}
        details = {
            "fits": float(len(found)),
            SHAPE: max(each.k for each in found),
            EFFICIENCY: min(each.efficiency for each in found),
            SLOPE: max(each.slope for each in found),
            IMPOSSIBLE: max(each.impossible / each.draws for each in found),
        }
        return details | ({"ELBO": found[0].elbo, "error of the ELBO": found[0].error} if len(found) == 1 else {})

    def refuse(self, nodes: list[int]) -> None:
        density = self._densities.of(nodes)
        if self._is_full and density.size > MOST_FULL:
            reason = f"the covariance of {counted(density.size, 'coordinate')} is too large, above {MOST_FULL:,}"
            raise KernelError(reason, hint="vi without 'full")
        if self._size is not None:
            self._minibatches(density)

    def course(self, nodes: list[int], at: Selection) -> Course:
        self.refuse(nodes)
        return Course(COLUMNS, "by a normal that is fitted to it")

    def _minibatches(self, density: BlockDensity) -> Minibatches:
        terms = density.terms
        return Minibatches(terms, density.rows - sum(kind.count for kind in terms), self.model.trace.rng)

    # ------------------------------------------------------------------------------------------------ drawing

    def step(self, nodes: list[int], at: Selection) -> bool:
        model, block = self.model, tuple(nodes)
        density = self._densities.of(nodes)
        found = self._fits.get(block)
        if found is None or found.normal.size != density.size:
            found = self._fits[block] = self._fitted(nodes)
            density = self._densities.of(nodes)
        elif found.version != model.trace.journal.version:
            self._look(found, density)
        moved = self._drawn(found.normal, density)
        found.version = model.trace.journal.version
        return moved

    def _drawn(self, normal: VariationalNormal, density: BlockDensity) -> bool:
        """Set the block to a draw of a normal, of those at which the density is positive."""
        model, rng = self.model, self.model.trace.rng
        with model.transaction() as change:
            for _ in range(TRIES):
                there = self._densities.at(density, normal.mean + normal.away(rng.standard_normal(normal.size)))
                if there is not None and not there[0].impossible:
                    change.keep()
                    return True
                change.back()
        self._warn(f"no draw of {TRIES} has a positive density: the block stays where it was")
        return False

    def _look(self, found: Fit, density: BlockDensity) -> None:
        """Say so where the density is no longer the one that the normal was fitted to."""
        there = self._densities.evaluate(density, found.normal.mean)
        at_mean = -math.inf if there is None else there[0]
        if not math.isclose(at_mean, found.at_mean, rel_tol=CHANGED, abs_tol=CHANGED):
            self._warn("what the block depends on has moved since the fit, which stays as it was: one block for both")

    def _warn(self, text: str) -> None:
        self._program.warn(f"{self._place}: vi: {text}")

    # ------------------------------------------------------------------------------------------------ fitting

    def _fitted(self, nodes: list[int]) -> Fit:
        come_inside(self.model, nodes)
        density = self._densities.of(nodes)
        evaluate, rng = partial(self._densities.evaluate, density), self.model.trace.rng
        batches = self._minibatches(density) if self._size is not None else None
        start = self._start(density, batches)
        normal = FullRank(start) if self._is_full else MeanField(start)
        slope = self._slope(density) if batches is None else self._slope_of_some(density, batches, normal)
        progress = self._program.progress
        progress.begin(self._label, self._steps)
        try:
            is_fitted = not normal.size or fit(normal, slope, self._steps, rng, progress.advance)
        finally:
            progress.end()
        if not is_fitted:
            raise KernelError("no normal is found at whose draws the density is positive", hint="slice, or mh")
        there = evaluate(normal.mean)
        return Fit(normal, judge(normal, evaluate, rng, JUDGED), -math.inf if there is None else there[0])

    def _start(self, density: BlockDensity, batches: Minibatches | None) -> PathNormal:
        """The best normal on a path uphill; a standard one where the block stands, if there is none."""
        here = density.present()
        few = None if batches is None or self._size is None else batches.next(max(self._size, FIRST_ROWS))
        is_curved = few is None and density.size <= MOST_CURVED_PATH
        evaluate = partial(self._densities.evaluate, density, minibatch=few)
        hessian = partial(self._densities.hessian, density) if is_curved else None
        found = pathfinder(evaluate, here, self.model.trace.rng, hessian) if density.size else None
        if found is not None:
            return found.normal
        return PathNormal(here, np.ones(density.size), np.zeros((density.size, 0)), np.zeros((0, 0)))

    def _slope(self, density: BlockDensity) -> Slope:
        def slope(*pair: np.ndarray) -> tuple[np.ndarray, ...] | None:
            return self._gradients(density, None, *pair)

        return slope

    def _slope_of_some(self, density: BlockDensity, batches: Minibatches, normal: VariationalNormal) -> Slope:
        """Gradients by minibatches. What the same rows say at a reference, where all have been looked at, is taken from
        them: what is left of each row is small there, where they all would pull one way or the other (Johnson and
        Zhang 2013, Accelerating stochastic gradient descent using predictive variance reduction, section 2)."""
        assert self._size is not None
        size, every = self._size, math.ceil(self._steps / REFERENCES)
        steps, reference, whole = 0, normal.mean, np.zeros(density.size)

        def slope(*pair: np.ndarray) -> tuple[np.ndarray, ...] | None:
            nonlocal steps, reference, whole
            if steps % every == 0 and (found := self._densities.evaluate(density, normal.mean)) is not None:
                reference, whole = normal.mean.copy(), found[1]
            steps += 1
            some = batches.next(size)
            there = self._gradients(density, some, *pair, reference)
            if there is None:
                return None
            plus, minus, here = there
            return plus + (whole - here), minus + (whole - here)

        return slope

    def _gradients(
        self, density: BlockDensity, some: Minibatch | None, *places: np.ndarray
    ) -> tuple[np.ndarray, ...] | None:
        """At each of some free coordinates (D,); None where the density of one is zero, or has no gradient."""
        found = list[np.ndarray]()
        for free in places:
            if (there := self._densities.evaluate(density, free, some)) is None:
                return None
            found.append(there[1])
        return tuple(found)


def _compile(program: InferenceProgram, given: ActionForm) -> Part:
    kernel = Variational(program, given, Densities(program.model, given.action, program.warn))
    normal = "a normal" if "full" in given else "independent normals"
    rows = f" by {given.some('B'):,} observations each" if "minibatch" in given else ""
    return given.kernel(f"a draw of {normal}, fitted in {given.some('T'):,} steps{rows}", kernel, times=1)


VI = Action(
    "vi", ("(vi SCOPE BLOCK ['full] ['minibatch B] T)",),
    "A draw of a normal, in unconstrained coordinates, that is fitted to the conditional density of continuous choices "
    "in T steps when the action first runs: of independent coordinates, with 'full of any covariance. 'minibatch takes "
    "the gradient of each step from B of the observations. The draws are approximate and marked; the summary tells how "
    "far they may be off, by their Pareto k.",
    _compile,
)  # fmt: skip
