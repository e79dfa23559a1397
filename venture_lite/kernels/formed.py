"""Transitions by their forms: one for each shape, called with the rows of a block.

A form reads and writes the columns themselves, without the journal: nothing is written before a transition is accepted.
What it leaves goes to the interpreter with the value that was proposed, so that the generator's numbers are used once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from venture_lite.interpreter.comparison import Witness
from venture_lite.interpreter.kernel import Metropolis, Move
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.regenerate import Proposal
from venture_lite.interpreter.scaffold import WIDE, UserGroup
from venture_lite.interpreter.shape import Binding, NoShape, Shape, shape_of
from venture_lite.interpreter.weights import Weight
from venture_lite.kernels.form import TransitionForm
from venture_lite.kernels.lower import NoForm, lower, rows_of
from venture_lite.kernels.python import Left, Printed, printed
from venture_lite.kernels.shapes import Shapes
from venture_lite.trace.journal import Journal
from venture_lite.trace.table import ROW_MASK, Column
from venture_lite.trace.trace import Trace


def lasting_key(move: Move) -> Hashable | None:
    """Of a move that means the same in every inference, as a `Formulated` proposal may say; None of another."""
    return getattr(move.proposal, "key", None)


class Formed:
    """The form of one shape, printed; good while its columns stay the arrays that they are."""

    __slots__ = ("__weakref__", "_views", "form", "model", "move", "printed", "shape", "terms")

    def __init__(self, model: Model, move: Move, shape: Shape, form: TransitionForm) -> None:
        self.model, self.shape, self.form = model, shape, form
        self.print(move)
        self._views = [(column, column.view) for column in form.columns]
        # single choices that absorb
        self.terms = len(shape.absorbing)

    @property
    def key(self) -> Hashable:
        """What answers are counted by: forms of a move that every inference has anew are known by what they are made
        of."""
        if lasting_key(self.move) is not None:
            return self
        return "form", type(self.move.proposal).__name__, self.shape, *[column.kind for column in self.form.columns]

    def print(self, move: Move) -> None:
        """Print the functions with the decision of a move."""
        self.move = move
        self.printed: Printed = printed(self.form, self.model.trace.rng, len(self.shape.sites), move)

    def holds(self) -> bool:
        """Whether no column has grown or changed its kind since."""
        return all(column.view is view for column, view in self._views)

    def bound(self, binding: Binding) -> BlockForm:
        """The form of a block whose nodes stand in the shape's places."""
        rows = [node & ROW_MASK for node in binding.nodes]
        weights, sites = self.model.weights, self.shape.groups
        groups = [rows_of(self.model.trace, site) for site in sites]
        wide = sum(map(len, groups)) + sum(users.rows.count for users in binding.users)
        if not self.form.wide:
            return BlockForm(self, rows, groups, wide)
        all_rows = [partial(weights.all_rows, site) for site in sites]
        of_users = [partial(weights.all_users, users) for users in binding.users]
        given = partial(_summed, all_rows), partial(_summed, of_users)
        return BlockForm(self, rows, given, wide, binding.users)


class Impossible(Exception):
    """Rows that are weighed by columns hold an impossible one."""


def _summed(weighs: Sequence[Callable[[], Weight]]) -> float:
    """What rows weigh by columns, in the state that stands. Raises Impossible."""
    total = 0.0
    for weigh in weighs:
        weight = weigh()
        if weight.impossible:
            raise Impossible
        total += weight.total
    return total


class BlockForm:
    """The form of a block's shape with the block's rows."""

    __slots__ = ("__weakref__", "_kept", "_kept_at", "_step", "_weigh", "formed", "rows", "terms", "users", "uses")

    def __init__(
        self,
        formed: Formed,
        rows: Sequence[int],
        given: Sequence[Any] = (),
        wide: int = 0,
        users: Sequence[UserGroup] = (),
    ) -> None:
        weigh, step = formed.printed
        self._weigh, self._step = partial(weigh, *rows, *given), partial(step, *rows, *given)
        # the rows of places, and the users of families that absorb
        self.formed, self.rows, self.users = formed, rows, users
        self.uses = 0
        # rows of absorbing choices that a transition weighs
        self.terms = formed.terms + wide
        # what the present state counts, as of a version of the trace
        self._kept = 0.0
        self._kept_at = -1

    def transition(self, journal: Journal) -> bool | Left:
        """Whether the transition was accepted; Left where the interpreter is to make it."""
        self.uses += 1
        if self._kept_at != journal.version:
            try:
                self._kept = self._weigh()
            except Exception:
                return UNBEGUN
            if not math.isfinite(self._kept):
                return UNBEGUN
            self._kept_at = journal.version
        if self.formed.form.prepares:
            self._prepare()
        new = self._step(self._kept)
        if new is None:
            return False
        if isinstance(new, Left):
            is_begun = self.formed.form.prepares or new.drawn or new.error is not None
            return new if is_begun else UNBEGUN
        journal.version += 1
        self._kept, self._kept_at = new, journal.version
        return True

    def keep_stored(self, journal: Journal) -> None:
        """Enter what a transition writes over into the journal, from which it can be taken back."""
        for store in self.formed.form.stores:
            journal.keep_cell(self.formed.form.columns[store.column], self.rows[store.place])

    def _prepare(self) -> None:
        """Let the proposal look at the block."""
        formed = self.formed
        formed.move.proposal.prepare(formed.model.trace, [self.node(place) for place in formed.shape.principals])

    def node(self, place: int) -> int:
        """What stands in a place."""
        return self.formed.shape.sites[place] << 32 | self.rows[place]


