"""What an engine cannot move it refuses beforehand: it looks at one choice of each kind before its first transition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from venture_lite.code import Kind
from venture_lite.errors import VentureError
from venture_lite.inference.program import InferenceProgram, Kernel, located
from venture_lite.inference.selection import Selector, all_members, members_of_key, scope_of
from venture_lite.syntax import Form
from venture_lite.trace.directives import Model


def inspected_first(
    program: InferenceProgram,
    scope: Any,
    selector: Selector,
    form: Form,
    run: Kernel,
    refuse: Callable[[Model, list[int]], None],
) -> Kernel:
    """Look at every choice that the kernel may move before its first transition."""
    checked = False

    def checked_run() -> None:
        nonlocal checked
        found = scope_of(program.model, scope)
        if not checked and found is not None:
            nodes = members_of_key(found, selector.key) if selector.kind == "key" else all_members(found)
            try:
                refuse(program.model, one_of_each_kind(program.model, nodes))
            except VentureError as error:
                raise located(error, form.span) from error
            checked = True
        run()

    return checked_run


def one_of_each_kind(model: Model, nodes: list[int]) -> list[int]:
    """One node for each site whose distribution the text names; every node of the others."""
    seen: dict[int, int] = {}
    for node in nodes:
        code, slot, _ = model.trace.decode(node)
        seen.setdefault(node >> 32 if code.slots[slot].kind is Kind.RANDOM else -node, node)
    return list(seen.values())
