"""Distributions made of distributions: truncated, inflated at zero, mixed.

Each is a record like any other, made once for the records that it is made of: where these have definitions over the
numeric namespace, so has it, and gradients, columns, vectors and forms follow. Its arguments are theirs and its own.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError, CountTooLarge
from venture_lite.procedures import bounds, numeric, transforms
from venture_lite.procedures.columns import Flags, RowByRow
from venture_lite.procedures.density import random
from venture_lite.procedures.distributions import tails
from venture_lite.procedures.distributions.tails import TAILS, log_between
from venture_lite.procedures.domains import (
    INTEGER,
    PROBABILITY,
    PROBABILITY_VECTOR,
    REAL,
    SEVERAL,
    Domain,
    number_of,
    vector_of,
)
from venture_lite.procedures.orders import log_probability_of_increase
from venture_lite.procedures.record import Argument, Gradient, Random
from venture_lite.values import equal, freeze, key_of, show

_MIXED: set[Random] = set()
"""Distributions that have a probability at some points and a density at others."""

TRIES = 20
"""Draws before a truncated one is found by halving instead: while a fifth of the mass is inside it is nearly
always among these."""


def _defined(text: str, **names: Any) -> Callable[..., Any]:
    """A function over the numeric namespace, from its text."""
    namespace = {**vars(numeric), **vars(tails), **names, "__name__": __name__}
    exec(text, namespace)
    function: Callable[..., Any] = namespace["defined"]
    return function


def _named(count: int) -> list[str]:
    return [f"argument_{i}" for i in range(count)]


# ------------------------------------------------------------------------------------------------------- truncated

_TRUNCATED = """
def defined(value, {names}):
    inside = {inside}
    mass = {mass}
    return where(inside & (mass > -inf), inner(value, {inner}) - where(mass > -inf, mass, 0.0), -inf)
