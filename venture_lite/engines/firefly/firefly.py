"""Firefly Monte Carlo's state of one block (Maclaurin and Adams 2014): bounds, which rows are bright, what is known.

Each row has a lower bound B <= L of its likelihood, quadratic in the linear predictor, and a brightness: bright with
probability 1 - B / L. Given the brightness the block's density is

    prior x product of all B x product over bright rows of (L - B) / B,

the second factor one quadratic in the block. So a value of the block costs the bright rows and O(D^2), and summed over
the brightness the density is the posterior's. With the gap g = log L - log B, log((L - B) / B) = log(expm1(g)).

A likelihood that is itself quadratic in the predictor is its own bound: its rows are never bright.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.linear_block import LinearBlock, refuse_dependent
from venture_lite.blocks.linear_mode import is_near_mode
from venture_lite.blocks.modes import Mode, is_current, mode_of
from venture_lite.blocks.precondition import LOOKS, Scale, scale_of_linear
from venture_lite.blocks.sections import Sections
from venture_lite.engines.firefly.brightness import Brightness, chosen
from venture_lite.engines.firefly.firefly_bounds import BoundedRows, bound_of, bright_probability, collapse
from venture_lite.errors import VentureError
from venture_lite.interpreter.ancestry import readers_come_and_go
from venture_lite.interpreter.model import GivenValues, Model
from venture_lite.trace.kept import SetUp

CHUNK = 32768
"""Rows evaluated in one call where all are."""


GapTerms = tuple[np.ndarray, list[np.ndarray]]
"""Of some rows at one value of the block: log((L - B) / B), and by kind the gaps' derivatives by the predictor."""


@dataclass(frozen=True, slots=True)
class FireflySettings:
    """How one action bounds and resamples."""

    # a bound's name; None for each likelihood's first
    bound: str | None
    # whether the bounds touch at the block's conditional mode, else where they are placed without looking at the data
    at_mode: bool
    # probability with which a dark row is proposed to brighten, above 0
    q: float
    # the fraction of rows whose brightness is drawn from its conditional in place of the proposals; None: the proposals
    explicit: float | None
    # whether the moves' steps are scaled by the curvature at the mode
    preconditioned: bool

    @property
    def made_from(self) -> tuple[str | None, bool, bool]:
        """What the bounds follow from, and with them the state that actions share."""
        return self.bound, self.at_mode, self.preconditioned


@dataclass(slots=True)
class FireflyPoint:
    """A value of the block with the log density that the present brightness gives it."""

    theta: np.ndarray
    log_prior: float
    # log prior and the logarithm of all bounds are counted from the block's present value: far from where the bounds
    # touch their sum is so large that nothing would be left of a difference
    log_density: float
    # (D,), of log prior and bounds, and of the log density; None where nobody asked
    smooth_gradient: np.ndarray | None
    gradient: np.ndarray | None
    # what was found at the bright rows, in their order: log((L - B) / B), and by kind the gaps' slopes
    excess: np.ndarray
    slopes: list[np.ndarray]


