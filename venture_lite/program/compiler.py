"""From expressions to `Code`: the names of one model, and the Code tree of each directive.

The analysis never looks at data. `Analyzer` keeps the names and makes the Code tree of one directive, which the program
numbers; `Compiler` resolves names, undoes sugar and inlines calls of small global procedures. Special forms live in
`forms.py`, as functions from (compiler, form, scope) to a reference.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from venture_lite.errors import (
    ArgumentError,
    CallSite,
    InternalError,
    LimitError,
    NameUnknown,
    Span,
    VentureError,
    nearest_name,
)
from venture_lite.language.directives import EXAMPLES
from venture_lite.language.suggestions import DRAWN_IN_A_LIST, suggestion
from venture_lite.language.syntax import Expression, Form, Literal, Name, Parameter, Quote, walked
from venture_lite.procedures import registry
from venture_lite.procedures.checks import check_count
from venture_lite.procedures.distributions.continuous import UNIFORM_CONTINUOUS
from venture_lite.procedures.distributions.improper import FLAT, FLAT_ABOVE, FLAT_BELOW
from venture_lite.procedures.record import Deterministic, Maker, Procedure, Random
from venture_lite.program.code import Code, Constant, Global, GlobalRef, Kind, Program, Ref, Slot, SlotRef, named
from venture_lite.program.compounds import USAGES as COMPOUNDS
from venture_lite.program.compounds import applied, with_distribution
from venture_lite.program.forms import SPECIAL_FORMS, refuse_as_name
from venture_lite.program.lexical import LexicalScope, parameter_names
from venture_lite.program.lift import ARGUMENT_PREFIX
from venture_lite.program.queries import USAGES as QUERIES
from venture_lite.program.queries import FoundText, QueryProcedure, UnclosedQuery, compile_query, text_of_assume
from venture_lite.program.selects import is_tolerant, tolerant
from venture_lite.values import Symbol, from_python


class StandardNames(Protocol):
    """The standard library: defines a name in a model when it is first used."""

    names: tuple[str, ...]

    def define(self, analyzer: Analyzer, name: str, lists: int = 1) -> Global | None: ...

    def anew(self) -> StandardNames: ...


class Analyzer:
    """Makes Codes; knows the globals of one model."""

    def __init__(self, program: Program, library: StandardNames | None) -> None:
        self.program = program
        self.globals: dict[str, Global] = {}
        self.library = library
        self.library_names: tuple[str, ...] = () if library is None else library.names
        # definitions of the standard library, which is loaded as it is used
        self.standard: dict[str, Global] = {}
        # names that bodies of procedures refer to and that nothing binds, or nothing any more
        self.forward: dict[str, Global] = {}
        # while an assume is analysed: what it binds, and the names that may be bound later (None: any)
        self.defining: str | None = None
        self._may_come: frozenset[str] | None = frozenset()
        self._awaited: list[Global] = []
        self.order = 0
        # procedures registered from Python
        self.registered: dict[str, Procedure] = {}
        # what `define` binds: no expression of the model sees it
        self.defined: Mapping[str, Any] = {}
        # words of the language that are no procedures
        self.words = frozenset((*SPECIAL_FORMS, "else", "none"))
        # whether what is analysed stands in a query, and what evaluates a query whose form is given
        self.in_query = False
        self.make_query: Callable[[Form], QueryProcedure] = _no_queries
        # names whose values are procedures in the text, those that are being analysed among them
        self.texts: dict[Global, FoundText] = {}
        # queries that read a name which is not bound, by that name
        self.unclosed: dict[Global, list[UnclosedQuery]] = {}

    # ------------------------------------------------------------------------------------------------- names

    def refuse_binding(self, name: str, span: Span | None) -> None:
        """Raises VentureError where an assume cannot bind the name.

        The name of a procedure of the language may be bound; text that stands before keeps the procedure.
        """
        refuse_as_name(name, span)
        if name in self.globals:
            raise VentureError(f"{name} is already assumed; names are never rebound", span, "choose another name")

    def refuse_registration(self, name: str) -> None:
        """Raises ArgumentError where a procedure from Python cannot take the name.

        One that is registered again is the new one in text that follows.
        """
        if name in registry.PROCEDURES or name in SPECIAL_FORMS or name in self.library_names:
            raise ArgumentError(f"{name} is a procedure of the language already", hint="register it under another name")
        if name in registry.CONSTANTS:
            raise ArgumentError(f"{name} is a constant of the language", hint="register it under another name")
        if name in self.globals:
            hint = "register it under another name, or forget the assume"
            raise ArgumentError(f"{name} is assumed already; names are never rebound", hint=hint)
        if name in self.forward:
            where = self.forward[name].span
            at = f" at {where.place()}" if where else ""
            hint = "register procedures before the text that uses them (clear and run it again)"
            raise ArgumentError(f"text that was run{at} waits for an assume of {name}", hint=hint)

    def new_global(self, name: str, span: Span | None) -> Global:
        self.refuse_binding(name, span)
        self.order += 1
        made = self.forward.pop(name, None) or Global(name, self.order, span)
        made.order, made.span = self.order, span
        self.globals[name] = made
        return made

    def unbind(self, name: str) -> Global:
        """A name is free again; text that awaited it awaits it still."""
        target = self.globals.pop(name)
        target.lambda_form = None
        if target.awaited:
            target.order = 0
            self.forward[name] = target
        return target

    def forget_awaited(self) -> None:
        """The assume that is analysed is refused: no text awaits the names that it alone has named."""
        for target in self._awaited:
            self.forward.pop(target.name, None)

    def memory(self) -> Callable[[], None]:
        """A function that puts back which names are bound now."""
        bound, forward = dict(self.globals), dict(self.forward)
        targets = [(target, target.order, target.lambda_form) for target in (*bound.values(), *forward.values())]

        def restore() -> None:
            self.globals.clear()
            self.globals.update(bound)
            self.forward.clear()
            self.forward.update(forward)
            for target, order, lambda_form in targets:
                target.order, target.lambda_form = order, lambda_form

        return restore

    def begin_assume(self, name: str, may_come: frozenset[str] | None) -> None:
        """Until `end_of_assume`, bodies of procedures may name what `may_come` holds; None stands for any name."""
        self.defining, self._may_come = name, may_come

    def end_of_assume(self) -> list[Global]:
        """The names that the last assume refers to and that nothing binds yet, but for those told before."""
        awaited, self._awaited = self._awaited, []
        self.defining, self._may_come = None, frozenset()
        return [target for target in awaited if target.name in self.forward]

    def await_name(self, item: Name, hint: str | None) -> Global | None:
        """A global for a name that a later assume may bind, or None."""
        target = self.forward.get(item.name)
        if target is not None or (self._may_come is not None and item.name not in self._may_come):
            return target
        target = self.forward[item.name] = Global(item.name, 0, item.span, awaited=True, hint=hint)
        self._awaited.append(target)
        return target

    def directive(
        self,
        name: str,
        expression: Expression,
        arity: int,
        stored_result: bool,
        horizon: int | None = None,
        passing: bool = False,
        around: Mapping[str, Ref] | None = None,
    ) -> Code:
        """The Code of one directive: `arity` argument slots, then what the expression needs. Numbers the whole tree;
        one that is `passing`, of which no row lasts, by numbers that were in use before. The expression sees the names
        that are bound `around` it."""
        if horizon is None:
            horizon = self.order
        code = Code("directive", name, None, arity, expression.span)
        for _ in range(arity):
            code.add(Slot(Kind.ARGUMENT, expression.span, stored=True))
        names: dict[str, Ref] = {f"{ARGUMENT_PREFIX}{i}": SlotRef(0, i) for i in range(arity)}
        names.update(around or {})
        bound = self.globals.get(name) if name == self.defining else None
        if bound is not None:
            self.texts.pop(bound, None)
            if (text := text_of_assume(expression, LexicalScope(code, None, names, horizon))) is not None:
                self.texts[bound] = text
        compiler = Compiler(self)
        try:
            code.result = compiler.compile(expression, LexicalScope(code, None, names, horizon))
            compiler.close_queries()
        except RecursionError:
            raise LimitError("the expression is nested too deeply", expression.span) from None
        code.uses = frozenset(compiler.used)
        if stored_result or name in self.standard:
            _name_procedure(code, name)
        match code.result:
            case SlotRef(depth=0, slot=slot) if stored_result and code.slots[slot].kind is Kind.DETERMINISTIC:
                code.slots[slot].stored = True
        tree = tree_of(code)
        for part in tree:
            _store_what_lambdas_read(part)
        for part in tree:
            self.program.finish(part, passing)
        if bound is not None:
            self._close_again(bound)
        return code

    def _close_again(self, bound: Global) -> None:
        """Look up the names of queries anew that read a name before it was bound."""
        for query in tuple(self.unclosed.get(bound, ())):
            code = query.scope.code
            if self.program.codes[code.index] is not code:
                continue
            index = code.slots.index(query.slot)
            self.program.leave_readers(code, index)
            Compiler(self).close(query)
            self.program.enter_readers(code, index)

    def procedure(self, name: str) -> Procedure | None:
        """A procedure of the language, or one registered from Python."""
        return self.registered.get(name) or registry.meant(name)

    def meaning(self, expression: Expression) -> frozenset[tuple[str, int]]:
        """What the names of an expression are bound to now: with its shape it decides which Code it shares."""
        names = {item.name for item in walked(expression) if isinstance(item, Name)}
        bound = {name: self.globals.get(name) or self.forward.get(name) or self.registered.get(name) for name in names}
        return frozenset((name, id(target)) for name, target in bound.items() if target is not None)

    def find_global(self, name: str, horizon: int) -> Global | None:
        found = self.globals.get(name)
        if found is not None and found.order <= horizon:
            return found
        if self.procedure(name) is not None or name in registry.CONSTANTS:
            return None
        if name in self.standard:
            return self.standard[name]
        if self.library is not None and name in self.library.names:
            return self.library.define(self, name)
        # text that stood before the name was bound
        return found

    def over_several(self, target: Global | None, count: int) -> Global | None:
        """The definition for a call of `map`, whose arguments are so many, with more lists than one."""
        standard = self.standard.get("map")
        if standard is None or count < 3 or target is None or named(target) is not standard:
            return None
        assert self.library is not None
        return self.standard.get(of_lists("map", count - 1)) or self.library.define(self, "map", count - 1)


def _no_queries(form: Form) -> QueryProcedure:
    raise InternalError("nobody evaluates queries")


def of_lists(name: str, lists: int) -> str:
    """Under what a definition stands that is made for a number of lists."""
    return name if lists == 1 else f"{name} of {lists} lists"


def _name_procedure(code: Code, name: str) -> None:
    """A lambda, memoized or not, that is a directive's value goes by the directive's name."""
    match code.result:
        case SlotRef(depth=0, slot=index):
            slot = code.slots[index]
            if slot.kind is Kind.MEM and isinstance(slot.operator, SlotRef):
                slot = code.slots[slot.operator.slot]
            if slot.kind is Kind.LAMBDA and slot.body is not None:
                slot.body.name = name


def tree_of(code: Code) -> list[Code]:
    """A Code and all inside it, outer ones first."""
    found = [code]
    for part in found:
        found.extend(part.inner)
    return found


def _store_what_lambdas_read(code: Code) -> None:
    """A deterministic slot that the rows of an inner lambda read would be computed anew for each of them: store it."""
    for slot in code.slots:
        for ref in (*slot.refs, *(region.block for region in slot.regions)):
            _mark(code, ref)
    _mark(code, code.result)


def _mark(code: Code, ref: Ref) -> None:
    if not isinstance(ref, SlotRef):
        return
    crosses_lambda = False
    for _ in range(ref.depth):
        crosses_lambda = crosses_lambda or code.kind == "lambda"
        assert code.parent is not None
        code = code.parent
    target = code.slots[ref.slot]
    if crosses_lambda and target.kind is Kind.DETERMINISTIC:
        target.stored = True


def mentions(item: Expression, name: str) -> bool:
    """Whether the text names `name` anywhere."""
    return any(isinstance(part, Name) and part.name == name for part in walked(item))


def inlinable(expression: Expression, name: str) -> Any:
    """(parameters, body) where the expression is a lambda that does not call itself, else None."""
    match expression:
        case Form(items=(Name(name="lambda"), Form(items=names), *body)) if body and not mentions(expression, name):
            return names, tuple(body)
    return None


INLINE_LIMIT = 400
"""A body with more slots than this takes no further inlined calls, so that nested inlining cannot explode."""


class Compiler:
    """Compiles the text of one directive."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        # every global that the text refers to, inlined text included
        self.used: set[Global] = set()
        # the queries in the text
        self.queries: list[UnclosedQuery] = []

    # ------------------------------------------------------------------------------------------- expressions

    def compile(self, item: Expression, scope: LexicalScope) -> Ref:
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
                special = SPECIAL_FORMS.get(head)
                return special(self, item, scope) if special else self.application(item, scope)
            case Form():
                return self.application(item, scope)
            case Parameter():
                raise VentureError("a parameter cannot stand here", item.span)
        raise VentureError("not an expression")

    def body(self, items: tuple[Expression, ...], scope: LexicalScope, span: Span) -> Ref:
        """Several expressions in order; the value is the last one's."""
        if not items:
            raise ArgumentError("there is nothing to evaluate here", span)
        refs = [self.compile(item, scope) for item in items]
        return refs[-1]

    def name(self, item: Name, scope: LexicalScope) -> Ref:
        local = scope.find(item.name)
        if local is not None:
            return local
        found = self.analyzer.find_global(item.name, scope.horizon)
        if found is not None:
            if item.name == self.analyzer.defining and self._is_needed_at_once(scope):
                raise VentureError(f"{item.name} is used before it has a value", item.span)
            self.used.add(found)
            return GlobalRef(found)
        procedure = self.analyzer.procedure(item.name)
        if procedure is not None:
            return Constant(procedure)
        if item.name in registry.CONSTANTS:
            return Constant(registry.CONSTANTS[item.name])
        return GlobalRef(self.awaited(item, scope, bool(scope.inlining) or scope.in_procedure()))

    def awaited(self, item: Name, scope: LexicalScope, may_wait: bool) -> Global:
        """A name that is not bound yet, where it may wait for that. Raises NameUnknown for any other."""
        visible = [*scope.all_names(), *self.analyzer.globals, *self.analyzer.registered, *self.analyzer.library_names]
        error = unknown_name(item, visible, self.analyzer.defined)
        awaited = self.analyzer.await_name(item, error.hint) if may_wait else None
        if awaited is None:
            raise error
        self.used.add(awaited)
        return awaited

    def close_queries(self) -> None:
        """Look up what the queries in the text read."""
        for query in self.queries:
            self.close(query)
            code = query.scope.code
            if code.kind == "lambda" and code.result == SlotRef(0, code.slots.index(query.slot)):
                # a table of a memoized procedure's: callers read the value where it stands
                query.slot.stored = True

    def close(self, query: UnclosedQuery) -> None:
        met = query.close(self.analyzer, self.awaited)
        self.used |= met
        for target in met:
            if target.awaited and target.code is None and target not in self.analyzer.texts:
                # when it is bound, the slot's readers are entered anew: they are its own where it is stored
                query.slot.stored = True
                # the name may be taken back, and be bound once more
                waiting = self.analyzer.unclosed.setdefault(target, [])
                waiting += [query] if query not in waiting else []

    # ------------------------------------------------------------------------------------------ applications

    def application(self, form: Form, scope: LexicalScope) -> Ref:
        head, several = form.items[0], None
        match head:
            case Form(items=(Name(name="lambda"), Form(items=names), *body)) if scope.find("lambda") is None:
                return self._inline(names, tuple(body), form, scope, scope, "lambda")
            case Name() if scope.find(head.name) is None:
                target = self.analyzer.find_global(head.name, scope.horizon)
                several = self.analyzer.over_several(target, len(form.items) - 1)
                if target is not None and self._may_inline(meant := named(target), scope):
                    self.used.add(target)
                    return self._inline_global(meant, form, scope)
                procedure = self.analyzer.procedure(head.name)
                if target is None and procedure is not None:
                    return self._primitive(procedure, form, scope)
                if target is None and head.name in COMPOUNDS:
                    return self._primitive(*applied(form, partial(self._procedure_meant, scope)), scope)
                if target is None and head.name in QUERIES:
                    return compile_query(self, form, scope)
        operator = self.compile(head, scope)
        if several is not None:
            self.used.add(several)
            operator = GlobalRef(several)
        arguments = tuple(self.compile(part, scope) for part in form.items[1:])
        return self.add(scope, Slot(Kind.CALL, form.span, operator=operator, arguments=arguments, stored=True))

    def is_tolerant(self, name: str, scope: LexicalScope) -> bool:
        """Whether a name means a procedure of the language that may stand in the values of a select."""
        is_bound = scope.find(name) is not None or self.analyzer.find_global(name, scope.horizon) is not None
        return not is_bound and is_tolerant(self.analyzer.procedure(name))

    def _procedure_meant(self, scope: LexicalScope, name: str) -> Any:
        """As `compounds.Lookup`."""
        if scope.find(name) is not None or self.analyzer.find_global(name, scope.horizon) is not None:
            return None
        found = self.analyzer.procedure(name)
        return COMPOUNDS if found is None and (name in COMPOUNDS or name == "none") else found

    def add(self, scope: LexicalScope, slot: Slot) -> SlotRef:
        slot.regions, slot.inlined = scope.regions, scope.inlined
        return scope.code.add(slot)

    def _primitive(self, record: Procedure, form: Form, scope: LexicalScope) -> Ref:
        def is_bound(name: str) -> bool:
            return scope.find(name) is not None or self.analyzer.find_global(name, scope.horizon) is not None

        record, form = with_distribution(*as_meant(record, form, is_bound), partial(self._procedure_meant, scope))
        inside = scope if scope.in_argument else replace(scope, in_argument=True)
        arguments = tuple(self.compile(part, inside) for part in form.items[1:])
        check_count(record, len(arguments), form.span)
        arguments += tuple(Constant(a.default) for a in record.arguments[len(arguments) :])
        match record:
            case Deterministic():
                record = tolerant(record) if scope.is_tolerant else record
                return self.add(scope, Slot(Kind.DETERMINISTIC, form.span, record, arguments=arguments))
            case Random():
                record, arguments = self._in_logits(record, arguments, scope, form.span)
                return self.add(scope, Slot(Kind.RANDOM, form.span, record, arguments=arguments, stored=True))
            case Maker():
                return self.add(scope, Slot(Kind.MAKER, form.span, record, arguments=arguments, stored=True))

    def _in_logits(
        self, record: Random, arguments: tuple[Ref, ...], scope: LexicalScope, span: Span
    ) -> tuple[Random, tuple[Ref, ...]]:
        """`(bernoulli (logistic x))` and `(bernoulli (linear_logistic w x))` keep the logit, which loses no digits."""
        match arguments:
            case (SlotRef(depth=0, slot=index),) if record.logit_form is not None:
                match scope.code.slots[index]:
                    case Slot(kind=Kind.DETERMINISTIC, record=Deterministic(name="logistic"), arguments=logits):
                        return record.logit_form, logits
                    case Slot(kind=Kind.DETERMINISTIC, record=Deterministic(name="linear_logistic"), arguments=sides):
                        dot = Slot(Kind.DETERMINISTIC, span, registry.PROCEDURES["dot"], arguments=sides)
                        return record.logit_form, (self.add(scope, dot),)
        return record, arguments

    def _is_needed_at_once(self, scope: LexicalScope) -> bool:
        """Whether what stands in a scope is evaluated with the directive: a branch of an inlined body may not be."""
        is_inlined = scope.horizon != self.analyzer.order
        return not scope.in_procedure() and not (is_inlined and scope.code.kind == "branch")

    # ---------------------------------------------------------------------------------------------- inlining

    def _may_inline(self, target: Global, scope: LexicalScope) -> bool:
        return (
            target.lambda_form is not None
            and target not in scope.inlining
            and len(scope.code.slots) < INLINE_LIMIT
            and len(scope.inlining) < 50
        )

    def _inline_global(self, target: Global, form: Form, scope: LexicalScope) -> Ref:
        self.used.add(target)
        names, body = target.lambda_form
        scope = replace(scope, inlining=(*scope.inlining, target))
        defined_in = replace(scope, parent=None, names={}, horizon=target.order)
        return self._inline(names, body, form, scope, defined_in, target.name)

    def _inline(
        self,
        names: tuple[Expression, ...],
        body: tuple[Expression, ...],
        form: Form,
        scope: LexicalScope,
        defined_in: LexicalScope,
        name: str,
    ) -> Ref:
        """The body's slots become slots of the caller, its parameters the references of the arguments."""
        if len(names) != len(form.items) - 1:
            raise wrong_count(name, len(names), len(form.items) - 1, form.span)
        arguments = [self.compile(part, scope) for part in form.items[1:]]
        bound = dict(zip(parameter_names(names), arguments, strict=True))
        inlined = (CallSite(name, form.span), *scope.inlined)
        return self.body(body, replace(defined_in.inner(bound), inlined=inlined), form.span)


