"""Observations that only look up families and apply one procedure, taken out and put back without the machine.

Such is a cell of a table, `[observe ((component (category n))) x]`: while the families that it names stay, taking it
out is to leave them and to take one application from the statistics. Whatever more would happen (a family goes or is
made, something is drawn) is left to the evaluator, which does the same, and what a row here is refused for as well.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from venture_lite.errors import VentureError
from venture_lite.interpreter.evidence import refuse_impossible
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.sources import primitive
from venture_lite.interpreter.weights import density_of
from venture_lite.program.code import Code, Kind
from venture_lite.trace.keys import memo_key
from venture_lite.trace.runtime import Closure, Exchangeable, Memo
from venture_lite.trace.table import MAKER_EDGE, PRIMITIVE_EDGE, RANDOM_EDGE, ROW_MASK


@cache
def is_plain(code: Code) -> bool:
    """Whether the text of an observation is nothing but calls, and an application that takes the evidence."""
    if code.kind != "directive" or code.result_slot < 0 or code.steps[-1] != code.result_slot or code.inner:
        return False
    if any(slot.regions for slot in code.slots):
        return False
    return code.slots[code.result_slot].kind in (Kind.RANDOM, Kind.CALL) and all(
        step == code.result_slot or code.slots[step].kind in (Kind.DETERMINISTIC, Kind.CALL) for step in code.steps
    )


def take_out(model: Model, code: Code, row: int) -> bool:
    """Take out a row that is plain and whose families others use as well; whether it was one."""
    trace = model.trace
    table, result = trace.tables[code.index], code.result_slot
    left: list[tuple[int, int]] = []
    for step, edge in table.edges.items():
        packed = edge.view[row]
        if packed >= 0:
            if step == result or not _is_shared(model, packed) or any(packed == other for other, _ in left):
                return False
            left.append((packed, step))
        elif packed not in ((MAKER_EDGE, RANDOM_EDGE) if step == result else (PRIMITIVE_EDGE,)):
            return False
    if not table.is_observed(result, row):
        return False
    site = code.first_site + result
    if result in table.edges and table.edges[result].view[row] == MAKER_EDGE:
        operator, *inputs = trace.read(site, row)
        trace.statistics.unincorporate(operator, trace.value(site << 32 | row), tuple(inputs))
    for packed, step in left:
        trace.users.remove(trace.program.codes[packed >> 32], packed & ROW_MASK, code.first_site + step, row)
    trace.set_observed(code, result, row, False)
    trace.journal.kill(table, row)
    return True


def _is_shared(model: Model, packed: int) -> bool:
    """Whether a memoized family has more users than one."""
    trace = model.trace
    code, row = trace.program.codes[packed >> 32], packed & ROW_MASK
    memos = trace.tables[code.index].memos
    return memos is not None and memos[row] is not None and trace.users.count(code, row) > 1


def put_in(model: Model, code: Code, row: int, evidence: Any) -> bool:
    """Put in a plain row that is dead and has its arguments, all of whose families are there; whether it was done. The
    cells of a dead row mean nothing, so that they may be written before that is known."""
    trace = model.trace
    table, first = trace.tables[code.index], code.first_site
    found: list[tuple[Code, int, int]] = []
    try:
        for step in code.steps[:-1]:
            if code.slots[step].kind is Kind.DETERMINISTIC:
                table.columns[step].fill(row, primitive(trace, code, step, row))  # type: ignore[union-attr]
                continue
            operator, *values = trace.read(first + step, row)
            if not isinstance(operator, Memo) or not isinstance(operator.procedure, Closure):
                return False
            body = operator.procedure.code
            inner = operator.entries.get(memo_key(tuple(values))) if len(values) == body.arity else None
            if inner is None:
                return False
            table.edges[step].view[row] = body.index << 32 | inner
            table.columns[step].fill(row, trace.result(body, inner))  # type: ignore[union-attr]
            found.append((body, inner, step))
        operator, arguments = _operator(model, code, row)
        if operator is None:
            return False
        term = density_of(trace, (first + code.result_slot) << 32 | row, operator, arguments, evidence)
    except (VentureError, TypeError):
        # the evaluator meets it again, and says where
        return False
    _enter(model, code, row, evidence, found)
    if isinstance(operator, Exchangeable):
        trace.statistics.incorporate(operator, evidence, arguments)
    if term == -math.inf:
        refuse_impossible(trace, code, row)
        model.note_impossible(code.span)
    return True


def _operator(model: Model, code: Code, row: int) -> tuple[Any, tuple[Any, ...]]:
    """What the evidence is an application of, with its arguments; None where that is not known to be a choice."""
    trace, slot = model.trace, code.result_slot
    item = code.slots[slot]
    values = trace.read(code.first_site + slot, row)
    if item.kind is Kind.RANDOM:
        return item.record, values
    operator, *arguments = values
    if not isinstance(operator, Exchangeable):
        return None, ()
    return operator, tuple(arguments)


def _enter(model: Model, code: Code, row: int, evidence: Any, families: list[tuple[Code, int, int]]) -> None:
    """Bring the row to life: its value, its evidence, and the families that it now uses."""
    trace = model.trace
    table, slot = trace.tables[code.index], code.result_slot
    table.awake(row)
    table.columns[slot].fill(row, evidence)  # type: ignore[union-attr]
    if slot in table.edges:
        table.edges[slot].view[row] = MAKER_EDGE
    trace.set_observed(code, slot, row, True)
    for body, inner, step in families:
        trace.users.add(body, inner, code.first_site + step, row)
