"""The package is typed for those who use it: mypy accepts a right program, and names what is wrong in another."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FOUND = re.compile(r"\.py:(\d+): error: .*\[([\w-]+)\]$", re.MULTILINE)
MARKED = re.compile(r"# E: ([\w-]+)$")


def mypy(path: Path, cache: Path) -> str:
    """As a user runs it, outside of this project's settings."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(cache), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=path.parent).stdout


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


@pytest.mark.slow
def test_a_users_program_has_no_errors(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text((HERE / "program.py").read_text())
    assert mypy(path, cache) == "Success: no issues found in 1 source file\n"


@pytest.mark.slow
def test_mistakes_are_errors_and_nothing_else_is(cache: Path, tmp_path: Path) -> None:
    text = (HERE / "mistakes.py").read_text()
    path = tmp_path / "mistakes.py"
    path.write_text(text)
    marked = {(number, match[1]) for number, line in enumerate(text.splitlines(), 1) if (match := MARKED.search(line))}
    assert {(int(line), kind) for line, kind in FOUND.findall(mypy(path, cache))} == marked


def test_the_marker_for_type_checkers_is_in_the_package() -> None:
    import venture_lite

    assert (Path(venture_lite.__file__).parent / "py.typed").is_file()
