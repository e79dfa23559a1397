"""The checker: everything in a trace that follows from something else is computed anew and compared.

It knows nothing of how transitions keep the trace in step; it reads the columns and the text's Codes. For tests,
between directives and transitions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from venture_lite.audit.recompute import Recomputation, same
from venture_lite.audit.snapshot import live_rows, node_of
from venture_lite.errors import InternalError, VentureError
from venture_lite.interpreter.constants import is_constant
from venture_lite.interpreter.placement import alike_in_order, misplaced, wrong_scopes
from venture_lite.interpreter.weights import Weight
from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.program.code import Code, Kind
from venture_lite.program.forms import truth
from venture_lite.trace.runtime import Closure, Exchangeable, Memo
from venture_lite.trace.table import MAKER_EDGE, NONE, PRIMITIVE_EDGE, RANDOM_EDGE, ROW_MASK, Table
from venture_lite.trace.trace import Trace
from venture_lite.trace.users import MANY
from venture_lite.values import key_of, show

if TYPE_CHECKING:
    from venture_lite.interpreter.model import Model

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
                for slot in range(len(table.code.slots)):
                    if table.code.slots[slot].stored:
                        self.guarded(table.code, slot, row)
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

    def say(self, code: Code, slot: int, row: int, what: str) -> None:
        self.broken.append(f"{code} slot {slot} row {row}: {what}")

    def expect(self, truth: bool, code: Code, slot: int, row: int, what: str) -> None:
        if not truth:
            self.say(code, slot, row, what)

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
        for row in dead:
            if table.memos is not None and table.memos[row] is not None:
                self.say(table.code, NONE, row, "a dead row has a memo entry")

    # ------------------------------------------------------------------------------------------------- slots

    def guarded(self, code: Code, slot: int, row: int) -> None:
        try:
            self.slot(code, slot, row)
        except (VentureError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            self.say(code, slot, row, f"cannot be computed: {error!r}")

    def slot(self, code: Code, index: int, row: int) -> None:
        item = code.slots[index]
        value = self.trace.tables[code.index].columns[index].view[row]  # type: ignore[union-attr]
        match item.kind:
            case Kind.DETERMINISTIC:
                fresh = self.compute.apply(code, index, self.compute.arguments(code, index, row))
                self.expect(same(value, fresh), code, index, row, f"{show(value)} is stored, {show(fresh)} computed")
            case Kind.RANDOM:
                self.choice(code, index, row, item.record, self.compute.arguments(code, index, row), value)
            case Kind.CALL:
                self.call(code, index, row, value)
            case Kind.IF:
                self.branch(code, index, row, value)
            case Kind.MEM:
                assert item.operator is not None
                procedure = self.compute.read(code, row, item.operator)
                right = value is procedure if isinstance(procedure, Memo) else value.procedure == procedure
                self.expect(right, code, index, row, "memoizes another procedure")
                self.memo(code, index, row, value)
            case Kind.MAKER:
                self.maker(code, index, row, value)

    def choice(self, code: Code, slot: int, row: int, record: Any, arguments: tuple[Any, ...], value: Any) -> None:
        node = node_of(code, slot, row)
        if not self.trace.tables[code.index].is_observed(slot, row):
            self.free.append(node)
        if isinstance(record, Exchangeable):
            self.applications.setdefault(record.node, []).append((value, *arguments))
            self.expect(
                self.trace.statistics.makers.get(record.node) is record, code, slot, row, "applies a maker that is gone"
            )
        else:
            # arguments outside their domains were taken there by rounding
            is_valid = self.trace.valid[record](*arguments)
            self.score.add_choice(self.trace, node, record.log_density(value, *arguments) if is_valid else -math.inf)

    def branch(self, code: Code, index: int, row: int, value: Any) -> None:
        item = code.slots[index]
        assert item.operator is not None
        packed = self.trace.tables[code.index].edges[index].view[row]
        taken = item.branches[0 if truth(self.compute.read(code, row, item.operator)) else 1]
        if packed < 0 or packed >> 32 != taken.index:
            self.say(code, index, row, f"the predicate chooses {taken}, the edge is {packed}")
            return
        inner = packed & ROW_MASK
        if self.family(code, index, row, taken, inner, value):
            environment = self.trace.tables[taken.index].environment
            assert environment is not None
            self.expect(environment.view[inner] == row, code, index, row, "the branch has another environment")
            self.same_context(code, index, row, taken, inner)

    def call(self, code: Code, index: int, row: int, value: Any) -> None:
        item = code.slots[index]
        assert item.operator is not None
        packed = self.trace.tables[code.index].edges[index].view[row]
        operator = self.compute.read(code, row, item.operator)
        arguments = self.compute.arguments(code, index, row)
        match operator:
            case Closure():
                self.plain_call(code, index, row, operator, arguments, packed, value)
            case Memo():
                self.memoized_call(code, index, row, operator, arguments, packed, value)
            case Random():
                self.expect(packed == RANDOM_EDGE, code, index, row, f"a random call whose edge is {packed}")
                self.choice(code, index, row, operator, check_arguments(operator, arguments), value)
            case Exchangeable():
                self.expect(packed == MAKER_EDGE, code, index, row, f"an exchangeable call whose edge is {packed}")
                self.choice(code, index, row, operator, arguments, value)
            case Deterministic():
                self.expect(packed == PRIMITIVE_EDGE, code, index, row, f"a primitive call whose edge is {packed}")
                fresh = operator.scalar(*arguments)
                self.expect(same(value, fresh), code, index, row, f"{show(value)} is stored, {show(fresh)} computed")
            case _:
                self.say(code, index, row, f"calls {show(operator)}")

    def family(self, code: Code, index: int, row: int, inner: Code, at: int, value: Any) -> bool:
        """A live family whose result is the value that its user has copied."""
        node = node_of(code, index, row)
        self.users.setdefault((inner, at), []).append(node)
        table = self.trace.tables[inner.index]
        if at >= table.count or not table.live[at]:
            self.say(code, index, row, f"uses the dead row {at} of {inner}")
            return False
        result = self.compute.read(inner, at, inner.result)
        self.expect(same(value, result), code, index, row, f"copied {show(value)}, the result is {show(result)}")
        return True

    def plain_call(
        self, code: Code, index: int, row: int, operator: Closure, arguments: Any, packed: int, value: Any
    ) -> None:
        inner, at = operator.code, packed & ROW_MASK
        if packed < 0 or packed >> 32 != inner.index:
            self.say(code, index, row, f"calls {inner}, the edge is {packed}")
            return
        if not self.family(code, index, row, inner, at, value):
            return
        table = self.trace.tables[inner.index]
        assert table.environment is not None
        memoized = table.memos is not None and table.memos[at] is not None
        self.expect(not memoized, code, index, row, "a plain call uses a memoized row")
        self.expect(table.environment.view[at] == operator.row, code, index, row, "the family has another environment")
        self.expect(table.user.view[at] == node_of(code, index, row), code, index, row, "the family has another user")
        for position, argument in enumerate(arguments):
            stored = table.columns[position].view[at]  # type: ignore[union-attr]
            what = f"argument {position} is {show(stored)}, given {show(argument)}"
            self.expect(same(stored, argument), code, index, row, what)
        self.same_context(code, index, row, inner, at)

    def memoized_call(
        self, code: Code, index: int, row: int, operator: Memo, arguments: Any, packed: int, value: Any
    ) -> None:
        key = key_of(arguments[0]) if len(arguments) == 1 else tuple(map(key_of, arguments))
        at = operator.entries.get(key)
        if at is None or packed < 0 or at != packed & ROW_MASK:
            self.say(code, index, row, f"the key {key} has the row {at}, the edge is {packed}")
            return
        self.family(code, index, row, self.trace.program.codes[packed >> 32], at, value)

    def same_context(self, code: Code, index: int, row: int, inner: Code, at: int) -> None:
        found, wanted = self.trace.tables[inner.index].context_of(at), self.trace.inner_context(code, index, row)
        self.expect(found == wanted, code, index, row, f"the family inherits tags {found}, not {wanted}")

    # ----------------------------------------------------------------------------------------------- procedures

    def constants(self, table: Table) -> None:
        """What is remembered of constant families is so, and no proposal is under way that would need more."""
        for row, constant in table.constant.items():
            if constant and table.live[row]:
                self.expect(is_constant(self.trace, table.code, row), table.code, NONE, row, "is said to be constant")

    def memo(self, code: Code, index: int, row: int, memo: Memo) -> None:
        procedure = memo.procedure
        table = self.trace.tables[procedure.code.index]
        members = [at for at in self.rows[procedure.code] if table.memos is not None and table.memos[at] is memo]
        mirrored = {self.trace.memo_key(procedure.code, at): at for at in members}
        self.expect(len(mirrored) == len(members), code, index, row, f"rows {members} share keys")
        entries = dict(memo.entries.items())
        self.expect(mirrored == entries, code, index, row, f"entries {entries}, rows {mirrored}")
        assert table.environment is not None
        for at in members:
            self.expect(table.environment.view[at] == procedure.row, procedure.code, NONE, at, "another environment")
            self.expect(table.context_of(at) == 0, procedure.code, NONE, at, "a memoized row inherits tags")

    def maker(self, code: Code, index: int, row: int, value: Any) -> None:
        node = node_of(code, index, row)
        record = code.slots[index].record
        assert isinstance(record, Maker)
        self.makers.add(node)
        if (
            not isinstance(value, Exchangeable)
            or self.trace.statistics.makers.get(node) is not value
            or value.node != node
            or value.record is not record
        ):
            self.say(code, index, row, "is not entered as a maker")
            return
        fresh = check_arguments(record, self.compute.arguments(code, index, row))
        stored = tuple(value.state.arguments)
        self.expect(same(stored, fresh), code, index, row, f"arguments {stored}, computed {fresh}")

    def maker_statistics(self) -> None:
        for node, maker in self.trace.statistics.makers.items():
            where = self.trace.decode(node)
            if node not in self.makers:
                self.say(*where, "a maker of a dead row is entered")
                continue
            try:
                self.statistics_of(maker, *where)
            except (VentureError, ArithmeticError, LookupError, TypeError, ValueError) as error:
                self.say(*where, f"statistics do not fit: {error!r}")

    def statistics_of(self, maker: Exchangeable, code: Code, slot: int, row: int) -> None:
        where = (code, slot, row)
        applications = self.applications.get(maker.node, [])
        fresh = maker.record.make(*maker.state.arguments)
        fresh.recount(applications)
        kept, counted = maker.state.statistics(), fresh.statistics()
        count = maker.state.count == fresh.count == len(applications)
        right = count and same(kept, counted, STATISTICS, STATISTICS)
        self.expect(right, *where, f"statistics {kept}, a recount {counted}")
        self.score.add(fresh.log_joint())
        for application in applications[:10]:
            mine, its = maker.state.log_predictive(*application), fresh.log_predictive(*application)
            self.expect(math.isclose(mine, its, rel_tol=1e-8, abs_tol=1e-8), *where, f"predicts {mine}, not {its}")

    # ----------------------------------------------------------------------------------------- users, children

    def users_of(self, table: Table) -> None:
        code = table.code
        many = {row for row in self.rows[code] if code.kind == "lambda" and table.user.view[row] == MANY}
        if many != set(table.users):
            self.broken.append(f"{code}: rows with many users {sorted(many)}, bags for {sorted(table.users)}")
            return
        for row in self.rows[code]:
            expected = sorted(self.users.get((code, row), []))
            match code.kind:
                case "directive":
                    self.expect(not expected, code, NONE, row, f"a directive's row is used by {expected}")
                case "branch":
                    self.expect(len(expected) == 1, code, NONE, row, f"a branch is used by {expected}")
                case _:
                    found = sorted(self.trace.users.nodes(code, row))
                    self.expect(found == expected, code, NONE, row, f"users {found}, edges from {expected}")
                    if not expected:
                        self.without_users(table, row)
                    count = self.trace.users.count(code, row)
                    self.expect(count == len(expected), code, NONE, row, f"{count} users counted, {len(expected)} are")
            if row in many and not isinstance(table.users[row], tuple):
                for bag in table.users[row].by_site.values():
                    self.broken.extend(misplaced(bag, f"users of row {row} of {code}"))

    def without_users(self, table: Table, row: int) -> None:
        """Only constant families of procedures that are there stay without users."""
        memo = table.memos[row] if table.memos is not None else None
        where = (table.code, NONE, row)
        self.expect(memo is not None and is_constant(self.trace, table.code, row), *where, "a family without users")
        if memo is not None:
            self.expect(self.trace.constants.is_alive(memo), *where, "a family outlives its procedure")
            self.expect(row in memo.unused, *where, "nobody would let go of the family")

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
