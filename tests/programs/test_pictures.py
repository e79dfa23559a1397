"""The pictures of the programs: each has its place on the page and can be drawn; the exact answers in it are exact."""

from __future__ import annotations

import importlib
import itertools
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "programs.md").read_text("utf-8")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "programs")
    return importlib.import_module("exact")


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(ROOT / "programs")
    return importlib.import_module("pictures")


def test_every_program_is_on_the_page_with_its_command() -> None:
    for program in (ROOT / "programs").glob("*.vnt"):
        assert re.search(rf"^### .*`{program.name}`", PAGE, re.MULTILINE), program.name
        assert re.search(rf"^(?:\$ )?venture run programs/{program.name} ", PAGE, re.MULTILINE), program.name


def test_every_picture_is_on_the_page_and_small(pictures: ModuleType) -> None:
    kept = sorted((ROOT / "docs" / "programs").iterdir())
    assert [path.stem for path in kept] == sorted(pictures.PICTURES)
    tutorial = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    assert sorted(re.findall(r"\]\(programs/(\w+\.png)\)", PAGE + tutorial)) == [path.name for path in kept]
    assert all(path.stat().st_size < 60_000 for path in kept)


def test_a_picture_is_drawn(pictures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw(pictures, ["fig1"], tmp_path, monkeypatch)


@pytest.mark.slow
def test_all_pictures_are_drawn(pictures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    draw(pictures, list(pictures.PICTURES), tmp_path, monkeypatch)


def draw(pictures: ModuleType, names: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["pictures.py", *names, "--out", str(folder)])
    pictures.main()
    assert sorted(path.stem for path in folder.iterdir()) == sorted(names)
    assert all(10_000 < path.stat().st_size < 60_000 for path in folder.iterdir())


def test_a_picture_that_nobody_knows_is_refused(
    pictures: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["pictures.py", "fig2"])
    with pytest.raises(SystemExit):
        pictures.main()
    assert "no picture is called fig2" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------ exact answers


def test_sums_over_states_are_those_of_every_path(answers: ModuleType) -> None:
    rng = np.random.default_rng(1)
    start, changes, likelihood = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3), rng.random((5, 3))
    paths = np.array(list(itertools.product(range(3), repeat=5)))
    weight = start[paths[:, 0]] * np.prod(changes[paths[:, :-1], paths[:, 1:]], axis=1)
    weight *= np.prod(likelihood[np.arange(5), paths], axis=1)
    exact = [[weight[paths[:, time] == state].sum() / weight.sum() for state in range(3)] for time in range(5)]
    np.testing.assert_allclose(answers.smoothed(start, changes, likelihood), exact, rtol=1e-12)


def test_a_change_is_where_counts_change(answers: ModuleType) -> None:
    """Four counts leave two places, whose odds are those of the gamma integrals by quadrature."""
    count = np.array([5, 4, 0, 1])
    rate = np.linspace(1e-6, 40, 400_001)

    def evidence(part: np.ndarray) -> float:
        return float(np.trapezoid(rate ** (1 + part.sum()) * np.exp(-rate * (1 + len(part))), rate))

    weight = np.array([evidence(count[:place]) * evidence(count[place:]) for place in (1, 2)])
    np.testing.assert_allclose(answers.change_probability(count), weight / weight.sum(), rtol=1e-6)


def test_structures_are_all_that_can_be_grown(answers: ModuleType) -> None:
    """3 leaves, 3 + 2 * 3^2 = 21 trees of depth one, 3 + 2 * 21^2 = 885 of depth two."""
    every = answers.structures(np.linspace(0, 5, 4))
    assert len(every) == 885
    assert sum(structure.probability for structure in every) == pytest.approx(1)
    y = np.array([0.3, -1.0, 0.2, 2.0])
    found = answers.structure_probability(every, y, noise=0.5)
    one, other = every[0], every[-1]
    log_odds = np.log(one.probability / other.probability) + sum(
        sign * log_density(y, structure.covariance + 0.25 * np.eye(4)) for sign, structure in ((1, one), (-1, other))
    )
    assert np.log(found[0] / found[-1]) == pytest.approx(log_odds)


def test_a_function_drawn_has_the_conditional_mean(answers: ModuleType) -> None:
    """At a datum far from the others the mean is a^2 / (a^2 + 0.3^2) of it: 4,000 draws, six standard errors (2e-9)."""
    rng = np.random.default_rng(2)
    x, y, points = np.array([0.0, 50.0]), np.array([1.0, -2.0]), np.array([50.0])
    draws = [answers.smooth_function(2.0, 1.0, x, y, points, rng)[0] for _ in range(4000)]
    kept = 4 / (4 + 0.09)
    sd = np.sqrt(4 * (1 - kept))
    assert abs(np.mean(draws) + 2 * kept) < 6 * sd / np.sqrt(4000)
    assert np.std(draws) == pytest.approx(sd, rel=6 / np.sqrt(8000))


def log_density(y: np.ndarray, covariance: np.ndarray) -> float:
    from scipy import stats

    return float(stats.multivariate_normal.logpdf(y, np.zeros(len(y)), covariance))
