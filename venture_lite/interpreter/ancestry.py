"""What depends on what at the state at hand: the choices that a value is computed from, those that a choice's density
reads, and the name that a person knows a choice by.

Everything is followed (`sources.py`) through names, calls, branches and memoized procedures down to choices and makers,
which are where it ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from venture_lite.draws.presentation import cut
from venture_lite.errors import ArgumentError
from venture_lite.interpreter.sources import (
    application_nodes,
    deciding_nodes,
    depends_on,
    nodes_read,
    reached,
)
from venture_lite.program.code import Code, Constant, GlobalRef, Kind, Ref, SlotRef

if TYPE_CHECKING:
    from venture_lite.interpreter.model import Model
    from venture_lite.trace.trace import Trace

MOST = 200_000
"""Nodes after which following ends: what is left out is not known to be read."""

CALLS = 3
"""Of a family, that are looked at for one that is always made."""
NAME_WIDTH = 48

FIXED_KEY = "make it an argument of a memoized procedure"

Place = tuple[Code, int, Ref]
"""What a reference means in a row."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What an expression's value rests on."""

    # choices of the trace, observed or not, makers, and memoized procedures that a branch which is not taken names
    nodes: frozenset[int]
    # whether the expression makes choices of its own, anew whenever it is evaluated
    draws: bool


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
    """Whether the values depend on a node that is sought; what a choice's distribution reads is left aside, and so is
    what a maker's parameters do: it stays the procedure that it is. A memoized procedure that is made anew has no
    family that others have, so that what it is made of moves no evidence; a block's key it does change."""

    def beyond(node: int) -> list[int]:
        is_left = trace.kind(node) is Kind.MAKER or (trace.is_memo(node) and not keys_are_fixed)
        return [] if is_left else depends_on(trace, node, keys_are_fixed)

    return any(map(is_sought, reached(nodes_read(trace, code, row, refs), beyond)))


def ancestors(trace: Trace, code: Code, row: int, refs: Sequence[Ref | None], fresh: Container[int] = ()) -> set[int]:
    """The choices and makers that values of a row are computed from, through the densities of `fresh` choices."""
    return _followed(trace, nodes_read(trace, code, row, refs), fresh)


def _followed(trace: Trace, nodes: Iterable[int], fresh: Container[int] = ()) -> set[int]:
    """The choices and makers that nodes are computed from, and the memoized procedures that a branch which is not taken
    names."""
    found: set[int] = set()

    def is_drawn(branch: int) -> bool:
        # by what branches that were taken depend on: to follow those not taken as well would take twice as long for
        # each that lies behind another, and finds no unobserved choice where there is none on the way to it
        ways = reached(deciding_nodes(trace, branch), lambda node: depends_on(trace, node))
        return any(is_unobserved(trace, node) for node in islice(ways, MOST))

    def beyond(node: int) -> list[int]:
        code, slot, row = trace.decode(node)
        if trace.is_choice(code, slot, row):
            found.add(node)
            return application_nodes(trace, node) if node in fresh else []
        if trace.kind(node) is Kind.MAKER:
            found.add(node)
        named = _named_on_other_ways(trace, code, slot, row) if code.slots[slot].branches and is_drawn(node) else []
        found.update(filter(trace.is_memo, named))
        return depends_on(trace, node) + named

    deque(islice(reached(nodes, beyond), MOST), maxlen=0)
    return found


def decided_by(trace: Trace, node: int) -> set[int]:
    """The choices and makers that say which branch or body an `if` or a call leads to."""
    return _followed(trace, deciding_nodes(trace, node))


def ways_to(trace: Trace, node: int) -> Iterator[int]:
    """The `if`s and calls that lead to a choice, from the innermost up to a memoized family."""
    code, _, row = trace.decode(node)
    while not trace.is_memoized(code, row) and (caller := trace.caller(code, row)) is not None:
        yield caller
        code, _, row = trace.decode(caller)


def read_by_other_ways(trace: Trace, node: int) -> set[int]:
    """What an `if` may read in the branch that is not taken, and a call in the bodies of what its operator names,
    whatever its key: choices, makers, and the nodes of memoized procedures that the text names. By the text, since
    nothing of those bodies need stand in the trace."""
    named = _named_on_other_ways(trace, *trace.decode(node))
    return set(filter(trace.is_memo, named)) | _followed(trace, named)


