"""Labels of tables that are used as numbers, or taken for labels of another maker, are told with their place."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from tests.posterior.cases import CASES
from venture_lite import Venture
from venture_lite.checker import check
from venture_lite.errors import VentureWarning

TABLES = "[assume c (make_crp 1)] [assume z (mem (lambda (i) (c)))]\n"
ROWS = "[assume rows (mem (lambda (s) (make_crp 1)))] [assume z (mem (lambda (g i) ((rows g))))]\n"
MEANS = "[assume mean (mem (lambda (k) (normal 0 1)))]\n"
AS_NUMBER = "a label of a table, as a number: labels mean nothing but equality"
ONE_KEY = "labels of different makers are one key"

FOUND = {
    TABLES + "[predict (+ (z 1) 1)]": ["2:13 + takes (z 1), " + AS_NUMBER],
    TABLES + "[predict (< (z 1) (z 2))]": ["2:13 < orders (z 1), " + AS_NUMBER],
    TABLES + "[assume a (z 1)] [assume b a]\n[observe (normal b 1) 2]": ["3:18 normal takes b, " + AS_NUMBER],
    TABLES + "[assume up (lambda (x) (exp x))]\n[predict (up (z 1))]": ["2:29 exp takes x, " + AS_NUMBER],
    TABLES + "[predict (let ((a (z 1))) (if (flip) (max a 2) 3))]": ["2:43 max takes a, " + AS_NUMBER],
    TABLES + "for i in 1...2: [observe (normal (z i) 1) 0]": ["2:34 normal takes (z i), " + AS_NUMBER],
    TABLES + "[assume d (make_crp 1)] [predict (= (z 1) (d))]": ["2:34 labels of different makers are compared"],
    ROWS + "[predict (= (z 1 1) (z 2 1))]": ["2:10 labels of different makers are compared"],
    TABLES + MEANS + "[assume d (make_crp 1)] [predict (mean (z 1))] [predict (mean (d))]": [f"3:63 {ONE_KEY}"],
    ROWS + MEANS + "for g in 1...2: [observe (normal (mean (z g 1)) 1) 0]": [f"3:40 {ONE_KEY}"],
    ROWS + MEANS + "[predict (mean (z 1 1))] [predict (mean (z 2 1))]": [f"3:41 {ONE_KEY}"],
    # the infinite hidden Markov model with a process for each row
    "[assume rows (mem (lambda (s) (make_crp 1)))] [assume trans (mem (lambda (s) ((rows s))))]\n"
    "[assume state (mem (lambda (t) (if (= t 0) 1 (trans (state (- t 1))))))] [predict (state 2)]": [
        f"1:85 {ONE_KEY}", f"2:53 {ONE_KEY}",
    ],
}  # fmt: skip

SILENT = {
    "equality and keys": TABLES + MEANS + "[predict (= (z 1) (z 2))] [predict (mean (z 1))] [predict (list (z 1))]",
    "a key that names the maker": ROWS + "[assume mean (mem (lambda (g k) (normal 0 1)))]\n"
    "for g in 1...2: [observe (normal (mean g (z g 1)) 1) 0]",
    "a procedure of each maker's own": ROWS + "[assume means (mem (lambda (g) (mem (lambda (k) (normal 0 1)))))]\n"
    "for g in 1...2: [observe (normal ((means g) (z g 1)) 1) 0]",
    "one of many makers": ROWS + MEANS + "for i in 1...3: [observe (normal (mean (z 1 i)) 1) 0]",
    "makers and memos made together": "[assume process (mem (lambda (d) (let ((crp (make_crp 1)) "
    "(atom (mem (lambda (k) (normal 0 1))))) (lambda () (atom (crp))))))] [predict ((process 1))]",
    "makers and memos made by a call": "[assume make (lambda (a) (let ((crp (make_crp a)) "
    "(atom (mem (lambda (k) (normal 0 1))))) (lambda () (atom (crp)))))] [assume f (make 1)] [assume g (make 2)] "
    "[predict (+ (f) (g))]",
    "one of two makers": "[assume c (if (flip 0.4) (make_crp 1) (make_crp 2))]" + MEANS + "[predict (mean (c))]",
    "other exchangeable procedures": "[assume d (make_sym_dir_mult 1 3)] [predict (+ (d) 1)] [predict (= (d) (d))]",
    "a name of the program's own": "[assume make_crp2 (lambda (x) (lambda () x))] [assume c (make_crp2 1)]"
    "[predict (+ (c) 1)]",
}


def told(text: str) -> list[str]:
    found = [(*item.span.source.line_and_column(item.span.start), item.message) for item in check(text).diagnostics]
    return [f"{line}:{column} {message}" for line, column, message in sorted(found)]


@pytest.mark.parametrize(("text", "expected"), FOUND.items())
def test_a_check_and_a_load_tell_it_with_the_place(text: str, expected: list[str]) -> None:
    found = told(text)
    assert len(found) == len(expected)
    assert all(one.startswith(wanted) for one, wanted in zip(found, expected, strict=True)), found
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Venture(seed=1).execute(text)
    loaded = sorted(str(one.message).removeprefix("<input>:") for one in caught if one.category is VentureWarning)
    assert len(loaded) == len(expected)
    assert all(one.replace(": ", " ", 1).startswith(wanted) for one, wanted in zip(loaded, expected, strict=True)), (
        loaded
    )


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT.keys())
def test_labels_that_are_only_compared_and_keys_of_their_own_are_silent(text: str) -> None:
    assert told(text) == []
    with warnings.catch_warnings(action="error"):
        Venture(seed=1).execute(text)


def test_each_place_is_told_once() -> None:
    v = Venture(seed=1)
    with pytest.warns(VentureWarning) as caught:
        v.execute(TABLES + "[assume up (lambda (x) (exp x))] [predict (up (z 1))] [predict (up (z 2))]")
    assert len(caught) == 1


def test_posterior_cases_and_programs_are_silent() -> None:
    """The Chinese restaurant franchise is among them, and cross-categorization."""
    programs = [path.read_text("utf-8") for path in (Path(__file__).parents[2] / "programs").rglob("*.vnt")]
    for text in [*(case.program for case in CASES), *programs]:
        if "make_crp" in text:
            assert not [one for one in check(text).diagnostics if "label" in one.message], text
