"""The two urns of subsample annealing: the exact answer, and what the driver counts."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import betaln

from tests.posterior.derive import table
from tests.statistics import assert_chain_agrees
from venture_lite import Venture
from venture_lite.draws.draws import Draws

sys.path.insert(0, str(Path(__file__).parents[2] / "programs" / "papers"))
import urns


def weight(left: tuple[int, ...], red: tuple[int, ...]) -> float:
    """Of one assignment of all balls, not normalised."""
    log_weight = 0.0
    for side, share in ((1, 0.45), (0, 0.55)):
        here = [r for side_of, r in zip(left, red, strict=True) if side_of == side]
        log_weight += len(here) * math.log(share) + betaln(0.5 + sum(here), 0.5 + len(here) - sum(here))
    return math.exp(log_weight)


def test_the_posterior_counts_every_assignment() -> None:
    red = (1, 1, 0, 0, 0)
    expected = np.zeros((3, 4))
    for left in itertools.product((0, 1), repeat=5):
        expected[sum(left[:2]), sum(left[2:])] += weight(left, red)
    assert urns.posterior(2, 3) == pytest.approx(expected / expected.sum(), abs=1e-12)


def test_states_fall_into_cells_by_their_shares() -> None:
    found = np.array([[0, 0], [159, 240], [160, 239], [800, 1200]])
    grid = urns.shares(found, 800, 1200, 5)
    assert grid[0, 0] == grid[0, 1] == grid[1, 0] == grid[4, 4] == 0.25
    assert urns.distance(grid, urns.exact_grid(urns.posterior(800, 1200), 5)) > 0.5
    assert urns.exact_grid(urns.posterior(8, 12), 5).sum() == pytest.approx(1.0)


def test_handfuls_that_move_together_have_the_posterior_of_such_states() -> None:
    """False alarms below 1e-6, by assert_chain_agrees."""
    v = Venture(seed=3)
    odds = (0.45 / 0.55) ** 3
    share = odds / (1 + odds)
    text = urns.HANDS.replace(urns.BALL, 3 * urns.BALL)
    v.execute(text, H=3, share=share, red=[True] * 3, was=[True, False, False])
    red = (1,) * 9
    exact = {
        float(sum(side << i for i, side in enumerate(hands))): weight(tuple(np.repeat(hands, 3).tolist()), red)
        for hands in itertools.product((0, 1), repeat=3)
    }

    def more(n: int) -> dict[str, np.ndarray]:
        code = "(+ (left 1) (* 2 (left 2)) (* 4 (left 3)))"
        draws = v.infer(f"(repeat {n} (do (anneal left constant 1) (collect (labelled {code} z))))")
        assert isinstance(draws, Draws)
        return {"z": np.asarray(draws["z"], dtype=float).reshape(n)}

    assert_chain_agrees(more, {"z": table(exact)}, draws=400, what="handfuls")


def test_a_stopped_run_goes_on_from_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urns, "SIZES", (5, 1))
    monkeypatch.setattr(urns, "AT_ONCE", 2)
    path = tmp_path / "urns.csv"
    run = ["urns.py", "--balls", "25", "--results", str(path), "--replications"]
    monkeypatch.setattr(sys, "argv", [*run, "2"])
    urns.main()
    before = path.read_text(encoding="utf-8").splitlines()
    assert len(before) == 2 * len(urns.STRATEGIES)
    monkeypatch.setattr(sys, "argv", [*run, "4", "--picture", str(tmp_path / "urns.png")])
    urns.main()
    after = path.read_text(encoding="utf-8").splitlines()
    assert after[: len(before)] == before
    assert len(after) == 2 * len(before)
    assert (tmp_path / "urns.png").stat().st_size > 5000
