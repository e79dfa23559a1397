"""Evaluating many rows in one call: the shared adapters of the records' `columns` forms.

What an adapter cannot do in one call it answers by raising `RowByRow`, and the caller evaluates the rows one at a time,
which also finds the row that an error belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from venture_lite.procedures.record import Columns


Flags = tuple[bool, ...]
"""A truth value for each argument: whether it is lifted, whether its derivative exists or is wanted."""

np.empty(31 << 17)
# glibc learns from the first large array that is freed, here one of 31 MB that nothing is written to: from then on it
# keeps up to twice its size, and does not hand the pages of temporaries back after each evaluation. Getting them again
# cost five times the arithmetic (10,000 rows of student_t with derivatives: 0.55 ms, 0.11 ms without).

SAFE_INTEGER = 2**31
"""Sums and products of two integers below this stay within 64 bits."""


_FLOAT = np.dtype(np.float64)


class RowByRow(Exception):
    """These columns cannot be evaluated together."""


def numeric(argument: Any, lifted: bool) -> Any:
    """A lifted argument as an array of numbers, booleans as integers; a uniform one as it is, if it is numeric."""
    if hasattr(argument, "dtype"):
        if argument.dtype.kind == "f":
            return argument
        if argument.dtype.kind == "b":
            return argument.astype(np.int64)
        if argument.dtype.kind != "i":
            raise RowByRow
        return argument
    if lifted or not isinstance(argument, (int, float)):
        raise RowByRow
    return argument


def are_floats(given: Any) -> bool:
    """Whether it is a number, or an array of floats."""
    return given.dtype is _FLOAT if given.__class__ is np.ndarray else isinstance(given, (float, int))


def has_nan(numbers: np.ndarray) -> bool:
    """Whether a NaN is among floats (N,): their inner product, which takes a fifth of the time that looking at each
    takes, is none only where one of them is. Called where NumPy ignores floating-point errors."""
    return math.isnan(numbers.dot(numbers))


def single_numbers(lifted: Flags, arguments: tuple[Any, ...]) -> list[Any]:
    """The arguments of an operation on numbers, each one number or a column of them."""
    for argument, up in zip(arguments, lifted, strict=True):
        if up:
            if type(argument) is not np.ndarray or argument.dtype is not _FLOAT or argument.ndim != 1:
                break
        elif type(argument) is not float:
            break
    else:
        # as most often
        return list(arguments)
    numbers = [numeric(argument, up) for argument, up in zip(arguments, lifted, strict=True)]
    if any(getattr(number, "ndim", 0) != up for number, up in zip(numbers, lifted, strict=True)):
        raise RowByRow
    return numbers


def arrays(lifted: Flags, dimensions: tuple[int, ...], arguments: tuple[Any, ...]) -> list[np.ndarray]:
    """The arguments as arrays of numbers, each with the dimensions of one row and one more where it is lifted."""
    found = [argument if hasattr(argument, "dtype") else np.asarray(argument) for argument in arguments]
    for array, up, dimension in zip(found, lifted, dimensions, strict=True):
        if array.dtype.kind not in "fbiu" or array.ndim != dimension + up:
            raise RowByRow
    return found


def aligned(lifted: Flags, arguments: tuple[Any, ...]) -> list[Any]:
    """The arguments of an elementwise operation, shaped so that NumPy's broadcasting pairs rows with rows.

    In one row each argument must be a single number, or have the shape that all others that are not numbers have.
    """
    numbers = [numeric(argument, up) for argument, up in zip(arguments, lifted, strict=True)]
    shapes = [x.shape[up:] if hasattr(x, "shape") else () for x, up in zip(numbers, lifted, strict=True)]
    shape = max(shapes, key=len)
    if not shape:
        return numbers
    if any(one and one != shape for one in shapes):
        raise RowByRow
    return [
        x.reshape(x.shape + (1,) * len(shape)) if up and not one else x
        for x, up, one in zip(numbers, lifted, shapes, strict=True)
    ]


def elementwise(operation: Callable[..., Any]) -> Columns:
    """Columns form of an elementwise operation on floats; a result with NaN goes back row by row, to be located."""

    def columns(lifted: Flags, *arguments: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            result: np.ndarray = operation(*aligned(lifted, arguments))
        if result.dtype.kind == "f" and np.isnan(result).any():
            raise RowByRow
        return result

    return columns


def folded(operation: Callable[[Any, Any], Any], grows: bool = True) -> Columns:
    """Columns form of an operation on two or more arguments, one after the other; where its result `grows`, as that of
    a sum or a product, integers are kept exact."""

    def columns(lifted: Flags, *arguments: Any) -> np.ndarray:
        if len(arguments) < 2:
            raise RowByRow
        numbers = aligned(lifted, arguments)
        with np.errstate(all="ignore"):
            result = numbers[0]
            for number in numbers[1:]:
                if grows and _may_overflow(result, number):
                    raise RowByRow
                result = operation(result, number)
        if result.dtype.kind == "f" and np.isnan(result).any():
            raise RowByRow
        return result  # type: ignore[no-any-return]

    return columns


def _may_overflow(left: Any, right: Any) -> bool:
    return _is_integer(left) and _is_integer(right) and not (_is_small(left) and _is_small(right))


def _is_integer(number: Any) -> bool:
    return number.dtype.kind == "i" if isinstance(number, np.ndarray) else isinstance(number, int)


def _is_small(number: Any) -> bool:
    if isinstance(number, np.ndarray):
        return not number.size or bool(number.max() < SAFE_INTEGER and number.min() > -SAFE_INTEGER)
    return bool(-SAFE_INTEGER < number < SAFE_INTEGER)
