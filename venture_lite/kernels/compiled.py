"""Kernels that take a fast way where a block has one; where it has none, the interpreter makes the transition.

Both draw in the same order: the proposal first, then one uniform number for the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from venture_lite.interpreter.comparison import Check, Uncompared, weights_of
from venture_lite.interpreter.kernel import COLUMNS, ROWS, BlockKernel, Course, Drawing, Interpreted, Move, Resimulation
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.shape import NoShape, shape_of
from venture_lite.interpreter.tally import Tally
from venture_lite.kernels.candidates import FormedGibbs
from venture_lite.kernels.formed import UNBEGUN, BlockForm, Looked, Resumed, forms_of
from venture_lite.kernels.label_columns import LabelColumns
from venture_lite.kernels.lower import NoForm, lower
from venture_lite.kernels.preview import Drawable
from venture_lite.kernels.python import Left
from venture_lite.kernels.single_choices import MOST_MISSES, SingleGibbs, SingleMH
from venture_lite.trace.scopes import SEVERAL

PLANNED = "planned for one choice, where no family comes or goes"
LABELS = "what each class gives is computed once for many labels"


def kernel(model: Model, move: Move) -> BlockKernel:
    """What makes transitions by a move, as the model's `kernels` say."""
    interpreted = Interpreted(model, move)
    return interpreted if model.kernels == "interpreted" else Compiled(interpreted)


def drawing(model: Model, kind: Callable[[Model], Drawing]) -> Drawing:
    """What draws from conditional distributions as kernels of a kind do, as the model's `kernels` say."""
    return kind(model) if model.kernels == "interpreted" else CompiledDrawing(model, kind)


AHEAD = 256
"""Labels that are drawn together."""
POLL_EVERY = 64
"""Transitions between two points at which an interruption can come."""


