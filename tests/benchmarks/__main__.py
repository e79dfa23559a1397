"""`python -m tests.benchmarks [NAME...] [--check]`: the table of all benchmarks, or of those named.

Each benchmark runs in a process of its own with one thread, so that memory is its own and nothing runs beside it.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import subprocess
import sys

from tests.benchmarks.measure import Row

BENCHMARKS = (
    "logistic",
    "loading",
    "scalar",
    "local",
    "mixture",
    "urns",
    "chain",
    "startup",
    "check",
    "repl",
    "process",
    "subsampled",
    "setups",
    "sublinearity",
    "firefly",
    "gradient",
    "learned",
    "particles",
    "tables",
)
LONG = ("firefly", "sublinearity")
"""Run only when named: half a million draws on MNIST, 80,000 tests."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
HEADER = ("what", "measured", "baseline", "ratio", "bar", "met")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; by default all but {', '.join(LONG)}"
    )
    parser.add_argument("--check", action="store_true", help="end with status 1 if a bar is missed")
    parser.add_argument("--rows", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.names or [name for name in BENCHMARKS if name not in LONG]
    if unknown := [name for name in names if name not in BENCHMARKS]:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    if options.rows:
        print(
            json.dumps(
                [dataclasses.asdict(row) for row in importlib.import_module(f"tests.benchmarks.{names[0]}").rows()]
            )
        )
        return 0
    rows = [row for name in names for row in measured_apart(name)]
    print(table(rows))
    return int(options.check and not all(row.met for row in rows))


def measured_apart(name: str) -> list[Row]:
    """The benchmark's rows, from a fresh process; one row that says so where it fails."""
    print(f"{name} ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "tests.benchmarks", name, "--rows"]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return [Row(name, f"failed with status {done.returncode}", "-", "-", None, False)]
    return [Row(**row) for row in json.loads(done.stdout.splitlines()[-1])]


def table(rows: list[Row]) -> str:
    """Aligned columns, with a line under the header."""
    lines = [HEADER, *(_cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return "\n".join([text[0], "  ".join("-" * width for width in widths).rstrip(), *text[1:]])


def _cells(row: Row) -> tuple[str, ...]:
    ratio = "-" if row.ratio is None else f"{row.ratio:.3g}"
    return (
        row.what,
        row.measured,
        row.baseline,
        ratio,
        row.bar,
        "-" if row.bar == "-" else "met" if row.met else "MISSED",
    )


if __name__ == "__main__":
    sys.exit(main())