UNBEGUN = Left(())
"""The proposal has not looked at the state."""


class Resumed:
    """A proposal of which some values were drawn, in order, and which then may have met an error."""

    def __init__(self, proposal: Proposal, left: Left) -> None:
        self.counts = proposal.counts
        self._proposal, self._drawn, self._error = proposal, list(reversed(left.drawn)), left.error

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """That was done before anything was drawn."""

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        if self._drawn:
            value, ratio = self._drawn.pop()
            return value, ratio
        if self._error is not None:
            raise self._error
        return self._proposal.propose(node, operator, arguments, old)


MOST_BLOCKS = 10_000
"""Blocks whose forms are kept."""
MOST_SHAPES = 1000
"""Where structure changes, shapes may be new ones again and again: of so many those without a form are forgotten."""
USES = 8
"""A shape is lowered when it has been used so often: to print it takes as long as some fifty transitions."""


MOST_SKIPPED = 255
LASTING = 4
"""A form that was used so often between two changes of structure was worth a walk over what reads its block."""


@dataclass(slots=True)
class Looked:
    """What looks at the blocks of a site came to: where structure changes with every other transition, most are made
    for nothing."""

    # blocks to pass over after a miss, and those that are still to be
    misses: int = 0
    skip: int = 0
    # whether the last shape had no form yet
    waits: bool = False

    def missed(self) -> None:
        """A look gave no form, or one that did not last: twice as many blocks as before are passed over."""
        self.misses = self.skip = min(2 * self.misses + 1, MOST_SKIPPED)


Block = int | tuple[int, ...]
"""The choices of a block, of one choice the node."""


