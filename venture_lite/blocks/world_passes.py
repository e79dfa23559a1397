"""The passes of `second.py` over a block in many worlds at once, or in the one state that the trace is in: over rows
that are repeated for each world.
"""

from __future__ import annotations

from types import NoneType
from typing import Any

import numpy as np

from venture_lite.blocks.moving import RowKind
from venture_lite.blocks.second import Second, SecondRows, called
from venture_lite.blocks.tape import TapeLeaf
from venture_lite.blocks.worlds import Worlds
from venture_lite.interpreter.runs import Places
from venture_lite.kernels.population import applied_to_rows
from venture_lite.procedures.jets import Jet, value_of
from venture_lite.procedures.pullbacks import accumulated
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.straight_line import Node, needed
from venture_lite.procedures.transforms import Elementwise
from venture_lite.trace.table import NotColumnar, listed, part_of

Kept = dict[tuple[int, int], Any]
"""Values that do not depend on the block, in some worlds, by kind and place of its tape."""


class WorldSecond(Second):
    """Passes over a block in worlds; arrays by place have the worlds for their last dimension."""

    def __init__(self, worlds: Worlds, nowhere: int, free: np.ndarray, kept: Kept) -> None:
        size, self.worlds, count = free.shape[1], worlds, worlds.count
        self.kept = kept
        self.nowhere, self.size = nowhere, size
        # (D, W)
        self.free = free.T
        self.gradient = np.zeros((size, count))
        self.hessian = np.zeros((size, size, count))
        self.moved = np.zeros((size, nowhere + 1, count))
        self.cotangents = np.zeros((nowhere + 1, count))
        self.slopes = np.zeros((size, nowhere + 1, count))
        # by place: of vectors of K numbers that move their derivatives (D, W, K), and their cotangents, jets (W, K)
        self.directions: dict[int, np.ndarray] = {}
        self.others: dict[int, Any] = {}


class WorldKind:
    """Some rows of a kind, and where in worlds that is which they read."""

    def __init__(self, places: Places, kind: RowKind, start: int, stop: int) -> None:
        self.kind, self.count = kind, stop - start
        tape, nowhere = kind.tape, kind.state.nowhere
        if tape.closures:
            raise NotColumnar
        rows, self.own, _, *read = [part_of(each, start, stop) for each in kind.given]
        self.rows = listed(rows)
        self.moves = not np.all(self.own == nowhere)
        # how many numbers each is
        self.width = self.widest = 1
        if self.moves and kind.column.kind is not float:
            self.width = self._width(kind)
        self.of_worlds = np.broadcast_to(places.of(kind.site, self.rows), self.count)
        # (N,), of vectors (N, K)
        taken = [np.arange(each.start, each.stop) for each, _ in (kind.coordinates or ())[start:stop]]
        self.coordinates = (
            np.array(taken, int).reshape(-1, self.width) if self.width > 1 else np.ravel(taken).astype(int)
        )
        # by place of the tape: rows, where these are in the worlds, where in the block or nowhere
        self.read: dict[int, tuple[Any, Any, Any]] = {}
        self.lifted: set[int] = set()
        # of the leaves, those whose values differ between worlds
        self.drawn: set[int] = set()
        for leaf, at, moved in zip(tape.leaves, read[::2], read[1::2], strict=True):
            there = places.of(leaf.site, at)
            stays = np.all(moved == nowhere)
            self.read[leaf.node.place] = at, there, None if stays else np.broadcast_to(moved, self.count)
            if not np.all(there == places.nowhere):
                self.drawn.add(leaf.node.place)
            if not stays and leaf.column.kind is not float:
                self.widest = max(self.widest, np.size(leaf.column.view[listed(at).tolist()[0] if np.ndim(at) else at]))
        self.lifted |= self.drawn
        for node in needed(tape.outputs):
            if tape.is_lifted(node) or any(
                each.__class__ is Node and each.place in self.lifted for each in node.operands
            ):
                self.lifted.add(node.place)

    def reads(self) -> set[int]:
        """The places of the block that are read, and nowhere."""
        return {place for _, _, moved in self.read.values() if moved is not None for place in np.ravel(moved).tolist()}

    def _width(self, kind: RowKind) -> int:
        """Of vectors. Raises NotColumnar for what is none, or has coordinates of another number."""
        values = [kind.column.view[row] for row in self.rows.tolist()]
        shapes = {
            value.shape if isinstance(value, np.ndarray) and value.dtype == np.float64 else () for value in values
        }
        transform = None if kind.coordinates is None else kind.operator.transform
        if (
            not isinstance(transform, (Elementwise, NoneType))
            or len(shapes) != 1
            or [len(shape) for shape in shapes] != [1]
        ):
            raise NotColumnar
        return len(values[0])


