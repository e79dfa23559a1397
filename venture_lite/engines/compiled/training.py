"""Training of the proposers of one action: worlds, what each kind of block reads of them, and the fit."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np

from venture_lite.blocks.prior import log_prior
from venture_lite.blocks.worlds import AT_CENTRE, Blanket, Features, Port, PortKey, WorldMaker, Worlds, names_of
from venture_lite.engines.compiled.frame import BlockFrame, Position, frame_of, raw
from venture_lite.engines.compiled.proposer import KindProposer, Range, SiteTexts
from venture_lite.engines.compiled.report import KindReport
from venture_lite.errors import VentureError
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder, absorbing_rows
from venture_lite.networks.conditional import Conditional, Layout
from venture_lite.networks.fitting import FitReport, fit
from venture_lite.networks.heads import Categories, Head, Normals
from venture_lite.networks.pooled import Examples, InputNames, PortRows

CHUNK = 4096
"""Worlds drawn at once."""
MOST_BLOCKS = 16
"""Blocks of one kind that are read in each chunk of worlds."""
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
        rng: np.random.Generator,
    ) -> None:
        self.model, self.worlds, self.rng = model, worlds, rng
        self.components, self.hidden = components, hidden
        self.kinds: dict[SiteTexts, list[list[int]]] = {}
        for block in blocks:
            self.kinds.setdefault(names_of(model, block), []).append(block)
        every = [node for block in blocks for node in block]
        children = absorbing_rows(model.trace, Builder(model.trace).build(every))
        self.maker = WorldMaker(model, [*every, *children])

    def run(self) -> tuple[dict[SiteTexts, KindProposer], list[KindReport]]:
        start = time.process_time()
        kinds = {sites: KindExamples(self, blocks) for sites, blocks in self.kinds.items()}
        failed = unread = 0
        errors: list[VentureError] = []
        for first in range(0, self.worlds, CHUNK):
            worlds = self.maker.draw(min(CHUNK, self.worlds - first), self.rng)
            bad = int(worlds.failed.sum())
            failed, errors = failed + bad, errors or worlds.errors
            self._refuse_failed(errors, failed, MOST_FAILED, "")
            for kind in kinds.values():
                kind.add(worlds)
            unread, errors = unread + int(worlds.failed.sum()) - bad, errors or worlds.errors
            self._refuse_failed(errors, unread, MOST_UNREAD, AT_CENTRE)
        seconds = time.process_time() - start
        found, reports = {}, []
        for sites, kind in kinds.items():
            network, fitted = kind.fit()
            found[sites] = KindProposer(sites, kind.frame, kind.ports, network, kind.ranges)
            reports.append(self._report(kind, failed + unread, seconds, fitted))
        return found, reports

    def _refuse_failed(self, errors: Sequence[VentureError], failed: int, most: float, where: str) -> None:
        """Raises the first error where more than a share of the worlds has one."""
        if errors and failed > most * self.worlds:
            error = errors[0]
            error.message += f" (so it is in {failed:,} of {self.worlds:,} worlds{where})"
            error.hint = error.hint or "proposals are learned from draws of the prior: all of it must have values"
            raise error

    def _report(self, kind: KindExamples, failed: int, seconds: float, fitted: FitReport) -> KindReport:
        return KindReport(
            names_of(self.model, kind.blocks[0]),
            len(kind.blocks),
            self.worlds,
            failed,
            seconds,
            fitted.seconds,
            fitted.parameters,
            fitted.loss,
            kind.prior_loss(fitted.held_out),
            "prior",
            kind.ports_told(),
            fitted.clipped,
        )


class KindExamples:
    """What the worlds hold for the blocks of one kind. Mutable: grows by chunks."""

    def __init__(self, trainer: Trainer, blocks: list[list[int]]) -> None:
        self.trainer, self.blocks = trainer, blocks
        self._blankets: dict[int, Blanket] = {}
        self.frame = BlockFrame(())
        self.ports: tuple[PortKey, ...] = ()
        self.ranges: tuple[Range, ...] = ()
        # of each port how many inputs a row has, and whether its choices have evidence
        self._widths: dict[PortKey, tuple[int, bool]] = {}
        self._fixed: list[np.ndarray] = []
        self._rows: dict[PortKey, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._numbers: list[np.ndarray] = []
        # of each example, by the numbers of the frame
        self._log_prior: list[np.ndarray] = []

    def _chosen(self) -> list[Blanket]:
        rng, count = self.trainer.rng, len(self.blocks)
        chosen = (
            range(count) if count <= MOST_BLOCKS else sorted(rng.choice(count, MOST_BLOCKS, replace=False).tolist())
        )
        for at in chosen:
            if at not in self._blankets:
                self._blankets[at] = Blanket(self.trainer.model, self.blocks[at], self.trainer.maker.places)
        return [self._blankets[at] for at in chosen]

    def add(self, worlds: Worlds) -> None:
        blankets = self._chosen()
        if not self.frame.positions:
            self.frame = frame_of(self.trainer.model, blankets, worlds)
        for blanket in blankets:
            features = blanket.read(self.frame.centre(blanket.block, worlds.count), worlds)
            drawn = raw(blanket, worlds)
            numbers = [p.in_frame(drawn[node]) for node, p in zip(blanket.block, self.frame.positions, strict=True)]
            for port in blanket.ports:
                self._meet(port, features.ports[port.key].shape[2])
            prior = log_prior(blanket, worlds) + self.frame.log_scale
            self._keep(features, np.concatenate(numbers, axis=1), prior, ~worlds.failed)

    def _meet(self, port: Port, width: int) -> None:
        if port.key in self._widths:
            return
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
        self._numbers.append(numbers[inside])
        self._log_prior.append(prior[inside])
        for key, (width, observed) in self._widths.items():
            rows = features.ports.get(key)
            if rows is None:
                self._rows[key].append((np.zeros((0, width)), np.zeros(int(inside.sum()), np.intp)))
                continue
            rows = rows[inside]
            kept = np.ones(rows.shape[:2], bool)
            if observed and rows.shape[1] > 1:
                share = np.where(rng.random(len(rows)) < 0.5, rng.random(len(rows)), 1.0)
                kept = rng.random(rows.shape[:2]) < share[:, None]
            self._rows[key].append((rows[kept], kept.sum(axis=1)))

    def _are_discrete(self) -> list[bool]:
        return [position.is_discrete for position in self.frame.positions for _ in range(position.width)]

    # ----------------------------------------------------------------------------------------------------- fitting

    def ports_told(self) -> tuple[tuple[str, float], ...]:
        return tuple((key, float(np.mean(np.concatenate([c for _, c in self._rows[key]])))) for key in self.ports)

    def prior_loss(self, examples: np.ndarray) -> float:
        """The mean of -log density of some examples by the prior, where it has one."""
        terms = -np.concatenate(self._log_prior)[examples]
        return float(np.mean(terms[np.isfinite(terms)])) if np.isfinite(terms).any() else math.inf

    def fit(self) -> tuple[Conditional, FitReport]:
        trainer = self.trainer
        self.ports = tuple(self._widths)
        fixed = np.concatenate(self._fixed)
        rows = []
        for key in self.ports:
            values, counts = zip(*self._rows[key], strict=True)
            rows.append(PortRows(np.concatenate(values), np.concatenate(counts)))
        examples = Examples(fixed, tuple(rows))
        self.ranges = tuple(_range(inputs) for inputs in (fixed, *[port.values for port in rows]))
        ports = [
            (key, ("value", *(f"argument {at}" for at in range(1, width)))) for key, (width, _) in self._widths.items()
        ]
        names = InputNames(tuple(f"input {at}" for at in range(fixed.shape[1])), tuple(ports))
        layout = Layout(names, tuple(pair for position in self.frame.positions for pair in self._heads(position)))
        numbers = np.concatenate(self._numbers)
        initial = Conditional.drawn(trainer.rng, layout, examples, numbers, trainer.hidden)
        return fit(initial, examples, numbers, trainer.rng, trainer.model.poll)

    def _heads(self, position: Position) -> list[tuple[str, Head]]:
        if position.is_discrete:
            ordered = len(position.values) > 12
            return [(position.text, Categories(len(position.values), ordered))]
        return [(position.text, Normals(self.trainer.components))] * position.width


def _range(inputs: np.ndarray) -> Range:
    if not len(inputs):
        return np.full(inputs.shape[1], -np.inf), np.full(inputs.shape[1], np.inf)
    return inputs.min(axis=0), inputs.max(axis=0)
