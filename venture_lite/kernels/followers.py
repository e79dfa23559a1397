"""What the functions of a row's shape (`follow.py`) call while a value is followed through rows of the trace, or over
statistics alone (`deferred.py`).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import OUTSIDE, Weight, density_of
from venture_lite.kernels.preview import Added, Drawable, Preview, Unplanned
from venture_lite.procedures.checks import completed
from venture_lite.procedures.record import Random
from venture_lite.trace.keys import memo_key
from venture_lite.trace.runtime import Exchangeable, Memo
from venture_lite.trace.table import ROW_MASK

if TYPE_CHECKING:
    from venture_lite.kernels.reassign import Reassignments


class Finder:
    """Finds what a candidate's calls give."""

    def __init__(self, plans: Reassignments, draws: Drawable) -> None:
        self._trace = plans.model.trace
        self._previews = plans.previews
        self._draws = draws
        # (memoized procedure, arguments ...) -> result of a family that exists, of what may be kept
        self._known = self._kept = plans.known_results()
        # packed rows of the families that the candidate may not lead to
        self._forbidden: Collection[int] = ()
        # of the families that do not exist, if there are any
        self.preview: Preview | None = None
        self.added: Added = []

    def begin(self, forbidden: Collection[int] = ()) -> None:
        """The next candidate, which may not lead to some families."""
        self.preview = None
        self._forbidden = forbidden
        self._known = {} if forbidden else self._kept

    def call(self, site: int, row: int, operator: Any, *values: Any) -> Any:
        try:
            return self._known[operator, values]
        except (KeyError, TypeError):
            return self._called(operator, values)

    def _called(self, operator: Any, values: tuple[Any, ...]) -> Any:
        if operator.__class__ is not Memo:
            raise Unplanned
        key = memo_key(values)
        found = operator.entries.get(key)
        if found is not None:
            body = operator.procedure.code
            if self._forbidden and body.index << 32 | found in self._forbidden:
                raise Unplanned
            result = self._trace.result(body, found)
            if all(value.__class__ is int for value in values):
                self._known[operator, values] = result
            return result
        if self.preview is None:
            self.preview = Preview(self._previews, self._draws, self.added)
        return self.preview.result(operator, key, values)

    def absorb(self, *_: Any) -> None:
        """Not weighed."""

    def made(self, node: int, operator: Any, value: Any, observed: bool, *inputs: Any) -> None:
        """Not weighed."""


class Components(Finder):
    """Finds what calls give while no row changes, and puts applications in statistics or takes them out."""

    def __init__(self, plans: Reassignments, draws: Drawable) -> None:
        super().__init__(plans, draws)
        self.put_in = True
        # changes of statistics
        self._updates = 0
        self.clear()

    def clear(self) -> None:
        self._trace.statistics.updates += self._updates
        self._updates = 0
        self._known = {}
        # without a place for what is added to statistics, none of its components draws from them
        self._components = Preview(self._previews.apart(), self._draws)

    def _called(self, operator: Any, values: tuple[Any, ...]) -> Any:
        try:
            found = self._known[operator, values] = self._components.found(operator, *values)
        except TypeError:
            raise Unplanned from None
        return found

    def made(self, node: int, operator: Any, value: Any, observed: bool, *inputs: Any) -> None:
        if self.put_in:
            operator.state.add(value, *inputs)
        else:
            operator.state.remove(value, *inputs)
        self._updates += 1


class Weigher:
    """Weighs what absorbs a candidate; what its calls give is found by another."""

    def __init__(self, model: Model, found: Finder) -> None:
        self._trace = model.trace
        self._regenerator = model.regenerator
        self.call = found.call
        self._added = found.added
        self._weight = Weight()
        # procedure -> application of it that a second one is to be weighed after
        self._met: dict[Exchangeable, tuple[Any, tuple[Any, ...]]] = {}

    def begin(self) -> Weight:
        """Of the next candidate; grows."""
        self._met.clear()
        self._weight = Weight()
        return self._weight

    def absorb(self, node: int, operator: Any, value: Any, observed: bool, *arguments: Any) -> None:
        if not isinstance(operator, Random):
            raise Unplanned
        self._count(density_of(self._trace, node, operator, completed(operator, arguments), value), observed)

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
        if term == -math.inf:
            self._weight.impossible += 1 if observed else OUTSIDE
        else:
            self._weight.total += term * self._regenerator.power if observed else term

    def end(self) -> None:
        """All that absorbs was met."""

    def take_back(self) -> None:
        """Statistics are again as before the candidate."""
        restore(self._added)


def restore(changes: Added) -> None:
    """Take statistics back to before the changes, which are forgotten."""
    while changes:
        operator, token = changes.pop()
        operator.restore(token)


class JointWeigher(Weigher):
    """Weighs the applications of each exchangeable procedure together, by the joint density of its statistics. Only
    for a likelihood that is not tempered."""

    def __init__(self, model: Model, found: Finder) -> None:
        super().__init__(model, found)
        # procedure -> values that it would give
        self._together: dict[Exchangeable, list[Any]] = {}

    def begin(self) -> Weight:
        self._together.clear()
        return super().begin()

    def made(self, node: int, operator: Any, value: Any, observed: bool, *inputs: Any) -> None:
        if operator.__class__ is not Exchangeable:
            raise Unplanned
        # a joint density need not know that a value is impossible
        if inputs or operator.state.log_predictive(value) == -math.inf:
            raise Unplanned
        self._together.setdefault(operator, []).append(value)

    def end(self) -> None:
        for operator, values in self._together.items():
            state = operator.state
            before = state.log_joint()
            for value in values:
                self._added.append((operator, state.add(value)))
            term = state.log_joint() - before
            if not math.isfinite(term):
                raise Unplanned
            self._weight.total += term


class Mover:
    """Redirects users and edges, and enters applications into the statistics of their new makers."""

    def __init__(self, model: Model) -> None:
        self._trace = model.trace

    def store(self, column: Any, row: int, value: Any) -> None:
        self._trace.journal.put(column, row, value)

    def call(self, site: int, row: int, operator: Any, *values: Any) -> Any:
        trace = self._trace
        code, slot = trace.program.site_code[site], trace.program.site_slot[site]
        table, body = trace.tables[code.index], operator.procedure.code
        old, new = table.edges[slot].view[row], operator.entries.get(memo_key(values))
        if old != (packed := body.index << 32 | new):
            trace.users.remove(trace.program.codes[old >> 32], old & ROW_MASK, site, row)
            trace.users.add(body, new, site, row)
            trace.journal.put(table.edges[slot], row, packed)
        result = trace.result(body, new)
        trace.journal.put(trace.column(site), row, result)
        return result

    def made(self, node: int, operator: Exchangeable, value: Any, observed: bool, *inputs: Any) -> None:
        self._trace.statistics.incorporate(operator, value, inputs)
