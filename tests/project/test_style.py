"""Rules of style that a machine can check: lengths, arrangement, module docstrings."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*(ROOT / "venture_lite").rglob("*.py"), *(ROOT / "programs").glob("*.py")])
LINES_OF_A_FILE = 500
LINES_OF_A_FUNCTION = 60
METHODS_OF_A_CLASS = 30
BANNED_NAMES = ("utils", "helpers", "common", "misc")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_can_be_read_in_one_go(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert text.count("\n") <= LINES_OF_A_FILE
    assert path.stem not in BANNED_NAMES
    assert ast.get_docstring(tree), "a module says what it is and why it exists"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= LINES_OF_A_FUNCTION, f"{node.name} has {length} lines"
        elif isinstance(node, ast.ClassDef):
            methods = sum(isinstance(item, ast.FunctionDef) for item in node.body)
            assert methods <= METHODS_OF_A_CLASS, f"{node.name} has {methods} methods"
