"""`split_merge`: proposals that split a class of an exchangeable procedure's labels, or merge two of them.

Two labels i and j of one maker are drawn at random. Where they are equal their class is split: i takes a fresh label,
and the other members of the class are shared out; where they differ the members of i's class go over to j's. How a
split shares out, and which parameters the classes get (choices in families whose key is the label), is drawn from a
*launch state* that forgets what stands now: labels by coins, parameters from the prior, then three restricted scans, in
which each label is drawn from its conditional among the two and each parameter from an approximation of its own
(`blocks/independent_draws.py`). One more scan gives the proposal, and its probability; the way back has that of the
scan that gives the present state from a launch state of its own. Launch states do not look at what they propose, so
that theirs cancel (Jain and Neal 2004, A split-merge Markov chain Monte Carlo procedure for the Dirichlet process
mixture model, equations 3.8 to 3.16, where parameters are summed out; Jain and Neal 2007, section 3, where not).

Observed labels, and those outside SCOPE, are left out: they stay with their class, which keeps its label; a class that
holds some is never the one that is merged away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from venture_lite.blocks.independent_draws import IndependentDraws
from venture_lite.errors import KernelError, VentureError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part
from venture_lite.interpreter.ancestry import read_by_density
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.handler import Handler
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.kernel import BlockKernel, Metropolis
from venture_lite.interpreter.label_readers import refuse_other_readers
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.selection import Selection, Selector, in_order, one_of_each_kind
from venture_lite.interpreter.sources import parents_first
from venture_lite.interpreter.weights import Weight
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.trace import Trace
from venture_lite.values import key_of

SCANS = 3
"""Restricted scans that make a launch state; Jain and Neal (2007) use three."""


class NoNewChoices(Handler):
    """Raises KernelError where a member that goes over to another class brings a choice into being."""

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        raise _single_member(self.trace, node)


class NewChoices(Handler):
    """Notes the choices that a fresh label brings into being; the handler before draws them."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self.made: list[int] = []

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        self.made.append(node)
        assert self.before is not None
        return self.before.choose(node, operator, arguments)


@dataclass(slots=True)
class LabelledClass:
    """The class of one label: `anchor` is the member drawn for it."""

    anchor: int
    label: Any
    # unobserved choices of its families, parents first
    parameters: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LabelPair:
    """Two labels of one maker, and how probable it was that they were drawn."""

    maker: int
    first: int
    second: int
    log_probability: float