class Compiled(BlockKernel):
    """Transitions by a move: by its form, where they change no structure; single choices that name families by their
    plans."""

    def __init__(self, interpreted: Interpreted) -> None:
        super().__init__(interpreted.model)
        self._interpreted = interpreted
        self.move = self._move = move = interpreted.move
        self._forms = forms_of(self.model, move)
        assert self._forms.witness is not None
        # fast transitions that are compared are decided by the witness, as the interpreter's beside them
        self._witness = self._forms.witness
        self._witnessed = replace(move, decide=self._witness)
        other = Interpreted(self.model, self._witnessed)
        self._check = Check(other, type(move.proposal).__name__, self._witness.taken)
        # for blocks of one choice whose move changes structure, where its proposal is its own distribution
        self._single = SingleMH(self.model, self._check) if isinstance(move.proposal, Resimulation) else None
        # by site what looks at its blocks came to, where neither forms nor plans are near: the interpreter is
        self._passed: dict[int, Looked | None] = {}
        # absorbing choices weighed by forms
        self._weighed = 0

    @property
    def rows(self) -> int:
        return self._weighed + self._interpreted.rows + (0 if self._single is None else self._single.rows)

    def run(self, selection: Selection, times: int, tally: Tally) -> int:
        if selection.selector.kind != "one":
            return super().run(selection, times, tally)
        before = tally.transitions
        with tally.task(times):
            while (done := tally.transitions - before) < times:
                if self._run_formed(selection, times - done, tally):
                    tally.progress.advance(tally.transitions - before)
                    continue
                if not self._run_drawn(selection, done, times, tally):
                    tally.warn(str(selection.missing()))
                    break
        return tally.transitions - before

    def _run_drawn(self, selection: Selection, first: int, times: int, tally: Tally) -> int:
        """Make transitions of blocks that are drawn, of so many the `first` being behind, until some have forms; how
        many were made."""
        poll, rng, scope, passed = self.model.poll, self.model.trace.rng, selection.found(), self._passed
        interpreted, forms = self._interpreted.step, self._forms
        for done in range(first, times):
            if not scope.block_count():
                return done - first
            poll()
            node, selection.key = scope.drawing(rng)()
            nodes = [node] if node != SEVERAL else scope.members(selection.key)
            looked = passed.get(nodes[0] >> 32)
            if looked is not None and looked.skip:
                looked.skip -= 1
                tally.count(interpreted(nodes, selection))
            else:
                tally.count(self.step(nodes, selection))
                if forms.blocks and forms.ready():
                    return done + 1 - first
            if not done & 63:
                tally.progress.advance(done)
        return times - first

    def _run_formed(self, selection: Selection, times: int, tally: Tally) -> int:
        """Make up to so many transitions of blocks that are drawn, while they have forms; how many were made."""
        model, scope, forms, ready = self.model, selection.found(), self._forms, self._forms.ready()
        if not ready or not scope.block_count() or model.transactions:
            return 0
        draw, journal = scope.drawing(model.trace.rng), model.trace.journal
        for done in range(times):
            if not done % POLL_EVERY:
                model.poll()
            node, selection.key = draw()
            form = ready.get(node) or (None if node == SEVERAL else forms.bind(node))
            if form is None:
                tally.count(self.step(scope.members(selection.key), selection))
                return done + 1
            self._weighed += form.terms
            moved = form.transition(journal)
            if isinstance(moved, Left):
                tally.count(self._left(moved, [node], selection, self._move))
                return done + 1
            tally.count(moved)
        return times

    def step(self, nodes: list[int], at: Selection) -> bool:
        single = self._single if len(nodes) == 1 else None
        if single is not None and (misses := single.choices.misses.get(nodes[0] >> 32)) is not None:
            if misses < MOST_MISSES and (moved := self._planned(single, nodes[0], at)) is not None:
                return moved
            single = None
        form = not self.model.transactions and self._forms.of(nodes)
        if isinstance(form, BlockForm):
            return self._by_form(form, nodes, at)
        if not form and single is not None and (moved := self._planned(single, nodes[0], at)) is not None:
            return moved
        if form or single is None:
            self._passed[nodes[0] >> 32] = self._forms.passed_over(nodes[0] >> 32)
        return self._interpreted.step(nodes, at)

    def _by_form(self, form: BlockForm, nodes: list[int], at: Selection) -> bool:
        self._weighed += form.terms
        journal, formed = self.model.trace.journal, form.formed

        def fast() -> bool:
            form.keep_stored(journal)
            found = form.transition(journal)
            return self._left(found, nodes, at, self._witnessed) if isinstance(found, Left) else found

        if not self._forms.is_believed(formed):
            return self._check.step(formed.key, nodes, at, fast, self._witness.taken)
        found = form.transition(journal)
        return self._left(found, nodes, at, self._move) if isinstance(found, Left) else found

    def _planned(self, single: SingleMH, node: int, at: Selection) -> bool | None:
        """Whether the proposal was accepted, by a plan; None where there is none."""
        try:
            return single.step(node, at, self._move.decide)
        except Uncompared as plan:
            fast = partial(self._followed, single, node, at)
            return self._check.step(plan.key, [node], at, fast, self._witness.taken)

    def _followed(self, single: SingleMH, node: int, at: Selection) -> bool:
        moved = single.step(node, at, self._witness)
        return Interpreted(self.model, self._witnessed).step([node], at) if moved is None else moved

    def course(self, nodes: list[int], at: Selection) -> Course:
        found = shape_of(self.model.trace, nodes)
        if not isinstance(found, NoShape):
            try:
                lower(self.model.trace, self._move.proposal, *found)
            except NoForm as none:
                return Course(ROWS, None, none.reason)
            return Course(COLUMNS)
        single = self._single
        if single is not None and len(nodes) == 1 and single.choices.could_plan(nodes[0], single.draws(at)):
            return Course(COLUMNS, PLANNED)
        return Course(ROWS, None, found.reason, found.place)

    def _left(self, left: Left, nodes: list[int], at: Selection, move: Move) -> bool:
        """A transition by a move that a form left, made by the interpreter."""
        if left is UNBEGUN and move is self._move:
            return self._interpreted.step(nodes, at)
        proposal = move.proposal if left is UNBEGUN else Resumed(move.proposal, left)
        return Interpreted(self.model, replace(move, proposal=proposal)).step(nodes, at)


