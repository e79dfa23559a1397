"""One application of a procedure: whether its arguments are in their domains, and a draw; errors with their places.

Rounding takes arguments out of their domains: an `sd` computed as `(exp s)` underflows to 0 or overflows. The number
that was meant is positive, and so extreme that a value which stands has density zero but for rounding. So such
arguments are no mistake of the program's where a random choice led to them: the value's probability is zero, and where
a value would have to be drawn, the transition is rejected. A constant 0, a negative number and NaN are mistakes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from venture_lite.errors import InternalError, Undrawable, VentureError
from venture_lite.interpreter.ancestry import depends_on_choice
from venture_lite.procedures.checks import accepts, application_of, check_arguments, is_extreme, rest_of
from venture_lite.procedures.record import Procedure
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import ROW_MASK

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace


def simulate(trace: Trace, node: int, operator: Any, values: tuple[Any, ...]) -> Any:
    try:
        if isinstance(operator, Exchangeable):
            return operator.state.simulate(trace.rng, *values)
        return operator.simulate(trace.rng, *values)
    except VentureError as error:
        raise error.at(*trace.place(*trace.decode(node))) from error


def simulate_anew(trace: Trace, node: int, operator: Any, values: tuple[Any, ...]) -> Any:
    """A value for a choice that stands, under arguments from which one may not be drawn."""
    admitted(trace, operator, values, node)
    return simulate(trace, node, operator, values)


def admitted(trace: Trace, operator: Any, values: tuple[Any, ...], node: int, is_drawn: bool = True) -> bool:
    """Whether arguments are in their domains; where rounding took them out, an error only if a value is to be drawn.

    Raises VentureError for all others, Undrawable where a value would have to be drawn.
    """
    if isinstance(operator, Exchangeable):
        if not values and not operator.record.applied:
            return True
        operator = application_of(operator.record)
    try:
        if trace.valid[operator](*values):
            return True
    except TypeError:
        pass
    is_extreme = at_limit(trace, node >> 32, node & ROW_MASK, operator, values)
    if is_extreme and not is_drawn:
        return False
    try:
        check_arguments(operator, values)
    except VentureError as error:
        raise refused(trace, error, is_extreme, node) from None
    raise InternalError(f"the two checks of {operator.name} disagree on {values}")


def refused(trace: Trace, error: VentureError, is_extreme: bool, node: int) -> VentureError:
    """An error of arguments, located; one that rejects a transition where rounding took them to their limits."""
    if is_extreme:
        error = Undrawable(error.message, error.span, error.hint)
    return error.at(*trace.place(*trace.decode(node)))


def at_limit(trace: Trace, site: int, row: int, record: Procedure, values: tuple[Any, ...]) -> bool:
    """Whether arguments are outside their domains for no other reason than that rounding took what is computed from
    random choices to 0 or infinity."""
    if len(values) != len(record.arguments):
        return False
    pairs = enumerate(zip(record.arguments, values, strict=True))
    outside = [position for position, (argument, value) in pairs if not accepts(argument, value)]
    if not outside or rest_of(record) is not None:
        return False
    if not all(is_extreme(record.arguments[position].domain, values[position]) for position in outside):
        return False
    code = trace.program.site_code[site]
    refs = code.slots[trace.program.site_slot[site]].arguments
    return all(position < len(refs) and depends_on_choice(trace, code, row, [refs[position]]) for position in outside)
