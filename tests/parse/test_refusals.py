"""What is said, and at which place, of a text that is no program."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venture_lite.errors import ParseError, Source
from venture_lite.language.parse import is_complete, parse_expression, parse_program

# text; the marked range; words of the message; words of the hint
REFUSED = [
    ("[assume x (normal 0 1]", "(", "not closed before the `]` at line 1, column 22", "`)`"),
    ("[assume x (f 1)", "[", "not closed", "`]`"),
    ("[assume x (f 1)\n[assume y 2]\n", "[", "before the directive at line 2, column 1", "`]`"),
    ("[assume f\n  (lambda (x) (+ x 1)\n[clear]]", "(", "before the directive at line 3", "`)`"),
    ("(a))", ")", "closes nothing", "leave it out"),
    ("(a]", "]", "does not close the `(` opened at line 1, column 1", "`)`"),
    ("[predict {N]", "{", "not closed", "`}`"),
    ('[load "abc]\n[clear]', '"abc]', "not closed on its line", "quotation mark"),
    ('[load "a\\d"]', "\\d", "no escape", "backslash"),
    ("[asume x 1]", "asume", "no directive `asume`", "did you mean assume?"),
    ("[mh default one 1]", "mh", "no directive `mh`", "(mh ...)"),
    ("[(f x)]", "(f x)", "starts with its keyword", "assume"),
    ("[]", "[]", "empty", "assume"),
    ("assume x 1", "assume", "without brackets", "[assume"),
    ("[assume x]", "[assume x]", "assume takes a name and an expression", "[assume x (normal 0 1)]"),
    ("[observe x]", "[observe x]", "observe takes an expression and a value", "[observe"),
    ("[infer (a) (b)]", "[infer (a) (b)]", "infer takes one inference expression", "(do ...)"),
    ("[clear 1]", "[clear 1]", "clear takes nothing", "[clear]"),
    ("[load x]", "x", "quotation marks", "[load"),
    ("[assume 3 1]", "3", "binds a name", "(f x)"),
    ("[assume true 1]", "true", "binds a name", "(f x)"),
    ("[assume (f 1) 2]", "(f 1)", "binds a name", "(f x)"),
    ("[forget (a)]", "(a)", "a label or a number", "[forget"),
    ("[forget true]", "true", "a label or a number", "[forget"),
    ("[forget data 0]", "0", "whole number from 1", "[forget data 3]"),
    ("[predict {1 +}]", "{1 +}", "braces hold a parameter", "{N - L}"),
    ("[predict {1.5}]", "{1.5}", "braces hold a parameter", "{N}"),
    ("[predict {}]", "{}", "braces hold a parameter", "{N}"),
    ("[predict {f(x)}]", "{f(x)}", "braces hold a parameter", "{N}"),
    ("[predict {a / b}]", "{a / b}", "braces hold a parameter", "{N}"),
    ("[predict {a # b}]", "{a # b}", "braces hold a parameter", "{N}"),
    ("[predict '(1 {x})]", "{x}", "cannot be quoted", "(list ...)"),
    ("for n in 1...3:\n[clear]", "for n in 1...3:", "no body", "indented"),
    ("for n in 1...3:", "for n in 1...3:", "no body", "indented"),
    ("for n in 1...N\n  [clear]", "for n in 1...N", "head of a loop", "for n in 1...N:"),
    ("for n = 1...N: [clear]", "for n =", "head of a loop", "for n in 1...N:"),
    ("for n in 1...3:\n    [clear]\n  [clear]", "[clear]", "neither as the loop over n", "4 blanks"),
    ("x: ", "", "a label stands before a directive", "slope:"),
    ("[assume x: 1]", ":", "a colon follows a label", None),
    ("[assume x 1st]", "1st", "neither a number nor a name", "numbers are"),
    ("[assume x 1/2]", "1/2", "neither a number nor a name", "numbers are"),
    ("[assume x 1e999]", "1e999", "too large", None),
    ("[assume x ‘a]", "‘", "no sign of the language", "`'`"),
    ("[assume x −1]", "−", "no sign of the language", "`-`"),
    ("[assume x （1)]", "（", "no sign of the language", "`(`"),
    ("[assume x `a]", "`", "no sign of the language", None),
    ("[assume x y\\_x]", "\\", "no sign of the language", None),
    ("[f 1, 2]", ",", "a comma stands only between positions", "blanks"),
    ("(f ')", "'", "nothing follows this quote", None),
    ("[assume x \0]", "\0", "U+0000", "leave it out"),
    ('[load "a\0b"]', "\0", "U+0000", "leave it out"),
    ("[assume x\u200b 1]", "\u200b", "U+200B", "leave it out"),
    ("[assume x \ud800]", "\ud800", "U+D800", "leave it out"),
]


@pytest.mark.parametrize(("text", "marked", "message", "hint"), REFUSED)
def test_a_refusal_marks_the_place_and_says_what_to_try(text: str, marked: str, message: str, hint: str | None) -> None:
    with pytest.raises(ParseError) as caught:
        parse_program(Source("test.vnt", text))
    error = caught.value
    assert error.span is not None
    assert (error.span.text.rstrip(), message in error.message) == (marked, True), str(error)
    assert hint is None or (error.hint is not None and hint in error.hint), str(error)
    assert error.__cause__ is None
    str(error).encode()


def test_the_first_mistake_is_reported() -> None:
    with pytest.raises(ParseError, match="asume"):
        parse_program(Source("test.vnt", "[asume x 1]\n[assume y (normal 0 1]"))


@pytest.mark.parametrize(("text", "message"), [("", "no expression"), ("1 2", "`2` is more"), (")", "closes nothing")])
def test_one_expression_is_expected(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_expression(Source("<input>", text))


def test_a_mark_stands_under_wide_characters_and_tabs() -> None:
    with pytest.raises(ParseError) as caught:
        parse_program(Source("t", "[assume 変数\t1st]"))
    _, line, marks, _ = str(caught.value).split("\n")
    assert line == "    [assume 変数 1st]"
    assert marks == "    " + " " * 13 + "^^^"


FRAGMENTS = st.sampled_from(
    [
        *"()[]{}'\":;#,.+-*\\ \n\t\r\0",
        "for ",
        "n",
        " in ",
        "1",
        "...",
        "assume",
        "[assume x ",
        "{X[n",
        "\u200b",
        "é",
        "   ",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(FRAGMENTS, max_size=25).map("".join))
@pytest.mark.thorough
def test_every_text_parses_or_is_refused_with_a_place(text: str) -> None:
    is_complete(text)
    for parse in (parse_program, parse_expression):
        with contextlib.suppress(ParseError):
            parse(Source("fuzz", text))
            continue
        with pytest.raises(ParseError) as caught:
            parse(Source("fuzz", text))
        span = caught.value.span
        assert span is not None
        assert 0 <= span.start <= span.end <= len(text) + 1
        str(caught.value)


def _seconds(text: str) -> float:
    started = time.perf_counter()
    parse_program(Source("long", text))
    return time.perf_counter() - started


@pytest.mark.parametrize("piece", ["[clear] ", "[clear]\n", "a: [clear]", "for n in 1...2: [clear]\n"])
@pytest.mark.thorough
def test_the_cost_grows_with_the_length_alone(piece: str) -> None:
    _seconds(piece)
    short, long = (min(_seconds(piece * count) for _ in range(3)) for count in (500, 4_000))
    assert long < 8 * 4 * short
