"""The conditional densities of a block in many worlds at once, or in the one state that the trace is in: their
gradients and second derivatives, and from these the normals at their modes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from venture_lite.blocks.affine_conditionals import AffineBlock, AffineWorlds, are_read_affinely
from venture_lite.blocks.curvature import ROUNDING
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.recursions import Stretch
from venture_lite.blocks.second import REFUSALS
from venture_lite.blocks.single_conditionals import GivenSingle, SingleConditional
from venture_lite.blocks.world_passes import Kept, WorldKind, WorldRows, WorldSecond
from venture_lite.blocks.worlds import Worlds
from venture_lite.errors import KernelError
from venture_lite.interpreter.runs import Places

MOST = 2_000_000
"""Derivatives of one value that are held for the worlds that are gone through together."""

MOST_OF_ONE = 25_000_000
"""The same for one world."""

EVALUATIONS, LONGEST = 12, 10.0
"""Of the densities on the way to a mode; of a step, in scales of the start."""
FEW = 32
"""Worlds of which eigenvalues are found where one of them has no factor."""
NEAR, FAR = 0.02, 0.25
"""Sds from the mode at which a search ends, and those beyond which it has found none, each for one coordinate."""


class Conditionals:
    """The log density of a block's free coordinates given all else, in worlds."""

    def __init__(self, density: BlockDensity, places: Places) -> None:
        """Raises KernelError where not all that depends on the block has second derivatives in columns."""
        self.size = density.size
        self._nowhere, moved, terms = density.passes()
        try:
            self._terms = [WorldKind(places, kind, 0, kind.count) for kind in terms]
            self._moved = _read_by(self._terms, places, moved)
        except REFUSALS as error:
            raise no_derivatives(density) from error
        plans = [*self._moved, *self._terms]
        affine = are_read_affinely(plans)
        self.affine = AffineBlock(self.size, self._nowhere, self._moved, self._terms) if affine else None
        self._single: SingleConditional | None = None
        if self.size == 1:
            with contextlib.suppress(*REFUSALS):
                self._single = SingleConditional(self._nowhere, self._moved, self._terms)
        numbers = self.size * max((plan.count * plan.widest for plan in plans), default=1)
        if numbers > MOST_OF_ONE:
            raise no_derivatives(density)
        self._at_once = max(1, MOST // numbers)

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

    def single(self) -> GivenSingle | None:
        """Of a block of one number, as the trace stands; None where only worlds, of which there may be one, have
        them."""
        try:
            return None if self._single is None else self._single.given()
        except REFUSALS:
            return None

    def given(self, worlds: Worlds) -> GivenWorlds:
        """In these worlds, whose other values stay. Moves the block in them."""
        return GivenWorlds(self, worlds)

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


def _read_by(terms: Sequence[WorldKind], places: Places, moved: Sequence[Stretch]) -> list[WorldKind]:
    """What moves, without what nothing reads that is weighed: this may have no derivatives."""
    found: list[WorldKind] = []
    read = {place for plan in terms for place in plan.reads()}
    for kind, start, stop in reversed(moved):
        own = np.unique(kind.given[1][start:stop]).tolist()
        if kind.coordinates is not None or not read.isdisjoint(own):
            found.append(WorldKind(places, kind, start, stop))
            read.update(found[-1].reads())
    return found[::-1]


class GivenWorlds:
    """A block's conditional densities in some worlds, for places that are asked for one after the other."""

    def __init__(self, conditionals: Conditionals, worlds: Worlds) -> None:
        affine = conditionals.affine
        self._conditionals, self._size = conditionals, worlds.count if affine is None else affine.at_once
        starts = range(0, worlds.count, self._size)
        self._worlds = [worlds.part(slice(start, start + self._size)) for start in starts] if starts[1:] else [worlds]
        self._kept: list[Kept] = [{} for _ in self._worlds]
        # none where derivatives are found in the general way
        self._affine: list[AffineWorlds | None] = [None] * len(self._worlds)
        if affine is not None:
            with np.errstate(all="ignore"), contextlib.suppress(*REFUSALS):
                shared = affine.shared(worlds) if worlds.count > 1 else None
                self._affine = [self._affinely(affine, some, shared) for some in self._worlds]

    def _affinely(self, affine: AffineBlock, worlds: Worlds, shared: Any) -> AffineWorlds | None:
        try:
            return AffineWorlds(affine, worlds, shared)
        except REFUSALS:
            return None

    def at(
        self, which: np.ndarray, free: np.ndarray, terms: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `Conditionals.at`, in some of the worlds, by their numbers in order."""
        if len(self._worlds) == 1:
            return self._part(0, which, free, terms)
        cuts = np.searchsorted(which, np.arange(1, len(self._worlds)) * self._size)
        pieces = zip(np.split(which, cuts), np.split(free, cuts), strict=True)
        found = [
            self._part(number, some - number * self._size, there, terms)
            for number, (some, there) in enumerate(pieces)
            if len(some)
        ]
        gradients, hessians = zip(*found, strict=True)
        return np.concatenate(gradients), np.concatenate(hessians)

    def _part(
        self, number: int, which: np.ndarray, free: np.ndarray, terms: Sequence[int] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        affine, worlds = self._affine[number], self._worlds[number]
        if affine is not None:
            try:
                return affine.at(which, free, terms)
            except REFUSALS:
                self._affine[number] = None
        if len(which) == worlds.count:
            return self._conditionals.at(worlds, free, terms, self._kept[number])
        return self._conditionals.at(worlds.part(which), free, terms)


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


class StateNormal:
    """The normal of a single state, with what weighing and drawing take, made once."""

    __slots__ = ("_centre", "_inverse", "_root", "log_volume", "number")

    def __init__(self, normal: Normal) -> None:
        self._centre, self._root = normal.centre[0], normal.root[0]
        # of one number its centre and sd, else None
        self.number = (float(self._centre[0]), float(self._root[0, 0])) if len(self._centre) == 1 else None
        if self.number is None:
            self._inverse, self.log_volume = np.linalg.inv(self._root), float(normal.log_volume()[0])
        else:
            self.log_volume = math.log(self.number[1])

    def numbers(self, free: list[float]) -> list[float]:
        """Coordinates (D,) in which the normal is standard."""
        if self.number is not None:
            return [(free[0] - self.number[0]) / self.number[1]]
        found: list[float] = (self._inverse @ (np.array(free) - self._centre)).tolist()
        return found

    def free(self, numbers: list[float]) -> list[float]:
        if self.number is not None:
            return [self.number[0] + self.number[1] * numbers[0]]
        found: list[float] = (self._centre + self._root @ np.array(numbers)).tolist()
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
        good = ((slopes * step).sum(axis=1) > -0.5 * rise) & _are_known(slopes, curves)
        share[moving] = np.where(good, np.minimum(2.0 * share[moving], 1.0), 0.25 * share[moving])
        climbed = moving[good]
        at[climbed], gradient[climbed], hessian[climbed] = there[good], slopes[good], curves[good]
    return _normal(at, gradient, -hessian, start, scale), (gradient, hessian)


class NumberMode(NamedTuple):
    """The normal at the mode of one number's conditional density, and the derivatives at its centre if it is of one."""

    centre: float
    sd: float
    is_of_mode: bool
    slope: float
    curve: float


def mode_of_number(given: GivenSingle, start: float, scale: float) -> NumberMode:
    """As `at_modes`, of one number in a single state, without arrays."""
    at, slope, curve = _climbed(given, start, scale)
    is_mode = curve < 0.0 and slope * slope < -curve * FAR**2
    centre, sd = (at, math.sqrt(-1.0 / curve)) if is_mode else (start, scale)
    return NumberMode(centre, sd, is_mode, slope, curve)


def mode_of_single(given: GivenSingle, start: float, scale: float) -> tuple[Normal, tuple[np.ndarray, np.ndarray]]:
    """The same as arrays."""
    found = mode_of_number(given, start, scale)
    normal = Normal(np.array([[found.centre]]), np.array([[[found.sd]]]), np.array([found.is_of_mode]))
    return normal, (np.array([[found.slope]]), np.array([[[found.curve]]]))


def _climbed(given: GivenSingle, at: float, scale: float) -> tuple[float, float, float]:
    """Where the steps lead, and the derivatives there."""
    share = 1.0
    with np.errstate(all="ignore"):
        slope, curve = given.along(at)
        for _ in range(EVALUATIONS):
            # in scales
            step = slope * scale / max(abs(curve * scale * scale), LONGEST**-2)
            step = scale * min(max(step, -LONGEST), LONGEST)
            rise = slope * step
            if not NEAR**2 < rise < math.inf:
                break
            by_slope, by_curve = given.along(at + share * step)
            if by_slope * step > -0.5 * rise and math.isfinite(by_slope + by_curve):
                at, slope, curve, share = at + share * step, by_slope, by_curve, min(2.0 * share, 1.0)
            else:
                share *= 0.25
    return at, slope, curve


def _uphill(gradient: np.ndarray, curvature: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Newton's steps (W, D), 0 where a derivative is not finite."""
    known = _are_known(gradient, curvature)
    if not known.all():
        gradient = np.where(known[:, None], gradient, 0.0)
        curvature = np.where(known[:, None, None], curvature, np.eye(len(scale)))
    step = _solved(curvature * scale[:, None] * scale, gradient * scale)
    longest = np.abs(step).max(axis=1, keepdims=True)
    found: np.ndarray = scale * step / np.maximum(longest / LONGEST, 1.0)
    return found


def _are_known(gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """(W,) whether derivatives are finite."""
    known: np.ndarray = np.isfinite(gradient.sum(axis=1) + curvature.reshape(len(curvature), -1).sum(axis=1))
    return known


def _solved(curvature: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The inverse of curvatures times slopes (W, D), with the magnitudes of eigenvalues, at least LONGEST**-2."""
    if _are_positive(curvature, np.full(len(slope), LONGEST**-2)):
        return np.asarray(np.linalg.solve(curvature, slope[..., None])[..., 0])
    if len(slope) > FEW:
        middle = len(slope) // 2
        return np.concatenate(
            [_solved(curvature[:middle], slope[:middle]), _solved(curvature[middle:], slope[middle:])]
        )
    values, vectors = _eigen(curvature)
    values = np.maximum(np.abs(values), LONGEST**-2)
    found: np.ndarray = vectors @ ((vectors.swapaxes(1, 2) @ slope[..., None]) / values[..., None])
    return found[..., 0]


def _are_positive(matrices: np.ndarray, least: np.ndarray) -> bool:
    """Whether all eigenvalues of each matrix are above some number (W,): a factorisation takes a tenth of the time that
    eigenvalues take."""
    if matrices.shape[1] == 1:
        return bool((matrices[:, 0, 0] > least).all())
    try:
        np.linalg.cholesky(matrices - least[:, None, None] * np.eye(matrices.shape[1]))
    except np.linalg.LinAlgError:
        return False
    return True


def _eigen(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (W, D), and eigenvectors (W, D, D) as columns."""
    if matrices.shape[1] == 1:
        return matrices[:, :, 0], np.ones(matrices.shape)
    return np.linalg.eigh(matrices)


def _inverted(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(W,) whether matrices are positive definite beyond rounding, and their inverses; others' are the identity."""
    if _are_positive(matrices, ROUNDING * np.trace(matrices, axis1=1, axis2=2)):
        return np.ones(len(matrices), bool), np.linalg.inv(matrices)
    if len(matrices) > FEW:
        middle = len(matrices) // 2
        first, second = _inverted(matrices[:middle]), _inverted(matrices[middle:])
        return np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])
    values, vectors = _eigen(matrices)
    known = values[:, 0] > ROUNDING * values[:, -1]
    values = np.where(known[:, None], values, 1.0)
    return known, (vectors / values[:, None, :]) @ vectors.swapaxes(1, 2)


def _normal(
    at: np.ndarray, gradient: np.ndarray, curvature: np.ndarray, start: np.ndarray, scale: np.ndarray
) -> Normal:
    size = len(scale)
    known = _are_known(gradient, curvature)
    if not known.all():
        curvature = np.where(known[:, None, None], curvature, np.eye(size))
    positive, covariance = _inverted(curvature)
    known &= positive
    towards = ((covariance @ gradient[..., None])[..., 0] * gradient).sum(axis=1)
    known &= towards < FAR**2 * size
    covariance = 0.5 * (covariance + covariance.swapaxes(1, 2))
    if not known.all():
        covariance = np.where(known[:, None, None], covariance, np.diag(scale**2))
        at = np.where(known[:, None], at, start)
    return Normal(at, np.sqrt(covariance) if size == 1 else np.linalg.cholesky(covariance), known)
