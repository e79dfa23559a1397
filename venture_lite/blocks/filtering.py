"""Chains of finitely many states by forward filtering and backward sampling.

Chains stand side by side in arrays padded to one length and one number of candidates: C chains of P states with K
candidates each. The density of a chain is a product of terms of one state and terms of two neighbours; forward, the
terms up to each state are summed over all states before it; backward, states are drawn from the last to the first, each
given the one after it (Fruehwirth-Schnatter 1994, section 3; Scott 2002, Bayesian Methods for Hidden Markov Models,
equations 6 to 9).

A log weight is a pair, as everywhere: how many terms are impossible, and the sum of the others. Paths with the fewest
impossible terms are the only ones that are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(slots=True)
class ChainTerms:
    """The log weights of C chains; mutable while terms are added."""

    # sums of what is possible: of single states (C, P, K), and of neighbours (C, P - 1, K, K), the earlier one first
    single: np.ndarray
    double: np.ndarray
    # what counts as impossible, of the same shapes: inf where a chain has no such state or candidate
    single_counts: np.ndarray
    double_counts: np.ndarray

    @classmethod
    def of(cls, lengths: np.ndarray, sizes: np.ndarray) -> ChainTerms:
        """No terms yet: `lengths` (C,) of the chains, `sizes` (C, P) how many candidates each state has. Where a chain
        has ended stands one candidate without weight."""
        chains, longest = sizes.shape
        most = int(sizes.max(initial=1))
        is_state = np.arange(longest) < lengths[:, None]
        real = np.arange(most) < np.where(is_state, sizes, 1)[..., None]
        single, double = np.zeros((chains, longest, most)), np.zeros((chains, max(longest - 1, 0), most, most))
        return cls(single, double, np.where(real, 0.0, np.inf), np.zeros_like(double))

    def clear(self) -> None:
        """No terms again."""
        self.single[...] = self.double[...] = self.double_counts[...] = 0.0
        self.single_counts[np.isfinite(self.single_counts)] = 0.0

    def add(
        self, chains: np.ndarray, at: np.ndarray, values: np.ndarray, counts: np.ndarray | None, are_distinct: bool
    ) -> None:
        """Terms of some chains' states (N,) `at` some positions (N,): `values` (N, K), or (N, K, K) of a state and the
        next one; `counts`, of the same shape, where any is impossible. Whether no state comes twice."""
        place: Any = (chains, at, *(slice(0, size) for size in values.shape[1:]))
        sums, impossible = (self.single, self.single_counts) if values.ndim == 2 else (self.double, self.double_counts)
        for target, added in ((sums, values), (impossible, counts)):
            if added is None:
                continue
            if are_distinct:
                target[place] += added
            else:
                np.add.at(target, place, added)


def drawn_paths(terms: ChainTerms, uniforms: np.ndarray) -> np.ndarray:
    """The candidate of each state (C, P), drawn in proportion to the weights of paths by uniform numbers (C, P)."""
    single = np.where(terms.single_counts > 0.0, -np.inf, terms.single)
    double = np.where(terms.double_counts > 0.0, -np.inf, terms.double) if terms.double_counts.any() else terms.double
    reached = _forward(single, double)
    if (reached[:, -1].max(axis=-1) == -np.inf).any():
        # every path of some chain is impossible
        return _drawn_among_least(terms, uniforms)
    return _backward(reached, reached[:, :-1, :, None] + double, uniforms)


def _forward(single: np.ndarray, double: np.ndarray) -> np.ndarray:
    """Log sums over all paths to each candidate (C, P, K)."""
    # a matrix for each step, of one row for each candidate that is reached: sums run along what is contiguous
    onward = np.ascontiguousarray((double + single[:, 1:, None, :]).transpose(1, 0, 3, 2))
    with np.errstate(all="ignore"):
        return _followed(single[:, 0], onward).transpose(1, 0, 2)


def _followed(first: np.ndarray, onward: np.ndarray) -> np.ndarray:
    """Log sums to each candidate (P, C, K) of all states, from those of the first (C, K) and the log weights of each
    step (P - 1, C, K, K), the candidate that is reached first.

    Two steps are one whose matrix is the product of theirs. Where products are cheap, every second state is reached by
    these, in half as many steps, and the others from them, all at once.
    """
    add = np.logaddexp.reduce
    reached = np.empty((len(onward) + 1, *first.shape))
    if len(onward) < SHORT or first.size * first.shape[-1] ** 2 > CHEAP:
        reached[0] = now = first
        for at, step in enumerate(onward, 1):
            reached[at] = now = add(step + now[:, None, :], axis=-1)
        return reached
    before, after = onward[0:-1:2], onward[1::2]
    both = add(after[..., :, None, :] + before.swapaxes(-1, -2)[..., None, :, :], axis=-1)
    reached[0::2] = _followed(first, both)
    reached[1::2] = add(onward[0::2] + reached[0 : 2 * len(onward[0::2]) : 2, :, None, :], axis=-1)
    return reached


SHORT = 8
"""Steps that are gone one by one."""
CHEAP = 128
"""Terms of a product of matrices that take less time than a step by itself."""


def _backward(reached: np.ndarray, joint: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Candidates from the last state to the first, where `joint` (C, P - 1, K, K) has the log weight of each state with
    the one after it."""
    paths = np.empty(reached.shape[:2], np.int64)
    paths[:, -1] = now = _drawn(reached[:, -1], uniforms[:, -1])
    # of each state, what is drawn given each candidate for the one after it
    given = _drawn(joint.swapaxes(-1, -2), uniforms[:, :-1, None])
    if len(given) == 1:
        (table,) = given.tolist()
        chosen = int(now[0])
        path = [chosen]
        for row in reversed(table):
            chosen = row[chosen]
            path.append(chosen)
        paths[0] = path[::-1]
        return paths
    chains = np.arange(len(given))
    for at in range(given.shape[1] - 1, -1, -1):
        paths[:, at] = now = given[chains, at, now]
    return paths


