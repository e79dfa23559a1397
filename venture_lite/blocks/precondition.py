"""`'precondition`: steps in the coordinates in which a block's conditional distribution is about standard normal.

The scale is a factor of the inverse of minus the Hessian at the block's conditional mode. It is found when a kernel
first needs it and fixed from then on, so that every transition stays exact; with the trace it stays until the program
or its data change.

Steps that fit the mode lead nowhere from a draw of the prior. So a kernel that makes a scale looks where the chain is,
and where the scale does not hold there it moves the block to a draw of the normal at the mode: once, and only a block
that stood when the kernel began, so that all draws after the move are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from venture_lite.blocks import mode_search
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.gradients import Densities
from venture_lite.blocks.linear_block import LinearBlock, refuse_dependent
from venture_lite.blocks.modes import mode_of
from venture_lite.blocks.sections import Sections
from venture_lite.draws.draws import DrawsBuilder
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.impossible import first_outside
from venture_lite.interpreter.model import Model
from venture_lite.values import show

DOUBT = 1e-6
"""Share of the normal at the mode that lies further out than where a chain is left standing."""

DRAWS = 20
"""By so many draws of it the normal at a mode is compared with the density."""
LOOKS = DRAWS + 2
"""Evaluations of all rows that a linear block's scale takes: the Hessian, the mode, the draws."""

MOVED = "blocks moved to where the scale holds"
"""Of a kernel's statistics."""

INSTEAD = (
    "no 'precondition, with a STEP of its own; or a scale in another block than what it scales, or a hierarchy written "
    "as its level plus its scale times standard normals"
)


@dataclass(frozen=True, slots=True)
class Scale:
    """The normal at a block's mode."""

    # (D,), in free coordinates, or a linear block's values, which are the same
    mode: np.ndarray
    # L (D, D) with L L' the covariance
    root: np.ndarray
    # which curvature it was made from
    curvature: str

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        found: np.ndarray = self.mode + self.root @ rng.standard_normal(len(self.mode))
        return found

    def holds(self, at_mode: float, here: float) -> bool:
        """Whether a chain with this log density may be a draw: twice what it is below the mode's is chi-square."""
        from scipy.special import chdtri

        return bool(2.0 * (at_mode - here) <= chdtri(max(len(self.mode), 1), DOUBT))

    def describes(self, log_density: Callable[[np.ndarray], float | None]) -> bool:
        """Whether half of some draws of the normal have about the log density that it says."""
        # fixed, so that a scale takes no numbers from the chain
        rng, size = np.random.default_rng(0), len(self.mode)
        highest, near = log_density(self.mode), 0
        if highest is None:
            return False
        for _ in range(DRAWS):
            noise = rng.standard_normal(size)
            found = log_density(self.mode + self.root @ noise)
            near += found is not None and abs(found - highest + 0.5 * float(noise @ noise)) <= 5 + size
        return 2 * near >= DRAWS

    def bytes_used(self) -> int:
        return self.mode.nbytes + self.root.nbytes


class Preconditioner:
    """The scales of the blocks that one action moves."""

    def __init__(self, densities: Densities, draws: DrawsBuilder | None = None) -> None:
        self.densities = densities
        self._draws = draws
        self._scales: dict[tuple[int, ...], Scale] = {}
        # choices that stood when the action began
        self._stood: frozenset[int] = frozenset()
        # blocks for which this action made the scale, and has not looked yet whether it holds
        self._new: set[tuple[int, ...]] = set()
        self._counts: dict[str, int] = {}

    def begin(self, nodes: list[int]) -> None:
        """The action runs for the first time; these are the choices that it may move."""
        self._stood = frozenset(nodes)

    def refuse(self, nodes: list[int]) -> None:
        """Raises KernelError where a block cannot be moved in the coordinates of a scale.

        Outside its support a choice has no coordinates: it is drawn anew before there is a scale.
        """
        self.densities.refuse(nodes)
        if nodes and first_outside(self.densities.model, nodes) is None:
            self.scale(nodes)

    def details(self) -> dict[str, float]:
        """By name, for the statistics of the kernel."""
        return {name: float(count) for name, count in self._counts.items()}

    def root(self, nodes: Sequence[int]) -> np.ndarray:
        """L (D, D), in the block's free coordinates, with L L' the inverse curvature at the mode."""
        return self.scale(nodes).root

    def scale(self, nodes: Sequence[int]) -> Scale:
        """Raises KernelError where the block has no mode, or none that describes it; leaves the trace as it was."""
        block = tuple(nodes)
        density = self.densities.of(block)
        found = self._scales.get(block)
        if found is None or len(found.root) != density.size:
            was_known = found is not None
            found, was_kept = scale_of(self.densities, density, block)
            self._scales[block] = found
            self._count("set-ups kept" if was_kept else "set-ups made")
            self._count(f"blocks preconditioned by the {found.curvature}")
            if not was_kept and not was_known:
                self._new.add(block)
        return found

    def _count(self, name: str) -> None:
        self._counts[name] = self._counts.get(name, 0) + 1

    def settle(self, nodes: Sequence[int]) -> None:
        """Before a block's transition: move it to where its scale holds, if the scale is new."""
        scale = self.scale(nodes)
        block = tuple(nodes)
        if block not in self._new:
            return
        self._new.discard(block)
        if self._stood.issuperset(block) and self._is_elsewhere(scale, self.densities.of(block)):
            self._move(scale, self.densities.of(block))

    def _is_elsewhere(self, scale: Scale, density: BlockDensity) -> bool:
        model = density.model
        with model.aside():
            _, here, _ = self.densities.here(density)
            there = self.densities.at(density, scale.mode)
        if there is None or there[0].impossible != here.impossible:
            return there is not None and there[0].impossible < here.impossible
        return not scale.holds(there[0].total, here.total)

    def _move(self, scale: Scale, density: BlockDensity) -> None:
        model = density.model
        with model.transaction() as change:
            found = self.densities.at(density, scale.draw(model.trace.rng))
            if found is None or found[0].impossible:
                return
            change.keep()
        self._count(MOVED)
        if self._draws is not None:
            self._draws.mark_earlier()


