"""Addresses of random choices: directive, place in the text and call path, whatever row a family landed in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from venture_lite.values import Symbol

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace


def address(trace: Trace, node: int) -> tuple[Any, ...]:
    """From the outside in: directive, then for each call its site, and for memoized families their keys."""
    parts: list[Any] = []
    code, slot, row = trace.decode(node)
    while True:
        parts.append(slot)
        if code.kind == "directive":
            parts.append(row)
            parts.append(code.index)
            break
        if code.kind == "branch":
            assert code.parent is not None
            environment = trace.tables[code.index].environment
            assert environment is not None
            parts.append(code.index)
            code, slot, row = code.parent, code.if_slot, environment.view[row]
            continue
        memos = trace.tables[code.index].memos
        parts.append(code.index)
        if memos is not None and memos[row] is not None:
            parts.append(_orderable(trace.memo_key(code, row)))
            break
        users = trace.users.nodes(code, row)
        if not users:
            break
        code, slot, row = trace.decode(users[0])
    parts.reverse()
    return tuple(parts)


def _orderable(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(map(_orderable, key))
    if isinstance(key, (bool, int, float, str, Symbol)):
        return key
    return str(key)
