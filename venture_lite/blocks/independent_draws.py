"""A draw of one choice that looks like its conditional distribution, and does not depend on its value.

Coordinate by coordinate, in the free coordinates of a continuous choice it is a normal, whose mean is the mode of the
conditional density along the coordinate and whose variance is the inverse of minus the second derivative there: exact
where the conditional is normal. Of a choice with finite support it is the conditional distribution itself, and of
others, and where no mode is found, the prior. The search begins where the choice stands, so that the draw depends on
the state; its density is that of a proposal all the same, where that state is reached without looking at the value for
which the density is asked (Jain and Neal 2007, A split-merge Markov chain Monte Carlo procedure for conditionally
conjugate models, section 3, with an approximate conditional in the place of the Gibbs update).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from venture_lite.blocks.distributions import transform_of
from venture_lite.errors import VentureError
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.candidates import draw_candidate, support_of
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import NEVER, Weight, density_of
from venture_lite.procedures.transforms import Transform
from venture_lite.trace.runtime import Exchangeable
from venture_lite.values import equal

NEAREST = 1e-3
"""The step of differences, in free coordinates, relative to the coordinate where that is above 1."""

NEAR = 1.0
"""Sds from the mode within which one more step of Newton's is taken for it: what it misses costs acceptance alone."""

LARGEST_STEP = 3.0
STEPS = 30
HALVINGS = 6
"""A search for a mode moves by Newton's steps, of this length at the most where the density is not concave, and by
halves of them where it falls."""


class IndependentDraws:
    """Draws choices of one model, each given all others."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def renew(self, node: int, old: Any = None, keeps: bool = False) -> float:
        """Give a choice a drawn value, or, with `keeps`, the value `old`; the log density of that as a draw.

        The density is with respect to the choice's value. Raises what evaluation raises.
        """
        operator, arguments, _ = self._model.trace.choice(node)
        transform = transform_of(operator)
        if transform is not None:
            return self._continuous(node, transform, arguments, old, keeps)
        support = self._support(node)
        return self._prior(node, old, keeps) if support is None else self._finite(node, support, old, keeps)

    # ---------------------------------------------------------------------------------------------- discrete

    def _support(self, node: int) -> list[Any] | None:
        """What a choice may be, given the other draws of its maker if it has one."""
        trace = self._model.trace
        operator, arguments, value = trace.choice(node)
        if not isinstance(operator, Exchangeable):
            found = support_of(operator, arguments)
        else:
            with self._model.aside():
                trace.statistics.unincorporate(operator, value, arguments)
                found = support_of(operator, arguments)
        return None if found is None else list(found)

    def _finite(self, node: int, support: Sequence[Any], old: Any, keeps: bool) -> float:
        weights = [self._weight(node, value) for value in support]
        if keeps:
            operator, _ = self._model.trace.application(node)
            # a label that no other draw has is the fresh one, which comes last, whatever its number
            is_label = isinstance(operator, Exchangeable) and operator.record.labels
            absent = len(support) - 1 if is_label else -1
            chosen = next((at for at, value in enumerate(support) if equal(value, old)), absent)
            if chosen < 0:
                return -math.inf
        else:
            chosen = draw_candidate(weights, self._model.trace.rng.random())
        fewest = min(weight.impossible for weight in weights)
        if weights[chosen].impossible > fewest:
            return -math.inf
        best = max(weight.total for weight in weights if weight.impossible == fewest)
        mass = math.fsum(math.exp(weight.total - best) for weight in weights if weight.impossible == fewest)
        self._model.put_value(node, old if keeps else support[chosen])
        return weights[chosen].total - best - math.log(mass)

    def _prior(self, node: int, old: Any, keeps: bool) -> float:
        trace = self._model.trace
        operator, arguments, _ = trace.choice(node)
        value = old if keeps else simulate_anew(trace, node, operator, arguments)
        self._model.put_value(node, value)
        return float(density_of(trace, node, operator, arguments, value))

    # -------------------------------------------------------------------------------------------- continuous

    def _continuous(self, node: int, transform: Transform, arguments: tuple[Any, ...], old: Any, keeps: bool) -> float:
        trace, rng = self._model.trace, self._model.trace.rng
        start = np.array(transform.to_free(trace.value(node), arguments), dtype=np.float64)

        def value_at(coordinates: np.ndarray) -> Any:
            return transform.from_free(
                coordinates.reshape(start.shape) if start.ndim else float(coordinates[0]), arguments
            )

        normals = self._normals(node, start.ravel(), value_at, transform, arguments)
        if normals is None:
            # decided before anything is drawn, so that one density belongs to a value
            return self._prior(node, old, keeps)
        means, sds = normals
        value = old if keeps else value_at(rng.normal(means, sds))
        at = np.ravel(np.asarray(transform.to_free(value, arguments), dtype=np.float64))
        self._model.put_value(node, value)
        log_normal = -0.5 * ((at - means) / sds) ** 2 - np.log(sds) - 0.5 * math.log(2.0 * math.pi)
        return float(log_normal.sum()) - float(transform.log_jacobian(value, arguments))

    def _normals(
        self, node: int, start: np.ndarray, value_at: Callable[[np.ndarray], Any], transform: Transform,
        arguments: tuple[Any, ...],
    ) -> tuple[np.ndarray, np.ndarray] | None:  # fmt: skip
        """Means and sds of the coordinates, each at the mode given those before it at theirs."""
        means, sds = start.copy(), np.ones(start.size)
        for at in range(start.size):

            def log_density(x: float, at: int = at) -> float:
                """In the free coordinate, up to a constant."""
                value = value_at(np.concatenate([means[:at], [x], means[at + 1 :]]))
                weight = self._weight(node, value)
                total = weight.total + float(transform.log_jacobian(value, arguments))
                return total if weight.impossible <= 0 and math.isfinite(total) else -math.inf

            found = normal_at_mode(log_density, float(start[at]))
            if found is None:
                return None
            means[at], sds[at] = found
        return means, sds

    def _weight(self, node: int, value: Any) -> Weight:
        """The log weight that a value has over the present one; nothing is left of it."""
        model = self._model
        try:
            with model.transaction():
                return model.put_value(node, value)
        except VentureError as error:
            if not rejects(model, error, ()):
                raise
            return Weight(NEVER)


def normal_at_mode(log_density: Callable[[float], float], start: float) -> tuple[float, float] | None:
    """(mean, sd) of the normal at the mode that Newton's steps find from a start; None where they find none."""
    x, here = start, log_density(start)
    for _ in range(STEPS):
        step = NEAREST * max(1.0, abs(x))
        above, below = log_density(x + step), log_density(x - step)
        if not (math.isfinite(above) and math.isfinite(below) and math.isfinite(here)):
            return None
        slope, curvature = (above - below) / (2.0 * step), (above - 2.0 * here + below) / step**2
        if curvature < 0.0:
            length, sd = -slope / curvature, 1.0 / math.sqrt(-curvature)
            if abs(length) < NEAR * sd:
                return x + length, sd
        else:
            length = math.copysign(LARGEST_STEP, slope)
        for _ in range(HALVINGS):
            there = log_density(x + length)
            if there >= here:
                break
            length *= 0.5
        else:
            return None
        x, here = x + length, there
    return None
