"""Where the log posterior of a linear block is highest.

Three searches: Newton's method with a trust region; a proximal Newton method where a prior is piecewise linear, for the
mode then lies on kinks; stochastic gradients where there are very many rows.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.blocks.linear import Linear

if TYPE_CHECKING:
    from venture_lite.blocks.linear_block import LinearBlock

ModeAndCost = tuple[np.ndarray, float, int]
"""The mode (D,), the norm of the gradient there, how often all rows were evaluated."""

MANY_ROWS = 1_000_000
"""Beyond these the search uses minibatches."""

SAMPLE = 50_000
"""Rows of the sample where such a search begins."""

MINIBATCH = 1000
MOST_PASSES = 10

MOST_SWEEPS = 200
BISECTIONS = 40

NEAR = 0.1
"""Posterior sds from the mode within which a search has converged."""


def search(block: LinearBlock, start: np.ndarray, iterations: int) -> ModeAndCost:
    return (_stochastic if block.count > MANY_ROWS else _all_at_once)(block, start, iterations)


def _all_at_once(block: LinearBlock, start: np.ndarray, iterations: int) -> ModeAndCost:
    if _has_kinks(block, start):
        return _proximal_newton(block, start, iterations)
    return _newton(block, start, iterations)


def is_near_mode(block: LinearBlock, theta: np.ndarray, precision: np.ndarray) -> bool:
    """Whether along every coordinate a maximum lies within NEAR posterior sds.

    The likelihood is taken for quadratic there, of the given precision (D,). The prior is not: at a kink its gradient
    is not 0 at the maximum, but changes its sign.
    """
    spread = np.maximum(precision - np.diagonal(block.prior_hessian(theta)), 1e-300)
    reach = NEAR / np.sqrt(spread) + 1e-6 / spread
    slope = block.likelihood_gradient(theta)
    for i, (own, bent, away) in enumerate(zip(slope, precision, reach, strict=True)):
        below, above = theta.copy(), theta.copy()
        below[i] -= away
        above[i] += away
        if own - bent * away + block.prior_gradient(above)[i] > 0.0:
            return False
        if own + bent * away + block.prior_gradient(below)[i] < 0.0:
            return False
    return True


def _newton(block: LinearBlock, start: np.ndarray, iterations: int) -> ModeAndCost:
    """With a trust region (Nocedal and Wright 2006, chapter 4) on the exact Hessian, in units of the prior's sds: the
    mode may be a million away from the start, or a millionth."""
    from scipy.optimize import minimize

    precision = np.diagonal(block.prior_precision(start))
    unit = 1.0 / np.sqrt(np.where(precision > 0.0, precision, 1.0))
    slope, curvature = np.zeros(block.size), np.eye(block.size)

    def gradient(away: np.ndarray) -> np.ndarray:
        nonlocal slope
        slope = np.asarray(-unit * block.gradient(start + unit * away))
        return slope

    def hessian(away: np.ndarray) -> np.ndarray:
        nonlocal curvature
        curvature = np.asarray(-unit[:, None] * block.hessian(start + unit * away) * unit)
        return curvature

    def look(away: np.ndarray) -> None:
        block.model.poll()
        if _is_rounding(slope, curvature):
            raise StopIteration

    found = minimize(
        lambda away: -block.log_density(start + unit * away),
        np.zeros(block.size),
        method="trust-exact" if block.size <= 200 else "trust-krylov",
        jac=gradient,
        hess=hessian,
        options={"maxiter": iterations, "gtol": 1e-6},
        callback=look,
    )
    norm = float(np.linalg.norm(found.jac / unit))
    return start + unit * found.x, norm, int(found.nfev + found.njev + found.nhev)


def _is_rounding(slope: np.ndarray, curvature: np.ndarray) -> bool:
    """Whether a Newton step would lead no further than 1e-7 sds."""
    try:
        return abs(float(slope @ np.linalg.solve(curvature, slope))) < 1e-14
    except np.linalg.LinAlgError:
        return False


# ----------------------------------------------------------------------------------------------------------- kinks


def _has_kinks(block: LinearBlock, theta: np.ndarray) -> bool:
    """Whether the log density of some choice is piecewise linear, as a Laplace distribution's."""
    hessian, gradient = np.abs(block.prior_hessian(theta)), np.abs(block.prior_gradient(theta))
    size = np.maximum(np.abs(theta), 1.0)
    return any(hessian[part, part].max() <= 1e-9 * (gradient / size)[part].max() for part in block.parts)


