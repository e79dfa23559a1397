"""A block that likelihoods read through linear predictors: its log posterior, gradient and Hessian, and its mode.

What Firefly Monte Carlo's bounds, control variates and preconditioned proposals share. The block's values stand in one
vector, its free coordinates being the values themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from venture_lite.errors import KernelError
from venture_lite.inference.distributions import name_of, transform_of
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import REAL
from venture_lite.trace.directives import Model
from venture_lite.trace.linear import Linear, linear_predictor
from venture_lite.trace.sections import Sections
from venture_lite.trace.table import ROW_MASK
from venture_lite.values import freeze

STEP = 6e-6
"""Relative step of central differences of a gradient: the cube root of the rounding unit."""


class LinearBlock:
    """The posterior of one block as a function of its values in one vector (D,).

    Reads the trace when it is made: the features, what the likelihoods' other arguments are, the observed values. A
    matrix block of a vector predictor stands row by row.
    """

    def __init__(self, model: Model, sections: Sections, block: Sequence[int]) -> None:
        self.model = model
        self.block = list(block)
        trace = model.trace
        self.read_priors()
        self.shapes = [np.shape(trace.value(node)) for node in self.block]
        self.kinds: list[Linear] = [
            linear_predictor(trace, kind.group.site, kind.all_rows(), self.block) for kind in sections.kinds
        ]
        self.size = sum(int(np.prod(shape)) for shape in self.shapes)

    def read_priors(self) -> None:
        """The distributions of the block's choices as they stand in the trace."""
        trace = self.model.trace
        self.priors: list[tuple[Random, tuple[Any, ...]]] = []
        for node in self.block:
            operator, arguments = trace.application(node >> 32, node & ROW_MASK)
            code, slot, _ = trace.decode(node)
            if not isinstance(operator, Random) or transform_of(operator) is not REAL or operator.gradient is None:
                raise KernelError(
                    f"a linear block is made of unbounded continuous choices; {name_of(operator)} is none",
                    code.slots[slot].span,
                )
            self.priors.append((operator, arguments))

    # ------------------------------------------------------------------------------------------------- values

    def present(self) -> np.ndarray:
        """The block's values (D,) as they stand in the trace."""
        return np.concatenate([np.ravel(self.model.trace.value(node)) for node in self.block]).astype(np.float64)

    def values(self, theta: np.ndarray) -> list[Any]:
        """One value for each choice, as the trace keeps it."""
        found, start = [], 0
        for shape in self.shapes:
            size = int(np.prod(shape))
            part = theta[start : start + size]
            found.append(float(part[0]) if shape == () else freeze(part.reshape(shape).copy()))
            start += size
        return found

    def coefficients(self, theta: np.ndarray, kind: Linear) -> np.ndarray:
        """As `Linear.eta` takes them: (F,), or (K, F) for a vector predictor."""
        return theta.reshape(-1, kind.features.shape[1]) if kind.predictor.is_vector else theta

    # -------------------------------------------------------------------------------------------------- prior

    def log_prior(self, theta: np.ndarray) -> float:
        values = self.values(theta)
        return sum(
            record.log_density(value, *arguments)
            for value, (record, arguments) in zip(values, self.priors, strict=True)
        )

    def prior_gradient(self, theta: np.ndarray) -> np.ndarray:
        """(D,)"""
        found = []
        for value, (record, arguments) in zip(self.values(theta), self.priors, strict=True):
            assert record.gradient is not None
            count = 1 + len(arguments)
            wanted = (True, *(False,) * len(arguments))
            found.append(np.ravel(record.gradient.evaluate((False,) * count, wanted, value, *arguments)[0]))
        return np.concatenate(found).astype(np.float64)

    def prior_hessian(self, theta: np.ndarray) -> np.ndarray:
        """(D, D) by central differences of the gradient, made symmetric."""
        hessian = np.empty((self.size, self.size))
        for i in range(self.size):
            step = STEP * max(1.0, abs(float(theta[i])))
            up, down = theta.copy(), theta.copy()
            up[i] += step
            down[i] -= step
            hessian[i] = (self.prior_gradient(up) - self.prior_gradient(down)) / (up[i] - down[i])
        return 0.5 * (hessian + hessian.T)

    # --------------------------------------------------------------------------------------------- likelihood

    def terms(self, theta: np.ndarray, kind: Linear, rows: Any = slice(None)) -> tuple[Any, Any, Any]:
        """The Taylor terms of some rows of a kind at their predictors."""
        with np.errstate(all="ignore"):
            return kind.predictor.taylor(*kind.given(kind.eta(self.coefficients(theta, kind), rows), rows))

    def log_density(self, theta: np.ndarray) -> float:
        """Log posterior up to a constant."""
        return self.log_prior(theta) + sum(float(np.sum(self.terms(theta, kind)[0])) for kind in self.kinds)

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """(D,)"""
        found = self.prior_gradient(theta)
        for kind in self.kinds:
            found += summed_gradient(kind, self.terms(theta, kind)[1])
        return found

    def hessian(self, theta: np.ndarray, informed: bool = False) -> np.ndarray:
        """(D, D); with `informed`, minus the Fisher information in place of the likelihood's curvature."""
        found = self.prior_hessian(theta)
        for kind in self.kinds:
            if informed:
                eta = kind.eta(self.coefficients(theta, kind))
                second = -np.asarray(kind.predictor.information(*kind.given(eta)))
            else:
                second = self.terms(theta, kind)[2]
            found += summed_hessian(kind, second)
        return found

    def mode(self, iterations: int = 100, start: np.ndarray | None = None) -> tuple[np.ndarray, float, int]:
        """The block's conditional mode, searched from `start` or its present values, the gradient's norm there, and how
        often all rows were evaluated on the way.

        Newton's method with a trust region (Nocedal and Wright 2006, chapter 4) on the exact Hessian.
        """
        from scipy.optimize import minimize

        found = minimize(
            lambda theta: -self.log_density(theta),
            self.present() if start is None else start,
            method="trust-exact" if self.size <= 200 else "trust-krylov",
            jac=lambda theta: -self.gradient(theta),
            hess=lambda theta: -self.hessian(theta),
            options={"maxiter": iterations, "gtol": 1e-6},
            callback=lambda _: self.model.poll(),
        )
        return np.asarray(found.x), float(np.linalg.norm(found.jac)), int(found.nfev + found.njev + found.nhev)


