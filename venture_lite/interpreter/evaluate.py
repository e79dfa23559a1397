"""What a step of each kind does: the evaluator fills the machine's frames with values, families and edges."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from venture_lite.errors import ArgumentError, InternalError, Undrawable, VentureError
from venture_lite.interpreter.ancestry import refuse_random_keys
from venture_lite.interpreter.evidence import NO_EVIDENCE, deterministic_evidence
from venture_lite.interpreter.limits import at_limit
from venture_lite.interpreter.machine import Frame, Limits, Machine
from venture_lite.procedures.checks import application_of, check_arguments, refused_memo
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.program.code import Code, Kind, Slot
from venture_lite.program.compiler import wrong_count
from venture_lite.program.forms import truth
from venture_lite.trace.bags import Bag
from venture_lite.trace.explain import apply_checked
from venture_lite.trace.keys import KeyIndex, memo_key
from venture_lite.trace.runtime import Closure, Exchangeable, Memo
from venture_lite.trace.table import MAKER_EDGE, NONE, PRIMITIVE_EDGE, RANDOM_EDGE, ROW_MASK, Column
from venture_lite.trace.trace import Trace
from venture_lite.values import show


class Evaluator(Machine):
    """Evaluates on behalf of one trace."""

    def __init__(self, trace: Trace, limits: Limits | None = None) -> None:
        super().__init__(trace, limits)
        self.steps = {
            Kind.ARGUMENT: self._renew_argument,
            Kind.DETERMINISTIC: self._do_deterministic,
            Kind.RANDOM: self._do_random,
            Kind.CALL: self._do_call,
            Kind.IF: self._do_if,
            Kind.MEM: self._do_mem,
            Kind.MAKER: self._do_maker,
        }

    # --------------------------------------------------------------------------------------------------- steps

    def _renew_argument(self, frame: Frame, index: int, slot: Slot) -> None:
        """An argument of a call whose caller computes a new value."""
        trace = self.trace
        packed = trace.tables[frame.code.index].user.view[frame.row]
        code, caller, row = trace.decode(packed)
        if self.pending and self._blocked(code, caller, row, NONE):
            frame.position -= 1
            return
        self._store(frame, index, trace.read(packed >> 32, row)[1 + index])

    def _do_deterministic(self, frame: Frame, index: int, slot: Slot) -> None:
        self._store(frame, index, self.primitive(frame.code, index, frame.row))

    def primitive(self, code: Code, index: int, row: int) -> Any:
        """The value of a stored deterministic slot, or of a call of a primitive procedure."""
        slot = code.slots[index]
        values = self.trace.read(code.first_site + index, row)
        record, values = (values[0], values[1:]) if slot.kind is Kind.CALL else (slot.record, values)
        assert isinstance(record, Deterministic)
        try:
            return record.scalar(*values)
        except Exception as error:
            try:
                return apply_checked(record, values, slot.span)
            except VentureError as located:
                raise located.at(slot.span, self.trace.call_chain(code, index, row)) from error

    def _do_random(self, frame: Frame, index: int, slot: Slot) -> None:
        values = self.trace.read(frame.code.first_site + index, frame.row)
        self._choice(frame, index, slot.record, values)

    def _choice(self, frame: Frame, index: int, operator: Any, values: tuple[Any, ...]) -> None:
        """A random choice: constrained, principal or fresh."""
        code, row, trace = frame.code, frame.row, self.trace
        node = (code.first_site + index) << 32 | row
        is_principal = frame.renews != NONE and frame.renews not in self.structural
        evidence = NO_EVIDENCE if is_principal else self._evidence(frame, index)
        self.check(operator, values, code, index, row, is_drawn=not is_principal and evidence is NO_EVIDENCE)
        if is_principal:
            assert self.renew_choice is not None
            self._store(frame, index, self.renew_choice(node, operator, values))
            return
        if evidence is not NO_EVIDENCE:
            self._store(frame, index, evidence)
            if frame.renews == NONE:
                trace.set_observed(code, index, row, True)
            self.constrained.append(node)
            return
        value = self.draw(node, operator, values)
        self._store(frame, index, value)
        if isinstance(operator, Exchangeable):
            trace.statistics.incorporate(operator, value, values)
        if code.slots[index].regions:
            refuse_random_keys(trace, code, index, row)
        trace.register(code, index, row)

    def draw(self, node: int, operator: Any, values: tuple[Any, ...]) -> Any:
        """A value for a fresh choice."""
        if self.choose is not None:
            value = self.choose(node, operator, values)
            if value is not NO_EVIDENCE:
                return value
        return self.simulate(node, operator, values)

    def simulate(self, node: int, operator: Any, values: tuple[Any, ...]) -> Any:
        try:
            if isinstance(operator, Exchangeable):
                return operator.state.simulate(self.trace.rng, *values)
            return operator.simulate(self.trace.rng, *values)
        except VentureError as error:
            code, slot, row = self.trace.decode(node)
            raise error.at(code.slots[slot].span, self.trace.call_chain(code, slot, row)) from error

    def simulate_anew(self, node: int, operator: Any, values: tuple[Any, ...]) -> Any:
        """A value for a choice that stands, under arguments from which one may not be drawn."""
        self.check(operator, values, *self.trace.decode(node))
        return self.simulate(node, operator, values)

    def check(
        self, operator: Any, values: tuple[Any, ...], code: Code, index: int, row: int, is_drawn: bool = True
    ) -> None:
        """Refuse arguments outside their domains: where rounding took them there, only if a value is to be drawn."""
        if isinstance(operator, Exchangeable):
            if not values and not operator.record.applied:
                return
            operator = application_of(operator.record)
        try:
            fine = self.trace.valid(operator)(*values)
        except TypeError:
            fine = False
        if not fine:
            is_extreme = at_limit(self.trace, code.first_site + index, row, operator, values)
            if is_extreme and not is_drawn:
                return
            try:
                check_arguments(operator, values, code.slots[index].span)
            except VentureError as error:
                raise self._refused(error, is_extreme, code, index, row) from None
            raise InternalError(f"the two checks of {operator.name} disagree on {values}")

    def _refused(self, error: VentureError, is_extreme: bool, code: Code, index: int, row: int) -> VentureError:
        """An error of arguments, located; one that rejects a transition where rounding took them to their limits."""
        if is_extreme:
            error = Undrawable(error.message, error.span, error.hint)
        return error.at(code.slots[index].span, self.trace.call_chain(code, index, row))

    def _evidence(self, frame: Frame, index: int) -> Any:
        """What the slot's value is constrained to."""
        if frame.renews == NONE:
            return frame.evidence if index == frame.code.result_slot else NO_EVIDENCE
        table = self.trace.tables[frame.code.index]
        if table.is_observed(index, frame.row):
            return table.columns[index].view[frame.row]  # type: ignore[union-attr]
        return NO_EVIDENCE

    def _do_mem(self, frame: Frame, index: int, slot: Slot) -> None:
        (procedure,) = self.trace.read(frame.code.first_site + index, frame.row)
        if not isinstance(procedure, (Closure, Memo)):
            raise refused_memo(procedure, slot.span)
        node = (frame.code.first_site + index) << 32 | frame.row
        self._store(frame, index, procedure if isinstance(procedure, Memo) else self._memo(procedure, node))

    def _memo(self, procedure: Closure, node: int) -> Memo:
        trace, body = self.trace, procedure.code
        return Memo(procedure, lambda row: trace.memo_key(body, row), node)

    def _do_maker(self, frame: Frame, index: int, slot: Slot) -> None:
        code, row, trace = frame.code, frame.row, self.trace
        record = slot.record
        assert isinstance(record, Maker)
        values = trace.read(code.first_site + index, row)
        try:
            checked = check_arguments(record, values, slot.span)
        except VentureError as error:
            is_extreme = at_limit(trace, code.first_site + index, row, record, values)
            raise self._refused(error, is_extreme, code, index, row) from None
        if frame.renews != NONE:
            assert self.renew_choice is not None
            self.renew_choice(frame.renews, trace.value(frame.renews), checked)
            return
        made = Exchangeable(record, record.make(*checked), (code.first_site + index) << 32 | row)
        trace.statistics.enter(made)
        self._store(frame, index, made)

    # ---------------------------------------------------------------------------------------------- branches

    def _do_if(self, frame: Frame, index: int, slot: Slot) -> None:
        code, row, trace = frame.code, frame.row, self.trace
        site = code.first_site + index
        edge = trace.tables[code.index].edges[index]
        if frame.renews != NONE and frame.renews not in self.structural:
            self._copy_or_wait(frame, edge.view[row], site)
            return
        (predicate,) = trace.read(site, row)
        try:
            taken = slot.branches[0 if truth(predicate) else 1]
        except VentureError as error:
            raise error.at(slot.span, trace.call_chain(code, index, row)) from None
        evidence = self._evidence(frame, index)
        if evidence is not NO_EVIDENCE and frame.renews == NONE:
            trace.set_observed(code, index, row, True)
            self.carrier.refuse_alternatives(code, index, row)
        inner = self._family(taken, row, NONE, self._inner_context(code, index, row), ())
        self._set_edge(frame, edge, taken.index << 32 | inner)
        self._push(Frame(taken, inner, taken.steps, evidence))

    def _inner_context(self, code: Code, index: int, row: int) -> int:
        """The tags that a family inherits; refuses block keys that could change."""
        if code.slots[index].regions:
            refuse_random_keys(self.trace, code, index, row)
        return self.trace.inner_context(code, index, row)

    def _copy_or_wait(self, frame: Frame, packed: int, site: int) -> None:
        """The family stays; its result has changed."""
        code = self.trace.program.codes[packed >> 32]
        row = packed & ROW_MASK
        if self._blocked_result(code, row):
            frame.position -= 1
            return
        self._copy_result(code, row, site, frame.row)

    def _set_edge(self, frame: Frame, edge: Column, target: int) -> None:
        if frame.renews == NONE:
            edge.view[frame.row] = target
        else:
            self.trace.journal.put(edge, frame.row, target)

    def _family(self, code: Code, environment: int, user: int, context: int, values: tuple[Any, ...]) -> int:
        """A new row with its arguments, environment and user."""
        trace = self.trace
        table = trace.tables[code.index]
        row = trace.journal.allocate(table)
        for position, value in enumerate(values):
            table.columns[position].fill(row, value)  # type: ignore[union-attr]
        assert table.environment is not None
        table.environment.view[row] = environment
        table.user.view[row] = user
        table.set_context(row, context)
        if table.child_position is not None:
            bag = table.children.get(environment)
            if bag is None:
                positions = table.child_position
                bag = table.children[environment] = Bag(lambda item: (positions, item))
                trace.journal.note(table.children.pop, environment)
            bag.add(row, trace.journal)
        return row

    # -------------------------------------------------------------------------------------------------- calls

    def _do_call(self, frame: Frame, index: int, slot: Slot) -> None:
        code, row, trace = frame.code, frame.row, self.trace
        site = code.first_site + index
        edge = trace.tables[code.index].edges[index]
        if frame.renews != NONE and frame.renews not in self.structural and edge.view[row] >= 0:
            self._copy_or_wait(frame, edge.view[row], site)
            return
        operator, *rest = trace.read(site, row)
        if self.pending and isinstance(operator, Exchangeable) and self._push_if_pending([operator.node], row, NONE):
            # the maker's parameters change; that its value is in a list, or an argument, shows nothing of it
            frame.position -= 1
            return
        values = tuple(rest)
        match operator:
            case Closure():
                self._call_closure(frame, index, slot, operator, values)
            case Memo():
                self._call_memo(frame, index, slot, operator, values)
            case Random() | Exchangeable():
                self._set_edge(frame, edge, RANDOM_EDGE if isinstance(operator, Random) else MAKER_EDGE)
                if isinstance(operator, Random):
                    values = self._with_defaults(operator, values, frame, index)
                self._choice(frame, index, operator, values)
            case Deterministic():
                self._set_edge(frame, edge, PRIMITIVE_EDGE)
                try:
                    value = apply_checked(operator, values, slot.span)
                except VentureError as error:
                    raise error.at(slot.span, trace.call_chain(code, index, row)) from None
                self._refuse_deterministic(frame, index)
                self._store(frame, index, value)
            case Maker():
                raise ArgumentError(f"{operator.name} must be called by its name", slot.span)
            case _:
                chain = trace.call_chain(code, index, row)
                raise ArgumentError(f"{show(operator)} is not a procedure", slot.span, chain=chain)

    def _with_defaults(self, record: Random, values: tuple[Any, ...], frame: Frame, index: int) -> tuple[Any, ...]:
        if len(values) == len(record.arguments):
            return values
        span = frame.code.slots[index].span
        return check_arguments(record, values, span)

    def _call_closure(self, frame: Frame, index: int, slot: Slot, operator: Closure, values: tuple[Any, ...]) -> None:
        code, row, trace = frame.code, frame.row, self.trace
        body = operator.code
        if len(values) != body.arity:
            error = wrong_count(body.name, body.arity, len(values), slot.span)
            raise error.at(None, trace.call_chain(code, index, row))
        node = (code.first_site + index) << 32 | row
        evidence = self._evidence(frame, index)
        if evidence is not NO_EVIDENCE and frame.renews == NONE:
            trace.set_observed(code, index, row, True)
        inner = self._family(body, operator.row, node, self._inner_context(code, index, row), values)
        self._set_edge(frame, trace.tables[code.index].edges[index], body.index << 32 | inner)
        self._push(Frame(body, inner, body.steps, evidence))

    def _call_memo(self, frame: Frame, index: int, slot: Slot, operator: Memo, values: tuple[Any, ...]) -> None:
        code, row, trace = frame.code, frame.row, self.trace
        site = code.first_site + index
        edge = trace.tables[code.index].edges[index]
        evidence = self._evidence(frame, index)
        if evidence is not NO_EVIDENCE:
            if frame.renews == NONE:
                trace.set_observed(code, index, row, True)
            self.carrier.refuse_moving(code, index, row, "a memoized procedure whose key is random")
            self.carrier.refuse_random_way(code, row)
        body = self._memoized_body(operator, slot, len(values), frame, index)
        try:
            key = memo_key(values)
            found = operator.entries.get(key)
        except (VentureError, TypeError) as error:
            message = error.message if isinstance(error, VentureError) else f"a value cannot be a key: {error}"
            raise ArgumentError(message, slot.span, chain=trace.call_chain(code, index, row)) from error
        if found is not None:
            if (body.index, found) in self.unfinished:
                raise self._needs_itself(code, index, row)
            if self.pending and self._blocked_result(body, found):
                frame.position -= 1
                return
            trace.users.add(body, found, site, row)
            self._set_edge(frame, edge, body.index << 32 | found)
            self._copy_result(body, found, site, row, fresh=frame.renews == NONE)
            if evidence is not NO_EVIDENCE:
                self.carrier.to_family(body, found, evidence, [site << 32 | row])
            return
        inner = self._memoized_family(operator, key, site << 32 | row, values)
        self._set_edge(frame, edge, body.index << 32 | inner)
        self._push(Frame(body, inner, body.steps, evidence))

    def _memoized_family(self, memo: Memo, key: Hashable, user: int, values: tuple[Any, ...]) -> int:
        """The row of a new family of a memoized procedure, about to be evaluated."""
        body = memo.procedure.code
        row = self._family(body, memo.procedure.row, user, 0, values)
        table = self.trace.tables[body.index]
        if table.memos is None:
            table.memos = [None] * len(table.live)
        table.memos[row] = memo
        memo.entries.add(key, row)
        self.trace.journal.note(KeyIndex.remove, memo.entries, key)
        self.trace.constants.made(memo, row)
        self.unfinished.add((body.index, row))
        return row

    def fill(self, memo: Memo, values: tuple[Any, ...]) -> None:
        """Evaluate a family of a memoized procedure that nobody uses yet, if there is none for these values."""
        key = memo_key(values)
        if key not in memo.entries:
            body = memo.procedure.code
            self._push(Frame(body, self._memoized_family(memo, key, NONE, values), body.steps))
            self.run()

    def _memoized_body(self, operator: Memo, slot: Slot, given: int, frame: Frame, index: int) -> Code:
        body = operator.procedure.code
        if given != body.arity:
            chain = self.trace.call_chain(frame.code, index, frame.row)
            raise wrong_count(body.name, body.arity, given, slot.span).at(None, chain)
        return body

    def _refuse_deterministic(self, frame: Frame, index: int) -> None:
        if self._evidence(frame, index) is not NO_EVIDENCE:
            raise deterministic_evidence(self.trace, frame.code, index, frame.row)
