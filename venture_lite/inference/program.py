"""Inference programs: evaluates actions, composes kernels, collects draws.

The expression language is the model's, run outside the trace: numbers, `define`d names, parameters and primitive
procedures. An action is recognised by its name; `actions.py` holds them all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from venture_lite.draws.draws import Draws, DrawsBuilder, KernelStatistics
from venture_lite.draws.presentation import counted
from venture_lite.errors import ArgumentError, NameUnknown, Span, nearest, warn
from venture_lite.inference.actions import ACTIONS, unknown_action
from venture_lite.inference.data import Data
from venture_lite.inference.given import ActionForm
from venture_lite.inference.lambdas import InferenceLambda, closed
from venture_lite.inference.progress import Silent
from venture_lite.inference.tree import Part
from venture_lite.inference.usage import Matched, matched, refused
from venture_lite.inference.watch import Watch
from venture_lite.interpreter.ancestry import Sources, is_unobserved
from venture_lite.interpreter.choices import Kinds
from venture_lite.interpreter.explain import apply_checked
from venture_lite.interpreter.failures import FailedSolves
from venture_lite.interpreter.impossible import is_impossible
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.tally import Progress, Tally
from venture_lite.language.syntax import Expression, Form, Literal, Name, Parameter, Quote
from venture_lite.procedures import registry
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.program.parameters import constant_index
from venture_lite.program.selects import truth
from venture_lite.values import equal, from_python, show

MOST_SETTLING = 100
NOTHING_READ = Sources(frozenset(), False)


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """What an inference program may call: from its record follow compilation, help, completion and the manual."""

    name: str
    # each way to write it, as in `(mh SCOPE BLOCK T)`: all that is known of how its arguments stand (`usage.py`)
    usage: tuple[str, ...]
    # one or two sentences for `help` and the manual
    summary: str
    # what runs it; the arguments are checked now
    compile: Callable[[InferenceProgram, ActionForm], Part]
    # raises ArgumentError for arguments that the usage lets pass and that do not go together
    refuse: Callable[[Matched], None] = lambda found: None
    # whether it moves choices to where a chain begins: once, before anything is collected
    is_start: bool = False
    # whether it is no part of other programs
    is_whole: bool = False
    # whether it makes its draws anew from the prior, so that nothing runs it again and again
    is_once: bool = False
    # whether what it makes is made once and shared by all chains of a session
    for_all_chains: bool = False

    def read(self, form: Form) -> Matched:
        """The arguments of a form. Raises ArgumentError where it is written otherwise than the usage says."""
        found = matched(self.usage, form.items[1:])
        if found is None:
            raise refused(self.name, self.usage, form)
        self.refuse(found)
        return found

    def find(self, item: Expression) -> Matched | None:
        """The arguments where an expression is a form of this action. Raises as `read` does."""
        match item:
            case Form(items=(Name(name=name), *_)) if name == self.name:
                return self.read(item)
        return None


@dataclass(eq=False)
class InferenceProgram:
    """One run of an inference expression on one model."""

    model: Model
    # what [define ...] binds, and the variables of the loops around it with their values
    names: Mapping[str, Any]
    passes: Mapping[str, int]
    # values for `{name}`
    parameters: Mapping[str, Any]
    # compiles an expression into a function that evaluates it as `sample` does
    sampler: Callable[[Expression], Callable[[], Any]]
    # what is known of the draws and of the kernels that ran between them
    watch: Watch
    progress: Progress = field(default_factory=Silent)
    # what was warned of already, in this program or in its run in another chain
    warned: set[str] = field(default_factory=set)
    # what was made once, for this run and those in the other chains
    joint: dict[Any, Any] = field(default_factory=dict)
    # the data of the program's loops, gathered when an action asks for them; with True, all that is observed
    data: Callable[..., Data | None] = lambda with_single=False: None
    # finds what an expression reads
    reader: Callable[[Expression], Sources] = lambda item: NOTHING_READ
    # the kinds that choices are of now, for choices by name
    kinds: Callable[[], Kinds] = lambda: lambda site: None
    # finds the choice that an expression's value is
    choice: Callable[[Expression], int] = lambda item: -1
    # whether kernels of an annealing are being compiled: data will be out while they run
    annealing: bool = False
    # what the engines of this program have in common
    shared: dict[Any, Any] = field(default_factory=dict)
    draws: DrawsBuilder = field(default_factory=DrawsBuilder)
    # the expressions of each variable
    collected: dict[str, list[Expression]] = field(default_factory=dict)
    tallies: list[Tally] = field(default_factory=list)
    # what gives a line to be told of the draws at the end, or nothing
    endings: list[Callable[[], str]] = field(default_factory=list)
    # statistics of actions that move nothing, by their place
    notes: dict[Span, list[KernelStatistics]] = field(default_factory=dict)
    # how many draws to come are warm-up, after states of probability zero
    _settling: int = 0
    # the actions that are being compiled, the innermost last
    _around: list[str] = field(default_factory=list)

    def run(self, expression: Expression) -> Any:
        """Run the program; the value of an expression that is no action, else None."""
        if self.is_action(expression):
            self.compile(expression).run()
            return None
        return self.value(expression)

    # ------------------------------------------------------------------------------------------- expressions

    def value(self, item: Expression) -> Any:
        """The value of an inference expression that is no action."""
        match item:
            case Literal(value=value) | Quote(value=value):
                return value
            case Parameter(index=index):
                return constant_index(index, self.parameters, self.passes)
            case Name(name=name, span=span):
                if name in self.names:
                    return self.names[name]
                known_here = "inference expressions know numbers, parameters and what [define ...] binds"
                raise NameUnknown(f"unknown name {name}", span, nearest(name, self.names) or known_here)
            case Form(items=(Name(name="if"), predicate, consequent, alternative)):
                return self.value(consequent if truth(self.value(predicate)) else alternative)
            case Form(items=(Name(name="lambda"), Form(), _, *_)):
                return InferenceLambda(closed(item, self.names, self._constant))
            case Form(items=(Name(name="lambda"), *_)):
                raise ArgumentError("lambda is written (lambda (parameter ...) body)", item.span)
            case Form(items=(Name(name=head, span=span), *rest)):
                record = self.model.trace.analyzer.procedure(head)
                if isinstance(record, Deterministic):
                    return apply_checked(record, tuple(map(self.value, rest)), item.span)
                if head in ACTIONS:
                    raise no_value(head).at(item.span)
                raise unknown_action(head).at(span)
        raise ArgumentError("not an inference expression", item.span)

    def constant(self, item: Expression) -> Any:
        """The VALUE of an observation: as `value`. Raises ArgumentError where it reads the model, or draws."""
        try:
            return self.value(item)
        except NameUnknown as error:
            name = error.span.text if error.span else ""
            refused = not_constant(name, self.model.trace.analyzer.globals)
            raise (refused.at(error.span) if refused is not None else error) from None

    def _constant(self, item: Parameter) -> Expression:
        return Quote(constant_index(item.index, self.parameters, self.passes), item.span)

    def finished(self, looked_at: bool = True) -> Draws:
        """The draws of this chain so far; merging numbers it among the others. `looked_at`, the variables that never
        changed are looked for."""
        for line in filter(None, [ending() for ending in self.endings]):
            self.warn(line)
        noted = itertools.chain.from_iterable(self.notes.values())
        self.draws.statistics = [*(tally.statistics() for tally in self.tallies), *noted]
        if looked_at:
            self.draws.could_move = self.could_move()
        return self.draws.finish()

    def keep(self, draws: Sequence[tuple[str, Any]]) -> None:
        """One more draw of several variables. None counts before the state is possible, nor as many after that, in
        which a chain comes from where it was first possible to where it will stay."""
        self.draws.add_together(draws)
        if self.model.maybe_impossible and is_impossible(self.model):
            self.draws.mark_earlier()
            self._settling = min(self._settling + 1, MOST_SETTLING)
        elif self._settling:
            self.draws.mark_earlier()
            self._settling -= 1

    def __post_init__(self) -> None:
        self.draws.transition = self._transition

    @cached_property
    def failures(self) -> FailedSolves:
        """What the model's procedures count of calls without a value."""
        return FailedSolves(self.model.trace.program)

    def _transition(self) -> Mapping[str, float]:
        """What the one gradient kernel has to say of its last transition; nothing where there are several, or none."""
        found = [getattr(tally.kernel, "transition", None) for tally in self.tallies]
        known = [transition for transition in found if transition is not None]
        return known[0] if len(known) == 1 else {}

    def show(self, progress: Progress) -> None:
        """Who is told how far the program is."""
        self.progress = progress
        progress.remarks(self._remark)

    def _remark(self) -> str:
        """What else a person is to know while it runs."""
        count = sum(int(tally.kernel.details().get("divergences", 0)) for tally in self.tallies)
        return counted(count, "divergence") if count else ""

    def could_move(self) -> frozenset[str]:
        """The variables that never changed, once the chain was warm, though they depend on a choice that is neither
        observed nor forced."""
        trace, found = self.model.trace, set()
        for name, every in self.draws.values.items():
            values = every[self.draws.adapting.get(name, 0) :]
            first = from_python(values[0]) if values else None
            if len(values) > 1 and all(equal(from_python(value), first) for value in values):
                sources = list(map(self.reader, self.collected[name]))
                nodes = (node for read in sources for node in read.nodes if node not in trace.default.forced)
                if not any(read.draws for read in sources) and any(is_unobserved(trace, node) for node in nodes):
                    found.add(name)
        return frozenset(found)

    def procedure(self, item: Expression, what: str) -> Expression:
        """An expression for the model to evaluate, refused where it certainly denotes no procedure."""
        if isinstance(item, Form) or (isinstance(item, Name) and item.name not in self.names):
            return item
        value = self.value(item)
        if not isinstance(value, InferenceLambda):
            raise ArgumentError(f"{what} must be a procedure, got {show(value)}", item.span)
        return item

    def is_action(self, item: Expression) -> bool:
        """Whether an expression is a form of an action."""
        match item:
            case Form(items=(Name(name=name), *_)):
                return name in ACTIONS
        return False

    # ------------------------------------------------------------------------------------------------ actions

    def compile(self, item: Expression) -> Part:
        """What runs an action; its arguments are checked now."""
        given = self.given(item)
        action: Action = ACTIONS[given.action]
        if (error := misplaced(action, self._around, bool(self.collected))) is not None:
            raise error.at(given.span)
        self._around.append(action.name)
        try:
            return action.compile(self, given)
        finally:
            self._around.pop()

    def given(self, item: Expression) -> ActionForm:
        """The form of an action with its arguments. Raises ArgumentError where it is written otherwise."""
        form, action = ACTIONS.of(item)
        found = action.read(form)
        return ActionForm(found.arguments, found.words, program=self, form=form)

    def is_first(self, key: Any) -> bool:
        """Whether no run of this program, in this chain or another, has asked with this key."""
        if key in self.joint:
            return False
        self.joint[key] = True
        return True

    def warn(self, text: str) -> None:
        """Say something once."""
        if text not in self.warned:
            self.warned.add(text)
            warn(text)