def _drawn(log_weights: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """An index along the last axis in proportion to weights, by a uniform number for each; any where all are -inf."""
    best = log_weights.max(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        shares = np.exp(log_weights - np.where(np.isfinite(best), best, 0.0)).cumsum(axis=-1)
    total = shares[..., -1]
    found = (shares <= (uniforms * total)[..., None]).sum(axis=-1)
    # rounding may leave the number at the very end: then the last one that has a share
    last = shares.shape[-1] - 1 - np.argmax(log_weights[..., ::-1] > -np.inf, axis=-1)
    return np.asarray(np.minimum(found, last))


def _drawn_among_least(terms: ChainTerms, uniforms: np.ndarray) -> np.ndarray:
    """Paths among those with the fewest impossible terms."""
    reached, counts = np.empty_like(terms.single), np.empty_like(terms.single)
    reached[:, 0], counts[:, 0] = terms.single[:, 0], terms.single_counts[:, 0]
    joint = np.empty_like(terms.double)
    with np.errstate(all="ignore"):
        for at in range(terms.double.shape[1]):
            ways = counts[:, at, :, None] + terms.double_counts[:, at]
            least = ways.min(axis=1, keepdims=True)
            # of infinitely many there is none to choose
            joint[:, at] = np.where(ways == least, reached[:, at, :, None] + terms.double[:, at], -np.inf)
            counts[:, at + 1] = least[:, 0] + terms.single_counts[:, at + 1]
            reached[:, at + 1] = np.logaddexp.reduce(joint[:, at], axis=1) + terms.single[:, at + 1]
        least = counts[:, -1].min(axis=-1, keepdims=True)
        reached[:, -1] = np.where(counts[:, -1] == least, reached[:, -1], -np.inf)
    return _backward(reached, joint, uniforms)


def on_possible_paths(terms: ChainTerms) -> tuple[np.ndarray, np.ndarray]:
    """Whether some path on which nothing is impossible leads through each candidate (C, P, K), and through each two
    neighbouring ones (C, P - 1, K, K)."""
    single, double = terms.single_counts == 0.0, terms.double_counts == 0.0
    before, after = single.copy(), single.copy()
    for at in range(double.shape[1]):
        before[:, at + 1] &= (before[:, at, :, None] & double[:, at]).any(axis=1)
    for at in range(double.shape[1] - 1, -1, -1):
        after[:, at] &= (double[:, at] & after[:, at + 1, None, :]).any(axis=2)
    return before & after, before[:, :-1, :, None] & double & after[:, 1:, None, :]
