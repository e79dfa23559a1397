"""A fast way is believed after it has answered to the interpreter.

The first results of a fast way for a kind of block are compared with the interpreter's. Where they differ the fast way
is not used again for that kind, the interpreter's result stands, and one warning names the way. A session with
`kernels="checked"` compares every result, and raises where one differs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from venture_lite.errors import Disagreement, InternalError, VentureError, warn
from venture_lite.interpreter.regenerate import Proposal
from venture_lite.interpreter.rounding import of_counts
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.weights import Weight, log_density
from venture_lite.procedures.functions.covariances import Covariance, Mean
from venture_lite.trace.table import ROW_MASK
from venture_lite.values import Dictionary, Distribution, equal

if TYPE_CHECKING:
    from venture_lite.interpreter.model import Model

ANSWERS = 2
"""Results of each kind that are compared; of those that weigh few rows four times as many, since they cost little and
may agree by chance."""
FEW_ROWS = 32
FAILED = -1
REPORT = "please report the program as a defect"
NEAR = 1e-6
"""Of a number, and of log densities that are less than 1: what rounding may make of those that are computed in two
ways. What a fast way makes of a wrong row or of a wrong kind of value is further off."""
UNDECLARED = (ArithmeticError, AttributeError, InternalError, LookupError, TypeError, ValueError)
"""Errors that no fast way may end with: each counts as a difference."""

Result = TypeVar("Result")


class Differs(Exception):
    """A result of a fast way differs from the interpreter's, now or before: the caller goes on by the interpreter."""


class Answers:
    """How many results of each fast way are still to be compared. Mutable; a model has one.

    A key names the way and the kind of block, and stands for one structure of the block: a tuple of names and numbers,
    or an object that is made for the way and goes with it.
    """

    def __init__(self, always: bool = False) -> None:
        self.always = always
        self._by_name: dict[Hashable, float] = {}
        self._by_object: WeakKeyDictionary[Hashable, float] = WeakKeyDictionary()
        self._told: set[str] = set()
        # true while a result is compared: what the compared way calls in turn is not compared once more
        self.is_comparing = False

    def due(self, key: Hashable) -> bool:
        """True if the next result of this key is to be compared."""
        return not self.is_comparing and not self.settled(key)

    def settled(self, key: Hashable) -> bool:
        """True if no result of this key will be compared any more."""
        return not self.always and self.left(key) <= 0

    def left(self, key: Hashable) -> float:
        """How many results of this key are to be compared yet, outside of checked sessions; FAILED if one differed."""
        return (self._by_name if isinstance(key, tuple) else self._by_object).get(key, ANSWERS)

    def _note(self, key: Hashable, left: float) -> None:
        (self._by_name if isinstance(key, tuple) else self._by_object)[key] = left

    def failed(self, key: Hashable) -> bool:
        """True if a result of this key differed from the interpreter's."""
        return self.left(key) == FAILED

    @contextmanager
    def comparing(self) -> Iterator[None]:
        """`with answers.comparing():` nothing is due inside."""
        before, self.is_comparing = self.is_comparing, True
        try:
            yield
        finally:
            self.is_comparing = before

    def believed(
        self,
        key: Hashable,
        way: str,
        make: Callable[[], Result],
        difference: Callable[[Result | VentureError], str | None],
    ) -> Result:
        """What a fast way makes. Where it is due, `difference` says what differs of that, or of the error that it ended
        with, from the interpreter's; None where nothing does.

        Raises Differs where something does, or did before, and for an error that no way may end with.
        """
        if self.failed(key):
            raise Differs(way)
        is_due, told = self.due(key), None
        found: Result | VentureError
        try:
            try:
                found = make()
            except VentureError as error:
                found = error
            if is_due:
                with self.comparing():
                    told = difference(found)
        except UNDECLARED as error:
            is_due, told = True, f"an error, {error!r}"
        if is_due and not self.judge(key, way, told):
            raise Differs(way)
        if isinstance(found, VentureError):
            raise found
        return found

    def judge(self, key: Hashable, way: str, difference: str | None, rows: int = FEW_ROWS) -> bool:
        """Note one comparison of a key, of a result that weighs so many rows; True if the results agreed. `way` and
        `difference` are for messages: what made the result ("transitions of mu by a form"), and what it differs in,
        None where it agrees.

        Raises InternalError in a checked session where they differ; elsewhere warns of a Disagreement, once for each
        way.
        """
        if difference is None:
            self._note(key, max(0.0, self.left(key) - min(1.0, max(0.25, rows / FEW_ROWS))))
            return True
        if self.always:
            raise InternalError(f"{way}: interpreted and compiled results differ in {difference}")
        self._note(key, FAILED)
        if way not in self._told:
            self._told.add(way)
            warn(f"{way}: a fast way differs from the interpreter in {difference}; the interpreter goes on, {REPORT}",
                 Disagreement)  # fmt: skip
        return False


