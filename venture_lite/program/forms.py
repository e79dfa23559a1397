"""The special forms: each a function from (compiler, form, scope) to a reference.

Core forms are `lambda`, `if`, `let`, `letrec`, `begin`, `quote`, `mem` and `scope_include`; `cond`, `and` and `or` are
rewritten into them. An `if` between two values that are cheap is a select (`selects.py`): no branch, no row. What a
form must look like is said by the functions `..._parts`, which the checker of programs reads too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from venture_lite.errors import ArgumentError, Span, VentureError
from venture_lite.language.syntax import Expression, Form, Literal, Name, Quote
from venture_lite.procedures import registry
from venture_lite.procedures.record import Deterministic
from venture_lite.program.code import Code, Constant, Global, GlobalRef, Kind, Ref, Region, Slot, SlotRef, origin
from venture_lite.program.lexical import LexicalScope, parameter_names
from venture_lite.program.selects import SELECT, tolerant
from venture_lite.values import Symbol

if TYPE_CHECKING:
    from venture_lite.program.compiler import Compiler


def _wrong(form: Form, usage: str) -> ArgumentError:
    head = form.items[0]
    name = head.name if isinstance(head, Name) else "form"
    return ArgumentError(f"{name} is written {usage}", form.span)


def _parts(form: Form, usage: str) -> tuple[Expression, ...]:
    """The parts of a form that has one for each word of its usage."""
    if len(form.items) != len(usage.split()):
        raise _wrong(form, usage)
    return form.items[1:]


# ------------------------------------------------------------------------------------------------- procedures


def compile_lambda(compiler: Compiler, form: Form, scope: LexicalScope) -> Ref:
    ref = compiler.add(scope, slot := Slot(Kind.LAMBDA, form.span, text=(form, scope)))
    slot.body = lambda_code(compiler, form, scope, "lambda")
    return ref


def lambda_parts(form: Form) -> tuple[tuple[Expression, ...], list[str], tuple[Expression, ...]]:
    """A lambda's parameters, their names, and its body."""
    match form.items:
        case (_, Form(items=parameters), *body) if body:
            return parameters, parameter_names(parameters), tuple(body)
    raise _wrong(form, "(lambda (parameter ...) body)")


def lambda_code(compiler: Compiler, form: Form, scope: LexicalScope, name: str) -> Code:
    parameters, names, body = lambda_parts(form)
    code = Code("lambda", name, scope.code, len(names), form.span)
    scope.code.inner.append(code)
    for parameter in parameters:
        code.add(Slot(Kind.ARGUMENT, parameter.span, stored=True))
    bound: dict[str, Ref] = {name: SlotRef(0, i) for i, name in enumerate(names)}
    code.result = compiler.body(body, replace(scope.body(code, bound), in_argument=False), form.span)
    return code


def mem_part(form: Form) -> Expression:
    return _parts(form, "(mem procedure)")[0]


def compile_mem(compiler: Compiler, form: Form, scope: LexicalScope) -> Ref:
    operator = compiler.compile(mem_part(form), scope)
    return compiler.add(scope, Slot(Kind.MEM, form.span, operator=operator, stored=True))


# -------------------------------------------------------------------------------------------------- branching


def if_parts(form: Form) -> tuple[Expression, ...]:
    """Predicate, consequent and alternative."""
    return _parts(form, "(if predicate consequent alternative)")


def compile_if(compiler: Compiler, form: Form, scope: LexicalScope) -> Ref:
    condition, consequent, alternative = if_parts(form)
    predicate = compiler.compile(condition, scope)
    if _are_at_hand(compiler, (consequent, alternative), scope):
        inside = scope if scope.is_tolerant else replace(scope, is_tolerant=True)
        arguments = (predicate, compiler.compile(consequent, inside), compiler.compile(alternative, inside))
        record = tolerant(SELECT) if scope.is_tolerant else SELECT
        return compiler.add(scope, Slot(Kind.DETERMINISTIC, form.span, record, arguments=arguments))
    slot = Slot(Kind.IF, form.span, operator=predicate, stored=True)
    codes = []
    for name, part in (("consequent", consequent), ("alternative", alternative)):
        code = Code("branch", name, scope.code, 0, part.span)
        scope.code.inner.append(code)
        code.result = compiler.compile(part, scope.body(code, {}))
        codes.append(code)
    slot.branches = (codes[0], codes[1])
    ref = compiler.add(scope, slot)
    for code in codes:
        code.if_slot = ref.slot
    return ref


MOST_AT_HAND = 12
"""Calls in the values of a select: all are computed in every row, taken or not."""


