"""Who reads a label of a table: calls that it is a key of, and nobody else, where classes are split and merged."""

from __future__ import annotations

from collections.abc import Sequence

from venture_lite.errors import KernelError
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.sources import application_nodes, computed_from, source_nodes
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.trace import Trace
from venture_lite.values import key_of

HINT = "a label that is a key of memoized procedures, as in (mean (z i)); gibbs, or mh"


def refuse_other_readers(model: Model, label: int) -> None:
    """Raises KernelError where something reads a label otherwise than as a key of a memoized procedure's calls.

    What is asked for by `predict` alone, and weighs nothing, is not looked at.
    """
    trace = model.trace
    scaffold = Builder(trace).build([label], with_brush=False)
    value = key_of(trace.value(label))
    holders = _holding(trace, label, [node for node in scaffold.pending if node not in scaffold.structural])
    weighed = [*scaffold.absorbing, *(node for site in scaffold.groups for node in trace.nodes_of(site)[:1])]
    for node in (*weighed, *scaffold.makers):
        if holders.intersection(application_nodes(trace, node)):
            raise _refused(trace, node)
    for node in scaffold.structural:
        if holders.intersection(application_nodes(trace, node)) and not _is_keyed(trace, node, value):
            raise _refused(trace, node)


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


def _is_keyed(trace: Trace, node: int, value: object) -> bool:
    """Whether a call is one of a memoized procedure that has the label for a key."""
    code, slot, row = trace.decode(node)
    packed = trace.edge(node)
    if packed < 0 or code.slots[slot].branches:
        return False
    body = trace.program.codes[packed >> 32]
    _, *arguments = trace.read(node >> 32, row)
    return trace.is_memoized(body, packed & ROW_MASK) and any(key_of(each) == value for each in arguments)


def _refused(trace: Trace, node: int) -> KernelError:
    reason = "labels that go over to other classes are keys and nothing else, and one is read otherwise here"
    return KernelError(reason, hint=HINT).at(*trace.place(*trace.decode(node)))
