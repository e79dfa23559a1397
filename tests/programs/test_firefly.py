"""The programs of the Firefly paper at small sizes: both texts run as they are, and what is compared with is right."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.blocks.linear_block import LinearBlock
from venture_lite.blocks.sections import Sections

PAPERS = Path(__file__).parents[2] / "programs" / "papers"


@pytest.fixture
def softmax(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(PAPERS)
    return importlib.import_module("firefly_softmax")


@pytest.mark.parametrize(("name", "outcomes"), [("firefly_logistic", 2), ("firefly_softmax", 3)])
def test_the_text_runs(name: str, outcomes: int) -> None:
    """With its own inference, whose draws of the adaptation are marked."""
    rng = np.random.default_rng(0)
    rows = {"X": rng.standard_normal((60, 2)), "Y": rng.integers(0, outcomes, 60), "N": 60}
    settings = {"mu": np.zeros(2), "Sig": np.eye(2), "q": 0.1, "draws": 20, "burn": 20, "thin": 2}
    v = Venture(seed=1)
    draws = v.run_file(PAPERS / f"{name}.vnt", **rows, **settings)[-1]
    assert [len(draws[variable][0]) for variable in draws.names] == [20]
    assert [len(draws.without_adaptation()[variable][0]) for variable in draws.names] == [10]


def test_chains_by_hand_have_the_density_of_the_program(softmax: ModuleType) -> None:
    """Differences of log densities, and gradients, of several chains at once; rows are single precision there."""
    rng = np.random.default_rng(0)
    data = softmax.Data(rng.standard_normal((90, 4)), rng.integers(0, 3, 90))
    v = softmax.model(data, 1)
    chain, nodes = v.traces[0], v.traces[0].trace.scopes["w"].everything()
    block = LinearBlock(chain, Sections.of(chain, nodes), nodes)
    weights = 0.3 * rng.standard_normal((3, 5, 4))
    density, gradient = softmax.Chains(data, weights, 0.1, rng).evaluate(weights)
    expected = [block.log_density(weights[:, at].ravel()) for at in range(5)]
    assert np.diff(density) == pytest.approx(np.diff(expected), abs=1e-3)
    for at in range(5):
        assert gradient[:, at].ravel() == pytest.approx(block.gradient(weights[:, at].ravel()), abs=1e-3)


def test_chains_by_hand_draw_the_prior_where_nothing_is_observed(softmax: ModuleType) -> None:
    """The share of weights within a prior sd, in 1,000 chains of 6 weights, 20 steps of 1.4 sds from 0, after which
    nothing is left of the start (a rejected step keeps it, with probability below 1/2): within 5 sds, 6e-7."""
    data = softmax.Data(np.zeros((1, 2)), np.zeros(1, dtype=np.int64))
    scale = np.sqrt(softmax.PRIOR_VARIANCE)
    chains = softmax.Chains(data, np.zeros((3, 1000, 2)), 0.14, np.random.default_rng(1))
    for _ in range(20):
        chains.transition()
    share = float(np.mean(np.abs(chains.weights) < scale))
    assert share == pytest.approx(0.6827, abs=5 * np.sqrt(0.6827 * 0.3173 / 6000))
