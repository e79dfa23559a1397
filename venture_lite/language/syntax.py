"""What the parser makes of a text: frozen records, each with its place.

Expressions are plain: an atom, a quoted datum, a `{parameter}`, or a form `(a b c)`. Which forms are special (`if`,
`lambda`, `let`, ...) is for the analysis to say, not for the grammar.
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Assume:
    name: str
    expression: Expression
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Observe:
    expression: Expression
    value: Expression
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Predict:
    expression: Expression
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Infer:
    """`[infer E]`, or a bare expression at top level."""

    expression: Expression
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    expression: Expression
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Force:
    expression: Expression
    value: Expression
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class DirectiveReference:
    """A label or a number, and for the data of a labelled loop one position for each loop (`data 3 17`)."""

    target: str | int
    positions: tuple[int, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Forget:
    reference: DirectiveReference
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Freeze:
    reference: DirectiveReference
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    reference: DirectiveReference
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Define:
    name: str
    expression: Expression
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class ListDirectives:
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Clear:
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class GetLogScore:
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """`[load "path"]`; the path is relative to the file that holds the directive."""

    path: str
    span: Span
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """`for variable in first...last:` and its body; both bounds are included."""

    variable: str
    first: Index
    last: Index
    body: tuple[Directive, ...]
    span: Span
    label: str | None = None


Directive = (
    Assume
    | Observe
    | Predict
    | Infer
    | Sample
    | Force
    | Forget
    | Freeze
    | Report
    | Define
    | ListDirectives
    | Clear
    | GetLogScore
    | Load
    | Loop
)
