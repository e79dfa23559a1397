"""What can be known of an expression's value without running it, and what follows for calls and observations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from venture_lite.errors import ArgumentError, EvidenceError, Span, VentureError
from venture_lite.interpreter.evidence import LIST, never_possible, refuse_other_shape, why_never
from venture_lite.procedures.checks import application_of, argument_error, check_arguments, check_count, refused_memo
from venture_lite.procedures.functions import arithmetic, comparison, elementary
from venture_lite.procedures.record import Deterministic, Maker, Procedure, Random
from venture_lite.program.compiler import wrong_count
from venture_lite.values import show


@dataclass(frozen=True, slots=True)
class Certain:
    """A value that is written down, or follows from such."""

    value: Any


@dataclass(frozen=True, slots=True)
class Primitive:
    """A procedure of the language."""

    record: Procedure


ANONYMOUS = "lambda"
"""The name of a procedure that nothing has bound yet."""


@dataclass(frozen=True, slots=True)
class WrittenLambda:
    """A procedure of the program; `memoized` as `mem` makes it."""

    name: str
    parameters: int
    memoized: bool = False
    # whether it takes any number of arguments beyond its parameters
    takes_more: bool = False


@dataclass(frozen=True, slots=True)
class KnownProduct:
    """What a maker returns: an exchangeable procedure."""

    maker: Maker


@dataclass(frozen=True, slots=True)
class RandomValue:
    """A draw from a distribution: never a procedure."""

    record: Random
    arguments: tuple[Known, ...]


@dataclass(frozen=True, slots=True)
class Computed:
    """A value that is no random choice itself: of a deterministic call, a loop variable, a parameter."""


@dataclass(frozen=True, slots=True)
class KnownList:
    """What `list` makes of values that are not all constants."""

    items: tuple[Known, ...]


Known = Certain | Primitive | WrittenLambda | KnownProduct | RandomValue | Computed | KnownList | None

FOLDED = frozenset({"vector", "list", "matrix"}).union(
    record.name for family in (arithmetic, comparison, elementary) for record in family.RECORDS
)
"""Procedures that are computed where all arguments are constants: cheap, and of the size of what they are given."""


def refuse_count(called: Known, name: str, count: int, span: Span) -> None:
    """Raises ArgumentError where what is called is no procedure, or takes another number of arguments."""
    match called:
        case Certain(value=value):
            raise ArgumentError(f"{show(value)} is not a procedure", span)
        case RandomValue(record=record):
            raise ArgumentError(f"a draw from {record.name} is not a procedure", span)
        case Primitive(record=record):
            check_count(record, count, span)
        case KnownProduct(maker=maker):
            check_count(application_of(maker), count, span)
        case WrittenLambda(parameters=parameters, takes_more=more) if not (
            count == parameters or (more and count > parameters)
        ):
            raise wrong_count(called.name or name, parameters, count, span)


def value_of_call(called: Known, arguments: tuple[Known, ...], spans: tuple[Span, ...], span: Span) -> Known:
    """What is known of a call's value, its count being right.

    Raises ArgumentError for a constant argument outside its domain, at the argument's own place.
    """
    if not isinstance(called, Primitive):
        return None
    record = called.record
    for position, (argument, at) in enumerate(zip(arguments, spans, strict=True)):
        if isinstance(argument, Certain) and (error := argument_error(record, position, argument.value)):
            raise error.at(at)
    match record:
        case Random():
            return RandomValue(record, arguments)
        case Maker():
            return KnownProduct(record)
        case Deterministic() if record.name in FOLDED:
            return _folded(record, arguments, span)
        case Deterministic(name="pair"):
            # of its rest nothing is known, which may be a list of choices
            return None
    return Computed()


def _folded(record: Deterministic, arguments: tuple[Known, ...], span: Span) -> Known:
    values = [argument.value for argument in arguments if isinstance(argument, Certain)]
    if len(values) < len(arguments):
        return KnownList(arguments) if record is LIST else Computed()
    try:
        return Certain(record.scalar(*check_arguments(record, tuple(values))))
    except VentureError as error:
        raise error.at(span) from error
    except (ArithmeticError, TypeError, ValueError):
        return Computed()


def refuse_observation(observed: Known, value: Known, span: Span) -> str | None:
    """Raises ArgumentError for a draw that can never take the value; a text says that it cannot with its arguments."""
    if not isinstance(observed, RandomValue) or not isinstance(value, Certain):
        return None
    record, arguments = observed.record, observed.arguments
    given = tuple(argument.value for argument in arguments if isinstance(argument, Certain))
    if len(given) < len(arguments):
        return None
    filled = check_arguments(record, given, span)
    try:
        if record.log_density(value.value, *filled) > -math.inf:
            return None
    except (VentureError, ArithmeticError, TypeError, ValueError):
        return None
    try:
        refuse_other_shape(record, filled, value.value)
    except EvidenceError as error:
        raise error.at(span) from None
    if never_possible(record, filled, value.value):
        raise ArgumentError(why_never(record.name, show(value.value)), span)
    return f"{show(value.value)} has probability zero under {span.text}"


def refuse_memo(operator: Known, span: Span) -> None:
    """Raises ArgumentError for what `mem` does not take."""
    match operator:
        case Primitive(record=record):
            raise refused_memo(record, span)
        case KnownProduct():
            raise ArgumentError("mem takes a procedure of the program, not one that a maker made", span)
        case Certain(value=value):
            raise ArgumentError(f"mem takes a procedure of the program, got {show(value)}", span)
        case RandomValue(record=record):
            raise ArgumentError(f"mem takes a procedure of the program, not a draw from {record.name}", span)