def summed_gradient(kind: Linear, first: Any) -> np.ndarray:
    """The sum over rows of first (rows,) or (rows, K) times the features: (F,), or (K F,) row by row."""
    count = len(kind.features)
    if kind.predictor.is_vector:
        return np.asarray(first.T @ kind.features).ravel()
    return np.asarray(np.broadcast_to(first, (count,)) @ kind.features)


def summed_hessian(kind: Linear, second: Any) -> np.ndarray:
    """The sum over rows of second (rows,) or (rows, K, K) times the outer products of the features."""
    features = kind.features
    count, width = features.shape
    if not kind.predictor.is_vector:
        weighted = features * np.broadcast_to(second, (count,))[:, None]
        return np.asarray(features.T @ weighted)
    outcomes = np.shape(second)[-1]
    second = np.broadcast_to(second, (count, outcomes, outcomes))
    found = np.empty((outcomes, width, outcomes, width))
    for k in range(outcomes):
        for other in range(k, outcomes):
            block = features.T @ (features * second[:, k, other, None])
            found[k, :, other] = block
            found[other, :, k] = block.T
    return found.reshape(outcomes * width, outcomes * width)


def preconditioner(block: LinearBlock, theta: np.ndarray, condition: float = 1e8) -> tuple[np.ndarray, str]:
    """A factor L (D, D) with L L' the inverse of minus the Hessian at a mode, and which curvature it was made from.

    Where minus the Hessian is not positive definite the likelihood's Fisher information takes its place; eigenvalues
    are kept within the given condition number.
    """
    values, vectors = np.linalg.eigh(-block.hessian(theta))
    name = "Hessian"
    if not values[0] > 0:
        values, vectors = np.linalg.eigh(-block.hessian(theta, informed=True))
        name = "Fisher information"
    values = np.maximum(values, values[-1] / condition)
    return vectors / np.sqrt(values), name
