"""What is heavy is imported where it is first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("scipy", "numba", "arviz_base", "arviz_stats", "xarray", "pandas", "matplotlib", "sklearn", "rich", "lark")


def modules_after(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after running the code."""
    report = "import sys; print('\\n' + ' '.join({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code", ["import venture_lite", "from venture_lite.cli import main", "from venture_lite.draws import Draws"]
)
def test_import_loads_nothing_heavy(code: str) -> None:
    assert modules_after(code).isdisjoint(HEAVY)


def test_the_command_line_starts_without_numpy() -> None:
    assert "numpy" not in modules_after("from venture_lite.cli import main\nmain(['--version'])")


def test_a_summary_needs_no_scipy() -> None:
    code = """
from venture_lite.draws import DrawsBuilder
builder = DrawsBuilder()
for value in range(20):
    builder.add("x", float(value % 7))
str(builder.finish().summary())
"""
    assert modules_after(code).isdisjoint(HEAVY)
