"""Transitions made twice, by the interpreter and by the fast ways, from one state and with the same random numbers.

The interpreter's is taken back, the other stands. Both must have weighed alike, within the rounding of sums in another
order, and come to the same decision, the same values and the same state of the generator. A decision may differ where
the weight lies so close to what it is compared with that rounding decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from venture_lite.errors import InternalError
from venture_lite.interpreter.addresses import address
from venture_lite.interpreter.ancestry import name_of_choice
from venture_lite.interpreter.kernel import BlockKernel, Course, Decide, Drawing
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.weights import Weight, log_density
from venture_lite.trace.table import ROW_MASK
from venture_lite.values import equal

TOLERANCE = 1e-9
"""Of the sum of the magnitudes of a weight's terms."""


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
    # the value of each unobserved choice, by address, and the log score
    values: dict[Any, Any] = field(default_factory=dict)
    score: Weight = field(default_factory=Weight)
    # the generator's state
    generator: Any = None


class CheckedKernel(Drawing):
    """A kernel with fast ways, each of whose transitions the interpreter makes first; `name` is for messages. Where
    both decide by one witness, their weights are what it saw, else those of a drawing's candidates."""

    def __init__(self, compiled: BlockKernel, interpreted: BlockKernel, name: str, witness: Witness | None) -> None:
        super().__init__(compiled.model)
        self._compiled, self._interpreted, self._name, self._witness = compiled, interpreted, name, witness

    @property
    def rows(self) -> int:
        return self._compiled.rows

    def refuse(self, nodes: list[int]) -> None:
        self._compiled.refuse(nodes)

    def course(self, nodes: list[int], at: Selection) -> Course:
        return self._compiled.course(nodes, at)

    def step(self, nodes: list[int], at: Selection) -> bool:
        generator = self.model.trace.rng.bit_generator
        before, names = generator.state, [name_of_choice(self.model.trace, node) for node in nodes]
        with self.model.transaction():
            expected = self._made(self._interpreted, nodes, at)
        generator.state = before
        found = self._made(self._compiled, nodes, at)
        difference = self._difference(expected, found, nodes)
        if difference is not None:
            block = ", ".join(dict.fromkeys(names))
            raise InternalError(f"{self._name} of {block}: interpreted and compiled transitions differ in {difference}")
        if found.error is not None:
            raise found.error
        if isinstance(self._compiled, Drawing):
            self.restructured = self._compiled.restructured
        return found.moved

    def _made(self, kernel: BlockKernel, nodes: list[int], at: Selection) -> Outcome:
        made, trace = Outcome(), self.model.trace
        try:
            made.moved = kernel.step(nodes, at)
        except Exception as error:
            made.error = error
        if self._witness is not None:
            made.weights, made.decisions = self._witness.taken()
        elif isinstance(kernel, Drawing):
            # only the differences between candidates mean anything
            made.weights = [weight.minus(kernel.weights[0]) for weight in kernel.weights]
        if made.error is None:
            made.values = {address(trace, node): trace.value(node) for node in trace.default.everything()}
            made.score = self.model.log_score()
        made.generator = trace.rng.bit_generator.state
        return made

    def _difference(self, expected: Outcome, found: Outcome, nodes: list[int]) -> str | None:
        """What the two ways differ in, and how; None where they agree."""
        if type(expected.error) is not type(found.error):
            return f"errors, {expected.error!r} and {found.error!r}"
        if len(expected.weights) != len(found.weights):
            return f"how many weights they have, {expected.weights} and {found.weights}"
        for one, other in zip(expected.weights, found.weights, strict=True):
            if not self._agree(one, other, nodes):
                return f"log weights, {one} and {other}"
        if expected.decisions != found.decisions:
            # with one random number, rounding decides where the weights are not the same
            are_same = all(a.total == b.total for a, b in zip(expected.weights, found.weights, strict=True))
            return f"decisions, {expected.decisions} and {found.decisions}" if are_same else None
        if expected.generator != found.generator:
            return "the random numbers that they draw"
        if expected.moved != found.moved or not _are_equal(expected.values, found.values):
            return f"values, {expected.values} and {found.values}"
        if not self._agree(expected.score, found.score, nodes):
            return f"log scores, {expected.score} and {found.score}"
        return None

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
        return difference <= TOLERANCE * size or difference <= TOLERANCE * (size + self._magnitude(nodes))

    def _magnitude(self, nodes: list[int]) -> float:
        """The sum of the magnitudes of the terms that a transition weighs, in this state."""
        trace = self.model.trace
        alive = [node for node in nodes if trace.tables[trace.decode(node)[0].index].live[node & ROW_MASK]]
        scaffold = Builder(trace).build(alive)
        rows = [node for site in scaffold.groups for node in trace.nodes_of(site)]
        return sum(abs(log_density(trace, node)) for node in (*scaffold.principals, *scaffold.absorbing, *rows))


def _are_equal(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
