"""What enters a density and is drawn from nothing: improper uniform densities, and what directives weigh.

No program names the procedures that `[factor ...]` and `[condition ...]` observe. Their value is always the same, and
their density is all that they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from venture_lite.errors import KernelError
from venture_lite.procedures import transforms
from venture_lite.procedures.density import of_numbers
from venture_lite.procedures.domains import BOOLEAN_LIKE, REAL, numbers
from venture_lite.procedures.numeric import inf, where
from venture_lite.procedures.record import Argument, Random
from venture_lite.procedures.transforms import Elementwise

FURTHEST_START = 2.0
"""Starts lie between this and its negative in the unconstrained coordinate, as those of Stan do."""


def _undrawn(reason: str, hint: str) -> Callable[..., Any]:
    def simulate(rng: np.random.Generator, *arguments: Any) -> Any:
        raise KernelError(reason, hint=hint)

    return simulate


NO_DRAW = _undrawn("flat is improper: it has a start and no draws", "mh with 'drift, or nuts; or a proper prior")


def _flat(
    arguments: tuple[Argument, ...], density: Callable[..., float], transform: Elementwise, support: str
) -> Random:
    def start(rng: np.random.Generator, *given: Any) -> float:
        return float(transform.from_free(rng.uniform(-FURTHEST_START, FURTHEST_START), given))

    summary = (
        "A real number with density 1 between bounds: (flat), (flat LO), (flat none HI) or (flat LO HI). Without both "
        "it is improper, and takes a start in place of a draw: random in [-2, 2] of its unconstrained coordinate."
    )
    made = of_numbers("flat", arguments, summary, NO_DRAW, density, transform=transform, source=support)
    return replace(made, simulate_columns=None, start=start)


FLAT = _flat((), lambda value: where((value > -inf) & (value < inf), 0.0, -inf), transforms.REAL, "1")
FLAT_ABOVE = _flat(
    (Argument("LO", REAL),), lambda value, low: where((value >= low) & (value < inf), 0.0, -inf), transforms.ABOVE,
    "1 for x >= LO",
)  # fmt: skip
FLAT_BELOW = _flat(
    (Argument("HI", REAL),), lambda value, high: where((value <= high) & (value > -inf), 0.0, -inf), transforms.BELOW,
    "1 for x <= HI",
)  # fmt: skip


def _is_log_weight(column: np.ndarray) -> bool:
    return column.dtype.kind != "b" and bool(column.max() < math.inf)


LOG_WEIGHT = numbers(
    "log weight", "a number or -inf", "{x}.__class__ is not bool and {x} < inf", columns=_is_log_weight
)
_WEIGHED = _undrawn("what a factor or a condition weighs cannot be drawn", "an observation in its place")

FACTOR = replace(
    of_numbers(
        "factor", (Argument("EXPR", LOG_WEIGHT),), "What `[factor EXPR]` observes: its log density is EXPR.",
        _WEIGHED, lambda value, weight: weight,
    ),
    log_bound=None, simulate_columns=None,
)  # fmt: skip
CONDITION = replace(
    of_numbers(
        "condition", (Argument("EXPR", BOOLEAN_LIKE),), "What `[condition EXPR]` observes: certain if EXPR holds.",
        _WEIGHED, lambda value, holds: where(holds == 1, 0.0, -inf),
    ),
    simulate_columns=None,
)  # fmt: skip

WEIGHED = (FACTOR, CONDITION)
RECORDS = (FLAT,)
