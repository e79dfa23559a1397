"""Choices that no kernel of an inference moves though its draws rest on them, as far as the text alone shows it.

What is certain from the text: a choice that a directive makes itself, in no branch and in no procedure's body but that
of a memoized one, with tags whose scopes are constants; and kernels whose scopes are. A kernel is taken to run between
the first draw and the last, and to select all that it may. Everything else is left to the run, which knows better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.checker.inference import SELECTORS
from venture_lite.draws.presentation import cut
from venture_lite.errors import VentureError
from venture_lite.inference.actions import ACTIONS
from venture_lite.inference.watch import unmoved_line
from venture_lite.language import syntax
from venture_lite.language.syntax import Directive, Expression, Form, Literal, Name, Quote, flattened, walked
from venture_lite.procedures import registry
from venture_lite.procedures.record import Maker, Random
from venture_lite.program import forms
from venture_lite.values import Symbol

UNKNOWN: Any = object()
"""A block's key that is no constant."""

WIDTH = 48


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A choice that a directive's text makes."""

    form: Form
    # scope -> key of the block, UNKNOWN where it is no constant
    tags: dict[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class ModelDirective:
    """What one assume or predict makes."""

    name: str
    expression: Expression
    choices: tuple[Choice, ...]
    # whether it makes a row for each key, when it is called
    memoized: bool


class Unmoved:
    """One program's choices and evidence so far. Mutable."""

    def __init__(self) -> None:
        self._made: dict[str, ModelDirective] = {}
        self._predicted: list[ModelDirective] = []
        self._observed: list[Expression] = []
        self._held: set[str] = set()
        # names of which a line was given: a program is told of each once
        self._given: set[str] = set()
        # a text -> what it reads, by identity, with the text that is so kept; good until a name that some of them read
        # before it was bound is
        self._reached: dict[int, tuple[Expression, frozenset[str]]] = {}
        self._awaited: set[str] = set()
        self._mentions: dict[int, tuple[Expression, set[str]]] = {}
        # whether something was taken back or could not be read, so that nobody knows what stands
        self.uncertain = False

    def enter(self, directive: Directive) -> None:
        """A directive that changes what stands."""
        match directive:
            case syntax.Assume(name=name, expression=expression):
                if name in self._awaited or name in self._made:
                    self._reached.clear()
                self._made[name] = self._of(name, expression)
            case syntax.Predict(expression=expression):
                self._predicted.append(self._of("", expression))
            case syntax.Observe(expression=expression):
                self._observed.append(expression)
            case syntax.Force(expression=expression):
                self._held |= self._values(expression)
            case syntax.Forget() | syntax.Freeze():
                self.uncertain = True

    def find(self, directive: syntax.Infer | syntax.Loop) -> list[str]:
        """What an inference, or a loop with inferences in its passes, leaves unmoved: a line for each name."""
        infers = [item for item in flattened([directive]) if isinstance(item, syntax.Infer)]
        in_loop = isinstance(directive, syntax.Loop)
        collected = [item for infer in infers for item in _collected(infer.expression, in_loop)]
        if self.uncertain or not collected:
            return []
        kernels = [kernel for infer in infers for kernel in _kernels(infer.expression)]
        if any(scope in ("default", UNKNOWN) for scope, _ in kernels):
            return []
        return self._told(kernels, collected)

    def _told(self, kernels: list[tuple[Any, Any]], collected: list[Expression]) -> list[str]:
        fixed = self._held.union(*map(self._values, self._observed)) if self._observed else self._held
        everything = [*self._made.values(), *self._predicted]
        moved = [made for made in everything if any(_is_selected(choice, kernels) for choice in made.choices)]
        done = fixed | self._given
        left = [made for made in everything if made.name not in done and _left(made, kernels)]
        if not left:
            return []
        standing = set().union(*map(self._reach, [*self._observed, *(made.expression for made in self._predicted)]))
        evidence = [self._reach(one) for one in self._observed]
        names = {made.name for made in moved if made.name}
        read = set().union(*map(self._reach, collected))
        counts: Counter[str] = Counter()
        for made in left:
            if made.memoized and (made.name not in standing or self._may_come_and_go(made.name)):
                continue
            own = self._factor(made)
            rests = made.name in read and not made.memoized
            if made not in moved:
                # a choice that moves may be drawn from the same maker
                makers = {name for name in own if self._is_maker(name)}
                rests |= bool(own & names) or any(makers & self._factor(other) for other in moved)
                rests |= any(made.name in factor and bool(factor & names) for factor in evidence)
                rests |= any(made.name in self._factor(other) for other in moved)
            if rests:
                for choice in _left(made, kernels):
                    title = made.name or cut(" ".join(choice.form.span.text.split()), WIDTH)
                    if title not in self._given:
                        counts[title] += not made.memoized
        self._given |= counts.keys()
        return [unmoved_line(name, count) for name, count in counts.items()]

    def _may_come_and_go(self, name: str) -> bool:
        """Whether a memoized procedure may be called with a key that depends on a choice, or otherwise than by name."""
        texts = [*(made.expression for made in (*self._made.values(), *self._predicted)), *self._observed]
        named = called = 0
        for part in (part for text in texts if name in self._mentioned(text) for part in walked(text)):
            match part:
                case Form(items=(Name(name=head), *rest)) if head == name:
                    if any(map(self._reach, rest)):
                        return True
                    called += 1
                case Name(name=other):
                    named += other == name
        return named > called

    def _mentioned(self, item: Expression) -> set[str]:
        """Every name that stands in a text."""
        known = self._mentions.get(id(item))
        if known is None:
            known = self._mentions[id(item)] = item, {part.name for part in walked(item) if isinstance(part, Name)}
        return known[1]

    # --------------------------------------------------------------------------------------------- what text makes

    def _of(self, name: str, expression: Expression) -> ModelDirective:
        body, memoized = expression, False
        match expression:
            case Form(items=(Name(name="mem"), Form(items=(Name(name="lambda"), Form(items=parameters), only)))):
                body, memoized = only, bool(parameters)
        return ModelDirective(name, expression, tuple(self._choices(body)), memoized)

    def _choices(self, body: Expression) -> Iterator[Choice]:
        """The choices that are certainly made where an expression is evaluated."""
        # expressions, with the tags around them and the names bound there
        todo: list[tuple[Expression, dict[Any, Any], frozenset[str]]] = [(body, {}, frozenset())]
        while todo:
            item, tags, local = todo.pop()
            match item:
                case Form(items=(Name(name="scope_include" | "tag"), scope, key, inner)):
                    todo.append((inner, {**tags, _scope(scope): _constant(key)}, local))
                case Form(items=(Name(name="let" | "letrec"), Form(items=pairs), *rest)):
                    names, inner_parts = _let_parts(pairs, rest)
                    todo.extend((part, tags, local | names) for part in inner_parts)
                case Form(items=(Name(name="if"), predicate, *_)):
                    todo.append((predicate, tags, local))
                case Form(items=(Name(name=head), *_)) if head in forms.SPECIAL_FORMS and head != "begin":
                    continue
                case Form(items=(head, *rest)):
                    todo.extend((part, tags, local) for part in rest)
                    if isinstance(head, Name) and head.name not in local and self._draws(head.name):
                        yield Choice(item, tags)

    def _draws(self, name: str) -> bool:
        """Whether a call of a name makes a choice of its own."""
        if name in self._made:
            return self._is_maker(name)
        return isinstance(registry.PROCEDURES.get(name), Random)

    def _is_maker(self, name: str) -> bool:
        match self._made.get(name):
            case ModelDirective(expression=Form(items=(Name(name=head), *_))) if head not in self._made:
                return isinstance(registry.PROCEDURES.get(head), Maker)
        return False

    # ------------------------------------------------------------------------------------------------ what text reads

    def _factor(self, made: ModelDirective) -> frozenset[str]:
        """The names that make choices and that those of a directive depend on."""
        return self._reach(made.expression) - {made.name}

    def _reach(self, item: Expression) -> frozenset[str]:
        """The names of choices, and of makers, that an expression reads, through names that make none."""
        known = self._reached.get(id(item))
        if known is None:
            known = self._reached[id(item)] = item, frozenset(self._found(item))
        return known[1]

    def _found(self, item: Expression) -> set[str]:
        found: set[str] = set()
        seen: set[str] = set()
        todo = list(_named(item))
        while todo:
            name = todo.pop()
            if name not in self._made:
                self._awaited.add(name)
            elif name not in seen:
                seen.add(name)
                if self._made[name].choices or self._is_maker(name):
                    found.add(name)
                if not self._made[name].choices:
                    todo.extend(_named(self._made[name].expression))
        return found

    def _values(self, item: Expression) -> set[str]:
        """The names whose choice an expression's value may be: those that evidence for it may reach."""
        found: set[str] = set()
        todo = [item]
        while todo:
            match todo.pop():
                case Name(name=name) | Form(items=(Name(name=name), *_)) if name in self._made:
                    if name not in found:
                        found.add(name)
                        todo.append(self._made[name].expression)
                case Form(items=(Name(name="if"), _, *branches)):
                    todo.extend(branches)
                case Form(items=(Name(name="list" | "pair" | "map"), *items)):
                    todo.extend(items)
                case Form(items=(*_, last)):
                    todo.append(last)
        return found


def _named(item: Expression) -> Iterator[str]:
    """The names that a text reads from around it; what it binds itself anywhere is left out."""
    todo: list[tuple[Expression, frozenset[str]]] = [(item, frozenset())]
    while todo:
        part, bound = todo.pop()
        match part:
            case Name(name=name) if name not in bound:
                yield name
            case Form(items=(Name(name="scope_include" | "tag"), _, *rest)):
                todo.extend((inner, bound) for inner in rest)
            case Form(items=(Name(name="lambda"), Form(items=parameters), *body)):
                inside = bound | {name.name for name in parameters if isinstance(name, Name)}
                todo.extend((inner, inside) for inner in body)
            case Form(items=(Name(name="let" | "letrec"), Form(items=pairs), *body)):
                names, parts = _let_parts(pairs, body)
                todo.extend((inner, bound | names) for inner in parts)
            case Form(items=items):
                todo.extend((inner, bound) for inner in items)


def _let_parts(pairs: Iterable[Expression], body: Iterable[Expression]) -> tuple[set[str], list[Expression]]:
    """The names that a `let` binds, and the texts that see them; what is written wrong is told elsewhere."""
    bound = [pair.items for pair in pairs if isinstance(pair, Form) and pair.items]
    names = {name.name for name, *_ in bound if isinstance(name, Name)}
    return names, [*(value for _, *values in bound for value in values), *body]


def _constant(item: Expression | None) -> Any:
    match item:
        case Literal(value=value) | Quote(value=value) if isinstance(value, (int, float, str, Symbol)):
            return value
    return UNKNOWN


def _is_selected(choice: Choice, kernels: Iterable[tuple[Any, Any]]) -> bool:
    """Whether a kernel may move a choice."""
    found = ((choice.tags[scope], key) for scope, key in kernels if scope in choice.tags)
    return any(UNKNOWN in (own, key) or own == key for own, key in found)


def _left(made: ModelDirective, kernels: list[tuple[Any, Any]]) -> list[Choice]:
    """The choices of a directive that no kernel may move."""
    return [choice for choice in made.choices if not _is_selected(choice, kernels) and not _is_certain(choice)]


def _is_certain(choice: Choice) -> bool:
    """Whether a choice with constant arguments has one possible value."""
    head, *rest = choice.form.items
    record = registry.PROCEDURES.get(head.name) if isinstance(head, Name) else None
    values = [_constant(item) for item in rest]
    if not isinstance(record, Random) or record.support is None or UNKNOWN in values:
        return False
    try:
        return sum(record.log_density(value, *values) > -np.inf for value in record.support(*values)) == 1
    except (VentureError, ArithmeticError, ValueError, TypeError):
        return False


def _kernels(item: Expression) -> Iterator[tuple[Any, Any]]:
    """(scope, key) of every kernel of an inference; UNKNOWN for a key stands for all blocks."""
    for part in walked(item):
        match part:
            case Form(items=(Name(name=head), *rest)) if head in ACTIONS and head != "compile":
                words = ACTIONS[head].usage[0].split()[1:]
                at = words.index("SCOPE") if "SCOPE" in words[:2] else len(rest)
                if at < len(rest):
                    its_block = words[at + 1 : at + 2] == ["BLOCK"] and at + 1 < len(rest)
                    yield _scope(rest[at]), _key(rest[at + 1] if its_block else None)


def _scope(item: Expression) -> Any:
    try:
        return forms.scope_name(item)
    except VentureError:
        return UNKNOWN


def _key(item: Expression | None) -> Any:
    match item:
        case Quote(value=Symbol(name=name)) if name in SELECTORS:
            return UNKNOWN
    return _constant(item)


def _collected(item: Expression, repeated: bool) -> Iterator[Expression]:
    """The expressions of which an inference may make several draws."""
    # not recursive: brackets nest as deep as one likes
    todo = [(item, repeated)]
    while todo:
        part, again = todo.pop()
        if not isinstance(part, Form) or not part.items or not isinstance(part.items[0], Name):
            continue
        head, *rest = part.items
        assert isinstance(head, Name)
        if head.name in ("collect", "labelled", "plot"):
            if again:
                yield from (_unlabelled(one) for one in ([part] if head.name == "labelled" else rest))
            continue
        todo.extend((inner, _runs_again(head.name, rest, again)) for inner in reversed(_inside(head.name, rest)))


def _runs_again(action: str, rest: list[Expression], around: bool) -> bool:
    """Whether what stands in an action may run more than once."""
    place = {"repeat": 0, "cycle": -1, "mixture": -1}.get(action)
    return around or (place is not None and bool(rest) and _constant(rest[place]) not in (0, 1))


def _inside(action: str, rest: list[Expression]) -> list[Expression]:
    """What stands in an action; the kernels of a cycle or a mixture stand in brackets of their own."""
    if action not in ("cycle", "mixture"):
        return rest
    return [inner for part in rest for inner in (part.items if isinstance(part, Form) else (part,))]


def _unlabelled(item: Expression) -> Expression:
    match item:
        case Form(items=(Name(name="labelled"), expression, *_)):
            return expression
    return item
