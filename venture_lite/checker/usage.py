"""The usage of an action, `(mh SCOPE BLOCK 'drift SIGMA T)`, read as the pattern that it is.

Words in capitals stand for one argument each, and say of what kind it is; quoted words stand for themselves; parts in
square brackets may be left out, and stand in any order beside each other; dots repeat the part before them or, inside
an inner bracket, all of that bracket.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from venture_lite.errors import Source
from venture_lite.inference.reading import is_symbol
from venture_lite.language.parse import parse_expression
from venture_lite.language.syntax import Expression, Form, Name, Quote
from venture_lite.values import Symbol

Matched = tuple[tuple[str, Expression], ...]
"""The arguments of an action, each with the capitals that it stands for."""


@dataclass(frozen=True, slots=True)
class Role:
    """One argument of the kind that the capitals name."""

    name: str


@dataclass(frozen=True, slots=True)
class Word:
    """A quoted word."""

    name: str


@dataclass(frozen=True, slots=True)
class Bracketed:
    """Parts inside round brackets of their own."""

    parts: Pattern


@dataclass(frozen=True, slots=True)
class Optional:
    """Parts that may be left out."""

    parts: Pattern


@dataclass(frozen=True, slots=True)
class Repeated:
    """Parts that come `least` times or more."""

    parts: Pattern
    least: int


UsagePart = Role | Word | Bracketed | Optional | Repeated
Pattern = tuple[UsagePart, ...]

DOTS = "..."


@functools.cache
def pattern_of(usage: str) -> Pattern:
    """The pattern of the arguments that a usage shows."""
    form = parse_expression(Source("usage", usage))
    assert isinstance(form, Form), usage
    parts = _pattern(form.items[1:])
    match parts:
        case (Repeated(inner, _),):
            # an action of nothing but such parts does nothing without one
            return (Repeated(inner, 0),)
    return parts


def _pattern(items: tuple[Expression, ...]) -> Pattern:
    found: list[UsagePart] = []
    for item in items:
        match item:
            case Name(name="..."):
                found[-1] = Repeated((found[-1],), 1)
            case Name(name=name) if name.endswith(DOTS):
                found.append(Repeated((Role(name.removesuffix(DOTS)),), 1))
            case Name(name=name):
                found.append(Role(name))
            case Quote(value=Symbol(name=name)):
                found.append(Word(name))
            case Form(items=inner) if item.span.text.startswith("["):
                found.append(Optional(_pattern(inner)))
            case Form(items=(*inner, Name(name="..."))):
                found.append(Bracketed((Repeated(_pattern(tuple(inner)), 1),)))
            case Form(items=inner):
                found.append(Bracketed(_pattern(inner)))
    return tuple(found)


def matched(usages: tuple[str, ...], arguments: tuple[Expression, ...]) -> Matched | None:
    """The arguments by their roles, as the first usage that they fit says; None where they fit none."""
    for usage in usages:
        found = next(_matches(pattern_of(usage), arguments), None)
        if found is not None:
            return found
    return None


def _matches(pattern: Pattern, items: tuple[Expression, ...]) -> Iterator[Matched]:
    """Every way to read the items as the pattern."""
    if not pattern:
        if not items:
            yield ()
        return
    part, *rest = pattern
    after = tuple(rest)
    match part:
        case Optional():
            beside = tuple(itertools.takewhile(lambda part: isinstance(part, Optional), pattern))
            yield from _options(beside, pattern[len(beside) :], items)
        case Repeated(parts, least):
            if least == 0:
                yield from _matches(after, items)
            if items:
                yield from _matches((*parts, Repeated(parts, max(least - 1, 0)), *after), items)
        case Word(name) if items and is_symbol(items[0], name):
            yield from _matches(after, items[1:])
        case Role(name) if items:
            for others in _matches(after, items[1:]):
                yield ((name, items[0]), *others)
        case Bracketed(parts) if items and isinstance(items[0], Form):
            for inside in _matches(parts, items[0].items):
                for others in _matches(after, items[1:]):
                    yield (*inside, *others)


def _options(options: Pattern, after: Pattern, items: tuple[Expression, ...]) -> Iterator[Matched]:
    """Every way to read the items as some of the options, in any order, and what comes after them."""
    for number, option in enumerate(options):
        assert isinstance(option, Optional)
        yield from _matches((*option.parts, *options[:number], *options[number + 1 :], *after), items)
    yield from _matches(after, items)
