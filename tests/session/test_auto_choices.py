"""What `auto` composes for choices of finite support: those that hold one another, and labels whose members choose."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.errors import VentureWarning

TIED = {
    # the values of each, and whether single choices come to all of them
    "[assume x (categorical (list 0.2 0.5 0.3))] [predict (draw (enumerate (lambda () (if (= x 0) 0 2))))]": (3, False),
    "[assume y (flip 0.3)] [assume x (categorical (if y (vector 0.5 0.5 0) (vector 0 0 1)))]": (3, False),
    "[assume n (uniform_discrete 0 4)] [assume x (uniform_discrete (* 2 n) (+ 2 (* 2 n)))]": (8, False),
    "[assume n (uniform_discrete 0 4)] [assume x (uniform_discrete 0 (+ n 1))]": (4, True),
    "[assume y (flip 0.5)] [assume x (flip (if y 0.999 0.001))]": (2, True),
}


@pytest.mark.parametrize("program", TIED)
def test_choices_that_hold_one_another_are_drawn_together(program: str) -> None:
    count, is_free = TIED[program]
    for seed in range(3):
        v = Venture(seed=seed)
        v.execute(program)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VentureWarning)
            draws = v.auto(draws=60, warmup=20, target_ess=1, chains=2)
        assert draws.program is not None
        assert ("all 1)" in draws.program) == (not is_free)
        if not is_free:
            assert all(len(set(chain)) == count for chain in np.asarray(draws["x"]).tolist())


def test_of_too_many_that_hold_one_another_it_is_said() -> None:
    v = Venture(seed=1)
    v.execute("""[assume y (mem (lambda (i) (flip 0.3)))] [assume x (mem (lambda (i) (binomial 3 (if (y i) 0 1))))]
        [predict (sum (map x (range 20)))]""")
    with pytest.warns(VentureWarning, match="auto: y and x hold one another"):
        v.auto(draws=20, warmup=20, target_ess=1, chains=1)


MEMBERS = {
    "a branch that a parameter decides": "(if (or (m (z n)) (flip 0.4)) 1 0)",
    "a process over a process": "(if (m (t (z n))) 1 0)",
    "a key that is a draw": "(if (f (z n) (uniform_discrete 0 3)) 1 0)",
}


@pytest.mark.thorough
@pytest.mark.parametrize("read", MEMBERS)
def test_classes_whose_members_make_choices_are_not_split(read: str) -> None:
    """In no state: what `split_merge` refuses does not depend on it."""
    for seed in range(3):
        v = Venture(seed=seed)
        v.execute(
            f"""[assume crp (make_crp 1)] [assume other (make_crp 2)] [assume z (mem (lambda (n) (crp)))]
            [assume t (mem (lambda (k) (other)))] [assume m (mem (lambda (k) (flip 0.5)))]
            [assume f (mem (lambda (k j) (flip 0.5)))]
            for n in 1...6: [observe (normal {MEMBERS[read]} 1) {{y[n]}}]""",
            y=[0.1, 1.2, 0.9, -0.5, 1.4, 0.3],
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VentureWarning)
            program = v.auto(draws=20, warmup=20, target_ess=1, chains=1).program
        assert program is not None
        assert "split_merge" not in program
