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

from collections.abc import Sequence
from typing import Any

from venture_lite.blocks.label_classes import by_label, free_labels, labels_by_maker, parameters_of
from venture_lite.blocks.label_weights import MeasureDraw
from venture_lite.blocks.weighted_columns import WeightedColumns
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.addresses import address
from venture_lite.interpreter.candidates import draw_candidate
from venture_lite.interpreter.handler import Handler
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.kernel import BlockKernel
from venture_lite.interpreter.label_readers import refuse_other_readers
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.weights import NEVER, Weight
from venture_lite.procedures.exchangeable.crp import CrpState
from venture_lite.trace.nodes import site_of
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.trace import Trace
from venture_lite.values import key_of

HINT = "gibbs without 'weights"

MOST_MISSES = 3
"""In a row, after which columns are not tried again."""


class KnownParameters(Handler):
    """Gives the parameters of a class the values that they had, also where the class had no member meanwhile; those
    that nobody knows are drawn by the handler before, once."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        # by address
        self._known: dict[Any, Any] = {}
        self._nodes: set[int] = set()

    def know(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            self._known[address(self.trace, node)] = self.trace.value(node)
        self._nodes.update(nodes)

    def holds(self, node: int) -> bool:
        return node in self._nodes

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        if isinstance(operator, Exchangeable):
            reason = "'weights keeps the parameters of classes, and draws of a maker depend on each other"
            raise KernelError(reason, hint=HINT).at(*self.trace.place(*self.trace.decode(node)))
        place = address(self.trace, node)
        if place not in self._known:
            assert self.before is not None
            self._known[place] = self.before.choose(node, operator, arguments)
        return self._known[place]


class WeightedLabels(BlockKernel):
    """Draws of all labels of a block given weights."""

    refuses_blocks = True

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._rows = 0
        self._columns: WeightedColumns | None = None
        self._misses = 0 if model.kernels == "compiled" else MOST_MISSES

    @property
    def rows(self) -> int:
        return self._rows

    def refuse(self, nodes: list[int]) -> None:
        """Raises KernelError where a choice is no label, or one that has no weights."""
        trace = self.model.trace
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

    # ------------------------------------------------------------------------------------------- a transition

    def step(self, nodes: list[int], at: Selection) -> bool:
        moved = self._by_columns(nodes)
        if moved is not None:
            return moved
        every, moved = labels_by_maker(self.model), False
        for maker, free in free_labels(every, nodes).items():
            if free:
                with self.model.transaction() as change:
                    moved |= self._draw(maker, sorted(free), every[maker])
                    change.keep()
        return moved

    def _by_columns(self, nodes: list[int]) -> bool | None:
        """Whether labels moved; None where they have no columns, and nothing was done."""
        model = self.model
        if self._misses >= MOST_MISSES or model.transactions or model.trace.journal.entries:
            return None
        if model.regenerator.power != 1.0:
            return None
        self._columns = self._columns or WeightedColumns(model, nodes[0])
        moved = self._columns.draw(nodes)
        self._misses = self._misses + 1 if moved is None else 0
        self._rows += self._columns.rows
        return moved

    def _draw(self, maker: int, free: list[int], every: list[int]) -> bool:
        """Draw the free labels of a maker, one after the other given what its measure is; whether one moved."""
        model, trace = self.model, self.model.trace
        state = trace.statistics.makers[maker].state
        assert isinstance(state, CrpState)
        known = KnownParameters(trace)
        for members in by_label(trace, every).values():
            known.know(parameters_of(model, members))
        for node in free:
            self._refuse_parameters(known, node)
        measure = MeasureDraw(trace.rng, state)
        slices = [measure.slice_of(trace.value(node), trace.rng.random()) for node in free]
        with model.machine.handled_by(known):
            for new in measure.broken(min(slices)):
                self._open(free[0], new.label)
            uniform = [trace.rng.random() for _ in free]
            before = [key_of(trace.value(node)) for node in free]
            for node, level, u in zip(free, slices, uniform, strict=True):
                model.poll()
                self._assign(node, measure.wider_than(level), u)
        return any(key_of(trace.value(node)) != old for node, old in zip(free, before, strict=True))

    def _refuse_parameters(self, known: KnownParameters, node: int) -> None:
        """Raises KernelError where a parameter of a class depends on a label: one that has no member meanwhile would
        have it from another distribution."""
        trace = self.model.trace
        for absorbing in Builder(trace).build([node], with_brush=False).absorbing:
            if known.holds(absorbing):
                reason = "'weights keeps the parameters of classes, and one depends on a label here"
                raise KernelError(reason, hint=HINT).at(*trace.place(*trace.decode(absorbing)))

    def _open(self, node: int, label: int) -> None:
        """Draw the parameters of a class that has no members, by letting one label have it; that goes back."""
        with self.model.transaction():
            self.model.put_value(node, label)

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