"""


@functools.cache
def truncated(inner: Random, has_low: bool, has_high: bool) -> Random:
    """A value given that it lies from lo to hi. The arguments of `inner` come first, then the bounds that there are.

    Raises ArgumentError for a distribution without a distribution function.
    """
    if inner.name not in TAILS or inner.definition is None:
        known = ", ".join(sorted(TAILS))
        raise ArgumentError(f"truncated: {inner.name} has no distribution function", hint=f"one of {known}")
    count, bounds = len(inner.arguments), ["low"] * has_low + ["high"] * has_high
    names = _named(count)
    given, discrete = ", ".join(names), inner.transform is None
    start = "(-floor(-low) - 1.0)" if discrete else "low"
    mass = f"below(high, {given})" if has_high else f"above({start}, {given})"
    if has_low and has_high:
        mass = (
            f"log_between(below({start}, {given}), above({start}, {given}), below(high, {given}), above(high, {given}))"
        )
    inside = " & ".join(["(value >= low)"] * has_low + ["(value <= high)"] * has_high)
    text = _TRUNCATED.format(names=", ".join([*names, *bounds]), inside=inside, mass=mass, inner=given)
    functions = TAILS[inner.name]
    density = _defined(text, inner=inner.definition, below=functions.below, above=functions.above)
    draw = _Truncated(inner, has_low, has_high)
    transform = None if inner.transform is None else _transform(inner, count, has_low, has_high)
    arguments = tuple(Argument(argument.name, _of_number(argument)) for argument in inner.arguments)
    return random(
        f"truncated {inner.name}",
        (*arguments, *(Argument(name, INTEGER if discrete else REAL) for name in ["lo"] * has_low + ["hi"] * has_high)),
        f"A value of {inner.name} given that it lies between bounds.",
        draw.simulate, density, transform=transform, is_recorded=False,
        support=draw.support if discrete and (inner.support is not None or (has_low and has_high)) else None,
    )  # fmt: skip


def _of_number(argument: Argument) -> Domain:
    """The domain of single numbers."""
    return number_of(argument.domain)


def _transform(inner: Random, count: int, has_low: bool, has_high: bool) -> Any:
    """Onto what the bounds leave of the support."""
    ends: dict[Any, tuple[float | int | None, float | int | None]] = {
        transforms.INTERVAL: (0, 1),
        transforms.ABOVE_SCALE: (1, None),
        transforms.REAL: (None, None),
        transforms.POSITIVE: (0.0, None),
        transforms.UNIT: (0.0, 1.0),
    }
    assert inner.transform is not None
    least, most = ends[inner.transform]
    return transforms.within(count, least, most, has_low, has_high)


@dataclass(frozen=True, slots=True)
class _Truncated:
    """Draws of a truncated distribution, and its support."""

    inner: Random
    has_low: bool
    has_high: bool

    def _split(self, given: Sequence[Any]) -> tuple[tuple[Any, ...], float, float]:
        count = len(self.inner.arguments)
        bounds = list(given[count:])
        low = bounds.pop(0) if self.has_low else -math.inf
        return tuple(given[:count]), low, bounds.pop() if self.has_high else math.inf

    def simulate(self, rng: np.random.Generator, *given: Any) -> Any:
        arguments, low, high = self._split(given)
        is_discrete = self.inner.transform is None
        if not (low <= high if is_discrete else low < high):
            raise ArgumentError(
                f"truncated {self.inner.name}: lo must be less than hi, got {show(low)} and {show(high)}"
            )
        for _ in range(TRIES):
            try:
                drawn = self.inner.simulate(rng, *arguments)
            except CountTooLarge:
                if high == math.inf:
                    raise
                continue
            if low <= drawn <= high if is_discrete else low < drawn < high:
                return drawn
        return self._halved(rng.random(), arguments, low, high)

    def _halved(self, share: float, arguments: tuple[Any, ...], low: float, high: float) -> Any:
        """The value below which this share of the mass lies, by halving: integers, or free coordinates."""
        is_discrete, functions = self.inner.transform is None, TAILS[self.inner.name]
        start = math.ceil(low) - 1 if is_discrete and math.isfinite(low) else low

        def log_mass(x: float) -> float:
            below_start = functions.below(start, *arguments) if start > -math.inf else -math.inf
            above_start = functions.above(start, *arguments) if start > -math.inf else 0.0
            below, above = (
                (functions.below(x, *arguments), functions.above(x, *arguments)) if x < math.inf else (0.0, -math.inf)
            )
            return log_between(below_start, above_start, below, above)

        wanted = log_mass(high) + math.log1p(-share)
        if not wanted > -math.inf:
            raise ArgumentError(
                f"truncated {self.inner.name}: there is no probability between {show(low)} and {show(high)}"
            )
        if is_discrete:
            values = None if self.inner.support is None else self.inner.support(*arguments)
            first = start if start > -math.inf else -1 if values is None else min(values) - 1
            found = _least_integer(lambda k: log_mass(k) >= wanted, first, high)
            return numeric.drawn_count(found, f"truncated {self.inner.name}: a draw above {{}}", low)
        bounds = [low] * self.has_low + [high] * self.has_high
        transform = _transform(self.inner, len(arguments), self.has_low, self.has_high)
        least, most = -745.0, 745.0
        falls = log_mass(transform.from_free(least, (*arguments, *bounds))) > log_mass(
            transform.from_free(most, (*arguments, *bounds))
        )
        for _ in range(64):
            middle = 0.5 * (least + most)
            reached = log_mass(transform.from_free(middle, (*arguments, *bounds))) >= wanted
            least, most = (least, middle) if reached != falls else (middle, most)
        return transform.from_free(0.5 * (least + most), (*arguments, *bounds))

    def support(self, *given: Any) -> Sequence[Any] | None:
        arguments, low, high = self._split(given)
        if self.inner.support is not None:
            found = self.inner.support(*arguments)
            return None if found is None else tuple(value for value in found if low <= value <= high)
        return range(max(math.ceil(low), 0), math.floor(high) + 1)


def _least_integer(holds: Callable[[float], bool], below: float, most: float) -> int:
    """The least integer above `below` for which it holds, `most` at the most."""
    low, step = int(below), 1
    while low + step < most and not holds(low + step):
        low, step = low + step, 2 * step
    high = int(min(low + step, most))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# --------------------------------------------------------------------------------------------------- inflated at zero

_INFLATED = """
def defined(value, p, {names}):
    rest = log1p(-p) + inner(value, {names})
    zero = {zero}
    return where(value == 0, zero, rest)
