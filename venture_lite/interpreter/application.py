"""Draws from distributions, and the arguments that a procedure refuses, with the place where it was applied."""

from __future__ import annotations

from typing import Any

from venture_lite.errors import InternalError, Undrawable, VentureError
from venture_lite.interpreter.limits import at_limit
from venture_lite.procedures.checks import application_of, check_arguments
from venture_lite.program.code import Code
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.trace import Trace


def simulate(trace: Trace, node: int, operator: Any, values: tuple[Any, ...]) -> Any:
    try:
        if isinstance(operator, Exchangeable):
            return operator.state.simulate(trace.rng, *values)
        return operator.simulate(trace.rng, *values)
    except VentureError as error:
        code, slot, row = trace.decode(node)
        raise error.at(code.slots[slot].span, trace.call_chain(code, slot, row)) from error


def simulate_anew(trace: Trace, node: int, operator: Any, values: tuple[Any, ...]) -> Any:
    """A value for a choice that stands, under arguments from which one may not be drawn."""
    check(trace, operator, values, node)
    return simulate(trace, node, operator, values)


def check(trace: Trace, operator: Any, values: tuple[Any, ...], node: int, is_drawn: bool = True) -> None:
    """Refuse arguments outside their domains: where rounding took them there, only if a value is to be drawn."""
    if isinstance(operator, Exchangeable):
        if not values and not operator.record.applied:
            return
        operator = application_of(operator.record)
    try:
        fine = trace.valid[operator](*values)
    except TypeError:
        fine = False
    if not fine:
        is_extreme = at_limit(trace, node >> 32, node & ROW_MASK, operator, values)
        if is_extreme and not is_drawn:
            return
        code, index, row = trace.decode(node)
        try:
            check_arguments(operator, values, code.slots[index].span)
        except VentureError as error:
            raise refused(trace, error, is_extreme, code, index, row) from None
        raise InternalError(f"the two checks of {operator.name} disagree on {values}")


def refused(trace: Trace, error: VentureError, is_extreme: bool, code: Code, index: int, row: int) -> VentureError:
    """An error of arguments, located; one that rejects a transition where rounding took them to their limits."""
    if is_extreme:
        error = Undrawable(error.message, error.span, error.hint)
    return error.at(code.slots[index].span, trace.call_chain(code, index, row))
