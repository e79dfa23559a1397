"""The coordinates in which proposals of a block are learned: of each choice its values as numbers of size one.

A continuous choice stands at z = (free(x) - c) / s, `free` being the transform of its distribution, so that nothing is
proposed outside a support. A discrete choice stands at the position of its value among those that it can have, or among
the counts that draws reach; a count beyond these, where its distribution has a distribution function, at one more, and
which one it is comes from the prior cut to that tail.

*Heads* have their c and s from draws of the prior: the median, and half the distance between the 16% and the 84%
quantile. The *body* has the normal at the mode of its conditional density, z = L^-1 (free(x) - c) for all of it
together. Where every choice is a head, the frame is the prior's. Otherwise the heads are those that others of the block
read elsewhere than in a location, a scale of effects say: given these the body has a mode, together with them it need
not have one. And those that data read elsewhere than in a location, if the block has many other choices for these data:
the residuals at a joint mode of p locations are as if of n - p data, so the log of their scale is p / 2n too low there,
p / sqrt(2 n) of its sds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from venture_lite.blocks.conditionals import Normal
from venture_lite.blocks.cut_draws import drawn_beyond, has_tail, log_tail
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.worlds import Blanket, RunReader, Worlds, names_of, port_key
from venture_lite.engines.compiled.differences import described
from venture_lite.errors import KernelError
from venture_lite.interpreter.model import Model
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import POSITIVE, Elementwise, free_of_rows, values_of_rows
from venture_lite.trace.nodes import node_at, site_of

MOST_COUNT = 200
"""Counts above are one of the tail, or left to the prior."""
MOST_LEARNED = 0.5
"""Of the draws of a count, so many must lie below."""
SHARE = 0.999
"""Of the draws of a count, so many lie in what is learned."""
REFERENCE = 0.9
"""The quantile of heads' priors at which the body's frame is read: wide scales pool little."""
MOST_BODY = 1000
"""Choices of a body."""

MOST_SHIFT = 0.5
"""Sds by which the joint mode may have a scale of data too low, for it to be in the body."""

LOCATIONS = {
    "normal": 0, "student_t": 1, "laplace": 0, "cauchy": 0, "logistic_dist": 0, "lognormal": 0,
    "multivariate_normal": 0, "multivariate_normal_cholesky": 0,
}  # fmt: skip
"""Distribution -> which of its arguments moves the free coordinates as it is. The next one is the scale of that, or a
matrix that is no scale."""
MATRICES = ("multivariate_normal", "multivariate_normal_cholesky")


@dataclass(frozen=True, slots=True)
class Position:
    """One choice of a block."""

    # as written, for a person
    text: str
    distribution: str
    # (K,) of a continuous choice, of a number K = 1; none of a discrete one
    centre: np.ndarray
    scale: np.ndarray
    # of a discrete choice: its values in order, bool, int or float; none of a continuous one
    values: np.ndarray
    is_number: bool = True
    # whether its numbers are learned before the body has a frame; then where it stands when that is read
    is_head: bool = True
    reference: np.ndarray = field(default_factory=lambda: np.zeros(0))
    # of a head that is a scale: of which site of the body, by name, or of the choices of which port; else none
    scales: str = ""
    # of counts, whether all beyond the values are one more value
    has_tail: bool = False

    @property
    def is_discrete(self) -> bool:
        return len(self.values) > 0

    @property
    def size(self) -> int:
        """How many values a discrete choice is learned to have, the tail one of them."""
        return len(self.values) + self.has_tail

    @property
    def width(self) -> int:
        """How many numbers the choice is in the frame."""
        return 1 if self.is_discrete else len(self.centre)

    def coordinates(self, raw: np.ndarray) -> np.ndarray:
        """What worlds hold of the choice as (W, width): free coordinates, or the positions of values, -1 of others."""
        if not self.is_discrete:
            return raw
        last = len(self.values) - 1
        at = np.minimum(np.searchsorted(self.values, raw), last)
        beyond = last + 1 if self.has_tail else -1
        found = np.where(self.values[at] == raw, at, np.where(raw > self.values[last], beyond, -1))
        return found[:, None].astype(np.float64)

    def of_value(self, record: Random, value: Any, arguments: Sequence[Any]) -> list[float]:
        """The same of one value."""
        if self.is_discrete:
            found: list[float] = self.coordinates(np.array([value]))[0].tolist()
            return found
        assert record.transform is not None
        free = record.transform.to_free(value, tuple(arguments))
        if self.is_number:
            return [float(free)]
        coordinates: list[float] = np.ravel(free).tolist()
        return coordinates

    def is_beyond(self, coordinates: Sequence[float]) -> bool:
        """Whether these are those of counts in the tail, which have no value of their own."""
        return self.has_tail and coordinates[0] == len(self.values)

    def beyond(self, record: Random, arguments: Sequence[Any], rng: np.random.Generator) -> int | None:
        """A count in the tail, from the prior; None where that has none."""
        return drawn_beyond(rng, record, int(self.values[-1]), arguments)

    def value(self, record: Random, coordinates: Sequence[float], arguments: Sequence[Any]) -> Any:
        """The value at some coordinates."""
        if self.is_discrete:
            return self.values[int(coordinates[0])].item()
        assert record.transform is not None
        free = coordinates[0] if self.is_number else np.asarray(coordinates)
        return record.transform.from_free(free, tuple(arguments))

    def log_jacobian(self, record: Random, value: Any, arguments: Sequence[Any]) -> float:
        """log |d value / d coordinates| at a value; of a count in the tail the logarithm of how much more likely the
        whole tail is by the prior than the count: what is proposed for the tail is so shared among its counts."""
        if self.has_tail and value > self.values[-1]:
            own = record.log_density(value, *arguments)
            return log_tail(record, int(self.values[-1]), arguments) - own if own > -math.inf else 0.0
        if record.transform is None:
            return 0.0
        return record.transform.log_jacobian(value, tuple(arguments))

    def numbers(self, coordinates: np.ndarray, shift: Any) -> np.ndarray:
        """Coordinates (..., width) of a head as numbers of the frame, moved by what the state says of its centre."""
        return coordinates if self.is_discrete else (coordinates - self.centre - shift) / self.scale

    def log_volume(self) -> float:
        """log |d coordinates / d numbers| of a head."""
        return 0.0 if self.is_discrete else float(np.log(self.scale).sum())


class BlockFrame:
    """The positions of a block's choices, in the order of the block."""

    def __init__(
        self, positions: Sequence[Position], mean: np.ndarray | None = None, root: np.ndarray | None = None
    ) -> None:
        """`mean` (D,) and `root` (D, D) are the mean of the body's numbers and a factor of their covariance, where a
        round has found that these are not those of a standard normal."""
        self.positions, self.mean, self.root = tuple(positions), mean, root
        # which of the block's choices these are
        self.heads = [at for at, position in enumerate(positions) if position.is_head]
        self.body = [at for at, position in enumerate(positions) if not position.is_head]
        self.head_positions = [positions[at] for at in self.heads]
        # of heads, and of all
        self.widths = [position.width for position in self.head_positions]
        self.width = sum(position.width for position in positions)
        # of the body (D,), as its prior has them
        self.start, self.scale = [
            np.concatenate([np.zeros(0), *[getattr(positions[at], part) for at in self.body]])
            for part in ("centre", "scale")
        ]
        # of the coordinates of all choices, those of heads and those of the body
        starts = np.cumsum([0, *[position.width for position in positions]]).tolist()
        self.head_coordinates = [starts[at] + k for at in self.heads for k in range(positions[at].width)]
        self.body_coordinates = [starts[at] + k for at in self.body for k in range(positions[at].width)]
        # log |d coordinates / d numbers| of the heads
        self.log_volume = sum(position.log_volume() for position in self.head_positions)
        # whether any choice is no discrete one
        self.has_numbers = any(not position.is_discrete for position in positions)
        # how many numbers each choice of the body is
        self.body_widths = [positions[at].width for at in self.body]

    @property
    def kind(self) -> str:
        return "newton" if self.body else "prior"

    @property
    def size(self) -> int:
        """The numbers of the body."""
        return len(self.start)

    def corrected(self, normal: Normal) -> Normal:
        """The body's frame where the mode has it elsewhere."""
        if self.mean is None:
            return normal
        return Normal(normal.free(self.mean[None]), normal.root @ self.root, normal.is_of_mode)

    def corrected_number(self, centre: float, sd: float) -> tuple[float, float]:
        """The same of one number."""
        if self.mean is None or self.root is None:
            return centre, sd
        return centre + sd * float(self.mean[0]), sd * float(self.root[0, 0])

    def put(self, block: Sequence[int], count: int, free: dict[int, np.ndarray] | None = None) -> Any:
        """What puts the choices of a run, in so many worlds, at coordinates (W, width), or else at those at which the
        frame is read."""
        of, elsewhere = dict(zip(block, self.positions, strict=True)), free or {}

        def at(node: int) -> np.ndarray:
            found = elsewhere.get(node)
            return np.repeat(of[node].reference[None], count, axis=0) if found is None else found

        def put(reader: RunReader, arguments: list[Any]) -> np.ndarray:
            own = [node_at(reader.run.site, row) for row in reader.run.rows.tolist()]
            coordinates = [at(node) for node in own]
            if of[own[0]].is_discrete:
                pairs = zip(own, coordinates, strict=True)
                return np.concatenate([of[node].values[each[:, 0].astype(int)] for node, each in pairs])
            joined = np.concatenate(coordinates)
            joined = joined[:, 0] if of[own[0]].is_number else joined
            return values_of_rows(reader.run.operator.transform, joined, arguments)

        return put


