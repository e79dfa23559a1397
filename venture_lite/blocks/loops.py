"""Recorded operations as a loop over numbers, and what can be taken out of it as functions of columns.

A value that each step makes from the one before cannot be a column. But of all that leads to it most is known before
the loop begins: that is computed over columns, which the loop goes through, or once, where all steps share it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from venture_lite.blocks.passes import maker
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.pullbacks import ElementwisePullback
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.straight_line import (
    Node,
    Recording,
    needed,
    text_of,
)

SHARED, COLUMN, STEP = range(3)
"""What a value is made from at the most: numbers that all steps share, columns, or what steps make."""


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

    def named(self, name: str) -> Node:
        return self.record("name", name)

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


class BeforeLoop:
    """Some values as a function of columns and shared numbers, by name."""

    def __init__(self, operations: LoopOperations, values: Sequence[Any], cuts: LoopCuts) -> None:
        nodes = needed(list(values))
        self._inputs = list(dict.fromkeys(node.operands[0] for node in nodes if node.operation == "name"))
        lines = []
        for node in nodes:
            if node.operation != "name":
                lines.append(f"t{node.place} = {_text(node, name_of_value, cuts)}")
                if node.place in operations.guarded:
                    lines.append(f"if not isfinite(t{node.place}).all(): raise RowByRow")
        body = "".join(f"        {line}\n" for line in lines)
        returned = "".join(f"{name_of_value(value)}, " for value in values)
        head = f"    def run({', '.join(self._inputs)}):\n"
        self._function = _executed(f"{head}{body}        return ({returned})\n", operations, True)

    def __call__(self, given: Mapping[str, Any]) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._function(*(given[name] for name in self._inputs))
        return found


class StepLoop:
    """The lines of a loop: `print` makes them, `finish` the functions, `run` calls these."""

    def __init__(self, operations: LoopOperations, cuts: LoopCuts) -> None:
        self._operations, self._cuts = operations, cuts
        self.lines: list[str] = []
        self._told: set[int] = set()
        # what is made before, by name
        self._read: dict[str, Node] = {}

    def name(self, value: Any) -> str:
        """Of a value that was printed, or is made before."""
        name = name_of_value(value)
        if value.__class__ is Node and self._cuts.of(value) < STEP:
            self._read[name] = value
        return name

    def print(self, *values: Any) -> list[str]:
        """The lines that make some values; their names."""
        for node in needed(list(values)):
            if node.operation == "name" or node.place in self._told or self._cuts.of(node) < STEP:
                continue
            self._told.add(node.place)
            self.lines.append(f"t{node.place} = {_text(node, self.name, None)}")
            if node.place in self._operations.guarded:
                self.lines.append(f"if t{node.place} - t{node.place} != 0.0: raise RowByRow")
        return [self.name(value) for value in values]

    def finish(self, starts: Sequence[str], ends: Sequence[str] = (), columns: Sequence[str] = ()) -> None:
        """With what the loop is given by name to begin with, what is asked of it, and what it goes through besides what
        is made before."""
        shared = [name for name, value in self._read.items() if self._cuts.of(value) == SHARED]
        made = [name for name in self._read if name not in shared]
        self._shared, self._columns = len(shared), tuple(columns)
        self._before = BeforeLoop(self._operations, [self._read[name] for name in (*shared, *made)], self._cuts)
        through = [*made, *columns]
        lists = [f"l_{name}" for name in through]
        head = f"    def run({', '.join(['count', *starts, *shared, *lists])}):\n"
        over = f"for {', '.join(through)}, in zip({', '.join(lists)}):\n" if through else "for _ in range(count):\n"
        body = "".join(f"            {line}\n" for line in self.lines)
        returned = "".join(f"{name}, " for name in ends)
        text = f"{head}        {over}{body}        return ({returned})\n"
        self._function = _executed(text, self._operations, False)

    def run(self, count: int, given: Mapping[str, Any], starts: Sequence[Any], is_backward: bool = False) -> Any:
        """What is asked of a loop of so many steps, the last one first if it goes backward."""
        found = self._before(given)
        shared = [float(value) for value in found[: self._shared]]
        columns = [*found[self._shared :], *(given[name] for name in self._columns)]
        lists = [(each[::-1] if is_backward else each).tolist() for each in columns]
        return self._function(count, *starts, *shared, *lists)


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
