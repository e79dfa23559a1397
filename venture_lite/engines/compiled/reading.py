"""What the network of a kind reads of one block, in worlds or as the trace stands, and the frame of the block there.

Nothing of it depends on where the block stands: so one reading serves the state that a transition leaves and the one
that it proposes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from venture_lite.blocks.conditionals import (
    Conditionals,
    GivenWorlds,
    Normal,
    StateNormal,
    at_modes,
    mode_of_number,
    mode_of_single,
)
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.input_names import apart, each_number
from venture_lite.blocks.single_conditionals import GivenSingle
from venture_lite.blocks.worlds import Blanket, Features, PortKey, RunReader, Worlds, all_above, names_of
from venture_lite.engines.compiled.frame import LOCATIONS, BlockFrame, raw
from venture_lite.errors import VentureError
from venture_lite.interpreter.free_density import DensityLine
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import Weight
from venture_lite.procedures.transforms import free_of_rows
from venture_lite.trace.nodes import site_of

WorldsAt = Callable[[np.ndarray], Worlds]
"""The one world in which a body stands at free coordinates (1, D)."""

LEAST = 1e-12
"""Beside what a logarithm is taken of."""


@dataclass(slots=True)
class BlockReading:
    """Of one block in W worlds."""

    features: Features
    # (W, H) what is added to the centres of the heads' coordinates
    shifts: np.ndarray
    # the body's frame with the heads at their references; None without a body
    normal: Normal | None = None
    # frames of the body of one state, by the coordinates of its heads
    bodies: dict[tuple[float, ...], StateNormal] = field(default_factory=dict)


class BodyDensity:
    """The density of a body in the state that the trace is in, with the derivatives by which its frame is found."""

    def __init__(self, model: Model, body: list[int], conditionals: Conditionals, worlds_at: WorldsAt) -> None:
        self._density, self._conditionals, self._worlds_at = BlockDensity(model, body), conditionals, worlds_at
        self.places, self.present, self.put = self._density.places, self._density.present, self._density.put

    def evaluate(self) -> tuple[Weight, np.ndarray]:
        weight, _ = self._density.evaluate()
        return weight, self._derivatives()[0][0]

    def hessian(self) -> np.ndarray:
        return np.asarray(self._derivatives()[1][0])

    def _derivatives(self) -> tuple[np.ndarray, np.ndarray]:
        free = self._density.present()[None]
        given = self._conditionals.single() or self._conditionals.given(self._worlds_at(free))
        return given.at(np.arange(1), free)


class BlockReader:
    """Reads one block."""

    def __init__(self, frame: BlockFrame, blanket: Blanket) -> None:
        """Raises KernelError where the body has no second derivatives in columns."""
        self.frame, self.blanket = frame, blanket
        block = blanket.block
        self.heads = [block[at] for at in frame.heads]
        self.body = [block[at] for at in frame.body]
        # (D,): sites by number
        sites = [site_of(node) for node in self.body]
        each = list(dict.fromkeys(sites))
        self._site_of_body = np.repeat([each.index(site) for site in sites], np.array(frame.body_widths, int)).astype(
            int
        )
        # what heads may be the scales of: sites of the body, then ports
        self._scaled = list(dict.fromkeys(names_of(blanket.model, self.body)))
        self._measured = []
        for key in dict.fromkeys(position.scales for position in frame.head_positions if position.scales):
            if key not in self._scaled:
                self._scaled.append(key)
                self._measured.append([port.reader for port in blanket.ports if port.key == key])
        if self.body:
            self._conditionals = Conditionals(BlockDensity(blanket.model, self.body), blanket.places)
            self._keys = [self._key(site) for site in self._conditionals.sites()]

    def answer(self) -> None:
        """Hold the derivatives that the body's frame is found by against differences of its density, if that is due. A
        proposal is weighed by the interpreter's density whatever its frame is: where they differ it fits worse."""
        blanket, answers = self.blanket, self.blanket.model.answers
        key = ("frames", *map(site_of, self.body))
        if not self.body or self.heads or not answers.due(key):
            return

        def worlds_at(free: np.ndarray) -> Worlds:
            return blanket.placed(self.frame.put(blanket.block, 1, self._of_body(free)), None)

        with answers.comparing(), contextlib.suppress(VentureError):
            line = DensityLine(blanket.model, BodyDensity(blanket.model, self.body, self._conditionals, worlds_at))
            difference = line.density_difference() or line.hessian_difference()
            answers.judge(key, f"frames of {', '.join(names_of(blanket.model, self.body[:3]))}", difference)

    def _key(self, site: int) -> PortKey:
        """That of the port at a site."""
        return next(port.key for port in self.blanket.ports if port.reader.run.site == site)

    def read(
        self, worlds: Worlds | None = None, keys: Container[PortKey] | None = None, inputs: bool = True
    ) -> BlockReading:
        """In worlds, or as the trace stands; the rows of all ports or of some. Of a body without heads the frame may be
        read without `inputs`."""
        blanket, count = self.blanket, 1 if worlds is None else worlds.count
        if not self.body:
            features = blanket.read(self.frame.put(blanket.block, count), worlds, None, keys)
            return BlockReading(features, np.zeros((count, sum(self.frame.widths))))
        given: GivenSingle | GivenWorlds
        single = self._conditionals.single() if worlds is None and not self.heads else None
        if single is not None:
            given = single
            normal, total = mode_of_single(single, float(self.frame.start[0]), float(self.frame.scale[0]))
        else:
            given = self._conditionals.given(blanket.placed(self.frame.put(blanket.block, count), worlds))
            normal, total = at_modes(given.at, np.repeat(self.frame.start[None], count, axis=0), self.frame.scale)
        if not self.heads and not inputs:
            return BlockReading(Features(np.zeros((count, 0)), {}), np.zeros((count, 0)), normal)
        put = self.frame.put(blanket.block, count, self._of_body(normal.centre))
        if not self.heads:
            derivatives = (
                self._derivatives(given, normal, total) if single is None else self._of_number(single, normal, total)
            )
            features = blanket.read(put, worlds, None, keys).joined(*derivatives)
            return BlockReading(features, np.zeros((count, 0)), normal)
        residuals = normal.centre.copy()
        where = dict(zip(self.body, np.cumsum([0, *self.frame.body_widths]).tolist(), strict=False))
        widths = dict(zip(self.body, self.frame.body_widths, strict=True))

        def meet(reader: RunReader, arguments: list[Any]) -> None:
            """What the centres are beside the locations that they are drawn around."""
            nodes = reader.run.nodes
            if reader.run.operator.name in LOCATIONS and nodes[0] in where:
                around = _locations(reader, arguments, count)
                for row, node in enumerate(nodes):
                    residuals[:, where[node] : where[node] + widths[node]] -= around[row]

        around_data: list[np.ndarray] = []

        def then(there: Worlds) -> None:
            for readers in self._measured:
                around_data.append(np.concatenate([_around(reader, there) for reader in readers], axis=1))

        features = blanket.read(put, worlds, self.heads, keys, meet, then)
        sites = self._site_of_body
        of_sites = [residuals[:, sites == at] for at in range(sites.max() + 1)]
        found, rms = _magnitudes([*of_sites, *around_data])
        return BlockReading(features.joined(found, {}), self._shifts(rms), normal)

    def input_names(self, worlds: Worlds) -> list[str]:
        """What the inputs beside rows and derivatives are that `read` finds in worlds."""
        put = self.frame.put(self.blanket.block, worlds.count)
        if not self.body:
            return self.blanket.argument_names(put, worlds)
        if not self.heads:
            own = self.numbers_of_body()
            of_frame = [*(f"mode of {name}" for name in own), *(f"log sd of {name} at its mode" for name in own)]
            return [*self.blanket.argument_names(put, worlds), *of_frame, "whether there is a mode"]
        what = ("log rms", "log mean magnitude", "log number")
        return [
            *self.blanket.argument_names(put, worlds, self.heads),
            *(f"{each} of {name} around their locations" for each in what for name in self._scaled),
        ]

    def numbers_of_body(self) -> list[str]:
        return each_number(apart(names_of(self.blanket.model, self.body)), self.frame.body_widths)

    @functools.cached_property
    def discrete_by_prior(self) -> bool:
        """Whether discrete choices of what is wide come from the prior, each where all before it in the block are
        known: not in a block of these alone, of which nothing is wide, nor where one depends on a later choice, or a
        body has its frame after all heads."""
        block, of_discrete = self.blanket.block, [position.is_discrete for position in self.frame.positions]
        if self.body or all(of_discrete) or not any(of_discrete):
            return False
        return not any(
            later in all_above(self.blanket.model.trace, [node])
            for at, node in enumerate(block)
            for later in block[at + 1 :]
        )

    def number(self) -> tuple[float, float] | None:
        """Centre and sd of the body, one number without heads, as the trace stands; None of another, and where there
        are no derivatives without worlds."""
        single = self._conditionals.single() if self.body and not self.heads and self.frame.size == 1 else None
        if single is None:
            return None
        found = mode_of_number(single, float(self.frame.start[0]), float(self.frame.scale[0]))
        return self.frame.corrected_number(found.centre, found.sd)

    def _shifts(self, rms: np.ndarray) -> np.ndarray:
        parts = [
            rms[:, [self._scaled.index(position.scales)]] if position.scales else np.zeros((len(rms), position.width))
            for position in self.frame.head_positions
        ]
        return np.concatenate(parts, axis=1)

    def _derivatives(
        self, given: GivenSingle | GivenWorlds, normal: Normal, total: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, dict[PortKey, np.ndarray]]:
        """Where the frame is, and the gradient and curvature of each port there, in the coordinates of the frame."""
        sds = np.log(np.diagonal(normal.root, axis1=1, axis2=2))
        where = np.concatenate((normal.centre, sds, normal.is_of_mode[:, None]), axis=1)
        every = np.arange(len(normal.centre))
        own = given.at(every, normal.centre, ())
        if not normal.is_of_mode.all():
            total = given.at(every, normal.centre)
        left = [all_of - part for all_of, part in zip(total, own, strict=True)]
        slopes: dict[PortKey, np.ndarray] = {}
        keys = list(dict.fromkeys(self._keys))
        for key in keys:
            found = left
            if key != keys[-1]:
                terms = [at for at, other in enumerate(self._keys) if other == key]
                with_own = given.at(every, normal.centre, terms)
                found = [sum_of - part for sum_of, part in zip(with_own, own, strict=True)]
                left = [all_of - part for all_of, part in zip(left, found, strict=True)]
            along = (normal.root.swapaxes(1, 2) @ found[0][..., None])[..., 0]
            curved = np.einsum("wij,wik,wkj->wj", normal.root, found[1], normal.root)
            read = np.concatenate((along, curved), axis=1)
            slopes[key] = read if np.isfinite(read).all() else np.nan_to_num(read)
        return where, slopes

    def _of_number(
        self, given: GivenSingle, normal: Normal, total: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, dict[PortKey, np.ndarray]]:
        """The same of one number in the state at hand, by arithmetic on numbers."""
        centre, sd, is_of_mode = float(normal.centre[0, 0]), float(normal.root[0, 0, 0]), bool(normal.is_of_mode[0])
        slopes: dict[PortKey, np.ndarray] = {}
        keys = list(dict.fromkeys(self._keys))
        with np.errstate(all="ignore"):
            own = given.along(centre, ())
            slope, curve = (float(total[0][0, 0]), float(total[1][0, 0, 0])) if is_of_mode else given.along(centre)
            left = slope - own[0], curve - own[1]
            for key in keys:
                found = left
                if key != keys[-1]:
                    with_own = given.along(centre, [at for at, other in enumerate(self._keys) if other == key])
                    found = with_own[0] - own[0], with_own[1] - own[1]
                    left = left[0] - found[0], left[1] - found[1]
                read = np.array([[sd * found[0], sd * found[1] * sd]])
                slopes[key] = read if np.isfinite(read).all() else np.nan_to_num(read)
        return np.array([[centre, np.log(sd), float(is_of_mode)]]), slopes

    def body_at(self, reading: BlockReading, coordinates: np.ndarray, worlds: Worlds | None = None) -> Normal:
        """The body's frame with the heads at some coordinates (W, H)."""
        assert reading.normal is not None
        if not self.heads:
            return self.frame.corrected(reading.normal)
        ends = np.cumsum(self.frame.widths)
        heads = dict(zip(self.heads, np.split(coordinates, ends[:-1], axis=1), strict=True))
        put = self.frame.put(self.blanket.block, len(coordinates), heads | self._of_body(reading.normal.centre))
        given = self._conditionals.given(self.blanket.placed(put, worlds))
        return self.frame.corrected(at_modes(given.at, reading.normal.centre, self.frame.scale)[0])

    def _of_body(self, free: np.ndarray) -> dict[int, np.ndarray]:
        """The coordinates (W, K) of each choice of the body, of those of all."""
        return dict(zip(self.body, np.split(free, np.cumsum(self.frame.body_widths)[:-1], axis=1), strict=True))

    def body_of_state(self, reading: BlockReading, coordinates: list[float]) -> StateNormal:
        """The same of the one state that the trace is in."""
        key = tuple(coordinates)
        if key not in reading.bodies:
            if len(reading.bodies) > 8:
                reading.bodies.clear()
            reading.bodies[key] = StateNormal(self.body_at(reading, np.array([coordinates])))
        return reading.bodies[key]

    def drawn(self) -> list[float]:
        """Coordinates of the block from the prior, in the state that the trace is in."""
        there, blanket = Worlds(self.blanket.places, 1), self.blanket
        blanket.set(there)
        found = raw(blanket, there)
        return [
            x
            for node, p in zip(blanket.block, self.frame.positions, strict=True)
            for x in p.coordinates(found[node])[0].tolist()
        ]


