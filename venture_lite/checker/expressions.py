"""Looks through an expression of the model as the analysis does, and goes on after an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from venture_lite.checker.findings import Findings
from venture_lite.checker.known import (
    ANONYMOUS,
    Certain,
    Computed,
    Known,
    Primitive,
    RandomValue,
    WrittenLambda,
    primitive,
    refuse_count,
    refuse_memo,
    value_of_call,
)
from venture_lite.checker.names import Names
from venture_lite.checker.parameters import NeededParameters
from venture_lite.errors import ArgumentError, Span, VentureError
from venture_lite.language.syntax import Expression, Form, Literal, Name, Parameter, Quote
from venture_lite.program import forms
from venture_lite.program.compiler import unknown_name
from venture_lite.session.standard import NAMES as STANDARD_NAMES
from venture_lite.session.standard import prelude
from venture_lite.values import from_python


class CheckedScope:
    """The local names around a piece of text, innermost first."""

    __slots__ = ("in_procedure", "names", "parent")

    def __init__(self, names: dict[str, Known], parent: CheckedScope | None = None, in_procedure: bool = False) -> None:
        self.names = names
        self.parent = parent
        # whether the text is evaluated when a procedure is called, and not at once
        self.in_procedure: bool = in_procedure or (parent is not None and parent.in_procedure)

    def holder(self, name: str) -> CheckedScope | None:
        """The scope that binds a name, if one does."""
        scope: CheckedScope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        return scope

    def visible(self) -> list[str]:
        return [*self.names, *(self.parent.visible() if self.parent else ())]


class Expressions:
    """Checks expressions of one program."""

    def __init__(self, names: Names, findings: Findings, parameters: NeededParameters) -> None:
        self.names = names
        self.findings = findings
        self.parameters = parameters
        # the name that is being assumed
        self.defining: str | None = None
        # names of the program that the directive at hand refers to
        self.used: set[str] = set()
        # whether the text at hand is a branch that is never taken: its values are not computed
        self.never_taken = False

    def check(self, item: Expression, scope: CheckedScope) -> Known:
        """Finds what is wrong with an expression, and says what is known of its value."""
        match item:
            case Literal(value=value):
                return Certain(from_python(value))
            case Quote(value=value):
                return Certain(value)
            case Name():
                return self._name(item, scope)
            case Parameter():
                return self.parameters.read(item)
            case Form(items=()):
                self._tell(
                    ArgumentError("an empty form calls nothing", hint="write (procedure argument ...)"), item.span
                )
            case Form(items=(Name(name=head), *_)) if head in FORMS and scope.holder(head) is None:
                try:
                    return FORMS[head](self, item, scope)
                except VentureError as refused:
                    self._tell(refused, item.span)
            case Form():
                return self._call(item, scope)
        return None

    def _tell(self, error: VentureError, span: Span) -> None:
        self.findings.error(error, span)

    def body(self, items: tuple[Expression, ...], scope: CheckedScope, span: Span) -> Known:
        """Several expressions in order; the value is the last one's."""
        if not items:
            raise ArgumentError("there is nothing to evaluate here", span)
        value: Known = None
        for item in items:
            value = self.check(item, scope)
        return value

    def _name(self, item: Name, scope: CheckedScope) -> Known:
        names, name = self.names, item.name
        holder = scope.holder(name)
        if holder is not None:
            return holder.names[name]
        self.used.add(name)
        if name == self.defining and not scope.in_procedure:
            self._tell(VentureError(f"{name} is used before it has a value"), item.span)
        elif name in names.globals:
            return names.globals[name]
        elif name in names.registered:
            return None
        elif record := primitive(name):
            return record
        elif name in STANDARD_NAMES:
            return _standard(name)
        elif scope.in_procedure and name in names.coming:
            return names.coming[name][0]
        elif name not in names.doubtful and not names.incomplete:
            self._unknown(item, scope)
        return None

    def _unknown(self, item: Name, scope: CheckedScope) -> None:
        names = self.names
        error = unknown_name(
            item, [*scope.visible(), *names.globals, *names.registered, *STANDARD_NAMES], names.defined
        )
        if item.name in names.coming:
            error.hint = (
                f"{item.name} is assumed at {names.coming[item.name][1].place()}; its name is known from there on"
            )
        self._tell(error, item.span)

    def _call(self, form: Form, scope: CheckedScope) -> Known:
        head, *rest = form.items
        called = self.check(head, scope)
        arguments = tuple([self.check(item, scope) for item in rest])
        spans = tuple([item.span for item in rest])
        try:
            if not self.never_taken or isinstance(called, Primitive):
                refuse_count(called, head.span.text, len(rest), form.span)
            return None if self.never_taken else value_of_call(called, arguments, spans, form.span)
        except VentureError as error:
            self._tell(error, form.span)
            return None

    def branch(self, item: Expression, scope: CheckedScope, taken: bool) -> Known:
        """An alternative, of which it may be known that it is never taken."""
        before = self.never_taken
        self.never_taken = before or not taken
        try:
            return self.check(item, scope)
        finally:
            self.never_taken = before


