"""The compiler of expressions: resolves names, undoes sugar, inlines calls of small global procedures.

Special forms live in `forms.py`, as functions from (compiler, form, scope) to a reference.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING

from venture_lite.code import Code, Constant, Global, GlobalRef, Kind, Ref, Region, Slot, SlotRef, named
from venture_lite.errors import ArgumentError, CallSite, NameUnknown, Span, VentureError
from venture_lite.lift import ARGUMENT_PREFIX
from venture_lite.procedures import registry
from venture_lite.procedures.checks import check_count
from venture_lite.procedures.record import Deterministic, Maker, Procedure, Random
from venture_lite.suggestions import DRAWN_IN_A_LIST, OVER_SEVERAL_LISTS, suggestion
from venture_lite.syntax import Expression, Form, Literal, Name, Parameter, Quote
from venture_lite.values import from_python

if TYPE_CHECKING:
    from venture_lite.analyze import Analyzer

INLINE_LIMIT = 400
"""A body with more slots than this takes no further inlined calls, so that nested inlining cannot explode."""


class Scope:
    """The names that a piece of text sees, and the Code in which it is evaluated."""

    __slots__ = ("code", "horizon", "names", "parent")

    def __init__(self, code: Code, parent: Scope | None, names: dict[str, Ref], horizon: int) -> None:
        self.code = code
        self.parent = parent
        # references as seen from a row of `code`
        self.names = names
        # globals defined later than this are not seen: an inlined body means what it meant where it was written
        self.horizon = horizon

    def inner(self, names: dict[str, Ref]) -> Scope:
        return Scope(self.code, self, names, self.horizon)

    def find(self, name: str) -> Ref | None:
        depth = 0
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return deeper(scope.names[name], depth)
            if scope.parent is not None and scope.parent.code is not scope.code:
                depth += 1
            scope = scope.parent
        return None

    def in_procedure(self) -> bool:
        """Whether the text is evaluated when a procedure is called, and not at once."""
        code: Code | None = self.code
        while code is not None and code.kind != "lambda":
            code = code.parent
        return code is not None

    def all_names(self) -> list[str]:
        found: list[str] = []
        scope: Scope | None = self
        while scope is not None:
            found.extend(name for name in scope.names if not name.startswith(ARGUMENT_PREFIX))
            scope = scope.parent
        return found


def deeper(ref: Ref, depth: int) -> Ref:
    """The same slot as seen from `depth` environments further down."""
    if depth and isinstance(ref, SlotRef):
        return SlotRef(ref.depth + depth, ref.slot)
    return ref


class Compiler:
    """Compiles the text of one directive. Holds what changes on the way down: the regions and the inlined calls."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.regions: tuple[Region, ...] = ()
        self.inlined: tuple[CallSite, ...] = ()
        self.inlining: tuple[Global, ...] = ()
        # whether the text is part of a primitive procedure's argument: its value is all that matters
        self.in_argument = False
        # every global that the text refers to, inlined text included
        self.used: set[Global] = set()

    # ------------------------------------------------------------------------------------------- expressions

    def compile(self, item: Expression, scope: Scope) -> Ref:
        """A reference to the item's value; slots that it needs are added to the scope's Code."""
        match item:
            case Literal(value=value):
                return Constant(from_python(value))
            case Quote(value=value):
                return Constant(value)
            case Name():
                return self.name(item, scope)
            case Form(items=()):
                raise ArgumentError("an empty form calls nothing", item.span, "write (procedure argument ...)")
            case Form(items=(Name(name=head), *_)) if scope.find(head) is None:
                special = self._special_form(head)
                return special(self, item, scope) if special else self.application(item, scope)
            case Form():
                return self.application(item, scope)
            case Parameter():
                raise VentureError("a parameter cannot stand here", item.span)
        raise VentureError("not an expression")

    def _special_form(self, head: str) -> Callable[[Compiler, Form, Scope], Ref] | None:
        from venture_lite.forms import SPECIAL_FORMS

        return SPECIAL_FORMS.get(head)

    def body(self, items: tuple[Expression, ...], scope: Scope, span: Span) -> Ref:
        """Several expressions in order; the value is the last one's."""
        if not items:
            raise ArgumentError("there is nothing to evaluate here", span)
        refs = [self.compile(item, scope) for item in items]
        return refs[-1]

    def name(self, item: Name, scope: Scope) -> Ref:
        local = scope.find(item.name)
        if local is not None:
            return local
        found = self.analyzer.find_global(item.name, scope.horizon)
        if found is not None:
            if item.name == self.analyzer.defining and not self.inlining and not scope.in_procedure():
                raise VentureError(f"{item.name} is used before it has a value", item.span)
            self.used.add(found)
            return GlobalRef(found)
        procedure = self.analyzer.procedure(item.name)
        if procedure is not None:
            return Constant(procedure)
        error = self.unknown(item, scope)
        if self.inlining or scope.in_procedure():
            awaited = self.analyzer.await_name(item, error.hint)
            if awaited is not None:
                self.used.add(awaited)
                return GlobalRef(awaited)
        raise error

    def unknown(self, item: Name, scope: Scope) -> VentureError:
        analyzer = self.analyzer
        library = analyzer.library.names if analyzer.library is not None else ()
        visible = [*scope.all_names(), *analyzer.globals, *analyzer.registered, *library]
        return unknown_name(item, visible, analyzer.defined)

    # ------------------------------------------------------------------------------------------ applications

    def application(self, form: Form, scope: Scope) -> Ref:
        head = form.items[0]
        match head:
            case Form(items=(Name(name="lambda"), Form(items=names), *body)) if scope.find("lambda") is None:
                return self._inline(names, tuple(body), form, scope, scope, "lambda")
            case Name() if scope.find(head.name) is None:
                target = self.analyzer.find_global(head.name, scope.horizon)
                if target is not None and self._may_inline(meant := named(target), scope):
                    self.used.add(target)
                    return self._inline_global(meant, form, scope)
                procedure = self.analyzer.procedure(head.name)
                if target is None and procedure is not None:
                    return self._primitive(procedure, form, scope)
        operator = self.compile(head, scope)
        arguments = tuple(self.compile(part, scope) for part in form.items[1:])
        return self.add(scope, Slot(Kind.CALL, form.span, operator=operator, arguments=arguments, stored=True))

    def add(self, scope: Scope, slot: Slot) -> SlotRef:
        slot.regions = self.regions
        slot.inlined = self.inlined
        return scope.code.add(slot)

    def _primitive(self, record: Procedure, form: Form, scope: Scope) -> Ref:
        outer, self.in_argument = self.in_argument, True
        try:
            arguments = tuple(self.compile(part, scope) for part in form.items[1:])
        finally:
            self.in_argument = outer
        check_count(record, len(arguments), form.span)
        arguments += tuple(Constant(a.default) for a in record.arguments[len(arguments) :])
        match record:
            case Deterministic():
                return self.add(scope, Slot(Kind.DETERMINISTIC, form.span, record, arguments=arguments))
            case Random():
                record, arguments = self._in_logits(record, arguments, scope, form.span)
                return self.add(scope, Slot(Kind.RANDOM, form.span, record, arguments=arguments, stored=True))
            case Maker():
                return self.add(scope, Slot(Kind.MAKER, form.span, record, arguments=arguments, stored=True))

    def _in_logits(
        self, record: Random, arguments: tuple[Ref, ...], scope: Scope, span: Span
    ) -> tuple[Random, tuple[Ref, ...]]:
        """`(bernoulli (logistic x))` and `(bernoulli (linear_logistic w x))` keep the logit, which loses no digits."""
        match arguments:
            case (SlotRef(depth=0, slot=index),) if record.logit_form is not None:
                slot = scope.code.slots[index]
                name = slot.record.name if slot.record is not None else ""
                if slot.kind is Kind.DETERMINISTIC and name == "logistic":
                    return record.logit_form, slot.arguments
                if slot.kind is Kind.DETERMINISTIC and name == "linear_logistic":
                    dot = registry.PROCEDURES["dot"]
                    return record.logit_form, (
                        self.add(scope, Slot(Kind.DETERMINISTIC, span, dot, arguments=slot.arguments)),
                    )
        return record, arguments

    # ---------------------------------------------------------------------------------------------- inlining

    def _may_inline(self, target: Global, scope: Scope) -> bool:
        return (
            target.lambda_form is not None
            and target not in self.inlining
            and len(scope.code.slots) < INLINE_LIMIT
            and len(self.inlining) < 50
        )

    def _inline_global(self, target: Global, form: Form, scope: Scope) -> Ref:
        self.used.add(target)
        names, body = target.lambda_form
        outer = self.inlining
        self.inlining = (*outer, target)
        try:
            defined_in = Scope(scope.code, None, {}, target.order)
            return self._inline(names, body, form, scope, defined_in, target.name)
        finally:
            self.inlining = outer

    def _inline(
        self,
        names: tuple[Expression, ...],
        body: tuple[Expression, ...],
        form: Form,
        scope: Scope,
        defined_in: Scope,
        name: str,
    ) -> Ref:
        """The body's slots become slots of the caller, its parameters the references of the arguments."""
        if len(names) != len(form.items) - 1:
            raise wrong_count(name, len(names), len(form.items) - 1, form.span)
        arguments = [self.compile(part, scope) for part in form.items[1:]]
        bound = dict(zip(parameter_names(names), arguments, strict=True))
        outer = self.inlined
        self.inlined = (CallSite(name, form.span), *outer)
        try:
            return self.body(body, defined_in.inner(bound), form.span)
        finally:
            self.inlined = outer


