"""What the documents show is what runs: every program of theirs is executed, and its output compared."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import ThreadpoolController

from tests.docs.blocks import DOCUMENTS, FENCE, ROOT, Runner, blocks
from venture_lite.errors import Source
from venture_lite.inference import actions
from venture_lite.language.parse import parse_program
from venture_lite.procedures import registry

NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
MADE_ON = "SkylakeX"
"""The processors whose kernels of OpenBLAS computed the pages' numbers. Others round a sum of products otherwise, which
a chain amplifies: draws are others there, and with them which remarks a summary has."""


def is_as_shown(found: str, shown: str) -> bool:
    """On other processors two thirds of the lines, numbers aside."""
    libraries = ThreadpoolController().info()
    if found == shown or all(library.get("architecture") in (None, MADE_ON) for library in libraries):
        return found == shown
    lines, those = without_numbers(shown), set(without_numbers(found))
    return 3 * sum(line in those for line in lines) >= 2 * len(lines)


@pytest.fixture(autouse=True)
def registries_are_put_back() -> Iterator[None]:
    """Two documents add a procedure and an engine, which other tests should not see."""
    registries: tuple[MutableMapping[str, Any], ...] = (registry.PROCEDURES, actions.ACTIONS)
    before = [dict(known) for known in registries]
    yield
    for known, kept in zip(registries, before, strict=True):
        known.clear()
        known.update(kept)


LONG = (
    "docs/inference/auto.md",
    "docs/inference/compiled.md",
    "docs/inference/kernels.md",
    "docs/inference/troubles.md",
    "docs/programs.md",
    "docs/use/stan.md",
)
"""Pages whose programs take ten seconds and more: they run with the slow tests. Those of `docs/programs.md` have their
answers in `tests/programs` and `tests/cli/test_programs.py`."""


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(path, id=name, marks=[pytest.mark.slow] * (name in LONG))
        for path, name in zip(DOCUMENTS, NAMES, strict=True)
    ],
)
def test_what_a_document_shows_runs(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.closing(Runner(tmp_path)) as runner:
        for block in blocks(document.read_text(encoding="utf-8")):
            found = runner.run(block)
            if found is not None and block.shown is not None and not is_as_shown(found, block.shown):
                assert found == block.shown, f"{document.name}, line {block.line}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_a_program_is_shown_with_its_output_or_is_a_file(document: Path) -> None:
    for block in blocks(document.read_text(encoding="utf-8")):
        if block.language == "venture":
            assert block.output is not None or block.title is not None, f"{document.name}, line {block.line}"
            if block.title is not None:
                parse_program(Source(block.title, block.text))


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_links_lead_to_files(document: Path) -> None:
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_a_run_that_differs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "```venture\n[sample (+ 1 1)]\n```\n```output\n(+ 1 1) = 3\n```\n\n```console\n$ echo a | cat\nb\n```\n"
    runner = Runner(tmp_path)
    assert [runner.run(block) for block in blocks(text)] == ["(+ 1 1) = 2\n", "$ echo a | cat\na\n"]


def test_the_readme_shows_what_the_main_job_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Line for line, numbers aside: the last digits are the processor's."""
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    import runpy

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["digits.py", "--out", str(tmp_path)])
        runpy.run_path(str(ROOT / "programs" / "digits.py"), run_name="__main__")
    found = capsys.readouterr().out.replace(str(tmp_path), "out")
    shown = next(m[3] for m in FENCE.finditer((ROOT / "README.md").read_text("utf-8")) if "accuracy" in m[3])
    assert without_numbers(found) == without_numbers(shown)
    accuracy = re.search(r"accuracy +([\d.]+)%", found)
    assert accuracy is not None
    assert float(accuracy.group(1)) > 95.0
    assert (tmp_path / "digits.png").stat().st_size > 10_000
    assert (tmp_path / "digits.npz").is_file()


def without_numbers(text: str) -> list[str]:
    return [re.sub(r"\s+", " ", re.sub(r"-?\d[\d.,]*", "#", line)) for line in text.splitlines()]


def test_the_table_of_the_tutorial_is_the_file() -> None:
    page = ROOT / "docs" / "tutorial.md"
    (shown,) = (block.text for block in blocks(page.read_text("utf-8")) if block.title == "cars.csv")
    assert (page.parent / "cars.csv").read_text("utf-8") == shown
