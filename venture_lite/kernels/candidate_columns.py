"""The candidates of a block weighed together: a transition's form as NumPy over candidates by rows.

It is lowered as every form is (`lower.py`), with two differences. The new values of the principals are columns, one
entry for each candidate; and all rows that absorb are loops, however many, inside of which what differs between rows is
a column, too. So an operation has an entry for each candidate, for each row, for each of both, or one alone; what does
not depend on the candidate is computed once for all of them, and is not weighed: it is the same for all. What cannot be
said of all candidates at once is left to who weighs them one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from venture_lite.interpreter.readers import compiled_text
from venture_lite.interpreter.references import Value
from venture_lite.interpreter.regenerate import Proposal
from venture_lite.interpreter.shape import Binding, Shape
from venture_lite.kernels.form import Demand, RowLoop, Side, name_of, operations
from venture_lite.kernels.lower import Lowering, NoForm, rows_of
from venture_lite.procedures.columns import RowByRow, numeric
from venture_lite.procedures.domains import ANY
from venture_lite.procedures.record import Columns, Random
from venture_lite.procedures.straight_line import COLUMN_NAMES, Node, depending, needed, text_of
from venture_lite.program.selects import SELECT, tolerant
from venture_lite.trace.table import Column, length, part_of
from venture_lite.trace.trace import Trace

MOST_LANES = 1 << 17
"""Candidates times rows that are weighed together: few enough that what is computed on the way stays in a cache."""

SELECTS = (SELECT, tolerant(SELECT))


@dataclass(frozen=True, slots=True)
class CandidatesForm:
    """What the candidates of some principals weigh, but for what is the same of all."""

    # principals of the shape, in the order in which they are enumerated
    principals: tuple[int, ...]
    side: Side
    columns: tuple[Column, ...]
    # functions that calls apply, domains, and constants that are no numbers, by number
    objects: tuple[Any, ...]
    # by the place of a call, or of a density that is not recorded: how columns of its arguments are evaluated
    over_columns: dict[int, Columns]

    def __str__(self) -> str:
        """The form as a person reads it, one operation a line."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        told: set[int] = set()
        for value in self.side.terms:
            yield from operations(value, told)
            yield f"add {name_of(value)}"
        for loop in self.side.loops:
            yield f"for each {name_of(loop.each)}"
            yield from (f"    {line}" for line in operations(loop.term, told))
            yield f"    add {name_of(loop.term)}"


def lower_candidates(trace: Trace, proposal: Proposal, shape: Shape, binding: Binding) -> CandidatesForm:
    """The form of a shape's candidates. Raises NoForm."""
    return _CandidateLowering(trace, proposal, shape, binding).candidates()


