"""Programs: directives in a random order, and the operations that a session performs between transitions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.generator import makers, naming, procedures
from tests.generator.expressions import PLENTY, Expressions
from tests.generator.programs import Program, Step
from tests.generator.steps import Made, Maker
from tests.generator.twins import Twin, both, twin

BUDGET = 5.0
"""Choices of a finite program, about."""

Kind = Callable[[Maker], Made]
KINDS: tuple[Kind, ...] = (
    naming.choice,
    naming.choice,
    naming.value,
    naming.value,
    naming.computed,
    naming.computed,
    naming.alias,
    naming.alias,
    naming.alias_of_call,
    procedures.procedure,
    procedures.memory,
    procedures.memory_of_memories,
    procedures.alias_of_procedure,
    procedures.recursion,
    procedures.keyed,
    procedures.random_procedure,
    makers.product,
    makers.product,
    makers.crossed,
    makers.crossed,
    makers.several,
    makers.decided,
    makers.in_memory,
    makers.restaurant,
    makers.hierarchy,
)


def density(make: Maker, depth: int) -> Twin:
    return twin("(normal {0} {1})", make.expressions.real(depth), make.expressions.positive(depth))


def evidence(make: Maker, expression: Twin, value: str) -> Step:
    e = make.expressions
    item = Twin(expression.plain, e.evident_wrapper().format(expression.dressed)) if e.chance(0.25) else expression
    return make.step("observe", f"[observe {item.dressed} {value}]", (f"[observe {expression.plain} {value}]",))


def observe(make: Maker) -> Made:
    """Evidence on a choice, found directly, in a branch, through a call, a memoized call, a name or a maker."""
    e = make.expressions
    number = e.constant(-2, 2).plain
    match int(make.rng.integers(10)):
        case 0 | 1:
            return [evidence(make, twin("(flip {0})", e.probability(2)), make.pick(["true", "false", "1"]))]
        case 2:
            return [evidence(make, twin("(poisson {0})", e.positive(2)), make.pick(["0", "1", "3"]))]
        case 3:
            branches = twin("(if {0} {1} {2})", e.boolean(2), density(make, 1), density(make, 2))
            return [evidence(make, branches, number)]
        case 4:
            inner = twin("(let ((a {0})) (normal a {1}))", e.real(2), e.positive(0))
            return [evidence(make, twin("(if {0} {1} {2})", e.boolean(1), inner, density(make, 1)), number)]
        case 5:
            return observe_calls(make)
        case 6:
            return observe_memory(make)
        case 7 if e.names.observable:
            expression, values = e.names.observable[int(make.rng.integers(len(e.names.observable)))]
            return [evidence(make, expression, make.pick(list(values)))]
        case 8:
            return naming.data(make)
    return [evidence(make, density(make, make.depth - 1), number)]


def observe_calls(make: Maker) -> Made:
    e, name = make.expressions, make.expressions.fresh("g")
    body = make.body([("real", both("a"))], lambda: density(make, 1), memoized=False)
    calls = [twin(f"({name} {{0}})", e.real(1)) for _ in range(2)]
    return [make.assume(f"({name} a)", body), *(evidence(make, call, e.constant(-2, 2).plain) for call in calls)]


def observe_memory(make: Maker) -> Made:
    """Evidence on a memoized call that exists, and on one that does not."""
    e, name = make.expressions, make.expressions.fresh("o")
    body = make.body([("count", both("i"))], lambda: twin("(flip {0})", e.probability(1)), memoized=True)
    e.spend()
    return [
        make.assume(name, twin("(mem (lambda (i) {0}))", body)),
        make.step("predict", f"[predict (list ({name} 0) ({name} 1))]", (f"[predict (list ({name} 0) ({name} 1))]",)),
        evidence(make, both(f"({name} 1)"), "true"),
        evidence(make, both(f"({name} 2)"), "false"),
    ]


def observe_name(make: Maker) -> Made:
    """Evidence on a choice that has a name already."""
    e = make.expressions
    found = [(name, value) for name, value in e.names.forceable if name.plain not in make.observed]
    if len(found) < 2:
        return observe(make)
    name, value = found[int(make.rng.integers(len(found)))]
    make.observed.add(name.plain)
    return [evidence(make, name, value)]


def predict(make: Maker) -> Step:
    e = make.expressions
    made = (e.real, e.boolean, e.count)[int(make.rng.integers(3))](make.depth)
    return make.step("predict", f"[predict {made.dressed}]", (f"[predict {made.plain}]",))


def random_program(seed: int, finite: bool = False, attempt: int = 0) -> Program:
    """The program of this seed."""
    rng = np.random.default_rng([seed, finite, attempt])
    heavy = bool(rng.random() < 0.5)
    make = Maker(Expressions(rng, finite, heavy, budget=BUDGET if finite else PLENTY), depth=2 if finite else 3)
    steps = [naming.identity(make), *naming.choice(make), *naming.choice(make)]
    for _ in range(int(rng.integers(4, 9))):
        draw = rng.random()
        if draw < 0.7:
            steps += KINDS[int(rng.integers(len(KINDS)))](make)
        elif draw < 0.85:
            steps += observe(make)
        elif draw < 0.9:
            steps += observe_name(make)
        else:
            steps.append(predict(make))
    # What the program bound last is read by what comes.
    steps += naming.value(make)
    steps += observe(make)
    return Program(tuple(steps), random_operations(make, steps), queries(make), heavy)


def queries(make: Maker) -> tuple[Twin, ...]:
    """Names of values, and which labels are equal."""
    values = make.expressions.names.values
    named = [item for kind in ("boolean", "count") for item in values.get(kind, [])]
    labels = values.get("label", [])
    named += [twin("(= {0} {1})", labels[0], item) for item in labels[1:]]
    if not make.expressions.finite:
        named += values.get("real", [])
    return tuple(named[-8:])


def random_operations(make: Maker, steps: list[Step]) -> tuple[Step, ...]:
    """Operations in an order that is always legal: nothing that is referred to is forgotten."""
    rng, operations = make.rng, []
    removable = [
        step
        for step in steps
        if step.kind in ("observe", "predict") and len(step.plain) == 1 and step.label not in make.permanent
    ]
    forgotten: list[Step] = []
    for _ in range(int(rng.integers(2, 6))):
        match int(rng.integers(6)):
            case 0 if removable:
                step = removable.pop(int(rng.integers(len(removable))))
                operations.append(Step("forget", step.label, f"[forget {step.label}]", (f"[forget {step.label}]",)))
                forgotten.append(step)
            case 1:
                free = [item for item in make.expressions.names.forceable if item[0].plain not in make.observed]
                operations.extend(force(make, *item) for item in free[:1])
            case 2:
                # The first of an observation's steps may bind a procedure for it.
                new = observe(make)
                operations.extend(new)
                removable.extend(step for step in new if step.kind != "assume" and len(step.plain) == 1)
            case 3 if forgotten:
                again = forgotten.pop()
                operations.append(make.step(again.kind, again.text, again.plain))
                removable.append(operations[-1])
            case 4:
                frozen = [step for step in removable if step.kind == "predict"]
                if frozen:
                    label = frozen[0].label
                    removable.remove(frozen[0])
                    operations.append(Step("freeze", label, f"[freeze {label}]", (f"[freeze {label}]",)))
            case _:
                operations.append(predict(make))
                removable.append(operations[-1])
    return tuple(operations)


def force(make: Maker, name: Twin, value: str) -> Step:
    return make.step("force", f"[force {name.dressed} {value}]", (f"[force {name.plain} {value}]",))
