"""Addresses of random choices: directive, place in the text and call path, whatever row a family landed in.

Two choices of a trace never have one address, and a choice that is taken out and made again has the address that it
had. An address is a list of segments. The first goes from the choice up to its directive, or to the innermost memoized
family that it lies in, which goes by its key; a memoized procedure has an address itself, which makes the next
segments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.program.code import Code
from venture_lite.trace.runtime import Closure, Exchangeable, Memo
from venture_lite.values import Symbol, key_of

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace

Segment = tuple[Any, ...]
Address = tuple[Segment, ...]

SIMPLE = frozenset((bool, int, float, str, Symbol))
"""Types of keys that hold no procedure."""

PROCEDURES = (Closure, Memo, Exchangeable, Random, Deterministic, Maker)

NAME_SIZE = 16
"""Bytes of a procedure's name: 128 bits, of which no two procedures have the same."""


PLACE_SIZE = 8
"""Numbers of a procedure's place that stand before its name."""


def address(trace: Trace, node: int) -> Address:
    """Where a choice stands, from the outside in: directive, then for each call its site, for memoized families their
    keys; then where the memoized procedure stands."""
    segments = _segments(trace, *trace.decode(node))
    if all(segment[0].__class__ is int for segment in segments):
        return segments
    return _named(trace, segments)  # type: ignore[no-any-return]


def address_order(place: Address) -> tuple[Any, ...]:
    """Sorts addresses by directive, place in the text and call path: the segments count from the outermost on. A
    segment is of integers but for the key in front."""
    return tuple([(sort_key(segment[0]), segment[1:]) for segment in reversed(place)])


def block_order(trace: Trace, key: Any) -> tuple[Any, ...]:
    """Sorts the keys of a scope's blocks: equal where the keys are."""
    return sort_key(_named(trace, key_of(key)))


def sort_key(value: Any) -> tuple[Any, ...]:
    """A total order over keys, as `key_of` makes them and `address` names procedures: numbers, then symbols, strings,
    lists, vectors and matrices, dictionaries, procedures; last, by their text, values that only Python knows."""
    kind = value.__class__
    if kind is int or kind is float or kind is bool:
        return (0, value)
    if kind is tuple and not (value and isinstance(value[0], type)):
        return (3, tuple([sort_key(part) for part in value]))
    match value:
        case Symbol():
            return (1, value.name)
        case str():
            return (2, value)
        case tuple():
            # what `key_of` makes of arrays, which are tuples throughout, and of dictionaries
            return (4 if isinstance(value[1], tuple) else 5, *map(sort_key, value[1:]))
        case frozenset():
            return (0, tuple(sorted(map(sort_key, value))))
        case bytes():
            return (6, value)
    return (7, type(value).__name__, str(value))


# ------------------------------------------------------------------------------------------------------ the walk


def _segments(trace: Trace, code: Code, slot: int, row: int) -> Address:
    """From a slot of a row outwards; procedures stand in the keys as they are."""
    segments: list[Segment] = []
    parts: list[Any] = []
    while True:
        parts.append(slot)
        if code.kind == "directive":
            parts.append(row)
        table = trace.tables[code.index]
        parts.append(code.index)
        if code.kind == "branch":
            code, slot, row = trace.decode(trace.if_of(code, row))
            continue
        memo = table.memo_of(row)
        if memo is None and code.kind == "lambda":
            code, slot, row = trace.decode(table.user.view[row])
            continue
        if memo is not None:
            parts.append(trace.memo_key(code, row))
        parts.reverse()
        segments.append(tuple(parts))
        if memo is None:
            return tuple(segments)
        parts = []
        code, slot, row = trace.decode(memo.node)


# ------------------------------------------------------------------------------------------ procedures in keys


def _named(trace: Trace, raw: Any) -> Any:
    """Keys with names in the place of the procedures in them."""
    held = procedures_in(raw)
    return _replaced(raw, _names(trace, held)) if held else raw


def _names(trace: Trace, procedures: list[Any]) -> dict[Any, bytes]:
    """A short name for each procedure: a digest of where it was made. The key of the family in which it was made can
    hold a procedure again, and so on, so that the address itself would have no bound."""
    # imported here: few keys hold procedures
    import hashlib

    known: dict[Any, bytes] = {}
    todo = list(procedures)
    while todo:
        procedure = todo[-1]
        if procedure in known:
            todo.pop()
            continue
        home = _home(trace, procedure)
        missing = [held for held in procedures_in(home) if held not in known]
        todo.extend(missing)
        if not missing:
            text = _text(_replaced(home, known))
            known[procedure] = _place(home) + hashlib.blake2b(text.encode(), digest_size=NAME_SIZE).digest()
    return known


def _place(home: tuple[Any, ...]) -> bytes:
    """Where a procedure was made, from the outside in, as far as PLACE_SIZE numbers say: so that procedures among keys
    are visited in the order of the text, and one directive more before them does not change it."""
    if home[0] == "language":
        return bytes(4 * PLACE_SIZE)
    numbers = [part + 1 for segment in reversed(home[-1]) for part in segment if part.__class__ is int]
    if home[0] == "lambda":
        numbers.append(home[1] + 1)
    return b"".join(number.to_bytes(4, "big") for number in [*numbers, *[0] * PLACE_SIZE][:PLACE_SIZE])


def _home(trace: Trace, procedure: Any) -> tuple[Any, ...]:
    """What tells a procedure apart from all others."""
    match procedure:
        case Closure(code=code, row=row):
            outer = () if code.parent is None else _segments(trace, code.parent, -1, row)
            return ("lambda", code.index, outer)
        case Memo(node=node) | Exchangeable(node=node):
            return ("made", _segments(trace, *trace.decode(node)))
    return ("language", procedure.name, trace.serial_of(procedure))


def procedures_in(value: Any) -> list[Any]:
    """The procedures that a key, or a list of keys, holds."""
    if type(value) in SIMPLE:
        return []
    found: list[Any] = []
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, (tuple, frozenset)):
            todo.extend(part for part in item if type(part) not in SIMPLE)
        elif isinstance(item, PROCEDURES):
            found.append(item)
    return found


def _replaced(value: Any, names: dict[Any, bytes]) -> Any:
    if isinstance(value, tuple):
        return tuple(_replaced(part, names) for part in value)
    if isinstance(value, frozenset):
        return frozenset(_replaced(part, names) for part in value)
    return names[value] if isinstance(value, PROCEDURES) else value


def _text(value: Any) -> str:
    """A text for keys, the same exactly where they are equal."""
    match value:
        case bool() | int():
            return str(int(value))
        case float():
            return str(int(value)) if value.is_integer() else repr(value)
        case Symbol():
            return f"'{value.name!r}"
        case tuple():
            return f"({' '.join(map(_text, value))})"
        case frozenset():
            return f"{{{' '.join(sorted(map(_text, value)))}}}"
        case type():
            return value.__name__
    return repr(value)