def _are_at_hand(compiler: Compiler, items: tuple[Expression, ...], scope: LexicalScope) -> bool:
    """Whether evaluating texts in any case costs next to nothing: numbers that are there already, and a few calls of
    arithmetic and comparison on such. What fails in the value that is not taken is no matter (`selects.py`).

    A global counts in an argument only: elsewhere evidence may be on its way to the choice that it names.
    """
    calls, todo = 0, [(item, scope) for item in items]
    while todo:
        item, inside = todo.pop()
        match item:
            case Literal() | Quote() if not isinstance(item.value, Symbol):
                continue
            case Name() if _is_number_name(compiler, item.name, inside):
                continue
            case Form(items=(Name(name=head), *_)) if scope.find(head) is None and head in SUGAR:
                todo.append((unsugared(item), inside))
                continue
            case Form(items=(Name(name="if"), *parts)) if scope.find("if") is None and len(parts) == 3:
                todo += [(parts[0], replace(inside, in_argument=True)), (parts[1], inside), (parts[2], inside)]
            case Form(items=(Name(name=head), *parts)) if compiler.is_tolerant(head, scope):
                todo += [(part, replace(inside, in_argument=True)) for part in parts]
            case _:
                return False
        calls += 1
        if calls > MOST_AT_HAND:
            return False
    return True


def _is_number_name(compiler: Compiler, name: str, scope: LexicalScope) -> bool:
    found = scope.find(name)
    if isinstance(found, SlotRef):
        return found.depth == 0 and _is_number_slot(scope.code.slots[found.slot])
    return scope.in_argument and _is_number_global(compiler.analyzer.globals.get(name), scope.horizon)


def _is_number_global(target: Global | None, horizon: int) -> bool:
    if target is None or target.order > horizon or (place := origin(target)) is None:
        return False
    code, _ = place
    match code.result:
        case Constant(value=value):
            return isinstance(value, (int, float))
        case SlotRef(depth=0, slot=index):
            return _is_number_slot(code.slots[index])
    return False


def _is_number_slot(slot: Slot) -> bool:
    return slot.kind in (Kind.RANDOM, Kind.ARGUMENT) or (
        slot.kind is Kind.DETERMINISTIC and isinstance(slot.record, Deterministic) and slot.record.total
    )


def cond_as_if(form: Form) -> Expression:
    clauses = form.items[1:]
    if not clauses:
        raise _wrong(form, "(cond (predicate value) ... (else value))")
    result: Expression = Quote(None, form.span)
    for position, clause in reversed(list(enumerate(clauses))):
        match clause:
            case Form(items=(Name(name="else"), *body)) if body and position == len(clauses) - 1:
                result = _begin(tuple(body), clause.span)
            case Form(items=(predicate, *body)) if body:
                result = Form(
                    (Name("if", clause.span), predicate, _begin(tuple(body), clause.span), result), clause.span
                )
            case _:
                raise _wrong(form, "(cond (predicate value) ... (else value))")
    return result


def _begin(body: tuple[Expression, ...], span: Span) -> Expression:
    return body[0] if len(body) == 1 else Form((Name("begin", span), *body), span)


def _chain_as_if(form: Form, is_and: bool) -> Expression:
    """`(and a b c)` is `(if a (if b c false) false)`; `or` is decided by the first that holds."""
    *parts, result = form.items[1:] or (Literal(is_and, form.span),)
    for part in reversed(parts):
        decided = Literal(not is_and, part.span)
        branches = (result, decided) if is_and else (decided, result)
        result = Form((Name("if", part.span), part, *branches), form.span)
    return result


SUGAR: dict[str, Callable[[Form], Expression]] = {
    "cond": cond_as_if,
    "and": partial(_chain_as_if, is_and=True),
    "or": partial(_chain_as_if, is_and=False),
}
"""Forms that are written as others."""


def unsugared(form: Form) -> Expression:
    """The text that a form stands for which is written as another."""
    head = form.items[0]
    assert isinstance(head, Name)
    return SUGAR[head.name](form)


# ---------------------------------------------------------------------------------------------------- binding


def let_parts(form: Form) -> tuple[list[tuple[Name, Expression]], tuple[Expression, ...]]:
    """The names and values that `let` or `letrec` binds, and the body."""
    usage = "((name value) ...) and a body"
    match form.items:
        case (_, Form(items=bindings), *body) if body:
            pairs: list[tuple[Name, Expression]] = []
            for binding in bindings:
                match binding:
                    case Form(items=(Name() as name, value)):
                        pairs.append((name, value))
                    case _:
                        raise _wrong(form, f"with {usage}")
            return pairs, tuple(body)
    raise _wrong(form, f"with {usage}")


def compile_let(compiler: Compiler, form: Form, scope: LexicalScope) -> Ref:
    pairs, body = let_parts(form)
    for name, value in pairs:
        scope = scope.inner({name.name: compiler.compile(value, scope)})
    return compiler.body(body, scope, form.span)


