"""Who reads a label of a table: calls that it is a key of, and nobody else, where classes are split and merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from venture_lite.errors import KernelError
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.sources import application_nodes, computed_from, source_nodes
from venture_lite.program.code import Code
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.trace import Trace
from venture_lite.values import key_of

HINT = "a label that is a key of memoized procedures, as in (mean (z i)); gibbs, or mh"


KeyedFamily = tuple[Code, tuple[Any, ...]]
"""Which family of a class: the body of the memoized procedure, and the key with LABEL in place of the class's label."""

LABEL: Final = None


def refuse_other_readers(model: Model, label: int, stay: bool = False) -> set[KeyedFamily]:
    """The families that may make choices among those that a label is a key of. Raises KernelError where something reads
    it otherwise than as a key of a memoized procedure's calls.

    Where members are to `stay` as they are, a branch or another call that may choose is refused, too: in some state it
    makes or removes choices.

    A label that `predict` alone asks for, and that weighs nothing, may be read in any way.
    """
    trace = model.trace
    scaffold = Builder(trace).build([label], with_brush=False)
    value = key_of(trace.value(label))
    holders = _holding(trace, label, [node for node in scaffold.pending if node not in scaffold.structural])
    weighed = [*scaffold.absorbing, *(node for site in scaffold.groups for node in trace.nodes_of(site)[:1])]
    for node in (*weighed, *scaffold.makers):
        if holders.intersection(application_nodes(trace, node)):
            raise _refused(trace, node)
    found: set[KeyedFamily] = set()
    for node in scaffold.structural:
        if holders.intersection(application_nodes(trace, node)):
            family = _keyed(trace, node, value)
            if family is None:
                raise _refused(trace, node)
            if any(item.kind.may_choose for item in family[0].slots):
                found.add(family)
        elif stay and any(item.kind.may_choose for code in _entered(trace, node) for item in code.slots):
            raise makes_or_removes_choices(trace, node)
    return found


def _entered(trace: Trace, node: int) -> Sequence[Code]:
    """What a branch or a call may lead to: each branch, and the body that the call has now."""
    code, slot, _ = trace.decode(node)
    if branches := code.slots[slot].branches:
        return branches
    packed = trace.edge(node)
    return () if packed < 0 else (trace.program.codes[packed >> 32],)


def refuse_unlike(model: Model, labels: Sequence[int]) -> None:
    """Raises KernelError where some labels differ in which choices their classes have, or are read otherwise than as
    keys."""
    families: set[KeyedFamily] | None = None
    for label in labels:
        found = refuse_other_readers(model, label, stay=True)
        if found != (found if families is None else families):
            raise makes_or_removes_choices(model.trace, label)
        families = found


def makes_or_removes_choices(trace: Trace, node: int) -> KernelError:
    """Of a label, or of a choice that comes or goes with one."""
    reason = "a member that goes over to another class makes or removes choices"
    error = KernelError(f"split_merge moves members between classes, and {reason} here", hint="gibbs, or mh")
    return error.at(*trace.place(*trace.decode(node)))


def _holding(trace: Trace, label: int, renewed: Sequence[int]) -> set[int]:
    """The nodes that hold the label as it is: results and arguments that hand it on."""
    handed = {}
    for node in renewed:
        source = computed_from(trace, node)
        if source is not None and not source.is_applied:
            handed[node] = source_nodes(trace, source)
    found, todo = {label}, [label]
    while todo:
        holder = todo.pop()
        new = [node for node, read in handed.items() if holder in read and node not in found]
        found.update(new)
        todo.extend(new)
    return found


def _keyed(trace: Trace, node: int, value: object) -> KeyedFamily | None:
    """The family that a call leads to; None where it is none of a memoized procedure that has the label for a key."""
    code, slot, row = trace.decode(node)
    packed = trace.edge(node)
    if packed < 0 or code.slots[slot].branches:
        return None
    body = trace.program.codes[packed >> 32]
    _, *arguments = trace.read(node >> 32, row)
    key = tuple([LABEL if (part := key_of(each)) == value else part for each in arguments])
    return (body, key) if trace.is_memoized(body, packed & ROW_MASK) and LABEL in key else None


def _refused(trace: Trace, node: int) -> KernelError:
    reason = "labels that go over to other classes are keys and nothing else, and one is read otherwise here"
    return KernelError(reason, hint=HINT).at(*trace.place(*trace.decode(node)))
