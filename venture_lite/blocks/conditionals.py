"""The conditional densities of a block in many worlds at once, or in the one state that the trace is in: their
gradients and second derivatives, and from these the normals at their modes.

The passes are those of `second.py`, over rows that are repeated for each world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.curvature import ROUNDING
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.moving import RowKind
from venture_lite.blocks.second import REFUSALS, Second, SecondRows, called
from venture_lite.blocks.tape import TapeLeaf
from venture_lite.blocks.worlds import Worlds
from venture_lite.errors import KernelError
from venture_lite.interpreter.runs import Places
from venture_lite.procedures.jets import Jet, value_of
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.straight_line import Node, needed
from venture_lite.trace.table import NotColumnar, listed, part_of

MOST = 2_000_000
"""Derivatives of one value that are held for the worlds that are gone through together."""

EVALUATIONS, LONGEST = 12, 10.0
"""Of the densities on the way to a mode; of a step, in scales of the start."""
NEAR, FAR = 0.02, 0.25
"""Sds from the mode at which a search ends, and those beyond which it has found none, each for one coordinate."""


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
        if self.moves and kind.column.kind is not float:
            raise NotColumnar
        self.of_worlds = np.broadcast_to(places.of(kind.site, self.rows), self.count)
        self.coordinates = np.array([taken.start for taken, _ in (kind.coordinates or ())[start:stop]], int)
        # by place of the tape: rows, where these are in the worlds, where in the block or nowhere
        self.read: dict[int, tuple[Any, Any, Any]] = {}
        self.lifted: set[int] = set()
        for leaf, at, moved in zip(tape.leaves, read[::2], read[1::2], strict=True):
            there = places.of(leaf.site, at)
            self.read[leaf.node.place] = at, there, None if np.all(moved == nowhere) else moved
            if not np.all(there == places.nowhere):
                self.lifted.add(leaf.node.place)
        for node in needed(tape.outputs):
            if tape.is_lifted(node) or any(
                each.__class__ is Node and each.place in self.lifted for each in node.operands
            ):
                self.lifted.add(node.place)


class WorldRows(SecondRows):
    """The rows of a kind in all worlds, the worlds of the first row first."""

    _second: WorldSecond

    def __init__(self, second: WorldSecond, plan: WorldKind) -> None:
        self._second, self._plan = second, plan
        self._kind, self._tape = plan.kind, plan.kind.tape
        self._single, self._is_number = False, True
        self._each = (plan.count, second.worlds.count)
        self._count = (plan.count * second.worlds.count,)
        self._places = plan.own
        self._flags = tuple(map(self._is_lifted, self._tape.outputs))
        self._values = self._tape.evaluated(self._leaf, self._call)
        self._outputs = list(map(self._value, self._tape.outputs))

    def _is_lifted(self, operand: Any) -> bool:
        return operand.__class__ is Node and operand.place in self._plan.lifted

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
        if value.dtype != np.float64 or value.ndim > 1:
            raise NotColumnar
        return self._jet(value, moved)

    def _call(self, node: Node, record: Deterministic, arguments: list[Any]) -> Any:
        if node.place in self._kind.wanted:
            return super()._call(node, record, arguments)
        kept, key = self._second.kept, (id(self._plan), node.place)
        if key not in kept:
            kept[key] = super()._call(node, record, arguments)
        return kept[key]

    def _jet(self, value: np.ndarray, places: Any) -> Jet:
        each = np.broadcast_to(places, self._each[:1])
        return Jet(value, self._second.moved[:, each].reshape(self._second.size, -1))

    def _own_value(self, places: Any) -> Any:
        plan, worlds = self._plan, self._second.worlds
        value = worlds.of_rows(self._kind.column, plan.rows, plan.of_worlds, plan.count)
        return self._jet(value, plan.own) if places is plan.own and plan.moves else value

    def forward(self) -> None:
        kind, second, plan = self._kind, self._second, self._plan
        if kind.coordinates is not None:
            transform, arguments = self._transform()
            directions = np.zeros((second.size, *self._each))
            directions[plan.coordinates, np.arange(plan.count)] = 1.0
            free = second.free[plan.coordinates].reshape(-1)
            value = transform.columns[1](Jet(free, directions.reshape(second.size, -1)), *arguments)
        else:
            value = self._outputs[0] if kind.operator is None else called(kind.operator, self._flags, self._outputs)
        second.worlds.put(plan.of_worlds.tolist(), np.broadcast_to(value_of(value), self._count))
        if value.__class__ is Jet:
            second.moved[:, plan.own] = value.tangent.reshape(second.size, *self._each)

    def _own(self) -> Any:
        if not self._plan.moves:
            return None
        second, own = self._second, self._plan.own
        return Jet(second.cotangents[own].reshape(-1), second.slopes[:, own].reshape(second.size, -1))

    def _take(self, by_free: Any) -> None:
        second, at = self._second, self._plan.coordinates
        second.gradient[at] += np.broadcast_to(value_of(by_free), self._count).reshape(self._each)
        if by_free.__class__ is Jet:
            second.hessian[at] += by_free.tangent.reshape(second.size, *self._each).swapaxes(0, 1)

    def _add(self, leaf: TapeLeaf, part: Any) -> None:
        second, places = self._second, self._plan.read[leaf.node.place][2]
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


class Conditionals:
    """The log density of a block's free coordinates given all else, in worlds."""

    def __init__(self, density: BlockDensity, places: Places) -> None:
        """Raises KernelError where not all that depends on the block has second derivatives in columns."""
        self.size = density.size
        self._nowhere, moved, terms = density.passes()
        try:
            plans = [WorldKind(places, *stretch) for stretch in moved]
            # what nothing reads that is weighed, worlds have no room for
            self._moved = [plan for plan in plans if not np.any(plan.of_worlds == places.nowhere)]
            self._terms = [WorldKind(places, kind, 0, kind.count) for kind in terms]
        except REFUSALS as error:
            raise no_derivatives(density) from error
        self._at_once = max(1, MOST // (self.size * max((plan.count for plan in self._moved + self._terms), default=1)))

    def sites(self) -> list[int]:
        """Of what reads the block, outside of it."""
        return [plan.kind.site for plan in self._terms]

    def at(
        self, worlds: Worlds, free: np.ndarray, terms: Sequence[int] | None = None, kept: Kept | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The gradient (W, D) and the second derivatives (W, D, D) at free coordinates (W, D): NaN in a world that has
        none. Of what reads the block some may be chosen, by position. `kept` has what other evaluations of these worlds
        left there."""
        if worlds.count <= self._at_once:
            return self._part(worlds, free, terms, {} if kept is None else kept)
        parts = [
            self._part(worlds.part(slice(start, start + self._at_once)), free[start : start + self._at_once], terms, {})
            for start in range(0, worlds.count, self._at_once)
        ]
        gradients, hessians = zip(*parts, strict=True)
        return np.concatenate(gradients), np.concatenate(hessians)

    def _part(
        self, worlds: Worlds, free: np.ndarray, terms: Sequence[int] | None, kept: Kept
    ) -> tuple[np.ndarray, np.ndarray]:
        try:
            with np.errstate(all="ignore"):
                return self._passes(worlds, free, terms, kept)
        except REFUSALS:
            count, size = free.shape
            if count == 1:
                return np.full((1, size), np.nan), np.full((1, size, size), np.nan)
        middle = count // 2
        halves = [
            self._part(worlds.part(half), free[half], terms, {}) for half in (slice(middle), slice(middle, count))
        ]
        return np.concatenate([halves[0][0], halves[1][0]]), np.concatenate([halves[0][1], halves[1][1]])

    def _passes(
        self, worlds: Worlds, free: np.ndarray, terms: Sequence[int] | None, kept: Kept
    ) -> tuple[np.ndarray, np.ndarray]:
        second = WorldSecond(worlds, self._nowhere, free, kept)
        for plan in self._moved:
            WorldRows(second, plan).forward()
        for plan in self._terms if terms is None else [self._terms[at] for at in terms]:
            WorldRows(second, plan).backward()
        for plan in reversed(self._moved):
            WorldRows(second, plan).backward()
        hessian = second.hessian.transpose(2, 0, 1)
        return second.gradient.T, 0.5 * (hessian + hessian.swapaxes(1, 2))


def no_derivatives(density: BlockDensity) -> KernelError:
    reason = "not all that depends on the block has second derivatives for many worlds at once"
    return KernelError(reason, hint="'frame prior")


@dataclass(frozen=True, slots=True)
class Normal:
    """Normals in the free coordinates of a block, one for each world."""

    # (W, D)
    centre: np.ndarray
    # (W, D, D), lower triangular: its product with its transpose is the covariance
    root: np.ndarray
    # (W,) whether they are those of a mode
    is_of_mode: np.ndarray

    def numbers(self, free: np.ndarray) -> np.ndarray:
        """Coordinates (W, D) in which the normals are standard."""
        found: np.ndarray = np.linalg.solve(self.root, (free - self.centre)[..., None])[..., 0]
        return found

    def free(self, numbers: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.centre + (self.root @ numbers[..., None])[..., 0]
        return found

    def log_volume(self) -> np.ndarray:
        """(W,) the logarithm of the determinant of the roots."""
        found: np.ndarray = np.log(np.diagonal(self.root, axis1=1, axis2=2)).sum(axis=1)
        return found


Derivatives = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Numbers (w,) of worlds, free coordinates (w, D) -> gradients (w, D) and second derivatives (w, D, D)."""


def at_modes(
    derivatives: Derivatives, start: np.ndarray, scale: np.ndarray
) -> tuple[Normal, tuple[np.ndarray, np.ndarray]]:
    """The normals at the modes that damped Newton steps from `start` (W, D) lead to; where they lead to none, those of
    the start with sds `scale` (D,). And the derivatives at their centres, where these are modes.

    Where the curvature has negative parts their magnitude is taken. A step is cut to LONGEST scales, and made shorter
    where at its end the density falls half as steeply as it rose at its beginning.
    """
    at, share = start.copy(), np.ones(len(start))
    gradient, hessian = derivatives(np.arange(len(start)), at)
    least = NEAR**2 * start.shape[1]
    moving = np.arange(len(start))
    for _ in range(EVALUATIONS):
        step = _uphill(gradient[moving], -hessian[moving], scale)
        rise = (gradient[moving] * step).sum(axis=1)
        moving, step, rise = moving[rise > least], step[rise > least], rise[rise > least]
        if not len(moving):
            break
        there = at[moving] + share[moving, None] * step
        slopes, curves = derivatives(moving, there)
        # also where a derivative is NaN
        good = ((slopes * step).sum(axis=1) > -0.5 * rise) & np.isfinite(curves).all(axis=(1, 2))
        share[moving] = np.where(good, np.minimum(2.0 * share[moving], 1.0), 0.25 * share[moving])
        climbed = moving[good]
        at[climbed], gradient[climbed], hessian[climbed] = there[good], slopes[good], curves[good]
    return _normal(at, gradient, -hessian, start, scale), (gradient, hessian)


def _uphill(gradient: np.ndarray, curvature: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Newton's steps (W, D), 0 where a derivative is not finite."""
    known = np.isfinite(gradient).all(axis=1) & np.isfinite(curvature).all(axis=(1, 2))
    gradient = np.where(known[:, None], gradient, 0.0)
    curvature = np.where(known[:, None, None], curvature, np.eye(len(scale)))
    scaled = curvature * scale[:, None] * scale
    values, vectors = np.linalg.eigh(scaled)
    values = np.maximum(np.abs(values), LONGEST**-2)
    step = (vectors @ ((vectors.swapaxes(1, 2) @ (gradient * scale)[..., None]) / values[..., None]))[..., 0]
    longest = np.abs(step).max(axis=1, keepdims=True)
    found: np.ndarray = scale * step / np.maximum(longest / LONGEST, 1.0)
    return found


def _normal(
    at: np.ndarray, gradient: np.ndarray, curvature: np.ndarray, start: np.ndarray, scale: np.ndarray
) -> Normal:
    size = len(scale)
    known = np.isfinite(curvature).all(axis=(1, 2)) & np.isfinite(gradient).all(axis=1)
    curvature = np.where(known[:, None, None], curvature, np.eye(size))
    values, vectors = np.linalg.eigh(curvature)
    known &= values[:, 0] > ROUNDING * values[:, -1]
    values = np.where(known[:, None], values, 1.0)
    towards = (vectors.swapaxes(1, 2) @ gradient[..., None])[..., 0] ** 2 / values
    known &= towards.sum(axis=1) < FAR**2 * size
    covariance = (vectors / values[:, None, :]) @ vectors.swapaxes(1, 2)
    covariance = np.where(known[:, None, None], 0.5 * (covariance + covariance.swapaxes(1, 2)), np.diag(scale**2))
    return Normal(np.where(known[:, None], at, start), np.linalg.cholesky(covariance), known)
