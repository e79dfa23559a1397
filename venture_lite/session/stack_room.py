"""Room on Python's own stack for all the calls of an inference.

CPython (3.11 and later) keeps the frames of Python functions in chunks of 16 KB, and gives a chunk back to the system
when the first frame in it returns. Where a loop stands at the end of a chunk, each of its calls maps, touches and
unmaps one: a transition takes two to five times as long, by nothing but how deep the caller stands. A frame larger than
a chunk gets one of its own, twice as large as it, so that the calls of what runs in it have the other half.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SLOTS = 1 << 16
"""Of a frame with room: 512 KB of addresses, of which only what is used takes memory, and as much behind them, some
thousand frames."""


def with_room(function: Callable[P, T]) -> Callable[P, T]:
    """The function itself, in whose calls no loop stands at the end of a chunk. A generator's frame is not on this
    stack."""
    code = function.__code__
    function.__code__ = code.replace(co_stacksize=code.co_stacksize + SLOTS)
    return function
