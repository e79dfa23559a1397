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
    "code",
    ["import venture_lite", "from venture_lite.shell.cli import main", "from venture_lite.draws.draws import Draws"],
)
def test_import_loads_nothing_heavy(code: str) -> None:
    assert modules_after(code).isdisjoint(HEAVY)


def test_the_command_line_starts_without_numpy() -> None:
    assert "numpy" not in modules_after("from venture_lite.shell.cli import main\nmain(['--version'])")


def test_a_summary_needs_no_scipy() -> None:
    code = """
from venture_lite.draws.draws import DrawsBuilder
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
    assert "venture_lite.engines.mh" in loaded
    others = ("gibbs", "slice", "hmc", "mala", "rejection", "subsampled", "pgibbs", "firefly", "anneal")
    assert loaded.isdisjoint(f"venture_lite.engines.{engine}" for engine in others)
    rest = ("blocks.precondition", "draws.plots", "draws.pictures", "shell.report", "shell.workers")
    assert loaded.isdisjoint(f"venture_lite.{part}" for part in rest)


def test_the_package_imports_nothing_before_the_command_listens() -> None:
    """Ctrl-C in the middle of an import would leave a traceback."""
    assert loaded_after("import venture_lite") - loaded_after("") == {"venture_lite", "__future__"}


INTERRUPTED_IMPORT = """
import signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)

class AtImport:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            print("reached", flush=True)
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, AtImport())
sys.argv[1:] = ["run", "-"]
from venture_lite.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "module",
    [
        "venture_lite.shell.cli",
        "argparse",
        "numpy",
        "datetime",
        "numpy.random",
        "venture_lite.shell.workers",
        "venture_lite.session",
    ],
)
def test_ctrl_c_while_the_command_imports_ends_it_with_a_word(module: str) -> None:
    """NumPy turns what breaks off the import of `datetime` into an error of its own."""
    code = INTERRUPTED_IMPORT.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], input="[sample 1]", capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (130, ["reached"])
    assert done.stderr.splitlines()[-1:] == ["interrupted"]
    assert "Traceback" not in done.stderr
