"""What kernels learn of a chain while its draws do not count: the length of steps, and the scales of coordinates.

Step sizes follow dual averaging (Hoffman and Gelman 2014, The no-U-turn sampler, section 3.2). Scales are those of the
states of windows, each twice as long as the one before, between stretches in which the step alone is tuned (Stan
reference manual, section on adaptation). Covariances are shrunk towards each coordinate's own variance, never towards
the identity, which on coordinates of other sizes leaves what should be made even.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from venture_lite.interpreter.selection import Selection
from venture_lite.trace.nodes import site_of

LEAST_BURN = 20
"""Runs of a warm-up."""
GAMMA, DELAY, KAPPA = 0.05, 10.0, 0.75
"""Of dual averaging: how hard it pulls towards its centre, how slow it begins, how fast it forgets."""
FIRST, WINDOW, LAST = 75, 25, 50
"""Draws before the first window, in it, and after the last."""
SOON, SHORT = 10, 15
"""Draws before the first window and in it, where a path has led to where the posterior is, through so many coordinates
that its normal knows few of their scales: some are off by ten, and until a window closes paths are as many times as
long."""
SETTLING = 0.15
"""The share of a warm-up after the last window, there: a step that is tuned in fewer draws is often too short, and then
paths take twice as many."""
FEW, FEW_FIRST, FEW_LAST = 150, 0.15, 0.10
"""Below so many draws there is one window, between these shares of them."""
IN_SDS = 0.1
"""A step to begin with once scales are known; dual averaging tries one ten times as long first."""
ENOUGH = 2
"""States for each coordinate, from which their covariance is learned."""
WEIGHT, RIDGE = 5.0, 1e-3
"""Draws that the shrinking is worth, and the share of a coordinate's variance that it adds."""


class DualAveraging:
    """Dual averaging of log steps. Mutable."""

    def __init__(self, start: float, target: float) -> None:
        """From `start`; from what `begin` is told, if that is 0."""
        self.target = target
        self._centre = self._error = self._mean = 0.0
        self._times = 0
        self.now = 0.0
        if start:
            self.begin(start)

    def begin(self, start: float) -> None:
        """Anew, about a step ten times the one given: larger ones are found out soon."""
        self._centre = math.log(10.0 * start)
        self._error = 0.0
        self._times = 0
        self._mean = 0.0
        self.now = start

    def learn(self, acceptance: float) -> None:
        """From the acceptance probability of a transition."""
        self._times += 1
        rate = 1.0 / (self._times + DELAY)
        self._error += rate * (self.target - acceptance - self._error)
        log_step = self._centre - math.sqrt(self._times) / GAMMA * self._error
        share = self._times**-KAPPA
        self._mean += share * (log_step - self._mean)
        self.now = math.exp(log_step)

    def settle(self) -> None:
        """From now on the mean of the logarithms."""
        if self._times:
            self.now = math.exp(self._mean)


class Windows:
    """Which draws of a warm-up belong to windows, and where these end."""

    def __init__(self, burn: int, soon: bool = False) -> None:
        """`soon`: whether the chain begins where the posterior is, with poor scales."""
        self.burn = burn
        first, size, last = (SOON, SHORT, int(SETTLING * burn)) if soon else (FIRST, WINDOW, LAST)
        first, last = (first, last) if burn >= FEW else (int(FEW_FIRST * burn), int(FEW_LAST * burn))
        self.start, self.stop = first, burn - last
        self.ends: set[int] = set()
        size, at = size if burn >= FEW else self.stop - first, first
        while at < self.stop:
            # a window after which the next would not fit takes the rest
            at = at + size if at + 3 * size <= self.stop else self.stop
            self.ends.add(at)
            size *= 2


