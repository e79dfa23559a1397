"""A round of `compile` leaves the session as it was: trace, generator and statistics, however the round ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from venture_lite import Venture, VentureError
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.engines.compiled import rounds
from venture_lite.engines.compiled.compiled import proposers_of
from venture_lite.engines.compiled.moves import CompiledMH
from venture_lite.engines.compiled.rounds import Rounds
from venture_lite.errors import KernelError
from venture_lite.networks import fitting

# beside the block a maker, whose statistics its draws change
STEADY = """
    [assume s (tag 'x 0 (gamma 2 1))] [assume x (mem (lambda (i) (tag 'x i (normal 0 s))))] [assume m (+ (x 1) (x 2))]
    [assume c (make_beta_bernoulli 1 1)] [assume z (c)] [observe (c) true] for i in 1...2: [observe (normal (x i) 1) i]
"""
CHANGING = """
    [assume c (make_crp 1)] [assume z (mem (lambda (i) (tag 'z i (c))))]
    [assume b (tag 'x 0 (flip 0.5))] [assume m (if b 1 (tag 'x 1 (normal 0 2)))]
    for i in 1...3: [observe (normal (+ m (z i)) 1) i]
"""
Patch = pytest.MonkeyPatch
AFTER = "(repeat 20 (do (mh default one 3) (collect m)))"


def by_nothing(patch: Patch) -> None: ...


def by_an_interruption(patch: Patch) -> None:
    """Within the transitions of its second chain or of a trial."""
    start = Rounds.round

    def interrupted(self: Rounds, *given: Any) -> Any:
        self.model.interrupt_after = 40
        return start(self, *given)

    patch.setattr(Rounds, "round", interrupted)


def by_an_error(patch: Patch) -> None:
    step, made = CompiledMH.step, []

    def failing(self: CompiledMH, *given: Any) -> bool:
        made.append(step(self, *given))
        if len(made) == 40:
            raise KernelError("it fails")
        return made[-1]

    patch.setattr(CompiledMH, "step", failing)


def by_an_error_within_a_transition(patch: Patch) -> None:
    """With the block detached."""
    decide, made = CompiledMH._decide, []

    def failing(self: CompiledMH, *given: Any) -> bool:
        made.append(0)
        if len(made) == 40:
            raise KernelError("it fails")
        return decide(self, *given)

    patch.setattr(CompiledMH, "_decide", failing)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::venture_lite.VentureWarning")
@pytest.mark.parametrize(
    ("program", "block", "ended"),
    [
        (STEADY, "all", by_nothing),
        pytest.param(STEADY, "all", by_an_interruption, marks=pytest.mark.slow),
        pytest.param(STEADY, "all", by_an_error, marks=pytest.mark.slow),
        (STEADY, "all", by_an_error_within_a_transition),
        (STEADY, "one", by_an_interruption),
        pytest.param(CHANGING, "one", by_nothing, marks=pytest.mark.slow),
        (CHANGING, "one", by_an_interruption),
        (CHANGING, "one", by_an_error_within_a_transition),
    ],
)
def test_a_round_leaves_the_session_as_it_was(
    program: str, block: str, ended: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    monkeypatch.setattr(fitting, "LEAST_STEPS", 20)
    monkeypatch.setattr(fitting, "PASSES", 1)
    monkeypatch.setattr(rounds, "TRANSITIONS", 24)
    monkeypatch.setattr(rounds, "TRIED", 12)
    # so short a chain has not mixed, and there are candidates to try all the same
    monkeypatch.setattr(rounds, "MIXED", 1e9)
    ended(monkeypatch)
    venture, other = Venture(seed=3), Venture(seed=3)
    for each in (venture, other):
        each.execute(program)
    model = venture.traces[0]
    before, state = snapshot(model), model.trace.rng.bit_generator.state
    learn = f"(compile q x {block} 'worlds 120 'hidden 2 'rounds 1)"
    if ended is by_nothing:
        venture.infer(learn)
        assert all(len(report.rounds) == 1 for report in proposers_of(model)["q"].reports)
    else:
        with pytest.raises((VentureError, KeyboardInterrupt)):
            venture.infer(learn)
        model.interrupt_after = None
        assert "q" not in proposers_of(model)
    assert snapshot(model) == before
    assert model.trace.rng.bit_generator.state == state
    check(model)
    # nor is anything kept that moves differently from here
    assert venture.infer(AFTER)["m"].tobytes() == other.infer(AFTER)["m"].tobytes()
