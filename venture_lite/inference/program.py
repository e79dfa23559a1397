"""Inference programs: evaluates actions, composes kernels, collects draws.

The expression language is the model's, run outside the trace: numbers, `define`d names, parameters and primitive procedures. An action
is recognised by its name; `ACTIONS` holds them all.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from venture_lite.code import Kind
from venture_lite.draws import DrawsBuilder, KernelStatistics
from venture_lite.errors import ArgumentError, NameUnknown, Span, VentureError, VentureWarning, nearest
from venture_lite.forms import scope_name, truth
from venture_lite.inference.gibbs import Gibbs
from venture_lite.inference.mh import Drift, Resimulation, refuse_discrete
from venture_lite.inference.selection import Selector, all_members, scope_of, sweep
from venture_lite.inference.transitions import Transitions
from venture_lite.parameters import constant_index
from venture_lite.procedures import registry
from venture_lite.procedures.record import Deterministic
from venture_lite.progress import Progress, Silent
from venture_lite.syntax import Expression, Form, Literal, Name, Parameter, Quote
from venture_lite.trace.directives import Model
from venture_lite.trace.explain import apply_checked
from venture_lite.values import Symbol, to_python

Kernel = Callable[[], None]


class Row:
    """Statistics of one kernel of the program, added up over its runs."""

    __slots__ = ("accepted", "kernel", "rows", "seconds", "transitions")

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.transitions = 0
        self.accepted = 0
        self.rows = 0
        self.seconds = 0.0


class InferenceProgram:
    """One run of an inference expression on one model."""

    def __init__(
        self,
        model: Model,
        defined: Mapping[str, Any],
        parameters: Mapping[str, Any],
        sampler: Callable[[Expression], Callable[[], Any]],
        passes: Mapping[str, int] | None = None,
        progress: Progress | None = None,
        warned: set[str] | None = None,
    ) -> None:
        self.model = model
        self.defined = defined
        self.parameters = parameters
        self.passes = passes
        # compiles an expression into a function that evaluates it as `sample` does
        self.sampler = sampler
        self.progress = progress or Silent()
        self.draws = DrawsBuilder()
        self.rows: dict[int, Row] = {}
        # what was warned of already, in this program or in its run in another chain
        self.warned: set[str] = set() if warned is None else warned

    def run(self, expression: Expression) -> Any:
        """Run the program; the value of an expression that is no action, else None."""
        if isinstance(expression, Form) and self._is_action(expression):
            self.compile(expression)()
            return None
        return self.value(expression)

    def statistics(self, chain: int) -> list[KernelStatistics]:
        return [
            KernelStatistics(row.kernel, row.transitions, row.accepted, row.rows, row.seconds, chain)
            for row in self.rows.values()
        ]

    # ------------------------------------------------------------------------------------------- expressions

    def value(self, item: Expression) -> Any:
        """The value of an inference expression that is no action."""
        match item:
            case Literal(value=value) | Quote(value=value):
                return value
            case Parameter(index=index):
                return constant_index(index, self.parameters, self.passes)
            case Name(name=name, span=span):
                if self.passes is not None and name in self.passes:
                    return self.passes[name]
                if name in self.defined:
                    return self.defined[name]
                known = [*self.defined, *(self.passes or ())]
                hint = (
                    nearest(name, known) or "inference expressions know numbers, parameters and what [define ...] binds"
                )
                raise NameUnknown(f"unknown name {name}", span, hint)
            case Form(items=(Name(name="if"), predicate, consequent, alternative)):
                return self.value(consequent if truth(self.value(predicate)) else alternative)
            case Form(items=(Name(name=head, span=span), *rest)):
                record = registry.PROCEDURES.get(head)
                if isinstance(record, Deterministic):
                    return apply_checked(record, tuple(map(self.value, rest)), item.span)
                if head in ACTIONS:
                    raise ArgumentError(f"{head} is an action: it has no value", item.span)
                known = [*ACTIONS, *registry.PROCEDURES]
                raise NameUnknown(f"unknown inference action {head}", span, nearest(head, known))
        raise ArgumentError("not an inference expression", item.span)

    def count(self, item: Expression, what: str) -> int:
        value = self.value(item)
        if not isinstance(value, (int, float)) or value != int(value) or value < 0:
            raise ArgumentError(f"{what} must be a whole number, 0 or more, got {value}", item.span)
        return int(value)

    def _is_action(self, item: Expression) -> bool:
        return (
            isinstance(item, Form)
            and bool(item.items)
            and isinstance(item.items[0], Name)
            and item.items[0].name in ACTIONS
        )

    # ------------------------------------------------------------------------------------------------ actions

    def compile(self, item: Expression) -> Kernel:
        """A function that runs the action once; its arguments are checked now."""
        if not isinstance(item, Form) or not item.items or not isinstance(item.items[0], Name):
            raise ArgumentError("an inference action is written (action argument ...)", item.span)
        head = item.items[0]
        action = ACTIONS.get(head.name)
        if action is None:
            raise NameUnknown(f"unknown inference action {head.name}", head.span, nearest(head.name, ACTIONS))
        return action(self, item)

    def row(self, form: Form) -> Row:
        return self.rows.setdefault(id(form), Row(form.span.text or "kernel"))

    def warn(self, text: str) -> None:
        """Say something once."""
        if text not in self.warned:
            self.warned.add(text)
            warnings.warn(text, VentureWarning, stacklevel=2)

    def selector(self, item: Expression) -> Selector:
        match item:
            case Name(name=name) if name in ("one", "all", "each", "ordered"):
                return Selector(name)
            case Quote(value=Symbol(name=name)) if name in ("one", "all", "each", "ordered"):
                return Selector(name)
            case Form(items=(Name(name="ordered_range"), low, high)):
                return Selector("range", None, self.value(low), self.value(high))
            case Name(name=name) if name not in self.defined and not (self.passes and name in self.passes):
                return Selector("key", Symbol(name))
        return Selector("key", self.value(item))

    def members(self, scope: Any, selector: Selector, span: Span) -> tuple[Any, list[int]] | None:
        """(key, nodes) of the block that a selector without a sweep names; None, with a warning, where there is none."""
        found = scope_of(self.model, scope)
        if found is None or not found.block_count():
            self.warn(f"{span.place()}: the scope {scope} is empty, nothing is moved")
            return None
        match selector.kind:
            case "one":
                key = found.draw(self.model.trace.rng)
                return key, found.members(key)
            case "all":
                return "all", all_members(found)
        nodes = found.members(selector.key)
        if not nodes:
            self.warn(f"{span.place()}: the scope {scope} has no block {selector.key}, nothing is moved")
            return None
        return selector.key, nodes

    def block_counter(self, scope: Any, selector: Selector) -> Callable[[], int] | None:
        """How many blocks there are, where one of them was drawn at random."""
        if selector.kind != "one":
            return None

        def count() -> int:
            found = scope_of(self.model, scope)
            return found.block_count() if found is not None else 0

        return count

    def kernel(
        self,
        form: Form,
        scope: Any,
        selector: Selector,
        transitions: int,
        step: Callable[[list[int], Any], bool],
        weighed: Any,
    ) -> Kernel:
        """Run `step` on the selected blocks `transitions` times (each time on every block, for a sweep), counting."""
        row = self.row(form)

        def run() -> None:
            start = time.perf_counter()
            rows_before = weighed.rows
            self.progress.begin(form.span.text, transitions)
            try:
                for done in range(transitions):
                    if selector.sweeps:
                        self._sweep(scope, selector, form.span, step, row)
                    else:
                        chosen = self.members(scope, selector, form.span)
                        if chosen is None:
                            break
                        key, nodes = chosen
                        self.model.poll()
                        accepted = step(nodes, key)
                        row.transitions += 1
                        row.accepted += accepted
                    if not done & 63:
                        self.progress.advance(done)
            except VentureError as error:
                raise error.at(form.span) from error
            finally:
                self.progress.end()
                row.rows += weighed.rows - rows_before
                row.seconds += time.perf_counter() - start

        return run

    def _sweep(
        self, scope: Any, selector: Selector, span: Span, step: Callable[[list[int], Any], bool], row: Row
    ) -> None:
        found = scope_of(self.model, scope)
        if found is None or not found.block_count():
            self.warn(f"{span.place()}: the scope {scope} is empty, nothing is moved")
            return
        for nodes, key in sweep(self.model, scope, selector):
            self.model.poll()
            accepted = step(nodes, key)
            row.transitions += 1
            row.accepted += accepted


def _parts(form: Form, least: int, usage: str) -> tuple[Expression, ...]:
    if len(form.items) - 1 < least:
        raise ArgumentError(f"{form.items[0].span.text} is written {usage}", form.span)
    return form.items[1:]


def _is_symbol(item: Expression, name: str) -> bool:
    match item:
        case Quote(value=Symbol(name=found)) | Name(name=found):
            return found == name
    return False


def compile_mh(program: InferenceProgram, form: Form) -> Kernel:
    usage = "(mh SCOPE BLOCK T) or (mh SCOPE BLOCK 'drift SIGMA T)"
    parts = _parts(form, 3, usage)
    scope, selector = scope_name(parts[0]), program.selector(parts[1])
    model = program.model
    transitions = Transitions(model, program.block_counter(scope, selector))
    if len(parts) == 3:
        proposal: Any = Resimulation(model)
    elif len(parts) == 5 and _is_symbol(parts[2], "drift"):
        sigma = program.value(parts[3])
        if not isinstance(sigma, (int, float)) or not 0 < sigma < float("inf"):
            raise ArgumentError(f"the drift's SIGMA must be a positive number, got {sigma}", parts[3].span)
        proposal = Drift(model.trace.rng, float(sigma))
    else:
        raise ArgumentError(f"mh is written {usage}", form.span)
    count = program.count(parts[-1], "T")

    def step(nodes: list[int], key: Any) -> bool:
        return transitions.step(nodes, proposal)

    run = program.kernel(form, scope, selector, count, step, transitions)
    if isinstance(proposal, Drift):
        return _checked_first(program, scope, selector, form, run, refuse_discrete)
    return run


def _checked_first(
    program: InferenceProgram,
    scope: Any,
    selector: Selector,
    form: Form,
    run: Kernel,
    refuse: Callable[[Model, list[int]], None],
) -> Kernel:
    """Look at every choice that the kernel may move before its first transition."""
    checked = False

    def checked_run() -> None:
        nonlocal checked
        found = scope_of(program.model, scope)
        if not checked and found is not None:
            nodes = found.members(selector.key) if selector.kind == "key" else all_members(found)
            try:
                refuse(program.model, one_of_each_kind(program.model, nodes))
            except VentureError as error:
                raise error.at(form.span) from error
            checked = True
        run()

    return checked_run


def one_of_each_kind(model: Model, nodes: list[int]) -> list[int]:
    """One node for each site whose distribution the text names; every node of the others."""
    seen: dict[int, int] = {}
    for node in nodes:
        code, slot, _ = model.trace.decode(node)
        seen.setdefault(node >> 32 if code.slots[slot].kind is Kind.RANDOM else -node, node)
    return list(seen.values())


def compile_gibbs(program: InferenceProgram, form: Form) -> Kernel:
    parts = _parts(form, 3, "(gibbs SCOPE BLOCK T)")
    if len(parts) != 3:
        raise ArgumentError("gibbs is written (gibbs SCOPE BLOCK T)", form.span)
    scope, selector = scope_name(parts[0]), program.selector(parts[1])
    engine = Gibbs(program.model, scope, program.block_counter(scope, selector))
    run = program.kernel(form, scope, selector, program.count(parts[2], "T"), engine.step, engine)
    return _checked_first(program, scope, selector, form, run, engine.check)


def compile_do(program: InferenceProgram, form: Form) -> Kernel:
    kernels = [program.compile(part) for part in form.items[1:]]

    def run() -> None:
        for kernel in kernels:
            kernel()

    return run


def compile_repeat(program: InferenceProgram, form: Form) -> Kernel:
    parts = _parts(form, 2, "(repeat T KERNEL ...)")
    return _repeated(program, form, program.count(parts[0], "T"), [program.compile(part) for part in parts[1:]])


def compile_cycle(program: InferenceProgram, form: Form) -> Kernel:
    parts = _parts(form, 2, "(cycle (KERNEL ...) T)")
    if len(parts) != 2 or not isinstance(parts[0], Form):
        raise ArgumentError("cycle is written (cycle (KERNEL ...) T)", form.span)
    kernels = [program.compile(part) for part in parts[0].items]
    return _repeated(program, form, program.count(parts[1], "T"), kernels)


def _repeated(program: InferenceProgram, form: Form, times: int, kernels: list[Kernel]) -> Kernel:
    def run() -> None:
        program.progress.begin(form.items[0].span.text, times)
        try:
            for done in range(times):
                program.model.poll()
                for kernel in kernels:
                    kernel()
                program.progress.advance(done + 1)
        finally:
            program.progress.end()

    return run


def compile_mixture(program: InferenceProgram, form: Form) -> Kernel:
    usage = "(mixture (WEIGHT KERNEL ...) T)"
    parts = _parts(form, 2, usage)
    if len(parts) != 2 or not isinstance(parts[0], Form) or not parts[0].items or len(parts[0].items) % 2:
        raise ArgumentError(f"mixture is written {usage}", form.span)
    weights = [program.value(item) for item in parts[0].items[::2]]
    for item, weight in zip(parts[0].items[::2], weights, strict=True):
        if not isinstance(weight, (int, float)) or not 0 <= weight < float("inf"):
            raise ArgumentError(f"a weight must be a number that is not negative, got {weight}", item.span)
    total = float(sum(weights))
    if total <= 0:
        raise ArgumentError("the weights of a mixture are all 0", form.span)
    kernels = [program.compile(item) for item in parts[0].items[1::2]]
    random = program.model.trace.rng.random

    def choose() -> None:
        target = random() * total
        for weight, kernel in zip(weights, kernels, strict=True):
            target -= weight
            if target < 0:
                kernel()
                return
        kernels[max(i for i, weight in enumerate(weights) if weight > 0)]()

    return _repeated(program, form, program.count(parts[1], "T"), [choose])


def _named(program: InferenceProgram, item: Expression) -> tuple[str, Callable[[], Any]]:
    """A variable's name, and how one draw of it is made."""
    match item:
        case Form(items=(Name(name="labelled"), expression, Name(name=name) | Literal(value=str(name)))):
            return name, program.sampler(expression)
        case Form(items=(Name(name="labelled"), expression, Quote(value=Symbol(name=name)))):
            return name, program.sampler(expression)
        case Form(items=(Name(name="labelled"), *_)):
            raise ArgumentError("labelled is written (labelled EXPR NAME)", item.span)
    return " ".join(item.span.text.split()), program.sampler(item)


def compile_collect(program: InferenceProgram, form: Form) -> Kernel:
    variables = [_named(program, item) for item in form.items[1:]]

    def run() -> None:
        for name, sample in variables:
            program.draws.add(name, to_python(sample()))

    return run


def compile_labelled(program: InferenceProgram, form: Form) -> Kernel:
    name, sample = _named(program, form)
    return lambda: program.draws.add(name, to_python(sample()))


def compile_print(program: InferenceProgram, form: Form) -> Kernel:
    from venture_lite.values import show

    variables = [_named(program, item) for item in form.items[1:]]

    def run() -> None:
        print("  ".join(f"{name} = {show(sample())}" for name, sample in variables))

    return run


ACTIONS: dict[str, Callable[[InferenceProgram, Form], Kernel]] = {
    "mh": compile_mh,
    "gibbs": compile_gibbs,
    "cycle": compile_cycle,
    "mixture": compile_mixture,
    "repeat": compile_repeat,
    "do": compile_do,
    "collect": compile_collect,
    "labelled": compile_labelled,
    "print": compile_print,
}