def _locations(reader: RunReader, arguments: list[Any], count: int) -> np.ndarray:
    """(N, W, 1), or of vectors (N, W, K): the locations that choices are drawn around."""
    at, size = LOCATIONS[reader.run.operator.name], len(reader.run.nodes)
    given = np.asarray(arguments[at], np.float64)
    return (
        given.reshape(size, count, -1) if reader.lifted[at] else np.broadcast_to(given, (size, count, given.size or 1))
    )


def _around(reader: RunReader, there: Worlds) -> np.ndarray:
    """What data are beside the locations that they are drawn around, (W, N), in free coordinates."""
    arguments = reader.outputs(there)
    free = free_of_rows(reader.run.operator.transform, reader.values(there), arguments)
    around = free.reshape(len(reader.run.nodes), there.count, -1) - _locations(reader, arguments, there.count)
    found: np.ndarray = around.swapaxes(0, 1).reshape(there.count, -1)
    return found


def _magnitudes(groups: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Of each of S groups of residuals (W, N) log rms, log mean magnitude and their log number, (W, 3 S); and the first
    alone, (W, S). Nothing of the sds of what they are of: these are the design's, nearly the same in all worlds, and a
    network would read far too much into those of another."""
    with np.errstate(over="ignore"):
        squares = np.stack([(each**2).mean(axis=1) for each in groups], axis=1)
    sizes = np.stack([np.abs(each).mean(axis=1) for each in groups], axis=1)
    rms = 0.5 * np.log(squares + LEAST)
    counts = np.broadcast_to(np.log([each.shape[1] for each in groups]), rms.shape)
    return np.concatenate((rms, np.log(sizes + LEAST), counts), axis=1), rms
