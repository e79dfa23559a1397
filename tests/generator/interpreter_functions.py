"""Deterministic procedures of the generator's interpreter, by what the language's description says of them.

Numbers are Python's, lists tuples, vectors and matrices arrays, dictionaries Python's by `key_of` of their keys.
"""

from __future__ import annotations

import itertools
import math
import operator
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy import special

from tests.posterior import reference_procedures as reference


@dataclass(frozen=True, slots=True)
class Symbol:
    """A quoted name."""

    name: str


@dataclass(frozen=True, slots=True)
class Higher:
    """A procedure that calls the procedures given to it."""

    name: str


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Keys with their values, by what stands for the keys."""

    entries: dict[Any, tuple[Any, Any]]


def key_of(value: Any) -> Any:
    """What stands for a value in a memory: lists and vectors by their entries, procedures by identity."""
    match value:
        case np.ndarray():
            return ("array", value.shape, *map(float, value.ravel()))
        case tuple():
            return tuple(map(key_of, value))
        case Dictionary(entries):
            return ("dictionary", frozenset((key, key_of(item)) for key, (_, item) in entries.items()))
    return value


def same(one: Any, other: Any) -> bool:
    return bool(key_of(one) == key_of(other))


def make_dict(*given: Any) -> Dictionary:
    return to_dict(tuple(zip(given[::2], given[1::2], strict=True)))


def to_dict(pairs: Any) -> Dictionary:
    return Dictionary({key_of(key): (key, value) for key, value in pairs})


def insert(dictionary: Dictionary, key: Any, value: Any) -> Dictionary:
    kept, _ = dictionary.entries.get(key_of(key), (key, value))
    return Dictionary({**dictionary.entries, key_of(key): (kept, value)})


def remove(dictionary: Dictionary, key: Any) -> Dictionary:
    return Dictionary({k: entry for k, entry in dictionary.entries.items() if k != key_of(key)})


NONE: Any = object()


def lookup(collection: Any, index: Any, default: Any = NONE) -> Any:
    if isinstance(collection, Dictionary):
        if key_of(index) in collection.entries:
            return collection.entries[key_of(index)][1]
    elif index in range(len(collection)):
        return collection[int(index)]
    assert default is not NONE, f"nothing at {index} in {collection}"
    return default


def contains(items: Any, value: Any) -> bool:
    if isinstance(items, Dictionary):
        return key_of(value) in items.entries
    return value in items if isinstance(items, str) else any(same(item, value) for item in items)


def to_list(items: Any) -> tuple[Any, ...]:
    return tuple(items.entries.values()) if isinstance(items, Dictionary) else tuple(items)


def size(items: Any) -> int:
    return len(items.entries) if isinstance(items, Dictionary) else len(items)


def unique(items: Any) -> Any:
    kept = [item for i, item in enumerate(items) if not any(same(item, earlier) for earlier in items[:i])]
    return np.array(kept) if isinstance(items, np.ndarray) else tuple(kept)


def append(*parts: Any) -> Any:
    if parts and isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return reduce(lambda a, b: a + b, parts) if parts else ()


def to_string(value: Any) -> str:
    match value:
        case str():
            return value
        case Symbol(name):
            return name
    assert value == int(value), "how other numbers are written is not told"
    return str(int(value))


def chained(compare: Callable[[Any, Any], Any]) -> Callable[..., bool]:
    return lambda *items: all(bool(compare(a, b)) for a, b in itertools.pairwise(items))


def number(value: Any) -> Any:
    """Booleans are 0 and 1 in arithmetic."""
    return int(value) if isinstance(value, bool) else value


def arithmetic(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: compute(*map(number, values))


def elementwise(compute: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: np.array([compute(v) for v in x]) if isinstance(x, np.ndarray) else compute(number(x))


def least(choose: Callable[..., Any], among: Callable[..., Any]) -> Callable[..., Any]:
    """Of several numbers, or vectors entry by entry; or of the entries of one list."""

    def run(*items: Any) -> Any:
        if len(items) == 1 and isinstance(items[0], (tuple, np.ndarray)):
            return choose(items[0])
        return reduce(among, items) if any(isinstance(item, np.ndarray) for item in items) else choose(items)

    return run


def logsumexp(*items: Any) -> float:
    values = items[0] if isinstance(items[0], (tuple, np.ndarray)) else items
    top = max(values)
    return float(top + math.log(math.fsum(math.exp(value - top) for value in values)))


def matrix(*rows: Any) -> np.ndarray:
    listed = len(rows) == 1 and isinstance(rows[0], tuple) and not np.isscalar(rows[0][0])
    return np.array(rows[0] if listed else rows, dtype=float)


def array(items: Any) -> np.ndarray:
    return np.asarray(items, dtype=float)


def plain(value: Any) -> Any:
    """A number where it is one."""
    return float(value) if np.ndim(value) == 0 else value


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


HIGHER = (
    "map", "filter", "fold", "any", "all", "find", "count", "apply", "expectation", "ode", "make_dp", "make_pitman_yor",
)  # fmt: skip
OF_MATH = ("exp", "expm1", "log", "log1p", "log10", "sqrt", "floor", "sin", "cos", "tan", "lgamma", "erf", "erfc")
DETERMINISTIC: dict[str, Any] = {
    **reference.DETERMINISTIC,
    "+": arithmetic(lambda *xs: reduce(operator.add, xs, 0)),
    "*": arithmetic(lambda *xs: reduce(operator.mul, xs, 1)),
    "-": arithmetic(reference.DETERMINISTIC["-"]),
    "/": lambda x, *ys: reduce(lambda a, b: a / b, ys, x) if ys else 1 / x,
    **{word: chained(reference.DETERMINISTIC[word]) for word in ("<", ">", "<=", ">=")},
    "=": chained(same),
    "!=": lambda one, other: not same(one, other),
    "mod": lambda x, divisor: x % divisor,
    "int_div": lambda x, divisor: math.floor(x / divisor),
    **{word: elementwise(getattr(math, word)) for word in OF_MATH},
    "round": elementwise(round),
    "logistic": elementwise(lambda x: float(special.expit(x))),
    "normal_cdf": elementwise(lambda x: float(special.ndtr(x))),
    "logit": elementwise(lambda p: math.log(p / (1 - p))),
    "pow": lambda base, exponent: float(base) ** exponent,
    "atan2": math.atan2,
    "min": least(min, np.minimum),
    "max": least(max, np.maximum),
    "logsumexp": logsumexp,
    "second": lambda items: items[1],
    "last": lambda items: items[-1],
    "take": lambda items, count: items[: int(count)],
    "drop": lambda items, count: items[int(count) :],
    "sort": lambda items: np.sort(items) if isinstance(items, np.ndarray) else tuple(sorted(items)),
    "unique": unique,
    "cumsum": lambda items: np.add.accumulate(array(items)),
    "sd": lambda items: math.sqrt(statistics.variance(array(items).ravel().tolist())),
    "variance": lambda items: statistics.variance(array(items).ravel().tolist()),
    "quantile": lambda items, p: float(np.quantile(array(items), p)),
    "is_pair": lambda value: isinstance(value, tuple) and len(value) > 0,
    "is_empty": lambda items: size(items) == 0,
    "size": size,
    "append": append,
    "reverse": lambda items: items[::-1],
    "range": lambda *bounds: tuple(range(*map(int, bounds))),
    "contains": contains,
    "lookup": lookup,
    "zip": lambda *items: tuple(zip(*items, strict=False)),
    "to_list": to_list,
    "matrix": matrix,
    "to_vector": array,
    "ones": lambda *shape: np.ones(tuple(map(int, shape))),
    "zeros": lambda *shape: np.zeros(tuple(map(int, shape))),
    "dot": lambda left, right: plain(array(left) @ array(right)),
    "matmul": lambda left, right: plain(array(left) @ array(right)),
    "transpose": lambda items: array(items).T,
    "linear_logistic": lambda weights, inputs: float(special.expit(array(weights) @ array(inputs))),
    "sum": lambda items: plain(sum(map(number, np.ravel(array(items)).tolist()))),
    "prod": lambda items: math.prod(np.ravel(array(items)).tolist()),
    "mean": lambda items: float(np.mean(array(items))),
    "solve": lambda left, right: np.linalg.inv(left) @ array(right),
    "inverse": lambda items: np.linalg.inv(array(items)),
    "cholesky": lambda items: np.linalg.cholesky(array(items)),
    "trace": lambda items: float(np.trace(array(items))),
    "det": lambda items: float(np.linalg.det(array(items))),
    "eye": lambda n: np.eye(int(n)),
    "diagonal": lambda items: np.diag(array(items)),
    "dict": make_dict,
    "to_dict": to_dict,
    "keys": lambda dictionary: tuple(key for key, _ in dictionary.entries.values()),
    "values": lambda dictionary: tuple(value for _, value in dictionary.entries.values()),
    "insert": insert,
    "remove": remove,
    "substring": lambda text, start, stop=None: text[int(start) : None if stop is None else int(stop)],
    "split": lambda text, separator=None: tuple(text.split(separator)),
    "join": lambda texts, separator="": separator.join(texts),
    "to_string": to_string,
    "to_number": float,
    "to_symbol": lambda value: value if isinstance(value, Symbol) else Symbol(value),
    "is_number": is_number,
    "is_boolean": lambda value: isinstance(value, bool),
    "is_symbol": lambda value: isinstance(value, Symbol),
    "is_string": lambda value: isinstance(value, str),
    "is_list": lambda value: isinstance(value, tuple),
    "is_vector": lambda value: isinstance(value, np.ndarray) and value.ndim == 1,
    "is_matrix": lambda value: isinstance(value, np.ndarray) and value.ndim == 2,
    "is_dict": lambda value: isinstance(value, Dictionary),
    "is_integer": lambda value: is_number(value) and value == int(value),
    **{name: Higher(name) for name in HIGHER},
}
