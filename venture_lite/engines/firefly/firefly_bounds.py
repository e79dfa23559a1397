"""Lower bounds of the rows of a block, their sum over all rows, and what the gap between bound and likelihood says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.linear import Linear
from venture_lite.blocks.linear_block import LinearBlock, summed_gradient, summed_hessian
from venture_lite.blocks.sections import SectionKind
from venture_lite.errors import KernelError
from venture_lite.procedures.predictor import Bound, Quadratic, QuadraticRows
from venture_lite.trace.nodes import node_at
from venture_lite.values import show

DARK = 1e-14
"""Gaps up to this are rounding: such a row counts as dark. It leaves 1e-14 of a likelihood out of account."""

FAR = 1e12
"""N (distance / sd)^2 beyond which the sum of the bounds is expanded anew: its rounding would be 1e-4 nats."""

TOLERANCE = 1e-9
"""A bound above its likelihood by more than this, times 1 + |log L|, is no bound."""


class BoundedRows:
    """The rows of one kind with their bounds, or with none where the likelihood is quadratic."""

    def __init__(self, sections: SectionKind, linear: Linear, bound: Bound | None, first: int) -> None:
        self.sections = sections
        self.linear = linear
        self.bound = bound
        # position of its first row among all rows
        self.first = first
        self.count = linear.count if bound is not None else 0
        # the bounds
        self.quadratics: QuadraticRows | None = None
        # derivative of the gap by the predictor at the block's present value: known for bright rows
        self.slopes = np.zeros(0)

    def touch(self, eta: np.ndarray) -> None:
        """Bounds that touch at the given predictors of the rows."""
        assert self.bound is not None
        with np.errstate(all="ignore"):
            found = self.bound.touching(*self.linear.given(eta))
        # a bound may give one number for all rows
        value = np.broadcast_to(found.value, (self.count,))
        center, slope = np.broadcast_to(found.center, eta.shape), np.broadcast_to(found.slope, eta.shape)
        self.quadratics = QuadraticRows(Quadratic(center, value, slope, found.curvature))
        self.slopes = np.zeros_like(eta)

    def excess(self, coefficients: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(log excess, the gap's derivative by the predictor) of some rows; refuses a bound that is none."""
        assert self.quadratics is not None
        eta = self.linear.eta(coefficients, positions)
        with np.errstate(all="ignore"):
            log_density, first = self.linear.predictor.first_order(*self.linear.given(eta, positions))
            log_bound, slope = self.quadratics.at(eta, positions)
            gap = log_density - log_bound
            # the first test implies the second, and nearly always holds
            if not (gap.min(initial=0.0) >= -TOLERANCE or (gap >= -TOLERANCE * (1.0 + np.abs(log_density))).all()):
                self._refuse(positions, eta, log_density, gap)
            return log_excess(gap), first - slope

    def bytes_used(self) -> int:
        return self.slopes.nbytes + (0 if self.quadratics is None else self.quadratics.bytes_used())

    def reads_the_same(self, other: BoundedRows) -> bool:
        """Whether another reading of the trace found the same likelihoods."""
        return self.sections.group.site == other.sections.group.site and self.linear.is_as(other.linear)

    def _refuse(self, positions: np.ndarray, eta: np.ndarray, log_density: np.ndarray, gap: np.ndarray) -> None:
        worst = int(np.argmax(~(gap >= -TOLERANCE * (1.0 + np.abs(log_density)))))
        position, trace, group = int(positions[worst]), self.sections.group.trace, self.sections.group
        node = node_at(group.site, int(self.sections.rows(np.array([position]))[0]))
        log_bound = log_density[worst] - gap[worst]
        place = f"row {position} (the first is 0), whose value is {show(trace.value(node))}"
        if np.isfinite(log_density[worst]) and np.isfinite(log_bound):
            assert self.bound is not None
            reason = (
                f"the bound {self.bound.name} is not below {group.record.name}: at {place}, and predictor "
                f"{show(_plain(eta[worst]))}, it is {log_bound:.6g}, the log density {log_density[worst]:.6g}"
            )
        else:
            reason = f"{group.record.name} has no positive density at {place}"
        raise KernelError(reason).at(*trace.place(*trace.decode(node)))


def _plain(eta: Any) -> Any:
    return tuple(map(float, eta)) if np.ndim(eta) else float(eta)


