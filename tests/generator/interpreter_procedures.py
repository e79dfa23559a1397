"""Random procedures of the generator's interpreter: densities and supports of its own, nothing of the package.

A random procedure is its log density and, where that is finite, its support. A maker's product has the predictive
distribution given the list of the values drawn so far. What a `make_uc_` maker's product draws is distributed as what
the product of its collapsed sibling does: the parameter between them is summed out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from tests.generator.interpreter_functions import Symbol, key_of
from tests.posterior import reference_procedures as reference
from tests.posterior.reference_procedures import IMPOSSIBLE

Support = Callable[..., Sequence[Any]]


@dataclass(frozen=True, slots=True)
class FiniteRandom:
    """A random procedure; one without a support can be observed only."""

    log_density: Callable[..., float]
    support: Support | None = None


@dataclass(eq=False, slots=True)
class Made:
    """What a maker made; `random` is given the values drawn so far before the parameters."""

    random: FiniteRandom
    parameters: tuple[Any, ...]
    # With what each draw was given, where draws are given something.
    values: list[Any]
    name: Any


@dataclass(frozen=True, slots=True)
class MakerOf:
    random: FiniteRandom


def log(probability: float) -> float:
    return math.log(probability) if probability > 0 else IMPOSSIBLE


def log_binomial(x: int, n: int, p: float) -> float:
    return log(math.comb(int(n), int(x)) * p**x * (1 - p) ** (n - x)) if 0 <= x <= n else IMPOSSIBLE


def log_categorical(x: Any, p: Any, *given: Any) -> float:
    p, values = shares_of(p, given)
    outcomes = range(len(p)) if values is None else values
    return log(sum(float(q) for q, outcome in zip(p, outcomes, strict=True) if key_of(outcome) == key_of(x)))


def shares_of(p: Any, values: Any) -> tuple[Any, Any]:
    """Probabilities and values of a call whose last argument may say that the first is of weights."""
    plain = [given for given in values if given != Symbol("unnormalized")]
    total = sum(map(float, p)) if len(plain) < len(values) else 1.0
    return [float(q) / total for q in p], plain[0] if plain else None


def log_softmax(x: int, scores: Any) -> float:
    return float(special.log_softmax(np.asarray(scores, dtype=float))[int(x)])


def log_multinomial(x: Any, n: int, p: Any) -> float:
    if sum(x) != n:
        return IMPOSSIBLE
    arrangements = math.factorial(int(n)) / math.prod(math.factorial(int(k)) for k in x)
    return log(arrangements * math.prod(float(q) ** int(k) for q, k in zip(p, x, strict=True)))


def shares(n: int, outcomes: int) -> list[np.ndarray]:
    """All vectors of counts that sum to n."""
    if outcomes == 1:
        return [np.array([float(n)])]
    return [np.array([float(k), *rest]) for k in range(n + 1) for rest in shares(n - k, outcomes - 1)]


def distinct(values: Iterable[Any]) -> list[Any]:
    return list({key_of(value): value for value in values}.values())


def tables(values: list[Any], *parameters: float) -> list[int]:
    """The labels in use, and the smallest that is not."""
    used = sorted(set(values))
    return [*used, next(label for label in range(1, len(used) + 2) if label not in used)]


def categorical_support(p: Any, *given: Any) -> Sequence[Any]:
    _, values = shares_of(p, given)
    return range(len(p)) if values is None else distinct(values)


OWN: dict[str, Callable[..., float]] = {
    "binomial": log_binomial,
    "categorical": log_categorical,
    "weighted_categorical": lambda x, w, *values: log_categorical(x, w, *values, Symbol("unnormalized")),
    "uniform_draw": lambda x, items: log_categorical(x, [1 / len(items)] * len(items), items),
    "softmax_categorical": log_softmax,
    "multinomial": log_multinomial,
}
SUPPORTS: dict[str, Support] = {
    "flip": lambda *p: (True, False),
    "bernoulli": lambda *p: (True, False),
    "bernoulli_logit": lambda logit: (True, False),
    "binomial": lambda n, p: range(int(n) + 1),
    "beta_binomial": lambda n, a, b: range(int(n) + 1),
    "categorical": categorical_support,
    "weighted_categorical": categorical_support,
    "uniform_draw": distinct,
    "ordered_logistic": lambda score, cuts: range(len(cuts) + 1),
    "softmax_categorical": lambda scores: range(len(scores)),
    "uniform_discrete": lambda low, high: range(int(low), int(high)),
    "multinomial": lambda n, p: shares(int(n), len(p)),
}


def of_vectors(support: Support) -> Support:
    """Every vector of the items' values, where vectors are among the arguments."""

    def found(*arguments: Any) -> Sequence[Any]:
        items = reference.items_of(arguments)
        if items is None:
            return support(*arguments)
        return [np.array(values, dtype=float) for values in itertools.product(*(support(*item) for item in items))]

    return found


def finite_random(name: str) -> FiniteRandom:
    support, own = SUPPORTS.get(name), OWN.get(name)
    if name in reference.OF_ARRAYS:
        return FiniteRandom(own or reference.SINGLE[name].log_density, support)
    one = reference.Random(reference.SINGLE[name].simulate, own or reference.SINGLE[name].log_density)
    return FiniteRandom(reference.of_vectors(one).log_density, None if support is None else of_vectors(support))


RANDOM = {name: finite_random(name) for name in reference.RANDOM}
RANDOM["flat"] = FiniteRandom(lambda x, *low: 0.0 if not low or x >= low[0] else IMPOSSIBLE)


def predictive(maker: reference.Maker) -> Callable[..., float]:
    """The log density of one more draw, given those so far and the maker's parameters."""
    return lambda x, values, *parameters: maker.predictive(values, *parameters)[1](x)


MADE_SUPPORTS: dict[str, Support] = {
    "make_beta_bernoulli": lambda values, a, b: (True, False),
    "make_sym_dir_mult": lambda values, a, n: range(int(n)),
    "make_dir_mult": lambda values, alphas: range(len(alphas)),
    "make_crp": tables,
    "make_lazy_hmm": lambda values, initial, transition, emission, t: range(len(emission[0])),
}
COLLAPSED = {
    name: MakerOf(FiniteRandom(predictive(maker), MADE_SUPPORTS.get(name)))
    for name, maker in reference.MAKERS.items()
    if isinstance(maker, reference.Maker)
}
MAKERS = {name: COLLAPSED[name.replace("make_uc_", "make_")] for name in reference.MAKERS}