def prior_frame(model: Model, blankets: Sequence[Blanket], worlds: Worlds) -> BlockFrame:
    """From what the worlds hold of the blocks of one kind. Raises KernelError for a choice that cannot be learned."""
    drawn: list[list[np.ndarray]] = []
    for blanket in blankets:
        found = raw(blanket, worlds)
        drawn.append([found[node] for node in blanket.block])
    pooled = [np.concatenate(parts) for parts in zip(*drawn, strict=True)]
    return BlockFrame([position_of(model, node, draws) for node, draws in zip(blankets[0].block, pooled, strict=True)])


def with_body(frame: BlockFrame, blanket: Blanket, worlds: Worlds) -> BlockFrame:
    """The frame in which what has a mode given the heads is a body, as one block of a kind shows it. Raises KernelError
    where nothing has, or derivatives are missing."""
    model, block = blanket.model, blanket.block
    found = raw(blanket, worlds)
    heads = heads_of(model, block, frame)
    bodies = {name for node, name in zip(block, names_of(model, block), strict=True) if site_of(node) not in heads}
    positions = []
    for node, position in zip(block, frame.positions, strict=True):
        reader = heads.get(site_of(node))
        if reader is None:
            positions.append(replace(position, is_head=False, reference=position.centre))
            continue
        scales = ""
        if reader.is_scaled and _transform(model, node) is POSITIVE and (reader.is_port or reader.name in bodies):
            scales = reader.name
        if not position.is_discrete and not reader.is_port:
            position = replace(position, reference=np.quantile(found[node], REFERENCE, axis=0))
        # the body has a frame at a value of each head, and counts in the tail have none
        positions.append(replace(position, scales=scales, has_tail=False))
    body = [at for at, position in enumerate(positions) if not position.is_head]
    with_body = BlockFrame(positions)
    if not body or with_body.size > MOST_BODY:
        raise _refused(model, block[0], f"the body of the block has {with_body.size} numbers", "'frame prior")
    return with_body


