"""From a density written once to its bound forms and its gradient, with one policy for values outside the support.

A value of the wrong kind (a string for a normal, a vector where no parameter is one) has log density -inf, as has NaN;
the arguments are checked before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from venture_lite.errors import Undrawable
from venture_lite.procedures.bounds import Maximisers, bound_at, certain
from venture_lite.procedures.checks import argument_error, columns_valid, is_extreme, record_valid
from venture_lite.procedures.columns import Flags, RowByRow, keep_exact, may_overflow, single_numbers
from venture_lite.procedures.derivatives import gradient_of
from venture_lite.procedures.domains import ANY, each
from venture_lite.procedures.items import Items
from venture_lite.procedures.numeric import on_columns
from venture_lite.procedures.record import Argument, Columns, Deterministic, Gradient, Random
from venture_lite.procedures.simulation import column_draws
from venture_lite.procedures.transforms import Transform

_GUARDED = """
def guarded({names}):
    if type(value) is array or type(value) is tuple:
        return of_vectors({names})
    try:
        result = density({names})
        return -inf if type(result) is array or result != result else result
    except (TypeError, ValueError, ArithmeticError):
        return -inf
"""


def scalar_density(
    density: Callable[..., float], count: int, of_vectors: Callable[..., float] = lambda value, *arguments: -math.inf
) -> Callable[..., float]:
    """The density of one value under `count` arguments: -inf where it is not defined, never an exception for a number.

    Compiled from text with the exact parameters: `*arguments` would double the cost of a cheap density.
    """
    names = ", ".join(["value", *(f"argument_{i}" for i in range(count))])
    namespace: dict[str, Any] = {
        "density": density, "inf": math.inf, "array": np.ndarray, "of_vectors": of_vectors,
    }  # fmt: skip
    exec(_GUARDED.format(names=names), namespace)
    guarded: Callable[..., float] = namespace["guarded"]
    guarded.__name__ = guarded.__qualname__ = density.__name__
    return guarded


def column_density(density: Callable[..., float]) -> Columns:
    """The same density over columns of numbers."""
    bound = on_columns(density)

    def columns(lifted: Flags, *arguments: Any) -> np.ndarray:
        numbers = single_numbers(lifted, arguments)
        if may_overflow(*numbers):
            keep_exact({int, float}, numbers)
            numbers = [1.0 * number for number in numbers]
        with np.errstate(all="ignore"):
            result: np.ndarray = bound(*numbers)
        if not getattr(result, "ndim", 0) and any(lifted):
            # it does not look at what differs between rows, as a factor at its value: each row has it
            result = np.full(len(numbers[lifted.index(True)]), result, float)
        # one pass: a sum is NaN if an entry is, or if infinities of both signs meet
        if math.isnan(result.sum()):
            result = np.where(np.isnan(result), -np.inf, result)
        return result

    return columns


def of_numbers(
    name: str,
    arguments: tuple[Argument, ...],
    summary: str,
    simulate: Callable[..., Any],
    density: Callable[..., float],
    *,
    columns: Columns | None = None,
    transform: Transform | None = None,
    gradient: Gradient | None = None,
    is_recorded: bool = True,
    is_mixed: bool = False,
    **others: Any,
) -> Random:
    """A record of numbers alone, whose density and simulator are bound both ways, and the density differentiated;
    `columns` and `gradient` replace what is derived from it. Values without a transform have probabilities, unless they
    are mixed with a density. A simulator `is_recorded` that is written over the numeric namespace. `others` are fields
    of the record that stay as they are given."""
    exists = (transform is not None, *(not argument.domain.discrete for argument in arguments))
    if gradient is None and any(exists):
        gradient = gradient_of(density, exists)
    return Random(
        name,
        arguments,
        summary,
        simulate,
        scalar_density(density, len(arguments)),
        columns or column_density(density),
        transform=transform,
        gradient=gradient,
        log_bound=certain if transform is None and not is_mixed else None,
        definition=density,
        sampler=simulate if is_recorded else None,
        simulate_columns=column_draws(simulate) if is_recorded else None,
        **others,
    )


def random(
    name: str,
    arguments: tuple[Argument, ...],
    summary: str,
    simulate: Callable[..., Any],
    density: Callable[..., float],
    *,
    most_likely: Maximisers | None = None,
    **others: Any,
) -> Random:
    """A record `of_numbers`, and of vectors where there are vectors among its parameters; `most_likely` gives the upper
    bound of a density."""
    record = of_numbers(name, arguments, summary, simulate, density, **others)
    number, items = record.log_density, Items(record)
    if most_likely is not None:
        record = replace(record, log_bound=items.bound_of(bound_at(number, most_likely)))
    taken = tuple(replace(argument, domain=each(argument.domain)) for argument in arguments)
    either = scalar_density(density, len(arguments), items.log_density)
    return replace(record, arguments=taken, log_density=either, **items.of_vectors())


@cache
def density_procedure(record: Random) -> Deterministic:
    """The log density of a distribution as a function of its arguments and, behind them, of the value.

    Raises ArgumentError for arguments outside their domains, Undrawable where they are at a limit.
    """
    is_valid = record_valid(record)

    def scalar(*given: Any) -> float:
        *arguments, value = given
        if not is_valid(*arguments):
            for position, argument in enumerate(arguments):
                if error := argument_error(record, position, argument):
                    is_limit = is_extreme(record.arguments[position].domain, argument)
                    raise Undrawable(error.message, None, error.hint) if is_limit else error
        return record.log_density(value, *arguments)

    def columns(lifted: Flags, *given: Any) -> np.ndarray:
        assert record.log_density_columns is not None
        if not columns_valid(record, lifted[:-1], given[:-1]):
            raise RowByRow
        return record.log_density_columns(_value_first(lifted), *_value_first(given))

    def pullback(lifted: Flags, wanted: Flags, cotangent: Any, result: Any, *given: Any) -> tuple[Any, ...]:
        assert record.gradient is not None
        value, *arguments = given[-1], *given[:-1]
        flags, asked = _value_first(lifted), _value_first(wanted)
        inputs = (value, *arguments)
        if any(lifted):
            # rows differ in their cotangents: what they share has a derivative for each
            inputs = tuple(
                np.broadcast_to(each, (len(result), *np.shape(each))) if ask and not up else each
                for each, up, ask in zip(inputs, flags, asked, strict=True)
            )
        apart = tuple(up or (ask and any(lifted)) for up, ask in zip(flags, asked, strict=True))
        partials = record.gradient.evaluate(apart, asked, *inputs)
        shares = [_share(cotangent, *each) for each in zip(partials, flags, apart, strict=True)]
        return (*shares[1:], shares[0])

    return Deterministic(
        "log_density",
        (*record.arguments, Argument("value", ANY)),
        f"The log density of a value under {record.name}.",
        scalar,
        columns if record.log_density_columns is not None else None,
        pullback=pullback if record.gradient is not None else None,
    )


def _value_first(given: tuple[Any, ...]) -> tuple[Any, ...]:
    return (given[-1], *given[:-1])


def _share(cotangent: Any, partial: Any, lifted: bool, apart: bool) -> Any:
    """The cotangent of an input, of whose rows' derivatives those of a shared one are summed."""
    if partial is None:
        return None
    if isinstance(partial, tuple):
        return tuple(_share(cotangent, each, lifted, apart) for each in partial)
    rows = np.shape(cotangent)
    share = np.reshape(cotangent, rows + (1,) * (np.ndim(partial) - len(rows))) * partial
    return share.sum(axis=0) if apart and not lifted else share if np.ndim(share) else float(share)
