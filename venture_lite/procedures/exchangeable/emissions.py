"""What a state of a hidden Markov model emits: outcomes 0, 1, ... by the rows of a matrix, or values of a distribution
of numbers of which each state has parameters of its own.

`make_lazy_hmm` asks an emission for the log densities of values in each state, (K,), for draws in a state, and, given
the probabilities of the states at the times of the emissions, for the derivatives by its parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.domains import SEVERAL, vector_of
from venture_lite.procedures.record import Random
from venture_lite.values import key_of

Array = np.ndarray

Emitted = Iterable[tuple[Mapping[Any, int], Array]]
"""For each time what was emitted, value -> how often, and the probabilities of the states (K,)."""


class Emission(Protocol):
    """The parameters of all states."""

    def key(self, value: Any) -> Any:
        """What equal values are counted under."""

    def can_be(self, value: Any) -> bool:
        """Whether a value is of the kind that is emitted at all."""

    def prepare(self, values: Iterable[Any]) -> None:
        """Told of all values that are soon asked for."""

    def log_evidence(self, counts: Mapping[Any, int]) -> Array:
        """For each state (K,), the log density of all that was emitted at one time."""

    def log_density(self, value: Any, states: Array) -> float:
        """Of one value, where the states have these probabilities."""

    def draw(self, rng: np.random.Generator, states: Array) -> Any:
        """A value, where the states have these probabilities, not all zero."""

    def support(self) -> Sequence[Any] | None:
        """Every value that a state may emit, where that is a finite list."""

    def slopes(self, emitted: Emitted) -> tuple[Any, ...]:
        """The derivatives of the joint log density by each parameter."""


def stochastic(rows: Any) -> Array:
    """Probabilities whose rows sum to 1 to the last bit."""
    given = np.array(rows, dtype=np.float64)
    scaled: Array = given / given.sum(axis=-1, keepdims=True)
    return scaled


def within(slopes: Array, rows: Array) -> Array:
    """Derivatives by rows that are scaled to sum to 1, from those by what the scaling gives."""
    found: Array = slopes - (slopes * rows).sum(axis=-1, keepdims=True)
    return found


class TableEmission:
    """Outcomes by the rows of a stochastic matrix."""

    __slots__ = ("_logs", "rows")

    def __init__(self, states: int, emission: Any) -> None:
        self.rows = stochastic(emission)
        if len(self.rows) != states:
            raise _other_states(states, f"emission is {' by '.join(map(str, self.rows.shape))}")
        with np.errstate(divide="ignore"):
            self._logs = np.log(self.rows)

    def key(self, value: Any) -> int:
        return int(value)

    def can_be(self, value: Any) -> bool:
        return isinstance(value, (int, float)) and 0 <= value < self.rows.shape[1] and value % 1 == 0

    def prepare(self, values: Iterable[Any]) -> None:
        """The matrix has them all."""

    def log_evidence(self, counts: Mapping[Any, int]) -> Array:
        outcomes = sorted(counts)
        if outcomes[-1] >= self.rows.shape[1]:
            return np.full(len(self.rows), -math.inf)
        evidence: Array = self._logs[:, outcomes] @ np.array([counts[outcome] for outcome in outcomes], float)
        return evidence

    def log_density(self, value: Any, states: Array) -> float:
        probability = float((states @ self.rows)[int(value)])
        return math.log(probability) if probability > 0.0 else -math.inf

    def draw(self, rng: np.random.Generator, states: Array) -> int:
        probabilities = states @ self.rows
        cumulative = np.cumsum(probabilities)
        drawn = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
        return min(drawn, int(np.flatnonzero(probabilities)[-1]))

    def support(self) -> Sequence[int]:
        return range(self.rows.shape[1])

    def slopes(self, emitted: Emitted) -> tuple[Array]:
        shares = np.zeros_like(self.rows)
        for counts, states in emitted:
            for outcome, count in counts.items():
                shares[:, outcome] += count * states
        return (within(shares / np.where(self.rows > 0.0, self.rows, 1.0), self.rows),)


class FamilyEmission:
    """Values of one distribution of numbers: item k of each vector among its parameters is state k's, a number is the
    same in all states."""

    __slots__ = ("_given", "_known", "_laid", "_record", "_states")

    def __init__(self, record: Random, states: int, arguments: Sequence[Any]) -> None:
        """Raises ArgumentError where there are not as many items as states."""
        self._record, self._states = record, states
        self._given = [vector_of(each) if isinstance(each, SEVERAL) else each for each in arguments]
        sizes = {len(each) for each in self._given if isinstance(each, Array)}
        if sizes != {states}:
            found = " and ".join(map(str, sorted(sizes)))
            what = f"vectors of {found}" if sizes else "no vector"
            hint = f"a vector among the parameters of {record.name}, with an item for each state"
            raise _other_states(states, f"{record.name} has {what}", hint)
        # (K,) of each parameter
        self._laid = [np.broadcast_to(np.asarray(each, dtype=np.float64), (states,)) for each in self._given]
        # log densities (K,) of the values that were asked for
        self._known: dict[Any, Array] = {}

    def key(self, value: Any) -> Any:
        return value

    def can_be(self, value: Any) -> bool:
        return isinstance(value, (int, float))

    def _of_state(self, state: int) -> list[Any]:
        return [float(each[state]) if isinstance(each, Array) else each for each in self._given]

    def prepare(self, values: Iterable[Any]) -> None:
        asked = list(dict.fromkeys(value for value in values if value not in self._known))
        if asked:
            self._known.update(zip(asked, self._evaluated(asked), strict=True))

    def _densities(self, value: Any) -> Array:
        self.prepare((value,))
        return self._known[value]

    def _evaluated(self, values: Sequence[Any]) -> Array:
        """Log densities (values, K)."""
        columns, rows = self._record.log_density_columns, np.repeat(np.array(values, dtype=np.float64), self._states)
        try:
            if columns is None:
                raise RowByRow
            laid = [np.tile(each, len(values)) for each in self._laid]
            with np.errstate(all="ignore"):
                found = np.asarray(columns((True,) * (1 + len(laid)), rows, *laid), dtype=np.float64)
            return found.reshape(len(values), self._states)
        except RowByRow:
            density = self._record.log_density
            return np.array([[density(value, *self._of_state(k)) for k in range(self._states)] for value in values])

    def log_evidence(self, counts: Mapping[Any, int]) -> Array:
        evidence = np.zeros(self._states)
        # in an order that does not depend on which came first, so that a change taken back leaves the same bits
        for value in sorted(counts):
            evidence = evidence + counts[value] * self._densities(value)
        return evidence

    def log_density(self, value: Any, states: Array) -> float:
        with np.errstate(divide="ignore"):
            terms = np.log(states) + self._densities(value)
        top = float(terms.max())
        return top if not math.isfinite(top) else top + math.log(float(np.exp(terms - top).sum()))

    def draw(self, rng: np.random.Generator, states: Array) -> Any:
        cumulative = np.cumsum(states)
        state = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
        return self._record.simulate(rng, *self._of_state(min(state, int(np.flatnonzero(states)[-1]))))

    def support(self) -> Sequence[Any] | None:
        if self._record.transform is not None or self._record.support is None:
            return None
        found: dict[Any, Any] = {}
        for state in range(self._states):
            values = self._record.support(*self._of_state(state))
            if values is None:
                return None
            found.update((key_of(value), value) for value in values)
        return sorted(found.values())

    def slopes(self, emitted: Emitted) -> tuple[Any, ...]:
        gradient = self._record.gradient
        if gradient is None:
            return (None,) * len(self._given)
        values, shares = [], []
        for counts, states in emitted:
            for value, count in counts.items():
                values.append(float(value))
                shares.append(count * states)
        weights = np.array(shares)
        wanted = (False, *gradient.exists[1:])
        with np.errstate(all="ignore"):
            parts = self._derivatives(np.array(values), wanted)
            sums = [
                None if part is None else np.where(weights > 0.0, weights * part, 0.0).sum(axis=0) for part in parts
            ]
        pairs = zip(sums, self._given, strict=True)
        return tuple(part if part is None or isinstance(each, Array) else float(part.sum()) for part, each in pairs)

    def _derivatives(self, values: Array, wanted: Sequence[bool]) -> list[Array | None]:
        """By each parameter (values, K)."""
        gradient, shape = self._record.gradient, (len(values), self._states)
        assert gradient is not None
        rows = np.repeat(values, self._states)
        laid = [np.tile(each, len(values)) for each in self._laid]
        try:
            found = gradient.evaluate((True,) * (1 + len(laid)), tuple(wanted), rows, *laid)[1:]
        except RowByRow:
            flags = (False,) * (1 + len(laid))
            each_row = [gradient.evaluate(flags, tuple(wanted), *row)[1:] for row in zip(rows, *laid, strict=True)]
            found = tuple(None if part[0] is None else np.array(part) for part in zip(*each_row, strict=True))
        return [None if part is None else np.reshape(part, shape) for part in found]


def _other_states(states: int, found: str, hint: str | None = None) -> ArgumentError:
    return ArgumentError(f"make_lazy_hmm: initial has {states} entries, but {found}", hint=hint)
