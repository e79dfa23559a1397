"""What a caller from Python sees of a mistake: its message and place, and no frames of the package."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from venture_lite.errors import VentureError, python_cause

P = ParamSpec("P")
T = TypeVar("T")


def door(method: Callable[P, T]) -> Callable[P, T]:
    """A method that a user calls: a VentureError leaves it with the traceback of the caller alone, and after the
    exception of a registered function where that is what it began with. The frames are kept in its `frames`."""

    @functools.wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except VentureError as error:
            error.frames = error.__traceback__
            raise error.with_traceback(None) from python_cause(error)

    return called
