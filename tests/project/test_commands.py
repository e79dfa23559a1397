"""The commands that the README names exist, and come first."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_readme_begins_with_run_and_test() -> None:
    named = re.findall(r"\bmake ([a-z-]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert named[:2] == ["run", "test"]


def test_every_target_of_the_readme_is_in_the_makefile() -> None:
    named = set(re.findall(r"\bmake ([a-z-]+)", (ROOT / "README.md").read_text(encoding="utf-8")))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert named <= targets
    assert targets >= {"setup", "run", "test", "quick", "test-slow", "bench", "lint"}


def test_what_the_commands_make_is_ignored_by_git() -> None:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert {".venv/", "out/", "dist/", "__pycache__/", ".pytest_cache/"} <= set(ignored)