"""
_BOTH = "maximum(log(p), rest) + log1p(exp(-absolute(where(log(p) == rest, 0.0, log(p) - rest))))"


@functools.cache
def zero_inflated(inner: Random) -> Random:
    """0 with probability p, else a value of `inner`, whose arguments come after p. Of a continuous `inner` the value 0
    has the probability p alone, and all others have densities."""
    if inner.definition is None:
        return _inflated_by_calls(inner)
    discrete, names = inner.transform is None, ", ".join(_named(len(inner.arguments)))
    text = _INFLATED.format(
        names=names, zero=f"where((log(p) == -inf) & (rest == -inf), -inf, {_BOTH})" if discrete else "log(p)"
    )

    calls = _Inflated(inner)
    found = random(
        f"zero_inflated {inner.name}",
        (Argument("p", PROBABILITY), *(Argument(each.name, _of_number(each)) for each in inner.arguments)),
        f"0 with probability p, else a value of {inner.name}.",
        calls.simulate, _defined(text, inner=inner.definition), is_recorded=False, is_mixed=not discrete,
        support=calls.support if discrete and inner.support is not None else None,
    )  # fmt: skip
    if not discrete:
        _MIXED.add(found)
    return found


def _inflated_by_calls(inner: Random) -> Random:
    """The same of a distribution of which nothing is written over the numeric namespace."""
    calls, gradient = _Inflated(inner), inner.gradient
    found = Random(
        f"zero_inflated {inner.name}", (Argument("p", PROBABILITY), *inner.arguments),
        f"0 with probability p, else a value of {inner.name}.", calls.simulate, calls.log_density, calls.columns,
        support=calls.support if inner.transform is None and inner.support is not None else None,
        gradient=None if gradient is None else Gradient((False, True, *gradient.exists[1:]), calls.slopes),
    )  # fmt: skip
    if inner.transform is not None:
        _MIXED.add(found)
    return found


@dataclass(frozen=True, slots=True)
class _Inflated:
    inner: Random

    def simulate(self, rng: np.random.Generator, p: float, *arguments: Any) -> Any:
        drawn = self.inner.simulate(rng, *arguments)
        return (0 if self.inner.transform is None else 0.0) if rng.random() < p else drawn

    def support(self, p: float, *arguments: Any) -> Any:
        assert self.inner.support is not None
        found = self.inner.support(*arguments)
        return None if found is None else (*found, *(() if any(equal(value, 0) for value in found) else (0,)))

    def log_density(self, value: Any, p: float, *arguments: Any) -> float:
        rest = numeric.log1p(-p) + self.inner.log_density(value, *arguments)
        if not equal(value, 0):
            return rest
        return float(np.logaddexp(numeric.log(p), rest)) if self.inner.transform is None else numeric.log(p)

    def columns(self, lifted: Flags, *given: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(self._weighed(*_rows_of_numbers(lifted, given))[1])

    def _weighed(self, value: np.ndarray, p: np.ndarray, *arguments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of rows: the log density of `inner`, without what it gives 0 where it is continuous, and of all."""
        inner, is_zero = _densities(self.inner, (value, *arguments)), value == 0
        if self.inner.transform is not None:
            inner = np.where(is_zero, -math.inf, inner)
        return inner, np.where(is_zero, np.logaddexp(np.log(p), np.log1p(-p) + inner), np.log1p(-p) + inner)

    def slopes(self, lifted: Flags, wanted: Flags, *given: Any) -> tuple[Any, ...]:
        """As `Gradient.evaluate`: by the share of the density that is not from p."""
        with np.errstate(all="ignore"):
            value, p, *arguments = _rows_of_numbers(lifted, given)
            inner, total = self._weighed(value, p, *arguments)
            is_possible = total > -math.inf
            share = np.where(is_possible, np.exp(np.log1p(-p) + inner - total), 0.0)
            # apart, since of a value that is far out the inverse of the density may be infinite
            by_p = np.where(value == 0, np.exp(-total), 0.0) - np.exp(inner - total)
            parts = _slopes(self.inner, (False, *wanted[2:]), (value, *arguments))[1:]
            found = [np.where(is_possible, by_p, 0.0) if wanted[1] else None]
            found += [None if part is None else np.where(share > 0.0, share * part, 0.0) for part in parts]
        shared = (None if part is None else _shared(part, up) for part, up in zip(found, lifted[1:], strict=True))
        return (None, *shared)


# ---------------------------------------------------------------------------------------------------------- mixtures

_SUPPORTS = (transforms.UNIT, transforms.POSITIVE, transforms.REAL)
"""Transforms whose supports hold one another."""


