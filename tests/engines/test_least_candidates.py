"""A block with too many candidates, where structure changes: refused before they are weighed, and no other block is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.generator.directives import random_program
from tests.generator.session import check, infer, load
from venture_lite import Venture
from venture_lite.engines import gibbs
from venture_lite.engines.enumeration import Enumeration
from venture_lite.errors import KernelError

SUM = "[observe (normal (sum (map (lambda (x) (if x 1 0)) xs)) 1) 5]"
SEATED = "[assume crp (make_crp 1)] [assume zs (map (lambda (i) (crp)) (range 12))]"
TOO_MANY = {
    "choices of one evaluation": f"[assume xs (map (lambda (i) (flip 0.3)) (range 30))] {SUM}",
    "a choice decides on each": f"[assume xs (map (lambda (i) (if (flip 0.3) (flip 0.2) true)) (range 30))] {SUM}",
    "a choice decides on all": f"[assume xs (if (flip 0.9) (map (lambda (i) (flip)) (range 30)) (list true))] {SUM}",
    "a choice could decide on all": f"[assume xs (if (flip 1e-9) (map (lambda (i) (flip)) (range 30)) (list 1))] {SUM}",
    "labels whose classes have families": f"""{SEATED} [assume mu (mem (lambda (k) (uniform_discrete 0 4)))]
        for i in 0...11: [observe (normal (mu (lookup zs i)) 1) 1]""",
    "families of a class": """[assume crp (make_crp 1)] [assume z (mem (lambda (i) (crp)))]
        [assume mu (mem (lambda (k) (map (lambda (j) (uniform_discrete 0 4)) (range 12))))]
        for i in 1...12: [observe (normal (lookup (mu (z i)) 2) 1) 1]""",
}


@pytest.mark.parametrize("name", TOO_MANY)
def test_too_many_candidates_are_refused_before_they_are_weighed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    v, weighed = Venture(seed=1), []
    v.execute(TOO_MANY[name])
    restart = Enumeration.restart
    monkeypatch.setattr(Enumeration, "restart", lambda self: (weighed.append(None), restart(self)))
    with pytest.raises(KernelError, match="more than 100,000 candidates") as caught:
        v.infer("(gibbs (choices 'finite) each 1)")
    assert caught.value.span is not None
    assert caught.value.hint == "mh, or a smaller block"
    assert len(weighed) < 1000
    check(v)


DECIDED = "[assume xs (map (lambda (i) (if (flip 0.999) (flip 0.2) true)) (range 4))]"
SEATS = "[assume crp (make_crp 1)] [assume zs (map (lambda (i) (crp)) (range 4))] [assume m (mem (lambda (k) (flip)))]"
READ = "[assume z (let ((k (uniform_discrete 1 4))) (list k (uniform_discrete 0 k)))] [predict (first z)]"
COUNTED = {DECIDED: 3**4, f"{SEATS} for i in 0...3: [predict (m (lookup zs i))]": 15, READ: 6}


def bounds_of(v: Venture, monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """What blocks were said to have at least, and how many candidates they had."""
    bounds: list[float] = []
    found: list[tuple[float, int]] = []

    class Looking(gibbs.Gibbs):
        def _step(self, principals: list[int], at: Any) -> bool:
            bounds.clear()
            changed = super()._step(principals, at)
            found.extend((bound, len(self.weights)) for bound in bounds)
            return changed

    least_candidates = gibbs.least_candidates

    def noted(*given: Any) -> float:
        bounds.append(least_candidates(*given))
        return bounds[-1]

    monkeypatch.setattr(gibbs, "least_candidates", noted)
    monkeypatch.setattr(gibbs, "Gibbs", Looking)
    monkeypatch.setattr(gibbs, "FIRST_LOOK", 4)
    infer(v, "(gibbs (choices 'finite) each 1)")
    return found


@pytest.mark.parametrize("program", COUNTED)
def test_a_bound_is_no_product_of_all_supports(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    v = Venture(seed=1, kernels="interpreted")
    v.execute(program)
    found = bounds_of(v, monkeypatch)
    assert {count for _, count in found} == {COUNTED[program]}
    assert all(1 < bound <= count for bound, count in found)


@pytest.mark.parametrize("seed", [601, 608, 636, 650])
def test_a_bound_is_never_above_the_count(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bounds_of(load(random_program(seed), seed, kernels="interpreted"), monkeypatch)
    assert found
    assert all(1 < bound <= count for bound, count in found)
