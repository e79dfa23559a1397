"""Assignments over statistics alone: the rows follow when somebody looks.

In a collapsed mixture all that the next assignment needs to know of the others is in the statistics of exchangeable
procedures. So while nothing but assignments changes, data go and come by their applications only: what each has is
taken out of the statistics or put in. When kernels are to run, and at the end, `settle` makes the trace agree: the
statistics go back to where the rows are, then data are removed, moved and added in earnest, at most once each.

A datum is taken so if each of its choices in the scope is a memoized procedure's whole value, which its own rows alone
refer to, and leads them to exchangeable procedures of components that have no choices of their own. All else raises
Unplanned before anything is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from venture_lite.errors import InternalError, VentureError
from venture_lite.interpreter.answered_columns import difference_of_weights
from venture_lite.interpreter.answers import Differs, places
from venture_lite.interpreter.candidates import MOST_CANDIDATES, draw_candidate, support_of
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import Weight, density_of
from venture_lite.kernels.follow import Follow, RowShape
from venture_lite.kernels.followers import Components, Weigher
from venture_lite.kernels.preview import Drawable, Unplanned, recalled
from venture_lite.kernels.reassign import plans_of
from venture_lite.program.code import Code, Kind, Ref, SlotRef, sources
from venture_lite.trace.bindings import Derived
from venture_lite.trace.borrowed import called_body
from venture_lite.trace.keys import memo_key
from venture_lite.trace.nodes import node_at, site_of
from venture_lite.trace.runtime import Exchangeable, Memo
from venture_lite.values import is_same

if TYPE_CHECKING:
    from venture_lite.inference.data import Data

FEW = 3
"""Candidates whose weights are compared with the interpreter's."""


@dataclass(frozen=True, slots=True)
class DatumShape:
    """One assignment of data whose rows are of the same Codes."""

    # of the choice
    site: int
    # (place among the datum's rows, slot) of the calls that name it
    named: tuple[tuple[int, int], ...]
    # (place, slots that have the value, how it is followed through that row)
    rows: tuple[tuple[int, tuple[int, ...], RowShape], ...]


@dataclass(slots=True)
class Assignment:
    """One assignment of one datum."""

    site: int
    memo: Memo
    key: Hashable
    # (how a value is followed, row)
    rows: tuple[tuple[Follow, int], ...]


@dataclass(slots=True)
class MetDatum:
    """A datum that was met since the trace last agreed. Values are None while it is out."""

    assignments: tuple[Assignment, ...]
    in_trace: tuple[Any, ...] | None
    now: tuple[Any, ...] | None


def deferred(model: Model, data: Data, scope: Any, blocks: Callable[[int], list[list[int]]]) -> Deferred | None:
    """What assigns data over statistics, as the model's `kernels` say; `blocks` are a datum's choices in the scope."""
    return None if model.kernels == "interpreted" else Deferred(model, data, scope, blocks)