class Firefly:
    """One block's bounds and brightness. Lives with the trace; `refresh` looks what others have changed meanwhile. An
    error in the middle of a change leaves it broken."""

    def __init__(
        self, model: Model, block: Sequence[int], settings: FireflySettings, warn: Callable[[str], None]
    ) -> None:
        self.model = model
        self.block = list(block)
        self.settings = settings
        # of the program that runs now
        self.warn = warn
        self.rng = model.trace.rng
        # evaluations of rows, by purpose
        self.queries: Counter[str] = Counter()
        # steps are scaled by its factor; None: not at all
        self.scale: Scale | None = None
        self.is_scale_new = False
        self._mode: Mode | None = None
        # whether rows have come, gone or changed: from then on bounds are placed at the mode of those that there are
        self._rows_change = False
        self._version = -1
        self._read(self._sections_now())
        self._bound()
        self._note()

    # ------------------------------------------------------------------------------------------------ freshness

    def follows(self, warn: Callable[[str], None]) -> bool:
        """Whether the state serves a program that runs now: the mode is that of the model and its data."""
        self.warn = warn
        if self._mode is None or self._mode.edition == self.model.kept.edition:
            return True
        return is_current(self._mode, LinearBlock(self.model, self._sections_now(), self.block))

    def _sections_now(self) -> Sections:
        """How many rows read a memoized choice is for inference to say: a cluster may have one, or none."""
        trace = self.model.trace
        code, _, row = trace.decode(self.block[0])
        return Sections.of(self.model, self.block, fewest=0 if readers_come_and_go(trace, code, row) else 2)

    def refresh(self) -> None:
        """Make good what other kernels have changed since: nothing, the brightness, or the bounds as well."""
        journal = self.model.trace.journal
        if self._version == journal.version and self.sections.is_valid():
            return
        if not self.sections.is_valid():
            self._reread(self._sections_now())
        elif not self.linear.is_as_read():
            self._reread(self.sections)
        else:
            self.linear.read_priors()
        if not np.array_equal(self.theta, self.linear.present()):
            self._draw_all()
        else:
            self._stand(self.theta, self.linear.log_prior(self.theta))
        self._note()

    def _reread(self, sections: Sections) -> None:
        """The likelihood may read something new: if so, bounds and statistics are made again."""
        before, was_read = self.rows, self.linear
        self._read(sections)
        if len(before) == len(self.rows) and all(map(BoundedRows.reads_the_same, before, self.rows)):
            for old, new in zip(before, self.rows, strict=True):
                new.quadratics, new.slopes = old.quadratics, old.slopes
        else:
            self._rows_change |= not self.linear.has_rows_of(was_read)
            self._bound()

    def _note(self) -> None:
        self.linear.look()
        self._version = self.model.trace.journal.version

    def _read(self, sections: Sections) -> None:
        self.sections = sections
        self.linear = LinearBlock(self.model, sections, self.block)
        refuse_dependent(self.model, set(sections.order), self.block)
        self.rows: list[BoundedRows] = []
        first = 0
        for kind, linear in zip(sections.kinds, self.linear.kinds, strict=True):
            bound = bound_of(kind, linear, self.settings.bound)
            self.rows.append(BoundedRows(kind, linear, bound, first))
            first += self.rows[-1].count
        self.count = first

    # -------------------------------------------------------------------------------------------------- set-up

    def _bound(self) -> None:
        """Place the bounds, sum them, and draw every brightness."""
        reference, was_searched = self._center()
        settings = self.settings
        for rows in self.rows:
            if rows.bound is not None:
                eta = rows.linear.eta(self.linear.coefficients(reference, rows.linear))
                rows.touch(eta if settings.at_mode else np.full_like(eta, rows.bound.untuned))
        self._collapsed = collapse(self.linear, self.rows, reference)
        self.queries["set-up"] += self.count
        if was_searched:
            self._warn_of(reference)
        if settings.preconditioned and self.scale is None:
            self.scale, was_kept = scale_of_linear(self.linear)
            self.is_scale_new = not was_kept
            self.queries["set-up"] += 0 if was_kept else LOOKS * self.sections.count
        self._excess = np.zeros(self.count)
        self._draw_all("set-up")

    def _center(self) -> tuple[np.ndarray, bool]:
        """(D,) about which the bounds are summed, and whether it is a mode that was searched now."""
        if not (self.settings.at_mode or self.settings.preconditioned):
            return self.linear.present(), False
        was_kept = True
        if self._mode is None:
            self._mode, was_kept = mode_of(self.linear)
            self.queries["set-up"] += 0 if was_kept else self._mode.evaluations * self.sections.count
        if not self._rows_change:
            return self._mode.at, not was_kept
        # always from where the first search ended: with several modes, where it begins must not depend on the block
        center, _, evaluations = self.linear.mode(start=self._mode.at)
        self.queries["set-up"] += evaluations * self.sections.count
        return center, True

    def settle(self) -> bool:
        """Move the block to where its scale holds, if it is not there, and draw every brightness; whether it moved."""
        scale, linear = self.scale, self.linear
        assert scale is not None
        self.queries["set-up"] += 2 * self.sections.count
        if scale.holds(linear.log_density(scale.mode), linear.log_density(linear.present())):
            return False
        if not self._place(scale.draw(self.rng)):
            return False
        self._draw_all("set-up")
        self._note()
        return True

    def _warn_of(self, mode: np.ndarray) -> None:
        """Say so where a search ended more than a tenth of a posterior sd away."""
        assert self._mode is not None
        if not is_near_mode(self.linear, mode, -self._collapsed.diagonal()):
            norm = self._mode.norm
            self.warn(
                f"flymc: the search for the mode did not converge (norm of the gradient {norm:.3g}): more rows than "
                "need be are bright"
            )

    def _draw_all(self, purpose: str = "other kernels' moves") -> None:
        """Every brightness from its conditional at the block's present value."""
        theta = self.linear.present()
        if self._collapsed.is_far(theta):
            self._collapsed = collapse(self.linear, self.rows, theta)
            self.queries[purpose] += self.count
        self._stand(theta, self.linear.log_prior(theta))
        for first in range(0, self.count, CHUNK):
            self.model.poll()
            part = np.arange(first, min(first + CHUNK, self.count))
            self._keep(part, *self._query(self.theta, part, purpose))
        self.brightness = Brightness(self.rng.random(self.count) < bright_probability(self._excess))

    def _stand(self, theta: np.ndarray, log_prior: float, smooth_gradient: np.ndarray | None = None) -> None:
        """At this value, with the gradient of log prior and bounds as far as it is known."""
        self.theta, self._log_prior, self._smooth_gradient = theta, log_prior, smooth_gradient

    # ---------------------------------------------------------------------------------------------- evaluation

    def _query(self, theta: np.ndarray, rows: np.ndarray, purpose: str) -> GapTerms:
        self.queries[purpose] += len(rows)
        excess, slopes = np.empty(len(rows)), []
        for kind, places, positions in self._by_kind(rows):
            excess[places], slope = kind.excess(self.linear.coefficients(theta, kind.linear), positions)
            slopes.append(slope)
        return excess, slopes

    def _by_kind(self, rows: np.ndarray) -> list[tuple[BoundedRows, Any, np.ndarray]]:
        """(kind, which of the given rows are its, their positions in it)"""
        bounded = [kind for kind in self.rows if kind.count]
        if len(bounded) == 1:
            return [(bounded[0], slice(None), rows)]
        found = []
        for kind in bounded:
            places = np.flatnonzero((rows >= kind.first) & (rows < kind.first + kind.count))
            found.append((kind, places, rows[places] - kind.first))
        return found

    def _keep(self, rows: np.ndarray, excess: np.ndarray, slopes: list[np.ndarray]) -> None:
        """What was found at the block's present value."""
        self._excess[rows] = excess
        for (kind, _, positions), slope in zip(self._by_kind(rows), slopes, strict=True):
            kind.slopes[positions] = slope

    def _smooth_gradient_at(self, theta: np.ndarray) -> np.ndarray:
        """(D,), of the log prior and the logarithm of all bounds."""
        found: np.ndarray = self.linear.prior_gradient(theta) + self._collapsed.gradient_at(theta)
        return found

    def _point(
        self, theta: np.ndarray, log_prior: float, smooth_gradient: np.ndarray | None, found: GapTerms
    ) -> FireflyPoint:
        excess, slopes = found
        smooth = log_prior - self._log_prior
        if theta is not self.theta:
            smooth += self._collapsed.change(self.theta, theta)
        log_density = smooth + float(excess.sum())
        if smooth_gradient is None:
            return FireflyPoint(theta, log_prior, log_density, None, None, excess, slopes)
        gradient = smooth_gradient.copy()
        # a row that is bright where its gap is rounding has no gradient; its log density is -inf
        with np.errstate(all="ignore"):
            weights = 1.0 / bright_probability(excess)
            for (kind, places, positions), slope in zip(self._by_kind(self.brightness.bright), slopes, strict=True):
                first = slope * (weights[places, None] if slope.ndim == 2 else weights[places])
                features = kind.linear.features.take(positions, axis=0)
                gradient += (first.T @ features).ravel() if first.ndim == 2 else first @ features
        return FireflyPoint(theta, log_prior, log_density, smooth_gradient, gradient, excess, slopes)

    def here(self, steep: bool = False) -> FireflyPoint:
        """The present value, from what is kept."""
        bright = self.brightness.bright
        slopes = [kind.slopes[positions] for kind, _, positions in self._by_kind(bright)]
        if steep and self._smooth_gradient is None:
            self._smooth_gradient = self._smooth_gradient_at(self.theta)
        smooth_gradient = self._smooth_gradient if steep else None
        return self._point(self.theta, self._log_prior, smooth_gradient, (self._excess[bright], slopes))

    def at(self, theta: np.ndarray, steep: bool = False) -> FireflyPoint:
        """Another value of the block; `steep`: with its gradient."""
        found = self._query(theta, self.brightness.bright, "proposals")
        smooth_gradient = self._smooth_gradient_at(theta) if steep else None
        return self._point(theta, self.linear.log_prior(theta), smooth_gradient, found)

    def poll(self) -> None:
        self.model.poll()

    # ------------------------------------------------------------------------------------------------- changes

    def move(self, point: FireflyPoint) -> bool:
        """Put a value in place, in the trace as well; False, and nothing changed, where the trace rejects it."""
        if not self._place(point.theta):
            return False
        self._stand(point.theta, point.log_prior, point.smooth_gradient)
        self._keep(self.brightness.bright, point.excess, point.slopes)
        self._note()
        return True

    def _place(self, theta: np.ndarray) -> bool:
        """In the trace; False, and the trace as it was, where an error in what else is computed from the block rejects
        the value: rows and priors do not show it."""
        try:
            with self.model.transaction() as change:
                values = dict(zip(self.block, self.linear.values(theta), strict=True))
                self.sections.propose(GivenValues(values, counts=False))
                change.keep()
        except VentureError as error:
            if not self.sections.rejects(error):
                raise
            return False
        return True

    def resample(self, settings: FireflySettings) -> None:
        """One transition of the brightness given the block's value, as an action says."""
        if not self.count:
            return
        if settings.explicit is None:
            self._resample_implicitly(settings.q)
        else:
            self._resample_some(math.ceil(settings.explicit * self.count))

    def bytes_used(self) -> int:
        """Of what is kept by rows, and of features that are no view of the trace's columns."""
        parts: list[SetUp] = [self.linear, *self.rows, self.brightness, self._collapsed]
        return self._excess.nbytes + sum(part.bytes_used() for part in parts)

    def _resample_implicitly(self, q: float) -> None:
        """Algorithm 2: every bright row is proposed to go dark, each dark one with probability q to brighten; accepted
        with probability q / ((L - B) / B), or its inverse. (Line 10 has the inequality reversed in print.)"""
        bright, dark = self.brightness.bright, self.brightness.dark
        draw, log_q = self.rng.standard_exponential, math.log(q)
        darkened = bright[-draw(len(bright)) < log_q - self._excess[bright]]
        tried = dark[chosen(self.rng, len(dark), q)]
        excess, slopes = self._query(self.theta, tried, "brightening")
        self._keep(tried, excess, slopes)
        brightened = tried[-draw(len(tried)) < excess - log_q]
        self.brightness.darken(darkened)
        self.brightness.brighten(brightened)

    def _resample_some(self, count: int) -> None:
        """The brightness of some rows, drawn without replacement, from its conditional; what is known of bright ones
        is no query."""
        rows = self.rng.choice(self.count, count, replace=False, shuffle=False)
        was_bright = self.brightness.is_bright(rows)
        unknown = rows[~was_bright]
        self._keep(unknown, *self._query(self.theta, unknown, "brightening"))
        is_bright = self.rng.random(len(rows)) < bright_probability(self._excess[rows])
        self.brightness.darken(rows[was_bright & ~is_bright])
        self.brightness.brighten(rows[is_bright & ~was_bright])
