"""Directives' rows taken out of a trace for a while and put back: what annealing does to data.

A row that is out is dead, but nobody else may use it: its arguments stay in their cells, and it is evaluated again in
its place. What only it referred to goes with it, as by `forget`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from venture_lite.interpreter.evidence import NO_EVIDENCE
from venture_lite.interpreter.model import Model, Rows
from venture_lite.interpreter.plain_rows import is_plain, put_in, take_out
from venture_lite.program.code import Code, Kind
from venture_lite.trace.table import MAKER_EDGE, RANDOM_EDGE, ROW_MASK, Table
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
            if not (_is_plain(model, made) and take_out(model, code, row)):
                model.remove_row(made, position)
        change.keep()
    observed.reverse()
    return observed


def put_back(model: Model, places: Places, observed: list[Any]) -> None:
    """Evaluate rows again, with fresh choices. Final at once; an error leaves them out."""
    journal = model.trace.journal
    with model.transaction() as change:
        for (made, position), value in zip(places, observed, strict=True):
            table, row = _table(model, made), int(made.rows[position])
            journal.note(Table.kill, table, row)
            journal.restructured = True
            if _is_plain(model, made) and put_in(model, made.code, row, value):
                continue
            table.awake(row)
            model.load_one(made, value if value is NO_EVIDENCE else {position: value}, position)
        for made, position in places:
            _table(model, made).withheld.discard(int(made.rows[position]))
        change.keep()


def _is_plain(model: Model, made: Rows) -> bool:
    if model.kernels == "interpreted":
        return False
    return made.observed and made.bound is None and not made.elsewhere and is_plain(made.code)


def _table(model: Model, made: Rows) -> Table:
    return model.trace.tables[made.code.index]


def _evidence(model: Model, made: Rows, position: int) -> Any:
    if not made.observed:
        return NO_EVIDENCE
    node = model.evidence_node(made.code, int(made.rows[position]))
    value = model.trace.value(node)
    # a row of a matrix that does not stay withheld is written over by its next user
    elsewhere = model.trace.decode(node)[0] is not made.code
    return value.copy() if elsewhere and isinstance(value, np.ndarray) else value


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
            memos = tables[inner.index].memos
            if memos is None or memos[at] is None:
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