def misplaced(action: Action, around: Sequence[str], has_collected: bool) -> ArgumentError | None:
    """What is wrong with the place of an action that is a whole program, or that moves choices to where a chain begins,
    given the actions around it, if anything is."""
    if action.is_whole and around:
        message = f"{action.name} is a whole inference program: [infer {action.usage[0]}]"
        return ArgumentError(message, hint="the program that it composes is draws.program: write that instead")
    outer = next((name for name in around if name != "do"), None)
    if action.is_once and outer is not None:
        message = f"{action.name} cannot stand inside {outer}: it begins anew from the prior whenever it runs"
        return ArgumentError(message, hint=f"[infer {action.usage[0]}] gives a draw for each of its P particles")
    if not action.is_start or (outer is None and not has_collected):
        return None
    where = f"inside {outer}" if outer is not None else "after something was collected"
    message = f"{action.name} cannot stand {where}: it leaves the posterior, and is for the start of a chain"
    return ArgumentError(message, hint=f"(do ({action.name} ...) (repeat T ... (collect ...)))")


def no_value(action: str) -> ArgumentError:
    """What is wrong with an action that stands in the place of a value."""
    return ArgumentError(f"{action} is an action: it has no value", hint="write it out where it runs, in [infer ...]")


def not_constant(name: str, of_model: Container[str]) -> ArgumentError | None:
    """What is wrong with a name that a VALUE uses, if it draws or stands for something in the model."""
    if isinstance(registry.PROCEDURES.get(name), (Random, Maker)):
        return ArgumentError("VALUE is a constant; draw it first with [sample ...]")
    if name in of_model:
        hint = "a number, a parameter {y}, or a name that [define ...] binds; [sample ...] reads the model's"
        return ArgumentError(f"VALUE is a constant; {name} is a name of the model", hint=hint)
    return None