@dataclass(frozen=True, slots=True)
class FirstScales:
    """What is known of scales before a window: those of the normal that a chain begins in."""

    # by node (K,)
    variances: dict[int, np.ndarray] = field(default_factory=dict)
    # of some choices together: where each is in their covariance, and that; at most one
    joint: list[tuple[dict[int, slice], np.ndarray]] = field(default_factory=list)

    @property
    def are_poor(self) -> bool:
        """Whether there are so many that a path learns little of most."""
        return bool(self.variances) and not self.joint

    @classmethod
    def of(cls, shared: dict[Any, Any]) -> FirstScales:
        """Those of a program, which a start of its chain may learn."""
        found: FirstScales = shared.setdefault(cls, cls())
        return found


class Scales:
    """Variances of the free coordinates of choices, from the states of a window. Mutable.

    A choice is known by its node, a group of choices by its site: what was there in only a part of the window, or not
    at all, takes what its site has.
    """

    def __init__(self, is_dense: bool, of_site: dict[int, float], first: FirstScales | None = None) -> None:
        """`of_site` has the variance of one coordinate, and is shared with the other blocks of a kernel."""
        first = first or FirstScales()
        self.is_dense = is_dense
        self._states: list[tuple[Mapping[int, slice], np.ndarray]] = []
        # by node (K,)
        self._own: dict[int, np.ndarray] = dict(first.variances)
        self._of_site = of_site
        # of the choices that were there in all of the window: where each is in their covariance, and that
        self._joint: tuple[dict[int, slice], np.ndarray] | None = next(iter(first.joint), None)

    def note(self, where: Mapping[int, slice], free: np.ndarray) -> None:
        """A state of the window: of each choice where its coordinates are among all."""
        self._states.append((where, free.copy()))

    def close(self) -> None:
        """Learn from the window, and begin another; of a window of fewer than two states nothing."""
        states, self._states = self._states, []
        if len(states) < 2:
            return
        draws: dict[int, list[np.ndarray]] = {}
        for where, free in states:
            for node, taken in where.items():
                draws.setdefault(node, []).append(free[taken])
        own = {node: _log_variances(each) for node, each in draws.items() if len(each) > 1}
        by_site: dict[int, list[np.ndarray]] = {}
        for node, logs in own.items():
            by_site.setdefault(site_of(node), []).append(logs[np.isfinite(logs)])
        for site, each in by_site.items():
            if (logs := np.concatenate(each)).size:
                self._of_site[site] = math.exp(logs.mean())
        for node, states_of in draws.items():
            # few states say little of one choice: it is pooled with the others of its site, by orders of magnitude,
            # of which those of one site may differ by many
            pooled = math.log(self._of_site.get(site_of(node), 1.0))
            logs = own.get(node, np.full(len(states_of[0]), pooled))
            logs = np.where(np.isfinite(logs), logs, pooled)
            self._own[node] = np.exp((len(states_of) * logs + WEIGHT * pooled) / (len(states_of) + WEIGHT))
        if self.is_dense:
            known, joint = self._covariance(draws, len(states))
            # from fewer states it has directions in which nothing seems to vary, and steps as small
            if len(states) >= ENOUGH * len(joint):
                self._joint = known, joint

    def _covariance(self, draws: Mapping[int, Sequence[np.ndarray]], count: int) -> tuple[dict[int, slice], np.ndarray]:
        known, size = dict[int, slice](), 0
        for node, each in draws.items():
            if len(each) == count:
                known[node] = slice(size, size + len(each[0]))
                size += len(each[0])
        together = np.concatenate([np.zeros((count, 0)), *[np.array(draws[node]) for node in known]], axis=1)
        return known, shrunk(np.cov(together.T).reshape(size, size), count)

    def root(self, where: Mapping[int, slice], size: int) -> np.ndarray:
        """For a block with these choices: (D,) sds, or a lower factor (D, D) of the covariance."""
        variances = np.ones(size)
        for node, taken in where.items():
            found = self._own.get(node)
            variances[taken] = self._of_site.get(site_of(node), 1.0) if found is None else found
        variances = np.where((variances > 0.0) & np.isfinite(variances), variances, 1.0)
        if not self.is_dense:
            return np.sqrt(variances)
        covariance = np.diag(variances)
        if self._joint is not None:
            known, joint = self._joint
            both = [node for node in known if node in where]
            here, there = (
                [i for node in both for i in range(each[node].start, each[node].stop)] for each in (where, known)
            )
            covariance[np.ix_(here, here)] = joint[np.ix_(there, there)]
        try:
            return np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return np.diag(np.sqrt(variances))


