"""Geweke's test of the engines that keep something of the rows: bounds and brightness, expansions, factors of steps.

False alarms: each test compares at most 14 means at 5.5 standard errors, 6e-7.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.geweke.linear_models import CLASSES, FEATURES, LINE
from tests.geweke.models import Model
from tests.geweke.test_joint_distribution import FORWARD, assert_joint_distribution_is_kept, successive_conditional
from tests.statistics import Floats, assert_same_mean
from venture_lite import Venture
from venture_lite.engines.firefly import firefly
from venture_lite.engines.firefly.firefly import Firefly, FireflySettings
from venture_lite.engines.firefly.flymc import GaussianStep

UNTUNED = 1.5
"""Where Jaakkola and Jordan's bound touches as long as nothing is known of the data."""

CLASSES_ENGINES = {
    "bright rows": "(flymc w all auto 'untuned 0.4 'drift 1 3) (mh tau one 'drift 0.7 2)",
    "bright rows, bounds at the mode": "(flymc w 0 auto 'map 0.3 'mala 1 'precondition 2) (mh tau one 'drift 0.7 2)",
    "bright rows, drawn explicitly": "(flymc w all auto 'untuned 0.4 'slice 2 'explicit 0.5 2) (mh tau one 2)",
    "bright rows and mh": "(flymc w all auto 'untuned 0.4 'drift 1 2) (mh default one 2)",
    "some rows": "(subsampled_mh w all 2 0 'drift 1.2 4) (mh tau one 'drift 0.7 2)",
    "some rows, expanded": "(subsampled_mh w all 2 0 'drift 1.2 'proxy 4) (mh tau one 'drift 0.7 2)",
    "some rows, steps scaled": "(subsampled_mh w 0 2 0 'drift 2 'precondition 'proxy 3) (mh tau one 'drift 0.7 2)",
}
LINE_ENGINES = {
    "bright rows": "(flymc w all auto 'untuned 0.4 'drift 1 4) (mh s one 'drift 0.7 2)",
    "bright rows, bounds at the mode": "(flymc w 0 auto 'map 0.3 'mala 1 'precondition 2) (mh s one 'drift 0.7 2)",
    "bright rows, drawn explicitly": "(flymc w 0 auto 'untuned 0.4 'slice 2 'explicit 0.5 3) (mh s one 'drift 0.7 2)",
    "some rows": "(subsampled_mh w one 2 0 'drift 1 5) (mh s one 'drift 0.7 2)",
    "some rows, expanded": "(subsampled_mh w all 2 0 'drift 1 'proxy 5) (mh s one 'drift 0.7 2)",
    "some rows of the scale": "(subsampled_mh s all 2 0 'drift 0.8 3) (mh w all 'drift 1 4)",
}
PAIRS = [
    pytest.param(model, engine, id=f"{name}:{title}")
    for name, model, engines in (("classes", CLASSES, CLASSES_ENGINES), ("line", LINE, LINE_ENGINES))
    for title, engine in engines.items()
]


def test_engine_keeps_the_joint_distribution() -> None:
    engine = CLASSES_ENGINES["bright rows"]
    assert_joint_distribution_is_kept(CLASSES, successive_conditional(CLASSES, engine, 1000), engine)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "engine"), PAIRS)
def test_engine_keeps_the_joint_distribution_over_many_draws(model: Model, engine: str) -> None:
    assert_joint_distribution_is_kept(model, successive_conditional(model, engine, 2_500), engine)


# ------------------------------------------------------------------------------------------------------- brightness


STEEP = 4 * FEATURES
"""Far from where the bounds touch rows are often bright."""
HARDLY = 0.005, 2
"""A probability of proposing a dark row, and passes, that leave what the brightness began with."""
STEEP_CLASSES = CLASSES.program.replace("(- i 1.75)", "(- (* 4 i) 7)")


def simulate_brightness(rng: np.random.Generator, n: int) -> dict[str, Floats]:
    """Parameters, classes and brightness from the prior, by the bound's formula (Jaakkola and Jordan 2000)."""
    tau = rng.gamma(4, 1 / 4, n)
    w = tau * rng.standard_normal(n)
    eta = w[:, None] * STEEP
    y = rng.random((n, 3)) < 1 / (1 + np.exp(-eta))
    signed = np.where(y, eta, -eta)
    curved = np.tanh(UNTUNED / 2) / (4 * UNTUNED)
    log_bound = 0.5 * (signed - UNTUNED) - curved * (signed**2 - UNTUNED**2) - np.log1p(np.exp(-UNTUNED))
    bright = rng.random((n, 3)) < -np.expm1(log_bound + np.log1p(np.exp(-signed)))
    return functions(tau, w, y, bright)


def functions(tau: Floats, w: Floats, y: Floats, bright: Floats) -> dict[str, Floats]:
    """What is compared, of parameters (draws,), classes and brightness (draws, 3)."""
    return {
        "bright_2": bright[:, 1] * 1.0,
        "bright_3": bright[:, 2] * 1.0,
        "tau": tau,
        "w_square": w * w,
        "w_y1": w * y[:, 0],
        "w_bright_3": w * bright[:, 2],
        "w_y3_bright_3": w * y[:, 2] * bright[:, 2],
        "tau_bright_1": tau * bright[:, 0],
        "several": (bright.sum(axis=1) > 1) * 1.0,
    }


def with_brightness(draws: int, explicit: float | None, q: float, passes: int) -> dict[str, Floats]:
    """The successive-conditional simulator, with the brightness that the engine leaves.

    Of the passes for one draw of the data the first begins with a brightness drawn anew. That shows where there are few
    passes and dark rows are hardly ever proposed, resampling where there are many and often.
    """
    venture = Venture(seed=25)
    venture.execute(STEEP_CLASSES)
    (model,) = venture.traces
    settings = FireflySettings(None, False, q, explicit, False)
    state = Firefly(model, model.trace.scopes["w"].everything(), settings, print)
    move, step = GaussianStep(), 1.0
    tau, w, y, bright = np.empty(draws), np.empty(draws), np.empty((draws, 3)), np.zeros((draws, 3))
    for i in range(draws):
        for _ in range(passes):
            state.refresh()
            state.resample(settings)
            move(state, step)
        tau[i], w[i] = venture.sample("tau"), venture.sample("w")
        y[i] = [venture.report(f"y{n}") for n in (1, 2, 3)]
        bright[i, state.brightness.bright] = 1
        venture.infer("(do (mh data one 1) (mh tau one 'drift 0.7 2) (mh w one 2))")
    return functions(tau, w, y, bright)


def assert_brightness_is_kept(found: dict[str, Floats]) -> None:
    forward = simulate_brightness(np.random.default_rng(26), FORWARD)
    for name, values in found.items():
        assert_same_mean(values, forward[name], name)


@pytest.mark.slow
@pytest.mark.parametrize(("explicit", "q", "passes"), [(None, 0.3, 4), (0.5, 0.3, 4), (None, *HARDLY)])
def test_the_joint_distribution_with_the_brightness_is_kept(explicit: float | None, q: float, passes: int) -> None:
    assert_brightness_is_kept(with_brightness(3_000, explicit, q, passes))


@pytest.mark.slow
def test_rows_that_begin_dark_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where data are redrawn the brightness is to be drawn from its conditional, not to begin anywhere."""
    monkeypatch.setattr(firefly, "bright_probability", np.zeros_like)
    with pytest.raises(AssertionError, match="standard errors"):
        assert_brightness_is_kept(with_brightness(1000, None, *HARDLY))
