"""What the inputs of networks are called in messages: by what is read of which choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any


def apart(names: Sequence[str]) -> list[str]:
    """Choices of one name by their number among these."""
    many, met = Counter(names), Counter[str]()
    found = []
    for name in names:
        met[name] += 1
        found.append(f"{name}, choice {met[name]}" if many[name] > 1 else name)
    return found


def each_number(names: Iterable[str], widths: Iterable[int]) -> list[str]:
    """A name for each number of what has so many of them."""
    found: list[str] = []
    for name, width in zip(names, widths, strict=True):
        found += [name] if width == 1 else [f"{name}, number {at + 1}" for at in range(width)]
    return found


def argument_name(operator: Any, at: int) -> str:
    """Of what a distribution is given."""
    arguments = getattr(operator, "arguments", ())
    found = getattr(arguments[at], "name", None) if at < len(arguments) else None
    return found if found is not None else f"argument {at + 1}"
