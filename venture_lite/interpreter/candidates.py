"""The values that a choice of finite support could have, and a draw among weighed candidates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from venture_lite.interpreter.weights import Weight
from venture_lite.trace.runtime import Exchangeable
from venture_lite.values import equal

MOST_CANDIDATES = 100_000
"""Of one block."""
FEW = 64
"""Candidates of which one is drawn number by number, of more by columns: by one rule for all who draw, since sums in
another order may round to another candidate."""


def support_of(operator: Any, arguments: tuple[Any, ...]) -> Sequence[Any] | None:
    if isinstance(operator, Exchangeable):
        return operator.state.support(*arguments)
    return None if operator.support is None else operator.support(*arguments)


def present_first(operator: Any, support: Sequence[Any], old: Any) -> list[Any]:
    """The candidates for a choice that has a value, which comes first."""
    if isinstance(support, range):
        # numbers, which Python compares as `equal` does
        return [old, *(value for value in support if value != old)]
    others = [value for value in support if not equal(value, old)]
    if len(others) == len(support) and isinstance(operator, Exchangeable):
        # the only member of a table stands for the fresh one, which comes last
        others.pop()
    return [old, *others]


def draw_candidate(weights: list[Weight], u: float) -> int:
    """An index drawn in proportion to the weights, among those with the fewest impossible terms."""
    fewest = min(weight.impossible for weight in weights)
    if len(weights) > FEW:
        return draw_total(np.array([w.total if w.impossible == fewest else -math.inf for w in weights]), u)
    best = max(weight.total for weight in weights if weight.impossible == fewest)
    shares = [math.exp(w.total - best) if w.impossible == fewest else 0.0 for w in weights]
    target = u * math.fsum(shares)
    for index, share in enumerate(shares):
        target -= share
        if target < 0.0:
            return index
    return max(index for index, share in enumerate(shares) if share > 0.0)


def draw_total(totals: np.ndarray, u: float) -> int:
    """The same of more than FEW candidates with these log weights (n,), -inf for those that cannot be drawn."""
    reached = np.cumsum(np.exp(totals - totals.max()))
    chosen = int(np.searchsorted(reached, u * reached[-1], side="right"))
    # rounding may lead beyond the last one that has a weight
    return min(chosen, int(np.flatnonzero(totals > -math.inf)[-1]))
