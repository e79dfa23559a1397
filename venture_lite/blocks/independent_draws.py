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
from typing import Any, Protocol

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


class ConditionalChoice(Protocol):
    """One choice, given all others."""

    operator: Any
    arguments: tuple[Any, ...]
    # the present value
    value: Any

    def weigh(self, value: Any) -> Weight:
        """The log weight of a value, up to a constant; nothing is left of it."""

    def weigh_several(self, values: Sequence[Any]) -> list[Weight]:
        """Those of some values."""

    def put(self, value: Any) -> None:
        """Give the choice a value."""

    def simulate(self) -> Any:
        """A value from the choice's own distribution."""

    def log_prior(self, value: Any) -> float:
        """The log density of a value under that."""

    def support(self) -> list[Any] | None:
        """What the choice may be, where these are finitely many."""


class InTrace:
    """One choice of a trace."""

    def __init__(self, model: Model, node: int) -> None:
        self._model, self._node = model, node
        self.operator, self.arguments, self.value = model.trace.choice(node)

    def weigh(self, value: Any) -> Weight:
        model = self._model
        try:
            with model.transaction():
                return model.put_value(self._node, value)
        except VentureError as error:
            if not rejects(model, error, ()):
                raise
            return Weight(NEVER)

    def weigh_several(self, values: Sequence[Any]) -> list[Weight]:
        return [self.weigh(value) for value in values]

    def put(self, value: Any) -> None:
        self._model.put_value(self._node, value)

    def simulate(self) -> Any:
        return simulate_anew(self._model.trace, self._node, self.operator, self.arguments)

    def log_prior(self, value: Any) -> float:
        return float(density_of(self._model.trace, self._node, self.operator, self.arguments, value))

    def support(self) -> list[Any] | None:
        """Given the other draws of its maker if it has one."""
        if not isinstance(self.operator, Exchangeable):
            found = support_of(self.operator, self.arguments)
        else:
            with self._model.aside():
                self._model.trace.statistics.unincorporate(self.operator, self.value, self.arguments)
                found = support_of(self.operator, self.arguments)
        return None if found is None else list(found)


def renew(at: ConditionalChoice, rng: np.random.Generator, old: Any = None, keeps: bool = False) -> float:
    """Give a choice a drawn value, or, with `keeps`, the value `old`; the log density of that as a draw.

    The density is with respect to the choice's value. Raises what evaluation raises.
    """
    transform = transform_of(at.operator)
    if transform is not None:
        return _continuous(at, rng, transform, old, keeps)
    support = at.support()
    return _prior(at, old, keeps) if support is None else _finite(at, rng, support, old, keeps)


# ----------------------------------------------------------------------------------------------------- discrete


def _finite(at: ConditionalChoice, rng: np.random.Generator, support: Sequence[Any], old: Any, keeps: bool) -> float:
    weights = [at.weigh(value) for value in support]
    if keeps:
        # a label that no other draw has is the fresh one, which comes last, whatever its number
        is_label = isinstance(at.operator, Exchangeable) and at.operator.record.labels
        absent = len(support) - 1 if is_label else -1
        chosen = next((place for place, value in enumerate(support) if equal(value, old)), absent)
        if chosen < 0:
            return -math.inf
    else:
        chosen = draw_candidate(weights, rng.random())
    fewest = min(weight.impossible for weight in weights)
    if weights[chosen].impossible > fewest:
        return -math.inf
    best = max(weight.total for weight in weights if weight.impossible == fewest)
    mass = math.fsum(math.exp(weight.total - best) for weight in weights if weight.impossible == fewest)
    at.put(old if keeps else support[chosen])
    return weights[chosen].total - best - math.log(mass)


def _prior(at: ConditionalChoice, old: Any, keeps: bool) -> float:
    value = old if keeps else at.simulate()
    at.put(value)
    return at.log_prior(value)


# --------------------------------------------------------------------------------------------------- continuous


def _continuous(at: ConditionalChoice, rng: np.random.Generator, transform: Transform, old: Any, keeps: bool) -> float:
    start = np.array(transform.to_free(at.value, at.arguments), dtype=np.float64)
    if not start.ndim:
        return _number(at, rng, transform, float(start), old, keeps)

    def value_at(coordinates: np.ndarray) -> Any:
        return transform.from_free(coordinates.reshape(start.shape), at.arguments)

    normals = _normals(at, start.ravel(), value_at, transform)
    if normals is None:
        # decided before anything is drawn, so that one density belongs to a value
        return _prior(at, old, keeps)
    means, sds = normals
    value = old if keeps else value_at(rng.normal(means, sds))
    free = np.ravel(np.asarray(transform.to_free(value, at.arguments), dtype=np.float64))
    at.put(value)
    log_normal = -0.5 * ((free - means) / sds) ** 2 - np.log(sds) - 0.5 * math.log(2.0 * math.pi)
    return float(log_normal.sum()) - float(transform.log_jacobian(value, at.arguments))


def _number(
    at: ConditionalChoice, rng: np.random.Generator, transform: Transform, start: float, old: Any, keeps: bool
) -> float:
    """As `_continuous`, of a choice that has one coordinate."""
    arguments = at.arguments

    def log_densities(points: Sequence[float]) -> list[float]:
        return _densities(at, transform, [transform.from_free(point, arguments) for point in points])

    found = normal_at_mode(log_densities, start)
    if found is None:
        return _prior(at, old, keeps)
    mean, sd = found
    value = old if keeps else transform.from_free(float(rng.normal(mean, sd)), arguments)
    free = float(transform.to_free(value, arguments))
    at.put(value)
    log_normal = -0.5 * ((free - mean) / sd) ** 2 - math.log(sd) - 0.5 * math.log(2.0 * math.pi)
    return log_normal - float(transform.log_jacobian(value, arguments))


def _densities(at: ConditionalChoice, transform: Transform, values: Sequence[Any]) -> list[float]:
    """The log densities of values in free coordinates, up to a constant."""
    found = []
    for value, weight in zip(values, at.weigh_several(values), strict=True):
        total = weight.total + float(transform.log_jacobian(value, at.arguments))
        found.append(total if weight.impossible <= 0 and math.isfinite(total) else -math.inf)
    return found


def _normals(
    at: ConditionalChoice, start: np.ndarray, value_at: Callable[[np.ndarray], Any], transform: Transform
) -> tuple[np.ndarray, np.ndarray] | None:
    """Means and sds of the coordinates, each at the mode given those before it at theirs."""
    means, sds = start.copy(), np.ones(start.size)
    for place in range(start.size):

        def log_densities(points: Sequence[float], place: int = place) -> list[float]:
            values = [value_at(np.concatenate([means[:place], [x], means[place + 1 :]])) for x in points]
            return _densities(at, transform, values)

        found = normal_at_mode(log_densities, float(start[place]))
        if found is None:
            return None
        means[place], sds[place] = found
    return means, sds


def normal_at_mode(
    log_densities: Callable[[Sequence[float]], Sequence[float]], start: float
) -> tuple[float, float] | None:
    """(mean, sd) of the normal at the mode that Newton's steps find from a start; None where they find none.

    A point is weighed with the two beside it, which the next step is made from.
    """

    def beside(x: float) -> tuple[float, Sequence[float]]:
        step = NEAREST * max(1.0, abs(x))
        return step, log_densities((x, x + step, x - step))

    x, (step, (here, above, below)) = start, beside(start)
    for _ in range(STEPS):
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
            next_step, densities = beside(x + length)
            if densities[0] >= here:
                break
            length *= 0.5
        else:
            return None
        x, step, (here, above, below) = x + length, next_step, densities
    return None
