"""A datum's assignments: taken out, drawn given all else, put in.

`Assignments` does it in the trace. Where the model allows it does it over the statistics alone
(`kernels/deferred.py`), and the trace follows when `settle` is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from venture_lite.engines.gibbs import Gibbs
from venture_lite.inference.data import Data
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection, Selector, order_of_key
from venture_lite.kernels.compiled import drawing
from venture_lite.kernels.deferred import deferred


class Assigning:
    """What draws the choices of one scope; counts what it weighs."""

    def __init__(self, model: Model, scope: Any) -> None:
        self.model = model
        self.scope = scope
        self.gibbs = drawing(model, Gibbs)
        # the block whose choices are drawn
        self.at = Selection(model, scope, Selector("each"))
        # absorbing choices weighed by way of the statistics
        self.deferred_rows = 0

    @property
    def rows(self) -> int:
        return self.gibbs.rows + self.deferred_rows

    def keys(self, node: int) -> list[Any]:
        """The key of the choice's block in the scope, if it is in it."""
        if self.scope == "default":
            return [node]
        trace = self.model.trace
        return [key for name, key in trace.tags(*trace.decode(node)) if name == self.scope]


class Assignments:
    """The assignments of a program's data during one run."""

    def __init__(self, assigning: Assigning, data: Data) -> None:
        self.assigning = assigning
        self.data = data
        self._deferred = deferred(assigning.model, data, assigning.scope, self._nodes_by_block)

    def remove(self, datum: int) -> None:
        """Take a datum out."""
        if self._deferred is not None:
            if self._deferred.remove(datum):
                return
            self._give_up()
        self.data.remove(datum)

    def assign(self, datum: int, new: bool) -> bool:
        """Draw a datum's assignments given all else; a new one is put in first. Whether the state changed."""
        if self._deferred is not None:
            changed = self._deferred.assign(datum)
            if changed is not None:
                return changed
            self._give_up()
        if new:
            self.data.add(datum)
        return self._draw_all(datum) or new

    def settle(self) -> None:
        """Make the trace agree with the assignments."""
        if self._deferred is not None:
            self._deferred.settle()
            self.assigning.deferred_rows += self._deferred.rows
            self._deferred.rows = 0

    def abandon(self) -> None:
        """Make the trace consistent, with assignments of an earlier time."""
        if self._deferred is not None:
            self._deferred.abandon()

    def _give_up(self) -> None:
        self.settle()
        self._deferred = None

    # --------------------------------------------------------------------------------------------- in the trace

    def _draw_all(self, datum: int) -> bool:
        """Draw a datum's choices in the scope: those of one block together, one block after another, on to the next by
        key that exists now."""
        gibbs, at = self.assigning.gibbs, self.assigning.at
        changed, blocks = False, sorted(self._blocks(datum))
        while blocks:
            (done, at.key, nodes), *blocks = blocks
            changed = gibbs.step(nodes, at) or changed
            if gibbs.restructured:
                # only such a move can make others come or go
                blocks = [block for block in sorted(self._blocks(datum)) if block[0] > done]
        return changed

    def _blocks(self, datum: int) -> Iterator[tuple[tuple[Any, ...], Any, list[int]]]:
        """(order, key, choices) of each block of the scope, as far as the datum has choices in it."""
        found: dict[tuple[Any, ...], tuple[Any, list[int]]] = {}
        assigning = self.assigning
        for node in self.data.choices(datum):
            for key in assigning.keys(node):
                order = order_of_key(assigning.model, assigning.scope, key)
                found.setdefault(order, (key, []))[1].append(node)
        return ((order, key, nodes) for order, (key, nodes) in found.items())

    def _nodes_by_block(self, datum: int) -> list[list[int]]:
        return [nodes for _, _, nodes in sorted(self._blocks(datum))]

    def in_scope(self, datum: int) -> list[int]:
        return [node for node in self.data.choices(datum) if self.assigning.keys(node)]
