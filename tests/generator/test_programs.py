"""What must hold of every program: exact rejection, invariants, valid interruption, reproducibility."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.generator.comparison import finite_program
from tests.generator.directives import random_program
from tests.generator.session import TRANSITIONS, check, infer, load, perform, state
from venture_lite.blocks import density, minibatch
from venture_lite.errors import KernelError
from venture_lite.interpreter import weights
from venture_lite.session import measured

if TYPE_CHECKING:
    from venture_lite import Venture

# Each chunk is one test; a failure names the seed of its program.
CHUNK = 10
FAST = [pytest.param(first, id=f"{first}..{first + CHUNK - 1}") for first in range(0, 10, CHUNK)]
SLOW_CHUNK = 100
SLOW = [pytest.param(first, id=f"{first}..{first + SLOW_CHUNK - 1}") for first in range(0, 800, SLOW_CHUNK)]

BY_KIND = "(gibbs (choices 'finite) each 1)"

TEMPERED = f"(smc 4 'tempered 'runs 2 {BY_KIND} (mh default one 2))"

PROPOSALS: tuple[tuple[str, Any, str | None], ...] = (
    ("default", "one", None),
    ("default", "one", None),
    ("default", "one", None),
    ("default", "all", None),
    ("s", "one", None),
    ("s", "all", None),
    ("s", 1, None),
    ("d", "one", None),
    ("r", "one", "drift"),
    ("r", "all", "drift"),
)


def assert_rejection_restores(seed: int) -> None:
    from tests.rejecting import propose_and_reject

    venture = load(random_program(seed), seed)
    for round_of in range(2):
        before, log_score = state(venture), venture.log_score()
        for proposal in PROPOSALS:
            for trace in venture.traces:
                propose_and_reject(trace, *proposal)
            assert state(venture) == before, f"program {seed}, round {round_of}, {proposal}"
        assert np.array_equal(venture.log_score(), log_score)
        check(venture)
        infer(venture, "(mh default one 5)")


@pytest.mark.parametrize("first", FAST)
def test_rejection_restores_the_trace(first: int) -> None:
    for seed in range(first, first + CHUNK):
        assert_rejection_restores(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", SLOW)
def test_rejection_restores_the_trace_of_many_programs(first: int) -> None:
    for seed in range(first, first + SLOW_CHUNK):
        assert_rejection_restores(seed)


@pytest.fixture
def by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are weighed as many are."""
    for module in (weights, density, minibatch, measured):
        monkeypatch.setattr(module, "NARROW", 0)


def assert_fast_ways_agree_in_finite_programs(seed: int) -> None:
    """Sweeps over all that there is, tagged or not, which only programs of finite choices allow."""
    for kernel in ("(gibbs default each 1)", BY_KIND, "(mh default each 1)", TEMPERED):
        venture = load(finite_program(seed), seed, kernels="checked")
        # gibbs is refused where weights are drawn
        with contextlib.suppress(KernelError):
            for _ in range(1 if kernel is TEMPERED else 8):
                infer(venture, kernel)
        check(venture)


@pytest.mark.parametrize("first", [20])
def test_fast_ways_agree_in_finite_programs(first: int) -> None:
    for seed in range(first, first + 3):
        assert_fast_ways_agree_in_finite_programs(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", SLOW[:2])
def test_fast_ways_agree_in_two_hundred_finite_programs(first: int) -> None:
    for seed in range(first, first + SLOW_CHUNK):
        assert_fast_ways_agree_in_finite_programs(seed)


def assert_fast_ways_agree(seed: int) -> None:
    """Each transition, made by the interpreter as well, comes out alike."""
    venture = load(random_program(seed), seed, kernels="checked")
    rng = np.random.default_rng(seed)
    for transition in (*rng.choice(TRANSITIONS, size=6, replace=False), "(gibbs d each 1)", "(slice r each 1 4 1)"):
        infer(venture, str(transition))


@pytest.mark.parametrize("first", FAST)
def test_fast_ways_make_the_interpreters_transitions(first: int) -> None:
    for seed in range(first, first + CHUNK):
        assert_fast_ways_agree(seed)


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(10, 1000, 10))])
@pytest.mark.usefixtures("by_columns")
def test_fast_ways_weigh_few_rows_by_columns(first: int) -> None:
    for seed in range(6000 + first, 6000 + first + CHUNK):
        assert_fast_ways_agree(seed)


def assert_fast_ways_agree_on_many_candidates(seed: int) -> None:
    venture = load(random_program(seed, changed=True), seed, kernels="checked")
    for transition in ("(gibbs d each 2)", "(mh default one 5)", "(gibbs d one 4)"):
        infer(venture, transition)
    check(venture)


