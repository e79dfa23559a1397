"""An error or an interruption inside a directive leaves trace and session as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.generator.directives import random_program
from tests.generator.session import TRANSITIONS, check, infer, load, perform, state
from tests.generator.test_programs import interrupt_everywhere
from venture_lite import Venture
from venture_lite.audit.snapshot import snapshot
from venture_lite.errors import VentureError

PROGRAM = """
    [assume mu (normal 0 1)]
    [assume sd (gamma 2 2)]
    [assume x (mem (lambda (i) (normal mu sd)))]
    [assume z (flip 0.5)]
    [assume crp (make_crp 1.0)]
    [assume seat (mem (lambda (i) (crp)))]
    [assume coin (mem (lambda (t) (make_beta_bernoulli 1 2)))]
    data: for i in 1...4: [observe (x i) (/ i 2)]
    first: [observe ((coin (seat 1))) true]
    [predict (if z (x 9) (x 10))]"""

WRONG = [
    "[assume mu (normal 0 1)]",
    "[assume new (normal 0 (- 0 sd))]",
    "[assume new (begin (x 50) (seat 50) (lookup (list 1 2) 7))]",
    "[assume (new i) (unknown_name i)]",
    "[assume new (mem 3)]",
    "[assume new ((lambda (f) (f f)) (lambda (f) (f f)))]",
    "[predict (+ (x 60) (seat 60) (lookup (list 1 2) 7))]",
    "[predict ((coin (seat 70)) 3)]",
    "[predict (find (lambda (i) (> (x i) 1e9)) (range 90 99))]",
    "[predict (map + (list (x 90)) 2)]",
    "[predict (apply + (map x (range 90 99)))]",
    "[observe (x 1) 3]",
    "[observe (+ (x 80) 1) 3]",
    "[observe (if (< mu 9) 4 (x 81)) 3]",
    "[observe (flip (begin (x 82) 0.5)) 7]",
    "[observe (x (seat 5)) 0.4]",
    "for i in 1...6: [observe (normal (x (+ i 90)) 1) (/ 1 (- i 5))]",
    "for i in 1...6: [observe (flip (/ i 5)) true]",
    "[predict (bernoulli (lambda (i) 0))]",
    "for i in 1...30: [observe (bernoulli (lambda (j) i)) true]",
    "for i in 1...30: [observe (normal (size (list (lambda (j) i))) sd) 'red]",
    "[observe (crp) 'red]",
    "[observe (seat 7) (list 1 2)]",
    "[force (seat 1) 'red]",
    "[observe (normal 0 sd) (vector 0.5)]",
    "[observe (symmetric_dirichlet 1 3) 0]",
    "[sample (symmetric_dirichlet 1 1e300)]",
    "[sample (matmul (ones 10000000 1) (ones 1 10000000))]",
    "[force (x 1) 3]",
    "[force sd -1]",
    "[force (+ (x 1) (x 100)) 3]",
    "[forget x]",
    "[forget nothing]",
    "[forget data 17]",
    "first: [observe (normal (x 110) 1) 0.3]",
    "[sample (begin (x 120) (seat 120) (lookup (list 1 2) 7))]",
    "[infer (gibbs default all 1)]",
    "[infer (mh default one 'drift 0.5 1)]",
    "[infer (unknown default one 1)]",
]


def session(chains: int = 1) -> Venture:
    venture = Venture(seed=3, chains=chains, nested_calls=2000)
    venture.execute(PROGRAM)
    infer(venture, "(mh default one 10)")
    return venture


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.parametrize("chains", [1, 2])
@pytest.mark.thorough
def test_an_error_leaves_everything_as_it_was(text: str, chains: int) -> None:
    venture = session(chains)
    before, score = state(venture), venture.log_score()
    with pytest.raises(VentureError):
        venture.execute(text)
    assert state(venture) == before
    assert venture.log_score() == score
    check(venture)
    venture.execute("[assume new (normal mu 1)] [forget data 2] [forget first]")
    check(venture)


def test_what_holds_a_lambda_is_weighed_row_by_row() -> None:
    """A fused slot that is no number keeps a group of many rows from one call, not from its weight."""
    venture = session()
    before = venture.log_score()
    venture.execute("for i in 1...30: [observe (normal (size (list (lambda (j) (+ i j)))) 1) 0]")
    assert venture.log_score() == pytest.approx(before + 30 * (-0.5 - 0.5 * np.log(2 * np.pi)))
    check(venture)


@pytest.mark.parametrize(
    "text",
    [
        "[assume new (begin (x 50) (seat 50) (normal 0 1))]",
        "[assume new (make_uc_beta_bernoulli 1 1)]",
        "[assume (new i) (if (<= i 0) 0 (+ (x i) (new (- i 1))))]",
        "[predict (+ (x 60) (seat 60))]",
        "[observe (x 7) 3]",
        "[observe (x 9) 3]",
        "for i in 1...3: [observe (normal (x (+ i 90)) 1) i]",
        "for i in 1...3: [observe (normal mu 1) i]",
        "[observe ((coin (seat 3))) false]",
        "[force mu 3]",
        "[force z true]",
        "[force (seat 1) 9]",
        "[forget data]",
        "[forget data 3]",
        "[forget first]",
        "[sample (+ (x 1) (x 130))]",
    ],
)
@pytest.mark.thorough
def test_an_interruption_leaves_everything_as_it_was(text: str) -> None:
    venture = session()
    interrupt_everywhere(venture, lambda: venture.execute(text), restores=True)
    check(venture)


@pytest.mark.parametrize("chains", [2, 3])
def test_an_interruption_in_one_chain_takes_back_the_directive_in_all(chains: int) -> None:
    venture = session(chains)
    before = state(venture)
    last = venture.traces[-1]
    last.machine.poll_every = 1
    last.interrupt_after = 3
    with pytest.raises(KeyboardInterrupt):
        venture.execute("[assume new (+ (x 50) (seat 50) (seat 51))]")
    assert state(venture) == before
    venture.execute("[assume new (+ (x 50) (seat 50) (seat 51))]")
    check(venture)


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 20), marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_several_chains_are_as_each_alone(seeds: range) -> None:
    for seed in seeds:
        program = random_program(seed)
        together = load(program, seed, chains=3)
        alone = [Venture(seed=seed, chains=3, only_chain=k) for k in range(3)]
        for venture in alone:
            for step in program.directives:
                perform(venture, step)
        name = program.queries[0].dressed
        for transition in TRANSITIONS[::3]:
            expression = f"(repeat 3 (do {transition} (collect {name})))"
            draws = infer(together, expression)[name]
            for k, venture in enumerate(alone):
                assert np.array_equal(np.asarray(infer(venture, expression)[name])[0], np.asarray(draws)[k])
        assert [snapshot(model) for model in together.traces] == [snapshot(venture.traces[0]) for venture in alone]


def unordered(found: Any) -> Any:
    """A state in which users stand in no order: rows that move together may come in another one."""
    if isinstance(found, dict):
        return {key: sorted(value) if key == "users" else unordered(value) for key, value in found.items()}
    return [unordered(each) for each in found] if isinstance(found, (list, tuple)) else found


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 80), marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_plans_make_the_draws_that_the_interpreter_makes(seeds: range) -> None:
    """What is faster agrees with what defines: same draws, same decisions, same trace."""

    def states(seed: int, kernels: str) -> list[object]:
        venture = load(random_program(seed), seed, kernels=kernels)
        found = []
        for transition in ("(mh default one 10)", "(mh default each 2)", "(mh r one 'drift 0.7 5)", "(mh s one 5)"):
            infer(venture, transition)
            found.append(unordered(state(venture)))
        return found

    for seed in seeds:
        assert states(seed, "compiled") == states(seed, "interpreted"), f"program {seed}"
