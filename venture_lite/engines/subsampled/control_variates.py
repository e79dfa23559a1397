"""Control variates for the sequential test: a second-order expansion of each row's term in its linear predictor.

The sum of the expansions over all rows is a quadratic in the block, known from one gradient and one Hessian; what is
left of each row is small, and the test works on that (Bardenet, Doucet and Holmes 2017, On Markov chain Monte Carlo
methods for tall data, section 7.2).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from venture_lite.blocks.linear_block import LinearBlock, summed_gradient, summed_hessian
from venture_lite.blocks.modes import is_current, mode_of
from venture_lite.procedures.predictor import Quadratic, QuadraticRows

RECENT = 200
"""Transitions over which the use of rows is watched."""
ROUNDING = 1e-12
"""What a minibatch's expansions leave over, relative to its terms, below which it is rounding."""
MOST_FRACTION = 0.1
MOST_MINIBATCHES = 5
"""More of the rows and more minibatches than these, on average, ask for a new expansion."""


class Expansion:
    """The expansions of all rows of a block's sections about the block's conditional mode."""

    def __init__(self, linear: LinearBlock) -> None:
        self.linear = linear
        # evaluations of rows that the expansions took, those of the search for the mode included
        self.rows = 0
        # rows that each of the last transitions used
        self._recent: deque[int] = deque(maxlen=RECENT)
        self._read_since = 0
        self._mode, was_kept = mode_of(linear)
        # whether rows have come, gone or changed: from then on the center is the mode of those that there are
        self._rows_change = False
        self.rows += 0 if was_kept else linear.count * self._mode.evaluations
        self._expand(self._mode.at)

    @property
    def inexact(self) -> list[int]:
        """The kinds whose rows' expansions leave something over."""
        return [at for at, kind in enumerate(self.linear.kinds) if not kind.predictor.is_quadratic]

    def follows(self, linear: LinearBlock) -> bool:
        """Whether the expansion's mode is that of the model and its data."""
        return is_current(self._mode, linear)

    def follow(self, linear: LinearBlock) -> None:
        """The block as it is read now; expanded anew where its likelihoods have changed."""
        before, self.linear = self.linear, linear
        if before.reads_as(linear):
            return
        self._rows_change |= not linear.has_rows_of(before)
        # always from where the first search ended: in the present values it must not begin, for where there are several
        # modes a transition and the way back would then work with different expansions
        self._expand(self._searched(self._mode.at) if self._rows_change else self.center)
        self._recent.clear()

    def _searched(self, start: np.ndarray) -> np.ndarray:
        found, _, evaluations = self.linear.mode(start=start)
        self.rows += self.linear.count * evaluations
        return found

    def _expand(self, center: np.ndarray) -> None:
        block, self.center = self.linear, center
        gradient = np.zeros(block.size)
        self._hessian = np.zeros((block.size, block.size))
        # for each kind the rows' expansions about the center, without the constant
        self._kept: list[QuadraticRows] = []
        for kind in block.kinds:
            eta = kind.eta(block.coefficients(self.center, kind))
            _, first, second = block.terms(self.center, kind)
            gradient += summed_gradient(kind, first)
            self._hessian += summed_hessian(kind, second)
            first = np.broadcast_to(first, eta.shape)
            self._kept.append(QuadraticRows(Quadratic(eta, np.zeros(len(eta)), first, second)))
        self._gradient = gradient
        self.rows += block.count
        self._read_since = 0

    def watch(self, rows: int, batch: int) -> None:
        """Note what a transition read; expand anew where that is too much, at most once for each N rows read."""
        self._recent.append(rows)
        self._read_since += rows
        count = self.linear.count
        if len(self._recent) == RECENT and self._read_since >= count:
            mean = sum(self._recent) / RECENT
            if mean > MOST_FRACTION * count and mean > MOST_MINIBATCHES * batch:
                self._expand(self._searched(self.center))
                self._recent.clear()

    def bytes_used(self) -> int:
        return self._hessian.nbytes + sum(rows.bytes_used() for rows in self._kept)

    def total(self, old: np.ndarray, new: np.ndarray) -> float:
        """The change of the expansions' sum over all rows between two values of the block, in O(D^2)."""
        away, further = old - self.center, new - self.center
        step = new - old
        return float(self._gradient @ step + 0.5 * step @ self._hessian @ (away + further))

    def residuals(self, kind: int, positions: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """The change of some rows' terms less that of their expansions; zeros where that is nothing but rounding."""
        linear, block = self.linear.kinds[kind], self.linear
        # both in one call: for a minibatch NumPy's calls cost more than its arithmetic
        eta = np.concatenate([linear.eta(block.coefficients(theta, linear), positions) for theta in (old, new)])
        twice = np.concatenate((positions, positions))
        with np.errstate(all="ignore"):
            terms = linear.predictor.first_order(*linear.given(eta, twice))[0]
        expanded, rows = self._kept[kind].at(eta, twice)[0], len(positions)
        change = terms[rows:] - terms[:rows]
        left = change - (expanded[rows:] - expanded[:rows])
        return np.zeros(rows) if left @ left <= ROUNDING**2 * (change @ change) else np.asarray(left)
