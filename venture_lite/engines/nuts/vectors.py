"""What a trajectory does with its vectors, momenta and places: over arrays, or over a few numbers, in printed text.

Of three numbers NumPy's calls cost ten times what their arithmetic does. Both ways are the same formulas; sums of
products differ by rounding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

MOST_NUMBERS = 12
"""Coordinates, of which products with a triangular matrix are as fast over arrays."""

Vector = Any
"""(D,): an array, or a tuple of floats."""


class Vectors(Protocol):
    """Of free coordinates x and momenta p, which are standard normal in coordinates z with x = root z."""

    # whether they are tuples
    are_numbers: bool

    def leap(self, free: Vector, momentum: Vector, slope: Vector, step: float) -> tuple[Vector, Vector]:
        """The momentum half a step on, by the slope of the log density in z, and with it where a step leads."""

    def land(self, momentum: Vector, gradient: Vector, step: float) -> tuple[Vector, Vector, float]:
        """From the momentum half a step before and the gradient in free coordinates: the momentum, the slope in z, and
        the kinetic energy."""

    def joined(
        self, drift: Vector, near: Vector, far: Vector, other_drift: Vector, other_near: Vector, other_far: Vector
    ) -> Vector | None:
        """The sum of momenta over two neighbouring subtrees, of which each has its own and the momenta at its ends.
        None where they turn: where the momentum along the join, or along either with the first state of the other,
        points against the momentum at an end."""


class Arrays:
    """Vectors that are arrays."""

    are_numbers = False

    def __init__(self, root: np.ndarray) -> None:
        """`root` is (D,), or lower triangular (D, D)."""
        self._root, self._across = root, root.ndim == 2

    def leap(self, free: Vector, momentum: Vector, slope: Vector, step: float) -> tuple[Vector, Vector]:
        momentum = momentum + 0.5 * step * slope
        return free + step * (self._root @ momentum if self._across else self._root * momentum), momentum

    def land(self, momentum: Vector, gradient: Vector, step: float) -> tuple[Vector, Vector, float]:
        slope = self._root.T @ gradient if self._across else self._root * gradient
        momentum = momentum + 0.5 * step * slope
        return momentum, slope, 0.5 * float(momentum.dot(momentum))

    def joined(
        self, drift: Vector, near: Vector, far: Vector, other_drift: Vector, other_near: Vector, other_far: Vector
    ) -> Vector | None:
        # of short arrays the method takes half the time of the operator
        whole = drift + other_drift
        along = whole.dot
        if along(near) <= 0.0 or along(other_far) <= 0.0:
            return None
        along = (drift + other_near).dot
        if along(near) <= 0.0 or along(other_near) <= 0.0:
            return None
        along = (other_drift + far).dot
        return None if along(far) <= 0.0 or along(other_far) <= 0.0 else whole


class Numbers:
    """Vectors that are tuples of floats."""

    are_numbers = True

    def __init__(self, root: np.ndarray) -> None:
        """`root` is (D,), or lower triangular (D, D)."""
        across = root.ndim == 2
        entries = root[np.tril_indices(len(root))] if across else root
        self.leap, self.land, self.joined = _made(len(root), across)(*entries.tolist())


def vectors_of(root: np.ndarray, are_numbers: bool) -> Vectors:
    return Numbers(root) if are_numbers else Arrays(root)


_TEXT = """
def make({root}):
    def leap(free, momentum, slope, step):
        half = 0.5 * step
        {x}= free
        {p}= momentum
        {g}= slope
        {kicks}
        return ({leaps}), ({p})

    def land(momentum, gradient, step):
        half = 0.5 * step
        {p}= momentum
        {x}= gradient
        {slopes}
        {kicks}
        return ({p}), ({g}), 0.5 * ({energy})

    def joined(drift, near, far, other_drift, other_near, other_far):
        {d}= drift
        {e}= other_drift
        {n}= near
        {q}= other_far
        {wholes}
        if {w_n} <= 0.0 or {w_q} <= 0.0:
            return None
        {o}= other_near
        {firsts}
        if {x_n} <= 0.0 or {x_o} <= 0.0:
            return None
        {f}= far
        {lasts}
        if {x_f} <= 0.0 or {x_q} <= 0.0:
            return None
        return ({w})

    return leap, land, joined
"""


@functools.cache
def _made(size: int, across: bool) -> Callable[..., tuple[Callable[..., Any], ...]]:
    """What makes the functions of a root, whose entries it takes row by row."""
    every = range(size)

    def names(letter: str) -> str:
        return "".join(f"{letter}{i}, " for i in every)

    def entry(i: int, j: int) -> str:
        return f"r{i}_{j}" if across else f"r{i}"

    def lines(texts: Iterable[str]) -> str:
        return "\n        ".join(texts)

    def dot(one: str, other: str) -> str:
        return " + ".join(f"{one}{i} * {other}{i}" for i in every)

    def product(pairs: Sequence[tuple[int, int]], letter: str, column: int) -> str:
        return " + ".join(f"{entry(*pair)} * {letter}{pair[column]}" for pair in pairs)

    rows = [[(i, j) for j in range(i + 1)] if across else [(i, i)] for i in every]
    columns = [[(i, j) for i in range(j, size)] if across else [(j, j)] for j in every]
    text = _TEXT.format(
        root=", ".join(dict.fromkeys(entry(*pair) for row in rows for pair in row)),
        **{letter: names(letter) for letter in "xpgdenqofw"},
        kicks=lines(f"p{i} = p{i} + half * g{i}" for i in every),
        leaps="".join(f"x{i} + step * ({product(row, 'p', 1)}), " for i, row in enumerate(rows)),
        slopes=lines(f"g{j} = {product(column, 'x', 0)}" for j, column in enumerate(columns)),
        energy=dot("p", "p"),
        wholes=lines(f"w{i} = d{i} + e{i}" for i in every),
        firsts=lines(f"x{i} = d{i} + o{i}" for i in every),
        lasts=lines(f"x{i} = e{i} + f{i}" for i in every),
        **{f"{one}_{other}": dot(one, other) for one, other in ("wn", "wq", "xn", "xo", "xf", "xq")},
    )
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    made: Callable[..., tuple[Callable[..., Any], ...]] = namespace["make"]
    return made
