"""The parameters of classes, while labels go from one class to another and some have none meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from venture_lite.errors import KernelError
from venture_lite.interpreter.addresses import Address, address
from venture_lite.interpreter.handler import Handler
from venture_lite.procedures.record import Random
from venture_lite.trace.nodes import site_of
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.trace import Trace

HINT = "gibbs without 'weights"


class KnownParameters(Handler):
    """Gives the parameters of a class the values that they had, also where the class had no member meanwhile; those
    that nobody knows are drawn by the handler before, once."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._known: dict[Address, Any] = {}
        self.nodes: set[int] = set()
        # of those that were drawn: the site, and the distribution with its arguments
        self._drawn: dict[Address, tuple[int, Random, tuple[Any, ...]]] = {}
        # by the label of the class for which they were drawn
        self._opened: dict[int, list[Address]] = {}
        self._opening = 0

    def know(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            self._known[address(self.trace, node)] = self.trace.value(node)
        self.nodes.update(nodes)

    def holds(self, node: int) -> bool:
        """Whether a choice is a parameter of a class that had members."""
        return node in self.nodes

    def open(self, label: int) -> None:
        """What is drawn next are the parameters of a class."""
        self._opening = label

    def forget(self, label: int) -> None:
        """Let a class for which parameters were drawn have none."""
        for place in self._opened.pop(label, ()):
            del self._known[place], self._drawn[place]

    def opened(self, label: int) -> list[Address]:
        """The parameters that were drawn for a class."""
        return self._opened.get(label, [])

    def site(self, place: Address) -> int:
        return self._drawn[place][0]

    def distribution(self, place: Address) -> tuple[Random, tuple[Any, ...]]:
        """Of one that was drawn."""
        return self._drawn[place][1:]

    def value(self, place: Address) -> Any:
        return self._known[place]

    def give(self, place: Address, value: Any) -> None:
        self._known[place] = value

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        if isinstance(operator, Exchangeable):
            reason = "'weights keeps the parameters of classes, and draws of a maker depend on each other"
            raise KernelError(reason, hint=HINT).at(*self.trace.place(*self.trace.decode(node)))
        place = address(self.trace, node)
        if place not in self._known:
            assert self.before is not None
            self._known[place] = self.before.choose(node, operator, arguments)
            self._drawn[place] = site_of(node), operator, arguments
            self._opened.setdefault(self._opening, []).append(place)
        return self._known[place]
