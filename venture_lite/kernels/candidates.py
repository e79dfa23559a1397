"""`gibbs` of choices of finite support by forms, where no candidate changes structure.

The candidates are weighed together where there are many and their form says how (`candidate_columns.py`), else one
after the other: the form of a transition that is given its value weighs each against the present state. One of them is
drawn, and the form puts it in place. Nothing is drawn before all are weighed, so that the interpreter can take over
from any of them with the generator as it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from venture_lite.errors import VentureError
from venture_lite.interpreter.answered_columns import difference_of_weights
from venture_lite.interpreter.answers import Differs, places
from venture_lite.interpreter.candidates import (
    FEW,
    MOST_CANDIDATES,
    draw_candidate,
    draw_total,
    present_first,
    support_of,
)
from venture_lite.interpreter.comparison import Check
from venture_lite.interpreter.kernel import Interpreted, Move
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.references import NUMBERS
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.shape import Binding
from venture_lite.interpreter.sources import application_nodes
from venture_lite.interpreter.weights import NEVER, Weight
from venture_lite.kernels.candidate_columns import CandidateColumns, lower_candidates
from venture_lite.kernels.formed import USES, BlockForm, Formed, Forms
from venture_lite.kernels.lower import NoForm
from venture_lite.kernels.python import Left
from venture_lite.trace.trace import Trace
from venture_lite.values import equal

MANY = 8
"""Of more candidates than this a draw is as many transitions as pay for a form."""
EACH, MOST_TERMS, LEAST = 6, 60, 180
"""Candidates are weighed together where that costs less: one of them alone takes the time of `EACH` absorbing choices
and that of those it weighs, by columns no more than of `MOST_TERMS`; all together take the time of `LEAST` (measured
with 4, 8 and 16 candidates over 5, 20, 60 and 1,000 rows)."""
COMPARED = 16
"""Weights of many values that are compared at once."""
MOST_FAILURES = 4
"""Columns that could not weigh so often are left alone."""


class GivenValue:
    """The proposal of values that are set before. Mutable."""

    counts = True

    def __init__(self) -> None:
        # node -> its value
        self.values: dict[int, Any] = {}

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """The old state does not matter."""

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        return self.values[node], 0.0


class Weighing:
    """The decision that notes the weight it is asked about, and refuses until it is told to take. Mutable."""

    def __init__(self) -> None:
        # None where nobody asked
        self.weight: Weight | None = None
        self.takes = False

    def __call__(self, weight: Weight) -> bool:
        self.weight = weight
        return self.takes


@dataclass(eq=False)
class ShapeColumns:
    """What weighs the candidates of one shape's blocks together; None where its form says no way."""

    columns: CandidateColumns | None
    failures: int = 0


