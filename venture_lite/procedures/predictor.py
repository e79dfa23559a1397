"""What a likelihood is as a function of its linear predictor: Taylor terms, and lower bounds that are quadratic in it.

A generalised linear model reads its parameters through one number for each row of the data (or one vector), the
predictor eta = w . x. A function that is quadratic in eta is quadratic in w, so its sum over a million rows collapses
into a constant, a vector and a matrix, made once and evaluated in O(D^2). Two engines live on that: Firefly Monte Carlo
sums the lower bounds of the rows that it does not look at, and the subsampled transition sums the second-order
expansions and tests only what they leave over.

Everything here works on columns: each argument is a number or an array that broadcasts against `(rows,)`; a vector
predictor is `(rows, K)`, or `(K,)` for a single row. A function of `(value, *arguments)` takes the arguments of the
record with the predictor in its place. Nothing raises for values outside the support: the log density is -inf there,
and what its derivatives are does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Terms = tuple[Any, Any, Any]
"""Log density `(rows,)`, its first derivative, shaped as the predictor, and its second: `(rows,)`, or `(rows, K, K)`
for a vector predictor. What does not differ between rows may lack the first axis."""


@dataclass(frozen=True, slots=True)
class Quadratic:
    """value + slope . (eta - center) + (eta - center) . curvature (eta - center) / 2, one for each row.

    Kept about a center, where a row's own evaluation loses no digits however far from 0 the center lies.
    """

    # (rows,), or (rows, K) for a vector predictor
    center: Any
    # (rows,)
    value: Any
    # shaped as the center
    slope: Any
    # (rows,) or one number; for a vector predictor (rows, K, K), or one (K, K)
    curvature: Any

    @property
    def _vector(self) -> bool:
        return np.ndim(self.slope) > np.ndim(self.value)

    def _bent(self, predictor: Any) -> Any:
        """The curvature times each row's predictor."""
        return np.einsum("...k,...kl->...l", predictor, self.curvature) if self._vector else self.curvature * predictor

    def _product(self, left: Any, right: Any) -> Any:
        """The inner product of what is shaped as the predictors, row by row."""
        return np.einsum("...k,...k->...", left, right) if self._vector else left * right

    def at(self, predictor: Any) -> Any:
        """The values `(rows,)` at the rows' predictors."""
        away = predictor - self.center
        return self.value + self._product(away, self.slope + 0.5 * self._bent(away))

    def gradient(self, predictor: Any) -> Any:
        """The derivatives with respect to the predictors, shaped as they are."""
        return self.slope + self._bent(predictor - self.center)


class QuadraticRows:
    """The quadratics of many rows in one array, so that those of a few are gathered in one step."""

    def __init__(self, quadratic: Quadratic) -> None:
        count = len(quadratic.value)
        self._size = np.size(quadratic.slope) // count
        self._is_vector = np.ndim(quadratic.slope) == 2
        parts = [quadratic.center, quadratic.slope, quadratic.value]
        # (K, K), shared by all rows; None where each has its own
        self._shared: Any = None
        if self._is_vector and np.ndim(quadratic.curvature) == 2:
            self._shared = np.asarray(quadratic.curvature)
        else:
            own = (self._size, self._size) if self._is_vector else ()
            parts.append(np.broadcast_to(quadratic.curvature, (count, *own)))
        self._packed = np.concatenate([np.reshape(part, (count, -1)) for part in parts], axis=1)

    def bytes_used(self) -> int:
        return self._packed.nbytes

    def all(self) -> Quadratic:
        """Those of all rows, as views where they can be."""
        center, slope, value, curvature = self._parts(self._packed)
        return Quadratic(center, value, slope, curvature)

    def _parts(self, packed: np.ndarray) -> Any:
        """Center, slope, value and curvature of some rows."""
        if not self._is_vector:
            return packed.T
        size = self._size
        curvature = packed[:, 2 * size + 1 :].reshape(-1, size, size) if self._shared is None else self._shared
        return packed[:, :size], packed[:, size : 2 * size], packed[:, 2 * size], curvature

    def at(self, predictor: Any, rows: np.ndarray) -> tuple[Any, Any]:
        """The values `(rows,)` and the derivatives, shaped as the predictors, of some rows at their predictors."""
        center, slope, value, curvature = self._parts(self._packed.take(rows, axis=0))
        away = predictor - center
        if not self._is_vector:
            bent = curvature * away
            return value + away * (slope + 0.5 * bent), slope + bent
        bent = np.einsum("nk,nkl->nl", away, curvature) if self._shared is None else away @ curvature
        return value + np.einsum("nk,nk->n", away, slope + 0.5 * bent), slope + bent


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A family of lower bounds on the log density, each quadratic in the predictor and indexed by a point at which it
    touches: there it has the log density's value and first derivative, everywhere else it is at most as large."""

    # as `flymc` names it
    name: str
    # (value, *arguments) -> the bound that touches at the predictor given in its place
    touching: Callable[..., Quadratic]
    # where it was taken from, and why it is below
    source: str = ""
    # the predictor at which it touches where nothing is known of the data; every score, for a vector predictor
    untuned: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LinearPredictor:
    """Which argument of a likelihood is its linear predictor, and what is known of the log density along it."""

    # position among the record's arguments
    argument: int
    # (value, *arguments) -> Terms
    taylor: Callable[..., Terms]
    # (value, *arguments) -> the Fisher information, shaped as the second derivative: minus its expectation over values
    # drawn from the record, positive semidefinite also where minus the second derivative itself is not
    information: Callable[..., Any]
    # (value, *arguments) -> (largest |first|, largest |third derivative|) over all predictors, each (rows,) or one
    # number, infinite where there is none; for a vector predictor per unit of the range, max - min, of the direction
    limits: Callable[..., tuple[Any, Any]]
    # the argument is this deterministic procedure of the predictor (`(poisson (exp eta))`); None: it is the predictor
    inverse_link: str | None = None
    # one score for each outcome in place of one number
    is_vector: bool = False
    # the log density is exactly quadratic in the predictor: its second-order expansion leaves nothing over
    is_quadratic: bool = False
    # the first is the one that is taken unless another is named
    bounds: tuple[Bound, ...] = ()
    # (value, *arguments) -> (log density, first derivative), where that is less work than all Taylor terms
    quickly: Callable[..., tuple[Any, Any]] | None = None

    def first_order(self, value: Any, *arguments: Any) -> tuple[Any, Any]:
        """(log density `(rows,)`, its first derivative, shaped as the predictor)"""
        if self.quickly is not None:
            return self.quickly(value, *arguments)
        return self.taylor(value, *arguments)[:2]


def tangent(taylor: Callable[..., Terms], argument: int, curvature: Callable[..., Any]) -> Callable[..., Quadratic]:
    """The `touching` of a bound that is known by its second derivative alone: `curvature(value, *arguments)`, with the
    touching point in the predictor's place."""

    def touching(value: Any, *arguments: Any) -> Quadratic:
        log_density, first, _ = taylor(value, *arguments)
        return Quadratic(arguments[argument], log_density, first, curvature(value, *arguments))

    return touching
