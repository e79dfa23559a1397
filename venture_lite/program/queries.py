"""`(enumerate (lambda () EXPR))`: a query inside the model, as a function of the values that it reads.

Whatever the text of a query names around it is one of two: a procedure that is known by its text, which the query
analyses anew together with its own, or a value, which is handed over. So a query is one deterministic procedure with as
many arguments as it reads values, those that the procedures' texts read included; all else (what depends on it, when
it is computed again, how a transition with it is printed) is what holds for deterministic procedures. Which names mean
what is found here; the worlds are the interpreter's (`interpreter/queries.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from venture_lite.errors import ArgumentError, KernelError, Span
from venture_lite.language.syntax import UNWRITABLE, Expression, Form, Name
from venture_lite.procedures import registry
from venture_lite.procedures.domains import ANY
from venture_lite.procedures.record import Deterministic, Maker, Procedure, Random
from venture_lite.program.code import Code, Constant, Global, GlobalRef, Kind, Ref, Slot, SlotRef, named
from venture_lite.program.compounds import USAGES as COMPOUNDS
from venture_lite.program.free_names import free_names
from venture_lite.program.lexical import LexicalScope
from venture_lite.program.lift import shape

if TYPE_CHECKING:
    from venture_lite.program.compiler import Analyzer, Compiler

USAGES = {
    "enumerate": "(enumerate (lambda () EXPR))",
    "factor": "(factor S)",
    "condition": "(condition P)",
}
"""The forms, each with how it is written."""

SUMMARIES = {
    "enumerate": "A query inside the model: the exact distribution of EXPR's value over all worlds of its random "
    "choices, each of finite support. What EXPR names around it is read from there.",
    "factor": "Inside a query, a world's log weight grows by S; the value is S.",
    "condition": "Inside a query, only worlds in which P holds are possible; the value is P.",
}


@dataclass(frozen=True, slots=True)
class Handed:
    """A name that stands for the value of an argument of the query."""

    position: int


@dataclass(frozen=True, slots=True)
class OwnProcedure:
    """A name that stands for a procedure of the query's own."""

    position: int


Meaning = Handed | OwnProcedure | Constant


@dataclass(slots=True)
class ProcedureText:
    """A procedure that a query knows by its text: `form` is a lambda. Mutable while names are looked up."""

    name: str
    form: Form
    memoized: bool
    names: dict[str, Meaning] = field(default_factory=dict)


@dataclass(slots=True)
class QueryText:
    """All of a query but the values: its own text, and the procedures that it calls."""

    form: Form
    names: dict[str, Meaning] = field(default_factory=dict)
    procedures: list[ProcedureText] = field(default_factory=list)


class QueryProcedure(Protocol):
    """From the values that a query reads to the distribution that it gives; `text` is set once names are known."""

    text: QueryText | None

    def __call__(self, *values: object) -> object: ...


_NO_ARGUMENTS = "a lambda without arguments: what it names is read from around the query"


def body_of(form: Form) -> tuple[Expression, ...]:
    """The body of a query. Raises ArgumentError where it is written otherwise."""
    match form.items:
        case (_, Form(items=(Name(name="lambda"), Form(items=()), *body))) if body:
            return tuple(body)
    raise ArgumentError(f"enumerate is written {USAGES['enumerate']}", form.span, _NO_ARGUMENTS)


def weighed_part(form: Form) -> Expression:
    """What a `factor` or a `condition` weighs a world by. Raises ArgumentError where it is written otherwise."""
    head, *parts = form.items
    assert isinstance(head, Name)
    if len(parts) != 1:
        raise ArgumentError(f"{head.name} is written {USAGES[head.name]}", form.span)
    return parts[0]


def outside_of_queries(form: Form) -> ArgumentError:
    """The error of a `factor` or a `condition` that no query is around."""
    head = form.items[0]
    assert isinstance(head, Name)
    usage = "[factor EXPR]" if head.name == "factor" else "[condition EXPR]"
    hint = f"{usage} as a directive of its own, or inside (enumerate (lambda () ...))"
    return ArgumentError(f"{head.name} is an expression inside of queries only", form.span, hint)


