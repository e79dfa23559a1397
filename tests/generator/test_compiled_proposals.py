"""Learned proposals on random programs: a rejection restores, an interruption does no harm, a seed gives one result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.generator.directives import random_program
from tests.generator.session import check, infer, load, state
from tests.generator.test_programs import interrupt_everywhere
from venture_lite import Venture, VentureError
from venture_lite.engines.compiled.compiled import proposers_of
from venture_lite.engines.compiled.moves import CompiledMH

CHUNK = 10
FAST = [pytest.param(0, id=f"0..{CHUNK - 1}")]
SLOW = [pytest.param(first, id=f"{first}..{first + CHUNK - 1}") for first in range(0, 60, CHUNK)]
BLOCKS = ("r one", "r all", "s one", "s all", "d one", "d all")
"""Scopes of the generated programs: of numbers, of anything, of discrete choices."""


@pytest.fixture(autouse=True)
def _hardly_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.networks.fitting.LEAST_STEPS", 3)
    monkeypatch.setattr("venture_lite.networks.fitting.PASSES", 1)


def learning(blocks: str) -> str:
    return f"(compile p {blocks} 'worlds 100 'hidden 2 'components 2)"


def learned(venture: Venture, most: int = len(BLOCKS)) -> list[str]:
    """The blocks for which there are proposals now: p0, p1 and on, so many at most."""
    found: list[str] = []
    for blocks in BLOCKS:
        if len(found) == most:
            break
        try:
            infer(venture, learning(blocks).replace(" p ", f" p{len(found)} "))
        except VentureError:
            continue
        if f"p{len(found)}" in proposers_of(venture.traces[0]):
            found.append(blocks)
    return found


def kernels(found: list[str], times: int) -> str:
    moves = (f"(compiled_mh p{at} {blocks} 'defensive 0.3 {times})" for at, blocks in enumerate(found))
    return f"(do {' '.join(moves)})"


def assert_rejection_restores(seed: int, patch: pytest.MonkeyPatch) -> int:
    venture = load(random_program(seed), seed)
    found = learned(venture)
    before, log_score = state(venture), np.asarray(venture.log_score())
    with patch.context() as meanwhile:
        meanwhile.setattr(CompiledMH, "_decide", lambda self, weight: False)
        infer(venture, kernels(found, 4))
    assert state(venture) == before, f"program {seed}"
    assert np.array_equal(venture.log_score(), log_score)
    infer(venture, kernels(found, 3))
    check(venture)
    return len(found)


@pytest.mark.parametrize("first", FAST)
def test_rejection_restores_the_trace(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = sum(assert_rejection_restores(seed, monkeypatch) for seed in range(first, first + CHUNK))
    assert found >= CHUNK


@pytest.mark.slow
@pytest.mark.parametrize("first", SLOW)
def test_rejection_restores_the_trace_of_many_programs(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + CHUNK):
        assert_rejection_restores(seed, monkeypatch)


def assert_interruptions_are_harmless(seed: int) -> bool:
    """In worlds and in training nothing changes, and no proposer is left; between transitions the state is valid."""
    venture = load(random_program(seed), seed)
    blocks = next(iter(learned(venture, 1)), None)
    if blocks is None:
        return False
    known = proposers_of(venture.traces[0])
    known.clear()

    def compile_anew() -> None:
        assert not known
        infer(venture, learning(blocks))

    assert interrupt_everywhere(venture, compile_anew, restores=True) > 4
    assert known
    interrupt_everywhere(venture, lambda: infer(venture, f"(compiled_mh p {blocks} 5)"), restores=False)
    return True


@pytest.mark.parametrize("first", FAST)
def test_an_interruption_at_every_point_leaves_a_valid_trace(first: int) -> None:
    assert sum(assert_interruptions_are_harmless(seed) for seed in range(first, first + 2))


@pytest.mark.slow
@pytest.mark.parametrize("first", SLOW)
def test_an_interruption_at_every_point_of_many_programs_leaves_a_valid_trace(first: int) -> None:
    for seed in range(first, first + CHUNK):
        assert_interruptions_are_harmless(seed)


def history(seed: int, path: Path | None = None) -> list[Any]:
    """A score after each of some rounds, and the state in the end; proposers go through a file where one is given."""
    venture = load(random_program(seed), seed)
    found = learned(venture)
    if path is not None:
        infer(venture, f'(save_proposers "{path}")')
        venture = load(random_program(seed), seed)
        infer(venture, f'(load_proposers "{path}")')
    scores = []
    for _ in range(3):
        infer(venture, kernels(found, 2))
        scores.append(np.asarray(venture.log_score()).tolist())
    return [*scores, state(venture)]


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, CHUNK), marks=pytest.mark.slow)])
def test_the_same_seed_gives_the_same_draws(seeds: range, tmp_path: Path) -> None:
    """Also by proposers that another session trained."""
    for seed in seeds:
        expected = history(seed)
        assert history(seed) == expected, f"program {seed}"
        assert history(seed, tmp_path / "p.npz") == expected, f"program {seed}"
