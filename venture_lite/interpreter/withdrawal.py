"""Directives' rows taken out of a trace for a while and put back: what annealing does to data.

A row that is out is dead, but nobody else may use it: its arguments stay in their cells, and it is evaluated again in
its place. What only it referred to goes with it, as by `forget`.

An observation that only looks up families and applies one procedure, as a cell of a table,
`[observe ((component (category n))) x]`, goes and comes without the machine: while the families that it names stay,
taking it out is to leave them and to take one application from the statistics. Whatever more would happen (a family
goes or is made, something is drawn) is left to the evaluator, which does the same, and what a row here is refused for
as well.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from venture_lite.errors import VentureError
from venture_lite.interpreter.evidence import NO_EVIDENCE, refuse_impossible
from venture_lite.interpreter.model import Model, Rows
from venture_lite.interpreter.sources import primitive
from venture_lite.interpreter.weights import Weight, density_of
from venture_lite.procedures.record import Random
from venture_lite.program.code import Code, Kind
from venture_lite.trace.keys import memo_key
from venture_lite.trace.runtime import Exchangeable, Memo
from venture_lite.trace.table import MAKER_EDGE, PRIMITIVE_EDGE, RANDOM_EDGE, ROW_MASK, Table
from venture_lite.trace.trace import Trace

Places = list[tuple[Rows, int]]
"""Rows of directives that come and go together, in the order of evaluation: (rows, position)."""


def withdraw(model: Model, places: Places) -> list[Any]:
    """Take rows out; returns what each observed, to be given back. Final at once; an error leaves all as it was."""
    observed = []
    with model.transaction() as change:
        for made, position in reversed(places):
            observed.append(_evidence(model, made, position))
            code, row, withheld = made.code, int(made.rows[position]), _table(model, made).withheld
            withheld.add(row)
            model.trace.journal.note(set.discard, withheld, row)
            if not (_goes_plainly(model, made) and take_out(model, code, row)):
                model.remove_row(made, position)
        change.keep()
    observed.reverse()
    return observed


def put_back(model: Model, places: Places, observed: list[Any]) -> Weight:
    """Evaluate rows again, with fresh choices; the weight of what they observe, each value given those before. Final at
    once; an error leaves them out."""
    journal = model.trace.journal
    weight = Weight()
    with model.transaction() as change:
        for (made, position), value in zip(places, observed, strict=True):
            table, row = _table(model, made), int(made.rows[position])
            journal.note(Table.kill, table, row)
            journal.restructured = True
            term = put_in(model, made.code, row, value) if _goes_plainly(model, made) else None
            if term is not None:
                weight.add(term, 1)
                continue
            table.awake(row)
            weight.plus(model.load_one(made, value if value is NO_EVIDENCE else {position: value}, position))
        for made, position in places:
            _table(model, made).withheld.discard(int(made.rows[position]))
        change.keep()
    return weight


def _goes_plainly(model: Model, made: Rows) -> bool:
    """Whether rows may come and go without the machine."""
    is_alone = made.observed and made.bound is None and not made.elsewhere
    return model.kernels != "interpreted" and is_alone and is_plain(made.code)


def _table(model: Model, made: Rows) -> Table:
    return model.trace.tables[made.code.index]


def _evidence(model: Model, made: Rows, position: int) -> Any:
    if not made.observed:
        return NO_EVIDENCE
    value = model.trace.result(made.code, int(made.rows[position]))
    if isinstance(value, tuple):
        return tuple([item.copy() if isinstance(item, np.ndarray) else item for item in value])
    if not isinstance(value, np.ndarray):
        return value
    # a row of a matrix that does not stay withheld is written over by its next user
    node = model.evidence_node(made.code, int(made.rows[position]))
    return value.copy() if model.trace.decode(node)[0] is not made.code else value


def requested(trace: Trace, places: Places) -> list[int]:
    """The unobserved choices that rows bring about: their own, those of families that nothing else keeps alive, and
    those of the memoized families that they name, whoever else uses them."""
    found: dict[int, None] = {}
    released: dict[tuple[Code, int], int] = {}
    named: set[tuple[Code, int]] = set()
    # (Code, row, reached through no memoized family, kept alive by these rows alone)
    todo = [(made.code, int(made.rows[position]), True, True) for made, position in reversed(places)]
    tables, codes = trace.tables, trace.program.codes
    while todo:
        code, row, direct, goes = todo.pop()
        table = tables[code.index]
        for step, kind in _choices_and_edges(code):
            packed = RANDOM_EDGE if kind is Kind.RANDOM else table.edges[step].view[row]
            if packed < 0:
                if packed in (RANDOM_EDGE, MAKER_EDGE) and not table.is_observed(step, row):
                    found[(code.first_site + step) << 32 | row] = None
                continue
            inner, at = codes[packed >> 32], packed & ROW_MASK
            if not _choices_and_edges(inner):
                continue
            if tables[inner.index].memo_of(at) is None:
                todo.append((inner, at, direct, goes))
                continue
            family = (inner, at)
            released[family] = released.get(family, 0) + goes
            if goes and released[family] == trace.users.count(*family):
                todo.append((inner, at, False, True))
            elif direct and family not in named:
                named.add(family)
                todo.append((inner, at, False, False))
    return list(found)


@cache
def _choices_and_edges(code: Code) -> tuple[tuple[int, Kind], ...]:
    """The slots of a body that can be choices or lead to some."""
    kinds = ((step, code.slots[step].kind) for step in code.steps)
    return tuple((step, kind) for step, kind in kinds if kind in (Kind.RANDOM, Kind.CALL, Kind.IF))


# --------------------------------------------------------------------------------------------------- plain rows


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
    return trace.is_memoized(code, row) and trace.users.count(code, row) > 1


def put_in(model: Model, code: Code, row: int, evidence: Any) -> float | None:
    """Put in a plain row that is dead and has its arguments, all of whose families are there: the log density of its
    evidence, None where it was not done. The cells of a dead row mean nothing, so that they may be written before that
    is known."""
    trace, slot, first = model.trace, code.result_slot, code.first_site
    try:
        families = _looked_up(trace, code, row)
        application = _application(trace, code, row) if families is not None else None
        if families is None or application is None:
            return None
        term = density_of(trace, (first + slot) << 32 | row, *application, evidence)
    except (VentureError, TypeError):
        # the evaluator meets it again, and says where
        return None
    table, (operator, arguments) = trace.tables[code.index], application
    table.awake(row)
    table.columns[slot].fill(row, evidence)  # type: ignore[union-attr]
    trace.set_observed(code, slot, row, True)
    for body, inner, step in families:
        trace.users.add(body, inner, first + step, row)
    if isinstance(operator, Exchangeable):
        table.edges[slot].view[row] = MAKER_EDGE
        trace.statistics.incorporate(operator, evidence, arguments)
    if term == -math.inf:
        refuse_impossible(trace, code, row)
        model.note_impossible(code.span)
    return term


def _looked_up(trace: Trace, code: Code, row: int) -> list[tuple[Code, int, int]] | None:
    """Fill what a row computes and looks up: (body, row, slot) of each family; None where one is not there."""
    table, found = trace.tables[code.index], []
    for step in code.steps[:-1]:
        column = table.columns[step]
        assert column is not None
        if code.slots[step].kind is Kind.DETERMINISTIC:
            column.fill(row, primitive(trace, code, step, row))
            continue
        operator, *values = trace.read(code.first_site + step, row)
        if not isinstance(operator, Memo):
            return None
        body = operator.procedure.code
        inner = operator.entries.get(memo_key(tuple(values))) if len(values) == body.arity else None
        if inner is None:
            return None
        table.edges[step].view[row] = body.index << 32 | inner
        column.fill(row, trace.result(body, inner))
        found.append((body, inner, step))
    return found


def _application(trace: Trace, code: Code, row: int) -> tuple[Random | Exchangeable, tuple[Any, ...]] | None:
    """What the evidence is an application of, with its arguments; None where that is not known to be a choice."""
    values, record = trace.read(code.first_site + code.result_slot, row), code.slots[code.result_slot].record
    if isinstance(record, Random):
        return record, values
    return (values[0], values[1:]) if isinstance(values[0], Exchangeable) else None
