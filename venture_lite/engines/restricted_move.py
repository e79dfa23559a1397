"""The proposal of a split or a merge: restricted scans of labels and parameters, and their log probabilities.

This is the definition, on the trace. `blocks/restricted_columns.py` makes the same proposals over columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from venture_lite.blocks.independent_draws import InTrace, renew
from venture_lite.blocks.label_classes import by_label, parameters_of
from venture_lite.blocks.label_shares import Share, drawn_scans
from venture_lite.engines.label_pairs import LabelPair
from venture_lite.errors import VentureError
from venture_lite.interpreter.ancestry import read_by_density
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.handler import Handler
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.label_readers import makes_or_removes_choices
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import in_order
from venture_lite.interpreter.sources import parents_first
from venture_lite.interpreter.weights import NEVER, Weight
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.trace import Trace
from venture_lite.values import key_of


class NoNewChoices(Handler):
    """Raises KernelError where a member that goes over to another class brings a choice into being."""

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        raise makes_or_removes_choices(self.trace, node)


class NewChoices(Handler):
    """Notes the choices that a fresh label brings into being; the handler before draws them."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self.made: list[int] = []

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        self.made.append(node)
        assert self.before is not None
        return self.before.choose(node, operator, arguments)


class SummedInTrace(InTrace):
    """One parameter of a trace, with labels summed out."""

    def __init__(self, model: Model, node: int, summed: Callable[[], Weight]) -> None:
        """`summed` is what labels have in all of their classes over what they have in their own, as these stand."""
        super().__init__(model, node)
        self._summed = summed

    def weigh(self, value: Any) -> Weight:
        model = self._model
        try:
            with model.transaction():
                weight = model.put_value(self._node, value)
                weight.plus(self._summed())
                return weight
        except VentureError as error:
            if not rejects(model, error, ()):
                raise
            return Weight(NEVER)


@dataclass(slots=True)
class LabelledClass:
    """The class of one label: `anchor` is the member drawn for it."""

    anchor: int
    label: Any
    # unobserved choices of its families, parents first
    parameters: list[int] = field(default_factory=list)


