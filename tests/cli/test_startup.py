"""What is heavy is imported where it is first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("scipy", "numba", "arviz_base", "arviz_stats", "xarray", "pandas", "matplotlib", "sklearn", "rich", "lark")


def loaded_after(code: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after running the code."""
    report = "import sys; print('\\n' + ' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def modules_after(code: str) -> set[str]:
    """The same, top-level packages alone."""
    return {name.partition(".")[0] for name in loaded_after(code)}


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


def test_a_program_loads_the_engines_that_it_names() -> None:
    code = """
from venture_lite import Venture
v = Venture(seed=1)
v.execute("[assume mu (normal 0 1)] [observe (normal mu 1) 1.2]")
v.infer("(repeat 2 (do (mh default one 1) (collect mu)))")
"""
    loaded = loaded_after(code)
    assert "venture_lite.inference.mh" in loaded
    others = ("gibbs", "slice", "hmc", "mala", "rejection", "subsampled", "pgibbs", "flymc", "anneal", "precondition")
    assert loaded.isdisjoint(f"venture_lite.inference.{engine}" for engine in others)
    assert loaded.isdisjoint(f"venture_lite.{part}" for part in ("plots", "pictures", "report", "workers"))
