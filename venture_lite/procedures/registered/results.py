"""What the functions of a registered procedure return, checked: an error names the procedure and its function."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError, VentureError
from venture_lite.procedures.registered.value_domains import ValueDomain
from venture_lite.values import from_python, is_value

LONGEST_SUPPORT = 100_000
"""Candidates beyond which no engine enumerates: an endless generator ends here."""


CHANGING = ("add", "remove", "restore", "set_arguments", "recount")
"""What a maker's state is asked that changes it: to be broken off, it would have to know how to go back."""


def changes_nothing(role: str) -> bool:
    """Whether a call of a user's function can be broken off anywhere."""
    return role not in CHANGING


def called(name: str, role: str, function: Callable[..., Any], *args: Any) -> Any:
    """The function's result; its exceptions become errors that name the procedure, with the cause kept."""
    try:
        with np.errstate(all="ignore"):
            return function(*args)
    except VentureError:
        raise
    except Exception as error:
        raise ArgumentError(f"{name}: its {role} raised {type(error).__name__}: {error}") from error


def value_of(name: str, role: str, given: Any) -> Any:
    """A value of the language."""
    value = from_python(given)
    if not is_value(value):
        raise ArgumentError(f"{name}: its {role} returned {given!r}, which is no value of the language")
    return value


def density_of(name: str, role: str, given: Any) -> float:
    """A log density: a finite number or minus infinity."""
    if given.__class__ is not float:
        number = from_python(given)
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise ArgumentError(f"{name}: its {role} returned {given!r}, not a number")
        given = float(number)
    if not given < math.inf:
        raise ArgumentError(f"{name}: its {role} returned {given}; it must be a finite number or minus infinity")
    return given  # type: ignore[no-any-return]


def array_of(name: str, role: str, given: Any, fits: Callable[[tuple[int, ...]], bool], must: str) -> np.ndarray:
    """Numbers in an array whose shape fits; `must` ends the message where they are not."""
    found = np.asarray(given)
    are_numbers = found.dtype.kind in "biuf"
    if not (are_numbers and fits(found.shape)):
        what = f"an array of shape {found.shape}" if are_numbers else repr(given)
        raise ArgumentError(f"{name}: its {role} returned {what}{must}")
    return found


def drawn(name: str, given: Any, inside: ValueDomain | None) -> Any:
    """What `simulate` returned: a value of the language, inside the domain."""
    value = value_of(name, "simulate", given)
    if inside is not None and not inside.contains(value):
        raise ArgumentError(f"{name}: its simulate returned {value!r}, but its values are {inside.phrase}")
    return value


def values_of(name: str, role: str, given: Any) -> tuple[Any, ...]:
    """A list of values, as a support is one."""
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise ArgumentError(f"{name}: its {role} returned {given!r}, not a list of values")
    values = tuple(value_of(name, role, value) for value in itertools.islice(given, LONGEST_SUPPORT + 1))
    if len(values) > LONGEST_SUPPORT:
        raise ArgumentError(f"{name}: its {role} has more than {LONGEST_SUPPORT:,} values")
    if not values:
        raise ArgumentError(f"{name}: its {role} is empty")
    return values
