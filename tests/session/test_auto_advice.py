"""What `auto` says of a model that might be written otherwise."""

from __future__ import annotations

import pytest

from venture_lite import Venture
from venture_lite.session.auto.advice import written_apart

STATES = "[assume z (mem (lambda (t) (if (= t 0) true %s)))] for i in 1...3: [observe (flip (if (z i) 0.9 0.2)) true]"


@pytest.mark.parametrize(
    ("program", "is_told"),
    [
        (STATES % "(if (z (- t 1)) (flip 0.9) (flip 0.1))", True),
        (STATES % "(flip (if (z (- t 1)) 0.9 0.1))", False),
        # another distribution, a predicate that is always the same, and a choice that decides nothing
        (STATES % "(if (z (- t 1)) (flip 0.9) (poisson 0.1))", False),
        (STATES % "(if (= t 1) (flip 0.9) (flip (if (z (- t 1)) 0.9 0.1)))", False),
        ("[assume k (flip)] [assume m (if k (normal 0 1) (normal 3 1))] [observe (normal m 1) 2]", False),
    ],
)
def test_states_that_are_written_in_branches_are_told_of(program: str, is_told: bool) -> None:
    v = Venture(seed=1)
    v.execute(program)
    (model,) = v.traces
    lines = list(written_apart(model, model.trace.default.everything()))
    assert len(lines) == is_told
    if is_told:
        assert lines[0].startswith("<input>:1:45: each branch is a choice of its own")
        assert "(flip (if ... p q)) in place of (if ... (flip p) (flip q))" in lines[0]
