"""Looks through an expression of the model as the analysis does, and goes on after an error."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from venture_lite.checker import known
from venture_lite.checker.findings import Findings
from venture_lite.checker.known import Certain, Computed, Known, Primitive, RandomValue, WrittenLambda
from venture_lite.checker.names import Names
from venture_lite.checker.parameters import NeededParameters
from venture_lite.errors import ArgumentError, Span, VentureError
from venture_lite.language.syntax import Expression, Form, Literal, Name, Parameter, Quote
from venture_lite.procedures import registry
from venture_lite.program import forms, queries
from venture_lite.program.compiler import as_meant, unknown_name
from venture_lite.program.compounds import USAGES as COMPOUNDS
from venture_lite.program.compounds import applied, with_distribution
from venture_lite.program.queries import USAGES as QUERIES
from venture_lite.program.selects import truth
from venture_lite.session.standard import NAMES as STANDARD_NAMES
from venture_lite.session.standard import prelude
from venture_lite.values import from_python


@dataclass(frozen=True, slots=True)
class CheckedScope:
    """The local names around a piece of text, innermost first."""

    names: ChainMap[str, Known]
    # whether the text is evaluated when a procedure is called, and not at once
    in_procedure: bool = False
    # whether a query is around the text
    in_query: bool = False

    def inner(self, names: dict[str, Known], in_procedure: bool = False) -> CheckedScope:
        return replace(self, names=self.names.new_child(names), in_procedure=self.in_procedure or in_procedure)


class _Unseen(Exception):
    """A procedure registered from Python, of which only the name is known."""


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
                hint = "write (procedure argument ...)"
                self.findings.error(ArgumentError("an empty form calls nothing", hint=hint), item.span)
            case Form(items=(Name(name=head), *_)) if head in FORMS and head not in scope.names:
                try:
                    return FORMS[head](self, item, scope)
                except VentureError as refused:
                    self.findings.error(refused, item.span)
            case Form(items=(Name(name=head), *_)) if head in COMPOUNDS and not self._is_bound(scope, head):
                try:
                    record, item = applied(item, partial(self._procedure_meant, scope))
                    return self._application(Primitive(record), item, scope)
                except VentureError as refused:
                    self.findings.error(refused, item.span)
                except _Unseen:
                    return None
            case Form(items=(Name(name=head), *_)) if head in QUERIES and not self._is_bound(scope, head):
                try:
                    return self._query(item, scope)
                except VentureError as refused:
                    self.findings.error(refused, item.span)
            case Form():
                return self._call(item, scope)
        return None

    def _is_bound(self, scope: CheckedScope, name: str) -> bool:
        """Whether the program binds a name."""
        names = self.names
        return name in scope.names or name in names.globals or name in names.doubtful

    def _procedure_meant(self, scope: CheckedScope, name: str) -> Any:
        """As `compounds.Lookup`; raises _Unseen for a procedure that is registered."""
        names = self.names
        if self._is_bound(scope, name):
            return None
        if name in names.registered:
            raise _Unseen
        return registry.PROCEDURES.get(name) or (COMPOUNDS if name in COMPOUNDS or name == "none" else None)

    def body(self, items: tuple[Expression, ...], scope: CheckedScope, span: Span) -> Known:
        """Several expressions in order; the value is the last one's."""
        if not items:
            raise ArgumentError("there is nothing to evaluate here", span)
        return [self.check(item, scope) for item in items][-1]

    def _name(self, item: Name, scope: CheckedScope) -> Known:
        names, name = self.names, item.name
        if name in scope.names:
            return scope.names[name]
        self.used.add(name)
        if name == self.defining and not scope.in_procedure:
            self.findings.error(VentureError(f"{name} is used before it has a value"), item.span)
        elif name in names.globals:
            return names.globals[name]
        elif name == self.defining:
            return names.coming[name][0] if name in names.coming else None
        elif name in names.registered:
            return None
        elif record := registry.meant(name):
            return Primitive(record)
        elif name in registry.CONSTANTS:
            return Certain(registry.CONSTANTS[name])
        elif name in STANDARD_NAMES:
            return _standard(name)
        elif scope.in_procedure and name in names.coming:
            return names.coming[name][0]
        elif name not in names.doubtful and not names.incomplete:
            self._unknown(item, scope)
        return None

    def _unknown(self, item: Name, scope: CheckedScope) -> None:
        names = self.names
        visible = chain(*scope.names.maps, names.globals, names.registered, STANDARD_NAMES)
        error = unknown_name(item, list(visible), names.defined)
        if item.name in names.coming:
            place = names.coming[item.name][1].place()
            error.hint = f"{item.name} is assumed at {place}; its name is known from there on"
        self.findings.error(error, item.span)

    def _call(self, form: Form, scope: CheckedScope) -> Known:
        called = self.check(form.items[0], scope)
        if isinstance(called, Primitive):
            try:
                record, form = as_meant(
                    called.record, form, lambda name: name in scope.names or name in self.names.globals
                )
                record, form = with_distribution(record, form, partial(self._procedure_meant, scope))
            except VentureError as error:
                self.findings.error(error, form.span)
                return None
            except _Unseen:
                return None
            called = Primitive(record)
        return self._application(called, form, scope)

    def _query(self, form: Form, scope: CheckedScope) -> Known:
        """A query, or what weighs its worlds."""
        if form.items[0] == Name("enumerate", form.items[0].span):
            self.body(queries.body_of(form), replace(scope, in_query=True), form.span)
            return Computed()
        part = queries.weighed_part(form)
        if not scope.in_query:
            raise queries.outside_of_queries(form)
        self.check(part, scope)
        return Computed()

    def _application(self, called: Known, form: Form, scope: CheckedScope) -> Known:
        head, *rest = form.items
        arguments = tuple([self.check(item, scope) for item in rest])
        spans = tuple([item.span for item in rest])
        try:
            if scope.in_query and isinstance(called, Primitive) and not self.never_taken:
                queries.refuse_endless(called.record, form.span)
            if not self.never_taken or isinstance(called, Primitive):
                known.refuse_count(called, head.span.text, len(rest), form.span)
            return None if self.never_taken else known.value_of_call(called, arguments, spans, form.span)
        except VentureError as error:
            self.findings.error(error, form.span)
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
    if not isinstance(expression, Form):
        return None
    return WrittenLambda(name, len(forms.lambda_parts(expression)[1]), takes_more=name == "map")


