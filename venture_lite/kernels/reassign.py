"""Plans for choices whose value names memoized families: a datum's assignment to a component, a column's to a view.

Given such a choice, what depends on it lies in the rows that its own family's result goes to: few where a datum is
assigned, all rows of an observation where the result has a name that it reads. For each shape of a row one function is
generated that follows a candidate through it, in local variables: memoized calls that find other families, and what
absorbs. Nothing in the trace moves until a candidate is chosen; then users and edges are redirected. Where a family
would come or go, the interpreter makes that one move. What has no plan at all it does from the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from venture_lite.interpreter.application import simulate, simulate_anew
from venture_lite.interpreter.model import FixedValue, Model
from venture_lite.interpreter.scaffold import WIDE, Builder
from venture_lite.interpreter.weights import Weight, density_of
from venture_lite.kernels.follow import MEMO_EDGE, Dependents, RowShape, Start, reach_of, written_shape
from venture_lite.kernels.followers import Finder, JointWeigher, Mover, Weigher, restore
from venture_lite.kernels.preview import Added, Drawable, Planned, Preview, Previews, Unplanned, drawn_for, recalled
from venture_lite.program.code import Code, Global, GlobalRef, Kind
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import RANDOM_EDGE, ROW_MASK

ShapeKey = tuple[int, Start, tuple[tuple[int, tuple[int, bool]], ...]]
"""Index of a Code, what has the value at the start, and of each slot that may apply it the kind of its edge and whether
it is observed."""

MOST_RESULTS = 500_000
"""So many results of memoized procedures are kept for further plans, some 200 bytes each."""


@dataclass(frozen=True, slots=True)
class FollowedRow:
    """A row through which a value is followed."""

    code: Code
    row: int
    # slots that have the value, or the name that it has
    start: Start
    shape: RowShape
    # index of the part whose result the value is; -1 for the choice's own
    source: int


def plans_of(model: Model) -> Reassignments:
    """The model's plans: made once, since their functions take a millisecond each to write."""
    return model.kept.learned(Reassignments, model)


