"""`venture check` on a program of 1,000 lines, as a process from its start to its end."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measure import Row, seconds

BAR = 1.0
REPETITIONS = 9
BLOCK = """\
; group {i}: a regression with an offset of its own, and outliers
[assume offset_{i} (scope_include 'offsets {i} (normal 0 {{sd}}))]
[assume slope_{i} (scope_include 'slopes {i} (normal 0 (if (< {i} 5) 1 2)))]
[assume noise_{i} (gamma 2 (+ 1 (abs slope_{i})))]
[assume (line_{i} x) (+ offset_{i} (* slope_{i} x))]
[assume outlier_{i} (mem (lambda (n) (bernoulli 0.05)))]
for n in 1...{{N}}:
  [observe (normal (line_{i} {{X[n]}}) (if (outlier_{i} n) (* 10 noise_{i}) noise_{i})) {{Y[n]}}]
here_{i}: [predict (let ((a (line_{i} 1)) (b (line_{i} 2))) (vector a b (- b a)))]
[infer (repeat 10 (do (mh offsets {i} 'drift 0.5 1) (mh slopes one 1) (collect offset_{i} (line_{i} 3))))]
"""


def program() -> str:
    return "".join(BLOCK.format(i=i) for i in range(100))


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.vnt")
        path.write_text(program())
        commands = {"bare": ["-c", "pass"], "check": ["-m", "venture_lite", "check", str(path)]}
        for arguments in commands.values():
            _start(arguments)
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(REPETITIONS):
            for name, arguments in commands.items():
                times[name].append(seconds(lambda arguments=arguments: _start(arguments)))  # type: ignore[misc]
    bare, check = (statistics.median(times[name]) for name in commands)
    return [
        Row(
            f"venture check, {program().count(chr(10)):,} lines",
            f"{check:.2f} s",
            f"at most {BAR:g} s",
            f"bare Python, {bare:.3f} s",
            check / bare,
            check <= BAR,
        )
    ]


def _start(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
