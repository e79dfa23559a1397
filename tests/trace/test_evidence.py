"""What an observation refuses for good, and what it takes for impossible only as the state is."""

from __future__ import annotations

import pytest

from venture_lite import Venture
from venture_lite.errors import EvidenceError

# (program, the choice that decides, the values of it that are possible)
POSSIBLE = {
    "a list of outcomes that moves": (
        "[assume x (uniform_discrete 0 3)] [observe (categorical (list 0.6 0.4) (list x 5)) 1]", {1},
    ),
    "the same in a loop": (
        """[assume x (uniform_discrete 0 3)] [assume f (lambda (k) (categorical (list 0.6 0.4) (list (+ x k) 5)))]
           for n in 1...12: [observe (f n) (+ n 1)]""",
        {1},
    ),
    "outcomes of more than one kind": (
        "[assume x (uniform_discrete 0 3)] [observe (categorical (list 0.6 0.4) (list (if (= x 2) 'a 5) 5)) 'a]", {2},
    ),
    "probabilities of which some are 0": (
        "[assume x (flip)] [observe (categorical (if x (list 1 0) (list 0 1))) 1]", {False},
    ),
    "more outcomes": ("[assume x (flip)] [observe (categorical (if x (list 0.5 0.5) (list 0.2 0.2 0.6))) 2]", {False}),
    "as many counts as there are": (
        "[assume x (uniform_discrete 1 6)] [observe (multinomial x (list 0.5 0.5)) (vector 1 1)]", {2},
    ),
    "a bound": ("[assume x (uniform_discrete 1 6)] [observe (binomial x 0.5) 4]", {4, 5}),
}  # fmt: skip


@pytest.mark.parametrize("name", POSSIBLE)
@pytest.mark.thorough
def test_what_another_state_makes_possible_is_loaded(name: str) -> None:
    program, possible = POSSIBLE[name]
    for seed in range(6):
        venture = Venture(seed=seed)
        venture.execute(program)
        venture.infer("(gibbs default each 1)")
        assert venture.report("x") in possible


@pytest.mark.parametrize(
    "program",
    [
        "[assume x (uniform_discrete 0 3)] [observe (categorical (list 0.6 0.4) (list 2 5)) 1]",
        "[assume p (dirichlet (vector 1 1 1))] [observe (categorical p) 1.5]",
        "[assume p (dirichlet (vector 1 1 1))] [observe (flip (lookup p 0)) 7]",
        "[assume x (flip)] [observe (normal (if x 0 1) 1) 'a]",
    ],
)
def test_what_no_state_makes_possible_is_an_error(program: str) -> None:
    for seed in range(4):
        with pytest.raises(EvidenceError, match="whatever its parameters are"):
            Venture(seed=seed).execute(program)