class Reassignments:
    """The plans of one model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.previews = Previews(model.trace)
        codes = model.trace.program.codes
        self._reaches: Planned[tuple[int, Start], Dependents] = Planned(lambda key: reach_of(codes[key[0]], key[1]))
        self._shapes: Planned[ShapeKey, RowShape] = Planned(self._written)
        # what memoized procedures gave, and as of which version of the trace
        self._results: dict[tuple[Any, tuple[Any, ...]], Any] = {}
        self._version = -1
        # the plan made last, and of what: it is the next one, too, where the move was rejected
        self._latest: tuple[Any, Reassignment] | None = None
        # by kind of move, what `single_choices.py` counts
        self.misses: dict[str, dict[int, int]] = {}
        model.trace.derived.extend((self._reaches, self._shapes, self.misses))

    def plan(self, node: int, draws: Drawable) -> Reassignment:
        """Raises Unplanned where the interpreter is to do it."""
        model = self.model
        journal = model.trace.journal
        stamp = (node, draws, journal.version, model.trace.program.version, model.regenerator.power)
        if self._latest is None or self._latest[0] != stamp or journal.entries:
            self._latest = (stamp, Reassignment(self, node, draws))
        return self._latest[1]

    def known_results(self) -> dict[tuple[Any, tuple[Any, ...]], Any]:
        """(memoized procedure, arguments) -> result, of families that exist as long as the trace stays as it is."""
        journal = self.model.trace.journal
        if journal.version != self._version or journal.entries or len(self._results) > MOST_RESULTS:
            self._results = {}
            self._version = -1 if journal.entries else journal.version
        return self._results

    def shape(self, code: Code, start: Start, row: int) -> RowShape:
        """Raises Unplanned."""
        reach = self._reaches.found((code.index, start))
        table = self.model.trace.tables[code.index]
        kinds = {}
        for slot in reach.applied:
            kind, edges = RANDOM_EDGE, table.edges.get(slot)
            if edges is not None:
                kind = edges.view[row]
                if kind >= 0:
                    memos = self.model.trace.tables[kind >> 32].memos
                    if memos is None or memos[kind & ROW_MASK] is None:
                        raise Unplanned
                    kind = MEMO_EDGE
            kinds[slot] = kind, table.is_observed(slot, row)
        return self._shapes.found((code.index, start, tuple(kinds.items())))

    def _written(self, key: ShapeKey) -> RowShape:
        index, start, kinds = key
        trace, reach = self.model.trace, self._reaches.found((index, start))
        return written_shape(trace, trace.program.codes[index], start, reach, dict(kinds))

    def reach(self, code: Code, start: Start) -> Dependents:
        """What depends on some slots of a row. Raises Unplanned."""
        return self._reaches.found((code.index, start))

    def covers(self, part: FollowedRow) -> bool:
        """Whether all that is computed in a row is followed, so that its arguments are all that its cells are read
        for."""
        followed = {slot for slot, _ in self._reaches.found((part.code.index, part.start)).slots}
        return followed.issuperset(step for step in part.code.steps if step not in part.start)


class Reassignment:
    """One choice, and the rows that depend on it. While entered, what they apply is out of its makers' statistics."""

    def __init__(self, plans: Reassignments, node: int, draws: Drawable) -> None:
        self._plans = plans
        self._trace = trace = plans.model.trace
        self.draws = draws
        self.node = node
        # the choice's own row first
        self.parts: list[FollowedRow] = []
        self._rows: set[tuple[Code, int]] = set()
        code, slot, row = trace.decode(node)
        # all before what lies behind one of them, and behind the last first, as the interpreter meets them
        # (`interpreter/scaffold.py`)
        waiting = [self._entered(code, (slot,), row, -1)]
        while waiting:
            waiting += self._entered_from(waiting.pop())
        self.operator, self.arguments = trace.application(node)
        self.old = trace.value(node)
        # procedures that something is taken out of, and how it goes back
        self._tokens: Added = []
        self._is_checked = False
        self.terms = sum(part.shape.terms for part in self.parts)

    def _entered(self, code: Code, start: Start, row: int, source: int) -> int:
        """The place of a row that the value of another part goes to."""
        if (code, row) in self._rows:
            raise Unplanned
        self._rows.add((code, row))
        self.parts.append(FollowedRow(code, row, start, self._plans.shape(code, start, row), source))
        return len(self.parts) - 1

    def _entered_from(self, at: int) -> list[int]:
        """The places of the rows that a part's result goes to."""
        part = self.parts[at]
        if not part.shape.goes_on:
            return []
        match part.code.kind:
            case "directive":
                bound = self._trace.bindings.by_row.get((part.code.index, part.row))
                return [] if bound is None else self._enter_readers(bound, at)
            case "branch":
                return [self._enter_if(*self._trace.decode(self._trace.if_of(part.code, part.row)), at)]
            case "lambda":
                return self._enter_users(part.code, part.row, at)
        raise Unplanned

    def _enter_users(self, code: Code, row: int, source: int) -> list[int]:
        """The rows that call a family; those last whose last call is."""
        trace = self._trace
        slots: dict[tuple[Code, int], list[int]] = {}
        last: dict[tuple[Code, int], None] = {}
        for user in trace.users.nodes(code, row):
            reader, slot, its_row = trace.decode(user)
            if trace.tables[reader.index].is_observed(slot, its_row):
                raise Unplanned
            slots.setdefault((reader, its_row), []).append(slot)
            last.pop((reader, its_row), None)
            last[reader, its_row] = None
        places = {at: self._entered(at[0], tuple(sorted(calls)), at[1], source) for at, calls in slots.items()}
        return [places[at] for at in last]

    def _enter_if(self, code: Code, slot: int, row: int, source: int) -> int:
        """The row of an `if` whose branch has the value."""
        if self._trace.tables[code.index].is_observed(slot, row):
            raise Unplanned
        return self._entered(code, (slot,), row, source)

    def _enter_readers(self, name: Global, source: int) -> list[int]:
        """The rows of all text that reads a name, or a name for it; those last whose last slot does."""
        tables = self._trace.tables
        found: dict[Code, tuple[Global, list[int]]] = {}
        last: dict[Code, None] = {}
        for as_name, code, slot in self._readers(name):
            table = tables[code.index]
            # a result has no slot, and its body may have none
            if slot < 0 or code.kind == "branch":
                raise Unplanned
            # choices that all read it are weighed together, by columns
            if table.count - table.dead > WIDE and code.slots[slot].kind is Kind.RANDOM:
                raise Unplanned
            if code not in found:
                found[code] = as_name, list(table.live_rows())
            elif found[code][0] is not as_name:
                raise Unplanned
            last.pop(code, None)
            last[code] = None
        places = {
            code: [self._entered(code, (as_name,), row, source) for row in its_rows]
            for code, (as_name, its_rows) in found.items()
        }
        return [place for code in last for place in places[code]]

    def _readers(self, name: Global) -> Iterator[tuple[Global, Code, int]]:
        """(name that it reads, body, slot) of what reads a name or a name for it, in bodies that have rows."""
        tables, by_row = self._trace.tables, self._trace.bindings.by_row
        for code, slot, _ in name.readers:
            table = tables[code.index] if 0 <= code.index < len(tables) else None
            if table is None or table.count == table.dead:
                continue
            names = [by_row.get((code.index, row)) for row in table.live_rows()] if slot < 0 else []
            if names and isinstance(code.result, GlobalRef) and None not in names:
                for other in names:
                    assert other is not None
                    yield from self._readers(other)
            else:
                yield name, code, slot

    # ---------------------------------------------------------------------------------------------- weighing

    def __enter__(self) -> Reassignment:
        for operator, value, inputs in self._applications():
            self._tokens.append((operator, operator.state.remove(value, *inputs)))
        return self

    def _applications(self) -> list[tuple[Exchangeable, Any, tuple[Any, ...]]]:
        """(procedure, value, inputs) of the choice and of what depends on it. Raises Unplanned."""
        trace = self._trace
        found: list[tuple[Exchangeable, Any, tuple[Any, ...]]] = []
        if isinstance(self.operator, Exchangeable):
            found.append((self.operator, self.old, self.arguments))
        for part in self.parts:
            for slot in part.shape.made:
                site = part.code.first_site + slot
                operator, *inputs = trace.read(site, part.row)
                if operator is self.operator:
                    raise Unplanned
                found.append((operator, trace.column(site).view[part.row], tuple(inputs)))
        return found

    def __exit__(self, *_: object) -> None:
        restore(self._tokens)

    @cached_property
    def _finder(self) -> Finder:
        return Finder(self._plans, self.draws)

    @cached_property
    def _weigher(self) -> Weigher:
        model = self._plans.model
        together = self.terms > WIDE and model.regenerator.power == 1.0
        return (JointWeigher if together else Weigher)(model, self._finder)

    def weigh(self, value: Any, counts: bool = True) -> tuple[Weight, Preview | None]:
        """Log weight of a candidate, with the families that it would bring about, if any; `counts` says whether its
        own density is part of it. Raises Unplanned."""
        weigher = self._weigher
        self._finder.begin(() if value is self.old else self._forgotten)
        weight = weigher.begin()
        if counts:
            weight.add(density_of(self._trace, self.node, self.operator, self.arguments, value))
        try:
            self._follow(weigher, value, moving=False)
            weigher.end()
        finally:
            weigher.take_back()
        return weight, self._finder.preview

    def simulate(self) -> Any:
        """A value from the choice's own distribution, whose arguments are checked once."""
        if self._is_checked:
            return simulate(self._trace, self.node, self.operator, self.arguments)
        value = simulate_anew(self._trace, self.node, self.operator, self.arguments)
        self._is_checked = True
        return value

    @cached_property
    def present(self) -> Weight:
        """Log weight of the present value, its own density left aside. Raises Unplanned."""
        weight, _ = self.weigh(self.old, counts=False)
        return weight

    def preview(self, value: Any) -> Mapping[Any, Any] | None:
        """What is drawn for the families that a candidate would bring about, if any. Raises Unplanned."""
        self._finder.begin()
        try:
            self._follow(self._finder, value, moving=False)
        finally:
            restore(self._finder.added)
        return drawn_for(self._finder.preview)

    def _follow(self, follower: Any, value: Any, moving: bool) -> None:
        results: list[Any] = []
        for part in self.parts:
            x = value if part.source < 0 else results[part.source]
            results.append((part.shape.move if moving else part.shape.weigh)(follower, part.row, x))

    @cached_property
    def _forgotten(self) -> set[int]:
        """Packed rows of the families that go with the present value and made choices: another value that led to them
        would find other ones."""
        made = ((code, row) for code, row in self.dying if any(slot.kind.may_choose for slot in code.slots))
        return {code.index << 32 | row for code, row in made}

    def refuse_draws_that_go(self) -> None:
        """Raises Unplanned where a family goes with the present value whose choices may not be drawn along with it."""
        for code, _ in self.dying:
            for slot in code.steps:
                if code.slots[slot].kind.may_choose:
                    self.draws.refuse(code, slot)

    def refuse_draws_after_draws_that_go(self, previews: list[Preview | None]) -> None:
        """Raises Unplanned where a candidate brings draws of an exchangeable procedure whose other draws go with the
        present value: they were drawn after those. The interpreter takes them out before it draws, so that what a
        candidate brings does not depend on the state that it stands against."""
        after = {operator for preview in previews if preview is not None for operator in preview.applied}
        for code, row in self.dying if after else ():
            for slot in code.steps:
                if code.slots[slot].kind is Kind.CALL:
                    operator, *_ = self._trace.read(code.first_site + slot, row)
                    if isinstance(operator, Exchangeable) and operator in after:
                        raise Unplanned

    @cached_property
    def dying(self) -> list[tuple[Code, int]]:
        """Families that only these rows keep alive, and those that only such families do."""
        builder = Builder(self._trace)
        calls = ((part.code.first_site + call) << 32 | part.row for part in self.parts for call in part.shape.calls)
        builder.scaffold.structural = dict.fromkeys(calls)
        builder.grow_brush()
        return list(builder.scaffold.brush)

    # ------------------------------------------------------------------------------------------------ moving

    def is_quiet(self) -> bool:
        """Whether the families that calls lead to make no choices and no calls: a move brings and takes none."""
        trace = self._trace
        tables, codes = trace.tables, trace.program.codes
        return not any(
            item.kind.may_choose
            for part in self.parts
            for call in part.shape.calls
            for item in codes[tables[part.code.index].edges[call].view[part.row] >> 32].slots
        )

    def apply(self, value: Any, drawn: Mapping[Any, Any] | None) -> None:
        """Give the choice its new value for good; what must be made takes what was drawn, by family and slot. An error
        leaves all as it was."""
        with self._plans.model.transaction() as change:
            if drawn is not None or self.dying:
                self._regenerate(value, drawn or {})
            else:
                self._redirect(value)
            change.keep()

    def _redirect(self, value: Any) -> None:
        statistics = self._trace.statistics
        for operator, its_value, inputs in self._applications():
            statistics.unincorporate(operator, its_value, inputs)
        if isinstance(self.operator, Exchangeable):
            statistics.incorporate(self.operator, value, self.arguments)
        self._follow(Mover(self._plans.model), value, moving=True)

    def _regenerate(self, value: Any, drawn: Mapping[Any, Any]) -> None:
        """By the interpreter."""
        model = self._plans.model
        scaffold = Builder(self._trace).build([self.node])
        model.regenerator.detach(scaffold, counts=False)
        with model.machine.handled_by(recalled(self._trace, drawn)):
            model.regenerator.regenerate(scaffold, FixedValue(value))
