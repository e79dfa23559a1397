"""From a move and a shape to a form: values by the references of Codes, densities and draws by their one definition.

What is read is found in one binding of the shape; every other binding reads the same places (`interpreter/shape.py`).
Where a distribution has no definition over numbers, or a proposal is more than arithmetic, the form calls it. A
transition has no form where a distribution or a procedure is computed, and for very many choices; the interpreter makes
it then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from venture_lite.interpreter.references import NUMBERS, Operations, References, row_given
from venture_lite.interpreter.regenerate import Formulated, Proposal, Straight, Straightened
from venture_lite.interpreter.shape import Binding, Shape
from venture_lite.interpreter.sources import computed_from
from venture_lite.interpreter.weights import density_of
from venture_lite.kernels.form import Demand, Failed, Propose, RowLoop, Side, Store, TransitionForm, Value
from venture_lite.procedures.domains import ANY
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.procedures.simulation import RecordingGenerator
from venture_lite.procedures.straight_line import Node, needed, recordable
from venture_lite.program.code import Kind
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.table import ROW_MASK, Column
from venture_lite.trace.trace import Trace

MOST_PLACES = 1000
"""A function for more places takes too long to compile."""
MOST_ROWS = 20
"""The densities of more rows are weighed by columns."""


class NoForm(Exception):
    """Why a transition has no form."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def rows_of(trace: Trace, site: int) -> list[int]:
    """The live rows of a site."""
    rows = trace.tables[trace.program.site_code[site].index].rows()
    return list(range(rows.stop)) if isinstance(rows, slice) else list(rows.tolist())


def lower(trace: Trace, proposal: Proposal, shape: Shape, binding: Binding) -> TransitionForm:
    """The form of a transition. Raises NoForm."""
    if len(shape.sites) > MOST_PLACES:
        raise NoForm("the block and what reads it are too many")
    if not shape.users and all(len(rows_of(trace, site)) <= MOST_ROWS for site in shape.groups):
        try:
            return Lowering(trace, proposal, shape, binding.nodes).form(wide=False)
        except NoForm:
            if not shape.groups:
                raise
    return Lowering(trace, proposal, shape, binding.nodes).form(wide=True)


class _Operations(Operations):
    """What is the same in all states is computed beforehand."""

    def call(self, record: Deterministic, site: int, row: Value, arguments: Sequence[Value]) -> Value:
        if all(argument.__class__ is not Node for argument in arguments):
            return self.constant(record.scalar(*arguments))
        return super().call(record, site, row, arguments)


def _failing(propose: Straight) -> Straight:
    """The same, whose errors are told from those of the form."""

    def proposed(*given: Any) -> tuple[Any, float]:
        try:
            return propose(*given)
        except Exception as error:
            raise Failed(error) from error

    return proposed