def _log_variances(states: Sequence[np.ndarray]) -> np.ndarray:
    """Of coordinates (K,); -inf for one that did not move."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.var(np.array(states), axis=0, ddof=1)))


def tuned(burn: int) -> str:
    """What `'adapt` adds to a move."""
    return f", tuned in the first {burn:,}" if burn else ""


def geometric_mean(numbers: Sequence[float]) -> float:
    """NaN of none."""
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else math.nan


def shrunk(found: np.ndarray, count: int) -> np.ndarray:
    """A covariance (D, D) of so many states, as if WEIGHT more had shown each coordinate alone."""
    return np.asarray((count * found + RIDGE * WEIGHT * np.diag(np.diag(found))) / (count + WEIGHT))


class Metric:
    """Coordinates z with free coordinates `root z`: `root` is (D,), or lower triangular (D, D)."""

    __slots__ = ("_across", "root")

    def __init__(self, root: np.ndarray) -> None:
        self.root = root
        self._across = root.ndim == 2

    def free(self, vector: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.root @ vector if self._across else self.root * vector
        return found

    def pulled(self, gradient: np.ndarray) -> np.ndarray:
        """A gradient by free coordinates as one by z."""
        found: np.ndarray = self.root.T @ gradient if self._across else self.root * gradient
        return found


@dataclass(slots=True)
class BlockTuning:
    """What is known of the steps of one block. Mutable: learns while it adapts."""

    # 0 where it is to be found at the next transition
    step: DualAveraging
    scales: Scales
    # how many windows were closed
    closed: int = 0
    # the last metric, as of which choices
    metric: tuple[tuple[int, ...], Metric] | None = None


class WarmUp:
    """The first runs of an action's loop: transitions, sweeps where it moves one block after the other. Mutable."""

    def __init__(self, burn: int) -> None:
        self.burn = burn
        # as of the transition that was begun last
        self.runs = 0

    @property
    def is_on(self) -> bool:
        return self.runs <= self.burn

    @property
    def left(self) -> int:
        """How many runs adapt still, the present one among them."""
        return max(0, self.burn + 1 - self.runs)

    def begin(self, at: Selection) -> None:
        """A transition of the block at which a selection stands."""
        self.runs = at.runs


class Widths:
    """Of intervals a little longer than slices are, by coordinate, learned in a warm-up. Mutable."""

    def __init__(self, start: float) -> None:
        self._start = start
        # by choice and coordinate: how many moves were seen, and the width
        self._own: dict[tuple[int, int], tuple[int, float]] = {}
        # by site, once the warm-up is over
        self._of_site: dict[int, float] = {}

    def of(self, node: int, index: int, is_learning: bool) -> float:
        """Of a coordinate that comes up after the warm-up that of its site."""
        found = self._own.get((node, index))
        if found is None and not is_learning and not self._of_site:
            widths: dict[int, list[float]] = {}
            for (known, _), (_, width) in self._own.items():
                widths.setdefault(site_of(known), []).append(width)
            self._of_site = {site: geometric_mean(each) for site, each in widths.items()}
        return found[1] if found is not None else self._of_site.get(site_of(node), self._start)

    def learn(self, node: int, index: int, move: float) -> None:
        """From a move of a coordinate, by a mean that forgets how it began (Andrieu and Thoms 2008, section 5.1).

        Two points of a slice are a third of the slice's length apart, on average. Four times that is wider than the
        slice, so that a width that is too small grows also where it is not stepped out.
        """
        times, width = self._own.get((node, index), (0, self._start))
        self._own[node, index] = times + 1, width + (4.0 * abs(move) - width) / (times + 2.0) ** 0.6

    def mean(self) -> float:
        return geometric_mean([width for _, width in self._own.values()])


