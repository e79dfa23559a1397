"""A session after a refused or an undone directive is one that never saw it: values, places, order, random numbers."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

from tests.generator.session import check, standing
from venture_lite import Venture, VentureError

BEGINNING = """
[assume mu (mem (lambda (i) (normal 0 1)))]
[assume z (mem (lambda (i) (flip 0.3)))]
[observe (normal (mu 1) 1) 0.5]
[predict (normal (mu (if (z 1) 2 3)) 1)]
"""
# of the same shapes as what was refused
AFTERWARDS = """
for i in 1...n: [predict (normal 0 1)]
for i in 1...n: [predict (normal (mu i) 1)]
[assume late (normal 0 1)]
[predict (map (lambda (i) (normal i 1)) (list 1 2))]
[infer (repeat 3 (do (mh default one 3) (gibbs (choices 'finite) each 1)))]
"""
ROWS = {"n": 4, "ys": [0.1, 0.2, 0.3, 0.4], "sds": [1, 1, 1, -1]}

REFUSED = {
    "a draw of a parameter": "[observe (normal (normal 0 1) -1) 1]",
    "a sum observed": "[observe (+ (normal 0 1) (normal 0 1)) 1]",
    "a prediction": "[predict (normal (mu 7) (- 0 1))]",
    "an assume": "[assume late (list (mu 8) (normal 0 -1))]",
    "a value forced": "[force (mu 9) (list 1)]",
    "no choice forced": "[force (+ (normal 0 1) (normal 0 1)) 1]",
    "definitions of the standard library": "[predict (map (lambda (i) (normal i -1)) (list 1 2))]",
    "a sample": "[sample (list (normal 0 1) (normal 0 -1))]",
    "a condition": "[condition (list (mu 10) 1)]",
    "a query": "[predict (enumerate (lambda () (if (z 4) (flip 0.3) (flip 2))))]",
    "rows, one by one": "for i in 1...n: [observe (normal (mu i) {sds[i]}) {ys[i]}]",
    "rows together": "for i in 1...n: [observe (normal 0 {sds[i]}) {ys[i]}]",
    "predicted rows": "for i in 1...n: [predict (normal (mu (+ i 20)) {sds[i]})]",
    "two kinds of rows": "for i in 1...n: [observe (normal (mu i) 1) {ys[i]}] [observe (normal 0 {sds[i]}) 1]",
    "rows of drawn keys": "for i in 1...n: [observe (normal (mu (if (z i) 1 2)) {sds[i]}) {ys[i]}]",
}

DONE = (
    "[assume late (normal 0 1)]",
    "[observe (normal (mu (if (z 2) 3 1)) 1) 2]",
    "[predict (map (lambda (i) (normal i 1)) (list 1 2))]",
    "[force (mu 9) 1]",
    "for i in 1...n: [observe (normal (mu i) 1) {ys[i]}]",
    "for i in 1...n: [observe (normal 0 1) {ys[i]}]",
    "late: [assume late (mu 5)] [forget late] [sample (normal 0 1)]",
)


def execute(venture: Venture, text: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return venture.execute(text, **{name: ROWS[name] for name in ROWS if re.search(rf"\b{name}\b", text)})


def sessions(chains: int) -> tuple[Venture, Venture]:
    made = Venture(seed=7, chains=chains), Venture(seed=7, chains=chains)
    for venture in made:
        execute(venture, BEGINNING)
    return made


def assert_alike(venture: Venture, twin: Venture) -> None:
    assert standing(venture) == standing(twin)
    for one in (venture, twin):
        execute(one, AFTERWARDS)
        check(one)
    assert standing(venture) == standing(twin)


@pytest.mark.parametrize("chains", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_directive_leaves_the_session_as_if_it_had_never_been(what: str, chains: int) -> None:
    venture, twin = sessions(chains)
    with pytest.raises(VentureError):
        execute(venture, REFUSED[what])
    assert_alike(venture, twin)


@pytest.mark.parametrize("chains", [1, 2])
@pytest.mark.parametrize("text", DONE)
def test_so_does_one_that_is_undone(text: str, chains: int) -> None:
    venture, twin = sessions(chains)
    undo = venture.undo()
    execute(venture, text)
    undo.take_back()
    assert_alike(venture, twin)


def test_of_a_loop_the_passes_before_the_refused_one_stay() -> None:
    """Also what a directive of the same pass has drawn, which is done."""
    venture, twin = sessions(1)
    with pytest.raises(VentureError, match="i = 2"):
        execute(venture, "for i in 1...n: [sample (normal 0 1)] [force (mu 1) i] [sample (normal (mu 30) (- 1.5 i))]")
    execute(twin, "for i in 1...1: [sample (normal 0 1)] [force (mu 1) i] [sample (normal (mu 30) (- 1.5 i))]")
    execute(twin, "[sample (normal 0 1)] [force (mu 1) 2]")
    assert_alike(venture, twin)


def test_rows_that_were_refused_are_no_evidence() -> None:
    venture = Venture(seed=1)
    venture.assume("x", "(normal 0 1)")
    loop = "for i in 1...3: [{} (normal x {{sds[i]}}){}]"
    with pytest.raises(VentureError):
        venture.execute(loop.format("observe", " 1"), sds=[1, 1, -1])
    venture.execute(loop.format("predict", ""), sds=[1, 1, 1])
    assert venture.infer("(smc 20 (collect x))").evidence.log == pytest.approx(0.0, abs=1e-12)
    venture.freeze(2)


def test_a_name_that_only_a_refused_assume_awaited_is_free() -> None:
    venture = Venture(seed=1)
    with pytest.raises(VentureError):
        venture.execute("[assume f (lambda () (later (nobody)))] [assume later 1]")
    venture.register("later", function=lambda x: x + 1.0)
    assert venture.sample("(later 1)") == 2.0
