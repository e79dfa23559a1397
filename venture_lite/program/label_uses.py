"""What a program does with labels of tables, which mean nothing but equality: found in the text, without running it.

A fresh label stands for any that no draw has, so that a kernel which draws one leaves another distribution invariant
where arithmetic or order reads it; and a label of one maker is not the label of another that prints alike. The text is
evaluated over what matters: which values are makers of labels, labels, or procedures, and on what it depends which of
many makers it is. What is not known is taken to be neither.
"""

from __future__ import annotations

import itertools
from collections import ChainMap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from venture_lite.errors import Span, VentureError
from venture_lite.language.syntax import Expression, Form, Literal, Loop, Name, Observe, Parameter, Predict, Quote
from venture_lite.procedures import registry
from venture_lite.procedures.domains import ANY
from venture_lite.procedures.functions import arithmetic, comparison, elementary
from venture_lite.procedures.record import Maker, Random
from venture_lite.program import forms

MAKERS = frozenset(name for name, record in registry.PROCEDURES.items() if isinstance(record, Maker) and record.labels)
ORDERS = frozenset(record.name for record in comparison.RECORDS if record.name[0] in "<>")
NUMERIC = ORDERS | {record.name for family in (arithmetic.RECORDS, elementary.RECORDS) for record in family}

MOST = 5000
IN_ALL = 200_000
"""Expressions looked at for one directive, and for all of a program, some tenths of a second: what a larger text does
beyond is not found."""

DEEPEST = 60


@dataclass(frozen=True, slots=True)
class Which:
    """What singles a value out among those of one text: the places and constants on which it depends, what varies."""

    fixed: tuple[Any, ...] = ()
    # loop variables, parameters of procedures, draws
    varying: frozenset[Any] = frozenset()

    def __or__(self, other: Which) -> Which:
        return Which(self.fixed + other.fixed, self.varying | other.varying)


@dataclass(frozen=True, slots=True)
class Tables:
    """The makers of labels of one place in the text."""

    place: Any
    which: Which


@dataclass(frozen=True, slots=True)
class KnownClosure:
    """A lambda with the names around it; `which` tells its instances apart."""

    form: Form
    names: LabelNames
    which: Which
    memoized: bool = False


@dataclass(frozen=True, slots=True)
class LabelValue:
    """What is known of a value: whether it is a maker of labels, a label (of one of some makers), or a procedure."""

    which: Which = Which()
    maker: Tables | None = None
    label_of: frozenset[Tables] = frozenset()
    procedure: KnownClosure | None = None


