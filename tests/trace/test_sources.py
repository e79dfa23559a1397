"""What a value is computed from is what a recomputation of it reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import venture_lite
from tests.generator.directives import random_program
from tests.generator.session import infer, load
from venture_lite import Venture
from venture_lite.audit.recompute import same
from venture_lite.interpreter.ancestry import read_by_other_ways
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.readers import reader
from venture_lite.interpreter.sources import ValueSource, computed_from, depends_on, reached, source_nodes, source_value
from venture_lite.program.code import Kind
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.trace import Trace


class Cells:
    """A column's values that write down which node is read."""

    def __init__(self, view: Any, site: int, read: set[int]) -> None:
        self.view, self.site, self.read = view, site, read

    def __getitem__(self, row: int) -> Any:
        self.read.add(self.site << 32 | row)
        return self.view[row]


def really_read(trace: Trace, source: ValueSource) -> set[int]:
    """The stored cells that the generated reader of a source's references reads."""
    read: set[int] = set()
    columns = [
        (column, column.view, table.code.first_site + slot)
        for table in trace.tables
        for slot, column in enumerate(table.columns)
        if column is not None and not isinstance(column, BorrowedColumn)
    ]
    for column, view, site in columns:
        column.view = Cells(view, site, read)
    try:
        reader(trace, source.code, source.refs)(source.row)
    finally:
        for column, view, _ in columns:
            column.view = view
    return read


def lent(trace: Trace, node: int) -> int:
    """Where a node's value stands: a call of a memoized procedure may have no copy of it."""
    column = trace.column(node >> 32)
    if not isinstance(column, BorrowedColumn):
        return node
    return column.site << 32 | column.edges.view[node & ROW_MASK] & ROW_MASK


def stored(trace: Trace) -> Iterator[int]:
    for table in trace.tables:
        slots = [slot for slot, item in enumerate(table.code.slots) if item.stored]
        for row in range(table.count):
            if table.live[row]:
                yield from ((table.code.first_site + slot) << 32 | row for slot in slots)


def kind_of(trace: Trace, node: int) -> Kind:
    code, slot, _ = trace.decode(node)
    return code.slots[slot].kind


def stands_for_itself(trace: Trace, node: int) -> bool:
    """Whether a node's value is given with its row, or made where it stands."""
    code, slot, row = trace.decode(node)
    is_given = code.slots[slot].kind is Kind.ARGUMENT and (code.kind == "directive" or trace.is_memoized(code, row))
    return is_given or code.slots[slot].kind in (Kind.MEM, Kind.MAKER)


def assert_sources_are_what_is_read(model: Model) -> set[Kind]:
    """The kinds of nodes that were looked at."""
    trace = model.trace
    nodes = list(stored(trace))
    read: dict[int, set[int]] = {}
    for node in nodes:
        source = computed_from(trace, node)
        assert (source is None) == trace.is_choice(*trace.decode(node))
        read[node] = set() if source is None else really_read(trace, source)
        if source is not None and not stands_for_itself(trace, node):
            assert same(source_value(trace, source), trace.value(node))

    def said(node: int) -> list[int]:
        source = computed_from(trace, node)
        return [] if source is None else [lent(trace, other) for other in source_nodes(trace, source)]

    for node in nodes:
        assert set(reached([node], said)) == set(reached([node], read.__getitem__)), trace.decode(node)
        assert read[node] <= {lent(trace, other) for other in depends_on(trace, node)}
    return {kind_of(trace, node) for node in nodes if read[node]}


@pytest.mark.parametrize("seed", range(12))
def test_the_closure_of_sources_is_what_a_recomputation_reads(seed: int) -> None:
    venture = load(random_program(seed), seed)
    for model in venture.traces:
        assert_sources_are_what_is_read(model)
    infer(venture, "(mh default one 20)")
    for model in venture.traces:
        assert_sources_are_what_is_read(model)


