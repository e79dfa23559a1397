"""`nuts`: the no-U-turn sampler (Hoffman and Gelman 2014; Betancourt 2017) on a block of continuous choices.

Paths as of `hmc`, whose length no one has to choose. The transition changes no structure; between transitions choices
of the block may come and go, so that what is learned in a warm-up is kept by site.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.distributions import transform_of
from venture_lite.blocks.gradients import Densities
from venture_lite.draws.kernel_summary import FUNNEL, STEEP
from venture_lite.engines.adaptation import (
    LEAST_BURN,
    BlockTuning,
    FirstScales,
    Metric,
    Tuner,
    geometric_mean,
    tuned,
)
from venture_lite.engines.hmc import NO_PATH, TARGET
from venture_lite.engines.nuts.paths import BlockPaths, FunctionPaths, RowPaths, Standpoint
from venture_lite.engines.nuts.trajectory import MOST_DEPTH, Trajectory
from venture_lite.engines.nuts.vectors import MOST_NUMBERS, Vectors, vectors_of
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part
from venture_lite.interpreter.ancestry import name_of_choice
from venture_lite.interpreter.kernel import COLUMNS, BlockKernel, Course
from venture_lite.interpreter.last_state import LastState
from venture_lite.interpreter.model import Transaction
from venture_lite.interpreter.selection import Selection
from venture_lite.procedures.transforms import POSITIVE
from venture_lite.values import show

FEWEST_STEEP, FAR = 3, 1.0
"""So many divergences that lie on average so many sds away, in one coordinate, from where the states are, tell where
the density is steep."""
MOST_MOVED = 0.05
"""Of the mean square that draws of the momentum change of the energy, by other kernels, for a fraction to be told."""
MOST_DOUBLINGS = 50
"""Of a step, until its acceptance crosses the one it is tuned to."""


class NoUTurn(BlockKernel):
    """Transitions of one action."""

    starts_inside = refuses_blocks = True

    def __init__(
        self,
        program: InferenceProgram,
        densities: Densities,
        step: float | None,
        burn: int,
        is_dense: bool,
        target: float = TARGET,
    ) -> None:
        """The step is tuned for `burn` runs of the action's loop, from the one given or one that is found, to a mean
        acceptance of `target`."""
        super().__init__(program.model)
        self.transition = NO_PATH | {"tree_depth": math.nan}
        self.program, self.densities = program, densities
        self._start = step or 1.0
        first = FirstScales.of(program.shared) if burn else None
        self._tuner = Tuner(step or 0.0, target, burn, is_dense, finds=True, first=first)
        # the kinetic and the potential energy that a block's last transition left
        self._left: dict[int, tuple[float, float]] = {}
        # of transitions that did not adapt
        self._transitions = self._divergences = self._deepest = self._steps = self._depths = 0
        self._acceptance = 0.0
        # of energies once momenta were drawn their mean and the sum of squares about it, of the changes by these draws
        # and of those that other kernels made since the transition before, how many were seen and the sums of squares
        self._energy = self._spread = self._changed = self._moved = 0.0
        self._changes = 0
        # free coordinates from which steps diverged, with the choices whose they are
        self.diverged: list[tuple[tuple[int, ...], np.ndarray]] = []
        # of each block how many states count, the mean of their free coordinates, and the sum of squares about it
        self._met: dict[tuple[int, ...], tuple[int, np.ndarray, np.ndarray]] = {}
        # where the last transition left its block
        self._stand = LastState[Standpoint](program.model.trace.journal)
        # of each block the last metric, and what trajectories do their sums with
        self._vectors: dict[int, tuple[Metric, Vectors]] = {}

    @property
    def rows(self) -> int:
        return self.densities.rows

    def details(self) -> Mapping[str, float]:
        """By name, for the statistics of the kernel; of transitions that did not adapt."""
        count = self._transitions
        if not count:
            return {}
        found = {
            "transitions that count": float(count),
            "mean acceptance probability": self._acceptance / count,
            "divergences": float(self._divergences),
            "mean steps": self._steps / count,
            "mean depth": self._depths / count,
            "transitions at the greatest depth": float(self._deepest),
            "step": geometric_mean(self._tuner.steps()),
        }
        if self._spread > 0.0 and 0.0 < self._changed >= self._moved / MOST_MOVED:
            # the mean square of the changes by draws of the momentum over the variance
            found["energy fraction"] = self._changed / self._changes / (self._spread / self._transitions)
        return found | self._steep()

    def _steep(self) -> dict[str, float]:
        """The choice in which divergences lie furthest from where the states are, and how far in its sds."""
        places: dict[tuple[int, ...], list[np.ndarray]] = {}
        for block, free in self.diverged:
            places.setdefault(block, []).append(free)
        if not places:
            return {}
        block, found = max(places.items(), key=lambda each: len(each[1]))
        count, mean, squares = self._met[block]
        if len(found) < FEWEST_STEEP or count < 2 or self.densities.of(list(block)).size != len(mean):
            return {}
        off = (np.mean(found, axis=0) - mean) / np.sqrt(np.maximum(squares / (count - 1), np.finfo(float).tiny))
        density = self.densities.of(list(block))
        at = int(np.argmax(np.abs(off)))
        node = next(node for node in block if density.places[node].start <= at < density.places[node].stop)
        if abs(off[at]) <= FAR:
            return {}
        is_scale = transform_of(self.model.trace.application(node)[0]) is POSITIVE and off[at] < 0.0
        return {(FUNNEL if is_scale else STEEP) + name_of_choice(self.model.trace, node): float(off[at])}

    def refuse(self, nodes: list[int]) -> None:
        self.densities.refuse(nodes)

    def course(self, nodes: list[int], at: Selection) -> Course:
        self.densities.refuse(nodes)
        return Course(COLUMNS, "by gradients of its density")

    def step(self, nodes: list[int], at: Selection) -> bool:
        tuner = self._tuner
        model, density = self.model, self.densities.of(nodes)
        tuning = tuner.begin(nodes, at, density.readers)
        where = density.places
        with model.transaction() as change, np.errstate(all="ignore"):
            tuner.metric(tuning, where, density.size)
            paths = self._paths(density, tuning, change, at.selector.kind in ("all", "key"))
            if not tuning.step.now:
                tuning.step.begin(reasonable_step(paths.trajectory, self._start))
            trajectory = paths.trajectory(tuning.step.now)
            end = trajectory.draw()
            moved = end is not trajectory.start and paths.leave(end)
            if moved:
                density.refuse_ends(np.asarray(end.free))
                change.keep()
                paths.settle(end)
        self._stand.leave(density, paths.stand(end))
        acceptance = trajectory.acceptance / max(trajectory.steps, 1)
        free = np.asarray(end.free)
        self.transition = {
            "diverging": trajectory.diverged is not None,
            "lp": paths.log_density,
            "energy": end.kinetic - paths.log_density,
            "tree_depth": trajectory.depth,
            "n_steps": trajectory.steps,
            "acceptance_rate": acceptance,
            "step_size": tuning.step.now,
        }
        tuner.learn(tuning, acceptance, where, free)
        if not tuner.is_adapting:
            self._count(tuple(nodes), self._left.get(id(tuning)), trajectory, acceptance)
        self._left[id(tuning)] = end.kinetic, -paths.log_density
        if tuner.burn:
            self.program.draws.mark(self, tuner.left)
        return moved

    def _paths(self, density: BlockDensity, tuning: BlockTuning, change: Transaction, is_only: bool) -> BlockPaths:
        """Paths from where a block stands: by one function where its density is one, and worth it."""
        assert tuning.metric is not None
        key, (_, metric) = id(tuning), tuning.metric
        function = self.densities.function(density, is_only)
        are_numbers = function is not None and function.of_numbers is not None and density.size <= MOST_NUMBERS
        known = self._vectors.get(key)
        if known is None or known[0] is not metric or known[1].are_numbers != are_numbers:
            known = self._vectors[key] = metric, vectors_of(metric.root, are_numbers)
        stand = self._stand.of(density)
        if function is not None:
            paths = FunctionPaths(self.densities, density, known[1], function)
            if paths.begin(stand):
                return paths
        return RowPaths(self.densities, density, vectors_of(metric.root, False), change, stand)

    def _count(
        self, block: tuple[int, ...], left: tuple[float, float] | None, trajectory: Trajectory, acceptance: float
    ) -> None:
        """`left`: the kinetic and the potential energy at the end of the block's last transition."""
        self._transitions += 1
        self._acceptance += acceptance
        self._steps += trajectory.steps
        self._depths += trajectory.depth
        self._deepest += trajectory.depth == MOST_DEPTH
        off = trajectory.energy - self._energy
        self._energy += off / self._transitions
        self._spread += off * (trajectory.energy - self._energy)
        if left is not None:
            kinetic = trajectory.start.kinetic
            self._changes += 1
            self._changed += (kinetic - left[0]) ** 2
            self._moved += (trajectory.energy - kinetic - left[1]) ** 2
        if trajectory.diverged is not None:
            self._divergences += 1
            self.diverged.append((block, np.asarray(trajectory.diverged.free)))
        self._meet(block, np.asarray(trajectory.start.free))

    def _meet(self, block: tuple[int, ...], free: np.ndarray) -> None:
        count, mean, squares = self._met.get(block, (0, np.zeros(len(free)), np.zeros(len(free))))
        if len(mean) != len(free):
            count, mean, squares = 0, np.zeros(len(free)), np.zeros(len(free))
        off = free - mean
        mean = mean + off / (count + 1)
        self._met[block] = count + 1, mean, squares + off * (free - mean)


