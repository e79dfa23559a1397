"""The parameters of classes, while labels go from one class to another and some have none meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.addresses import Address, address, address_order
from venture_lite.interpreter.handler import Handler
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.model import Model
from venture_lite.procedures.record import Random
from venture_lite.trace.nodes import site_of
from venture_lite.trace.runtime import Exchangeable

HINT = "gibbs without 'weights"


class KnownParameters(Handler):
    """Gives the parameters of a class the values that they had, also where the class had no member meanwhile; those
    that nobody knows are drawn by the handler before, once."""

    def __init__(self, model: Model) -> None:
        super().__init__(model.trace)
        self._model = model
        self._known: dict[Address, Any] = {}
        # of those that members of a class hold: the choice
        self._nodes: dict[Address, int] = {}
        self.nodes: set[int] = set()
        # of those that were drawn: the site, and the distribution with its arguments
        self._drawn: dict[Address, tuple[int, Random, tuple[Any, ...]]] = {}
        # by the label of a class: those that its members hold, and those that were drawn while it was opened
        self._of_class: dict[int, list[Address]] = {}
        # the label of the class that is opened; None where draws belong to no class
        self._opening: int | None = None

    def know(self, label: int, nodes: Sequence[int]) -> None:
        """The members of a class hold these parameters."""
        found = {address(self.trace, node): node for node in nodes}
        self._nodes.update(found)
        self._known.update({place: self.trace.value(node) for place, node in found.items()})
        self._of_class[label] = list(found)
        self.nodes.update(nodes)

    def holds(self, node: int) -> bool:
        """True if a choice is a parameter of a class that had members."""
        return node in self.nodes

    def open(self, label: int, nodes: Iterable[int]) -> None:
        """Draw the parameters that some labels would read in a class and that nobody knows: each of the labels is put
        into the class, and taken back. Labels may differ in what they read."""
        self._opening = label
        for node in nodes:
            if self.trace.value(node) == label:
                continue
            try:
                with self._model.transaction():
                    self._model.put_value(node, label)
            except VentureError as error:
                if not rejects(self._model, error, ()):
                    raise
        self._opening = None

    def forget(self, label: int) -> None:
        """Let a class for which parameters were drawn have none."""
        for place in self._of_class.pop(label, ()):
            del self._known[place], self._drawn[place]

    def parameters(self, label: int, sites: frozenset[int]) -> list[Address]:
        """The parameters of a class at some sites, in the order of their addresses."""
        found = (place for place in self._of_class.get(label, ()) if self.site(place) in sites)
        return sorted(found, key=address_order)

    def sites(self, label: int) -> set[int]:
        """The sites of all parameters of a class."""
        return {self.site(place) for place in self._of_class.get(label, ())}

    def node(self, place: Address) -> int | None:
        """The choice of a parameter; None where no member held it at the beginning."""
        return self._nodes.get(place)

    def site(self, place: Address) -> int:
        return site_of(self._nodes[place]) if place in self._nodes else self._drawn[place][0]

    def distribution(self, place: Address) -> tuple[Random, tuple[Any, ...]]:
        """Of one that was drawn."""
        return self._drawn[place][1:]

    def value(self, place: Address) -> Any:
        return self._known[place]

    def give(self, place: Address, value: Any) -> None:
        """Give a parameter a value, in the trace, too, where members hold it."""
        self._known[place] = value
        if place in self._nodes:
            self._model.put_value(self._nodes[place], value)

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        if isinstance(operator, Exchangeable):
            reason = "'weights keeps the parameters of classes, and draws of a maker depend on each other"
            raise KernelError(reason, hint=HINT).at(*self.trace.place(*self.trace.decode(node)))
        place = address(self.trace, node)
        if place not in self._known:
            assert self.before is not None
            self._known[place] = self.before.choose(node, operator, arguments)
            self._drawn[place] = site_of(node), operator, arguments
            if self._opening is not None:
                self._of_class.setdefault(self._opening, []).append(place)
        return self._known[place]