@functools.cache
def finite_mixture(*components: Random) -> Random:
    """One of several distributions, by weights, summed out; with one distribution the items of the vectors among its
    arguments are the components. The weights come first, then the arguments of each distribution.

    Raises ArgumentError for discrete components beside continuous ones.
    """
    mixture = _Mixture(components)
    transform = _shared_transform(components)
    arguments = [each for component in components for each in component.arguments]
    if len(components) > 1:
        arguments = [Argument(each.name, _of_number(each)) for each in arguments]
    gradients = [component.gradient for component in components]
    exists = (transform is not None, True, *(flag for each in gradients for flag in _known(each)))
    supports = all(component.support is not None for component in components)
    return Random(
        f"finite_mixture {' '.join(component.name for component in components)}",
        (Argument("weights", PROBABILITY_VECTOR), *arguments),
        "A value of one of several distributions, drawn by weights.",
        mixture.simulate, mixture.log_density, mixture.columns, transform=transform,
        support=mixture.support if supports and transform is None else None,
        gradient=None if None in gradients else Gradient(exists, mixture.slopes),
        log_bound=bounds.certain if all(each.log_bound is bounds.certain for each in components) else None,
    )  # fmt: skip


def _known(gradient: Gradient | None) -> Flags:
    return () if gradient is None else gradient.exists[1:]


def _shared_transform(components: Sequence[Random]) -> Any:
    kinds = {component.transform for component in components}
    if any(component in _MIXED for component in components) or (None in kinds and len(kinds) > 1):
        names = " and ".join(dict.fromkeys(component.name for component in components))
        raise ArgumentError(
            f"finite_mixture: {names} are partly discrete and partly continuous",
            hint="components that are all discrete, or all continuous",
        )
    if len(kinds) == 1:
        return kinds.pop()
    return max(kinds, key=_SUPPORTS.index) if kinds <= set(_SUPPORTS) else transforms.REAL