def _proximal_newton(block: LinearBlock, start: np.ndarray, iterations: int) -> ModeAndCost:
    """Each step maximises the likelihood's quadratic and the prior as it is (Lee, Sun and Saunders 2014, Proximal
    Newton-type methods for minimizing composite functions). The quadratic is by the Fisher information where the
    likelihood is not concave, so that every step leads uphill."""
    theta, here, evaluations = start, block.log_density(start), 1
    for _ in range(iterations):
        gradient, curvature = block.likelihood_gradient(theta), -block.likelihood_hessian(theta)
        if np.linalg.eigvalsh(curvature)[0] < 0.0:
            curvature = block.information(theta)
        step = _proximal_step(block, theta, gradient, curvature)
        evaluations += 2
        share = 1.0
        while share > 1e-6:
            there = block.log_density(theta + share * step)
            evaluations += 1
            if there > here:
                break
            share /= 2.0
        else:
            break
        theta, here = theta + share * step, there
        if step @ (curvature @ step) < 1e-12:
            break
    return theta, float(np.linalg.norm(block.gradient(theta))), evaluations + 1


def _proximal_step(block: LinearBlock, theta: np.ndarray, gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """(D,) to the maximum of a quadratic about `theta` and the log prior, by coordinate ascent (Friedman, Hastie and
    Tibshirani 2010, Regularization paths for generalized linear models, section 2.1)."""
    at, slope = theta.copy(), gradient.copy()
    bends = np.diagonal(curvature)
    for _ in range(MOST_SWEEPS):
        block.model.poll()
        furthest = 0.0
        for choice, part in enumerate(block.parts):
            for i in range(part.start, part.stop):
                moved = _along(block, choice, i, at, float(slope[i]), float(bends[i])) - at[i]
                at[i] += moved
                slope -= curvature[:, i] * moved
                furthest = max(furthest, abs(moved) * math.sqrt(bends[i]))
        if furthest < 1e-6:
            break
    step: np.ndarray = at - theta
    return step


def _along(block: LinearBlock, choice: int, i: int, at: np.ndarray, slope: float, bend: float) -> float:
    """Where along a coordinate slope - bend (x - at) plus the slope of the log prior passes 0, by bisection: at a kink
    it jumps over it."""
    part, start = block.parts[choice], float(at[i])
    value = at[part].copy()

    def rises(x: float) -> bool:
        value[i - part.start] = x
        return bool(slope - bend * (x - start) + block.prior_slope(choice, value)[i - part.start] > 0.0)

    way = 1.0 if rises(start) else -1.0
    width = 1.0 / math.sqrt(bend) if bend > 0.0 else 1.0
    near, far = start, start + way * width
    while rises(far) == (way > 0.0) and math.isfinite(far):
        width *= 2.0
        near, far = far, far + way * width
    for _ in range(BISECTIONS):
        middle = 0.5 * (near + far)
        if rises(middle) == (way > 0.0):
            near = middle
        else:
            far = middle
    return 0.5 * (near + far)


# ------------------------------------------------------------------------------------------------------- many rows


def _stochastic(block: LinearBlock, start: np.ndarray, iterations: int) -> ModeAndCost:
    """Natural gradient steps on minibatches (Amari 1998, Natural gradient works efficiently in learning).

    From the mode of a sample on, each minibatch moves the estimate by the inverse curvature times its gradient, divided
    by the number of minibatches so far: for a quadratic that keeps it at the mode of the rows seen. A pass ends with
    a step by the gradient over all rows, and the search where that gradient says that the mode is near.
    """
    # fixed, so that a search takes no numbers from the chain
    rng = np.random.default_rng(0)
    orders = [rng.permutation(kind.count) for kind in block.kinds]
    total = block.count
    begun = min(max(SAMPLE, 50 * block.size), total)
    first = _sample(block, orders, 0.0, begun / total)
    theta, _, evaluations = _all_at_once(first, start, iterations)
    root, _ = first.preconditioner(theta)
    evaluated, seen = (evaluations + 3) * first.count, first.count
    batches = max(1, total // max(MINIBATCH, 20 * block.size))
    for _ in range(MOST_PASSES):
        for at in range(batches):
            block.model.poll()
            batch = _sample(block, orders, at / batches, (at + 1) / batches)
            seen += batch.count
            theta = theta + batch.count / seen * (root @ (root.T @ batch.gradient(theta)))
        theta = theta + root @ (root.T @ block.gradient(theta))
        gradient = block.gradient(theta)
        evaluated += 3 * total
        if np.abs(root.T @ gradient).max() <= 0.5 * NEAR:
            break
    return theta, float(np.linalg.norm(gradient)), math.ceil(evaluated / total)


def _sample(block: LinearBlock, orders: list[np.ndarray], low: float, high: float) -> LinearBlock:
    """The block as a part of its rows shows it, from one share of each kind's order to another."""
    found = copy.copy(block)
    rows = [order[math.floor(low * len(order)) : math.floor(high * len(order))] for order in orders]
    found.kinds = [_of_rows(kind, chosen) for kind, chosen in zip(block.kinds, rows, strict=True)]
    found.weight = block.count / max(found.count, 1)
    return found


def _of_rows(kind: Linear, rows: np.ndarray) -> Linear:
    values, *others = kind.given(None, rows)
    offset: Any = kind.offset
    if isinstance(offset, np.ndarray) and offset.ndim == 1 + kind.predictor.is_vector:
        offset = offset[rows]
    return Linear(kind.predictor, kind.features[rows], offset, values, tuple(others), kind.lifted, kind.columns)
