"""Training where structure depends on choices: worlds one by one, in each of which other blocks may exist.

The first worlds show which kinds of blocks come about, how their choices are spread, and whether what exists depends on
them; in the others blocks are read, in half of them with a part of their data. A single choice on which structure
depends is read at each of its values, or at several: at the middle one alone, data would show how they fit one
component and not the others. A block on which no structure depends, and whose conditional density has a gradient in the
states at hand, is read in these as where structure stays, and has the frame of the mode there.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from venture_lite.blocks.resimulated import ResimulatedWorlds, StateBlanket
from venture_lite.blocks.worlds import AT_CENTRE, Blanket, Features, PortKey, names_of
from venture_lite.engines.compiled.frame import BlockFrame, position_of
from venture_lite.engines.compiled.proposer import KindProposer, SiteTexts
from venture_lite.engines.compiled.reading import BlockReader, BlockReading
from venture_lite.engines.compiled.refusals import refuse_choices, refuse_memory
from venture_lite.engines.compiled.report import KindReport
from venture_lite.engines.compiled.state_reader import input_names, read_block, reader_at_mode
from venture_lite.engines.compiled.training import (
    ENTROPY,
    LEAST_MODES,
    MOST_FAILED,
    MOST_UNREAD,
    WORTH,
    KindExamples,
    Trainer,
    fitted,
    log_t_of,
    refuse_failed,
)
from venture_lite.errors import KernelError, LimitError, VentureError
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection, in_order
from venture_lite.interpreter.weights import log_density
from venture_lite.networks.pooled import NAMELESS, Examples, InputNames, PortRows
from venture_lite.procedures.record import Random
from venture_lite.trace.nodes import site_of

FIRST, MOST_FIRST = 0.1, 500
"""Share of the worlds that are looked at before blocks are read, and the most of them."""
MOST_READ = 8
"""Blocks of one kind that are read in each world."""
LEAST_FIRST, LEAST = 10, 100
"""A kind of which fewer blocks come up in the first worlds, or can be read, is left to the prior."""
MODES_TRIED = 40
"""Worlds in which blocks are looked at around their modes before a frame is chosen."""
MOST_KINDS = 32
"""Kinds that are learned, the most frequent ones."""


@dataclass(slots=True, eq=False)
class KindOfState:
    """What the worlds hold for the blocks whose choices stand at the same sites. Mutable: grows by worlds."""

    # of each choice what the first worlds have: free coordinates (K,), or the value of a discrete one
    drawn: list[list[Any]]
    # whether what exists, or statistics that makers keep, depend on a block of the kind
    restructures: bool = False
    frame: BlockFrame = field(default_factory=lambda: BlockFrame(()))
    # of each example: inputs beside rows, numbers of the frame, their log density by the prior, rows of ports
    fixed: list[np.ndarray] = field(default_factory=list)
    numbers: list[list[float]] = field(default_factory=list)
    log_prior: list[float] = field(default_factory=list)
    rows: list[dict[PortKey, np.ndarray]] = field(default_factory=list)
    # what is read, for a person
    names: InputNames = NAMELESS
    # of blocks that are looked at around their modes: whether there is one, and the log density of the t there
    tried: list[tuple[bool, float]] = field(default_factory=list)
    # the examples of those that are read there, in a frame of their own; None of others
    modes: KindExamples | None = None
    # whether blocks are also read at the centre, and the frame is chosen by what is learned in it
    is_in_doubt: bool = False

    @property
    def at_points(self) -> bool:
        """Whether a block is read at several of its values."""
        return self.restructures and len(self.drawn) == 1

    @property
    def count(self) -> int:
        """How many examples there are."""
        return max(len(self.numbers), 0 if self.modes is None else self.modes.count)

    @property
    def size(self) -> int:
        """How many numbers are kept."""
        inputs = sum(each.size for each in self.fixed) + sum(part.size for rows in self.rows for part in rows.values())
        return inputs + sum(map(len, self.numbers)) + (0 if self.modes is None else self.modes.size)

    def keep(self, features: Features, numbers: list[float], log_prior: float) -> None:
        fixed = features.fixed[0]
        if self.fixed and len(fixed) != len(self.fixed[0]):
            return
        self.fixed.append(fixed)
        self.numbers.append(numbers)
        self.log_prior.append(log_prior)
        self.rows.append({key: rows[0] for key, rows in features.ports.items()})

    def examples(self) -> tuple[Examples, dict[PortKey, int]]:
        """What networks read, and how long the rows of each port are: as long as its first ones."""
        widths: dict[PortKey, int] = {}
        for rows in self.rows:
            for key, part in rows.items():
                widths.setdefault(key, part.shape[1])
        ports = []
        for key, width in widths.items():
            none = np.zeros((0, width))
            parts = [part if (part := rows.get(key, none)).shape[1] == width else none for rows in self.rows]
            ports.append(PortRows(np.concatenate(parts), np.array([len(part) for part in parts], np.intp)))
        return Examples(np.array(self.fixed), tuple(ports)), widths


@dataclass(slots=True)
class Failures:
    """What went wrong in worlds. Mutable."""

    count: int = 0
    # the first, if there is one
    first: list[VentureError] = field(default_factory=list)

    def note(self, error: VentureError) -> None:
        self.count += 1
        self.first = self.first or [error]


class StateTrainer:
    """Trains a network for each kind of block that a selection may move in some world."""

    def __init__(
        self,
        model: Model,
        selection: Selection,
        worlds: int,
        components: int,
        hidden: int,
        frame: str | None,
        rng: np.random.Generator,
        refusal: KernelError,
    ) -> None:
        """`refusal` says why worlds are not drawn in columns. Raises KernelError for a block whose choices have no
        numbers, before worlds are drawn."""
        self.frame, self._refusal = frame, refusal
        # asked at each step of a training
        self.poll = model.poll
        self.model, self.selection, self.worlds, self.rng = model, selection, worlds, rng
        self.components, self.hidden = components, hidden
        self._kinds: dict[SiteTexts, KindOfState] = {}
        # sites of all blocks, and of those of which none was learned
        self._seen: set[str] = set()
        self.rare: SiteTexts = ()
        self._drawing = ResimulatedWorlds(model)
        # of worlds that could not be drawn, and of blocks that could not be read
        self._failed, self._unread = Failures(), Failures()
        # how many blocks of each kind there are in the state at hand
        self._here: dict[SiteTexts, int] = {}
        for sites, count, blocks in self._blocks():
            self._here[sites] = count
            refuse_choices(model, blocks)

    def run(self) -> tuple[dict[SiteTexts, KindProposer], list[KindReport]]:
        start = time.process_time()
        self._draw(min(max(int(FIRST * self.worlds), LEAST), MOST_FIRST), self._look)
        counts = {sites: len(kind.drawn[0]) for sites, kind in self._kinds.items()}
        frequent = sorted((sites for sites in counts if counts[sites] >= LEAST_FIRST), key=lambda sites: -counts[sites])
        self._kinds = {sites: self._kinds[sites] for sites in frequent[:MOST_KINDS]}
        if self.frame != "prior":
            self._draw(MODES_TRIED, self._try_modes)
            for sites, kind in self._kinds.items():
                self._decide(sites, kind)
        self._draw(1, self._read)
        refuse_memory(self.model, sum(kind.size for kind in self._kinds.values()), self.worlds)
        self._draw(self.worlds - 1, self._read)
        refuse_failed(self._unread.first, self._unread.count, self.worlds, MOST_UNREAD, AT_CENTRE)
        seconds = time.process_time() - start
        found: dict[SiteTexts, KindProposer] = {}
        reports = []
        for sites, kind in self._kinds.items():
            if kind.count >= LEAST:
                found[sites], report = self._fit(sites, kind, seconds)
                reports.append(report)
        if not found:
            where = f"at least {LEAST} of {self.worlds:,} worlds"
            raise KernelError(f"no block of {self.selection.scope} comes up in {where}", None, "more 'worlds")
        learned = set(itertools.chain.from_iterable(found))
        self.rare = tuple(sorted(self._seen - learned))
        return found, reports

    def _draw(self, count: int, visit: Callable[[], None]) -> None:
        for _ in range(count):
            self.poll()
            try:
                with self._drawing.world(self.rng):
                    visit()
            except (KernelError, LimitError):
                raise
            except VentureError as error:
                self._failed.note(error)
                refuse_failed(self._failed.first, self._failed.count, self.worlds, MOST_FAILED, "")

    def _blocks(self) -> Iterable[tuple[SiteTexts, int, list[list[int]]]]:
        """Of each kind that there is in this state how many blocks, and some of them."""
        selection, kinds = self.selection, dict[tuple[int, ...], list[list[int]]]()
        found = selection.found()
        if selection.selector.kind in ("all", "key", "range"):
            blocks = selection.in_order()
        else:
            blocks = [found.members(key) for key in found.all_keys()]
        for block in filter(None, blocks):
            kinds.setdefault(tuple(sorted(map(site_of, block))), []).append(block)
        for alike in kinds.values():
            ordered = [in_order(self.model, block) for block in self._some(alike)]
            sites = names_of(self.model, ordered[0])
            yield sites, len(alike), [block for block in ordered if names_of(self.model, block) == sites]

    def _some(self, blocks: list[list[int]]) -> list[list[int]]:
        if len(blocks) <= MOST_READ:
            return blocks
        return [blocks[at] for at in self.rng.choice(len(blocks), MOST_READ, replace=False).tolist()]

    def _raw(self, node: int) -> Any:
        """Free coordinates of a choice, or the value of a discrete one."""
        operator, arguments, value = self.model.trace.choice(node)
        transform = getattr(operator, "transform", None)
        return value if transform is None else np.ravel(transform.to_free(value, arguments))

    def _look(self) -> None:
        """See in a world which kinds there are, and what is drawn of them."""
        for sites, _, blocks in self._blocks():
            if not self._seen.issuperset(sites):
                refuse_choices(self.model, blocks)
                self._seen.update(sites)
            kind = self._kinds.setdefault(sites, KindOfState([[] for _ in sites]))
            kind.restructures |= StateBlanket(self.model, blocks[0]).restructures
            for block in blocks:
                for node, drawn in zip(block, kind.drawn, strict=True):
                    drawn.append(self._raw(node))

    def _read(self) -> None:
        """Keep what a world holds for the kinds that the first worlds showed."""
        for sites, _, blocks in self._blocks():
            self._seen.update(sites)
            kind = self._kinds.get(sites)
            if kind is None:
                continue
            self._set_frame(kind, blocks[0])
            for block in blocks:
                if kind.modes is not None:
                    self._read_at_mode(kind.modes, block)
                if kind.modes is None or kind.is_in_doubt:
                    self._read_block(kind, block)

    def _set_frame(self, kind: KindOfState, block: list[int]) -> None:
        if not kind.frame.positions:
            pairs = zip(block, kind.drawn, strict=True)
            kind.frame = BlockFrame([position_of(self.model, node, _column(drawn)) for node, drawn in pairs])

    # ------------------------------------------------------------------------------------------- around the modes

    def _try_modes(self) -> None:
        """See in a world whether blocks have modes, and how they lie around these."""
        for sites, _, blocks in self._blocks():
            kind = self._kinds.get(sites)
            if kind is None or kind.restructures:
                continue
            self._set_frame(kind, blocks[0])
            for block in blocks:
                found = self._at_mode(around_modes(kind.frame), block)
                if found is not None:
                    _, reading, numbers, _ = found
                    assert reading.normal is not None
                    kind.tried.append((bool(reading.normal.is_of_mode[0]), float(log_t_of(numbers[None])[0])))

    def _decide(self, sites: SiteTexts, kind: KindOfState) -> None:
        """Take the frame of the mode where there is one in most states; where draws are unlike those of a normal there,
        what is learned decides.

        Raises KernelError where that frame was asked for, and blocks as there are now cannot have it."""
        wanted = self.frame == "newton"
        if not kind.tried:
            if wanted and sites in self._here:
                raise self._refusal
            return
        share, density = np.mean(kind.tried, axis=0)
        if wanted or share >= LEAST_MODES:
            kind.modes = KindExamples(self, [], None)
            kind.modes.frame = around_modes(kind.frame)
            kind.is_in_doubt = not wanted and -density > (ENTROPY + WORTH) * kind.modes.frame.size

    def _at_mode(
        self, frame: BlockFrame, block: list[int]
    ) -> tuple[BlockReader, BlockReading, np.ndarray, float] | None:
        """What reads a block of which all is a body, what is read, its numbers (D,) and their log density by the prior;
        None where it has no such frame in this state."""
        try:
            reader = reader_at_mode(self.model, frame, block)
            if reader is None:
                return None
            reading = reader.read(None, [port.key for port in reader.blanket.ports])
        except (KernelError, LimitError):
            return None
        except VentureError as error:
            self._unread.note(error)
            return None
        assert reading.normal is not None
        free: list[float] = []
        total = float(reading.normal.log_volume()[0])
        for node, position in zip(block, frame.positions, strict=True):
            operator, arguments, value = self.model.trace.choice(node)
            assert isinstance(operator, Random)
            free += position.of_value(operator, value, arguments)
            total += log_density(self.model.trace, node) + position.log_jacobian(operator, value, arguments)
        if len(free) != frame.size or not np.isfinite(free).all():
            return None
        return reader, reading, reading.normal.numbers(np.array([free]))[0], total

    def _read_at_mode(self, modes: KindExamples, block: list[int]) -> None:
        found = self._at_mode(modes.frame, block)
        if found is not None and np.isfinite(found[2]).all():
            modes.add_state(*found)

    # ----------------------------------------------------------------------------------------------------- at centres

    def _read_block(self, kind: KindOfState, block: list[int]) -> None:
        numbers: list[float] = []
        total = 0.0
        for node, position in zip(block, kind.frame.positions, strict=True):
            operator, arguments, value = self.model.trace.choice(node)
            if not isinstance(operator, Random):
                return
            coordinates = np.array(position.of_value(operator, value, arguments))
            if len(coordinates) != position.width or (position.is_discrete and coordinates[0] < 0.0):
                return
            numbers += position.numbers(coordinates, 0.0).tolist()
            total += log_density(self.model.trace, node) + position.log_volume()
            total += position.log_jacobian(operator, value, arguments)
        if not np.isfinite(numbers).all():
            return
        try:
            features = read_block(self.model, block, kind.frame, kind.at_points, self.rng)
        except (KernelError, LimitError):
            raise
        except VentureError as error:
            self._unread.note(error)
            return
        if features is None:
            return
        kind.keep(features, numbers, total)
        if not set(features.ports).issubset(key for key, _ in kind.names.ports):
            more = input_names(self.model, block, kind.frame, kind.at_points)
            kind.names = InputNames(more.fixed, tuple((dict(more.ports) | dict(kind.names.ports)).items()))

    def _fit(self, sites: SiteTexts, kind: KindOfState, seconds: float) -> tuple[KindProposer, KindReport]:
        if kind.modes is None or kind.modes.count < LEAST:
            return self._fit_at_centre(sites, kind, seconds)
        found = self._fit_at_modes(sites, kind.modes, seconds)
        if not kind.is_in_doubt or len(kind.numbers) < LEAST:
            return found
        other = self._fit_at_centre(sites, kind, seconds)
        return found if found[1].gain >= other[1].gain else other

    def _fit_at_centre(self, sites: SiteTexts, kind: KindOfState, seconds: float) -> tuple[KindProposer, KindReport]:
        examples, widths = kind.examples()
        ports, reading = tuple(widths), "points" if kind.at_points else "centre"
        bare = KindProposer(sites, kind.frame, ports, (), None, (), ports, reading, names=kind.names)
        proposer, fitted_to = fitted(self, bare, examples, np.array(kind.numbers))
        terms = -np.array(kind.log_prior)[fitted_to.held_out]
        report = KindReport(
            sites,
            self._here.get(sites, 0),
            self.worlds,
            self._failed.count,
            seconds,
            fitted_to.seconds,
            fitted_to.parameters,
            fitted_to.loss,
            float(np.mean(terms)) if np.isfinite(terms).all() else math.inf,
            kind.frame.kind,
            tuple((key, float(port.counts.mean())) for key, port in zip(widths, examples.ports, strict=True)),
            fitted_to.clipped,
        )
        return proposer, report

    def _fit_at_modes(self, sites: SiteTexts, modes: KindExamples, seconds: float) -> tuple[KindProposer, KindReport]:
        proposer, fitted_to = modes.fit(sites)
        proposer = replace(proposer, reading="modes")
        first = sites, self._here.get(sites, 0), self.worlds, self._failed.count, seconds
        report = KindReport(
            *first, 0.0, 0, math.nan, math.nan, modes.frame.kind, modes.ports_told(proposer.known), 0
        )  # fmt: skip
        if fitted_to is None:
            return proposer, report
        return proposer, replace(
            report,
            seconds_of_training=fitted_to.seconds,
            parameters=fitted_to.parameters,
            loss=fitted_to.loss,
            prior_loss=modes.prior_loss(fitted_to.held_out),
            clipped=fitted_to.clipped,
        )


def around_modes(frame: BlockFrame) -> BlockFrame:
    """A frame of the prior, all of it a body."""
    return BlockFrame([replace(each, is_head=False, reference=each.centre) for each in frame.positions])


def _column(drawn: Sequence[Any]) -> np.ndarray:
    """Draws of one choice, (N, K) or (N,), of vectors those that are as long as the first."""
    if not isinstance(drawn[0], np.ndarray):
        return np.array(drawn)
    return np.array([each for each in drawn if len(each) == len(drawn[0])])


def trainer_of(
    model: Model,
    selection: Selection,
    worlds: int,
    components: int,
    hidden: int,
    frame: str | None,
    rng: np.random.Generator,
) -> Trainer | StateTrainer:
    """Worlds in columns where structure stays, else one by one."""
    blocks = [in_order(model, nodes) for nodes in selection.in_order() if nodes]
    refuse_choices(model, blocks)
    try:
        trainer = Trainer(model, blocks, worlds, components, hidden, frame, rng)
        for alike in trainer.kinds.values():
            Blanket(model, alike[0], trainer.maker.places)
    except KernelError as error:
        return StateTrainer(model, selection, worlds, components, hidden, frame, rng, error)
    return trainer
