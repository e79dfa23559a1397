"""A distribution whose density is raised to a power: what an observation is while its likelihood is tempered.

Only what a density is asked for follows: its value, its sums over rows, its derivatives and its bound. Nothing is drawn
from such a record otherwise than from the one that it is made of, and what is known along a linear predictor, which
bounds and expansions of other kernels are made of, is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from venture_lite.procedures.columns import Flags
from venture_lite.procedures.record import Gradient, Random

_DEFINED = """
def raised({names}):
    return density({names}) * power
"""


def raised(record: Random, power: float) -> Random:
    """The record with its log density times `power` (above 0); -inf stays. Not normalised."""
    if power == 1.0:
        return record

    def times(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: function(*given) * power

    return replace(
        record,
        log_density=times(record.log_density),
        log_density_columns=None if record.log_density_columns is None else times(record.log_density_columns),
        log_density_total=None if record.log_density_total is None else times(record.log_density_total),
        log_bound=None if record.log_bound is None else times(record.log_bound),
        item_log_densities=None if record.item_log_densities is None else times(record.item_log_densities),
        definition=None if record.definition is None else _defined(record, power),
        gradient=None if record.gradient is None else _gradient(record.gradient, power),
        predictor=None,
    )


def _defined(record: Random, power: float) -> Callable[..., Any]:
    """The density over the numeric namespace, with as many parameters as the record's."""
    names = ", ".join(["value", *(f"argument_{i}" for i in range(len(record.arguments)))])
    namespace: dict[str, Any] = {"density": record.definition, "power": power, "__name__": __name__}
    exec(_DEFINED.format(names=names), namespace)
    found: Callable[..., Any] = namespace["raised"]
    return found


def _gradient(gradient: Gradient, power: float) -> Gradient:
    """Of what a density and its derivatives are, each times the power."""
    of_numbers, of_columns = gradient.of_numbers, gradient.of_columns

    def numbers(wanted: Flags) -> Callable[..., tuple[Any, ...]]:
        assert of_numbers is not None
        function = of_numbers(wanted)
        return lambda *given: tuple([_times(part, power) for part in function(*given)])

    return Gradient(
        gradient.exists,
        lambda *given: tuple([_times(part, power) for part in gradient.evaluate(*given)]),
        None if of_numbers is None else numbers,
        None if of_columns is None else lambda *given: [_times(part, power) for part in of_columns(*given)],
    )


def _times(part: Any, power: float) -> Any:
    """One derivative; of a list there are several, some of which may not exist."""
    if part is None:
        return None
    return tuple([_times(each, power) for each in part]) if isinstance(part, (tuple, list)) else part * power
