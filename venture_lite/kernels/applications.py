"""What a value leads a datum's rows to: applications of exchangeable procedures, put in, taken out or weighed.

Both classes here are what the functions of a row's shape (`kernels/follow.py`) call for assignments over the statistics
alone (`deferred.py`).
"""

from __future__ import annotations

import math
from typing import Any

from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import density_of
from venture_lite.kernels.preview import Drawable, Preview, Unplanned
from venture_lite.kernels.reassign import Reassignments
from venture_lite.trace.runtime import Exchangeable


class Components:
    """Finds what memoized procedures give, and puts applications in or takes them out."""

    def __init__(self, plans: Reassignments, draws: Drawable) -> None:
        self._plans = plans
        self._draws = draws
        self._results: dict[Any, Any] = {}
        self._preview = Preview(plans.previews.apart(), draws)
        self.put_in = True
        # changes of statistics
        self._updates = 0

    def clear(self) -> None:
        self._plans.model.trace.statistics.updates += self._updates
        self._updates = 0
        self._results.clear()
        self._preview = Preview(self._plans.previews.apart(), self._draws)

    def call(self, site: int, row: int, operator: Any, *values: Any) -> Any:
        key = (operator, *values)
        try:
            return self._results[key]
        except KeyError:
            found = self._results[key] = self._preview.found(operator, *values)
            return found
        except TypeError:
            raise Unplanned from None

    def absorb(self, *_: Any) -> None:
        """What has no statistics stays as it is."""

    def made(self, node: int, operator: Any, value: Any, observed: bool, *inputs: Any) -> None:
        if self.put_in:
            operator.state.add(value, *inputs)
        else:
            operator.state.remove(value, *inputs)
        self._updates += 1


class CandidateWeight:
    """Adds up what absorbs a candidate."""

    def __init__(self, components: Components, model: Model) -> None:
        self._trace = model.trace
        self._regenerator = model.regenerator
        self.call = components.call
        self.total = 0.0
        # procedure -> application of it that a second one of the same datum is weighed after
        self._met: dict[Exchangeable, Any] = {}
        self._added: list[tuple[Exchangeable, Any]] = []

    def absorb(self, node: int, operator: Any, value: Any, observed: bool, *arguments: Any) -> None:
        if len(arguments) < len(operator.arguments):
            arguments += tuple(argument.default for argument in operator.arguments[len(arguments) :])
        self._count(density_of(self._trace, node, operator, arguments, value), observed)

    def made(self, node: int, operator: Any, value: Any, observed: bool, *inputs: Any) -> None:
        if operator.__class__ is not Exchangeable:
            raise Unplanned
        met = self._met
        if operator in met:
            earlier = met[operator]
            self._added.append((operator, operator.state.add(earlier[0], *earlier[1])))
        met[operator] = (value, inputs)
        if inputs:
            self._count(density_of(self._trace, node, operator, inputs, value), observed)
            return
        term = operator.state.log_predictive(value)
        if not term < math.inf:
            raise Unplanned
        self._count(term, observed)

    def _count(self, term: float, observed: bool) -> None:
        self.total += term * self._regenerator.power if observed else term

    def take_back(self) -> None:
        self._met.clear()
        if self._added:
            for operator, token in reversed(self._added):
                operator.restore(token)
            self._added.clear()
