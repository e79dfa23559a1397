"""Programs: directives in a random order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.generator import makers, naming, procedures
from tests.generator.catalogue import COMPUTED, EVIDENCE, FINITE, MAKERS, UNCOLLAPSED, Evidence, MadeForm
from tests.generator.changes import changes
from tests.generator.expressions import PLENTY, Expressions
from tests.generator.observations import observe, observe_form, observe_name, predict
from tests.generator.operations import Operations
from tests.generator.programs import Program
from tests.generator.steps import Made, Maker
from tests.generator.twins import Twin, twin

BUDGET = 6.0
"""Choices of a finite program, about."""

CHAINED = 9
"""One in so many programs has states in a row."""
Kind = Callable[[Maker], Made]
CATALOGUE: tuple[Evidence | MadeForm | tuple[str, str], ...] = (
    *EVIDENCE,
    *dict.fromkeys((*MAKERS, *UNCOLLAPSED)),
    *((kind, form) for forms in (COMPUTED, FINITE) for kind, found in forms.items() for form in dict.fromkeys(found)),
)
KINDS: tuple[Kind, ...] = (
    naming.choice,
    naming.choice,
    naming.value,
    naming.value,
    naming.computed,
    naming.computed,
    naming.derived,
    naming.alias,
    naming.alias,
    naming.alias_of_call,
    procedures.procedure,
    procedures.memory,
    procedures.memory_of_memories,
    procedures.inner_memories,
    procedures.inner_memories,
    procedures.alias_of_procedure,
    procedures.recursion,
    procedures.keyed,
    procedures.keyed,
    procedures.random_procedure,
    makers.product,
    makers.product,
    makers.crossed,
    makers.crossed,
    makers.crossed,
    makers.several,
    makers.decided,
    makers.in_memory,
    makers.restaurant,
    makers.customers,
    makers.hierarchy,
)
STRAIGHT: tuple[Kind, ...] = (naming.choice, naming.value, naming.computed, naming.alias, naming.derived)


def random_program(seed: int, finite: bool = False, attempt: int = 0, changed: bool = False) -> Program:
    """The program of this seed; where it is `changed`, with choices of many values that many rows read."""
    rng = np.random.default_rng([seed, finite, attempt])
    heavy, straight = rng.random() < 0.4, rng.random() < 0.3
    expressions = Expressions(
        rng, finite, bool(heavy and not straight), straight=bool(straight), budget=BUDGET if finite else PLENTY
    )
    make = Maker(expressions, depth=2 if finite else 3)
    steps = beginning(make)
    chain = procedures.chain(make) if seed % CHAINED == 0 else []
    steps += [*chain, *naming.choice(make), *naming.choice(make)]
    for _ in range(int(rng.integers(3, 7))):
        draw = rng.random()
        if draw < 0.7:
            kinds = STRAIGHT if straight else KINDS
            steps += kinds[int(rng.integers(len(kinds)))](make)
        elif draw < 0.85:
            steps += observe(make)
        elif draw < 0.9:
            steps += observe_name(make)
        else:
            steps += predict(make)
    steps += [*featured(make, 2 * seed), *featured(make, 2 * seed + 1)]
    # What the program bound last is read by what comes.
    steps += naming.value(make)
    steps += observe(make)
    if changed:
        steps += changes(make)
    if chain:
        steps += procedures.read_chain(make, chain[0].text.split()[1])
    return Program(tuple(steps), Operations(make, steps).some(), queries(make), expressions.heavy)


def featured(make: Maker, number: int) -> Made:
    """A form of the catalogue, another one for each number, so that in the end every form has come."""
    match CATALOGUE[number % len(CATALOGUE)]:
        case Evidence() as chosen:
            return observe_form(make, chosen)
        case MadeForm() as chosen:
            return makers.product_of(make, chosen)
        case kind, form:
            return naming.value_of(make, kind, make.expressions.filled(form, 2))


def beginning(make: Maker) -> Made:
    """The procedure that wrappers call `same`; at times in a file, or after what leaves nothing behind."""
    if make.chance(0.1):
        path = Path(__file__).parent / "identity.vnt"
        return [make.step("load", f'[load "{path.as_posix()}"]', ())]
    if make.chance(0.1):
        return [naming.identity(make), make.step("clear", "[clear]", ()), naming.identity(make)]
    return [naming.identity(make)]


def queries(make: Maker) -> tuple[Twin, ...]:
    """Names of values, and which labels are equal."""
    values = make.expressions.names.values
    named = [item for kind in ("boolean", "count") for item in values.get(kind, [])]
    labels = values.get("label", [])
    named += [twin("(= {0} {1})", labels[0], item) for item in labels[1:]]
    if not make.expressions.finite:
        named += values.get("real", [])
    return tuple(named[-8:])
