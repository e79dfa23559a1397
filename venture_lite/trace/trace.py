"""The trace: tables, edges, choices and scopes, with the elementary operations that keep them in step.

Every operation here writes its inverse to the journal. What evaluates, detaches and regenerates families is in
`evaluate.py` and `regenerate.py`; this module owns the data.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from venture_lite.analyze import Analyzer, StandardNames
from venture_lite.code import Code, Global, Kind, Program, SlotRef
from venture_lite.errors import CallSite, InternalError
from venture_lite.procedures.checks import record_valid
from venture_lite.procedures.record import Random
from venture_lite.trace.bags import Users
from venture_lite.trace.dependence import refuse_random_keys
from venture_lite.trace.emit import Reader, reader
from venture_lite.trace.explain import explain
from venture_lite.trace.journal import Journal
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.scopes import DefaultScope, Scope
from venture_lite.trace.table import NONE, Column, Table
from venture_lite.values import key_of

MANY = -2
"""In `Table.user`: the row has a bag of users."""

FEW = 8
"""Up to so many users stand in a tuple, beyond it in bags."""

# kinds of a CALL's edge that lead to no row
NO_EDGE = -1
RANDOM_EDGE = -2
MAKER_EDGE = -3
PRIMITIVE_EDGE = -4

ROW_MASK = 0xFFFFFFFF


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
        # interned tags: id -> (id of the tags around, scope, block key); 0 is no tag
        self.contexts: list[tuple[int, Any, Any]] = [(0, None, None)]
        self._context_ids: dict[Any, int] = {}
        # site -> how its operator and arguments are read
        self.readers: list[Reader | None] = []
        self._block_readers: dict[int, Reader] = {}
        self._valid: dict[Any, Any] = {}
        # record -> the arguments that were found valid last
        self.checked: dict[Any, tuple[Any, ...]] = {}
        # tables of what was derived from the places where globals stand
        self.derived: list[dict[Any, Any]] = [self._block_readers]
        # global bound to the row of its directive
        self.globals_of_row: dict[tuple[int, int], Global] = {}
        # while many rows are loaded: the procedures whose statistics the journal can put back
        self.loading: set[Exchangeable] | None = None
        # every exchangeable procedure alive, by the node of its maker
        self.makers: dict[int, Exchangeable] = {}
        # changes of makers' statistics since they were last recounted
        self.updates = 0

    # ------------------------------------------------------------------------------------------------- nodes

    def table(self, code: Code) -> Table:
        while len(self.tables) <= code.index:
            self.tables.append(Table(self.program.codes[len(self.tables)]))
        return self.tables[code.index]

    def grow_with_program(self) -> None:
        """Make the tables of Codes that the analysis added."""
        for code in self.program.codes[len(self.tables) :]:
            self.tables.append(Table(code))
        self.readers.extend([None] * (len(self.program.site_code) - len(self.readers)))

    def decode(self, node: int) -> tuple[Code, int, int]:
        """(Code, slot, row) of a packed node."""
        site = node >> 32
        return self.program.site_code[site], self.program.site_slot[site], node & ROW_MASK

    def column(self, site: int) -> Column:
        column = self.tables[self.program.site_code[site].index].columns[self.program.site_slot[site]]
        if column is None:
            raise InternalError("a fused slot has no column")
        return column

    def value(self, node: int) -> Any:
        return self.column(node >> 32).view[node & ROW_MASK]

    def result(self, code: Code, row: int) -> Any:
        """The value of a row's body."""
        if code.result_slot >= 0:
            return self.tables[code.index].columns[code.result_slot].view[row]  # type: ignore[union-attr]
        return self.result_reader(code)(row)[0]

    def result_reader(self, code: Code) -> Reader:
        site = -1 - code.index
        found = self._block_readers.get(site)
        if found is None:
            found = self._block_readers[site] = reader(self, code, (code.result,))
        return found

    def reader_of(self, site: int) -> Reader:
        """The function that reads a slot's operator (if it has one) and arguments."""
        found = self.readers[site]
        if found is None:
            code = self.program.site_code[site]
            slot = code.slots[self.program.site_slot[site]]
            refs = slot.arguments if slot.operator is None else (slot.operator, *slot.arguments)
            found = self.readers[site] = reader(self, code, refs)
        return found

    def read(self, site: int, row: int) -> tuple[Any, ...]:
        """A slot's operator (if it has one) and arguments; an error in a fused slot is located."""
        try:
            return (self.readers[site] or self.reader_of(site))(row)
        except Exception as error:
            raise explain(self, site, row, error) from error

    def valid(self, record: Any) -> Any:
        """The fast test of a record's arguments."""
        found = self._valid.get(record)
        if found is None:
            found = self._valid[record] = record_valid(record)
        return found

    # ----------------------------------------------------------------------------------------------- choices

    def locate_choice(self, node: int) -> tuple[Column, int]:
        code, slot, row = self.decode(node)
        return self.tables[code.index].positions[slot], row

    def is_choice(self, code: Code, slot: int, row: int) -> bool:
        if code.slots[slot].kind is Kind.RANDOM:
            return True
        if code.slots[slot].kind is not Kind.CALL:
            return False
        return self.tables[code.index].edges[slot].view[row] in (RANDOM_EDGE, MAKER_EDGE)

    def application(self, site: int, row: int) -> tuple[Random | Exchangeable, tuple[Any, ...]]:
        """The distribution of a choice and its arguments."""
        code = self.program.site_code[site]
        slot = code.slots[self.program.site_slot[site]]
        values = self.read(site, row)
        if slot.kind is Kind.RANDOM:
            return slot.record, values  # type: ignore[return-value]
        operator = values[0]
        if not isinstance(operator, (Random, Exchangeable)):
            raise InternalError("a choice whose operator is not random")
        arguments = values[1:]
        if isinstance(operator, Random) and len(arguments) < len(operator.arguments):
            arguments += tuple(argument.default for argument in operator.arguments[len(arguments) :])
        return operator, arguments

    def tags(self, code: Code, slot: int, row: int) -> list[tuple[Any, Any]]:
        """(scope, block key) of a choice, one a tagged scope; where tags of a scope nest, the innermost counts."""
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
        return list(found.items())

    def block_keys(self, code: Code, slot: int, row: int) -> tuple[Any, ...]:
        site = code.first_site + slot
        found = self._block_readers.get(site)
        if found is None:
            refs = tuple(region.block for region in code.slots[slot].regions)
            found = self._block_readers[site] = reader(self, code, refs)
        return found(row)

    def inner_context(self, code: Code, slot: int, row: int) -> int:
        """The tags that a family inherits when it is called at this slot."""
        context = self.tables[code.index].context_of(row)
        regions = code.slots[slot].regions
        if regions:
            refuse_random_keys(self, code, slot, row)
            for region, key in zip(regions, self.block_keys(code, slot, row), strict=True):
                entry = (context, region.scope, key_of(key))
                inner = self._context_ids.get(entry)
                if inner is None:
                    inner = self._context_ids[entry] = len(self.contexts)
                    self.contexts.append((context, region.scope, key))
                context = inner
        return context

    def register(self, code: Code, slot: int, row: int) -> None:
        """Enter an unconstrained choice into `default` and the scopes of its tags."""
        node = (code.first_site + slot) << 32 | row
        self.default.add(node, self.journal)
        if code.slots[slot].regions or self.tables[code.index].context is not None:
            refuse_random_keys(self, code, slot, row)
            for name, key in self.tags(code, slot, row):
                if name == "default":
                    continue
                scope = self.scopes.get(name)
                if scope is None:
                    scope = self.scopes[name] = Scope()
                assert isinstance(scope, Scope)
                scope.add(key, node, self.journal)

    def unregister(self, code: Code, slot: int, row: int) -> None:
        node = (code.first_site + slot) << 32 | row
        self.default.remove(node, self.journal)
        if code.slots[slot].regions or self.tables[code.index].context is not None:
            for name, key in self.tags(code, slot, row):
                scope = self.scopes[name]
                if isinstance(scope, Scope):
                    scope.remove(key, node, self.journal)

    def set_observed(self, code: Code, slot: int, row: int, flag: bool) -> None:
        table = self.tables[code.index]
        self.journal.note(Table.set_observed, table, slot, row, table.is_observed(slot, row))
        table.set_observed(slot, row, flag)

    # --------------------------------------------------------------------------------- exchangeable procedures

    def incorporate(self, procedure: Exchangeable, value: Any) -> None:
        if self.loading is not None:
            # a long load is taken back as a whole or not at all: one copy of the state before it says it all
            if procedure not in self.loading:
                self.loading.add(procedure)
                self.journal.note(Exchangeable.put_state, procedure, copy.deepcopy(procedure.state))
            procedure.state.add(value)
        else:
            self.journal.note(procedure.state.restore, procedure.state.add(value))
        self.updates += 1

    def unincorporate(self, procedure: Exchangeable, value: Any) -> None:
        token = procedure.state.remove(value)
        self.updates += 1
        self.journal.note(procedure.state.restore, token)

    def set_maker_arguments(self, procedure: Exchangeable, arguments: tuple[Any, ...]) -> None:
        self.journal.note(procedure.state.set_arguments, procedure.state.arguments)
        procedure.state.set_arguments(arguments)

    def enter_maker(self, procedure: Exchangeable) -> None:
        self.makers[procedure.node] = procedure
        self.journal.note(self.makers.pop, procedure.node)

    def drop_maker(self, procedure: Exchangeable) -> None:
        del self.makers[procedure.node]
        self.journal.note(self.makers.__setitem__, procedure.node, procedure)

    def recount(self) -> None:
        """Recompute all makers' statistics from their applications: removes what rounding left in them."""
        values: dict[Exchangeable, list[Any]] = {maker: [] for maker in self.makers.values()}
        for table in self.tables:
            for slot, edges in table.edges.items():
                if table.code.slots[slot].kind is Kind.CALL and table.count:
                    site = table.code.first_site + slot
                    column = self.column(site).view
                    for row in np.flatnonzero(edges.array[: table.count] == MAKER_EDGE).tolist():
                        if table.live[row]:
                            values[self.read(site, row)[0]].append(column[row])
        for maker, drawn in values.items():
            maker.state.recount(drawn)
        self.updates = 0

    # ----------------------------------------------------------------------------------------------- globals

    def bind(self, target: Global, code: Code, row: int) -> None:
        """Let a name stand for the result of a directive's row."""
        self._bind(target, code, row)
        self.journal.note(self._unbind, target)

    def unbind(self, target: Global) -> None:
        assert target.code is not None
        self.journal.note(self._bind, target, target.code, target.row)
        self._unbind(target)

    def _bind(self, target: Global, code: Code, row: int) -> None:
        target.code, target.row = code, row
        self.globals_of_row[code.index, row] = target
        self._forget_derived(target)

    def _forget_derived(self, target: Global) -> None:
        """Text that read the name before it stood here is to look again."""
        if target.awaited:
            self.readers = [None] * len(self.readers)
            for table in self.derived:
                table.clear()

    def _unbind(self, target: Global) -> None:
        assert target.code is not None
        del self.globals_of_row[target.code.index, target.row]
        target.code, target.row = None, NONE
        self._forget_derived(target)

    # ------------------------------------------------------------------------------------------------- edges

    def memo_key(self, code: Code, row: int) -> Any:
        """The key under which a memoized row is entered: its arguments."""
        columns = self.tables[code.index].columns
        if code.arity == 1:
            return key_of(columns[0].view[row])  # type: ignore[union-attr]
        return tuple(key_of(column.view[row]) for column in columns[: code.arity])  # type: ignore[union-attr]

    def structure_stamp(self) -> tuple[int, int]:
        """Equal stamps mean that rows, edges and readers are the same."""
        return self.program.version, self.journal.structure

    def add_user(self, code: Code, row: int, site: int, user_row: int) -> None:
        """A node uses the result of a family."""
        self.journal.restructured = True
        table = self.tables[code.index]
        first = table.user.view[row]
        if first == NONE:
            self.journal.put(table.user, row, site << 32 | user_row)
            return
        if first != MANY:
            table.users[row] = (first, site << 32 | user_row)
            self.journal.note(dict.pop, table.users, row)
            self.journal.put(table.user, row, MANY)
            return
        users = table.users[row]
        if isinstance(users, tuple):
            self.journal.note(dict.__setitem__, table.users, row, users)
            if len(users) < FEW:
                table.users[row] = (*users, site << 32 | user_row)
                return
            bag = table.users[row] = Users(self._locate_users)
            for node in users:
                bag.add(node >> 32, node & ROW_MASK, self.journal)
        table.users[row].add(site, user_row, self.journal)

    def remove_user(self, code: Code, row: int, site: int, user_row: int) -> None:
        self.journal.restructured = True
        table = self.tables[code.index]
        if table.user.view[row] != MANY:
            self.journal.put(table.user, row, NONE)
            return
        users = table.users[row]
        if isinstance(users, tuple):
            left = tuple(node for node in users if node != site << 32 | user_row)
            table.users[row] = left
            count = len(left)
        else:
            users.remove(site, user_row, self.journal)
            count = users.count
        if isinstance(users, tuple) or not count:
            self.journal.note(dict.__setitem__, table.users, row, users)
        if not count:
            del table.users[row]
            self.journal.put(table.user, row, NONE)

    def _locate_users(self, site: int) -> Any:
        positions = self.tables[self.program.site_code[site].index].positions[self.program.site_slot[site]]
        return lambda row: (positions, row)

    def user_count(self, code: Code, row: int) -> int:
        first = self.tables[code.index].user.view[row]
        if first == NONE:
            return 0
        return len(self.tables[code.index].users[row]) if first == MANY else 1

    def user_nodes(self, code: Code, row: int) -> list[int]:
        """Packed nodes that use the row's result, but for readers of the global that it defines."""
        if code.kind == "directive":
            return []
        first = self.tables[code.index].user.view[row]
        if first == NONE:
            return []
        if first != MANY:
            return [first]
        users = self.tables[code.index].users[row]
        return list(users) if isinstance(users, tuple) else users.nodes()

    # -------------------------------------------------------------------------------------------- for messages

    def call_chain(self, code: Code, slot: int, row: int, limit: int = 60) -> list[CallSite]:
        """The calls that lead to a node, innermost first."""
        chain: list[CallSite] = []
        while len(chain) < limit:
            if slot >= 0:
                chain.extend(code.slots[slot].inlined)
            if code.kind == "directive":
                break
            if code.kind == "branch":
                user_slot, user_row = code.if_slot, self.tables[code.index].environment.view[row]  # type: ignore[union-attr]
                user_code = code.parent
            else:
                users = self.user_nodes(code, row)
                if not users:
                    break
                user_code, user_slot, user_row = self.decode(users[0])
                chain.append(CallSite(code.name, user_code.slots[user_slot].span))
            if user_code is None:
                break
            code, slot, row = user_code, user_slot, user_row
        return chain

    def result_node(self, code: Code, row: int) -> int:
        """The node that holds the row's result, or -1 where the result is computed or stands elsewhere."""
        match code.result:
            case SlotRef(depth=0) if code.result_slot >= 0:
                return (code.first_site + code.result_slot) << 32 | row
        return -1