class SplitMerge(BlockKernel):
    """Transitions of one `split_merge` action."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._draws, self._metropolis = IndependentDraws(model), Metropolis(model)
        self._rows = 0
        # splits proposed and accepted, merges proposed and accepted
        self._counts = {"splits": 0, "splits accepted": 0, "merges": 0, "merges accepted": 0}

    @property
    def rows(self) -> int:
        return self._rows

    def details(self) -> Mapping[str, float]:
        return self._counts

    def refuse(self, nodes: list[int]) -> None:
        """Raises KernelError where no choice is a label, or one is read otherwise than as a key."""
        labels = [node for node in nodes if is_label(self.model.trace, node)]
        if not labels:
            raise KernelError("split_merge moves labels, draws of make_crp, and there are none", hint="gibbs, or mh")
        for node in labels:
            refuse_other_readers(self.model, node)

    def refuse_single_members(self, nodes: list[int]) -> None:
        """Raises KernelError where, in this state, a label that goes over to another class makes or removes choices;
        one label of each maker is looked at. Nothing changes but the generator, which is put back."""
        model, generator = self.model, self.model.trace.rng.bit_generator
        every, before = labels_by_maker(model), generator.state
        for maker, free in _free(every, nodes).items():
            classes = by_label(model.trace, every[maker])
            first = next((node for node in free if len(classes[key_of(model.trace.value(node))]) > 1), None)
            if first is None:
                continue
            for other in classes:
                if other != key_of(model.trace.value(first)):
                    pair = LabelPair(maker, first, classes[other][0], 0.0)
                    with model.aside():
                        RestrictedMove(model, self._draws, pair, every[maker], nodes).go_over()
                    break
        generator.state = before

    def inspect(self, selection: Selection) -> bool:
        found = selection.everything()
        if found:
            self.refuse(found)
        return bool(found)

    def moves(self, selection: Selection) -> list[int]:
        """The labels of a selection, and the parameters of their classes."""
        every = labels_by_maker(self.model)
        found = dict[int, None]()
        for maker, labels in _free(every, selection.everything()).items():
            found.update(dict.fromkeys(labels))
            for members in by_label(self.model.trace, every[maker]).values():
                found.update(dict.fromkeys(parameters_of(self.model, members)))
        return list(found)

    # ------------------------------------------------------------------------------------------- a transition

    def step(self, nodes: list[int], at: Selection) -> bool:
        model = self.model
        every = labels_by_maker(model)
        pair = self._drawn_pair(_free(every, nodes))
        if pair is None:
            return False
        splits = key_of(model.trace.value(pair.first)) == key_of(model.trace.value(pair.second))
        what = "splits" if splits else "merges"
        try:
            with model.transaction() as change:
                move = RestrictedMove(model, self._draws, pair, every[pair.maker], nodes)
                accepted = (splits or not move.has_others(pair.first)) and self._propose(move, splits, at)
                self._rows += move.rows
                if accepted:
                    change.keep()
        except VentureError as error:
            if not rejects(model, error, ()):
                raise
            accepted = False
        self._counts[what] += 1
        self._counts[f"{what} accepted"] += accepted
        return accepted

    def _drawn_pair(self, labels: Mapping[int, list[int]]) -> LabelPair | None:
        """A label that has another of its maker, and one of these; None where there is none."""
        rng = self.model.trace.rng
        several = [(maker, node) for maker, members in labels.items() if len(members) > 1 for node in members]
        if not several:
            return None
        maker, first = several[int(rng.random() * len(several))]
        others = [node for node in labels[maker] if node != first]
        return LabelPair(maker, first, others[int(rng.random() * len(others))], _log_probability(labels, maker))

    def _propose(self, move: RestrictedMove, splits: bool, at: Selection) -> bool:
        """Whether the proposal is accepted; it stands then."""
        model, pair = self.model, move.pair
        before = model.log_score()
        forward, backward = move.split() if splits else move.merge()
        weight = model.log_score().minus(before)
        weight.total += backward - forward
        # parameters may be labels themselves, and others of them there now
        now = _free(labels_by_maker(model), at.everything())
        weight.total += _log_probability(now, pair.maker) - pair.log_probability
        return weight.total > -math.inf and self._metropolis(weight)


class RestrictedMove:
    """One proposal: its classes, what may move between them, and the launch states of both directions."""

    def __init__(
        self, model: Model, draws: IndependentDraws, pair: LabelPair, every: Sequence[int], movable: Sequence[int]
    ) -> None:
        """`every` label of the maker, and the choices that the kernel may move."""
        self.model, self.trace, self.draws, self.pair = model, model.trace, draws, pair
        # evaluations of labels
        self.rows = 0
        self._no_new = NoNewChoices(model.trace)
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

    def go_over(self) -> None:
        """The first label takes the second's. Raises KernelError where that makes or removes choices."""
        self._move(self.pair.first, self.trace.value(self.pair.second))

    # --------------------------------------------------------------------------------------------- proposals

    def split(self) -> tuple[float, float]:
        """Split the class; the log probabilities of the proposal, and of the one back."""
        kept = self._class_of(self.pair.second)
        backward = self._merged_scan(kept, [self.trace.value(node) for node in kept.parameters])
        first = self._opened()
        self._launch(first, kept)
        forward = self._scan(first, kept)
        return forward, backward

    def merge(self) -> tuple[float, float]:
        """Merge the first label's class into the second's; the log probabilities of that, and of the way back."""
        first, kept = self._class_of(self.pair.first), self._class_of(self.pair.second)
        labels = {node: key_of(self.trace.value(node)) == key_of(first.label) for node in self.members}
        values = [[self.trace.value(node) for node in each.parameters] for each in (first, kept)]
        self._launch(first, kept)
        backward = self._scan(first, kept, labels, values)
        for node in (*self.members, self.pair.first):
            if key_of(self.trace.value(node)) != key_of(kept.label):
                self.model.put_value(node, kept.label)
        forward = self._merged_scan(kept, None)
        return forward, backward

    def _merged_scan(self, kept: LabelledClass, values: list[Any] | None) -> float:
        """New parameters of the one class from a launch state, or the present ones; their log density."""
        if not kept.parameters:
            return 0.0
        self._from_prior(kept)
        for _ in range(SCANS):
            self._parameters(kept, None)
        return self._parameters(kept, values)

    def _launch(self, first: LabelledClass, kept: LabelledClass) -> None:
        """A state of the two classes that forgets the present one."""
        rng = self.trace.rng
        self._from_prior(first)
        self._from_prior(kept)
        for node in self.members:
            self._move(node, (first if rng.random() < 0.5 else kept).label)
        for _ in range(SCANS):
            self._scan(first, kept)

    def _scan(
        self, first: LabelledClass, kept: LabelledClass, labels: Mapping[int, bool] | None = None,
        values: Sequence[list[Any]] = (),
    ) -> float:  # fmt: skip
        """Each member between the two, then the parameters of both, drawn or as they are given; the log probability."""
        log_probability = 0.0
        for node in self.members:
            self.model.poll()
            log_probability += self._assign(node, first, kept, None if labels is None else labels[node])
        for position, each in enumerate((first, kept)):
            log_probability += self._parameters(each, values[position] if values else None)
        return log_probability

    def _assign(self, node: int, first: LabelledClass, kept: LabelledClass, to_first: bool | None) -> float:
        """Draw a label among the two, or take the one given; its log probability."""
        is_first = key_of(self.trace.value(node)) == key_of(first.label)
        with self.model.transaction() as change:
            weight = self._move(node, (kept if is_first else first).label)
            log_move, log_stay = _log_probabilities(weight)
            moves = self.trace.rng.random() < math.exp(log_move) if to_first is None else to_first != is_first
            if moves:
                change.keep()
        return log_move if moves else log_stay

    def _move(self, node: int, label: Any) -> Weight:
        """A member goes over to a class that stands; the change of the log weight."""
        self.rows += 1
        if key_of(self.trace.value(node)) == key_of(label):
            return Weight()
        before = self.trace.default.bag.count
        with self.model.machine.handled_by(self._no_new):
            weight = self.model.put_value(node, label)
        if self.trace.default.bag.count != before:
            raise _single_member(self.trace, node)
        return weight

    # -------------------------------------------------------------------------------------------- parameters

    def _opened(self) -> LabelledClass:
        """The first label in a class of its own."""
        node, operator = self.pair.first, self.trace.application(self.pair.first)[0]
        assert isinstance(operator, Exchangeable)
        fresh = next(label for label in operator.state.support() or () if key_of(label) not in self._by_label)
        made = NewChoices(self.trace)
        with self.model.machine.handled_by(made):
            self.model.put_value(node, fresh)
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
                total += self.draws.renew(node, None if values is None else values[position], values is not None)
        return total

    def _put(self, node: int, value: Any) -> None:
        with self.model.machine.handled_by(self._no_new):
            self.model.put_value(node, value)