def as_meant(record: Procedure, form: Form, is_bound: Callable[[str], bool]) -> tuple[Procedure, Form]:
    """The procedure that a call is of, with its arguments: `(categorical WEIGHTS [VALUES] 'unnormalized)` is one of
    `weighted_categorical`, and the bounds of `flat` choose among four. `is_bound` says which names the program binds.

    Raises ArgumentError for more bounds than two.
    """
    match record, form.items:
        case Random(name="flat"), (head, *bounds) if bounds:
            if len(bounds) > 2:
                hint = "(flat), (flat LO), (flat none HI) or (flat LO HI)"
                raise ArgumentError(f"flat takes at most two bounds, got {len(bounds)}", form.span, hint)
            given = [item != Name("none", item.span) or is_bound("none") for item in bounds]
            meant = FLATS[given[0], given[1:] == [True]]
            return meant, replace(
                form, items=(head, *(item for item, is_given in zip(bounds, given, strict=True) if is_given))
            )
        case Random(name="categorical"), (*items, Quote(value=word)) if len(items) > 1 and word == Symbol(
            "unnormalized"
        ):
            return registry.PROCEDURES["weighted_categorical"], replace(form, items=tuple(items))
    return record, form


FLATS: dict[tuple[bool, bool], Random] = {
    (False, False): FLAT, (True, False): FLAT_ABOVE, (False, True): FLAT_BELOW, (True, True): UNIFORM_CONTINUOUS,
}  # fmt: skip
"""Which bounds are there -> the procedure that `flat` stands for."""


def wrong_count(name: str, wanted: int, given: int, span: Span | None) -> ArgumentError:
    plural = "" if wanted == 1 else "s"
    return ArgumentError(f"{name} takes {wanted} argument{plural}, got {given}", span)


def unknown_name(item: Name, visible: Iterable[str], defined: Container[str]) -> VentureError:
    """The error of a name that nothing binds, where the program could name what is `visible`."""
    if item.name in SPECIAL_FORMS or item.name in COMPOUNDS or item.name in QUERIES:
        usage = COMPOUNDS.get(item.name) or QUERIES.get(item.name)
        return ArgumentError(f"{item.name} is a special form, not a value", item.span, usage)
    hint = None
    if item.name in defined:
        hint = "[define ...] binds a name for inference expressions only; the model's names are bound by assume"
    known = [*visible, *registry.PROCEDURES, *registry.CONSTANTS, *SPECIAL_FORMS, *COMPOUNDS, *QUERIES, *EXAMPLES]
    if nearest_name(item.name, [*known, "repeat"]) == "repeat":
        hint = DRAWN_IN_A_LIST
    return NameUnknown(f"unknown name {item.name}", item.span, hint or suggestion(item.name, known, EXAMPLES))
