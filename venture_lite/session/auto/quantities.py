"""What the draws of `auto` are of: assumes that are numbers or arrays, and the calls of memoized procedures that are.

Calls whose key is drawn come and go, and what they give is not the same quantity from one draw to the next: they are
left out, and named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.interpreter.addresses import sort_key
from venture_lite.interpreter.ancestry import Families, depends_on_choice
from venture_lite.interpreter.model import Model
from venture_lite.program.code import Code, Global
from venture_lite.session.auto.state_labels import StateLabels
from venture_lite.session.measured import class_count
from venture_lite.trace.runtime import Exchangeable, Memo
from venture_lite.trace.trace import Trace
from venture_lite.values import written

MOST = 1000
"""Numbers that are drawn and judged."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is drawn at each draw."""

    # an expression of the language, and the variable's name
    text: str
    # how many numbers it has
    size: int = 1


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is not drawn, or drawn and not judged, with the reason."""

    text: str
    why: str


class Quantities:
    """Those of one model."""

    def __init__(self, model: Model, names: Iterable[str]) -> None:
        """`names` are those that assumes bind, in the order of the program."""
        self._trace: Trace = model.trace
        self._families = Families(model.trace)
        bound = model.trace.analyzer.globals
        names = list(names)
        values = [self._trace.result(code, bound[name].row) for name in names if (code := bound[name].code) is not None]
        self._labels = StateLabels(model, [value for value in values if isinstance(value, Memo)])
        self.found: list[Quantity] = []
        self.left_out: list[LeftOut] = []
        room = MOST
        for name in names:
            for quantity in self._of(name, model.trace.analyzer.globals[name]):
                room -= quantity.size
                if room < 0:
                    self.left_out.append(LeftOut(name, f"more than {MOST:,} numbers"))
                    break
                self.found.append(quantity)

    def _of(self, name: str, bound: Global) -> Iterator[Quantity]:
        code = bound.code
        assert code is not None
        value = self._trace.result(code, bound.row)
        if isinstance(value, Memo):
            yield from self._calls(name, value)
        elif class_count(value) is not None:
            yield Quantity(f"(classes {name})")
        elif self._is_label(code, bound.row):
            self.left_out.append(LeftOut(name, "labels"))
        elif self._is_of_labels(code, bound.row):
            self.left_out.append(LeftOut(name, "how probable labels are"))
        elif size_of(value) and depends_on_choice(self._trace, code, bound.row, [code.result]):
            yield Quantity(name, size_of(value))

    def _calls(self, name: str, memo: Memo) -> Iterator[Quantity]:
        code = memo.procedure.code
        if memo in self._labels.keyed:
            self.left_out.append(LeftOut(name, "keyed by labels"))
            return
        coming_and_going = False
        for key, row in sorted(memo.entries.items(), key=lambda entry: sort_key(entry[0])):
            value = self._trace.result(code, row)
            size, call = size_of(value), _call(name, code, key)
            if class_count(value) is not None and self._families.stays(code, row):
                yield Quantity(f"(classes {call})")
            if not size or not depends_on_choice(self._trace, code, row, [code.result], keys_are_fixed=True):
                continue
            if not self._families.stays(code, row):
                coming_and_going = True
            elif self._is_label(code, row):
                self.left_out.append(LeftOut(name, "labels"))
                return
            else:
                yield Quantity(call, size)
        if coming_and_going:
            self.left_out.append(LeftOut(name, "its calls come and go"))

    def _is_label(self, code: Code, row: int) -> bool:
        """Whether a family's value is a draw of an exchangeable procedure of labels."""
        node = self._trace.result_node(code, row)
        if node >= 0 and self._labels.holds(node):
            return True
        if node < 0 or not self._trace.is_choice(*self._trace.decode(node)):
            return False
        operator = self._trace.application(node)[0]
        return isinstance(operator, Exchangeable) and operator.record.transform is None

    def _is_of_labels(self, code: Code, row: int) -> bool:
        """Whether a directive's value is the probabilities of labels."""
        node = self._trace.result_node(code, row)
        return node >= 0 and self._labels.weighs(node)


def _call(name: str, code: Code, key: Any) -> str:
    """A call of a memoized procedure as it is written."""
    arguments = key if code.arity != 1 else (key,)
    return f"({' '.join([name, *map(written, arguments)])})"


def size_of(value: Any) -> int:
    """How many numbers a value has; 0 where it is none that can be judged."""
    match value:
        case bool() | int() | float():
            return 1
        case np.ndarray():
            return int(value.size)
        case tuple() if value and all(isinstance(part, (bool, int, float)) for part in value):
            return len(value)
    return 0
