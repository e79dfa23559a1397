"""`gibbs` with 'weights: the labels of a maker drawn given the weights of their classes.

Draws of an exchangeable procedure of labels are independent given the random measure that they come from. So that is
drawn from its conditional distribution first: of the classes that there are the weights together with what is left for
all others are Dirichlet, with the sizes of the classes and the concentration as parameters; what is left is broken into
the weights of further classes as sticks are, each with parameters from the prior. Given these a label is drawn among
infinitely many classes. A slice makes them few: a number below the width of its class is drawn for each label, and it
chooses among the classes that are wider, with the weight over the width in place of the weight (Walker 2007; Kalli,
Griffin and Walker 2011, section 2). The width is the weight itself where that is small, and one number for all classes
that are not (`WIDTH`), so that between these a label chooses by their whole weights. Widths must be functions of the
measure: whether a class has members at present says nothing of it.

This is the definition, label after label on the trace. `blocks/weighted_columns.py` draws the same labels over columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from venture_lite.blocks.distributions import transform_of
from venture_lite.blocks.label_classes import by_label, free_labels, is_label, labels_by_maker, parameters_of
from venture_lite.blocks.label_weights import MeasureDraw
from venture_lite.blocks.slices import SliceWidth
from venture_lite.blocks.summed_splits import parts_of
from venture_lite.blocks.weighted_columns import WeightedColumns
from venture_lite.engines.known_parameters import HINT, KnownParameters
from venture_lite.engines.summed_labels import HINT as SUMMED_HINT
from venture_lite.engines.summed_labels import SummedSlices, sliced_block
from venture_lite.engines.summed_splits import SplitsOnTrace
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.candidates import draw_candidate
from venture_lite.interpreter.comparison import Check
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.kernel import COLUMNS, ROWS, BlockKernel, Course
from venture_lite.interpreter.label_readers import refuse_other_readers
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.selection import Selection, one_of_each_kind
from venture_lite.interpreter.weights import NEVER, Weight
from venture_lite.procedures.exchangeable.crp import CrpState
from venture_lite.trace.nodes import site_of
from venture_lite.trace.runtime import Exchangeable
from venture_lite.values import key_of


class WeightedLabels(BlockKernel):
    """Draws of all labels of a block given weights."""

    refuses_blocks = True

    def __init__(self, model: Model, width: SliceWidth | None = None, splits: int = 0, by_columns: bool = True) -> None:
        """With a width, other choices of a block are moved with the labels summed out, and before them so many splits
        and merges of classes are proposed."""
        super().__init__(model)
        self._rows, self._width, self._splits = 0, width, splits
        # splits and merges proposed and accepted
        self._counts: Counter[str] = Counter()
        self._columns: WeightedColumns | None = None
        self._check: Check | None = None
        if by_columns and model.kernels != "interpreted":
            on_trace = WeightedLabels(model, width, splits, by_columns=False)
            self._check = Check(on_trace, "'weights")

    @property
    def rows(self) -> int:
        return self._rows

    def details(self) -> Mapping[str, float]:
        return self._counts

    def refuse(self, nodes: list[int]) -> None:
        """Raises KernelError where a choice is no label, or one that has no weights."""
        trace = self.model.trace
        if self._width is not None:
            labels = [node for node in nodes if is_label(trace, node)]
            self._refuse_others(nodes, labels)
            nodes = labels
        for node in nodes:
            operator, _ = trace.application(node)
            state = operator.state if isinstance(operator, Exchangeable) else None
            if not isinstance(state, CrpState):
                reason = "'weights draws labels, draws of make_crp, and this is none"
                raise KernelError(reason, hint=HINT).at(*trace.place(*trace.decode(node)))
            if state.discount:
                reason = "'weights breaks sticks until little is left, which takes too many with a discount"
                raise KernelError(reason, hint=HINT).at(*trace.place(*trace.decode(node)))
        for node in {site_of(node): node for node in nodes}.values():
            refuse_other_readers(self.model, node)

    def _refuse_others(self, nodes: list[int], labels: list[int]) -> None:
        """Raises KernelError for a block whose labels are none, or draws of several makers."""
        makers = {
            operator.node
            for node in labels
            if isinstance(operator := self.model.trace.application(node)[0], Exchangeable)
        }
        if len(makers) != 1:
            raise KernelError(
                "slice with 'weights sums out the labels of one maker, draws of one make_crp", hint="slice"
            )

    # ------------------------------------------------------------------------------------------- a transition

    def step(self, nodes: list[int], at: Selection) -> bool:
        moved = None
        if self._check is not None:
            moved = self._check.step_if_any(nodes, at, self._by_columns)
        if moved is not None:
            return moved
        self.model.regenerator.regenerations += 1
        every, moved = labels_by_maker(self.model), False
        for maker, free in free_labels(every, nodes).items():
            if free:
                with self.model.transaction() as change:
                    moved |= self._draw(maker, sorted(free), every[maker], self._others(nodes))
                    change.keep()
        return moved

    def _others(self, nodes: Sequence[int]) -> list[int]:
        """The choices of a block that are no labels."""
        if self._width is None:
            return []
        trace = self.model.trace
        named = one_of_each_kind(self.model, list(nodes))
        sites = {site_of(node) for node in named if not is_label(trace, node)}
        return [node for node in nodes if site_of(node) in sites]

    def _by_columns(self, nodes: list[int]) -> bool | None:
        """Whether labels moved; None where they have no columns, and nothing was done."""
        model = self.model
        if model.regenerator.power != 1.0 or model.transactions or model.trace.journal.entries:
            return None
        self._columns = self._columns or WeightedColumns(model, self._label(nodes), self._width, self._splits)
        moved = self._columns.draw(nodes)
        if moved is not None:
            self._rows += self._columns.rows
            self._counts.update(self._columns.counts)
        return moved

    def course(self, nodes: list[int], at: Selection) -> Course:
        self.refuse(nodes)
        return Course(COLUMNS, "all labels at once") if self._check and self.has_columns(nodes) else Course(ROWS)

    def has_columns(self, nodes: list[int]) -> bool:
        """Whether a block could be moved over columns, as it stands. Nothing changes."""
        return WeightedColumns(self.model, self._label(nodes), self._width, self._splits).has_columns(nodes)

    def _label(self, nodes: list[int]) -> int:
        return next(node for node in nodes if is_label(self.model.trace, node))

    def _draw(self, maker: int, free: list[int], every: list[int], others: Sequence[int]) -> bool:
        """Draw the free labels of a maker, one after the other given what its measure is, after other choices were
        moved; whether something moved."""
        model, trace = self.model, self.model.trace
        state = trace.statistics.makers[maker].state
        assert isinstance(state, CrpState)
        known = KnownParameters(model)
        for label, members in by_label(trace, every).items():
            known.know(label, parameters_of(model, members))
        block = None if self._width is None else sliced_block(model, known, others)
        self._refuse_dependent(known, free, () if block is None else block.shared)
        measure = MeasureDraw(trace.rng, state)
        slices = [measure.slice_of(trace.value(node), trace.rng.random()) for node in free]
        with model.machine.handled_by(known):
            for new in measure.broken(min(slices)):
                known.open(new.label, free[:1])
            if self._width is not None and block is not None:
                for label in filter(measure.is_wide, measure.weights):
                    known.open(label, free)
                staying = frozenset(trace.value(node) for node in set(every).difference(free))
                parts = parts_of(self._splits, bool(block.shared))
                for at, times in enumerate(parts, 1):
                    if times:
                        splits = SplitsOnTrace(model, measure, known, free, slices)
                        width = self._width if at == len(parts) else None
                        self._counts.update(splits.move(times, width, block.sites, staying))
                    classes = [measure.wider_than(level) for level in slices]

                    def weigh(classes: Any = classes) -> Iterator[list[Weight]]:
                        for node, its_classes in zip(free, classes, strict=True):
                            yield [self._weight(node, *each) for each in its_classes]

                    moves = SummedSlices(model, measure, known, weigh, self._width, len(free))
                    if at == len(parts):
                        moves.move_classes(block)
                    moves.move_shared(block)
            uniform = [trace.rng.random() for _ in free]
            before = [key_of(trace.value(node)) for node in free]
            for node, level, u in zip(free, slices, uniform, strict=True):
                model.poll()
                self._assign(node, measure.wider_than(level), u)
        return block is not None or any(
            key_of(trace.value(node)) != old for node, old in zip(free, before, strict=True)
        )

    def _refuse_dependent(self, known: KnownParameters, free: Sequence[int], shared: Sequence[int]) -> None:
        """Raises KernelError where a label is read otherwise than as a key, where a parameter of a class depends on a
        label, since one that has no member meanwhile would have it from another distribution, where data of a label
        that is summed out depend on other labels, too, and where it decides between what `shared` choices move."""
        trace, met = self.model.trace, set[int]()
        for node in free:
            refuse_other_readers(self.model, node)
            scaffold = Builder(trace).build([node], with_brush=False)
            for parameter in filter(known.holds, scaffold.absorbing):
                reason = "'weights keeps the parameters of classes, and one depends on a label here"
                raise KernelError(reason, hint=HINT).at(*trace.place(*trace.decode(parameter)))
            if self._width is None:
                continue
            # applications of what a class gives depend on the others of the class
            for datum in (*met.intersection(scaffold.absorbing), *self.model.regenerator.choices_that_go(scaffold)):
                reason = "slice with 'weights sums labels out one by one, and this depends on several of them"
                raise KernelError(reason, hint=SUMMED_HINT).at(*trace.place(*trace.decode(datum)))
            met.update(scaffold.absorbing)
        for node in met.intersection(shared):
            transform = transform_of(trace.application(node)[0])
            if transform is None or transform.reads_arguments:
                reason = "slice with 'weights moves a choice within its support, which depends on a label here"
                raise KernelError(reason, hint=SUMMED_HINT).at(*trace.place(*trace.decode(node)))

    def _assign(self, node: int, classes: Sequence[tuple[int, float]], u: float) -> None:
        """Draw one label among (class, log odds)."""
        weights = [self._weight(node, label, log_odds) for label, log_odds in classes]
        label, _ = classes[draw_candidate(weights, u)]
        if label != self.model.trace.value(node):
            self.model.put_value(node, label)

    def _weight(self, node: int, label: int, log_odds: float) -> Weight:
        """Of what depends on a label, in a class; nothing is left of it."""
        self._rows += 1
        model, trace = self.model, self.model.trace
        present = trace.value(node)
        if label == present:
            return Weight(0, log_odds)
        try:
            ratio = self._prior_ratio(node, label)
            with model.transaction():
                weight = model.put_value(node, label)
        except VentureError as error:
            if not rejects(model, error, ()):
                raise
            return Weight(NEVER)
        # the weights stand for the sizes of the classes
        weight.total += log_odds - ratio
        return weight

    def _prior_ratio(self, node: int, label: int) -> float:
        """The log probability that the maker gives to a label, over that of the present one, the others given."""
        operator, arguments, present = self.model.trace.choice(node)
        assert isinstance(operator, Exchangeable)
        with self.model.aside():
            self.model.trace.statistics.unincorporate(operator, present, arguments)
            return operator.state.log_predictive(label) - operator.state.log_predictive(present)
