"""The manual is written by the records: everything that they hold is in it; and the site builds without a warning."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.blocks import ROOT
from venture_lite.inference.actions import ACTIONS
from venture_lite.language.directives import DIRECTIVES
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.repl.commands import COMMANDS
from venture_lite.session.standard import NAMES


@pytest.fixture(scope="module")
def manual() -> ModuleType:
    spec = importlib.util.spec_from_file_location("manual", ROOT / "docs" / "manual.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("kind", "part"), [(Random, "random"), (Maker, "makers"), (Deterministic, "deterministic")])
def test_the_manual_has_every_procedure_with_its_arguments(manual: ModuleType, kind: type, part: str) -> None:
    text = manual.PARTS[part]()
    for record in PROCEDURES.values():
        if isinstance(record, kind):
            assert f"### `{record.name}`" in text
            assert manual.entry(record).removesuffix(manual.arguments(record)) in text
            for argument in record.arguments:
                assert f"| `{argument.name}` | {argument.domain.phrase} |" in manual.arguments(record)


def test_the_manual_has_every_definition_action_and_directive(manual: ModuleType) -> None:
    for part, names in (("standard", NAMES), ("actions", list(ACTIONS))):
        text = manual.PARTS[part]()
        for name in names:
            assert f"### `{name}`" in text
    assert all(f"| `{name}` |" in manual.PARTS["directives"]() for name in DIRECTIVES)
    assert all(command.usage in manual.PARTS["prompt"]() for command in COMMANDS)


def test_no_two_names_share_a_place_on_a_page(manual: ModuleType) -> None:
    names = [*PROCEDURES, *NAMES]
    assert len({manual.anchor(name) for name in names}) == len(names)


def test_every_part_of_the_manual_is_on_a_page(manual: ModuleType) -> None:
    asked = [place for page in (ROOT / "docs").rglob("*.md") for place in manual.PLACE.findall(page.read_text("utf-8"))]
    assert sorted(asked) == sorted(manual.PARTS)


@pytest.mark.slow
def test_the_site_builds_and_asks_nothing_of_others(tmp_path: Path) -> None:
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    assert built.returncode == 0, built.stderr
    pages = [page.read_text("utf-8") for page in tmp_path.rglob("*.html")]
    assert len(pages) > 15
    # what makes search work where the site is opened from disk
    assert (tmp_path / "search" / "search_index.js").is_file()
    assert all("iframe-worker.js" in page for page in pages)
    for page in pages:
        assert "<!-- manual:" not in page
        for asking in ('src="http', '<link rel="stylesheet" href="http', "@import"):
            assert asking not in page
