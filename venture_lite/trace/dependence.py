"""What a value depends on: asked when evidence is carried down, of the way that it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from venture_lite.errors import ArgumentError, EvidenceError
from venture_lite.program.code import Code, GlobalRef, Kind, Ref, SlotRef, origin, sources

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace

MASK = 0xFFFFFFFF

MADE_ELSEWHERE = "a random predicate leads the evidence to a choice made elsewhere: it could move to another choice"
OBSERVE_THE_CHOICE = "make the choice inside each branch, or observe the choice itself"


def source_nodes(trace: Trace, code: Code, row: int, ref: Ref) -> list[int]:
    """Packed nodes of the stored slots that a reference reads from a row."""
    found: list[int] = []
    for source in sources(code, ref):
        match source:
            case GlobalRef(target=target) if target.code is not None:
                node = trace.result_node(target.code, target.row)
                found.extend([node] if node >= 0 else source_nodes(trace, target.code, target.row, target.code.result))
            case SlotRef(depth=depth, slot=slot):
                at = row
                for level in range(depth):
                    environment = trace.tables[code.ancestor(level).index].environment
                    assert environment is not None
                    at = environment.view[at]
                found.append((code.ancestor(depth).first_site + slot) << 32 | at)
    return found


def named_node(trace: Trace, code: Code, row: int) -> int:
    """The node whose value a row's result is, wherever it stands: in the row, around it, or in that of a name, also
    through names for names; -1 where the result is computed."""
    match code.result:
        case GlobalRef(target=target) if (place := origin(target)) is not None:
            return named_node(trace, *place)
        case SlotRef(depth=depth, slot=slot) if code.ancestor(depth).slots[slot].stored:
            (node,) = source_nodes(trace, code, row, code.result)
            return node
    return -1


def depends_on_choice(
    trace: Trace, code: Code, row: int, refs: Sequence[Ref | None], keys_are_fixed: bool = False
) -> bool:
    """Whether the values depend on any random choice, observed or not.

    With `keys_are_fixed` the arguments of a memoized procedure count as constants: its row is theirs for life.
    """
    return reads(trace, code, row, refs, lambda node: trace.is_choice(*trace.decode(node)), keys_are_fixed)


def reads(
    trace: Trace,
    code: Code,
    row: int,
    refs: Sequence[Ref | None],
    is_sought: Callable[[int], bool],
    keys_are_fixed: bool = False,
) -> bool:
    """Whether the values are computed from a node that is sought; what a choice's distribution reads is left aside."""
    todo: list[int] = []
    seen: set[int] = set()

    def visit(code: Code, row: int, refs: Sequence[Ref | None]) -> None:
        for ref in refs:
            if ref is not None:
                todo.extend(source_nodes(trace, code, row, ref))

    visit(code, row, refs)
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        code, slot, row = trace.decode(node)
        item = code.slots[slot]
        if is_sought(node):
            return True
        if trace.is_choice(code, slot, row):
            continue
        match item.kind:
            case Kind.ARGUMENT if keys_are_fixed and is_memoized(trace, code, row):
                continue
            case Kind.ARGUMENT:
                for user in trace.users.nodes(code, row):
                    caller, call, at = trace.decode(user)
                    visit(caller, at, [caller.slots[call].arguments[slot]])
            case Kind.CALL | Kind.IF:
                # an `if` and a plain call read their operator; what a call's arguments do is seen in the family
                visit(code, row, [item.operator])
                packed = trace.tables[code.index].edges[slot].view[row]
                if packed >= 0:
                    inner = trace.program.codes[packed >> 32]
                    visit(inner, packed & MASK, [inner.result])
                else:
                    visit(code, row, item.arguments)
            case Kind.DETERMINISTIC:
                visit(code, row, item.arguments)
    return False


def is_memoized(trace: Trace, code: Code, row: int) -> bool:
    memos = trace.tables[code.index].memos
    return memos is not None and memos[row] is not None


def readers_come_and_go(trace: Trace, code: Code, row: int) -> bool:
    """Whether it is for inference to say how many others read a choice: a memoized procedure's, or while data are out
    of the trace any."""
    return is_memoized(trace, code, row) or any(table.withheld for table in trace.tables)


def refuse_random_keys(trace: Trace, code: Code, slot: int, row: int) -> None:
    """Refuse a block's key that could change during the life of its choices."""
    for region in code.slots[slot].regions:
        if region.fixed:
            continue
        match region.block:
            case SlotRef(depth=0, slot=key) if key < code.arity and is_memoized(trace, code, row):
                continue
        if depends_on_choice(trace, code, row, [region.block], keys_are_fixed=True):
            raise ArgumentError(
                "a block's key may not depend on a random choice",
                region.span,
                "make it an argument of a memoized procedure",
                trace.call_chain(code, slot, row),
            )


def refuse_random_way(trace: Trace, code: Code, row: int) -> None:
    """Refuse evidence that came by a random predicate or operator and would go on to a choice made elsewhere."""
    start, start_row = code, row
    while code.kind != "directive":
        if code.kind == "branch":
            assert code.parent is not None
            environment = trace.tables[code.index].environment
            assert environment is not None
            slot, row, code = code.if_slot, environment.view[row], code.parent
        else:
            users = trace.users.nodes(code, row)
            if not users:
                return
            code, slot, row = trace.decode(users[0])
        if not trace.tables[code.index].is_observed(slot, row):
            return
        if depends_on_choice(trace, code, row, [code.slots[slot].operator]):
            raise EvidenceError(
                MADE_ELSEWHERE,
                start.span,
                OBSERVE_THE_CHOICE,
                trace.call_chain(start, -1, start_row),
            )