def scale_of(densities: Densities, density: BlockDensity, block: tuple[int, ...]) -> tuple[Scale, bool]:
    """The kept scale of a block, or one that is made now, and whether it was kept."""
    model = densities.model

    def made() -> Scale:
        linear = _linear(model, block)
        if linear is None:
            return _found(densities, density, block)
        mode, was_kept = mode_of(linear)
        densities.rows += (LOOKS + (0 if was_kept else mode.evaluations)) * density.rows
        return _at_mode(linear)

    return _kept_or(made, model, block, density.size)


def scale_of_linear(linear: LinearBlock) -> tuple[Scale, bool]:
    """The same of a linear block; made at its mode, in LOOKS evaluations of all rows."""
    return _kept_or(partial(_at_mode, linear), linear.model, linear.block, linear.size)


def _kept_or(make: Callable[[], Scale], model: Model, block: Sequence[int], size: int) -> tuple[Scale, bool]:
    return model.kept.had(("scale", *block, size), make, stamp=model.kept.edition)


def _at_mode(linear: LinearBlock) -> Scale:
    mode, _ = mode_of(linear)
    made = Scale(mode.at, *linear.preconditioner(mode.at))
    if not made.describes(linear.log_density):
        raise _not_normal(linear.model, linear.block)
    return made


def _linear(model: Model, block: tuple[int, ...]) -> LinearBlock | None:
    """The block as likelihoods read it through linear predictors, if they do."""
    try:
        sections = Sections.of(model, block)
        refuse_dependent(model, set(sections.order), block)
        return LinearBlock(model, sections, block)
    except KernelError:
        return None


def _found(densities: Densities, density: BlockDensity, block: tuple[int, ...]) -> Scale:
    """By derivatives in free coordinates; the trace is left as it was."""
    model = density.model

    evaluate = partial(densities.evaluate, density)
    with model.aside():
        start = density.present()
        peak = mode_search.search(evaluate, start, partial(densities.hessian, density))
        if not peak.is_maximum:
            raise _no_mode(density, start, peak.at)
        made = Scale(peak.at, *mode_search.root_of(peak.curvature))
        if not made.describes(lambda free: None if (found := evaluate(free)) is None else found[0]):
            raise _not_normal(model, block)
    return made


def _no_mode(density: BlockDensity, start: np.ndarray, end: np.ndarray) -> KernelError:
    """Names the choice that the search sent furthest towards the edge of its support."""
    model, node = density.model, density.furthest(end - start)
    code, slot, row = model.trace.decode(node)
    try:
        density.put(end)
        where = f"where this choice is {show(model.trace.value(node), 1)}"
    except VentureError:
        where = "where this choice leaves the floats"
    reason = (
        "the block has no mode: the search left for the edge of the free coordinates, the density still growing "
        f"{where}"
    )
    return KernelError(reason, code.slots[slot].span, INSTEAD, model.trace.call_chain(code, slot, row))


def _not_normal(model: Model, block: Sequence[int]) -> KernelError:
    code, slot, row = model.trace.decode(block[0])
    reason = (
        "the normal at the block's mode does not describe the density near it: "
        f"of {DRAWS} draws fewer than half have about the log density that it says"
    )
    return KernelError(reason, code.slots[slot].span, INSTEAD, model.trace.call_chain(code, slot, row))
