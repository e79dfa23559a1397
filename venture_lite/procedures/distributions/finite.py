"""What is done with a `Distribution`, the value of a query inside the model: it is drawn from, and asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from venture_lite.errors import Undrawable
from venture_lite.procedures.columns import Flags, RowByRow
from venture_lite.procedures.domains import ANY, of_kind
from venture_lite.procedures.record import UNKNOWN, Argument, Deterministic, Random
from venture_lite.values import Distribution

DISTRIBUTION = of_kind("distribution", "a distribution, as (enumerate (lambda () EXPR)) gives one", Distribution)


def _of_no_value(name: str) -> Undrawable:
    """The state that asks has probability zero: a transition that leads there is rejected."""
    hint = "no world of the query has a positive probability: look at its conditions and factors"
    return Undrawable(f"{name}: the distribution is of no value", hint=hint)


def _simulate(rng: np.random.Generator, distribution: Distribution) -> Any:
    if not distribution.values:
        raise _of_no_value("draw")
    return distribution.draw(rng.random())


def _log_density(value: Any, distribution: Distribution) -> float:
    return distribution.log_density(value)


def _log_bound(value: Any, distribution: Any) -> float:
    return 0.0 if distribution is UNKNOWN else _log_density(value, distribution)


def _support(distribution: Distribution) -> Sequence[Any]:
    if not distribution.values:
        raise _of_no_value("draw")
    return distribution.values


def _columns(lifted: Flags, value: Any, distribution: Any) -> np.ndarray:
    """Values are looked up one by one; those that are vectors themselves are no column of values."""
    if (lifted[0] and value.ndim != 1) or (lifted[1] and distribution.ndim != 1):
        raise RowByRow
    if not lifted[1]:
        return np.array([distribution.log_density(item) for item in value.tolist()])
    if not lifted[0]:
        return np.array([item.log_density(value) for item in distribution.tolist()])
    pairs = zip(value.tolist(), distribution.tolist(), strict=True)
    return np.array([given.log_density(item) for item, given in pairs])


def _checked(name: str, distribution: Any) -> Distribution:
    checked: Distribution = DISTRIBUTION.checked(name, "distribution", distribution)
    return checked


def probability(distribution: Any, value: Any) -> float:
    return _checked("probability", distribution).probability(value)


def log_density(distribution: Any, value: Any) -> float:
    return _checked("log_density", distribution).log_density(value)


def probabilities(distribution: Any) -> tuple[float, ...]:
    if not _checked("probabilities", distribution).values:
        raise _of_no_value("probabilities")
    found: tuple[float, ...] = distribution.probabilities
    return found


def support(distribution: Any) -> tuple[Any, ...]:
    return _checked("support", distribution).values


_DISTRIBUTION = Argument("distribution", DISTRIBUTION)

DRAW = Random(
    "draw", (_DISTRIBUTION,), "A value of a distribution that a query gave: a random choice.",
    _simulate, _log_density, _columns, log_bound=_log_bound, support=_support,
    source="the probability that the query found",
)  # fmt: skip

LOG_DENSITY = Deterministic(
    "log_density", (_DISTRIBUTION, Argument("value", ANY)),
    "The log of the probability of a value under a distribution; -inf where it is 0. Of a distribution that is written "
    "with its parameters, as (log_density (normal 0 1) x), the log density; nothing is drawn.", log_density,
)  # fmt: skip

RECORDS = (
    DRAW,
    Deterministic("probability", (_DISTRIBUTION, Argument("value", ANY)),
                  "The probability of a value under a distribution, 0 where it is not among its values.", probability),
    LOG_DENSITY,
    Deterministic("probabilities", (_DISTRIBUTION,),
                  "The list of the probabilities of a distribution's values, in the order of `support`.",
                  probabilities),
    Deterministic("support", (_DISTRIBUTION,),
                  "The list of values of a distribution, each once, in the order in which the query met them.",
                  support),
)  # fmt: skip
