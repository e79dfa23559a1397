"""Procedures that a user registers from Python, with what they return checked."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError, VentureError
from venture_lite.procedures.domains import ANY
from venture_lite.procedures.record import REQUIRED, Argument, Random
from venture_lite.procedures.transforms import Transform
from venture_lite.values import Symbol, from_python


def user_random(
    name: str,
    simulate: Callable[..., Any],
    log_density: Callable[..., Any],
    support: Callable[..., Iterable[Any]] | None = None,
    arguments: Sequence[Argument | str] | None = None,
    transform: Transform | None = None,
    summary: str = "A procedure registered from Python.",
) -> Random:
    """A record of `simulate(rng, *arguments)` and `log_density(value, *arguments)`.

    `arguments` are names or `Argument`s with domains; left out, they are read from the parameters of `log_density`.
    Raises ArgumentError where they cannot be, and, when the record is used, for results that are not what they must be.
    """
    taken = _from_signature(name, log_density) if arguments is None else tuple(map(_argument, arguments))

    def checked_simulate(rng: np.random.Generator, *args: Any) -> Any:
        return _value(name, "simulate", _called(name, "simulate", simulate, rng, *args))

    def checked_density(value: Any, *args: Any) -> float:
        return _density(name, _called(name, "log_density", log_density, value, *args))

    def checked_support(*args: Any) -> Sequence[Any]:
        assert support is not None
        values = _called(name, "support", support, *args)
        try:
            return tuple(_value(name, "support", value) for value in values)
        except TypeError:
            raise ArgumentError(f"{name}: its support returned {values!r}, not a list of values") from None

    return Random(
        name,
        taken,
        summary,
        checked_simulate,
        checked_density,
        support=None if support is None else checked_support,
        transform=transform,
        source="registered from Python",
    )


def _argument(given: Argument | str) -> Argument:
    return Argument(given, ANY) if isinstance(given, str) else given


def _from_signature(name: str, log_density: Callable[..., Any]) -> tuple[Argument, ...]:
    try:
        parameters = list(inspect.signature(log_density).parameters.values())
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: the arguments of its log_density are not known", hint="name them") from None
    if any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters) or not parameters:
        raise ArgumentError(f"{name}: log_density must take the value and then each argument", hint="name them")
    return tuple(Argument(p.name, ANY, REQUIRED if p.default is p.empty else p.default) for p in parameters[1:])


def _called(name: str, role: str, function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except VentureError:
        raise
    except Exception as error:
        raise ArgumentError(f"{name}: its {role} raised {type(error).__name__}: {error}") from error


def _value(name: str, role: str, given: Any) -> Any:
    value = from_python(given)
    if not _is_value(value):
        raise ArgumentError(f"{name}: its {role} returned {given!r}, which is no value of the language")
    return value


def _is_value(value: Any) -> bool:
    if isinstance(value, float):
        return value == value
    if isinstance(value, np.ndarray):
        return not np.isnan(value).any()
    if isinstance(value, tuple):
        return all(map(_is_value, value))
    return isinstance(value, (int, str, Symbol))


def _density(name: str, given: Any) -> float:
    if given.__class__ is not float:
        number = from_python(given)
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise ArgumentError(f"{name}: its log_density returned {given!r}, not a number")
        given = float(number)
    if not given < math.inf:
        raise ArgumentError(f"{name}: its log_density returned {given}; it must be a finite number or minus infinity")
    return given  # type: ignore[no-any-return]
