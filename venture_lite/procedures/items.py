"""Vectors of independent values: what a distribution of numbers is where there are vectors among its parameters.

Item i of the value comes from item i of each vector and from every number; the log density is the sum of the items'.
All of it follows from what a record of numbers has for columns (`record.py`): the items of a vector are rows, those of
a column of vectors are more of them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures.columns import Flags, RowByRow, are_floats
from venture_lite.procedures.domains import SEVERAL, vector_of
from venture_lite.procedures.pullbacks import gathered
from venture_lite.procedures.record import Gradient, Random
from venture_lite.procedures.totals import is_summed, summed_slopes
from venture_lite.values import freeze

_SIMULATE = """
def simulate(rng, {names}):
    if {several}:
        return of_vectors(rng, {names})
    return of_number(rng, {names})
"""


TOGETHER = 4096
"""Items of one vector that are evaluated in one call: temporaries of 32 KB are made of memory that the last ones left,
where those of 80 KB are new pages each, which takes five times as long as the arithmetic."""


class Items:
    """What a record of numbers is of vectors."""

    def __init__(self, record: Random) -> None:
        self._record = record
        assert record.log_density_columns is not None
        self._columns, self._draws = record.log_density_columns, record.simulate_columns

    def of_vectors(self) -> dict[str, Any]:
        """The fields of the record of both."""
        record = self._record
        return {
            "simulate": self._simulator(),
            "log_density_columns": self.columns,
            "log_density_total": None if record.log_density_total is None else self._total,
            "support": None if record.support is None else self._support,
            "gradient": None if record.gradient is None else self._gradient(record.gradient),
            "item_log_densities": self.terms,
        }

    # ---------------------------------------------------------------------------------------------- single calls

    def _simulator(self) -> Callable[..., Any]:
        """`(rng, *arguments)`, compiled with the exact parameters: `*arguments` would double a cheap draw's cost."""
        names = [f"argument_{i}" for i in range(len(self._record.arguments))]
        several = " or ".join(f"type({name}) is array or type({name}) is tuple" for name in names)
        namespace = {"array": np.ndarray, "of_number": self._record.simulate, "of_vectors": self._simulate}
        exec(_SIMULATE.format(names=", ".join(names), several=several), namespace)
        return namespace["simulate"]

    def _simulate(self, rng: np.random.Generator, *arguments: Any) -> np.ndarray:
        size, given = self._sized(arguments)
        try:
            if self._draws is None:
                raise RowByRow
            drawn = self._draws(rng, size, *given)
        except RowByRow:
            drawn = np.array([self._drawn(rng, at, given) for at in range(size)])
        return freeze(np.array(drawn, dtype=np.float64))

    def _drawn(self, rng: np.random.Generator, at: int, given: Sequence[Any]) -> Any:
        try:
            return self._record.simulate(rng, *_item(given, at))
        except ArgumentError as error:
            raise type(error)(f"{error.message}, as item {at} of vectors", error.span, error.hint) from None

    def _sized(self, arguments: Sequence[Any]) -> tuple[int, list[Any]]:
        """How many items a call has, and its arguments, lists as arrays.

        Raises ArgumentError where vectors differ in length, RowByRow where there is none.
        """
        given = [vector_of(each) if isinstance(each, SEVERAL) else each for each in arguments]
        sizes = [(len(each), i) for i, each in enumerate(given) if isinstance(each, np.ndarray)]
        if not sizes:
            raise RowByRow
        (least, one), (most, other) = min(sizes), max(sizes)
        if least != most:
            names = [argument.name for argument in self._record.arguments]
            message = f"{self._record.name}: {names[one]} has {least} items, {names[other]} has {most}"
            raise ArgumentError(message, hint="vectors of one length; a number is the same for all items")
        return least, given

    def terms(self, value: Any, *arguments: Any) -> np.ndarray:
        """As `Random.item_log_densities`."""
        return np.concatenate([np.zeros(0), *self._parts_of_terms(value, *arguments)])

    def _parts_of_terms(self, value: Any, *arguments: Any) -> Iterator[np.ndarray]:
        size, given = self._sized(arguments)
        vector = vector_of(value)
        if vector is None or len(vector) != size:
            raise RowByRow
        lifted = (True, *[isinstance(each, np.ndarray) for each in given])
        for part in _parts(size, lifted, (vector, *given)):
            yield self._columns(lifted, *part)

    def log_density(self, value: Any, *arguments: Any) -> float:
        try:
            total = sum([float(terms.sum()) for terms in self._parts_of_terms(value, *arguments)])
        except RowByRow:
            return -math.inf
        return -math.inf if total != total else total

    def _support(self, *arguments: Any) -> Sequence[Any] | None:
        support = self._record.support
        assert support is not None
        if not any(isinstance(each, SEVERAL) for each in arguments):
            return support(*arguments)
        size, given = self._sized(arguments)
        return Product([support(*_item(given, at)) or () for at in range(size)])

    def bound_of(self, log_bound: Callable[..., float]) -> Callable[..., float]:
        """`Random.log_bound`: the sum of the items'."""

        def bound(value: Any, *arguments: Any) -> float:
            vector = vector_of(value)
            if vector is None:
                return log_bound(value, *arguments)
            given = [vector_of(each) if isinstance(each, SEVERAL) else each for each in arguments]
            if any(isinstance(each, np.ndarray) and len(each) != len(vector) for each in given):
                return -math.inf
            return sum(log_bound(item, *_item(given, at)) for at, item in enumerate(vector.tolist()))

        return bound

    # -------------------------------------------------------------------------------------------------- columns

    def columns(self, lifted: Flags, *given: Any) -> np.ndarray:
        """Log densities of rows, of numbers or of vectors."""
        laid = laid_out(lifted, given)
        if laid is None:
            return self._columns(lifted, *given)
        terms: np.ndarray = laid.of_rows(self._columns(laid.lifted, *laid.given))
        if np.isnan(terms).any():
            raise RowByRow
        return terms

    def _total(self, lifted: Flags, *given: Any) -> float:
        total, laid = self._record.log_density_total, laid_out(lifted, given)
        assert total is not None
        return total(lifted, *given) if laid is None else total(laid.lifted, *laid.given)

    def _gradient(self, of_numbers: Gradient) -> Gradient:
        exists = of_numbers.exists

        def of_columns(lifted: Flags, wanted: Flags, *given: Any) -> list[Any]:
            laid = laid_out(lifted, given)
            if laid is None:
                return self._slopes(of_numbers, lifted, wanted, given)
            asked = [i for i, want in enumerate(wanted) if want and exists[i]]
            if len(laid.shape) == 1:
                return self._slopes_of_vector(of_numbers, laid, wanted, asked)
            terms, *parts = self._slopes(of_numbers, laid.lifted, wanted, laid.given)
            return [laid.of_rows(terms), *(laid.shared(part, i) for part, i in zip(parts, asked, strict=True))]

        def evaluate(lifted: Flags, wanted: Flags, *given: Any) -> tuple[Any, ...]:
            if laid_out(lifted, given) is None:
                return of_numbers.evaluate(lifted, wanted, *given)
            following = iter(of_columns(lifted, wanted, *given)[1:])
            return tuple([next(following) if want and exists[i] else None for i, want in enumerate(wanted)])

        return Gradient(exists, evaluate, of_numbers.of_numbers, of_columns)

    def _slopes_of_vector(self, gradient: Gradient, laid: Laid, wanted: Flags, asked: list[int]) -> list[Any]:
        """The sum of the log densities of one vector's items, and the derivatives."""
        if laid.shape == (0,):
            return [0.0, *(np.zeros(0) if laid.lifted[i] else 0.0 for i in asked)]
        given = _parts(laid.shape[0], laid.lifted, laid.given)
        totals, *parts = zip(*[self._summed(gradient, laid.lifted, wanted, part) for part in given], strict=True)
        joined = [
            (np.concatenate(part) if len(part) > 1 else part[0]) if laid.lifted[i] else math.fsum(part)
            for i, part in zip(asked, parts, strict=True)
        ]
        return [math.fsum(totals), *joined]

    def _summed(self, gradient: Gradient, lifted: Flags, wanted: Flags, given: Sequence[Any]) -> Sequence[Any]:
        """The sum of the log densities of some items, and the derivatives asked for."""
        if is_summed(self._record) and all(map(are_floats, given)):
            flags = tuple(map(bool.__and__, wanted, gradient.exists))
            slopes = summed_slopes(self._record.definition, flags, lifted, (None,) * len(given))
            with np.errstate(all="ignore"):
                found = slopes(*given, len(given[lifted.index(True)]))
            if -math.inf < found[0] < math.inf:
                return found
        terms, *parts = self._slopes(gradient, lifted, wanted, given)
        return [float(np.sum(terms)), *parts]

    def _slopes(self, gradient: Gradient, lifted: Flags, wanted: Flags, given: Sequence[Any]) -> list[Any]:
        """The log densities of numbers, and the derivatives asked for."""
        if gradient.of_columns is not None and True in lifted:
            return gradient.of_columns(lifted, wanted, *given)
        parts = gradient.evaluate(lifted, wanted, *given)
        terms = self._columns(lifted, *given) if True in lifted else self._record.log_density(*given)
        asked = zip(parts, wanted, gradient.exists, strict=True)
        return [terms, *(part for part, want, exists in asked if want and exists)]


