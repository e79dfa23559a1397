"""Transitions of fast ways compared with the interpreter's, from one state and with the same random numbers.

The interpreter's transition is made first and taken back; the fast one stands if both agree. Both must have weighed
alike, within the rounding of sums in another order, and come to the same decision, the same values and the same state
of the generator. A decision may differ where the weight lies so close to what it is compared with that rounding
decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from venture_lite.interpreter.addresses import address
from venture_lite.interpreter.ancestry import name_of_choice
from venture_lite.interpreter.answers import FAILED, Differs, is_near, magnitude, parts_of
from venture_lite.interpreter.kernel import BlockKernel, Decide, Drawing
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder, absorbing_count
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.weights import Weight
from venture_lite.trace.table import ROW_MASK
from venture_lite.values import Symbol

TOLERANCE = 1e-9
"""Of the sum of the magnitudes of a weight's terms."""
FEW_CHOICES = 100
"""In a trace of at most so many every choice and the log score are compared after each compared transition, else what
the block's transition renews."""
MOST_TOGETHER = 8
"""Blocks of one compared call that moves several."""


class Witness:
    """A decision that notes what it was asked. Mutable."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        # the weights, and what was decided
        self.weights: list[Weight] = []
        self.decisions: list[bool] = []

    def __call__(self, weight: Weight) -> bool:
        # who decides may add to the weight
        self.weights.append(Weight(weight.impossible, weight.total))
        self.decisions.append(self._decide(weight))
        return self.decisions[-1]

    def taken(self) -> tuple[list[Weight], list[bool]]:
        """What was noted since this was last asked."""
        found = self.weights, self.decisions
        self.weights, self.decisions = [], []
        return found


@dataclass(slots=True)
class Outcome:
    """What one way came to."""

    moved: bool = False
    error: Exception | None = None
    weights: list[Weight] = field(default_factory=list)
    decisions: list[bool] = field(default_factory=list)
    # the values of what the transition renews, by node; of all unobserved choices, by address; the log score
    renewed: dict[int, Any] = field(default_factory=dict)
    values: dict[Any, Any] = field(default_factory=dict)
    score: Weight = field(default_factory=Weight)
    # the generator's state
    generator: Any = None


Taken = Callable[[], tuple[list[Weight], list[bool]]]
"""The weights and decisions of the last transition."""


def weights_of(kernel: Drawing) -> Taken:
    """Those of a drawing's candidates, of which only the differences mean anything."""
    return lambda: ([weight.minus(kernel.weights[0]) for weight in kernel.weights], [])


class Uncompared(Exception):
    """A fast way that is to be compared with the interpreter first; nothing was done."""

    def __init__(self, key: Hashable) -> None:
        super().__init__(key)
        self.key = key


