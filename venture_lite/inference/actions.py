"""The actions of inference programs: each a function from (program, form) to a kernel; `ACTIONS` holds them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from venture_lite.code import Kind
from venture_lite.errors import ArgumentError, VentureError
from venture_lite.forms import scope_name
from venture_lite.inference.gibbs import Gibbs
from venture_lite.inference.mh import Drift, Resimulation, refuse_discrete
from venture_lite.inference.program import Action, InferenceProgram, Kernel, located
from venture_lite.inference.selection import Selector, all_members, members_of_key, scope_of
from venture_lite.inference.transitions import Transitions
from venture_lite.syntax import Expression, Form, Literal, Name, Quote
from venture_lite.trace.directives import Model
from venture_lite.values import Symbol, show, to_python


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
            nodes = members_of_key(found, selector.key) if selector.kind == "key" else all_members(found)
            try:
                refuse(program.model, one_of_each_kind(program.model, nodes))
            except VentureError as error:
                raise located(error, form.span) from error
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
    variables = [_named(program, item) for item in form.items[1:]]

    def run() -> None:
        print("  ".join(f"{name} = {show(sample())}" for name, sample in variables))

    return run


ACTIONS: dict[str, Action] = {
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