@pytest.mark.thorough
def test_fast_ways_weigh_many_candidates_as_the_interpreter_does() -> None:
    for seed in range(CHUNK // 2):
        assert_fast_ways_agree_on_many_candidates(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", SLOW[:3])
def test_fast_ways_weigh_many_candidates_of_three_hundred_programs(first: int) -> None:
    for seed in range(first, first + SLOW_CHUNK):
        assert_fast_ways_agree_on_many_candidates(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", SLOW)
def test_fast_ways_make_the_interpreters_transitions_of_many_programs(first: int) -> None:
    for seed in range(first, first + SLOW_CHUNK):
        assert_fast_ways_agree(seed)


def assert_invariants_hold(seed: int) -> None:
    from venture_lite import Venture

    program = random_program(seed)
    venture = Venture(seed=seed)
    for step in program.directives:
        perform(venture, step)
        check(venture)
    rng = np.random.default_rng(seed)
    for step in (None, *program.operations):
        if step is not None:
            perform(venture, step)
            check(venture)
        for transition in rng.choice(TRANSITIONS, size=4, replace=False):
            infer(venture, str(transition))
            check(venture)


@pytest.mark.parametrize("first", FAST)
def test_invariants_hold_after_every_operation(first: int) -> None:
    for seed in range(first, first + CHUNK):
        assert_invariants_hold(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", SLOW[:4])
def test_invariants_hold_after_every_operation_of_many_programs(first: int) -> None:
    for seed in range(first, first + SLOW_CHUNK):
        assert_invariants_hold(seed)


@pytest.mark.parametrize("transition", TRANSITIONS)
def test_invariants_hold_after_each_kind_of_transition(transition: str) -> None:
    for seed in range(300, 303):
        venture = load(random_program(seed), seed)
        for _ in range(3):
            infer(venture, transition)
            check(venture)


def interrupt_everywhere(venture: Venture, action: Callable[[], object], *, restores: bool) -> int:
    """Interrupt `action` at its first point, then at its second, and so on, until it completes; the points met."""
    (trace,) = venture.traces
    trace.machine.poll_every = 1
    points, step = 0, 1
    before = state(venture) if restores else None
    while True:
        points += step
        # Long actions are interrupted at ever wider distances: what comes late is much like what came before.
        step = max(1, points // 8)
        trace.interrupt_after = points
        with contextlib.suppress(KeyboardInterrupt):
            action()
        # Also where the session reports the interruption in its own way.
        left, trace.interrupt_after = trace.interrupt_after, None
        if left is not None and left > 0:
            return points
        check(venture)
        if restores:
            assert state(venture) == before, f"interrupted at point {points}"


def assert_interruptions_are_harmless(seed: int) -> None:
    from venture_lite import Venture

    program = random_program(seed)
    venture = Venture(seed=seed)
    for step in program.directives:
        interrupt_everywhere(venture, lambda step=step: perform(venture, step), restores=True)
        check(venture)
    rng = np.random.default_rng(seed)
    for step in program.operations:
        transition = str(rng.choice(TRANSITIONS))
        interrupt_everywhere(venture, lambda chosen=transition: infer(venture, chosen), restores=False)
        # An inference keeps the transitions that it has made.
        interrupt_everywhere(venture, lambda step=step: perform(venture, step), restores=step.kind != "infer")
        check(venture)


@pytest.mark.parametrize("first", FAST)
def test_an_interruption_at_every_point_leaves_a_valid_trace(first: int) -> None:
    for seed in range(first, first + 5):
        assert_interruptions_are_harmless(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", SLOW[:2])
def test_an_interruption_at_every_point_of_many_programs_leaves_a_valid_trace(first: int) -> None:
    for seed in range(first, first + SLOW_CHUNK):
        assert_interruptions_are_harmless(seed)


def history(seed: int, chains: int = 1) -> list[Any]:
    """Draws and states of a program's whole session."""
    program = random_program(seed)
    venture = load(program, seed, chains)
    name = program.queries[0].dressed
    seen: list[Any] = []
    for i, transition in enumerate(TRANSITIONS):
        if i < len(program.operations):
            perform(venture, program.operations[i])
        draws = infer(venture, f"(repeat 3 (do {transition} (collect {name})))")
        seen.append(np.asarray(draws[name]).tolist())
        seen.append(np.asarray(venture.log_score()).tolist())
    return [*seen, state(venture)]


@pytest.mark.parametrize("first", FAST[:1])
def test_the_same_seed_gives_the_same_draws(first: int) -> None:
    for seed in range(first, first + 4):
        assert history(seed) == history(seed), f"program {seed}"


@pytest.mark.slow
def test_the_same_seed_gives_the_same_draws_in_every_chain() -> None:
    for seed in range(5):
        assert history(seed, chains=2) == history(seed, chains=2), f"program {seed}"


def test_other_seeds_give_other_draws() -> None:
    program = random_program(0)
    a, b = (load(program, seed) for seed in (1, 2))
    assert state(a) != state(b)


@pytest.mark.parametrize("first", FAST)
def test_forgetting_everything_leaves_nothing(first: int) -> None:
    for seed in range(first, first + CHUNK):
        venture = load(random_program(seed), seed)
        infer(venture, "(mh default one 5)")
        for directive in reversed(venture.list_directives()):
            venture.forget(directive["id"])
            check(venture)
        assert np.ravel(venture.log_score()) == pytest.approx(0.0), f"program {seed}"


@pytest.mark.parametrize("first", FAST)
def test_observing_and_forgetting_again_restores_the_score_of_what_remains(first: int) -> None:
    for seed in range(first, first + CHUNK):
        venture = load(random_program(seed), seed)
        infer(venture, "(mh default one 5)")
        name = random_program(seed).queries[0].dressed
        before = np.ravel(venture.log_score())
        venture.observe(f"(normal (+ {name} 0.5) 1.3)", 0.4, label="extra")
        with_evidence = np.ravel(venture.log_score())
        venture.forget("extra")
        check(venture)
        after = np.ravel(venture.log_score())
        if np.isfinite(before).all():
            assert after == pytest.approx(before, rel=1e-9, abs=1e-9)
            assert (with_evidence != before).all()