class Lowering:
    """Makes one form; the present state is read from columns, the new one from what was computed before."""

    def __init__(self, trace: Trace, proposal: Proposal, shape: Shape, nodes: Sequence[int]) -> None:
        self._trace = trace
        self._proposal = proposal
        self._shape = shape
        self._nodes = nodes
        self._place_of = {node: place for place, node in enumerate(nodes)}
        # (index of a Code, row) -> a node that stands there
        site_code = trace.program.site_code
        self._standing = {(site_code[node >> 32].index, node & ROW_MASK): node for node in reversed(nodes)}
        self._operations = _Operations()
        # by place of a row, but for rows of loops: the one in this binding
        self._row: dict[int, int] = {}
        # node -> its new value
        self._new: dict[int, Value] = {}
        self._present = References(trace, self._operations, partial(self._known, {}))
        self._proposed = References(trace, self._operations, partial(self._known, self._new))
        # whether the proposal is called, and has to look at the old state before
        self._prepares = False

    def form(self, wide: bool) -> TransitionForm:
        proposals = []
        for place in self._shape.order:
            if place in self._shape.principals:
                proposals.append(self._propose(self._nodes[place]))
            else:
                self._new[self._nodes[place]] = self._renewed(self._nodes[place])
        old, new = self._side(self._present, wide), self._side(self._proposed, wide)
        stores = tuple(self._stores())
        nodes, objects = self._operations.nodes, self._operations.objects
        if any(node.operation in ("closure", "unbound") for node in nodes.values()):
            raise NoForm("it reads a procedure or a name without a value")
        columns = tuple(self._operations.columns)
        return TransitionForm(tuple(proposals), old, new, stores, wide, self._prepares, columns, tuple(objects))

    def _propose(self, node: int) -> Propose:
        """A principal's new value: recorded where the proposal is arithmetic on numbers, else what it gives."""
        row, site = self._row_of(node), node >> 32
        record, before = self._application(node, row, self._present)
        _, arguments = self._application(node, row, self._proposed)
        old, found = self._known({}, site, row), None
        if self._is_recorded(site, record) and isinstance(self._proposal, Formulated):
            rng = RecordingGenerator(self._operations)
            found = self._proposal.formula(recordable, rng, record, old, before, arguments)
        if found is not None:
            self._new[node], ratio = found
            return Propose(self._demands(site, record, arguments), self._new[node], ratio)
        straight = self._straight(site, record, len(arguments))
        self._prepares = straight is None
        called = self._operations.object(_failing(straight or self._proposing(site << 32, record)))
        pair = self._operations.record("fresh", len(self._operations.nodes), called, row, old, *arguments)
        self._new[node], ratio = (self._operations.record("part", pair, part) for part in (0, 1))
        demands = () if straight is None else self._demands(site, record, arguments)
        return Propose(demands, self._new[node], ratio)

    def _straight(self, site: int, record: Random, count: int) -> Straight | None:
        """The proposal's own shorter way, for a number that moves alone."""
        proposal, moves_alone = self._proposal, len(self._shape.principals) == 1
        if not (moves_alone and self._is_recorded(site, record) and isinstance(proposal, Straightened)):
            return None
        return proposal.straight(site, record, count)

    def _proposing(self, first: int, record: Random) -> Straight:
        """The proposal as a function of a principal's row, its old value and its arguments."""
        proposal = self._proposal
        return lambda row, old, *arguments: proposal.propose(first | row, record, arguments, old)

    def _side(self, state: References, wide: bool) -> Side:
        """What principals weigh, where they count, and what absorbs, as of the present or the proposed state."""
        # by value and test: a new value that many densities read is tested once
        demands: dict[tuple[int, str], Demand] = {}
        terms: list[Value] = []
        counted = self._shape.principals if self._proposal.counts else ()
        for node in (self._nodes[place] for place in (*counted, *self._shape.absorbing)):
            row = self._row_of(node)
            record, arguments = self._application(node, row, state)
            value = self._known(self._new if state is self._proposed else {}, node >> 32, row)
            demands |= {(item.value.place, item.test): item for item in self._changing(node >> 32, record, arguments)}
            terms.append(self._density(node >> 32, row, record, arguments, value))
        sites = () if wide else self._shape.groups
        loops = tuple(self._loop(number, site, rows_of(self._trace, site), state) for number, site in enumerate(sites))
        return Side(tuple(terms), loops, tuple(demands.values()) if state is self._proposed else ())

    def _loop(self, number: int, site: int, rows: list[int], state: References) -> RowLoop:
        """All rows of a site."""
        each = self._operations.record("each", number)
        code = self._trace.program.site_code[site]
        own = range(code.first_site, code.first_site + len(code.slots))
        if not rows or any(node >> 32 in own for node in self._new):
            raise NoForm("rows that absorb read one another")
        record, arguments = self._application(site << 32 | rows[0], each, state)
        demands = self._changing(site, record, arguments) if state is self._proposed else ()
        return RowLoop(each, demands, self._density(site, each, record, arguments, self._known({}, site, each)))

    # ----------------------------------------------------------------------------------------- distributions

    def _application(self, node: int, row: Value, state: References) -> tuple[Random, list[Value]]:
        """A choice's distribution and its arguments, as of the present or the proposed state."""
        code, slot, _ = self._trace.decode(node)
        item = code.slots[slot]
        if item.kind is not Kind.RANDOM or not isinstance(item.record, Random):
            raise NoForm("a distribution is computed")
        return item.record, [state.read(code, row, ref) for ref in item.arguments]

    def _is_recorded(self, site: int, record: Random) -> bool:
        """Whether what is known of a distribution of numbers is recorded: it is called for vectors."""
        return record.definition is not None and self._trace.column(site).kind in NUMBERS

    def _density(self, site: int, row: Value, record: Random, arguments: list[Value], value: Value) -> Value:
        if self._is_recorded(site, record):
            assert record.definition is not None
            return recordable(record.definition)(value, *arguments)
        trace = self._trace

        def weigh(row: int, value: Any, *arguments: Any) -> float:
            return density_of(trace, site << 32 | row, record, arguments, value)

        return self._operations.record("call", self._operations.object(weigh), row, value, *arguments)

    def _demands(self, site: int, record: Random, arguments: list[Value]) -> tuple[Demand, ...]:
        """What must be tested of arguments that are computed, where a density is recorded; a constant was tested when
        it was loaded."""
        found = []
        for argument, value in zip(record.arguments, arguments, strict=True):
            domain = argument.domain
            if not self._is_recorded(site, record) or value.__class__ is not Node or domain is ANY:
                continue
            if domain.test is None:
                inside = self._operations.record("call", self._operations.object(domain.contains), value)
                found.append(Demand(inside, "{x}"))
            else:
                found.append(Demand(value, domain.test))
        return tuple(found)

    def _changing(self, site: int, record: Random, arguments: list[Value]) -> tuple[Demand, ...]:
        """What must be tested of arguments that change with the transition; the others stand, and were tested."""
        new = {value.place for value in self._new.values() if value.__class__ is Node}
        found = self._demands(site, record, arguments)
        return tuple(item for item in found if any(node.place in new for node in needed([item.value])))

    # ----------------------------------------------------------------------------------------------- values

    def _renewed(self, node: int) -> Value:
        source = computed_from(self._trace, node)
        assert source is not None
        stands = self._standing.get((source.code.index, source.row))
        if stands is None:
            raise NoForm("a value is computed in a row that it does not stand in")
        at = self._row_of(stands)
        values = [self._proposed.read(source.code, at, ref) for ref in source.refs]
        if not source.is_applied:
            return values[0]
        record = source.code.slots[source.slot].record
        if not isinstance(record, Deterministic):
            raise NoForm("a procedure is computed")
        return self._operations.call(record, node >> 32, at, values)

    def _known(self, new: dict[int, Value], site: int, at: Value) -> Value:
        """What a stored slot is read as in a row: what is new, else its column. Raises NoForm."""
        column = self._trace.column(site)
        if _varies(at):
            return self._in_each_row(new, site, column, at)
        row = row_given(self._operations, at, self._row)
        if (node := site << 32 | row) in new:
            return new[node]
        if not isinstance(column, BorrowedColumn):
            return self._operations.load(column, at)
        lent = column.site << 32 | column.edges.view[row] & ROW_MASK
        return new[lent] if lent in new else self._operations.load(column.lender, self._lent(column, at))

    def _in_each_row(self, new: dict[int, Value], site: int, column: Column, at: Value) -> Value:
        """What a stored slot is read as in the rows of a loop: the column, but in rows that lead to a new value that
        value. Raises NoForm."""
        if isinstance(column, BorrowedColumn):
            at = self._lent(column, at)
            site, column = column.site, column.lender
        found: Value = self._operations.load(column, at)
        for node, value in new.items():
            if node >> 32 == site:
                if column.kind not in NUMBERS:
                    raise NoForm("rows read new values that are no numbers")
                is_there = self._operations.record("==", at, self._row_of(node))
                found = self._operations.record("where", is_there, value, found)
        return found

    def _lent(self, column: BorrowedColumn, at: Value) -> Value:
        """The row of the family that a call leads to."""
        return self._operations.record("&", self._operations.load(column.edges, at), ROW_MASK)

    # -------------------------------------------------------------------------------------- rows and objects

    def _row_of(self, node: int) -> Value:
        found = self._operations.record("row", self._place_of[node])
        self._row[found.place] = node & ROW_MASK
        return found

    def _stores(self) -> Iterator[Store]:
        for node, value in self._new.items():
            column = self._trace.column(node >> 32)
            if not isinstance(column, BorrowedColumn):
                yield Store(self._place_of[node], self._operations.column(column), value)


def _varies(at: Value) -> bool:
    """True if a row is another one in each row of a loop."""
    return at.__class__ is Node and any(node.operation == "each" for node in needed([at]))
