"""Conditional densities of a block that is read affinely, in worlds.

Where a density's value and arguments are affine functions of the block's values, offsets and coefficients, these are
found once for some worlds. Gradients and second derivatives at any place are then those of the densities by what they
read, between products of matrices: X' g and X' diag(h) X, as in Fisher scoring (McCullagh and Nelder 1989, Generalized
linear models, section 2.5), for any number of arguments. Rows are computed with once for each place, not once for each
choice of the block.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

import numpy as np

from venture_lite.blocks.second import density_slopes
from venture_lite.blocks.world_passes import WorldKind, WorldRows, WorldSecond
from venture_lite.blocks.worlds import Worlds
from venture_lite.procedures.array_pullbacks import dot, vector
from venture_lite.procedures.columns import numeric
from venture_lite.procedures.derivatives import curvatures_of
from venture_lite.procedures.jets import Jet, value_of
from venture_lite.procedures.pullbacks import ADD, DIVIDE, MULTIPLY, SUBTRACT
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.straight_line import Node
from venture_lite.procedures.transforms import REAL, Elementwise

AT_ONCE = 1 << 16
"""Rows times worlds that are gone through together: what a processor's cache holds."""
MOST_PRODUCTS = 4_000_000
"""Products of coefficients that are kept."""
DENSE = 32
"""Choices above which most coefficients are taken to be 0."""
BESIDE = 1e-300
"""Added to what densities read: what is smooth but made of pieces, a logistic likelihood say, has its seam at 0."""

Products = Callable[[np.ndarray], np.ndarray]


# ------------------------------------------------------------------------------------------------------ what is affine


def are_read_affinely(plans: Sequence[WorldKind]) -> bool:
    """Whether densities read the block's values affinely."""
    return all(_reads_affinely(plan) for plan in plans)


def _reads_affinely(plan: WorldKind) -> bool:
    kind = plan.kind
    transform = None if kind.coordinates is None else kind.operator.transform
    if transform is not None and (
        not isinstance(transform, Elementwise) or (transform.reads_arguments and any(kind.asked))
    ):
        return False
    if plan.width > 1 and transform is not None and (transform is not REAL or any(kind.asked)):
        return False
    calls = _calls(plan)
    return all(_passes_on(record, _in(kind.wanted, operands)) for _, record, operands in calls)


def _calls(plan: WorldKind) -> list[tuple[int, Deterministic, Sequence[Any]]]:
    """The places of the tape, procedures and operands that lead to what is read; the last may have none."""
    kind = plan.kind
    found: list[tuple[int, Deterministic, Sequence[Any]]]
    found = [(node.place, record, operands) for node, record, operands, _ in kind.tape.steps]
    return [*found, (-1, kind.operator, kind.tape.outputs)] if isinstance(kind.operator, Deterministic) else found


def _in(places: Container[int], operands: Sequence[Any]) -> list[bool]:
    return [each.__class__ is Node and each.place in places for each in operands]


def _passes_on(record: Deterministic, moves: list[bool]) -> bool:
    """Whether a call is affine in those of its arguments that move."""
    if not any(moves) or record.pullback in (ADD, SUBTRACT, vector):
        return True
    if record.pullback in (MULTIPLY, dot):
        return sum(moves) == 1
    return record.pullback is DIVIDE and len(moves) > 1 and not any(moves[1:])


def _varies(plan: WorldKind) -> bool:
    """Whether coefficients differ between worlds."""
    wanted, drawn = plan.kind.wanted, set(plan.drawn)
    for place, record, operands in _calls(plan):
        moves, differ = _in(wanted, operands), _in(drawn, operands)
        scales = any(moves) and record.pullback in (MULTIPLY, DIVIDE, dot)
        if scales and any(up and not moving for up, moving in zip(differ, moves, strict=True)):
            return True
        if any(differ):
            drawn.add(place)
    return False


# -------------------------------------------------------------------------------------------------------- coefficients


class Coefficients:
    """Those of N rows by D choices, alike in all worlds."""

    def __init__(self, tangent: np.ndarray) -> None:
        """From (D, N)."""
        self.matrix: Any = np.ascontiguousarray(tangent.T)
        self.size = len(tangent)
        if self.size > DENSE:
            from scipy.sparse import csr_array

            self.matrix = csr_array(self.matrix)
        self._products: dict[int, Products] = {}

    def along(self, values: np.ndarray, which: Any) -> np.ndarray:
        """(N, W) from values (D, W)."""
        found: np.ndarray = self.matrix @ values
        return found

    def back(self, by_read: np.ndarray, which: Any) -> np.ndarray:
        """(D, W) from (N, W)."""
        found: np.ndarray = self.matrix.T @ by_read
        return found

    def between(self, curved: np.ndarray, other: Coefficients, which: Any) -> np.ndarray:
        """(D, D, W): the products with those of another, each row times one of `curved` (N, W)."""
        if curved.shape[1] == 1:
            return _one_by_one(self.matrix, other.matrix, curved)
        if id(other) not in self._products:
            self._products[id(other)] = _products_of(self.matrix, other.matrix)
        return self._products[id(other)](curved)


