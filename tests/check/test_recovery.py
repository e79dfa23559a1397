"""Several syntax errors in one pass: a text is read on at the next directive."""

from __future__ import annotations

import pytest

from venture_lite import check
from venture_lite.errors import Source
from venture_lite.language.recovery import parse_on

# a text, the lines of its errors, the lines of the directives that are read all the same
CASES = {
    "nothing wrong": ("[assume a 1]\n[predict a]", [], [1, 2]),
    "brackets of two kinds": ("[assume a (f 1]\n[predict a]\n[assume b 2)]", [1, 3], [2]),
    "an open bracket before another": ("[assume a (f 1)\n[predict 1]\n[predict 2]", [1], [2, 3]),
    "two on one line": ("[assume a (+ 1 2] [predict 1] [assume b)]", [1, 1], [1]),
    "a directive without its parts": ("[assume a]\n[predict 1 2]\n[predict 3]", [1, 2], [3]),
    "an unknown directive": ("[asume a 1]\n[predict 1]\n[foo]", [1, 3], [2]),
    "a string left open": ('[load "a]\n[predict 1]', [1], [2]),
    "a bad number": ("[predict 1x]\n[predict 2]", [1], [2]),
    "over several lines": ("[assume (f x)\n  (+ x\n     1]\n[predict 1]", [2], [4]),
    "a label": ("a: [predict 1)]\nb: [predict 2]", [1], [2]),
    "a bare action": ("(mh default one 1]\n(mh default one 1)", [1], [2]),
    "the head of a loop": ("for n in 1..:\n  [predict 1]\n[predict 2]", [1], [2, 3]),
    "in the body of a loop": ("for n in 1...3:\n  [predict (n]\n  [predict n]\n[predict 2]", [2], [1, 4]),
    "all of the body of a loop": ("for n in 1...3:\n  [predict (n]\n[predict 2]", [2], [1, 3]),
    "a loop without body": ("for n in 1...3:\n[predict 2]\nfor m in 1...3:\n", [1, 3], [2]),
    "the indentation of a loop": ("for n in 1...3:\n    [predict 1]\n  [predict 2]\n[predict 3)]", [3, 4], [1]),
    "two parts, the second on a line of its own": (
        "[infer (mh default one 10)\n(collect x)]\n[predict 1]",
        [1],
        [3],
    ),
    "a directive over lines that start with brackets": (
        "[predict 1)]\n[infer (do\n(mh default one 1)\n(mh default one 2))]\n[predict 1]",
        [1],
        [2, 5],
    ),
    "an open bracket before an action": ("[predict (f 1)\n(mh default one 1)\n[predict 2]", [1], [2, 3]),
    "keywords in strings and comments": ('[predict "[assume"]\n; [assume b\n[predict 1)]\n[predict 2]', [3], [1, 4]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_text_is_read_on_after_an_error(name: str) -> None:
    text, errors, directives = CASES[name]
    read = parse_on(Source("p.vnt", text))
    assert [error.span.line if error.span else 0 for error in read.errors] == errors
    assert [directive.span.line for directive in read.directives] == directives


def test_what_was_refused_is_not_held_against_the_rest() -> None:
    text = """
        [assume (f a) (+ a 1]
        [assume b (scope_include 'latent 1 (flip)]
        l: [predict (f b]
        [predict (f 1 2)]
        (mh latent one 1)
        [report l]
        [predict oops]"""
    lines = [found.span.line for found in check(text).diagnostics]
    assert lines == [2, 3, 4, 8]


def test_a_file_that_might_have_been_loaded_may_bind_anything() -> None:
    assert [found.span.line for found in check('[load "a.vnt]\n[predict (f 1)]\n[report l]').diagnostics] == [1]


def test_a_very_long_text_is_not_read_on() -> None:
    text = "[predict 1)]\n" + "; blank\n" * 150_000 + "[predict 2)]"
    assert len(check(text).diagnostics) == 1


def test_a_text_that_is_too_long_is_one_error() -> None:
    (found,) = check("; " + "x" * 2**24 + "\n[predict oops]").diagnostics
    assert "characters at most" in found.message