class _Mixture:
    """The density of a mixture, its derivatives and its draws."""

    def __init__(self, components: Sequence[Random]) -> None:
        self._components = components
        ends = np.cumsum([0, *(len(component.arguments) for component in components)]).tolist()
        # of the arguments after the weights
        self._own = [range(start, stop) for start, stop in itertools.pairwise(ends)]

    def _parts(self, weights: Any, arguments: Sequence[Any]) -> list[tuple[Random, list[Any]]]:
        """The components with their arguments. Raises ArgumentError where there are not as many as weights."""
        count = len(weights)
        if len(self._components) > 1:
            parts = [
                (component, [arguments[i] for i in own])
                for component, own in zip(self._components, self._own, strict=True)
            ]
            sizes = {len(parts)}
        else:
            given = [vector_of(each) if isinstance(each, SEVERAL) else each for each in arguments]
            sizes = {len(each) for each in given if isinstance(each, np.ndarray)}
            parts = [
                (self._components[0], [float(each[k]) if isinstance(each, np.ndarray) else each for each in given])
                for k in range(min((count, *sizes)))
            ]
        if sizes != {count}:
            found = " and ".join(map(str, sorted(sizes))) or "no"
            raise ArgumentError(
                f"finite_mixture: {count} weights for {found} components",
                hint="a distribution for each weight, or one with vectors as long as the weights",
            )
        return parts

    def simulate(self, rng: np.random.Generator, weights: Any, *arguments: Any) -> Any:
        parts, left = self._parts(weights, arguments), rng.random()
        chosen = max(range(len(parts)), key=lambda k: weights[k])
        for k, weight in enumerate(weights):
            left -= weight
            if left < 0.0:
                chosen = k
                break
        component, given = parts[chosen]
        return component.simulate(rng, *given)

    def log_density(self, value: Any, weights: Any, *arguments: Any) -> float:
        terms = [
            numeric.log(float(weight)) + component.log_density(value, *given)
            for weight, (component, given) in zip(weights, self._parts(weights, arguments), strict=True)
            if weight > 0.0
        ]
        largest = max(terms)
        if not math.isfinite(largest):
            return largest
        return float(largest + math.log(math.fsum(math.exp(term - largest) for term in terms)))

    def support(self, weights: Any, *arguments: Any) -> Any:
        found: dict[Any, Any] = {}
        for component, given in self._parts(weights, arguments):
            assert component.support is not None
            values = component.support(*given)
            if values is None:
                return None
            found.update((key_of(value), value) for value in values)
        return tuple(found.values())

    # -------------------------------------------------------------------------------------------------- columns

    def _laid(self, lifted: Flags, given: Sequence[Any]) -> tuple[Any, Any, list[tuple[Random, list[Any], list[Any]]]]:
        """Values (rows,), weights (rows, K), and each component with its arguments (rows,) and where these stand: the
        position among the arguments, with the item of a vector. Rows are one where nothing is lifted."""
        value, weights, *arguments = _rows_of(lifted, given)
        if value.ndim != 1 or weights.ndim != 2:
            raise RowByRow
        parts = []
        for k in range(weights.shape[1]):
            component, own = (self._components[k], self._own[k]) if len(self._components) > 1 else (
                self._components[0], self._own[0]
            )  # fmt: skip
            taken = [arguments[i] if arguments[i].ndim == 1 else arguments[i][:, k] for i in own]
            places = [(i, k if arguments[i].ndim > 1 else None) for i in own]
            parts.append((component, taken, places))
        return value, weights, parts

    def _terms(self, value: Any, weights: Any, parts: Any) -> np.ndarray:
        """log weight and density (K, rows)"""
        terms = []
        for k, (component, taken, _) in enumerate(parts):
            terms.append(np.log(weights[:, k]) + _densities(component, (value, *taken)))
        return np.stack(terms)

    def columns(self, lifted: Flags, *given: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            terms = self._terms(*self._laid(lifted, given))
            largest = terms.max(axis=0)
            finite = np.where(np.isfinite(largest), largest, 0.0)
            return np.asarray(
                np.where(np.isfinite(largest), finite + np.log(np.exp(terms - finite).sum(axis=0)), largest)
            )

    def slopes(self, lifted: Flags, wanted: Flags, *given: Any) -> tuple[Any, ...]:
        """As `Gradient.evaluate`: of each component by its share in the density."""
        with np.errstate(all="ignore"):
            value, weights, parts = self._laid(lifted, given)
            terms = self._terms(value, weights, parts)
            total = np.logaddexp.reduce(terms, axis=0)
            shares = np.where(total > -math.inf, np.exp(terms - total), 0.0)
            found = [np.zeros((len(value), *np.shape(each)[up:])) for each, up in zip(given, lifted, strict=True)]
            found[1] += np.where(weights > 0.0, shares.T / weights, 0.0)
            for share, (component, taken, places) in zip(shares, parts, strict=True):
                asked = (wanted[0], *(wanted[2 + i] for i, _ in places))
                for slope, (i, item) in zip(
                    _slopes(component, asked, (value, *taken)), [(-2, None), *places], strict=True
                ):
                    if slope is not None:
                        at = found[2 + i] if item is None else found[2 + i][:, item]
                        at += np.where(share > 0.0, share * slope, 0.0)
        exists = (True, True, *(flag for each in self._components for flag in _known(each.gradient)))
        return tuple(
            _shared(part, up) if want and there else None
            for part, up, want, there in zip(found, lifted, wanted, exists, strict=True)
        )


def _rows_of(lifted: Flags, given: Sequence[Any]) -> list[np.ndarray]:
    """Each as an array whose first axis is the rows, of which there is one where nothing is lifted. Raises RowByRow for
    what is neither numbers nor vectors."""
    rows = next((len(each) for each, up in zip(given, lifted, strict=True) if up), 1)
    arrays = []
    for each, up in zip(given, lifted, strict=True):
        array = np.asarray(each)
        if array.dtype.kind not in "fbiu" or (up and array.ndim == 0):
            raise RowByRow
        arrays.append(array if up else np.broadcast_to(array, (rows, *array.shape)))
    return arrays


def _rows_of_numbers(lifted: Flags, given: Sequence[Any]) -> list[np.ndarray]:
    arrays = _rows_of(lifted, given)
    if any(each.ndim != 1 for each in arrays):
        raise RowByRow
    return arrays


def _densities(record: Random, given: Sequence[np.ndarray]) -> Any:
    """The log density of rows of numbers; of a single one as of any other single call."""
    if len(given[0]) == 1:
        return record.log_density(*(each.item() for each in given))
    if record.log_density_columns is None:
        raise RowByRow
    return record.log_density_columns((True,) * len(given), *given)


def _slopes(record: Random, asked: Flags, given: Sequence[np.ndarray]) -> Sequence[Any]:
    """The derivatives of rows of numbers; of a single one as of any other single call."""
    assert record.gradient is not None
    if len(given[0]) > 1:
        return record.gradient.evaluate((True,) * len(given), asked, *given)
    return record.gradient.evaluate((False,) * len(given), asked, *(each.item() for each in given))


def _shared(part: np.ndarray, lifted: bool) -> Any:
    """A derivative for each row, or the sum over the rows that share an argument."""
    total = part if lifted else part.sum(axis=0)
    return float(total) if not np.ndim(total) else total


# --------------------------------------------------------------------------------------------------------- increasing


@functools.cache
def increasing(inner: Random, are_constant: bool) -> Random:
    """The independent items of a vector given that they increase: their density by the probability that they do. Where
    all items share their parameters that is one by their number's factorial; where they differ they must be constants
    of the text.

    Raises ArgumentError for a distribution that is not a continuous one of vectors of independent items.
    """
    if inner.item_log_densities is None or inner.transform not in _SUPPORTS:
        raise ArgumentError(
            f"increasing: {inner.name} is no distribution of numbers on the line, above 0 or between 0 and 1"
        )
    ordered = _Increasing(inner, are_constant)
    return Random(
        f"increasing {inner.name}", inner.arguments, f"Independent values of {inner.name} given that they increase.",
        ordered.simulate, ordered.log_density, ordered.columns, transform=transforms.Increasing(inner.transform),
        gradient=None if inner.gradient is None else Gradient(inner.gradient.exists, inner.gradient.evaluate),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Increasing:
    inner: Random
    are_constant: bool

    def _log_factor(self, arguments: Sequence[Any]) -> float:
        """Less the log of the probability that the items increase."""
        vectors = [
            vector for each in arguments if isinstance(each, SEVERAL) and (vector := vector_of(each)) is not None
        ]
        if not vectors:
            raise ArgumentError(
                f"increasing: {self.inner.name} is one number here", hint="a vector for a parameter, as (zeros 3)"
            )
        if _are_alike(vectors):
            return math.lgamma(len(vectors[0]) + 1.0)
        if not self.are_constant:
            raise ArgumentError(
                f"increasing: the items of {self.inner.name} differ in parameters that are not constants",
                hint="one number for all items, or vectors of constants",
            )
        sizes = {len(vector) for vector in vectors}
        if len(sizes) > 1:
            # the items say which is wrong
            return -self.inner.log_density(vectors[0], *arguments)
        given = [np.broadcast_to(x, sizes) if vector_of(x) is None else vector_of(x) for x in arguments]
        items = tuple(tuple(map(float, item)) for item in zip(*given, strict=True))
        found = log_probability_of_increase(self.inner, items)
        if not found > -math.inf:
            raise ArgumentError(
                f"increasing: the probability that the items of {self.inner.name} increase is below the floats",
                hint="parameters that increase",
            )
        return -found

    def simulate(self, rng: np.random.Generator, *arguments: Any) -> np.ndarray:
        self._log_factor(arguments)
        are_alike = _are_alike([vector_of(each) for each in arguments if isinstance(each, SEVERAL)])
        for _ in range(MOST_TRIES):
            drawn = self.inner.simulate(rng, *arguments)
            if are_alike:
                drawn = np.sort(drawn)
            if (np.diff(drawn) > 0.0).all():
                return freeze(drawn)
        raise ArgumentError(
            f"increasing: {MOST_TRIES:,} draws of {self.inner.name} did not increase", hint="parameters that increase"
        )

    def log_density(self, value: Any, *arguments: Any) -> float:
        vector = vector_of(value) if isinstance(value, SEVERAL) else None
        if vector is None or not (np.diff(vector) > 0.0).all():
            return -math.inf
        return self.inner.log_density(vector, *arguments) + self._log_factor(arguments)

    def columns(self, lifted: Flags, value: Any, *arguments: Any) -> np.ndarray:
        assert self.inner.log_density_columns is not None
        if any(lifted[1:]) or np.ndim(value) != 2:
            raise RowByRow
        terms = self.inner.log_density_columns(lifted, value, *arguments) + self._log_factor(arguments)
        return np.where((np.diff(value, axis=1) > 0.0).all(axis=1), terms, -np.inf)


def _are_alike(vectors: Sequence[np.ndarray | None]) -> bool:
    """True if each vector has the same number everywhere."""
    return all(vector is not None and bool((vector == vector[:1]).all()) for vector in vectors)


MOST_TRIES = 10_000
"""Draws of items that differ before none that increases is held to be found."""
