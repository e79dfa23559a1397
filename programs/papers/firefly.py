"""What the experiments of Firefly Monte Carlo share (Maclaurin and Adams 2014, Table 1 and Figure 4).

Kernels are compared by effective draws a query. A query is one row's likelihood, with its gradient if any, at one new
value of the weights; what a kernel knows of its present value is no query. Set-up, the search for the mode and burn-in
are counted apart. Effective sizes are bulk ESS of each coordinate of the weights.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from venture_lite import Draws, Venture
from venture_lite.blocks.linear_block import LinearBlock
from venture_lite.blocks.sections import Sections
from venture_lite.draws import diagnostics
from venture_lite.engines.firefly.firefly import Firefly, FireflySettings
from venture_lite.engines.firefly.flymc import FireflyMove
from venture_lite.interpreter.model import Model

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import EXACT, OTHER, POSTERIOR, STYLE, panels

TUNING_ROUND = 100
"""Transitions between two changes of the step of a kernel that does not tune its own."""
BATCHES = 40
"""Of all draws, by which the error of an sd is measured: each some ten autocorrelation times long."""
UNTUNED = FireflySettings(bound=None, at_mode=False, q=0.1, explicit=None, preconditioned=False)
AT_MODE = FireflySettings(bound=None, at_mode=True, q=0.01, explicit=None, preconditioned=False)
"""Two ways to bound and to brighten, of which Figure 4 shows the way from the prior."""


@dataclass(frozen=True)
class Measured:
    """What one kernel did after it was tuned."""

    name: str
    # (chains, draws, coordinates)
    draws: np.ndarray
    # transitions that the draws are of
    transitions: int
    # means over these transitions
    queries: float
    accepted: float
    # rows evaluated before them, by the search for the mode and the set-up of the bounds
    set_up: int
    # the step they were made with
    step: float
    # CPU seconds a transition, adaptation and set-up among them
    seconds: float

    @cached_property
    def ess(self) -> np.ndarray:
        """(coordinates,)"""
        columns = range(self.draws.shape[2])
        return np.array([diagnostics.ess_bulk(self.draws[:, :, column]) for column in columns])

    @cached_property
    def sd_error(self) -> np.ndarray:
        """(coordinates,) The Monte Carlo standard error of an estimated sd, as a share of it: half of that of the mean
        square about the mean, by batch means."""
        squares = np.square(self.draws - self.draws.mean(axis=(0, 1)))
        chains, draws, coordinates = squares.shape
        batches = max(min(BATCHES // chains, draws // 2), 1)
        whole = squares[:, : draws // batches * batches]
        means = whole.reshape(chains * batches, -1, coordinates).mean(axis=1)
        found: np.ndarray = 0.5 * means.std(axis=0, ddof=1) / means.mean(axis=0) / np.sqrt(len(means))
        return found

    def speedup(self, regular: Measured, summary: Callable[[np.ndarray], Any]) -> float:
        """Effective draws a query, as a multiple of another kernel's; of the median coordinate, or the smallest."""
        own, other = (summary(found.ess) / (found.transitions * found.queries) for found in (self, regular))
        return float(own / other)


def measured(
    v: Venture, name: str, kernel: str, transitions: int, thin: int, adapting: int = 0, collected: str = "w"
) -> Measured:
    """Runs a kernel, written without its parenthesis and count, on the scope `w`; `adapting` as its text says."""
    started = time.process_time()
    draws = v.infer(f"(repeat {(adapting + transitions) // thin} (do ({kernel} {thin}) (collect {collected})))")
    seconds = time.process_time() - started
    assert isinstance(draws, Draws)
    (statistics,) = draws.statistics
    details = statistics.details
    kept = draws.without_adaptation()[collected]
    return Measured(
        name,
        kept.reshape(*kept.shape[:2], -1),
        transitions,
        details.get("queries a transition", float(rows_of(v))),
        details.get("acceptance", statistics.accepted / statistics.transitions),
        int(details.get("queries of set-up", 0)),
        details.get("step", 0.0),
        seconds / (adapting + transitions),
    )


