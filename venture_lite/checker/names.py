"""What the text of a program binds: names, tags and labels, so far and further down."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from venture_lite.checker.known import Known, WrittenLambda
from venture_lite.errors import Span, VentureError
from venture_lite.language.recovery import Doubtful
from venture_lite.language.syntax import Assume, Directive, Form, Name, Observe, Predict, flattened, walked
from venture_lite.program.forms import scope_include_parts, scope_name


@dataclass(slots=True)
class Names:
    """The names that text can use. Mutable: directives bind them one after the other."""

    # procedures registered from Python
    registered: frozenset[str] = frozenset()
    # bound by assume
    globals: dict[str, Known] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    # bound by an assume that stands further down, or stood before
    coming: dict[str, tuple[Known, Span]] = field(default_factory=dict)
    # bound by define
    defined: dict[str, Known] = field(default_factory=dict)
    # scopes that `scope_include` makes: in text so far, and anywhere
    scopes: set[Any] = field(default_factory=lambda: {"default"})
    all_scopes: dict[Any, Span] = field(default_factory=dict)
    # names, labels and scopes of text that could not be read
    doubtful: set[str] = field(default_factory=set)
    # whether text is missing, so that anything may be bound
    incomplete: bool = False

    def announce(self, program: Iterable[Directive], doubtful: Doubtful) -> None:
        """Take note of what a text is going to bind."""
        self.doubtful |= doubtful.names | doubtful.labels | doubtful.scopes
        self.incomplete |= doubtful.anything
        for directive in flattened(program):
            if isinstance(directive, Assume):
                self.coming.setdefault(directive.name, (_lambda(directive), directive.span))
            for name, span in tags_of(directive):
                self.all_scopes.setdefault(name, span)

    def bind(self, directive: Assume, value: Known) -> None:
        self.globals[directive.name] = value
        self.places[directive.name] = directive.span

    def unbind(self, name: str) -> None:
        """A name is free again; what stands further down may bind it anew."""
        self.globals.pop(name, None)
        place = self.places.pop(name, None)
        if name in self.coming and self.coming[name][1] == place:
            del self.coming[name]

    def clear(self) -> None:
        self.globals.clear()
        self.places.clear()
        self.defined.clear()
        self.scopes = {"default"}


def _lambda(directive: Assume) -> Known:
    """A procedure's parameters can be counted before its body is looked at."""
    match directive.expression:
        case Form(items=(Name(name="lambda"), Form(items=parameters), *_)):
            return WrittenLambda(directive.name, len(parameters))
    return None


def tags_of(directive: Directive) -> Iterator[tuple[Any, Span]]:
    """The scopes that a directive of the model tags, with their places."""
    for item in walked(directive.expression) if isinstance(directive, (Assume, Observe, Predict)) else ():
        match item:
            case Form(items=(Name(name="scope_include" | "tag"), *_)):
                # what is wrong with the form is told where it is checked
                with contextlib.suppress(VentureError):
                    named, _, _ = scope_include_parts(item)
                    yield scope_name(named), named.span
