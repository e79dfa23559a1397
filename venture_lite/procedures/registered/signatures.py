"""What the functions of a registered procedure take: names and domains, as given or as their signatures tell them.

A domain is written as a name (`"positive"`), a pair of bounds (`(0, 10)`, both included), a type (`float`, `int`,
`bool`, `str`, `np.ndarray`, `list`), or a `Domain`. In a signature it is the type hint: `sd: float`, or
`sd: Annotated[float, "positive"]`.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError, nearest
from venture_lite.procedures import domains
from venture_lite.procedures.domains import Domain
from venture_lite.procedures.record import REQUIRED, Argument

DomainLike = str | tuple[float, float] | type | Domain
"""How a domain is written."""
Arguments = Sequence[str | Argument] | Mapping[str, DomainLike]
"""The arguments of a procedure: names, `Argument`s, or names with their domains."""

NAMED: dict[str, Domain] = {domain.name: domain for domain in vars(domains).values() if isinstance(domain, Domain)}

ARRAY = domains.of_kind("array", "a vector or a matrix", np.ndarray)
NAMED[ARRAY.name] = ARRAY
OF_TYPE: dict[Any, Domain] = {
    float: domains.REAL,
    int: domains.INTEGER,
    bool: domains.BOOLEAN_LIKE,
    str: domains.STRING,
    np.ndarray: ARRAY,
    list: domains.LIST,
    tuple: domains.LIST,
}
ANY: DomainLike = domains.ANY


def domain_of(procedure: str, argument: str, given: Any) -> Domain:
    """The domain that was written for an argument. Raises ArgumentError for what is none."""
    match given:
        case Domain():
            return given
        case str() if given in NAMED:
            return NAMED[given]
        case (float() | int() as low, float() | int() as high) if low < high:
            return _between(float(low), float(high))
        case type() if given in OF_TYPE:
            return OF_TYPE[given]
    hint = nearest(given, NAMED) if isinstance(given, str) else None
    raise ArgumentError(
        f"{procedure}: {given!r} is no domain for its argument {argument}",
        hint=hint or f"one of {', '.join(NAMED)}; a pair (low, high); or float, int, bool, str",
    )


def _between(low: float, high: float) -> Domain:
    between = f"from {low:g} to {high:g}"
    return domains.numbers(between, f"a number {between}", f"{low!r} <= {{x}} <= {high!r}")


def arguments_of(
    procedure: str, role: str, function: Callable[..., Any], given: Arguments | None, skipped: int
) -> tuple[tuple[Argument, ...], Domain | None]:
    """The arguments of a procedure, and the domain of any further ones where it takes any number.

    What was given wins. Otherwise they are read from the signature of `function`, whose first `skipped` parameters are
    not the procedure's own (the generator, the value). Raises ArgumentError where that cannot be.
    """
    if isinstance(given, Mapping):
        return tuple(Argument(name, domain_of(procedure, name, domain)) for name, domain in given.items()), None
    if isinstance(given, str):
        raise ArgumentError(f"{procedure}: its arguments are a list of names, got {given!r}", hint=f'["{given}"]')
    if given is not None:
        return tuple(Argument(item, domains.ANY) if isinstance(item, str) else item for item in given), None
    return _read(procedure, role, function, skipped)


def _read(
    procedure: str, role: str, function: Callable[..., Any], skipped: int
) -> tuple[tuple[Argument, ...], Domain | None]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{procedure}: the arguments of its {role} are not known", hint='name them: arguments=["a", "b"]'
        ) from None
    hints = _hints(function)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
    needed = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if len(positional) < skipped or needed:
        which = f"{needed[0]} by name only" if needed else f"{len(positional)} arguments"
        raise ArgumentError(f"{procedure}: {role} takes {which}", hint=_CALLED.get(role))
    arguments = tuple(
        Argument(p.name, _hinted(hints.get(p.name)), REQUIRED if p.default is p.empty else p.default)
        for p in positional[skipped:]
    )
    return arguments, _hinted(hints.get(rest[0].name)) if rest else None


_CALLED = {
    "log_density": "it is called with the value, then each argument: log_density(value, mean, sd)",
    "function": "it is called with each argument in turn",
    "make": "it is called with each parameter in turn",
    "log_predictive": "it is called with the value, then what the application is given",
}


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Type hints by parameter; none where they name what is not there (they are for the type checker then)."""
    target = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}


def _hinted(hint: Any) -> Domain:
    """The domain that a type hint stands for; any value for a hint that says nothing about one."""
    if typing.get_origin(hint) is typing.Annotated:
        base, *extras = typing.get_args(hint)
        for extra in extras:
            named = isinstance(extra, str) and extra in NAMED
            if named or isinstance(extra, Domain) or (isinstance(extra, tuple) and len(extra) == 2):
                return domain_of("", "", extra)
        return _hinted(base)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(hint) if part is not type(None)]
        return _hinted(parts[0]) if len(parts) == 1 else domains.ANY
    origin = typing.get_origin(hint) or hint
    return OF_TYPE.get(origin, domains.ANY) if isinstance(origin, type) else domains.ANY
