"""`mh` with `'drift SIGMA 'adapt BURN`: a random walk whose steps are tuned in a warm-up, also on the integers.

A step is SIGMA times an sd of each coordinate. Both are learned: the step by its acceptance, the sds from the states of
windows. A choice that takes whole numbers walks by whole steps of either sign, so that the way back is as probable.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from venture_lite.blocks.coordinates import free_of
from venture_lite.blocks.distributions import name_of, transform_of
from venture_lite.engines.adaptation import Tuner, geometric_mean
from venture_lite.engines.walk import Drift, Walk
from venture_lite.errors import KernelError
from venture_lite.inference.program import InferenceProgram
from venture_lite.interpreter.kernel import BlockKernel, Move
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.weights import Weight
from venture_lite.kernels.compiled import kernel
from venture_lite.procedures.record import Random
from venture_lite.values import freeze

TARGET, TARGET_OF_ONE = 0.234, 0.44
"""Mean acceptance probabilities to which a walk of many coordinates, and of one, is tuned (Roberts and Rosenthal 2001,
Optimal scaling for various Metropolis-Hastings algorithms)."""
LONGEST = 2.0**52
"""Of steps of whole numbers: beyond it not every number is one."""


class TunedDrift(Drift):
    """A walk whose steps are `sigma` times the sds of the coordinates, on integers whole."""

    def __init__(self, rng: np.random.Generator, sigma: float) -> None:
        super().__init__(rng, sigma)
        # steps are others after each transition
        self.key: Hashable | None = None
        # of the block at hand, by choice (K,)
        self.sds: Mapping[int, np.ndarray] = {}

    def formula(self, *of: Any) -> None:
        """Steps are no constants."""

    def step_of_number(self, node: int) -> float:
        return self.sigma * float(self.sds[node][0]) * self.normal()

    def step_of_array(self, node: int, shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(self.sigma * self.sds[node].reshape(shape) * self.normal(shape))

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        if transform_of(operator) is not None:
            return super().propose(node, operator, arguments, old)
        if isinstance(old, np.ndarray):
            steps = self.step_of_array(node, old.shape)
            return freeze(old + np.copysign(np.ceil(np.minimum(np.abs(steps), LONGEST)), steps)), 0.0
        step = self.step_of_number(node)
        return old + int(math.copysign(math.ceil(min(abs(step), LONGEST)), step)), 0.0


class Noted:
    """The decision of Metropolis, and the probability of accepting that it came from."""

    def __init__(self, model: Model) -> None:
        self._random = model.trace.rng.random
        self.probability = 0.0

    def __call__(self, weight: Weight) -> bool:
        u = self._random()
        if weight.impossible:
            self.probability = float(weight.impossible < 0)
        else:
            self.probability = math.exp(min(weight.total, 0.0)) if weight.total == weight.total else 0.0
        return u < self.probability


class TunedWalk(Walk):
    """Transitions of one action by a walk that is tuned for the first runs of its loop."""

    def __init__(
        self, program: InferenceProgram, proposal: Drift, moves: BlockKernel, decision: Noted, tuner: Tuner
    ) -> None:
        super().__init__(program.model, proposal, moves)
        self._proposal, self._decision, self._tuner, self._draws = proposal, decision, tuner, program.draws
        # by block: the structure as of which it was looked at, and where its choices' coordinates are among all
        self._where: dict[tuple[int, ...], tuple[Any, dict[int, slice]]] = {}

    def details(self) -> dict[str, float]:
        found = super().details()
        return found | ({"step": geometric_mean(steps)} if (steps := self._tuner.steps()) else {})

    def refuse_kinds(self, nodes: list[int]) -> None:
        for node in nodes:
            operator = self.model.trace.application(node)[0]
            if transform_of(operator) is not None or _is_whole(operator, self.model.trace.value(node)):
                continue
            code, slot, row = self.model.trace.decode(node)
            reason = f"'drift walks on numbers; {name_of(operator)} draws none that have an order"
            chain = self.model.trace.call_chain(code, slot, row)
            raise KernelError(reason, code.slots[slot].span, "gibbs, or mh without 'drift", chain)

    def step(self, nodes: list[int], at: Selection) -> bool:
        tuner, proposal, trace = self._tuner, self._proposal, self.model.trace
        tuning, stamp = tuner.begin(nodes, at), trace.structure_stamp()
        where = self._coordinates(nodes, stamp)
        size = max((taken.stop for taken in where.values()), default=0)
        tuning.step.target = TARGET_OF_ONE if size == 1 else TARGET
        proposal.sigma = tuning.step.now
        if isinstance(proposal, TunedDrift):
            sds = tuner.metric(tuning, where, size).root
            proposal.sds = {node: sds[taken] for node, taken in where.items()}
        moved = super().step(nodes, at)
        self._draws.mark(self, tuner.left)
        if tuner.is_adapting:
            stays = trace.structure_stamp() == stamp
            free = np.concatenate([free_of(trace, node) for node in nodes]) if stays and nodes else None
            tuner.learn(tuning, self._decision.probability, where, free)
        return moved

    def _coordinates(self, nodes: list[int], stamp: Any) -> dict[int, slice]:
        found = self._where.get(tuple(nodes))
        if found is None or found[0] != stamp:
            where, size = dict[int, slice](), 0
            for node in nodes:
                where[node] = slice(size, size + len(free_of(self.model.trace, node)))
                size = where[node].stop
            found = self._where[tuple(nodes)] = stamp, where
        return found[1]


def _is_whole(operator: Any, value: Any) -> bool:
    """Whether a choice takes a whole number, or a vector of independent ones."""
    if isinstance(value, np.ndarray):
        return isinstance(operator, Random) and operator.item_log_densities is not None
    return isinstance(operator, Random) and isinstance(value, int) and not isinstance(value, bool)


def tuned_walk(program: InferenceProgram, walk: Drift, burn: int) -> TunedWalk:
    """The walk of `'drift SIGMA ['precondition] 'adapt BURN`; with a preconditioner the step alone is tuned."""
    scaled = walk.preconditioner is None
    proposal = TunedDrift(program.model.trace.rng, walk.sigma) if scaled else walk
    decision = Noted(program.model)
    tuner = Tuner(walk.sigma, TARGET, burn, scaled=scaled)
    return TunedWalk(program, proposal, kernel(program.model, Move(proposal, decision)), decision, tuner)