def interpreted_weights(
    model: Model, block: list[int], proposal: Proposal, moves_numbers: bool = False
) -> tuple[Weight, Weight]:
    """The log density of a block of choices together with that of all that reads it (the densities of the block's own
    choices only where `proposal.counts`): in the present state, and with the values that the proposal gives, to which
    the proposal's own log ratio is added. Nothing changes, the state of the generator included.

    With `moves_numbers` the proposal changes neither types nor structure: the many users of a family are weighed
    together, and what would be drawn anew stays.

    This is the interpreter's result, which fast ways are compared with. Raises VentureError where the interpreter does.
    """
    trace = model.trace
    generator = trace.rng.bit_generator
    before = generator.state
    try:
        with model.transaction():
            scaffold = Builder(trace, by_family=moves_numbers).build(block)
            if moves_numbers and scaffold.structural:
                scaffold = Builder(trace, by_family=True, by_value=True).build(block)
            proposal.prepare(trace, scaffold.principals)
            old = model.regenerator.detach(scaffold, proposal.counts)
            for users in scaffold.users:
                old.plus(model.weights.all_users(users))
            new = model.regenerator.regenerate(scaffold, proposal)
            for users in scaffold.users:
                new.plus(model.weights.all_users(users))
            return old, new
    finally:
        generator.state = before


def magnitude(model: Model, block: list[int]) -> float:
    """The sum of the magnitudes of the terms of the log density of a block's choices that are alive, in the present
    state: rounding is relative to it."""
    trace = model.trace
    alive = [node for node in block if trace.tables[trace.decode(node)[0].index].live[node & ROW_MASK]]
    scaffold = Builder(trace).build(alive)
    rows = [node for site in scaffold.groups for node in trace.nodes_of(site)]
    choices = (*scaffold.principals, *scaffold.absorbing, *rows)
    return sum(abs(log_density(trace, node)) + float(np.sum(of_counts(trace.value(node)))) for node in choices)


def places(count: int, most: int) -> list[int]:
    """Up to so many places from 0 to `count` - 1, the first and the last among them."""
    return list(range(count)) if count <= most else [at * (count - 1) // (most - 1) for at in range(most)]


def is_near(one: Any, other: Any, absolute: float = 1e-12) -> bool:
    """Whether two values are the same but for rounding; no truth value is a number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        is_close = abs(one - other) <= max(absolute, NEAR * max(abs(one), abs(other)))
        return is_close or one == other or (one != one and other != other)
    parts, others = parts_of(one), parts_of(other)
    if type(one) is not type(other) or parts is None or others is None:
        return equal(one, other)
    return len(parts) == len(others) and all(is_near(*pair, absolute) for pair in zip(parts, others, strict=True))


def parts_of(value: Any) -> tuple[Any, ...] | None:
    """What a value is made of; None for one that has no parts."""
    match value:
        case tuple():
            return value
        case np.ndarray():
            return *value.shape, *value.ravel().tolist()
        case Dictionary():
            return tuple(value.items())
        case Distribution():
            return value.values, value.probabilities
        case Covariance() | Mean():
            return value.name, value.arguments
    return None
