"""Recorded operations as a loop over numbers, and what can be taken out of it as functions of columns.

A value that each step makes from the one before cannot be a column. But of all that leads to it most is known before
the loop begins: that is computed over columns, which the loop goes through, or once, where all steps share it.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from venture_lite.blocks.passes import maker
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.pullbacks import ElementwisePullback
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.straight_line import Node, Recording, needed, text_of
from venture_lite.trace.table import memory

SHARED, COLUMN, STEP = range(3)
"""What a value is made from at the most: numbers that all steps share, columns, or what steps make."""
MOST_NESTED = 20
"""Operations within one another in a line."""
UNIT = "unit"
"""The name of 1, where that must not be a number."""


class NotInOneLoop(Exception):
    """Rows that take turns are left to the functions of single rows."""


class LoopOperations(Recording):
    """Operations on numbers known by name, and calls of procedures."""

    def __init__(self) -> None:
        super().__init__()
        # by the name of a procedure its number
        self._numbers: dict[str, int] = {}
        self.procedures: list[Deterministic] = []
        # places of what has no value where it is not finite
        self.guarded: set[int] = set()
        # of which products are the other factor
        self.unit: Any = None
        self.unit = self.named(UNIT)

    def record(self, operation: str, *operands: Any) -> Any:
        if operation == "*" and any(each is self.unit for each in operands):
            one, other = operands
            return other if one is self.unit else one
        return super().record(operation, *operands)

    def named(self, name: str) -> Node:
        return super().record("name", name)

    def call(self, record: Deterministic, arguments: Sequence[Any]) -> Any:
        """Written out where that can be. Raises NotInOneLoop where it is not elementwise, or of constants."""
        pullback = record.pullback
        if not isinstance(pullback, ElementwisePullback) or not any(each.__class__ is Node for each in arguments):
            raise NotInOneLoop
        if not all(each.__class__ is Node or each.__class__ in (float, int) for each in arguments):
            raise NotInOneLoop
        if pullback.value is None:
            number = self._numbers.setdefault(record.name, len(self.procedures))
            if number == len(self.procedures):
                self.procedures.append(record)
            return self.record("call", number, *arguments)
        found = pullback.value(*arguments)
        if not record.total and found.__class__ is Node:
            self.guarded.add(found.place)
        return found


class LoopCuts:
    """What each of some operations is made from at the most."""

    def __init__(self, names: Mapping[str, int]) -> None:
        self._names = names
        self._known: dict[int, int] = {}

    def of(self, value: Any) -> int:
        if value.__class__ is not Node:
            return SHARED
        for node in () if value.place in self._known else needed([value]):
            if node.operation == "name":
                found = self._names[node.operands[0]]
            else:
                places = (each.place for each in node.operands if each.__class__ is Node)
                found = max((self._known[place] for place in places), default=SHARED)
            self._known[node.place] = found
        return self._known[value.place]


def name_of_value(value: Any) -> str:
    if value.__class__ is not Node:
        return f"({value!r})"
    return str(value.operands[0]) if value.operation == "name" else f"t{value.place}"


def is_affine(values: Sequence[Any], cuts: LoopCuts) -> bool:
    """Whether values are sums of what steps make, times numbers that no step makes, and of such numbers."""

    def is_made(value: Any) -> bool:
        return cuts.of(value) == STEP

    for node in needed(list(values)):
        if not is_made(node) or node.operation in ("name", "+", "-", "negative"):
            continue
        above, *below = node.operands
        match node.operation:
            case "*" if not (is_made(above) and is_made(*below)):
                continue
            case "/" if not is_made(*below):
                continue
        return False
    return True


class BeforeLoop:
    """Some values as a function of columns and shared numbers, by name."""

    def __init__(self, operations: LoopOperations, values: Sequence[Any], cuts: LoopCuts) -> None:
        nodes = needed(list(values))
        self.inputs = list(dict.fromkeys(node.operands[0] for node in nodes if node.operation == "name"))
        lines = []
        for node in nodes:
            if node.operation != "name":
                lines.append(f"t{node.place} = {_text(node, name_of_value, cuts)}")
                if node.place in operations.guarded:
                    lines.append(f"if not isfinite(t{node.place}).all(): raise RowByRow")
        body = "".join(f"        {line}\n" for line in lines)
        returned = "".join(f"{name_of_value(value)}, " for value in values)
        head = f"    def run({', '.join(self.inputs)}):\n"
        self._function = _executed(f"{head}{body}        return ({returned})\n", operations, True)

    def __call__(self, given: Mapping[str, Any]) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._function(*(given[name] for name in self.inputs))
        return found


class StepLoop:
    """A loop that makes the value of each of some kinds, step after step."""

    def __init__(
        self, operations: LoopOperations, cuts: LoopCuts, values: Sequence[Any], waiting: Sequence[tuple[int, int]]
    ) -> None:
        """`values` are those of one step, in which what kind 0 made at that step is named `x0`, and two steps before
        `p0_2`; `waiting` has each kind and number of steps for which there is such a name."""
        self._operations, self._cuts = operations, cuts
        copied = {number: of for number, value in enumerate(values) if (of := _copied(value)) is not None}
        # of kinds that hold what another one makes which that is, and how many steps before: no step makes it again
        self.copies = {number: (of, lag) for number, (of, lag) in copied.items() if not lag or of not in copied}
        self._made = [number for number in range(len(values)) if number not in self.copies]
        # what is made before, by name
        self._read: dict[str, Node] = {}
        self._waiting = list(waiting)
        lines = [*self._values(values), *self._handed_on()]
        shared = [name for name, value in self._read.items() if cuts.of(value) == SHARED]
        columns = [name for name in self._read if name not in shared]
        self._shared = len(shared)
        self._before = BeforeLoop(operations, [self._read[name] for name in (*shared, *columns)], cuts)
        self._function = _executed(self._function_of(lines, shared, columns), operations, False)

    def _values(self, values: Sequence[Any]) -> list[str]:
        """The lines that make them. What is read once stands where it is read."""
        lines: list[str] = []
        texts: dict[int, tuple[str, int]] = {}
        times = self._times(values)

        def name(value: Any) -> str:
            if value.__class__ is Node and value.place in texts:
                return texts[value.place][0]
            text = name_of_value(value)
            if value.__class__ is Node and self._cuts.of(value) < STEP:
                self._read[text] = value
            return text

        for number, value in enumerate(values):
            for node in needed([value]):
                if node.operation == "name" or node.place in texts or self._cuts.of(node) < STEP:
                    continue
                text = _text(node, name, None)
                within = [
                    texts[each.place][1] for each in node.operands if each.__class__ is Node and each.place in texts
                ]
                depth = 1 + max(within, default=0)
                if times[node.place] == 1 and depth < MOST_NESTED:
                    texts[node.place] = f"({text})", depth
                    continue
                its = f"t{node.place}"
                texts[node.place] = its, 0
                lines.append(f"{its} = {text}")
                if node.place in self._operations.guarded:
                    lines.append(f"if {its} - {its} != 0.0: raise RowByRow")
            lines.append(f"x{number} = {name(value)}")
            lines += [f"a{number}(x{number})"] * (number in self._made)
        return lines

    def _times(self, values: Sequence[Any]) -> Counter[int]:
        """By place how often what steps make is read; often, where it cannot stand where it is read."""
        found = Counter(value.place for value in values if value.__class__ is Node)
        for node in needed(list(values)):
            if self._cuts.of(node) == STEP:
                # of a choice between numbers the text holds them more than once
                often = 2 if node.operation == "clip" else 1
                found.update({each.place: often for each in node.operands if each.__class__ is Node})
        found.update(dict.fromkeys(self._operations.guarded, 2))
        return found

    def _handed_on(self) -> list[str]:
        """The lines that make values of this step those of the step before."""
        return [
            f"p{number}_{back} = {f'p{number}_{back - 1}' if back > 1 else f'x{number}'}"
            for number, back in reversed(self._waiting)
        ]

    def _function_of(self, lines: Sequence[str], shared: Sequence[str], columns: Sequence[str]) -> str:
        starts = [f"p{number}_{back}" for number, back in self._waiting]
        given = ["count", *starts, *shared, *(f"l_{name}" for name in columns)]
        begin = [f"m{number} = []; a{number} = m{number}.append" for number in self._made]
        match columns:
            case []:
                over = "for _ in range(count):"
            case [name]:
                over = f"for {name} in l_{name}:"
            case _:
                over = f"for {', '.join(columns)} in zip({', '.join(f'l_{name}' for name in columns)}):"
        end = f"return ({''.join(f'm{number}, ' for number in self._made)})"
        body = [*begin, over, *(f"    {line}" for line in lines), end]
        return f"    def run({', '.join(given)}):\n" + "".join(f"        {line}\n" for line in body)

    def run(self, count: int, given: Mapping[str, Any], starts: Sequence[float]) -> dict[int, np.ndarray]:
        """Of each kind but the copies the values at so many steps (count,), from those of the steps before by kind and
        number of steps, as of `waiting`."""
        found = self._before(given)
        shared = map(float, found[: self._shared])
        columns = (memory(np.ascontiguousarray(each)) for each in found[self._shared :])
        made = self._function(count, *starts, *shared, *columns)
        # five times as fast as an array of a list
        packed = struct.Struct(f"{count}d")
        return {number: np.frombuffer(packed.pack(*each)) for number, each in zip(self._made, made, strict=True)}


def _copied(value: Any) -> tuple[int, int] | None:
    """Of which kind a value is, and how many steps before; None for one that is computed, or comes from outside."""
    if value.__class__ is not Node or value.operation != "name":
        return None
    found = re.fullmatch(r"x(\d+)|p(\d+)_(\d+)", value.operands[0])
    if found is None:
        return None
    return (int(found[1]), 0) if found[1] else (int(found[2]), int(found[3]))


def _text(node: Node, name: Callable[[Any], str], cuts: LoopCuts | None) -> str:
    """An operation as Python, over columns where it is known which values are columns."""
    if node.operation != "call":
        return text_of(node, name, cuts is not None)
    number, *arguments = node.operands
    names = ", ".join(map(name, arguments))
    lifted = tuple(cuts is not None and cuts.of(each) > SHARED for each in arguments)
    return f"c{number}({lifted!r}, {names})" if True in lifted else f"s{number}({names})"


def _executed(text: str, operations: LoopOperations, columns: bool) -> Callable[..., Any]:
    """The function that a text defines."""
    records = operations.procedures
    names = [f"{letter}{number}" for letter in "sc" for number in range(len(records))]
    functions = [*(record.scalar for record in records), *(record.columns or _no_columns for record in records)]
    found: Callable[..., Any] = maker(f"def make({', '.join(names)}):\n{text}    return run\n", columns)(*functions)
    return found


def _no_columns(*given: Any) -> Any:
    raise RowByRow
