"""What a value is computed from: the one place where nodes are told apart for that.

A node's value is given by references of some row: of its own row, where a procedure is applied to them; of the row of
its family, whose result it is; of the caller's row, which passed an argument. A `ValueSource` says which. Values,
gradients, orders of renewal and what depends on what are walks over sources.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from venture_lite.errors import InternalError, VentureError
from venture_lite.interpreter.explain import apply_checked
from venture_lite.procedures.record import Deterministic
from venture_lite.program.code import Code, GlobalRef, Kind, Ref, SlotRef, origin, sources
from venture_lite.trace.table import ROW_MASK

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace

Found = TypeVar("Found", bound=Hashable)

RESULT = -1
"""In `ValueSource.slot`: what is read is the row's result."""

ALL = -1
"""In `ValueSource.position`: all that the slot is applied to."""


class Circular(InternalError):
    """Nodes have no order in which each finds its parents done."""


class ValueSource(NamedTuple):
    """What one row reads: its result, one argument of a slot, or all of them."""

    code: Code
    row: int
    # the slot that reads, or RESULT
    slot: int
    # which of its arguments, or ALL
    position: int

    @property
    def refs(self) -> tuple[Ref, ...]:
        if self.slot == RESULT:
            return (self.code.result,)
        arguments = self.code.slots[self.slot].arguments
        return arguments if self.position == ALL else (arguments[self.position],)

    @property
    def is_result(self) -> bool:
        """Whether the value is a family's result."""
        return self.slot == RESULT

    @property
    def is_applied(self) -> bool:
        """Whether a procedure is applied to what is read; else the one reference hands its value on."""
        return self.slot != RESULT and self.position == ALL


def computed_from(trace: Trace, node: int) -> ValueSource | None:
    """What gives a node its value; None for a choice. An argument of a memoized family reads nothing: its key is
    the family's for life."""
    code, slot, row = trace.decode(node)
    kind = code.slots[slot].kind
    if kind is Kind.CALL or kind is Kind.IF:
        packed = trace.tables[code.index].edges[slot].view[row]
        if packed >= 0:
            return ValueSource(trace.program.codes[packed >> 32], packed & ROW_MASK, RESULT, ALL)
        return None if trace.is_choice(code, slot, row) else ValueSource(code, row, slot, ALL)
    if kind is Kind.ARGUMENT and not trace.is_memoized(code, row) and (users := trace.users.nodes(code, row)):
        caller, call, at = trace.decode(users[0])
        return ValueSource(caller, at, call, slot)
    return None if kind is Kind.RANDOM else ValueSource(code, row, slot, ALL)


def source_nodes(trace: Trace, source: ValueSource) -> list[int]:
    """The stored nodes that a source reads."""
    return nodes_read(trace, source.code, source.row, source.refs)


def source_value(trace: Trace, source: ValueSource) -> Any:
    """The value that a source gives, as the trace stands. Raises VentureError at the call that cannot be evaluated."""
    code, row, slot, position = source
    if slot == RESULT:
        return trace.result(code, row)
    if position == ALL:
        return primitive(trace, code, slot, row)
    arguments = trace.read(code.first_site + slot, row)
    return arguments[1 + position]


def primitive(trace: Trace, code: Code, index: int, row: int) -> Any:
    """The value of a stored deterministic slot, or of a call of a primitive procedure."""
    slot = code.slots[index]
    values = trace.read(code.first_site + index, row)
    record, values = (values[0], values[1:]) if slot.kind is Kind.CALL else (slot.record, values)
    assert isinstance(record, Deterministic)
    return applied(trace, record, values, code, index, row)


def applied(trace: Trace, record: Deterministic, values: tuple[Any, ...], code: Code, index: int, row: int) -> Any:
    """What a primitive gives at a slot. Raises the located error where it cannot be applied."""
    try:
        return record.scalar(*values)
    except Exception as error:
        try:
            return apply_checked(record, values, code.slots[index].span)
        except VentureError as located:
            raise located.at(*trace.place(code, index, row)) from error


def nodes_read(trace: Trace, code: Code, row: int, refs: Iterable[Ref | None]) -> list[int]:
    """The stored nodes that references read from a row, through fused slots and names."""
    found: list[int] = []
    for ref in refs:
        for read in sources(code, ref) if ref is not None else ():
            match read:
                case GlobalRef(target=target) if target.code is not None:
                    node = trace.result_node(target.code, target.row)
                    found += [node] if node >= 0 else nodes_read(trace, target.code, target.row, (target.code.result,))
                case SlotRef(depth=depth, slot=slot):
                    around, at = trace.environment(code, row, depth)
                    found.append((around.first_site + slot) << 32 | at)
    return found


