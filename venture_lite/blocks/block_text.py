"""Operations on the numbers of a block, and on its columns, recorded, and their print as one function.

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

import numpy as np

from venture_lite.procedures.straight_line import COLUMN_NAMES, SCALAR_NAMES, Node, Recording, needed, text_of
from venture_lite.trace.table import Column

MOST_NESTED = 20
"""Operations in one another, in the text of one line."""

SUMS = ("dot", "total")
"""Operations on columns that make numbers."""

# what has no value is an error here, and left to the passes over rows
NAMES: Final[dict[str, Any]] = SCALAR_NAMES | {
    "exp": math.exp, "log": math.log, "log1p": math.log1p, "sqrt": math.sqrt, "inf": math.inf, "nan": math.nan,
    **{f"C_{name}": function for name, function in COLUMN_NAMES.items()},
    "bincount": np.bincount, "empty": np.empty, **{name: COLUMN_NAMES[name] for name in SUMS},
}  # fmt: skip

NumbersFunction = Callable[..., tuple[float, tuple[float, ...]] | None]
"""Free coordinates -> the log density there and its derivatives by them; None where it says nothing."""
ArrayFunction = Callable[[np.ndarray], tuple[float, np.ndarray] | None]
"""The same of free coordinates (D,), with derivatives (D,)."""
SumsFunction = Callable[..., tuple[float, ...]]
"""Free coordinates -> the sums of log densities there, one for each site of some."""


class BlockOperations(Recording):
    """Operations of which it is known whether they depend on the block, and whether they are columns."""

    def __init__(self) -> None:
        super().__init__()
        # the places of what depends on the block, and of what differs between rows that are weighed together
        self.moving: set[int] = set()
        self.columns: set[int] = set()
        # what is read, in the order of its names: numbers by column and row; and all else, with
        # the columns of which it is made
        self.read: list[tuple[Column, int]] = []
        self.gathers: list[tuple[Sequence[Column], Callable[[], Any]]] = []
        self._names: dict[tuple[int, int], Node] = {}
        # what is called, by its identity: its name and itself
        self.objects: dict[int, tuple[str, Any]] = {}
        # the coordinates of which there are columns, in the order of their names
        self.free_columns: list[Any] = []

    def is_moving(self, value: Any) -> bool:
        return value.__class__ is Node and value.place in self.moving

    def is_column(self, value: Any) -> bool:
        return value.__class__ is Node and value.place in self.columns

    def record(self, operation: str, *operands: Any) -> Node:
        found = super().record(operation, *operands)
        for each in operands:
            if self.is_moving(each):
                self.moving.add(found.place)
            if self.is_column(each) and operation not in SUMS:
                self.columns.add(found.place)
        return found

    def free(self, number: int) -> Node:
        """A free coordinate."""
        found = self.record("name", f"f{number}")
        self.moving.add(found.place)
        return found

    def free_column(self, taken: Any) -> Node:
        """A column of free coordinates, of a slice or an index array."""
        found = self.record("name", f"g{len(self.free_columns)}")
        self.free_columns.append(taken)
        self.moving.add(found.place)
        self.columns.add(found.place)
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
        return self.gathered_of([column], gather, True)

    def gathered_of(self, columns: Sequence[Column], gather: Callable[[], Any], is_column: bool) -> Node:
        """What does not depend on the block, but on some columns."""
        found = self.record("name", f"c{len(self.gathers)}")
        if is_column:
            self.columns.add(found.place)
        self.gathers.append((columns, gather))
        return found

    def named(self, thing: Any) -> str:
        """The name of something that the text names."""
        return self.objects.setdefault(id(thing), (f"o{len(self.objects)}", thing))[0]

    def apply(self, function: Any, *operands: Any) -> Node:
        """A call; of columns a column."""
        return self.record("apply", self.named(function), *operands)

    def single(self, function: Any, *operands: Any) -> Node:
        """A call that makes no column."""
        found = self.apply(function, *operands)
        self.columns.discard(found.place)
        return found

    def column_of(self, function: Any, *operands: Any) -> Node:
        """A call that makes a column."""
        found = self.apply(function, *operands)
        self.columns.add(found.place)
        return found

    def column_at(self, whole: Any, at: int) -> Node:
        """A column that is one of several things."""
        found = self.record("entry", whole, at)
        self.columns.add(found.place)
        return found

    def item(self, column: Any, at: int) -> Node:
        """One number of a column."""
        found = self.record("item", column, at)
        self.columns.discard(found.place)
        return found

    def between(self, column: Any, start: int, stop: int) -> Node:
        """Numbers of a column that follow one another."""
        return self.record("between", column, start, stop)

    def reversed(self, column: Any) -> Node:
        return self.record("reversed", column)

    def taken(self, column: Any, at: np.ndarray) -> Node:
        """Numbers of a column, by their positions (n,)."""
        return self.record("taken", column, self.named(at))

    def summed_by(self, at: np.ndarray, parts: Any, count: int) -> Node:
        """The sums of parts (n,) that are due to each of so many positions, from the position of each part (n,)."""
        return self.record("summed by", self.named(at), parts, count)


@dataclass(frozen=True, slots=True)
class BlockResults:
    """What the function of a block is to give and to look at."""

    # the log density, and its derivatives by single free coordinates, and by columns of them, in the order of these
    total: Any
    gradient: Mapping[int, Any]
    columns: Sequence[Any]
    # numbers that must be finite, by place; tests, by their text and the place of the number that must pass them; and
    # calls that raise an error where something is wrong
    finite: Mapping[int, Node]
    tests: Mapping[tuple[str, int], Node]
    checks: Sequence[Node]
    # sums of log densities
    sums: Sequence[Any]


def printed(
    operations: BlockOperations, results: BlockResults, size: int, takes_array: bool
) -> Callable[..., tuple[Callable[..., Any], SumsFunction] | None]:
    """What makes the functions of what is read: numbers, then columns; None where what stands still is out of place.

    The first is a NumbersFunction, or where it `takes_array`, an ArrayFunction."""
    moving, tested = operations.moving, [*results.tests.values(), *results.checks]
    wanted = [results.total, *results.gradient.values()]
    finite = [value for value in results.finite.values() if value.place in moving]
    given = [value for value in results.finite.values() if value.place not in moving]
    # of transforms some have a value where a coordinate is not finite
    coordinates = [operations.free(number) for number in results.gradient]
    checked = functools.reduce(lambda left, right: left + right, [*wanted, *finite, *coordinates])
    run = _Lines([checked, *wanted, *results.columns, *tested], operations)
    parts = _Lines(results.sums, operations)
    still = _Lines([*run.read, *parts.read, *given, *tested], operations, is_still=True)
    for (test, _), value in results.tests.items():
        line = f"if not ({test.format(x=_name(value))}): return None"
        (run if value.place in moving else still).lines.append(line)
    still.lines += map(_refusing_infinite, given)
    run.lines.append(_refusing_infinite(checked))
    parts.lines.append(f"return ({_names(results.sums)})")
    free = ", ".join(f"f{number}" for number in range(size))
    if takes_array:
        _return_array(run, operations, results, size)
        free = "f"
    else:
        run.lines.append(f"return {_name(results.total)}, ({_names(results.gradient.values())})")
    taken = [f"s{number}" for number in range(len(operations.read))]
    taken += [f"c{number}" for number in range(len(operations.gathers))]
    taken += [name for name, _ in operations.objects.values()]
    text = [f"def make({', '.join(taken)}):", *(f"    {line}" for line in still.lines)]
    for name, body in (("run", run), ("parts", parts)):
        text += [f"    def {name}({free}):", *(f"        {line}" for line in body.lines)]
    made, objects = _executed("\n".join([*text, "    return run, parts\n"])), operations.objects.values()
    return lambda *numbers: made(*numbers, *(found for _, found in objects))


def _return_array(run: _Lines, operations: BlockOperations, results: BlockResults, size: int) -> None:
    """Lines that take coordinates out of an array, and put the derivatives by them into one."""

    def at(taken: Any) -> str:
        return f"{taken.start}:{taken.stop}" if isinstance(taken, slice) else operations.named(taken)

    lines = [f"f{number} = f.item({number})" for number in results.gradient]
    lines += [f"g{number} = f[{at(taken)}]" for number, taken in enumerate(operations.free_columns)]
    run.lines[:0] = lines
    run.lines.append(f"d = empty({size})")
    run.lines += [f"d[{number}] = {_name(part)}" for number, part in results.gradient.items()]
    for taken, part in zip(operations.free_columns, results.columns, strict=True):
        run.lines.append(f"d[{at(taken)}] = {_name(part)}")
    # what is not finite has no finite square
    run.lines += ["q = d.dot(d) + f.dot(f)", "if q - q != 0.0: return None", f"return {_name(results.total)}, d"]


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
            case "item", (column, at):
                return f"{self._name(column)}.item({at})"
            case "between", (column, start, stop):
                return f"{self._name(column)}[{start}:{stop}]"
            case "reversed", (column,):
                return f"{self._name(column)}[::-1]"
            case "taken", (column, at):
                return f"{self._name(column)}.take({at})"
            case "summed by", (at, parts, count):
                return f"bincount({at}, {self._name(parts)}, {count})"
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