class RestrictedMove:
    """One proposal: its classes, what may move between them, and the launch states of both directions."""

    def __init__(self, model: Model, pair: LabelPair, every: Sequence[int], movable: Sequence[int]) -> None:
        """`every` label of the maker, and the choices that the kernel may move."""
        self.model, self.trace, self.pair = model, model.trace, pair
        # evaluations of labels
        self.rows = 0
        self._no_new = NoNewChoices(model.trace)
        # restricted scans of the launch states
        self._scans = 0
        self._by_label = by_label(self.trace, every)
        self._movable = set(movable)
        ends = (pair.first, pair.second)
        classes = {key_of(self.trace.value(node)) for node in ends}
        # those that are shared out
        self.members = sorted(
            node for label in classes for node in self._by_label[label] if node in self._movable and node not in ends
        )

    def has_others(self, node: int) -> bool:
        """Whether the class of a label has members that do not move."""
        return any(member not in self._movable for member in self._by_label[key_of(self.trace.value(node))])

    # --------------------------------------------------------------------------------------------- proposals

    def split(self) -> tuple[float, float]:
        """Split the class; the log probabilities of the proposal, and of the one back."""
        kept = self._class_of(self.pair.second)
        self._scans = drawn_scans(self.trace.rng)
        backward = self._merged_scan(kept, [self.trace.value(node) for node in kept.parameters])
        first = self._opened()
        share = Share.any(self.trace.rng, self.pair.by_class)
        self._launch(first, kept, share)
        forward = self._scan(first, kept, share)
        went = sum(key_of(self.trace.value(node)) == key_of(first.label) for node in self.members)
        return forward, backward + share.log_ratio_of(went, len(self.members) - went)

    def merge(self) -> tuple[float, float]:
        """Merge the first label's class into the second's; the log probabilities of that, and of the way back."""
        first, kept = self._class_of(self.pair.first), self._class_of(self.pair.second)
        labels = {node: key_of(self.trace.value(node)) == key_of(first.label) for node in self.members}
        values = [[self.trace.value(node) for node in each.parameters] for each in (first, kept)]
        went = sum(labels.values())
        self._scans = drawn_scans(self.trace.rng)
        share = Share.of(self.trace.rng, went, len(labels) - went, self.pair.by_class)
        self._launch(first, kept, share)
        backward = self._scan(first, kept, share, labels, values)
        for node in self.members:
            self._move(node, kept.label)
        # the parameters of its class go with the first label
        self._move(self.pair.first, kept.label, -len(first.parameters))
        forward = self._merged_scan(kept, None) + share.log_ratio_of(went, len(labels) - went)
        return forward, backward

    def _merged_scan(self, kept: LabelledClass, values: list[Any] | None) -> float:
        """New parameters of the one class from a launch state, or the present ones; their log density."""
        if not kept.parameters:
            return 0.0
        self._from_prior(kept)
        for _ in range(self._scans):
            self._parameters(kept, None)
        return self._parameters(kept, values)

    def _launch(self, first: LabelledClass, kept: LabelledClass, share: Share) -> None:
        """A state of the two classes that forgets the present one."""
        rng = self.trace.rng
        self._from_prior(first)
        self._from_prior(kept)
        probability = share.first if self._scans else share.launched(rng, len(self.members))
        for node in self.members:
            self.model.poll()
            self._move(node, (first if rng.random() < probability else kept).label)
        for _ in range(self._scans):
            self._scan(first, kept, share)

    def _scan(
        self, first: LabelledClass, kept: LabelledClass, share: Share, labels: Mapping[int, bool] | None = None,
        values: Sequence[list[Any]] = (),
    ) -> float:  # fmt: skip
        """The parameters of both, then each member between the two, drawn or as they are given; the log probability."""
        log_probability = 0.0
        if self._scans:
            for position, each in enumerate((first, kept)):
                log_probability += self._parameters(each, values[position] if values else None)
        else:
            log_probability += self._in_turn(first, kept, share, values)
        for node in self.members:
            self.model.poll()
            log_probability += self._assign(node, first, kept, share, None if labels is None else labels[node])
        return log_probability

    def _in_turn(self, first: LabelledClass, kept: LabelledClass, share: Share, values: Sequence[list[Any]]) -> float:
        """Draw the parameters of the smaller class given its members, and those of the other given these, with the
        labels summed out; or take those given: their log density."""
        pairs = [(first, values[0] if values else None), (kept, values[1] if values else None)]
        (small, its_values), (large, other_values) = pairs if share.first_is_small else reversed(pairs)
        log_density = self._parameters(small, its_values)
        # where the search for the mode begins
        self._parameters(large, None)

        def summed() -> Weight:
            return self._summed(first, kept, share)

        with self.model.machine.handled_by(NoNewChoices(self.trace)):
            for position, node in enumerate(large.parameters):
                at = SummedInTrace(self.model, node, summed)
                value = None if other_values is None else other_values[position]
                log_density += renew(at, self.trace.rng, value, other_values is not None)
        return log_density

    def _summed(self, first: LabelledClass, kept: LabelledClass, share: Share) -> Weight:
        """The sum over members of what each has in both classes, over what it has in its own."""
        total = Weight()
        for node in self.members:
            is_first = key_of(self.trace.value(node)) == key_of(first.label)
            other = (kept if is_first else first).label
            ratio = self._prior_ratio(node, other)
            with self.model.transaction():
                weight = self._move(node, other)
            weight.total += (-share.log_odds if is_first else share.log_odds) - ratio
            if weight.impossible < 0:
                # its own class is impossible
                total.plus(weight)
            elif not weight.impossible:
                total.total += max(weight.total, 0.0) + math.log1p(math.exp(-abs(weight.total)))
        return total

    def _assign(
        self, node: int, first: LabelledClass, kept: LabelledClass, share: Share, to_first: bool | None
    ) -> float:
        """Draw a label among the two, or take the one given; its log probability."""
        is_first = key_of(self.trace.value(node)) == key_of(first.label)
        other = (kept if is_first else first).label
        ratio = self._prior_ratio(node, other)
        with self.model.transaction() as change:
            weight = self._move(node, other)
            # the share stands for the sizes of the classes
            weight.total -= ratio
            if is_first:
                weight = Weight().minus(weight)
            weight.total += share.log_odds
            log_first, log_kept = _log_probabilities(weight)
            goes = self.trace.rng.random() < math.exp(log_first) if to_first is None else to_first
            if goes != is_first:
                change.keep()
        return log_first if goes else log_kept

    def _prior_ratio(self, node: int, label: Any) -> float:
        """The log probability that the maker gives to a label, over that of the present one, the others given."""
        operator, arguments, present = self.trace.choice(node)
        assert isinstance(operator, Exchangeable)
        with self.model.aside():
            self.trace.statistics.unincorporate(operator, present, arguments)
            return operator.state.log_predictive(label) - operator.state.log_predictive(present)

    def _move(self, node: int, label: Any, change: int = 0) -> Weight:
        """A member goes over to a class that stands; the change of the log weight. Raises KernelError where it makes a
        choice, or removes others than so many of its class, which it was the last of."""
        self.rows += 1
        if key_of(self.trace.value(node)) == key_of(label):
            return Weight()
        before = self.trace.default.bag.count
        with self.model.machine.handled_by(self._no_new):
            weight = self.model.put_value(node, label)
        if self.trace.default.bag.count != before + change:
            raise makes_or_removes_choices(self.trace, node)
        return weight

    # -------------------------------------------------------------------------------------------- parameters

    def _opened(self) -> LabelledClass:
        """The first label in a class of its own."""
        node, operator = self.pair.first, self.trace.application(self.pair.first)[0]
        assert isinstance(operator, Exchangeable)
        fresh = next(label for label in operator.state.support() or () if key_of(label) not in self._by_label)
        made, before = NewChoices(self.trace), self.trace.default.bag.count
        with self.model.machine.handled_by(made):
            self.model.put_value(node, fresh)
        if self.trace.default.bag.count != before + len(made.made):
            # of the class that it left
            raise makes_or_removes_choices(self.trace, node)
        return LabelledClass(node, fresh, self._ordered(made.made))

    def _class_of(self, node: int) -> LabelledClass:
        """The class of a label with its parameters: what would go if no member were left."""
        label = self.trace.value(node)
        return LabelledClass(node, label, self._ordered(parameters_of(self.model, self._by_label[key_of(label)])))

    def _ordered(self, nodes: list[int]) -> list[int]:
        """By address, but parents first."""
        within, done, found = set(nodes), set[int](), []
        ordered = parents_first(
            in_order(self.model, nodes), lambda node: sorted(read_by_density(self.trace, node) & within), done
        )
        for node in ordered:
            done.add(node)
            found.append(node)
        return found

    def _from_prior(self, some: LabelledClass) -> None:
        for node in some.parameters:
            operator, arguments = self.trace.application(node)
            self._put(node, simulate_anew(self.trace, node, operator, arguments))

    def _parameters(self, some: LabelledClass, values: Sequence[Any] | None) -> float:
        """Draw the parameters of a class, or take those given; their log density."""
        total = 0.0
        with self.model.machine.handled_by(self._no_new):
            for position, node in enumerate(some.parameters):
                value = None if values is None else values[position]
                total += renew(InTrace(self.model, node), self.trace.rng, value, values is not None)
        return total

    def _put(self, node: int, value: Any) -> None:
        with self.model.machine.handled_by(self._no_new):
            self.model.put_value(node, value)


def _log_probabilities(weight: Weight) -> tuple[float, float]:
    """(of the first, of the other), where the first has this weight over the other."""
    if weight.impossible:
        return (-math.inf, 0.0) if weight.impossible > 0 else (0.0, -math.inf)
    total = weight.total
    log_sum = max(total, 0.0) + math.log1p(math.exp(-abs(total)))
    return total - log_sum, -log_sum