def named_node(trace: Trace, code: Code, row: int) -> int:
    """The node whose value a row's result is; -1 where the result is computed."""
    return node_named(trace, code, row, code.result)


def node_named(trace: Trace, code: Code, row: int, ref: Ref) -> int:
    """The node whose value a reference of a row stands for, wherever it stands: in the row, around it, or in that of a
    name, also through names for names; -1 where the value is computed."""
    match ref:
        case GlobalRef(target=target) if (place := origin(target)) is not None:
            return named_node(trace, *place)
        case SlotRef(depth=depth, slot=slot) if code.ancestor(depth).slots[slot].stored:
            (node,) = nodes_read(trace, code, row, (ref,))
            return node
    return -1


# ------------------------------------------------------------------------------------------- what decides the way


def application_nodes(trace: Trace, node: int) -> list[int]:
    """The nodes that a node's own text reads in its row: operator or predicate, and arguments. A choice's density
    depends on them, and the way that a call or an `if` takes on nothing else."""
    code, slot, row = trace.decode(node)
    item = code.slots[slot]
    return nodes_read(trace, code, row, (item.operator, *item.arguments))


def deciding_nodes(trace: Trace, node: int) -> list[int]:
    """The nodes that say which procedure a node applies and which family it leads to: its operator or predicate; the
    key, too, where the family is a memoized one."""
    code, slot, row = trace.decode(node)
    item = code.slots[slot]
    found = nodes_read(trace, code, row, (item.operator,))
    if item.operator is not None and item.arguments:
        packed = trace.tables[code.index].edges[slot].view[row]
        if packed >= 0 and trace.is_memoized(trace.program.codes[packed >> 32], packed & ROW_MASK):
            found += nodes_read(trace, code, row, item.arguments)
    return found


def parents_of(trace: Trace, node: int) -> list[int]:
    """The nodes that a node reads as long as edges stay: those that its value is computed from, or that its density
    depends on."""
    source = computed_from(trace, node)
    return application_nodes(trace, node) if source is None or source.is_applied else source_nodes(trace, source)


# ------------------------------------------------------------------------------------------------- the walk upward


def reached(nodes: Iterable[Found], beyond: Callable[[Found], Iterable[Found]]) -> Iterator[Found]:
    """Nodes, or families, and whatever lies `beyond` them, each once."""
    todo = list(nodes)
    seen: set[Found] = set()
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            yield node
            todo.extend(beyond(node))


def parents_first(
    nodes: Iterable[int], parents: Callable[[int], Iterable[int]], done: Container[int], deepest: float = math.inf
) -> Iterator[int]:
    """Nodes with all that they need, each after its `parents`, as evaluation comes to them. The caller enters each
    among those that are `done`, at which nothing begins.

    Raises Circular where a node needs itself, or more than `deepest` wait for one another.
    """
    for first in nodes:
        path = {} if first in done else {first: iter(parents(first))}
        while path:
            node = next(reversed(path))
            parent = next((parent for parent in path[node] if parent not in done), None)
            if parent is None:
                del path[node]
                yield node
            elif parent in path or len(path) > deepest:
                raise Circular("a value is needed to compute itself")
            else:
                path[parent] = iter(parents(parent))


def depends_on(trace: Trace, node: int, keys_are_fixed: bool = True) -> list[int]:
    """The nodes on which a value depends: those that it is computed from and those that decide on the way to it; none
    for a choice. With `keys_are_fixed` a memoized family's key decides which family a call finds; without, the family's
    arguments depend on what its callers pass."""
    source = computed_from(trace, node)
    if source is None:
        return []
    if keys_are_fixed:
        return deciding_nodes(trace, node) + source_nodes(trace, source)
    code, slot, row = trace.decode(node)
    if code.slots[slot].kind is Kind.ARGUMENT:
        calls = map(trace.decode, trace.users.nodes(code, row))
        return [read for caller, call, at in calls for read in source_nodes(trace, ValueSource(caller, at, call, slot))]
    return nodes_read(trace, code, row, (code.slots[slot].operator,)) + source_nodes(trace, source)
