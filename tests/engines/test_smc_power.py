"""The comparisons of `test_smc.py` fail on samplers that are wrong in one place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engines import test_smc
from venture_lite import Venture
from venture_lite.blocks.particles import PlainParticles
from venture_lite.engines.smc.populations import Populations
from venture_lite.engines.walk import Drift
from venture_lite.interpreter.tempering import Tempering
from venture_lite.kernels import column_moves


def is_noticed(model: str = "coin", way: str = "", kernel: str | None = None, particles: int = 100) -> bool:
    """Whether an estimate is found to be wrong."""
    make, moves = test_smc.CONJUGATE[model]
    v = Venture(seed=4)
    exact = make(v)
    draws = v.infer(f"(smc {particles} {way} 'runs {test_smc.RUNS} {moves if kernel is None else kernel})")
    return test_smc.beyond(draws, exact, most=np.inf) >= test_smc.FURTHEST


def test_a_sound_sampler_is_not_noticed() -> None:
    assert not is_noticed()
    assert not is_noticed(way="'tempered")


def test_an_increment_that_is_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    add, calls = Populations.add, []

    def broken(self: Populations, increments: np.ndarray) -> None:
        calls.append(None)
        # the third datum is forgotten
        add(self, increments if len(calls) != 6 else 0.0 * increments)

    monkeypatch.setattr(Populations, "add", broken)
    assert is_noticed()


def test_resampling_that_leaves_weights_as_they_were_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    resample = Populations.resample

    def broken(self: Populations, rng: np.random.Generator) -> np.ndarray:
        before = self._logs.copy()
        places = resample(self, rng)
        self._logs[:] = before.ravel()[places].reshape(before.shape)
        return places

    monkeypatch.setattr(Populations, "resample", broken)
    assert is_noticed("normal")


@pytest.mark.slow
def test_weights_that_are_never_resampled_for_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal weights for particles that were not drawn by their weights."""

    def broken(self: Populations, rng: np.random.Generator) -> np.ndarray:
        self._logs[:] = -np.log(self.particles)
        return np.arange(self.runs * self.particles)

    monkeypatch.setattr(Populations, "resample", broken)
    assert is_noticed("normal", kernel="")


@pytest.mark.slow
def test_a_walk_of_all_particles_without_its_jacobian_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    formula = Drift.formula
    monkeypatch.setattr(Drift, "formula", lambda self, *given: (formula(self, *given)[0], 0.0))
    assert is_noticed("coin", "'tempered", "(repeat 10 (mh default one 'drift 1 1))", particles=1000)


def test_a_decision_of_all_particles_that_is_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What absorbs weighs twice in the new state."""
    total = column_moves._total
    calls: list[None] = []

    def broken(*given: Any) -> np.ndarray:
        calls.append(None)
        return total(*given) * (1.0 if len(calls) % 2 else 2.0)

    monkeypatch.setattr(column_moves, "_total", broken)
    assert is_noticed("normal")


def test_moves_under_another_power_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Particles that are moved within the posterior while the likelihood counts for less."""
    power = Tempering.set

    wanted = [1.0]

    def broken(self: Tempering, value: float) -> None:
        power(self, 1.0)
        wanted.append(value)

    weigh = PlainParticles.weigh

    def undivided(self: PlainParticles, nodes: list[int]) -> np.ndarray | None:
        found = weigh(self, nodes)
        return None if found is None else found * wanted[-1]

    monkeypatch.setattr(Tempering, "set", broken)
    monkeypatch.setattr(PlainParticles, "weigh", undivided)
    assert is_noticed("normal", "'tempered")
