"""What depends on what at the state at hand: the choices that a value is computed from, those that a choice's density
reads, and the name that a person knows a choice by.

Everything is followed through names, calls, branches and memoized procedures down to choices and makers, which are
where it ends.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from venture_lite.draws.presentation import cut
from venture_lite.program.code import Code, GlobalRef, Kind, Ref, SlotRef
from venture_lite.trace.dependence import MASK, is_memoized, source_nodes

if TYPE_CHECKING:
    from venture_lite.interpreter.model import Model
    from venture_lite.trace.trace import Trace

MOST = 200_000
"""Nodes after which following ends: what is left out is not known to be read."""

NAME_WIDTH = 48

Place = tuple[Code, int, Ref]
"""What a reference means in a row."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What an expression's value rests on."""

    # choices of the trace, observed or not, makers, and memoized procedures that a branch which is not taken names
    nodes: frozenset[int]
    # whether the expression makes choices of its own, anew whenever it is evaluated
    draws: bool


def ancestors(trace: Trace, code: Code, row: int, refs: Sequence[Ref | None], fresh: Container[int] = ()) -> set[int]:
    """The choices and makers that values of a row are computed from, through the densities of `fresh` choices."""
    return _followed(trace, _named(trace, code, row, refs), fresh)


def _named(trace: Trace, code: Code, row: int, refs: Sequence[Ref | None]) -> list[int]:
    return [node for ref in refs if ref is not None for node in source_nodes(trace, code, row, ref)]


def _followed(trace: Trace, todo: list[int], fresh: Container[int] = ()) -> set[int]:
    """The choices and makers that nodes are computed from, and the memoized procedures that a branch which is not taken
    names; empties the list."""
    found: set[int] = set()
    seen: set[int] = set()

    def visit(code: Code, row: int, refs: Sequence[Ref | None]) -> None:
        todo.extend(_named(trace, code, row, refs))

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
                    decide = ways_are_decided_by(trace, code, slot, row)
                    if any(is_unobserved(trace, node) for node in decide):
                        named = _named_on_other_ways(trace, code, slot, row)
                        found.update(filter(trace.is_memo, named))
                        todo.extend(named)
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


def ways_are_decided_by(trace: Trace, code: Code, slot: int, row: int) -> set[int]:
    """The choices and makers that say which branch or body an `if` or a call leads to."""
    item = code.slots[slot]
    packed = trace.tables[code.index].edges[slot].view[row]
    is_keyed = item.kind is Kind.CALL and packed >= 0
    is_keyed = is_keyed and is_memoized(trace, trace.program.codes[packed >> 32], packed & MASK)
    return ancestors(trace, code, row, [item.operator, *(item.arguments if is_keyed else ())])


def ways_to(trace: Trace, node: int) -> Iterator[tuple[Code, int, int]]:
    """The `if`s and calls that lead to a choice, as (Code, slot, row), from the innermost up to a memoized family."""
    code, _, row = trace.decode(node)
    while code.kind != "directive" and not is_memoized(trace, code, row):
        if code.kind == "lambda":
            code, slot, row = trace.decode(trace.users.nodes(code, row)[0])
        else:
            slot = code.if_slot
            code, row = _around(trace, code, row)
        yield code, slot, row


def read_by_other_ways(trace: Trace, code: Code, slot: int, row: int) -> set[int]:
    """What an `if` may read in the branch that is not taken, and a call in the bodies of what its operator names,
    whatever its key: choices, makers, and the nodes of memoized procedures that the text names. By the text, since
    nothing of those bodies need stand in the trace."""
    named = _named_on_other_ways(trace, code, slot, row)
    memoized = {node for node in named if trace.is_memo(node)}
    return memoized | _followed(trace, named)


def _named_on_other_ways(trace: Trace, code: Code, slot: int, row: int) -> list[int]:
    """The stored nodes that those bodies name from around them, and that procedures do that they name."""
    item = code.slots[slot]
    todo: list[Place] = []
    if item.kind is Kind.IF:
        taken = trace.tables[code.index].edges[slot].view[row] >> 32
        for branch in item.branches:
            if branch.index != taken:
                todo.extend(_named_by_text(branch, row))
    elif item.operator is not None:
        todo.append((code, row, item.operator))
    seen: set[Place] = set()
    nodes: list[int] = []
    while todo:
        place = todo.pop()
        if place in seen:
            continue
        seen.add(place)
        code, row, ref = place
        match ref:
            case GlobalRef(target=target) if target.code is not None:
                todo.append((target.code, target.row, target.code.result))
            case SlotRef(depth=depth, slot=slot):
                for level in range(depth):
                    environment = trace.tables[code.ancestor(level).index].environment
                    assert environment is not None
                    row = environment.view[row]
                code = code.ancestor(depth)
                made = code.slots[slot]
                if made.stored:
                    nodes.append((code.first_site + slot) << 32 | row)
                if made.body is not None:
                    todo.extend(_named_by_text(made.body, row))
                if made.kind is Kind.MEM or not made.stored:
                    todo.extend((code, row, part) for part in (made.operator, *made.arguments) if part is not None)
    return nodes


def _named_by_text(body: Code, row: int) -> list[Place]:
    """What a body, with the bodies inside it, names from around it; `row` is that of its environment."""
    assert body.parent is not None
    found: list[Place] = []
    # bodies with their number of environments up to that row
    todo = [(body, 1)]
    while todo:
        part, height = todo.pop()
        todo.extend((inner, height + 1) for inner in part.inner)
        for ref in (part.result, *(ref for item in part.slots for ref in (item.operator, *item.arguments))):
            match ref:
                case GlobalRef():
                    found.append((body.parent, row, ref))
                case SlotRef(depth=depth, slot=slot) if depth >= height:
                    found.append((body.parent, row, SlotRef(depth - height, slot)))
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
    fresh: dict[int, int] = {}
    trace.default.births = fresh
    try:
        with model.aside():
            found = ancestors(trace, code, model.apply(code, values), [code.result], fresh)
            return Sources(frozenset(found.difference(fresh)), not found.isdisjoint(fresh))
    finally:
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
