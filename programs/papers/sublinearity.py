"""Figure 5 of the sublinear paper: rows used and time for a transition against the number of rows.

    python programs/papers/sublinearity.py               # writes docs/experiments/sublinearity.png and prints the table

Two standard normal features, weights (1, -1), proposed (1.06, -0.9), whatever the number of rows; minibatches of 100.
The expected number of rows is that of the paper's analysis (Korattikara, Chen and Welling 2014, equation 19): the test
as a Gaussian random walk over its stages, here simulated, with the uniform number averaged over.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from venture_lite import Venture
from venture_lite.engines.subsampled.subsampled import Subsampled, SubsampledSettings
from venture_lite.interpreter.kernel import Move
from venture_lite.interpreter.model import FixedValue
from venture_lite.interpreter.selection import Selection, Selector
from venture_lite.kernels.compiled import kernel
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.trace import Trace
from venture_lite.values import freeze

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import EXACT, POSTERIOR, STYLE, panels

PROGRAM = Path(__file__).with_name("logistic.vnt")
PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "sublinearity.png"
CURRENT, PROPOSED = np.array([1.0, -1.0]), np.array([1.06, -0.9])
PRIOR_VARIANCE = 10.0
BATCH = 100
SIZES = (1_000, 10_000, 100_000, 1_000_000)
TOLERANCES = (0.01, 0.1)


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of rows with one tolerance."""

    rows: int
    tolerance: float
    # rows that a test used, on average, and that the analysis expects
    used: float
    expected: float
    # seconds for a transition, and for one that reads all rows
    took: float
    exact_took: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tests", type=int, default=10_000, help="tests for each cell")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    cells = []
    print(f"{'rows':>9}  {'eps':>5}  {'used':>8}  {'expected':>8}  {'ratio':>5}  {'transition':>10}  {'exact':>9}")
    for count in SIZES:
        for tolerance in TOLERANCES:
            cells.append(measured(count, tolerance, options.tests))
            print(line(cells[-1]), flush=True)
    draw(cells, options.picture)


def line(cell: Cell) -> str:
    return (
        f"{cell.rows:>9,}  {cell.tolerance:>5}  {cell.used:>8.0f}  {cell.expected:>8.0f}  "
        f"{cell.used / cell.expected:>5.3f}  {1e6 * cell.took:>7,.0f} us  {1e6 * cell.exact_took:>6,.0f} us"
    )


def model(count: int) -> Venture:
    """The paper's program on generated data, at the current weights."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((count, 2))
    classes = rng.random(count) < 1 / (1 + np.exp(-features @ CURRENT))
    v = Venture(seed=1)
    v.run_file(
        PROGRAM, X=features, Y=classes, N=count, mu=np.zeros(2), Sig=PRIOR_VARIANCE * np.eye(2),
        nbatch=BATCH, eps=0.1, sig=0.1, T=0,
    )  # fmt: skip
    v.force("w", CURRENT)
    return v


class Same(FixedValue):
    """The proposal that is made every time, as if its density were symmetric."""

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """Nothing depends on the old state."""


def measured(count: int, tolerance: float, tests: int) -> Cell:
    """Repeat the one transition from the current to the proposed weights, taken back each time."""
    v = model(count)
    chain = v.traces[0]
    target = chain.trace.analyzer.globals["w"]
    assert target.code is not None
    node = chain.trace.result_node(target.code, target.row)
    current, proposal = freeze(CURRENT.copy()), Same(freeze(PROPOSED.copy()))
    engine = Subsampled(chain, proposal, SubsampledSettings(BATCH, tolerance))
    exact = kernel(chain, Move(proposal, lambda weight: False))
    block = Selection(chain, "default", Selector("key", node), node)
    column = chain.trace.column(node >> 32)
    took = 0.0
    for _ in range(tests):
        started = time.perf_counter()
        accepted = engine.step([node], block)
        took += time.perf_counter() - started
        if accepted:
            column.put(node & ROW_MASK, current)
    started = time.perf_counter()
    repetitions = max(3, 100_000 // count)
    for _ in range(repetitions):
        exact.step([node], block)
    exact_took = (time.perf_counter() - started) / repetitions
    used = engine.record.fraction * count / tests
    return Cell(count, tolerance, used, expected_rows(v, count, tolerance), took / tests, exact_took)


def expected_rows(v: Venture, count: int, tolerance: float, paths: int = 20_000) -> float:
    """The mean number of rows of a Gaussian walk over the stages of the test.

    The estimate of the mean after n rows has variance tau_n = S^2 (1 / n - 1 / N), and two of them have the smaller as
    their covariance; the walk stops where |estimate - threshold| is above sqrt(tau_n) times the normal quantile.
    """
    from scipy.stats import norm

    rng = np.random.default_rng(1)
    terms = log_ratios(count)
    prior = -0.5 * (PROPOSED @ PROPOSED - CURRENT @ CURRENT) / PRIOR_VARIANCE
    away = terms.mean() - (np.log(rng.random(paths)) - prior) / count
    variance, quantile = terms.var(ddof=1), norm.isf(tolerance)
    used = np.full(paths, float(count))
    going, error, before = np.arange(paths), np.zeros(paths), 0.0
    for n in range(BATCH, count, BATCH):
        now = variance * (1 / n - 1 / count)
        share = now / before if before else 0.0
        spread = np.sqrt(now - now * share)
        error = error * share + spread * rng.standard_normal(len(going))
        stops = np.abs(away[going] + error) > quantile * np.sqrt(now)
        used[going[stops]] = n
        going, error, before = going[~stops], error[~stops], now
        if not len(going):
            break
    return float(used.mean())


def log_ratios(count: int) -> np.ndarray:
    """The rows' changes of log likelihood, computed apart from the trace."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((count, 2))
    sign = np.where(rng.random(count) < 1 / (1 + np.exp(-features @ CURRENT)), 1.0, -1.0)
    change: np.ndarray = np.logaddexp(0, -sign * (features @ CURRENT)) - np.logaddexp(0, -sign * (features @ PROPOSED))
    return change


def draw(cells: list[Cell], out: Path) -> None:
    from matplotlib import rc_context

    style: Any = STYLE
    with rc_context(style):
        figure, (left, right) = panels(1, 2)
        for tolerance, marker in zip(TOLERANCES, "os", strict=True):
            chosen = [cell for cell in cells if cell.tolerance == tolerance]
            rows = [cell.rows for cell in chosen]
            left.loglog(rows, [cell.used for cell in chosen], marker, color=POSTERIOR, label=f"used, eps {tolerance}")
            left.loglog(rows, [cell.expected for cell in chosen], color=EXACT, label=f"expected, eps {tolerance}")
            right.loglog(rows, [1e6 * c.took for c in chosen], marker + "-", color=POSTERIOR, label=f"eps {tolerance}")
        right.loglog(rows, [1e6 * cell.exact_took for cell in chosen], "k--", label="all rows")
        left.loglog(rows, rows, "k--", label="all rows")
        for axes, what in ((left, "rows used"), (right, "microseconds for a transition")):
            axes.set_xlabel("rows")
            axes.set_ylabel(what)
            axes.legend()
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main()
