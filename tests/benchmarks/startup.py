"""Import, and a whole process that runs the paper's first figure."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measure import Row, seconds

FIGURE_1 = """
[assume b (bernoulli 0.5)]
[assume mu (if b 1 (gamma 1 1))]
[assume y (normal mu 0.1)]
[observe y 10.0]
[infer (repeat 1000 (do (mh default one 1) (collect b mu)))]
"""
HUNDRED_DRAWS = """
from venture_lite import Venture
v = Venture(seed=1)
v.execute("[assume mu (normal 0 1)] [observe (normal mu 1) 1.2]")
v.infer("(repeat 100 (do (mh default one 1) (collect mu)))")
"""
DRAWS_BAR = 4.0
"""At most so many times what a process takes that imports NumPy's generators and ends."""
IMPORT_BAR = 0.25
RUN_BAR = 1.2
REPETITIONS = 9


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "figure1.vnt")
        program.write_text(FIGURE_1)
        commands = {
            "bare": ["-c", "pass"],
            "numpy": ["-c", "import numpy"],
            "generators": ["-c", "import numpy.random"],
            "draws": ["-c", HUNDRED_DRAWS],
            "import": ["-c", "import venture_lite"],
            # the package imports its parts when they are asked for
            "door": ["-c", "from venture_lite import Venture"],
            "run": ["-m", "venture_lite", "run", str(program), "--seed", "1"],
        }
        for arguments in commands.values():
            _start(arguments)
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(REPETITIONS):
            for name, arguments in commands.items():
                times[name].append(seconds(lambda arguments=arguments: _start(arguments)))  # type: ignore[misc]
    bare, numpy, generators, draws, imported, door, run = (statistics.median(times[name]) for name in commands)
    return [
        *(
            Row(
                what,
                f"{took - bare:.3f} s over bare Python",
                f"at most {IMPORT_BAR} s",
                f"bare Python, {bare:.3f} s (NumPy alone {numpy:.3f} s)",
                took / bare,
                took - bare <= IMPORT_BAR,
            )
            for what, took in (("import venture_lite", imported), ("from venture_lite import Venture", door))
        ),
        Row(
            "a process that makes 100 draws of one parameter",
            f"{draws:.2f} s",
            f"at most {DRAWS_BAR} times",
            f"one that imports numpy.random, {generators:.3f} s",
            draws / generators,
            draws <= DRAWS_BAR * generators,
        ),
        Row(
            "venture run of Fig. 1, 1,000 transitions",
            f"{run:.2f} s",
            f"at most {RUN_BAR} s",
            f"bare Python, {bare:.3f} s",
            run / bare,
            run <= RUN_BAR,
        ),
    ]


def _start(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
