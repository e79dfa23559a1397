"""Random programs under slices, tuned walks, rejection, own proposals, random starts: invariants, interruption."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
import pytest

from tests.generator.directives import random_program
from tests.generator.session import check, load, state
from tests.generator.test_programs import interrupt_everywhere
from venture_lite import Venture
from venture_lite.errors import KernelError

WALK = "(lambda (v) (if (flip 0.3) v (normal v 1)))"
TURN = "(lambda (v) (if (is_boolean v) (not v) (+ v (uniform_discrete -1 2))))"
ENGINES = (
    "(slice r one 1.5 4 3)",
    "(slice r each 1 3 1)",
    "(slice r all 2 2 1)",
    "(rejection d one 1)",
    "(rejection s all 1)",
    "(rejection r each 1)",
    f"(mh r one {WALK} 4)",
    f"(mh d one {TURN} 4)",
    "(mh r one 'drift 1 'adapt 20 25)",
    "(initialize)",
)
# What a random program holds may be nothing for an engine: labels, vectors, evidence in branches, hopeless data.
TRIES = 400


def infer(venture: Venture, engine: str) -> bool:
    """Run an engine; whether it could. Rejection of what is too improbable is interrupted."""
    for model in venture.traces:
        model.interrupt_after = TRIES if "rejection" in engine else None
    with warnings.catch_warnings(), contextlib.suppress(KernelError, KeyboardInterrupt):
        warnings.simplefilter("ignore")
        venture.infer(engine)
        return True
    return False


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.thorough
def test_invariants_hold(engine: str) -> None:
    ran = 0
    for seed in range(400, 408):
        venture = load(random_program(seed), seed)
        for _ in range(2):
            ran += infer(venture, engine)
            check(venture)
    assert ran >= 3


@pytest.mark.parametrize("engine", [ENGINES[0], ENGINES[4], *ENGINES[6:]])
@pytest.mark.thorough
def test_an_interruption_at_every_point_leaves_a_valid_trace(engine: str) -> None:
    for seed in range(440, 443):
        venture = load(random_program(seed), seed)

        def run(venture: Venture = venture) -> None:
            with warnings.catch_warnings(), contextlib.suppress(KernelError):
                warnings.simplefilter("ignore")
                venture.infer(engine)

        if "rejection" not in engine or infer(venture, engine):
            interrupt_everywhere(venture, run, restores=False)
            check(venture)


def test_one_transition_that_is_interrupted_leaves_the_trace_as_it_was() -> None:
    for engine in ("(slice r one 1.5 6 1)", f"(mh r one {WALK} 1)", "(rejection r one 1)"):
        venture = Venture(seed=1)
        venture.execute(
            """[assume (walk n) (if (= n 0) (scope_include 'r 0 (normal 0 1)) (normal (walk (- n 1)) 1))]
               [assume x (walk 3)] [observe (normal x 1) 2]"""
        )
        interrupt_everywhere(venture, lambda venture=venture, engine=engine: venture.infer(engine), restores=True)


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_draws() -> None:
    def history(seed: int) -> list[Any]:
        venture = load(random_program(seed), seed)
        for engine in ENGINES:
            infer(venture, engine)
        return [np.asarray(venture.log_score()).tolist(), state(venture)]

    for seed in range(450, 454):
        assert history(seed) == history(seed), f"program {seed}"
