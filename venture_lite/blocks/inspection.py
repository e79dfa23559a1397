"""What an engine cannot move it refuses beforehand: it looks at one choice of each kind before its first transition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from venture_lite.errors import VentureError
from venture_lite.inference.program import InferenceProgram, Kernel, located
from venture_lite.inference.selection import Selector, all_members, members_of_key, scope_of
from venture_lite.interpreter.model import Model
from venture_lite.language.syntax import Form
from venture_lite.program.code import Kind
from venture_lite.trace.scopes import DefaultScope, Scope


def inspected_first(
    program: InferenceProgram,
    scope: Any,
    selector: Selector,
    form: Form,
    run: Kernel,
    refuse: Callable[[Model, list[int]], None],
    by_block: bool = False,
    begin: Callable[[list[int]], None] | None = None,
) -> Kernel:
    """Look at every choice that the kernel may move before its first transition: at all together, or block by block.
    `begin` is told them all when the kernel runs for the first time."""
    checked = begun = False

    def checked_run() -> None:
        nonlocal checked, begun
        found = scope_of(program.model, scope)
        if begin is not None and not begun:
            begin(_everything(found, selector) if found is not None else [])
            begun = True
        if not checked and found is not None:
            try:
                for nodes in _blocks(program.model, found, selector) if by_block else [_everything(found, selector)]:
                    # of a block that does not exist there is nothing to see; the kernel warns of it
                    if nodes:
                        refuse(program.model, nodes if by_block else one_of_each_kind(program.model, nodes))
            except VentureError as error:
                raise located(error, form.span) from error
            checked = True
        run()

    return checked_run


def _everything(scope: DefaultScope | Scope, selector: Selector) -> list[int]:
    return members_of_key(scope, selector.key) if selector.kind == "key" else all_members(scope)


def _blocks(model: Model, scope: DefaultScope | Scope, selector: Selector) -> list[list[int]]:
    """The blocks that a kernel may move, one for each combination of sites."""
    if selector.kind in ("key", "all"):
        return [_everything(scope, selector)]
    if isinstance(scope, DefaultScope):
        return [[node] for node in one_of_each_kind(model, all_members(scope))]
    kinds: dict[tuple[int, ...], list[int]] = {}
    for key in scope.all_keys():
        nodes = scope.members(key)
        kinds.setdefault(tuple(sorted(node >> 32 for node in nodes)), nodes)
    return list(kinds.values())


def one_of_each_kind(model: Model, nodes: list[int]) -> list[int]:
    """One node for each site whose distribution the text names; every node of the others."""
    seen: dict[int, int] = {}
    for node in nodes:
        code, slot, _ = model.trace.decode(node)
        seen.setdefault(node >> 32 if code.slots[slot].kind is Kind.RANDOM else -node, node)
    return list(seen.values())
