"""Draws from distributions cut to intervals, in columns: by halving, between the tails of a distribution function.

An interval is one of the free coordinate, so that its ends lie in any support. Counts, one by one, are cut to those
above some count.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from venture_lite.procedures import registry
from venture_lite.procedures.distributions.tails import TAILS, Tails, log_between
from venture_lite.procedures.numeric import on_columns
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import Elementwise, values_of_rows

HALVINGS = 52
"""Of an interval: to the last digit of its length."""

Interval = tuple[float, float]
"""Of a free coordinate."""


def can_be_cut(record: Any) -> bool:
    """Whether the distribution is of numbers over an interval, and has a distribution function."""
    return _has_function(record) and isinstance(record.transform, Elementwise)


def has_tail(record: Any) -> bool:
    """Whether the distribution is of counts, and has a distribution function."""
    return _has_function(record) and record.transform is None


def _has_function(record: Any) -> bool:
    name = getattr(record, "name", "")
    return name in TAILS and registry.PROCEDURES.get(name) is record


@functools.cache
def _in_columns(name: str) -> Tails:
    return Tails(on_columns(TAILS[name].below), on_columns(TAILS[name].above))


_between = on_columns(log_between)


def drawn_between(
    rng: np.random.Generator, record: Random, count: int, arguments: Sequence[Any], interval: Interval
) -> np.ndarray:
    """So many draws given that their free coordinates lie in an interval; each argument is one number or (count,). NaN
    where the distribution has no probability there."""
    functions, transform = _in_columns(record.name), record.transform
    assert transform is not None
    given = [*arguments, *[each.default for each in record.arguments[len(arguments) :]]]

    def tails(free: np.ndarray) -> tuple[Any, Any]:
        value = values_of_rows(transform, free, given)
        return functions.below(value, *given), functions.above(value, *given)

    with np.errstate(all="ignore"):
        low, high = (np.full(count, end) for end in interval)
        ends = values_of_rows(transform, np.array(interval), [np.ravel(x)[0] for x in given])
        if ends[0] > ends[1]:
            low, high = high, low
        start = tails(low)
        whole = _between(*start, *tails(high))
        wanted = whole + np.log1p(-rng.random(count))
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            is_reached = _between(*start, *tails(middle)) >= wanted
            low, high = np.where(is_reached, low, middle), np.where(is_reached, middle, high)
        found = values_of_rows(transform, 0.5 * (low + high), given)
        return np.where(whole > -np.inf, found, np.nan)


def log_tail(record: Random, last: int, arguments: Sequence[Any]) -> float:
    """The log probability of the counts above `last`."""
    return TAILS[record.name].above(last, *arguments)


def drawn_beyond(rng: np.random.Generator, record: Random, last: int, arguments: Sequence[Any]) -> int | None:
    """A count above `last`: the first of which no more than a share of that tail, drawn evenly, lies above it. None
    where the tail has no probability."""
    above = TAILS[record.name].above
    left = above(last, *arguments) + math.log1p(-rng.random())
    if not left > -math.inf:
        return None
    low, step = last, 1
    while above(low + step, *arguments) > left:
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if above(middle, *arguments) > left else (low, middle)
    return high
