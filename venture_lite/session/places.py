"""Where an error is told: expressions of one shape share one Code, which knows the places of the first alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from venture_lite.errors import CallSite, Span, VentureError
from venture_lite.language.syntax import Expression, Form
from venture_lite.program.code import Code


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Shared:
    """A Code, and the expression of which it was made."""

    code: Code
    expression: Expression


@contextlib.contextmanager
def told_at(shared: Shared, expression: Expression) -> Iterator[None]:
    """Errors that point into the expression of the Code point to the same part of this one, which has its shape; those
    that point nowhere, to the whole."""
    try:
        yield
    except VentureError as error:
        if shared.expression.span != expression.span:
            places = dict(_pairs(shared.expression, expression))
            error.span = places.get(error.span, error.span) if error.span else None
            error.chain = tuple(
                CallSite(site.name, places.get(site.span, site.span) if site.span else None) for site in error.chain
            )
        error.at(expression.span)
        raise


def _pairs(first: Expression, second: Expression) -> Iterator[tuple[Span, Span]]:
    """The places of the parts of two expressions of one shape."""
    todo = [(first, second)]
    while todo:
        one, other = todo.pop()
        yield one.span, other.span
        if isinstance(one, Form) and isinstance(other, Form):
            todo.extend(zip(one.items, other.items, strict=True))
