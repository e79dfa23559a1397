"""Evidence on its way down: from an observed expression to the random choice that takes it.

What must never change is which application takes the evidence, not its distribution; a way on which it could move to
another choice is refused.
"""

from __future__ import annotations

from typing import Any

from venture_lite.code import Code, GlobalRef, Kind, SlotRef
from venture_lite.errors import EvidenceError
from venture_lite.trace.borrowed import called_body
from venture_lite.trace.dependence import (
    MADE_ELSEWHERE,
    OBSERVE_THE_CHOICE,
    depends_on_choice,
    named_node,
    refuse_random_way,
)
from venture_lite.trace.table import NO_EDGE, ROW_MASK
from venture_lite.trace.trace import Trace

DETERMINISTIC = "a deterministic value cannot be observed"
OBSERVE_A_CHOICE = "observe a random choice, for example (normal VALUE 0.1)"


class Carrier:
    """Follows evidence through a trace; appends to `found` where it leads to a choice that exists already."""

    def __init__(self, trace: Trace, found: list[tuple[int, Any, list[int]]]) -> None:
        self.trace = trace
        self.found = found

    def leave(self, code: Code, row: int, value: Any) -> None:
        """The row's result is no node of the row: evidence goes on to the node that it names."""
        match code.result:
            case SlotRef(depth=0, slot=slot):
                raise deterministic_evidence(self.trace, code, slot, row)
        self.to_family(code, row, value, [])

    def to_family(self, code: Code, row: int, value: Any, path: list[int]) -> None:
        """Carry evidence from an existing family to the choice that its result is."""
        trace = self.trace
        while True:
            node = trace.result_node(code, row)
            if node < 0:
                node = self._named_elsewhere(code, row)
            code, slot, row = trace.decode(node)
            kind = code.slots[slot].kind
            if trace.is_choice(code, slot, row):
                self.found.append((node, value, [*path, node]))
                return
            packed = trace.tables[code.index].edges[slot].view[row] if kind in (Kind.CALL, Kind.IF) else NO_EDGE
            if packed < 0:
                raise deterministic_evidence(trace, code, slot, row)
            if kind is Kind.IF:
                self.refuse_alternatives(code, slot, row)
            path.append(node)
            inner = trace.program.codes[packed >> 32]
            memoized = trace.tables[inner.index].memos
            if memoized is not None and memoized[packed & ROW_MASK] is not None:
                self.refuse_moving(code, slot, row, "a memoized procedure whose key is random")
            code, row = inner, packed & ROW_MASK

    def _named_elsewhere(self, code: Code, row: int) -> int:
        """The node that a row's result names outside the row, reached by no random way."""
        refuse_random_way(self.trace, code, row)
        node = named_node(self.trace, code, row)
        if node < 0:
            raise deterministic_evidence(self.trace, code, -1, row)
        return node

    def refuse_random_way(self, code: Code, row: int) -> None:
        """Refuse evidence that reached a family by a random predicate and goes on to a memoized procedure's value."""
        refuse_random_way(self.trace, code, row)

    def refuse_alternatives(self, code: Code, slot: int, row: int) -> None:
        """Refuse an `if` whose predicate is random where an alternative, taken now or not, ends in a deterministic
        value, or by its text leads to a choice made elsewhere."""
        item = code.slots[slot]
        for branch in item.branches:
            wrong = _wrong_end(branch)
            if wrong is not None and depends_on_choice(self.trace, code, row, [item.operator]):
                raise EvidenceError(wrong[0], branch.span, wrong[1], self.trace.call_chain(code, slot, row))

    def refuse_moving(self, code: Code, slot: int, row: int, what: str) -> None:
        item = code.slots[slot]
        refs = [item.operator, *item.arguments] if item.operator is not None else list(item.arguments)
        if depends_on_choice(self.trace, code, row, refs):
            raise EvidenceError(
                f"evidence cannot go through {what}: it could move to another choice",
                item.span,
                "observe the choice itself, with a key that is fixed",
                self.trace.call_chain(code, slot, row),
            )


def _wrong_end(branch: Code) -> tuple[str, str] | None:
    """Why evidence may not come to a branch by a random predicate, and what to do; None where, as far as the text
    shows, a choice takes it that is made in the branch."""
    match branch.result:
        case SlotRef(depth=0, slot=index) if branch.slots[index].kind is Kind.CALL:
            return None if called_body(branch, index) is None else (MADE_ELSEWHERE, OBSERVE_THE_CHOICE)
        case SlotRef(depth=0, slot=index):
            makes_a_choice = branch.slots[index].kind in (Kind.RANDOM, Kind.IF)
            return None if makes_a_choice else (DETERMINISTIC, OBSERVE_A_CHOICE)
        case SlotRef() | GlobalRef():
            return MADE_ELSEWHERE, OBSERVE_THE_CHOICE
    return DETERMINISTIC, OBSERVE_A_CHOICE


def deterministic_evidence(trace: Trace, code: Code, slot: int, row: int) -> EvidenceError:
    span = code.slots[slot].span if slot >= 0 else code.span
    return EvidenceError(
        DETERMINISTIC,
        span,
        OBSERVE_A_CHOICE,
        trace.call_chain(code, slot, row),
    )
