"""What a step of each kind does: it fills a frame of the machine with a value, a family, an edge."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

from venture_lite.errors import ArgumentError, VentureError
from venture_lite.interpreter.ancestry import refuse_random_keys
from venture_lite.interpreter.application import admitted, at_limit, refused
from venture_lite.interpreter.evidence import (
    NO_EVIDENCE,
    deterministic_evidence,
    item_refs,
    plain,
    refuse_random_way,
    taking_slot,
)
from venture_lite.interpreter.explain import apply_checked
from venture_lite.interpreter.machine import Frame, Machine, Step
from venture_lite.interpreter.sources import primitive
from venture_lite.procedures.checks import check_arguments, refused_memo
from venture_lite.procedures.domains import vector_of
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.program.code import Code, Kind, Slot
from venture_lite.program.compiler import wrong_count
from venture_lite.program.selects import truth
from venture_lite.trace.bags import Bag, in_column
from venture_lite.trace.keys import KeyIndex, memo_key
from venture_lite.trace.runtime import Closure, Exchangeable, Memo
from venture_lite.trace.table import MAKER_EDGE, NONE, PRIMITIVE_EDGE, RANDOM_EDGE, ROW_MASK, Column
from venture_lite.trace.trace import Trace
from venture_lite.values import show

# -------------------------------------------------------------------------------------------- values and choices


def _renew_argument(machine: Machine, frame: Frame, index: int, slot: Slot) -> None:
    """An argument of a call whose caller computes a new value."""
    trace = machine.trace
    node = trace.tables[frame.code.index].user.view[frame.row]
    caller, row = node >> 32, node & ROW_MASK
    if machine.handler.pending and machine.blocked(caller, row):
        frame.position -= 1
        return
    machine.store(frame, index, trace.read(caller, row)[1 + index])


def _do_deterministic(machine: Machine, frame: Frame, index: int, slot: Slot) -> None:
    machine.store(frame, index, primitive(machine.trace, frame.code, index, frame.row))


def _do_random(machine: Machine, frame: Frame, index: int, slot: Slot) -> None:
    values = machine.trace.read(frame.code.first_site + index, frame.row)
    _choice(machine, frame, index, slot.record, values)


def _choice(machine: Machine, frame: Frame, index: int, operator: Any, values: tuple[Any, ...]) -> None:
    """A random choice: constrained, principal or fresh."""
    code, row, trace = frame.code, frame.row, machine.trace
    node = (code.first_site + index) << 32 | row
    is_principal = frame.renews != NONE and frame.renews not in machine.handler.structural
    evidence = NO_EVIDENCE if is_principal else _evidence(machine, frame, index)
    admitted(trace, operator, values, node, is_drawn=not is_principal and evidence is NO_EVIDENCE)
    if is_principal:
        machine.store(frame, index, machine.handler.renew(node, operator, values))
        return
    if evidence is not NO_EVIDENCE:
        evidence = _as_vector(operator, plain(evidence))
        machine.store(frame, index, machine.handler.constrain(node, operator, values, evidence))
        return
    value = machine.handler.choose(node, operator, values)
    machine.store(frame, index, value)
    if isinstance(operator, Exchangeable):
        trace.statistics.incorporate(operator, value, values)
    if code.slots[index].regions:
        refuse_random_keys(trace, code, index, row)
    trace.register(code, index, row)


def _as_vector(operator: Any, evidence: Any) -> Any:
    """A list of numbers as the vector that it stands for: no density makes one of it again."""
    if evidence.__class__ is not tuple or not isinstance(operator, Random) or operator.item_log_densities is None:
        return evidence
    vector = vector_of(evidence)
    return evidence if vector is None else vector


def _evidence(machine: Machine, frame: Frame, index: int) -> Any:
    """What the slot's value is constrained to; a new row's is marked so."""
    trace = machine.trace
    if frame.renews == NONE:
        if frame.evidence is NO_EVIDENCE:
            return NO_EVIDENCE
        evidence = frame.evidence if index == frame.code.result_slot else _item(machine, frame, index)
        if evidence is not NO_EVIDENCE:
            trace.set_observed(frame.code, index, frame.row, True)
        return evidence
    if trace.tables[frame.code.index].is_observed(index, frame.row):
        return trace.value((frame.code.first_site + index) << 32 | frame.row)
    return NO_EVIDENCE


def _item(machine: Machine, frame: Frame, index: int) -> Any:
    """What an item of an observed list is constrained to, where the row's result lists the slot."""
    if frame.items is None:
        frame.items = {}
        if item_refs(frame.code) is not None:
            for ref, part in machine.carrier.parts(frame.code, frame.row, frame.evidence):
                frame.items[taking_slot(frame.code, ref)] = part
    return frame.items.get(index, NO_EVIDENCE)


