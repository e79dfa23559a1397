"""What the parser makes of a text: frozen records, each with its place.

Expressions are plain: an atom, a quoted datum, a `{parameter}`, or a form `(a b c)`. Which forms are special (`if`,
`lambda`, `let`, ...) is for the analysis to say, not for the grammar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from venture_lite.errors import Span

# ---------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a boolean or a string, as written."""

    value: int | float | bool | str
    span: Span


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, a procedure or a special form's keyword."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Quote:
    """`'datum` or `(quote datum)`: the value is a Symbol, a number, a boolean, a string or a tuple of these."""

    value: object
    span: Span


@dataclass(frozen=True, slots=True)
class Form:
    """`(a b c)`, possibly empty."""

    items: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Parameter:
    """`{index-expression}`: a value that the caller supplies."""

    index: Index
    span: Span


Expression = Literal | Name | Quote | Form | Parameter


def walked(expression: Expression) -> Iterator[Expression]:
    """An expression and all inside it, however deep; a form comes before its parts, and of these the last one first."""
    todo = [expression]
    while todo:
        part = todo.pop()
        yield part
        if isinstance(part, Form):
            todo.extend(part.items)


# ---------------------------------------------------------------------------------- inside the braces, loop bounds


@dataclass(frozen=True, slots=True)
class IndexNumber:
    value: int
    span: Span


@dataclass(frozen=True, slots=True)
class IndexName:
    """A loop variable or a parameter."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class IndexOf:
    """`X[n]`, `X[i, 3]`: positions count from 1."""

    base: Index
    positions: tuple[Index, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class IndexArithmetic:
    """`left + right`, `left - right` or `left * right`."""

    operator: str
    left: Index
    right: Index
    span: Span


Index = IndexNumber | IndexName | IndexOf | IndexArithmetic

# ----------------------------------------------------------------------------------------------- directives


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """What stands at the top of a program."""

    span: Span
    label: str | None = None

    @property
    def kind(self) -> str:
        """The keyword, or `loop`."""
        name = type(self).__name__
        return {"ListDirectives": "list_directives", "GetLogScore": "get_logscore"}.get(name, name.lower())


@dataclass(frozen=True, slots=True)
class Assume(Directive):
    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Observe(Directive):
    expression: Expression
    value: Expression


UNWRITABLE = "\0"
"""Names of the system's own start with a character that no program text can hold."""


@dataclass(frozen=True, slots=True)
class Factor(Observe):
    """`[factor EXPR]`: an observation of a procedure whose log density is its argument."""

    @classmethod
    def of(cls, weight: Expression, span: Span, label: str | None = None) -> Self:
        named = Name(f"{UNWRITABLE}{cls.__name__.lower()}", weight.span)
        return cls(Form((named, weight), weight.span), Literal(0, weight.span), span=span, label=label)


@dataclass(frozen=True, slots=True)
class Condition(Factor):
    """`[condition EXPR]`: an observation of a procedure that is impossible where its argument does not hold."""


@dataclass(frozen=True, slots=True)
class Predict(Directive):
    expression: Expression


@dataclass(frozen=True, slots=True)
class Infer(Directive):
    """`[infer E]`, or a bare expression at top level."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Sample(Directive):
    expression: Expression


@dataclass(frozen=True, slots=True)
class Force(Directive):
    expression: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class DirectiveReference:
    """A label or a number, and for the data of a labelled loop one position for each loop (`data 3 17`)."""

    target: str | int
    positions: tuple[int, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Forget(Directive):
    reference: DirectiveReference


@dataclass(frozen=True, slots=True)
class Freeze(Directive):
    reference: DirectiveReference


@dataclass(frozen=True, slots=True)
class Report(Directive):
    reference: DirectiveReference


@dataclass(frozen=True, slots=True)
class Define(Directive):
    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class ListDirectives(Directive):
    """All that was loaded, as a list."""


@dataclass(frozen=True, slots=True)
class Clear(Directive):
    """Forgets all that was loaded."""


@dataclass(frozen=True, slots=True)
class GetLogScore(Directive):
    """The log density of the trace."""


@dataclass(frozen=True, slots=True)
class Load(Directive):
    """`[load "path"]`; the path is relative to the file that holds the directive."""

    path: str


@dataclass(frozen=True, slots=True)
class Loop(Directive):
    """`for variable in first...last:` and its body; both bounds are included. What the parser reads is a head without
    a body, which `nesting.py` finds."""

    variable: str
    first: Index
    last: Index
    body: tuple[Directive, ...] = ()


def flattened(program: Iterable[Directive]) -> Iterator[Directive]:
    """All directives, those in loops included."""
    for directive in program:
        yield directive
        if isinstance(directive, Loop):
            yield from flattened(directive.body)
