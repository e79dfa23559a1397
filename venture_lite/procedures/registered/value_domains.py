"""Where the values of a registered random procedure lie: what drift moves them in, and where the density is zero.

Written as a name, or as two bounds for the numbers between them. A vector of numbers lies in a domain of numbers when
each entry does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError, nearest
from venture_lite.procedures import domains, transforms
from venture_lite.procedures.domains import Domain
from venture_lite.procedures.numeric import clip
from venture_lite.procedures.transforms import POSITIVE, Transform, between, by_log, elementwise, exp_of, log_of

ValueDomainLike = str | tuple[float, float] | Domain | Transform
"""How it is written: a name of NAMED, bounds, a domain of discrete values, or a transform of one's own."""


@dataclass(frozen=True, slots=True)
class ValueDomain:
    """Values that a random procedure can take; outside the density is zero, whatever `log_density` would say."""

    # for messages: 'must be PHRASE'
    phrase: str
    # one value of any kind; never raises
    contains: Callable[[Any], bool]
    # (rows, ...) -> (rows,) of bool
    contains_rows: Callable[[np.ndarray], np.ndarray]
    # how a continuous value is moved in unconstrained coordinates; None for discrete values
    transform: Transform | None


def one_sided(bound: float, sign: float) -> Transform:
    """Numbers above (`sign` 1) or below (-1) a bound, in the logarithm of their distance from it."""
    first, last = math.nextafter(bound, sign * math.inf), sign * transforms.LARGEST
    low, high = min(first, last), max(first, last)
    return elementwise(
        lambda value, *arguments: log_of(sign * (value - bound)),
        lambda free, *arguments: clip(bound + sign * exp_of(free), low, high),
        lambda value, *arguments: log_of(sign * (value - bound)),
        lambda value, gradient, *arguments: by_log(sign * (value - bound), sign * gradient),
    )


def _numbers(phrase: str, inside: Callable[[Any], Any], transform: Transform) -> ValueDomain:
    """Numbers, and vectors of them; `inside` works on one number and elementwise on arrays."""

    def contains(value: Any) -> bool:
        if isinstance(value, tuple):
            return all(isinstance(item, (int, float)) and bool(inside(item)) for item in value)
        return isinstance(value, (int, float, np.ndarray)) and bool(np.all(inside(value)))

    def contains_rows(column: np.ndarray) -> np.ndarray:
        flat = np.asarray(inside(column)).reshape(len(column), -1)
        return np.asarray(flat.all(axis=1))

    return ValueDomain(phrase, contains, contains_rows, transform)


def _structured(domain: Domain, transform: Transform | None, more: Callable[[Any], bool] | None = None) -> ValueDomain:
    def contains(value: Any) -> bool:
        return domain.contains(value) and (more is None or more(value))

    def contains_rows(rows: np.ndarray) -> np.ndarray:
        if more is None and domain.contains_all(rows):
            return np.ones(len(rows), bool)
        # numbers as the language has them, arrays as they are
        return np.array([contains(row) for row in (rows.tolist() if rows.ndim == 1 else rows)], bool)

    return ValueDomain(domain.phrase, contains, contains_rows, transform)


def _between(low: float, high: float) -> ValueDomain:
    transform: Transform
    if math.isfinite(low) and math.isfinite(high):
        transform = between(low, high)
    elif math.isfinite(low):
        transform = one_sided(low, 1.0)
    elif math.isfinite(high):
        transform = one_sided(high, -1.0)
    else:
        transform = transforms.REAL
    return _numbers(f"between {low:g} and {high:g}", lambda x: (low < x) & (x < high), transform)


NAMED: dict[str, ValueDomain] = {
    "real": _numbers("a finite number", lambda x: (-math.inf < x) & (x < math.inf), transforms.REAL),
    "positive": _numbers("positive", lambda x: (x > 0.0) & (x < math.inf), POSITIVE),
    "unit": _numbers("between 0 and 1", lambda x: (x > 0.0) & (x < 1.0), transforms.UNIT),
    "angle": _numbers("from -pi to pi", lambda x: (-math.pi <= x) & (x <= math.pi), transforms.CIRCLE),
    "simplex": _structured(domains.PROBABILITY_VECTOR, transforms.SIMPLEX, lambda value: min(value) > 0.0),
    "positive definite": _structured(domains.POSITIVE_DEFINITE, transforms.POSITIVE_DEFINITE),
    "integer": _structured(domains.INTEGER, None),
    "count": _structured(domains.COUNT, None),
    "positive integer": _structured(domains.POSITIVE_INTEGER, None),
    "boolean": _structured(domains.BOOLEAN_LIKE, None),
}


def value_domain(procedure: str, given: Any) -> ValueDomain | None:
    """What was written, or None for nothing. Raises ArgumentError for what is no domain."""
    match given:
        case None:
            return None
        case str() if given in NAMED:
            return NAMED[given]
        case Domain():
            return _structured(given, None)
        case (float() | int() as low, float() | int() as high) if low < high:
            return _between(float(low), float(high))
    if all(hasattr(given, method) for method in ("to_free", "from_free", "log_jacobian")):
        return ValueDomain("", lambda value: True, lambda rows: np.ones(len(rows), bool), given)
    hint = nearest(given, NAMED) if isinstance(given, str) else None
    raise ArgumentError(
        f"{procedure}: {given!r} is no domain for its values",
        hint=hint or f"one of {', '.join(NAMED)}; or a pair (low, high)",
    )