def _do_mem(machine: Machine, frame: Frame, index: int, slot: Slot) -> None:
    (procedure,) = machine.trace.read(frame.code.first_site + index, frame.row)
    if not isinstance(procedure, (Closure, Memo)):
        raise refused_memo(procedure, slot.span)
    if isinstance(procedure, Closure):
        node = (frame.code.first_site + index) << 32 | frame.row
        procedure = Memo(procedure, partial(machine.trace.memo_key, procedure.code), node)
    machine.store(frame, index, procedure)


def _do_maker(machine: Machine, frame: Frame, index: int, slot: Slot) -> None:
    code, row, trace = frame.code, frame.row, machine.trace
    record = slot.record
    assert isinstance(record, Maker)
    site = code.first_site + index
    node, values = site << 32 | row, trace.read(site, row)
    try:
        checked = check_arguments(record, values, slot.span)
    except VentureError as error:
        raise refused(trace, error, at_limit(trace, site, row, record, values), node) from None
    if frame.renews != NONE:
        machine.handler.renew(node, trace.value(node), checked)
        return
    made = Exchangeable(record, record.make(*checked), node)
    trace.statistics.enter(made)
    machine.store(frame, index, made)


# ---------------------------------------------------------------------------------------------- branches


def _do_if(machine: Machine, frame: Frame, index: int, slot: Slot) -> None:
    code, row, trace = frame.code, frame.row, machine.trace
    site = code.first_site + index
    edge = trace.tables[code.index].edges[index]
    if frame.renews != NONE and frame.renews not in machine.handler.structural:
        _copy_or_wait(machine, frame, edge.view[row], site)
        return
    (predicate,) = trace.read(site, row)
    try:
        taken = slot.branches[0 if truth(predicate) else 1]
    except VentureError as error:
        raise error.at(*trace.place(code, index, row)) from None
    evidence = _evidence(machine, frame, index)
    if evidence is not NO_EVIDENCE and frame.renews == NONE:
        machine.carrier.refuse_alternatives(code, index, row)
    inner = _family(machine, taken, row, NONE, _inner_context(machine, code, index, row), ())
    _set_edge(machine, frame, edge, taken.index << 32 | inner)
    machine.push(Frame(taken, inner, taken.steps, evidence))


def _inner_context(machine: Machine, code: Code, index: int, row: int) -> int:
    """The tags that a family inherits; refuses block keys that could change."""
    if not code.slots[index].regions:
        return machine.trace.tables[code.index].context_of(row)
    refuse_random_keys(machine.trace, code, index, row)
    return machine.trace.inner_context(code, index, row)


def _copy_or_wait(machine: Machine, frame: Frame, packed: int, site: int) -> None:
    """The family stays; its result has changed."""
    code = machine.trace.program.codes[packed >> 32]
    row = packed & ROW_MASK
    if machine.blocked_result(code, row):
        frame.position -= 1
        return
    machine.copy_result(code, row, site, frame.row)


def _set_edge(machine: Machine, frame: Frame, edge: Column, target: int) -> None:
    if frame.renews == NONE:
        edge.view[frame.row] = target
    else:
        machine.trace.journal.put(edge, frame.row, target)


def _family(machine: Machine, code: Code, environment: int, user: int, context: int, values: tuple[Any, ...]) -> int:
    """A new row with its arguments, environment and user."""
    trace = machine.trace
    table = trace.tables[code.index]
    row = trace.new_row(table, values)
    assert table.environment is not None
    table.environment.view[row] = environment
    table.user.view[row] = user
    if context or table.context is not None:
        table.set_context(row, context)
    if table.child_position is not None:
        bag = table.children.get(environment)
        if bag is None:
            positions = table.child_position
            bag = Bag(partial(in_column, positions))
            trace.journal.set_item(table.children, environment, bag)
        bag.add(row, trace.journal)
    return row


# -------------------------------------------------------------------------------------------------- calls


def _do_call(machine: Machine, frame: Frame, index: int, slot: Slot) -> None:
    code, row, trace = frame.code, frame.row, machine.trace
    site = code.first_site + index
    edge = trace.tables[code.index].edges[index]
    if frame.renews != NONE and frame.renews not in machine.handler.structural and edge.view[row] >= 0:
        _copy_or_wait(machine, frame, edge.view[row], site)
        return
    operator, *rest = trace.read(site, row)
    waits = machine.handler.pending and isinstance(operator, Exchangeable)
    if waits and machine.blocked_by([operator.node], row, NONE):
        # the maker's parameters change; that its value is in a list, or an argument, shows nothing of it
        frame.position -= 1
        return
    values = tuple(rest)
    match operator:
        case Closure():
            _call_closure(machine, frame, index, slot, operator, values)
        case Memo():
            _call_memo(machine, frame, index, slot, operator, values)
        case Random() | Exchangeable():
            _set_edge(machine, frame, edge, RANDOM_EDGE if isinstance(operator, Random) else MAKER_EDGE)
            if isinstance(operator, Random) and len(values) != len(operator.arguments):
                # those left out have their defaults
                values = check_arguments(operator, values, slot.span)
            _choice(machine, frame, index, operator, values)
        case Deterministic():
            _set_edge(machine, frame, edge, PRIMITIVE_EDGE)
            try:
                value = apply_checked(operator, values, slot.span)
            except VentureError as error:
                raise error.at(*trace.place(code, index, row)) from None
            if _evidence(machine, frame, index) is not NO_EVIDENCE:
                raise deterministic_evidence(trace, code, index, row)
            machine.store(frame, index, value)
        case Maker():
            raise ArgumentError(f"{operator.name} must be called by its name", slot.span)
        case _:
            raise ArgumentError(f"{show(operator)} is not a procedure").at(*trace.place(code, index, row))


