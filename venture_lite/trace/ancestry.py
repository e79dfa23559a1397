"""What depends on what at the state at hand: the choices that a value is computed from, those that a choice's density
reads, and the name that a person knows a choice by.

Everything is followed through names, calls, branches and memoized procedures down to choices and makers, which are
where it ends.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from venture_lite.code import Code, GlobalRef, Kind, Ref, SlotRef, sources
from venture_lite.presentation import cut
from venture_lite.trace.dependence import MASK, is_memoized, source_nodes

if TYPE_CHECKING:
    from venture_lite.trace.directives import Model
    from venture_lite.trace.trace import Trace

MOST = 200_000
"""Nodes after which following ends: what is left out is not known to be read."""

NAME_WIDTH = 48


@dataclass(frozen=True, slots=True)
class Sources:
    """What an expression's value rests on."""

    # choices of the trace, observed or not, and makers
    nodes: frozenset[int]
    # whether the expression makes choices of its own, anew whenever it is evaluated
    draws: bool


def ancestors(trace: Trace, code: Code, row: int, refs: Sequence[Ref | None], fresh: Container[int] = ()) -> set[int]:
    """The choices and makers that values of a row are computed from, through the densities of `fresh` choices."""
    found: set[int] = set()
    seen: set[int] = set()
    todo: list[int] = []

    def visit(code: Code, row: int, refs: Sequence[Ref | None]) -> None:
        for ref in refs:
            if ref is not None:
                todo.extend(source_nodes(trace, code, row, ref))

    visit(code, row, refs)
    while todo and len(seen) < MOST:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        code, slot, row = trace.decode(node)
        item = code.slots[slot]
        if trace.is_choice(code, slot, row):
            found.add(node)
            if node in fresh:
                visit(code, row, [item.operator, *item.arguments])
            continue
        match item.kind:
            case Kind.ARGUMENT if is_memoized(trace, code, row):
                # a memoized row has its key for life; which row it is, the call decides
                continue
            case Kind.ARGUMENT:
                for user in trace.users.nodes(code, row):
                    caller, call, at = trace.decode(user)
                    visit(caller, at, [caller.slots[call].arguments[slot]])
            case Kind.CALL | Kind.IF:
                visit(code, row, [item.operator])
                if item.kind is Kind.IF:
                    todo.extend(_read_by_other_branch(trace, code, slot, row))
                packed = trace.tables[code.index].edges[slot].view[row]
                inner = trace.program.codes[packed >> 32] if packed >= 0 else None
                if inner is not None:
                    visit(inner, packed & MASK, [inner.result])
                if inner is None or is_memoized(trace, inner, packed & MASK):
                    visit(code, row, item.arguments)
            case Kind.MAKER:
                found.add(node)
                visit(code, row, item.arguments)
            case _:
                visit(code, row, [item.operator, *item.arguments])
    return found


def _read_by_other_branch(trace: Trace, code: Code, slot: int, row: int) -> list[int]:
    """What the branch that is not taken names from around it, where a choice may lead there."""
    item = code.slots[slot]
    if not any(is_unobserved(trace, node) for node in ancestors(trace, code, row, [item.operator])):
        return []
    taken = trace.tables[code.index].edges[slot].view[row] >> 32
    found: list[int] = []
    # bodies inside the branch, with their number of environments up to the family of the `if`
    todo = [(branch, 1) for branch in item.branches if branch.index != taken]
    while todo:
        body, height = todo.pop()
        todo.extend((inner, height + 1) for inner in body.inner)
        refs = [body.result, *(ref for part in body.slots for ref in (part.operator, *part.arguments))]
        for source in (source for ref in refs if ref is not None for source in sources(body, ref)):
            if isinstance(source, GlobalRef):
                found.extend(source_nodes(trace, code, row, source))
            elif isinstance(source, SlotRef) and source.depth >= height:
                found.extend(source_nodes(trace, code, row, SlotRef(source.depth - height, source.slot)))
    return found


def read_by_density(trace: Trace, node: int) -> set[int]:
    """The choices and makers on which a choice's density depends, itself aside; of a call, what its arguments read."""
    code, slot, row = trace.decode(node)
    item = code.slots[slot]
    return ancestors(trace, code, row, [item.operator, *item.arguments])


def is_unobserved(trace: Trace, node: int) -> bool:
    """Whether a node is a choice that no evidence fixes."""
    code, slot, row = trace.decode(node)
    return trace.is_choice(code, slot, row) and not trace.tables[code.index].is_observed(slot, row)


def sources_of(model: Model, code: Code, values: tuple[Any, ...]) -> Sources:
    """What `sample` of a Code reads. Evaluates it, and leaves the trace and its generator as they were."""
    trace = model.trace
    generator = trace.rng.bit_generator
    state, births = generator.state, trace.default.births
    mark = trace.journal.mark()
    fresh: dict[int, int] = {}
    trace.default.births = fresh
    try:
        table = trace.table(code)
        row = trace.journal.allocate(table)
        for index, value in enumerate(values):
            table.columns[index].fill(row, value)  # type: ignore[union-attr]
        model.machine.evaluate(code, row)
        found = ancestors(trace, code, row, [code.result], fresh)
        return Sources(frozenset(found.difference(fresh)), not found.isdisjoint(fresh))
    finally:
        model.rollback(mark)
        trace.default.births = births
        generator.state = state


def memoized_family(trace: Trace, node: int) -> tuple[Code, int] | None:
    """The innermost memoized family in whose evaluation a choice was made, if there is one."""
    code, _, row = trace.decode(node)
    while code.kind != "directive" and not is_memoized(trace, code, row):
        code, row = _around(trace, code, row)
    return None if code.kind == "directive" else (code, row)


def _around(trace: Trace, code: Code, row: int) -> tuple[Code, int]:
    """The family that a call or branch stands in; of a memoized family the one in which its procedure was made."""
    if code.kind == "lambda" and not is_memoized(trace, code, row):
        for user in trace.users.nodes(code, row):
            caller, _, at = trace.decode(user)
            return caller, at
    environment = trace.tables[code.index].environment
    assert code.parent is not None
    assert environment is not None
    return code.parent, environment.view[row]


def name_of_choice(trace: Trace, node: int) -> str:
    """The name whose value or procedure makes a choice; of what no name stands for, the text."""
    code, slot, row = trace.decode(node)
    span = code.slots[slot].span
    while code.kind != "directive":
        if code.kind == "lambda" and code.name != "lambda" and is_memoized(trace, code, row):
            return code.name
        code, row = _around(trace, code, row)
    bound = trace.bindings.by_row.get((code.index, row))
    if bound is not None:
        return bound.name
    return cut(" ".join(span.text.split()), NAME_WIDTH) if span is not None else code.name
