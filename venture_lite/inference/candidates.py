"""The weights of the candidates of `gibbs`: one by regeneration, further ones the short way where that will do."""

from __future__ import annotations

from venture_lite.errors import VentureError
from venture_lite.inference.enumeration import Enumeration
from venture_lite.trace.directives import Model
from venture_lite.trace.impossible import rejects
from venture_lite.trace.repetition import Repetition, repetition
from venture_lite.trace.scaffold import Scaffold
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.weights import NEVER, Weight

MOST_FAILURES = 2
"""Candidates that the short way could not weigh, after which it is not tried again for this scaffold."""


class Candidates:
    """Weighs the candidates of one detached scaffold. Between two of them its caller rolls the journal back."""

    def __init__(self, model: Model, scaffold: Scaffold, enumeration: Enumeration, alone: bool) -> None:
        self.model = model
        self.scaffold = scaffold
        self.enumeration = enumeration
        # whether the present state can be enumerated without regenerating it
        self._alone = alone
        # nodes in the order in which the first regeneration renewed them
        self._order: list[int] | None = None
        self._short: Repetition | None = None
        # candidates that the short way began and could not end
        self._failures = 0

    def weigh(self) -> Weight:
        """The weight of the enumeration's candidate (of the present state it is known, and means nothing here); what
        it changed is in the journal."""
        mark = self.model.trace.journal.mark()
        try:
            return self._weigh()
        except VentureError as error:
            self.model.rollback(mark)
            if not rejects(self.model, error, self.model.regenerator.touched(self.scaffold)):
                raise
            # a candidate of probability zero, which has not shown the way to the end
            self._order = self._order if self._short is not None else None
            return Weight(NEVER)

    def _weigh(self) -> Weight:
        enumeration = self.enumeration
        enumeration.restart()
        if self._alone and not enumeration.tape:
            (node,) = self.scaffold.principals
            trace = self.model.trace
            enumeration.propose(node, *trace.application(node >> 32, node & ROW_MASK), trace.value(node))
            return Weight()
        if self._order is None:
            self._order = self.model.machine.renewed = []
            weight = self.regenerate()
            self.model.machine.renewed = None
            return weight
        again = self._again()
        return self.regenerate() if again is None else again

    def regenerate(self) -> Weight:
        """Regenerate along the enumeration's path."""
        machine, enumeration = self.model.machine, self.enumeration
        machine.choose = enumeration.choose
        try:
            weight = self.model.regenerator.regenerate(self.scaffold, enumeration)
        finally:
            machine.choose = None
        weight.plus(enumeration.fresh_weight)
        return weight

    def _again(self) -> Weight | None:
        """The weight, where the first regeneration has shown the way to it."""
        if self._short is None and self._failures < MOST_FAILURES:
            assert self._order is not None
            self._short = repetition(self.model.regenerator, self.model.machine, self.scaffold, self._order)
            if self._short is None:
                self._failures = MOST_FAILURES
        if self._short is None or self._failures == MOST_FAILURES:
            return None
        journal = self.model.trace.journal
        mark = journal.mark()
        try:
            weight = self._short.weigh(self.enumeration)
        except VentureError:
            # regeneration finds out whether it speaks against the program or the candidate
            self.model.rollback(mark)
            self.enumeration.restart()
            return None
        if weight is None:
            self._failures += 1
            journal.rollback(mark)
            self.enumeration.restart()
        return weight
