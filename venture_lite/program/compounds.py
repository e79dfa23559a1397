"""Distributions made of distributions, as they are written: `(truncated (normal 0 1) 0 none)`.

What stands in the place of DIST is an application that is not applied: its procedure is known from the text, and its
arguments are those of one record, which is made of the records in the text (`procedures/compounds.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from venture_lite.errors import ArgumentError
from venture_lite.language.syntax import Expression, Form, Literal, Name, Parameter, Quote
from venture_lite.procedures import compounds, registry
from venture_lite.procedures.checks import check_count
from venture_lite.procedures.density import density_procedure
from venture_lite.procedures.distributions.finite import LOG_DENSITY
from venture_lite.procedures.exchangeable.hidden_markov import MAKE_LAZY_HMM, emitting
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.program.equations import as_equations
from venture_lite.program.lift import ARGUMENT_PREFIX

Lookup = Callable[[str], Any]
"""The procedure that a name means, None where the program binds the name, or nobody."""

Meant = tuple[Random | Deterministic, tuple[Expression, ...]]
"""A record, and its arguments in the text."""

USAGES = {
    "truncated": "(truncated DIST LO HI)",
    "zero_inflated": "(zero_inflated P DIST)",
    "finite_mixture": "(finite_mixture WEIGHTS DIST ...)",
    "increasing": "(increasing DIST)",
    "ode": "(ode (lambda (t y) VECTOR) Y0 T0 TS ['stiff] ['rtol R] ['atol A])",
}
"""The forms, each with how it is written."""

SUMMARIES = {
    "truncated": "A value of DIST given that it lies from LO to HI; a bound that is missing is `none`.",
    "zero_inflated": "0 with probability P, else a value of DIST.",
    "finite_mixture": "A value of one of several distributions, drawn by WEIGHTS; which one it is is summed out. With "
    "one DIST, the items of the vectors among its arguments are the components.",
    "increasing": "The independent items of DIST, which has vectors among its arguments, given that they increase.",
    "ode": "A matrix with a row for each of the times TS: the solution of dy/dt = (F t y) that is Y0 at T0, F written "
    "out, its free names the parameters. By Dormand and Prince's method, with 'stiff or where it is stiff by LSODA; "
    "each step within R relative and A absolute, 1e-6 where nothing is said; a solution that is not found is infinite.",
}


def as_application(form: Form, lookup: Lookup) -> Meant:
    """The record that a form of `USAGES` stands for, with its arguments.

    Raises ArgumentError, at its place, for a form that is written otherwise.
    """
    head = form.items[0]
    assert isinstance(head, Name)
    try:
        return _FORMS[head.name](form, lookup)
    except ArgumentError as error:
        raise error.at(error.span or form.span) from None


def _written(form: Form) -> ArgumentError:
    head = form.items[0]
    assert isinstance(head, Name)
    return ArgumentError(f"{head.name} is written {USAGES[head.name]}", form.span, SUMMARIES[head.name])


def _distribution(
    item: Expression, form: Form, lookup: Lookup, example: str = ""
) -> tuple[Random, tuple[Expression, ...]]:
    """What stands in the place of DIST."""
    head = form.items[0]
    assert isinstance(head, Name)
    example = example or f"{USAGES[head.name].replace('DIST', '(normal 0 1)')}"
    match item:
        case Form(items=(Name(name=name), *_)) if name in USAGES and name != "ode" and lookup(name) is USAGES:
            record, arguments = as_application(item, lookup)
            assert isinstance(record, Random)
            return record, arguments
        case Form(items=(Name(name=name) as named, *_)):
            record = lookup(name)
            if isinstance(record, Random) and _is_of_numbers(record):
                return record, _completed(record, item)
            message = f"{named.name} is no distribution of numbers that {head.name} could take"
            raise ArgumentError(message, item.span, f"a distribution that is built in or registered, as {example}")
    message = f"{head.name} takes a distribution written out, which is not applied"
    raise ArgumentError(message, item.span, f"(PROCEDURE ARGUMENT ...), as {example}")


def _completed(record: Random, item: Form) -> tuple[Expression, ...]:
    """The arguments of a distribution as it is written, with those that are left out."""
    given = item.items[1:]
    check_count(record, len(given), item.span)
    return (*given, *(Quote(each.default, item.span) for each in record.arguments[len(given) :]))


def _is_of_numbers(record: Random) -> bool:
    is_registered = registry.PROCEDURES.get(record.name) is not record
    return record.item_log_densities is not None or is_registered or record.name == "categorical"


def _truncated(form: Form, lookup: Lookup) -> Meant:
    match form.items:
        case (_, item, low, high):
            record, arguments = _distribution(item, form, lookup)
            given = [bound for bound in (low, high) if not _is_none(bound, lookup)]
            if not given:
                return record, arguments
            has_low, has_high = not _is_none(low, lookup), not _is_none(high, lookup)
            return compounds.truncated(record, has_low, has_high), (*arguments, *given)
    raise _written(form)


def _is_none(item: Expression, lookup: Lookup) -> bool:
    """Whether a bound is missing: `none`, unless the program binds the name."""
    return isinstance(item, Name) and item.name == "none" and lookup("none") is USAGES


def _zero_inflated(form: Form, lookup: Lookup) -> Meant:
    match form.items:
        case (_, share, item):
            record, arguments = _distribution(item, form, lookup)
            return compounds.zero_inflated(record), (share, *arguments)
    raise _written(form)


def _finite_mixture(form: Form, lookup: Lookup) -> Meant:
    match form.items:
        case (_, weights, *items) if items:
            parts = [_distribution(item, form, lookup) for item in items]
            record = compounds.finite_mixture(*(record for record, _ in parts))
            return record, (weights, *(argument for _, arguments in parts for argument in arguments))
    raise _written(form)


def _increasing(form: Form, lookup: Lookup) -> Meant:
    match form.items:
        case (_, item):
            record, arguments = _distribution(item, form, lookup)
            return compounds.increasing(record, all(_is_constant(each, lookup) for each in arguments)), arguments
    raise _written(form)


def _is_constant(item: Expression, lookup: Lookup) -> bool:
    """Whether the text alone gives a value."""
    match item:
        case Literal() | Quote() | Parameter():
            return True
        case Name(name=name):
            return name.startswith(ARGUMENT_PREFIX) or name in registry.CONSTANTS
        case Form(items=(Name(name=name), *rest)):
            return isinstance(lookup(name), Deterministic) and all(_is_constant(each, lookup) for each in rest)
    return False


_FORMS: dict[str, Callable[[Form, Lookup], Meant]] = {
    "truncated": _truncated,
    "zero_inflated": _zero_inflated,
    "finite_mixture": _finite_mixture,
    "increasing": _increasing,
    "ode": as_equations,
}


def with_distribution(record: Any, form: Form, lookup: Lookup) -> tuple[Any, Form]:
    """A call in which a distribution is written in the place of an argument, as one of the procedure made of it: of
    `make_lazy_hmm` that of its emissions, of `log_density` that of its parameters. Any other call as it is.

    Raises ArgumentError, at its place, for a distribution that states cannot have.
    """
    match form.items:
        case (head, initial, transition, Form(items=(Name(name=name), *_)) as item) if record is MAKE_LAZY_HMM:
            known = lookup(name)
            if known is not USAGES and not (isinstance(known, Random) and _is_of_numbers(known)):
                return record, form
            family, arguments = _distribution(
                item, form, lookup, "(make_lazy_hmm INITIAL TRANSITION (normal MEANS SDS))"
            )
            try:
                return emitting(family), replace(form, items=(head, initial, transition, *arguments))
            except ArgumentError as error:
                raise error.at(item.span) from None
        case (head, Form(items=(Name(name=name), *given)) as item, value) if record is LOG_DENSITY:
            known = lookup(name)
            if known is USAGES and name != "ode":
                known, written = as_application(item, lookup)
            elif isinstance(known, Random) and not _may_give_distributions(known, given):
                written = _completed(known, item)
            else:
                return record, form
            assert isinstance(known, Random)
            return density_procedure(known), replace(form, items=(head, *written, value))
    return record, form


def _may_give_distributions(record: Random, given: Sequence[Expression]) -> bool:
    """Whether a draw may be a distribution itself, of which `log_density` is asked."""
    return record.name in ("draw", "uniform_draw") or (record.name == "categorical" and len(given) > 1)


def applied(form: Form, lookup: Lookup) -> tuple[Random | Deterministic, Form]:
    """The record and a plain application of it."""
    record, arguments = as_application(form, lookup)
    return record, replace(form, items=(form.items[0], *arguments))