def tuned(v: Venture, kernel: str, step: float, target: float, transitions: int) -> float:
    """The step, for `{step}` in the kernel's text, with which a target share of proposals is accepted (Robbins and
    Monro 1951)."""
    for made in range(1, transitions // TUNING_ROUND + 1):
        draws = v.infer(f"({kernel.format(step=step)} {TUNING_ROUND})")
        assert isinstance(draws, Draws)
        step *= float(np.exp((draws.statistics[0].accepted / TUNING_ROUND - target) / made**0.6))
    return step


HEADER = (
    f"{'kernel':<26} {'queries':>8} {'accepted':>8} {'ESS per 1000':>15} {'ESS':>13} {'speedup':>13} "
    f"{'set-up':>10} {'CPU':>9}\n"
    f"{'':<26} {'':>8} {'':>8} {'median':>8} {'least':>6} {'median':>6} {'least':>6} {'median':>6} {'least':>6}"
)


def line(found: Measured, regular: Measured) -> str:
    median, least = float(np.median(found.ess)), float(found.ess.min())
    faster, worst = found.speedup(regular, np.median), found.speedup(regular, np.min)
    rate = 1000 / found.transitions
    return (
        f"{found.name:<26} {found.queries:>8,.0f} {found.accepted:>8.3f} {median * rate:>8.2f} {least * rate:>6.2f} "
        f"{median:>6.0f} {least:>6.0f} {faster:>6.1f} {worst:>6.1f} "
        f"{found.set_up:>10,} {1e6 * found.seconds:>6,.0f} us"
    )


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two kernels' posteriors are apart, in the worst coordinate."""

    # difference of means in Monte Carlo standard errors
    means: float
    # ratio of sds, less 1
    lowest_sd: float
    highest_sd: float
    # the same in Monte Carlo standard errors, of which the median coordinate's is `sd_error`
    sds: float
    sd_error: float

    def __str__(self) -> str:
        return (
            f"means within {self.means:.2f} standard errors, sds {self.lowest_sd:+.1%} to {self.highest_sd:+.1%}, "
            f"within {self.sds:.2f} standard errors (of {self.sd_error:.1%})"
        )


def agreement(found: Measured, reference: Measured) -> Agreement:
    means = [each.draws.mean(axis=(0, 1)) for each in (found, reference)]
    sds = [each.draws.std(axis=(0, 1), ddof=1) for each in (found, reference)]
    mean_errors = np.hypot(sds[0] / np.sqrt(found.ess), sds[1] / np.sqrt(reference.ess))
    apart, ratio = np.abs(means[0] - means[1]) / mean_errors, sds[0] / sds[1] - 1.0
    sd_errors = np.hypot(found.sd_error, reference.sd_error)
    return Agreement(
        means=float(apart.max()),
        lowest_sd=float(ratio.min()),
        highest_sd=float(ratio.max()),
        sds=float(np.max(np.abs(ratio) / sd_errors)),
        sd_error=float(np.median(sd_errors)),
    )


# -------------------------------------------------------------------------------------------- the way from the prior


@dataclass(frozen=True, slots=True)
class Course:
    """A run from a draw of the prior, as Figure 4 shows it."""

    # (points,) log posterior density, up to a constant, after every `EACH` transitions
    log_density: np.ndarray
    # (points,) rows evaluated for a transition, the mean over those since the last point
    queries: np.ndarray


EACH = 20


@dataclass(frozen=True, slots=True)
class Beginnings:
    """Runs from draws of the prior, some of each kernel."""

    # a session at the draw that a seed gives
    begin: Callable[[int], Venture]
    # for each kernel, and transitions of each
    runs: int
    transitions: int

    def courses(
        self, regular: str, walks: list[Measured], move: FireflyMove, collected: str = "w"
    ) -> dict[str, list[Course]]:
        """Of the regular kernel, as in `regular_course`, and of Firefly's first two, untuned and at the mode, with the
        steps that were tuned."""
        seeds = range(self.runs)
        found = {"regular": [regular_course(self.begin(seed), regular, self.transitions, collected) for seed in seeds]}
        for walk, settings in zip(walks, (UNTUNED, AT_MODE), strict=False):
            found[walk.name] = [
                firefly_course(self.begin(seed), settings, move, walk.step, self.transitions) for seed in seeds
            ]
        return found


def firefly_course(v: Venture, settings: FireflySettings, move: FireflyMove, step: float, transitions: int) -> Course:
    chain, nodes = block(v)
    firefly = Firefly(chain, nodes, settings, lambda message: None)
    firefly.queries.clear()
    density, queries = [], []
    for _ in range(transitions // EACH):
        for _ in range(EACH):
            firefly.resample(settings)
            move(firefly, step)
        density.append(firefly.linear.log_density(firefly.theta))
        queries.append(firefly.queries.total() / EACH)
        firefly.queries.clear()
    return Course(np.array(density), np.array(queries))


def regular_course(v: Venture, kernel: str, transitions: int, collected: str = "w") -> Course:
    """Of a kernel that evaluates every row at every transition, written without its parenthesis and count."""
    chain, nodes = block(v)
    linear = LinearBlock(chain, Sections.of(chain, nodes), nodes)
    draws = v.infer(f"(repeat {transitions // EACH} (do ({kernel} {EACH}) (collect {collected})))")
    assert isinstance(draws, Draws)
    density = np.array([linear.log_density(np.ravel(value)) for value in draws[collected][0]])
    return Course(density, np.full(len(density), float(rows_of(v))))


def block(v: Venture) -> tuple[Model, list[int]]:
    """The chain, and the choices of the scope `w`."""
    chain = v.traces[0]
    return chain, chain.trace.scopes["w"].everything()


def rows_of(v: Venture) -> int:
    """Rows whose likelihood reads them."""
    return Sections.of(*block(v)).count


COLOURS = ("black", OTHER, POSTERIOR, EXACT)


def draw(courses: dict[str, list[Course]], out: Path) -> None:
    """Figure 4: log posterior density and rows evaluated, mean and one sd over several runs of each kernel."""
    from matplotlib import rc_context

    style: Any = STYLE
    with rc_context(style):
        figure, (left, right) = panels(1, 2)
        for (name, runs), colour in zip(courses.items(), COLOURS, strict=False):
            transitions = EACH * np.arange(1, len(runs[0].queries) + 1)
            density = np.array([run.log_density for run in runs])
            queries = np.array([run.queries for run in runs])
            for axes, values in ((left, density), (right, queries)):
                mean, sd = values.mean(axis=0), values.std(axis=0)
                axes.plot(transitions, mean, color=colour, label=name)
                # an interval that reaches 0 cannot be drawn on a logarithmic axis
                low = np.maximum(mean - sd, values.min(axis=0))
                axes.fill_between(transitions, low, mean + sd, color=colour, alpha=0.25, linewidth=0)
        best = max(float(run.log_density.max()) for runs in courses.values() for run in runs)
        end = min(float(run.log_density[-1]) for runs in courses.values() for run in runs)
        away = max(best - end, 20.0)
        left.set(xlabel="transitions", ylabel="log posterior density", ylim=(best - 8 * away, best + away))
        right.set(xlabel="transitions", ylabel="rows evaluated for a transition", yscale="log")
        right.legend(loc="center right")
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, dpi=90, metadata={"Software": None})