class Deferred:
    """What one run of `anneal` knows beyond the trace. Mutates statistics; `settle` and `abandon` end that."""

    def __init__(self, model: Model, data: Data, scope: Any, blocks: Callable[[int], list[list[int]]]) -> None:
        self.model = model
        self.data = data
        # absorbing choices weighed
        self.rows = 0
        # a datum's choices in the scope, by block
        self._blocks = blocks
        self._plans = plans = plans_of(model)
        self._draws = Drawable(True, scope, model.trace.named)
        self._templates: dict[tuple[Code, ...], tuple[DatumShape, ...]] = {}
        self._entries: dict[int, MetDatum] = {}
        self._components = Components(plans, self._draws)
        self._weigher = Weigher(model, self._components)
        # site -> (distribution, its arguments) of the choices there, and their candidates where they stay the same
        # it reads globals alone, so any row will do
        self._distributions: Derived[int, tuple[Any, tuple[Any, ...]]] = Derived(
            lambda site: model.trace.application(node_at(site, 0))
        )
        self._priors: dict[int, tuple[list[Any], list[float]]] = {}

    # ------------------------------------------------------------------------------------------- one datum

    def remove(self, datum: int) -> bool:
        """Take a datum out; False where it has to be done in the trace, and nothing was done."""
        try:
            entry = self._entry(datum)
            self._apply_all(entry, entry.now, put_in=False)
        except (Differs, Unplanned, VentureError):
            return False
        entry.now = None
        return True

    def assign(self, datum: int) -> bool | None:
        """Put a datum in, or draw its assignments anew where it is in; whether the state changed. None where it has to
        be done in the trace, where an error is located, too; nothing was done then."""
        try:
            return self._assign(datum)
        except (Differs, Unplanned, VentureError):
            return None

    def _assign(self, datum: int) -> bool:
        entry = self._entry(datum)
        before = entry.now
        self._apply_all(entry, before, put_in=False)
        drawn: list[Any] = []
        try:
            for assignment in entry.assignments:
                drawn.append(self._draw(assignment))
                self._apply(assignment, drawn[-1], put_in=True)
        except BaseException:
            self._apply_all(entry, drawn, put_in=False)
            self._apply_all(entry, before, put_in=True)
            raise
        entry.now = tuple(drawn)
        return not is_same(entry.now, before)

    def _draw(self, assignment: Assignment) -> Any:
        """A value from the conditional distribution, the datum's own applications being out."""
        values, weights = self._weighed(assignment)
        if all(weight.impossible for weight in weights):
            raise Unplanned
        return values[draw_candidate(weights, self.model.trace.rng.random())]

    def _weighed(self, assignment: Assignment) -> tuple[list[Any], list[Weight]]:
        """The candidates and their weights, the datum's own applications being out."""
        site = assignment.site
        values, terms = self._priors.get(site) or self._prior(site)
        weigher, rows = self._weigher, assignment.rows
        weights = []
        for value, term in zip(values, terms):  # noqa: B905
            weight = weigher.begin()
            weight.add(term)
            weights.append(weight)
            try:
                for follow, row in rows:
                    follow(weigher, row, value)
            finally:
                weigher.take_back()
        self.rows += len(values) * len(rows)
        return values, weights

    def _answer(self, assignment: Assignment, present: Any) -> None:
        """Compare the weights of a few candidates of a datum that is in the trace with the interpreter's, the others
        being as they are there, too. Raises Differs."""
        node = node_at(assignment.site, assignment.memo.entries[assignment.key])

        def weighed() -> tuple[list[Any], list[Weight]]:
            self._apply(assignment, present, put_in=False)
            try:
                return self._weighed(assignment)
            finally:
                self._apply(assignment, present, put_in=True)

        def difference(found: Any) -> str | None:
            values, weights = found
            few = places(len(values), FEW)
            its = node, [values[at] for at in few], [[weights[at].value() for at in few]]
            return difference_of_weights(self.model, [its], counts=True)

        self.model.answers.believed(("assignments", assignment.site), "assignments of data", weighed, difference)

    def _prior(self, site: int) -> tuple[list[Any], list[float]]:
        """The candidates and their log densities."""
        operator, arguments = self._distributions[site]
        support = support_of(operator, arguments)
        if support is None or len(support) > MOST_CANDIDATES:
            raise Unplanned
        values = list(support)
        terms = [density_of(self.model.trace, node_at(site, 0), operator, arguments, value) for value in values]
        if not isinstance(operator, Exchangeable):
            self._priors[site] = values, terms
        return values, terms

    def _apply_all(self, entry: MetDatum, values: Sequence[Any] | None, put_in: bool) -> None:
        """Put in, or take out, what a datum's values lead to: the first ones', or none's where it is out."""
        for assignment, value in zip(entry.assignments, values or (), strict=False):
            self._apply(assignment, value, put_in)

    def _apply(self, assignment: Assignment, value: Any, put_in: bool) -> None:
        operator, arguments = self._distributions[assignment.site]
        components = self._components
        components.put_in = put_in
        if isinstance(operator, Exchangeable):
            components.made(0, operator, value, False, *arguments)
        for follow, row in assignment.rows:
            follow(components, row, value)

    # -------------------------------------------------------------------------------------- what data are like

    def _templates_of(self, datum: int, rows: list[tuple[Code, int]]) -> tuple[DatumShape, ...]:
        """Learnt from the first datum with such rows. Raises Unplanned where that is out."""
        codes = tuple(code for code, _ in rows)
        found = self._templates.get(codes)
        if found is None:
            if self.data.is_out(datum):
                raise Unplanned
            found = tuple(self._template(rows, block) for block in self._blocks(datum))
            all_rows = [place for template in found for place, _, _ in template.rows]
            if not found or len(set(all_rows)) < len(all_rows):
                raise Unplanned
            self._templates[codes] = found
        return found

    def _template(self, rows: list[tuple[Code, int]], block: list[int]) -> DatumShape:
        trace = self.model.trace
        if len(block) != 1:
            raise Unplanned
        code, slot, _ = trace.decode(block[0])
        item = code.slots[slot]
        if code.kind != "lambda" or code.result_slot != slot or any(_reads_row(code, ref) for ref in item.refs):
            raise Unplanned
        own, *others = self._plans.plan(block[0], self._draws).parts
        if own.shape.terms or own.shape.calls:
            raise Unplanned
        place_of = {found: place for place, found in enumerate(rows)}
        named: list[tuple[int, int]] = []
        followed: list[tuple[int, tuple[int, ...], RowShape]] = []
        for part in others:
            place = place_of.get((part.code, part.row))
            if place is None or part.source != 0 or not self._plans.covers(part):
                raise Unplanned
            start = tuple(slot for slot in part.start if isinstance(slot, int))
            for at in (*start, *part.shape.calls):
                # the body of the memoized procedure that the call always runs, where the text shows it
                body = called_body(part.code, at)
                is_call = at in part.shape.calls
                if body is None or (is_call and any(body.slots[step].kind is not Kind.MAKER for step in body.steps)):
                    raise Unplanned
            named.extend((place, at) for at in start)
            followed.append((place, start, part.shape))
        return DatumShape(site_of(block[0]), tuple(named), tuple(followed))

    def _entry(self, datum: int) -> MetDatum:
        found = self._entries.get(datum)
        if found is None:
            rows = self.data.rows(datum)
            is_out = self.data.is_out(datum)
            templates = self._templates_of(datum, rows)
            if not is_out and any(self.model.answers.due(("assignments", each.site)) for each in templates):
                # the interpreter weighs with all others as they are in the trace
                self.settle()
            bound = [self._bind(template, rows, is_out) for template in templates]
            values = None if is_out else tuple(value for _, value in bound)
            for assignment, value in () if is_out else bound:
                self._answer(assignment, value)
            found = self._entries[datum] = MetDatum(tuple(assignment for assignment, _ in bound), values, values)
        return found

    def _bind(self, template: DatumShape, rows: list[tuple[Code, int]], is_out: bool) -> tuple[Assignment, Any]:
        """An assignment of a datum and its value. Raises Unplanned where somebody else refers to it."""
        trace = self.model.trace
        found: set[tuple[Memo, Hashable]] = set()
        for place, slot in template.named:
            code, row = rows[place]
            memo, *values = trace.read(code.first_site + slot, row)
            found.add((memo, memo_key(tuple(values))))
        if len(found) > 1:
            raise Unplanned
        ((memo, key),) = found
        body = trace.program.site_code[template.site]
        at = memo.entries.get(key)
        if (at is None) != is_out:
            raise Unplanned
        followed = tuple((shape.weigh, rows[place][1]) for place, _, shape in template.rows)
        assignment = Assignment(template.site, memo, key, followed)
        if at is None:
            return assignment, None
        alike = all(self._plans.shape(rows[place][0], start, rows[place][1]) is s for place, start, s in template.rows)
        shared = trace.users.count(body, at) != len(template.named)
        if shared or not alike or trace.is_observed(node_at(template.site, at)):
            raise Unplanned
        return assignment, trace.value(node_at(template.site, at))

    # ---------------------------------------------------------------------------------------------- settling

    def abandon(self) -> None:
        """Take the statistics back to where the rows are."""
        entries = [entry for entry in self._entries.values() if not is_same(entry.now, entry.in_trace)]
        for entry in entries:
            self._apply_all(entry, entry.now, put_in=False)
        for entry in entries:
            self._apply_all(entry, entry.in_trace, put_in=True)
            entry.now = entry.in_trace
        self._entries.clear()
        self._components.clear()
        self._distributions.clear()
        self._priors.clear()

    def settle(self) -> None:
        """Make the rows agree with the assignments."""
        site_slot = self.model.trace.program.site_slot
        met = self._entries.items()
        changed = {at: (entry, entry.now) for at, entry in met if not is_same(entry.now, entry.in_trace)}
        self.abandon()
        for datum, (_, now) in changed.items():
            if now is None:
                self.data.remove(datum)
        for entry, now in changed.values():
            if now is not None and entry.in_trace is not None:
                for assignment, value in zip(entry.assignments, now, strict=True):
                    self._move(assignment, value)
        for datum, (entry, now) in changed.items():
            if now is not None and entry.in_trace is None:
                given = {
                    ((assignment.memo, assignment.key), site_slot[assignment.site]): value
                    for assignment, value in zip(entry.assignments, now, strict=True)
                }
                with self.model.machine.handled_by(recalled(self.model.trace, given)):
                    self.data.add(datum)

    def _move(self, assignment: Assignment, value: Any) -> None:
        row = assignment.memo.entries.get(assignment.key)
        if row is None:
            raise InternalError("a datum that is in has no assignment")
        plan = self._plans.plan(node_at(assignment.site, row), self._draws)
        if not is_same(plan.old, value):
            plan.apply(value, plan.preview(value))


def _reads_row(code: Code, ref: Ref) -> bool:
    """Whether a value differs between rows of a body."""
    return any(isinstance(source, SlotRef) for source in sources(code, ref))