def reasonable_step(trajectory: Callable[[float], Trajectory], step: float) -> float:
    """The step, doubled or halved, at which the acceptance of a single one crosses TARGET."""

    def is_short(step: float) -> bool:
        path = trajectory(step)
        end = path.leapfrog(step, path.start)
        return end is not None and path.gain(end) > math.log(TARGET)

    factor = 2.0 if is_short(step) else 0.5
    for _ in range(MOST_DOUBLINGS):
        if is_short(step * factor) != (factor > 1.0):
            return step * factor if factor < 1.0 else step
        step *= factor
    return step


def _compile(program: InferenceProgram, given: ActionForm) -> Part:
    burn = given.count("BURN", LEAST_BURN) if "adapt" in given else 0
    step = given.positive("STEP") if "step" in given else None
    target = given.between("A", 0.5, 0.999) if "target" in given else TARGET
    densities = Densities(program.model, given.action, program.warn)
    kernel = NoUTurn(program, densities, step, burn, "dense" in given, target)
    steps = f"steps of {show(step)}" if step is not None else "steps"
    return given.kernel(f"paths of {steps} along the gradient until they turn{tuned(burn)}", kernel)


NUTS = Action(
    "nuts",
    (
        "(nuts SCOPE BLOCK 'step STEP ['dense] ['adapt BURN ['target A]] T)",
        "(nuts SCOPE BLOCK 'adapt BURN ['target A] ['dense] T)",
    ),
    "T transitions of the no-U-turn sampler on continuous choices, in unconstrained coordinates: paths of leapfrog "
    "steps along the gradient that double until they turn, at most 10 times. 'adapt tunes the step and the scales of "
    "coordinates in the first BURN transitions (sweeps, for each), which do not count as draws; 'dense scales them "
    "together. The step is tuned to a mean acceptance of A, 0.8 where nothing is said: with a larger one steps are "
    "smaller, and less of what is steep is missed.",
    _compile,
)  # fmt: skip
