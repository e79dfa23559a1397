"""`hmc`: Hamiltonian Monte Carlo on a block of continuous choices (Neal 2011, MCMC using Hamiltonian dynamics).

Positions are the block's free coordinates, momenta are standard normal, in the coordinates that a preconditioner makes
if there is one. A path of leapfrog steps is its own inverse when the momentum is turned round, and keeps volume, so
that the Metropolis test of the total energy makes the transition exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.block_function import DensityFunction
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.gradients import Densities
from venture_lite.blocks.precondition import Preconditioner
from venture_lite.engines.adaptation import LEAST_BURN, Metric, Tuner, geometric_mean, tuned
from venture_lite.engines.mh import scaled
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part
from venture_lite.interpreter.kernel import COLUMNS, BlockKernel, Course
from venture_lite.interpreter.last_state import LastState
from venture_lite.interpreter.model import Model, Transaction
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.weights import Weight
from venture_lite.values import show

TARGET, TARGET_OF_ONE = 0.8, 0.57
"""Mean acceptance probabilities to which the step of paths, and of paths of one step, is tuned."""


@dataclass(frozen=True, slots=True)
class PathPoint:
    """A state of a block on a path."""

    # free coordinates (D,)
    free: np.ndarray
    # log density in free coordinates
    weight: Weight
    # its gradient (D,)
    gradient: np.ndarray


class Hamiltonian(BlockKernel):
    """Transitions of one action: paths of steps of length `step`.

    How many steps is drawn from `leapfrogs`: a fixed number may resonate with the density, as a path of half a period,
    which ends where it began but for the sign.
    """

    starts_inside = refuses_blocks = True

    def __init__(
        self,
        model: Model,
        densities: Densities,
        step: float,
        leapfrogs: range,
        preconditioner: Preconditioner | None,
        shared: dict[Any, Any],
        tuner: Tuner | None = None,
        mark: Callable[[BlockKernel, int], None] = lambda kernel, left: None,
    ) -> None:
        """`mark` is told how many runs adapt still, where there is a tuner."""
        super().__init__(model)
        self.transition = dict(NO_PATH)
        self.tuner, self._mark = tuner, mark
        self.densities = densities
        self.size = step
        self.leapfrogs = leapfrogs
        self.preconditioner = preconditioner
        self._transitions = 0
        self._divergences = 0
        self._acceptance = 0.0
        # squared changes of the log density over paths, one path's divided by its block's coordinates
        self._changes = 0.0
        # where the last path of a program's actions ended
        self._left: LastState[PathPoint] = shared.setdefault(PathPoint, LastState(model.trace.journal))

    @property
    def rows(self) -> int:
        return self.densities.rows

    def details(self) -> dict[str, float]:
        """By name, for the statistics of the kernel."""
        if not self._transitions:
            return {}
        found = {} if self.tuner is None else {"step": geometric_mean(self.tuner.steps())}
        found |= {
            "transitions that count": float(self._transitions),
            "mean acceptance probability": self._acceptance / self._transitions,
            "divergences": float(self._divergences),
        }
        if self._transitions > self._divergences:
            # a step of h standard deviations in each of D coordinates of a normal changes its log density by a number
            # of variance h^2 D, up to independent draws, whose difference has a variance of D
            found["mean move in sds"] = math.sqrt(self._changes / (self._transitions - self._divergences))
        return found | (self.preconditioner.details() if self.preconditioner is not None else {})

    def begin(self, nodes: list[int]) -> None:
        if self.preconditioner is not None:
            self.preconditioner.begin(nodes)

    def refuse(self, nodes: list[int]) -> None:
        (self.preconditioner or self.densities).refuse(nodes)

    def course(self, nodes: list[int], at: Selection) -> Course:
        self.densities.refuse(nodes)
        return Course(COLUMNS, "by gradients of its density")

    def step(self, nodes: list[int], at: Selection) -> bool:
        if self.preconditioner is not None:
            self.preconditioner.settle(nodes)
        model, density = self.model, self.densities.of(nodes)
        metric = Metric(self.preconditioner.root(nodes)) if self.preconditioner is not None else None
        tuning = None
        if self.tuner is not None:
            tuning, where = self.tuner.begin(nodes, at, density.readers), density.places
            metric, self.size = metric or self.tuner.metric(tuning, where, density.size), tuning.step.now
        with model.transaction() as change:
            start = self._start(nodes, density)
            function = None
            if not start.weight.impossible:
                function = self.densities.function(density, at.selector.kind in ("all", "key"))
            end, probability = self._moved(density, function, start, metric, change)
            if end is not None:
                density.refuse_ends(end.free)
                change.keep()
        self._left.leave(tuple(nodes), end or start)
        if self.tuner is not None and tuning is not None:
            self.tuner.learn(tuning, probability, where, (end or start).free)
            self._mark(self, self.tuner.left)
            if self.tuner.is_adapting:
                self._transitions = self._divergences = 0
                self._acceptance = self._changes = 0.0
        return end is not None

    def _start(self, nodes: list[int], density: BlockDensity) -> PathPoint:
        """Where the block stands: known where a path, also one of another action, has ended there."""
        return self._left.of(tuple(nodes)) or PathPoint(*self.densities.here(density))

    def _moved(
        self,
        density: BlockDensity,
        function: DensityFunction | None,
        start: PathPoint,
        metric: Metric | None,
        change: Transaction,
    ) -> tuple[PathPoint | None, float]:
        """The end of a path, if it is accepted; the block then stands there. And the probability of that."""
        rng = self.model.trace.rng
        lengths = self.leapfrogs
        leapfrogs = lengths[0] if len(lengths) == 1 else int(rng.integers(lengths.start, lengths.stop))
        momentum = rng.standard_normal(density.size)
        kinetic = 0.5 * float(momentum @ momentum)
        self._transitions += 1

        def follow(free: np.ndarray) -> tuple[Weight, np.ndarray] | None:
            return self._follow(density, function, free, change)

        end = self._path(start, momentum, leapfrogs, metric, follow)
        u = rng.random()
        taken = {"n_steps": leapfrogs, "step_size": self.size, "acceptance_rate": 0.0}
        self.transition = path_told(start, kinetic, True) | taken
        if end is None:
            self._divergences += 1
            return None, 0.0
        fewer = start.weight.impossible - end.weight.impossible
        gain = end.weight.total - start.weight.total
        # a distribution over shares of one entry has no free coordinate
        self._changes += gain * gain / max(density.size, 1)
        log_accept = gain + kinetic - 0.5 * float(momentum @ momentum)
        probability = 1.0 if fewer > 0 or log_accept >= 0.0 else math.exp(log_accept)
        self._acceptance += probability
        passes = u < probability
        if passes and function is not None:
            density.put(end.free)
        there = (end, 0.5 * float(momentum @ momentum)) if passes else (start, kinetic)
        self.transition = path_told(*there, False) | taken | {"acceptance_rate": probability}
        return end if passes else None, probability

    def _follow(
        self, density: BlockDensity, function: DensityFunction | None, free: np.ndarray, change: Transaction
    ) -> tuple[Weight, np.ndarray] | None:
        """The log density of a state on a path and its gradient: by one function, which moves nothing, if there is one,
        or where that says nothing, by the passes over rows."""
        if function is None:
            if not density.is_put_over:
                change.back()
            return self.densities.at(density, free)
        if (known := self.densities.by(function, density, free)) is not None:
            return Weight(0, known[0]), known[1]
        with self.model.aside():
            return self.densities.at(density, free)

    def _path(
        self,
        start: PathPoint,
        momentum: np.ndarray,
        leapfrogs: int,
        metric: Metric | None,
        follow: Callable[[np.ndarray], tuple[Weight, np.ndarray] | None],
    ) -> PathPoint | None:
        """Where a path ends, `momentum` then being the one there; None where an energy on the way is not finite."""
        step, point = self.size, start
        free = start.free.copy()
        momentum += 0.5 * step * _pulled(metric, start.gradient)
        with np.errstate(over="ignore", invalid="ignore"):
            for done in range(1, leapfrogs + 1):
                free += step * (momentum if metric is None else metric.free(momentum))
                found = follow(free)
                if found is None or found[0].impossible > start.weight.impossible:
                    return None
                point = PathPoint(free, *found)
                momentum += (step if done < leapfrogs else 0.5 * step) * _pulled(metric, point.gradient)
            return point if math.isfinite(momentum @ momentum) else None


NO_PATH = {
    "diverging": False,
    **dict.fromkeys(("lp", "energy", "n_steps", "acceptance_rate", "step_size"), math.nan),
}
"""What there is to say where no transition was made yet."""


def path_told(end: PathPoint, kinetic: float, diverged: bool) -> dict[str, float]:
    """Where a transition ended, by ArviZ's names: the log density in free coordinates, and the energy."""
    return {"diverging": diverged, "lp": end.weight.total, "energy": kinetic - end.weight.total}