def labels_by_maker(model: Model) -> dict[int, list[int]]:
    """Every label, observed or not, by the node of its maker."""
    found: dict[int, list[int]] = {}
    # a maker is no distribution that the text names
    for node in one_of_each_kind(model, list(model.trace.choices())):
        operator, _ = model.trace.application(node)
        if isinstance(operator, Exchangeable) and operator.record.labels:
            found.setdefault(operator.node, []).append(node)
    return found


def by_label(trace: Trace, labels: Sequence[int]) -> dict[Any, list[int]]:
    """The members of each class."""
    found: dict[Any, list[int]] = {}
    for node in labels:
        found.setdefault(key_of(trace.value(node)), []).append(node)
    return found


def _free(labels: Mapping[int, list[int]], nodes: Sequence[int]) -> dict[int, list[int]]:
    """Of the labels of each maker those among some choices."""
    among = set(nodes)
    return {maker: [node for node in members if node in among] for maker, members in labels.items()}


def _log_probability(labels: Mapping[int, list[int]], maker: int) -> float:
    """That two given labels of a maker are drawn."""
    several = sum(len(members) for members in labels.values() if len(members) > 1)
    return -math.log(several) - math.log(len(labels[maker]) - 1)


def parameters_of(model: Model, members: Sequence[int]) -> list[int]:
    """The unobserved choices that would go if a class lost all of its members."""
    scaffold = Builder(model.trace).build(members)
    return [node for node in model.regenerator.choices_that_go(scaffold) if not model.trace.is_observed(node)]


def is_label(trace: Trace, node: int) -> bool:
    """Whether a choice is a draw of a maker of labels."""
    operator, _ = trace.application(node)
    return isinstance(operator, Exchangeable) and operator.record.labels


def _log_probabilities(weight: Weight) -> tuple[float, float]:
    """(of moving, of staying), where moving has this weight over staying."""
    if weight.impossible:
        return (-math.inf, 0.0) if weight.impossible > 0 else (0.0, -math.inf)
    total = weight.total
    log_sum = max(total, 0.0) + math.log1p(math.exp(-abs(total)))
    return total - log_sum, -log_sum


def _single_member(trace: Trace, node: int) -> KernelError:
    reason = "a member that goes over to another class makes or removes choices"
    error = KernelError(f"split_merge moves members between classes, and {reason} here", hint="gibbs, or mh")
    return error.at(*trace.place(*trace.decode(node)))


def _compile_split_merge(program: InferenceProgram, given: ActionForm) -> Part:
    engine = SplitMerge(program.model)
    return given.kernel("splits and merges of classes", engine, Selector("all"), moves=engine.moves)


SPLIT_MERGE = Action(
    "split_merge",
    ("(split_merge SCOPE T)",),
    "T proposals that split a class of the labels in SCOPE, draws of `make_crp`, or merge two: from two labels of one "
    "maker drawn at random, with three restricted Gibbs scans of labels and parameters.",
    _compile_split_merge,
)
