"""Checking the arguments of a call against the record: a message for a person, and fast tests for the trace."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError, Span
from venture_lite.procedures.columns import Flags
from venture_lite.procedures.domains import Domain
from venture_lite.procedures.record import REQUIRED, Argument, Deterministic, Maker, Procedure, Random
from venture_lite.values import show


def check_arguments(record: Procedure, args: tuple[Any, ...], span: Span | None = None) -> tuple[Any, ...]:
    """The arguments with defaults filled in.

    Raises ArgumentError that names the procedure, the argument and what was given.
    """
    check_count(record, len(args), span)
    filled = completed(record, args)
    for position, value in enumerate(filled):
        if error := argument_error(record, position, value):
            raise error.at(span)
    return filled


def completed(record: Procedure, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call, with defaults for those that it leaves out."""
    if len(values) >= len(record.arguments):
        return values
    return values + tuple(argument.default for argument in record.arguments[len(values) :])


def argument_error(record: Procedure, position: int, value: Any) -> ArgumentError | None:
    """What is wrong with one argument of a call, counted from 0, if anything is."""
    argument = _declared(record, position)
    if argument is None or accepts(argument, value):
        return None
    return argument.domain.refusal(record.name, argument.name, value)


def _declared(record: Procedure, position: int) -> Argument | None:
    """What is known of an argument, counted from 0; None where the record takes fewer."""
    if position < len(record.arguments):
        return record.arguments[position]
    rest = rest_of(record)
    return None if rest is None else Argument(f"argument {position + 1}", rest)


def check_count(record: Procedure, count: int, span: Span | None = None) -> None:
    """Raises ArgumentError unless the record takes `count` arguments."""
    required = sum(argument.default is REQUIRED for argument in record.arguments)
    if count < required or (rest_of(record) is None and count > len(record.arguments)):
        raise ArgumentError(f"{record.name} takes {_taken(record, required)}, got {count}", span)


@cache
def application_of(maker: Maker) -> Deterministic:
    """A record that says what each application of a made procedure is given, for the checks here."""
    return Deterministic(f"the procedure that {maker.name} made", maker.applied, "", maker.make)


def rest_of(record: Procedure) -> Domain | None:
    """The domain of further arguments, for records that take any number."""
    return getattr(record, "rest", None)


def accepts(argument: Argument, value: Any) -> bool:
    """Whether one value is allowed; the default None stands for an argument left out."""
    return (value is None and argument.default is None) or argument.domain.contains(value)


def is_extreme(domain: Domain, value: Any) -> bool:
    """Whether a value is outside a domain only by being, or holding, 0 or infinity in place of positive numbers."""
    meant = within(domain, value)
    return meant is not value and domain.contains(meant)


def within(domain: Domain, value: Any) -> Any:
    """The value with 1 in place of each 0 or infinity to which rounding may have taken it; itself, if it has none."""
    try:
        entries = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return value
    extreme = np.asarray(domain.at_limit(entries))
    if not extreme.any():
        return value
    meant = np.where(extreme, 1.0, entries)
    return meant if meant.ndim else float(meant)


def signature(record: Procedure) -> str:
    """The arguments as `help` and messages show them: `p [values] ...`."""
    names = [a.name if a.default is REQUIRED else f"[{a.name}]" for a in record.arguments]
    return " ".join([*names, "..."] if rest_of(record) is not None else names)


def _taken(record: Procedure, required: int) -> str:
    most = len(record.arguments)
    if rest_of(record) is not None:
        count = f"at least {required}"
    else:
        count = str(most or "no") if required == most else f"{required} to {most}"
    noun = "argument" if count in ("1", "at least 1") else "arguments"
    shown = signature(record)
    return f"{count} {noun} ({shown})" if shown else f"{count} {noun}"


_VALID = """
def valid({parameters}):
    try:
        return ({fast}) or slow(({values}))
    except (TypeError, ValueError):
        return slow(({values}))
"""

_REMEMBERED = """
def remembered({parameters}):
    if {same}:
        return True
    if not valid({parameters}):
        return False
    last[:] = {parameters},
    return True
"""


def record_valid(record: Procedure) -> Callable[..., bool]:
    """A test `(*arguments) -> bool`, given all arguments, compiled for the record: about 100 ns for a normal.

    The comparisons alone decide for plain numbers. `is True` sends anything else (an array compares as an array) to the
    full test. Arguments that are costly to test, as a matrix is, are remembered: the very same ones need no second
    look, since values never change.
    """
    arguments, rest = record.arguments, rest_of(record)
    names = [f"a{i}" for i in range(len(arguments))]
    namespace: dict[str, Any] = {"inf": math.inf}
    tests = []
    for name, argument in zip(names, arguments, strict=True):
        namespace[f"accepts_{name}"] = argument.domain.contains
        if argument.domain.test is None:
            test = f"accepts_{name}({name})"
        else:
            test = f"({argument.domain.test.format(x=name)}) is True"
        tests.append(f"({name} is None or {test})" if argument.default is None else test)
    parameters = [*names, "*rest"] if rest is not None else names
    if rest is not None:
        namespace["accepts_rest"] = rest.contains
        tests.append("all(map(accepts_rest, rest))")

    def slow(values: tuple[Any, ...]) -> bool:
        if not all(map(accepts, arguments, values)):
            return False
        return rest is None or all(map(rest.contains, values[len(arguments) :]))

    namespace["slow"] = slow
    values = "".join(f"{parameter}, " for parameter in parameters)
    text = _VALID.format(parameters=", ".join(parameters), fast=" and ".join(tests) or "True", values=values)
    exec(text, namespace)
    is_costly = rest is None and any(argument.domain.test is None for argument in arguments)
    if is_costly:
        namespace["last"] = [object()] * len(names)
        same = " and ".join(f"{name} is last[{i}]" for i, name in enumerate(names))
        exec(_REMEMBERED.format(parameters=", ".join(names), same=same), namespace)
    valid: Callable[..., bool] = namespace["remembered" if is_costly else "valid"]
    return valid


def columns_valid(record: Procedure, lifted: Flags, args: tuple[Any, ...]) -> bool:
    """Whether every row of a call is allowed; `lifted` and `args` speak of the arguments only, not of a drawn value."""
    for position, (up, value) in enumerate(zip(lifted, args, strict=True)):
        argument = _declared(record, position)
        if argument is None or not (argument.domain.contains_all(value) if up else accepts(argument, value)):
            return False
    return True


def refused_memo(value: Any, span: Span | None) -> ArgumentError:
    """The error of `mem` for anything but a procedure of the program."""
    if not isinstance(value, (Deterministic, Random, Maker)):
        return ArgumentError(f"mem takes a procedure of the program, got {show(value)}", span)
    names = " ".join(argument.name for argument in value.arguments)
    hint = f"(mem (lambda ({names}) ({value.name}{names and ' '}{names})))"
    return ArgumentError(f"mem takes a procedure of the program, not {value.name} itself", span, hint)