def compile_letrec(compiler: Compiler, form: Form, scope: LexicalScope) -> Ref:
    """Lambdas, memoized or not, see themselves and each other; other values see what was bound before them."""
    pairs, body = let_parts(form)
    inner = scope.inner({})
    waiting: list[tuple[Slot, Form, str]] = []
    for name, value in pairs:
        text = procedure_text(value)
        if text is None:
            continue
        ref: Ref = compiler.add(scope, slot := Slot(Kind.LAMBDA, text.span, text=(text, inner)))
        waiting.append((slot, text, name.name))
        if text is not value:
            ref = compiler.add(scope, Slot(Kind.MEM, value.span, operator=ref, stored=True))
        inner.names[name.name] = ref
    for name, value in pairs:
        if name.name not in inner.names:
            inner.names[name.name] = compiler.compile(value, inner)
    for slot, text, name_of in waiting:
        slot.body = lambda_code(compiler, text, inner, name_of)
    return compiler.body(body, inner, form.span)


def procedure_text(value: Expression) -> Form | None:
    """The lambda that the text of a value is, memoized or not."""
    match value:
        case Form(items=(Name(name="mem"), Form(items=(Name(name="lambda"), *_)) as text)):
            return text
        case Form(items=(Name(name="lambda"), *_)):
            return value
    return None


# ----------------------------------------------------------------------------------------------- other forms


def quoted(form: Form) -> Any:
    """The value of a quoted datum."""
    return _datum(*_parts(form, "(quote datum)"))


def _datum(item: Expression) -> Any:
    match item:
        case Name(name=name):
            return Symbol(name)
        case Form(items=items):
            return tuple(map(_datum, items))
        case Literal(value=value) | Quote(value=value):
            return value
    raise ArgumentError("a parameter cannot be quoted", item.span)


def scope_include_parts(form: Form) -> tuple[Expression, ...]:
    """The scope, the block's key and the expression."""
    return _parts(form, "(scope_include scope block expression)")


def compile_scope_include(compiler: Compiler, form: Form, scope: LexicalScope) -> Ref:
    named, key, expression = scope_include_parts(form)
    name = scope_name(named)
    if compiler.analyzer.in_query:
        hint = "no kernel moves a query's choices: leave the tag out, or write it around the query"
        raise ArgumentError("a scope inside of a query means nothing", form.span, hint)
    block = compiler.compile(key, scope)
    region = Region(name, block, key.span, _is_fixed_key(block, scope.code, key.span))
    return compiler.compile(expression, replace(scope, regions=(*scope.regions, region)))


def scope_name(item: Expression) -> Any:
    """A scope's name: a symbol (bare or quoted), a string or a number. Symbols are kept as their text."""
    match item:
        case Name(name=name):
            return name
        case Quote(value=Symbol(name=name)):
            return name
        case Literal(value=value) if not isinstance(value, bool):
            return value
        case Quote(value=value) if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return value
        case Form(items=(Name(name="quote"), inner)):
            return scope_name(inner)
    raise ArgumentError("a scope's name is a constant symbol, string or number", item.span)


def _is_fixed_key(block: Ref, code: Code, span: Span) -> bool:
    """Whether the text shows that a block's key is fixed. A random choice is refused; the rest is left to the trace."""
    todo = [(0, block)]
    fixed = True
    while todo:
        base, ref = todo.pop()
        match ref:
            case SlotRef(depth=depth, slot=index):
                owner = code.ancestor(base + depth)
                slot = owner.slots[index]
                if slot.kind is Kind.RANDOM:
                    hint = "make it an argument of a memoized procedure"
                    raise ArgumentError("a block's key may not depend on a random choice", span, hint)
                if slot.kind is Kind.DETERMINISTIC:
                    todo.extend((base + depth, argument) for argument in slot.arguments)
                else:
                    fixed = fixed and slot.kind is Kind.ARGUMENT and owner.kind == "directive"
            case GlobalRef():
                fixed = False
    return fixed


SPECIAL_FORMS: dict[str, Callable[[Compiler, Form, LexicalScope], Ref]] = {
    "lambda": compile_lambda,
    "mem": compile_mem,
    "if": compile_if,
    **dict.fromkeys(SUGAR, lambda compiler, form, scope: compiler.compile(unsugared(form), scope)),
    "begin": lambda compiler, form, scope: compiler.body(form.items[1:], scope, form.span),
    "let": compile_let,
    "letrec": compile_letrec,
    "quote": lambda compiler, form, scope: Constant(quoted(form)),
    "scope_include": compile_scope_include,
    "tag": compile_scope_include,
}

assert not SPECIAL_FORMS.keys() & registry.PROCEDURES.keys()


def refuse_as_name(name: str, span: Span | None) -> None:
    """Raises VentureError for what can be no name of the program's own."""
    if name in SPECIAL_FORMS or name == "else":
        raise VentureError(f"{name} is a special form and cannot be assumed", span, "choose another name")