def _products_of(left: Any, right: Any) -> Products:
    """From (N, W) to (D, D, W)."""
    size = left.shape[1]
    if left.shape[0] * size * size > MOST_PRODUCTS:
        return lambda curved: _one_by_one(left, right, curved)
    left, right = [each if isinstance(each, np.ndarray) else each.toarray() for each in (left, right)]
    pairs = (left[:, :, None] * right[:, None, :]).reshape(-1, size * size)
    used = np.flatnonzero(pairs.any(axis=0))
    kept = np.ascontiguousarray(pairs[:, used].T)

    def products(curved: np.ndarray) -> np.ndarray:
        found = np.zeros((size * size, curved.shape[1]))
        found[used] = kept @ curved
        return found.reshape(size, size, -1)

    return products


def _one_by_one(left: Any, right: Any, curved: np.ndarray) -> np.ndarray:
    if curved.shape[1] == 1 and isinstance(left, np.ndarray):
        alone: np.ndarray = ((left * curved).T @ right)[:, :, None]
        return alone
    found = np.empty((left.shape[1], right.shape[1], curved.shape[1]))
    for world, each in enumerate(curved.T):
        if isinstance(left, np.ndarray):
            found[:, :, world] = (left.T * each) @ right
        else:
            found[:, :, world] = (left.T.multiply(each) @ right).toarray()
    return found


class VaryingCoefficients:
    """Those of N rows by D choices in W worlds."""

    def __init__(self, tangent: np.ndarray) -> None:
        """From (D, N, W)."""
        self.matrix = np.ascontiguousarray(tangent.transpose(2, 1, 0))

    def along(self, values: np.ndarray, which: Any) -> np.ndarray:
        return np.asarray((self.matrix[which] @ values.T[:, :, None])[:, :, 0].T)

    def back(self, by_read: np.ndarray, which: Any) -> np.ndarray:
        return np.asarray((self.matrix[which].swapaxes(1, 2) @ by_read.T[:, :, None])[:, :, 0].T)

    def between(self, curved: np.ndarray, other: VaryingCoefficients, which: Any) -> np.ndarray:
        scaled = self.matrix[which] * curved.T[:, :, None]
        return np.asarray((scaled.swapaxes(1, 2) @ other.matrix[which]).transpose(1, 2, 0))


# --------------------------------------------------------------------------------------------------------- in worlds


class AffineRows(WorldRows):
    """The rows of a kind with the block at 0, the directions being those of its values; plain where there are none."""

    def _jet(self, value: np.ndarray, places: Any) -> Any:
        return super()._jet(value, places) if self._second.size else value

    def forward(self) -> None:
        plan, second = self._plan, self._second
        if plan.kind.coordinates is None:
            super().forward()
            return
        if plan.width > 1:
            second.worlds.put(plan.of_worlds.tolist(), np.zeros((*self._count, plan.width)))
            for place, at in zip(plan.own.tolist(), plan.coordinates, strict=True) if second.size else ():
                second.directions[place] = np.zeros((second.size, self._each[1], plan.width))
                second.directions[place][at, :, np.arange(plan.width)] = 1.0
            return
        second.worlds.put(plan.of_worlds.tolist(), np.zeros(self._count))
        second.moved[:, plan.own] = 0.0
        if second.size:
            second.moved[plan.coordinates, plan.own] = 1.0

    @functools.cached_property
    def given(self) -> list[Any]:
        """The value and the arguments of a density, once the block has moved."""
        return [self._own_value(self._plan.own), *self._outputs, *self._kind.defaults]


