"""Whether the posterior is improper, so that nothing can be drawn from it: seen before anything is drawn.

Of a `flat`, far out: a density that falls no faster than 1 / x along one number, or than r^-k over k of them, has no
finite total. How fast it falls is how it changes between two points so far out that nothing is left of the data's
scale: what informs a `flat` at all leaves a power of x there, or less. Not met is a ridge that goes aslant, as of two
levels of which only the sum is informed, and a density that is zero so far out for want of digits, as where a rate
underflows: there draws run away, and R-hat tells.

Of data that are all equal, near the exact fit: where n data stand at their location, the density grows as s^-n towards
a scale s of 0, and k locations lie within s of their data in a volume of s^k. There is no finite total where the prior
of s, with what else s weighs, falls no faster than s^(n - k - 1). Not met is an exact fit by what is computed, as by a
line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from typing import Any

from venture_lite.blocks.distributions import transform_of
from venture_lite.draws.presentation import listed
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.ancestry import name_of_choice
from venture_lite.interpreter.model import GivenValues, Model
from venture_lite.interpreter.scaffold import Builder, absorbing_count, absorbing_rows
from venture_lite.interpreter.sources import application_nodes, computed_from, source_nodes
from venture_lite.procedures.distributions.improper import FLAT, FLAT_ABOVE, FLAT_BELOW
from venture_lite.procedures.transforms import REAL
from venture_lite.trace.trace import Trace
from venture_lite.values import is_number

FAR, FURTHER = 1e20, 1e40
SLACK = 0.05
"""By which a power may be above the least, for rounding."""
MOST_LOOKED_AT = 30
"""Choices, each of which costs what a transition does."""
MOST_DATA = 10_000
"""Of a scale; more are hardly all equal."""
DIRECTIONS: dict[Any, tuple[float, ...]] = {FLAT: (1.0, -1.0), FLAT_ABOVE: (1.0,), FLAT_BELOW: (-1.0,)}
SHOWN = 4
INFORM = "a proper prior in the place of flat, as (normal 0 10), or data that inform it"
EQUAL = (
    "a prior of the scale that keeps away from 0, as (lognormal 0 1) or (inv_gamma 2 1), or data as they were measured"
)


def refuse_improper(model: Model, smooth: Iterable[int]) -> None:
    """Raise KernelError where the posterior is improper along a `flat` among these choices, or along all of them. The
    trace and its generator stay as they are."""
    trace = model.trace
    flats = [node for node in smooth if trace.choice(node)[0] in DIRECTIONS][:MOST_LOOKED_AT]
    for node in flats:
        for sign in DIRECTIONS[trace.choice(node)[0]]:
            if _power(model, partial(_far, {node: sign})) <= 1.0 + SLACK:
                raise _error(trace, [node], f"{'in' if sign > 0 else 'de'}creases without end")
    # of several the direction is any that is none of the axes
    together = {node: DIRECTIONS[trace.choice(node)[0]][0] * (1.0 + 0.3 * at) for at, node in enumerate(flats)}
    if len(flats) > 1 and _power(model, partial(_far, together)) <= len(flats) + SLACK:
        raise _error(trace, flats, "go far out together without end")


def refuse_exact_fit(model: Model, smooth: Iterable[int]) -> None:
    """Raise KernelError where data are all equal, their location and scale are choices, and the posterior is improper
    as the scale decreases to 0. The trace and its generator stay as they are."""
    trace = model.trace
    numbers = [node for node in smooth if isinstance(trace.value(node), float)]
    reals = {node for node in numbers if transform_of(trace.choice(node)[0]) is REAL}
    for scale in [node for node in numbers if node not in reals][:MOST_LOOKED_AT]:
        places = _locations(trace, scale, reals)
        if places and -_power(model, partial(_fitted, places, scale)) >= len(places) + 1.0 - SLACK:
            raise _error(trace, [scale], "decreases to 0, where all data stand at their location", EQUAL)


def _locations(trace: Trace, scale: int, reals: Container[int]) -> dict[int, float]:
    """The choices that are the locations of all data that a scale weighs, with what all data of each are; none where
    others weigh data, or data differ."""
    found: dict[int, float] = {}
    scaffold = Builder(trace).build([scale])
    if absorbing_count(trace, scaffold) > MOST_DATA:
        return {}
    for node in absorbing_rows(trace, scaffold):
        if trace.is_observed(node):
            value, read = trace.value(node), [_choice(trace, parent) for parent in application_nodes(trace, node)]
            locations = [parent for parent in read if parent is not None and parent in reals]
            if not is_number(value) or len(locations) != 1 or found.setdefault(locations[0], value) != value:
                return {}
    return found


def _choice(trace: Trace, node: int) -> int | None:
    """The choice whose value a node hands on; None where it computes one."""
    while (source := computed_from(trace, node)) is not None:
        nodes = () if source.is_applied else source_nodes(trace, source)
        if not nodes:
            return None
        node = nodes[0]
    return node


def _fitted(places: Mapping[int, float], scale: int, distance: float) -> dict[int, float]:
    return {**places, scale: 1.0 / distance}


def _far(direction: Mapping[int, float], distance: float) -> dict[int, float]:
    return {node: way * distance for node, way in direction.items()}


def _power(model: Model, placed: Callable[[float], dict[int, float]]) -> float:
    """The p of a density that falls as distance^-p along a way; infinite where it is zero or has no value."""
    trace, change = model.trace, math.inf
    state = trace.rng.bit_generator.state
    try:
        with model.aside():
            for distance in (FAR, FURTHER):
                # all at once: a location that is moved before its scale would leave nothing but rounding
                values = placed(distance)
                scaffold = Builder(trace).build(list(values))
                before = model.regenerator.detach(scaffold, counts=True)
                weight = model.regenerator.regenerate(scaffold, GivenValues(values)).minus(before)
                if weight.impossible or not math.isfinite(weight.total):
                    return math.inf
                change = weight.total
    except VentureError:
        return math.inf
    finally:
        trace.rng.bit_generator.state = state
    return -change / math.log(FURTHER / FAR)


def _error(trace: Trace, nodes: list[int], way: str, hint: str = INFORM) -> KernelError:
    names = listed(list(dict.fromkeys(name_of_choice(trace, node) for node in nodes)), SHOWN)
    code, slot, _ = trace.decode(nodes[0])
    return KernelError(
        f"the posterior is improper: it has no finite total as {names} {way}",
        code.slots[slot].span,
        hint,
    )
