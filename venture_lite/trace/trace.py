"""The trace: tables, edges, choices and scopes, with the elementary operations that keep them in step.

Every operation here writes its inverse to the journal. What evaluates, detaches and regenerates families is in
`interpreter/steps.py` and `interpreter/regenerate.py`; this module owns the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.errors import CallSite, InternalError, Span
from venture_lite.procedures.checks import completed, record_valid
from venture_lite.procedures.record import Random
from venture_lite.program.code import VACANT, Code, Extent, Kind, Program, Ref, SlotRef
from venture_lite.program.compiler import Analyzer, StandardNames
from venture_lite.trace.bindings import Bindings, Derived
from venture_lite.trace.borrowed import BorrowedColumn, borrow
from venture_lite.trace.journal import Journal
from venture_lite.trace.runtime import Exchangeable, Statistics
from venture_lite.trace.scopes import DefaultScope, Scope
from venture_lite.trace.table import MAKER_EDGE, NONE, RANDOM_EDGE, ROW_MASK, Column, Table
from venture_lite.trace.users import UserLists
from venture_lite.values import key_of

if TYPE_CHECKING:
    from venture_lite.interpreter.choices import NamedChoices
    from venture_lite.interpreter.constants import Constants

Reader = Callable[[int], tuple[Any, ...]]
"""From a row to the values of some references there."""


class Trace:
    """One chain's execution of the program. Mutated by everything in this package and by nothing outside it."""

    def __init__(self, rng: np.random.Generator, library: StandardNames | None = None) -> None:
        self.rng = rng
        self.program = Program()
        self.analyzer = Analyzer(self.program, library)
        self.tables: list[Table] = []
        self.journal = Journal()
        self.default = DefaultScope(self.locate_choice)
        self.scopes: dict[Any, DefaultScope | Scope] = {"default": self.default}
        # scopes of choices by name -> what belongs to them
        self.named: dict[Any, NamedChoices] = {}
        # interned tags: id -> (id of the tags around, scope, block key); 0 is no tag
        self.contexts: list[tuple[int, Any, Any]] = [(0, None, None)]
        self._context_ids: dict[Any, int] = {}
        # site -> how its operator and arguments are read
        self.readers: Derived[int, Reader] = Derived(self._reader)
        # site -> how the keys of its blocks are read; Code -> how its result is
        self._key_readers: Derived[int, Reader] = Derived(self._key_reader)
        self._result_readers: Derived[Code, Reader] = Derived(lambda code: self.reader(self, code, (code.result,)))
        # site -> where its values are stored
        self._columns: Derived[int, Column] = Derived(self._column)
        # record -> the fast test of its arguments
        self.valid: Derived[Any, Callable[..., bool]] = Derived(record_valid)
        # procedures of the language that are keys, by a number that tells apart those of one name
        self._serials: dict[Any, int] = {}
        # tables of what was derived from the places where globals stand
        self.derived: list[Any] = [self.readers, self._key_readers, self._result_readers, self._columns]
        self.bindings = Bindings(self.journal, self.derived)
        self.users = UserLists(self.tables, self.program, self.journal)
        self.statistics = Statistics(self.journal)
        # The interpreter knows what references mean, and sets these: how they are read, what was wrong with those that
        # could not be (of a slot, or -1, of a row), and which families stay without users.
        self.reader: Callable[[Trace, Code, tuple[Ref, ...]], Reader]
        self.explain: Callable[[Trace, Code, tuple[Ref, ...], int, int, Exception], Exception]
        self.constants: Constants
        # what stands in the place of the tables of Codes that were let go of
        self._vacant = Table(VACANT)

    # ------------------------------------------------------------------------------------------------- nodes

    def table(self, code: Code) -> Table:
        if len(self.tables) <= code.index:
            self.grow_with_program()
        return self.tables[code.index]

    def grow_with_program(self) -> None:
        """Make the tables of Codes that the analysis added."""
        for code in self.program.codes[len(self.tables) :]:
            self.tables.append(Table(code))
            borrow(self, code)

    def make_tables(self, tree: list[Code]) -> None:
        """Make the tables of the Codes of one directive, which may have numbers that were in use before."""
        self.grow_with_program()
        for code in tree:
            if self.tables[code.index].code is not code:
                self.tables[code.index] = Table(code)
                borrow(self, code)

    def let_go(self, tree: list[Code]) -> bool:
        """Take out the Codes of one directive, if none of them has rows; whether none had."""
        if any(self.tables[code.index].count > self.tables[code.index].dead for code in tree):
            return False
        for code in tree:
            self.tables[code.index] = self._vacant
        self.program.let_go(tree)
        return True

    def truncate(self, extent: Extent) -> set[Code]:
        """Take out the Codes that got a number since `extent` was given; they are given back. None of them has rows,
        but those of definitions of the standard library, which go, too."""
        gone = set(self.program.truncate(extent))
        if not gone:
            return gone
        del self.tables[extent[0] :]
        self.tables[:] = [self._vacant if table.code in gone else table for table in self.tables]
        standard = self.analyzer.standard
        for name in [name for name, target in standard.items() if target.code in gone]:
            self.bindings.forget(standard.pop(name))
        for derived in self.derived:
            derived.clear()
        for code in gone:
            code.index = -1
        return gone

    def decode(self, node: int) -> tuple[Code, int, int]:
        """(Code, slot, row) of a packed node."""
        site = node >> 32
        return self.program.site_code[site], self.program.site_slot[site], node & ROW_MASK

    def column(self, site: int) -> Column:
        return self._columns[site]

    def _column(self, site: int) -> Column:
        column = self.tables[self.program.site_code[site].index].columns[self.program.site_slot[site]]
        if column is None:
            raise InternalError("a fused slot has no column")
        return column

    def value(self, node: int) -> Any:
        return self._columns[node >> 32].view[node & ROW_MASK]

    def nodes_of(self, site: int) -> list[int]:
        """The nodes of a site in all live rows."""
        return [site << 32 | row for row in self.tables[self.program.site_code[site].index].live_rows()]

    def put(self, node: int, value: Any) -> None:
        """Give a node another value, through the journal."""
        self.journal.put(self._columns[node >> 32], node & ROW_MASK, value)

    def put_rows(self, site: int, rows: np.ndarray, values: np.ndarray) -> bool:
        """Give rows of a site other values (len(rows),) at once; whether they are of the kind that stands there."""
        column = self.column(site)
        if values.ndim != 1 or column.array is None or column.array.dtype != values.dtype:
            return False
        self.journal.put_rows(column, rows, values)
        return True

    def is_borrowed(self, node: int) -> bool:
        """Whether a node has no value of its own: a call that reads its family's."""
        return isinstance(self.column(node >> 32), BorrowedColumn)

    def result(self, code: Code, row: int) -> Any:
        """The value of a row's body."""
        if code.result_slot >= 0:
            return self.tables[code.index].columns[code.result_slot].view[row]  # type: ignore[union-attr]
        try:
            return self._result_readers[code](row)[0]
        except Exception as error:
            raise self.explain(self, code, (code.result,), -1, row, error) from error

    def _reader(self, site: int) -> Reader:
        """The function that reads a slot's operator (if it has one) and arguments."""
        code = self.program.site_code[site]
        return self.reader(self, code, code.slots[self.program.site_slot[site]].refs)

    def read(self, site: int, row: int) -> tuple[Any, ...]:
        """A slot's operator (if it has one) and arguments; an error in a fused slot is located."""
        try:
            return self.readers[site](row)
        except Exception as error:
            raise self._explained(site, row, error) from error

    def _explained(self, site: int, row: int, error: Exception) -> Exception:
        code, slot = self.program.site_code[site], self.program.site_slot[site]
        return self.explain(self, code, code.slots[slot].refs, slot, row, error)

    def serial_of(self, record: Any) -> int:
        """A number of a procedure of the language: those that were registered under one name have different ones."""
        return self._serials.setdefault(record, len(self._serials))

    # ----------------------------------------------------------------------------------------------- choices

    def new_row(self, table: Table, arguments: Iterable[Any]) -> int:
        """A row that has its arguments and waits to be evaluated."""
        row = self.journal.allocate(table)
        for column, value in zip(table.columns, arguments, strict=False):
            column.fill(row, value)  # type: ignore[union-attr]
        return row

    def locate_choice(self, node: int) -> tuple[Column, int]:
        code, slot, row = self.decode(node)
        return self.tables[code.index].positions[slot], row

    def edge(self, node: int) -> int:
        """Where a call or an `if` landed: the packed row of its family, or a kind of edge that leads to no row; NONE
        where a node is neither."""
        site = node >> 32
        edges = self.tables[self.program.site_code[site].index].edges.get(self.program.site_slot[site])
        return NONE if edges is None else edges.view[node & ROW_MASK]

    def is_choice(self, code: Code, slot: int, row: int) -> bool:
        if code.slots[slot].kind is Kind.RANDOM:
            return True
        if code.slots[slot].kind is not Kind.CALL:
            return False
        return self.tables[code.index].edges[slot].view[row] in (RANDOM_EDGE, MAKER_EDGE)

    def choices(self) -> Iterator[int]:
        """Every live choice, observed or not, by Code, slot and row."""
        for table in self.tables:
            for slot in table.positions:
                site = table.code.first_site + slot
                yield from (site << 32 | row for row in table.live_rows() if self.is_choice(table.code, slot, row))

    def application(self, node: int) -> tuple[Random | Exchangeable, tuple[Any, ...]]:
        """The distribution of a choice and its arguments."""
        return self.choice(node)[:2]

    def choice(self, node: int) -> tuple[Random | Exchangeable, tuple[Any, ...], Any]:
        """The distribution of a choice, its arguments, and the choice's value."""
        site, row = node >> 32, node & ROW_MASK
        slot = self.program.site_code[site].slots[self.program.site_slot[site]]
        try:
            values = self.readers[site](row)
        except Exception as error:
            raise self._explained(site, row, error) from error
        value = self._columns[site].view[row]
        if slot.kind is Kind.RANDOM:
            return slot.record, values, value  # type: ignore[return-value]
        operator = values[0]
        if not isinstance(operator, (Random, Exchangeable)):
            raise InternalError("a choice whose operator is not random")
        arguments = values[1:]
        return operator, completed(operator, arguments) if isinstance(operator, Random) else arguments, value

    def is_memoized(self, code: Code, row: int) -> bool:
        """Whether a row is a family of a memoized procedure."""
        return self.tables[code.index].memo_of(row) is not None

    def kind(self, node: int) -> Kind:
        """The kind of a node's slot."""
        site = node >> 32
        return self.program.site_code[site].slots[self.program.site_slot[site]].kind

    def is_memo(self, node: int) -> bool:
        """Whether a node makes a memoized procedure."""
        return self.kind(node) is Kind.MEM

    def tags(self, code: Code, slot: int, row: int) -> list[tuple[Any, Any]]:
        """(scope, block key) of a choice, one for each scope that it is in by a tag, the innermost of those of a scope,
        or by name. Every choice is in `default` by itself, and a tag of that name says nothing."""
        found: dict[Any, Any] = {}
        regions = code.slots[slot].regions
        if regions:
            keys = self.block_keys(code, slot, row)
            for region, key in zip(reversed(regions), reversed(keys), strict=True):
                found.setdefault(region.scope, key)
        context = self.tables[code.index].context_of(row)
        while context:
            context, scope, key = self.contexts[context]
            found.setdefault(scope, key)
        found.pop("default", None)
        for name, named in self.named.items():
            key = named.key(code, slot, row)
            if key is not None:
                found[name] = key
        return list(found.items())

    def block_keys(self, code: Code, slot: int, row: int) -> tuple[Any, ...]:
        return self._key_readers[code.first_site + slot](row)

    def _key_reader(self, site: int) -> Reader:
        code = self.program.site_code[site]
        regions = code.slots[self.program.site_slot[site]].regions
        return self.reader(self, code, tuple(region.block for region in regions))

    def inner_context(self, code: Code, slot: int, row: int) -> int:
        """The tags that a family inherits when it is called at this slot."""
        context = self.tables[code.index].context_of(row)
        regions = code.slots[slot].regions
        if regions:
            for region, key in zip(regions, self.block_keys(code, slot, row), strict=True):
                known = len(self.contexts)
                inner = self._context_ids.setdefault((context, region.scope, key_of(key)), known)
                if inner == known:
                    self.contexts.append((context, region.scope, key))
                context = inner
        return context

    def register(self, code: Code, slot: int, row: int) -> None:
        """Enter an unconstrained choice into `default` and the scopes of its tags."""
        node = (code.first_site + slot) << 32 | row
        self.default.add(node, self.journal)
        if self.named or code.slots[slot].regions or self.tables[code.index].context is not None:
            for name, key in self.tags(code, slot, row):
                if name not in self.scopes:
                    self.scopes[name] = Scope()
                scope = self.scopes[name]
                assert isinstance(scope, Scope)
                scope.add(key, node, self.journal)

    def unregister(self, code: Code, slot: int, row: int) -> None:
        node = (code.first_site + slot) << 32 | row
        self.default.remove(node, self.journal)
        if self.named or code.slots[slot].regions or self.tables[code.index].context is not None:
            for name, key in self.tags(code, slot, row):
                scope = self.scopes[name]
                assert isinstance(scope, Scope)
                scope.remove(key, node, self.journal)

    def is_observed(self, node: int) -> bool:
        """Whether evidence fixes the node's value."""
        code, slot, row = self.decode(node)
        return self.tables[code.index].is_observed(slot, row)

    def set_observed(self, code: Code, slot: int, row: int, flag: bool) -> None:
        table = self.tables[code.index]
        self.journal.note(Table.set_observed, table, slot, row, table.is_observed(slot, row))
        table.set_observed(slot, row, flag)

    def recount(self) -> None:
        """Recompute all makers' statistics from their applications: removes what rounding left in them."""
        applications: dict[Exchangeable, list[Any]] = {maker: [] for maker in self.statistics.makers.values()}
        for table in self.tables:
            for slot, edges in table.edges.items():
                if table.code.slots[slot].kind is Kind.CALL and table.count:
                    site = table.code.first_site + slot
                    column = self.column(site).view
                    for row in np.flatnonzero(edges.array[: table.count] == MAKER_EDGE).tolist():
                        if table.live[row]:
                            maker, *inputs = self.read(site, row)
                            applications[maker].append((column[row], *inputs))
        for maker, drawn in applications.items():
            maker.state.recount(drawn)
        self.statistics.updates = 0

    # ------------------------------------------------------------------------------------------------- edges

    def memo_key(self, code: Code, row: int) -> Any:
        """The key under which a memoized row is entered: its arguments."""
        columns = self.tables[code.index].columns
        if code.arity == 1:
            return key_of(columns[0].view[row])  # type: ignore[union-attr]
        return tuple(key_of(column.view[row]) for column in columns[: code.arity])  # type: ignore[union-attr]

    def bytes_used(self) -> int:
        """Memory of all tables."""
        return sum(table.bytes_used() for table in self.tables)

    def structure_stamp(self) -> tuple[int, int]:
        """Equal stamps mean that rows, edges and readers are the same."""
        return self.program.version, self.journal.structure

    def environment(self, code: Code, row: int, depth: int = 1) -> tuple[Code, int]:
        """The row some environments up from a row."""
        for _ in range(depth):
            environment = self.tables[code.index].environment
            assert environment is not None
            assert code.parent is not None
            code, row = code.parent, environment.view[row]
        return code, row

    def if_of(self, code: Code, row: int) -> int:
        """The node of the `if` that a branch's row belongs to."""
        around, at = self.environment(code, row)
        return (around.first_site + code.if_slot) << 32 | at

    def caller(self, code: Code, row: int) -> int | None:
        """The node of the call or `if` that a row belongs to, of a memoized family the first of its calls; None for a
        directive's row, and where nobody calls."""
        if code.kind == "branch":
            return self.if_of(code, row)
        users = self.users.nodes(code, row)
        return users[0] if users else None

    # -------------------------------------------------------------------------------------------- for messages

    def call_chain(self, code: Code, slot: int, row: int, limit: int = 60) -> list[CallSite]:
        """The calls that lead to a node, innermost first."""
        chain: list[CallSite] = []
        while len(chain) < limit:
            if slot >= 0:
                chain.extend(code.slots[slot].inlined)
            caller = self.caller(code, row)
            if caller is None:
                break
            called, (code, slot, row) = code, self.decode(caller)
            if called.kind == "lambda":
                chain.append(CallSite(called.name, code.slots[slot].span))
        return chain

    def place(self, code: Code, slot: int, row: int, limit: int = 60) -> tuple[Span | None, list[CallSite]]:
        """The text of a slot, or of a row's whole body (-1), and the calls that lead there."""
        return code.slots[slot].span if slot >= 0 else code.span, self.call_chain(code, slot, row, limit)

    def result_node(self, code: Code, row: int) -> int:
        """The node that holds the row's result, or -1 where the result is computed or stands elsewhere."""
        match code.result:
            case SlotRef(depth=0) if code.result_slot >= 0:
                return (code.first_site + code.result_slot) << 32 | row
        return -1