class Tuner:
    """What an action learns in a warm-up. Mutable."""

    def __init__(
        self,
        start: float,
        target: float,
        burn: int,
        is_dense: bool = False,
        scaled: bool = True,
        finds: bool = False,
        first: FirstScales | None = None,
    ) -> None:
        """From a step to one with an acceptance of `target`; scales too, if asked for, from the `first`. Where the
        kernel `finds` a step to begin with, it is 0 until then, and again when scales have changed."""
        self._start, self._target, self._is_dense = start, target, is_dense
        self._scaled, self._finds, self._first = scaled, finds, first
        self._warm_up = WarmUp(burn)
        # none before the first transition: until then a path may set the block
        self._known_windows: Windows | None = None
        # by block, and the sites that weigh it
        self._tunings: dict[tuple[tuple[int, ...], frozenset[int]], BlockTuning] = {}
        # by these and site, of one coordinate
        self._variances: dict[frozenset[int], dict[int, float]] = {}

    @property
    def burn(self) -> int:
        return self._warm_up.burn

    @property
    def is_adapting(self) -> bool:
        """As of the transition that was begun last."""
        return self._warm_up.is_on

    @property
    def left(self) -> int:
        """Runs that adapt still, that of the last transition among them."""
        return self._warm_up.left

    @property
    def _windows(self) -> Windows:
        if self._known_windows is None:
            self._known_windows = Windows(self.burn, self._first is not None and self._first.are_poor)
        return self._known_windows

    def steps(self) -> list[float]:
        """Of the blocks so far."""
        return [tuning.step.now for tuning in self._tunings.values() if tuning.step.now]

    def begin(self, nodes: Sequence[int], at: Selection, readers: frozenset[int] = frozenset()) -> BlockTuning:
        """A transition of the block at which a selection stands. `readers` are the sites that weigh it: where others
        do, as where another choice decides which of its choices data are of, it has other scales."""
        self._warm_up.begin(at)
        tuning = self._tuning((() if at.selector.kind in ("all", "key") else tuple(nodes), readers))
        passed = sum(end < self._warm_up.runs for end in self._windows.ends) if self._scaled else 0
        if passed > tuning.closed:
            tuning.closed, tuning.metric = passed, None
            tuning.scales.close()
            if self.is_adapting and self._finds:
                tuning.step.now = 0.0
            elif self.is_adapting:
                # in coordinates of sd one a step is a share of these
                tuning.step.begin(tuning.step.now if tuning.closed > 1 else IN_SDS)
        if not self.is_adapting:
            tuning.step.settle()
        return tuning

    def _tuning(self, key: tuple[tuple[int, ...], frozenset[int]]) -> BlockTuning:
        """Of a block that comes up after the others have learned, what these have."""
        found = self._tunings.get(key)
        if found is None:
            step = DualAveraging(self._start, self._target)
            if self._warm_up.runs > self.burn > 0 and (others := self.steps()):
                step.now = geometric_mean(others)
            variances = self._variances.setdefault(key[1], {})
            found = self._tunings[key] = BlockTuning(step, Scales(self._is_dense, variances, self._first))
        return found

    def metric(self, tuning: BlockTuning, where: Mapping[int, slice], size: int) -> Metric:
        """Of a block with these choices."""
        block = tuple(where)
        if tuning.metric is None or tuning.metric[0] != block:
            tuning.metric = block, Metric(tuning.scales.root(where, size))
        return tuning.metric[1]

    def learn(
        self, tuning: BlockTuning, acceptance: float, where: Mapping[int, slice] = {}, free: np.ndarray | None = None
    ) -> None:
        """From a transition: its acceptance probability, and where it ended, None where the choices are others now."""
        if not self.is_adapting:
            return
        tuning.step.learn(acceptance)
        if free is not None and self._scaled and self._windows.start < self._warm_up.runs <= self._windows.stop:
            tuning.scales.note(where, free)