def test_each_kind_of_node_has_its_source() -> None:
    venture = Venture(seed=1)
    venture.execute(
        """
        [assume x (normal 0 1)]
        [assume g (lambda (f n) (if (< n 1) (f x) (g f (- n 1))))]
        [assume r (let ((y (* 2 x))) (if (< x 9) (+ y 1) y))]
        [assume h (mem (lambda (k) (+ k r)))]
        [assume a (exp x)]
        [assume made (make_beta_bernoulli a 1)]
        [predict (g exp (h 1))]
        [predict ((if (flip) sin cos) (h 3))]
        [predict (made)]
        """
    )
    (model,) = venture.traces
    assert assert_sources_are_what_is_read(model) >= {Kind.ARGUMENT, Kind.DETERMINISTIC, Kind.CALL, Kind.IF, Kind.MAKER}


# ------------------------------------------------------------------------------------------------ one case analysis

PACKAGE = Path(venture_lite.__file__).parent
ASKS = re.compile(r"\bKind\.(ARGUMENT|CALL|IF|MEM)\b|\.edges\[|\busers\.nodes\(")

# What else tells calls, branches and arguments apart, and why. The list may only get shorter.
OTHERS = {
    "interpreter/steps.py": "evaluates each kind, and makes the edges",
    "interpreter/machine.py": "evaluates",
    "interpreter/scaffold.py": "goes the other way: from a value to what reads it",
    "interpreter/withdrawal.py": "goes down to the families that rows make, and evaluates rows of one shape",
    "interpreter/constants.py": "goes down to the families that a family calls",
    "interpreter/evidence.py": "asks the text of a branch that is not taken",
    "interpreter/ancestry.py": "asks the text of a branch that is not taken",
    "interpreter/frozen.py": "makes a Code",
    "interpreter/model.py": "asks the text whether a row is one choice",
    "kernels/follow.py": "goes the other way",
    "kernels/followers.py": "moves edges",
    "kernels/reassign.py": "goes the other way",
    "kernels/label_rows.py": "asks what calls with a label lead to",
    "kernels/preview.py": "evaluates rows that do not exist",
    "blocks/kinds.py": "follows values through the text, where there are no rows",
    "blocks/linear.py": "asks for the families of many rows at once",
    "inference/watch.py": "goes to the calls of a memoized procedure",
    "session/queries.py": "asks whether a name stands for a procedure",
    "audit/invariants.py": "checks by rules of its own",
    "audit/snapshot.py": "holds all that is stored",
}


READS = re.compile(r"(\bcase\b|\bisinstance\().*\b(SlotRef|GlobalRef)\b")

# What else tells references apart, and for which other end.
READERS = {
    "interpreter/references.py": "says what they mean",
    "audit/recompute.py": "is the plain definition that readers are compared with",
    "interpreter/sources.py": "finds the nodes that they read",
    "interpreter/machine.py": "finds the nodes that evaluation waits for",
    "interpreter/ancestry.py": "asks what text names that is not evaluated",
    "interpreter/evidence.py": "goes down to the choice that takes evidence",
    "interpreter/weights.py": "asks whether an argument is a column of the row's own table",
    "trace/trace.py": "asks whether a result is stored in its row",
    "trace/borrowed.py": "asks the text which procedure a call names",
    "kernels/deferred.py": "asks whether a value differs between rows",
    "kernels/label_rows.py": "asks whether a call reads a label and nothing else of its row",
    "kernels/reassign.py": "asks whether a name is one for a name",
    "blocks/kinds.py": "follows values through the text, where there are no rows",
    "inference/replay.py": "asks which values of a directive a result shows",
}


def test_what_references_mean_is_told_apart_in_one_place() -> None:
    package = Path(venture_lite.__file__).parent
    named = {path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*.py")}
    found = {name for name, text in named.items() if READS.search(text)}
    assert {name for name in found if not name.startswith("program/")} == set(READERS)


def test_an_operator_that_is_computed_from_an_array_names_what_it_may_be() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume f (mem (lambda (i) (normal 0 1)))] [predict ((second (list {M} f)) 1)]", M=np.eye(2))
    trace = venture.traces[0].trace
    (call,) = (
        code.first_site + index << 32
        for code in trace.program.codes
        for index, slot in enumerate(code.slots)
        if slot.kind is Kind.CALL
    )
    assert any(map(trace.is_memo, read_by_other_ways(trace, call)))


@pytest.mark.thorough
def test_no_other_module_takes_the_cases_apart() -> None:
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(("program/", "trace/")) and ASKS.search(path.read_text(encoding="utf-8")):
            found.add(name)
    assert found - {"interpreter/sources.py"} == set(OTHERS)
