"""Candidates weighed the short way: the draws, the trace and the generator end as with regeneration alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.generator.directives import random_program
from tests.generator.session import check, infer, load, state
from venture_lite import Venture, VentureError
from venture_lite.inference.candidates import Candidates
from venture_lite.inference.single_gibbs import SingleGibbs
from venture_lite.trace import repetition
from venture_lite.trace.directives import Model
from venture_lite.trace.repetition import Repetition
from venture_lite.trace.weights import Weight

# A column's view decides of which categories its components are; what the components share is the column's.
VIEWS = """
[assume views (make_crp (lookup (list 0.3 1 3) (tag 'shared 0 (uniform_discrete 0 3))) 0.2)]
[assume view (mem (lambda (f) (tag 'view f (views))))]
[assume categories (mem (lambda (v) (make_crp 1)))]
[assume category (mem (lambda (v n) ((categories v))))]
[assume column (mem (lambda (f) (let ((var (lookup (list 0.1 0.3 1 3) (tag 'shared f (uniform_discrete 0 4)))))
    (mem (lambda (k) (make_normal_inv_chi_sq 0 1 2 var))))))]
for n in 1...5:
  [observe (((column 1) (category (view 1) n))) (if (< n 3) -1 (* n 0.3))]
  [observe (((column 2) (category (view 2) n))) (if (< n 3) -1.2 (* n 0.4))]
  [observe (((column 3) (category (view 3) n))) (- n 3)]
  [observe (((column 4) (category (view 4) n))) (sin n)]
"""
# The operator, the arguments and the number of draws of one maker that a switch turns.
SWITCH = """
[assume side (tag 'd 0 (uniform_discrete 0 4))]
[assume coin (mem (lambda (side) (make_beta_bernoulli (+ side 1) 2)))]
[assume shift (lambda (x) (+ x (* side 0.5)))]
for n in 1...4: [observe ((coin side)) (= n 1)]
[observe (normal (shift 1) 1) 2]
[observe ((coin (min side 2))) true]
[predict (coin (+ side 1))]
"""
# A new component draws its mean: regeneration alone knows when.
OWN_MEANS = """
[assume z (mem (lambda (n) (tag 'd n (uniform_discrete 0 5))))]
[assume mean (mem (lambda (k) (normal 0 3)))]
for n in 1...6: [observe (normal (mean (z n)) 1) n]
"""


@pytest.fixture(autouse=True)
def without_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SingleGibbs, "step", lambda *_: None)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each candidate that went the short way came to its end."""
    found: list[bool] = []
    weigh = Repetition.weigh

    def counting(self: Repetition, proposal: Any) -> Weight | None:
        weight = weigh(self, proposal)
        found.append(weight is not None)
        return weight

    monkeypatch.setattr(Repetition, "weigh", counting)
    return found


def by_regeneration(monkeypatch: pytest.MonkeyPatch) -> None:
    """All candidates, that of the present state too."""
    monkeypatch.setattr(Candidates, "_again", lambda self: None)
    regenerate_the_present(monkeypatch)


def regenerate_the_present(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Candidates.__init__

    def not_alone(self: Candidates, model: Model, scaffold: Any, enumeration: Any, alone: bool) -> None:
        original(self, model, scaffold, enumeration, False)

    monkeypatch.setattr(Candidates, "__init__", not_alone)


def ended(v: Venture, kernel: str) -> Any:
    infer(v, kernel)
    check(v)
    return state(v), v.traces[0].trace.rng.random()


@pytest.mark.parametrize(
    ("text", "kernel", "failures"),
    [
        (VIEWS, "(repeat 4 (do (gibbs view each 1) (gibbs shared each 1)))", True),
        (SWITCH, "(gibbs d each 6)", False),
        (OWN_MEANS, "(gibbs d each 3)", True),
    ],
)
def test_the_short_way_ends_in_the_same_state(
    text: str, kernel: str, failures: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> Any:
        v = Venture(seed=3)
        v.execute(text)
        return ended(v, kernel)

    went = counted(monkeypatch)
    found = run()
    assert sum(went) > 10
    assert failures == (not all(went))
    by_regeneration(monkeypatch)
    assert run() == found


def test_it_does_in_random_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of their choices have two values: the second one is the first that can go the short way."""
    seeds = range(60)
    regenerate_the_present(monkeypatch)
    went = counted(monkeypatch)
    found = [ended(load(random_program(seed), seed), "(gibbs d each 2)") for seed in seeds]
    assert sum(went) > 5
    by_regeneration(monkeypatch)
    assert [ended(load(random_program(seed), seed), "(gibbs d each 2)") for seed in seeds] == found


def test_an_error_on_the_short_way_leaves_the_trace_as_it_was() -> None:
    v = Venture(seed=1)
    v.execute("""
        [assume side (tag 'd 0 (uniform_discrete 0 4))]
        [assume coin (mem (lambda (k) (make_beta_bernoulli k 1)))]
        [force side 1]
        [observe ((coin (- 3 side))) true]
    """)
    before = state(v)
    with pytest.raises(VentureError, match="make_beta_bernoulli: a must be"):
        v.infer("(gibbs d each 1)")
    assert state(v) == before
    check(v)


@pytest.mark.parametrize("after", range(1, 30))
def test_an_interruption_leaves_a_valid_trace(after: int) -> None:
    v = Venture(seed=3)
    v.execute(VIEWS)
    (model,) = v.traces
    model.machine.poll_every = 5
    before = state(v)
    model.interrupt_after = after
    try:
        v.infer("(gibbs view one 1)")
    except KeyboardInterrupt:
        assert state(v) == before
    model.interrupt_after = None
    check(v)


def test_broken_makers_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A maker's arguments that are not put back are found by the invariants."""
    monkeypatch.setattr(repetition.Repetition, "_maker", lambda *_: None)
    v = Venture(seed=3)
    v.execute(VIEWS)
    found = ended(v, "(gibbs shared each 4)")
    by_regeneration(monkeypatch)
    v = Venture(seed=3)
    v.execute(VIEWS)
    assert ended(v, "(gibbs shared each 4)") != found