class AffineTerm:
    """The densities of the rows of a kind, as functions of the block's values."""

    def __init__(self, plan: WorldKind, rows: AffineRows, coefficients: dict[int, Any], worlds: int) -> None:
        self.plan, self.record, self.asked = plan, plan.kind.operator, plan.kind.flags
        self.shape = plan.count, worlds
        self.lifted, self.coefficients = rows.lifted(), coefficients
        definition = self.record.definition
        self._curves = None if definition is None else curvatures_of(definition, self.asked)
        # (N, W) each, or one for all
        self._given = [
            numeric(value_of(each), up).reshape(self.shape) if up else each
            for each, up in zip(rows.given, self.lifted, strict=True)
        ]
        for at in coefficients:
            self._given[at] = self._given[at] + BESIDE

    def arguments(self, which: Any) -> list[Any]:
        """Those that do not move."""
        given, lifted = self._given[1:], self.lifted[1:]
        return [each[:, which].reshape(-1) if up else each for each, up in zip(given, lifted, strict=True)]

    def add(self, which: Any, values: np.ndarray, gradient: np.ndarray, hessian: np.ndarray) -> None:
        """The derivatives at values (D, W) to a gradient (D, W) and second derivatives (D, D, W)."""
        given = [each[:, which] if up else each for each, up in zip(self._given, self.lifted, strict=True)]
        for at, coefficients in self.coefficients.items():
            given[at] = given[at] + coefficients.along(values, which)
        flat = [each.reshape(-1) if up else each for each, up in zip(given, self.lifted, strict=True)]
        slopes, curves = self._jets(flat) if self._curves is None else self._recorded(flat)
        shape = self.shape[0], values.shape[1]
        every = list(self.coefficients.values())
        for at, coefficients in enumerate(every):
            gradient += coefficients.back(_spread(slopes[at], shape), which)
            for other, curve in zip(every, curves[at][: at + 1], strict=False):
                if isinstance(curve, np.ndarray) or curve != 0.0:
                    part = coefficients.between(_spread(curve, shape), other, which)
                    hessian += part if other is coefficients else part + part.swapaxes(0, 1)

    def _recorded(self, given: list[Any]) -> tuple[Sequence[Any], list[Sequence[Any]]]:
        """The derivatives by what moves, and the second ones row by row, as far as the diagonal at least."""
        assert self._curves is not None
        found, size = self._curves(*given), len(self.coefficients)
        starts = [size + at * (at + 1) // 2 for at in range(size)]
        return found[:size], [found[start : start + at + 1] for at, start in enumerate(starts)]

    def _jets(self, given: list[Any]) -> tuple[Sequence[Any], list[Any]]:
        """The same where the density has no definition to derive them from."""
        count, size = len(given[0]), len(self.coefficients)
        for direction, at in enumerate(self.coefficients):
            tangent = np.zeros((size, count))
            tangent[direction] = 1.0
            given[at] = Jet(given[at], tangent)
        found = density_slopes(self.record, self.lifted, self.asked, given, (count,))
        slopes = [found[at] for at in self.coefficients]
        curves = [slope.tangent if slope.__class__ is Jet else [0.0] * size for slope in slopes]
        return [value_of(slope) for slope in slopes], curves


def _spread(part: Any, shape: tuple[int, int]) -> np.ndarray:
    """One number for each row in each world."""
    found: np.ndarray = part.reshape(shape) if isinstance(part, np.ndarray) else np.full(shape, part)
    return found


class AffineBlock:
    """A block that is read affinely."""

    def __init__(self, size: int, nowhere: int, moved: Sequence[WorldKind], terms: Sequence[WorldKind]) -> None:
        self.size, self.nowhere, self.moved = size, nowhere, moved
        choices = [plan for plan in moved if plan.kind.coordinates is not None]
        self.own = [plan for plan in choices if plan.width == 1]
        # whose own densities are found by the passes
        self.vectors = [plan for plan in choices if plan.width > 1]
        # where worlds hold what these read
        self.beside = {
            place for plan in self.vectors for _, at, _ in plan.read.values() for place in np.ravel(at).tolist()
        }
        self.terms = [*self.own, *terms]
        self.is_free = all(plan.kind.operator.transform is REAL for plan in self.own)
        self._varies = any(_varies(plan) for plan in (*moved, *terms))
        rows = max(plan.count for plan in (*moved, *terms))
        self.at_once = max(1, AT_ONCE // (rows * (self.size if self._varies else 1)))

    def shared(self, worlds: Worlds) -> list[dict[int, Any]] | None:
        """The coefficients of the terms, by argument, where all worlds have the same. Raises as `within`."""
        if self._varies:
            return None
        return self._of_all(self._read(worlds.part(slice(1)), self.size))

    def within(self, worlds: Worlds, shared: list[dict[int, Any]] | None) -> list[AffineTerm]:
        """Of the block's own densities, and of those that read it. Moves the block in these worlds. Raises what is in
        REFUSALS where something cannot be computed with the block at 0."""
        rows = self._read(worlds, self.size if shared is None else 0)
        pairs = zip(self.terms, rows, shared or self._of_all(rows), strict=True)
        return [AffineTerm(plan, each, coefficients, worlds.count) for plan, each, coefficients in pairs]

    def _of_all(self, rows: Sequence[AffineRows]) -> list[dict[int, Any]]:
        return [self._of(plan, each) for plan, each in zip(self.terms, rows, strict=True)]

    def _read(self, worlds: Worlds, size: int) -> list[AffineRows]:
        second = WorldSecond(worlds, self.nowhere, np.zeros((worlds.count, size)), {})
        found = {}
        for plan in self.moved:
            found[id(plan)] = AffineRows(second, plan)
            found[id(plan)].forward()
        return [found.get(id(plan)) or AffineRows(second, plan) for plan in self.terms]

    def _of(self, plan: WorldKind, rows: AffineRows) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for at, (asked, each) in enumerate(zip(plan.kind.flags, rows.given, strict=True)):
            if asked:
                tangent = each.tangent.reshape(self.size, plan.count, -1)
                found[at] = VaryingCoefficients(tangent) if self._varies else Coefficients(tangent[:, :, 0])
        return found


class AffineWorlds:
    """The conditional densities of such a block in some worlds."""

    def __init__(self, block: AffineBlock, worlds: Worlds, shared: list[dict[int, Any]] | None) -> None:
        self._block, self._count, self._worlds = block, worlds.count, worlds
        self._terms = block.within(worlds, shared)

    def at(self, which: np.ndarray, free: np.ndarray, terms: Sequence[int] | None) -> tuple[np.ndarray, np.ndarray]:
        """As `Conditionals.at`, in some of the worlds, by number."""
        taken = slice(None) if len(which) == self._count else which
        (count, size), own = free.shape, len(self._block.own)
        values, gradient, hessian = free.T, np.zeros((size, count)), np.zeros((size, size, count))
        with np.errstate(all="ignore"):
            if not self._block.is_free:
                values, ways = self._values(values, taken)
            others = self._terms[own:] if terms is None else [self._terms[own + at] for at in terms]
            for term in (*self._terms[:own], *others):
                term.add(taken, values, gradient, hessian)
            if not self._block.is_free:
                self._to_free(values, ways, gradient, hessian, taken)
            if self._block.vectors:
                second = WorldSecond(self._worlds.part(taken, self._block.beside), self._block.nowhere, free, {})
                for plan in self._block.vectors:
                    rows = WorldRows(second, plan)
                    rows.forward()
                    rows.backward()
                gradient += second.gradient
                hessian += second.hessian
        return gradient.T, hessian.transpose(2, 0, 1)

    def _transforms(self, which: Any) -> Iterator[tuple[np.ndarray, Elementwise, list[Any]]]:
        """Coordinates of choices, their transform, and what this reads."""
        for plan, term in zip(self._block.own, self._terms, strict=False):
            transform = plan.kind.operator.transform
            yield plan.coordinates, transform, term.arguments(which) if transform.reads_arguments else []

    def _values(self, free: np.ndarray, which: Any) -> tuple[np.ndarray, np.ndarray]:
        """(D, W) the block's values, and their derivatives by the free coordinates."""
        # those of vectors are free
        values, ways = free.copy(), np.ones(free.shape)
        for at, transform, given in self._transforms(which):
            found = transform.columns[1](Jet(free[at].reshape(-1), np.ones((1, free[at].size))), *given)
            values[at], ways[at] = found.value.reshape(len(at), -1), found.tangent.reshape(len(at), -1)
        return values, ways

    def _to_free(
        self, values: np.ndarray, ways: np.ndarray, gradient: np.ndarray, hessian: np.ndarray, which: Any
    ) -> None:
        """From derivatives by the values, in place, to those by the free coordinates, of the Jacobians too."""
        own, through = np.zeros(values.shape), np.ones(values.shape)
        for at, transform, given in self._transforms(which):
            way, none = ways[at].reshape(1, -1), np.zeros((1, ways[at].size))
            by_value = Jet(gradient[at].reshape(-1), np.concatenate((none, none + 1.0)))
            value = Jet(values[at].reshape(-1), np.concatenate((way, none)))
            found = transform.by_free(value, by_value, *given)
            gradient[at] = found.value.reshape(len(at), -1)
            own[at], through[at] = found.tangent.reshape(2, len(at), -1)
        hessian *= through[:, None] * ways[None]
        every = np.arange(len(values))
        hessian[every, every] += own
