"""The experiments of inference compilation: what they compute by hand, and small runs of all of them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2] / "programs" / "papers"))
import compiled
import compiled_branch
import compiled_logistic
import compiled_modes
import compiled_schools

# program -> what makes it small
SMALL = {
    "compiled_conjugate": ["--points", "8", "--transitions", "20", "--worlds", "100", "--ways", "newton frame"],
    "compiled_modes": ["--draws", "20", "--worlds", "100"],
    "compiled_ring": ["--draws", "20", "--worlds", "1000"],
    "compiled_logistic": ["--rows", "30", "--draws", "20", "--worlds", "100", "--no-rounds"],
    "compiled_schools": ["--draws", "20", "--worlds", "100", "--sets", "1", "--no-rounds"],
    "compiled_branch": ["--draws", "20", "--data", "1.2", "--worlds", "400"],
    "compiled_mixture": ["--rows", "12", "--draws", "20", "--worlds", "100"],
}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("compiled_modes", "compiled_conjugate") else pytest.mark.slow)
        for name in SMALL
    ],
)
def test_a_small_run_draws_its_picture(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("venture_lite.networks.fitting.LEAST_STEPS", 5)
    picture = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [name, *SMALL[name], "--picture", str(picture)])
    importlib.import_module(name).main()
    assert picture.stat().st_size > 5000
    assert "nan" not in capsys.readouterr().out


def test_a_chain_that_only_flips_signs_is_worth_nothing() -> None:
    rng = np.random.default_rng(0)
    size = np.repeat(rng.normal(3.0, 1.0, (4, 10)), 50, axis=1)
    draws = (size * rng.choice([-1.0, 1.0], size.shape))[:, :, None]
    found = compiled.Measured("flips", draws, -0.5 * np.square(size), 2000, 1.0, 1.0)
    assert found.ess["x"] > 500
    assert found.least < 50
    assert found.distinct == pytest.approx(1000 * 80 / 2000)


def test_densities_are_those_of_the_programs() -> None:
    """The experiments' own, up to a constant, and the session's."""
    data = compiled_schools.Schools.generated(1, (3, 2, 2), 8)
    own, session = [], []
    v = data.session(chains=1)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        log_scales = rng.normal(size=3)
        for name, value in zip(("td", "ts", "tt"), np.exp(log_scales), strict=True):
            v.force(name, float(value))
        state = np.concatenate([[rng.normal()], log_scales, rng.normal(size=7)])
        v.force("b0", state[0])
        for name, value in zip(data.collected[4:], state[4:].tolist(), strict=True):
            v.force(name, value)
        own.append(float(data.log_density(state)) - log_scales.sum())
        session.append(float(np.ravel(v.log_score())[0]))
    assert np.diff(own) == pytest.approx(np.diff(session), rel=1e-9)


def test_two_modes_have_the_shares_of_the_quadrature() -> None:
    assert compiled_modes.exact_share() == pytest.approx(0.630, abs=5e-4)
    x = np.random.default_rng(0).normal(6.55, 5.0, 400_000)
    weight = stats.norm.pdf(25.0, np.square(x - 5.0), 10.0)
    assert (weight * (x > 5.0)).sum() / weight.sum() == pytest.approx(compiled_modes.exact_share(), abs=0.01)


def test_the_branch_is_weighed_by_draws_of_the_prior_alike() -> None:
    mu = np.random.default_rng(0).exponential(size=400_000)
    gamma, constant = stats.norm.pdf(1.2, mu, 0.1).mean(), stats.norm.pdf(1.2, 1.0, 0.1)
    assert compiled_branch.exact(1.2) == pytest.approx(constant / (constant + gamma), abs=0.01)


def test_both_programs_of_the_regression_are_the_same() -> None:
    data = compiled_logistic.Data(20)
    scores = [
        np.ravel(data.session(each).log_score())[0] for each in (compiled_logistic.LEARNED, compiled_logistic.PLAIN)
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-12)
