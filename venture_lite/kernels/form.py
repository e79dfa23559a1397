"""The form of a transition: what it computes, typed by its operations, before it is text of any language.

A form is made once for a shape (`lower.py`) and printed by `python.py`. Its values are the operations of
`procedures/straight_line.py`, in which densities and simulators are written already, those of references
(`interpreter/references.py`), and more: *row* is the row of a place of the shape, *each* a row of a loop, *fresh* calls
what draws, *part* takes one of the values that it gives. Equal operations are one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from venture_lite.procedures.straight_line import Node, needed
from venture_lite.trace.table import Column

Value = Any
"""A node, or a number that is known beforehand."""


class Failed(Exception):
    """A proposal met an error; what it had drawn is spent."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


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
class RowLoop:
    """A sum over rows, each in turn the value `each`; what must be tested in each row, and its log density."""

    each: Node
    demands: tuple[Demand, ...]
    term: Value


@dataclass(frozen=True, slots=True)
class Side:
    """What is weighed of one state: single log densities, added up in order, and sums over rows."""

    terms: tuple[Value, ...]
    loops: tuple[RowLoop, ...]
    # what arguments of the single densities must pass; none in the state that stands
    demands: tuple[Demand, ...] = ()


@dataclass(frozen=True, slots=True)
class Propose:
    """A principal's new value, and the logarithm of the ratio of the proposal's densities, backwards over forwards."""

    # what arguments of the proposal must pass before it is drawn
    demands: tuple[Demand, ...]
    value: Value
    ratio: Value


@dataclass(frozen=True, slots=True)
class TransitionForm:
    """A transition of Metropolis and Hastings that keeps all structure."""

    # parents first
    proposals: tuple[Propose, ...]
    old: Side
    new: Side
    stores: tuple[Store, ...]
    # whether more rows absorb than are weighed one by one: columns weigh them, once the new values stand in place
    wide: bool
    # whether the proposal is called, and has to look at the old state first
    prepares: bool
    # columns that loads read, by number
    columns: tuple[Column, ...]
    # functions that calls apply, and constants that are no numbers, by number
    objects: tuple[Any, ...]

    def __str__(self) -> str:
        """The form as a person reads it, one operation a line."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        told: set[int] = set()
        for proposal in self.proposals:
            yield from _demanded(proposal.demands, told)
            yield from operations(proposal.value, told)
            yield from operations(proposal.ratio, told)
            yield f"propose {name_of(proposal.value)}, ratio {name_of(proposal.ratio)}"
        for what, side in (("old", self.old), ("new", self.new)):
            yield from _demanded(side.demands, told)
            for value in side.terms:
                yield from operations(value, told)
                yield f"add {name_of(value)} to {what}"
            for loop in side.loops:
                yield f"for each {name_of(loop.each)}"
                inside = [*_demanded(loop.demands, told), *operations(loop.term, told)]
                yield from (f"    {line}" for line in inside)
                yield f"    add {name_of(loop.term)} to {what}"
        for store in self.stores:
            yield from operations(store.value, told)
            yield f"store {name_of(store.value)} in place {store.place}"
        if self.wide:
            yield "add the columns of all other rows"


def _demanded(demands: Iterable[Demand], told: set[int]) -> Iterator[str]:
    for demand in demands:
        yield from operations(demand.value, told)
        yield f"demand {demand.test.format(x=name_of(demand.value))}"


def name_of(value: Value) -> str:
    return f"t{value.place}" if value.__class__ is Node else repr(value)


def operations(value: Value, told: set[int]) -> Iterator[str]:
    """The operations that lead to a value, those told already aside."""
    for node in needed([value]):
        if node.place not in told:
            told.add(node.place)
            yield f"t{node.place} = {node.operation} {', '.join(map(name_of, node.operands))}"
