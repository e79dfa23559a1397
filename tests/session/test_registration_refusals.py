"""What cannot be registered, or gives no density and no value, is refused with the procedure's name."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import pytest

from tests.session.registered import gauss_columns, with_gauss
from tests.session.test_registered_makers import Coin
from venture_lite import Venture, VentureError
from venture_lite.audit.invariants import check
from venture_lite.errors import ArgumentError


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("normal", "procedure of the language"),
        ("if", "procedure of the language"),
        ("map", "procedure of the language"),
        ("two words", "no name of the language"),
        ("1st", "no name of the language"),
        ("(f)", "no name of the language"),
        ("", "no name of the language"),
        ("taken", "assumed already"),
        ("later", "waits for an assume of later"),
    ],
)
@pytest.mark.filterwarnings("ignore:waiting refers to later")
def test_a_name_that_cannot_be_taken_is_refused(name: str, says: str) -> None:
    venture = Venture(seed=1)
    venture.assume("taken", "3")
    venture.assume("waiting", "(lambda (x) (later x))")
    before = venture.log_score(), venture.list_directives()
    with pytest.raises(ArgumentError, match=says):
        venture.register(name, function=lambda x: x)
    assert (venture.log_score(), venture.list_directives()) == before
    assert venture.sample("(+ taken 1)") == 4


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "registered with simulate and log_density"),
        ({"simulate": len}, "needs log_density"),
        ({"simulate": len, "log_density": 3}, "its log_density must be a function, got 3"),
        ({"function": len, "make": Coin}, "registered with"),
        ({"function": len, "column": len}, "it takes no field column"),
        ({"function": max}, "the arguments of its function are not known"),
        ({"simulate": len, "log_density": lambda: 0.0}, "log_density takes 0 arguments"),
        ({"simulate": len, "log_density": lambda v, *, a: 0.0}, "log_density takes a by name only"),
        ({"simulate": len, "log_density": lambda v, *a: 0.0}, "takes a fixed number of arguments"),
        ({"function": len, "arguments": "ab"}, "its arguments are a list of names"),
        ({"function": len, "arguments": {"a": "positve"}}, "no domain for its argument a"),
        ({"simulate": len, "log_density": len, "domain": "reel"}, "no domain for its values"),
        ({"simulate": len, "log_density": len, "domain": (3, 1)}, "no domain for its values"),
        ({"simulate": len, "log_density": lambda v, a: 0, "gradient": {"b": len}}, "a gradient in b"),
    ],
)
def test_fields_that_do_not_fit_are_refused(fields: dict[str, Any], says: str) -> None:
    venture = Venture(seed=1)
    with pytest.raises(ArgumentError, match=f"mine: .*{says}"):
        venture.register("mine", **fields)
    with pytest.raises(VentureError, match="unknown name mine"):
        venture.sample("(mine 1)")


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (lambda v, m, s: np.nan * v, r"log_density_columns returned nan for the value 1\.0"),
        (lambda v, m, s: 0.0, r"returned an array of shape \(\), not one number for each of 30 rows"),
        (lambda v, m, s: v[:3], r"an array of shape \(3,\)"),
        (lambda v, m, s: "high", "'high', not one number"),
        (lambda v, m, s: gauss_columns(v, m, s) + 1, "its log_density gives .* its log_density_columns"),
        (lambda v, m, s: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_density_of_rows_that_is_wrong_names_the_procedure_and_leaves_the_session(columns: Any, says: str) -> None:
    venture = with_gauss(log_density_columns=columns)
    venture.assume("m", "(normal 0 1)")
    before = venture.log_score()
    with pytest.raises(ArgumentError, match=f"gauss: .*{says}") as caught:
        venture.execute("for n in 1...30: [observe (gauss 0 1) {y[n]}]", y=np.ones(30))
    assert "(gauss 0 1)" in str(caught.value)
    assert venture.log_score() == before
    assert len(venture.list_directives()) == 1
    check(venture.traces[0])


@pytest.mark.parametrize("result", [math.nan, None, object(), [1.0, math.nan], np.array([math.nan])])
def test_a_function_that_gives_no_value_names_the_procedure(result: Any) -> None:
    venture = Venture(seed=1)
    venture.register("f", function=lambda x: result)
    with pytest.raises(ArgumentError, match="f: its function returned"):
        venture.execute("[assume x (normal 0 1)] [assume y (f x)]")
    assert [entry["directive"] for entry in venture.list_directives()] == ["assume"]


def test_a_value_outside_the_domain_is_an_error_of_simulate() -> None:
    venture = with_gauss(domain="positive")
    with pytest.raises(ArgumentError, match=r"gauss: its simulate returned -.*, but its values are positive"):
        venture.execute("[assume x (gauss -100 1)]")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("(f 1.5 1 true)", "f: n must be an integer, got 1.5"),
        ("(f 1 -1 true)", "f: sd must be a positive number, got -1"),
        ("(f 1 1 2)", "f: flag must be a boolean, 0 or 1, got 2"),
        ('(f 1 1 true "name" 7)', "f: p must be a number from 0 to 1, got 7"),
        ("(f 1 1 true 3)", "f: label must be a string, got 3"),
    ],
)
def test_type_hints_are_the_domains_of_arguments(call: str, says: str) -> None:
    def f(
        n: int,
        sd: Annotated[float, "positive"],
        flag: bool,
        label: str = "none",
        p: Annotated[float, (0, 1)] = 0.5,
    ) -> int:
        return n

    venture = Venture(seed=1)
    venture.register("f", function=f)
    assert venture.sample("(f 3 0.5 false)") == 3
    with pytest.raises(ArgumentError, match=says):
        venture.sample(call)
