"""Looks through an inference expression: actions by their usage, their arguments by the kinds that the usage names."""

from __future__ import annotations

import contextlib
from collections import ChainMap
from collections.abc import Callable, Iterable
from math import inf

from venture_lite.checker.expressions import CheckedScope, Expressions
from venture_lite.checker.known import Certain, Computed, Known, Primitive, RandomValue, refuse_count, value_of_call
from venture_lite.errors import ArgumentError, NameUnknown, VentureError, nearest
from venture_lite.inference.actions import ACTIONS, unknown_action
from venture_lite.inference.given import choices_of, label_of
from venture_lite.inference.measures import Measure, measure_of
from venture_lite.inference.program import misplaced, no_value, not_constant
from venture_lite.inference.usage import is_symbol
from venture_lite.interpreter.choices import Choices
from venture_lite.language.syntax import Expression, Form, Literal, Name, Parameter, Quote
from venture_lite.procedures import registry
from venture_lite.procedures.record import Deterministic
from venture_lite.program.forms import if_parts, scope_name
from venture_lite.program.selects import truth
from venture_lite.values import Symbol, show

SELECTORS = ("one", "all", "each", "ordered")
KEEPING = ("collect", "labelled", "plot")


class Inference:
    """Checks the inference expressions of one program."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.names = expressions.names
        self.findings = expressions.findings
        self.parameters = expressions.parameters
        # whether the text at hand is the VALUE of an observation
        self._in_value = False
        # whether the text at hand runs again after what stands below it
        self.in_loop = False
        # the actions around the text at hand, the innermost last, and whether the same program collected above it
        self._around: list[str] = []
        self._collects = False
        # the proposers that were compiled above; None where a file may have brought any
        self._proposers: set[str] | None = set()

    def program(self, item: Expression) -> None:
        """An expression that `infer` runs."""
        self._collects = False
        if isinstance(item, Form) and item.items and isinstance(item.items[0], Name) and item.items[0].name in ACTIONS:
            self.action(item)
        else:
            self.value(item)

    def constant(self, item: Expression) -> Known:
        """The VALUE of an observation."""
        self._in_value = True
        try:
            return self.value(item)
        finally:
            self._in_value = False

    def _tell(self, error: VentureError, item: Expression) -> None:
        if self._in_value and isinstance(error, NameUnknown):
            error = not_constant(item.span.text, self.names.globals.keys() | self.names.coming.keys()) or error
        self.findings.error(error, item.span)

    def value(self, item: Expression) -> Known:
        """An expression that is evaluated outside the model."""
        match item:
            case Literal() | Quote() | Parameter():
                return self.expressions.check(item, self.loop_scope())
            case Name():
                return self._name(item)
            case Form(items=(Name(name="if"), *_)):
                return self._if(item)
            case Form(items=(Name(name="lambda"), *_)):
                return self._of_model(item)
            case Form(items=(Name() as head, *rest)):
                return self._call(item, head, tuple(rest))
        self._tell(ArgumentError("not an inference expression"), item)
        return None

    def _name(self, item: Name) -> Known:
        defined, name = self.names.defined, item.name
        if name in self.parameters.variables:
            return Computed()
        if name in defined:
            return defined[name]
        if name not in self.names.doubtful and not self.names.incomplete:
            hint = nearest(name, [*defined, *self.parameters.variables])
            hint = hint or "inference expressions know numbers, parameters and what [define ...] binds"
            self._tell(NameUnknown(f"unknown name {name}", hint=hint), item)
        return None

    def _if(self, item: Form) -> Known:
        with self.findings.told(item.span):
            condition, consequent, alternative = if_parts(item)
            predicate = self.value(condition)
            if isinstance(predicate, Certain):
                truth(predicate.value)
            self.value(consequent)
            self.value(alternative)
        return None

    def _call(self, item: Form, head: Name, rest: tuple[Expression, ...]) -> Known:
        record = registry.PROCEDURES.get(head.name)
        if head.name in ACTIONS:
            self._tell(no_value(head.name), item)
        elif head.name in self.names.registered:
            for part in rest:
                self.value(part)
        elif not isinstance(record, Deterministic):
            self._tell(unknown_action(head.name), head)
        else:
            arguments = tuple([self.value(part) for part in rest])
            with self.findings.told(item.span):
                refuse_count(Primitive(record), head.name, len(rest), item.span)
                return value_of_call(Primitive(record), arguments, tuple(part.span for part in rest), item.span)
        return None

    def action(self, item: Expression) -> None:
        """An action, and all inside it."""
        try:
            form, action = ACTIONS.of(item)
        except VentureError as error:
            self._tell(error, item)
            return
        try:
            found = action.read(form)
        except ArgumentError as error:
            self._tell(error, item)
            self._inner_actions(form.items[1:])
            return
        if (misplacement := misplaced(action, self._around, self._collects)) is not None:
            self._tell(misplacement, item)
        self._collects |= action.name in KEEPING
        self._around.append(action.name)
        for role, argument in found.arguments:
            if role in ROLES:
                ROLES[role](self, argument)
        self._around.pop()
        self._block_of_default(dict(found.arguments))
        self._proposer(action.name, dict(found.arguments).get("NAME"))

    def _proposer(self, action: str, name: Expression | None) -> None:
        """What `compile` makes, and `compiled_mh` asks for."""
        if action == "load_proposers":
            self._proposers = None
        if self._proposers is None or name is None:
            return
        with contextlib.suppress(ArgumentError):
            label = label_of(name)
            if action == "compile":
                self._proposers.add(label)
            elif action == "compiled_mh" and label not in self._proposers and not self.in_loop:
                hint = nearest(label, self._proposers) or "compile makes one, and so does a file given by --proposers"
                self.findings.warn(f"there is no proposer {label} here", name.span, hint)

    def _inner_actions(self, arguments: Iterable[Expression]) -> None:
        """Of an action that is written wrong: what stands in it may be wrong too."""
        for argument in arguments:
            match argument:
                case Form(items=(Name(name=name), *_)) if name in ACTIONS:
                    self.action(argument)
                case Form(items=items):
                    self._inner_actions(items)

    def scope(self, item: Expression) -> None:
        """A scope's name, which some `scope_include` must make."""
        names = self.names
        with self.findings.told(item.span):
            choices = choices_of(item)
            if choices is not None:
                self._assumed(choices, item)
                return
            name = scope_name(item)
            if name in names.scopes or name in names.doubtful or names.incomplete:
                return
            if name not in names.all_scopes:
                hint = nearest(str(name), map(str, {*names.scopes, *names.all_scopes}))
                raise NameUnknown(f"no scope_include makes the scope {name}", item.span, hint or f"(tag {name} 1 ...)")
            if not self.in_loop:
                place = names.all_scopes[name].place()
                self.findings.warn(f"the scope {name} is empty here: it is made further down, at {place}", item.span)

    def _assumed(self, choices: Choices, item: Expression) -> None:
        """Choices by name are those of assumes above."""
        names = self.names
        for name in choices.names:
            if name not in names.globals and name not in names.doubtful and not names.incomplete:
                hint = nearest(name, names.globals) or "choices takes names that assumes bind"
                self._tell(NameUnknown(f"nothing is assumed as {name}", hint=hint), item)

    def block(self, item: Expression) -> None:
        match item:
            case Quote(value=Symbol()):
                return
            case Name(name=name) if name not in self.names.defined and name not in self.parameters.variables:
                return
            case Form(items=(Name(name="ordered_range"), *bounds)):
                if len(bounds) != 2:
                    self._tell(ArgumentError("ordered_range is written (ordered_range LO HI)"), item)
                for bound in bounds:
                    self.value(bound)
                return
        self.value(item)

    def _block_of_default(self, found: dict[str, Expression]) -> None:
        """The blocks of the scope `default` have no keys that a program could name."""
        block = found.get("BLOCK") or found.get("BLOCKS")
        if block is None or not is_symbol(found.get("SCOPE", block), "default"):
            return
        match block:
            case Name(name=name) | Quote(value=Symbol(name=name)) if name in SELECTORS:
                return
            case Name(name=name) | Quote(value=Symbol(name=name)):
                hint = nearest(name, SELECTORS)
            case Literal() | Form(items=(Name(name="ordered_range"), *_)):
                hint = None
            case _:
                return
        hint = hint or "its blocks have no keys; tag the choices with scope_include"
        self._tell(VentureError(f"the scope default has no block {block.span.text}", hint=hint), block)

    def count(self, item: Expression) -> None:
        self._number(item, lambda number: number == number // 1 >= 0, "a whole number, 0 or more, is needed here")

    def weight(self, item: Expression) -> None:
        self._number(item, lambda weight: 0 <= weight < inf, "a weight must be a number that is not negative")

    def _number(self, item: Expression, is_right: Callable[[float], bool], needed: str) -> None:
        value = self.value(item)
        if isinstance(value, Certain) and not (isinstance(value.value, (int, float)) and is_right(value.value)):
            self._tell(ArgumentError(f"{needed}, got {show(value.value)}"), item)

    def sampled(self, item: Expression) -> None:
        """An expression of the model, which may be labelled."""
        match item:
            case Form(items=(Name(name="labelled"), *_)):
                self.action(item)
            case _ if (found := measure_of(item)) is not None and found[0].name not in self.names.globals:
                self.measure(*found)
            case _:
                self.expressions.check(item, self.loop_scope())

    def measure(self, measure: Measure, form: Form) -> None:
        """What is asked of a chain besides values."""
        with self.findings.told(form.span):
            arguments = measure.arguments(form)
            for item in arguments if measure.name == "log_density" else ():
                self.expressions.check(item, self.loop_scope())

    def proposal(self, item: Expression) -> None:
        """A procedure: an expression of the model, or a name that is defined."""
        is_defined = isinstance(item, Name) and item.name in (self.names.defined.keys() | self.parameters.variables)
        of_model = isinstance(item, Form) or (isinstance(item, Name) and not is_defined)
        value = self._of_model(item) if of_model else self.value(item)
        if isinstance(value, (Certain, RandomValue)):
            shown = show(value.value) if isinstance(value, Certain) else f"a draw from {value.record.name}"
            self._tell(ArgumentError(f"PROPOSAL must be a procedure, got {shown}"), item)

    def _of_model(self, item: Expression) -> Known:
        """An expression of the model that inference hands over, with the names that `define` binds filled in."""
        return self.expressions.check(item, self.loop_scope().inner(dict(self.names.defined)))

    def loop_scope(self) -> CheckedScope:
        return CheckedScope(ChainMap(dict.fromkeys(self.parameters.variables, Computed())))

    def label(self, item: Expression) -> None:
        with self.findings.told(item.span):
            label_of(item)


ROLES: dict[str, Callable[[Inference, Expression], object]] = {
    "SCOPE": Inference.scope,
    "BLOCK": Inference.block,
    "BLOCKS": Inference.block,
    "KERNEL": Inference.action,
    "EXPR": Inference.sampled,
    "NAME": Inference.label,
    "PROPOSAL": Inference.proposal,
    "WEIGHT": Inference.weight,
    "VALUE": Inference.constant,
    **dict.fromkeys(
        ("T", "P", "MAX-STEPS", "LEAPFROGS", "NBATCH", "N", "K", "H", "R", "RUNS", "DRAWS", "B"), Inference.count
    ),
    **dict.fromkeys(("SIGMA", "WIDTH", "STEP", "EPS", "FILE", "A"), Inference.value),
}
"""How an argument is checked, by the capitals of the usage; one of another kind is taken as it is."""
