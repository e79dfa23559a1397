"""Transitions by their forms: one for each shape, called with the rows of a block.

A form reads and writes the columns themselves, without the journal: nothing is written before a transition is accepted.
What it leaves goes to the interpreter with the value that was proposed, so that the generator's numbers are used once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial

from venture_lite.interpreter.kernel import Decide, Metropolis, Move, Resimulation
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.shape import Binding, Shape
from venture_lite.kernels.form import Form
from venture_lite.kernels.lower import NoForm, lower, rows_of
from venture_lite.kernels.python import UNDRAWN, Left, Printed, printed
from venture_lite.kernels.shapes import Shapes
from venture_lite.trace.journal import Journal
from venture_lite.trace.table import ROW_MASK, STAMPS, Column


class Formed:
    """The form of one shape, printed; good while its columns stay the arrays that they are."""

    __slots__ = ("_views", "form", "printed", "stored", "terms")

    def __init__(self, model: Model, form: Form, places: int, decide: Decide) -> None:
        self.form = form
        self.printed: Printed = printed(form, model.trace.rng, places, decide)
        self._views = [(column, column.view) for column in form.columns]
        self.terms = len(form.new.terms)
        self.stored = [form.columns[store.column] for store in form.stores]

    def holds(self) -> bool:
        """Whether no column has grown or changed its kind since."""
        return all(column.view is view for column, view in self._views)


class BlockForm:
    """The form of a block's shape with the block's rows."""

    __slots__ = ("_kept", "_kept_at", "_step", "_stored", "_weigh", "terms")

    def __init__(self, formed: Formed, rows: Iterable[int], groups: Sequence[list[int]] = ()) -> None:
        weigh, step = formed.printed
        self._weigh, self._step = partial(weigh, *rows, *groups), partial(step, *rows, *groups)
        self._stored = formed.stored
        # absorbing choices that a transition weighs
        self.terms = formed.terms + sum(map(len, groups))
        # what the present state counts, as of a version of the trace
        self._kept = 0.0
        self._kept_at = -1

    def transition(self, journal: Journal) -> bool | Left:
        """Whether the transition was accepted; Left where the interpreter is to make it."""
        if self._kept_at != journal.version:
            try:
                self._kept = self._weigh()
            except Exception:
                return Left(UNDRAWN)
            if not math.isfinite(self._kept):
                return Left(UNDRAWN)
            self._kept_at = journal.version
        new = self._step(self._kept)
        if new is None:
            return False
        if isinstance(new, Left):
            return new
        journal.version += 1
        for column in self._stored:
            column.stamp = next(STAMPS)
        self._kept, self._kept_at = new, journal.version
        return True


MOST_BLOCKS = 10_000
"""Blocks whose forms are kept."""
MOST_SHAPES = 1000
"""Of so many those without a form are forgotten: where structure changes, shapes may be new ones again and again."""
USES = 8
"""A shape is lowered when it has been used so often: to print it takes as long as some fifty transitions."""


class Forms:
    """The forms of one move's shapes, and of the blocks that have them."""

    def __init__(self, model: Model, move: Move) -> None:
        self._model = model
        self._move = move
        self.shapes = Shapes()
        # the state of `Column.reshaped` up to which all forms are known to hold
        self._seen = -1
        # by identity, since every plan of a shape holds the same one: the shape with its form, or with how often it was
        # used, or None where it has no form
        self._known: dict[int, tuple[Shape, Formed | int | None]] = {}
        # the forms of blocks of one choice, as of a state of the trace's structure
        self._ready: dict[int, BlockForm] = {}
        self._ready_at = (-1, -1)

    def ready(self) -> dict[int, BlockForm]:
        """The forms of blocks of one choice that are good as the trace stands."""
        stamp = self._model.trace.structure_stamp()
        if self._ready and (stamp != self._ready_at or not self._hold()):
            self._ready.clear()
        if stamp[0] != self._ready_at[0]:
            self._known.clear()
        self._ready_at = stamp
        return self._ready

    def _hold(self) -> bool:
        """Whether every form still reads the memory that its columns have; those that do not are forgotten."""
        if self._seen == Column.reshaped:
            return True
        stale = [key for key, (_, known) in self._known.items() if isinstance(known, Formed) and not known.holds()]
        for key in stale:
            del self._known[key]
        self._seen = Column.reshaped
        return not stale

    def bind(self, node: int) -> BlockForm | None:
        """The form of a block that was not met yet, where another block had one of the same shape, of single choices
        alone: a few hops from its choice, however many blocks there are."""
        found = self.shapes.bound(node)
        if found is None:
            return None
        shape, rows = found
        _, known = self._known.get(id(shape), (shape, None))
        if not isinstance(known, Formed) or shape.groups:
            return None
        return self._put(node, BlockForm(known, rows))

    def of(self, node: int, shape: Shape, binding: Binding) -> BlockForm | None:
        """The form of a block of this shape, once the shape has been used often enough, if it has one."""
        form = self.ready().get(node)
        if form is not None:
            return form
        _, known = self._known.get(id(shape), (shape, 0))
        if isinstance(known, int):
            known += 1
            if known >= USES:
                known = self._formed(shape, binding)
            self._enter(shape, known)
        if not isinstance(known, Formed):
            return None
        groups = [rows_of(self._model.trace, site) for site in shape.groups]
        return self._put(node, BlockForm(known, [node & ROW_MASK for node in binding.nodes], groups))

    def _put(self, node: int, form: BlockForm) -> BlockForm:
        if len(self._ready) < MOST_BLOCKS:
            self._ready[node] = form
        return form

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


def forms_of(model: Model, move: Move) -> Forms | None:
    """The forms of a move, if there are any for its kind; those of everyday transitions stay with the model."""
    if not isinstance(move.proposal, Resimulation):
        return None
    return model.kept.lasting(_Everyday, model) if isinstance(move.decide, Metropolis) else Forms(model, move)


class _Everyday(Forms):
    """Of proposals from the prior, decided as Metropolis and Hastings do."""

    def __init__(self, model: Model) -> None:
        super().__init__(model, Move(Resimulation(model), Metropolis(model)))