def _transform(model: Model, node: int) -> Any:
    return getattr(model.trace.application(node)[0], "transform", None)


class HeadReader(NamedTuple):
    """What reads a head elsewhere than in a location."""

    # a site of the block, or a port, as networks know it
    name: str = ""
    is_port: bool = False
    # whether the head is its scale
    is_scaled: bool = False


def heads_of(model: Model, block: Sequence[int], frame: BlockFrame) -> dict[int, HeadReader]:
    """Sites of heads, each with what makes it one."""
    sites: dict[int, list[int]] = {}
    for node in block:
        sites.setdefault(site_of(node), []).append(node)
    found: dict[int, HeadReader] = {}
    for site, nodes in sites.items():
        position = frame.positions[block.index(nodes[0])]
        if position.is_discrete or not isinstance(_transform(model, nodes[0]), Elementwise):
            found[site] = HeadReader()
            continue
        _, moved, terms = BlockDensity(model, nodes).passes()
        for kind in [*(kind for kind, _, _ in moved if kind.coordinates is not None), *terms]:
            is_port = kind.site not in sites
            read = {at for at, ask in enumerate(kind.asked) if ask}
            location = LOCATIONS.get(kind.operator.name)
            shift = (frame.width - len(nodes)) / math.sqrt(2.0 * kind.count)
            if read <= {location} or (is_port and (location is None or shift <= MOST_SHIFT or site in found)):
                continue
            (name,) = names_of(model, [node_at(kind.site, 0)])
            name = port_key(name, kind.operator) if is_port else name
            is_scaled = location is not None and location + 1 in read and kind.operator.name not in MATRICES
            found[site] = HeadReader(name, is_port, is_scaled)
    return found