class _CandidateLowering(Lowering):
    """Makes one form of candidates."""

    def __init__(self, trace: Trace, proposal: Proposal, shape: Shape, binding: Binding) -> None:
        super().__init__(trace, proposal, shape, binding.nodes)
        self._users = binding.users
        self._over_columns: dict[int, Columns] = {}

    def candidates(self) -> CandidatesForm:
        principals: list[int] = []
        for place in self._shape.order:
            node = self._nodes[place]
            if place in self._shape.principals:
                self._refuse_dependent(node)
                self._new[node] = self._operations.record("candidate", len(principals))
                principals.append(place)
            else:
                self._new[node] = self._renewed(node)
        side = self._weighed()
        nodes = self._operations.nodes.values()
        if any(node.operation in ("closure", "unbound") for node in nodes):
            raise NoForm("it reads a procedure or a name without a value")
        for place, (record, _, _) in self._operations.calls.items():
            if record.columns is not None:
                self._over_columns[place] = record.columns
        columns, objects = tuple(self._operations.columns), tuple(self._operations.objects)
        return CandidatesForm(tuple(principals), side, columns, objects, self._over_columns)

    def _refuse_dependent(self, node: int) -> None:
        """What a principal can be must not depend on the others of its block."""
        _, arguments = self._application(node, self._row_of(node), self._proposed)
        if depending(arguments, is_candidate):
            raise NoForm("what a choice can be depends on another of its block")

    def _weighed(self) -> Side:
        """What principals weigh, and what absorbs, where it depends on the candidate."""
        single = self._side(self._proposed, wide=True)
        rows = [(site, rows_of(self._trace, site)) for site in self._shape.groups]
        rows += [(users.site, users.rows.array().tolist()) for users in self._users]
        loops = [self._loop(number, site, each, self._proposed) for number, (site, each) in enumerate(rows)]
        loops = [replace(loop, term=self._outermost(loop)) for loop in loops]
        terms = tuple(term for term in single.terms if depending([term], is_candidate))
        return Side(terms, tuple(loop for loop in loops if depending([loop.term], is_candidate)), single.demands)

    def _outermost(self, loop: RowLoop) -> Value:
        """What a loop adds up, with the density of each value of a select in place of the density of what it selects,
        where a row has one for all candidates: a change point between two rates takes two densities a row, and not one
        for each candidate."""
        term, each = loop.term, loop.each
        both = depending([term], is_candidate) & depending([term], lambda node: node is each)
        selects: dict[int, list[Node]] = {}
        for node in needed([term]):
            if node.place in both and self._is_select(node) and getattr(node.operands[1], "place", -1) in both:
                selects.setdefault(node.operands[1].place, []).append(node)
        for found in selects.values():
            sides = [self._with(term, {node.place: node.operands[at] for node in found}) for at in (2, 3)]
            if not any(
                depending([side], is_candidate) and depending([side], lambda node: node is each) for side in sides
            ):
                holds = self._operations.record("==", found[0].operands[1], 1)
                return self._operations.record("where", holds, *sides)
        return term

    def _is_select(self, node: Node) -> bool:
        return node.operation == "call" and self._operations.calls[node.place][0] in SELECTS

    def _with(self, value: Value, instead: dict[int, Value]) -> Value:
        """A value in which others stand instead of those of some places."""
        operations, made = self._operations, dict(instead)
        for node in needed([value]):
            operands = [made.get(x.place, x) if x.__class__ is Node else x for x in node.operands]
            if node.place in made or all(x is y for x, y in zip(operands, node.operands, strict=True)):
                continue
            found = made[node.place] = operations.record(node.operation, *operands)
            if node.place in operations.calls:
                operations.calls[found.place] = operations.calls[node.place]
            if node.place in self._over_columns:
                self._over_columns[found.place] = self._over_columns[node.place]
        return made.get(value.place, value) if value.__class__ is Node else value

    def _density(self, site: int, row: Value, record: Random, arguments: list[Value], value: Value) -> Value:
        if self._is_recorded(site, record):
            return super()._density(site, row, record, arguments, value)
        if record.log_density_columns is None:
            raise NoForm("a density is not defined over columns")
        found = self._operations.record("density", self._operations.object(record.log_density), value, *arguments)
        self._over_columns[found.place] = record.log_density_columns
        return found

    def _demands(self, site: int, record: Random, arguments: list[Value]) -> tuple[Demand, ...]:
        domains = [argument.domain for argument in record.arguments]
        return tuple(
            Demand(value, f"o{self._operations.object(domain)}")
            for domain, value in zip(domains, arguments, strict=True)
            if value.__class__ is Node and domain is not ANY
        )


def is_candidate(node: Node) -> bool:
    return node.operation == "candidate"


# --------------------------------------------------------------------------------------------------------- printing

RAW = ("load", "call", "density", "candidate", "object")
"""Operations whose values need not be numbers; what they give is looked at before it is calculated with."""

NAMED = {"row": "r", "each": "each", "candidate": "v"}


