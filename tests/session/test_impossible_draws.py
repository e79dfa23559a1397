"""Draws from states of probability zero, where a chain may begin: they do not count, nor as many after them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture, VentureWarning

MODELS = {
    "a condition": ("[assume x (normal 0 1)] [condition (> x 3)]", lambda x: x > 3),
    "a factor": ("[assume x (normal 0 1)] [factor (if (< x -2) 0 (log 0))]", lambda x: x < -2),
    "bounds": ("[assume x (gamma 2 2)] [observe (uniform_continuous 0 x) 3.5]", lambda x: x > 3.5),
    "of two": ("[assume x (normal 0 1)] [condition (> x 1)] [condition (< x 1.3)]", lambda x: (x > 1) & (x < 1.3)),
}
KERNELS = ("(slice default one 1 10 1)", "(mh default one 1)", "(mh default one 'drift 0.4 1)")


def drawn(program: str, kernel: str, seed: int, chains: int = 1, draws: int = 400, collect: str = "(collect x)") -> Any:
    venture = Venture(seed=seed, chains=chains)
    venture.execute(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VentureWarning)
        return venture.infer(f"(repeat {draws} (do {kernel} {collect}))")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MODELS)
def test_they_do_not_count(name: str, kernel: str) -> None:
    program, is_possible = MODELS[name]
    began = 0
    for seed in range(1, 5):
        draws = drawn(program, kernel, seed, draws=200)
        (x,) = draws.by_chain("x")
        searched = int(np.argmax(is_possible(x))) if is_possible(x).any() else len(x)
        began += searched > 0
        counted = draws.without_adaptation().by_chain("x")[0]
        assert is_possible(counted).all()
        assert len(x) - len(counted) >= min(len(x), searched + min(searched, 100))
        assert len(draws.summary().rows) == bool(len(counted))
    assert began


def test_of_chains_as_many_count_in_each() -> None:
    draws = drawn(MODELS["a condition"][0], KERNELS[0], 3, chains=3, collect="(collect x (* 2 x))")
    searched = [int(np.argmax(x > 3)) for x in draws.by_chain("x")]
    assert len(set(searched)) > 1
    tree = draws.to_datatree(warmup=True)
    for name, least in (("x", 3), ("(* 2 x)", 6)):
        assert tree["posterior"][name].shape == (3, 400 - 2 * max(searched))
        assert tree["warmup_posterior"][name].shape == (3, 2 * max(searched))
        assert float(tree["posterior"][name].min()) > least
    assert f"not counted: {2 * max(searched)} warm-up draws a chain" in str(draws.summary())


def test_a_chain_that_finds_no_state_says_so() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume x (normal 0 1)] [condition (> x 30)]")
    with pytest.warns(VentureWarning, match=r"probability zero: .* no draw counts before .* \(initialize\) looks for"):
        draws = venture.infer("(repeat 20 (do (mh default one 1) (collect x)))")
    assert str(draws.summary()).startswith("not counted: 20 warm-up draws a chain, all that there are")
    assert len(draws.by_chain("x")[0]) == 20


def test_what_was_possible_once_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    venture = Venture(seed=2)
    venture.execute("[assume x (normal 0 1)] [condition (> x 0)]")
    venture.infer("(mh default one 50)")
    monkeypatch.setattr("venture_lite.interpreter.impossible._has_impossible", lambda trace: pytest.fail("looked"))
    draws = venture.infer("(repeat 5 (do (mh default one 1) (collect x)))")
    assert not any(map(len, draws.adapting))