class WorldRows(SecondRows):
    """The rows of a kind in all worlds, the worlds of the first row first."""

    _second: WorldSecond

    def __init__(self, second: WorldSecond, plan: WorldKind) -> None:
        self._second, self._plan = second, plan
        self._kind, self._tape = plan.kind, plan.kind.tape
        self._single, self._is_number = False, plan.kind.column.kind is float
        self._each = (plan.count, second.worlds.count)
        self._count = (plan.count * second.worlds.count,)
        self._places = plan.own
        self._flags = tuple(map(self._is_lifted, self._tape.outputs))
        self._values = self._tape.evaluated(self._leaf, self._call)
        self._outputs = list(map(self._value, self._tape.outputs))

    def _is_lifted(self, operand: Any) -> bool:
        return operand.__class__ is Node and operand.place in self._plan.lifted

    def lifted(self) -> tuple[bool, ...]:
        """Of the value and each argument of a density."""
        return self._lifted()

    def _leaf(self, leaf: TapeLeaf) -> Any:
        rows, there, moved = self._plan.read[leaf.node.place]
        kept, key = self._second.kept, (id(self._plan), leaf.node.place)
        if key in kept:
            return kept[key]
        if not self._is_lifted(leaf.node):
            return leaf.column.view[rows]
        value = self._second.worlds.of_rows(leaf.column, rows, there, self._plan.count)
        if moved is None:
            kept[key] = value
            return value
        if value.dtype != np.float64:
            raise NotColumnar
        return self._jet(value, moved)

    def _call(self, node: Node, record: Deterministic, arguments: list[Any]) -> Any:
        if node.place in self._kind.wanted:
            return super()._call(node, record, arguments)
        kept, key = self._second.kept, (id(self._plan), node.place)
        if key not in kept:
            # what depends on the block, but not on its numbers, is asked of these
            lifted = tuple(map(self._is_lifted, node.operands[1:]))
            kept[key] = applied_to_rows(record, lifted, list(map(value_of, arguments)))
        return kept[key]

    def _jet(self, value: np.ndarray, places: Any) -> Any:
        second = self._second
        if value.ndim == 1:
            return Jet(value, second.moved[:, places].reshape(second.size, -1))
        none = np.zeros((second.size, self._each[1], value.shape[1]))
        found = [second.directions.get(place, none) for place in places.tolist()]
        return Jet(value, np.concatenate(found, axis=1))

    def _own_value(self, places: Any) -> Any:
        plan, worlds = self._plan, self._second.worlds
        value = worlds.of_rows(self._kind.column, plan.rows, plan.of_worlds, plan.count)
        return self._jet(value, plan.own) if places is plan.own and plan.moves else value

    def forward(self) -> None:
        kind, second, plan = self._kind, self._second, self._plan
        if kind.coordinates is not None:
            transform, arguments = self._transform()
            value = transform.columns[1](self._free(), *arguments)
        else:
            value = self._outputs[0] if kind.operator is None else called(kind.operator, self._flags, self._outputs)
        second.worlds.put(
            plan.of_worlds.tolist(), np.broadcast_to(value_of(value), (*self._count, *np.shape(value)[1:]))
        )
        if value.__class__ is not Jet:
            return
        tangent = value.tangent.reshape(second.size, *self._each, *value.shape[1:])
        if self._is_number:
            second.moved[:, plan.own] = tangent
            return
        for position, place in enumerate(plan.own.tolist()):
            second.directions[place] = tangent[:, position]

    def _free(self) -> Jet:
        """The coordinates of choices."""
        second, plan, at = self._second, self._plan, self._plan.coordinates
        directions = np.zeros((second.size, *at.shape, self._each[1]))
        directions[(at, *np.indices(at.shape))] = 1.0
        free = Jet(second.free[at], directions)
        if at.ndim == 1:
            return free.reshape(-1)
        return Jet(free.value.swapaxes(1, 2), free.tangent.swapaxes(2, 3)).reshape(-1, plan.width)

    def _own(self) -> Any:
        if not self._plan.moves:
            return None
        second, plan, own = self._second, self._plan, self._plan.own
        if not self._is_number:
            found = [second.others.get(place) for place in own.tolist()]
            if all(each is None for each in found):
                return None
            none = Jet(np.zeros((self._each[1], plan.width)), np.zeros((second.size, self._each[1], plan.width)))
            return np.stack([none if each is None else each for each in found]).reshape(-1, plan.width)
        return Jet(second.cotangents[own].reshape(-1), second.slopes[:, own].reshape(second.size, -1))

    def _take(self, by_free: Any) -> None:
        second, at = self._second, self._plan.coordinates
        each = (*self._each, *at.shape[1:])
        by_value = np.broadcast_to(value_of(by_free), (*self._count, *at.shape[1:])).reshape(each)
        second.gradient[at] += np.moveaxis(by_value, 1, -1)
        if by_free.__class__ is Jet:
            second.hessian[at] += np.moveaxis(by_free.tangent.reshape(second.size, *each), (0, 2), (-2, -1))

    def _add(self, leaf: TapeLeaf, part: Any) -> None:
        second, places = self._second, self._plan.read[leaf.node.place][2]
        if leaf.column.kind is not float:
            whole = part.reshape(*self._each, -1)
            for place in np.unique(places).tolist():
                share = whole[places == place].sum(axis=0)
                second.others[place] = accumulated(second.others.get(place), share)
            return
        sum_by(second.cotangents, places, np.broadcast_to(value_of(part), self._count).reshape(self._each))
        if part.__class__ is Jet:
            sum_by(second.slopes, places, part.tangent.reshape(second.size, *self._each))


def sum_by(sums: np.ndarray, places: Any, parts: np.ndarray) -> None:
    """Add each row of parts (..., N, W) to the row of sums (..., P, W) at its place."""
    if not np.ndim(places):
        sums[..., int(places), :] += parts.sum(axis=-2)
        return
    order = np.argsort(places, kind="stable")
    shared, first = np.unique(places[order], return_index=True)
    sums[..., shared, :] += np.add.reduceat(parts[..., order, :], first, axis=-2)
