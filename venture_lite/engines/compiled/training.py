"""Training of the proposers of one action: worlds, what each kind of block reads of them, and the fit."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from venture_lite.blocks.conditionals import Normal
from venture_lite.blocks.prior import log_prior
from venture_lite.blocks.worlds import AT_CENTRE, Blanket, Box, Features, Port, PortKey, WorldMaker, Worlds, names_of
from venture_lite.engines.compiled.frame import BlockFrame, Position, prior_frame, raw, with_body
from venture_lite.engines.compiled.proposer import MOST_LEARNED_BODY, KindProposer, SiteTexts
from venture_lite.engines.compiled.ranges import ranges_of
from venture_lite.engines.compiled.reading import BlockReader, BlockReading
from venture_lite.engines.compiled.refusals import refuse_memory
from venture_lite.engines.compiled.report import KindReport
from venture_lite.engines.compiled.standing import log_t
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder, absorbing_rows
from venture_lite.networks.conditional import Conditional, Layout
from venture_lite.networks.fitting import FitReport, fit
from venture_lite.networks.heads import HALF_LOG_TWO_PI, Categories, Head, Normals
from venture_lite.networks.pooled import Examples, InputNames, PortRows

CHUNK = 4096
"""Worlds drawn at once."""
MOST_VALUES = 2_000_000
"""Rows of a run times worlds drawn at once."""
MOST_BLOCKS = 16
"""Blocks of one kind that are read in each chunk of worlds; those with a body share its worlds, as modes take long."""
MOST_ROWS = 64
"""A port of more rows speaks to a kind with a body by its derivatives alone."""
NAMED = 8
"""Worlds in which inputs are named; in one, an argument may have no value."""
LEAST_MODES = 0.5
"""Share of worlds in which a body must have a mode, unless that frame was asked for."""
TRIAL, TRIAL_STEPS = 2000, 500
"""Worlds on which two frames are compared, and steps of training in each."""
ENTROPY = 0.5 + HALF_LOG_TWO_PI
"""Of a standard normal."""
WORTH = 0.2
"""Nats by which, for each number of several, a network must be better than the t in the frame to be kept."""
FRAMES = ("prior", "newton")
MOST_FAILED = 0.01
"""Share of worlds that may be impossible, and are left out."""
MOST_UNREAD = 0.5
"""Share of worlds in which what reads a block may have no value with the block at the centre of its frame."""


class Trainer:
    """Trains a network for each kind of block, on worlds that all kinds share."""

    def __init__(
        self,
        model: Model,
        blocks: Sequence[list[int]],
        worlds: int,
        components: int,
        hidden: int,
        frame: str | None,
        rng: np.random.Generator,
    ) -> None:
        """`frame` is one of FRAMES, or None for the first that there is from the right."""
        # asked at each step of a training
        self.poll = model.poll
        self.model, self.worlds, self.rng = model, worlds, rng
        self.frame = frame
        self.rare: SiteTexts = ()
        self.components, self.hidden = components, hidden
        self.kinds: dict[SiteTexts, list[list[int]]] = {}
        for block in blocks:
            self.kinds.setdefault(names_of(model, block), []).append(block)
        every = [node for block in blocks for node in block]
        children = absorbing_rows(model.trace, Builder(model.trace).build(every))
        self.maker = WorldMaker(model, [*every, *children])

    def run(self) -> tuple[dict[SiteTexts, KindProposer], list[KindReport]]:
        start = time.process_time()
        kinds = {sites: KindExamples(self, blocks, self.frame) for sites, blocks in self.kinds.items()}
        failed = unread = drawn = 0
        errors: list[VentureError] = []
        chunk = min(CHUNK, max(64, MOST_VALUES // self.maker.most_rows))
        while drawn < self.worlds and not (drawn and all(kind.is_settled for kind in kinds.values())):
            worlds = self.maker.draw(min(chunk, self.worlds - drawn), self.rng)
            drawn += worlds.count
            bad = int(worlds.failed.sum())
            failed, errors = failed + bad, errors or worlds.errors
            refuse_failed(errors, failed, self.worlds, MOST_FAILED, "")
            if drawn == worlds.count:
                refuse_memory(self.model, sum(kind.begin(worlds) for kind in kinds.values()), self.worlds)
            for kind in kinds.values():
                kind.add(worlds)
            unread, errors = unread + int(worlds.failed.sum()) - bad, errors or worlds.errors
            refuse_failed(errors, unread, self.worlds, MOST_UNREAD, AT_CENTRE)
        seconds = time.process_time() - start
        found, reports = {}, []
        for sites, kind in kinds.items():
            found[sites], fitted = kind.fit(sites)
            ports = kind.ports_told(found[sites].known)
            reports.append(self._report(kind, drawn, failed + unread + kind.beyond, seconds, fitted, ports))
        return found, reports

    def run_in(self, box: Box) -> tuple[dict[SiteTexts, KindProposer], list[KindReport]]:
        """The same on worlds in which some choices are drawn from their distributions cut to intervals, and all else
        forward from them."""
        self.maker.box = box
        try:
            return self.run()
        finally:
            self.maker.box = {}

    def _report(
        self,
        kind: KindExamples,
        worlds: int,
        failed: int,
        seconds: float,
        fitted: FitReport | None,
        ports: tuple[tuple[str, float], ...],
    ) -> KindReport:
        first = names_of(self.model, kind.blocks[0]), len(kind.blocks), worlds, failed, seconds
        if fitted is None:
            return KindReport(*first, 0.0, 0, math.nan, math.nan, kind.frame.kind, ports, 0)
        losses = fitted.loss, kind.prior_loss(fitted.held_out)
        return KindReport(*first, fitted.seconds, fitted.parameters, *losses, kind.frame.kind, ports, fitted.clipped)


class KindExamples:
    """What the worlds hold for the blocks of one kind. Mutable: grows by chunks."""

    def __init__(self, trainer: ExampleSettings, blocks: list[list[int]], frame: str | None) -> None:
        """`frame` as the trainer's."""
        self._places = trainer.maker.places if isinstance(trainer, Trainer) else None
        self.trainer, self.blocks, self._wanted = trainer, blocks, frame
        self._readers: dict[int, BlockReader] = {}
        self.frame = BlockFrame(())
        self.ports: tuple[PortKey, ...] = ()
        # what inputs beside rows are, where one of the first worlds tells, and what the numbers of a row of each port
        self._names: list[str] = []
        self._columns: dict[PortKey, tuple[str, ...]] = {}
        # of each port how many inputs a row has, and whether its choices have evidence; those read by derivatives alone
        self._widths: dict[PortKey, tuple[int, bool]] = {}
        self._many: dict[PortKey, None] = {}
        self._fixed: list[np.ndarray] = []
        self._rows: dict[PortKey, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._slopes: list[dict[PortKey, np.ndarray]] = []
        self._numbers: list[np.ndarray] = []
        # worlds that are left out, as numbers of the block are beyond the floats
        self.beyond = 0
        # of each example, by the numbers of the frame
        self._log_prior: list[np.ndarray] = []

    @property
    def is_settled(self) -> bool:
        """Whether more worlds teach nothing: the frame is all there is."""
        frame = self.frame
        return bool(frame.positions) and not frame.heads and frame.size > MOST_LEARNED_BODY

    def _blanket(self, at: int) -> Blanket:
        return Blanket(self.trainer.model, self.blocks[at], self._places)

    def _chosen(self) -> list[int]:
        rng, count = self.trainer.rng, len(self.blocks)
        return list(range(count)) if count <= MOST_BLOCKS else sorted(rng.choice(count, MOST_BLOCKS, replace=False))

    def _set_frame(self, chosen: list[int], worlds: Worlds) -> None:
        model, wanted = self.trainer.model, self._wanted
        blankets = [self._blanket(at) for at in chosen]
        self.frame = prior_frame(model, blankets, worlds)
        if wanted == "prior" or (wanted is None and any(each.is_discrete for each in self.frame.positions)):
            return
        try:
            some = worlds.part(slice(256))
            frame = with_body(self.frame, blankets[0], worlds)
            normal = BlockReader(frame, blankets[0]).read(some, ()).normal
            assert normal is not None
        except KernelError:
            if wanted is not None:
                raise
            return
        if wanted is None and (
            normal.is_of_mode.mean() < LEAST_MODES
            or (_is_far(frame, normal, raw(blankets[0], some), blankets[0].block) and not self._is_better(worlds))
        ):
            return
        self.frame = frame

    def _is_better(self, worlds: Worlds) -> bool:
        """Whether, on some worlds, more is learned in the frame of the mode than in the prior's."""
        newton, prior = (self._gain_in(frame, worlds) for frame in ("newton", "prior"))
        return newton >= prior

    def _gain_in(self, frame: str, worlds: Worlds) -> float:
        """In nats, over the prior; what is learned of no network gains all."""
        # worlds that cannot be read in a trial are not lost to the training
        trial, some = KindExamples(self.trainer, self.blocks, frame), worlds.part(np.arange(min(TRIAL, worlds.count)))
        try:
            trial.begin(some)
            trial.add(some)
            _, report = trial.fit((), TRIAL_STEPS)
        except VentureError:
            return -math.inf
        return math.inf if report is None else trial.prior_loss(report.held_out) - report.loss

    def begin(self, worlds: Worlds) -> int:
        """Find the frame; how many numbers will be read in each world."""
        chosen = self._chosen()
        self._set_frame(chosen, worlds)
        numbers, one = 0, worlds.part(slice(1))
        with contextlib.suppress(VentureError):
            self._names = self._reader(chosen[0]).input_names(worlds.part(slice(NAMED)))
        for at in chosen if not self.is_settled else ():
            # what cannot be read in this world is left out of all that are like it
            with contextlib.suppress(VentureError):
                numbers += self._features(self._reader(at), one).features.size
        return numbers // len(chosen) if self.frame.body else numbers

    def add(self, worlds: Worlds) -> None:
        chosen = self._chosen()
        beyond = np.zeros(worlds.count, bool)
        for share, at in enumerate(chosen):
            # a slice of the worlds is for one block where finding modes takes long
            some = slice(share, None, len(chosen)) if self.frame.body else slice(None)
            beyond[some] |= self._read(self._reader(at), worlds.part(some))
        self.beyond += int(beyond.sum())

    def _reader(self, at: int) -> BlockReader:
        if at not in self._readers:
            self._readers[at] = BlockReader(self.frame, self._blanket(at))
        return self._readers[at]

    def _features(self, reader: BlockReader, worlds: Worlds) -> BlockReading:
        """What a block reads in worlds."""
        ports = reader.blanket.ports
        for port in ports:
            if self.frame.body and len(port.reader.run.rows) > MOST_ROWS:
                self._many[port.key] = None
        return reader.read(worlds, [port.key for port in ports if port.key not in self._many])

    def _read(self, reader: BlockReader, worlds: Worlds) -> np.ndarray:
        """(W,) in which worlds the block has numbers that are no floats."""
        if not worlds.count or self.is_settled:
            return np.zeros(worlds.count, bool)
        blanket = reader.blanket
        reading = self._features(reader, worlds)
        for port in blanket.ports:
            if port.key in reading.features.ports:
                self._meet(port, reading.features.ports[port.key].shape[2], worlds)
        numbers, log_prior = self._numbers_of(reader, reading, worlds)
        self._keep(reading.features, numbers, log_prior, ~worlds.failed)
        beyond: np.ndarray = ~np.isfinite(numbers).all(axis=1) & ~worlds.failed
        return beyond

    def add_state(self, reader: BlockReader, reading: BlockReading, numbers: np.ndarray, log_prior: float) -> None:
        """What one state holds for a block: its numbers (D,) in the frame, and the prior's log density of these."""
        features = reading.features
        if self._fixed and features.fixed.shape[1] != self._fixed[0].shape[1]:
            return
        if len(self._readers) < MOST_BLOCKS:
            self._readers[len(self._readers)] = reader
        there: Worlds | None = None
        for port in reader.blanket.ports:
            if port.key in features.ports and port.key not in self._widths:
                there = there or reader.blanket.placed(self.frame.put(reader.blanket.block, 1))
                self._meet(port, features.ports[port.key].shape[2], there)
        if not self._names:
            self._names = reader.input_names(Worlds(reader.blanket.places, 1))
        rows = {key: part for key, part in features.ports.items() if part.shape[2] == self._widths[key][0]}
        self._keep(replace(features, ports=rows), numbers[None], np.array([log_prior]), np.ones(1, bool))

    @property
    def size(self) -> int:
        """How many numbers are kept."""
        rows = sum(values.size for parts in self._rows.values() for values, _ in parts)
        slopes = sum(found.size for part in self._slopes for found in part.values())
        return rows + slopes + sum(part.size for part in (*self._fixed, *self._numbers))

    @property
    def count(self) -> int:
        """How many examples there are."""
        return sum(map(len, self._numbers))

    def _numbers_of(self, reader: BlockReader, reading: BlockReading, worlds: Worlds) -> tuple[np.ndarray, np.ndarray]:
        """What is learned of the block in each world, (W, numbers), and the prior's log density of it."""
        frame, block = self.frame, reader.blanket.block
        drawn = raw(reader.blanket, worlds)
        found = [position.coordinates(drawn[node]) for node, position in zip(block, frame.positions, strict=True)]
        shifts = np.split(reading.shifts, np.cumsum(frame.widths)[:-1], axis=1) if frame.heads else []
        pairs = zip(frame.heads, shifts, strict=True)
        heads = [frame.positions[at].numbers(found[at], shift) for at, shift in pairs]
        volume = sum(position.log_volume() for position in frame.head_positions)
        if not frame.body or frame.size > MOST_LEARNED_BODY:
            return np.concatenate(heads, axis=1), log_prior(reader.blanket, worlds, reader.heads) + volume
        of_heads = np.concatenate([found[at] for at in frame.heads], axis=1) if frame.heads else np.zeros((0, 0))
        normal = reader.body_at(reading, of_heads, worlds)
        body = normal.numbers(np.concatenate([found[at] for at in frame.body], axis=1))
        prior = log_prior(reader.blanket, worlds, block) + volume + normal.log_volume()
        return np.concatenate([*heads, body], axis=1), prior

    def _meet(self, port: Port, width: int, worlds: Worlds) -> None:
        if port.key in self._widths:
            return
        with contextlib.suppress(VentureError):
            self._columns[port.key] = port.number_names(worlds.part(slice(NAMED)))
        self._widths[port.key] = width, self.trainer.model.trace.is_observed(port.reader.run.nodes[0])
        # examples before this one have no rows here
        self._rows[port.key] = [(np.zeros((0, width)), np.zeros(len(part), np.intp)) for part in self._fixed]

    def _keep(self, features: Features, numbers: np.ndarray, prior: np.ndarray, good: np.ndarray) -> None:
        """Worlds that could be drawn, and whose choices the frame knows; in half of them data keep only some rows."""
        rng = self.trainer.rng
        inside = good & np.isfinite(numbers).all(axis=1)
        for coordinate, discrete in zip(numbers.T, self._are_discrete(), strict=True):
            if discrete:
                inside &= coordinate >= 0
        self._fixed.append(features.fixed[inside])
        self._slopes.append({key: slopes[inside] for key, slopes in features.slopes.items()})
        self._numbers.append(numbers[inside])
        self._log_prior.append(prior[inside])
        for key, (width, observed) in self._widths.items():
            rows = features.ports.get(key)
            if rows is None:
                self._rows[key].append((np.zeros((0, width)), np.zeros(int(inside.sum()), np.intp)))
                continue
            rows = rows[inside]
            kept = np.ones(rows.shape[:2], bool)
            # the frame of a body knows of all data
            if observed and rows.shape[1] > 1 and not self.frame.body:
                share = np.where(rng.random(len(rows)) < 0.5, rng.random(len(rows)), 1.0)
                kept = rng.random(rows.shape[:2]) < share[:, None]
            self._rows[key].append((rows[kept], kept.sum(axis=1)))

    def _are_discrete(self) -> list[bool]:
        return [isinstance(head, Categories) for _, head in learned_of(self.frame, self.trainer.components)]

    # ----------------------------------------------------------------------------------------------------- fitting

    def ports_told(self, known: Iterable[PortKey]) -> tuple[tuple[str, float], ...]:
        """Each port with the mean number of its rows in the blocks that were read."""
        ports = [port for reader in self._readers.values() for port in reader.blanket.ports]
        each = {key: [len(port.reader.run.rows) for port in ports if port.key == key] for key in known}
        return tuple((key, sum(counts) / len(self._readers)) for key, counts in each.items())

    def prior_loss(self, examples: np.ndarray) -> float:
        """The mean of -log density of some examples by the prior, where it has one."""
        terms = -np.concatenate(self._log_prior)[examples]
        return float(np.mean(terms[np.isfinite(terms)])) if np.isfinite(terms).any() else math.inf

    def _input_names(self, slopes: Iterable[PortKey]) -> InputNames:
        first = next(iter(self._readers.values()), None)
        body = first.numbers_of_body() if first is not None else []
        what = ("slope", "curvature")
        of_slopes = [f"{each} of {key} along {name}" for key in slopes for each in what for name in body]
        return InputNames((*self._names, *of_slopes), tuple(self._columns.items()))

    def fit(self, sites: SiteTexts, steps: int | None = None) -> tuple[KindProposer, FitReport | None]:
        self.ports = tuple(self._widths)
        slopes = tuple(dict.fromkeys(key for part in self._slopes for key in part))
        known = tuple(dict.fromkeys(port.key for reader in self._readers.values() for port in reader.blanket.ports))
        kind = KindProposer(sites, self.frame, self.ports, slopes, None, (), known, names=self._input_names(slopes))
        if not kind.learns:
            return replace(kind, ports=()), None
        pairs = zip(self._fixed, self._slopes, strict=True)
        fixed = np.concatenate([kind.fixed(Features(fixed, {}, found)) for fixed, found in pairs])
        rows = []
        for key in self.ports:
            values, counts = zip(*self._rows[key], strict=True)
            rows.append(PortRows(np.concatenate(values), np.concatenate(counts)))
        numbers = np.concatenate(self._numbers)
        examples = Examples(fixed, tuple(rows))
        found, report = fitted(self.trainer, kind, examples, numbers, steps=steps)
        size = kind.frame.size
        least = WORTH * size if size > 1 else 0.0
        if not found.body_is_learned:
            return found, report
        if not kind.frame.heads:
            if log_t_of(numbers[report.held_out]).mean() >= -report.loss - least:
                # few worlds, or many choices: what was learned has lighter tails than the t in the frame
                return found.corrected(np.zeros(size), np.eye(size)), None
            return found, report
        if of_body(found, examples, numbers, report.held_out) < least:
            found, again = fitted(self.trainer, kind, examples, numbers[:, :-size])
            return found, replace(again, seconds=report.seconds + again.seconds)
        return found, report


def _is_far(frame: BlockFrame, normal: Normal, drawn: dict[int, np.ndarray], block: Sequence[int]) -> bool:
    """Whether the draws of a block of which all is a body are unlike draws of the normals at its modes: on a ring, with
    modes on either side."""
    if frame.heads:
        return False
    numbers = normal.numbers(np.concatenate([drawn[node] for node in block], axis=1))
    # of a standard normal the mean is its entropy, and little more by the t
    return -float(log_t_of(numbers).mean()) > (ENTROPY + WORTH) * frame.size


def of_body(kind: KindProposer, examples: Examples, numbers: np.ndarray, chosen: np.ndarray) -> float:
    """By how many nats the network of a body is better than the normal in its frame, on some of the examples."""
    assert kind.network is not None
    size = kind.frame.size
    prepared = kind.network.prepared(examples, numbers, np.float64)[0].take(chosen)
    learned = kind.network.log_density(prepared) - kind.network.first(numbers.shape[1] - size).log_density(prepared)
    normal = -0.5 * (numbers[chosen, -size:] ** 2).sum(axis=1) - HALF_LOG_TWO_PI * size
    return float((learned - normal).mean())


def log_t_of(numbers: np.ndarray) -> np.ndarray:
    """Log densities (N,) of numbers (N, D) by the t in the frame."""
    return np.array([log_t(float(row @ row), len(row)) for row in numbers])


def refuse_failed(errors: Sequence[VentureError], failed: int, worlds: int, most: float, where: str) -> None:
    """Raises the first error where more than a share of the worlds has one."""
    if errors and failed > most * worlds:
        error = errors[0]
        error.message += f" (so it is in {failed:,} of {worlds:,} worlds{where})"
        error.hint = error.hint or "proposals are learned from draws of the prior: all of it must have values"
        raise error


# -------------------------------------------------------------------------------------------------------- fitting


class FitSettings(Protocol):
    """How networks are fitted."""

    components: int
    hidden: int
    rng: np.random.Generator
    poll: Callable[[], None]


class ExampleSettings(FitSettings, Protocol):
    """How examples are read."""

    model: Model


def learned_of(frame: BlockFrame, components: int) -> list[tuple[str, Head]]:
    """What is learned, by name: heads, and a body that is not too large."""
    body = frame.body if frame.size <= MOST_LEARNED_BODY else []
    return [pair for at in (*frame.heads, *body) for pair in _heads_of(frame.positions[at], components)]


def _heads_of(position: Position, components: int) -> list[tuple[str, Head]]:
    if position.is_discrete:
        return [(position.text, Categories(position.size, ordered=len(position.values) > 12))]
    return [(position.text, Normals(components))] * position.width


def fitted(
    settings: FitSettings,
    kind: KindProposer,
    examples: Examples,
    numbers: np.ndarray,
    targets: np.ndarray | None = None,
    steps: int | None = None,
) -> tuple[KindProposer, FitReport]:
    """A kind with a network that is trained, in so many steps at most, on what it reads, and on its numbers (N, D), or
    the first of these."""
    names = _fitting(kind, examples)
    layout = Layout(names, tuple(learned_of(kind.frame, settings.components)[: numbers.shape[1]]))
    initial = Conditional.drawn(settings.rng, layout, examples, numbers, settings.hidden)
    network, report = fit(initial, examples, numbers, settings.rng, settings.poll, steps, targets)
    return replace(kind, network=network, ranges=ranges_of(examples)), report


def _fitting(kind: KindProposer, examples: Examples) -> InputNames:
    """The names of what is read, by numbers where they are not known."""
    known, ports = dict(kind.names.ports), []
    for key, rows in zip(kind.ports, examples.ports, strict=True):
        width = rows.values.shape[1]
        columns = known.get(key, ())
        numbered = ("value", *(f"argument {at}" for at in range(1, width)))
        ports.append((key, columns if len(columns) == width else numbered))
    fixed, count = kind.names.fixed, examples.fixed.shape[1]
    if len(fixed) != count:
        fixed = tuple(f"input {at} of {kind.sites[0]}" for at in range(count))
    return InputNames(fixed, tuple(ports))


def refitted(
    settings: FitSettings,
    kind: KindProposer,
    read: Sequence[Features],
    numbers: np.ndarray,
    targets: np.ndarray | None,
) -> KindProposer:
    """The same on states of chains: where these all read alike, the network reads no rows, and fits what is known of
    their log densities (N,), too. States that the frame has no numbers for are left out."""
    known = np.isfinite(numbers).all(axis=1)
    for at, (_, head) in enumerate(learned_of(kind.frame, settings.components)):
        if isinstance(head, Categories):
            known &= numbers[:, at] >= 0
    if not known.all():
        read, numbers = [each for each, good in zip(read, known, strict=True) if good], numbers[known]
        targets = None if targets is None else targets[known]
    fixed = np.concatenate([kind.fixed(features) for features in read])
    if kind.frame.heads:
        # given these, a body is about as normal as its frame says
        numbers = numbers[:, : sum(kind.frame.widths)]
    each = {id(features): features for features in read}.values()
    are_alike = all(features.equal(read[0]) for features in each)
    rows = []
    for key in kind.ports:
        parts = [kind.rows(features, key)[0][: 0 if are_alike else None] for features in read]
        rows.append(PortRows(np.concatenate(parts), np.array([len(part) for part in parts])))
    found, _ = fitted(settings, kind, Examples(fixed, tuple(rows)), numbers, targets if are_alike else None)
    # what the worlds had stays what is told of the data
    return replace(found, ranges=kind.ranges or found.ranges)
