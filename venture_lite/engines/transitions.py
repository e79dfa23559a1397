"""The Metropolis-Hastings transition on a scaffold (Chen et al. 2014, Algorithm 1), for any block and any proposal.

A transition whose scaffold changes no structure is made from a plan that is kept; any other goes through detach and
regenerate. Both draw in the same order: the proposal first, then one uniform number for the decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from venture_lite.blocks.supports import first_outside
from venture_lite.engines.single_mh import SingleMH
from venture_lite.errors import VentureError
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.regenerate import Proposal
from venture_lite.interpreter.scaffold import Builder, absorbing_count
from venture_lite.interpreter.weights import NEVER, Weight
from venture_lite.kernels.plan import Plan, Templates, make_plan

Decide = Callable[[Weight], bool]
BlockStep = Callable[[list[int], Any], bool]


def metropolis(model: Model) -> Decide:
    """Accept with the probability that the weight gives; states with fewer impossible terms always win."""
    random = model.trace.rng.random

    def decide(weight: Weight) -> bool:
        u = random()
        if weight.impossible:
            return weight.impossible < 0
        return weight.total >= 0.0 or u < math.exp(weight.total)

    return decide


class Transitions:
    """Transitions of one kernel on one model: keeps the plans of the blocks that it has moved."""

    def __init__(self, model: Model, block_count: Callable[[], int] | None, decide: Decide | None = None) -> None:
        self.model = model
        # number of blocks of the scope, where the block was drawn at random
        self.block_count = block_count
        self.decide = decide or metropolis(model)
        # for blocks of one choice whose move changes structure, where its proposal is its own distribution
        self.single: SingleMH | None = None
        self._templates = Templates()
        self._plans: dict[tuple[int, ...], Plan] = {}
        # blocks that have no plan, as of a state of the trace's structure
        self._unplanned: dict[tuple[int, ...], tuple[int, int]] = {}
        # rows of absorbing choices weighed so far
        self.rows = 0

    def step(self, principals: Sequence[int], proposal: Proposal) -> bool:
        """One transition; whether it was accepted. An error leaves the trace as it was."""
        block = tuple(principals)
        moved = self._alone(block, known=True)
        if moved is None and (plan := self._plan(block)) is not None:
            moved = plan.transition(proposal, self.decide)
            self.rows += plan.rows
        if moved is None:
            moved = self._alone(block, known=False)
        return self._interpreted(block, proposal) if moved is None else moved

    def _alone(self, block: tuple[int, ...], known: bool) -> bool | None:
        """Move a single choice, of a site `known` to have plans for it or else to be tried; None where nothing was
        done."""
        single = self.single
        if single is None or len(block) != 1 or single.choices.have_plans(block[0]) != known:
            return None
        before = single.rows
        moved = single.step(block[0])
        self.rows += single.rows - before
        return moved

    def _plan(self, block: tuple[int, ...]) -> Plan | None:
        plan = self._plans.get(block)
        if plan is not None and plan.is_valid():
            return plan
        structure = self.model.trace.structure_stamp()
        if self._unplanned.get(block) == structure:
            return None
        plan = make_plan(self.model, block, self._templates)
        if plan is None:
            self._plans.pop(block, None)
            self._unplanned[block] = structure
            return None
        if len(self._plans) > 10_000:
            self._plans.clear()
        self._plans[block] = plan
        return plan

    def _interpreted(self, block: tuple[int, ...], proposal: Proposal) -> bool:
        model = self.model
        before = self.block_count() if self.block_count else 0
        scaffold = Builder(model.trace).build(block)
        try:
            with model.transaction() as change:
                weighed = absorbing_count(model.trace, scaffold)
                proposal.prepare(model.trace, scaffold.principals)
                old = model.regenerator.detach(scaffold, proposal.counts)
                new = model.regenerator.regenerate(scaffold, proposal)
                self.rows += weighed
                weight = new.minus(old)
                if self.block_count:
                    weight.total += math.log(before) - math.log(max(self.block_count(), 1))
                accepted = self.decide(weight)
                if accepted:
                    change.keep()
            return accepted
        except VentureError as error:
            if not rejects(model, error, model.regenerator.touched(scaffold)):
                raise
            return self.decide(Weight(NEVER))


def from_within(model: Model, step: BlockStep, from_prior: Proposal) -> BlockStep:
    """A kernel's step; where some choice of its block is outside its support, a move by its distribution instead."""
    transitions = Transitions(model, None)

    def checked(nodes: list[int], key: Any) -> bool:
        outside = first_outside(model, nodes)
        return step(nodes, key) if outside is None else transitions.step((outside,), from_prior)

    return checked
