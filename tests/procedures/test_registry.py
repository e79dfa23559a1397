"""The registry as a whole: every record has examples, a text, and argument checks that agree with each other."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.procedures.examples import APPLIED, DETERMINISTIC, MAKERS, RANDOM, RED, M, V, vector
from venture_lite.errors import ArgumentError, NameUnknown
from venture_lite.procedures.checks import check_arguments, columns_valid, record_valid
from venture_lite.procedures.distributions import improper
from venture_lite.procedures.record import REQUIRED, Deterministic, Maker, Random
from venture_lite.procedures.registry import FAMILIES, PROCEDURES, lookup

IMPROPER = {record.name for record in improper.RECORDS}
"""`test_improper.py` has them."""

KINDS: list[tuple[type, dict[str, Any]]] = [
    (Deterministic, DETERMINISTIC),
    (Random, RANDOM),
    (Maker, MAKERS | APPLIED),
]


@pytest.mark.parametrize(("kind", "examples"), KINDS)
def test_every_record_has_an_example_and_every_example_a_record(kind: type, examples: dict[str, Any]) -> None:
    assert {name for name, record in PROCEDURES.items() if isinstance(record, kind)} - IMPROPER == set(examples)


def test_no_name_is_defined_twice() -> None:
    assert len(PROCEDURES) == sum(map(len, FAMILIES))


@pytest.mark.parametrize("record", PROCEDURES.values(), ids=list(PROCEDURES))
def test_the_summary_is_a_sentence_and_the_source_of_a_density_is_named(record: Any) -> None:
    assert (
        record.summary[0].isupper()
        or not record.summary[0].isalpha()
        or record.summary.startswith(("e to", "exp", "log"))
    )
    assert record.summary.endswith(".")
    assert isinstance(record, Deterministic) or record.source


def _calls(name: str) -> list[tuple[Any, ...]]:
    if name in DETERMINISTIC:
        return [args for args, _ in DETERMINISTIC[name]]
    if name in APPLIED:
        return APPLIED[name]
    if name in IMPROPER:
        return [()]
    return RANDOM[name].arguments if name in RANDOM else MAKERS[name].arguments


ODD = [math.nan, math.inf, -1, 0, 0.5, 2, True, "text", RED, (), (1, "a"), V, M, vector(0.5), None, 10**400]


@pytest.mark.parametrize("name", PROCEDURES)
def test_the_checks_accept_the_examples(name: str) -> None:
    record = PROCEDURES[name]
    valid = record_valid(record)
    for args in _calls(name):
        assert check_arguments(record, args) == args or args
        assert valid(*args)


@pytest.mark.parametrize("name", PROCEDURES)
@pytest.mark.thorough
def test_the_fast_check_agrees_with_the_full_one(name: str) -> None:
    record = PROCEDURES[name]
    valid = record_valid(record)
    for args in _calls(name):
        for position in range(len(args)):
            for odd in ODD:
                changed = (*args[:position], odd, *args[position + 1 :])
                try:
                    check_arguments(record, changed)
                    accepted = True
                except ArgumentError:
                    accepted = False
                assert valid(*changed) == accepted, (name, changed)


@pytest.mark.parametrize("name", PROCEDURES)
def test_the_check_of_a_column_agrees_with_that_of_its_rows(name: str) -> None:
    record = PROCEDURES[name]
    domains = {argument.domain for argument in record.arguments} | {getattr(record, "rest", None)} - {None}
    columns = [
        np.array([1.0, 0.5]), np.array([1.0, math.nan]), np.array([0.0, 1.0]), np.array([-1, 3]),
        np.array([True, False]),
        np.array([2.0, math.inf]), np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([[0.5, 0.6], [1.0, 0.0]]),
    ]  # fmt: skip
    for domain in domains:
        for column in columns:
            rows = [row if row.ndim else row.item() for row in map(np.asarray, column)]
            assert domain.contains_all(column) == all(map(domain.contains, rows)), (domain.name, column)


@pytest.mark.parametrize("name", PROCEDURES)
def test_a_wrong_count_says_what_is_taken(name: str) -> None:
    record = PROCEDURES[name]
    required = sum(argument.default is REQUIRED for argument in record.arguments)
    if required:
        with pytest.raises(ArgumentError, match=f"takes .*got {required - 1}"):
            check_arguments(record, (1,) * (required - 1))
    if getattr(record, "rest", None) is None:
        count = len(record.arguments) + 1
        with pytest.raises(ArgumentError, match=f"takes .*got {count}"):
            check_arguments(record, (1,) * count)


def test_messages_say_which_argument_is_wrong_and_what_was_given() -> None:
    for name, args, message in [
        ("normal", (1,), "normal takes 2 arguments (mean sd), got 1"),
        ("normal", (0, -1), "normal: sd must be a positive number, got -1"),
        ("normal", ("x", 1), 'normal: mean must be a finite number, got "x"'),
        ("flip", (1.5,), "flip: p must be a number between 0 and 1, got 1.5"),
        ("flip", (0.5, 1), "flip takes 0 to 1 arguments ([p]), got 2"),
        (
            "categorical",
            ((0.5, 0.6),),
            "categorical: probs must be a vector of probabilities that sum to 1, got (0.5 0.6)",
        ),
        ("-", (), "- takes at least 1 argument (x ...), got 0"),
        ("+", (1, "a"), '+: argument 2 must be a number, a vector or a matrix, got "a"'),
    ]:
        with pytest.raises(ArgumentError) as caught:
            check_arguments(PROCEDURES[name], args)
        assert caught.value.message == message


def test_defaults_are_filled_in() -> None:
    assert check_arguments(PROCEDURES["student_t"], (3,)) == (3, 0.0, 1.0)
    assert check_arguments(PROCEDURES["make_crp"], (2,)) == (2, 0.0)


def test_a_column_with_one_bad_row_is_refused() -> None:
    normal = PROCEDURES["normal"]
    assert columns_valid(normal, (True, False), (np.zeros(3), 1.0))
    assert not columns_valid(normal, (True, False), (np.array([0.0, math.nan]), 1.0))
    assert not columns_valid(normal, (False, True), (0.0, np.array([1.0, 0.0])))
    assert not columns_valid(normal, (True, False), (np.zeros(3), -1.0))


def test_an_unknown_name_gets_the_nearest_spelling() -> None:
    with pytest.raises(NameUnknown, match="did you mean normal"):
        lookup("norml")


@pytest.mark.thorough
def test_importing_the_registry_leaves_scipy_alone() -> None:
    code = "import sys, venture_lite.procedures.registry; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
