"""Worlds where structure depends on choices, made one after the other, and what a block reads in a single state.

A world is every choice drawn anew, those with evidence like all others: a transition of the whole trace, after which
the journal takes everything back. It starts at the same state each time, so that one scaffold serves all worlds, and
they are independent. Evidence keeps its place: a choice that is observed in the trace is one of the data in each world.

A block is read in what stays when it is detached, with the block at a centre: what exists only by the block is made
anew for that, by draws that are always the same. So whatever the block does, what is read stays, and one evaluation of
a network gives the densities of both directions, also where the transition changes structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.distributions import name_of
from venture_lite.blocks.input_names import apart, argument_name, each_number
from venture_lite.blocks.worlds import Features, PortKey, names_of
from venture_lite.errors import KernelError
from venture_lite.interpreter.application import simulate, simulate_anew
from venture_lite.interpreter.handler import Handler
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder, Scaffold, absorbing_rows
from venture_lite.interpreter.selection import in_order
from venture_lite.procedures.record import Random
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.trace import Trace
from venture_lite.values import equal

ValueOf = Callable[[int, Any, tuple[Any, ...]], Any]
"""(choice, distribution, arguments) -> the value at which a choice of the block is read."""


class _WholeTrace(Builder):
    """The scaffold of every choice, in which evidence fixes no value."""

    def _renew(self, node: int) -> None:
        if node not in self.scaffold.pending and node not in self.scaffold.principals:
            self.scaffold.pending[node] = None
            self._todo.append(node)


class _Anew(Handler):
    """Draws every choice from its distribution, whether it is observed or not."""

    def __init__(self, trace: Trace, scaffold: Scaffold) -> None:
        super().__init__(trace, (*scaffold.principals, *scaffold.pending), scaffold.structural)
        self._makers = scaffold.makers

    def renew(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        if node in self._makers:
            self.trace.statistics.set_arguments(operator, arguments)
            return operator
        return self._drawn(node, operator, arguments)

    def constrain(self, node: int, operator: Any, arguments: tuple[Any, ...], evidence: Any) -> Any:
        return self._drawn(node, operator, arguments)

    def _drawn(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        value = simulate_anew(self.trace, node, operator, arguments)
        if isinstance(operator, Exchangeable):
            self.trace.statistics.incorporate(operator, value, arguments)
        return value


class ResimulatedWorlds:
    """Draws every choice of a trace anew, and takes it back."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._scaffold = _WholeTrace(model.trace).build(model.trace.choices())

    @contextmanager
    def world(self, rng: np.random.Generator) -> Iterator[None]:
        """In the block the trace is a world; afterwards it is as it was, bit for bit, its generator included.

        Raises VentureError where some choice cannot be drawn.
        """
        model, trace = self.model, self.model.trace
        before, births = trace.rng, trace.default.births
        trace.rng, trace.default.births = rng, None
        try:
            with np.errstate(all="ignore"), model.aside():
                self._draw()
                yield
        finally:
            trace.rng, trace.default.births = before, births

    def _draw(self) -> None:
        machine, scaffold = self.model.machine, self._scaffold
        self.model.regenerator.detach(scaffold, counts=False)
        _renew_all(self.model, scaffold, machine.handled_by(_Anew(self.model.trace, scaffold)))


def _renew_all(model: Model, scaffold: Scaffold, handler: Handler, first: Sequence[int] = ()) -> None:
    """Give all that a scaffold holds the values that a handler has for it: to principals, then to `first`, then to what
    is left."""
    with handler:
        for node in (*scaffold.principals, *first, *scaffold.pending):
            model.machine.renew(node)


# ---------------------------------------------------------------------------------------------- what a block reads


