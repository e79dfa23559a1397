"""Distributions made of distributions, for the generator's interpreter: from their definitions, nothing of the package.

Masses of discrete ones are sums of probabilities, those of continuous ones come from SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from tests.generator.interpreter_procedures import RANDOM, FiniteRandom, MakerOf
from tests.posterior.reference_procedures import IMPOSSIBLE, items_of

FORMS = ("truncated", "zero_inflated", "finite_mixture", "increasing")
Compound = tuple[FiniteRandom, list[Any]]
CDFS: dict[str, Callable[..., float]] = {
    "normal": lambda x, mean, sd: 0.5 * math.erfc((mean - x) / (sd * math.sqrt(2.0))),
    "gamma": lambda x, shape, rate: float(stats.gamma.cdf(x, shape, scale=1 / rate)),
}
COUNTS = range(200)
"""Values of a discrete distribution without a support, as far as its mass goes."""


def compound(form: list[Any]) -> Compound:
    """The distribution that a form stands for, and the forms of its arguments."""
    match form:
        case ["truncated", inner, low, high]:
            return truncated(inner[0], compound(inner), low, high)
        case ["zero_inflated", share, inner]:
            made, arguments = compound(inner)
            return inflated(made), [share, *arguments]
        case ["finite_mixture", weights, *inner]:
            parts = [compound(each) for each in inner]
            return mixture(parts), [weights, *(argument for _, arguments in parts for argument in arguments)]
        case ["increasing", inner]:
            made, arguments = compound(inner)
            return FiniteRandom(lambda x, *given: increasing(made, x, *given)), arguments
    return RANDOM[form[0]], form[1:]


def emitting(form: list[Any]) -> tuple[MakerOf, list[Any]] | None:
    """A hidden Markov model that emits values of a distribution, and the forms of its arguments; None for another
    form."""
    match form:
        case ["make_lazy_hmm", initial, transition, [str() as name, *inner]] if name in RANDOM:
            made, count = RANDOM[name], len(inner)
            return MakerOf(FiniteRandom(*hidden(made, count))), [initial, transition, *inner]
    return None


def hidden(made: FiniteRandom, count: int) -> tuple[Callable[..., float], Callable[..., Sequence[Any]] | None]:
    """The density of one more emission given those so far: by the distribution of the states, one time after the
    other."""

    def log_density(x: Any, values: list[Any], initial: Any, transition: Any, *given: Any) -> float:
        own, t = items_of(given[:count]) or [], given[count]
        return joint([*values, (x, t)], initial, transition, own) - joint(values, initial, transition, own)

    def joint(emitted: list[Any], initial: Any, transition: Any, own: Sequence[Any]) -> float:
        states = np.asarray(initial, dtype=float)
        for now in range(1 + max((int(time) for _, time in emitted), default=0)):
            states = states @ np.asarray(transition) if now else states
            for x, time in emitted:
                if time == now:
                    states = states * [math.exp(made.log_density(x, *item)) for item in own]
        total = float(states.sum())
        return math.log(total) if total > 0 else IMPOSSIBLE

    def support(values: list[Any], initial: Any, transition: Any, *given: Any) -> Sequence[Any]:
        assert made.support is not None
        return sorted({x for item in items_of(given[:count]) or [] for x in made.support(*item)})

    return log_density, None if made.support is None else support


def truncated(name: str, inner: Compound, low: Any, high: Any) -> Compound:
    made, arguments = inner
    bounds = [bound for bound in (low, high) if bound != "none"]

    def split(given: Sequence[Any]) -> tuple[Sequence[Any], float, float]:
        rest = list(given[len(arguments) :])
        least = rest.pop(0) if low != "none" else -math.inf
        return given[: len(arguments)], least, rest.pop() if high != "none" else math.inf

    def log_density(x: Any, *given: Any) -> float:
        own, least, most = split(given)
        if not least <= x <= most:
            return IMPOSSIBLE
        if name in CDFS:
            mass = CDFS[name](most, *own) - CDFS[name](least, *own)
        else:
            values = COUNTS if made.support is None else made.support(*own)
            mass = math.fsum(math.exp(made.log_density(k, *own)) for k in values if least <= k <= most)
        return made.log_density(x, *own) - math.log(mass)

    def support(*given: Any) -> Sequence[Any]:
        own, least, most = split(given)
        assert made.support is not None
        return [x for x in made.support(*own) if least <= x <= most]

    return FiniteRandom(log_density, None if made.support is None else support), [*arguments, *bounds]


def inflated(inner: FiniteRandom) -> FiniteRandom:
    def log_density(x: Any, p: float, *given: Any) -> float:
        chance = (1 - p) * math.exp(inner.log_density(x, *given)) + (p if x == 0 else 0.0)
        return math.log(chance) if chance > 0 else IMPOSSIBLE

    def support(p: float, *given: Any) -> Sequence[Any]:
        assert inner.support is not None
        return sorted({0, *inner.support(*given)})

    return FiniteRandom(log_density, None if inner.support is None else support)


def mixture(parts: Sequence[Compound]) -> FiniteRandom:
    def components(weights: Any, given: Sequence[Any]) -> list[tuple[FiniteRandom, Sequence[Any]]]:
        if len(parts) == 1:
            return [(parts[0][0], item) for item in items_of(given) or []]
        left, found = list(given), []
        for made, arguments in parts:
            found.append((made, left[: len(arguments)]))
            left = left[len(arguments) :]
        return found

    def log_density(x: Any, weights: Any, *given: Any) -> float:
        pairs = zip(weights, components(weights, given), strict=True)
        chance = math.fsum(w * math.exp(made.log_density(x, *own)) for w, (made, own) in pairs)
        return math.log(chance) if chance > 0 else IMPOSSIBLE

    def support(weights: Any, *given: Any) -> Sequence[Any]:
        found = [made.support(*own) for made, own in components(weights, given) if made.support is not None]
        return sorted({x for values in found for x in values})

    return FiniteRandom(log_density, None if any(made.support is None for made, _ in parts) else support)


def increasing(inner: FiniteRandom, x: Any, *given: Any) -> float:
    """Of items that share their parameters."""
    if not np.all(np.diff(x) > 0):
        return IMPOSSIBLE
    return inner.log_density(x, *given) + math.lgamma(len(x) + 1)
