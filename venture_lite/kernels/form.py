"""The form of a transition: what it computes, typed by its operations, before it is text of any language.

A form is made once for a shape (`lower.py`) and printed by `python.py`. Its values are the operations of
`procedures/straight_line.py`, in which densities and simulators are written already, and three more: *load* reads a
column in a row, *call* applies a function of the language, *row* is the row of a place of the shape. Equal operations
are one value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from venture_lite.procedures.straight_line import Node, needed
from venture_lite.trace.table import Column

Value = Any
"""A node, or a number that is known beforehand."""


@dataclass(frozen=True, slots=True)
class Store:
    """What a place takes on where the transition is accepted."""

    place: int
    # number of the column
    column: int
    value: Value


@dataclass(frozen=True, slots=True)
class Demand:
    """A number that must pass a test of its domain, written in {x}; else the transition is the interpreter's."""

    value: Value
    test: str


@dataclass(frozen=True, slots=True)
class Loop:
    """A sum over rows, each in turn the value `each`; what must be tested in each row, and its log density."""

    each: Node
    demands: tuple[Demand, ...]
    term: Value


@dataclass(frozen=True, slots=True)
class Side:
    """What is weighed of one state: single log densities, added up in order, and sums over rows."""

    terms: tuple[Value, ...]
    loops: tuple[Loop, ...]
    # what arguments of the single densities must pass; none in the state that stands
    demands: tuple[Demand, ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """A transition of Metropolis and Hastings that keeps all structure."""

    # what arguments of the proposal must pass before anything is drawn
    before: tuple[Demand, ...]
    # the proposed value, and the logarithm of the ratio of the proposal's densities, backwards over forwards
    proposed: Value
    ratio: Value
    old: Side
    new: Side
    stores: tuple[Store, ...]
    # columns that loads read, by number
    columns: tuple[Column, ...]
    # functions that calls apply, and constants that are no numbers, by number
    objects: tuple[Any, ...]

    def __str__(self) -> str:
        """The form as a person reads it, one operation a line."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        told: set[int] = set()
        for demand in self.before:
            yield from operations(demand.value, told)
            yield f"demand {demand.test.format(x=name_of(demand.value))}"
        yield from operations(self.proposed, told)
        yield f"propose {name_of(self.proposed)}, ratio {name_of(self.ratio)}"
        for what, side in (("old", self.old), ("new", self.new)):
            for demand in side.demands:
                yield from operations(demand.value, told)
                yield f"demand {demand.test.format(x=name_of(demand.value))}"
            for value in side.terms:
                yield from operations(value, told)
                yield f"add {name_of(value)} to {what}"
            for loop in side.loops:
                yield f"for each {name_of(loop.each)}"
                inside = [line for demand in loop.demands for line in operations(demand.value, told)]
                inside += [f"demand {demand.test.format(x=name_of(demand.value))}" for demand in loop.demands]
                inside += operations(loop.term, told)
                yield from (f"    {line}" for line in inside)
                yield f"    add {name_of(loop.term)} to {what}"
        for store in self.stores:
            yield f"store {name_of(store.value)} in place {store.place}"


def name_of(value: Value) -> str:
    return f"t{value.place}" if value.__class__ is Node else repr(value)


def operations(value: Value, told: set[int]) -> Iterator[str]:
    """The operations that lead to a value, those told already aside."""
    for node in needed([value]):
        if node.place not in told:
            told.add(node.place)
            yield f"t{node.place} = {node.operation} {', '.join(map(name_of, node.operands))}"
