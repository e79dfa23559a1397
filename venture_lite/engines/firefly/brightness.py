"""Which rows are bright: a permutation of all rows, the bright ones first (Maclaurin and Adams 2014, section 3.3)."""

from __future__ import annotations

import numpy as np


class Brightness:
    """The rows 0 ... count - 1 in two parts. Lighting or darkening k rows takes O(k)."""

    def __init__(self, is_bright: np.ndarray) -> None:
        self.count = len(is_bright)
        # every row once, the bright ones first
        self._order = np.concatenate([np.flatnonzero(is_bright), np.flatnonzero(~is_bright)])
        # its inverse: where each row stands
        self._places = np.empty(self.count, dtype=np.intp)
        self._places[self._order] = np.arange(self.count)
        self.bright_count = int(is_bright.sum())

    def bytes_used(self) -> int:
        return self._order.nbytes + self._places.nbytes

    @property
    def bright(self) -> np.ndarray:
        """The bright rows, a view that the next change invalidates."""
        return self._order[: self.bright_count]

    @property
    def dark(self) -> np.ndarray:
        return self._order[self.bright_count :]

    def is_bright(self, rows: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._places[rows] < self.bright_count
        return found

    def brighten(self, rows: np.ndarray) -> None:
        """Of different dark rows."""
        self._fill(rows, self.bright_count)
        self.bright_count += len(rows)

    def darken(self, rows: np.ndarray) -> None:
        """Of different bright rows."""
        self._fill(rows, self.bright_count - len(rows))
        self.bright_count -= len(rows)

    def _fill(self, rows: np.ndarray, first: int) -> None:
        """Bring some rows to the places first ... first + len(rows) - 1; whoever stood there takes theirs."""
        places = self._places[rows]
        is_inside = (places >= first) & (places < first + len(rows))
        is_free = np.ones(len(rows), dtype=bool)
        is_free[places[is_inside] - first] = False
        free = first + np.flatnonzero(is_free)
        displaced = self._order[free]
        self._put(displaced, places[~is_inside])
        self._put(rows[~is_inside], free)

    def _put(self, rows: np.ndarray, places: np.ndarray) -> None:
        self._order[places] = rows
        self._places[rows] = places


def chosen(rng: np.random.Generator, count: int, probability: float) -> np.ndarray:
    """Of `count` positions those at which independent coins come up, by jumps from one to the next: what is passed over
    costs nothing. `probability` > 0."""
    found, last = [], -1
    while last < count:
        expected = (count - last) * probability
        jumps = rng.geometric(probability, int(expected + 4.0 * expected**0.5) + 4)
        # a jump beyond the end ends the search, however far; kept short, their sum cannot overflow
        positions = last + np.cumsum(np.minimum(jumps, count + 1))
        found.append(positions[positions < count])
        last = int(positions[-1])
    return np.concatenate(found)