class Check:
    """Compares transitions of one kernel's fast ways with those of its interpreted kernel."""

    def __init__(
        self, interpreted: BlockKernel, name: str, taken: Taken | None = None, tolerance: float = TOLERANCE
    ) -> None:
        """`name` is for messages, `taken` the weights and decisions of the interpreted kernel's last transition. With a
        tolerance above TOLERANCE values that are drawn may differ by it, too."""
        self._model: Model = interpreted.model
        self._interpreted, self._name, self._taken = interpreted, name, taken
        self._tolerance = tolerance
        self._answers = interpreted.model.answers

    def believes(self, key: Hashable) -> bool:
        """True if a fast way may be used; false if a transition of this key differed from the interpreter's. Raises
        Uncompared where the next one is to be compared."""
        answers = self._answers
        left = answers.left(key)
        if (left > 0 or answers.always) and not answers.is_comparing:
            raise Uncompared(key)
        return left != FAILED

    def step(self, key: Hashable, nodes: list[int], at: Selection, fast: Callable[[], bool], taken: Taken) -> bool:
        """One transition of a block by a fast way, compared; the interpreter's where they differ."""
        (moved,) = self.several(key, [nodes], [at.key], at, lambda _: [fast()], taken)
        return moved

    def step_if_any(
        self, nodes: list[int], at: Selection, fast: Callable[[list[int]], bool | None], taken: Taken | None = None
    ) -> bool | None:
        """A transition by a fast way, None where the block has none: it is compared in checked sessions alone, since
        the interpreter's takes long. What the way computes is compared by itself in the others."""
        key, answers, generator = (self._name, nodes[0] >> 32), self._answers, self._model.trace.rng.bit_generator
        if answers.always and answers.due(key):
            blocks, made = [nodes], lambda _: [moved for moved in [fast(nodes)] if moved is not None]
            found = self.several(key, blocks, [at.key], at, made, taken)
            return found[0] if found else None
        before, regenerator = generator.state, self._model.regenerator
        regenerations = regenerator.regenerations
        try:
            moved = answers.believed(key, self._name, lambda: fast(nodes), lambda _: None)
            if moved is not None:
                regenerator.regenerations = regenerations
            return moved
        except Differs:
            generator.state = before
            return None

    def several(
        self, key: Hashable, blocks: Sequence[list[int]], keys: Sequence[Any], at: Selection,
        fast: Callable[[Sequence[list[int]]], list[bool]], taken: Taken | None = None,
    ) -> list[bool]:  # fmt: skip
        """Transitions of some blocks, one after the other, of which a fast way makes the first ones in one call:
        whether each of these moved. Without `taken` weights are not compared."""
        model, generator = self._model, self._model.trace.rng.bit_generator
        before, blocks = generator.state, blocks[:MOST_TOGETHER]
        regenerations = model.regenerator.regenerations
        names = [name_of_choice(model.trace, node) for nodes in blocks for node in nodes]
        scaffolds = [Builder(model.trace).build(nodes) for nodes in blocks]
        renewed = [node for each in scaffolds for node in (*each.principals, *each.pending)]
        rows = absorbing_count(model.trace, scaffolds[0])
        is_few = self._answers.always or model.trace.default.block_count() <= FEW_CHOICES
        expected: list[Outcome] = []
        with self._answers.comparing():
            with model.transaction():
                for nodes, at.key in zip(blocks, keys, strict=False):
                    step = partial(self._interpreted_step, nodes, at)
                    expected.append(self._made(step, taken and self._taken, renewed, is_few))
                    if expected[-1].error is not None:
                        break
            generator.state, at.key = before, keys[0]
            with model.on_probation() as keep:
                moves: list[bool] = []

                def fast_steps() -> list[bool]:
                    moves.extend(fast(blocks))
                    return moves

                found = self._made(fast_steps, taken, renewed, is_few)
                if not moves and found.error is None:
                    return []
                difference = self._difference(expected[: len(moves) or 1], moves, found, blocks)
                if difference is None:
                    keep()
        if self._answers.judge(key, f"{self._name} transitions of {', '.join(dict.fromkeys(names))}", difference, rows):
            # what is compared is made by the fast way
            model.regenerator.regenerations = regenerations
            if found.error is not None:
                raise found.error
            return moves
        generator.state = before
        return self._interpreted_step(blocks[0], at)

    def _interpreted_step(self, nodes: list[int], at: Selection) -> list[bool]:
        return [self._interpreted.step(nodes, at)]

    def _made(
        self, step: Callable[[], list[bool]], taken: Taken | None, renewed: Sequence[int], is_few: bool
    ) -> Outcome:
        made, trace = Outcome(), self._model.trace
        try:
            made.moved = step()[-1:] == [True]
        except Exception as error:
            made.error = error
        if taken is not None:
            made.weights, made.decisions = taken()
        if made.error is None:
            made.renewed = {node: trace.value(node) for node in renewed if self._is_alive(node)}
            if is_few:
                made.values = {address(trace, node): trace.value(node) for node in trace.default.everything()}
                made.score = self._model.log_score()
        made.generator = trace.rng.bit_generator.state
        return made

    def _is_alive(self, node: int) -> bool:
        trace = self._model.trace
        return bool(trace.tables[trace.decode(node)[0].index].live[node & ROW_MASK])

    def _difference(
        self, expected: Sequence[Outcome], moves: Sequence[bool], found: Outcome, blocks: Sequence[list[int]]
    ) -> str | None:
        """What the two ways differ in, and how; None where they agree."""
        last = expected[-1]
        if type(last.error) is not type(found.error):
            return f"errors, {last.error!r} and {found.error!r}"
        if found.error is not None:
            # what was weighed before is of no draw
            return None
        if [each.moved for each in expected[:-1]] != list(moves[:-1]):
            return f"which blocks move, {[each.moved for each in expected]} and {list(moves)}"
        difference = self._difference_of_weights(last, found, blocks[0])
        if difference is not None:
            return difference or None
        if last.generator != found.generator:
            return "the random numbers that they draw"
        if last.moved != found.moved:
            return f"whether the block moves, {last.moved} and {found.moved}"
        for one, other in ((last.renewed, found.renewed), (last.values, found.values)):
            if (different := _different(one, other, self._tolerance)) is not None:
                return f"values, {one.get(different)} and {other.get(different)}"
        if not self._agree(last.score, found.score, blocks[0]):
            return f"log scores, {last.score} and {found.score}"
        return None

    def _difference_of_weights(self, expected: Outcome, found: Outcome, nodes: list[int]) -> str | None:
        """The same of weights and decisions; empty where rounding alone lets what follows differ."""
        if len(expected.weights) != len(found.weights):
            return f"how many weights they have, {expected.weights} and {found.weights}"
        for one, other in zip(expected.weights, found.weights, strict=True):
            if not self._agree(one, other, nodes):
                return f"log weights, {one} and {other}"
        if expected.decisions == found.decisions:
            return None
        # with one random number, rounding decides where the weights are not the same
        are_same = all(a.total == b.total for a, b in zip(expected.weights, found.weights, strict=True))
        return f"decisions, {expected.decisions} and {found.decisions}" if are_same else ""

    def _agree(self, one: Weight, other: Weight, nodes: list[int]) -> bool:
        if min(one.impossible, other.impossible) > 0:
            # further from possible than the present state: neither is taken, whatever else it weighs
            return True
        if one.impossible != other.impossible:
            return False
        if one.total == other.total or (math.isnan(one.total) and math.isnan(other.total)):
            return True
        # the magnitudes of the terms are at least this
        size = abs(one.total) + abs(other.total)
        difference = abs(one.total - other.total)
        near = self._tolerance
        return difference <= near * size or difference <= near * (size + magnitude(self._model, nodes))


def _different(one: dict[Any, Any], other: dict[Any, Any], tolerance: float) -> Any:
    """A key whose value is not the same; None if there is none."""
    for node in one.keys() | other.keys():
        if node not in one or node not in other or not _are_alike(one[node], other[node], tolerance):
            return node
    return None


def _are_alike(one: Any, other: Any, tolerance: float) -> bool:
    """True if two values are the same but for rounding; of procedures made anew, if their kind is."""
    parts, others = parts_of(one), parts_of(other)
    if parts is not None and others is not None and type(one) is type(other):
        return len(parts) == len(others) and all(
            _are_alike(*pair, tolerance) for pair in zip(parts, others, strict=True)
        )
    if isinstance(one, (int, float, str, Symbol)):
        return is_near(one, other, tolerance)
    return type(one) is type(other)
