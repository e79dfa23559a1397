"""The sequential test against its analysis as a random walk: rows used by the same transition among more and more."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from tests.benchmarks.measure import Row

PAPERS = Path(__file__).parents[2] / "programs" / "papers"
TESTS = 10_000
MOST_OFF = 0.1


def rows() -> list[Row]:
    sys.path.insert(0, str(PAPERS))
    program = importlib.import_module("sublinearity")
    found = []
    for count in program.SIZES:
        for tolerance in program.TOLERANCES:
            cell = program.measured(count, tolerance, TESTS)
            ratio = cell.used / cell.expected
            found.append(
                Row(
                    f"rows used by a test, {count:,} rows, eps {tolerance}",
                    f"{cell.used:,.0f}",
                    f"within {MOST_OFF:.0%}",
                    f"the analysis, {cell.expected:,.0f}",
                    ratio,
                    abs(ratio - 1) <= MOST_OFF,
                )
            )
    return found