def refuse_endless(record: Procedure, span: Span | None) -> None:
    """Raises KernelError for a choice whose values cannot be enumerated."""
    if isinstance(record, Random) and record.support is None:
        message = f"{record.name} has no finite support, so that the worlds of a query cannot be enumerated"
        raise KernelError(message, span, "draw it around the query, which reads its value from there")


def compile_query(compiler: Compiler, form: Form, scope: LexicalScope) -> Ref:
    """A form of `USAGES`."""
    head = form.items[0]
    assert isinstance(head, Name)
    if head.name != "enumerate":
        part = weighed_part(form)
        if not compiler.analyzer.in_query:
            raise outside_of_queries(form)
        record = registry.UNNAMED[UNWRITABLE + head.name]
        argument = compiler.compile(part, scope)
        return compiler.add(scope, Slot(Kind.RANDOM, form.span, record, arguments=(argument,), stored=True))
    place = form.span
    text = Form((Name("lambda", place), Form((), place), *body_of(form)), place)
    text, scope = read_around(compiler, text, scope)
    procedure = compiler.analyzer.make_query(form)
    record = Deterministic("enumerate", (), SUMMARIES["enumerate"], procedure, rest=ANY)
    slot = Slot(Kind.DETERMINISTIC, form.span, record)
    ref = compiler.add(scope, slot)
    compiler.queries.append(UnclosedQuery(slot, text, scope, procedure))
    return ref


def read_around(compiler: Compiler, text: Form, scope: LexicalScope) -> tuple[Form, LexicalScope]:
    """A query's text with names in the place of calls that are made around it, and the scope that has these names.

    A procedure that is memoized around the query makes its choices there. So a call of one with values from around the
    query is made there, too: where every world makes it, and where its arguments are no more than names and constants,
    so that nothing but a choice that is not needed can come of it.
    """
    reading = _ReadingAround(compiler, scope)
    head, parameters, *body = text.items
    body = [reading.visit(part, frozenset(), True) for part in body]
    found = replace(text, items=(head, parameters, *body))
    return found, scope.inner(reading.names) if reading.names else scope


class _ReadingAround:
    """Goes through a query's text, and makes calls around it."""

    def __init__(self, compiler: Compiler, scope: LexicalScope) -> None:
        self._compiler = compiler
        self._scope = scope
        self._closing = _Closing(compiler.analyzer, compiler.awaited)
        self.names: dict[str, Ref] = {}
        # shape of a call -> its name
        self._made: dict[Hashable, str] = {}

    def visit(self, item: Expression, bound: frozenset[str], is_sure: bool) -> Expression:
        """The text with names in it; `is_sure` says that every world evaluates it, `bound` what the query binds."""
        match item:
            case Form(items=(Name(name=name), *_)) if name not in bound and self._is_made_around(item, bound):
                made = self._made.get(shape(item))
                if made is None and (is_sure or not any(isinstance(part, Form) for part in item.items[1:])):
                    made = self._made[shape(item)] = f"{UNWRITABLE}read {len(self.names)}"
                    self.names[made] = self._compiler.compile(item, self._scope)
                return item if made is None else Name(made, item.span)
            case Form(items=(Name(name="quote"), *_)):
                return item
            case Form(items=(Name(name="if") as head, predicate, *branches)):
                first = self.visit(predicate, bound, is_sure)
                return replace(item, items=(head, first, *(self.visit(part, bound, False) for part in branches)))
            case Form(items=(Name(name="let") as head, Form(items=bindings) as pairs, *body)):
                visited: list[Expression] = []
                for binding in bindings:
                    match binding:
                        case Form(items=(Name(name=name) as target, value)):
                            visited.append(replace(binding, items=(target, self.visit(value, bound, is_sure))))
                            bound = bound | {name}
                        case _:
                            visited.append(binding)
                parts = [self.visit(part, bound, is_sure) for part in body]
                return replace(item, items=(head, replace(pairs, items=tuple(visited)), *parts))
            case Form(
                items=(Name(name="enumerate") as head, Form(items=(word, Form(items=()) as none, *body)) as inner)
            ):
                parts = [self.visit(part, bound, is_sure) for part in body]
                return replace(item, items=(head, replace(inner, items=(word, none, *parts))))
            case Form(items=(Name(name="lambda") as head, Form(items=names) as pairs, *body)):
                bound = bound | {part.name for part in names if isinstance(part, Name)}
                return replace(item, items=(head, pairs, *(self.visit(part, bound, False) for part in body)))
            case Form(items=(Name(name="letrec"), *_)):
                return item
            case Form(items=(Name(name=name), *_)):
                is_sure = is_sure and name not in self._compiler.analyzer.words - {"begin"}
        if isinstance(item, Form):
            return replace(item, items=tuple(self.visit(part, bound, is_sure) for part in item.items))
        return item

    def _is_made_around(self, item: Form, bound: frozenset[str]) -> bool:
        return self._closing.draws_around(item, self._scope) and all(
            _is_computed_around(part, bound, self._compiler, self._scope) for part in item.items[1:]
        )


