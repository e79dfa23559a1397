"""An `if` between two values that are cheap, as a procedure: both are computed, and one is taken.

So it has a columns form and a derivative, and no branch, whose rows would come and go with the predicate. What is not
taken may fail, as `(if (> t when) (* change (- t when)) 0)` might of values that are no numbers: inside of a select
procedures are *tolerant*, and give the error in place of a value. It is raised where that value is taken.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError, VentureError
from venture_lite.procedures.columns import RowByRow, one_kind
from venture_lite.procedures.domains import ANY, BOOLEAN_LIKE
from venture_lite.procedures.functions import arithmetic, comparison, elementary
from venture_lite.procedures.pullbacks import gathered
from venture_lite.procedures.record import Argument, Deterministic
from venture_lite.values import show


def truth(value: Any) -> bool:
    """A predicate's value: a boolean, 0 or 1."""
    if value is True or value is False:
        return bool(value)
    if isinstance(value, (int, float)) and (value == 0 or value == 1):
        return bool(value)
    raise ArgumentError(f"a predicate must be true, false, 0 or 1, got {show(value)}")


class Untaken:
    """The error of a value that is not taken, one hopes."""

    __slots__ = ("error",)

    def __init__(self, error: VentureError) -> None:
        self.error = error


def _select(predicate: Any, consequent: Any, alternative: Any) -> Any:
    taken = consequent if truth(predicate) else alternative
    if taken.__class__ is Untaken:
        raise taken.error
    return taken


def _select_columns(lifted: tuple[bool, ...], predicate: Any, consequent: Any, alternative: Any) -> np.ndarray:
    one_kind(consequent, alternative)
    if not (BOOLEAN_LIKE.contains_all(predicate) if lifted[0] else BOOLEAN_LIKE.contains(predicate)):
        raise RowByRow
    if any(np.ndim(v) > flag for v, flag in zip((predicate, consequent, alternative), lifted, strict=True)):
        raise RowByRow
    selected: np.ndarray = np.where(np.equal(predicate, 1), consequent, alternative)
    return selected


def _pull_selected(
    lifted: tuple[bool, ...], wanted: tuple[bool, ...], cotangent: Any, result: Any, predicate: Any, *values: Any
) -> tuple[Any, ...]:
    """The cotangent goes to the value that was taken; the predicate has none, since procedures that decide have no
    derivatives."""
    shares: list[Any] = [None]
    for position, (value, holds) in enumerate(zip(values, (True, False), strict=True), 1):
        is_taken = np.asarray(predicate) == 1 if lifted[0] else truth(predicate)
        if not wanted[position] or (not lifted[0] and is_taken != holds):
            shares.append(None)
            continue
        share = np.where(is_taken == holds, cotangent, 0.0) if lifted[0] else cotangent
        shares.append(gathered(share, lifted, position, value))
    return tuple(shares)


SELECT = Deterministic(
    name="if",
    arguments=(Argument("predicate", ANY), Argument("consequent", ANY), Argument("alternative", ANY)),
    summary="One of two values that are both at hand.",
    scalar=_select,
    columns=_select_columns,
    total=True,
    pullback=_pull_selected,
)


TOLERANT = frozenset(("+", "-", "*", "abs", "min", "max", "not", *(record.name for record in comparison.RECORDS)))
"""Procedures that are cheap, and give numbers and truth values."""

_RECORDS = {record.name: record for record in (*arithmetic.RECORDS, *elementary.RECORDS, *comparison.RECORDS)}


def is_tolerant(record: Any) -> bool:
    """Whether a procedure may stand in the values of a select."""
    return isinstance(record, Deterministic) and record.name in TOLERANT and _RECORDS[record.name] is record


@cache
def tolerant(record: Deterministic) -> Deterministic:
    """The same procedure, which gives its error, or that of what it is applied to, in place of a value."""
    scalar = record.scalar

    def tolerantly(*arguments: Any) -> Any:
        try:
            return scalar(*arguments)
        except Exception as error:
            for argument in arguments:
                if argument.__class__ is Untaken:
                    return argument
            if isinstance(error, VentureError):
                return Untaken(error)
            return Untaken(VentureError(f"{record.name} cannot be applied to these values: {error}"))

    taken = tuple(replace(argument, domain=ANY) for argument in record.arguments)
    rest = None if record.rest is None else ANY
    return replace(record, arguments=taken, scalar=tolerantly, rest=rest)