class Forms:
    """The forms of one move's shapes, and of the blocks that have them."""

    def __init__(self, model: Model, move: Move, witness: Witness | None = None) -> None:
        """Forms that were not compared with the interpreter yet are printed with the witness in the place of the move's
        decision."""
        self._model = model
        self._move = move
        self.witness = witness
        self._witnessed = move if witness is None else replace(move, decide=witness)
        self._shapes = Shapes()
        # the state of `Column.reshaped` up to which all forms are known to hold
        self._seen = -1
        # by identity: the shape with its form, or with how often it was used, or None where it has no form
        self._known: dict[int, tuple[Shape, Formed | int | None]] = {}
        # as of a state of the trace's structure, by `ready` the present one: the forms of blocks, and those for which
        # readers were walked
        self.blocks: dict[Block, BlockForm] = {}
        self._walked: list[tuple[Looked, BlockForm]] = []
        # by the site of a block's first choice
        self._looked: dict[int, Looked] = {}
        self._ready_at = (-1, -1)

    def ready(self) -> dict[Block, BlockForm]:
        """The forms of blocks that are good as the trace stands."""
        stamp = self._model.trace.structure_stamp()
        if stamp != self._ready_at:
            self.blocks.clear()
            for looked, form in self._walked:
                if form.uses < LASTING:
                    looked.missed()
                else:
                    looked.misses = 0
            self._walked.clear()
            if stamp[0] != self._ready_at[0]:
                self._known.clear()
            self._ready_at = stamp
        if self._seen != Column.reshaped:
            stale = [key for key, (_, known) in self._known.items() if isinstance(known, Formed) and not known.holds()]
            for key in stale:
                del self._known[key]
            if stale:
                self.blocks.clear()
            self._seen = Column.reshaped
        return self.blocks

    def bind(self, node: int) -> BlockForm | None:
        """The form of a block that was not met yet, where another block had one of the same shape, of single choices
        alone: a few hops from its choice, however many blocks there are."""
        found = self._shapes.bound(node)
        if found is None:
            return None
        _, known = self._known.get(id(found[0]), (None, None))
        if not isinstance(known, Formed) or not self.is_believed(known):
            return None
        return self._put(node, BlockForm(known, found[1]))

    def of(self, nodes: Sequence[int], uses: int = 1) -> BlockForm | bool:
        """The form of a block that is used, as often as `uses` says; else whether it waits for one, until its shape has
        been used often enough."""
        block: Block = nodes[0] if len(nodes) == 1 else tuple(nodes)
        site = nodes[0] >> 32
        has_hops = len(nodes) == 1 and site in self._shapes.by_site
        if self.blocks or has_hops:
            form = self.ready().get(block) or (self.bind(nodes[0]) if has_hops else None)
            if form is not None:
                return form
        looked = self._looked.get(site) or self._looked.setdefault(site, Looked())
        if looked.skip and uses == 1 and not (len(nodes) == 1 and self._has_many_users(nodes[0])):
            looked.skip -= 1
            return looked.waits
        self.ready()
        found = self._shapes.shape_of(self._model.trace, nodes)
        known = None if isinstance(found, NoShape) else self._used(*found, uses)
        looked.waits = known is not None
        if isinstance(found, NoShape) or not isinstance(known, Formed):
            if known is None or known == 1:
                # a shape that was seen once may not come again
                looked.missed()
            return looked.waits
        believed = self.is_believed(known)
        form = known.bound(found[1])
        if believed:
            self._put(block, form)
        if not found[0].users:
            # of users a walk over what reads the block, and this transition, take less time than the interpreter
            self._walked.append((looked, form))
        return form

    def _has_many_users(self, node: int) -> bool:
        """Whether a choice is the value of a family that many rows use: a look at these costs a small part of the
        interpreter's transition."""
        code, slot, row = self._model.trace.decode(node)
        return code.result_slot == slot and any(bag.count > WIDE for _, bag in self._model.trace.users.bags(code, row))

    def can_lower(self, nodes: Sequence[int]) -> bool:
        """Whether a block has a shape with a form."""
        found = shape_of(self._model.trace, nodes)
        if isinstance(found, NoShape):
            return False
        try:
            lower(self._model.trace, self._move.proposal, *found)
        except NoForm:
            return False
        return True

    def passed_over(self, site: int) -> Looked | None:
        """What looks at the blocks of a site came to, where no hops lead to a form before the next look."""
        return None if site in self._shapes.by_site else self._looked.get(site)

    def is_believed(self, formed: Formed) -> bool:
        """True if transitions by a form need not be compared any more, nor noted."""
        if formed.move is not self._move and self._model.answers.settled(formed.key):
            formed.print(self._move)
        return formed.move is self._move

    def _put(self, block: Block, form: BlockForm) -> BlockForm:
        if len(self.blocks) < MOST_BLOCKS:
            self.blocks[block] = form
        return form

    def _used(self, shape: Shape, binding: Binding, uses: int) -> Formed | int | None:
        """The form of a shape that is used again, or how often it was."""
        _, known = self._known.get(id(shape), (shape, 0))
        if isinstance(known, Formed) and self._model.answers.failed(known.key):
            known = None
        if isinstance(known, int):
            known += uses
            if known >= USES:
                known = self._formed(shape, binding)
            if len(self._known) >= MOST_SHAPES:
                # a form that blocks may hold has to stay known, so that its columns are looked at
                self._known = {key: kept for key, kept in self._known.items() if isinstance(kept[1], Formed)}
            self._known[id(shape)] = (shape, known)
        return known

    def _formed(self, shape: Shape, binding: Binding) -> Formed | None:
        try:
            form = lower(self._model.trace, self._move.proposal, shape, binding)
        except NoForm:
            return None
        return Formed(self._model, self._witnessed, shape, form)


def forms_of(model: Model, move: Move) -> Forms:
    """The forms of a move; of proposals that say what they are, those that the model keeps."""
    key = lasting_key(move)
    if key is None or not isinstance(move.decide, Metropolis):
        return Forms(model, move, Witness(move.decide))
    kept = model.kept.learned(_kept_forms, model)
    found = kept.pop(key, None) or Forms(model, move, Witness(move.decide))
    kept[key] = found
    if len(kept) > MOST_MOVES:
        del kept[next(iter(kept))]
    return found


MOST_MOVES = 16
"""Moves whose forms stay with the model: a session may try many step sizes."""


def _kept_forms(model: Model) -> dict[Hashable, Forms]:
    """The forms of a model's moves, by what their proposals say that they are; what was used last at the end."""
    return {}
