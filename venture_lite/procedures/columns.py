"""Evaluating many rows in one call: the shared adapters of the records' `columns` forms.

What an adapter cannot do in one call it answers by raising `RowByRow`, and the caller evaluates the rows one at a time,
which also finds the row that an error belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
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
    # true as 1: NumPy's functions of a truth value have three digits
    return +argument


EXACT = 2**53
"""Integers of this size and below are floats without loss."""

_KINDS = {"b": bool, "i": int, "f": float}


def kinds_of(values: Iterable[Any]) -> set[type | None]:
    """The kinds of numbers and of the entries of columns: float, int or bool, and None for what is no number."""
    return {_kind(value) for value in values}


def _kind(value: Any) -> type | None:
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return _KINDS.get(dtype.kind)
    return value.__class__ if value.__class__ in (float, int, bool) else None


def keep_exact(kinds: set[type | None], numbers: Iterable[Any]) -> None:
    """Raises RowByRow where numbers of these kinds are integers and floats together, and a float would round one of the
    integers."""
    if float in kinds and int in kinds and not all(_is_within(x, EXACT) for x in numbers if _kind(x) is int):
        raise RowByRow


def one_kind(*values: Any) -> None:
    """Raises RowByRow unless one array can hold the values: numbers and columns of numbers, or truth values and columns
    of these."""
    kinds = kinds_of(values)
    if None in kinds or (bool in kinds and len(kinds) > 1):
        raise RowByRow
    keep_exact(kinds, values)


def are_floats(given: Any) -> bool:
    """True if it is a number, or an array of floats, and no truth value."""
    if given.__class__ is np.ndarray:
        return given.dtype is _FLOAT
    return isinstance(given, (float, int)) and given.__class__ is not bool


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
    try:
        found = [argument if hasattr(argument, "dtype") else np.asarray(argument) for argument in arguments]
    except ValueError:  # lists of several lengths
        raise RowByRow from None
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


def folded(operation: Callable[[Any, Any], Any]) -> Columns:
    """Columns form of a sum or a product of two or more arguments, one after the other; integers are kept exact."""

    def columns(lifted: Flags, *arguments: Any) -> np.ndarray:
        return _folded(operation, lifted, arguments, grows=True)

    return columns


def extreme(is_better: Callable[[Any, Any], Any], array: Callable[[Any, Any], Any]) -> Columns:
    """Columns form of the least or the greatest of two or more arguments: the first of numbers of which none is better,
    or elementwise among vectors."""

    def better(left: Any, right: Any) -> Any:
        return (
            np.where(is_better(right, left), right, left) if np.ndim(right) < 2 > np.ndim(left) else array(left, right)
        )

    def columns(lifted: Flags, *arguments: Any) -> np.ndarray:
        kinds = kinds_of(arguments)
        if bool in kinds:
            raise RowByRow
        keep_exact(kinds, arguments)
        return _folded(better, lifted, arguments, grows=False)

    return columns


def _folded(operation: Callable[[Any, Any], Any], lifted: Flags, arguments: tuple[Any, ...], grows: bool) -> np.ndarray:
    if len(arguments) < 2:
        raise RowByRow
    result, *others = aligned(lifted, arguments)
    with np.errstate(all="ignore"):
        for number in others:
            if grows and may_overflow(result, number):
                raise RowByRow
            result = operation(result, number)
    if result.dtype.kind == "f" and np.isnan(result).any():
        raise RowByRow
    return result  # type: ignore[no-any-return]


def may_overflow(*numbers: Any) -> bool:
    """True if sums or products of two numbers might leave 64 bits: several are integers, and some are large."""
    integers = [number for number in numbers if _is_integer(number)]
    return len(integers) > 1 and not all(map(_is_within, integers))


def _is_integer(number: Any) -> bool:
    return number.dtype.kind == "i" if isinstance(number, np.ndarray) else isinstance(number, int)


def _is_within(number: Any, bound: int = SAFE_INTEGER - 1) -> bool:
    """True if an integer, or each of a column, is `bound` at most in size."""
    if isinstance(number, np.ndarray):
        return not number.size or bool(number.max() <= bound and number.min() >= -bound)
    return bool(-bound <= number <= bound)