def _pulled(metric: Metric | None, gradient: np.ndarray) -> np.ndarray:
    return gradient if metric is None else metric.pulled(gradient)


def compile_paths(program: InferenceProgram, given: ActionForm, leapfrogs: range) -> Part:
    """The kernel of an action whose transitions are paths, steps of STEP long."""
    densities = Densities(program.model, given.action, program.warn)
    preconditioner = Preconditioner(densities, program.draws) if "precondition" in given else None
    size = given.positive("STEP")
    most = leapfrogs[-1]
    steps = "a step" if most == 1 else f"{'' if len(leapfrogs) == 1 else '1 to '}{most} steps"
    burn = given.count("BURN", LEAST_BURN) if "adapt" in given else 0
    move = f"paths of {steps} of {show(size)} along the gradient{scaled(given)}{tuned(burn)}"
    target = TARGET_OF_ONE if most == 1 else TARGET
    tuner = Tuner(size, target, burn, scaled=preconditioner is None) if burn else None
    kernel = Hamiltonian(
        program.model, densities, size, leapfrogs, preconditioner, program.shared, tuner, program.draws.mark
    )
    return given.kernel(move, kernel)


def _compile_hmc(program: InferenceProgram, given: ActionForm) -> Part:
    leapfrogs = given.some("LEAPFROGS")
    lengths = range(leapfrogs, leapfrogs + 1) if "fixed" in given else range(1, 2 * leapfrogs)
    return compile_paths(program, given, lengths)


HMC = Action(
    "hmc", ("(hmc SCOPE BLOCK STEP LEAPFROGS ['fixed] ['precondition] ['adapt BURN] T)",),
    "T transitions of Hamiltonian Monte Carlo on continuous choices, in unconstrained coordinates: paths of 1 to 2 "
    "LEAPFROGS - 1 steps, drawn anew for each, with 'fixed of LEAPFROGS, of length STEP along the gradient, with "
    "'precondition in the coordinates of the block's curvature. 'adapt tunes STEP, and without 'precondition the "
    "scales of coordinates, in the first BURN transitions, which do not count as draws.",
    _compile_hmc,
)  # fmt: skip