@dataclass(frozen=True, slots=True)
class Laid:
    """A call with vectors, whose items are laid out as rows of numbers."""

    # of the value and each argument: whether it differs between the rows laid out, and what it is there
    lifted: Flags
    given: list[Any]
    # the call as it was, and its (rows, items), or (items,) of a single one
    columns: Flags
    call: Sequence[Any]
    shape: tuple[int, ...]

    def of_rows(self, terms: Any) -> Any:
        """The sum over the items of each row."""
        return terms.reshape(self.shape).sum(axis=-1)

    def shared(self, part: Any, position: int) -> Any:
        """A derivative by what is laid out as that by what was given."""
        if not self.lifted[position]:
            return part
        return gathered(part.reshape(self.shape), self.columns, position, self.call[position])


def laid_out(lifted: Flags, given: Sequence[Any]) -> Laid | None:
    """A call as one of numbers, if it has vectors; `lifted` and `given` speak of the value first.

    Raises RowByRow where the value is no vector as long as those of the arguments.
    """
    if not any(getattr(each, "ndim", each.__class__ is tuple) != up for each, up in zip(given, lifted, strict=True)):
        return None
    arrays = [np.asarray(each, dtype=np.float64) if isinstance(each, tuple) else each for each in given]
    vectors = tuple([getattr(each, "ndim", 0) - up == 1 for each, up in zip(arrays, lifted, strict=True)])
    if True not in vectors:
        return None
    sizes = {each.shape[-1] for each, several in zip(arrays, vectors, strict=True) if several}
    if len(sizes) > 1 or not vectors[0] or True not in vectors[1:]:
        raise RowByRow
    if True not in lifted:
        return Laid(vectors, arrays, lifted, given, tuple(sizes))
    rows = next(len(each) for each, up in zip(arrays, lifted, strict=True) if up)
    shape = rows, *sizes
    flags = tuple(map(bool.__or__, lifted, vectors))
    for i, (up, several) in enumerate(zip(lifted, vectors, strict=True)):
        if up or several:
            across = arrays[i] if several else arrays[i][:, None]
            arrays[i] = np.broadcast_to(across, shape).reshape(-1)
    return Laid(flags, arrays, lifted, given, shape)


def _parts(size: int, lifted: Flags, given: Sequence[Any]) -> Iterator[list[Any]]:
    """The items of a call, a few thousand at a time."""
    for start in range(0, size, TOGETHER):
        part = slice(start, start + TOGETHER)
        yield [each[part] if up else each for each, up in zip(given, lifted, strict=True)]


def _item(given: Sequence[Any], at: int) -> list[Any]:
    """The arguments of one item."""
    return [float(each[at]) if isinstance(each, np.ndarray) else each for each in given]


class Product(Sequence[np.ndarray]):
    """Every vector whose items are among the given values, the last item changing first; none is kept."""

    def __init__(self, supports: Sequence[Sequence[Any]]) -> None:
        self._supports = supports

    def __len__(self) -> int:
        return min(math.prod(map(len, self._supports)), sys.maxsize)

    def __getitem__(self, index: Any) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(index)
        items = []
        for values in reversed(self._supports):
            index, at = divmod(index, len(values))
            items.append(values[at])
        return freeze(np.array(items[::-1], dtype=np.float64))