def wrong_count(name: str, wanted: int, given: int, span: Span | None) -> ArgumentError:
    plural = "" if wanted == 1 else "s"
    hint = OVER_SEVERAL_LISTS if name == "map" and given > wanted else None
    return ArgumentError(f"{name} takes {wanted} argument{plural}, got {given}", span, hint)


def parameter_names(items: tuple[Expression, ...]) -> list[str]:
    found: list[str] = []
    for item in items:
        if not isinstance(item, Name):
            raise ArgumentError("a parameter of a lambda is a name", item.span)
        if item.name in found:
            raise ArgumentError(f"the parameter {item.name} is named twice", item.span)
        found.append(item.name)
    return found


def unknown_name(item: Name, visible: Iterable[str], defined: Container[str]) -> VentureError:
    """The error of a name that nothing binds, where the program could name what is `visible`."""
    from venture_lite.directives import EXAMPLES
    from venture_lite.forms import SPECIAL_FORMS

    if item.name in SPECIAL_FORMS:
        return ArgumentError(f"{item.name} is a special form, not a value", item.span)
    hint = None
    if item.name in defined:
        hint = "[define ...] binds a name for inference expressions only; the model's names are bound by assume"
    if item.name == "repeat":
        hint = DRAWN_IN_A_LIST
    known = [*visible, *registry.PROCEDURES, *SPECIAL_FORMS, *EXAMPLES]
    return NameUnknown(f"unknown name {item.name}", item.span, hint or suggestion(item.name, known, EXAMPLES))