def _refused(model: Model, node: int, reason: str, hint: str) -> KernelError:
    code, slot, row = model.trace.decode(node)
    return KernelError(reason, code.slots[slot].span, hint, model.trace.call_chain(code, slot, row))


def raw(blanket: Blanket, worlds: Worlds) -> dict[int, np.ndarray]:
    """Of each choice what the worlds hold: its free coordinates (W, K), or the values (W,) of a discrete one."""
    found: dict[int, np.ndarray] = {}
    for reader in blanket.choices:
        values, record = reader.values(worlds), reader.run.operator
        if record.transform is not None:
            values = free_of_rows(record.transform, values, reader.outputs(worlds))
        parts = values.reshape(len(reader.run.rows), worlds.count, *values.shape[1:])
        for row, part in zip(reader.run.rows.tolist(), parts, strict=True):
            found[node_at(reader.run.site, row)] = part
    return found


def position_of(model: Model, node: int, draws: np.ndarray) -> Position:
    """Of a choice that stands, from draws of its kind: free coordinates (N, K), or the values (N,) of a discrete one.
    Raises KernelError for a choice that cannot be learned."""
    trace = model.trace
    code, slot, row = trace.decode(node)
    span, (record, arguments) = code.slots[slot].span, trace.application(node)
    assert isinstance(record, Random)
    text = " ".join(span.text.split()) if span is not None else record.name
    none = np.zeros(0)
    if record.transform is not None:
        low, centre, high = np.quantile(draws, (0.16, 0.5, 0.84), axis=0)
        scale = np.where(high > low, 0.5 * (high - low), 1.0)
        # a vector of two probabilities has one coordinate, too
        is_number = not isinstance(trace.value(node), np.ndarray)
        return Position(text, described(record), centre, scale, none, is_number, reference=centre)
    support = record.support(*arguments) if record.support is not None else None
    if draws.dtype.kind not in "fbiu" or (
        support is not None and not all(isinstance(x, (int, float)) for x in support)
    ):
        reason = f"a proposal for {record.name} cannot be learned: its values are no numbers"
        raise KernelError(reason, span, "gibbs, or mh", trace.call_chain(code, slot, row))
    values, is_cut = np.unique(draws), False
    if len(values) > MOST_COUNT or record.support is None:
        is_cut = has_tail(record)
        values = np.arange(min(int(np.quantile(draws, SHARE)) + 1, MOST_COUNT) + 1)
    if np.isin(draws, values).mean() < MOST_LEARNED:
        reason = f"a proposal for {record.name} cannot be learned: most of its counts are above {MOST_COUNT}"
        raise KernelError(reason, span, "mh, or a proposal of your own", trace.call_chain(code, slot, row))
    middle = np.array([(len(values) - 1.0) // 2.0])
    return Position(text, described(record), none, none, values, reference=middle, has_tail=is_cut)
