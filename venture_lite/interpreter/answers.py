"""A fast way is believed after it has answered to the interpreter.

The first results of a fast way for a kind of block are compared with the interpreter's. Where they differ the fast way
is not used again for that kind, the interpreter's result stands, and one warning names the way. A session with
`kernels="checked"` compares every result, and raises where one differs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from venture_lite.errors import Disagreement, InternalError, warn
from venture_lite.interpreter.regenerate import Proposal
from venture_lite.interpreter.rounding import of_counts
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.weights import Weight, log_density
from venture_lite.trace.table import ROW_MASK

if TYPE_CHECKING:
    from venture_lite.interpreter.model import Model

ANSWERS = 2
"""Results of each kind that are compared; of those that weigh few rows four times as many, since they cost little and
may agree by chance."""
FEW_ROWS = 32
FAILED = -1
REPORT = "please report the program as a defect"


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
        return not self.always and self._left(key) <= 0

    def _left(self, key: Hashable) -> float:
        return (self._by_name if isinstance(key, tuple) else self._by_object).get(key, ANSWERS)

    def _note(self, key: Hashable, left: float) -> None:
        (self._by_name if isinstance(key, tuple) else self._by_object)[key] = left

    def failed(self, key: Hashable) -> bool:
        """True if a result of this key differed from the interpreter's."""
        return self._left(key) == FAILED

    @contextmanager
    def comparing(self) -> Iterator[None]:
        """`with answers.comparing():` nothing is due inside."""
        before, self.is_comparing = self.is_comparing, True
        try:
            yield
        finally:
            self.is_comparing = before

    def judge(self, key: Hashable, way: str, difference: str | None, rows: int = FEW_ROWS) -> bool:
        """Note one comparison of a key, of a result that weighs so many rows; True if the results agreed. `way` and
        `difference` are for messages: what made the result ("transitions of mu by a form"), and what it differs in,
        None where it agrees.

        Raises InternalError in a checked session where they differ; elsewhere warns of a Disagreement, once for each
        way.
        """
        if difference is None:
            self._note(key, max(0.0, self._left(key) - min(1.0, max(0.25, rows / FEW_ROWS))))
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
    model: Model, block: list[int], proposal: Proposal, by_family: bool = False
) -> tuple[Weight, Weight]:
    """The log density of a block of choices together with that of all that reads it (the densities of the block's own
    choices only where `proposal.counts`): in the present state, and with the values that the proposal gives, to which
    the proposal's own log ratio is added. Nothing changes, the state of the generator included. With `by_family` the
    many users of a family are weighed together.

    This is the interpreter's result, which fast ways are compared with. Raises VentureError where the interpreter does.
    """
    trace = model.trace
    generator = trace.rng.bit_generator
    before = generator.state
    try:
        with model.transaction():
            scaffold = Builder(trace, by_family=by_family).build(block)
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