def _is_computed_around(item: Expression, bound: frozenset[str], compiler: Compiler, scope: LexicalScope) -> bool:
    """Whether an argument of a call is a value of the text around a query: no choice is made on the way to it."""
    match item:
        case Name(name=name):
            return name not in bound
        case Form(items=(Name(name=name), *rest)):
            is_own = scope.find(name) is not None or compiler.analyzer.globals.get(name) is not None
            is_primitive = not is_own and isinstance(compiler.analyzer.procedure(name), Deterministic)
            return is_primitive and all(_is_computed_around(part, bound, compiler, scope) for part in rest)
        case Form():
            return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class UnclosedQuery:
    """A query in the text of a directive, whose names are looked up when all of that is analysed."""

    slot: Slot
    form: Form
    scope: LexicalScope
    procedure: QueryProcedure

    def close(self, analyzer: Analyzer, await_name: Callable[[Name, LexicalScope, bool], Global]) -> set[Global]:
        """Look up all names; returns the globals that were met. Raises VentureError for a name that nothing binds."""
        closing = _Closing(analyzer, await_name)
        text = QueryText(self.form)
        closing.may_wait = bool(self.scope.inlining) or self.scope.in_procedure()
        closing.look_up(text.names, self.form, self.scope, 0)
        closing.may_wait = True
        while closing.unread:
            procedure, around, levels = closing.unread.pop()
            closing.look_up(procedure.names, procedure.form, around, levels)
        text.procedures = closing.procedures
        self.slot.arguments = tuple(closing.values)
        self.procedure.text = text
        return closing.met


class FoundText(NamedTuple):
    """A procedure's text, where it stands, and how many environments that is above the query; None: elsewhere."""

    form: Form
    scope: LexicalScope
    levels: int | None
    memoized: bool = False


