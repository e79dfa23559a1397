"""What no kernel moves is found in the text where scopes and keys are constant, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.posterior.cases import CASES
from venture_lite.checker import check

PAIR = "[assume x (tag 'x 0 (normal 0 1))] [assume y (tag 'y 0 (normal x 1))] [observe (normal y 1) 3]\n"


def one(name: str) -> str:
    return f"{name}: 1 choice is moved by no kernel: the draws take its value as given"


def told(text: str) -> list[str]:
    return [item.message for item in check(text).diagnostics if "no kernel" in item.message]


FOUND = {
    "a parent": (PAIR + "[infer (repeat 9 (do (mh y all 'drift 1 5) (collect y)))]", [one("x")]),
    "a child": (
        "[assume x (tag 'x 0 (normal 0 1))] [predict (normal x 0.1)] (repeat 9 (do (mh x all 1) (collect x)))",
        [one("(normal x 0.1)")],
    ),
    "a block by its key": (
        "[assume x (tag 's 0 (normal 0 1))] [assume y (tag 's 1 (normal x 1))] (repeat 9 (do (mh s 1 1) (collect y)))",
        [one("x")],
    ),
    "shared evidence, through a name": (
        "[assume u (normal 0 1)] [assume x (tag 'x 0 (normal 0 1))] [assume s (+ x u)] [observe (normal s 1) 3]\n"
        "(repeat 9 (do (slice x all 1 2 1) (collect x)))",
        [one("u")],
    ),
    "draws of one maker": (
        "[assume f (make_beta_bernoulli 1 1)] [assume a (tag 'a 0 (f))] [assume b (f)]\n"
        "(repeat 9 (do (gibbs a all 1) (collect a)))",
        [one("b")],
    ),
    "a memoized procedure": (
        "[assume t (mem (lambda (i) (normal 0 1)))] [assume m (tag 'm 0 (normal 0 1))]\n"
        "for i in 1...9: [observe (normal (+ m (t i)) 1) 3]\n(repeat 9 (do (mh m all 1) (collect m)))",
        ["t: its choices are moved by no kernel: the draws take their values as given"],
    ),
    "passes of a loop": (
        PAIR + "for i in 1...3:\n  [observe (normal y 1) i]\n  [infer (do (mh y all 1) (collect y))]",
        [one("x")],
    ),
    "nothing moves": ("[assume x (normal 0 1)] (repeat 9 (collect x))", [one("x")]),
}

SILENT = {
    "everything is selected": PAIR + "(repeat 9 (do (mh default one 1) (collect y)))",
    "each has its kernel": PAIR + "(repeat 9 (do (cycle ((mh x one 1) (mh y each 1)) 2) (collect y)))",
    "one draw": PAIR + "(do (mh y all 1) (collect y))",
    "a key that is no constant": PAIR + "[define k 0] (repeat 9 (do (mh x k 1) (mh y all 1) (collect y)))",
    "forced": PAIR + "[force x 1] (repeat 9 (do (mh y all 1) (collect y)))",
    "observed": PAIR + "[observe x 1] (repeat 9 (do (mh y all 1) (collect y)))",
    "observed through a name": PAIR + "[assume z x] [observe z 1] (repeat 9 (do (mh y all 1) (collect y)))",
    "nothing rests on it": PAIR + "[assume o (normal 0 1)] (repeat 9 (do (mh x all 1) (mh y all 1) (collect y)))",
    "one possible value": "[assume b (flip 1)] [assume x (tag 'x 0 (normal b 1))]"
    "(repeat 9 (do (mh x all 1) (collect x)))",
    "made by the draw itself": "[assume f (mem (lambda (i) (normal 0 1)))] (repeat 9 (collect (f 1)))",
    "in a branch": "[assume c (tag 'c 0 (flip))] [assume x (if c (normal 0 1) 2)]"
    "(repeat 9 (do (mh c all 1) (collect x)))",
    "families that come and go": "[assume z (mem (lambda (i) (tag 'z i (flip))))]"
    "[assume m (mem (lambda (k) (normal 0 1)))] [observe (normal (m (z 1)) 1) 1]"
    "(repeat 9 (do (mh z all 1) (collect (m (z 1)))))",
    "a local name that is spelt alike": PAIR
    + "[assume u (normal 0 1)] [assume g (lambda (u) (+ u 1))]\n"
    + "(repeat 9 (do (mh x all 1) (mh y all 1) (collect (g y))))",
    "taken back": PAIR + "[forget x] (repeat 9 (do (mh y all 1) (collect y)))",
}


@pytest.mark.parametrize(("text", "expected"), FOUND.values(), ids=FOUND.keys())
def test_a_check_finds_it(text: str, expected: list[str]) -> None:
    assert told(text) == expected
    assert check(text).ok


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT.keys())
def test_what_the_text_does_not_show_is_left_to_the_run(text: str) -> None:
    assert told(text) == []


@pytest.mark.thorough
def test_posterior_cases_and_programs_are_silent() -> None:
    for case in CASES:
        drawn = " ".join(case.query.values())
        kernels = " ".join(f"[infer (repeat 9 (do {engine} (collect {drawn})))]" for engine in case.engines[:2])
        assert told(f"{case.program}\n{kernels}") == [], case.name
    for path in (Path(__file__).parents[2] / "programs").rglob("*.vnt"):
        assert told(path.read_text("utf-8")) == [], path.name


def test_a_binding_without_a_name_is_told_where_it_stands() -> None:
    (found,) = check(
        "[assume x (let ((a 1) ()) (normal a 1))] [infer (repeat 3 (do (mh default one 1) (collect x)))]"
    ).diagnostics
    assert found.message == "let is written with ((name value) ...) and a body"
