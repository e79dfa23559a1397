"""Values computed anew from references, one at a time: the plain definition that generated readers must agree with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.errors import InternalError
from venture_lite.procedures.record import Deterministic
from venture_lite.program.code import Code, Constant, GlobalRef, Kind, Ref, SlotRef
from venture_lite.trace.runtime import Closure
from venture_lite.values import equal

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace

RELATIVE = 1e-12
"""Two ways of computing one value may differ by this much: `math.exp` and `numpy.exp` differ in the last bit."""


class Recomputation:
    """Reads references of one trace; what one question needs several times is computed once."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._known: dict[tuple[int, int], Any] = {}

    def read(self, code: Code, row: int, ref: Ref) -> Any:
        """The value of a reference as seen from a row."""
        self._known.clear()
        return self._read(code, row, ref)

    def arguments(self, code: Code, slot: int, row: int) -> tuple[Any, ...]:
        return tuple(self.read(code, row, ref) for ref in code.slots[slot].arguments)

    def _read(self, code: Code, row: int, ref: Ref) -> Any:
        match ref:
            case Constant(value=value):
                return value
            case GlobalRef(target=target):
                if target.code is None:
                    raise InternalError(f"{target.name} has no value")
                return self._read(target.code, target.row, target.code.result)
            case SlotRef(depth=depth, slot=slot):
                for _ in range(depth):
                    environment = self.trace.tables[code.index].environment
                    if environment is None or code.parent is None:
                        raise InternalError("a body without an environment reads one")
                    row, code = environment.view[row], code.parent
                return self._slot(code, slot, row)

    def _slot(self, code: Code, index: int, row: int) -> Any:
        slot = code.slots[index]
        if slot.stored:
            column = self.trace.tables[code.index].columns[index]
            assert column is not None
            return column.view[row]
        if slot.body is not None:
            return Closure(slot.body, row)
        place = (code.first_site + index, row)
        if place not in self._known:
            self._known[place] = self.apply(code, index, tuple(self._read(code, row, ref) for ref in slot.arguments))
        return self._known[place]

    def apply(self, code: Code, index: int, arguments: tuple[Any, ...]) -> Any:
        slot = code.slots[index]
        if slot.kind is not Kind.DETERMINISTIC or not isinstance(slot.record, Deterministic):
            raise InternalError("a slot of this kind is always stored")
        return slot.record.scalar(*arguments)


def same(left: Any, right: Any, relative: float = RELATIVE, absolute: float = 0.0) -> bool:
    """Floats within the tolerances, everything else exactly."""
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        if isinstance(left, int) and isinstance(right, int):
            return left == right
        close = abs(left - right) <= max(relative * max(abs(left), abs(right)), absolute)
        return close or left == right or (left != left and right != right)
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        finite = np.abs(left[np.isfinite(left)])
        absolute = max(absolute, relative * float(finite.max(initial=0.0)))
        return left.shape == right.shape and bool(np.allclose(left, right, relative, absolute, equal_nan=True))
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(same(a, b, relative, absolute) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key], relative, absolute) for key in left)
    return bool(equal(left, right))
