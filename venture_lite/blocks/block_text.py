"""Operations on the numbers of a block, recorded, and their print as one function.

What does not depend on the block is computed where the function is made, all else where it is called. What is used once
is part of the text of what uses it.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from venture_lite.procedures.straight_line import COLUMN_NAMES, SCALAR_NAMES, Node, Recording, needed, text_of
from venture_lite.trace.table import Column

MOST_NESTED = 20
"""Operations in one another, in the text of one line."""

# what has no value is an error here, and left to the passes over rows
NAMES: Final[dict[str, Any]] = SCALAR_NAMES | {
    "exp": math.exp, "log": math.log, "log1p": math.log1p, "sqrt": math.sqrt, "inf": math.inf, "nan": math.nan,
    **{f"C_{name}": function for name, function in COLUMN_NAMES.items()},
}  # fmt: skip

NumbersFunction = Callable[..., tuple[float, tuple[float, ...]] | None]
"""Free coordinates -> the log density there and its derivatives by them."""
SumsFunction = Callable[..., tuple[float, ...]]
"""Free coordinates -> the sums of log densities there, one for each site of some."""


class BlockOperations(Recording):
    """Operations of which it is known whether they depend on the block, and whether they are columns."""

    def __init__(self) -> None:
        super().__init__()
        # the places of what depends on the block, and of what differs between rows that are weighed together
        self.moving: set[int] = set()
        self.columns: set[int] = set()
        # what is read, in the order of its names: numbers by column and row, and columns with what gives them
        self.read: list[tuple[Column, int]] = []
        self.gathers: list[tuple[Column, Callable[[], Any]]] = []
        self._names: dict[tuple[int, int], Node] = {}
        # what is called, by its identity: its name and itself
        self.objects: dict[int, tuple[str, Any]] = {}

    def is_moving(self, value: Any) -> bool:
        return value.__class__ is Node and value.place in self.moving

    def is_column(self, value: Any) -> bool:
        return value.__class__ is Node and value.place in self.columns

    def record(self, operation: str, *operands: Any) -> Node:
        found = super().record(operation, *operands)
        for each in operands:
            if self.is_moving(each):
                self.moving.add(found.place)
            if self.is_column(each):
                self.columns.add(found.place)
        return found

    def free(self, number: int) -> Node:
        """A free coordinate."""
        found = self.record("name", f"f{number}")
        self.moving.add(found.place)
        return found

    def stored(self, column: Column, row: int) -> Node:
        """A number that does not depend on the block."""
        found = self._names.get((id(column), row))
        if found is None:
            found = self._names[id(column), row] = self.record("name", f"s{len(self.read)}")
            self.read.append((column, row))
        return found

    def gathered(self, column: Column, gather: Callable[[], Any]) -> Node:
        """Rows of a column that do not depend on the block."""
        found = self.record("name", f"c{len(self.gathers)}")
        self.columns.add(found.place)
        self.gathers.append((column, gather))
        return found

    def apply(self, function: Any, *operands: Any) -> Node:
        """A call; of columns a column."""
        name, _ = self.objects.setdefault(id(function), (f"o{len(self.objects)}", function))
        return self.record("apply", name, *operands)

    def single(self, function: Any, *operands: Any) -> Node:
        """A call that makes no column."""
        found = self.apply(function, *operands)
        self.columns.discard(found.place)
        return found


@dataclass(frozen=True, slots=True)
class BlockResults:
    """What the function of a block is to give and to look at."""

    # the log density, and its derivatives by free coordinates
    total: Any
    gradient: Sequence[Any]
    # numbers that must be finite, by place; tests, by their text and the place of the number that must pass them; and
    # calls that raise an error where something is wrong
    finite: Mapping[int, Node]
    tests: Mapping[tuple[str, int], Node]
    checks: Sequence[Node]
    # sums of log densities
    sums: Sequence[Any]


def printed(
    operations: BlockOperations, results: BlockResults
) -> Callable[..., tuple[NumbersFunction, SumsFunction] | None]:
    """What makes the functions of what is read: numbers, then columns; None where what stands still is out of place."""
    moving, tested = operations.moving, [*results.tests.values(), *results.checks]
    wanted = [results.total, *results.gradient]
    finite = [value for value in results.finite.values() if value.place in moving]
    given = [value for value in results.finite.values() if value.place not in moving]
    checked = functools.reduce(lambda left, right: left + right, [*wanted, *finite])
    run, parts = _Lines([checked, *wanted, *tested], operations), _Lines(results.sums, operations)
    still = _Lines([*run.read, *parts.read, *given, *tested], operations, is_still=True)
    for (test, _), value in results.tests.items():
        line = f"if not ({test.format(x=_name(value))}): return None"
        (run if value.place in moving else still).lines.append(line)
    still.lines += map(_refusing_infinite, given)
    run.lines += [_refusing_infinite(checked), f"return {_name(results.total)}, ({_names(results.gradient)})"]
    parts.lines.append(f"return ({_names(results.sums)})")
    taken = [f"s{number}" for number in range(len(operations.read))]
    taken += [f"c{number}" for number in range(len(operations.gathers))]
    taken += [name for name, _ in operations.objects.values()]
    free = ", ".join(f"f{number}" for number in range(len(results.gradient)))
    text = [f"def make({', '.join(taken)}):", *(f"    {line}" for line in still.lines)]
    for name, body in (("run", run), ("parts", parts)):
        text += [f"    def {name}({free}):", *(f"        {line}" for line in body.lines)]
    made, objects = _executed("\n".join([*text, "    return run, parts\n"])), operations.objects.values()
    return lambda *numbers: made(*numbers, *(found for _, found in objects))


class _Lines:
    """The lines that compute some of the operations that lead to results; what is used once is part of what uses it."""

    def __init__(self, results: Sequence[Any], operations: BlockOperations, is_still: bool = False) -> None:
        """Those are computed that depend on the block, or where `is_still`, all others."""
        self._operations, moving = operations, operations.moving
        nodes = [node for node in needed(list(results)) if node.operation != "name"]
        nodes = [node for node in nodes if (node.place in moving) != is_still]
        here = {node.place for node in nodes}
        uses = Counter(each.place for node in nodes for each in node.operands if each.__class__ is Node)
        uses.update(2 * [result.place for result in results if result.__class__ is Node])
        # what is read of what is computed elsewhere
        outside = {each.place: each for node in nodes for each in _computed(node) if each.place not in here}
        outside |= {each.place: each for each in results if each.__class__ is Node and each.place not in here}
        self.read = [*outside.values()]
        self.lines: list[str] = []
        # by place: the text of what is not computed yet, and how deep it is nested
        self._texts: dict[int, tuple[str, int]] = {}
        for node in nodes:
            inside = [self._texts[each.place][1] for each in _computed(node) if each.place in self._texts]
            depth = 1 + max(inside, default=0)
            text = self._text_of(node)
            if uses[node.place] == 1 and depth < MOST_NESTED:
                self._texts[node.place] = text, depth
            else:
                self.lines.append(f"t{node.place} = {text}")

    def _name(self, value: Any) -> str:
        known = self._texts.get(value.place) if value.__class__ is Node else None
        return _name(value) if known is None else f"({known[0]})"

    def _text_of(self, node: Node) -> str:
        match node.operation, node.operands:
            case "apply", (function, *operands):
                return f"{function}({', '.join(map(self._name, operands))})"
            case "entry", (whole, number):
                return f"{self._name(whole)}[{number}]"
            case name, _ if node.place in self._operations.columns:
                return f"{'C_' * name.isidentifier() * (name != 'negative')}{text_of(node, self._name, True)}"
            case "divide", (left, right) if right.__class__ is Node and right.place in self._operations.moving:
                # what is 0 once in a while is an error here
                return f"{self._name(left)} / {self._name(right)}"
        return text_of(node, self._name, False)


def _computed(node: Node) -> list[Node]:
    """The operands of an operation that are computed."""
    return [each for each in node.operands if each.__class__ is Node and each.operation != "name"]


def _name(value: Any) -> str:
    if value.__class__ is not Node:
        return f"({value!r})"
    return str(value.operands[0]) if value.operation == "name" else f"t{value.place}"


def _names(values: Iterable[Any]) -> str:
    return "".join(f"{_name(value)}, " for value in values)


def _refusing_infinite(value: Node) -> str:
    return f"if {_name(value)} - {_name(value)} != 0.0: return None"


@functools.lru_cache(1000)
def _executed(text: str) -> Callable[..., Any]:
    """The function that a text defines: chains of one program have one text."""
    namespace = dict(NAMES)
    exec(text, namespace)
    found: Callable[..., Any] = namespace["make"]
    return found