def _call_closure(
    machine: Machine, frame: Frame, index: int, slot: Slot, operator: Closure, values: tuple[Any, ...]
) -> None:
    code, row, trace = frame.code, frame.row, machine.trace
    body = _body(trace, operator, frame, index, len(values))
    node = (code.first_site + index) << 32 | row
    evidence = _evidence(machine, frame, index)
    inner = _family(machine, body, operator.row, node, _inner_context(machine, code, index, row), values)
    _set_edge(machine, frame, trace.tables[code.index].edges[index], body.index << 32 | inner)
    machine.push(Frame(body, inner, body.steps, evidence))


def _call_memo(machine: Machine, frame: Frame, index: int, slot: Slot, operator: Memo, values: tuple[Any, ...]) -> None:
    code, row, trace = frame.code, frame.row, machine.trace
    site = code.first_site + index
    edge = trace.tables[code.index].edges[index]
    evidence = _evidence(machine, frame, index)
    if evidence is not NO_EVIDENCE:
        machine.carrier.refuse_moving(code, index, row)
        refuse_random_way(trace, code, row)
    body = _body(trace, operator.procedure, frame, index, len(values))
    try:
        key = memo_key(values)
        found = operator.entries.get(key)
    except (VentureError, TypeError) as error:
        message = error.message if isinstance(error, VentureError) else f"a value cannot be a key: {error}"
        raise ArgumentError(message).at(*trace.place(code, index, row)) from error
    if found is not None:
        if (body.index, found) in machine.unfinished:
            raise machine.needs_itself(code, index, row)
        if machine.handler.pending and machine.blocked_result(body, found):
            frame.position -= 1
            return
        trace.users.add(body, found, site, row)
        _set_edge(machine, frame, edge, body.index << 32 | found)
        machine.copy_result(body, found, site, row, fresh=frame.renews == NONE)
        if evidence is not NO_EVIDENCE:
            machine.carrier.to_family(body, found, evidence, [site << 32 | row])
        return
    inner = _memoized_family(machine, operator, key, site << 32 | row, values)
    _set_edge(machine, frame, edge, body.index << 32 | inner)
    machine.push(Frame(body, inner, body.steps, evidence))


def _memoized_family(machine: Machine, memo: Memo, key: Hashable, user: int, values: tuple[Any, ...]) -> int:
    """The row of a new family of a memoized procedure, about to be evaluated."""
    body = memo.procedure.code
    row = _family(machine, body, memo.procedure.row, user, 0, values)
    table = machine.trace.tables[body.index]
    if table.memos is None:
        table.memos = [None] * len(table.live)
    table.memos[row] = memo
    memo.entries.add(key, row)
    machine.trace.journal.note(KeyIndex.remove, memo.entries, key)
    machine.trace.constants.made(memo, row)
    machine.unfinished.add((body.index, row))
    return row


def fill(machine: Machine, memo: Memo, values: tuple[Any, ...]) -> None:
    """Evaluate a family of a memoized procedure that nobody uses yet, if there is none for these values."""
    key = memo_key(values)
    if key not in memo.entries:
        body = memo.procedure.code
        machine.push(Frame(body, _memoized_family(machine, memo, key, NONE, values), body.steps))
        machine.run()


def _body(trace: Trace, operator: Closure, frame: Frame, index: int, given: int) -> Code:
    body = operator.code
    if given != body.arity:
        raise wrong_count(body.name, body.arity, given, None).at(*trace.place(frame.code, index, frame.row))
    return body


STEPS: dict[Kind, Step] = {
    Kind.ARGUMENT: _renew_argument,
    Kind.DETERMINISTIC: _do_deterministic,
    Kind.RANDOM: _do_random,
    Kind.CALL: _do_call,
    Kind.IF: _do_if,
    Kind.MEM: _do_mem,
    Kind.MAKER: _do_maker,
}
"""Kind of a slot -> what its step does."""