class _Closing:
    """Finds what one query reads."""

    def __init__(self, analyzer: Analyzer, await_name: Callable[[Name, LexicalScope, bool], Global]) -> None:
        self._analyzer = analyzer
        self._await_name = await_name
        self.values: dict[Ref, int] = {}
        self.procedures: list[ProcedureText] = []
        # id of a lambda's form and its lexical scope, memoized or not -> its place among the procedures
        self._places: dict[Hashable, int] = {}
        # procedures whose names are not looked up yet, each with its scope and its levels
        self.unread: list[tuple[ProcedureText, LexicalScope, int | None]] = []
        self.met: set[Global] = set()
        # whether what is looked up is evaluated when a procedure is called, so that names may be bound later
        self.may_wait = False

    def look_up(self, names: dict[str, Meaning], form: Form, scope: LexicalScope, levels: int | None) -> None:
        for item in free_names(form):
            if item.name not in names and (meaning := self._meaning(item, scope, levels)) is not None:
                names[item.name] = meaning

    def _meaning(self, item: Name, scope: LexicalScope, levels: int | None) -> Meaning | None:
        """None for a word of the language."""
        ref = scope.find(item.name)
        if ref is None:
            target = self._global(item, scope)
            if target is None:
                return None
            self.met.add(target)
            ref = GlobalRef(target)
        found = self._procedure(ref, scope.code, levels)
        if found is not None:
            return OwnProcedure(self._place(item.name, found))
        if isinstance(ref, Constant):
            return ref
        if isinstance(ref, SlotRef):
            if levels is None:
                message = (
                    f"a query calls a procedure that reads {item.name}, which is bound inside of another directive"
                )
                raise ArgumentError(message, item.span, f"an assume of its own for {item.name}")
            ref = SlotRef(ref.depth + levels, ref.slot)
        return Handed(self.values.setdefault(ref, len(self.values)))

    def _global(self, item: Name, scope: LexicalScope) -> Global | None:
        analyzer, name = self._analyzer, item.name
        found = analyzer.globals.get(name)
        is_of_language = (
            analyzer.procedure(name) is not None
            or name in registry.CONSTANTS
            or name in analyzer.library_names
            or name in analyzer.words
            or name in COMPOUNDS
            or name in USAGES
        )
        if found is not None and (found.order <= scope.horizon or not is_of_language):
            return found
        return None if is_of_language else self._await_name(item, scope, self.may_wait)

    def _procedure(self, ref: Ref, code: Code, levels: int | None) -> FoundText | None:
        """The text of a procedure, where the text alone shows which procedure a reference stands for."""
        match ref:
            case GlobalRef(target=target):
                target = named(target)
                if target in self._analyzer.texts:
                    return self._analyzer.texts[target]
                return None if target.code is None else self._procedure(target.code.result, target.code, None)
            case SlotRef(depth=depth, slot=index):
                owner = code.ancestor(depth)
                above = None if levels is None else levels + depth
                slot = owner.slots[index]
                if slot.kind is Kind.LAMBDA and slot.text is not None:
                    form, scope = slot.text
                    return FoundText(form, scope, above)
                if slot.kind is Kind.MEM and slot.operator is not None:
                    found = self._procedure(slot.operator, owner, above)
                    return None if found is None else found._replace(memoized=True)
        return None

    def draws_around(self, call: Form, scope: LexicalScope) -> bool:
        """Whether what is called is memoized, and makes random choices."""
        head = call.items[0]
        assert isinstance(head, Name)
        ref = scope.find(head.name)
        if ref is None:
            target = self._analyzer.globals.get(head.name)
            if target is None or target.order > scope.horizon:
                return False
            ref = GlobalRef(target)
        found = self._procedure(ref, scope.code, 0)
        return found is not None and found.memoized and self._draws(found, set())

    def _draws(self, text: FoundText, seen: set[int]) -> bool:
        """Whether a procedure's text, or that of one which it names, has random choices other than in queries."""
        if id(text.form) in seen:
            return False
        seen.add(id(text.form))
        for item in free_names(text.form, in_queries=False):
            ref = text.scope.find(item.name)
            if ref is None:
                target = self._analyzer.globals.get(item.name)
                if target is None or target.order > text.scope.horizon:
                    if isinstance(self._analyzer.procedure(item.name), (Random, Maker)):
                        return True
                    continue
                ref = GlobalRef(target)
            found = self._procedure(ref, text.scope.code, text.levels)
            if found is not None and self._draws(found, seen):
                return True
        return False

    def _place(self, name: str, found: FoundText) -> int:
        key = id(found.form), id(found.scope), found.memoized
        if key not in self._places:
            self._places[key] = len(self.procedures)
            self.procedures.append(ProcedureText(name, found.form, found.memoized))
            self.unread.append((self.procedures[-1], found.scope, found.levels))
        return self._places[key]


def text_of_assume(form: Expression, scope: LexicalScope) -> FoundText | None:
    """What a name stands for whose value is being analysed, if that is a procedure in the text."""
    match form:
        case Form(items=(Name(name="mem"), Form(items=(Name(name="lambda"), *_)) as inner)):
            return FoundText(inner, scope, None, True)
        case Form(items=(Name(name="lambda"), *_)):
            return FoundText(form, scope, None)
    return None
