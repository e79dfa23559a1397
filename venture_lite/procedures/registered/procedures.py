"""Procedures that a user registers from Python: records like all others, made of functions whose results are checked.

The functions see values as the trace holds them: numbers, booleans and strings, `Symbol`s, lists as tuples, vectors and
matrices as read-only float arrays. They must be functions of what they are given alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures.checks import check_arguments, columns_valid, record_valid
from venture_lite.procedures.columns import Flags, RowByRow
from venture_lite.procedures.predictor import LinearPredictor
from venture_lite.procedures.record import UNKNOWN, Columns, Deterministic, Gradient, Random
from venture_lite.procedures.registered.results import array_of, called, density_of, drawn, value_of, values_of
from venture_lite.procedures.registered.signatures import Arguments, arguments_of
from venture_lite.procedures.registered.value_domains import ValueDomain, value_domain

SOURCE = "registered from Python"
VALUE = "value"
"""What a gradient calls the derivative with respect to the value."""
TOLERANCE = 1e-6
"""How far, relatively, a density in columns may be from the one of single values."""


def user_random(
    name: str,
    simulate: Callable[..., Any],
    log_density: Callable[..., Any],
    *,
    arguments: Arguments | None = None,
    domain: Any = None,
    support: Callable[..., Iterable[Any]] | None = None,
    log_density_columns: Callable[..., Any] | None = None,
    gradient: Mapping[str, Callable[..., Any]] | None = None,
    gradient_columns: Mapping[str, Callable[..., Any]] | None = None,
    predictor: LinearPredictor | None = None,
    log_bound: float | Callable[..., float] | None = None,
    summary: str = "A random procedure registered from Python.",
) -> Random:
    """A record of `simulate(rng, *arguments)` and `log_density(value, *arguments)`; see `Venture.register`.

    Raises ArgumentError where it cannot be made, and, when it is used, for results that are not what they must be.
    """
    _refuse_not_callable(name, simulate=simulate, log_density=log_density)
    taken, rest = arguments_of(name, "log_density", log_density, arguments, skipped=1)
    if rest is not None:
        raise ArgumentError(
            f"{name}: a random procedure takes a fixed number of arguments", hint="name them: arguments=[...]"
        )
    inside = value_domain(name, domain)

    def checked_simulate(rng: np.random.Generator, *args: Any) -> Any:
        return drawn(name, called(name, "simulate", simulate, rng, *args), inside)

    def checked_density(value: Any, *args: Any) -> float:
        if inside is not None and not inside.contains(value):
            return -math.inf
        return density_of(name, "log_density", called(name, "log_density", log_density, value, *args))

    def checked_support(*args: Any) -> Sequence[Any]:
        assert support is not None
        return values_of(name, "support", called(name, "support", support, *args))

    columns = None
    if log_density_columns is not None:
        columns = _density_columns(name, log_density_columns, checked_density, inside)
    return Random(
        name,
        taken,
        summary,
        checked_simulate,
        checked_density,
        columns,
        support=None if support is None else checked_support,
        transform=None if inside is None else inside.transform,
        source=SOURCE,
        gradient=_gradient(name, [argument.name for argument in taken], gradient or {}, gradient_columns or {}),
        predictor=predictor,
        log_bound=_bound(name, log_bound),
    )


def user_function(
    name: str,
    function: Callable[..., Any],
    *,
    arguments: Arguments | None = None,
    columns: Callable[..., Any] | None = None,
    summary: str = "A function registered from Python.",
) -> Deterministic:
    """A record of a deterministic function; see `Venture.register`."""
    _refuse_not_callable(name, function=function)
    taken, rest = arguments_of(name, "function", function, arguments, skipped=0)

    def checked(*args: Any) -> Any:
        # the trace asks no domain before it calls a function: those of the language fail by themselves
        if not valid(*args):
            check_arguments(record, args)
        return value_of(name, "function", called(name, "function", function, *args))

    def checked_columns(lifted: Flags, *args: Any) -> np.ndarray:
        if not columns_valid(record, lifted, args):
            raise RowByRow
        assert columns is not None
        return _function_columns(name, columns, lifted, args)

    record = Deterministic(name, taken, summary, checked, checked_columns if columns else None, rest)
    valid = record_valid(record)
    return record


def _refuse_not_callable(name: str, **functions: Any) -> None:
    for role, function in functions.items():
        if not callable(function):
            raise ArgumentError(f"{name}: its {role} must be a function, got {function!r}")


def _bound(name: str, given: float | Callable[..., float] | None) -> Callable[..., float] | None:
    """The bound as a function of the value and the arguments, where None stands for what is not known."""
    if given is None:
        return None
    if not callable(given):
        number = float(density_of(name, "log_bound", given))
        return lambda value, *args: number

    def bound(value: Any, *args: Any) -> float:
        known = [None if argument is UNKNOWN else argument for argument in args]
        found = called(name, "log_bound", given, value, *known)
        return found if found == math.inf else density_of(name, "log_bound", found)

    return bound


# ------------------------------------------------------------------------------------------------------- columns


def rows_first(lifted: Flags, arguments: tuple[Any, ...]) -> list[np.ndarray]:
    """Every argument as a read-only array whose first axis is the rows; what all rows share is repeated, not copied."""
    count = next((len(value) for value, up in zip(arguments, lifted, strict=True) if up), None)
    if count is None:
        raise RowByRow
    found = []
    for value, up in zip(arguments, lifted, strict=True):
        column = value if up else _repeated(value, count)
        column = column.view()
        column.flags.writeable = False
        found.append(column)
    return found


def _repeated(value: Any, count: int) -> np.ndarray:
    if isinstance(value, (int, float, np.ndarray)):
        single = np.asarray(value)
    else:
        single = np.empty((), object)
        single[()] = value
    return np.broadcast_to(single, (count, *single.shape))


def _density_columns(
    name: str, function: Callable[..., Any], density: Callable[..., float], inside: ValueDomain | None
) -> Columns:
    """The columns form of a density, held to the density of single values when it is first used."""
    role = "log_density_columns"
    compared = False

    def columns(lifted: Flags, *arguments: Any) -> np.ndarray:
        nonlocal compared
        rows = rows_first(lifted, arguments)
        given, count = called(name, role, function, *rows), len(rows[0])
        must = f", not one number for each of {count} rows"
        terms = array_of(name, role, given, lambda shape: shape == (count,), must).astype(np.float64)
        if inside is not None:
            terms = np.where(inside.contains_rows(rows[0]), terms, -np.inf)
        wrong = ~(terms < np.inf)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ArgumentError(
                f"{name}: its {role} returned {terms[at]} for the value {rows[0][at]}; "
                "it must be a finite number or minus infinity"
            )
        if not compared:
            for at in {0, len(terms) // 2, len(terms) - 1} if len(terms) else ():
                _refuse_difference(name, density(*[_plain(row[at]) for row in rows]), float(terms[at]), rows[0][at])
            compared = True
        return terms

    return columns


def _refuse_difference(name: str, single: float, together: float, value: Any) -> None:
    if single == together or math.isclose(single, together, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        return
    raise ArgumentError(
        f"{name}: its log_density gives {single:.10g} for the value {value}, its log_density_columns {together:.10g}",
        hint="the two must be one function",
    )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _function_columns(name: str, function: Callable[..., Any], lifted: Flags, arguments: tuple[Any, ...]) -> np.ndarray:
    rows = rows_first(lifted, arguments)
    given, count = np.asarray(called(name, "columns", function, *rows)), len(rows[0])
    must = f", not one value for each of {count} rows"
    result = array_of(name, "columns", given, lambda shape: shape[:1] == (count,), must)
    if result.dtype.kind == "f" and np.isnan(result).any():
        raise ArgumentError(f"{name}: its columns returned NaN in row {int(np.argwhere(np.isnan(result))[0][0])}")
    # a copy: what the function keeps of its result must not change the trace
    return np.array(result)


# ------------------------------------------------------------------------------------------------------ gradient


def _gradient(
    name: str,
    arguments: list[str],
    single: Mapping[str, Callable[..., Any]],
    together: Mapping[str, Callable[..., Any]],
) -> Gradient | None:
    """The derivatives of a density by what they are taken in: VALUE, or the name of an argument."""
    names = [VALUE, *arguments]
    for given in (*single, *together):
        if given not in names:
            raise ArgumentError(
                f"{name}: a gradient in {given}, which it does not take", hint=f"one of {', '.join(names)}"
            )
    if together.keys() - single.keys():
        raise ArgumentError(f"{name}: gradient_columns goes with a gradient of single values", hint="give both")
    if not single:
        return None

    def derivative(what: str, lifted: Flags, position: int, values: tuple[Any, ...]) -> Any:
        role = f"gradient in {what}"
        if not any(lifted):
            return _derivative(name, role, called(name, role, single[what], *values), np.shape(values[position]))
        if what not in together:
            raise RowByRow
        rows = rows_first(lifted, values)
        found = _derivative(name, role, called(name, role, together[what], *rows), rows[position].shape)
        return found if lifted[position] else found.sum(axis=0)

    def evaluate(lifted: Flags, wanted: Flags, *values: Any) -> tuple[Any, ...]:
        return tuple(
            derivative(what, lifted, position, values) if want and what in single else None
            for position, (what, want) in enumerate(zip(names, wanted, strict=True))
        )

    return Gradient(tuple(what in single for what in names), evaluate)


def _derivative(name: str, role: str, given: Any, shape: tuple[int, ...]) -> Any:
    must = f"; it has the shape {shape} of what it is taken in"
    found = array_of(name, role, given, lambda found: found == shape, must)
    if not np.isfinite(found).all():
        raise ArgumentError(f"{name}: its {role} returned {given}, which is not finite")
    return found.astype(np.float64) if shape else float(found)