class CompiledDrawing(Drawing):
    """Draws from conditional distributions: single choices by their forms, or by their plans."""

    def __init__(self, model: Model, kind: Callable[[Model], Drawing]) -> None:
        super().__init__(model)
        self._interpreted, other = kind(model), kind(model)
        self._check = Check(other, kind.__name__, weights_of(other))
        self._single = SingleGibbs(model, self._check)
        self._formed = FormedGibbs(model, self._check)
        self._labels = LabelColumns(model, self._check)
        # the selection that is swept over, and what its moves may draw
        self._swept: tuple[Selection | None, Drawable] = (None, Drawable(True, None, {}))

    @property
    def rows(self) -> int:
        return self._interpreted.rows + self._single.rows + self._formed.rows + self._labels.rows

    def refuse(self, nodes: list[int]) -> None:
        self._interpreted.refuse(nodes)

    def course(self, nodes: list[int], at: Selection) -> Course:
        self.refuse(nodes)
        single = self._single
        if len(nodes) == 1 and self._labels.has(nodes[0], self._draws(at)):
            return Course(COLUMNS, LABELS)
        if self._formed.has_form(nodes):
            return Course(COLUMNS)
        if len(nodes) > 1:
            return Course(ROWS, None, "the choices of a block are enumerated together")
        if single.choices.could_plan(nodes[0], single.draws(at)):
            return Course(COLUMNS, PLANNED)
        found = shape_of(self.model.trace, nodes)
        if isinstance(found, NoShape):
            return Course(ROWS, None, found.reason, found.place)
        return Course(ROWS, None, "no plan follows what is computed from the choice")

    def step(self, nodes: list[int], at: Selection) -> bool:
        try:
            return self._step(nodes, at)
        except Uncompared as way:
            return self._check.step(way.key, nodes, at, partial(self._step, nodes, at), weights_of(self))

    def _step(self, nodes: list[int], at: Selection) -> bool:
        moved = self._labels.step(nodes[0], self._draws(at)) if len(nodes) == 1 else None
        if moved is not None:
            self.restructured = self._labels.restructured
            self.weights = self._labels.weights() if self.model.answers.is_comparing else []
            return moved
        moved = self._without_columns(nodes, at)
        if moved and len(nodes) == 1:
            self._labels.moved(nodes[0])
        return moved

    def run(self, selection: Selection, times: int, tally: Tally) -> int:
        if not selection.selector.sweeps:
            return super().run(selection, times, tally)
        before = tally.transitions
        with tally.task(times):
            for blocks in self._ahead(selection, times, tally):
                at = 0
                while at < len(blocks):
                    moved = self._several(blocks[at:], selection) if at + 1 < len(blocks) else []
                    for each in moved:
                        tally.count(each)
                    at += len(moved)
                    if at < len(blocks):
                        nodes, selection.key = blocks[at]
                        tally.count(self.step(nodes, selection))
                        at += 1
        return tally.transitions - before

    def _several(self, blocks: Sequence[tuple[list[int], Any]], at: Selection) -> list[bool]:
        """Whether each of the first of some labels changed, which were drawn together."""

        def fast(blocks: Sequence[list[int]]) -> list[bool]:
            return self._labels.step_several([node for (node,) in blocks], self._draws(at))

        labels, keys = [nodes for nodes, _ in blocks], [key for _, key in blocks]
        try:
            return fast(labels)
        except Uncompared as way:
            return self._check.several(way.key, labels, keys, at, fast)

    def _ahead(self, selection: Selection, times: int, tally: Tally) -> Iterator[list[tuple[list[int], Any]]]:
        """The blocks of a selection with their keys, together those that follow each other and are labels of one site,
        if the blocks of the scope stay the same whichever of them move."""
        found: list[tuple[list[int], Any]] = []
        sweep = -1
        for nodes in selection.blocks(times, tally):
            if found and (selection.runs != sweep or len(nodes) > 1 or nodes[0] >> 32 != found[0][0][0] >> 32):
                yield found
                found = []
            sweep = selection.runs
            found.append((nodes, selection.key))
            is_last = len(found) == AHEAD or len(nodes) > 1
            if is_last or (len(found) == 1 and not self._labels.are_steady(nodes[0], self._draws(selection))):
                yield found
                found = []
        if found:
            yield found

    def _draws(self, at: Selection) -> Drawable:
        """Which new choices a move may draw: the same ones in all of a sweep."""
        if at is not self._swept[0]:
            draws = self._single.draws(at)
            if not at.selector.sweeps:
                return draws
            self._swept = at, draws
        return self._swept[1]

    def _without_columns(self, nodes: list[int], at: Selection) -> bool:
        moved = self._formed.step(nodes, at)
        if moved is not None:
            self.restructured = False
            self.weights = self._formed.weights() if self.model.answers.is_comparing else []
            return moved
        moved = self._single.step(nodes[0], at) if len(nodes) == 1 else None
        if moved is not None:
            self.restructured = moved and not self._single.quiet
            self.weights = self._single.weights
            return moved
        moved = self._interpreted.step(nodes, at)
        self.restructured, self.weights = self._interpreted.restructured, self._interpreted.weights
        return moved
