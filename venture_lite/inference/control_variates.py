"""Control variates for the sequential test: a second-order expansion of each row's term in its linear predictor.

The sum of the expansions over all rows is a quadratic in the block, known from one gradient and one Hessian; what is
left of each row is small, and the test works on that (Bardenet, Doucet and Holmes 2017, On Markov chain Monte Carlo
methods for tall data, section 7.2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from venture_lite.inference.linear_block import LinearBlock, summed_gradient, summed_hessian
from venture_lite.trace.directives import Model
from venture_lite.trace.sections import Sections

RECENT = 200
"""Transitions over which the use of rows is watched."""
MOST_FRACTION = 0.1
MOST_MINIBATCHES = 5
"""More of the rows and more minibatches than this, on average, ask for a new expansion."""


class Expansion:
    """The expansions of all rows of a block's sections about the block's conditional mode."""

    def __init__(self, model: Model, sections: Sections, block: Sequence[int]) -> None:
        self.sections = sections
        self.linear = LinearBlock(model, sections, block)
        self._reads = sections.columns_read_besides()
        self._stamps = [column.stamp for column in self._reads]
        # evaluations of rows that the expansion took, those of the search for the mode included
        self.rows = 0
        self.is_exact = all(kind.predictor.is_quadratic for kind in self.linear.kinds)
        self._fractions: deque[float] = deque(maxlen=RECENT)
        self._batches: deque[float] = deque(maxlen=RECENT)
        self._read_since = 0
        self._expand()

    def is_current(self) -> bool:
        """Whether all that the likelihoods read, the block aside, is as it was."""
        return all(column.stamp == stamp for column, stamp in zip(self._reads, self._stamps, strict=True))

    def _expand(self) -> None:
        block, count = self.linear, self.sections.count
        self.center, self.gradient_norm, evaluations = block.mode()
        gradient = np.zeros(block.size)
        self._hessian = np.zeros((block.size, block.size))
        # for each kind the predictors at the center and the two derivatives, (rows,) or with the predictor's shape
        self._kept = []
        for kind in block.kinds:
            eta = kind.eta(block.coefficients(self.center, kind))
            _, first, second = block.terms(self.center, kind)
            gradient += summed_gradient(kind, first)
            self._hessian += summed_hessian(kind, second)
            self._kept.append((eta, first, second))
        self._gradient = gradient
        self.rows += count * (evaluations + 1)
        self._read_since = 0

    def watch(self, rows: int, batch: int) -> None:
        """Note what a transition read; expand anew where that is too much, at most once for each N rows read."""
        count = self.sections.count
        self._fractions.append(rows / count)
        self._batches.append(rows / batch)
        self._read_since += rows
        if (
            len(self._fractions) == RECENT
            and self._read_since >= count
            and np.mean(self._fractions) > MOST_FRACTION
            and np.mean(self._batches) > MOST_MINIBATCHES
        ):
            self._expand()
            self._fractions.clear()
            self._batches.clear()

    def total(self, old: np.ndarray, new: np.ndarray) -> float:
        """The change of the expansions' sum over all rows between two values of the block, in O(D^2)."""
        away, further = old - self.center, new - self.center
        step = new - old
        return float(self._gradient @ step + 0.5 * step @ self._hessian @ (away + further))

    def residuals(self, kind: int, positions: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """The change of some rows' terms less that of their expansions."""
        linear, block = self.linear.kinds[kind], self.linear
        center, first, second = (_of_rows(kept, positions, linear.count) for kept in self._kept[kind])
        etas = [linear.eta(block.coefficients(theta, linear), positions) for theta in (old, new)]
        # both in one call: for a minibatch NumPy's calls cost more than its arithmetic
        eta = np.concatenate(etas)
        with np.errstate(all="ignore"):
            terms = linear.predictor.taylor(*linear.given(eta, np.concatenate((positions, positions))))[0]
        before, after = (_expanded(at - center, first, second) for at in etas)
        rows = len(positions)
        return np.asarray(terms[rows:] - terms[:rows] - (after - before))


def _expanded(away: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """A quadratic without its constant, one for each row."""
    if away.ndim == 1:
        return np.asarray(away * (first + 0.5 * second * away))
    bent = np.einsum("...k,...kl->...l", away, second)
    return np.asarray(np.einsum("...k,...k->...", away, first + 0.5 * bent))


def _of_rows(kept: np.ndarray, positions: np.ndarray, count: int) -> np.ndarray:
    return kept[positions] if np.ndim(kept) and len(kept) == count else kept
