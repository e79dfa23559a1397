"""Places: which choice of the program a node is, whatever rows families land in when they are made anew.

An address (`addresses.py`) sorts; a place also tells apart families of one text and one key that belong to different
memoized procedures.
"""

from __future__ import annotations

from typing import Any

from venture_lite.code import Code
from venture_lite.trace.trace import Trace


def place(trace: Trace, node: int) -> tuple[Any, ...]:
    """From the inside out: slots and Codes up to the directive, past memoized families by key and by the row that
    their procedure closes over."""
    code, slot, row = trace.decode(node)
    parts: list[Any] = [slot]
    while code.kind != "directive":
        table = trace.tables[code.index]
        parts.append(code.index)
        if code.kind == "branch" or (table.memos is not None and table.memos[row] is not None):
            if code.kind == "branch":
                slot = code.if_slot
            else:
                parts.append(trace.memo_key(code, row))
                slot = -1
            outer = _environment(trace, code, row)
            if outer is None:
                return tuple(parts)
            code, row = outer
        else:
            packed = table.user.view[row]
            code, slot, row = trace.decode(packed)
        parts.append(slot)
    return (*parts, code.index, row)


def _environment(trace: Trace, code: Code, row: int) -> tuple[Code, int] | None:
    environment = trace.tables[code.index].environment
    return None if environment is None or code.parent is None else (code.parent, environment.view[row])
