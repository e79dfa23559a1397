"""What the prompt reads into an entry, beyond what a file means."""

from __future__ import annotations

from collections.abc import Container

from venture_lite.errors import NameUnknown
from venture_lite.inference.actions import ACTIONS
from venture_lite.language import syntax
from venture_lite.language.directives import EXAMPLES
from venture_lite.language.suggestions import suggestion
from venture_lite.language.syntax import Directive, Expression, Form, Name, walked
from venture_lite.repl.names import entries
from venture_lite.session import Venture
from venture_lite.session.programs import only_rows

# directives that only look, unless they draw
LOOKS = (syntax.Sample, syntax.Report, syntax.ListDirectives, syntax.GetLogScore)


def as_samples(program: tuple[Directive, ...], defined: Container[str]) -> tuple[Directive, ...]:
    """The program with a `sample` in place of each bare expression of the model.

    In a file a bare expression is an inference expression. At a prompt one types `mu` to see its value: what names no
    action and nothing that `define` bound is a question to the model.
    """
    return tuple(
        syntax.Sample(directive.expression, span=directive.span, label=directive.label)
        if isinstance(directive, syntax.Infer) and is_bare(directive) and _is_question(directive.expression, defined)
        else directive
        for directive in program
    )


def is_bare(directive: syntax.Infer | syntax.Sample) -> bool:
    """Whether the directive is its expression alone, without a keyword."""
    return directive.expression.span == directive.span


def _is_question(expression: Expression, defined: Container[str]) -> bool:
    match expression:
        case Form(items=(Name(name=head), *_)) if head in ACTIONS:
            return False
    return not any(isinstance(part, Name) and part.name in defined for part in walked(expression))


def with_actions(error: NameUnknown, program: tuple[Directive, ...], session: Venture) -> None:
    """Give an unknown name that begins a bare expression the nearest of all names for its hint: the model, which was
    asked, knows no actions, and a misspelt action is as likely to have been meant."""
    for directive in program:
        if not (isinstance(directive, syntax.Sample) and is_bare(directive)):
            continue
        match directive.expression:
            case Name(name=name, span=span) | Form(items=(Name(name=name, span=span), *_)) if span == error.span:
                error.hint = suggestion(name, entries(session), EXAMPLES) or error.hint


def changes_model(directive: Directive) -> bool:
    """Whether a directive does more than look at the model."""
    return not isinstance(directive, LOOKS)


def may_stop_halfway(directive: Directive) -> bool:
    """Whether an error or Ctrl-C in a directive may leave part of its work behind."""
    match directive:
        case syntax.Infer() | syntax.Load():
            return True
        case syntax.Loop():
            return not only_rows(directive)
    return False
