"""The checker: everything in a trace that follows from something else is computed anew and compared.

It knows nothing of how transitions keep the trace in step; it reads the columns and the text's Codes. For tests,
between directives and transitions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from venture_lite.audit.recompute import Recomputation, same
from venture_lite.audit.snapshot import live_rows, node_of
from venture_lite.errors import InternalError, VentureError
from venture_lite.interpreter.addresses import address, address_order, block_order
from venture_lite.interpreter.constants import is_constant
from venture_lite.interpreter.weights import Weight
from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.program.code import Code, Kind
from venture_lite.program.selects import truth
from venture_lite.trace.bags import Bag
from venture_lite.trace.keys import memo_key
from venture_lite.trace.runtime import Closure, Exchangeable, Memo
from venture_lite.trace.scopes import SEVERAL, Scope
from venture_lite.trace.table import MAKER_EDGE, NONE, PRIMITIVE_EDGE, RANDOM_EDGE, ROW_MASK, Table
from venture_lite.trace.trace import Trace
from venture_lite.trace.users import MANY
from venture_lite.values import key_of, show

if TYPE_CHECKING:
    from venture_lite.interpreter.model import Model

Where = tuple[Code, int, int]
"""A slot of a row; NONE for the whole row."""

STATISTICS = 1e-9
"""How far statistics that were updated step by step may be from a recount."""


def check(model: Model) -> None:
    """Raises InternalError that lists every invariant that does not hold."""
    checker = _Checker(model)
    broken = checker.all()
    if broken:
        shown = "\n  ".join(broken[:40])
        raise InternalError(f"{len(broken)} broken invariants:\n  {shown}")


class _Checker:
    """Collects what is broken, as text. Reads the trace and changes nothing."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.trace: Trace = model.trace
        self.compute = Recomputation(model.trace)
        self.broken: list[str] = []
        self.rows = {table.code: live_rows(table) for table in model.trace.tables}
        # (Code, row) of a family -> nodes whose edge leads to it
        self.users: dict[tuple[Code, int], list[int]] = {}
        # unobserved choices
        self.free: list[int] = []
        # maker's node -> values of its applications
        self.applications: dict[int, list[Any]] = {}
        self.makers: set[int] = set()
        self.score = Weight()

    def all(self) -> list[str]:
        self.idle()
        for table in self.trace.tables:
            self.table(table)
            for row in self.rows[table.code]:
                for slot, item in enumerate(table.code.slots):
                    if item.stored:
                        with self.computing((table.code, slot, row), "cannot be computed"):
                            self.slot((table.code, slot, row))
        for table in self.trace.tables:
            self.users_of(table)
            self.children(table)
            self.constants(table)
        self.broken.extend(wrong_scopes(self.trace, self.free))
        self.broken.extend(alike_in_order(self.trace, self.free))
        self.maker_statistics()
        self.globals()
        self.broken.extend(self.model.weights.check())
        self.log_score()
        return self.broken

    def say(self, where: Where, what: str) -> None:
        code, slot, row = where
        self.broken.append(f"{code} slot {slot} row {row}: {what}")

    def expect(self, truth: bool, where: Where, what: str) -> None:
        if not truth:
            self.say(where, what)

    @contextmanager
    def computing(self, where: Where, what: str) -> Iterator[None]:
        """An error in the block is one more thing that is broken."""
        try:
            yield
        except (VentureError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            self.say(where, f"{what}: {error!r}")

    def edge(self, where: Where) -> int:
        code, slot, row = where
        return int(self.trace.tables[code.index].edges[slot].view[row])

    def idle(self) -> None:
        """Nothing is under way: the machine is clean and the journal empty."""
        machine, journal = self.model.machine, self.trace.journal
        handler = machine.handler
        under_way = [*machine.stack, *machine.unfinished, *handler.pending, *handler.structural, *handler.constrained]
        if under_way or machine.to_constrain or handler.before is not None:
            self.broken.append("the machine is in the middle of something")
        if journal.entries or journal.freed or journal.restructured:
            self.broken.append(f"the journal holds {len(journal.entries)} changes, {len(journal.freed)} freed rows")

    def table(self, table: Table) -> None:
        dead = {row for row in range(table.count) if not table.live[row]}
        if any(table.live[table.count :]) or len(dead) != table.dead:
            self.broken.append(f"{table.code}: {table.dead} dead of {table.count} rows, but {len(dead)} are")
        if len(set(table.free)) != len(table.free) or set(table.free) | table.withheld != dead:
            self.broken.append(f"{table.code}: free rows {sorted(table.free)}, dead ones {sorted(dead)}")
        for slot, flags in table.observed.items():
            if any(flags[table.count :]):
                self.broken.append(f"{table.code} slot {slot}: rows beyond the end of the table are observed")
        for row in dead:
            if table.memo_of(row) is not None:
                self.say((table.code, NONE, row), "a dead row has a memo entry")

    # ------------------------------------------------------------------------------------------------- slots

    def slot(self, where: Where) -> None:
        code, index, row = where
        item = code.slots[index]
        value = self.trace.tables[code.index].columns[index].view[row]  # type: ignore[union-attr]
        match item.kind:
            case Kind.DETERMINISTIC:
                fresh = self.compute.apply(code, index, self.compute.arguments(code, index, row))
                self.expect(same(value, fresh), where, f"{show(value)} is stored, {show(fresh)} computed")
            case Kind.RANDOM:
                self.choice(where, item.record, self.compute.arguments(code, index, row), value)
            case Kind.CALL:
                self.call(where, value)
            case Kind.IF:
                self.branch(where, value)
            case Kind.MEM:
                assert item.operator is not None
                procedure = self.compute.read(code, row, item.operator)
                right = value is procedure if isinstance(procedure, Memo) else value.procedure == procedure
                self.expect(right, where, "memoizes another procedure")
                self.memo(where, value)
            case Kind.MAKER:
                self.maker(where, value)

    def choice(self, where: Where, record: Any, arguments: tuple[Any, ...], value: Any) -> None:
        node = node_of(*where)
        if not self.trace.is_observed(node):
            self.free.append(node)
        if isinstance(record, Exchangeable):
            self.applications.setdefault(record.node, []).append((value, *arguments))
            is_there = self.trace.statistics.makers.get(record.node) is record
            self.expect(is_there, where, "applies a maker that is gone")
        else:
            # arguments outside their domains were taken there by rounding
            is_valid = self.trace.valid[record](*arguments)
            self.score.add_choice(self.trace, node, record.log_density(value, *arguments) if is_valid else -math.inf)

    def branch(self, where: Where, value: Any) -> None:
        code, index, row = where
        item, edge = code.slots[index], self.edge(where)
        assert item.operator is not None
        taken = item.branches[0 if truth(self.compute.read(code, row, item.operator)) else 1]
        if edge >> 32 != taken.index:
            self.say(where, f"the predicate chooses {taken}, the edge is {edge}")
        elif self.family(where, taken, edge & ROW_MASK, value):
            self.made_in(where, taken, edge & ROW_MASK, row)

    def call(self, where: Where, value: Any) -> None:
        code, index, row = where
        item, edge = code.slots[index], self.edge(where)
        assert item.operator is not None
        operator = self.compute.read(code, row, item.operator)
        arguments = self.compute.arguments(code, index, row)
        match operator:
            case Closure():
                self.plain_call(where, operator, arguments, edge, value)
            case Memo():
                self.memoized_call(where, operator, arguments, edge, value)
            case Random():
                self.expect(edge == RANDOM_EDGE, where, f"a random call whose edge is {edge}")
                self.choice(where, operator, check_arguments(operator, arguments), value)
            case Exchangeable():
                self.expect(edge == MAKER_EDGE, where, f"an exchangeable call whose edge is {edge}")
                self.choice(where, operator, arguments, value)
            case Deterministic():
                self.expect(edge == PRIMITIVE_EDGE, where, f"a primitive call whose edge is {edge}")
                fresh = operator.scalar(*arguments)
                self.expect(same(value, fresh), where, f"{show(value)} is stored, {show(fresh)} computed")
            case _:
                self.say(where, f"calls {show(operator)}")

    def family(self, where: Where, inner: Code, at: int, value: Any) -> bool:
        """A live family whose result is the value that its user has copied."""
        self.users.setdefault((inner, at), []).append(node_of(*where))
        table = self.trace.tables[inner.index]
        if at >= table.count or not table.live[at]:
            self.say(where, f"uses the dead row {at} of {inner}")
            return False
        result = self.compute.read(inner, at, inner.result)
        self.expect(same(value, result), where, f"copied {show(value)}, the result is {show(result)}")
        return True

    def plain_call(self, where: Where, operator: Closure, arguments: Any, edge: int, value: Any) -> None:
        inner, at = operator.code, edge & ROW_MASK
        if edge >> 32 != inner.index:
            self.say(where, f"calls {inner}, the edge is {edge}")
            return
        if not self.family(where, inner, at, value):
            return
        table = self.trace.tables[inner.index]
        self.expect(table.memo_of(at) is None, where, "a plain call uses a memoized row")
        self.expect(table.user.view[at] == node_of(*where), where, "the family has another user")
        for position, argument in enumerate(arguments):
            stored = table.columns[position].view[at]  # type: ignore[union-attr]
            what = f"argument {position} is {show(stored)}, given {show(argument)}"
            self.expect(same(stored, argument), where, what)
        self.made_in(where, inner, at, operator.row)

    def memoized_call(self, where: Where, operator: Memo, arguments: Any, edge: int, value: Any) -> None:
        key = memo_key(tuple(arguments))
        at = operator.entries.get(key)
        if at is None or edge < 0 or at != edge & ROW_MASK:
            self.say(where, f"the key {key} has the row {at}, the edge is {edge}")
            return
        self.family(where, self.trace.program.codes[edge >> 32], at, value)

    def made_in(self, where: Where, inner: Code, at: int, row: int) -> None:
        """A family stands in the environment in which it was made, and inherits the tags of its call."""
        table, wanted = self.trace.tables[inner.index], self.trace.inner_context(*where)
        assert table.environment is not None
        self.expect(table.environment.view[at] == row, where, "the family has another environment")
        found = table.context_of(at)
        self.expect(found == wanted, where, f"the family inherits tags {found}, not {wanted}")

    # ----------------------------------------------------------------------------------------------- procedures

    def constants(self, table: Table) -> None:
        """What is remembered of constant families is so, and no proposal is under way that would need more."""
        for row, constant in table.constant.items():
            if constant and table.live[row]:
                self.expect(is_constant(self.trace, table.code, row), (table.code, NONE, row), "is said to be constant")

    def memo(self, where: Where, memo: Memo) -> None:
        body, environment = memo.procedure.code, memo.procedure.row
        table = self.trace.tables[body.index]
        members = [at for at in self.rows[body] if table.memo_of(at) is memo]
        mirrored = {self.trace.memo_key(body, at): at for at in members}
        self.expect(len(mirrored) == len(members), where, f"rows {members} share keys")
        entries = dict(memo.entries.items())
        self.expect(mirrored == entries, where, f"entries {entries}, rows {mirrored}")
        assert table.environment is not None
        for at in members:
            self.expect(table.environment.view[at] == environment, (body, NONE, at), "another environment")
            self.expect(table.context_of(at) == 0, (body, NONE, at), "a memoized row inherits tags")

    def maker(self, where: Where, value: Any) -> None:
        node, record = node_of(*where), where[0].slots[where[1]].record
        assert isinstance(record, Maker)
        self.makers.add(node)
        is_entered = isinstance(value, Exchangeable) and self.trace.statistics.makers.get(node) is value
        if not is_entered or value.node != node or value.record is not record:
            self.say(where, "is not entered as a maker")
            return
        fresh = check_arguments(record, self.compute.arguments(*where))
        stored = tuple(value.state.arguments)
        self.expect(same(stored, fresh), where, f"arguments {stored}, computed {fresh}")

    def maker_statistics(self) -> None:
        for node, maker in self.trace.statistics.makers.items():
            where = self.trace.decode(node)
            if node not in self.makers:
                self.say(where, "a maker of a dead row is entered")
                continue
            with self.computing(where, "statistics do not fit"):
                self.statistics_of(maker, where)

    def statistics_of(self, maker: Exchangeable, where: Where) -> None:
        applications = self.applications.get(maker.node, [])
        fresh = maker.record.make(*maker.state.arguments)
        fresh.recount(applications)
        kept, counted = maker.state.statistics(), fresh.statistics()
        count = maker.state.count == fresh.count == len(applications)
        right = count and same(kept, counted, STATISTICS, STATISTICS)
        self.expect(right, where, f"statistics {kept}, a recount {counted}")
        self.score.add(fresh.log_joint())
        for application in applications[:10]:
            mine, its = maker.state.log_predictive(*application), fresh.log_predictive(*application)
            self.expect(math.isclose(mine, its, rel_tol=1e-8, abs_tol=1e-8), where, f"predicts {mine}, not {its}")

    # ----------------------------------------------------------------------------------------- users, children

    def users_of(self, table: Table) -> None:
        code = table.code
        many = {row for row in self.rows[code] if code.kind == "lambda" and table.user.view[row] == MANY}
        if many != set(table.users):
            self.broken.append(f"{code}: rows with many users {sorted(many)}, bags for {sorted(table.users)}")
            return
        for row in self.rows[code]:
            where = (code, NONE, row)
            expected = sorted(self.users.get((code, row), []))
            match code.kind:
                case "directive":
                    self.expect(not expected, where, f"a directive's row is used by {expected}")
                case "branch":
                    self.expect(len(expected) == 1, where, f"a branch is used by {expected}")
                case _:
                    found = sorted(self.trace.users.nodes(code, row))
                    self.expect(found == expected, where, f"users {found}, edges from {expected}")
                    if not expected:
                        self.without_users(table, row)
                    count = self.trace.users.count(code, row)
                    self.expect(count == len(expected), where, f"{count} users counted, {len(expected)} are")
            if row in many and not isinstance(table.users[row], tuple):
                for bag in table.users[row].by_site.values():
                    self.broken.extend(misplaced(bag, f"users of row {row} of {code}"))

    def without_users(self, table: Table, row: int) -> None:
        """Only constant families of procedures that are there stay without users."""
        memo = table.memo_of(row)
        where = (table.code, NONE, row)
        self.expect(memo is not None and is_constant(self.trace, table.code, row), where, "a family without users")
        if memo is not None:
            self.expect(self.trace.constants.is_alive(memo), where, "a family outlives its procedure")
            self.expect(row in memo.unused, where, "nobody would let go of the family")

    def children(self, table: Table) -> None:
        if table.child_position is None:
            if table.children:
                self.broken.append(f"{table.code}: children are kept for nothing")
            return
        expected: dict[int, list[int]] = {}
        assert table.environment is not None
        for row in self.rows[table.code]:
            expected.setdefault(table.environment.view[row], []).append(row)
        found = {environment: sorted(bag) for environment, bag in table.children.items()}
        if found != expected:
            self.broken.append(f"{table.code}: children {found}, environments {expected}")
        for environment, bag in table.children.items():
            self.broken.extend(misplaced(bag, f"children of row {environment} in {table.code}"))

    # ------------------------------------------------------------------------------------- globals and the score

    def globals(self) -> None:
        analyzer = self.trace.analyzer
        targets = [*analyzer.globals.values(), *analyzer.standard.values()]
        bound = {(target.code.index, target.row): target for target in targets if target.code is not None}
        if bound != self.trace.bindings.by_row or len(bound) != len(targets):
            names = {place: target.name for place, target in self.trace.bindings.by_row.items()}
            self.broken.append(f"globals {[target.name for target in targets]} stand in rows {names}")
        for (index, row), target in bound.items():
            if not self.trace.tables[index].live[row]:
                self.broken.append(f"{target.name} names a dead row")

    def log_score(self) -> None:
        found, expected = self.model.log_score(), self.score
        close = math.isclose(found.total, expected.total, rel_tol=STATISTICS, abs_tol=STATISTICS)
        if found.impossible != expected.impossible or not close:
            self.broken.append(f"log score {found}, live choices sum to {expected}")


# ------------------------------------------------------------------------- whether every choice stands where it should


def misplaced(bag: Bag, what: str) -> list[str]:
    """Items whose kept position is not where they stand."""
    broken = []
    for position, item in enumerate(bag):
        column, row = bag.locate(item)
        if column.view[row] != position:
            broken.append(f"{what}: {item} stands at {position}, not at {column.view[row]}")
    return broken


def wrong_scopes(trace: Trace, free: list[int]) -> list[str]:
    """How the scopes differ from what the unobserved choices `free` and their tags say."""
    broken = [*_differing("scope default", Counter(free), Counter(trace.default.bag))]
    broken.extend(misplaced(trace.default.bag, "scope default"))
    expected: dict[Any, Counter[Any]] = {}
    for node in free:
        for name, key in trace.tags(*trace.decode(node)):
            expected.setdefault(name, Counter())[key_of(key), node] += 1
    for name, scope in trace.scopes.items():
        if scope.added is not None:
            broken.append(f"scope {name}: a sweep is still on")
        if isinstance(scope, Scope):
            broken.extend(_wrong_blocks(name, scope))
            standing = Counter((key_of(given), node) for given in scope.all_keys() for node in scope.members(given))
            broken.extend(_differing(f"scope {name}", expected.pop(name, Counter()), standing))
    for name, missing in expected.items():
        broken.extend(_differing(f"scope {name}", missing, Counter()))
    return broken


def _differing(what: str, expected: Counter[Any], found: Counter[Any]) -> list[str]:
    if expected == found:
        return []
    return [f"{what} lacks {dict(expected - found)} and has {dict(found - expected)} too much"]


def alike_in_order(trace: Trace, free: list[int]) -> list[str]:
    """Choices with one address, and choices or blocks with one place in the order of a sweep."""
    places = {node: address(trace, node) for node in free}
    broken = _shared("address", ((node, place) for node, place in places.items()))
    broken.extend(_shared("place in the order", ((node, address_order(place)) for node, place in places.items())))
    for name, scope in trace.scopes.items():
        if isinstance(scope, Scope):
            orders = ((key, block_order(trace, key)) for key in scope.all_keys())
            broken.extend(_shared(f"place in the order of scope {name}", orders))
    return broken


def _shared(what: str, places: Iterable[tuple[Any, Any]]) -> list[str]:
    """Things that share a place."""
    first: dict[Any, Any] = {}
    shared = [(first[place], thing) for thing, place in places if first.setdefault(place, thing) is not thing]
    return [f"{one} and {other} have one {what}" for one, other in shared]


def _wrong_blocks(name: Any, scope: Scope) -> list[str]:
    """How a scope's index and lists disagree."""
    broken = []
    index = {key_of(given): position for position, given in enumerate(scope.all_keys())}
    found_at = dict(scope.index.items())
    if index != found_at or len(index) != len(scope.all_keys()) or len(scope.blocks) != len(scope.all_keys()):
        broken.append(f"scope {name}: blocks {scope.all_keys()} are found at {found_at}")
    crowds = {position for position, node in enumerate(scope.blocks) if node == SEVERAL}
    if crowds != set(scope.crowds) or any(len(members) < 2 for members in scope.crowds.values()):
        broken.append(f"scope {name}: blocks {sorted(crowds)} have several choices, {scope.crowds} are kept")
    return broken
