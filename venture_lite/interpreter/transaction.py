"""Transactions: changes of a trace that are kept together, or taken back together.

What a transaction changed stands from `keep` on; what was not kept when its block ends, whatever ends it, the journal
takes back, and every table, bag and statistic is as it was, bit for bit. A transaction inside another keeps into the
outer one; the outermost makes final what it keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from venture_lite.interpreter.model import Model


class Transaction:
    """`with model.transaction() as change:`; mutates the journal, and the number of transactions that are open."""

    __slots__ = ("_mark", "_model")

    def __init__(self, model: Model) -> None:
        self._model = model
        self._mark = len(model.trace.journal.entries)
        model.transactions += 1

    def __enter__(self) -> Transaction:
        return self

    def keep(self) -> None:
        """What was changed until now stands."""
        model = self._model
        if model.transactions == 1:
            model.commit_transition()
        self._mark = len(model.trace.journal.entries)

    def back(self) -> None:
        """Take back what was changed since the block began or last kept, and whatever evaluation was in the middle
        of."""
        self._model.rollback(self._mark)

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        model = self._model
        model.transactions -= 1
        if kind is not None:
            model.rollback(self._mark)
            return
        trace = model.trace
        if len(trace.journal.entries) > self._mark:
            if trace.constants.fresh:
                # a proposal's constant families, which the next one would fill anew
                trace.constants.keep_fresh()
            trace.journal.rollback(self._mark)
        if trace.constants.lost and not model.transactions:
            model.fill_again()
