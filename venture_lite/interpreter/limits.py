"""Arguments that rounding took out of their domains: an `sd` computed as `(exp s)` that underflows to 0 or overflows.

The number that was meant is positive, and so extreme that a value which stands has density zero but for rounding. So
such arguments are no mistake of the program's where a random choice led to them: the value's probability is zero, and
where a value would have to be drawn, the transition is rejected. A constant 0, a negative number and NaN are mistakes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.interpreter.ancestry import depends_on_choice
from venture_lite.procedures.checks import accepts, rest_of
from venture_lite.procedures.domains import Domain
from venture_lite.procedures.record import Procedure

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace


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
