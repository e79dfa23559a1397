"""Rules of style that a machine can check: names of modules, and that each says what it is."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
BANNED_NAMES = ("utils", "helpers", "common", "misc")


def offenders(root: Path) -> list[str]:
    """Modules that are named after nothing, or do not say what they are and why they exist."""
    found = []
    for path in sorted([*(root / "venture_lite").rglob("*.py"), *(root / "programs").rglob("*.py")]):
        name = path.relative_to(root).as_posix()
        if path.stem in BANNED_NAMES:
            found.append(f"{name} is named after nothing")
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))):
            found.append(f"{name} has no docstring")
    return found


def test_every_module_says_what_it_is() -> None:
    assert not offenders(ROOT)


def test_a_module_that_says_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "venture_lite").mkdir()
    (tmp_path / "venture_lite" / "utils.py").write_text("x = 1\n")
    assert offenders(tmp_path) == [
        "venture_lite/utils.py is named after nothing",
        "venture_lite/utils.py has no docstring",
    ]
