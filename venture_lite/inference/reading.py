"""Reading the form of an action: its parts, and the words that stand among them."""

from __future__ import annotations

from venture_lite.errors import ArgumentError
from venture_lite.syntax import Expression, Form, Name, Quote
from venture_lite.values import Symbol


def parts_of(form: Form, least: int, usage: str) -> tuple[Expression, ...]:
    if len(form.items) - 1 < least:
        raise ArgumentError(f"{form.items[0].span.text} is written {usage}", form.span)
    return form.items[1:]


def is_symbol(item: Expression, name: str) -> bool:
    match item:
        case Quote(value=Symbol(name=found)) | Name(name=found):
            return found == name
    return False
