"""Atoms, quotes, parameters and forms."""

from __future__ import annotations

import pytest

from venture_lite.errors import Source
from venture_lite.language.parse import is_complete, parse_expression
from venture_lite.language.syntax import Form, IndexName, Literal, Name, Parameter, Quote
from venture_lite.values import Symbol


def expression(text: str) -> object:
    return parse_expression(Source("test", text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-12", -12),
        ("+5", 5),
        ("2.50", 2.5),
        ("1.", 1.0),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("1E-3", 0.001),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", float(2**63)),
        ("true", True),
        ("false", False),
        ('""', ""),
        (r'"a\n\"b\\ \u00e9\x41"', 'a\n"b\\ éA'),
        ('"日本\t#;()"', "日本\t#;()"),
    ],
)
def test_literals_have_their_values(text: str, value: object) -> None:
    literal = expression(text)
    assert isinstance(literal, Literal)
    assert literal.value == value
    assert type(literal.value) is type(value)


@pytest.mark.parametrize(
    "name",
    ["x", "-", "+", "->x", "<=", "y_x", "u?", "x-1", "h+L", "*", "/", "σ", "変数", "for", "assume", "a.b", "in"],
)
def test_names_of_any_script_and_sign(name: str) -> None:
    form = expression(f"(f {name})")
    assert isinstance(form, Form)
    assert isinstance(form.items[1], Name)
    assert form.items[1].name == name


def test_names_are_compared_in_normal_form() -> None:
    decomposed, composed = "e\u0301", "é"
    assert expression(decomposed).name == composed  # type: ignore[attr-defined]
    parameter = expression("{\u00b5}")
    assert isinstance(parameter, Parameter)
    assert isinstance(parameter.index, IndexName)
    assert parameter.index.name == "\u03bc"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a", Symbol("a")),
        ("'1", 1),
        ("'true", True),
        ("'()", ()),
        ('\'(a (1 "s") b)', (Symbol("a"), (1, "s"), Symbol("b"))),
        ("(quote a)", Symbol("a")),
        ("(quote (a b))", (Symbol("a"), Symbol("b"))),
        ("''a", (Symbol("quote"), Symbol("a"))),
        ("'(quote a)", (Symbol("quote"), Symbol("a"))),
    ],
)
def test_quoted_data_are_values(text: str, value: object) -> None:
    quote = expression(text)
    assert isinstance(quote, Quote)
    assert quote.value == value
    assert quote.span.text == text


def test_square_brackets_inside_an_expression_are_brackets() -> None:
    form = expression("(let ([x 1]) x)")
    assert isinstance(form, Form)
    assert isinstance(form.items[1], Form)
    assert isinstance(form.items[1].items[0], Form)


def test_an_empty_form_is_left_to_the_analysis() -> None:
    assert isinstance(expression("()"), Form)


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("(a)", True),
        ("(a", False),
        ('(a "(")', True),
        ("(a ; )", False),
        ('"ab', False),
        ('"ab\n', True),
        ("(a]", True),
        ("a)", True),
        ("slope:", False),
        ("for n in 1...3:", False),
        ("for n in 1...3: [clear]", True),
        ("for n in 1...3:\n  [clear]", False),
        ("for n in 1...3:\n  [clear]\n", True),
        ("for n in 1...3:\n  [clear]\n[clear]", True),
        ("[assume x\n  1]", True),
    ],
)
def test_typing_goes_on_while_something_is_open(text: str, complete: bool) -> None:
    assert is_complete(text) is complete