class FormedGibbs:
    """Draws of blocks by their forms."""

    def __init__(self, model: Model, check: Check) -> None:
        self.model, self._check = model, check
        # absorbing choices weighed
        self.rows = 0
        # of the candidates of the last draw, against the present state
        self._weights: list[Weight] = []
        self._totals: np.ndarray | None = None
        self._given, self._weighing = GivenValue(), Weighing()
        self._move = Move(self._given, self._weighing, refuses_impossible=True)
        self._forms = Forms(model, self._move)
        self._together: WeakKeyDictionary[Formed, ShapeColumns] = WeakKeyDictionary()
        # the rows of places and of loops
        self._rows: WeakKeyDictionary[BlockForm, list[Any]] = WeakKeyDictionary()

    def has_form(self, nodes: Sequence[int]) -> bool:
        """Whether a block's moves can have a form, in this state."""
        return self._forms.can_lower(nodes) and are_independent(self.model.trace, nodes)

    def step(self, nodes: Sequence[int], at: Selection) -> bool | None:
        """Whether the block changed; None where there is no form, and nothing was done. Raises Uncompared."""
        model = self.model
        form = not model.transactions and self._forms.of(nodes)
        if form is True and (support := support_of(*model.trace.application(nodes[0]))) is not None:
            # a look at many candidates is as many transitions
            form = len(support) > MANY and self._forms.of(nodes, USES)
        if not isinstance(form, BlockForm):
            return None
        shape = form.formed.shape
        principals = [form.node(place) for place in shape.order if place in shape.principals]
        many = self._many_whole_numbers(principals)
        if many is not None and (chosen := self._drawn_of_many(form, principals[0], many)) is not None:
            if chosen:
                self._put(form, principals, (int(many[chosen]),), at)
            return chosen > 0
        candidates = self._candidates(principals)
        if candidates is None or not self._check.believes(form.formed):
            return None
        self._totals = weights = None
        if len(candidates) * (EACH + min(form.terms, MOST_TERMS)) > LEAST:
            weights = self._weighed_together(form, principals, candidates)
        if weights is None:
            weights = self._weighed_apart(form, principals, candidates)
        if weights is None:
            return None
        self.rows += form.terms * len(candidates)
        self._weights = weights
        chosen = draw_candidate(weights, model.trace.rng.random())
        if chosen:
            self._put(form, principals, candidates[chosen], at)
        return chosen > 0

    def weights(self) -> list[Weight]:
        """Of the candidates of the last draw, against the present state."""
        return self._weights if self._totals is None else _as_weights(self._totals)

    def _many_whole_numbers(self, principals: Sequence[int]) -> np.ndarray | None:
        """What one choice could be (n,), the present value first, where that is a range of many whole numbers."""
        if len(principals) != 1:
            return None
        (node,) = principals
        trace = self.model.trace
        support, old = support_of(*trace.application(node)), trace.value(node)
        if not isinstance(support, range) or not FEW < len(support) <= MOST_CANDIDATES or old not in support:
            return None
        if old.__class__ is not int or trace.column(node >> 32).kind is not int:
            return None
        at, every = support.index(old), np.arange(support.start, support.stop, support.step)
        return np.concatenate((every[at : at + 1], every[:at], every[at + 1 :]))

    def _drawn_of_many(self, form: BlockForm, node: int, values: np.ndarray) -> int | None:
        """The place of the value that is drawn, of these (n,); None where columns have no say. A few of the weights are
        compared with the interpreter's first; in a checked session all are. Raises Uncompared."""
        answers = self.model.answers
        if answers.always and not self._check.believes(form.formed):
            return None

        def difference(totals: np.ndarray | VentureError | None) -> str | None:
            if not isinstance(totals, np.ndarray):
                return None
            of = dict.fromkeys([*places(len(values), COMPARED), int(totals.argmax())])
            found = [int(values[at]) for at in of], [[float(totals[at]) for at in of]]
            return difference_of_weights(self.model, [(node, *found)], counts=True)

        way, weigh = "weights of many values", partial(self._totals_together, form, [values])
        try:
            totals = answers.believed(self._shape_columns(form), way, weigh, difference)
        except Differs:
            return None
        self._totals = totals
        if totals is None:
            return None
        self.rows += form.terms * len(values)
        return draw_total(totals, self.model.trace.rng.random())

    def _candidates(self, principals: Sequence[int]) -> list[tuple[Any, ...]] | None:
        """What the choices of a block could be, in the order in which the interpreter enumerates them; None where that
        is not one list for each."""
        trace, supports = self.model.trace, []
        if not are_independent(trace, principals):
            return None
        count = 1
        for node in principals:
            operator, arguments = trace.application(node)
            support = support_of(operator, arguments)
            if support is None:
                return None
            count *= len(support)
            if count > MOST_CANDIDATES:
                return None
            supports.append((support, present_first(operator, support, trace.value(node))))
        if len(supports) == 1:
            return [(value,) for value in supports[0][1]]
        return list(_paths(supports))

    def _weighed_together(
        self, form: BlockForm, principals: Sequence[int], candidates: Sequence[tuple[Any, ...]]
    ) -> list[Weight] | None:
        """Of the candidates against the present state, the first of them, by columns; None where these have no say."""
        columns = self._columns(principals, candidates)
        totals = None if columns is None else self._totals_together(form, columns)
        return None if totals is None else _as_weights(totals)

    def _totals_together(self, form: BlockForm, columns: Sequence[np.ndarray]) -> np.ndarray | None:
        """The same of candidates (n,) for each choice, as log weights, -inf for those that are impossible."""
        together = self._shape_columns(form)
        if together.columns is None or together.failures == MOST_FAILURES:
            return None
        rows = self._rows.get(form)
        if rows is None:
            tables, site_code = self.model.trace.tables, self.model.trace.program.site_code
            groups = [tables[site_code[site].index].rows() for site in form.formed.shape.groups]
            users = [users.rows.array().copy() for users in form.users]
            rows = self._rows[form] = [*form.rows, *groups, *users]
        totals = together.columns.weigh(rows, columns)
        if totals is None or totals[0] == -math.inf:
            together.failures += 1
            return None
        together.failures = 0
        return np.asarray(totals - totals[0])

    def _shape_columns(self, form: BlockForm) -> ShapeColumns:
        found = self._together.get(form.formed)
        if found is None:
            found = self._together[form.formed] = ShapeColumns(self._lowered(form))
        return found

    def _lowered(self, form: BlockForm) -> CandidateColumns | None:
        shape = form.formed.shape
        nodes = [form.node(place) for place in range(len(shape.sites))]
        try:
            lowered = lower_candidates(self.model.trace, self._given, shape, Binding(nodes, form.users))
            return CandidateColumns(lowered, len(nodes))
        except NoForm:
            return None

    def _columns(self, principals: Sequence[int], candidates: Sequence[tuple[Any, ...]]) -> list[np.ndarray] | None:
        """The values of each choice (n,); None where they are not what its column holds."""
        found = []
        for node, values in zip(principals, zip(*candidates, strict=True), strict=True):
            kind = self.model.trace.column(node >> 32).kind
            if kind not in NUMBERS or any(value.__class__ is not kind for value in values):
                return None
            found.append(np.array(values))
        return found

    def _weighed_apart(
        self, form: BlockForm, principals: Sequence[int], candidates: Sequence[tuple[Any, ...]]
    ) -> list[Weight] | None:
        """The same one by one; None where the interpreter is to weigh."""
        weights = [Weight()]
        for values in candidates[1:]:
            self._given.values, self._weighing.weight = dict(zip(principals, values, strict=True)), None
            if isinstance(form.transition(self.model.trace.journal), Left):
                return None
            # a form does not ask about what is impossible
            weights.append(self._weighing.weight or Weight(NEVER))
        return weights

    def _put(self, form: BlockForm, principals: Sequence[int], values: tuple[Any, ...], at: Selection) -> None:
        if self.model.trace.journal.is_held:
            form.keep_stored(self.model.trace.journal)
        self._given.values, self._weighing.takes = dict(zip(principals, values, strict=True)), True
        try:
            if isinstance(form.transition(self.model.trace.journal), Left):
                Interpreted(self.model, self._move).step(list(principals), at)
        finally:
            self._weighing.takes = False


def _as_weights(totals: np.ndarray) -> list[Weight]:
    return [Weight(0, total) if total > -math.inf else Weight(NEVER) for total in totals.tolist()]


def are_independent(trace: Trace, principals: Sequence[int]) -> bool:
    """Whether what the choices of a block can be does not depend on the others."""
    if len(principals) == 1:
        return True
    moving = Builder(trace, by_family=True).build(principals, with_brush=False)
    read = (parent for node in principals for parent in application_nodes(trace, node))
    return not any(parent in moving.principals or parent in moving.pending for parent in read)


def _paths(supports: Sequence[tuple[Sequence[Any], list[Any]]]) -> Iterator[tuple[Any, ...]]:
    """The tree of an enumeration, the last decision first to change: where all decisions before are the present
    state's, its value comes first, else the support is in its own order."""
    present = [values[0] for _, values in supports]

    def below(path: tuple[Any, ...], is_present: bool) -> Iterator[tuple[Any, ...]]:
        if len(path) == len(supports):
            yield path
            return
        support, first = supports[len(path)]
        for value in first if is_present else support:
            yield from below((*path, value), is_present and equal(value, present[len(path)]))

    return below((), True)
