"""Transitions by their forms: one for each shape, called with the rows of a block.

A form reads and writes the columns themselves, without the journal: nothing is written before a transition is accepted.
What it leaves goes to the interpreter with the value that was proposed, so that the generator's numbers are used once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from venture_lite.interpreter.kernel import Decide, Move
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.shape import Binding, Shape
from venture_lite.kernels.form import Form
from venture_lite.kernels.lower import NoForm, lower, rows_of
from venture_lite.kernels.python import UNDRAWN, Left, Printed, printed
from venture_lite.trace.table import ROW_MASK, STAMPS, Column
from venture_lite.trace.trace import Trace


class Proposed:
    """A proposal that was made already, by the choice's own distribution."""

    counts = False

    def __init__(self, value: Any) -> None:
        self.value = value

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """Nothing depends on the old state."""

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        return self.value, 0.0


class Formed:
    """The form of one shape, printed; good while its columns stay the arrays that they are."""

    __slots__ = ("_views", "form", "printed", "stored")

    def __init__(self, model: Model, form: Form, places: int, decide: Decide) -> None:
        self.form = form
        self.printed: Printed = printed(form, model.trace.rng, places, decide)
        self._views = [(column, column.view) for column in form.columns]
        self.stored = [form.columns[store.column] for store in form.stores]

    def holds(self) -> bool:
        """Whether no column has grown or changed its kind since."""
        return all(column.view is view for column, view in self._views)


class BlockForm:
    """The form of a block's shape with the block's rows."""

    __slots__ = ("_kept", "_kept_at", "_rows", "formed", "terms")

    def __init__(self, formed: Formed, nodes: Sequence[int], groups: Sequence[list[int]]) -> None:
        self.formed = formed
        self._rows = [*(node & ROW_MASK for node in nodes), *groups]
        # absorbing choices that a transition weighs
        self.terms = len(formed.form.new.terms) + sum(map(len, groups))
        # what the present state counts, as of a version of the trace
        self._kept = 0.0
        self._kept_at = -1

    def transition(self, model: Model) -> bool | Left:
        """Whether the transition was accepted; Left where the interpreter is to make it."""
        journal, (weigh, step) = model.trace.journal, self.formed.printed
        if self._kept_at != journal.version:
            try:
                self._kept = weigh(*self._rows)
            except Exception:
                return Left(UNDRAWN)
            if not math.isfinite(self._kept):
                return Left(UNDRAWN)
        new = step(self._kept, *self._rows)
        if new is None:
            self._kept_at = journal.version
            return False
        if isinstance(new, Left):
            self._kept_at = -1
            return new
        journal.version += 1
        for column in self.formed.stored:
            column.stamp = next(STAMPS)
        self._kept, self._kept_at = new, journal.version
        return True


MOST_SHAPES = 1000
"""Beyond so many all are forgotten: where structure changes, shapes may be new ones again and again."""
USES = 8
"""A shape is lowered when it has been used so often: to print it takes as long as some fifty transitions."""


class Forms:
    """The forms of one kernel's shapes."""

    def __init__(self, model: Model, move: Move) -> None:
        self._model = model
        self._move = move
        # the state of `Column.reshaped` up to which all forms are known to hold
        self._seen = -1
        # by identity, since every plan of a shape holds the same one: the shape with its form, or with how often it was
        # used, or None where it has no form
        self._known: dict[int, tuple[Shape, Formed | int | None]] = {}

    def hold(self) -> bool:
        """Whether every form still reads the memory that its columns have."""
        if self._seen != Column.reshaped:
            if not all(known.holds() for _, known in self._known.values() if isinstance(known, Formed)):
                return False
            self._seen = Column.reshaped
        return True

    def known(self, shape: Shape, binding: Binding) -> BlockForm | None:
        """The form of a block of this shape, if the shape has one already and is of single choices alone."""
        _, known = self._known.get(id(shape), (shape, None))
        return BlockForm(known, binding.nodes, ()) if isinstance(known, Formed) and not shape.groups else None

    def of(self, shape: Shape, binding: Binding) -> BlockForm | None:
        """The form of a block of this shape, once the shape has been used often enough, if it has one."""
        _, known = self._known.get(id(shape), (shape, 0))
        if known is None:
            return None
        if isinstance(known, Formed):
            if not known.holds():
                known = USES
        else:
            known += 1
        if isinstance(known, int):
            if known >= USES:
                known, self._seen = self._formed(shape, binding), -1
            if len(self._known) > MOST_SHAPES:
                self._known.clear()
            self._known[id(shape)] = (shape, known)
            if isinstance(known, int):
                return None
        groups = [rows_of(self._model.trace, site) for site in shape.groups]
        return None if known is None else BlockForm(known, binding.nodes, groups)

    def _formed(self, shape: Shape, binding: Binding) -> Formed | None:
        try:
            form = lower(self._model.trace, self._move.proposal, shape, binding)
        except NoForm:
            return None
        return Formed(self._model, form, len(shape.sites), self._move.decide)
