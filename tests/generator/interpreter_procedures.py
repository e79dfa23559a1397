"""Procedures of the generator's interpreter: densities and supports of its own, nothing of the package.

A random procedure is its log density and, where that is finite, its support. A maker's product has the predictive
distribution given the list of the values drawn so far.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.posterior import reference_procedures as reference

IMPOSSIBLE = -math.inf


@dataclass(frozen=True, slots=True)
class FiniteRandom:
    """A random procedure; one without a support can be observed only."""

    log_density: Callable[..., float]
    support: Callable[..., Sequence[Any]] | None = None


@dataclass(eq=False, slots=True)
class Made:
    """What a maker made; `random` is given the values drawn so far before the parameters."""

    random: FiniteRandom
    parameters: tuple[Any, ...]
    values: list[Any]
    name: Any


@dataclass(frozen=True, slots=True)
class MakerOf:
    random: FiniteRandom


@dataclass(frozen=True, slots=True)
class Higher:
    """A procedure that calls the procedures given to it."""

    name: str


def log(probability: float) -> float:
    return math.log(probability) if probability > 0 else IMPOSSIBLE


def log_flip(x: Any, p: float = 0.5) -> float:
    return log(p if x == 1 else 1 - p if x == 0 else 0.0)


def log_binomial(x: int, n: int, p: float) -> float:
    return log(math.comb(int(n), x) * p**x * (1 - p) ** (n - x)) if 0 <= x <= n else IMPOSSIBLE


def log_categorical(x: Any, p: Any) -> float:
    return log(float(p[int(x)])) if 0 <= x < len(p) else IMPOSSIBLE


def log_uniform_discrete(x: int, low: int, high: int) -> float:
    return -math.log(high - low) if low <= x < high else IMPOSSIBLE


def log_normal(x: float, mean: float, sd: float) -> float:
    return -0.5 * ((x - mean) / sd) ** 2 - math.log(sd) - 0.5 * math.log(2 * math.pi)


def log_poisson(x: int, rate: float) -> float:
    return x * math.log(rate) - rate - math.lgamma(x + 1)


def log_beta_bernoulli(x: Any, values: list[Any], a: float, b: float) -> float:
    heads = sum(values)
    return log((a + heads if x == 1 else b + len(values) - heads) / (a + b + len(values)))


def log_sym_dir_mult(x: int, values: list[Any], a: float, n: int) -> float:
    return log((a + values.count(x)) / (a * n + len(values)))


def log_dir_mult(x: int, values: list[Any], alphas: Sequence[float]) -> float:
    return log((alphas[int(x)] + values.count(x)) / (math.fsum(alphas) + len(values)))


def log_crp(x: int, values: list[Any], alpha: float, discount: float = 0.0) -> float:
    """A label that nobody has stands for the fresh table."""
    tables = len(set(values))
    weight = values.count(x) - discount if x in values else alpha + discount * tables
    return log(weight / (alpha + len(values)))


def tables(values: list[Any], *parameters: float) -> list[int]:
    """The labels in use, and the smallest that is not."""
    used = sorted(set(values))
    return [*used, next(label for label in range(1, len(used) + 2) if label not in used)]


flip = FiniteRandom(log_flip, lambda p=0.5: (True, False))
RANDOM = {
    "flip": flip,
    "bernoulli": flip,
    "binomial": FiniteRandom(log_binomial, lambda n, p: range(int(n) + 1)),
    "categorical": FiniteRandom(log_categorical, lambda p: range(len(p))),
    "uniform_discrete": FiniteRandom(log_uniform_discrete, lambda low, high: range(int(low), int(high))),
    "normal": FiniteRandom(log_normal),
    "poisson": FiniteRandom(log_poisson),
}
MAKERS = {
    "make_beta_bernoulli": MakerOf(FiniteRandom(log_beta_bernoulli, lambda values, a, b: (True, False))),
    "make_sym_dir_mult": MakerOf(FiniteRandom(log_sym_dir_mult, lambda values, a, n: range(int(n)))),
    "make_dir_mult": MakerOf(FiniteRandom(log_dir_mult, lambda values, alphas: range(len(alphas)))),
    "make_crp": MakerOf(FiniteRandom(log_crp, tables)),
}


def make_dict(*entries: Any) -> dict[Any, Any]:
    return dict(zip(map(key_of, entries[::2]), entries[1::2], strict=True))


def lookup(collection: Any, index: Any) -> Any:
    if isinstance(collection, dict):
        return collection[key_of(index)]
    assert 0 <= index < len(collection), f"no position {index} in {collection}"
    return collection[int(index)]


def chained(compare: Callable[[Any, Any], Any]) -> Callable[..., bool]:
    return lambda *items: all(bool(compare(a, b)) for a, b in itertools.pairwise(items))


DETERMINISTIC: dict[str, Any] = {
    **reference.DETERMINISTIC,
    **{word: chained(reference.DETERMINISTIC[word]) for word in ("=", "<", ">", "<=", ">=")},
    "mod": lambda x, divisor: x % divisor,
    "not": lambda x: not x,
    "dict": make_dict,
    "lookup": lookup,
    "range": lambda *bounds: tuple(range(*map(int, bounds))),
    "contains": lambda items, value: any(item == value for item in items),
    "logistic": lambda x: 1 / (1 + math.exp(-x)),
    **{name: Higher(name) for name in ("map", "filter", "fold")},
}


def key_of(value: Any) -> Any:
    """What stands for a value in a memory: lists and vectors by their entries, procedures by identity."""
    if isinstance(value, np.ndarray):
        return ("vector", *map(float, value))
    if isinstance(value, tuple):
        return tuple(map(key_of, value))
    if isinstance(value, dict):
        return ("dictionary", frozenset((key, key_of(item)) for key, item in value.items()))
    return value