# -------------------------------------------------------------------------------------------------- special forms


def _lambda(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    _, names, body = forms.lambda_parts(form)
    checker.body(body, scope.inner(dict.fromkeys(names), in_procedure=True), form.span)
    return WrittenLambda(known.ANONYMOUS, len(names))


def _mem(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    operator = checker.check(forms.mem_part(form), scope)
    known.refuse_memo(operator, form.span)
    return replace(operator, memoized=True) if isinstance(operator, WrittenLambda) else None


def _if(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    condition, consequent, alternative = forms.if_parts(form)
    predicate = checker.check(condition, scope)
    taken: bool | None = None
    if isinstance(predicate, Certain):
        with checker.findings.told(condition.span):
            taken = truth(predicate.value)
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


def _let(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    pairs, body = forms.let_parts(form)
    for name, value in pairs:
        scope = scope.inner({name.name: checker.check(value, scope)})
    return checker.body(body, scope, form.span)


def _letrec(checker: Expressions, form: Form, scope: CheckedScope) -> Known:
    """Procedures see themselves and each other; other values see what was bound before them."""
    pairs, body = forms.let_parts(form)
    procedures = {name.name: value for name, value in pairs if forms.procedure_text(value) is not None}
    inner = scope.inner(dict.fromkeys(procedures))
    for name, value in pairs:
        if name.name not in procedures:
            inner.names[name.name] = checker.check(value, inner)
    for bound, value in procedures.items():
        inner.names[bound] = checker.check(value, inner)
    return checker.body(body, inner, form.span)


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
    **dict.fromkeys(forms.SUGAR, lambda checker, form, scope: checker.check(forms.unsugared(form), scope)),
    "begin": lambda checker, form, scope: checker.body(form.items[1:], scope, form.span),
    "let": _let,
    "letrec": _letrec,
    "quote": lambda checker, form, scope: Certain(forms.quoted(form)),
    "scope_include": _scope_include,
    "tag": _scope_include,
}
"""Each special form of the analysis, by name."""