def _standard(name: str) -> Known:
    """A procedure of the standard library."""
    expression = prelude()[name]
    return WrittenLambda(name, len(forms.lambda_parts(expression)[1])) if isinstance(expression, Form) else None


# -------------------------------------------------------------------------------------------------- special forms


def _lambda(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    _, names, body = forms.lambda_parts(form)
    checker.body(body, CheckedScope(dict.fromkeys(names), scope, in_procedure=True), form.span)
    return WrittenLambda(ANONYMOUS, len(names))


def _mem(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    part = forms.mem_part(form)
    operator = checker.check(part, scope)
    refuse_memo(operator, form.span)
    return replace(operator, memoized=True) if isinstance(operator, WrittenLambda) else None


def _if(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    condition, consequent, alternative = forms.if_parts(form)
    predicate = checker.check(condition, scope)
    taken: bool | None = None
    if isinstance(predicate, Certain):
        with checker.findings.told(condition.span):
            taken = forms.truth(predicate.value)
    one = checker.branch(consequent, scope, taken is not False)
    other = checker.branch(alternative, scope, taken is not True)
    if taken is not None:
        return one if taken else other
    match one, other:
        case WrittenLambda(parameters=count), WrittenLambda(parameters=same) if count == same:
            return one
        case ((Certain() | Computed()), (Certain() | Computed())):
            return Computed()
    return None


def _sugar(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    head = form.items[0]
    assert isinstance(head, Name)
    return checker.check(forms.SUGAR[head.name](form), scope)


def _begin(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    return checker.body(form.items[1:], scope, form.span)


def _let(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    pairs, body = forms.let_parts(form)
    for name, value in pairs:
        scope = CheckedScope({name.name: checker.check(value, scope)}, scope)
    return checker.body(body, scope, form.span)


def _letrec(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    """Procedures see themselves and each other; other values see what was bound before them."""
    pairs, body = forms.let_parts(form)
    inner = CheckedScope({}, scope)
    procedures = {name.name: value for name, value in pairs if forms.procedure_text(value) is not None}
    inner.names.update(dict.fromkeys(procedures))
    for name, value in pairs:
        if name.name not in procedures:
            inner.names[name.name] = checker.check(value, inner)
    for bound, value in procedures.items():
        inner.names[bound] = checker.check(value, inner)
    return checker.body(body, inner, form.span)


def _quote(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    return Certain(forms.quoted(form))


def _scope_include(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    named, key, expression = forms.scope_include_parts(form)
    with checker.findings.told(named.span):
        forms.scope_name(named)
    if isinstance(checker.check(key, scope), RandomValue):
        hint = "make it an argument of a memoized procedure"
        checker.findings.error(ArgumentError("a block's key may not depend on a random choice", hint=hint), key.span)
    return checker.check(expression, scope)


FORMS: dict[str, Callable[[Expressions, Form, CheckedScope], Known]] = {
    "lambda": _lambda,
    "mem": _mem,
    "if": _if,
    **dict.fromkeys(forms.SUGAR, _sugar),
    "begin": _begin,
    "let": _let,
    "letrec": _letrec,
    "quote": _quote,
    "scope_include": _scope_include,
    "tag": _scope_include,
}
"""Each special form of the analysis, by name."""
