"""Where a trajectory ended the next one begins: what `nuts` knows of that place is what passes over rows find there.

Each program is run with a look at every start. Seen to fail where the version of the trace is not looked at, where it
is not looked whether the last transition was of the same block, where the start of a path is taken for its end, and
where a start with something impossible counts as known.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.engines.nuts.nuts import NoUTurn
from venture_lite.errors import VentureWarning

MODEL = """
    [assume mu (normal 0 2)] [assume sd (gamma 2 1)] [assume k (flip)] [assume w (normal 0 1)]
    for n in 1...12: [observe (normal (+ mu (if k w 0)) sd) {y[n]}]
"""
WIDE = """
    [assume mu (normal 0 2)] [assume sd (gamma 2 1)] [assume z (mem (lambda (n) (normal mu sd)))]
    for n in 1...90: [observe (normal (z n) 1) {x[n]}]
"""
MAKER = """
    [assume a (gamma 2 1)] [assume b (gamma 2 1)] [assume coin (make_beta_bernoulli a b)]
    for n in 1...12: [observe (coin) (> {y[n]} 0)]
"""
VECTOR = "[assume xs (normal (zeros 30) 1)] [assume s (gamma 2 1)] [observe (normal xs s) {v}]"
IMPOSSIBLE = "[assume x (normal 0 1)] [observe (binomial 5 (logistic x)) 7]"

RNG = np.random.default_rng(3)
DATA: dict[str, Any] = {"y": RNG.normal(1, 1, 12), "x": RNG.normal(1, 2, 90), "v": RNG.normal(0, 1, 30)}
STEP = "(nuts default all 'step 0.3 1)"


def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of every start from now on whether it was known; it is compared with what is found there."""
    known = list[bool]()
    paths_of = NoUTurn._paths

    def looking(kernel: NoUTurn, density: Any, *rest: Any) -> Any:
        seen = kernel.densities.rows
        paths = paths_of(kernel, density, *rest)
        known.append(kernel.densities.rows == seen)
        if known[-1]:
            free, weight, gradient = kernel.densities.here(density)
            assert not weight.impossible
            np.testing.assert_allclose(np.asarray(paths._free), free, rtol=1e-9, atol=1e-12)
            assert paths.log_density == pytest.approx(weight.total, rel=1e-9)
            np.testing.assert_allclose(np.asarray(paths._gradient), gradient, rtol=1e-6, atol=1e-8)
        return paths

    monkeypatch.setattr(NoUTurn, "_paths", looking)
    return known


@pytest.mark.parametrize(
    ("model", "program"),
    [
        (MODEL, "(nuts (choices mu sd w) all 'step 0.3 1)"),
        (MODEL, "(nuts (choices mu sd w) all 'adapt 20 'dense 1)"),
        # paths diverge, and the block stays where it was
        (MODEL, "(nuts (choices mu sd w) all 'step 30 1)"),
        (WIDE, STEP),
        (WIDE, "(nuts default all 'adapt 20 1)"),
        (MAKER, STEP),
        (VECTOR, STEP),
    ],
)
def test_a_start_is_known_where_nothing_else_moves(monkeypatch: pytest.MonkeyPatch, model: str, program: str) -> None:
    known = starts(monkeypatch, model, f"(repeat 60 (do {program}))")
    assert not known[0]
    assert np.mean(known[1:]) > 0.9


@pytest.mark.parametrize(
    ("model", "program"),
    [
        (MODEL, "(repeat 60 (do (nuts (choices mu sd w) all 'step 0.3 1) (gibbs (choices k) one 1)))"),
        (MODEL, "(repeat 60 (do (nuts (choices mu sd w) all 'step 0.3 1) (mh (choices sd) one 'drift 0.5 1)))"),
        (MODEL, "(repeat 60 (do (nuts (choices mu sd w) all 'step 0.3 2) (slice (choices w) one 1 50 1)))"),
        (MODEL, "(mixture (1 (nuts (choices mu sd w) all 'step 0.3 1) 1 (mh (choices k w) one 1)) 60)"),
        (MODEL, "(repeat 60 (do (nuts (choices mu sd w) each 'step 0.3 1)))"),
        (MODEL, "(repeat 60 (do (nuts (choices mu) all 'step 0.3 1) (nuts (choices sd w) all 'step 0.3 1)))"),
        (WIDE, "(repeat 30 (do (nuts default all 'step 0.3 1) (mh (choices z) each 1)))"),
        (MODEL, "(smc 4 (nuts (choices mu sd w) all 'step 0.3 2) (collect mu))"),
        (IMPOSSIBLE, f"(repeat 20 (do {STEP}))"),
    ],
)
def test_a_start_is_not_known_where_something_else_moved(
    monkeypatch: pytest.MonkeyPatch, model: str, program: str
) -> None:
    known = starts(monkeypatch, model, program)
    assert not all(known[1:])


def starts(monkeypatch: pytest.MonkeyPatch, model: str, program: str) -> list[bool]:
    v = Venture(seed=2)
    with warnings.catch_warnings():
        # of a state of probability zero
        warnings.simplefilter("ignore", VentureWarning)
        v.execute(model, **DATA)
        v.infer("(mh default one 200)")
        known = looked_at(monkeypatch)
        v.infer(program)
    return known
