"""The usage of an action, `(mh SCOPE BLOCK 'drift SIGMA ['precondition] T)`, read as the pattern that it is.

Words in capitals stand for one argument each, and say of what kind it is; quoted words stand for themselves; parts in
square brackets may be left out; dots repeat the part before them or, inside an inner bracket, all of that bracket. A
quoted word with what follows it up to a bracket is a clause; clauses that stand beside each other come in any order,
and one inside another's brackets goes with that one alone.

There is no other description of how an action is written: `venture check` looks a form through by it, and engines are
compiled with what it matched.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from venture_lite.errors import ArgumentError, Source, nearest
from venture_lite.language.parse import parse_expression
from venture_lite.language.syntax import Expression, Form, Name, Quote
from venture_lite.values import Symbol


@dataclass(frozen=True, slots=True)
class Matched:
    """The arguments of an action by the capitals that they stand for, and the quoted words that are there."""

    arguments: tuple[tuple[str, Expression], ...] = ()
    words: frozenset[str] = frozenset()

    def __contains__(self, name: str) -> bool:
        return name in self.words or any(role == name for role, _ in self.arguments)

    def __getitem__(self, role: str) -> Expression:
        """The argument that stands for these capitals; KeyError where it was left out."""
        return dict(reversed(self.arguments))[role]

    def all(self, role: str) -> list[Expression]:
        """Every argument that stands for these capitals."""
        return [item for found, item in self.arguments if found == role]

    def _with(self, *arguments: tuple[str, Expression], words: tuple[str, ...] = ()) -> Matched:
        """With these before the others."""
        return Matched((*arguments, *self.arguments), self.words.union(words))


@dataclass(frozen=True, slots=True)
class Role:
    """One argument of the kind that the capitals name."""

    name: str


@dataclass(frozen=True, slots=True)
class Clause:
    """A quoted word and what follows it."""

    word: str
    roles: tuple[Role, ...]
    required: bool
    # the word of the clause with which alone this one may stand
    inside: str | None = None


@dataclass(frozen=True, slots=True)
class Clauses:
    """Clauses in any order."""

    clauses: tuple[Clause, ...]


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


UsagePart = Role | Clauses | Bracketed | Optional | Repeated
Pattern = tuple[UsagePart, ...]

DOTS = "..."

NO_WORDS = ("PROPOSAL", "KERNEL")
"""Capitals that stand for a procedure or an action, which is never a quoted word."""


@functools.cache
def pattern_of(usage: str) -> Pattern:
    """The pattern of the arguments that a usage shows."""
    form = parse_expression(Source("usage", usage))
    assert isinstance(form, Form), usage
    return _pattern(form.items[1:])


def _pattern(items: tuple[Expression, ...]) -> Pattern:
    found: list[UsagePart] = []
    # whether roles belong to the clause before them
    in_clause = False
    for item in items:
        match item:
            case Quote(value=Symbol(name=word)):
                _add(found, (Clause(word, (), required=True),))
                in_clause = True
                continue
            case Name(name="..."):
                match found[-1]:
                    case Optional(parts):
                        found[-1] = Repeated(parts, 0)
                    case part:
                        found[-1] = Repeated((part,), 1)
            case Name(name=name) if name.endswith(DOTS):
                found.append(Repeated((Role(name.removesuffix(DOTS)),), 1))
            case Name(name=name) if in_clause:
                _lengthen(found, Role(name))
                continue
            case Name(name=name):
                found.append(Role(name))
            case Form(items=inner) if item.span.text.startswith("["):
                match _pattern(inner):
                    case (Clauses(clauses=(first, *within)),):
                        beside = (replace(clause, inside=first.word) for clause in within)
                        _add(found, (replace(first, required=False), *beside))
                    case parts:
                        found.append(Optional(parts))
            case Form(items=(*inner, Name(name="..."))):
                found.append(Bracketed((Repeated(_pattern(tuple(inner)), 1),)))
            case Form(items=inner):
                found.append(Bracketed(_pattern(inner)))
        in_clause = False
    return tuple(found)


def _add(found: list[UsagePart], clauses: tuple[Clause, ...]) -> None:
    """Further clauses stand beside those before them."""
    match found:
        case [*_, Clauses(clauses=before)]:
            found[-1] = Clauses((*before, *clauses))
        case _:
            found.append(Clauses(clauses))


def _lengthen(found: list[UsagePart], role: Role) -> None:
    match found:
        case [*_, Clauses(clauses=(*before, last))]:
            found[-1] = Clauses((*before, replace(last, roles=(*last.roles, role))))


def is_symbol(item: Expression, name: str) -> bool:
    """Whether an expression is this word, quoted or not."""
    match item:
        case Quote(value=Symbol(name=found)) | Name(name=found):
            return found == name
    return False


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
            yield Matched()
        return
    part, *rest = pattern
    after = tuple(rest)
    match part:
        case Optional(parts):
            yield from _matches((*parts, *after), items)
            yield from _matches(after, items)
        case Repeated((Role(name),), least) if not after:
            # one way, however many there are
            if len(items) >= least and all(_may_be(name, item) for item in items):
                yield Matched(tuple((name, item) for item in items))
        case Repeated(parts, least):
            if least == 0:
                yield from _matches(after, items)
            if items:
                yield from _matches((*parts, Repeated(parts, max(least - 1, 0)), *after), items)
        case Clauses(clauses):
            yield from _in_any_order(clauses, after, items, ())
        case Role(name) if items and _may_be(name, items[0]):
            for others in _matches(after, items[1:]):
                yield others._with((name, items[0]))
        case Bracketed(parts) if items and isinstance(items[0], Form):
            for inside in _matches(parts, items[0].items):
                for others in _matches(after, items[1:]):
                    yield others._with(*inside.arguments, words=tuple(inside.words))


def _may_be(name: str, item: Expression) -> bool:
    return not (name in NO_WORDS and isinstance(item, Quote))


def _in_any_order(
    waiting: tuple[Clause, ...], after: Pattern, items: tuple[Expression, ...], there: tuple[Clause, ...]
) -> Iterator[Matched]:
    """Every way to read the items as some of the clauses, all that are required among them, and what comes after."""
    for clause in waiting:
        width = 1 + len(clause.roles)
        if len(items) >= width and is_symbol(items[0], clause.word):
            others = tuple(other for other in waiting if other is not clause)
            arguments = zip((role.name for role in clause.roles), items[1:width], strict=True)
            for later in _in_any_order(others, after, items[width:], (*there, clause)):
                yield later._with(*arguments, words=(clause.word,))
    words = [None, *(clause.word for clause in there)]
    if items and isinstance(items[0], Quote) and any(is_symbol(items[0], clause.word) for clause in waiting):
        # a quoted word that may stand here stands for nothing else
        return
    if not any(clause.required for clause in waiting) and all(clause.inside in words for clause in there):
        yield from _matches(after, items)


# ----------------------------------------------------------------------------------- what is written otherwise


def refused(name: str, usages: tuple[str, ...], form: Form) -> ArgumentError:
    """What is wrong with a form that fits none of the usages; a word that is not known, or stands where it may not,
    has a message and a place of its own."""
    wrong = f"{name} is written {' or '.join(usages)}"
    places = [place for usage in usages if (place := _place_of_clauses(usage)) is not None]
    if not places:
        return ArgumentError(wrong, form.span)
    known = {clause.word: clause for _, clauses, _ in places for clause in clauses}
    at, least_after = min(before for before, _, _ in places), min(after for _, _, after in places)
    items = form.items[1:]
    there = [word for word in known if any(is_symbol(item, word) for item in items[at:])]
    met: set[str] = set()
    while len(items) - at > least_after:
        word = next((word for word in known if is_symbol(items[at], word)), None)
        if word is None:
            if isinstance(items[at], Quote) or len(places) == len(usages):
                return _unknown(name, items[at], known)
            break
        if word in met:
            return ArgumentError(wrong, items[at].span)
        goes_with = _goes_with(word, [clauses for _, clauses, _ in places])
        if goes_with and not goes_with.intersection(there):
            alone = " or ".join(f"'{other}" for other in known if other in goes_with)
            return ArgumentError(f"{name} takes '{word} with {alone} only", items[at].span)
        met.add(word)
        at += 1 + len(known[word].roles)
    return ArgumentError(wrong, form.span)


def _place_of_clauses(usage: str) -> tuple[int, tuple[Clause, ...], int] | None:
    """A usage's clauses, and how many arguments stand before and, at least, behind them."""
    pattern = pattern_of(usage)
    for at, part in enumerate(pattern):
        if isinstance(part, Clauses):
            return at, part.clauses, sum(isinstance(later, Role) for later in pattern[at + 1 :])
    return None


def _goes_with(word: str, usages: list[tuple[Clause, ...]]) -> set[str]:
    """The words of which one must be there where this one is."""
    found: set[str] = set()
    for clauses in usages:
        for clause in clauses:
            if clause.word == word:
                required = {other.word for other in clauses if other.required and other is not clause}
                found |= required if clause.inside is None else {clause.inside}
    return found


def _unknown(name: str, item: Expression, known: Iterable[str]) -> ArgumentError:
    written = {word: f"'{word}" for word in known}
    hint = nearest(item.span.text.lstrip("'"), written, written) or f"one of {', '.join(written.values())}"
    return ArgumentError(f"{name} knows no such option", item.span, hint)
