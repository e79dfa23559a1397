"""Every program of a paper is run with the others, has its page, and the page its picture and its command."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "programs" / "papers"
PAGES = ROOT / "docs" / "experiments"


@pytest.fixture
def experiments(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(PAPERS)
    return importlib.import_module("experiments")


def drivers() -> set[str]:
    """Programs that draw a picture, which parts that they share do not."""
    return {path.stem for path in PAPERS.glob("*.py") if '"--picture"' in path.read_text("utf-8")} - {"experiments"}


def test_every_program_is_run_with_the_others(experiments: ModuleType) -> None:
    assert set(experiments.EXPERIMENTS) == drivers()


@pytest.mark.parametrize("name", sorted(drivers()))
def test_every_program_has_its_page(name: str) -> None:
    # the experiments of inference compilation share one
    its = "compiled" if name.startswith("compiled_") else name
    page = (PAGES / f"{its}.md").read_text("utf-8")
    assert re.search(rf"^    python programs/papers/{name}\.py", page, re.MULTILINE)
    assert f"({name}.png)" in page
    picture = PAGES / f"{name}.png"
    assert 0 < picture.stat().st_size < 60_000
    assert f"({its}.md)" in (PAGES / "index.md").read_text("utf-8")


def test_data_are_given_where_they_are(experiments: ModuleType, tmp_path: Path) -> None:
    assert "--data" not in experiments.command("risk", tmp_path, None)
    assert "--data" not in experiments.command("risk", tmp_path, tmp_path)
    (tmp_path / "mnist_7v9.npz").touch()
    assert experiments.command("risk", tmp_path, tmp_path)[-2:] == ["--data", str(tmp_path / "mnist_7v9.npz")]
