"""The worlds of a query by Python closures: no rows, no journal.

Choices and weights are the tape's, as in the interpreter. Whatever is not plain (a maker, an argument out of its
domain, an error of any kind) leaves the query to the interpreter, which evaluates it from the beginning and says what
was wrong and where.
"""

from __future__ import annotations

import math
from typing import Any

from venture_lite.errors import LimitError, Undrawable, VentureError
from venture_lite.interpreter.candidates import MOST_CANDIDATES
from venture_lite.interpreter.queries import (
    SINGLE,
    ImpossibleWorld,
    NotDirect,
    Scratch,
    WorldChoice,
    WorldTape,
    refuse_procedures,
)
from venture_lite.procedures.distributions.improper import WEIGHED
from venture_lite.procedures.record import Random
from venture_lite.program.closures import NotPlain, PlainClosure, PlainEvaluation, PlainMemo

POLL_EVERY = 256
"""Worlds between two looks whether to stop."""


class DirectWorlds(PlainEvaluation):
    """The worlds of one query. Mutable: the tape goes from world to world."""

    def __init__(self, scratch: Scratch) -> None:
        super().__init__()
        self._model = scratch.model
        self._code = scratch.body
        self._values: list[list[Any]] = [[None] for _ in scratch.values]
        self.cells.update(zip(scratch.values, self._values, strict=True))
        self._tape = WorldTape()

    def weighed(self, values: tuple[Any, ...]) -> list[tuple[Any, float]]:
        """The value of each possible world, with its log weight. Raises NotDirect."""
        try:
            return self._all_worlds(values)
        except LimitError as error:
            # too many worlds, or too much memory: the interpreter would meet it later
            if error.span is None:
                raise
            raise NotDirect from error
        except (NotPlain, VentureError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
            raise NotDirect from error
        finally:
            self.may_choose = False

    def _all_worlds(self, values: tuple[Any, ...]) -> list[tuple[Any, float]]:
        for cell, value in zip(self._values, values, strict=False):
            cell[0] = value
        for memo in self.lasting:
            memo.values.clear()
        tape = self._tape = WorldTape()
        body, found = self.body(self._code), []
        self.may_choose = True
        while True:
            tape.begin()
            try:
                value = self.run(body, [], ())
                if value.__class__ not in SINGLE:
                    _refuse_own(value)
                found.append((value, tape.log_weight))
            except ImpossibleWorld:
                tape.give_up()
            if not tape.count % POLL_EVERY:
                self._model.machine.poll()
                self._model.machine.refuse_excess()
            if not tape.advance():
                return found

    def choose(self, record: Random, values: tuple[Any, ...]) -> Any:
        tape = self._tape
        if record in WEIGHED:
            if not self._model.trace.valid[record](*values) or values[0] != values[0]:
                raise NotPlain
            return tape.weigh(record, *values)
        if not self.may_choose:
            raise NotPlain
        if tape.is_at_end():
            tape.choices.append(self._choice(record, values))
        return tape.take()

    def _choice(self, record: Random, values: tuple[Any, ...]) -> WorldChoice:
        if not self._model.trace.valid[record](*values) or record.support is None:
            raise NotPlain
        try:
            support = record.support(*values)
        except Undrawable:
            raise ImpossibleWorld from None
        if not 0 < len(support) <= MOST_CANDIDATES:
            raise NotPlain
        weighed = [(value, record.log_density(value, *values)) for value in support]
        if not all(term < math.inf for _, term in weighed):
            raise NotPlain
        return WorldChoice(weighed)


def _refuse_own(value: Any) -> None:
    """Raises NotPlain for a value that is or holds a procedure."""
    if isinstance(value, (PlainClosure, PlainMemo)):
        raise NotPlain
    if isinstance(value, tuple):
        for item in value:
            _refuse_own(item)
    else:
        refuse_procedures(value)
