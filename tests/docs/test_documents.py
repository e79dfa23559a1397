"""What the documents show is what runs: every block followed by an ```output block is executed and compared.

A ```venture block is a program of its own, run by `venture run - --seed 1`; its output is what a terminal shows. The
```python blocks of one document share their names, so that a later one goes on where an earlier one stopped.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from venture_lite.cli import main

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str
    # what it prints, where the document says so
    output: str | None
    line: int


def blocks(document: Path) -> list[Block]:
    text = document.read_text(encoding="utf-8")
    fences = list(FENCE.finditer(text))
    found = []
    for place, fence in enumerate(fences):
        following = fences[place + 1] if place + 1 < len(fences) else None
        output = following.group(2) if following is not None and following.group(1) == "output" else None
        if fence.group(1) in ("python", "venture"):
            found.append(Block(fence.group(1), fence.group(2), output, text.count("\n", 0, fence.start()) + 1))
    return found


def printed(block: Block, namespace: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> str:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        if block.language == "venture":
            monkeypatch.setattr(sys, "stdin", io.StringIO(block.text))
            main(["run", "-", "--seed", "1"])
        else:
            exec(compile(block.text, "<document>", "exec"), namespace)
    return shown.getvalue()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_shows_runs(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    namespace: dict[str, Any] = {}
    for block in blocks(document):
        if block.language == "python" or block.output is not None:
            found = printed(block, namespace, monkeypatch)
            if block.output is not None:
                assert found == block.output, f"{document.name}, line {block.line}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_readme_shows_what_the_main_job_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Line for line, numbers aside: the last digits are the processor's."""
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    import runpy

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["digits.py", "--out", str(tmp_path)])
        runpy.run_path(str(ROOT / "programs" / "digits.py"), run_name="__main__")
    found = capsys.readouterr().out.replace(str(tmp_path), "out")
    shown = next(
        m.group(2) for m in FENCE.finditer((ROOT / "README.md").read_text("utf-8")) if "accuracy" in m.group(2)
    )
    assert without_numbers(found) == without_numbers(shown)
    accuracy = re.search(r"accuracy +([\d.]+)%", found)
    assert accuracy is not None
    assert float(accuracy.group(1)) > 95.0
    assert (tmp_path / "digits.png").stat().st_size > 10_000
    assert (tmp_path / "digits.npz").is_file()


def without_numbers(text: str) -> list[str]:
    return [re.sub(r"\s+", " ", re.sub(r"-?\d[\d.,]*", "#", line)) for line in text.splitlines()]
