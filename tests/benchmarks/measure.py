"""What the benchmarks share: a row of the table, interleaved timing, memory of this process."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    measured: str
    bar: str
    baseline: str
    # measured against baseline, in the sense that `baseline` says
    ratio: float | None
    met: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """Medians over interleaved repetitions, in seconds; `ratio` is that of theirs / ours: above 1, ours is faster."""

    ours: float
    theirs: float
    ratio: float


def compare(ours: Callable[[], object], theirs: Callable[[], object], repetitions: int = 7) -> Comparison:
    """Time two functions in turns, after one unmeasured call of each."""
    ours(), theirs()
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(repetitions)]
    return Comparison(
        statistics.median(own for own, _ in pairs),
        statistics.median(other for _, other in pairs),
        statistics.median(other / own for own, other in pairs),
    )


def seconds(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def resident_bytes() -> int:
    """Memory of this process that is in use now (Linux)."""
    gc.collect()
    return _status("VmRSS")


def peak_bytes() -> int:
    """The most memory that was in use since `reset_peak` (Linux)."""
    return _status("VmHWM")


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field + ":"))
