"""From expressions to `Code`: the names of one model, and the Code tree of each directive.

The analysis never looks at data. `Analyzer.directive` makes the Code tree of one directive, by way of `compiler.py`;
the program numbers it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from venture_lite.code import Code, Global, Kind, Program, Ref, Slot, SlotRef
from venture_lite.compiler import Compiler, Scope
from venture_lite.errors import ArgumentError, LimitError, Span, VentureError
from venture_lite.lift import ARGUMENT_PREFIX
from venture_lite.procedures import registry
from venture_lite.procedures.record import Procedure
from venture_lite.syntax import Expression, Form, Name


class StandardNames(Protocol):
    """The standard library: defines a name in a model when it is first used."""

    names: tuple[str, ...]

    def define(self, analyzer: Analyzer, name: str) -> Global | None: ...


class Analyzer:
    """Makes Codes; knows the globals of one model."""

    def __init__(self, program: Program, library: StandardNames | None) -> None:
        self.program = program
        self.globals: dict[str, Global] = {}
        self.library = library
        # definitions of the standard library, which is loaded as it is used
        self.standard: dict[str, Global] = {}
        # names that bodies of procedures refer to and that nothing binds, or nothing any more
        self.forward: dict[str, Global] = {}
        # while an assume is analysed: what it binds, and the names that may be bound later (None: any)
        self.defining: str | None = None
        self._may_come: frozenset[str] | None = frozenset()
        self._awaited: list[Global] = []
        self._order = 0
        # procedures registered from Python
        self.registered: dict[str, Procedure] = {}
        # what `define` binds: no expression of the model sees it
        self.defined: Mapping[str, Any] = {}

    # ------------------------------------------------------------------------------------------------- names

    def refuse_binding(self, name: str, span: Span | None) -> None:
        """Raises VentureError where an assume cannot bind the name.

        The name of a procedure of the language may be bound; text that stands before keeps the procedure.
        """
        from venture_lite.forms import refuse_as_name

        refuse_as_name(name, span)
        if name in self.globals:
            raise VentureError(f"{name} is already assumed; names are never rebound", span, "choose another name")

    def refuse_registration(self, name: str) -> None:
        """Raises ArgumentError where a procedure from Python cannot take the name.

        One that is registered again is the new one in text that follows.
        """
        from venture_lite.forms import SPECIAL_FORMS

        library = self.library.names if self.library is not None else ()
        if name in registry.PROCEDURES or name in SPECIAL_FORMS or name in library:
            raise ArgumentError(f"{name} is a procedure of the language already", hint="register it under another name")
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
        self._order += 1
        made = self.forward.pop(name, None) or Global(name, self._order, span)
        made.order, made.span = self._order, span
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
    ) -> Code:
        """The Code of one directive: `arity` argument slots, then what the expression needs. Numbers the whole tree;
        one that is `passing`, of which no row lasts, by numbers that were in use before."""
        if horizon is None:
            horizon = self._order
        code = Code("directive", name, None, arity, expression.span)
        for _ in range(arity):
            code.add(Slot(Kind.ARGUMENT, expression.span, stored=True))
        names: dict[str, Ref] = {f"{ARGUMENT_PREFIX}{i}": SlotRef(0, i) for i in range(arity)}
        compiler = Compiler(self)
        try:
            code.result = compiler.compile(expression, Scope(code, None, names, horizon))
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
        return code

    def procedure(self, name: str) -> Procedure | None:
        """A procedure of the language, or one registered from Python."""
        return self.registered.get(name) or registry.PROCEDURES.get(name)

    def meaning(self, expression: Expression) -> frozenset[tuple[str, int]]:
        """What the names of an expression are bound to now: with its shape it decides which Code it shares."""
        found = set()
        todo = [expression]
        while todo:
            item = todo.pop()
            if isinstance(item, Name):
                bound = self.globals.get(item.name) or self.forward.get(item.name) or self.registered.get(item.name)
                if bound is not None:
                    found.add((item.name, id(bound)))
            elif isinstance(item, Form):
                todo.extend(item.items)
        return frozenset(found)

    def find_global(self, name: str, horizon: int) -> Global | None:
        found = self.globals.get(name)
        if found is not None and found.order <= horizon:
            return found
        if self.procedure(name) is not None:
            return None
        if name in self.standard:
            return self.standard[name]
        if self.library is not None and name in self.library.names:
            return self.library.define(self, name)
        # text that stood before the name was bound
        return found


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
        refs = [*slot.arguments, *(region.block for region in slot.regions)]
        for ref in refs if slot.operator is None else [slot.operator, *refs]:
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
    todo = [item]
    while todo:
        part = todo.pop()
        if isinstance(part, Name) and part.name == name:
            return True
        if isinstance(part, Form):
            todo.extend(part.items)
    return False


def inlinable(expression: Expression, name: str) -> Any:
    """(parameters, body) where the expression is a lambda that does not call itself, else None."""
    match expression:
        case Form(items=(Name(name="lambda"), Form(items=names), *body)) if body and not mentions(expression, name):
            return names, tuple(body)
    return None
