"""What the experiments of inference compilation share: chains by one kernel, and what their draws are worth.

A kernel is worth the least effective size over its choices, their squares and the log density: a chain that only flips
signs has a high one of the choices, one that sticks a low one of the density (Vehtari and others 2021 for the estimate,
bulk ESS). R-hat and effective sizes are over four chains that start at draws of the prior. Times are of CPU.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from venture_lite import Venture, VentureWarning
from venture_lite.draws import diagnostics
from venture_lite.engines.compiled.report import ProposerReport

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import POSTERIOR, PRIOR

CHAINS = 4
BURN_IN = 0.2
"""Draws that are thrown away first, as a share of those that are kept."""
LEARNED = "acceptance of learned proposals"

LogDensity = Callable[[np.ndarray], np.ndarray]
"""States (..., choices) -> log densities (...), up to a constant."""


@dataclass(frozen=True)
class Measured:
    """What four chains by one kernel found, and what they cost."""

    name: str
    # (chains, draws, choices)
    draws: np.ndarray
    # (chains, draws)
    log_density: np.ndarray
    # those that the draws are of, of all chains together
    transitions: int
    acceptance: float
    # CPU seconds of the transitions, and of the training before them
    seconds: float
    training: float = 0.0
    # numbers of its networks
    parameters: int = 0

    @cached_property
    def ess(self) -> dict[str, float]:
        """The least of the choices, of their squares, and that of the log density; 0 where nothing moves."""
        columns = np.moveaxis(self.draws, 2, 0)
        found = {"x": columns, "x^2": np.square(columns), "density": self.log_density[None]}
        return {name: min(_effective(column) for column in each) for name, each in found.items()}

    @property
    def least(self) -> float:
        """Effective draws of 1000 transitions."""
        return 1000.0 * min(self.ess.values()) / self.transitions

    def a_second(self, with_training: bool = False) -> float:
        """Effective draws of a CPU second."""
        return min(self.ess.values()) / (self.seconds + with_training * self.training)

    @property
    def distinct(self) -> float:
        """Distinct states among 1000 draws."""
        states = self.draws.reshape(-1, self.draws.shape[2])
        return 1000.0 * len(np.unique(states, axis=0)) / len(states)

    @property
    def r_hat(self) -> float:
        return max(diagnostics.r_hat(column) for column in np.moveaxis(self.draws, 2, 0))

    def __str__(self) -> str:
        each = [1000.0 * size / self.transitions for size in self.ess.values()]
        return (
            f"{self.name:<44} {self.acceptance:>6.3f} {each[0]:>9.2f} {each[1]:>9.2f} {each[2]:>11.2f} "
            f"{self.distinct:>8.0f} {self.a_second():>9.2f} {self.a_second(with_training=True):>9.2f} "
            f"{self.r_hat:>6.2f} {self.training:>6.1f} {self.parameters:>7,} "
            f"{1e6 * self.seconds / self.transitions:>6.0f}"
        )


HEADER = (
    f"{'':<44} {'':>6} {'least ESS in 1000 transitions':>31} {'distinct':>8} {'ESS a CPU second':>19} "
    f"{'':>6} {'train':>6} {'para-':>7} {'us a':>6}\n"
    f"{'kernel':<44} {'accept':>6} {'x':>9} {'x^2':>9} {'log dens.':>11} {'in 1000':>8} "
    f"{'without':>9} {'with it':>9} {'R-hat':>6} {'s':>6} {'meters':>7} {'trans.':>6}"
)


def _effective(column: np.ndarray) -> float:
    found = diagnostics.ess_bulk(column)
    return found if np.isfinite(found) else 0.0


def trained(v: Venture, scope: str, block: str, **options: Any) -> tuple[ProposerReport, float]:
    """The report of what is compiled as `p`, and the CPU seconds that it took."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VentureWarning)
        report = v.compile("p", scope, block, **options)
    return report, time.process_time() - started


def measured(
    v: Venture,
    name: str,
    kernel: str,
    draws: int,
    collected: Sequence[str],
    log_density: LogDensity,
    thin: int = 1,
    by: tuple[ProposerReport, float] | None = None,
) -> Measured:
    """Runs a kernel, whose count is `{T}`, in each chain; `by` is what was trained for it. The acceptance is that of
    its first action."""
    once = kernel.replace("{T}", str(thin))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VentureWarning)
        v.infer(f"(repeat {int(BURN_IN * draws)} {once})")
        started = time.process_time()
        found = v.infer(f"(repeat {draws} (do {once} (collect {' '.join(collected)})))")
        seconds = time.process_time() - started
    first = [row for row in found.statistics if row.kernel == found.statistics[0].kernel]
    accepted = sum(row.accepted for row in first) / max(sum(row.transitions for row in first), 1)
    learned = [row.details[LEARNED] for row in first if LEARNED in row.details]
    columns = [np.asarray(found[each], dtype=float) for each in collected]
    states = np.concatenate([column.reshape(*column.shape[:2], -1) for column in columns], axis=2)
    transitions = states.shape[0] * states.shape[1] * thin
    acceptance = float(np.mean(learned)) if learned else accepted
    training = (by[1], by[0].parameters) if by is not None else (0.0, 0)
    return Measured(name, states, log_density(states), transitions, acceptance, seconds, *training)


def bars(axes: Any, found: Sequence[Measured]) -> None:
    """Least effective sizes of 1000 transitions, a bar for each kernel."""
    names = [each.name for each in found][::-1]
    values = [max(each.least, 0.1) for each in found][::-1]
    colours = [POSTERIOR if each.training else PRIOR for each in found][::-1]
    axes.barh(names, values, color=colours, height=0.6)
    axes.set_xscale("log")
    axes.set_xlim(0.1, 2000)
    axes.set_xlabel("least ESS in 1000 transitions")


def save(figure: Any, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=100, metadata={"Software": None})
