"""Reading the form of an action: its parts, and the words that stand among them."""

from __future__ import annotations

from collections.abc import Mapping

from venture_lite.errors import ArgumentError
from venture_lite.language.syntax import Expression, Form, Name, Quote
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


def options_of(
    form: Form, parts: tuple[Expression, ...], known: Mapping[str, int], usage: str
) -> dict[str, tuple[Expression, ...]]:
    """Options such as `'drift 0.1` in any order: name -> as many parts as `known` says that it takes."""
    found: dict[str, tuple[Expression, ...]] = {}
    at = 0
    while at < len(parts):
        name = next((name for name in known if is_symbol(parts[at], name)), None)
        if name is None:
            wanted = ", ".join(f"'{name}" for name in known)
            raise ArgumentError(f"{form.items[0].span.text} knows no such option", parts[at].span, f"one of {wanted}")
        taken = parts[at + 1 : at + 1 + known[name]]
        if name in found or len(taken) < known[name]:
            raise ArgumentError(f"{form.items[0].span.text} is written {usage}", parts[at].span)
        found[name] = taken
        at += 1 + known[name]
    return found