class _AtCentre(Handler):
    """Puts a block at its centre; draws what comes into being with it by a generator that begins anew each time."""

    def __init__(self, trace: Trace, scaffold: Scaffold, value_of: ValueOf) -> None:
        super().__init__(trace, (*scaffold.principals, *scaffold.pending), scaffold.structural)
        self._value_of = value_of
        self._rng: np.random.Generator | None = None
        # of each choice of the block
        self.arguments: dict[int, tuple[Any, ...]] = {}
        self._makers = scaffold.makers

    def renew(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        if node in self._makers:
            self.trace.statistics.set_arguments(operator, arguments)
            return operator
        self.arguments[node] = arguments
        return self._value_of(node, operator, arguments)

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        trace = self.trace
        if self._rng is None:
            self._rng = np.random.default_rng(0)
        before, trace.rng = trace.rng, self._rng
        try:
            return simulate(trace, node, operator, arguments)
        finally:
            trace.rng = before


@dataclass(frozen=True, slots=True)
class Reading:
    """The values at which a block is read, and what that adds to the names of its ports."""

    value_of: ValueOf
    name: str = ""


class StateBlanket:
    """What a block's conditional distribution depends on, read in the state that the trace is in, whatever structure
    depends on."""

    def __init__(self, model: Model, block: Sequence[int]) -> None:
        self.model, self.block = model, list(block)
        trace = model.trace
        self._scaffold = scaffold = Builder(trace).build(block)
        self._refuse()
        # what reads the block from outside; what comes and goes with it is found in each reading
        self._children = [node for node in absorbing_rows(trace, scaffold) if node not in scaffold.principals]
        # new choices are drawn in an order that does not depend on how what stays came to be
        self._first = in_order(model, list(scaffold.structural))
        # nothing is weighed
        scaffold.absorbing.clear()
        scaffold.groups.clear()

    @property
    def restructures(self) -> bool:
        """Whether what exists, or what makers' statistics say, may depend on the block."""
        return bool(self._scaffold.structural or self._scaffold.makers)

    def thin_out(self, rng: np.random.Generator) -> None:
        """Leave out a random part of the data that read the block, where they are several."""
        observed = set(filter(self.model.trace.is_observed, self._children))
        if len(observed) > 1:
            share = rng.random()
            self._children = [node for node in self._children if node not in observed or rng.random() < share]

    def _refuse(self) -> None:
        trace, scaffold = self.model.trace, self._scaffold
        if len(scaffold.principals) < len(self.block):
            code, slot, _ = trace.decode(self.block[0])
            reason = "what choices the block has depends on itself: it takes away some by what it does to others"
            raise KernelError(reason, code.slots[slot].span, "mh, or tags that keep these in a block of their own")

    def read(self, readings: Sequence[Reading]) -> Features:
        """Of one example: arguments of the block's choices in the first reading, and the ports of all readings. A maker
        that reads the block is a port of one row, the joint density of its statistics; in further readings, the log of
        the ratio to the first.

        Raises VentureError where something cannot be computed with the block at its centre.
        """
        fixed: list[float] = []
        ports: dict[PortKey, list[list[float]]] = {}
        first: dict[int, float] = {}
        for reading in readings:
            with self.model.aside():
                handler = self._put(reading.value_of)
                if reading is readings[0]:
                    fixed = [x for node in self.block for x in _numbers_in(handler.arguments[node])]
                rows = [self._row(node) for node in (*self._children, *handler.constrained)]
                for key, row in (*rows, *self._of_makers(first)):
                    ports.setdefault(key + reading.name, []).append(row)
        return Features(np.array([fixed]), {key: _table(rows) for key, rows in ports.items()})

    def input_names(self, readings: Sequence[Reading]) -> tuple[list[str], dict[PortKey, tuple[str, ...]]]:
        """What the inputs are that `read` finds: those beside rows, and the numbers of a row of each port."""
        fixed: list[str] = []
        columns: dict[PortKey, tuple[str, ...]] = {}
        for reading in readings:
            with self.model.aside():
                handler = self._put(reading.value_of)
                if reading is readings[0]:
                    for node, name in zip(self.block, apart(names_of(self.model, self.block)), strict=True):
                        operator = self.model.trace.application(node)[0]
                        names, widths = _named_numbers(operator, handler.arguments[node])
                        fixed += each_number([f"{each} of {name}" for each in names], widths)
                for node in (*self._children, *handler.constrained):
                    key, row = self._row(node)
                    names, widths = _named_numbers(*self.model.trace.application(node))
                    own = each_number(("value", *names), (len(row) - sum(widths), *widths))
                    columns.setdefault(key + reading.name, tuple(own))
                for node in self._scaffold.makers:
                    columns.setdefault(f"{self._name(node)}: statistics{reading.name}", ("log density",))
        return fixed, columns

    def _of_makers(self, first: dict[int, float]) -> Iterator[tuple[PortKey, list[float]]]:
        for node in self._scaffold.makers:
            found = self.model.trace.value(node).state.log_joint()
            yield f"{self._name(node)}: statistics", [found - first.get(node, 0.0)]
            first.setdefault(node, found)

    def _put(self, value_of: ValueOf) -> _AtCentre:
        model = self.model
        model.regenerator.detach(self._scaffold, counts=False)
        handler = _AtCentre(model.trace, self._scaffold, value_of)
        model.machine.handled_by(handler)
        _renew_all(model, self._scaffold, handler, self._first)
        return handler

    def _name(self, node: int) -> str:
        return names_of(self.model, (node,))[0]

    def _row(self, node: int) -> tuple[PortKey, list[float]]:
        operator, arguments, value = self.model.trace.choice(node)
        own = _numbers_in((value,)) or _position_in_support(operator, arguments, value)
        return f"{self._name(node)}: {name_of(operator)}", [*own, *_numbers_in(arguments)]


def _numbers_in(values: Sequence[Any]) -> list[float]:
    """Numbers, and those in vectors and lists of numbers; names and matrices have none."""
    found: list[float] = []
    for value in values:
        if isinstance(value, (int, float)):
            found.append(float(value))
        elif isinstance(value, np.ndarray) and value.ndim == 1:
            found += value.tolist()
        elif isinstance(value, tuple) and all(isinstance(each, (int, float)) for each in value):
            found += map(float, value)
    return found


def _named_numbers(operator: Any, arguments: Sequence[Any]) -> tuple[list[str], list[int]]:
    """What is given to a distribution, and how many numbers each of it is."""
    names = [argument_name(operator, at) for at in range(len(arguments))]
    return names, [len(_numbers_in((each,))) for each in arguments]


def _position_in_support(operator: Random | Exchangeable, arguments: tuple[Any, ...], value: Any) -> list[float]:
    """1 for the value, 0 for each other that a choice can have."""
    if not isinstance(operator, Random) or operator.support is None:
        return []
    return [float(equal(value, other)) for other in operator.support(*arguments)]


def _table(rows: list[list[float]]) -> np.ndarray:
    """(1, N, F): the rows that are as long as the first."""
    width = len(rows[0])
    return np.array([[row for row in rows if len(row) == width]], dtype=np.float64).reshape(1, -1, width)
