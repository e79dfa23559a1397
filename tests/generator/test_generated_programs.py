"""The generator itself: its programs have every form of the language, and a seed stands for one program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.generator.comparison import finite_program
from tests.generator.directives import random_program
from tests.generator.programs import Program
from tests.posterior.reader import parse
from venture_lite.language.directives import DIRECTIVES
from venture_lite.procedures.record import REQUIRED
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.program.forms import SPECIAL_FORMS
from venture_lite.session.standard import NAMES

SEEDS = 200
"""Programs of each kind: finite ones, and others."""

REFUSED = {
    ("matrix", 0): "a matrix has a row",
    ("dict", 1): "a key comes with its value",
}
"""Numbers of arguments that a procedure's record allows and the procedure does not."""

# Ways to name, wrap and pass values, and to write loops and parameters, as they begin in the text.
WAYS = {
    "a name for a name": "[assume a3 x",
    "an identity": "(same x",
    "an alias through let": "(let ((w x",
    "a tag of a name": "(tag 'q 0 x",
    "an alias of an alias": " a3)",
    "a memory of memories": "(mem (lambda (i) (mem (lambda (k)",
    "a restaurant for each group": "(mem (lambda (d) (let ((c (make_crp",
    "a maker in a memory": "(mem (lambda (i) (make_beta_bernoulli",
    "an uncollapsed maker in a memory": "(mem (lambda (i) (make_uc_",
    "a maker in a list": "(list (make_",
    "a maker in a list of several types": '(list 1 "s" (make_',
    "a maker in a dictionary": "(dict 'm (make_",
    "makers from map": "(map (lambda (a) (make_beta_bernoulli",
    "a maker that a choice decides on": " (make_beta_bernoulli 1 ",
    "a product as an argument": "((lambda (g) (g))",
    "a closure over a product": "(lambda () (g)))]",
    "a closure over a product that is given something": "(lambda (t) (g t)))]",
    "a random procedure in a list": "((first (list flip 1))",
    "a random procedure that a choice decides on": "flip bernoulli)",
    "a procedure as a key": " c",
    "vectors that print alike as keys": "(vector 0.1 0.2000000001)",
    "a dictionary as a key": "(dict 'a 0.1000000001)",
    "a support that depends on a choice": "(uniform_discrete 0 (+ 1 ",
    "a shape that depends on a choice": "(range x",
    "an observed label": " 5) 2]",
    "a discount": " 0.2)]",
    "a loop in a loop": "for row in 1...N: for col in 1...2: ",
    "a bound that depends on the outer loop": "for col in row...N: ",
    "loops by indentation, a label inside": "for col in 1...row:\n    inner: [",
    "a loop that predicts and observes": "[predict (+ n ",
    "a bound in braces": "1...{N + 1}",
    "an entry of a matrix": "{M[row, col]}",
    "a row of a matrix": "{M[n]}",
    "an entry before this one": "{Y[n - 1]}",
    "braces in braces": "{X[{N} - n + 1]}",
    "a parameter as it is": "{COV}",
    "a quoted list": "'(0 s 2)",
}


def texts(finite: bool, seeds: int = SEEDS) -> list[str]:
    programs = [random_program(seed, finite) for seed in range(seeds)]
    return [step.text for program in programs for step in (*program.directives, *program.operations)]


def lists(form: Any) -> Iterator[list[Any]]:
    if isinstance(form, list):
        yield form
        for part in form:
            yield from lists(part)


@cache
def applications(finite: bool) -> dict[str, set[int]]:
    """What stands first in brackets, with how much follows it."""
    found: dict[str, set[int]] = {}
    for text in texts(finite):
        for form in lists(parse(re.sub(r"^for [^\[]*", "", text))):
            if form and isinstance(form[0], str):
                found.setdefault(form[0], set()).add(len(form) - 1)
    return found


def numbers_of_arguments(name: str) -> set[int]:
    """All that a procedure takes; of one that takes any number, up to one beyond those that have a name."""
    record = PROCEDURES[name]
    least = sum(argument.default is REQUIRED for argument in record.arguments)
    most = len(record.arguments) + (getattr(record, "rest", None) is not None)
    return {count for count in range(least, most + 1) if (name, count) not in REFUSED}


@pytest.mark.parametrize("finite", [True, False])
def test_programs_have_every_form_of_the_language(finite: bool) -> None:
    """Procedures with every number of arguments, special forms, directives. No exceptions: what finite programs cannot
    draw is observed in them, and what an uncollapsed maker draws is summed out by their enumeration."""
    found = applications(finite)
    words = {*PROCEDURES, *NAMES, *SPECIAL_FORMS, *DIRECTIVES, "else"}
    assert sorted(words - found.keys()) == []
    missing = {name: numbers_of_arguments(name) - found[name] for name in PROCEDURES}
    assert {name: counts for name, counts in missing.items() if counts} == {}


def test_programs_name_wrap_and_pass_values_in_every_way() -> None:
    text = "\n".join([*texts(True, 3 * SEEDS), *texts(False, 3 * SEEDS)])
    assert [way for way, part in WAYS.items() if part not in text] == []


def kinds_of_operations(programs: list[Program]) -> set[str]:
    return {step.kind for program in programs for step in program.operations}


def test_operations_come_late() -> None:
    late = {"observe", "predict", "force", "forget", "freeze", "report", "sample", "define", "infer"}
    assert late <= kinds_of_operations([finite_program(seed) for seed in range(40)])


def test_passes_of_loops_are_forgotten() -> None:
    assert re.search(r"\[forget step\d+ \d \d\]", "\n".join([*texts(True), *texts(False)]))


def test_a_seed_stands_for_one_program() -> None:
    assert random_program(7) == random_program(7)
    assert random_program(7) != random_program(8)
    assert finite_program(7) == finite_program(7)
