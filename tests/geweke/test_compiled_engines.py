"""Geweke's test of proposals that are learned: single choices, blocks, discrete ones, supports that a parent bounds.

False alarms: each test compares at most 14 means at 5.5 standard errors, 6e-7. A density without its Jacobian fails in
every pair with a scale, one of the network alone in all (`tests/posterior/test_compiled_power.py`).
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.geweke.models import MODELS, Model, Rng
from tests.geweke.test_joint_distribution import assert_joint_distribution_is_kept, successive_conditional
from tests.statistics import Floats


def simulate_bounds(rng: Rng, n: int) -> dict[str, Floats]:
    s = rng.gamma(3, 1 / 3, n)
    u = rng.uniform(0, 1 + s)
    k = rng.integers(0, 2 + (u > 1), n)
    p = rng.beta(1 + k, 2)
    y = rng.normal((u + k)[:, None], np.sqrt(s)[:, None], (n, 2))
    coin = rng.random(n) < p
    return {
        "s": s,
        "u": u,
        "share": u / (1 + s),
        "k": k * 1.0,
        "u_k": u * k,
        "p_coin": p * coin,
        "k_coin": k * coin * 1.0,
        "u_y1": u * y[:, 0],
        "k_y2": k * y[:, 1],
        "spread": np.abs(y[:, 0] - y[:, 1]) / (1 + s),
    }


BOUNDS = Model(
    """[assume s (scope_include 'all 0 (scope_include 'c 0 (gamma 3 3)))]
    [assume u (scope_include 'all 1 (scope_include 'c 1 (uniform_continuous 0 (+ 1 s))))]
    [assume k (scope_include 'all 2 (scope_include 'd 0 (uniform_discrete 0 (if (> u 1) 3 2))))]
    [assume p (scope_include 'all 3 (scope_include 'c 2 (beta (+ 1 k) 2)))]
    [assume y (mem (lambda (i) (scope_include 'data i (normal (+ u k) (sqrt s)))))]
    [assume coin (scope_include 'data 0 (flip p))]
    [predict (y 1)] [predict (y 2)]""",
    {
        "s": "s",
        "u": "u",
        "share": "(/ u (+ 1 s))",
        "k": "k",
        "u_k": "(* u k)",
        "p_coin": "(* p coin)",
        "k_coin": "(* k coin)",
        "u_y1": "(* u (y 1))",
        "k_y2": "(* k (y 2))",
        "spread": "(/ (abs (- (y 1) (y 2))) (+ 1 s))",
    },
    simulate_bounds,
)
# What is learned, and the engine. In place of OPTIONS stands what `compile` is given for blocks of numbers.
EVERYTHING = {
    "one of all": ("(compile p all one OPTIONS)", "(compiled_mh p all one 8)"),
    "all": ("(compile p all all OPTIONS)", "(compiled_mh p all all 3)"),
}
"""Of BOUNDS, numbers and discrete choices alike."""
BY_KIND = {
    "single choices": (
        "(compile p c one OPTIONS) (compile q d one)",
        "(compiled_mh p c one 6) (compiled_mh q d one 4)",
    ),
    "each": ("(compile p c each OPTIONS)", "(compiled_mh p c each 'defensive 0.3 1) (mh d one 2)"),
    "a block": ("(compile p c all OPTIONS)", "(compiled_mh p c all 3) (mh d one 2)"),
    "discrete choices": ("(compile q d all)", "(compiled_mh q d all 3) (mh c each 1)"),
    "beside walks": (
        "(compile p c one OPTIONS)",
        "(mixture (0.5 (compiled_mh p c one 2) 0.5 (mh c one 'drift 1 2)) 4) (mh d one 2)",
    ),
}
FRAMES = ("'frame prior", "")
"""The last is Newton's, where there is a mode."""
ALL = [
    pytest.param(model, *engine, frame, id=" ".join([name, title, frame]))
    for name, model, engines in (("bounds", BOUNDS, EVERYTHING | BY_KIND), ("levels", MODELS["levels"], BY_KIND))
    for title, engine in engines.items()
    for frame in (FRAMES if "OPTIONS" in engine[0] else ("",))
]


def assert_kept(model: Model, learning: str, engine: str, options: str, draws: int) -> None:
    before = f"(do {learning.replace('OPTIONS', options)})"
    assert_joint_distribution_is_kept(
        model, successive_conditional(model, engine, draws, before), f"{engine} {options}"
    )


@pytest.mark.thorough
def test_learned_proposals_keep_the_joint_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a network that is hardly trained."""
    monkeypatch.setattr("venture_lite.networks.fitting.LEAST_STEPS", 200)
    assert_kept(BOUNDS, *EVERYTHING["all"], "'worlds 500", 1500)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "learning", "engine", "options"), ALL)
def test_learned_proposals_keep_the_joint_distribution_over_many_draws(
    model: Model, learning: str, engine: str, options: str
) -> None:
    assert_kept(model, learning, engine, options, 1_600)