class _Printer:
    """Prints operations, each once: those that depend on the row of a loop inside it, all others before it."""

    def __init__(self, form: CandidatesForm) -> None:
        self._form = form
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {
            **COLUMN_NAMES, "inf": math.inf, "nan": math.nan, "over_lanes": _over_lanes, "numbers": _numbers,
            "demand": _demand, "parts": _parts, "zeros": np.zeros,
        }  # fmt: skip
        self.namespace |= {f"c{number}": column for number, column in enumerate(form.columns)}
        self.namespace |= {f"o{number}": value for number, value in enumerate(form.objects)}
        self.namespace |= {f"f{place}": columns for place, columns in form.over_columns.items()}
        # by place: whether it has an entry for each candidate, and for each row
        self._axes: dict[int, tuple[bool, bool]] = {}
        # places of what was looked at, and found to be numbers
        self._looked_at: set[int] = set()

    def side(self, side: Side) -> None:
        demanded: set[str] = set()
        for demand in side.demands:
            self._demand(demand, "    ", demanded)
        for term in side.terms:
            self.value(term, "    ")
            self.lines.append(f"    total += {self._number(term, '    ')}")
        for number, loop in enumerate(side.loops):
            self._loop(loop, number, demanded)

    def _loop(self, loop: RowLoop, number: int, demanded: set[str]) -> None:
        values = [*(demand.value for demand in loop.demands), loop.term]
        inside = frozenset(depending(values, lambda node: node is loop.each))
        for value in values:
            self.value(value, "    ", inside)
        before = set(self._looked_at)
        self.lines.append(f"    for {self._name(loop.each)}, m in parts(g{number}, n):")
        self._axes[loop.each.place] = (False, True)
        for demand in loop.demands:
            self._demand(demand, "        ", demanded)
        self.value(loop.term, "        ")
        term = self._number(loop.term, "        ")
        of_rows = self._axes_of(loop.term)[1]
        self.lines.append(f"        total += {term}.sum(axis=1)" if of_rows else f"        total += m * {term}")
        self._looked_at = before

    def _demand(self, demand: Demand, indent: str, demanded: set[str]) -> None:
        name = self.value(demand.value, indent)
        axes = self._axes_of(demand.value)
        if axes[0] and (line := f"{indent}demand({demand.test}, {all(axes)}, {name})") not in demanded:
            demanded.add(line)
            self.lines.append(line)

    def value(self, value: Value, indent: str, left: frozenset[int] = frozenset()) -> str:
        """The name of a value, what it needs being printed; places that are `left` are for later."""
        for node in needed([value]):
            if node.place in self._axes or node.place in left:
                continue
            parts = [self._axes_of(operand) for operand in node.operands]
            of_candidate = is_candidate(node) or any(axes[0] for axes in parts)
            self._axes[node.place] = of_candidate, any(axes[1] for axes in parts)
            if node.operation not in NAMED:
                text = self._text(node, indent)
                self.lines.append(f"{indent}t{node.place} = {text}")
        return self._name(value)

    def _axes_of(self, value: Value) -> tuple[bool, bool]:
        return self._axes[value.place] if value.__class__ is Node else (False, False)

    def _name(self, value: Value) -> str:
        if value.__class__ is not Node:
            return f"({value!r})"
        prefix = NAMED.get(value.operation)
        return f"t{value.place}" if prefix is None else f"{prefix}{value.operands[0]}"

    def _text(self, node: Node, indent: str) -> str:
        match node.operation, node.operands:
            case "load", (column, row):
                of_candidate, of_row = self._axes_of(row)
                if of_candidate:
                    raise NoForm("which row is read depends on the candidate")
                return f"c{column}.gather({self._name(row)})" if of_row else f"c{column}.view[{self._name(row)}]"
            case "object", (number,):
                return f"o{number}"
            case (("call" | "density"), (number, *arguments)):
                return self._called(node, number, arguments)
        return text_of(node, lambda operand: self._operand(operand, self._axes[node.place], indent), columns=True)

    def _called(self, node: Node, number: int, arguments: Sequence[Value]) -> str:
        names = list(map(self._name, arguments))
        axes = self._axes[node.place]
        if not any(axes):
            return f"o{number}({', '.join(names)})"
        if node.place not in self._form.over_columns:
            raise NoForm("a procedure is not defined over columns")
        each = [self._axes_of(argument) for argument in arguments]
        if not all(axes):
            return f"f{node.place}({tuple(map(any, each))!r}, {', '.join(names)})"
        return f"over_lanes(f{node.place}, {tuple(each)!r}, n, m, {', '.join(names)})"

    def _operand(self, value: Value, axes: tuple[bool, bool], indent: str) -> str:
        """A number to calculate with, in a shape that goes with others of an operation over some axes."""
        name = self._number(value, indent)
        return f"{name}[:, None]" if all(axes) and self._axes_of(value) == (True, False) else name

    def _number(self, value: Value, indent: str) -> str:
        name = self._name(value)
        if value.__class__ is not Node or value.operation not in RAW:
            return name
        if value.place not in self._looked_at:
            self._looked_at.add(value.place)
            self.lines.append(f"{indent}n{value.place} = numbers({name}, {sum(self._axes_of(value))})")
        return f"n{value.place}"


