"""The machine: evaluates families and nodes on an explicit stack, in the order in which values are needed.

A frame works through the steps of one row. A new family is a new frame on top; a node that regeneration is to renew
(`pending`) and that somebody needs first is a frame of one step. So nothing recurses, however deep the model, and
evaluation can stop between any two steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from venture_lite.code import Code, GlobalRef, Kind, Ref, Slot, SlotRef, sources
from venture_lite.errors import ArgumentError, EvidenceError, InternalError, LimitError, VentureError
from venture_lite.forms import truth
from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.trace.bags import Bag
from venture_lite.trace.explain import apply_checked
from venture_lite.trace.keys import KeyIndex
from venture_lite.trace.runtime import Closure, Exchangeable, Memo
from venture_lite.trace.table import NONE, Column
from venture_lite.trace.trace import MAKER_EDGE, NO_EDGE, PRIMITIVE_EDGE, RANDOM_EDGE, ROW_MASK, Trace
from venture_lite.values import key_of, show

NO_EVIDENCE: Any = object()


class Frame:
    """One row being evaluated, or one existing node being renewed (`renews`)."""

    __slots__ = ("code", "evidence", "position", "renews", "row", "steps")

    def __init__(self, code: Code, row: int, steps: Any, evidence: Any = NO_EVIDENCE, renews: int = NONE) -> None:
        self.code = code
        self.row = row
        self.steps = steps
        self.position = 0
        # the value that the row's result must take
        self.evidence = evidence
        # the pending node, or NONE for a new row
        self.renews = renews


class Limits:
    """What stops a program that would never end."""

    def __init__(self, nested_calls: int = 400_000, memory_mb: float | None = None) -> None:
        self.nested_calls = nested_calls
        self.memory_mb = memory_mb


class Machine:
    """Evaluates on behalf of one trace. Mutates the trace through its operations and its own stack."""

    def __init__(self, trace: Trace, limits: Limits | None = None) -> None:
        self.trace = trace
        self.limits = limits or Limits()
        self.stack: list[Frame] = []
        # nodes that regeneration still has to renew, and those of them whose edges are made anew
        self.pending: set[int] = set()
        self.structural: set[int] = set()
        # rows of memoized procedures being evaluated
        self.unfinished: set[tuple[int, int]] = set()
        # constrained choices made since the list was last taken; their densities are still to be counted
        self.constrained: list[int] = []
        # (choice, value, nodes on the way) for evidence that leads to a choice that exists already
        self.to_constrain: list[tuple[int, Any, list[int]]] = []
        # value of a principal node: (node, distribution, arguments) -> value
        self.renew_choice: Callable[[int, Any, tuple[Any, ...]], Any] | None = None
        # value of a new choice, or NO_EVIDENCE to draw it from its distribution
        self.choose: Callable[[int, Any, tuple[Any, ...]], Any] | None = None
        # called between steps now and then: raises to interrupt
        self.poll: Callable[[], None] = lambda: None
        # steps between two polls
        self.poll_every = 1024
        self._ticks = self.poll_every
        self._parents: dict[int, list[Any]] = {}
        self._result_parents: dict[Code, list[Any]] = {}
        trace.derived.extend((self._parents, self._result_parents))
        self._do = {
            Kind.ARGUMENT: self._renew_argument,
            Kind.DETERMINISTIC: self._do_deterministic,
            Kind.RANDOM: self._do_random,
            Kind.CALL: self._do_call,
            Kind.IF: self._do_if,
            Kind.MEM: self._do_mem,
            Kind.MAKER: self._do_maker,
        }

    # ------------------------------------------------------------------------------------------------- running

    def reset(self) -> None:
        """Forget what was begun; the journal takes back what was done."""
        self.stack.clear()
        self.pending.clear()
        self.structural.clear()
        self.unfinished.clear()
        self.constrained.clear()
        self.to_constrain.clear()
        self.renew_choice = None
        self.choose = None

    def run(self) -> None:
        """Work until the stack is empty."""
        stack = self.stack
        self._ticks = min(self._ticks, self.poll_every)
        while stack:
            frame = stack[-1]
            if frame.position == len(frame.steps):
                if self.pending and frame.renews == NONE and self._blocked_result(frame.code, frame.row):
                    continue
                stack.pop()
                self._finish(frame)
                continue
            self._ticks -= 1
            if self._ticks <= 0:
                self._tick()
            index = frame.steps[frame.position]
            if self.pending and self._blocked(frame.code, index, frame.row, frame.renews):
                continue
            frame.position += 1
            slot = frame.code.slots[index]
            self._do[slot.kind](frame, index, slot)

    def _tick(self) -> None:
        self._ticks = self.poll_every
        self.poll()
        if self.limits.memory_mb is not None:
            refuse_excess_memory(self.limits.memory_mb)

    def _push(self, frame: Frame) -> None:
        if len(self.stack) >= self.limits.nested_calls:
            code = frame.code
            raise LimitError(
                f"more than {self.limits.nested_calls:,} nested calls: does the recursion end?",
                code.span,
                "give the recursion a base case, or raise the limit (nested_calls)",
                self.trace.call_chain(code, -1, frame.row, 8),
            )
        self.stack.append(frame)

    def evaluate(self, code: Code, row: int, evidence: Any = NO_EVIDENCE) -> None:
        """Evaluate a row that has its arguments."""
        self._push(Frame(code, row, code.steps, evidence))
        self.run()

    def renew(self, node: int) -> None:
        """Renew a node, if it is still pending, after all that it needs."""
        if node in self.pending:
            self._push_node(node)
            self.run()

    # -------------------------------------------------------------------------------------- order on demand

    def _push_node(self, node: int) -> None:
        code, slot, row = self.trace.decode(node)
        self._push(Frame(code, row, (slot,), renews=node))

    def _blocked(self, code: Code, slot: int, row: int, renews: int) -> bool:
        """Whether a value that the slot reads is pending; if so, its frame is now on top."""
        site = code.first_site + slot
        parents = self._parents.get(site)
        if parents is None:
            item = code.slots[slot]
            refs = [*item.arguments, *(region.block for region in item.regions)]
            parents = self._parents[site] = self._resolve(code, [*refs, item.operator] if item.operator else refs)
        return self._push_if_pending(parents, row, renews)

    def _blocked_result(self, code: Code, row: int) -> bool:
        parents = self._result_parents.get(code)
        if parents is None:
            parents = self._result_parents[code] = self._resolve(code, [code.result])
        return self._push_if_pending(parents, row, NONE)

    def _resolve(self, code: Code, refs: list[Ref]) -> list[Any]:
        """Stored parents as fixed nodes, or as (tables of environments to climb, site)."""
        found: list[Any] = []
        for ref in refs:
            for source in sources(code, ref):
                if isinstance(source, GlobalRef):
                    target = source.target
                    if target.code is not None:
                        node = self.trace.result_node(target.code, target.row)
                        if node >= 0:
                            found.append(node)
                elif isinstance(source, SlotRef):
                    climb = [self.trace.tables[code.ancestor(d).index] for d in range(source.depth)]
                    found.append((climb, code.ancestor(source.depth).first_site + source.slot))
        return found

    def _push_if_pending(self, parents: list[Any], row: int, renews: int) -> bool:
        pending = self.pending
        for parent in parents:
            if isinstance(parent, int):
                node = parent
            else:
                climb, site = parent
                at = row
                for table in climb:
                    at = table.environment.view[at]
                node = site << 32 | at
            if node in pending and node != renews:
                if any(frame.renews == node for frame in self.stack):
                    code, slot, at = self.trace.decode(node)
                    raise self._needs_itself(code, slot, at)
                self._push_node(node)
                return True
        return False

    def _needs_itself(self, code: Code, slot: int, row: int) -> VentureError:
        span = code.slots[slot].span if slot >= 0 else code.span
        chain = self.trace.call_chain(code, slot, row, 8)
        return LimitError("the value is needed to compute itself", span, "give the recursion a base case", chain)

    # ------------------------------------------------------------------------------------------ storing values

    def _store(self, frame: Frame, index: int, value: Any) -> None:
        column = self.trace.tables[frame.code.index].columns[index]
        assert column is not None
        if frame.renews == NONE:
            column.fill(frame.row, value)
        else:
            self.trace.journal.put(column, frame.row, value)

    def _finish(self, frame: Frame) -> None:
        if frame.renews != NONE:
            self.pending.discard(frame.renews)
            self.structural.discard(frame.renews)
            return
        code, row = frame.code, frame.row
        trace = self.trace
        if frame.evidence is not NO_EVIDENCE:
            if code.result_slot < 0:
                self._evidence_elsewhere(frame)
            elif code.slots[code.result_slot].kind not in (Kind.RANDOM, Kind.CALL, Kind.IF):
                raise deterministic_evidence(trace, code, code.result_slot, row)
        if code.kind == "directive":
            return
        if code.kind == "branch":
            assert code.parent is not None
            table = trace.tables[code.index]
            assert table.environment is not None
            user = (code.parent.first_site + code.if_slot, table.environment.view[row])
        else:
            packed = trace.tables[code.index].user.view[row]
            self.unfinished.discard((code.index, row))
            user = (packed >> 32, packed & ROW_MASK)
        below = self.stack[-1] if self.stack else None
        fresh = (
            below is not None
            and below.renews == NONE
            and below.row == user[1]
            and below.code is self.trace.program.site_code[user[0]]
        )
        self._copy_result(code, row, *user, fresh=fresh)

    def _copy_result(self, code: Code, row: int, site: int, user_row: int, fresh: bool = False) -> None:
        """Give the user of a family its result; the cells of a fresh row need no journal."""
        try:
            value = self.trace.result(code, row)
        except Exception as error:
            from venture_lite.trace.explain import explain_refs

            raise explain_refs(self.trace, code, (code.result,), -1, row, error) from error
        if fresh:
            self.trace.column(site).fill(user_row, value)
        else:
            self.trace.journal.put(self.trace.column(site), user_row, value)

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
        self.check(operator, values, code, index, row)
        if frame.renews != NONE and frame.renews not in self.structural:
            assert self.renew_choice is not None
            self._store(frame, index, self.renew_choice(node, operator, values))
            return
        evidence = self._evidence(frame, index)
        if evidence is not NO_EVIDENCE:
            self._store(frame, index, evidence)
            if frame.renews == NONE:
                trace.set_observed(code, index, row, True)
            self.constrained.append(node)
            return
        value = self.draw(node, operator, values)
        self._store(frame, index, value)
        if isinstance(operator, Exchangeable):
            trace.incorporate(operator, value)
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
                return operator.state.simulate(self.trace.rng)
            return operator.simulate(self.trace.rng, *values)
        except VentureError as error:
            code, slot, row = self.trace.decode(node)
            raise error.at(code.slots[slot].span, self.trace.call_chain(code, slot, row)) from error

    def check(self, operator: Any, values: tuple[Any, ...], code: Code, index: int, row: int) -> None:
        """Refuse arguments outside their domains."""
        if isinstance(operator, Exchangeable):
            if values:
                raise ArgumentError(
                    f"the procedure that {operator.record.name} made takes no arguments, got {len(values)}",
                    code.slots[index].span,
                    chain=self.trace.call_chain(code, index, row),
                )
            return
        try:
            fine = self.trace.valid(operator)(*values)
        except TypeError:
            fine = False
        if not fine:
            try:
                check_arguments(operator, values, code.slots[index].span)
            except VentureError as error:
                raise error.at(None, self.trace.call_chain(code, index, row)) from None
            raise InternalError(f"the two checks of {operator.name} disagree on {values}")

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
        if not isinstance(procedure, (Closure, Memo, Deterministic)):
            raise ArgumentError(f"mem takes a procedure of the program, got {show(procedure)}", slot.span)
        self._store(frame, index, procedure if isinstance(procedure, Memo) else self._memo(procedure))

    def _memo(self, procedure: Any) -> Memo:
        trace = self.trace
        body = procedure.code if isinstance(procedure, Closure) else None
        return Memo(procedure, lambda row: None if body is None else trace.memo_key(body, row))

    def _do_maker(self, frame: Frame, index: int, slot: Slot) -> None:
        code, row, trace = frame.code, frame.row, self.trace
        record = slot.record
        assert isinstance(record, Maker)
        values = trace.read(code.first_site + index, row)
        try:
            checked = check_arguments(record, values, slot.span)
        except VentureError as error:
            raise error.at(slot.span, trace.call_chain(code, index, row)) from None
        if frame.renews != NONE:
            assert self.renew_choice is not None
            self.renew_choice(frame.renews, trace.value(frame.renews), checked)
            return
        made = Exchangeable(record, record.make(*checked), (code.first_site + index) << 32 | row)
        trace.enter_maker(made)
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
        inner = self._family(taken, row, NONE, trace.inner_context(code, index, row), ())
        self._set_edge(frame, edge, taken.index << 32 | inner)
        self._push(Frame(taken, inner, taken.steps, evidence))

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
            from venture_lite.compiler import wrong_count

            error = wrong_count(body.name, body.arity, len(values), slot.span)
            raise error.at(None, trace.call_chain(code, index, row))
        node = (code.first_site + index) << 32 | row
        evidence = self._evidence(frame, index)
        if evidence is not NO_EVIDENCE and frame.renews == NONE:
            trace.set_observed(code, index, row, True)
        inner = self._family(body, operator.row, node, trace.inner_context(code, index, row), values)
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
            self._refuse_moving(code, index, row, "a memoized procedure whose key is random")
        body = self._memoized_body(operator, slot, len(values), frame, index)
        try:
            key = key_of(values[0]) if len(values) == 1 else tuple(map(key_of, values))
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
            trace.add_user(body, found, site, row)
            self._set_edge(frame, edge, body.index << 32 | found)
            self._copy_result(body, found, site, row, fresh=frame.renews == NONE)
            if evidence is not NO_EVIDENCE:
                self.evidence_to_family(body, found, evidence, [site << 32 | row])
            return
        closure = operator.procedure
        inner = self._family(body, closure.row, site << 32 | row, 0, values)
        table = trace.tables[body.index]
        if table.memos is None:
            table.memos = [None] * len(table.live)
        table.memos[inner] = operator
        operator.entries.add(key, inner)
        trace.journal.note(KeyIndex.remove, operator.entries, key)
        self.unfinished.add((body.index, inner))
        self._set_edge(frame, edge, body.index << 32 | inner)
        self._push(Frame(body, inner, body.steps, evidence))

    def _memoized_body(self, operator: Memo, slot: Slot, given: int, frame: Frame, index: int) -> Code:
        if not isinstance(operator.procedure, Closure):
            raise ArgumentError("mem takes a lambda", slot.span)
        body = operator.procedure.code
        if given != body.arity:
            from venture_lite.compiler import wrong_count

            chain = self.trace.call_chain(frame.code, index, frame.row)
            raise wrong_count(body.name, body.arity, given, slot.span).at(None, chain)
        return body

    # ------------------------------------------------------------------------------------------------ evidence

    def _refuse_deterministic(self, frame: Frame, index: int) -> None:
        if self._evidence(frame, index) is not NO_EVIDENCE:
            raise deterministic_evidence(self.trace, frame.code, index, frame.row)

    def _evidence_elsewhere(self, frame: Frame) -> None:
        """The row's result is no node of the row: evidence goes on to the node that it names."""
        match frame.code.result:
            case SlotRef(depth=0, slot=slot):
                raise deterministic_evidence(self.trace, frame.code, slot, frame.row)
        self.evidence_to_family(frame.code, frame.row, frame.evidence, [])

    def evidence_to_family(self, code: Code, row: int, value: Any, path: list[int]) -> None:
        """Carry evidence from an existing family to the choice that its result is."""
        trace = self.trace
        while True:
            node = trace.result_node(code, row)
            if node < 0:
                node = self._named_elsewhere(code, row)
            code, slot, row = trace.decode(node)
            kind = code.slots[slot].kind
            if trace.is_choice(code, slot, row):
                self.to_constrain.append((node, value, [*path, node]))
                return
            packed = trace.tables[code.index].edges[slot].view[row] if kind in (Kind.CALL, Kind.IF) else NO_EDGE
            if packed < 0:
                raise deterministic_evidence(trace, code, slot, row)
            path.append(node)
            inner = trace.program.codes[packed >> 32]
            memoized = trace.tables[inner.index].memos
            if memoized is not None and memoized[packed & ROW_MASK] is not None:
                self._refuse_moving(code, slot, row, "a memoized procedure whose key is random")
            code, row = inner, packed & ROW_MASK

    def _named_elsewhere(self, code: Code, row: int) -> int:
        """The node that a row's result names outside the row, reached by no random way."""
        from venture_lite.trace.dependence import refuse_random_way

        trace = self.trace
        ref = code.result
        refuse_random_way(trace, code, row)
        match ref:
            case GlobalRef(target=target) if target.code is not None:
                node = trace.result_node(target.code, target.row)
                if node >= 0:
                    return node
            case SlotRef(depth=depth, slot=slot) if depth > 0:
                for level in range(depth):
                    environment = trace.tables[code.ancestor(level).index].environment
                    assert environment is not None
                    row = environment.view[row]
                ancestor = code.ancestor(depth)
                if ancestor.slots[slot].stored and ancestor.slots[slot].kind is not Kind.ARGUMENT:
                    return (ancestor.first_site + slot) << 32 | row
        raise deterministic_evidence(trace, code, -1, row)

    def _refuse_moving(self, code: Code, slot: int, row: int, what: str) -> None:
        from venture_lite.trace.dependence import depends_on_choice

        item = code.slots[slot]
        refs = [item.operator, *item.arguments] if item.operator is not None else list(item.arguments)
        if depends_on_choice(self.trace, code, row, refs):
            raise EvidenceError(
                f"evidence cannot go through {what}: it could move to another choice",
                item.span,
                "observe the choice itself, with a key that is fixed",
                self.trace.call_chain(code, slot, row),
            )


def deterministic_evidence(trace: Trace, code: Code, slot: int, row: int) -> EvidenceError:
    span = code.slots[slot].span if slot >= 0 else code.span
    return EvidenceError(
        "a deterministic value cannot be observed",
        span,
        "observe a random choice, for example (normal VALUE 0.1)",
        trace.call_chain(code, slot, row),
    )


def refuse_excess_memory(limit_mb: float) -> None:
    """Raises LimitError when the process holds more memory than the limit."""
    import resource
    import sys

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)
    if used > limit_mb and not math.isinf(limit_mb):
        raise LimitError(f"the process uses {used:,.0f} MB, more than the limit of {limit_mb:,.0f} MB (memory_mb)")
