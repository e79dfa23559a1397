"""`gibbs` of single choices of finite support by forms, where no candidate changes structure.

The form of a transition that is given its value weighs each candidate against the present state; one of them is drawn,
and the form puts it in place. Nothing is drawn before all are weighed, so that the interpreter can take over from any
of them with the generator as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from venture_lite.interpreter.candidates import MOST_CANDIDATES, draw_candidate, present_first, support_of
from venture_lite.interpreter.kernel import Move
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import NEVER, Weight
from venture_lite.kernels.formed import BlockForm, Forms
from venture_lite.kernels.python import Left
from venture_lite.trace.trace import Trace


class GivenValue:
    """The proposal of a value that is set before. Mutable."""

    counts = True

    def __init__(self) -> None:
        self.value: Any = None

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """The old state does not matter."""

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        return self.value, 0.0


class Weighing:
    """The decision that notes the weight it is asked about, and refuses until it is told to take. Mutable."""

    def __init__(self) -> None:
        # None where nobody asked
        self.weight: Weight | None = None
        self.takes = False

    def __call__(self, weight: Weight) -> bool:
        self.weight = weight
        return self.takes


class FormedGibbs:
    """Draws of single choices by their forms."""

    def __init__(self, model: Model) -> None:
        self.model = model
        # absorbing choices weighed
        self.rows = 0
        # of the candidates of the last draw, against the present state
        self.weights: list[Weight] = []
        self._given, self._weighing = GivenValue(), Weighing()
        self._forms = Forms(model, Move(self._given, self._weighing, refuses_impossible=True))

    def has_form(self, node: int) -> bool:
        """Whether the choice's moves can have a form, in this state."""
        return self._forms.can_lower([node])

    def step(self, node: int) -> bool | None:
        """Whether the choice changed; None where there is no form, and nothing was done."""
        model = self.model
        form = not model.transactions and self._forms.of([node])
        if not isinstance(form, BlockForm):
            return None
        operator, arguments = model.trace.application(node)
        support = support_of(operator, arguments)
        if support is None or len(support) > MOST_CANDIDATES:
            return None
        values = present_first(operator, support, model.trace.value(node))
        weights = [Weight()]
        for value in values[1:]:
            weight = self._weighed(form, value)
            if weight is None:
                return None
            weights.append(weight)
        self.rows += form.terms * len(values)
        self.weights = weights
        chosen = draw_candidate(weights, model.trace.rng.random())
        if chosen:
            self._put(form, values[chosen])
        return chosen > 0

    def _weighed(self, form: BlockForm, value: Any) -> Weight | None:
        """Of a candidate against the present state; None where the interpreter is to weigh."""
        self._given.value, self._weighing.weight = value, None
        if isinstance(form.transition(self.model.trace.journal), Left):
            return None
        # a form does not ask about what is impossible
        return self._weighing.weight or Weight(NEVER)

    def _put(self, form: BlockForm, value: Any) -> None:
        self._given.value, self._weighing.takes = value, True
        try:
            form.transition(self.model.trace.journal)
        finally:
            self._weighing.takes = False