def _named_on_other_ways(trace: Trace, code: Code, slot: int, row: int) -> list[int]:
    """The stored nodes that those bodies name from around them, and that procedures do that they name."""
    item = code.slots[slot]
    todo: list[Place] = []
    if item.branches:
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
        # a constant names nothing, and may be an array, which no set takes
        if isinstance(place[2], Constant) or place in seen:
            continue
        seen.add(place)
        code, row, ref = place
        match ref:
            case GlobalRef(target=target) if target.code is not None:
                todo.append((target.code, target.row, target.code.result))
            case SlotRef(depth=depth, slot=slot):
                code, row = trace.environment(code, row, depth)
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
        for ref in (part.result, *(ref for item in part.slots for ref in item.refs)):
            match ref:
                case GlobalRef():
                    found.append((body.parent, row, ref))
                case SlotRef(depth=depth, slot=slot) if depth >= height:
                    found.append((body.parent, row, SlotRef(depth - height, slot)))
    return found


def read_by_density(trace: Trace, node: int) -> set[int]:
    """The choices and makers on which a choice's density depends, itself aside; of a call, what its arguments read."""
    return _followed(trace, application_nodes(trace, node))


def refuse_random_keys(trace: Trace, code: Code, slot: int, row: int) -> None:
    """Refuse a block's key that could change during the life of its choices."""
    for region in code.slots[slot].regions:
        if region.fixed:
            continue
        match region.block:
            case SlotRef(depth=0, slot=key) if key < code.arity and trace.is_memoized(code, row):
                continue
        if depends_on_choice(trace, code, row, [region.block], keys_are_fixed=True):
            chain = trace.call_chain(code, slot, row)
            raise ArgumentError("a block's key may not depend on a random choice", region.span, FIXED_KEY, chain)


def readers_come_and_go(trace: Trace, code: Code, row: int) -> bool:
    """Whether it is for inference to say how many others read a choice: a memoized procedure's, or while data are out
    of the trace any."""
    return trace.is_memoized(code, row) or any(table.withheld for table in trace.tables)


def is_unobserved(trace: Trace, node: int) -> bool:
    """Whether a node is a choice that no evidence fixes."""
    return trace.is_choice(*trace.decode(node)) and not trace.is_observed(node)


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
    while code.kind != "directive" and not trace.is_memoized(code, row):
        code, row = _around(trace, code, row)
    return None if code.kind == "directive" else (code, row)


def _around(trace: Trace, code: Code, row: int) -> tuple[Code, int]:
    """The family that a call or branch stands in; of a memoized family the one in which its procedure was made."""
    if not trace.is_memoized(code, row) and (caller := trace.caller(code, row)) is not None:
        around, _, at = trace.decode(caller)
        return around, at
    return trace.environment(code, row)


def name_of_choice(trace: Trace, node: int) -> str:
    """The name whose value or procedure makes a choice; of what no name stands for, the text."""
    code, slot, row = trace.decode(node)
    span = code.slots[slot].span
    while code.kind != "directive":
        if code.kind == "lambda" and code.name != "lambda" and trace.is_memoized(code, row):
            return code.name
        code, row = _around(trace, code, row)
    bound = trace.bindings.by_row.get((code.index, row))
    if bound is not None:
        return bound.name
    return cut(" ".join(span.text.split()), NAME_WIDTH) if span is not None else code.name


def key_choices(trace: Trace, code: Code, row: int) -> Iterator[tuple[int, int]]:
    """Choices on which the arguments of calls that lead to a family depend, with the argument's position; of many calls
    a few are looked at."""
    for user in trace.users.nodes(code, row)[:CALLS]:
        around, slot, at = trace.decode(user)
        for position, ref in enumerate(around.slots[slot].arguments):
            yield from ((choice, position) for choice in ancestors(trace, around, at, [ref]))


class Families:
    """Which families are there whatever the choices of a trace are, as of its present state."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._stays: dict[tuple[int, int], bool] = {}

    def stays(self, code: Code, row: int) -> bool:
        """Whether some call of a family is made whatever the choices are; of many calls a few are looked at."""
        known = self._stays.get((code.index, row))
        if known is not None:
            return known
        # a family that uses itself does not stay for that
        self._stays[code.index, row] = False
        trace = self._trace
        if code.kind == "directive":
            found = True
        elif code.kind == "branch":
            around, slot, at = trace.decode(trace.if_of(code, row))
            found = self._leads_there(around, at, [around.slots[slot].operator])
        else:
            calls = map(trace.decode, trace.users.nodes(code, row)[:CALLS])
            found = any(self._leads_there(around, at, around.slots[slot].arguments) for around, slot, at in calls)
        self._stays[code.index, row] = found
        return found

    def _leads_there(self, code: Code, row: int, refs: Sequence[Ref | None]) -> bool:
        """Whether a call by these arguments, or an `if` by this predicate, leads where it does whatever the choices
        are."""
        drawn = depends_on_choice(self._trace, code, row, refs, keys_are_fixed=True)
        return not drawn and self.stays(code, row)