class LabelNames(ChainMap[str, LabelValue]):
    """Local names, innermost first; told apart by identity."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class LabelUse:
    """One use of a label that has no meaning."""

    message: str
    span: Span
    hint: str

    def __str__(self) -> str:
        return f"{self.span.place()}: {self.message}; {self.hint}"


class LabelUses:
    """The uses of labels in one program. Mutable: it knows what the program has assumed so far."""

    def __init__(self) -> None:
        self._assumed: dict[str, Expression] = {}
        # whether the text makes labels at all
        self._any = False
        self._left = IN_ALL
        self._told: set[Span] = set()
        # memoized procedures -> the makers whose labels were their keys
        self._keys: dict[Any, set[Tables]] = {}

    def bind(self, name: str, expression: Expression) -> list[LabelUse]:
        """An assume; what is found in it."""
        self._assumed[name] = expression
        if not self._any and not makes_labels(expression):
            return []
        earlier = () if self._any else tuple(self._assumed.values())
        self._any = True
        return self._found([*earlier, expression], ())

    def within(self, directive: Observe | Predict | Loop, variables: tuple[str, ...] = ()) -> list[LabelUse]:
        """What is found in an observe or a predict, or in those of a loop."""
        if not isinstance(directive, Loop):
            return self.look(directive.expression, variables)
        parts = [part for part in directive.body if isinstance(part, (Observe, Predict, Loop))]
        return [use for part in parts for use in self.within(part, (*variables, directive.variable))]

    def look(self, expression: Expression, variables: Iterable[str] = ()) -> list[LabelUse]:
        """What is found in an expression of an observe or a predict, inside loops of these variables."""
        if not self._any and not makes_labels(expression):
            return []
        return self._found([expression], variables)

    def _found(self, expressions: Iterable[Expression], variables: Iterable[str]) -> list[LabelUse]:
        if self._left <= 0:
            return []
        walk = _Walk(self._assumed, self._keys)
        loops = LabelNames({name: LabelValue(Which(varying=frozenset([name]))) for name in variables})
        for expression in expressions:
            walk.known(expression, loops, Which())
        self._left -= walk.looked_at
        new: dict[Span, LabelUse] = {}
        for use in walk.uses:
            if use.span not in self._told:
                new.setdefault(use.span, use)
        self._told |= new.keys()
        return list(new.values())


def makes_labels(expression: Expression) -> bool:
    """Whether a text names a maker of labels."""
    text = expression.span.text
    return any(name in text for name in MAKERS)


class _Walk:
    """Evaluates expressions over what is known of values."""

    def __init__(self, assumed: dict[str, Expression], keys: dict[Any, set[Tables]]) -> None:
        self.assumed = assumed
        self.keys = keys
        self.uses: list[LabelUse] = []
        self.looked_at = 0
        self.depth = 0
        # values of assumed names, and of calls of procedures; None while one is being found
        self._globals: dict[str, LabelValue | None] = {}
        self._calls: dict[Any, LabelValue | None] = {}

    def known(self, item: Expression, names: LabelNames, at: Which) -> LabelValue:
        """What is known of a value; `at` singles out the evaluation in which it is computed."""
        self.looked_at += 1
        if self.looked_at > MOST or self.depth > DEEPEST:
            return LabelValue()
        self.depth += 1
        try:
            return self._known(item, names, at)
        except VentureError:
            # what is no form of the language is told elsewhere
            return LabelValue()
        finally:
            self.depth -= 1

    def _known(self, item: Expression, names: LabelNames, at: Which) -> LabelValue:
        match item:
            case Literal(value=value) | Quote(value=value):
                return LabelValue(Which((repr(value),)))
            case Parameter():
                varying = frozenset().union(*(known.which.varying for local in names.maps for known in local.values()))
                return LabelValue(Which((item.span.text,), varying))
            case Name(name=name):
                return names[name] if name in names else self._global(name)
            case Form(items=(Name(name=head), *_)) if head in SPECIAL and head not in names:
                return SPECIAL[head](self, item, names, at)
            case Form(items=(_, *_)):
                return self._call(item, names, at)
        return LabelValue()

    def _global(self, name: str) -> LabelValue:
        if name not in self.assumed:
            return LabelValue(Which((name,)))
        if name not in self._globals:
            self._globals[name] = None
            found = self.known(self.assumed[name], LabelNames({}), Which((name,)))
            self._globals[name] = replace(found, which=Which((name,)))
        return self._globals[name] or LabelValue(Which((name,)))

    def body(self, items: Iterable[Expression], names: LabelNames, at: Which) -> LabelValue:
        found = LabelValue()
        for item in items:
            found = self.known(item, names, at)
        return found

    # ------------------------------------------------------------------------------------------------ calls

    def _call(self, form: Form, names: LabelNames, at: Which) -> LabelValue:
        head, *rest = form.items
        given = [self.known(item, names, at) for item in rest]
        together = reduce(or_, (known.which for known in given), Which())
        if isinstance(head, Name) and head.name not in names and head.name not in self.assumed:
            self._use(head.name, form, given)
            made = Tables((form.span.source, form.span.start), at) if head.name in MAKERS else None
            return LabelValue(together, maker=made)
        called = self.known(head, names, at)
        if called.maker is not None:
            return LabelValue(at | Which(varying=frozenset([form.span])), label_of=frozenset([called.maker]))
        if called.procedure is not None:
            return self._apply(called.procedure, form, given, together, at)
        return LabelValue(called.which | together)

    def _apply(
        self, procedure: KnownClosure, form: Form, given: list[LabelValue], together: Which, at: Which
    ) -> LabelValue:
        _, parameters, body = forms.lambda_parts(procedure.form)
        if len(parameters) != len(given):
            return LabelValue()
        if procedure.memoized:
            self._key(procedure, form, given)
            inside = procedure.which | together
            key: Any = (procedure.form.span, inside, tuple(known.label_of for known in given))
        else:
            inside = at | Which((form.span.start,)) | procedure.which
            key = (procedure.form.span, form.span, at, tuple(given))
        if key not in self._calls:
            self._calls[key] = None
            found = self.body(body, procedure.names.new_child(dict(zip(parameters, given, strict=True))), inside)
            self._calls[key] = replace(found, which=procedure.which | together) if procedure.memoized else found
        return self._calls[key] or LabelValue(together)

    # ------------------------------------------------------------------------------------------------- uses

    def _use(self, name: str, form: Form, given: list[LabelValue]) -> None:
        """Labels as arguments of a procedure of the language."""
        labels = [i for i, known in enumerate(given) if known.label_of]
        if not labels:
            return
        if name == "=" or name == "!=":
            self._comparison(form, [given[i].label_of for i in labels])
            return
        record = registry.PROCEDURES.get(name)
        for i in labels:
            as_number = (
                isinstance(record, Random) and i < len(record.arguments) and record.arguments[i].domain is not ANY
            )
            if name in NUMERIC or as_number:
                span, does = form.items[i + 1].span, "orders" if name in ORDERS else "takes"
                message = (
                    f"{name} {does} {_line(span)}, a label of a table, as a number: labels mean nothing but equality"
                )
                hint = "compare labels with =, or let them be keys of a memoized procedure that gives a number"
                self.uses.append(LabelUse(message, span, hint))
                return

    def _comparison(self, form: Form, labels: list[frozenset[Tables]]) -> None:
        for first, second in itertools.pairwise(labels):
            if not any(_may_be_one(one, other) for one in first for other in second):
                message = "labels of different makers are compared: that they are equal means nothing"
                self.uses.append(LabelUse(message, form.span, "compare labels of one maker"))

    def _key(self, procedure: KnownClosure, form: Form, given: list[LabelValue]) -> None:
        """A label as the only key of a memoized procedure: those of different makers would share its values."""
        if len(given) != 1 or not given[0].label_of:
            return
        makers = given[0].label_of
        known = self.keys.setdefault((procedure.form.span, procedure.which), set())
        apart = any(tables.which.varying - procedure.which.varying for tables in makers)
        others = any(not _may_be_one(one, other) for one in makers for other in known | makers)
        known |= makers
        if apart or others:
            span = form.items[1].span
            message = f"labels of different makers are one key: {_line(span)} alone does not tell whose table it is"
            hint = "give the memoized procedure a second argument that names the maker"
            self.uses.append(LabelUse(message, span, hint))


def _line(span: Span) -> str:
    """A text on one line."""
    return " ".join(span.text.split())


def _may_be_one(one: Tables, other: Tables) -> bool:
    """Whether two makers may be the same."""
    if one.place != other.place:
        return False
    return one.which == other.which or bool(one.which.varying or other.which.varying)


# -------------------------------------------------------------------------------------------------- special forms


def _lambda(walk: _Walk, form: Form, names: LabelNames, at: Which) -> LabelValue:
    """A procedure; its body is looked at once with arguments of which nothing is known."""
    _, parameters, body = forms.lambda_parts(form)
    unknown = {name: LabelValue(Which(varying=frozenset([(form.span, name)]))) for name in parameters}
    procedure = KnownClosure(form, names, at)
    key = (form.span, "body", at)
    if key not in walk._calls:
        walk._calls[key] = LabelValue()
        inside = at | Which(varying=frozenset((form.span, name) for name in parameters))
        walk.body(body, names.new_child(unknown), inside)
    return LabelValue(at, procedure=procedure)


def _mem(walk: _Walk, form: Form, names: LabelNames, at: Which) -> LabelValue:
    inner = walk.known(forms.mem_part(form), names, at)
    if inner.procedure is None:
        return inner
    return replace(inner, procedure=replace(inner.procedure, memoized=True))


def _if(walk: _Walk, form: Form, names: LabelNames, at: Which) -> LabelValue:
    condition, consequent, alternative = forms.if_parts(form)
    predicate = walk.known(condition, names, at)
    one, other = walk.known(consequent, names, at), walk.known(alternative, names, at)
    which = predicate.which | one.which | other.which
    if one.maker is not None and other.maker is not None:
        # of two makers one is there at a time
        return LabelValue(which, maker=Tables((form.span.source, form.span.start), at))
    either = one if one.procedure is not None or one.maker is not None else other
    return LabelValue(which, either.maker, one.label_of | other.label_of, either.procedure)


def _let(walk: _Walk, form: Form, names: LabelNames, at: Which) -> LabelValue:
    pairs, body = forms.let_parts(form)
    for name, value in pairs:
        names = names.new_child({name.name: walk.known(value, names, at)})
    return walk.body(body, names, at)


def _letrec(walk: _Walk, form: Form, names: LabelNames, at: Which) -> LabelValue:
    pairs, body = forms.let_parts(form)
    inner = names.new_child({name.name: LabelValue() for name, _ in pairs})
    for name, value in pairs:
        inner[name.name] = walk.known(value, inner, at)
    return walk.body(body, inner, at)


def _tag(walk: _Walk, form: Form, names: LabelNames, at: Which) -> LabelValue:
    _, key, expression = forms.scope_include_parts(form)
    walk.known(key, names, at)
    return walk.known(expression, names, at)


SPECIAL: dict[str, Callable[[_Walk, Form, LabelNames, Which], LabelValue]] = {
    "lambda": _lambda,
    "mem": _mem,
    "if": _if,
    "let": _let,
    "letrec": _letrec,
    "begin": lambda walk, form, names, at: walk.body(form.items[1:], names, at),
    "quote": lambda walk, form, names, at: LabelValue(Which((form.span.text,))),
    "scope_include": _tag,
    "tag": _tag,
    **dict.fromkeys(forms.SUGAR, lambda walk, form, names, at: walk.known(forms.unsugared(form), names, at)),
}
"""The special forms, by name."""
