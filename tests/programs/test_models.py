"""The models of the field can be read with their data, and the comparison with the truth notices what is wrong."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture

FOLDER = Path(__file__).parents[2] / "programs" / "models"
NAMES = sorted(path.stem for path in FOLDER.glob("*.vnt"))


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("models")


def test_every_program_has_data(models: ModuleType) -> None:
    assert sorted(models.MODELS) == NAMES


@pytest.mark.thorough
# of data that no loop reads
@pytest.mark.filterwarnings("ignore:the program reads")
@pytest.mark.parametrize("name", NAMES)
def test_every_program_loads_with_a_few_of_its_data(models: ModuleType, name: str) -> None:
    model, venture = models.MODELS[name], Venture(seed=1)
    model.register(venture)
    given = model.data()
    venture.run_file(FOLDER / f"{name}.vnt", **given | {"N": min(given["N"], 8 if "schools" in name else 50)})
    assert np.isfinite(venture.log_score())


class Drawn(Mapping[str, Any]):
    """Draws (chains, draws) by name."""

    def __init__(self, values: dict[str, np.ndarray]) -> None:
        self.values_of = values

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values_of[name]

    def __iter__(self) -> Any:
        return iter(self.values_of)

    def __len__(self) -> int:
        return len(self.values_of)


@pytest.mark.parametrize(("shift", "told"), [(0.0, False), (0.5, True)])
def test_a_truth_that_is_far_off_is_noticed(models: ModuleType, shift: float, told: bool) -> None:
    """Of draws whose sd is a tenth of the shift. Nothing here is a matter of chance: the draws are given."""
    drawn = np.random.default_rng(1).normal(size=(4, 500)) * 0.05
    truth = models.MODELS["radon"].truth
    draws = Drawn({name: value + shift + drawn for name, value in truth.items()})
    assert bool(models.faults(models.MODELS["radon"], {}, draws)) == told


@pytest.mark.parametrize(("shift", "told"), [(0.0, False), (1.0, True)])
def test_an_exact_answer_that_is_missed_is_noticed(models: ModuleType, shift: float, told: bool) -> None:
    model = models.MODELS["schools"]
    given, rng = model.data(), np.random.default_rng(2)
    exact = model.exact(given)
    draws = Drawn({name: mean + sd * (shift + rng.normal(size=(4, 1000))) for name, (mean, sd) in exact.items()})
    assert bool(models.faults(model, given, draws)) == told


def test_the_exact_answer_for_the_schools_is_that_of_the_text_book(models: ModuleType) -> None:
    """Under these priors the mean of the level is about 4.4, that of the scale about 3.6 (posteriordb)."""
    exact = models.schools_exactly(models.schools())
    assert exact["mu"][0] == pytest.approx(4.4, abs=0.1)
    assert exact["tau"][0] == pytest.approx(3.6, abs=0.1)
