"""Choices outside their own supports, where a start of probability zero may leave them: no step in free coordinates
begins there, for they have none. Such a choice is first drawn anew from its distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import log_density


def first_outside(model: Model, nodes: Sequence[int]) -> int | None:
    """The first of some choices that is outside its own support."""
    if model.maybe_impossible:
        for node in nodes:
            if log_density(model.trace, node) == -math.inf:
                return node
    return None
