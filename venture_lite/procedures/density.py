"""From a density written once to its bound forms and its gradient, with one policy for values outside the support.

A value of the wrong kind (a string or a vector for a normal) has log density -inf, as has NaN; the arguments are
checked before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.procedures.bounds import Maximisers, bound_at, certain
from venture_lite.procedures.columns import Flags, single_numbers
from venture_lite.procedures.derivatives import gradient_of
from venture_lite.procedures.numeric import on_columns
from venture_lite.procedures.record import Argument, Columns, Gradient, Random
from venture_lite.procedures.simulation import column_draws
from venture_lite.procedures.transforms import Transform

_GUARDED = """
def guarded({names}):
    if type(value) is array:
        return -inf
    try:
        result = density({names})
        return result if result == result else -inf
    except (TypeError, ValueError, ArithmeticError):
        return -inf
"""


def scalar_density(density: Callable[..., float], count: int) -> Callable[..., float]:
    """The density of one value under `count` arguments: -inf where it is not defined, never an exception.

    Compiled from text with the exact parameters: `*arguments` would double the cost of a cheap density.
    """
    names = ", ".join(["value", *(f"argument_{i}" for i in range(count))])
    namespace: dict[str, Any] = {"density": density, "inf": math.inf, "array": np.ndarray}
    exec(_GUARDED.format(names=names), namespace)
    guarded: Callable[..., float] = namespace["guarded"]
    guarded.__name__ = guarded.__qualname__ = density.__name__
    return guarded


def column_density(density: Callable[..., float]) -> Columns:
    """The same density over columns of numbers."""
    bound = on_columns(density)

    def columns(lifted: Flags, *arguments: Any) -> np.ndarray:
        numbers = single_numbers(lifted, arguments)
        with np.errstate(all="ignore"):
            result: np.ndarray = bound(*numbers)
        # one pass: a sum is NaN if an entry is, or if infinities of both signs meet
        if math.isnan(result.sum()):
            result = np.where(np.isnan(result), -np.inf, result)
        return result

    return columns


def random(
    name: str,
    arguments: tuple[Argument, ...],
    summary: str,
    simulate: Callable[..., Any],
    density: Callable[..., float],
    *,
    columns: Columns | None = None,
    transform: Transform | None = None,
    gradient: Gradient | None = None,
    most_likely: Maximisers | None = None,
    **others: Any,
) -> Random:
    """A record whose density and simulator are bound both ways, and the density differentiated; `columns` and
    `gradient` replace what is derived from it. `most_likely` gives the upper bound of a density; values without a
    transform have probabilities. `others` are fields of the record that stay as they are given."""
    exists = (transform is not None, *(not argument.domain.discrete for argument in arguments))
    if gradient is None and any(exists):
        gradient = gradient_of(density, exists)
    scalar = scalar_density(density, len(arguments))
    bound = None if most_likely is None else bound_at(scalar, most_likely)
    return Random(
        name,
        arguments,
        summary,
        simulate,
        scalar,
        columns or column_density(density),
        transform=transform,
        gradient=gradient,
        log_bound=certain if transform is None else bound,
        definition=density,
        simulate_columns=column_draws(simulate),
        **others,
    )
