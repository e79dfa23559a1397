"""Whether an improper choice has an improper posterior, which nothing can be drawn from: seen before anything is drawn.

A density that falls no faster than 1 / x along one number, or than r^-k over k of them, has no finite total. How fast
it falls is how it changes between two points so far out that nothing is left of the data's scale: what informs a `flat`
at all leaves a power of x there, or less. Not met is a ridge that goes aslant, as of two levels of which only the sum
is informed, and a density that is zero so far out for want of digits, as where a rate underflows: there draws run away,
and R-hat tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from venture_lite.draws.presentation import listed
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.ancestry import name_of_choice
from venture_lite.interpreter.model import GivenValues, Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.procedures.distributions.improper import FLAT, FLAT_ABOVE, FLAT_BELOW
from venture_lite.trace.trace import Trace

FAR, FURTHER = 1e20, 1e40
SLACK = 0.05
"""By which a power may be above the least, for rounding."""
MOST_LOOKED_AT = 30
"""Choices, each of which costs what a transition does."""
DIRECTIONS: dict[Any, tuple[float, ...]] = {FLAT: (1.0, -1.0), FLAT_ABOVE: (1.0,), FLAT_BELOW: (-1.0,)}
SHOWN = 4


def refuse_improper(model: Model, smooth: Iterable[int]) -> None:
    """Raise KernelError where the posterior is improper along a `flat` among these choices, or along all of them. The
    trace and its generator stay as they are."""
    trace = model.trace
    flats = [node for node in smooth if trace.choice(node)[0] in DIRECTIONS][:MOST_LOOKED_AT]
    for node in flats:
        for sign in DIRECTIONS[trace.choice(node)[0]]:
            if _power(model, {node: sign}) <= 1.0 + SLACK:
                raise _error(trace, [node], f"{'in' if sign > 0 else 'de'}creases")
    # of several the direction is any that is none of the axes
    together = {node: DIRECTIONS[trace.choice(node)[0]][0] * (1.0 + 0.3 * at) for at, node in enumerate(flats)}
    if len(flats) > 1 and _power(model, together) <= len(flats) + SLACK:
        raise _error(trace, flats, "go far out together")


def _power(model: Model, direction: Mapping[int, float]) -> float:
    """The p of a density that falls as distance^-p along a direction; infinite where it is zero or has no value."""
    trace, change = model.trace, math.inf
    state = trace.rng.bit_generator.state
    try:
        with model.aside():
            for distance in (FAR, FURTHER):
                # all at once: a location that is moved before its scale would leave nothing but rounding
                scaffold = Builder(trace).build(list(direction))
                before = model.regenerator.detach(scaffold, counts=True)
                placed = GivenValues({node: way * distance for node, way in direction.items()})
                weight = model.regenerator.regenerate(scaffold, placed).minus(before)
                if weight.impossible or not math.isfinite(weight.total):
                    return math.inf
                change = weight.total
    except VentureError:
        return math.inf
    finally:
        trace.rng.bit_generator.state = state
    return -change / math.log(FURTHER / FAR)


def _error(trace: Trace, nodes: list[int], way: str) -> KernelError:
    names = listed(list(dict.fromkeys(name_of_choice(trace, node) for node in nodes)), SHOWN)
    code, slot, _ = trace.decode(nodes[0])
    return KernelError(
        f"the posterior is improper: it has no finite total as {names} {way} without end",
        code.slots[slot].span,
        "a proper prior in the place of flat, as (normal 0 10), or data that inform it",
    )