@dataclass(frozen=True, slots=True)
class Collapsed:
    """The sum of all rows' bounds as a quadratic in the block, about a reference, but for its constant: next to that
    of a reference far away nothing would be left of the change that a transition makes.

    Rows of scores that share one curvature (K, K) give its Kronecker product with the features' Gram matrix (F, F):
    K F (K + F) numbers are multiplied in place of (K F)^2, and the product is never made.
    """

    reference: np.ndarray
    gradient: np.ndarray
    # the Hessian (D, D), such rows aside
    matrix: np.ndarray | None
    # curvature and Gram matrix of each kind of such rows
    products: tuple[tuple[np.ndarray, np.ndarray], ...]

    def bytes_used(self) -> int:
        arrays = [array for pair in self.products for array in pair]
        return sum(array.nbytes for array in arrays) + (0 if self.matrix is None else self.matrix.nbytes)

    def bent(self, vector: np.ndarray) -> np.ndarray:
        """The Hessian times a vector (D,)."""
        found = np.zeros_like(vector) if self.matrix is None else self.matrix @ vector
        for curvature, gram in self.products:
            found += (curvature @ vector.reshape(len(curvature), -1) @ gram).ravel()
        return found

    def diagonal(self) -> np.ndarray:
        """Of the Hessian, (D,)."""
        found: np.ndarray = np.zeros(1) if self.matrix is None else np.diagonal(self.matrix)
        for curvature, gram in self.products:
            found = found + np.outer(np.diagonal(curvature), np.diagonal(gram)).ravel()
        return found

    def change(self, old: np.ndarray, new: np.ndarray) -> float:
        """From one value of the block to another."""
        both = (old - self.reference) + (new - self.reference)
        return float((new - old) @ (self.gradient + 0.5 * self.bent(both)))

    def is_far(self, theta: np.ndarray) -> bool:
        """Whether a value lies so far from the reference that the gradient there is known from differences only."""
        away = theta - self.reference
        return abs(float(away @ self.bent(away))) > FAR

    def gradient_at(self, theta: np.ndarray) -> np.ndarray:
        return np.asarray(self.gradient + self.bent(theta - self.reference))


def collapse(block: LinearBlock, kinds: Iterable[BoundedRows], reference: np.ndarray) -> Collapsed:
    """The sum over all rows, of bounds or, where the likelihood is quadratic itself, of log densities: O(N D^2)."""
    gradient = np.zeros_like(reference)
    matrices: list[np.ndarray] = []
    products: list[tuple[np.ndarray, np.ndarray]] = []
    for rows in kinds:
        linear = rows.linear
        if rows.quadratics is None:
            _, first, second = block.terms(reference, linear)
        else:
            bounds = rows.quadratics.all()
            first, second = bounds.gradient(linear.eta(block.coefficients(reference, linear))), bounds.curvature
        gradient += summed_gradient(linear, first)
        if linear.predictor.is_vector and np.ndim(second) == 2:
            products.append((np.asarray(second), linear.features.T @ linear.features))
        else:
            matrices.append(summed_hessian(linear, second))
    matrix = np.sum(matrices, axis=0) if matrices else None
    return Collapsed(reference, gradient, matrix, tuple(products))


def log_excess(gaps: np.ndarray) -> np.ndarray:
    """log((L - B) / B) = log(expm1(gap)), -inf for gaps that are rounding."""
    with np.errstate(all="ignore"):
        return np.where(gaps > DARK, gaps + np.log(-np.expm1(-gaps)), -np.inf)


def bright_probability(excess: np.ndarray) -> np.ndarray:
    """(L - B) / L, of log((L - B) / B)."""
    with np.errstate(over="ignore"):
        found: np.ndarray = 1.0 / (1.0 + np.exp(-excess))
    return found


def bound_of(kind: SectionKind, linear: Linear, name: str | None) -> Bound | None:
    """The bound of a kind of rows; None where the log density is quadratic in the predictor."""
    bounds = {bound.name: bound for bound in linear.predictor.bounds}
    if name in bounds:
        return bounds[name]
    if name is None and bounds:
        return linear.predictor.bounds[0]
    if linear.predictor.is_quadratic:
        return None
    group = kind.group
    span = group.code.slots[group.slot].span
    if bounds:
        raise KernelError(f"{group.record.name} has no bound {name}", span, f"auto, or one of {', '.join(bounds)}")
    hint = "mh or subsampled_mh; a registered likelihood brings bounds with its predictor"
    raise KernelError(f"no lower bound is known of {group.record.name}", span, hint)
