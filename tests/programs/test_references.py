"""The programs of the reference posteriors can be read, and the comparison notices what is wrong."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from venture_lite.checker import check_file

PROGRAMS = sorted((Path(__file__).parents[2] / "programs" / "references").glob("*.vnt"))


@pytest.fixture
def references(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(PROGRAMS[0].parent)
    return importlib.import_module("references")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_program_is_right(path: Path) -> None:
    assert check_file(path).diagnostics == ()


def test_parameters_are_found_in_a_program(references: ModuleType) -> None:
    text = "[assume beta (mem (lambda (k) (flat)))] [assume b (list 1 2)] [assume mu1 0] [assume intercept 2]"
    asked = [references.expression_of(name, text) for name in ("beta[2]", "b[2]", "mu[1]", "Intercept", "sigma")]
    assert asked == ["(beta 2)", "(lookup b 1)", "mu1", "intercept", "sigma"]


@pytest.mark.parametrize(
    ("shift", "scale", "told"), [(0.0, 1.0, ""), (0.3, 1.0, "mean"), (0.0, 1.3, "sd"), (0.0, 0.0, "")]
)
def test_wrong_draws_are_noticed(references: ModuleType, shift: float, scale: float, told: str) -> None:
    """Of 4,000 independent draws; right ones raise an alarm with probability below 1e-6, since 0.02 sd and 3% are added
    to 4 errors of 0.017 and 0.012."""
    draws = shift + (scale or 1.0) * np.random.default_rng(1).normal(size=(4, 1000))
    if not scale:
        draws[0] += 1.0
        told = "r_hat"
    found = references.faults(draws, {"mean": 0.0, "sd": 1.0, "mcse_mean": 0.01}, 10_000)
    assert any(told in fault for fault in found) if told else not found
