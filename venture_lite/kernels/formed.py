"""Transitions by their forms: one for each shape, called with the rows of a block.

A form reads and writes the columns themselves, without the journal: nothing is written before a transition is accepted.
What it leaves goes to the interpreter with the value that was proposed, so that the generator's numbers are used once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from venture_lite.interpreter.kernel import Decide, Move
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.shape import Binding, Shape
from venture_lite.kernels.form import Form
from venture_lite.kernels.lower import NoForm, lower, rows_of
from venture_lite.kernels.python import UNDRAWN, Left, Printed, printed
from venture_lite.trace.table import ROW_MASK, STAMPS, Column


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
"""Of so many those without a form are forgotten: where structure changes, shapes may be new ones again and again."""
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
        """Whether every form still reads the memory that its columns have; those that do not are forgotten."""
        if self._seen == Column.reshaped:
            return True
        stale = [key for key, (_, known) in self._known.items() if isinstance(known, Formed) and not known.holds()]
        for key in stale:
            del self._known[key]
        self._seen = Column.reshaped
        return not stale

    def known(self, shape: Shape, binding: Binding) -> BlockForm | None:
        """The form of a block of this shape, if the shape has one already and is of single choices alone."""
        _, known = self._known.get(id(shape), (shape, None))
        return BlockForm(known, binding.nodes, ()) if isinstance(known, Formed) and not shape.groups else None

    def of(self, shape: Shape, binding: Binding) -> BlockForm | None:
        """The form of a block of this shape, once the shape has been used often enough, if it has one."""
        _, known = self._known.get(id(shape), (shape, 0))
        if isinstance(known, int):
            known += 1
            if known >= USES:
                known = self._formed(shape, binding)
            self._enter(shape, known)
        if not isinstance(known, Formed):
            return None
        groups = [rows_of(self._model.trace, site) for site in shape.groups]
        return BlockForm(known, binding.nodes, groups)

    def _enter(self, shape: Shape, known: Formed | int | None) -> None:
        if len(self._known) >= MOST_SHAPES:
            # a form that blocks may hold has to stay known, so that its columns are looked at
            self._known = {key: kept for key, kept in self._known.items() if isinstance(kept[1], Formed)}
        self._known[id(shape)] = (shape, known)

    def _formed(self, shape: Shape, binding: Binding) -> Formed | None:
        try:
            form = lower(self._model.trace, self._move.proposal, shape, binding)
        except NoForm:
            return None
        return Formed(self._model, form, len(shape.sites), self._move.decide)
