"""Every choice has an address of its own and a place of its own in the order of a sweep, and keeps both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.audit import invariants
from venture_lite.audit.invariants import check
from venture_lite.errors import InternalError
from venture_lite.interpreter.addresses import address, block_order
from venture_lite.interpreter.selection import Selection, Selector, order_of_key

KEYS = """
    [assume coin (mem (lambda (v) (tag 's v (flip 0.3))))]
    [assume made (lambda (i) (lambda () i))] [assume one (made 1)] [assume two (made 2)]
    [assume keys (list 1 -1 0.5 "1" 'a "a" (list 1) (list "1") (list) (vector 1) (vector 1 2) (vector 1.0000000001 2)
        (matrix (list (list 1 2))) (dict "a" 1) (dict 'a 1) (dict "a" (vector 1 2)) (dict "a" (vector 1 2.0000000001))
        one two (list one) (mem one) (mem one) (make_crp 1) (make_crp 1) flip exp (dict "a" one) (dict "a" two))]
    [predict (map coin keys)]"""

FORMS = {
    "keys": KEYS,
    "makers in makers": """
        [assume maker (mem (lambda (i) (mem (lambda (j) (mem (lambda (k) (flip)))))))]
        [predict (list (((maker 1) 1) 1) (((maker 1) 2) 1) (((maker 2) 1) 1) (((maker 2) 1) 2))]""",
    "one lambda memoized twice": """
        [assume body (lambda (k) (flip))] [assume f (mem body)] [assume g (mem body)]
        [predict (list (f 1) (g 1) (f 2) (g 2))]""",
    "memos in calls and branches": """
        [assume fresh (lambda (p) (if (< p 0.5) (let ((g (mem (lambda (k) (flip p))))) (g 1)) (flip p)))]
        [predict (map fresh (list 0.1 0.2 0.3 0.7 0.8))]
        [predict (map fresh (list 0.1 0.2 0.3 0.7 0.8))]""",
    "processes": """
        [assume process (mem (lambda (d) (let ((crp (make_crp 1)) (atom (mem (lambda (k) (normal 0 1)))))
            (lambda () (atom (crp))))))]
        [predict (list ((process 1)) ((process 1)) ((process 2)) ((process 3)))]""",
}


@pytest.mark.thorough
@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_a_sweep_visits_every_block_once(text: str) -> None:
    venture = Venture(seed=1)
    venture.execute(text)
    (model,) = venture.traces
    check(model)
    for scope, found in model.trace.scopes.items():
        visited = list(Selection(model, scope, Selector("each")).sweep())
        assert len(visited) == found.block_count() > 0
    venture.infer("(repeat 3 (mh default each 1))")
    check(model)


def test_the_order_does_not_depend_on_how_many_directives_stand_before() -> None:
    """It begins with the directive: keys of memoized families are compared with each other alone."""

    def draws(before: str) -> Any:
        venture = Venture(seed=1)
        venture.execute(f"""{before} [assume x (flip (lookup (list 0.2 0.5 0.8) (uniform_discrete 0 3)))]
            [assume coin (mem (lambda (i) (flip 0.7)))] [predict (list (coin 0) (coin 1))]
            [assume make (lambda (i) (lambda () i))] [assume one (make 1)] [assume two (make 2)]
            [assume z (list (coin two) (coin one) (coin (mem one)) (coin (make_crp 1)) (coin exp))]
            [assume y (flip (if x 0.1 0.6))]""")
        return venture.infer("(repeat 20 (do (mh default each 1) (collect x y (labelled (first z) z))))")

    plain, shifted = draws(""), draws("[assume same (lambda (x) x)] [assume also same]")
    assert all(np.array_equal(plain[name], shifted[name]) for name in ("x", "y", "z"))


def test_the_checker_finds_choices_that_share_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    venture = Venture(seed=1)
    venture.execute(FORMS["makers in makers"])
    (model,) = venture.traces
    monkeypatch.setattr(invariants, "address", lambda trace, node: address(trace, node)[:2])
    with pytest.raises(InternalError, match="have one address"):
        check(model)


def test_a_block_that_shares_its_place_is_visited(monkeypatch: pytest.MonkeyPatch) -> None:
    venture = Venture(seed=1)
    venture.execute(KEYS)
    (model,) = venture.traces
    monkeypatch.setattr("venture_lite.interpreter.selection.block_order", lambda trace, key: ("one", "place"))
    assert Counter(map(len, Selection(model, "s", Selector("each")).sweep())) == {1: 28}


def test_numbers_that_are_equal_are_one_place() -> None:
    (model,) = Venture(seed=1).traces

    def order(key: Any) -> Any:
        return block_order(model.trace, key)

    assert order(1) == order(1.0) == order(True)
    assert order(np.array([0.0])) == order(np.array([-0.0]))
    assert order(-2) < order(0.5) < order(1) < order("1") < order((1,)) < order(np.array([1.0]))
    assert order(np.array([2.0, 1.0])) < order(np.array([10.0, 1.0]))


def test_procedures_registered_under_one_name_are_told_apart() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume coin (mem (lambda (v) (tag 's v (flip 0.3))))]")
    for density in (0.0, 1.0):
        venture.register("own", simulate=lambda rng: 1.0, log_density=lambda value, d=density: d)
        venture.execute("[predict (coin own)]")
    check(venture.traces[0])
    (statistics,) = venture.infer("(gibbs s each 1)").statistics
    assert statistics.transitions == 2


CHAIN = """
    [assume next (mem (lambda (f) (tag 'x f (let ((x (flip 0.5))) (lambda () (+ x (f)))))))]
    [assume go (lambda (n f) (if (= n 0) f (go (- n 1) (next f))))]
    [assume end (go 1500 (lambda () 0))]"""


@pytest.mark.thorough
def test_keys_that_hold_keys_have_no_bound() -> None:
    """Each family goes by a procedure that another one made: the last address would be 1,500 addresses long."""
    venture = Venture(seed=1)
    venture.execute(CHAIN)
    (model,) = venture.traces
    places = {address(model.trace, node) for node in list(model.trace.default.bag)[-3:]}
    assert len(places) == 3


REMADE = """
    [assume b (tag 'b 0 (flip 0.5))]
    [assume coin (mem (lambda (f) (flip 0.2)))]
    [assume y (let ((f (if b (lambda () 1) (lambda () 2)))) (if b (coin f) (not (coin f))))]
    [observe (flip (if y 0.9 0.3)) true]"""


def test_a_choice_that_is_made_again_has_its_address() -> None:
    """Its key is a procedure that is made again too, in another row."""
    venture = Venture(seed=1)
    venture.execute(REMADE)
    (model,) = venture.traces
    seen: dict[Any, set[Any]] = {True: set(), False: set()}
    rows = set()
    for _ in range(40):
        venture.infer("(mh b 0 1)")
        (coin,) = (node for node in model.trace.default.bag if model.trace.decode(node)[0].name == "coin")
        seen[venture.report("b")].add(address(model.trace, coin))
        rows.add(coin)
    assert len(rows) > 1
    assert len(seen[True]) == len(seen[False]) == 1
    assert seen[True] != seen[False]


@pytest.mark.parametrize(
    "kernel",
    ["(pgibbs b ordered 3 1)", "(gibbs b all 1)", pytest.param("(gibbs default all 1)", marks=pytest.mark.slow)],
)
@pytest.mark.thorough
def test_a_retained_choice_is_found_by_its_address(kernel: str) -> None:
    """b and not b weigh 0.2 0.9 + 0.8 0.3 and 0.2 0.3 + 0.8 0.9; 5.5 standard errors of 500 independent draws."""
    venture = Venture(seed=2)
    venture.execute(REMADE)
    draws = venture.infer(f"(repeat 1000 (do {kernel} (collect b)))")
    check(venture.traces[0])
    exact = 0.42 / (0.42 + 0.78)
    assert abs(np.mean(draws["b"]) - exact) < 5.5 * np.sqrt(2 * exact * (1 - exact) / 1000)


def test_a_range_of_blocks_compares_keys_of_every_kind() -> None:
    venture = Venture(seed=1)
    venture.execute("""
        [assume x (tag 'x 1 (normal 0 1))] [assume y (tag 'x "two" (normal 0 1))]
        [assume z (tag 'x 3 (normal 0 1))] [assume w (tag 'x (vector 1 2) (normal 0 1))]""")
    for text, blocks in (("1 3", 2), ('1 "two"', 3), ('"a" "z"', 1), ("3 (vector 9 9)", 3), ("'a 'b", 0)):
        (statistics,) = venture.infer(f"(mh x (ordered_range {text}) 5)").statistics
        assert statistics.transitions == 5 * blocks


@pytest.mark.parametrize("scope", ["default", "(choices 'finite)", "(choices z k)"])
def test_a_sweep_goes_forward_only(scope: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice that the last block brings has a place before it: whether it is visited must not depend on whether it
    came just now."""
    v = Venture(seed=1, kernels="interpreted")
    v.execute(
        "[assume seat (make_crp 1)] [assume z (mem (lambda (i) (seat)))]"
        "[assume k (uniform_discrete 0 5)] [predict (z k)]"
    )
    visited: list[tuple[Any, ...]] = []
    sweep = Selection.sweep

    def watched(self: Selection) -> Iterator[list[int]]:
        visited.clear()
        for nodes in sweep(self):
            visited.append(order_of_key(self.model, self.scope, self.key))
            yield nodes

    monkeypatch.setattr(Selection, "sweep", watched)
    seen = set()
    for _ in range(20):
        v.infer(f"(gibbs {scope} each 1)")
        first, last = visited
        assert first < last
        seen.add(first)
    assert len(seen) > 1
