"""Choices outside their own supports, where a start of probability zero may leave them: no step in free coordinates
begins there, for they have none. Such a choice is first drawn anew from its distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from venture_lite.inference.transitions import Transitions
from venture_lite.trace.directives import Model
from venture_lite.trace.regenerate import Proposal
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.weights import log_density

Step = Callable[[list[int], Any], bool]


def from_within(model: Model, step: Step, from_prior: Proposal) -> Step:
    """A kernel's step; where some choice of its block is outside its support, a move by its distribution instead."""
    transitions = Transitions(model, None)

    def checked(nodes: list[int], key: Any) -> bool:
        outside = first_outside(model, nodes)
        return step(nodes, key) if outside is None else transitions.step((outside,), from_prior)

    return checked


def first_outside(model: Model, nodes: Sequence[int]) -> int | None:
    """The first of some choices that is outside its own support."""
    if model.maybe_impossible:
        for node in nodes:
            if log_density(model.trace, node >> 32, node & ROW_MASK) == -math.inf:
                return node
    return None
