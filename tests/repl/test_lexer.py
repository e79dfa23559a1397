"""The prompt's tokens are the grammar's; brackets know strings and comments."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from venture_lite.repl import lexer
from venture_lite.repl.lexer import LexerToken, indentation, open_calls, pairs, tokens

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(
    [*(ROOT / "programs").glob("*.vnt"), *(ROOT / "stdlib").glob("*.vnt"), *(ROOT / "tests").rglob("*.vnt")]
)


@functools.cache
def automaton() -> Any:
    from lark import Lark

    return Lark((ROOT / "grammar" / "venture.lark").read_text(encoding="utf-8"), parser="lalr", start="program")


def of_grammar(text: str) -> list[tuple[int, str]]:
    """Place and text of every token, as the parser's own lexer cuts them."""
    interactive = automaton().parse_interactive(text)
    return [(token.start_pos, str(token)) for token in interactive.iter_parse()]


def cut(text: str) -> list[tuple[int, str]]:
    return [(token.start, token.text) for token in tokens(text) if token.kind != "comment"]


def accepted(text: str) -> bool:
    from lark.exceptions import LarkError

    try:
        of_grammar(text)
    except LarkError:
        return False
    return True


def test_every_program_is_cut_as_the_parser_cuts_it() -> None:
    programs = [path for path in PROGRAMS if accepted(path.read_text(encoding="utf-8"))]
    assert len(programs) > 40
    for path in programs:
        text = path.read_text(encoding="utf-8")
        assert cut(text) == of_grammar(text), path.name


@pytest.mark.parametrize(
    "text",
    [
        "[assume x (+ 1. .5 -2 1e-3 - -x a.b x-1)]",
        "[predict {X[n, 3 - m] * (2+k)}]",
        'label : [predict "a (b ; c \\" d" ] ; )',
        "for t in 2...N-1: for k in 1..{K}: [observe (x t k) {Y[t, k]}]",
        "data: for n in 1…3: [observe (f n) 'red]",
        "[predict (forward 1)] FOR k IN 1...2: [predict (in k)]",
        '[assume größe \'(a "b" 1)] # to the end\n[predict true]',
    ],
)
def test_an_odd_text_is_cut_as_the_parser_cuts_it(text: str) -> None:
    assert cut(text) == of_grammar(text)


def test_kinds_follow_the_place() -> None:
    text = "w: [observe (f true 'a) {X[n]}] for n in 1...N: x ; end"
    kinds = [(token.text, token.kind) for token in tokens(text)]
    assert kinds == [
        ("w", "label"), (":", "sign"), ("[", "opener"), ("observe", "head"), ("(", "opener"), ("f", "head"),
        ("true", "constant"), ("'", "quote"), ("a", "name"), (")", "closer"), ("{", "opener"), ("X", "parameter"),
        ("[", "opener"), ("n", "parameter"), ("]", "closer"), ("}", "closer"), ("]", "closer"), ("for", "keyword"),
        ("n", "name"), ("in", "keyword"), ("1", "number"), ("...", "sign"), ("N", "parameter"), (":", "sign"),
        ("x", "name"), ("; end", "comment"),
    ]  # fmt: skip


def test_a_brace_is_remembered_over_lines() -> None:
    assert [token.kind for token in tokens("{X[\nn]}\nn")][2:4] == ["opener", "parameter"]
    assert next(token for token in tokens("{X\n}\nn") if token.text == "n").kind == "name"


@pytest.mark.parametrize(
    ("text", "position", "other"),
    [
        ("(a (b) c)", 0, 8),
        ("(a (b) c)", 8, 0),
        ("(a (b) c)", 3, 5),
        ('(a ")" b)', 0, 8),
        ("(a ; )\n)", 0, 7),
        ("(a ]", 3, None),
        ("(a", 0, None),
        ("a)", 1, None),
        ("{X[1]}", 2, 4),
        ('"("', 1, None),
        ("[(]", 0, None),
    ],
)
def test_a_bracket_finds_its_other_half(text: str, position: int, other: int | None) -> None:
    assert pairs(text).get(position) == other


@pytest.mark.parametrize(
    ("text", "heads", "parts"),
    [
        ("[assume x (normal 0 ", ["assume", "normal"], 2),
        ("(mh default one ", ["mh"], 3),
        ("(f (g 1) (", ["f", None], 0),
        ("(do (mh a b 1) ", ["do"], 2),
        ("(f ; (g\n ", ["f"], 1),
        ("((f 1) ", [None], 1),
    ],
)
def test_what_is_open_is_known_with_its_parts(text: str, heads: list[str | None], parts: int) -> None:
    calls = open_calls(text)
    assert [call.head for call in calls] == heads
    assert calls[-1].parts == parts


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("[assume f", 2),
        ("[assume f (lambda (x)", 12),
        ("for n in 1...3:", 2),
        ("for n in 1...3:\n  [observe x 1]", 2),
        ("x", 0),
    ],
)
def test_a_new_line_is_indented_by_what_is_open(text: str, width: int) -> None:
    assert indentation(text) == width


def test_a_line_that_did_not_change_is_not_cut_again() -> None:
    lexer.tokens_of_line.cache_clear()
    list(tokens("(a)\n(b)\n(c"))
    list(tokens("(a)\n(b)\n(cd"))
    assert lexer.tokens_of_line.cache_info().misses == 4


def test_a_long_line_is_cut_in_linear_time() -> None:
    text = "(f " * 50_000
    assert sum(1 for _ in tokens(text)) == 100_000
    assert LexerToken("opener", "(", 3) in list(tokens(text))[:3]