def _numbers(value: Any, axes: int) -> Any:
    """A number, or an array of numbers with so many axes. Raises RowByRow where it is neither."""
    if getattr(value, "ndim", 0) != axes:
        raise RowByRow
    return numeric(value, axes > 0)


def _demand(domain: Any, is_of_both: bool, column: np.ndarray) -> None:
    """Raises RowByRow where an argument of some candidate is outside its domain."""
    if not domain.contains_all(column.reshape(-1, *column.shape[2:]) if is_of_both else column):
        raise RowByRow


def _over_lanes(
    columns: Columns, axes: tuple[tuple[bool, bool], ...], candidates: int, rows: int, *arguments: Any
) -> np.ndarray:
    """What a procedure gives for each candidate in each row (candidates, rows, ...), of arguments with an entry for
    each candidate, for each row, for both, or one alone."""
    lanes = []
    for (of_candidate, of_row), argument in zip(axes, arguments, strict=True):
        if of_candidate and of_row:
            lanes.append(argument.reshape(candidates * rows, *argument.shape[2:]))
        elif of_candidate:
            lanes.append(argument.repeat(rows, axis=0))
        elif of_row:
            spread = np.broadcast_to(argument, (candidates, *argument.shape))
            lanes.append(spread.reshape(candidates * rows, *argument.shape[1:]))
        else:
            lanes.append(argument)
    found = columns(tuple(map(any, axes)), *lanes)
    return found.reshape(candidates, rows, *found.shape[1:])


def _parts(rows: Any, candidates: int) -> Iterator[tuple[Any, int]]:
    """Some rows in parts, so that candidates times rows stay within bounds, and how many each has."""
    count = length(rows)
    most = max(MOST_LANES // candidates, 1)
    for start in range(0, count, most):
        stop = min(start + most, count)
        yield part_of(rows, start, stop), stop - start


class CandidateColumns:
    """The form of a shape's candidates, printed; reads its columns as they are when it is called."""

    def __init__(self, form: CandidatesForm, places: int) -> None:
        """Raises NoForm."""
        self.principals = form.principals
        printer = _Printer(form)
        printer.side(form.side)
        rows = [f"r{place}" for place in range(places)] + [f"g{number}" for number in range(len(form.side.loops))]
        values = [f"v{number}" for number in range(len(form.principals))]
        head = f"def weigh(n, {', '.join([*rows, *values])}):\n    total = zeros(n)\n"
        exec(compiled_text(head + "\n".join([*printer.lines, "    return total"]) + "\n"), printer.namespace)
        self._weigh = printer.namespace["weigh"]

    def weigh(self, rows: Sequence[Any], values: Sequence[np.ndarray]) -> np.ndarray | None:
        """The log weight of each candidate (n,), up to what is the same of all: -inf where one is impossible. None
        where that cannot be said for all at once. `rows` are those of places, and of loops."""
        found = np.empty(len(values[0]))
        try:
            with np.errstate(all="ignore"):
                for first in range(0, len(found), MOST_CANDIDATES):
                    part = slice(first, first + MOST_CANDIDATES)
                    some = [column[part] for column in values]
                    found[part] = self._weigh(len(some[0]), *rows, *some)
        except Exception:
            return None  # weighed one by one, the candidate that is not as it should be is found
        return None if np.isnan(found).any() or (found == math.inf).any() else found


MOST_CANDIDATES = 1 << 12
"""Weighed by one call, the rows in parts."""
